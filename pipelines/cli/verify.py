"""The command `verify`: compares what a plan sent with what was pulled since, and prints the counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.words import VERDICTS, number

if TYPE_CHECKING:
    from orderbridge.pipelines.push.verify import VerifyResult

_OUTCOMES: Final = {
    "same": "on the platform as sent",
    "differs": "different on the platform",
    "missing": "not in the platform's list",
    "several": "on the platform more than once",
    "unreadable": "accepted; the API cannot read them back",
    "unsettled": "not sent, rejected or with unknown outcome",
}


@declared("verify")
@click.argument("plan", type=click.Path(path_type=Path))
def command(plan: Path) -> int:
    """Compare what was sent with what was pulled since, field by field."""
    reporter = start()
    from orderbridge.pipelines.plan.model import Plan
    from orderbridge.pipelines.push.next_steps import NextSteps
    from orderbridge.pipelines.push.verify import verify

    result = verify(plan)
    lines = lines_of(result)
    if result.in_doubt:
        lines += NextSteps.of(Plan(plan)).step("again").lines
    print_result("verify", lines, record(result), reporter.style)
    return result.exit_code


def record(result: VerifyResult) -> dict[str, Any]:
    """What a verification found, for JSON."""
    names = ("kind", "verdict", "outcomes", "in_doubt", "fields", "spelling", "file", "exit_code")
    return {name: getattr(result, name) for name in names}


def lines_of(result: VerifyResult) -> list[str]:
    """What a verification found, as text."""
    unit = "" if KINDS[result.kind].is_listed else " (requests)"  # a variant may need two
    lines = [
        f"{result.outcomes[name]:>8}  {words}{unit}"
        for name, words in _OUTCOMES.items()
        if result.outcomes[name]
    ]
    return lines + _difference_lines(result)


def import_lines(result: VerifyResult) -> list[str]:
    """What a verification found, after a table of lines has said what was sent: only what is new."""
    kind = KINDS[result.kind]
    sent = sum(result.outcomes.values()) - result.outcomes["unsettled"]
    if kind.operation.shown_in is None:
        words = "cannot be read from the platform: its confirmation is the only evidence"
        return [f"{result.kind} {words}"] if sent else []
    read_back = {
        name: words
        for name, words in _OUTCOMES.items()
        if result.outcomes[name] and name not in ("unsettled", "unreadable")
    }
    records = [
        f"read again: {number(result.outcomes[name], kind.singular, kind.name)} {words}"
        for name, words in read_back.items()
    ]
    return records + _difference_lines(result)


def _difference_lines(result: VerifyResult) -> list[str]:
    """How records differ from what was sent, and the file that has it."""
    spelt = [
        f"          {count} whose {name} the platform writes in another way: {result.file}"
        for name, count in result.spelling.most_common()
    ]
    differing = [
        f"          {count} differ in {name}" for name, count in result.fields.most_common()
    ]
    lines = spelt + differing
    if result.outcomes["missing"] and result.verdict != "complete":
        verdict = VERDICTS[result.verdict]
        lines.append(f"the list of {result.kind} is {verdict}: missing {result.kind} may exist")
    if result.file is not None and any(
        result.outcomes[name] for name in ("differs", "missing", "several")
    ):
        lines.append(f"each difference: {result.file}")
    return lines
