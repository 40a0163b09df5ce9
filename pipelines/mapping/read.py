"""Loads a mapping file: TOML in, a checked `Mapping` out.

The TOML is validated by pydantic models that mirror its tables, then checked against the interface. An error lists
every mistake with its line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
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
from pipelines.mapping.field_paths import suggestion
from pipelines.mapping.key_positions import KeyPositions
from pipelines.mapping.model import Formats, Lookup, MappedColumn, Mapping
from sources.errors import UsageError
from sources.files import ReadOptions
from sources.files.layout import column_name
from sources.kinds import KINDS, KindName

MAX_BYTES: Final = 1 << 20
OTHERS: Final = "*"
"""All columns that have no line of their own under [columns]."""
GUIDE: Final = "See docs/mapping.md for every key."
_Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
_Words = Annotated[tuple[StrictStr, ...], Limits(min_length=1)]
_Name = Annotated[StrictStr, AfterValidator(column_name)]
_Mark = Annotated[StrictStr, Limits(min_length=1, max_length=1)]
_Thousands = Annotated[StrictStr, Limits(max_length=1)]


def _as_table(value: object) -> object:
    """`Column = "field"` is short for `Column = { field = "field" }`."""
    return {"field": value} if isinstance(value, str) else value


def _all_others(columns: object) -> object:
    """`"*" = "ignore"` is short for `"*" = { ignore = true }`."""
    is_short = isinstance(columns, dict) and columns.get(OTHERS) == "ignore"
    return {**columns, OTHERS: {"ignore": True}} if is_short and isinstance(columns, dict) else columns


class _Strict(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class _File(_Strict):
    encoding: StrictStr | None = None
    delimiter: StrictStr | None = None
    quote: StrictStr | None = None
    escape: StrictStr | None = None
    header_row: Annotated[StrictInt, Limits(ge=0)] | None = None
    header_rows: Annotated[StrictInt, Limits(ge=1, le=5)] | None = None
    short_rows: Literal["reject", "fill"] = "reject"
    sheet: StrictStr | None = None


class _Numbers(_Strict):
    decimal: _Mark | None = None
    thousands: _Thousands | None = None
    currency: Annotated[StrictStr, Limits(min_length=1)] | None = None


class _Dates(_Strict):
    format: StrictStr


class _Booleans(_Strict):
    yes: _Words
    no: _Words


class _Column(_Numbers):
    field: StrictStr | None = None
    also: tuple[StrictStr, ...] = ()
    ignore: StrictBool = False
    date: StrictStr | None = None
    yes: _Words | None = None
    no: _Words | None = None
    empty: tuple[StrictStr, ...] | None = None
    blank: Literal["omit", "clear", "reject"] = "omit"
    default: _Scalar | None = None
    change: StrictBool = False
    trim: StrictBool = True
    send: Literal["always", "changed"] | None = None


class _Passwords(_Strict):
    make: Literal["mail", "file"]


class _Group(_Strict):
    by: Annotated[tuple[_Name, ...], Limits(min_length=1)]


class _Rows(_Strict):
    empty: tuple[StrictStr, ...] | None = None
    fill_down: tuple[_Name, ...] = ()
    fill_within: tuple[_Name, ...] = ()
    skip_blank: tuple[_Name, ...] = ()
    totals: Literal["reject", "skip", "keep"] = "reject"


class _Lookup(_Strict):
    file: Annotated[StrictStr, Limits(min_length=1)]
    match: Annotated[dict[_Name, _Name], Limits(min_length=1)]
    give: Annotated[dict[str, _Name], Limits(min_length=1)]


class _Mapping(_Strict):
    kind: KindName
    ignore: tuple[_Name, ...] = ()
    strict: StrictBool = False
    file: _File = _File()
    numbers: _Numbers = _Numbers()
    dates: _Dates | None = None
    booleans: _Booleans | None = None
    columns: Annotated[dict[_Name, Annotated[_Column, BeforeValidator(_as_table)]], BeforeValidator(_all_others)]
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


def load(path: Path, kind: str | None = None, lookups: Collection[Path] = ()) -> Mapping:
    """Loads and checks a mapping file of this kind; None accepts any.

    `lookups` are lookup files that may be outside the folder of the mapping. A mapping may come from somebody else, so
    it opens other files only if the user names them.

    Raises:
        UsageError: the file is not a valid mapping; the message has the file, the lines and all mistakes.
    """
    text, data = _parse(path)
    if kind is not None and data.get("kind", kind) in KINDS and data.setdefault("kind", kind) != kind:
        raise UsageError(
            f"{path} is a mapping for {data['kind']}, not {kind}",
            f"Choose another file, or create one: orderbridge template {kind} --mapping",
        )
    positions = KeyPositions(text)
    try:
        document = _Mapping.model_validate(data)
    except ValidationError as error:
        invalid = [_mistake(dict(one)) for one in error.errors(include_url=False, include_input=False)]
        raise _invalid(path, positions, list(dict.fromkeys(invalid))) from None
    mapping = _mapping(document, path)
    errors: list[Mistake] = [
        (("columns", name), f"{name!r} needs either a field or ignore = true")
        for name, column in document.columns.items()
        if column.ignore == (column.field is not None)
    ]
    errors += [
        (("ignore",), f"{name!r} is ignored, but is also listed under [columns]; remove one")
        for name in document.ignore
        if name in document.columns
    ]
    others = document.columns.get(OTHERS)
    if others is not None and (others.field is not None or document.strict):
        errors.append(
            (("columns", OTHERS), f'"{OTHERS}" stands for all other columns: it can only be "ignore", not strict')
        )
    errors += _outside(mapping, path, lookups)
    if errors := [*errors, *mistakes(mapping)]:
        raise _invalid(path, positions, errors)
    return mapping


def _outside(mapping: Mapping, path: Path, allowed: Collection[Path]) -> Iterator[Mistake]:
    """Lookup files outside the folder of the mapping, or private ones in it; links resolved."""
    folder = path.resolve().parent
    known = {file.resolve() for file in allowed}
    for lookup in mapping.lookups:
        file = lookup.path.resolve()
        if file in known:
            continue
        is_outside = not file.is_relative_to(folder)
        if is_outside or _is_private(file, folder):
            where = "outside of the mapping's folder" if is_outside else "a private file of a plan or of the settings"
            yield (("lookup", "file"), f"lookup {lookup.file} is {where}; allow it: --lookup {file}")


def _is_private(file: Path, folder: Path) -> bool:
    """Whether a file is in a plan, whose passwords are a CSV too, or in a hidden folder such as `.dlt`."""
    parents = [parent for parent in file.parents if parent.is_relative_to(folder)]
    is_hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return is_hidden or file.name == "passwords.csv" or any((parent / "plan.json").exists() for parent in parents)


def _parse(path: Path) -> tuple[str, dict[str, Any]]:
    """The text of a TOML file and its content."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UsageError(f"{path} is larger than {MAX_BYTES >> 20} MiB", "Check that it is a mapping file.")
        text = content.decode("utf-8-sig")
        return text, tomllib.loads(text)
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}", "Check the file name and permissions.") from None
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8", "Save it in your editor with the encoding UTF-8.") from None
    except tomllib.TOMLDecodeError as error:
        hint = 'Put texts in quotes, and names with spaces or accents too: "Código" = "erpCode".'
        raise UsageError(f"{path} is not valid TOML: {error}", hint) from None
    except RecursionError:
        raise UsageError(f"{path} is not a mapping: its values are nested too deeply", GUIDE) from None
    except ValueError:  # an integer with more digits than Python converts
        raise UsageError(f"{path} is not a mapping: a number has too many digits", "Put codes in quotes.") from None


def _invalid(path: Path, positions: KeyPositions, errors: Sequence[Mistake]) -> UsageError:
    lines = []
    for key, message in errors:
        line = positions.line_of(key)
        lines.append(f"line {line}: {message}" if line else message)
    if len(lines) == 1:
        return UsageError(f"{path}: {lines[0]}", GUIDE)
    return UsageError("\n  ".join([f"{path}: {len(lines)} mistakes", *lines]), GUIDE)


def _mistake(error: dict[str, Any]) -> Mistake:
    """A validation error of pydantic as key and message."""
    key = tuple(str(part) for part in error["loc"])
    table: type[BaseModel]
    if key[0] == "columns" and len(key) > 2 and key[-1] not in _Column.model_fields:
        table, name = _Column, key[2]
    else:
        table, name = _TABLES.get(key[0], _Mapping) if len(key) > 1 else _Mapping, key[-1]
    shown = " › ".join(key)
    if error["type"] == "extra_forbidden":
        return key, f"unknown key {shown}{suggestion(name, table.model_fields)}"
    if error["type"] == "missing":
        return key, f"{shown} is missing"
    message = str(error["msg"]).replace("Input should", "should")
    return key, f"{shown}: {message[:1].lower()}{message[1:]}"


def _mapping(document: _Mapping, path: Path) -> Mapping:
    folder = path.absolute().parent
    return Mapping(
        kind=document.kind,
        columns={
            **{name: _column(name, column) for name, column in document.columns.items() if name != OTHERS},
            **{name: MappedColumn(name, None) for name in document.ignore},
        },
        read_options=ReadOptions(**dict(document.file), totals=document.rows.totals),
        formats=Formats(
            document.numbers.decimal,
            document.numbers.thousands,
            document.numbers.currency,
            document.dates.format if document.dates else None,
            document.booleans.yes if document.booleans else None,
            document.booleans.no if document.booleans else None,
            document.rows.empty,
        ),
        constants=dict(document.constants),
        generate_passwords=document.passwords.make if document.passwords else None,
        group=document.group.by if document.group else (),
        lookups=tuple(Lookup(one.file, folder / one.file, dict(one.match), dict(one.give)) for one in document.lookup),
        fill_down=document.rows.fill_down,
        fill_within=document.rows.fill_within,
        skip_blank=document.rows.skip_blank,
        strict=document.strict,
        ignores_others=OTHERS in document.columns,
        path=path,
    )


def _column(name: str, data: _Column) -> MappedColumn:
    formats = Formats(data.decimal, data.thousands, data.currency, data.date, data.yes, data.no, data.empty)
    return MappedColumn(
        name, data.field, data.also, formats, data.blank, data.default, data.change, data.trim, data.send
    )
