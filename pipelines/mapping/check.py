"""What a mapping says, held against the interface and against itself.

In: a mapping. Out: each mistake with the key at which it stands, so that all are told at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from pipelines.mapping.model import Formats, MappedColumn, Mapping
from pipelines.mapping.places import Place, place
from sources.kinds import ADDED_FIELDS, KINDS, PASSWORD
from transforms.upserts.cells import is_date_form

Mistake = tuple[tuple[str, ...], str]
_PASSED_AS_CONSTANT: Final = "a password comes from a column, or is made; it is never one for all, nor looked up"


def mistakes(mapping: Mapping) -> list[Mistake]:
    """All that is wrong, with the keys under which it stands in the file."""
    return [*_formats(mapping), *_places(mapping), *_columns(mapping), *_constants(mapping), *_rows(mapping)]


def used_fields(mapping: Mapping) -> list[tuple[str, tuple[str, ...], str]]:
    """Each field that the mapping fills: its path, the key in the file, and what fills it, in words."""
    used: list[tuple[str, tuple[str, ...], str]] = []
    for name, column in mapping.columns.items():
        for path in (column.field, *column.also):
            if path is not None:
                used.append((path, ("columns", name), f"the column {name!r}"))
    used += [(path, ("constants", path), "a constant") for path in mapping.constants]
    for lookup in mapping.lookups:
        used += [(path, ("lookup", "give"), f"a lookup in {lookup.file}") for path in lookup.give]
    return used


def _places(mapping: Mapping) -> Iterator[Mistake]:
    seen: dict[str, str] = {}
    for path, key, source in used_fields(mapping):
        found = place(mapping.kind, path)
        if isinstance(found, str):
            yield key, f"{path!r} {found}"
            continue
        if path in seen and not found.is_each:
            yield key, f"{path} is filled twice: by {seen[path]} and by {source}"
        seen.setdefault(path, source)
        if found.is_each and not mapping.group:
            yield key, f"{path}: [+] takes an item from each line of a group, and there is no [group]"
        if path == PASSWORD and key[0] != "columns":
            yield key, _PASSED_AS_CONSTANT
    arrays = {path.partition("[")[0] for path in seen if "[+]" in path}
    for path in seen:
        if "[+]" not in path and path.partition("[")[0] in arrays:
            yield ("columns",), f"{path}: the list takes an item from each line already"


def _columns(mapping: Mapping) -> Iterator[Mistake]:
    for name, column in mapping.columns.items():
        key = ("columns", name)
        if column.field is None:
            if column != MappedColumn(name, None):
                yield key, f"{name!r} is ignored, so that nothing else need be said of it"
            continue
        for path in (column.field, *column.also):
            found = place(mapping.kind, path)
            if not isinstance(found, str):
                for words in _column(column, found):
                    yield key, f"{name!r}: {words}"
        if column.default is not None and column.blank != "omit":
            yield key, f"{name!r}: an empty cell has a default, so that it cannot be told to {column.blank} it too"
    if mapping.make is not None and any(
        PASSWORD in (column.field, *column.also) for column in mapping.columns.values()
    ):
        yield ("passwords", "make"), "passwords are in a column already: map it, or make them, not both"
    if mapping.make is not None and not KINDS[mapping.kind].has_login:
        yield ("passwords", "make"), f"{mapping.kind} have no passwords"


def _column(column: MappedColumn, found: Place) -> Iterator[str]:
    kind = found.field.type
    if found.path == PASSWORD and (column.also or column.field != PASSWORD):
        yield "a column of passwords is nothing else"
    if found.path == PASSWORD and column.default is not None:
        yield _PASSED_AS_CONSTANT
    if column.blank == "clear" and (
        kind != "text" or found.field.min_length or found.is_item or not found.steps or found.pair
    ):
        yield f"the interface shows no way to empty {found.path}: leave it out, or reject the row"
    if column.change and found.path not in ADDED_FIELDS:
        yield f"only {' and '.join(ADDED_FIELDS)} can be changes"
    told = column.formats
    if (told.decimal is not None or told.thousands is not None) and kind not in ("number", "integer"):
        yield f"{found.path} is no number, so that it has no decimal and thousands"
    if (told.yes is not None or told.no is not None) and kind != "boolean":
        yield f"{found.path} is not true or false, so that it has no yes and no"
    if told.date is not None and kind != "date":
        yield f"{found.path} is no date"
    if column.default is not None and found.path != PASSWORD:
        yield from _value(found, column.default, "default")


def _formats(mapping: Mapping) -> Iterator[Mistake]:
    yield from ((("numbers",), words) for words in _marks(mapping.formats))
    yield from ((("booleans",), words) for words in _words(mapping.formats))
    if mapping.formats.date is not None and not is_date_form(mapping.formats.date):
        yield ("dates", "format"), "a date's format has DD, MM and YYYY once each, as in DD/MM/YYYY"
    for name, column in mapping.columns.items():
        for words in (*_marks(column.formats), *_words(column.formats)):
            yield ("columns", name), f"{name!r}: {words}"


def _marks(formats: Formats) -> Iterator[str]:
    if formats.decimal is not None and formats.decimal not in (",", "."):
        yield 'decimal is "," or "."'
    if formats.thousands is not None and formats.thousands not in ("", ",", ".", " ", "'", "’"):
        yield 'thousands is ".", ",", " ", "\'" or "" for none'
    if formats.decimal is not None and formats.decimal == formats.thousands:
        yield "decimal and thousands are the same mark"
    if formats.decimal is None and formats.thousands is not None:
        yield "thousands is told, and decimal is not: tell both"


def _words(formats: Formats) -> Iterator[str]:
    if (formats.yes is None) != (formats.no is None):
        yield "yes and no are told together"
    both = {word.casefold() for word in formats.yes or ()} & {word.casefold() for word in formats.no or ()}
    if both:
        yield f"{sorted(both)[0]!r} is said to mean yes and no"


def _constants(mapping: Mapping) -> Iterator[Mistake]:
    for path, value in mapping.constants.items():
        found = place(mapping.kind, path)
        if not isinstance(found, str):
            yield from ((("constants", path), f"{path}: {words}") for words in _value(found, value, "constant"))


def _value(found: Place, value: object, what: str) -> Iterator[str]:
    wanted = {"text": "a text", "identifier": "a text or a whole number", "boolean": "true or false"}
    kind = found.field.type
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    fits = {
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": is_number,
        "identifier": isinstance(value, str) or (is_number and isinstance(value, int)),
    }.get(kind, isinstance(value, str))
    if not fits:
        yield f"the {what} should be {wanted.get(kind, f'a {kind}')}"


def _rows(mapping: Mapping) -> Iterator[Mistake]:
    if mapping.fill_within and not mapping.fill_down:
        yield ("rows", "fill_within"), "fill_within is told, and fill_down names no column"
    ignored = {name for name, column in mapping.columns.items() if column.field == PASSWORD}
    for name in (*mapping.fill_down, *mapping.group):
        if name in ignored:
            yield ("rows", "fill_down"), "a password is of its own line: it is neither filled down nor grouped by"
    if mapping.group and mapping.kind not in KINDS:
        yield ("group",), "unknown kind"
