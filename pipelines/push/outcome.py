"""What a response means for an operation: pure functions, without guessing (design §8, Ledger).

In: the outcome of one attempt, and whether an earlier one is in doubt. Out: the next state of the operation. It is
`planned` or `rejected` only if no attempt can have happened: with an earlier one in doubt, it stays in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from pipelines.ledger.model import StateChange
from pipelines.plan.model import PlannedOperation
from sources.gaps import GAPS
from sources.http.error_responses import read_error
from sources.http.responses import WriteOutcome

_READINGS: Final = {gap.name: gap.readings for gap in GAPS}
CONFIRMING: Final = {
    verb: frozenset(map(int, _READINGS[gap]))
    for verb, gap in (("POST", "created_status"), ("PATCH", "no_content_status"))
}
"""Statuses that confirm a write. The interface does not show the numbers, only labels."""
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def classify(operation: PlannedOperation, outcome: WriteOutcome | None, is_doubted: bool, now: float) -> StateChange:
    """The change of state that an attempt makes.

    Args:
        operation: that was attempted.
        outcome: of the attempt; None if it was not started.
        is_doubted: whether an earlier attempt may have happened.
        now: epoch seconds; start of the doubt.
    """
    if outcome is None:
        return _not_happened(operation.id, is_doubted, {})
    error = outcome.error
    response: dict[str, Any] = {
        "status": outcome.status,
        "code": error.code if error else "",
        "request_id": error.request_id if error else "",
        "words": error.message if error else "",
    }
    if outcome.state == "not_sent" or outcome.status in (401, 403, 429):
        return _not_happened(operation.id, is_doubted, response)
    if outcome.state == "in_doubt":
        return StateChange(operation.id, "in_doubt", doubt_at=now, **response)
    if error is not None:
        if is_doubted:
            response["words"] += "; an earlier attempt may have arrived"
            return StateChange(operation.id, "in_doubt", **response)
        return StateChange(operation.id, "rejected", **response)
    if outcome.status not in CONFIRMING[operation.method]:
        response["words"] = f"status {outcome.status} neither confirms nor rejects"
        return StateChange(operation.id, "in_doubt", doubt_at=now, **response)
    if not is_from_platform(outcome.body):
        response["words"] = f"status {outcome.status}, but the body is not the platform's"
        return StateChange(operation.id, "in_doubt", doubt_at=now, **response)
    return StateChange(operation.id, "confirmed", remote_id=remote_id(outcome.body), **response)


def _not_happened(operation: int, is_doubted: bool, response: Mapping[str, Any]) -> StateChange:
    """This attempt certainly did not happen; the doubt of an earlier one remains."""
    return StateChange(operation, "in_doubt" if is_doubted else "planned", **response)


def is_from_platform(body: bytes) -> bool:
    """Whether the body of a 2xx is the platform's: empty (bodies are not shown), or JSON that is not an error.

    A page of a proxy or captive portal with status 200 says nothing about the write.
    """
    if not body.strip():
        return True
    try:
        msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return False
    return not read_error("legacy", body).shaped


def remote_id(body: bytes) -> str | None:
    """The id of the created record, if the body has one, bare or in `data`."""
    try:
        record = msgspec.json.decode(body) if body.strip() else None
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if isinstance(record, dict) and isinstance(record.get("data"), dict):
        record = record["data"]
    value = record.get("id") if isinstance(record, dict) else None
    text = str(value) if isinstance(value, int | str) and not isinstance(value, bool) else ""
    return text if _ID.fullmatch(text) else None
