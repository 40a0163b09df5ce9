"""The command `export`: writes a table, a view or a SELECT as a file and prints where it is."""

from __future__ import annotations

from pathlib import Path

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.words import number


@declared("export")
@click.argument("what", metavar="TABLE")
def command(what: str, out: Path, has_personal: bool, overwrite: bool) -> None:
    """Write a TABLE or view of the warehouse, or a SELECT, as .xlsx, CSV or Parquet.

    Columns that may hold personal data are left out, and a SELECT cannot use them, unless --personal is given. Times
    are in UTC. Only you can read the file (mode 0600). With `dbt` as TABLE, all tables are written as the sources of a
    dbt project, a .yml.
    """
    start()
    if what == "dbt":
        _export_dbt(out)
        return
    from orderbridge.pipelines.reporting.export import export

    done = export(what, out, has_personal=has_personal, overwrite=overwrite)
    lines = [f"wrote {done.file}: {number(done.rows, 'row')}"]
    if done.left_out:
        lines.append(
            f"left out, as they may hold personal data: {', '.join(done.left_out)}; with them: --personal"
        )
    print_result("export", lines, done._asdict(), STOP.style)


def _export_dbt(out: Path) -> None:
    from orderbridge.pipelines.reporting.dbt_sources import write_dbt_sources

    file, tables = write_dbt_sources(out)
    record = {"file": file, "tables": tables}
    print_result("export", [f"wrote {file}: {number(tables, 'table')}"], record, STOP.style)
