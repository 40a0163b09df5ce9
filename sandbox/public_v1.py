"""Family B: Bearer keys with scopes, whoami, lists in one response, and lists by cursor.

In: a call. Out: a response, or a page that faults may alter. A cursor has the rank of the last row shown and a hash of
the query: one of another query is an error. It also has the number of times that the list was read to its end: a cursor
from before the last end is used again (reading `cursor_reuse`).
"""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections import Counter
from dataclasses import dataclass
from functools import partial
from typing import Final, NamedTuple

import msgspec

from orderbridge.sandbox.config import (
    V1_EXPIRED_KEY,
    V1_KEY,
    V1_LIVE_KEY,
    V1_NO_SCOPE_KEY,
    SandboxConfig,
)
from orderbridge.sandbox.legacy import PICKY_LIMITS, bounded_int
from orderbridge.sandbox.messages import Call, Page, SandboxResponse, encoded, joined, v1_error
from orderbridge.sandbox.state import State
from orderbridge.sources.contract import (
    PUBLIC_V1_LIMIT_DEFAULT,
    PUBLIC_V1_LIMIT_MAX,
    PUBLIC_V1_LIMIT_MIN,
)


@dataclass(frozen=True, slots=True)
class Key:
    """The permissions of a key. The interface shows no scope but prices:read, so no other is used."""

    environment: str = "SANDBOX"
    scopes: tuple[str, ...] = ("prices:read",)
    expired: bool = False


KEYS: Final = {
    V1_KEY: Key(),
    V1_LIVE_KEY: Key("LIVE"),
    V1_EXPIRED_KEY: Key(expired=True),
    V1_NO_SCOPE_KEY: Key(scopes=()),
}
_cursor_decoder: Final = msgspec.json.Decoder(tuple[float, str, int])


class _Start(NamedTuple):
    """Where a page begins.

    Attributes:
        rank: that of the row before it; None: with the first row.
        is_page_skipped: whether as many rows as a page has are left out.
    """

    rank: float | None
    is_page_skipped: bool = False


class PublicV1:
    """Family B's operations over a state."""

    def __init__(self, config: SandboxConfig, state: State) -> None:
        self.config = config
        self.state = state
        self._readings = config.readings
        self._ends: Counter[str] = Counter()

    def auth_error(self, call: Call) -> SandboxResponse | None:
        """The error for an absent, unknown or expired key or a missing scope; None if the call is allowed."""
        header = call.headers.get(b"authorization")
        if header is None:
            return v1_error(401, "UNAUTHENTICATED", "the Authorization header is missing")
        scheme, _, presented = header.decode("latin-1").partition(" ")
        key = KEYS.get(presented.strip()) if scheme.lower() == "bearer" else None
        if key is None:
            return v1_error(
                401, "INVALID_API_KEY", "the key does not exist or has an invalid prefix"
            )
        if key.expired:
            return expired_key()
        if call.operation.scope and call.operation.scope not in key.scopes:
            if self._readings["missing_scope"] == "403_empty":
                return SandboxResponse(403, b"", ())
            status = 401 if self._readings["missing_scope"] == "401_error" else 403
            return v1_error(
                status, "MISSING_SCOPE", f"the key lacks the scope {call.operation.scope}"
            )
        return None

    def answer(self, call: Call) -> SandboxResponse | Page:
        """Answers an authorized call."""
        record, rows_field = call.operation.records, call.operation.rows_field
        if record is None:
            return self._whoami(call)
        if call.operation.paging == "cursor":
            return self._by_cursor(call, record.name, rows_field)
        with self.state.lock:
            return Page(list(self.state.lists[record.name].rows), {}, partial(joined, rows_field))

    def _whoami(self, call: Call) -> SandboxResponse:
        presented = call.headers[b"authorization"].decode("latin-1").partition(" ")[2].strip()
        key = KEYS[presented]
        organization = {"id": "org_4f7a", "name": "Distribuidora Peña S.A.C."}
        bodies: dict[str, dict[str, object]] = {
            "camel": {
                "organization": organization["name"],
                "environment": key.environment,
                "scopes": list(key.scopes),
            },
            "nested": {
                "organization": organization,
                "apiKey": {
                    "environment": {"name": key.environment},
                    "scopes": [{"name": name} for name in key.scopes],
                },
            },
            "terse": {
                "org": organization["name"],
                "env": key.environment.lower(),
                "scope": " ".join(key.scopes),
            },
        }
        return SandboxResponse(200, encoded(bodies[self._readings["whoami_names"]]))

    def _by_cursor(self, call: Call, resource: str, rows_field: str) -> SandboxResponse | Page:
        query = call.query
        limit_text = query.pop("limit", str(PUBLIC_V1_LIMIT_DEFAULT))
        cursor = query.pop("startingAfter", None)
        limit = bounded_int(limit_text) or 0
        if problem := _limit_problem(limit_text, limit, is_picky="picky_limit" in call.faults):
            return v1_error(400, "INVALID_LIMIT", problem)
        is_restarting = "restarting_cursor" in call.faults
        if is_restarting:
            cursor = None
        bound = [resource, *sorted([*query.items(), ("limit", limit_text)])]
        mark = hashlib.sha256(repr(bound).encode()).hexdigest()[:16]
        start = self._start(resource, cursor, mark)
        if start is None:
            return invalid_cursor()
        size = max(1, limit // 2) if "capped_limit" in call.faults else limit
        with self.state.lock:
            rows = self.state.lists[resource]
            begin = 0 if start.rank is None else rows.after(start.rank)
            if start.is_page_skipped:
                begin = min(begin + limit, len(rows.rows))
            end = begin + size
            taken = rows.rows[begin:end]
            before = rows.rows[begin - 1] if begin else b""
            more = end < len(rows.rows)
            next_cursor = _cursor(rows.ranks[end - 1], mark, self._ends[resource]) if more else None
            self._ends[resource] += not more
            if is_restarting:
                more = True
                next_cursor = f"{self.state.requests:024x}"
        envelope = {"hasMore": more, "nextCursor": next_cursor}
        return Page(taken, envelope, partial(joined, rows_field), before, cursor or "")

    def _start(self, resource: str, cursor: str | None, mark: str) -> _Start | None:
        """Where the page after a cursor of this query begins; None for an invalid cursor."""
        if cursor is None:
            return _Start(None)
        found = _rank(cursor, mark)
        if found is None:
            return None
        rank, ends = found
        is_reused = ends < self._ends[resource]
        reuse = self._readings["cursor_reuse"] if is_reused else ""
        if reuse == "rejected":
            return None
        return _Start(None if reuse == "restarts" else rank, is_page_skipped=reuse == "skips")


def _limit_problem(text: str, limit: int, *, is_picky: bool) -> str:
    """Why a limit is refused; empty if it is not."""
    if not PUBLIC_V1_LIMIT_MIN <= limit <= PUBLIC_V1_LIMIT_MAX:
        return f"limit must be an integer from {PUBLIC_V1_LIMIT_MIN} to {PUBLIC_V1_LIMIT_MAX}"
    if is_picky and text not in PICKY_LIMITS:
        return f"limit must be one of {', '.join(PICKY_LIMITS)}"
    return ""


def _cursor(rank: float, mark: str, ends: int) -> str:
    return urlsafe_b64encode(msgspec.json.encode((rank, mark, ends))).decode()


def _rank(cursor: str, mark: str) -> tuple[float, int] | None:
    """The rank in a cursor of this query, and the ends before it; None for an invalid cursor."""
    try:
        rank, marked, ends = _cursor_decoder.decode(urlsafe_b64decode(cursor.encode("ascii")))
    except (ValueError, msgspec.MsgspecError):
        return None
    # The decoder skips characters outside base64: accept the canonical form only.
    return (rank, ends) if marked == mark and _cursor(rank, marked, ends) == cursor else None


def expired_key() -> SandboxResponse:
    """401: expired key."""
    return v1_error(401, "KEY_EXPIRED", "the key has expired")


def invalid_cursor() -> SandboxResponse:
    """400: invalid cursor."""
    return v1_error(400, "INVALID_CURSOR", "the cursor is invalid for this query")
