"""The network backend of httpcore: one deadline for each request, and connections that `close` can interrupt.

In: the calls of httpcore's connection pool, on the thread that makes the request. Out: httpcore's own streams, each
connect, read and write limited to what is left of the request's deadline. httpcore's timeouts are per operation: a
server that sends one byte a second would hold a request for ever.
"""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from time import monotonic
from typing import Any, Final

import httpcore

HEAD_MAX_BYTES: Final = 256 * 1024
"""Bytes received before the headers of a response are complete; interim responses count."""
_WRITE_BYTES: Final = 16 * 1024
TAIL_BYTES: Final = 8


@dataclass(slots=True)
class Exchange:
    """One request and its response.

    Attributes:
        deadline: when both must be over, on the monotonic clock.
        has_body: the request has a body; its head is sent together with the first part of it.
        is_sent: a byte of the request may have left this machine.
        head_bytes: received before the headers were complete; None once they are.
    """

    deadline: float
    has_body: bool = False
    is_sent: bool = False
    head_bytes: int | None = 0

    def remaining_s(self, timeout: float | None, error: type[httpcore.TimeoutException]) -> float:
        """The shorter of a timeout and the time left. Raises `error` once the deadline has passed."""
        left = self.deadline - monotonic()
        if left <= 0:
            raise error("the deadline of the request has passed")
        return left if timeout is None else min(timeout, left)


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections that end their waits at the deadline of the calling thread's exchange.

    Args:
        is_tls: the requests travel over TLS; what is written before the handshake goes to a proxy.
    """

    def __init__(self, *, is_tls: bool) -> None:
        self.is_tls = is_tls
        self._backend = httpcore.SyncBackend()
        self._thread = threading.local()
        self._lock = threading.Lock()
        self._handles: set[socket.socket] = set()
        self._is_closed = False

    @property
    def exchange(self) -> Exchange:
        """The exchange of the calling thread; to be set before each request."""
        current: Exchange = self._thread.exchange
        return current

    @exchange.setter
    def exchange(self, exchange: Exchange) -> None:
        self._thread.exchange = exchange

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """Connects to the first address of a host that answers. Raises ConnectError, ConnectTimeout."""
        try:
            addresses = dict.fromkeys(
                str(info[4][0]) for info in socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
            )
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError("the name does not resolve") from error
        failure: Exception = httpcore.ConnectError("the name has no address")
        for address in addresses:
            left = self.exchange.remaining_s(timeout, httpcore.ConnectTimeout)
            try:
                stream = self._backend.connect_tcp(address, port, left, local_address, socket_options)
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return DeadlineStream(stream, self, self._register(stream))
        raise failure

    def _register(self, stream: httpcore.NetworkStream) -> socket.socket:
        """A second descriptor of the connection: it stays valid while the first one changes hands for TLS."""
        handle: socket.socket = stream.get_extra_info("socket").dup()
        with self._lock:
            is_closed = self._is_closed
            self._handles.add(handle)
        if is_closed:
            stream.close()
            self.release(handle)
            raise httpcore.ConnectError("the client was closed")
        return handle

    def release(self, handle: socket.socket) -> None:
        """Forgets a connection that was closed."""
        with self._lock:
            self._handles.discard(handle)
        handle.close()

    def interrupt(self) -> None:
        """Ends every wait on every connection; closing a socket would not wake the thread that reads from it."""
        with self._lock:
            self._is_closed = True
            for handle in self._handles:
                with suppress(OSError):
                    handle.shutdown(socket.SHUT_RDWR)


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose waits end at the deadline of the calling thread's exchange.

    Attributes:
        tail: the last bytes received.
        has_read: something was received since the last write.
    """

    def __init__(
        self, stream: httpcore.NetworkStream, backend: DeadlineBackend, handle: socket.socket, *, is_tls: bool = False
    ) -> None:
        self._stream, self._backend, self._handle = stream, backend, handle
        self._carries_requests = is_tls == backend.is_tls
        self._is_spoiled = False
        self._head = b""
        self.tail = b""
        self.has_read = False

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """See NetworkStream."""
        exchange = self._backend.exchange
        data = self._stream.read(max_bytes, exchange.remaining_s(timeout, httpcore.ReadTimeout))
        self.has_read = True
        self.tail = (self.tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        if exchange.head_bytes is not None:
            exchange.head_bytes += len(data)
            if exchange.head_bytes > HEAD_MAX_BYTES:
                raise httpcore.RemoteProtocolError("the headers of the response are too large")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """See NetworkStream. The head of a request waits for the body: one packet instead of two."""
        exchange = self._backend.exchange
        self.has_read = False
        if self._carries_requests and exchange.has_body:
            exchange.has_body = False
            self._head = buffer
            return
        buffer, self._head = self._head + buffer, b""
        for start in range(0, len(buffer), _WRITE_BYTES):
            left = exchange.remaining_s(timeout, httpcore.WriteTimeout)
            exchange.is_sent |= self._carries_requests
            self._stream.write(buffer[start : start + _WRITE_BYTES], left)

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """See NetworkStream. The ssl module bounds the handshake as a whole."""
        try:
            left = self._backend.exchange.remaining_s(timeout, httpcore.ConnectTimeout)
            stream = self._stream.start_tls(ssl_context, server_hostname, left)
        except BaseException:
            self.close()
            raise
        return DeadlineStream(stream, self._backend, self._handle, is_tls=True)

    def spoil(self) -> None:
        """Keeps the connection from being used again."""
        self._is_spoiled = True

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 # as httpcore declares it
        """See NetworkStream. The pool closes an idle connection that is readable."""
        return self._is_spoiled if info == "is_readable" and self._is_spoiled else self._stream.get_extra_info(info)

    def close(self) -> None:
        """See NetworkStream."""
        self._stream.close()
        self._backend.release(self._handle)
