"""What an answer makes of an operation: pure functions, no guess (design §8, Ledger).

In: the outcome of one attempt, and whether an earlier one is in doubt. Out: the operation's next state. `planned` and
`rejected` are said only where nothing of any attempt can have happened: with an earlier one in doubt, it stays so.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pipelines.plan.model import PlannedOperation
from pipelines.push.plan_ledger import StateChange
from sources.gaps import GAPS
from sources.http.error_responses import read_error
from sources.http.responses import WriteOutcome

_GAPS: Final = {gap.name: gap.readings for gap in GAPS}
CONFIRMING: Final = {
    verb: frozenset(map(int, _GAPS[gap])) for verb, gap in (("POST", "created_status"), ("PATCH", "no_content_status"))
}
"""Statuses that confirm: numbers that the interface does not show, by our reading of its labels."""
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def classify(operation: PlannedOperation, outcome: WriteOutcome | None, doubted: bool, now: float) -> StateChange:
    """The change that an attempt makes.

    Args:
        operation: that was attempted.
        outcome: of the attempt; None where it was not begun.
        doubted: an earlier attempt may have happened.
        now: epoch seconds; the doubt begins here.
    """
    if outcome is None:
        return _unhappened(operation.id, doubted, now, None)
    told = outcome.error
    facts: dict[str, Any] = {
        "status": outcome.status,
        "code": told.code if told else "",
        "request_id": told.request_id if told else "",
        "words": told.message if told else "",
    }
    if outcome.state == "not_sent" or outcome.status in (401, 403, 429):
        return _unhappened(operation.id, doubted, now, facts)
    if outcome.state == "in_doubt":
        return StateChange(operation.id, "in_doubt", doubt_at=now, **facts)
    if told is not None:
        if doubted:
            facts["words"] += "; an earlier attempt may have landed"
            return StateChange(operation.id, "in_doubt", **facts)
        return StateChange(operation.id, "rejected", **facts)
    if outcome.status not in CONFIRMING[operation.method]:
        facts["words"] = f"answered with {outcome.status}, which says neither yes nor no"
        return StateChange(operation.id, "in_doubt", doubt_at=now, **facts)
    if not believable(outcome.body):
        facts["words"] = f"answered with {outcome.status}, but not by the platform: the body is not its own"
        return StateChange(operation.id, "in_doubt", doubt_at=now, **facts)
    return StateChange(operation.id, "confirmed", remote_id=remote_id(outcome.body), **facts)


def _unhappened(operation: int, doubted: bool, now: float, facts: Mapping[str, Any] | None) -> StateChange:
    """This attempt surely did not happen; with an earlier one in doubt, that one's doubt stays as it was."""
    return StateChange(operation, "in_doubt" if doubted else "planned", **(facts or {}))


def believable(body: bytes) -> bool:
    """Whether a 2xx is the platform's: nothing (the bodies are not shown), or JSON that is no error.

    A page of a proxy's or a portal's with status 200 says nothing of the write.
    """
    if not body.strip():
        return True
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return not read_error("legacy", body).shaped


def remote_id(body: bytes) -> str | None:
    """The id of what was created, where the body has one, bare or in `data`."""
    try:
        told = msgspec.json.decode(body) if body.strip() else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(told, dict) and isinstance(told.get("data"), dict):
        told = told["data"]
    found = told.get("id") if isinstance(told, dict) else None
    text = str(found) if isinstance(found, int | str) and not isinstance(found, bool) else ""
    return text if _ID.fullmatch(text) else None
