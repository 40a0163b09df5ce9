"""Responses and their bodies: what a read returns, what became of a write, and bodies joined and decoded within limits.

In: the chunks of a body, its encoding, limits. Out: the body. It is decoded here: httpx's own decoders accept a
truncated gzip as whole, at any size.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal

from orderbridge.sources.errors import HttpError
from orderbridge.sources.http.failures import BrokenBody, Failure, UnacceptableBody

_ENCODINGS: Final = ("gzip", "x-gzip", "deflate")
_NOT_ENCODED: Final = ("", "identity", "utf-8", "utf8")
"""Names in `Content-Encoding` that are none: some platforms write the charset there."""
GZIP_MEMBERS_MAX: Final = 100
"""Gzip members of one body: each costs a copy of the rest, and an empty one has 20 bytes."""


@dataclass(frozen=True, slots=True)
class WriteOutcome:
    """What happened to a write (docs/exactly-once.md).

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


@dataclass(slots=True)
class Response:
    """A response as received: `body` is what arrived whole, decoded; otherwise `broken` holds what was wrong with it.

    Attributes:
        settles_at_once: the platform says that no write takes effect after its response, as the stand-in does.
        elapsed_s: of this request alone.
        attempts: requests that a read took.
    """

    status: int
    body: bytes = field(default=b"", repr=False)
    content_type: str = ""
    location: str = field(default="", repr=False)
    retry_after: str | None = None
    broken: Failure | None = None
    settles_at_once: bool = False
    elapsed_s: float = 0.0
    attempts: int = 1

    @property
    def is_success(self) -> bool:
        """Any 2xx."""
        return 200 <= self.status <= 299

    @property
    def is_web_page(self) -> bool:
        """Whether the body is a page for people, not JSON."""
        return self.content_type == "text/html" or self.body.lstrip()[:1] == b"<"


@dataclass(frozen=True, slots=True)
class Caps:
    """The largest body, as transferred and decoded."""

    wire_bytes: int = 256 * 2**20
    plain_bytes: int = 256 * 2**20


def read_wire(chunks: Iterable[bytes], most: int) -> bytes:
    """Joins all chunks. Raises UnacceptableBody over `most` bytes."""
    parts = []
    size = 0
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
    name = _encoding_name(encoding)
    if not name:
        return wire
    if not wire:
        raise BrokenBody("the body is empty, although an encoding is announced")
    bits = _window_bits(name, wire)
    plain = b""
    rest = wire
    members = 0
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
        is_padding = rest[:1] == b"\0" and not rest.strip(b"\0")
        if is_padding:  # up to the size of a block; gzip(1) ignores it too
            break
    return plain


def _encoding_name(encoding: str | None) -> str:
    """The encoding of a body; empty where it is not encoded. Raises UnacceptableBody."""
    names = [part.strip().lower() for part in (encoding or "").split(",")]
    encodings = [name for name in names if name not in _NOT_ENCODED]
    if len(encodings) > 1:
        raise UnacceptableBody("the body is encoded more than once")
    if encodings and encodings[0] not in _ENCODINGS:
        raise UnacceptableBody("the body has an encoding that was not asked for")
    return "".join(encodings)


def _window_bits(name: str, wire: bytes) -> int:
    """Zlib's parameter for an encoding; deflate comes with or without zlib's header."""
    if name != "deflate":
        return zlib.MAX_WBITS | 16
    return zlib.MAX_WBITS if wire[0] & 15 == 8 else -zlib.MAX_WBITS
