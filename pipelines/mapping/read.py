"""A mapping file, read: TOML in, a checked `Mapping` out, or an error with file, line and cure for each mistake."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from dataclasses import fields
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)
from pydantic import Field as Limits

from pipelines.mapping.check import Mistake, mistakes
from pipelines.mapping.model import Formats, Lookup, MappedColumn, Mapping
from pipelines.mapping.places import nearest
from sources.errors import UsageError
from sources.files import ReadOptions
from sources.kinds import KINDS, KindName

GUIDE: Final = "docs/mapping.md explains every key."
_Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
_Words = Annotated[tuple[StrictStr, ...], Limits(min_length=1)]
_Mark = Annotated[StrictStr, Limits(min_length=1, max_length=1)]
_Thousands = Annotated[StrictStr, Limits(max_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _File(_Strict):
    encoding: StrictStr | None = None
    delimiter: StrictStr | None = None
    quote: StrictStr | None = None
    escape: StrictStr | None = None
    header_row: Annotated[StrictInt, Limits(ge=0)] | None = None
    header_rows: Annotated[StrictInt, Limits(ge=1, le=5)] | None = None
    short_rows: Literal["refuse", "fill"] = "refuse"
    sheet: StrictStr | None = None


class _Numbers(_Strict):
    decimal: _Mark | None = None
    thousands: _Thousands | None = None


class _Dates(_Strict):
    format: StrictStr


class _Booleans(_Strict):
    yes: _Words
    no: _Words


class _Column(_Strict):
    field: StrictStr | None = None
    also: tuple[StrictStr, ...] = ()
    ignore: StrictBool = False
    decimal: _Mark | None = None
    thousands: _Thousands | None = None
    date: StrictStr | None = None
    yes: _Words | None = None
    no: _Words | None = None
    empty: tuple[StrictStr, ...] | None = None
    blank: Literal["omit", "clear", "reject"] = "omit"
    default: _Scalar | None = None
    change: StrictBool = False
    trim: StrictBool = True


def _spelled_out(said: object) -> object:
    return {"field": said} if isinstance(said, str) else said


class _Passwords(_Strict):
    make: Literal["mail", "file"]


class _Group(_Strict):
    by: _Words


class _Rows(_Strict):
    empty: tuple[StrictStr, ...] | None = None
    fill_down: tuple[StrictStr, ...] = ()
    fill_within: tuple[StrictStr, ...] = ()
    skip_blank: tuple[StrictStr, ...] = ()


class _Lookup(_Strict):
    file: Annotated[StrictStr, Limits(min_length=1)]
    match: Annotated[dict[str, StrictStr], Limits(min_length=1)]
    give: Annotated[dict[str, StrictStr], Limits(min_length=1)]


class _Mapping(_Strict):
    kind: KindName
    ignore: tuple[StrictStr, ...] = ()
    file: _File = _File()
    numbers: _Numbers = _Numbers()
    dates: _Dates | None = None
    booleans: _Booleans | None = None
    columns: dict[str, Annotated[_Column, BeforeValidator(_spelled_out)]]
    constants: dict[str, _Scalar] = {}
    passwords: _Passwords | None = None
    group: _Group | None = None
    lookup: tuple[_Lookup, ...] = ()
    rows: _Rows = _Rows()


_TABLES: Final[dict[str, type[BaseModel]]] = {
    "file": _File,
    "numbers": _Numbers,
    "dates": _Dates,
    "booleans": _Booleans,
    "columns": _Column,
    "passwords": _Passwords,
    "group": _Group,
    "lookup": _Lookup,
    "rows": _Rows,
}
_KEY: Final = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""")


def load(path: Path, kind: str | None = None) -> Mapping:
    """Reads a mapping file.

    Args:
        path: of the file.
        kind: what it should be a mapping of; None takes any.

    Raises:
        UsageError: it is no mapping, with the file, the line and what is wrong.
    """
    try:
        text = path.read_bytes().decode("utf-8-sig")
        told = tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "Name a mapping file.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8, as TOML must be", "Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        hint = 'Names with other signs than a-z, 0-9, - and _ stand in quotes, and so do texts: "Código" = "erpCode".'
        raise UsageError(f"{path} is no TOML: {error}", hint) from None
    if kind is not None and told.get("kind", kind) in KINDS and told.setdefault("kind", kind) != kind:
        raise UsageError(f"{path} maps {told['kind']}, not {kind}", f"orderbridge template {kind} --mapping makes one.")
    lines = _Lines(text)
    try:
        checked = _Mapping.model_validate(told)
    except ValidationError as error:
        found = [_words(dict(one)) for one in error.errors(include_url=False, include_input=False)]
        raise _refused(path, lines, dict.fromkeys(found)) from None
    made = _made(checked, path)
    neither: list[Mistake] = [
        (("columns", name), f"{name!r} is neither a field nor ignored, or both")
        for name, column in checked.columns.items()
        if column.ignore == (column.field is not None)
    ]
    neither += [
        (("ignore",), f"{name!r} is ignored, and stands under [columns] too")
        for name in checked.ignore
        if name in checked.columns
    ]
    if wrong := [*neither, *mistakes(made)]:
        raise _refused(path, lines, wrong)
    return made


def _refused(path: Path, lines: _Lines, wrong: Any) -> UsageError:  # noqa: ANN401 # pairs, in any collection
    told = []
    for where, words in wrong:
        line = lines.find(where)
        told.append(f"line {line}: {words}" if line else words)
    if len(told) == 1:
        return UsageError(f"{path}: {told[0]}", GUIDE)
    return UsageError("\n  ".join([f"{path}: {len(told)} mistakes", *told]), GUIDE)


class _Lines:
    """On which line of the text a key stands, which tomllib does not say; 0 where it is not found."""

    def __init__(self, text: str) -> None:
        self._keys: dict[tuple[str, str], int] = {}
        self._tables: dict[str, int] = {}
        table = ""
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*\[+\s*(\w+)\s*\]+", line):
                table = header[1]
                self._tables.setdefault(table, number)
            elif key := _KEY.match(line):
                name = key[1]
                if name[0] in "\"'":
                    try:
                        name = next(iter(tomllib.loads(f"{name} = 0")))
                    except tomllib.TOMLDecodeError:
                        continue
                self._keys.setdefault((table, name), number)

    def find(self, where: tuple[str, ...]) -> int:
        if len(where) == 1:
            return self._keys.get(("", where[0]), self._tables.get(where[0], 0))
        names = [name for name in where[1:] if (where[0], name) in self._keys]
        return (
            self._keys[(where[0], names[0])] if names else self._tables.get(where[0], self._keys.get(("", where[0]), 0))
        )


def _words(problem: dict[str, Any]) -> tuple[tuple[str, ...], str]:
    """Where a mistake of form is, and what it is."""
    where = tuple(str(part) for part in problem["loc"])
    table: type[BaseModel]
    if where[0] == "columns" and len(where) > 2 and where[-1] not in _Column.model_fields:
        table, name = _Column, where[2]
    else:
        table, name = _TABLES.get(where[0], _Mapping) if len(where) > 1 else _Mapping, where[-1]
    said = " › ".join(where)
    if problem["type"] == "extra_forbidden":
        return where, f"{said} is no key of a mapping{nearest(name, table.model_fields)}"
    if problem["type"] == "missing":
        return where, f"{said} is missing"
    words = str(problem["msg"]).replace("Input should", "it should")
    return where, f"{said}: {words[:1].lower()}{words[1:]}"


def _made(told: _Mapping, path: Path) -> Mapping:
    return Mapping(
        kind=told.kind,
        columns={
            **{name: _column(name, said) for name, said in told.columns.items()},
            **{name: MappedColumn(name, None) for name in told.ignore},
        },
        told=ReadOptions(**{one.name: getattr(told.file, one.name) for one in fields(ReadOptions)}),
        formats=Formats(
            told.numbers.decimal,
            told.numbers.thousands,
            told.dates.format if told.dates else None,
            told.booleans.yes if told.booleans else None,
            told.booleans.no if told.booleans else None,
            told.rows.empty,
        ),
        constants=dict(told.constants),
        make=told.passwords.make if told.passwords else None,
        group=told.group.by if told.group else (),
        lookups=tuple(_lookups(told, path)),
        fill_down=told.rows.fill_down,
        fill_within=told.rows.fill_within,
        skip_blank=told.rows.skip_blank,
        path=path,
    )


def _lookups(told: _Mapping, path: Path) -> Iterator[Lookup]:
    for one in told.lookup:
        yield Lookup(one.file, path.absolute().parent / one.file, dict(one.match), dict(one.give))


def _column(name: str, said: _Column) -> MappedColumn:
    formats = Formats(said.decimal, said.thousands, said.date, said.yes, said.no, said.empty)
    return MappedColumn(name, said.field, said.also, formats, said.blank, said.default, said.change, said.trim)
