"""One row at a time: reads a row that a columnar check refused, exactly, or says why it cannot be loaded.

In: the bytes of a page's row array. Out: each row's bytes, its values with numbers as they were written, or a reason
that names the field and the JSON types and never a value. This is the slow path of `sources.decode.documented` and
`sources.decode.undocumented`; what it accepts and refuses is the meaning of both paths.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from hashlib import sha256
from typing import TYPE_CHECKING, Final, NoReturn

import msgspec

from sources.errors import ContractBroken

if TYPE_CHECKING:
    import pyarrow as pa

DIGITS_MAX: Final = 1000
"""A number whose plain form has more digits is refused: `1e999999999` would fill the memory."""
INT64_MIN: Final = -(2**63)
INT64_MAX: Final = 2**63 - 1

_BLANK: Final = " \t\r\n"
_ROWS: Final = msgspec.json.Decoder(list[msgspec.Raw])
_OBJECT: Final = msgspec.json.Decoder(dict[str, msgspec.Raw])


@dataclass(frozen=True, slots=True)
class Page:
    """One page's rows as they came: `number` is its ordinal in the sweep, from 1; `rows` a JSON array."""

    number: int
    rows: bytes


@dataclass(frozen=True, slots=True)
class QuarantinedRow:
    """A row that is not loaded.

    Attributes:
        page, position: where it came, both from 1.
        reason: field and types; never a value of the row.
        row_hash: SHA-256 of the row's bytes, as hexadecimal text.
        row: the bytes themselves, for the private file alone.
        key: the canonical identifier, where it could be read.
    """

    page: int
    position: int
    reason: str
    row_hash: str
    row: bytes = field(repr=False)
    key: str | None


@dataclass(frozen=True, slots=True)
class Decoded:
    """What some pages held.

    Attributes:
        tables: by name, `customers` and its child tables; each with `_page` and `_position` of the (parent) row.
        quarantined: the rows that are not in them, in the order of coming.
        observations: how often what the interface does not show, or rules out, was met: (what, value seen) → count.
    """

    tables: dict[str, pa.Table]
    quarantined: list[QuarantinedRow]
    observations: Counter[tuple[str, str]]


class RowRefused(Exception):
    """A row cannot be loaded; the text is the reason."""


class Number(str):
    """A JSON number, as it was written."""

    __slots__ = ()


def split(page: Page) -> list[bytes]:
    """The bytes of each row of a page.

    Raises:
        ContractBroken: the bytes are no JSON array.
    """
    try:
        return [bytes(row) for row in _ROWS.decode(page.rows)]
    except (msgspec.MsgspecError, RecursionError):
        return _split_leniently(page)


def _split_leniently(page: Page) -> list[bytes]:
    """As `split`, over what the strict reader refuses (lone surrogates, NaN): one such row must not cost its page."""
    text = page.rows.decode("utf-8", "surrogateescape")
    try:
        return [text[start:end].encode("utf-8", "surrogateescape") for start, end in _spans(text)]
    except (ValueError, IndexError, RecursionError) as error:
        # The cause is not chained: its text may quote the page.
        raise ContractBroken(f"page {page.number}: the rows are no JSON array ({type(error).__name__})") from None


def _spans(text: str) -> list[tuple[int, int]]:
    """Where the items of a JSON array begin and end. Raises ValueError or IndexError where it is none."""
    scan = json.JSONDecoder().raw_decode
    spans: list[tuple[int, int]] = []
    at = _skip(text, 0)
    if text[at] != "[":
        raise ValueError("no array")
    at = _skip(text, at + 1)
    while text[at] != "]":
        _, end = scan(text, at)
        spans.append((at, end))
        at = _skip(text, end)
        if text[at] == ",":
            at = _skip(text, at + 1)
            if text[at] == "]":
                raise ValueError("a comma too many")
        elif text[at] != "]":
            raise ValueError("no comma")
    if text[at + 1 :].strip(_BLANK):
        raise ValueError("trailing characters")
    return spans


def _skip(text: str, at: int) -> int:
    while text[at] in _BLANK:
        at += 1
    return at


def fields(data: bytes) -> dict[str, bytes]:
    """An object's fields, each value as its bytes. For objects that `parse` has accepted."""
    return {name: bytes(value) for name, value in _OBJECT.decode(data).items()}


def fields_beside(values: dict[str, msgspec.Raw] | dict[str, bytes], known: frozenset[str]) -> str | None:
    """JSON text of the fields not in `known`, by name, values as they came; None where there are none."""
    if values.keys() <= known:
        return None
    parts = [
        b"%b:%b" % (msgspec.json.encode(name), bytes(value))
        for name, value in sorted(values.items())
        if name not in known
    ]
    return (b"{" + b",".join(parts) + b"}").decode()


def parse(data: bytes) -> dict[str, object]:
    """A row's values: None, bool, str, `Number`, dict or list.

    Raises:
        RowRefused: no object, no UTF-8, a name twice in one object, NaN or Infinity, a lone surrogate, bad nesting.
    """
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise RowRefused("row: not UTF-8") from None
    try:
        row: object = json.loads(
            text, object_pairs_hook=_object, parse_int=Number, parse_float=Number, parse_constant=_constant
        )
        if "\\u" in text:
            _surrogates(row)
    except ValueError:
        raise RowRefused("row: not JSON") from None
    except RecursionError:
        raise RowRefused("row: nested too deeply") from None
    if not isinstance(row, dict):
        raise RowRefused(f"row: expected object, found {kind(row)}")
    return row


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    values = dict(pairs)
    if len(values) != len(pairs):
        raise RowRefused("row: a field comes twice in one object")
    return values


def _constant(name: str) -> NoReturn:
    raise RowRefused("row: NaN or Infinity, which JSON does not know")


def _surrogates(value: object) -> None:
    if isinstance(value, str):
        try:
            value.encode("utf-8")
        except UnicodeEncodeError:
            raise RowRefused("row: a lone surrogate") from None
    elif isinstance(value, dict):
        for name, item in value.items():
            _surrogates(name)
            _surrogates(item)
    elif isinstance(value, list):
        for item in value:
            _surrogates(item)


def kind(value: object) -> str:
    """The JSON type of a parsed value, in words."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, Number):
        return "number"
    if isinstance(value, str):
        return "string"
    return "array" if isinstance(value, list) else "object"


def exact(number: Number) -> Decimal | None:
    """The number's value; None where its plain form would be longer than `DIGITS_MAX`."""
    try:
        value = Decimal(number)
    except InvalidOperation:
        return None
    _, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int) or len(digits) + abs(exponent) > DIGITS_MAX:
        return None
    return value


def canonical(number: Number) -> str | None:
    """A number as plain text: `1` for 1.0, `1000` for 1e3, `1.5` for 1.50. None where it is too long."""
    value = exact(number)
    if value is None:
        return None
    if value == 0:
        return "0"
    text = format(value, "f")
    return text.rstrip("0").rstrip(".") if "." in text else text


def integer(number: Number) -> int | None:
    """The number as an integer, `1.0` too; None where it has a fraction or does not fit 64 bits."""
    value = exact(number)
    if value is None or value != value.to_integral_value():
        return None
    whole = int(value)
    return whole if INT64_MIN <= whole <= INT64_MAX else None


def quarantine(page: int, position: int, row: bytes, reason: str, key: str | None) -> QuarantinedRow:
    """A row, put aside."""
    return QuarantinedRow(page, position, reason, sha256(row).hexdigest(), row, key)
