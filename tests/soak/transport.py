"""The sandbox without sockets: a transport of httpx that calls its routes, faults included.

A request is answered on the thread that makes it, so that a seed gives the same faults in the same order each time.
"""

from __future__ import annotations

from collections.abc import Coroutine, Iterator
from concurrent.futures import Future
from typing import Any, Final

import httpx

from orderbridge.sandbox.app import Platform
from orderbridge.sandbox.messages import Call, SandboxResponse
from orderbridge.sources.contract import LISTS, PUBLIC_V1_PREFIX, Operation

_PREFIXES: Final = {"legacy": "", "public_v1": PUBLIC_V1_PREFIX}
_OPERATIONS: Final[dict[str, Operation]] = {
    _PREFIXES[op.family] + op.path: op for op in LISTS.values()
}


def requested_url(request: httpx.Request) -> httpx.URL:
    """The whole URL of a request of the client, which passes path and query as an extension."""
    return request.url.copy_with(raw_path=request.extensions["target"])


class MemoryExchange:
    """Takes the place of the sandbox's exchange with a socket: keeps what the client would receive."""

    def __init__(self) -> None:
        self.response: SandboxResponse | None = None
        self.share = 1.0
        self.is_reset = False

    async def answer(self, answer: SandboxResponse) -> None:
        self.response = answer

    async def reset(self) -> None:
        self.is_reset = True

    async def reset_after(self, answer: SandboxResponse, share: float) -> None:
        self.response, self.share, self.is_reset = answer, share, share < 1.0

    async def drip(self, answer: SandboxResponse, pause_s: float) -> None:
        self.is_reset = True

    async def disconnected(self, timeout_s: float | None) -> bool:
        self.is_reset = True
        return True


class SandboxTransport(httpx.BaseTransport):
    """Answers requests to the lists of a platform."""

    def __init__(self, platform: Platform) -> None:
        self.requests = 0
        self._platform = platform

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        self.requests += 1
        platform, url = self._platform, requested_url(request)
        path, query = url.path, url.query.decode("latin-1")
        platform.state.requests += 1
        call = Call(
            _OPERATIONS[path],
            path,
            query,
            {name.lower(): value for name, value in request.headers.raw},
        )
        exchange: Any = MemoryExchange()
        _finish(platform._respond(exchange, call, platform.plan.draw(call)))
        if exchange.response is None:
            raise httpx.ReadError("reset")
        answer = exchange.response
        length = (b"content-length", b"%d" % len(answer.body))
        return httpx.Response(
            answer.status, headers=[*answer.headers, length], stream=_Body(exchange)
        )


class _Body(httpx.SyncByteStream):
    def __init__(self, exchange: MemoryExchange) -> None:
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        body = self._exchange.response.body if self._exchange.response is not None else b""
        yield body[: int(len(body) * self._exchange.share)]
        if self._exchange.is_reset:
            raise httpx.ReadError("reset")


def _finish(coroutine: Coroutine[Any, Any, None]) -> None:
    try:
        coroutine.send(None)
    except StopIteration:
        return
    raise RuntimeError("the sandbox waits for something")


class InlineExecutor:
    """An executor without threads: a task has ended when `submit` returns."""

    def __init__(self, *_: object) -> None:
        """Takes what a pool takes."""

    def submit(self, task: Any, *arguments: Any) -> Future[Any]:
        future: Future[Any] = Future()
        try:
            future.set_result(task(*arguments))
        except BaseException as error:
            future.set_exception(error)
        return future

    def shutdown(self, **_: object) -> None:
        """Nothing is running."""
