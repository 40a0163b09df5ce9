"""How the ledger identifies records without storing personal data: normalized keys, hashed.

In: key fields of a customer, or path and body of a create without keys. Out: hashes that the same record has in common.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Mapping, Sequence
from typing import Any, Final

import msgspec

_PUNCTUATION: Final = re.compile(r"[\W_]+")
_LEADING_ZEROS: Final = re.compile(r"(?<![0-9])0+(?=[^_])")


def comparable(name: str, value: str) -> str:
    """A field of a customer as it is compared: the same rule as that of columns in `transforms.upserts.decisions`."""
    from orderbridge.transforms.values.texts import (
        one_email_key,  # not needed by a pull, and imports pandas
    )

    return one_email_key(value) if name == "email" else value.strip()


def search_key(name: str, value: str) -> str:
    """A key as customers are searched by it: e-mail addresses that look alike are one, as in a plan."""
    from orderbridge.transforms.values.texts import one_lookalike_key

    return one_lookalike_key(value) if name == "email" else value.strip()


def loose_code(value: str) -> str:
    """A code regardless of case, width, punctuation and zeros before a number: how a platform may write it back."""
    text = unicodedata.normalize("NFKC", value).casefold()
    text = _PUNCTUATION.sub("", text)
    return _LEADING_ZEROS.sub("", text)


def key_hashes(host: str, name: str, value: str) -> tuple[bytes, ...]:
    """Hashes of a key field; two operations of a host that write the same record share one. A blank one has none.

    Claims of orderbridge 0.1 have the hash of an older form of e-mail addresses, and that of a confirmed create never
    ends: an address whose older form differs (none in ASCII) has both hashes.
    """
    forms = [search_key(name, value)]
    if name == "email":
        forms.append(value.strip().casefold())
    return tuple(_hash(host, name, form) for form in dict.fromkeys(forms) if form)


def spelling_hashes(host: str, name: str, value: str) -> tuple[bytes, ...]:
    """Hashes of a code however the platform spells it; of an e-mail address none. See `spelling_host`."""
    loose = loose_code(value) if name != "email" else ""
    return (_hash(host, name, loose),) if loose else ()


def spelling_host(host: str) -> str:
    """The host under which a ledger has such hashes: they find a record, and claim none, since codes may be alike."""
    return f"{host} in any spelling"


def _hash(*parts: str) -> bytes:
    return hashlib.sha256("\0".join(parts).encode()).digest()


def body_hash(path: str, body: Mapping[str, Any]) -> bytes:
    """Hash of a create that has no key field: of its path and body, regardless of the order of fields."""
    return hashlib.sha256(
        path.encode() + b"\0" + msgspec.json.encode(body, order="sorted")
    ).digest()


def record_hash(path: str, body: Mapping[str, Any], unique_fields: Sequence[str]) -> bytes:
    """Hash of what identifies a create that has no key field: its path and the first unique field given."""
    name = next((name for name in unique_fields if name in body), "")
    return body_hash(f"{path} {name}", {name: body.get(name)})


def salted(salt: bytes, key: bytes) -> bytes:
    """A hash as the ledger stores it: e-mails cannot be guessed from it without the salt of the ledger."""
    return hashlib.blake2b(key, key=salt, digest_size=32).digest()
