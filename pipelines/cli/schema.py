"""The command `schema`: the fields of an undocumented list as they were decided, and the file to declare them in."""

from __future__ import annotations

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import LOG, start
from orderbridge.pipelines.cli.terminal import print_lines
from orderbridge.sources.contract import UNDOCUMENTED


@declared("schema")
@click.argument("resource", metavar="LIST", type=click.Choice(UNDOCUMENTED))
def command(resource: str, write: bool) -> None:
    """Show the fields of a LIST that the interface does not define (orders), with the kind of each.

    Pulls set the kind of a field from most of its values, and keep it. To declare the kind, and the name of the column
    or table, remove the # of its line in the file that --write makes. Keep that file in version control.
    """
    start()
    from orderbridge.pipelines.warehouse.answers.lock import answers_lock
    from orderbridge.pipelines.warehouse.build import open_warehouse
    from orderbridge.pipelines.warehouse.raw.field_kinds import declarations, declared_file
    from orderbridge.sources.disk import disk_errors, write_private

    LOG.warning(
        "from the next version on: orderbridge questions kind:%s/FIELD shows a field, and answers declare it",
        resource,
    )
    if not write:
        with open_warehouse() as warehouse:
            print_lines(*declarations(warehouse, resource).splitlines())
        return
    file = declared_file(resource)
    with answers_lock("schema"), open_warehouse() as warehouse:
        text = declarations(warehouse, resource)
        with disk_errors(file, "Check the folder."):
            file.parent.mkdir(mode=0o700, exist_ok=True)
            write_private(file, text.encode())
    print_lines(f"written: {file}")
