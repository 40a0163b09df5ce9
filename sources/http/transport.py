"""Connections to one host: a transport of httpx over httpcore's pool, each request limited as a whole.

In: httpx requests with the extensions `deadline`, an instant on the monotonic clock, and `target`, if that is not the
path of the URL. Out: httpx responses, whose bodies are read as they are iterated, or httpx errors: a ConnectError,
ConnectTimeout or ProxyError proves that no byte of the request was sent. Sockets, TLS, proxies and HTTP parsing are
httpcore's; httpx's own transport has no parameter for the network backend that limits a request.

Each request has one deadline, and `close` interrupts connections: httpcore's timeouts are per operation, and a server
that sends one byte a second would hold a request for ever.
"""

from __future__ import annotations

import logging
import socket
import ssl
import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any, Final
from weakref import WeakSet

import httpcore
import httpx

from orderbridge.sources.errors import UsageError

HEAD_MAX_BYTES: Final = 256 * 1024
"""Bytes received before the headers of a response are complete; interim responses count."""
_WRITE_BYTES: Final = 16 * 1024
TAIL_BYTES: Final = 8
KEEPALIVE_S: Final = 2.0
"""Shorter than what servers commonly keep: a write on a connection that just closes at the other end is in doubt."""
_POOL_ERRORS: Final = (
    httpcore.NetworkError,
    httpcore.TimeoutException,
    httpcore.ProtocolError,
    httpcore.ProxyError,
)

# At debug level, httpcore logs the headers of responses, which may echo a key.
logging.getLogger("httpcore").setLevel(logging.INFO)


@dataclass(slots=True)
class Exchange:
    """One request and its response.

    Attributes:
        deadline: when both must be over, on the monotonic clock.
        is_sent: a byte of the request may have left this machine.
        head_bytes: received before the headers were complete; None once they are.
    """

    deadline: float
    is_sent: bool = False
    head_bytes: int | None = 0

    def remaining_s(self, timeout: float | None, error: type[httpcore.TimeoutException]) -> float:
        """The shorter of a timeout and the time left. Raises `error` once the deadline has passed."""
        left = self.deadline - monotonic()
        if left <= 0:
            raise error("the deadline of the request has passed")
        return left if timeout is None else min(timeout, left)


class _Thread(threading.local):
    """What each thread has of its own: its exchange, which is set before each request."""

    exchange: Exchange


class DeadlineBackend(httpcore.NetworkBackend):
    """Opens connections that end their waits at the deadline of the calling thread's exchange.

    Args:
        is_tls: the requests travel over TLS; what is written before the handshake goes to a proxy.
    """

    def __init__(self, *, is_tls: bool) -> None:
        self.is_tls = is_tls
        self._backend = httpcore.SyncBackend()
        self.thread = _Thread()
        self._lock = threading.Lock()
        self._streams: WeakSet[DeadlineStream] = WeakSet()
        self._is_closed = False

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
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise httpcore.ConnectError("the name does not resolve") from error
        failure: Exception = httpcore.ConnectError("the name has no address")
        for address in dict.fromkeys(str(info[4][0]) for info in found):
            left = self.thread.exchange.remaining_s(timeout, httpcore.ConnectTimeout)
            try:
                stream = self._backend.connect_tcp(
                    address, port, left, local_address, socket_options
                )
            except (httpcore.ConnectError, httpcore.ConnectTimeout) as error:
                failure = error
            else:
                return DeadlineStream(stream, self)
        raise failure

    def register(self, stream: DeadlineStream) -> None:
        """Takes a connection that `interrupt` is to end. Raises ConnectError if it was called already."""
        with self._lock:
            self._streams.add(stream)
            is_closed = self._is_closed
        if is_closed:
            stream.close()
            raise httpcore.ConnectError("the client was closed")

    def interrupt(self) -> None:
        """Ends every wait on every connection; closing a socket would not wake the thread that reads from it."""
        with self._lock:
            self._is_closed = True
            for stream in self._streams:
                # the system's call alone: that of the ssl module is for the thread that reads
                with suppress(OSError):
                    socket.socket.shutdown(stream.handle, socket.SHUT_RDWR)


class DeadlineStream(httpcore.NetworkStream):
    """A connection whose waits end at the deadline of the calling thread's exchange.

    Attributes:
        tail: the last bytes received.
        has_read: something was received since the last write.
        is_spoiled: it is not to be used again.
        handle: its socket; while TLS is agreed on, which takes the socket over, a second descriptor of it.
    """

    def __init__(
        self, stream: httpcore.NetworkStream, backend: DeadlineBackend, *, is_tls: bool = False
    ) -> None:
        self._stream = stream
        self._backend = backend
        self._carries_requests = is_tls == backend.is_tls
        self.is_spoiled = False
        self.tail = b""
        self.has_read = False
        self.handle: socket.socket = stream.get_extra_info("socket")
        backend.register(self)

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """See NetworkStream."""
        exchange = self._backend.thread.exchange
        data = self._stream.read(max_bytes, exchange.remaining_s(timeout, httpcore.ReadTimeout))
        self.has_read = True
        self.tail = (self.tail + data[-TAIL_BYTES:])[-TAIL_BYTES:]
        if exchange.head_bytes is not None:
            exchange.head_bytes += len(data)
            if exchange.head_bytes > HEAD_MAX_BYTES:
                raise httpcore.RemoteProtocolError("the headers of the response are too large")
        return data

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """See NetworkStream."""
        exchange = self._backend.thread.exchange
        self.has_read = False
        for start in range(0, len(buffer), _WRITE_BYTES):
            left = exchange.remaining_s(timeout, httpcore.WriteTimeout)
            exchange.is_sent |= self._carries_requests
            self._stream.write(buffer[start : start + _WRITE_BYTES], left)

    def start_tls(
        self,
        ssl_context: ssl.SSLContext,
        server_hostname: str | None = None,
        timeout: float | None = None,
    ) -> httpcore.NetworkStream:
        """See NetworkStream. The ssl module bounds the handshake as a whole."""
        try:
            left = self._backend.thread.exchange.remaining_s(timeout, httpcore.ConnectTimeout)
            with self.handle.dup() as self.handle:
                stream = self._stream.start_tls(ssl_context, server_hostname, left)
        except BaseException:
            self.close()
            raise
        return DeadlineStream(stream, self._backend, is_tls=True)

    def get_extra_info(self, info: str) -> Any:  # noqa: ANN401 # as httpcore declares it
        """See NetworkStream. The pool closes an idle connection that is readable."""
        if info == "is_readable" and self.is_spoiled:
            return True
        return self._stream.get_extra_info(info)

    def close(self) -> None:
        """See NetworkStream."""
        self._stream.close()


class Transport(httpx.BaseTransport):
    """Connections to one host, kept for a moment and reused; safe to use from several threads.

    Args:
        base_url: of the host.
        ca_file: certificates to trust (PEM); None: the system's store. The environment is not consulted.
        proxy: `http://[user:password@]host:port`.

    Raises:
        UsageError: the CA file cannot be used.
    """

    def __init__(
        self, base_url: httpx.URL | str, *, ca_file: Path | None = None, proxy: str | None = None
    ) -> None:
        url = httpx.URL(base_url)
        is_tls = url.scheme == "https"
        self._scheme, self._host, self._port = url.raw_scheme, url.raw_host, url.port
        self._backend = DeadlineBackend(is_tls=is_tls)
        via = httpx.Proxy(proxy) if proxy else None
        self._pool = httpcore.ConnectionPool(
            ssl_context=tls_context(ca_file) if is_tls else None,
            proxy=httpcore.Proxy(str(via.url), via.raw_auth) if via else None,
            max_connections=None,
            keepalive_expiry=KEEPALIVE_S,
            network_backend=self._backend,
        )

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See BaseTransport; the body of the response is to be read on the same thread."""
        target = request.extensions.get("target") or request.url.raw_path
        exchange = self._backend.thread.exchange = Exchange(request.extensions["deadline"])
        try:
            core_request = httpcore.Request(
                request.method,
                httpcore.URL(scheme=self._scheme, host=self._host, port=self._port, target=target),
                headers=request.headers.raw,
                content=request.stream,
                # no target: CONNECT has its own
                extensions={"timeout": request.extensions.get("timeout", {})},
            )
            exchange.remaining_s(None, httpcore.ConnectTimeout)
            response = self._pool.handle_request(core_request)
            exchange.head_bytes = None
            stream = response.extensions["network_stream"]
            is_http_1 = (
                response.extensions["http_version"].startswith(b"HTTP/1.")
                and response.status >= 200
            )
            if not (is_http_1 and isinstance(stream, DeadlineStream) and stream.has_read):
                stream.close()
                response.close()  # a protocol that was not asked for, or a response that was there before its request
                raise httpcore.RemoteProtocolError("not a response to the request")
        except _POOL_ERRORS as error:
            raise _as_httpx(error, exchange) from error
        return httpx.Response(
            response.status, headers=response.headers, stream=_Body(response, stream, exchange)
        )

    def close(self) -> None:
        """Closes every connection and ends every wait on one."""
        self._backend.interrupt()
        self._pool.close()


class _Body(httpx.SyncByteStream):
    """The body of a response. A connection that received more than the response is not used again."""

    def __init__(
        self, response: httpcore.Response, stream: DeadlineStream, exchange: Exchange
    ) -> None:
        self._response = response
        self._stream = stream
        self._exchange = exchange

    def __iter__(self) -> Iterator[bytes]:
        tail = b"\r\n\r\n"
        try:
            for part in self._response.iter_stream():
                tail = (tail + part[-TAIL_BYTES:])[-TAIL_BYTES:]
                yield part
        except _POOL_ERRORS as error:
            raise _as_httpx(error, self._exchange) from error
        if any(name.lower() == b"transfer-encoding" for name, _ in self._response.headers):
            tail = b"\r\n0\r\n\r\n"
        if not self._stream.tail.endswith(tail):
            self._stream.is_spoiled = True

    def close(self) -> None:
        """Gives the connection back, or closes it if the body was not read to its end."""
        self._response.close()


def _as_httpx(error: Exception, exchange: Exchange) -> httpx.TransportError:
    """The error of httpx with the same name as httpcore's; a failed connect if nothing was sent."""
    name = type(error).__name__
    if not exchange.is_sent and not isinstance(
        error, httpcore.ProxyError | httpcore.LocalProtocolError
    ):
        name = "ConnectTimeout" if isinstance(error, httpcore.TimeoutException) else "ConnectError"
    kind: type[httpx.TransportError] = getattr(httpx, name)
    return kind(str(error))


def tls_context(ca_file: Path | None) -> ssl.SSLContext:
    """Verifies certificates against a file, or else against the system's store, whatever SSL_CERT_FILE names."""
    if ca_file is None:
        paths = ssl.get_default_verify_paths()
        file, folder = Path(paths.openssl_cafile), Path(paths.openssl_capath)
        return ssl.create_default_context(
            cafile=str(file) if file.is_file() else None,
            capath=str(folder) if folder.is_dir() else None,
        )
    try:
        return ssl.create_default_context(cafile=str(ca_file))
    except (OSError, ValueError) as error:
        reason = (
            "it contains no certificate in PEM format"
            if isinstance(error, ssl.SSLError)
            else "it cannot be read"
        )
        raise UsageError(
            f"sources.http.ca_file: {ca_file} cannot be used: {reason}",
            "Name a PEM file of the certificates to trust.",
        ) from None
