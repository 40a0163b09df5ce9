"""How the ledger identifies records without storing personal data: normalized keys, hashed.

In: key fields of a customer, or path and body of a create without keys. Out: hashes that are equal for the same record.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Container, Mapping, Set, Sized
from typing import Any, Final

import msgspec

_VARIANT: Final = re.compile(r"/products/([^/]+)/variants/([^/]+)")


def normalized(name: str, value: str) -> str:
    """A key as it is compared: without surrounding whitespace, an e-mail regardless of case."""
    text = value.strip()
    return text.casefold() if name == "email" else text


def key_hash(host: str, name: str, value: str) -> bytes:
    """Hash of a key field; equal for two operations of a host that write the same record."""
    return hashlib.sha256("\0".join((host, name, normalized(name, value))).encode()).digest()


def body_hash(path: str, body: Mapping[str, Any]) -> bytes:
    """Hash of a create that has no key field: of its path and body, regardless of the order of fields."""
    return hashlib.sha256(path.encode() + b"\0" + msgspec.json.encode(body, order="sorted")).digest()


def salted(salt: bytes, key: bytes) -> bytes:
    """A hash as the ledger stores it: e-mails cannot be guessed from it without the salt of the ledger."""
    return hashlib.blake2b(key, key=salt, digest_size=32).digest()


class StoredKeys(Container[bytes], Sized):
    """Keys of a ledger, which tells whether it contains an unsalted hash."""

    def __init__(self, salt: bytes, keys: Set[bytes]) -> None:
        self._salt, self._keys = salt, keys

    def __contains__(self, key: object) -> bool:
        return isinstance(key, bytes) and salted(self._salt, key) in self._keys

    def __len__(self) -> int:
        return len(self._keys)


def variant_ids(path: str) -> tuple[str, str] | None:
    """Product and variant id in the path of a variant update."""
    match = _VARIANT.fullmatch(path)
    return (match[1], match[2]) if match else None
