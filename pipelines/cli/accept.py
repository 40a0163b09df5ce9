"""The command `accept`: a person accepts a finding or a change, lists what is accepted, or withdraws it."""

from __future__ import annotations

from contextlib import suppress
from datetime import UTC, datetime
from difflib import get_close_matches
from typing import TYPE_CHECKING, get_args

import click
import msgspec

from orderbridge.pipelines.cli.answer import person
from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import LOG, STOP, start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.errors import UsageError
from orderbridge.transforms.rules import Severity

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from orderbridge.pipelines.warehouse.answers.accepted import Acceptance


@declared("accept")
@click.argument("rule", required=False)
@click.argument("subjects", metavar="[SUBJECT]…", nargs=-1)
@click.option(
    "--severity",
    type=click.Choice(get_args(Severity)),
    help="List them with this severity instead of accepting them.",
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

    A SUBJECT is the id of a record, or the detail of the finding up to its first colon. Without one, all findings of
    the rule are accepted. Accepted findings are counted, but no longer listed, and cause no exit code 9. If a finding
    reports a change, such as another form of a field of orders, the next run compares with the new state. Acceptances
    are written to .dlt/accepted.toml with who, when and why; keep that file in version control.
    """
    start()
    from orderbridge.pipelines.warehouse.answers.accepted import accepted_file, read_acceptances
    from orderbridge.pipelines.warehouse.answers.lock import answers_lock

    path = accepted_file()
    if rule is None:
        if subjects or why or withdraw:
            raise UsageError(
                "no RULE is named",
                "Name the entity and the rule of the finding, such as: orderbridge accept orders.form_changed",
            )
        _print(read_acceptances(path))
        return
    _check_rule(rule)
    wanted = subjects or ("",)
    with answers_lock("accept"):
        entries = read_acceptances(path)
        if withdraw:
            _withdraw(path, entries, rule, wanted)
            return
        made = _acceptances(rule, wanted, person(who), why or "", severity, up_to, until)
        _accept(path, entries, made)


def _check_rule(rule: str) -> None:
    """Raises: UsageError: there is no such rule."""
    from orderbridge.pipelines.warehouse.answers.accepted import RULE_NAMES
    from orderbridge.transforms.rules import find_rule

    if find_rule(rule) is not None:
        return
    without_entity = [name for name in sorted(RULE_NAMES) if name.endswith(f".{rule}")]
    near = without_entity or get_close_matches(rule, RULE_NAMES)
    hint = f"Did you mean {' or '.join(near)}?" if near else "They have the form entity.rule."
    raise UsageError(f"there is no rule {rule!r}", f"{hint} All are in docs/rules.md.")


def _withdraw(path: Path, entries: list[Acceptance], rule: str, subjects: Sequence[str]) -> None:
    """Writes the file without the entries of a rule that are about these subjects.

    Raises:
        UsageError: there is none.
    """
    from orderbridge.pipelines.warehouse.answers.accepted import write_acceptances

    gone = [one for one in entries if one.rule == rule and one.about in subjects]
    if not gone:
        raise UsageError("nothing of that is accepted", "`orderbridge accept` lists what is.")
    write_acceptances(path, [one for one in entries if one not in gone])
    _print(gone, "withdrawn: ")


def _acceptances(
    rule: str,
    subjects: Sequence[str],
    who: str,
    why: str,
    severity: Severity | None,
    up_to: int | None,
    until: datetime | None,
) -> list[Acceptance]:
    """An entry for each subject.

    Raises:
        UsageError: it is over already, or these cannot be combined.
    """
    from orderbridge.pipelines.warehouse.answers.accepted import Acceptance

    now = datetime.now(UTC).replace(microsecond=0)
    last_day = until.date() if until is not None else None
    if last_day is not None and last_day < now.date():
        raise UsageError(
            f"--until {last_day} is past",
            f"Name the last day on which it holds, such as: {typed_command('--until', str(now.date()))}",
        )
    try:
        return [
            Acceptance(rule, who, now, why, subject, severity=severity, up_to=up_to, until=last_day)
            for subject in subjects
        ]
    except ValueError as error:
        raise UsageError(
            str(error), "`orderbridge accept --help` describes what can be combined."
        ) from None


def _accept(path: Path, entries: list[Acceptance], made: list[Acceptance]) -> None:
    """Writes the file with these entries, in place of those about the same."""
    from orderbridge.pipelines.warehouse.answers.accepted import write_acceptances

    replaced = {_key(one) for one in made}
    kept = [one for one in entries if _key(one) not in replaced]
    write_acceptances(path, [*kept, *made])
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

    from orderbridge.pipelines.warehouse.answers.accepted import is_about
    from orderbridge.pipelines.warehouse.build import open_warehouse

    with suppress(UsageError, duckdb.Error), open_warehouse() as warehouse:
        for one in made:
            if not one.subject:
                continue
            about = is_about(one.rule, [one.subject])
            query = f"FROM reconciled.exceptions WHERE {about} LIMIT 1"
            if warehouse.execute(query).fetchone() is None:
                LOG.warning(
                    "no finding of the last run is one of %s %r: accepted all the same",
                    one.rule,
                    one.subject,
                )


def _key(entry: Acceptance) -> tuple[str, str, str, bool]:
    """What only one entry can be about: a severity can stand beside an acceptance."""
    return entry.rule, entry.place, entry.subject, entry.severity is None


def _print(entries: list[Acceptance], before: str = "") -> None:
    lines = [f"{before}{_described(one)}" for one in entries] or ["nothing is accepted"]
    record = {"accepted": [msgspec.to_builtins(one) for one in entries]}
    print_result("accept", lines, record, STOP.style)


def _described(entry: Acceptance) -> str:
    """An entry in a line."""
    details = [entry.who, f"{entry.when:%Y-%m-%d}"]
    if entry.until is not None:
        ran_out = " (ran out)" if entry.until < datetime.now(UTC).date() else ""
        details.append(f"until {entry.until}{ran_out}")
    if entry.up_to is not None:
        details.append(f"up to {entry.up_to}")
    if entry.severity is not None:
        details.append(f"severity {entry.severity}")
    subject = f" {entry.about!r}" if entry.about else ""
    return f"{entry.rule}{subject}: {entry.why} ({', '.join(details)})"
