"""The command `pull`: walks lists, publishes the raw tables, prints a line for each list.

In: names of lists and how strict to be. Out: stderr for progress, stdout for the result. No row value is printed.
"""

from __future__ import annotations

import json
import sys
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.options import log_option, pull_options
from pipelines.cli.process import STOP, exit_process, origin_line, settings_origin, start
from sources.contract import LISTS
from sources.words import number

if TYPE_CHECKING:
    from rich.table import Table

    from pipelines.cli.console import Reporter
    from pipelines.pull.model import PullResult
    from sources.extract.result import ListResult


@click.command("pull", epilog="Example: orderbridge pull customers orders --require-complete")
@click.argument("resources", nargs=-1, type=click.Choice(tuple(LISTS)), metavar="[RESOURCE]...")
@pull_options
@log_option
def command(resources: tuple[str, ...], style: str, **options: Any) -> None:  # noqa: ANN401 # those of pull_options
    """Walk the lists to their ends and publish the raw tables.

    RESOURCE: customers, promotions, price_lists, orders; all of them by default. A list whose walk fails keeps its
    previous table and sets the exit code; if every list fails, nothing is published. With --tail only the orders after
    the last read are requested, and older ones stay as they are.
    """
    with start(style) as reporter:
        from pipelines.pull.model import PullOptions
        from pipelines.pull.pull import pull

        result = pull(PullOptions(tuple(dict.fromkeys(resources)), **options), reporter.progress, STOP.event)
    print_result(result, reporter)
    exit_process(result.exit_code)


def print_result(result: PullResult, reporter: Reporter) -> None:
    """Prints what a pull did on stdout, in the reporter's style."""
    if reporter.style == "json":
        record = {
            "run_id": result.run_id,
            "published": result.published,
            "warehouse": str(result.path),
            "exit_code": result.exit_code,
            "lists": [_facts(result, walk) for walk in result.lists],
            **settings_origin(),
        }
        sys.stdout.write(json.dumps(record) + "\n")
        return
    out = reporter.stdout()
    out.table(table(result))
    for walk in result.lists:
        if walk.verdict != "complete":
            out.line(f"{walk.resource} is {walk.verdict}: {'; '.join(walk.evidence)}")
        if walk.error is not None and walk.error.hint:
            out.line(f"  {walk.error.hint}")
    quarantined = sum(len(walk.quarantined) for walk in result.lists)
    if quarantined:
        from pipelines.pull.quarantine import quarantine_file

        out.line(
            f"{number(quarantined, 'row')} quarantined: reasons in ops.quarantine, "
            f"rows in {quarantine_file(result.path).name}"
        )
    if result.published:
        out.line(f"published {result.path} (run {result.run_id})")
    out.line(origin_line(settings_origin()))


def table(result: PullResult) -> Table:
    """The lists of a pull: rows, changes, sweeps, verdict."""
    from rich.table import Table

    grid = Table(box=None, pad_edge=False)
    grid.add_column("list")
    columns = ("rows", "new", "changed", "missing", "quarantined", "sweeps")
    for name in columns:
        grid.add_column(name, justify="right")
    grid.add_column("verdict")
    for walk in result.lists:
        facts = _facts(result, walk)
        cells = ("–" if facts[name] is None else str(facts[name]) for name in (*columns, "verdict"))
        grid.add_row(walk.resource, *cells)
    return grid


def _facts(result: PullResult, walk: ListResult) -> dict[str, object]:
    return {
        **result.counts(walk),
        "duplicates": walk.duplicates if walk.error is None else 0,
        "sweeps": len(walk.sweeps),
        "evidence": walk.evidence,
        "hint": walk.error.hint if walk.error is not None else "",
    }
