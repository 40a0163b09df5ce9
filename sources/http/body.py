"""Bytes of one answer: within a size, decoded whole or refused.

In: the chunks of a body and its encoding. Out: a body that is neither cut off nor larger than allowed: httpx's own
decoders take a truncated gzip for a whole one, and any size.
"""

from __future__ import annotations

import ssl
import zlib
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from sources.http.retries import BrokenBody

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
