"""`summary.md`: what a plan will do, for the person who has to say yes to it.

In: the manifest and what was counted. Out: Markdown, the same for the same plan; on a terminal, the same words. Lines
and column names stand in it, and no cell's value.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pipelines.plan.model import DIFFERENCES_FILE, MAPPING_FILE, REJECTS_FILE, UNCHANGED_FILE, Manifest
from pipelines.plan.outcomes import Reason
from sources.kinds import KINDS

MAX_JUMPS: Final = 20


class Jump(NamedTuple):
    """A price that is a power of ten away from the last confirmed one."""

    line: int
    before: str
    now: str
    power: int


@dataclass(frozen=True, slots=True)
class Facts:
    """What was counted, beside the manifest.

    Attributes:
        inputs: that are sent.
        reasons: why lines were rejected. skipped: why lines are no input.
        firsts: the first lines of each outcome.
        jumps: prices that jump; `jumps_in_all`: how many there are.
        once: operations that cannot be repeated.
        notes: what else the person should know.
        passwords: their source.
    """

    inputs: int
    reasons: Sequence[Reason] = ()
    skipped: Sequence[Reason] = ()
    firsts: Mapping[str, Sequence[int]] = field(default_factory=dict)
    jumps: Sequence[Jump] = ()
    jumps_in_all: int = 0
    once: int = 0
    notes: Sequence[str] = ()
    passwords: str | None = None


def summary(manifest: Manifest, facts: Facts, folder: str) -> str:
    """The words.

    Args:
        manifest: of the plan.
        facts: what was counted.
        folder: what the commands in it call the plan's folder.
    """
    return "\n".join(_lines(manifest, facts, folder)) + "\n"


def _lines(manifest: Manifest, facts: Facts, folder: str) -> Iterator[str]:
    one, many = KINDS[manifest.kind].singular, manifest.kind
    count, operations = manifest.outcomes, manifest.operations
    new = not KINDS[manifest.kind].is_update
    yield f"# Plan {manifest.plan_id[:12]}: {many} to {manifest.environment}"
    yield ""
    yield f"{manifest.input.path.rsplit('/', 1)[-1]}, {number(manifest.lines, 'line')}, to {manifest.host}."
    if manifest.read is not None:
        read = manifest.read
        yield (
            f"Compared with {number(read.rows, 'customer')} of the platform, read {_time(read.at)} "
            f"(run {read.run_id}; the list is {read.verdict})."
        )
        if read.refused:
            was = "was refused and is" if read.refused == 1 else "were refused and are"
            yield f"{number(read.refused, 'row')} of the platform's list {was} not compared (why: ops.quarantine)."
        if read.verdict != "complete":
            yield "That list was not proven complete: the push looks for each new customer again before it sends."
    yield ""
    told = number(facts.inputs, one, many)
    verb = "created" if new else "updated"
    if operations:
        lines = number(manifest.sent, "line")
        yield f"- {lines} to send: {told} to be {verb}, {number(operations, 'request')}"
    else:
        yield "- nothing to send"
    for outcome, words in _OUTCOMES.items():
        if count.get(outcome):
            yield f"- {number(count[outcome], 'line')} {words}{_at(facts.firsts.get(outcome, ()))}"
    for reason in facts.skipped:
        yield f"- {number(reason.lines, 'line')} skipped: {reason.words}{_at(reason.first)}"
    if facts.reasons:
        yield ""
        yield f"## Rejected, and why ({REJECTS_FILE} has the rows)"
        yield ""
        for reason in facts.reasons:
            codes = f"`{reason.code}`, {reason.field}" if reason.field else f"`{reason.code}`"
            yield f"- {number(reason.lines, 'line')}: {reason.words} ({codes}){_at(reason.first)}"
    if facts.jumps:
        yield ""
        yield "## Prices that jump"
        yield ""
        yield "A decimal point may have slipped. Look at these before anything is sent:"
        yield ""
        for jump in facts.jumps[:MAX_JUMPS]:
            sign = "×" if jump.power > 0 else "÷"
            yield f"- line {jump.line}: {jump.before} → {jump.now} (about {sign}{10 ** abs(jump.power)})"
        if facts.jumps_in_all > MAX_JUMPS:
            yield f"- and {facts.jumps_in_all - MAX_JUMPS} more"
    yield ""
    yield "## Good to know"
    yield ""
    yield from _to_know(manifest, facts, one)
    yield ""
    yield "## Next"
    yield ""
    yield from _next(manifest, facts, folder)


_OUTCOMES: Final = {
    "merged": "the same as a line before: sent once",
    "unchanged": "unchanged: as last confirmed",
    "exists_same": "there already, and the same",
    "exists_differs": f"there already, and different; the platform has no update of a customer: see {DIFFERENCES_FILE}",
    "ambiguous": f"ambiguous: several customers of the platform fit, so nothing is sent; see {DIFFERENCES_FILE}",
    "rejected": f"rejected: see below, and {REJECTS_FILE}",
}


def _to_know(manifest: Manifest, facts: Facts, one: str) -> Iterator[str]:
    if manifest.kind == "customers":
        if manifest.messages:
            yield f"- **The platform will send {number(manifest.messages, 'message')} to customers.**"
        else:
            yield "- No customer gets a message."
        words = {
            "input": "come from the file: it must stay as it is until all is sent",
            "mailed": "are made, and mailed by the platform to the customers; nobody else gets them",
            "stored": "are made, and written to passwords.csv in the plan's folder before they are sent; for you alone",
        }
        if facts.passwords is not None and manifest.operations:
            yield f"- Passwords {words[facts.passwords]}."
    if manifest.kind == "variants":
        yield "- Variants cannot be read from the platform: what it has is assumed from what it last confirmed."
        if facts.once:
            yield (
                f"- {number(facts.once, 'request')} with price, stock, images or attributes may add when repeated: "
                "each is sent once, and never again without you."
            )
    elif manifest.kind != "customers" and manifest.operations:
        yield f"- A {one} cannot be looked up: one whose answer is lost is not sent again without you."
    for note in facts.notes:
        yield f"- {note}"
    if any(manifest.outcomes.get(name) for name in ("merged", "unchanged", "exists_same", "skipped")):
        yield f"- {UNCHANGED_FILE} lists the lines that need nothing."


def _next(manifest: Manifest, facts: Facts, folder: str) -> Iterator[str]:
    if manifest.operations:
        sure = f" --confirm {manifest.operations}" if manifest.environment == "production" else ""
        yield f"    orderbridge push {folder}{sure}"
        yield ""
        yield "Nothing was sent yet. The file and the mapping must stay as they are until it is done."
    else:
        yield "There is nothing to send."
    if facts.reasons:
        yield ""
        yield f"Mend the rows in {REJECTS_FILE}, and plan them as a file of their own:"
        yield ""
        yield f"    orderbridge plan {manifest.kind} {folder}/{REJECTS_FILE} --mapping {folder}/{MAPPING_FILE}"


def _time(at: str) -> str:
    return f"{datetime.fromisoformat(at).astimezone(UTC):%Y-%m-%d %H:%M} UTC"


def _at(lines: Sequence[int]) -> str:
    if not lines:
        return ""
    return f" (line{'s' if len(lines) > 1 else ''} {', '.join(map(str, lines))}{'…' if len(lines) > 4 else ''})"


def number(count: int, one: str, many: str = "") -> str:
    """So many of something, in words."""
    return f"{count} {one if count == 1 else many or one + 's'}"
