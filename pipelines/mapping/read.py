"""A mapping file, read: TOML in, a checked `Mapping` out, or an error that names the place and the cure."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable
from dataclasses import fields
from difflib import get_close_matches
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
)

from pipelines.intake import Told
from pipelines.mapping.model import NO, PASSED_OVER, YES, Column, Lookup, Mapping, generic, place
from sources.errors import UsageError
from sources.inputs import parameters, paths

_Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
_Words = Annotated[tuple[StrictStr, ...], Field(min_length=1)]
_Sign = Annotated[StrictStr, Field(min_length=1, max_length=1)]
_Thousands = Annotated[StrictStr, Field(max_length=1)]


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _File(_Strict):
    encoding: StrictStr | None = None
    delimiter: StrictStr | None = None
    quote: StrictStr | None = None
    escape: StrictStr | None = None
    header_row: StrictInt | None = None
    header_rows: StrictInt | None = None
    short_rows: Literal["refuse", "fill"] = "refuse"
    sheet: StrictStr | None = None


class _Numbers(_Strict):
    decimal: _Sign
    thousands: _Thousands = ""


class _Booleans(_Strict):
    yes: _Words
    no: _Words


class _Column(_Strict):
    field: StrictStr | None = None
    ignore: StrictBool = False
    decimal: _Sign | None = None
    thousands: _Thousands | None = None
    yes: tuple[StrictStr, ...] = ()
    no: tuple[StrictStr, ...] = ()
    date: StrictStr | None = None
    blank: Literal["omit", "clear", "reject"] = "omit"
    default: _Scalar | None = None
    change: StrictBool = False


def _spelled_out(said: object) -> object:
    return {"field": said} if isinstance(said, str) else said


class _Passwords(_Strict):
    make: Literal["mail", "file"]


class _Group(_Strict):
    by: _Words


class _Rows(_Strict):
    blanks: tuple[StrictStr, ...] = ()
    fill_down: tuple[StrictStr, ...] = ()
    fill_within: tuple[StrictStr, ...] = ()
    skip_blank: tuple[StrictStr, ...] = ()


class _Lookup(_Strict):
    file: StrictStr
    match: Annotated[dict[str, StrictStr], Field(min_length=1)]
    give: Annotated[dict[str, StrictStr], Field(min_length=1)]


class _Mapping(_Strict):
    kind: Literal["customers", "variants", "subcategories", "warehouses"]
    columns: Annotated[dict[str, Annotated[_Column, BeforeValidator(_spelled_out)]], Field(min_length=1)]
    file: _File = _File()
    numbers: _Numbers | None = None
    booleans: _Booleans | None = None
    constants: dict[str, _Scalar] = {}
    lookup: tuple[_Lookup, ...] = ()
    group: _Group | None = None
    rows: _Rows = _Rows()
    passwords: _Passwords | None = None


_SECTIONS: Final[dict[str, type[BaseModel]]] = {
    "file": _File,
    "numbers": _Numbers,
    "booleans": _Booleans,
    "columns": _Column,
    "passwords": _Passwords,
    "group": _Group,
    "rows": _Rows,
    "lookup": _Lookup,
}


def load(path: Path, kind: str | None = None) -> Mapping:
    """Reads a mapping file.

    Args:
        path: of the file.
        kind: what it must be for; None: whatever it says.

    Raises:
        UsageError: it cannot be read, is no TOML, or says what a mapping cannot; the message names the place.
    """
    try:
        told = tomllib.loads(path.read_text("utf-8-sig"))
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "Name a mapping file.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8, as TOML must be", "Save it as UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        hint = 'Texts and names with other signs than a-z, 0-9, - and _ stand in quotes: "Código" = "erpCode".'
        raise UsageError(f"{path} is no TOML: {error}", hint) from None
    if kind is not None and told.setdefault("kind", kind) != kind:
        raise UsageError(f"{path} maps {told['kind']}, not {kind}", f"orderbridge template {kind} --mapping makes one.")
    try:
        checked = _Mapping.model_validate(told)
    except ValidationError as error:
        problems = [_words(dict(problem)) for problem in error.errors(include_url=False, include_input=False)]
        raise UsageError(f"{path}: {'; '.join(dict.fromkeys(problems))}", "See docs/mapping.md.") from None
    made = _made(checked)
    check(made, str(path))
    return made


def _words(problem: dict[str, Any]) -> str:
    where = [str(part) for part in problem["loc"]]
    told = " › ".join(where)
    if problem["type"] == "extra_forbidden":
        section = _SECTIONS.get(where[0]) if len(where) > 1 else None
        return f"{told} is nothing that a mapping has{_nearest(where[-1], (section or _Mapping).model_fields)}"
    if problem["type"] == "missing":
        return f"{told} is missing"
    return f"{told}: {str(problem['msg'])[:1].lower()}{str(problem['msg'])[1:]}"


def _nearest(name: str, names: Iterable[str]) -> str:
    near = get_close_matches(name, list(names), 1)
    return f" (is it {near[0]}?)" if near else ""


def _made(told: _Mapping) -> Mapping:
    numbers, booleans = told.numbers, told.booleans
    return Mapping(
        kind=told.kind,
        columns={name: _column(name, said) for name, said in told.columns.items()},
        file=Told(**{field.name: getattr(told.file, field.name) for field in fields(Told)}),
        decimal=numbers.decimal if numbers else None,
        thousands=numbers.thousands if numbers else None,
        yes=booleans.yes if booleans else YES,
        no=booleans.no if booleans else NO,
        blanks=told.rows.blanks,
        constants=told.constants,
        lookups=tuple(Lookup(one.file, one.match, one.give) for one in told.lookup),
        group_by=told.group.by if told.group else (),
        fill_down=told.rows.fill_down,
        fill_within=told.rows.fill_within,
        skip_blank=told.rows.skip_blank,
        make_passwords=told.passwords.make if told.passwords else None,
    )


def _column(name: str, said: _Column) -> Column:
    if said.ignore == (said.field is not None):
        raise UsageError(
            f"the column {name!r} of the mapping is neither a field nor ignored, or both",
            'Write "Column" = "field", or "Column" = { ignore = true }.',
        )
    kept = {field.name: getattr(said, field.name) for field in fields(Column)}
    return Column(**kept)


def check(mapping: Mapping, where: str) -> None:
    """Whether the fields that a mapping names are there, each once, and can be what it says of them.

    Raises:
        UsageError: all that is wrong, in one message.
    """
    wrong: list[str] = []
    sources: dict[str, list[str]] = {}
    for name, column in mapping.columns.items():
        if column.field is not None:
            sources.setdefault(column.field, []).append(f"the column {name!r}")
            wrong += _wrong(mapping, name, column)
    for path in mapping.constants:
        sources.setdefault(path, []).append("a constant")
    for lookup in mapping.lookups:
        for path in lookup.give:
            sources.setdefault(path, []).append(f"a lookup in {lookup.file}")
    for path, told in sources.items():
        if generic(mapping.kind, path) is None:
            known = [*parameters(mapping.kind), *paths(mapping.kind)]
            wrong.append(f"{told[0]} is mapped to {path!r}, which {mapping.kind} do not have{_nearest(path, known)}")
        elif len(told) > 1 and place(path) != "+":
            wrong.append(f"{path} comes from {' and '.join(told)}")
    if not mapping.group_by and any(place(path) == "+" for path in sources):
        wrong.append("`[+]` takes an item from each line of a group, and [group] names no columns")
    if mapping.group_by and any(column.field == "password" for column in mapping.columns.values()):
        wrong.append("lines with passwords cannot be grouped")
    if "password" in mapping.constants or any("password" in lookup.give for lookup in mapping.lookups):
        wrong.append("a password comes from a column, or is made; it is never one for all, nor looked up")
    if wrong:
        raise UsageError(f"{where}: {'; '.join(wrong)}", "See docs/mapping.md.")


def _wrong(mapping: Mapping, name: str, column: Column) -> list[str]:
    """What a column says that cannot be."""
    path = generic(mapping.kind, column.field or "")
    found = paths(mapping.kind).get(path or "")
    kind = found.type if found else "text"
    wrong = []
    if column.blank == "clear" and (kind != "text" or (found is not None and found.min_length)):
        wrong.append(f"{name!r}: the interface shows no way to empty {column.field}")
    if column.default is not None and column.blank != "omit":
        wrong.append(f"{name!r}: either an empty cell has a default, or it is to {column.blank}")
    if column.change and column.field not in ("price", "stock"):
        wrong.append(f"{name!r}: only price and stock can be changes")
    if column.decimal is not None and column.decimal == column.thousands:
        wrong.append(f"{name!r}: decimal and thousands are the same sign")
    if (column.yes or column.no) and kind != "boolean":
        wrong.append(f"{name!r}: yes and no are of a field that is true or false")
    return wrong


def is_of_ours(column: str) -> bool:
    """Whether a column of a file is one that a reject file adds."""
    return column in PASSED_OVER
