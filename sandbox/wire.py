"""Low-level faults of a connection: resets, drips, stalls.

In: the ASGI messages of one request and the transport of its connection. Out: interrupted or delayed responses. The
connection is closed through the transport, so uvicorn sends no error response of its own and logs nothing.
"""

from __future__ import annotations

import asyncio
import gzip
import socket
import struct
from dataclasses import replace
from http import HTTPStatus
from typing import Final

from starlette.requests import Request
from starlette.types import Receive, Scope, Send

from orderbridge.sandbox.messages import SandboxResponse

EXTENSION: Final = "sandbox.transport"
SETTLES: Final = ((b"x-orderbridge-settles", b"at-once"),)
_LINGER_NONE: Final = struct.pack("ii", 1, 0)
_SETTLE_S: Final = 0.02


class Exchange:
    """One request's socket and messages.

    Attributes:
        settles_at_once: whether no write is applied later than its response: each response says so.
    """

    def __init__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._transport: asyncio.Transport = scope["extensions"][EXTENSION]
        self._scope = scope
        self._receive = receive
        self._send = send
        self.settles_at_once = True

    async def body(self) -> bytes:
        """The complete request body. Raises ClientDisconnect if it is cut off."""
        return await Request(self._scope, self._receive).body()

    async def answer(self, answer: SandboxResponse) -> None:
        """Sends a response."""
        length = (
            ()
            if answer.status == HTTPStatus.NO_CONTENT
            else ((b"content-length", b"%d" % len(answer.body)),)
        )
        await self._send(
            {
                "type": "http.response.start",
                "status": answer.status,
                "headers": [*answer.headers, *length, *(SETTLES if self.settles_at_once else ())],
            }
        )
        await self._send({"type": "http.response.body", "body": answer.body})

    async def reset(self) -> None:
        """Resets the connection (RST, not FIN) and waits until the server has noticed."""
        descriptor = self._transport.get_extra_info("socket")
        if descriptor is not None and not self._transport.is_closing():
            # Not every event loop's socket can set options; a duplicate of its descriptor can, and shares them.
            with socket.fromfd(descriptor.fileno(), socket.AF_INET, socket.SOCK_STREAM) as twin:
                twin.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NONE)
        self._transport.abort()
        await self.disconnected(None)

    async def reset_after(self, answer: SandboxResponse, share: float) -> None:
        """Sends a share of the body with the Content-Length of all of it, then resets the connection."""
        head = _head(answer, b"keep-alive")
        self._transport.write(head + answer.body[: int(len(answer.body) * share)])
        # A reset discards what is still in the buffer.
        while self._transport.get_write_buffer_size():
            await asyncio.sleep(_SETTLE_S)
        await asyncio.sleep(_SETTLE_S)
        await self.reset()

    async def drip(self, answer: SandboxResponse, pause_s: float) -> None:
        """Sends one byte of the body at a time until the client disconnects."""
        self._transport.write(_head(answer, b"close"))
        for byte in answer.body:
            if self._transport.is_closing():
                break
            self._transport.write(bytes((byte,)))
            await asyncio.sleep(pause_s)
        self._transport.close()
        await self.disconnected(None)

    async def disconnected(self, timeout_s: float | None) -> bool:
        """Waits for the client to disconnect; False if it is still connected after `timeout_s` seconds."""
        try:
            async with asyncio.timeout(timeout_s):
                while (await self._receive())["type"] != "http.disconnect":
                    pass
        except TimeoutError:
            return False
        return True


def gzip_cut(answer: SandboxResponse) -> SandboxResponse:
    """The response gzip-compressed, with the last third of the body missing."""
    packed = gzip.compress(answer.body)
    return replace(answer, body=packed[: max(12, len(packed) * 2 // 3)]).with_header(
        b"content-encoding", b"gzip"
    )


def _head(answer: SandboxResponse, connection: bytes) -> bytes:
    lines = [b"HTTP/1.1 %d %s" % (answer.status, HTTPStatus(answer.status).phrase.encode())]
    lines += [b"%s: %s" % pair for pair in answer.headers]
    if answer.status != HTTPStatus.NO_CONTENT:
        lines.append(b"content-length: %d" % len(answer.body))
    lines += [b"connection: " + connection, b"", b""]
    return b"\r\n".join(lines)
