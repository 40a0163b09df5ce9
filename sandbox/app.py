"""The application: routes of both families, and latency, rate limit, faults and log around each operation.

In: ASGI requests, which Starlette routes to an operation. Out: responses, some of them broken by the drawn faults.
Faults of the connection apply before the operation, faults of a body after it, as on a real platform.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.routing import Route, Router
from starlette.types import ASGIApp, Receive, Scope, Send

from orderbridge.sandbox.config import LEGACY_KEY, V1_KEY, SandboxConfig
from orderbridge.sandbox.faults import NOTHING, Draw, FaultPlan, alter, break_cursor
from orderbridge.sandbox.legacy import Legacy
from orderbridge.sandbox.messages import Call, SandboxResponse, encoded, family_error, v1_error
from orderbridge.sandbox.public_v1 import PublicV1, expired_key, invalid_cursor
from orderbridge.sandbox.state import Logged, State
from orderbridge.sandbox.wire import Exchange, gzip_cut
from orderbridge.sources.contract import OPERATIONS, PUBLIC_V1_PREFIX, Operation

PLANTED_PASSWORD: Final = "hunter2-planted"  # noqa: S105 # tests search for it where it must not be
PLANTED_KEY: Final = "brand_live_planted"
HTML: Final = b"<!doctype html><html><head><title>Just a moment</title></head><body>Checking your browser</body></html>"
_RATE_WORDS: Final = "too many requests"


class Platform:
    """Both families over one `state`, with a `plan` of faults, whose rates may change while the sandbox runs."""

    def __init__(self, config: SandboxConfig) -> None:
        self.config = config
        self.state = State(config)
        self.plan = FaultPlan(config.faults, config.seed)
        self._legacy = Legacy(config, self.state)
        self._public_v1 = PublicV1(config, self.state)
        self._limited = config.readings["rate_limit"] == "per_second"
        self._second: dict[str, tuple[int, int]] = {}

    def app(self) -> ASGIApp:
        """The ASGI application."""
        by_path: dict[str, dict[str, Operation]] = {}
        for operation in OPERATIONS:
            prefix = PUBLIC_V1_PREFIX if operation.family == "public_v1" else ""
            by_path.setdefault(prefix + operation.path, {})[operation.verb] = operation
        routes = [Route(path, _Endpoint(self, operations)) for path, operations in by_path.items()]
        return Router(routes=routes, default=_Endpoint(self, {}), redirect_slashes=False)

    async def handle(self, operation: Operation, exchange: Exchange, scope: Scope) -> None:
        """Handles one request to an operation."""
        self.state.requests += 1
        exchange.settles_at_once = "late_apply" not in self.plan.rates
        call = Call(
            operation,
            scope["path"],
            scope["query_string"].decode("latin-1"),
            dict(scope["headers"]),
            scope["path_params"],
            b"" if operation.verb == "GET" else await exchange.body(),
        )
        if self.config.latency_ms:
            await asyncio.sleep(self.config.latency_ms / 1000)
        await self._respond(exchange, call, self.plan.draw(call))

    async def _respond(self, exchange: Exchange, call: Call, drawn: Draw) -> None:
        """Responds, or applies the drawn fault. Logs first: a test may read the log as soon as it has the response."""
        name = drawn.disruption

        def log(status: int) -> None:
            self.state.log.append(
                Logged(call.operation.verb, call.path, call.query_text, status, drawn.names)
            )

        early = self._over_the_limit(call) or self._substitute(name, call)
        if early is not None:
            log(early.status)
            await exchange.answer(early)
            return
        if name == "late_apply":
            asyncio.get_running_loop().call_later(
                self.config.late_s, partial(self._answer, call, NOTHING)
            )
        if name in ("reset_before", "late_apply"):
            log(0)
            await exchange.reset()
            return
        if name == "stall" and await exchange.disconnected(self.config.stall_s):
            log(0)
            return
        answer = self._break_body(name, call, self._answer(call, drawn))
        log(0 if name in ("lost_answer", "reset_amid") else answer.status)
        await self._send(exchange, answer, name)

    def _answer(self, call: Call, drawn: Draw) -> SandboxResponse:
        """The operation's response, with its page altered by the drawn faults."""
        family = self._legacy if call.operation.family == "legacy" else self._public_v1
        auth_error = family.auth_error(call)
        if auth_error is not None:
            return auth_error
        if drawn.alterations:
            if "page_drift" in drawn.alterations and call.operation.records:
                chance = self.plan.random
                self.state.drift(
                    call.operation.records.name,
                    chance.randrange(1 << 30),
                    removes=chance.random() < 0.5,
                )
            ignores_query = "ignored_query" in drawn.alterations
            call = replace(
                call, faults=drawn.alterations, query_text="" if ignores_query else call.query_text
            )
        result = family.answer(call)
        if isinstance(result, SandboxResponse):
            return result
        if drawn.alterations:
            alter(result, drawn.alterations, self.plan.random)
        if drawn.disruption in ("repeated_cursor", "null_cursor"):
            break_cursor(result, drawn.disruption)
        return result.answer()

    def _substitute(self, name: str, call: Call) -> SandboxResponse | None:
        """A response in place of the operation's; None if the operation runs."""
        match name:
            case "error_200" | "error_500" | "error_502" | "error_503" | "error_504":
                return call.error(
                    int(name.removeprefix("error_")), "internal", "something went wrong"
                )
            case "rate_429":
                return call.error(429, "rate", _RATE_WORDS)
            case "rate_429_retry_after":
                seconds = self.plan.random.choice((b"0", b"1"))
                return call.error(429, "rate", _RATE_WORDS).with_header(b"retry-after", seconds)
            case "error_with_password":
                header = b"api-key" if call.operation.family == "legacy" else b"authorization"
                presented = call.headers.get(header, b"").decode("latin-1")
                words = f"rejected: {call.body.decode('utf-8', 'replace')} key={presented} password={PLANTED_PASSWORD}"
                return call.error(self.plan.random.choice((400, 500)), "internal", words)
            case "redirect":
                location = f"http://localhost:1/login?api_key={PLANTED_KEY}".encode()
                return SandboxResponse(302, b"", ((b"location", location),))
            case "html_200":
                return SandboxResponse(200, HTML, ((b"content-type", b"text/html; charset=utf-8"),))
            case "expired_key":
                return expired_key()
            case "expired_cursor":
                return invalid_cursor()
            case "echoed_key":
                return _echoed_key(call.operation.family)
            case _:
                return None

    def _break_body(self, name: str, call: Call, answer: SandboxResponse) -> SandboxResponse:
        """The response after faults of its body; the operation has been applied."""
        if name == "applied_5xx":
            return call.error(
                self.plan.random.choice((500, 502)), "internal", "something went wrong"
            )
        if not answer.body:
            return answer
        if name == "truncated_json":
            return replace(
                answer, body=answer.body[: self.plan.random.randrange(1, len(answer.body))]
            )
        return gzip_cut(answer) if name == "gzip_truncated" else answer

    async def _send(self, exchange: Exchange, answer: SandboxResponse, name: str) -> None:
        match name:
            case "lost_answer":
                await exchange.reset()
            case "reset_amid":
                await exchange.reset_after(answer, 0.5)
            case "reset_after":
                await exchange.reset_after(answer, 1.0)
            case "drip":
                await exchange.drip(answer, self.config.drip_s)
            case _:
                await exchange.answer(answer)

    def _over_the_limit(self, call: Call) -> SandboxResponse | None:
        """The 429 if the family has no request left this second (reading `rate_limit=per_second`)."""
        if not self._limited:
            return None
        family = call.operation.family
        now = int(time.monotonic())
        second, count = self._second.get(family, (now, 0))
        count = count + 1 if second == now else 1
        self._second[family] = (now, count)
        if count <= self.config.rate_per_s:
            return None
        return call.error(429, "rate", _RATE_WORDS).with_header(b"retry-after", b"1")

    async def reject(self, allowed: Iterable[str], exchange: Exchange, scope: Scope) -> None:
        """404: no operation has this path; 405: the operations of this path have other verbs. Logged."""
        family = "public_v1" if scope["path"].startswith(PUBLIC_V1_PREFIX) else "legacy"
        if allowed:
            answer = family_error(
                family, 405, "verb", "no operation of this path has this verb", "string"
            )
            answer = answer.with_header(b"allow", ", ".join(sorted(allowed)).encode())
        else:
            answer = family_error(family, 404, "not_found", "no such operation", "string")
        self.state.requests += 1
        query = scope["query_string"].decode("latin-1")
        self.state.log.append(Logged(scope["method"], scope["path"], query, answer.status, ""))
        await exchange.answer(answer)


class _Endpoint:
    """The operations of one path, by verb, as an ASGI application, to which Starlette passes the plain scope."""

    def __init__(self, platform: Platform, operations: Mapping[str, Operation]) -> None:
        self._platform = platform
        self._operations = operations

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        # Requests that still wait at shutdown are cancelled; uvicorn would log each as an error.
        with suppress(asyncio.CancelledError, ClientDisconnect):
            exchange = Exchange(scope, receive, send)
            operation = self._operations.get(scope["method"])
            if operation is None:
                await self._platform.reject(self._operations, exchange, scope)
            else:
                await self._platform.handle(operation, exchange, scope)


def _echoed_key(family: str) -> SandboxResponse:
    """An error with the key of the other family as its code."""
    if family == "public_v1":
        return v1_error(400, LEGACY_KEY, "rejected")
    return SandboxResponse(400, encoded({"errors": [{"message": "rejected", "code": V1_KEY}]}))
