"""`summary.md`: what a plan will do, for the person who has to agree to it.

In: the manifest and the counts. Out: Markdown, the same for the same plan; the terminal shows the same text. It
contains line numbers and column names, but no value of a cell except prices that jump.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from shlex import quote
from typing import Final, NamedTuple

from pipelines.plan.model import (
    DIFFERENCES_FILE,
    MAPPING_FILE,
    REJECTS_FILE,
    UNCHANGED_FILE,
    Manifest,
    PasswordSource,
)
from pipelines.plan.outcomes import Reason
from sources.kinds import KINDS
from sources.words import number

MAX_JUMPS: Final = 20
_OUTCOMES: Final = {
    "merged": "identical to an earlier line: sent once",
    "unchanged": "unchanged since last confirmed",
    "exists_same": "already on the platform, identical",
    "exists_differs": f"already on the platform, different; customers cannot be updated there: see {DIFFERENCES_FILE}",
    "ambiguous": f"ambiguous: several customers of the platform match, nothing is sent; see {DIFFERENCES_FILE}",
    "rejected": f"rejected: see below, and {REJECTS_FILE}",
}
_PASSWORDS: Final[Mapping[PasswordSource, str]] = {
    "input": "come from the file: do not change it until everything is sent",
    "mailed": "are generated and mailed to the customers by the platform; nobody else gets them",
    "stored": "are generated and written to passwords.csv in the plan folder, for you only, before they are sent",
}


class PriceJump(NamedTuple):
    """A price that differs from the last confirmed one by about a power of ten."""

    line: int
    before: str
    now: str
    power: int


@dataclass(frozen=True, slots=True)
class PlanStatistics:
    """Counts of a plan that are not in its manifest.

    Attributes:
        inputs: that are sent.
        reasons: why lines were rejected.
        skipped: why lines are no input.
        first_lines: the first lines of each outcome.
        jumps: the first price jumps.
        jump_count: number of price jumps.
        not_repeatable: operations that cannot be repeated.
        notes: what else the person should know.
        passwords: their source.
        suspicious: valid values that are rarely meant.
        notify: whether new customers get a message.
    """

    inputs: int
    reasons: Sequence[Reason] = ()
    skipped: Sequence[Reason] = ()
    first_lines: Mapping[str, Sequence[int]] = field(default_factory=dict)
    jumps: Sequence[PriceJump] = ()
    jump_count: int = 0
    not_repeatable: int = 0
    notes: Sequence[str] = ()
    passwords: PasswordSource | None = None
    suspicious: Sequence[Reason] = ()
    notify: bool = False


def summary(manifest: Manifest, statistics: PlanStatistics, folder: Path) -> str:
    """The text of the summary.

    Args:
        manifest: of the plan.
        statistics: of the plan.
        folder: path of the plan folder in the commands; `Path()` for commands to run in that folder.
    """
    return "\n".join(_lines(manifest, statistics, folder)) + "\n"


def _lines(manifest: Manifest, statistics: PlanStatistics, folder: Path) -> Iterator[str]:
    kind, counts = KINDS[manifest.kind], manifest.outcomes
    yield f"# Plan {manifest.plan_id[:12]}: {kind.name} to {manifest.environment}"
    yield ""
    yield f"{manifest.input.path.rsplit('/', 1)[-1]}, {number(manifest.lines, 'line')}, to {manifest.host}."
    yield from _read(manifest)
    yield ""
    if manifest.operations:
        inputs = number(statistics.inputs, kind.singular, kind.name)
        verb = "update" if kind.is_update else "create"
        requests = number(manifest.operations, "request")
        yield f"- {number(manifest.sent, 'line')} to send: {inputs} to {verb}, {requests}"
    else:
        yield "- nothing to send"
    for outcome, text in _OUTCOMES.items():
        if counts.get(outcome):
            yield f"- {number(counts[outcome], 'line')} {text}{_at(statistics.first_lines.get(outcome, ()))}"
    for reason in statistics.skipped:
        yield f"- {number(reason.lines, 'line')} skipped: {reason.words}{_at(reason.first)}"
    if statistics.reasons:
        yield from ("", f"## Rejected lines (the rows are in {REJECTS_FILE})", "")
        for reason in statistics.reasons:
            code = f"`{reason.code}`, {reason.field}" if reason.field else f"`{reason.code}`"
            yield f"- {number(reason.lines, 'line')}: {reason.words} ({code}){_at(reason.first)}"
    if statistics.jumps:
        yield from ("", "## Price jumps", "", "The decimal point may be wrong. Check these before sending:", "")
        for jump in statistics.jumps[:MAX_JUMPS]:
            sign = "×" if jump.power > 0 else "÷"
            yield f"- line {jump.line}: {jump.before} → {jump.now} (about {sign}{10 ** abs(jump.power)})"
        if statistics.jump_count > MAX_JUMPS:
            yield f"- and {statistics.jump_count - MAX_JUMPS} more"
    if statistics.suspicious:
        yield from ("", "## Suspicious values", "", "These are valid and will be sent. Check them first:", "")
        for reason in statistics.suspicious:
            yield f"- {number(reason.lines, 'line')}: {reason.words}{_at(reason.first)}"
    yield from ("", "## Notes", "")
    yield from _notes(manifest, statistics)
    yield from ("", "## Next" if folder.name else "## Next, in this folder", "")
    yield from _next(manifest, statistics, folder)


def _read(manifest: Manifest) -> Iterator[str]:
    """The read of the platform's customers that the plan was compared with."""
    read = manifest.read
    if read is None:
        return
    yield (
        f"Compared with {number(read.rows, 'customer')} of the platform, read {_time(read.at)} "
        f"(run {read.run_id}; the list is {read.verdict})."
    )
    if read.refused:
        verb = "is in quarantine and was" if read.refused == 1 else "are in quarantine and were"
        yield f"{number(read.refused, 'row')} of the platform's list {verb} not compared (see ops.quarantine)."
    if read.verdict != "complete":
        yield "The list was not proven complete: the push looks up each new customer again before it sends."


def _notes(manifest: Manifest, statistics: PlanStatistics) -> Iterator[str]:
    kind = KINDS[manifest.kind]
    if kind.has_login:
        if manifest.messages:
            yield f"- **The platform will send {number(manifest.messages, 'message')} to customers.**"
        else:
            yield "- No customer gets a message."
        if statistics.passwords is not None and manifest.operations:
            yield f"- Passwords {_PASSWORDS[statistics.passwords]}."
    if kind.is_update:
        yield "- Variants cannot be read from the platform: they are compared with what it last confirmed."
        if statistics.not_repeatable:
            yield (
                f"- {number(statistics.not_repeatable, 'request')} with price, stock, images or attributes may add up "
                "when repeated: each is sent once, and not again unless you ask for it."
            )
    elif not kind.is_listed and manifest.operations:
        yield f"- A {kind.singular} cannot be looked up: if its response is lost, it is sent again only if you ask."
    if manifest.lookups:
        files = ", ".join(file.path.rsplit("/", 1)[-1] for file in manifest.lookups)
        yield f"- Values were looked up in {files}."
    for note in statistics.notes:
        yield f"- {note}"
    if any(manifest.outcomes.get(name) for name in ("merged", "unchanged", "exists_same", "skipped")):
        yield f"- {UNCHANGED_FILE} has the lines that need nothing."


def _next(manifest: Manifest, statistics: PlanStatistics, folder: Path) -> Iterator[str]:
    if manifest.operations:
        confirmation = f"--confirm {manifest.operations}" if manifest.environment == "production" else "--yes"
        yield f"    orderbridge push {quote(str(folder))} {confirmation}"
        yield ""
        yield "Nothing was sent yet. Do not change the file, its mapping and its lookup files until everything is sent."
    else:
        yield "There is nothing to send."
    if statistics.reasons:
        yield ""
        yield f"Correct the rows in {REJECTS_FILE} and plan that file:"
        yield ""
        rejects, mapping = (quote(str(folder / name)) for name in (REJECTS_FILE, MAPPING_FILE))
        options = "".join(f" --lookup {quote(file.path)}" for file in manifest.lookups)
        options += " --notify" if statistics.notify else ""
        yield f"    orderbridge plan {manifest.kind} {rejects} --mapping {mapping}{options}"


def _time(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _at(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    return f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}{'…' if len(lines) > 4 else ''})"
