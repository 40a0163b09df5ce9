"""The command `pull`: reads lists, publishes the raw tables, prints a line for each list.

In: names of lists and how strict to be. Out: stderr for progress, stdout for the result. No row value is printed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, origin_line, settings_origin, start
from orderbridge.pipelines.cli.terminal import Style, print_result
from orderbridge.sources.contract import LISTS, ORDER
from orderbridge.sources.settings import warehouse_settings
from orderbridge.sources.words import VERDICTS, number

if TYPE_CHECKING:
    from orderbridge.pipelines.pull.model import PullResult

_COUNTS: Final = ("rows", "new", "changed", "missing", "quarantined", "sweeps")
_REASONS_SHOWN: Final = 3
"""Reasons of quarantined rows that are printed for each list, the most frequent first."""


def _lists(_: click.Context, __: click.Parameter, names: tuple[str, ...]) -> tuple[str, ...]:
    """The lists of tables such as `orders__lines`, which are read with them."""
    lists = tuple(dict.fromkeys(name.partition("__")[0] for name in names))
    if unknown := [name for name in lists if name not in LISTS]:
        raise click.BadParameter(f"{unknown[0]!r} is not one of {', '.join(LISTS)}")
    return lists


@declared("pull")
@click.argument("resources", nargs=-1, type=click.Choice(tuple(LISTS)), metavar="[RESOURCE]...")
@click.option(
    "--refresh",
    metavar="RESOURCE",
    multiple=True,
    callback=_lists,
    help=f"Read a list ({', '.join(LISTS)}), or that of a child table, as if for the first time: pages of a stopped "
    "run and --tail are not used, and forms and types of undocumented fields are decided anew. Known rows keep their "
    "times. Repeatable. Without RESOURCE, only these lists are read.",
)
def command(resources: tuple[str, ...], **options: Any) -> int:  # noqa: ANN401 # those of pull_options
    """Read the lists to their ends and publish the raw tables.

    RESOURCE: a list, as named under --refresh. Default: all lists whose API has settings. A list that cannot be read
    keeps its previous table and sets the exit code. If every list fails, nothing is published.
    """
    with start(sends_keys=True) as reporter:
        from orderbridge.pipelines.pull.model import PullOptions
        from orderbridge.pipelines.pull.pull import pull

        result = pull(PullOptions(resources, **options), reporter.progress, STOP.event)
    print_pull(result, reporter.style)
    return result.exit_code


def print_pull(result: PullResult, style: Style) -> None:
    """Prints what a pull did on stdout."""
    lists = [
        {
            **result.counts(walked),
            "duplicates": walked.duplicates if walked.error is None else 0,
            "sweeps": len(walked.sweeps),
            "evidence": walked.evidence,
            "hint": walked.error.hint if walked.error is not None else "",
        }
        for walked in result.lists
    ]
    record = {
        "run_id": result.run_id,
        "published": result.published,
        "warehouse": result.path,
        "exit_code": result.exit_code,
        "lists": lists,
        "left_out": result.left_out,
        "ledger_problem": result.ledger_problem,
        **settings_origin(),
    }
    print_result("pull", [*_lines(result, lists), *ending(result), origin_line()], record, style)


def ending(result: PullResult) -> list[str]:
    """What is wrong with the ledger, which lists were not asked for, and where the others are."""
    left_out = ", ".join(result.left_out)
    published = f"published {result.path}"
    copied = f", copied to {name}" if (name := warehouse_settings().destination) else ""
    unset = [f"not read, as their API has no settings: {left_out}"] * bool(left_out)
    return [
        *result.ledger_problem.splitlines(),
        *unset,
        *[f"{published}{copied}"] * result.published,
    ]


def _lines(result: PullResult, lists: Sequence[Mapping[str, object]]) -> Iterator[str]:
    yield from _counts(lists)
    for walked in result.lists:
        if walked.verdict != "complete":
            verdict = VERDICTS[walked.verdict]
            yield f"{walked.resource} is {verdict}: {'; '.join(walked.evidence)}"
        if walked.error is not None and walked.error.hint:
            yield f"  {walked.error.hint}"
    if any(walked.quarantined for walked in result.lists):
        yield from _quarantined(result)


def _counts(lists: Sequence[Mapping[str, object]]) -> Iterable[str]:
    """A table of the lists."""
    from orderbridge.pipelines.cli.console import table_lines

    headings = ("list", *_COUNTS[:-1], "passes", "state")
    rows: list[list[object]] = []
    for row in lists:
        counts = ["–" if row[name] is None else row[name] for name in _COUNTS]
        rows.append([row["resource"], *counts, VERDICTS[str(row["verdict"])]])
    return table_lines(headings, rows, numbers=headings[1:-1])


def _quarantined(result: PullResult) -> Iterator[str]:
    """How many rows are in quarantine, and the most frequent reasons of each list."""
    from orderbridge.pipelines.pull.publishing import quarantine_file

    count = sum(len(walked.quarantined) for walked in result.lists)
    file = quarantine_file(result.path).name
    yield f"{number(count, 'row')} quarantined: reasons in ops.quarantine, rows in {file}"
    for walked in result.lists:
        reasons = Counter(row.reason for row in walked.quarantined)
        for reason, rows in reasons.most_common(_REASONS_SHOWN):
            yield f"  {walked.resource}: {number(rows, 'row')}: {reason}"
        if walked.resource == ORDER.name and walked.quarantined and not walked.distinct:
            yield "  If another field identifies an order: orderbridge questions sources.public_v1.order_key"
