"""Single answers without sockets: a transport for the client that asks a function."""

from __future__ import annotations

from collections.abc import Callable

import httpcore
import httpx

Handler = Callable[[httpx.Request], httpx.Response]


class InMemoryTransport:
    """Passes each request to a handler, in the classes of httpx; what it raises passes through."""

    def __init__(self, handler: Handler) -> None:
        self._handler = handler

    def handle_request(self, request: httpcore.Request) -> httpcore.Response:
        content = b"".join(request.stream)  # type: ignore[arg-type] # a sync request's
        given = httpx.Request(
            request.method.decode(), bytes(request.url).decode(), headers=request.headers, content=content
        )
        answer = self._handler(given)
        return httpcore.Response(
            answer.status_code,
            headers=answer.headers.raw,
            content=b"".join(answer.stream),  # type: ignore[arg-type]
        )

    def close(self) -> None:
        pass
