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
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from orderbridge.sources.contract import INT64_MAX
from orderbridge.sources.errors import ContractBroken

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},"]', re.DOTALL)
_NAME: Final = re.compile(rb'\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*', re.DOTALL)
_VALUE: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"\[\]{},:]+|[\[{].*[\]}]', re.DOTALL)
"""A string, one token, or a container, whose brackets `_members` has matched."""
_CLOSING: Final = {b"[": b"]", b"{": b"}"}
_LEVELS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def array_items(data: bytes) -> list[bytes]:
    """The items of an array, each whatever it is. Raises ValueError if the bytes are not one array of single values."""
    items = _members(data, b"[")
    if not all(map(_VALUE.fullmatch, items)):
        raise ValueError("an item is not a single value")
    return items


def object_members(data: bytes) -> list[tuple[bytes, bytes]]:
    """The names (JSON strings, quoted) and values of an object, repeated names too.

    Raises:
        ValueError: the bytes are not one object, or the value of a member is not a single one.
    """
    members = []
    for member in _members(data, b"{"):
        if not (name := _NAME.match(member)) or not _VALUE.fullmatch(member, name.end()):
            raise ValueError("a member is not a name and a single value")
        members.append((name[1], member[name.end() :]))
    return members


def depth(data: bytes) -> int:
    """Levels of arrays and objects."""
    return max(
        accumulate(_LEVELS.get(token.group(), 0) for token in _TOKEN.finditer(data)), default=0
    )


def _members(data: bytes, opening: bytes) -> list[bytes]:
    """The bytes between the commas of the outermost container.

    Raises:
        ValueError: it is another one, brackets do not match, a member is empty or not separated, or bytes follow it.
    """
    text = data.strip()
    if not text.startswith(opening):
        raise ValueError("not the container")
    cuts = _cuts(text)
    if cuts[-1] != len(text) - 1:
        raise ValueError("not complete")
    members = [text[start + 1 : end].strip() for start, end in pairwise(cuts)]
    if members == [b""]:
        return []
    if not all(members):
        raise ValueError("an empty member")
    return members


def _cuts(text: bytes) -> list[int]:
    """Where the outermost container begins, its commas are, and it ends.

    Raises:
        ValueError: a string does not end, brackets do not match, or a container within it is followed by another.
    """
    expected: list[bytes] = []
    cuts: list[int] = []
    is_closed = False
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if len(mark) > 1:  # a string; what it may follow, its member shows
            continue
        if mark == b'"' or (cuts and not expected):
            raise ValueError("not a single, complete value")
        if is_closed and mark in _CLOSING:
            raise ValueError("a member is not separated")
        if mark in _CLOSING:
            expected.append(_CLOSING[mark])
        elif mark in _LEVELS and expected.pop() != mark:
            raise ValueError("brackets do not match")
        is_comma = mark == b","
        is_closed = not is_comma and mark not in _CLOSING
        if not cuts or not expected or (is_comma and len(expected) == 1):
            cuts.append(token.start())
    if expected:
        raise ValueError("not complete")
    return cuts


if TYPE_CHECKING:
    import pyarrow as pa

DIGITS_MAX: Final = 1000
"""Digits of a number in its plain form: `1e999999999` would fill the memory."""
DEPTH_MAX: Final = 100
"""Levels of arrays and objects in a row: more than any record needs, fewer than any parser allows."""

_rows_decoder: Final = msgspec.json.Decoder(list[msgspec.Raw])
_object_decoder: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])
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


class Number(str):
    """A JSON number, as it was written."""

    __slots__ = ()


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


def text_of_fields(values: Mapping[str, msgspec.Raw], names: Set[str]) -> bytes:
    """JSON text of the fields with these names, sorted by name, values unchanged."""
    return _sorting_encoder.encode({name: values[name] for name in names})


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


_KINDS: Final = (
    (type(None), "null"),
    (bool, "boolean"),
    (Number, "number"),
    (str, "string"),
    (list, "array"),
)


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


def exact(number: Number) -> Decimal | None:
    """The value of a number; None if its plain form is longer than `DIGITS_MAX`."""
    try:
        value = Decimal(number)
    except InvalidOperation:
        return None
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > DIGITS_MAX:
        return None
    return value


def canonical(number: Number) -> str | None:
    """A number in plain form: `1` for 1.0, `1000` for 1e3, `1.5` for 1.50. None if it is too long."""
    value = exact(number)
    if value is None:
        return None
    if value == 0:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def integer(number: Number) -> int | None:
    """A number as an integer, `1.0` too; None if it has a fraction or exceeds 64 bits."""
    value = exact(number)
    if value is None or value != value.to_integral_value():
        return None
    whole = int(value)
    return whole if -INT64_MAX - 1 <= whole <= INT64_MAX else None


def quarantine(
    place: tuple[int, int], row: bytes, reason: InvalidRow, key: str | None
) -> QuarantinedRow:
    """The record of a row that cannot be loaded; `place` is its page and position."""
    return QuarantinedRow(*place, str(reason), sha256(row).hexdigest(), row, key)
