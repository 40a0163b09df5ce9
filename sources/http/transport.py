"""HTTP/1.1 over blocking sockets, as a transport of httpx: lean, and bounded as a whole.

In: httpx's requests to one host, each with the instant at which it must be over (extension `deadline`). Out: httpx's
responses, whose bodies come as they are read, or httpx's own exceptions: a ConnectError, ConnectTimeout or ProxyError
says that no byte of the request left. httpx's own transport costs as much as all the rest of a pull together, and its
timeouts are per read: one byte a second lasts for ever.
"""

from __future__ import annotations

import select
import socket
import ssl
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from time import monotonic
from typing import Final
from weakref import WeakSet

import httptools
import httpx

from sources.http.body import Timeouts
from sources.urls import PORTS, Proxy

KEEPALIVE_S: Final = 2.0
"""Below what servers commonly keep: a write on a connection that just closes at the other end would be in doubt."""
BARREN_MAX: Final = 128 * 1024
"""Bytes in a row that bring nothing of a body: headers, interim answers, trailers."""
_READ_BYTES: Final = 128 * 1024


class Transport(httpx.BaseTransport):
    """Connections to one host, kept for a moment and used again; safe to use from several threads.

    Args:
        url: the host; https or http.
        timeouts: the bounds of single waits. That of a whole request comes with it.
        trust_env: take the environment's proxies and certificates.

    Raises:
        UsageError: the environment names a proxy of a kind that is not spoken.
    """

    def __init__(self, url: str, timeouts: Timeouts, *, trust_env: bool = False) -> None:
        told = httpx.URL(url)
        self._host, self._port = told.raw_host.decode(), told.port or PORTS[told.scheme]
        self._timeouts = timeouts
        self._tls: ssl.SSLContext | None = None
        if told.scheme == "https":
            self._tls = httpx.create_ssl_context(trust_env=trust_env)
            self._tls.set_alpn_protocols(["http/1.1"])
        self._proxy = Proxy.of_environment(told.scheme, self._host) if trust_env else None
        self._idle: deque[_Connection] = deque()
        self._sockets: WeakSet[socket.socket] = WeakSet()
        self._lock = threading.Lock()
        self._closed = False

    def handle_request(self, request: httpx.Request) -> httpx.Response:
        """See httpx. The last connection given back is taken first; one that may have ended never is."""
        deadline: float = request.extensions["deadline"]
        connection = self._kept() or self._connected(deadline)
        try:
            connection.begin(deadline)
            target = request.url.raw_path
            if self._proxy is not None and self._tls is None:
                target = str(request.url).encode()
            headers = [*request.headers.raw, *(self._proxy.headers if self._proxy and not self._tls else [])]
            connection.send(_head(request.method, target, headers) + request.read())
            answer = connection.answer()
        except BaseException:
            connection.close()
            raise
        return httpx.Response(answer.status, headers=answer.headers, stream=_Body(self, connection, answer))

    def close(self) -> None:
        """Closes every connection, and ends every wait on one: closing a socket would not wake who reads from it."""
        with self._lock:
            self._closed = True
            sockets = list(self._sockets)
        for each in sockets:
            with suppress(OSError):
                socket.socket.shutdown(each, socket.SHUT_RDWR)
        while (connection := self._kept()) is not None:
            connection.close()

    def give_back(self, connection: _Connection) -> None:
        """Keeps a connection whose answer was read to its end."""
        connection.idle_since = monotonic()
        self._idle.append(connection)
        if self._closed:
            connection.close()

    def _kept(self) -> _Connection | None:
        while True:
            try:
                connection = self._idle.pop()
            except IndexError:
                return None
            if connection.usable():
                return connection
            connection.close()

    def _connected(self, deadline: float) -> _Connection:
        """A new connection, through the proxy and TLS where they are used."""
        host, port = (self._proxy.host, self._proxy.port) if self._proxy else (self._host, self._port)
        wait = min(self._timeouts.connect_s, deadline - monotonic())
        if wait <= 0:
            raise httpx.ConnectTimeout("the deadline of the request has passed")
        connection: _Connection | None = None
        try:
            plain = self._known(socket.create_connection((host, port), wait))
            connection = _Connection(plain, self._timeouts)
            plain.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self._tls is not None:
                if self._proxy is not None:
                    self._tunnel(connection, self._proxy, deadline)
                tls = self._tls.wrap_socket(plain, server_hostname=self._host, do_handshake_on_connect=False)
                connection = _Connection(self._known(tls), self._timeouts)
                tls.settimeout(min(self._timeouts.connect_s, max(deadline - monotonic(), 0.001)))
                tls.do_handshake()  # counts as one wait: the ssl module bounds it as a whole
        except BaseException as error:
            if connection is not None:
                connection.close()
            if isinstance(error, TimeoutError):
                raise httpx.ConnectTimeout("no connection in time") from error
            if isinstance(error, (OSError, UnicodeError)):
                raise httpx.ConnectError("no connection") from error
            raise
        return connection

    def _known(self, opened: socket.socket) -> socket.socket:
        """A socket that `close` ends."""
        with self._lock:
            self._sockets.add(opened)
            closed = self._closed
        if closed:
            opened.close()
            raise httpx.ConnectError("the client was closed")
        return opened

    def _tunnel(self, connection: _Connection, proxy: Proxy, deadline: float) -> None:
        """Asks the proxy for a way through to the host."""
        connection.begin(deadline)
        host = f"[{self._host}]" if ":" in self._host else self._host
        target = f"{host}:{self._port}".encode()
        try:
            connection.send(_head("CONNECT", target, [(b"Host", target), *proxy.headers]))
            status = connection.answer().status
        except httpx.TransportError as error:
            raise httpx.ProxyError("no way through the proxy") from error
        if not 200 <= status <= 299:
            raise httpx.ProxyError(f"the proxy refused, status {status}")


class _Connection:
    """A socket, whose every wait ends at the deadline of the request under way."""

    def __init__(self, opened: socket.socket, timeouts: Timeouts) -> None:
        self.idle_since = 0.0
        self._socket, self._read_s = opened, timeouts.read_s
        self._timeout = -1.0
        self._deadline = 0.0
        self._barren = 0
        self._poll = select.poll()
        self._poll.register(opened, select.POLLIN)

    def usable(self) -> bool:
        """Whether the other end surely still listens: a connection that can be read from has ended, or is confused."""
        return monotonic() - self.idle_since < KEEPALIVE_S and not self._poll.poll(0)

    def begin(self, deadline: float) -> None:
        """Begins a request. Raises ConnectTimeout where its time is over already."""
        self._deadline, self._barren = deadline, 0
        self._bound(httpx.ConnectTimeout)

    def _bound(self, late: type[httpx.TimeoutException]) -> None:
        left = self._deadline - monotonic()
        if left <= 0:
            raise late("the deadline of the request has passed")
        timeout = min(left, self._read_s)
        if timeout != self._timeout:  # mostly that of a read, which stays the same
            self._socket.settimeout(timeout)
            self._timeout = timeout

    def send(self, data: bytes) -> None:
        left = memoryview(data)
        try:
            while left:
                self._bound(httpx.WriteTimeout)
                left = left[self._socket.send(left) :]
        except TimeoutError as error:
            raise httpx.WriteTimeout("the host takes nothing more") from error
        except OSError as error:
            raise httpx.WriteError("the connection broke off") from error

    def answer(self) -> _Answer:
        """Reads up to the end of an answer's headers."""
        answer = _Answer()
        while not answer.status:
            self.receive(answer)
        return answer

    def receive(self, answer: _Answer) -> None:
        """Waits for more of an answer."""
        self._bound(httpx.ReadTimeout)
        try:
            data = self._socket.recv(_READ_BYTES)
        except TimeoutError as error:
            raise httpx.ReadTimeout("nothing came") from error
        except OSError as error:
            raise httpx.ReadError("the connection broke off") from error
        self._barren += len(data)
        answer.feed(data)
        if answer.parts:
            self._barren = 0
        elif self._barren > BARREN_MAX:
            raise httpx.RemoteProtocolError("an answer whose headers do not end")

    def close(self) -> None:
        self._socket.close()


class _Answer:
    """An answer as the parser tells of it. `status` is 0 until its headers are whole; interim answers are passed over.

    Attributes:
        parts: of the body, as yet untaken.
        whole: its end came.
        reusable: another request may follow on the connection.
    """

    def __init__(self) -> None:
        self.status = 0
        self.headers: list[tuple[bytes, bytes]] = []
        self.parts: list[bytes] = []
        self.whole = self.reusable = False
        self.on_body = self.parts.append
        self._parser = httptools.HttpResponseParser(self)

    def feed(self, data: bytes) -> None:
        """Takes bytes; none where the connection ended."""
        if not data:
            self.reusable = False
            names = {name.lower() for name, _ in self.headers}
            if not self.status or names & {b"content-length", b"transfer-encoding"}:
                raise httpx.RemoteProtocolError("the connection ended before the answer did")
            self.whole = True
            return
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade):
            self.reusable = False
            if not self.whole:  # what follows a whole answer is nobody's
                raise httpx.RemoteProtocolError("no answer of HTTP/1.1") from None

    def on_message_begin(self) -> None:
        if self.whole:
            self.reusable = False
            raise ValueError("bytes that nobody asked for")

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self.status:
            self.headers.append((name, value))

    def on_headers_complete(self) -> None:
        status = self._parser.get_status_code()
        if status >= 200:
            self.status, self.reusable = status, self._parser.should_keep_alive()
        else:
            self.headers.clear()

    def on_message_complete(self) -> None:
        self.whole = self.status != 0


class _Body(httpx.SyncByteStream):
    """The body of an answer, read as it is asked for; closing it gives the connection back, or ends it."""

    def __init__(self, transport: Transport, connection: _Connection, answer: _Answer) -> None:
        self._transport, self._connection, self._answer = transport, connection, answer

    def __iter__(self) -> Iterator[bytes]:
        answer = self._answer
        while True:
            if answer.parts:
                yield b"".join(answer.parts)
                answer.parts.clear()
            if answer.whole:
                return
            self._connection.receive(answer)

    def close(self) -> None:
        if self._answer.whole and self._answer.reusable:
            self._transport.give_back(self._connection)
        else:
            self._connection.close()


def _head(verb: str, target: bytes, headers: list[tuple[bytes, bytes]]) -> bytes:
    """The head of a request. Raises LocalProtocolError where a value holds a line of its own."""
    lines = [verb.encode() + b" " + target + b" HTTP/1.1", *(name + b": " + value for name, value in headers)]
    if any(b"\n" in line or b"\r" in line for line in lines):
        raise httpx.LocalProtocolError("a line end within a header")
    return b"\r\n".join([*lines, b"", b""])
