"""Family A: header `api-key`, lists by page and limit, the creates and the updates.

In: a call. Out: a response, or a page that faults may alter. What the interface does not show follows the configured
readings: first page, limits, end of the customers, form of the promotions, statuses, bodies, errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Set
from decimal import Decimal
from functools import partial
from hmac import compare_digest
from typing import Any, Final

import msgspec

from orderbridge.sandbox.config import LEGACY_KEY, SandboxConfig
from orderbridge.sandbox.messages import Call, Page, SandboxResponse, encoded, joined, legacy_errors
from orderbridge.sandbox.state import Json, State
from orderbridge.sandbox.validation import Problem, problems
from orderbridge.sources.contract import Operation

DEFAULT_LIMIT: Final = 20
CAP: Final = 50
LIMIT_MAX: Final = 1_000_000
DELETED: Final = 3
"""Rows of each list that were deleted before the sandbox started."""
PICKY_LIMITS: Final = ("10", "20", "50", "100")
INT_DIGITS_MAX: Final = 18
"""Digits of a number in a path or a query: int() is slow for more, or raises."""
_REPEATS: Final = frozenset({"varied_repeat", "shuffled_repeat"})
"""Faults of a page after the last one, which is the last one again, altered."""
_SEARCHED: Final = ("name", "code")
"""Fields in which a term is searched (interface, GET /promotions)."""
_ID: Final = re.compile(rb'"id":"?([^",}]+)')


class Legacy:
    """Family A's operations over a state."""

    def __init__(self, config: SandboxConfig, state: State) -> None:
        self.config = config
        self.state = state
        self._readings = config.readings

    def auth_error(self, call: Call) -> SandboxResponse | None:
        """The error for an absent or unknown key; None for a valid one."""
        if compare_digest(call.headers.get(b"api-key", b""), LEGACY_KEY.encode()):
            return None
        reading = self._readings["legacy_auth_failure"]
        status = int(reading[:3])
        if reading.endswith("_errors"):
            return call.error(status, "unauthorized", "the api-key is absent or unknown")
        text = b"Forbidden" if reading.endswith("_text") else b""
        return SandboxResponse(
            status, text, ((b"content-type", b"text/plain; charset=utf-8"),) if text else ()
        )

    def answer(self, call: Call) -> SandboxResponse | Page:
        """The response to a call with a valid key."""
        operation = call.operation
        if operation.verb == "GET":
            return self._list(call)
        body, issues = _body(call)
        if not issues and operation.input is not None:
            issues = problems(operation.input, body, self._required(operation))
        numbers = {
            field.name: bounded_int(call.parts[field.name])
            for field in operation.params
            if field.json in ("integer", "number")
        }
        wrong = [name for name, number in numbers.items() if number is None]
        issues = [*(Problem("path", f"{name} must be an integer") for name in wrong), *issues]
        if issues:
            return legacy_errors(
                int(self._readings["legacy_error_status"]), issues, operation.error_code
            )
        return self._write(call, {**call.parts, **numbers}, body)

    def _write(self, call: Call, ids: Json, body: Json) -> SandboxResponse:
        operation = call.operation
        if operation.verb == "PATCH":
            try:
                self.state.update(operation, ids, body)
            except KeyError:
                return call.error(404, "not_found", "there is no such record")
            return SandboxResponse(int(self._readings["no_content_status"]), b"", ())
        record = self.state.create(operation, ids, body)
        status = operation.created_status or int(self._readings["created_status"])
        bodies = {"record": record, "id_only": {"id": record["id"]}, "wrapped": {"data": record}}
        content = bodies.get(self._readings["created_body"])
        return (
            SandboxResponse(status, b"", ())
            if content is None
            else SandboxResponse(status, encoded(content))
        )

    def _required(self, operation: Operation) -> frozenset[str]:
        if operation.name == "create_customer":
            return frozenset({"email" if self.config.login_mode == "email" else "loginCode"})
        if (
            operation.name == "create_subcategory"
            and self._readings["subcategory_required"] == "name"
        ):
            return frozenset({"name"})
        return frozenset()

    def _list(self, call: Call) -> SandboxResponse | Page:
        query = call.query
        resource = call.operation.records.name if call.operation.records is not None else ""
        size = self._size(query.get("limit"))
        first = 0 if self._readings["legacy_first_page"] == "zero" else 1
        page = bounded_int(query.get("page", str(first)))
        invalid = int(self._readings["legacy_error_status"])
        if size is None or page is None:
            return call.error(invalid, "query", "page and limit must be numbers, limit at least 1")
        if "picky_limit" in call.faults and query.get("limit") not in PICKY_LIMITS:
            return call.error(invalid, "query", f"limit must be one of {', '.join(PICKY_LIMITS)}")
        form = self._readings.get(f"{resource}_data", "array")
        if form == "object_single":
            size = 1
        elif "capped_limit" in call.faults:
            size = max(1, size // 2)
        end = self._readings.get(f"{resource}_end", "pagination")
        with self.state.lock:
            rows = _searched(self.state.lists[resource].rows, call)
            last = max(-(-len(rows) // size) - 1, 0)
            # Bounds of `page` are not shown: a page before the first is read as the first.
            index = max(page - first, 0)
            is_past_end = index > last
            repeats = call.faults & _REPEATS if is_past_end else frozenset()
            if is_past_end and end.startswith("status_") and not repeats:
                status = int(end.removeprefix("status_"))
                return call.error(status, "not_found", "there is no such page")
            if repeats or end == "repeat_last":
                index = min(index, last)
            begin = index * size
            taken = self._altered(rows[begin : begin + size], repeats)
            before = rows[begin - 1] if 0 < begin <= len(rows) else b""
            total = len(rows) + self._deleted(resource)
        envelope: dict[str, Any] = {}
        if end == "pagination":
            envelope["pagination"] = _pagination(index, first, total, size)
        return Page(taken, envelope, partial(_written, form, call.operation.rows_field), before)

    def _deleted(self, resource: str) -> int:
        """How many deleted rows are in the total of a list."""
        if self._readings["legacy_total"] == "with_deleted":
            return DELETED + self.state.removed[resource]
        return 0

    def _altered(self, rows: list[bytes], faults: Set[str]) -> list[bytes]:
        """A last page that is repeated: with one field changed, or in another order."""
        if "varied_repeat" in faults:
            rows = [row[:-1] + b',"seen":%d}' % self.state.requests for row in rows]
        if "shuffled_repeat" in faults:
            turn = self.state.requests % max(len(rows), 1)
            rows = rows[turn:] + rows[:turn]
        return rows

    def _size(self, text: str | None) -> int | None:
        """Rows per page; None if `limit` is not a number, or less than 1."""
        reading = self._readings["legacy_limit"]
        if text is None or reading == "ignored":
            return DEFAULT_LIMIT
        try:
            number = Decimal(text)  # a number in the interface: 50.0 is valid
        except ArithmeticError:
            return None
        # checked before int(): 1e20000000 is a valid Decimal
        if not number.is_finite() or not 1 <= number <= LIMIT_MAX:
            return None
        size = int(number)
        return min(size, CAP) if reading == "capped" else size


def _written(form: str, rows_field: str, rows: list[bytes], envelope: dict[str, Any]) -> bytes:
    """The body of a list, in one of the readings of `promotions_data`."""
    if form == "array":
        return joined(rows_field, rows, envelope)
    if form == "object_by_id":
        data = b"{%s}" % b",".join([b'"%s":%s' % (_id_of(row).encode(), row) for row in rows])
    elif form == "object_wrapped":
        data = joined("items", rows, {})
    else:
        data = rows[0] if rows else b"{}"
    tail = encoded(envelope)
    return b'{"%b":%b%b' % (rows_field.encode(), data, b"," + tail[1:] if envelope else b"}")


def _pagination(index: int, first: int, total: int, size: int) -> Json:
    """What a page says about the list, by its position and the number of the first page."""
    pages = -(-total // size)
    return {
        "page": index + first,
        "pages": pages,
        "total": total,
        "hasPrevPage": index > 0 and total > 0,
        "hasNextPage": index + 1 < pages,
    }


def _searched(rows: list[bytes], call: Call) -> list[bytes]:
    """The rows with the term of a call, where the list can be searched."""
    term = call.query.get("term", "").casefold() if "term" in call.operation.query else ""
    return [row for row in rows if _is_found(term, row)] if term else rows


def _is_found(term: str, row: bytes) -> bool:
    """Whether a record has a term, in lower case, in its name or its code."""
    record = json.loads(row)
    return any(term in str(record.get(name, "")).casefold() for name in _SEARCHED)


def _id_of(row: bytes) -> str:
    """The id of a row; a fault may have made the rest of the row unreadable."""
    try:
        return str(json.loads(row, strict=False)["id"])
    except RecursionError:
        match = _ID.search(row)
        return match[1].decode() if match else ""


def _body(call: Call) -> tuple[Any, list[Problem]]:
    kind = call.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind != b"application/json":
        return None, [Problem("body", "Content-Type must be application/json")]
    try:
        return msgspec.json.decode(call.body), []
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return None, [Problem("body", "the body is not valid JSON")]


def bounded_int(text: str) -> int | None:
    """A number of a path or a query; None if it is not an integer or has too many digits."""
    digits = text.removeprefix("-")
    is_integer = text.isascii() and digits.isdigit() and len(digits) <= INT_DIGITS_MAX
    return int(text) if is_integer else None
