"""Bytes of one answer: within a deadline, within a size, decoded whole or refused.

In: httpcore's network backend, and the chunks of a body. Out: a backend whose every wait ends at the deadline of the
request that this thread makes, and bodies that are neither cut off nor larger than allowed. httpx's own timeouts are
per read (one byte a second lasts for ever), and its decoders take a truncated gzip for a whole one.
"""

from __future__ import annotations

import logging
import math
import ssl
import threading
import zlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from socket import SHUT_RDWR
from time import monotonic
from typing import Any, Final
from weakref import WeakSet

import httpcore

from sources.retries import BrokenBody

MIB: Final = 1024 * 1024
MEMBERS_MAX: Final = 100
"""Gzip members of one body: each costs a copy of the rest, and an empty one has 20 bytes."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect (with TLS), between two reads or writes, and for one request as a whole.

    The resolver alone is outside of them: the system gives no way to bound it.
    """

    connect_s: float = 10.0
    read_s: float = 30.0
    total_s: float = 120.0


@dataclass(frozen=True, slots=True)
class Caps:
    """Largest body, as it comes over the wire and decoded."""

    wire_bytes: int = 64 * MIB
    plain_bytes: int = 256 * MIB


class BodyRefused(Exception):
    """A body that another request would not make better: too large, or encoded in a way that was not asked for."""


class Watch(threading.local):
    """The request that this thread makes: when it must be over, and whether bytes of it may have left."""

    at: float = math.inf
    sent: bool = False

    @contextmanager
    def over(self, seconds: float) -> Iterator[None]:
        """Bounds what this thread does over the backend inside the block."""
        self.at, self.sent = monotonic() + seconds, False
        try:
            yield
        finally:
            self.at = math.inf

    def left(self, timeout: float | None, late: type[Exception]) -> float:
        """The time for one wait. Raises `late` where none is left."""
        left = self.at - monotonic()
        if left <= 0:
            raise late("the deadline of the request has passed")
        return left if timeout is None or left < timeout else timeout


class WatchedBackend(httpcore.NetworkBackend):
    """A network backend whose waits are bounded by a watch, and whose streams can be broken off from another thread."""

    def __init__(self, watch: Watch, inner: httpcore.NetworkBackend | None = None) -> None:
        self._watch = watch
        self._inner = inner or httpcore.SyncBackend()
        self._streams: WeakSet[WatchedStream] = WeakSet()
        self._lock = threading.Lock()
        self._aborted = False

    def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore.NetworkStream:
        """See httpcore."""
        timeout = self._watch.left(timeout, httpcore.ConnectTimeout)
        return self.watched(self._inner.connect_tcp(host, port, timeout, local_address, socket_options))

    def watched(self, inner: httpcore.NetworkStream) -> WatchedStream:
        """The stream, bounded and known to `abort`."""
        stream = WatchedStream(inner, self._watch, self)
        with self._lock:
            self._streams.add(stream)
            aborted = self._aborted
        if aborted:
            inner.close()
            raise httpcore.ConnectError("the client was closed")
        return stream

    def abort(self) -> None:
        """Ends every wait on an open connection: closing a socket would not wake the thread that reads from it."""
        with self._lock:
            self._aborted = True
            streams = list(self._streams)
        for stream in streams:
            with suppress(OSError):
                stream.get_extra_info("socket").shutdown(SHUT_RDWR)


class WatchedStream(httpcore.NetworkStream):
    """A connection whose waits are bounded by a watch."""

    def __init__(self, inner: httpcore.NetworkStream, watch: Watch, backend: WatchedBackend) -> None:
        self._inner, self._watch, self._backend = inner, watch, backend
        self.get_extra_info = inner.get_extra_info  # type: ignore[method-assign] # asked often: one call, not two

    def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        """See httpcore."""
        return self._inner.read(max_bytes, self._watch.left(timeout, httpcore.ReadTimeout))

    def write(self, buffer: bytes, timeout: float | None = None) -> None:
        """See httpcore."""
        timeout = self._watch.left(timeout, httpcore.WriteTimeout)
        if buffer:
            self._watch.sent = True
        self._inner.write(buffer, timeout)

    def close(self) -> None:
        """See httpcore."""
        self._inner.close()

    def start_tls(
        self, ssl_context: ssl.SSLContext, server_hostname: str | None = None, timeout: float | None = None
    ) -> httpcore.NetworkStream:
        """See httpcore. The handshake counts as one wait: the ssl module bounds it as a whole."""
        timeout = self._watch.left(timeout, httpcore.ConnectTimeout)
        return self._backend.watched(self._inner.start_tls(ssl_context, server_hostname, timeout))


def read_wire(chunks: Iterable[bytes], most: int) -> bytes:
    """All chunks as one. Raises BodyRefused over `most` bytes."""
    parts, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise BodyRefused(f"the body is larger than {most} bytes")
        parts.append(chunk)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decode(wire: bytes, encoding: str | None, most: int) -> bytes:
    """The plain body.

    Args:
        wire: the body as it came.
        encoding: the header `Content-Encoding`.
        most: bytes that it may hold.

    Raises:
        BrokenBody: cut off, or not of that encoding.
        BodyRefused: larger than `most`, encoded twice, or in another encoding than gzip and deflate.
    """
    names = [name for part in (encoding or "").split(",") if (name := part.strip().lower()) not in ("", "identity")]
    if not names:
        if len(wire) > most:
            raise BodyRefused(f"the body is larger than {most} bytes")
        return wire
    if len(names) > 1:
        raise BodyRefused("the body is encoded more than once")
    if names[0] not in ("gzip", "x-gzip", "deflate"):
        raise BodyRefused("the body has an encoding that was not asked for")
    if not wire:
        return b""
    bits = zlib.MAX_WBITS | 16 if names[0] != "deflate" else zlib.MAX_WBITS if wire[0] & 15 == 8 else -zlib.MAX_WBITS
    plain, rest, members = b"", wire, 0
    while rest:  # gzip allows several members, one after the other
        members += 1
        if members > MEMBERS_MAX:
            raise BodyRefused("the body has too many parts")
        decoder = zlib.decompressobj(bits)
        try:
            plain += decoder.decompress(rest, most + 1 - len(plain))
        except zlib.error:
            raise BrokenBody("the body is not what its encoding says") from None
        if len(plain) > most:
            raise BodyRefused(f"the body is larger than {most} bytes, decoded")
        if not decoder.eof:
            raise BrokenBody("the body is cut off")
        rest = decoder.unused_data
    return plain


def unverified(error: BaseException) -> bool:
    """Whether a certificate that does not verify is behind an error: no retry mends it."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, ssl.SSLCertVerificationError):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def _without_headers(record: logging.LogRecord) -> bool:
    """Drops what httpcore logs of an answer's headers: a cookie or the target of a redirect may hold a key."""
    told = str(record.msg)
    return "return_value=" not in told and "exception=" not in told


def hide_headers() -> None:
    """Keeps answers' headers out of httpcore's debug log, for the whole process; any number of times."""
    logging.getLogger("httpcore.http11").addFilter(_without_headers)
