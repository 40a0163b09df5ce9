"""One request and its response, read to the end: the header with the key, the deadline, the size limits.

In: verb, path and query, body, seconds. Out: a `RawResponse`, or a `Failure` if nothing usable arrived. A failure is
returned, not raised: an exception would carry the request along, key included. Bodies are decoded here: httpx's own
decoders accept a truncated gzip as whole, at any size.
"""

from __future__ import annotations

import threading
import zlib
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from time import monotonic
from typing import Final, Literal, NoReturn, cast

import httpx

from sources.contract import Family, Verb
from sources.errors import HttpError
from sources.http.failures import BrokenBody, Failure, UnacceptableBody, connection_failure
from sources.settings import HttpSettings


@dataclass(frozen=True, slots=True)
class ReadResponse:
    """A 2xx response to a read. `body` is decoded and whole; `elapsed_s` covers the last request alone."""

    status: int
    body: bytes = field(repr=False)
    elapsed_s: float
    attempts: int
    throttled: bool


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What happened to a write (docs/in-doubt.md).

    Attributes:
        state: `not_sent`: no byte of it left. `answered`: 201, 204, or another 2xx whose body arrived whole; 401, 403
            or 429; or another 4xx with the family's own error body. `in_doubt`: everything else once bytes may have
            left, such as 5xx, 3xx, a 404 of some other server, or a 200 whose body is broken.
        status: of the response, if there was one.
        body: of a 2xx, decoded; empty if it is broken.
        content_type: of a 2xx, lower case and without parameters; empty if there was none.
        is_broken: the body of a 2xx was cut off, not decodable, or empty although a content was announced.
        error: for a person; None for `answered` with 2xx.
        message: the platform's own words about what went wrong, without keys and passwords; for private files alone.
        retry_after_s: what the platform asked to wait.
    """

    state: Literal["not_sent", "answered", "in_doubt"]
    status: int | None = None
    body: bytes = field(default=b"", repr=False)
    content_type: str = ""
    is_broken: bool = False
    error: HttpError | None = None
    message: str = field(default="", repr=False)
    retry_after_s: float | None = None
    elapsed_s: float = 0.0


@dataclass(slots=True)
class RawResponse:
    """A response as received: `body` is what arrived whole, otherwise `broken` holds what was wrong with it.

    `settles_at_once`: the platform says that no write takes effect after its response, as the built-in stand-in does.
    """

    status: int
    body: bytes = field(repr=False)
    content_type: str
    location: str = field(default="", repr=False)
    retry_after: str | None = None
    broken: Failure | None = None
    settles_at_once: bool = False

    @property
    def is_success(self) -> bool:
        """Any 2xx."""
        return 200 <= self.status <= 299


_HEADERS: Final = ((b"Accept", b"application/json"), (b"Accept-Encoding", b"gzip"), (b"User-Agent", b"orderbridge"))
GZIP_MEMBERS_MAX: Final = 100
"""Gzip members of one body: each costs a copy of the rest, and an empty one has 20 bytes."""


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds: to connect (with TLS), without data while reading or writing, and for one request as a whole.

    Resolving the host's name is not limited: the system offers no way to.
    """

    connect_s: float = 10.0
    read_s: float = HttpSettings.read_timeout_s
    total_s: float = HttpSettings.timeout_s


@dataclass(frozen=True, slots=True)
class Caps:
    """The largest body, as transferred and decoded."""

    wire_bytes: int = 64 * 2**20
    plain_bytes: int = 64 * 2**20


class KeyAuth:
    """The header with the key: masked when printed, not pickled.

    Attributes:
        header: its name and value.
        secrets: texts that no error may contain: the key, and other keys that a platform could echo.
    """

    def __init__(self, family: Family, key: str, secrets: tuple[str, ...] = ()) -> None:
        name, value = ("api-key", key) if family == "legacy" else ("Authorization", f"Bearer {key}")
        self.header = (name.encode(), value.encode())
        self.secrets = tuple({key, *secrets})

    def __repr__(self) -> str:
        return "KeyAuth(***)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a key is not pickled")


class Exchanger:
    """Makes requests to one host over a transport; safe to use from several threads.

    Args:
        family: of the host.
        base_url: https or http, without trailing slash; its path precedes the path of each request.
        auth: the header with the key.
        transport: takes requests with the URL `base_url` and the extensions `deadline` and `target`: to parse a URL for
            each request would cost as much as a tenth of it.
        timeouts, caps: limits.
    """

    def __init__(
        self,
        family: Family,
        base_url: str,
        auth: KeyAuth,
        transport: httpx.BaseTransport,
        timeouts: Timeouts,
        caps: Caps,
    ) -> None:
        self._base_url = httpx.URL(base_url)
        self._base_path = self._base_url.raw_path.rstrip(b"/")
        host = self._base_url.netloc
        self.family, self.host = family, host.decode()
        self._timeouts, self._caps = timeouts, caps
        self._transport = transport
        self._headers = [(b"Host", host), *_HEADERS, auth.header]
        self._waits = httpx.Timeout(timeouts.read_s, connect=timeouts.connect_s, pool=timeouts.total_s).as_dict()
        self._closed = threading.Event()

    @property
    def is_plain(self) -> bool:
        """Whether the host is reached by http: only one on loopback can be."""
        return self._base_url.scheme == "http"

    @property
    def is_closed(self) -> bool:
        """Whether `close` was called."""
        return self._closed.is_set()

    def close(self) -> None:
        """Closes every connection; exchanges under way fail."""
        self._closed.set()
        self._transport.close()

    def exchange(self, verb: Verb, target: str, body: bytes, seconds: float) -> RawResponse | Failure:
        """One request and its response within `seconds`; `target` is a path, with the query."""
        try:
            return self._exchange(verb, target, body, seconds)
        except httpx.TransportError as error:
            return connection_failure(error, self.host, seconds, self._timeouts.read_s)
        except Exception:
            # closing a connection from another thread makes it fail in ways that no library documents
            if not self.is_closed:
                raise
        return Failure("protocol", "the client was closed")

    def _exchange(self, verb: Verb, target: str, body: bytes, seconds: float) -> RawResponse:
        request = httpx.Request(
            verb,
            self._base_url,
            headers=self._headers_of(len(body)),
            stream=httpx.ByteStream(body),
            extensions={
                "deadline": monotonic() + seconds,
                "target": self._base_path + target.encode(),
                "timeout": self._waits,
            },
        )
        response = self._transport.handle_request(request)
        headers = response.headers
        with closing(cast(httpx.SyncByteStream, response.stream)) as chunks:  # not `iter_raw`, which copies and counts
            content_type = headers.get("content-type", "").partition(";")[0].strip().lower()
            reply = RawResponse(response.status_code, b"", content_type)
            reply.settles_at_once = headers.get("x-orderbridge-settles") == "at-once"
            if not reply.is_success:
                reply.location, reply.retry_after = headers.get("location", ""), headers.get("retry-after")
            try:
                wire = read_wire(chunks, self._caps.wire_bytes)
                reply.body = decompress(wire, headers.get("content-encoding"), self._caps.plain_bytes)
            except BrokenBody as error:
                reply.broken = self.broken_body(str(error), reply)
            except UnacceptableBody as error:
                hint = "Report this to the platform, or to whoever runs a proxy in between."
                reply.broken = Failure("contract", str(error), hint, reply.status)
            except httpx.TransportError as error:
                # the status is known, although the body was cut off
                failure = connection_failure(error, self.host, seconds, self._timeouts.read_s)
                reply.broken = Failure(failure.what, failure.words, failure.hint, reply.status)
        return reply

    def _headers_of(self, body_bytes: int) -> httpx.Headers:
        """The headers of a request with so long a body."""
        length = [(b"Content-Type", b"application/json"), (b"Content-Length", b"%d" % body_bytes)]
        return httpx.Headers([*self._headers, *(length if body_bytes else ())])

    def broken_body(self, words: str, reply: RawResponse) -> Failure:
        """The failure of a 2xx whose body is not what it should be."""
        hint = "Try again later; if it persists, report the path and the time to the platform."
        if reply.content_type == "text/html" or reply.body.lstrip()[:1] == b"<":
            words = f"{words}; the response is a web page (HTML)"
            hint = f"Check sources.{self.family}.base_url: it may name a website, or a proxy answers with a login page."
        return Failure("broken_body", words, hint, reply.status)


def read_wire(chunks: Iterable[bytes], most: int) -> bytes:
    """Joins all chunks. Raises UnacceptableBody over `most` bytes."""
    parts, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise UnacceptableBody(f"the body is larger than {most} bytes")
        parts.append(chunk)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decompress(wire: bytes, encoding: str | None, most: int) -> bytes:
    """Decodes a body.

    Args:
        wire: the body as transferred.
        encoding: the header `Content-Encoding`.
        most: bytes that it may have, decoded.

    Raises:
        BrokenBody: cut off, empty, or not in that encoding.
        UnacceptableBody: larger than `most`, encoded more than once, or in another encoding than gzip and deflate.
    """
    names = [name for part in (encoding or "").split(",") if (name := part.strip().lower()) not in ("", "identity")]
    if not names:
        return wire
    if len(names) > 1:
        raise UnacceptableBody("the body is encoded more than once")
    if names[0] not in ("gzip", "x-gzip", "deflate"):
        raise UnacceptableBody("the body has an encoding that was not asked for")
    if not wire:
        raise BrokenBody("the body is empty, although an encoding is announced")
    bits = zlib.MAX_WBITS | 16 if names[0] != "deflate" else zlib.MAX_WBITS if wire[0] & 15 == 8 else -zlib.MAX_WBITS
    plain, rest, members = b"", wire, 0
    while rest:  # gzip allows several members, one after the other
        members += 1
        if members > GZIP_MEMBERS_MAX:
            raise UnacceptableBody("the body has too many parts")
        decoder = zlib.decompressobj(bits)
        try:
            plain += decoder.decompress(rest, most + 1 - len(plain))
        except zlib.error:
            raise BrokenBody("the body is not in the announced encoding") from None
        if len(plain) > most:
            raise UnacceptableBody(f"the body is larger than {most} bytes, decoded")
        if not decoder.eof:
            raise BrokenBody("the body is cut off")
        rest = decoder.unused_data
    return plain
