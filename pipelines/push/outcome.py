"""What a response means for an operation: pure functions, without guessing (docs/exactly-once.md).

In: the outcome of one attempt, and whether an earlier one is in doubt. Out: the next state of the operation. It is
`planned` or `rejected` only if no attempt can have happened: with an earlier one in doubt, it stays in doubt.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

import msgspec

from orderbridge.pipelines.ledger.keys import comparable, loose_code
from orderbridge.pipelines.ledger.model import StateChange
from orderbridge.pipelines.plan.model import PlannedOperation
from orderbridge.sources.contract import OPERATIONS, path_pattern
from orderbridge.sources.gaps import GAPS
from orderbridge.sources.http.exchange import WriteOutcome
from orderbridge.sources.kinds import KINDS

_READINGS: Final = {gap.name: gap.readings for gap in GAPS}
CONFIRMING: Final = {
    verb: frozenset(map(int, _READINGS[gap]))
    for verb, gap in (("POST", "created_status"), ("PATCH", "no_content_status"))
}
"""Statuses that confirm a write. The interface does not show the numbers, only labels, except for `_SHOWN`, by path."""
_SHOWN: Final = [
    (path_pattern(op.path), (op.created_status,)) for op in OPERATIONS if op.created_status
]
_PASSING: Final = (401, 403, 408, 409, 425, 429)
"""4xx that say nothing about the record: another key, another moment."""
_NOT_TAKEN: Final = (401, 403, 429)
"""Of them those that are sent before a request is looked at."""
_OK: Final = 200
_NO_CONTENT: Final = 204
_JSON_TYPE: Final = "application/json"
_FAILED: Final = (
    "error",
    "fail",
    "failed",
    "failure",
    "rejected",
    "refused",
    "denied",
    "declined",
    "invalid",
)
"""Names of members, and values of `status` and `result`, that report a failure."""
_UNIQUE_FIELDS: Final = tuple(
    {name: None for kind in KINDS.values() for name in kind.unique_fields}
)
_NO_ERROR: Final = ("0", "00", "false", "none", "null", "ok")
"""Texts that say that there is no error, in other letter case too."""
_RECORD_FIELDS: Final = {
    "id",
    *(field.name for kind in KINDS.values() for field in kind.record.fields),
} - {
    "code",
    "description",
}
"""Any of them shows that an object is a record, whose own objects (documents, images) are not looked into. Wrappers
have a `code` and a `description` too."""
_ID: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")


def is_refusal(status: int | None) -> bool:
    """Whether a status refuses a request, whoever answered: a 4xx that is not about the key or the moment."""
    return status is not None and 400 <= status <= 499 and status not in _PASSING


def may_have_happened(outcome: WriteOutcome | None) -> bool:
    """Whether an attempt may have reached what it writes to: not without a connection, a key or a turn."""
    return outcome is not None and not (outcome.state == "not_sent" or outcome.status in _NOT_TAKEN)


def classify(
    operation: PlannedOperation,
    outcome: WriteOutcome | None,
    is_doubted: bool,
    now: float,
    failed: int | None = None,
) -> StateChange:
    """The change of state that an attempt makes; without an outcome it was not started.

    Args:
        operation: that was sent.
        outcome: of this attempt.
        is_doubted: an earlier attempt may have happened; only of an operation that may be repeated.
        now: start of a doubt, in ledger time.
        failed: status of the attempt before. The same refusal twice is a rejection, in whatever form it comes.
    """
    if outcome is None:
        return _not_happened(operation.id, {}, is_doubted)
    response = _response(outcome)
    if not may_have_happened(outcome):
        return _not_happened(operation.id, response, is_doubted)
    is_further_refusal = is_doubted and is_refusal(outcome.status)
    if is_further_refusal and outcome.status == failed:
        return StateChange(operation.id, "rejected", **response)
    if outcome.state == "in_doubt":
        doubt_at = None if is_further_refusal else now  # it adds nothing that may still arrive
        return StateChange(operation.id, "in_doubt", doubt_at=doubt_at, **response)
    if outcome.error is not None and is_doubted:
        words = f"{outcome.error.message}; an earlier attempt may have arrived"
        return StateChange(operation.id, "in_doubt", **{**response, "words": words})
    if outcome.error is not None:
        return StateChange(operation.id, "rejected", **response)
    reason = _doubt_about(operation, outcome)
    if reason is not None:
        words = f"status {outcome.status}, but {reason}"
        return StateChange(operation.id, "in_doubt", doubt_at=now, **{**response, "words": words})
    return StateChange(
        operation.id, "confirmed", remote_id=_shown_id(operation, outcome), **response
    )


def _response(outcome: WriteOutcome) -> dict[str, Any]:
    """What an answer says, as a change of state keeps it."""
    error = outcome.error
    if error is None:
        return {"status": outcome.status}
    return {
        "status": outcome.status,
        "code": error.code,
        "request_id": error.request_id,
        "words": error.message,
    }


def _not_happened(operation: int, response: Mapping[str, Any], is_doubted: bool) -> StateChange:
    """This attempt certainly did not happen; the doubt of an earlier one remains."""
    return StateChange(operation, "in_doubt" if is_doubted else "planned", **response)


def _shown_id(operation: PlannedOperation, outcome: WriteOutcome) -> str | None:
    """The id of the record that was created, if the response has one.

    A customer's id is a number (interface, Customer): a text may be the password, echoed.
    """
    record_id = remote_id(outcome.body)
    if operation.password is not None and record_id is not None and not record_id.isdecimal():
        return None
    return record_id


def is_plain_success(outcome: WriteOutcome) -> bool:
    """Whether an outcome confirms any repeatable write: 204 without a body. Others are to be looked at at once."""
    return outcome.status == _NO_CONTENT and outcome.state == "answered" and not outcome.body


def _doubt_about(operation: PlannedOperation, outcome: WriteOutcome) -> str | None:
    """Why a 2xx does not confirm a write; None if it does.

    201 and 204 are specific to a write and may stand without a readable body; any server between here and the platform
    may answer 200. Bodies are not shown, so an empty one is accepted unless it is declared to be something else.
    """
    shown = (statuses for path, statuses in _SHOWN if path.fullmatch(operation.path))
    if outcome.status not in next(shown, CONFIRMING[operation.method]):
        return "that status neither confirms nor rejects"
    if outcome.is_broken:
        return "its body is broken" if outcome.status == _OK else None
    if not outcome.body.strip():
        is_foreign = outcome.status == _OK and outcome.content_type not in ("", _JSON_TYPE)
        return (
            f"an empty {outcome.content_type} is not the platform's response"
            if is_foreign
            else None
        )
    if (layers := _layers(outcome.body)) is None:
        return "the body is not the platform's"
    if any(map(_reports_failure, layers)):
        return "the body is an error"
    is_about = all(_is_about(operation, layer) for layer in layers if _wrapped(layer) is None)
    return None if is_about else "the body is about another record"


def _layers(body: bytes) -> list[Mapping[str, Any]] | None:
    """The objects of a response from outside to inside: wrappers, then the record, if there is one.

    None if the body is not JSON, or nested too deeply.
    """
    layers: list[Mapping[str, Any]] = []

    def walk(value: object) -> None:
        if isinstance(value, list):
            for item in value:
                walk(item)
        elif isinstance(value, dict):
            layers.append(value)
            walk(_wrapped(value))

    try:
        response = msgspec.json.decode(body)
        is_scalar = response is not None and not isinstance(response, dict | list)
        walk({"success": response, "result": response} if is_scalar else response)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    return layers


def _wrapped(layer: Mapping[str, Any]) -> object:
    """What an object wraps: its `data`, or the only object or list in it; None if it is a record."""
    if isinstance(layer.get("data"), dict | list):
        return layer["data"]
    inner = [value for value in layer.values() if value and isinstance(value, dict | list)]
    is_record = not layer.keys().isdisjoint(_RECORD_FIELDS)
    return inner[0] if len(inner) == 1 and not is_record else None


def _reports_failure(layer: Mapping[str, Any]) -> bool:
    """Whether an object reports an error, as the interface shows it or as other services do."""
    fields = {name.casefold(): value for name, value in layer.items()}
    errors = (
        value
        for name, value in fields.items()
        if name.startswith(("error", "fault")) or name in _FAILED
    )
    return (
        any(value and str(value).casefold() not in _NO_ERROR for value in errors)
        or any(
            str(fields.get(name)).casefold() in ("false", "0")
            for name in ("success", "ok", "issuccess")
        )
        or any(str(fields.get(name)).casefold() in _FAILED for name in ("status", "result"))
        or any(_is_error_status(fields.get(name)) for name in ("status", "statuscode"))
        or ("message" in fields and _is_error_status(fields.get("code")))
    )


def _is_error_status(value: object) -> bool:
    return isinstance(value, int) and 400 <= value <= 599


def _is_about(operation: PlannedOperation, record: Mapping[str, Any]) -> bool:
    """Whether a record in a response can be the one that was written; fields that it does not contain do not count.

    A platform may write a code in another way: in other letters, without zeros.
    """
    if operation.method == "PATCH":  # `/products/17/variants/1003`
        return record.get("id") is None or str(record["id"]) in operation.path.split("/")[2::2]
    identity = operation.keys or {
        name: operation.body[name] for name in _UNIQUE_FIELDS if name in operation.body
    }
    return all(
        _is_same_text(name, str(record[name]), str(value))
        for name, value in identity.items()
        if record.get(name) is not None
    )


def _is_same_text(name: str, found: str, sent: str) -> bool:
    if name in KINDS["customers"].list_keys and name != "email":
        return loose_code(found) == loose_code(sent)
    return comparable(name, found).casefold() == comparable(name, sent).casefold()


def remote_id(body: bytes) -> str | None:
    """The id of the created record, if the body has one."""
    ids = [layer.get("id") for layer in _layers(body) or () if _wrapped(layer) is None]
    text = (
        str(ids[0])
        if ids and isinstance(ids[0], int | str) and not isinstance(ids[0], bool)
        else ""
    )
    return text if _ID.fullmatch(text) else None
