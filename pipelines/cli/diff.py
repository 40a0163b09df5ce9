"""The command `diff`: prints what differs between two versions of the warehouse."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.errors import UsageError
from orderbridge.sources.words import format_time

if TYPE_CHECKING:
    from orderbridge.pipelines.warehouse.versions import TableDiff, Version

_COLUMNS_SHOWN = 4


@declared("diff")
@click.argument("before", metavar="[RUN]", required=False)
@click.argument("after", metavar="[RUN]", required=False)
def command(before: str | None, after: str | None) -> None:
    """Show what differs between two versions of the warehouse, by table: keys added, gone, changed.

    The setting warehouse.keep says how many earlier versions are kept. A RUN is the id of the run that published a
    version, or its beginning. One RUN is compared with the published version. Without one, the newest kept version is.
    Order lines and documents, which have no key of their own, are not compared.
    """
    start()
    from orderbridge.pipelines.warehouse.versions import (
        compare_versions,
        find_version,
        kept_versions,
    )
    from orderbridge.sources.settings import warehouse_path

    versions = kept_versions(warehouse_path())
    if len(versions) == 1:
        raise UsageError(
            "no earlier version of the warehouse is kept",
            "Keep some from the next run on: orderbridge init warehouse.keep=7",
        )
    first = find_version(versions, before) if before is not None else versions[-2]
    last = find_version(versions, after) if after is not None else versions[-1]
    found = compare_versions(first, last)
    record = {
        "before": first.run_id,
        "after": last.run_id,
        "tables": [asdict(one) for one in found],
    }
    print_result("diff", [*_heading(first, last), *map(_line, found)], record, STOP.style)


def _heading(first: Version, last: Version) -> list[str]:
    times = [
        format_time(one.ended_at.timestamp()) if one.ended_at else one.run_id
        for one in (first, last)
    ]
    return [f"from the version of {times[0]} to that of {times[1]}"]


def _line(one: TableDiff) -> str:
    if one.is_new or one.is_dropped:
        return f"  {one.table}: {'a new table' if one.is_new else 'the table is gone'}"
    counts = [
        f"{count} {name}"
        for count, name in ((one.added, "added"), (one.gone, "gone"), (one.changed, "changed"))
        if count
    ]
    columns = list((one.columns or {}).items())
    shown = [f"{name} {count}" for name, count in columns[:_COLUMNS_SHOWN]]
    if len(columns) > _COLUMNS_SHOWN:
        shown.append(f"{len(columns) - _COLUMNS_SHOWN} more")
    return f"  {one.table}: {', '.join(counts)}" + (f" ({', '.join(shown)})" if shown else "")
