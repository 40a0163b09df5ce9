"""The command `review`: the doubtful pairs of the match with the ERP, for a person to accept or reject."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from orderbridge.pipelines.cli.answer import person
from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import LOG, start
from orderbridge.pipelines.cli.terminal import escape, print_lines
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.pipelines.warehouse.answers.reviews import Decision

_ANSWERS: Final = ("yes", "y", "no", "n", "skip", "s", "quit", "q")


@declared("review")
@click.argument("file", required=False, type=click.Path(path_type=Path))
def command(file: Path | None, below: int, who: str | None, why: str | None) -> None:
    """Accept or reject pairs of the match with the ERP, the most doubtful first.

    On a terminal it asks about one pair after another. In a pipe it writes them as CSV: fill in the column `decision`
    with accept or reject in a spreadsheet, and pass the FILE to the same command. Decisions are kept in
    .dlt/reviewed.csv with who, when and why. Runs with the ERP's file then match accepted pairs (`matched_by` is
    `reviewed`), and never match rejected ones.
    """
    start()
    from orderbridge.pipelines.warehouse.answers.doubtful_pairs import doubtful_pairs
    from orderbridge.pipelines.warehouse.answers.lock import answers_lock
    from orderbridge.pipelines.warehouse.answers.reviews import (
        COLUMNS,
        decisions_in,
        write_csv,
        write_reviews,
    )
    from orderbridge.pipelines.warehouse.build import open_warehouse

    if file is not None:
        decided = decisions_in(file)
    else:
        with open_warehouse() as warehouse:
            pairs = doubtful_pairs(warehouse, below)
        if not sys.stdout.isatty():
            write_csv(
                sys.stdout,
                [*COLUMNS, *(name for name in (pairs or [{}])[0] if name not in COLUMNS)],
                pairs,
            )
            return
        decided = {pair: (answer, why or "") for pair, answer in _ask(pairs).items()}
    with_reasons = {
        pair: (answer, reason or why or "") for pair, (answer, reason) in decided.items()
    }
    with answers_lock("review"):
        write_reviews(with_reasons, person(who))
    LOG.warning("from the next version on: orderbridge answer --from FILE, or one by one")
    print_lines(
        f"{number(len(decided), 'pair')} decided; the next run with the ERP's file uses them"
    )


def _ask(pairs: list[dict[str, Any]]) -> dict[str, Decision]:
    """Shows one pair after another and asks, until all are decided or the person stops."""
    decided: dict[str, Decision] = {}
    for n, pair in enumerate(pairs, 1):
        name = ", ".join(filter(None, (pair["platform_name"], pair["platform_fiscal_name"])))
        click.echo(
            f"{n} of {len(pairs)}: line {pair['line']} ({pair['status']}, weight {pair['weight']})"
        )
        for label, text in (
            ("in the ERP", pair["erp_name"]),
            ("on the platform", name),
            ("equal", pair["agreeing"]),
            ("different", pair["differences"]),
        ):
            click.echo(f"  {label + ':':<17}{escape(text or '–')}")
        question = "  one customer? (yes, no, skip, quit)"
        answer = click.prompt(
            question, type=click.Choice(_ANSWERS), default="skip", show_choices=False
        )
        if answer[0] == "q":
            break
        if answer[0] != "s":
            decided[pair["pair"]] = "accept" if answer[0] == "y" else "reject"
    return decided
