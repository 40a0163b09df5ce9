"""One row at a time: read exactly, or rejected by a reason that names the field and its JSON type, never a value.

In: the bytes of a page's row array. Out: the bytes of each row and its values, with numbers as they were written. This
is the slow path of `sources.decode.documented` and `sources.decode.undocumented` and defines what both accept.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass, field
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from orderbridge.sources.decode.json_numbers import Number, canonical
from orderbridge.sources.decode.json_scan import array_items, depth
from orderbridge.sources.errors import ContractBroken

if TYPE_CHECKING:
    import pyarrow as pa

DEPTH_MAX: Final = 100
"""Levels of arrays and objects in a row: more than any record needs, fewer than any parser allows."""
_KINDS: Final = (
    (type(None), "null"),
    (bool, "boolean"),
    (Number, "number"),
    (str, "string"),
    (list, "array"),
)
_rows_decoder: Final = msgspec.json.Decoder(list[msgspec.Raw])
_object_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
MASK: Final = "***"
"""What stands for a password of a customer, which a platform may list."""
_SECRET: Final = re.compile(
    "(?i)pass?word|passwd|passwort|passphrase|(?<![a-z])(?:pwd|senha)|contrase|mot_?de_?passe"
)
_SECRET_PARTS: Final = ("pass", "pwd", "senha", "contrase")
"""One of these is in each name of a secret: to look for them is far faster than the pattern."""
SECRETS: Final = f"(?i){'|'.join(_SECRET_PARTS)}"
"""What a column of JSON text with a secret matches, for Arrow."""
_MASKED: Final = msgspec.Raw(msgspec.json.encode(MASK))
_SAYS_NOTHING: Final = (b"null", b"true", b"false", b'""', b"[]", b"{}")
_encoder: Final = msgspec.json.Encoder()
_sorting_encoder: Final = msgspec.json.Encoder(order="sorted")


@dataclass(frozen=True, slots=True)
class Page:
    """The rows of a page: `number` is its place in the sweep, `rows` a JSON array."""

    number: int
    rows: bytes


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """A row that cannot be loaded.

    Attributes:
        page, position: where it was, both from 1.
        reason: field and types; never a value of the row.
        row_hash: SHA-256 of the row's bytes, in hexadecimal.
        row: the bytes, for the private file only.
        key: the canonical identifier, if it can be read.
        is_id_duplicate: whether it could be loaded if a different row of the list had not the same identifier.
    """

    page: int
    position: int
    reason: str
    row_hash: str
    row: bytes = field(repr=False)
    key: str | None
    is_id_duplicate: bool = False


@dataclass(frozen=True, slots=True)
class Decoded:
    """Decoded pages.

    Attributes:
        tables: by name: the record's own and its child tables, each with `_page` and `_position` of the (parent) row.
        quarantined: the rows that are in no table, in page order.
        observations: (what, value) → count, for what the interface does not show or does not allow.
    """

    tables: dict[str, pa.Table]
    quarantined: list[QuarantinedRow]
    observations: Counter[tuple[str, str]]


class InvalidRow(Exception):
    """A row cannot be loaded; the text is the reason."""


def split(page: Page) -> list[bytes]:
    """The bytes of each row of a page.

    Raises:
        ContractBroken: the bytes are not a JSON array.
    """
    try:
        return [bytes(row) for row in _rows_decoder.decode(page.rows)]
    except (msgspec.MsgspecError, RecursionError):
        try:
            return array_items(page.rows)
        except ValueError as error:
            raise ContractBroken(
                f"page {page.number}: the rows are not a JSON array: {error}"
            ) from None


def read_rows(
    pages: Iterable[Page],
    key_field: str,
    take: Callable[[dict[str, object], bytes, str, tuple[int, int]], None],
) -> list[QuarantinedRow]:
    """Gives `take` the values, bytes, identifier and place (page, position) of each row.

    Returns:
        The rows that are not valid, or for which `take` raises InvalidRow.

    Raises:
        ContractBroken: a page is not a JSON array.
    """
    quarantined = []
    for page in pages:
        for position, data in enumerate(split(page), 1):
            key: str | None = None
            try:
                row = parse(data)
                key = identifier(row, key_field)
                take(row, data, key, (page.number, position))
            except InvalidRow as reason:
                quarantined.append(quarantine((page.number, position), data, reason, key))
    return quarantined


def fields(data: bytes) -> dict[str, msgspec.Raw]:
    """The fields of an object that `parse` accepts, each value as it is written."""
    return _object_decoder.decode(data)


def is_secret(name: str) -> bool:
    """Whether a field is a password of a customer, by its name."""
    return _SECRET.search(name) is not None


def mask_secrets(data: bytes) -> bytes:
    """JSON text without the passwords in it, at any level; other values are unchanged."""
    lower = data.lower()
    if not any(part.encode() in lower for part in _SECRET_PARTS):
        return data
    return _encoder.encode(_without_secrets(msgspec.Raw(data)))


def _without_secrets(value: msgspec.Raw) -> object:
    data = bytes(value)
    if data.startswith(b"{"):
        return {
            name: masked(inner) if is_secret(name) else _without_secrets(inner)
            for name, inner in fields(data).items()
        }
    if data.startswith(b"["):
        return [_without_secrets(inner) for inner in _rows_decoder.decode(data)]
    return value


def masked(value: bytes | msgspec.Raw) -> msgspec.Raw:
    """JSON text of a secret without what it says; null, booleans and empty values say nothing."""
    return msgspec.Raw(value) if bytes(value) in _SAYS_NOTHING else _MASKED


def text_of_fields(values: Mapping[str, msgspec.Raw], names: Set[str]) -> bytes:
    """JSON text of the fields with these names, sorted by name, values unchanged but for `mask_secrets`."""
    return mask_secrets(_sorting_encoder.encode({name: values[name] for name in names}))


def parse(data: bytes) -> dict[str, object]:
    """The values of a row: None, bool, str, `Number`, dict or list.

    Raises:
        InvalidRow: not an object, not UTF-8, not JSON, a repeated name, NaN or Infinity, a lone surrogate, or more than
            `DEPTH_MAX` levels.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InvalidRow("row: not UTF-8") from None
    if data.count(b"[") + data.count(b"{") > DEPTH_MAX and depth(data) > DEPTH_MAX:
        raise InvalidRow(f"row: nested more than {DEPTH_MAX} levels deep")
    try:
        row: object = _row_decoder.decode(text)
    except ValueError:
        raise InvalidRow("row: not JSON") from None
    if "\\u" in text:
        try:
            json.dumps(row, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise InvalidRow("row: a lone surrogate") from None
    if not isinstance(row, dict):
        raise InvalidRow(f"row: expected object, found {kind(row)}")
    return row


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise InvalidRow("row: a field occurs twice in one object")
    return values


def _constant(name: str) -> NoReturn:
    raise InvalidRow("row: NaN or Infinity, which JSON does not allow")


_row_decoder: Final = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=Number, parse_float=Number, parse_constant=_constant
)


def check_nul(value: object, path: str = "row") -> None:
    """Raises InvalidRow if a string holds a NUL: databases other than DuckDB fail the whole load."""
    if isinstance(value, str) and "\0" in value:
        raise InvalidRow(f"{path}: a NUL character")
    if isinstance(value, dict):
        for name, inner in value.items():
            check_nul(name, path)
            check_nul(inner, name if path == "row" else f"{path}.{name}")
    elif isinstance(value, list):
        for inner in value:
            check_nul(inner, f"{path}[]")


def kind(value: object) -> str:
    """The JSON type of a parsed value."""
    return next((name for kind, name in _KINDS if isinstance(value, kind)), "object")


def identifier(row: dict[str, object], name: str) -> str:
    """The identifier of a row, canonical.

    Raises:
        InvalidRow: absent, null, blank, too long, or neither a string nor a number.
    """
    value = row.get(name)
    if value is None or (isinstance(value, str) and not value.strip()):
        found = "blank string" if value is not None else "null" if name in row else "nothing"
        raise InvalidRow(f"{name}: expected an identifier, found {found}")
    text = canonical(value) if isinstance(value, Number) else value
    if text is None:
        raise InvalidRow(f"{name}: a number too long for an identifier")
    if not isinstance(text, str):
        raise InvalidRow(f"{name}: expected identifier, found {kind(value)}")
    return text


def quarantine(
    place: tuple[int, int], row: bytes, reason: InvalidRow, key: str | None
) -> QuarantinedRow:
    """The record of a row that cannot be loaded; `place` is its page and position."""
    return QuarantinedRow(*place, str(reason), sha256(row).hexdigest(), row, key)
