"""Checks of a mapping against the interface and against itself.

In: a mapping. Out: every mistake with the key where it is, so that all of them are reported at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from math import isfinite
from typing import Final

import pyarrow as pa

from orderbridge.pipelines.mapping.cells import Reading, is_date_form
from orderbridge.pipelines.mapping.field_paths import FieldPath, resolve
from orderbridge.pipelines.mapping.model import Formats, MappedColumn, Mapping
from orderbridge.sources.kinds import ADDED_FIELDS, KINDS, PASSWORD
from orderbridge.transforms.frames import TEXT

Mistake = tuple[tuple[str, ...], str]
"""The key in the file, outermost table first, and the message."""
_NEEDS_COLUMN: Final = (
    "a password must come from a column or be generated; it cannot be a constant or a lookup"
)


def mistakes(mapping: Mapping) -> list[Mistake]:
    """All mistakes of a mapping."""
    return [
        *_formats(mapping),
        *_targets(mapping),
        *_columns(mapping),
        *_constants(mapping),
        *_rows(mapping),
    ]


def _used_fields(mapping: Mapping) -> Iterator[tuple[str, tuple[str, ...], str]]:
    """Each field that the mapping fills: its path, the key in the file, and a description of what fills it."""
    for name, column in mapping.columns.items():
        for path in column.paths:
            yield path, ("columns", name), f"column {name!r}"
    for path in mapping.constants:
        yield path, ("constants", path), "a constant"
    for lookup in mapping.lookups:
        for path in lookup.give:
            yield path, ("lookup", "give"), f"lookup {lookup.file}"


def _targets(mapping: Mapping) -> Iterator[Mistake]:
    filled: dict[str, str] = {}
    for path, key, source in _used_fields(mapping):
        target = resolve(mapping.kind, path)
        if isinstance(target, str):
            yield key, f"{path!r} {target}"
            continue
        if path in filled and not target.is_each:
            yield key, f"{path} is filled twice: by {filled[path]} and by {source}"
        filled.setdefault(path, source)
        if target.is_each and not mapping.group:
            yield (
                key,
                f"{path}: [+] takes one item per line of a group; add a [group] table or use a position",
            )
        if path == PASSWORD and key[0] != "columns":
            yield key, _NEEDS_COLUMN
    arrays = {path.partition("[")[0] for path in filled if "[+]" in path}
    for path in filled:
        if "[+]" not in path and path.partition("[")[0] in arrays:
            yield (
                ("columns",),
                f"{path}: the same list already takes one item per line ([+]); use one or the other",
            )


def _columns(mapping: Mapping) -> Iterator[Mistake]:
    for name, column in mapping.columns.items():
        key = ("columns", name)
        if column.field is None:
            if column != MappedColumn(name, None):
                yield key, f"{name!r} is ignored; remove its other keys"
            continue
        if column.send is not None and (column.change or not KINDS[mapping.kind].is_update):
            yield (
                key,
                f"{name!r}: only values of updates that replace others are sent always or when changed",
            )
        for path in column.paths:
            target = resolve(mapping.kind, path)
            if not isinstance(target, str):
                for message in _column(column, target):
                    yield key, f"{name!r}: {message}"
        if column.default is not None and column.blank != "omit":
            yield key, f'{name!r} has both a default and blank = "{column.blank}"; remove one'
    if mapping.generate_passwords is None:
        return
    if mapping.password_column is not None:
        yield (
            ("passwords", "make"),
            "a column is already mapped to password; map it or generate passwords, not both",
        )
    if not KINDS[mapping.kind].has_login:
        yield ("passwords", "make"), f"{mapping.kind} have no passwords"


def _column(column: MappedColumn, target: FieldPath) -> Iterator[str]:
    kind, formats = target.field.type, column.formats
    if target.path == PASSWORD and (column.also or column.field != PASSWORD):
        yield "a password column cannot fill other fields"
    if target.path == PASSWORD and column.default is not None:
        yield _NEEDS_COLUMN
    is_clearable = (
        kind == "text" and not target.field.min_length and not target.is_item and target.steps
    )
    if column.blank == "clear" and (not is_clearable or target.pair):
        yield f'the interface cannot clear {target.path}; use blank = "omit" or "reject"'
    if column.change and target.path not in ADDED_FIELDS:
        yield f"only {' and '.join(ADDED_FIELDS)} can be changes"
    if column.change and column.default:
        yield "the default of changes can only be 0: a change by 0 is not sent"
    numeric = (formats.decimal, formats.thousands, formats.currency)
    if any(one is not None for one in numeric) and kind not in ("number", "integer"):
        yield f"{target.path} is not a number; remove decimal, thousands and currency"
    if (formats.yes is not None or formats.no is not None) and kind != "boolean":
        yield f"{target.path} is not true or false; remove yes and no"
    if formats.date is not None and kind != "date":
        yield f"{target.path} is not a date; remove date"
    if column.default is not None and target.path != PASSWORD:
        yield from _value(target, column.default, "default")


def _formats(mapping: Mapping) -> Iterator[Mistake]:
    yield from ((("numbers",), message) for message in _marks(mapping.formats))
    yield from ((("booleans",), message) for message in _boolean_words(mapping.formats))
    if mapping.formats.date is not None and not is_date_form(mapping.formats.date):
        yield ("dates", "format"), "a date format has DD, MM and YYYY once each, e.g. DD/MM/YYYY"
    for name, column in mapping.columns.items():
        for message in (*_marks(column.formats), *_boolean_words(column.formats)):
            yield ("columns", name), f"{name!r}: {message}"


def _marks(formats: Formats) -> Iterator[str]:
    if formats.decimal is not None and formats.decimal not in (",", "."):
        yield 'decimal must be "," or "."'
    if formats.thousands is not None and formats.thousands not in ("", ",", ".", " ", "'", "’"):
        yield 'thousands must be ".", ",", " ", "\'", or "" for none'
    if formats.decimal is not None and formats.decimal == formats.thousands:
        yield "decimal and thousands are the same mark"
    if formats.decimal is None and formats.thousands is not None:
        yield "thousands is set without decimal; set both"


def _boolean_words(formats: Formats) -> Iterator[str]:
    if (formats.yes is None) != (formats.no is None):
        yield "set both yes and no"
    both = {word.casefold() for word in formats.yes or ()} & {
        word.casefold() for word in formats.no or ()
    }
    if both:
        yield f"{min(both)!r} is listed under both yes and no"


def _constants(mapping: Mapping) -> Iterator[Mistake]:
    for path, value in mapping.constants.items():
        target = resolve(mapping.kind, path)
        if not isinstance(target, str):
            yield from (
                (("constants", path), f"{path}: {message}")
                for message in _value(target, value, "constant")
            )


def _value(target: FieldPath, value: object, name: str) -> Iterator[str]:
    expected = {
        "text": "a text in quotes",
        "identifier": "an id as the platform writes it, without leading zeros and spaces",
        "boolean": "true or false",
        "integer": "a whole number",
    }
    kind = target.field.type
    is_boolean, cells = isinstance(value, bool), pa.array([str(value)], TEXT)
    is_as_read = Reading(target.value_kind).read(cells)[0].equals(cells)
    is_valid = {
        "boolean": is_boolean,
        "integer": isinstance(value, int) and not is_boolean,
        "number": isinstance(value, int | float) and not is_boolean and isfinite(value),
        "identifier": isinstance(value, str | int) and not is_boolean and is_as_read,
    }.get(kind, isinstance(value, str))
    if not is_valid:
        yield f"the {name} must be {expected.get(kind, f'a {kind}')}"


def _rows(mapping: Mapping) -> Iterator[Mistake]:
    if mapping.fill_within and not mapping.fill_down:
        yield (
            ("rows", "fill_within"),
            "fill_within is set without fill_down; name the columns to fill",
        )
    if mapping.password_column in (*mapping.fill_down, *mapping.group):
        yield ("rows", "fill_down"), "a password column can be neither filled down nor grouped by"
