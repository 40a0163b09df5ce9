"""The bytes of one response: within a size limit, and decoded to their end.

In: the chunks of a body and its encoding. Out: a body that is neither cut off nor larger than allowed: httpx's own
decoders accept a truncated gzip as whole, at any size.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterable
from typing import Final

from sources.http.failures import BrokenBody, UnacceptableBody

MEMBERS_MAX: Final = 100
"""Gzip members of one body: each costs a copy of the rest, and an empty one has 20 bytes."""


def read_wire(chunks: Iterable[bytes], most: int) -> bytes:
    """Joins all chunks. Raises UnacceptableBody over `most` bytes."""
    parts, size = [], 0
    for chunk in chunks:
        size += len(chunk)
        if size > most:
            raise UnacceptableBody(f"the body is larger than {most} bytes")
        parts.append(chunk)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def decode(wire: bytes, encoding: str | None, most: int) -> bytes:
    """Decodes a body.

    Args:
        wire: the body as transferred.
        encoding: the header `Content-Encoding`.
        most: bytes that it may have.

    Raises:
        BrokenBody: cut off, empty, or not in that encoding.
        UnacceptableBody: larger than `most`, encoded more than once, or in another encoding than gzip and deflate.
    """
    names = [name for part in (encoding or "").split(",") if (name := part.strip().lower()) not in ("", "identity")]
    if not names:
        if len(wire) > most:
            raise UnacceptableBody(f"the body is larger than {most} bytes")
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
        if members > MEMBERS_MAX:
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
