"""The command `accept`: a person accepts a finding or a change, lists what is accepted, or withdraws it."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, get_args

import click
import msgspec

from orderbridge.pipelines.cli.answer import person
from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import LOG, STOP, start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.errors import UsageError
from orderbridge.transforms.rules import Severity

if TYPE_CHECKING:
    from orderbridge.pipelines.warehouse.accepted import Acceptance


@declared("accept")
@click.argument("rule", required=False)
@click.argument("subjects", metavar="[SUBJECT]…", nargs=-1)
@click.option(
    "--severity",
    type=click.Choice(get_args(Severity)),
    help="Give them this severity instead of accepting them.",
)
def command(
    rule: str | None,
    subjects: tuple[str, ...],
    why: str | None,
    who: str | None,
    until: datetime | None,
    up_to: int | None,
    severity: Severity | None,
    withdraw: bool,
) -> None:
    """Accept findings of a RULE, such as orders.form_changed; without one, list what is accepted.

    A SUBJECT is the id of a record, or what the detail of the finding begins with, up to a colon. Without one, all
    findings of the rule are accepted. They are counted and no longer listed, and cause no exit code 9. Where a finding
    reports a change, such as a field of orders that has another form, the next run takes the new state as the one to
    compare with. With --severity they stay listed, as an error, a warning or info. It is written to .dlt/accepted.toml
    with who, when and why; keep that file in version control.
    """
    start()
    from orderbridge.pipelines.warehouse.accepted import (
        RULE_NAMES,
        Acceptance,
        accepted_file,
        read_acceptances,
        write_acceptances,
    )
    from orderbridge.transforms.rules import find_rule

    path = accepted_file()
    entries = read_acceptances(path)
    if rule is None:
        if subjects or why or withdraw:
            raise UsageError(
                "no RULE is named",
                "Name the entity and the rule of the finding: orders.form_changed.",
            )
        _print(entries)
        return
    if find_rule(rule) is None:
        near = [
            name for name in sorted(RULE_NAMES) if name.endswith(f".{rule}")
        ] or get_close_matches(rule, RULE_NAMES)
        hint = f"Did you mean {' or '.join(near)}?" if near else "They have the form entity.rule."
        raise UsageError(f"there is no rule {rule!r}", f"{hint} All are in docs/rules.md.")
    wanted = subjects or ("",)
    if withdraw:
        gone = [one for one in entries if one.rule == rule and (one.place or one.subject) in wanted]
        if not gone:
            raise UsageError("nothing of that is accepted", "`orderbridge accept` lists what is.")
        write_acceptances(path, [one for one in entries if one not in gone])
        _print(gone, "withdrawn: ")
        return
    now = datetime.now(UTC).replace(microsecond=0)
    if until is not None and until.date() < now.date():
        raise UsageError(f"--until {until.date()} is past", "Name the last day on which it holds.")
    rest: dict[str, Any] = {
        "severity": severity,
        "up_to": up_to,
        "until": until.date() if until is not None else None,
    }
    try:
        made = [
            Acceptance(rule, person(who), now, why or "", subject, **rest) for subject in wanted
        ]
    except ValueError as error:
        raise UsageError(
            str(error), "`orderbridge accept --help` describes what can be combined."
        ) from None
    write_acceptances(path, [*(one for one in entries if _key(one) not in map(_key, made)), *made])
    _print(made, "accepted: ")
    LOG.warning("from the next version on: %s", _answers(made))
    _warn_of_unknown(made)


def _answers(made: list[Acceptance]) -> str:
    """The same with the command that takes the place of this one."""
    from orderbridge.pipelines.questions.findings import PREFIX
    from orderbridge.pipelines.questions.model import answer_command

    one = made[0]
    place = f"/{one.subject}" if one.subject else ""
    return answer_command(f"{PREFIX}{one.rule}{place}", one.severity or "accept")


def _warn_of_unknown(made: list[Acceptance]) -> None:
    """Names the subjects that no finding of the last run has; nothing where there is none to look at."""
    import duckdb

    from orderbridge.pipelines.warehouse.accepted import is_about
    from orderbridge.pipelines.warehouse.build import open_warehouse

    with suppress(UsageError, duckdb.Error), open_warehouse() as warehouse:
        for one in made:
            about = is_about(one.rule, [one.subject])
            if (
                one.subject
                and not warehouse.execute(
                    f"FROM reconciled.exceptions WHERE {about} LIMIT 1"
                ).fetchone()
            ):
                LOG.warning(
                    "no finding of the last run is one of %s %r: accepted all the same",
                    one.rule,
                    one.subject,
                )


def _key(entry: Acceptance) -> tuple[str, str, str, bool]:
    """What only one entry can be about: a severity can stand beside an acceptance."""
    return entry.rule, entry.place, entry.subject, entry.severity is None


def _print(entries: list[Acceptance], before: str = "") -> None:
    lines = []
    for one in entries:
        end = f", until {one.until}" if one.until is not None else ""
        end += (
            " (ran out)" if one.until is not None and one.until < datetime.now(UTC).date() else ""
        )
        end += f", up to {one.up_to}" if one.up_to is not None else ""
        end += f", severity {one.severity}" if one.severity is not None else ""
        about = one.place or one.subject
        subject = f" {about!r}" if about else ""
        lines.append(
            f"{before}{one.rule}{subject}: {one.why} ({one.who}, {one.when:%Y-%m-%d}{end})"
        )
    lines = lines or ["nothing is accepted"]
    record = {"accepted": [msgspec.to_builtins(one) for one in entries]}
    print_result("accept", lines, record, STOP.style)
