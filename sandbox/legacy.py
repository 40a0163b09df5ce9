"""Family A: header `api-key`, lists by page and limit, the creates and the variant update.

In: a call. Out: an answer, or a page open to alterations. What the interface does not show is played by the readings
of the configuration: first page, limits, end of the customers, form of the promotions, statuses, bodies, failures.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import partial
from hmac import compare_digest
from typing import Any, Final

from sandbox.call import Call
from sandbox.config import LEGACY_KEY, SandboxConfig
from sandbox.replies import Page, SandboxResponse, encoded, joined, legacy_errors
from sandbox.state import Json, State
from sandbox.validation import Problem, problems
from sources.contract import LIST_PROMOTIONS, Operation

DEFAULT_LIMIT: Final = 20
CAP: Final = 50


class Legacy:
    """Family A's operations over a state."""

    def __init__(self, config: SandboxConfig, state: State) -> None:
        self.config = config
        self.state = state
        self._readings = {name: config.reading(name) for name in _READINGS}

    def refusal(self, call: Call) -> SandboxResponse | None:
        """The answer to a call whose key is absent or unknown; None where it is known."""
        if compare_digest(call.headers.get(b"api-key", b""), LEGACY_KEY.encode()):
            return None
        reading = self._readings["legacy_auth_failure"]
        status = int(reading[:3])
        if reading.endswith("_errors"):
            found = [Problem("unauthorized", "the api-key is absent or unknown")]
            return legacy_errors(status, found, call.operation.error_code)
        text = b"Forbidden" if reading.endswith("_text") else b""
        return SandboxResponse(status, text, ((b"content-type", b"text/plain; charset=utf-8"),) if text else ())

    def answer(self, call: Call) -> SandboxResponse | Page:
        """Answers a call whose key is known."""
        operation = call.operation
        if operation.verb == "GET":
            return self._list(call)
        parts = self._path_parts(call)
        body, found = _body(call)
        if not found and operation.input is not None:
            found = problems(operation.input, body, self._required(operation))
        found = [
            *(Problem("path", f"{name} must be an integer") for name, value in parts.items() if value is None),
            *found,
        ]
        if found:
            return self._refuse(operation, found)
        plain = _plain(body)
        return self._write(operation, call, plain if isinstance(plain, dict) else {})

    def _write(self, operation: Operation, call: Call, body: Json) -> SandboxResponse:
        if operation.name == "update_variant":
            self.state.update_variant(int(call.parts["productId"]), int(call.parts["variantId"]), body)
            return SandboxResponse(int(self._readings["no_content_status"]), b"", ())
        if operation.name == "create_customer":
            record = self.state.create_customer(body)
        elif operation.name == "create_subcategory":
            record = self.state.create_subcategory(call.parts["categoryId"], body)
        else:
            record = self.state.create_warehouse(body)
        # The interface numbers the warehouse's outcome, and no other.
        status = 201 if operation.name == "create_warehouse" else int(self._readings["created_status"])
        bodies = {"record": record, "id_only": {"id": record["id"]}, "wrapped": {"data": record}}
        kept = bodies.get(self._readings["created_body"])
        return SandboxResponse(status, b"", ()) if kept is None else SandboxResponse(status, encoded(kept))

    def _required(self, operation: Operation) -> frozenset[str]:
        if operation.name == "create_customer":
            return frozenset({"email" if self.config.login_mode == "email" else "loginCode"})
        if operation.name == "create_subcategory" and self._readings["subcategory_required"] == "name":
            return frozenset({"name"})
        return frozenset()

    def _refuse(self, operation: Operation, found: list[Problem]) -> SandboxResponse:
        return legacy_errors(int(self._readings["legacy_error_status"]), found, operation.error_code)

    def _path_parts(self, call: Call) -> dict[str, int | None]:
        """Path parameters that must be integers; None where one is none."""
        names = [name for name in call.parts if name in ("productId", "variantId")]
        return {name: int(call.parts[name]) if _whole(call.parts[name]) else None for name in names}

    def _list(self, call: Call) -> SandboxResponse | Page:
        query = call.query
        promotions = call.operation is LIST_PROMOTIONS
        resource = "promotions" if promotions else "customers"
        size = self._size(query.get("limit"))
        first = 0 if self._readings["legacy_first_page"] == "zero" else 1
        asked = query.get("page", str(first))
        if size is None or not _whole(asked):
            return self._refuse(call.operation, [Problem("query", "page and limit must be numbers, limit at least 1")])
        form = self._readings["promotions_data"] if promotions else "array"
        size = 1 if form == "object_single" else max(1, size // 2) if call.halved else size
        with self.state.lock:
            rows = self.state.found(resource, query.get("term", "") if promotions else "")
            total = len(rows)
            pages = -(-total // size)
            # Bounds of `page` are not shown: one before the first is taken for the first.
            index = max(int(asked) - first, 0)
            end = "pagination" if promotions else self._readings["customers_end"]
            if index >= max(pages, 1):
                if end.startswith("status_"):
                    status = int(end.removeprefix("status_"))
                    found = [Problem("not_found", "there is no such page")]
                    return legacy_errors(status, found, call.operation.error_code)
                if end == "repeat_last":
                    index = max(pages - 1, 0)
            begin = index * size
            taken = rows[begin : begin + size]
            before = rows[begin - 1] if 0 < begin <= total else b""
        envelope: dict[str, Any] = {}
        if end == "pagination":
            envelope["pagination"] = {
                "page": index + first,
                "pages": pages,
                "total": total,
                "hasPrevPage": index > 0 and total > 0,
                "hasNextPage": index + 1 < pages,
            }
        return Page(taken, envelope, partial(_written, form), before)

    def _size(self, text: str | None) -> int | None:
        """How many rows a page holds; None where `limit` is no number from 1 on."""
        reading = self._readings["legacy_limit"]
        if text is None or reading == "ignored":
            return DEFAULT_LIMIT
        try:
            size = int(Decimal(text))  # the interface calls it a number: 50.0 is one
        except (ArithmeticError, ValueError):
            return None
        if size < 1:
            return None
        return min(size, CAP) if reading == "capped" else size


_READINGS: Final = (
    "promotions_data", "customers_end", "legacy_limit", "legacy_first_page", "created_status", "no_content_status",
    "created_body", "legacy_auth_failure", "legacy_error_status", "subcategory_required",
)  # fmt: skip


def _written(form: str, rows: list[bytes], envelope: dict[str, Any]) -> bytes:
    """The body of a list, in one of the readings of `promotions_data`."""
    if form == "array":
        return joined("data", rows, envelope)
    if form == "object_by_id":
        data = b"{%s}" % b",".join([b'"%s":%s' % (str(json.loads(row)["id"]).encode(), row) for row in rows])
    elif form == "object_wrapped":
        data = joined("items", rows, {})
    else:
        data = rows[0] if rows else b"{}"
    tail = encoded(envelope)
    return b'{"data":%s%s' % (data, b"," + tail[1:] if envelope else b"}")


def _body(call: Call) -> tuple[Any, list[Problem]]:
    kind = call.headers.get(b"content-type", b"").split(b";")[0].strip().lower()
    if kind != b"application/json":
        return None, [Problem("body", "Content-Type must be application/json")]
    try:
        return json.loads(call.body, parse_float=Decimal), []
    except ValueError:
        return None, [Problem("body", "the body is not JSON")]


def _plain(value: object) -> object:
    """Decimals, which the checks of decimals need, become JSON's own numbers."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, dict):
        return {name: _plain(member) for name, member in value.items()}
    return [_plain(item) for item in value] if isinstance(value, list) else value


def _whole(text: str) -> bool:
    return text.isascii() and text.removeprefix("-").isdigit()
