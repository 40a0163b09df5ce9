"""Checks of a mapping against the interface and against itself.

In: a mapping. Out: every mistake with the key where it is, so that all of them are reported at once.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
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
_EXPECTED: Final = {
    "text": "a text in quotes",
    "identifier": "an id as the platform writes it, without leading zeros and spaces",
    "boolean": "true or false",
    "integer": "a whole number",
}
"""What a value must be, by the type of its field."""
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
            message = f"{path}: [+] takes one item per line of a group; add a [group] table or use a position"
            yield key, message
        if path == PASSWORD and key[0] != "columns":
            yield key, _NEEDS_COLUMN
    yield from _mixed_lists(filled)


def _mixed_lists(paths: Collection[str]) -> Iterator[Mistake]:
    """Lists that are filled both by position and by line."""
    by_line = {path.partition("[")[0] for path in paths if "[+]" in path}
    for path in paths:
        if "[+]" not in path and path.partition("[")[0] in by_line:
            message = (
                f"{path}: the same list already takes one item per line ([+]); use one or the other"
            )
            yield ("columns",), message


def _columns(mapping: Mapping) -> Iterator[Mistake]:
    is_update = KINDS[mapping.kind].is_update
    for name, column in mapping.columns.items():
        key = ("columns", name)
        if column.field is None:
            if column != MappedColumn(name, None):
                yield key, f"{name!r} is ignored; remove its other keys"
            continue
        if column.send is not None and (column.change or not is_update):
            message = "only values of updates that replace others are sent always or when changed"
            yield key, f"{name!r}: {message}"
        for path in column.paths:
            target = resolve(mapping.kind, path)
            if not isinstance(target, str):
                for message in _column(column, target):
                    yield key, f"{name!r}: {message}"
        if column.default is not None and column.blank != "omit":
            yield key, f'{name!r} has both a default and blank = "{column.blank}"; remove one'
    if mapping.generate_passwords is not None:
        yield from _generated_passwords(mapping)


def _generated_passwords(mapping: Mapping) -> Iterator[Mistake]:
    key = ("passwords", "make")
    if mapping.password_column is not None:
        message = "a column is already mapped to password; map it or generate passwords, not both"
        yield key, message
    if not KINDS[mapping.kind].has_login:
        yield key, f"{mapping.kind} have no passwords"


def _column(column: MappedColumn, target: FieldPath) -> Iterator[str]:
    if target.path == PASSWORD:
        if column.also or column.field != PASSWORD:
            yield "a password column cannot fill other fields"
        if column.default is not None:
            yield _NEEDS_COLUMN
    elif column.default is not None:
        yield from _value(target, column.default, "default")
    if column.blank == "clear" and not _is_clearable(target):
        yield f'the interface cannot clear {target.path}; use blank = "omit" or "reject"'
    if column.change and target.path not in ADDED_FIELDS:
        yield f"only {' and '.join(ADDED_FIELDS)} can be changes"
    if column.change and column.default:
        yield "the default of changes can only be 0: a change by 0 is not sent"
    yield from _unused_formats(column.formats, target)


def _is_clearable(target: FieldPath) -> bool:
    """Whether a field of the body takes an empty text."""
    is_text = target.field.type == "text" and not target.field.min_length
    is_in_body = bool(target.steps) and not target.is_item and not target.pair
    return is_text and is_in_body


def _unused_formats(formats: Formats, target: FieldPath) -> Iterator[str]:
    """Formats that the field has no use for."""
    kind = target.field.type
    is_number = kind in ("number", "integer")
    has_marks = (formats.decimal, formats.thousands, formats.currency) != (None, None, None)
    if has_marks and not is_number:
        yield f"{target.path} is not a number; remove decimal, thousands and currency"
    has_words = (formats.yes, formats.no) != (None, None)
    if has_words and kind != "boolean":
        yield f"{target.path} is not true or false; remove yes and no"
    if formats.date is not None and kind != "date":
        yield f"{target.path} is not a date; remove date"


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
    yes = {word.casefold() for word in formats.yes or ()}
    no = {word.casefold() for word in formats.no or ()}
    both = yes & no
    if both:
        yield f"{min(both)!r} is listed under both yes and no"


def _constants(mapping: Mapping) -> Iterator[Mistake]:
    for path, value in mapping.constants.items():
        target = resolve(mapping.kind, path)
        if isinstance(target, str):
            continue
        for message in _value(target, value, "constant"):
            yield ("constants", path), f"{path}: {message}"


def _value(target: FieldPath, value: object, name: str) -> Iterator[str]:
    kind = target.field.type
    is_boolean = isinstance(value, bool)
    is_whole = isinstance(value, int) and not is_boolean
    if kind == "boolean":
        is_valid = is_boolean
    elif kind == "integer":
        is_valid = is_whole
    elif kind == "number":
        is_valid = is_whole or (isinstance(value, float) and isfinite(value))
    elif kind == "identifier":
        is_valid = (is_whole or isinstance(value, str)) and _is_as_read(target, value)
    else:
        is_valid = isinstance(value, str)
    if not is_valid:
        yield f"the {name} must be {_EXPECTED.get(kind, f'a {kind}')}"


def _is_as_read(target: FieldPath, value: object) -> bool:
    """Whether a value is what a cell with its text would be read as."""
    cells = pa.array([str(value)], TEXT)
    parsed, _ = Reading(target.value_kind).read(cells)
    return bool(parsed.equals(cells))


def _rows(mapping: Mapping) -> Iterator[Mistake]:
    if mapping.fill_within and not mapping.fill_down:
        yield (
            ("rows", "fill_within"),
            "fill_within is set without fill_down; name the columns to fill",
        )
    if mapping.password_column in (*mapping.fill_down, *mapping.group):
        yield ("rows", "fill_down"), "a password column can be neither filled down nor grouped by"
