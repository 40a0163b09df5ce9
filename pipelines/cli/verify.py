"""The command `verify`: compares what a plan sent with what was pulled since, and prints the counts."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.words import VERDICTS

if TYPE_CHECKING:
    from orderbridge.pipelines.push.verify import VerifyResult

_OUTCOMES: Final = {
    "same": "on the platform as sent",
    "differs": "different on the platform",
    "missing": "not in the platform's list",
    "several": "on the platform more than once",
    "unreadable": "confirmed, and cannot be read back",
    "unsettled": "not sent, rejected or in doubt",
}


@declared("verify")
@click.argument("plan", type=click.Path(path_type=Path))
def command(plan: Path) -> int:
    """Compare what was sent with what was pulled since, field by field."""
    reporter = start()
    from orderbridge.pipelines.push.verify import verify

    result = verify(plan)
    print_result("verify", lines_of(result), record(result), reporter.style)
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
    if result.in_doubt:
        lines.append(
            f"{result.in_doubt} in doubt: push the plan again; what remains is in results/in_doubt.csv"
        )
    if KINDS[result.kind].operation.shown_in is None:
        lines.append(
            f"{result.kind} cannot be read from the platform: its confirmation is the only evidence"
        )
    lines += [
        f"          {count} whose {name} the platform writes in another way: {result.file}"
        for name, count in result.spelling.most_common()
    ]
    lines += [f"          {count} differ in {name}" for name, count in result.fields.most_common()]
    if result.outcomes["missing"] and result.verdict != "complete":
        lines.append(
            f"the list of {result.kind} is {VERDICTS[result.verdict]}: "
            f"missing {result.kind} may exist"
        )
    if result.file is not None and any(
        result.outcomes[name] for name in ("differs", "missing", "several")
    ):
        lines.append(f"each difference: {result.file}")
    return lines
