"""Loads a mapping file: TOML in, a checked `Mapping` out.

The TOML is validated by pydantic, by a table of all keys and their types, then checked against the interface. An error
lists every mistake with its line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Collection, Iterator, Sequence
from collections.abc import Mapping as Pairs
from pathlib import Path
from typing import Annotated, Any, Final, Literal

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    StrictBool,
    StrictFloat,
    StrictInt,
    StrictStr,
    ValidationError,
    create_model,
)
from pydantic import Field as Limits

from orderbridge.pipelines.mapping.check import Mistake, mistakes
from orderbridge.pipelines.mapping.field_paths import suggestion
from orderbridge.pipelines.mapping.key_positions import KeyPositions
from orderbridge.pipelines.mapping.model import (
    Blank,
    Formats,
    GeneratePasswords,
    Lookup,
    MappedColumn,
    Mapping,
    Send,
)
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.files.column_names import column_name
from orderbridge.sources.kinds import KINDS, KindName

MAX_BYTES: Final = 1 << 20
OTHERS: Final = "*"
"""All columns that have no line of their own under [columns]."""
GUIDE: Final = "See docs/reference/mapping.md for every key."
_Words = Annotated[tuple[StrictStr, ...], Limits(min_length=1)]
_Name = Annotated[StrictStr, AfterValidator(column_name)]
_NAMES: Final = tuple[_Name, ...]
_FILE: Final = {
    "encoding": StrictStr,
    "delimiter": StrictStr,
    "quote": StrictStr,
    "escape": StrictStr,
    "header_row": Annotated[StrictInt, Limits(ge=0)],
    "short_rows": Literal["reject", "fill"],
    "sheet": StrictStr,
}
_NUMBERS: Final = {
    "decimal": Annotated[StrictStr, Limits(min_length=1, max_length=1)],
    "thousands": Annotated[StrictStr, Limits(max_length=1)],
    "currency": Annotated[StrictStr, Limits(min_length=1)],
}
_FORMATS: Final = {
    **_NUMBERS,
    "date": StrictStr,
    "yes": _Words,
    "no": _Words,
    "empty": tuple[StrictStr, ...],
}
"""Of a column, by the attribute of `Formats`."""
_Scalar = StrictBool | StrictInt | StrictFloat | StrictStr
_COLUMN: Final[dict[str, Any]] = {
    **_FORMATS,
    "field": StrictStr,
    "also": tuple[StrictStr, ...],
    "ignore": StrictBool,
    "blank": Blank,
    "default": _Scalar,
    "change": StrictBool,
    "trim": StrictBool,
    "send": Send,
    "answered": StrictBool,
}
TABLES: Final[dict[str, dict[str, tuple[Any, str]]]] = {
    "file": {key: (kind, f"read_options.{key}") for key, kind in _FILE.items()},
    "numbers": {key: (kind, f"formats.{key}") for key, kind in _NUMBERS.items()},
    "dates": {"format": (StrictStr, "formats.date")},
    "booleans": {"yes": (_Words, "formats.yes"), "no": (_Words, "formats.no")},
    "rows": {
        "empty": (_FORMATS["empty"], "formats.empty"),
        "fill_down": (_NAMES, "fill_down"),
        "fill_within": (_NAMES, "fill_within"),
        "skip_blank": (_NAMES, "skip_blank"),
        "totals": (Literal["reject", "skip", "keep"], "read_options.totals"),
    },
    "group": {"by": (Annotated[_NAMES, Limits(min_length=1)], "group")},
    "passwords": {"make": (GeneratePasswords, "generate_passwords")},
}
"""The tables of options in a mapping file, in the order in which they are written: for each key the type of its value,
and the attribute of `Mapping`."""
_WHOLE: Final = ("dates", "booleans", "group", "passwords")
"""Tables that have all of their keys."""


def _as_table(value: object) -> object:
    """`Column = "field"` is short for `Column = { field = "field" }`."""
    return {"field": value} if isinstance(value, str) else value


def _all_others(columns: object) -> object:
    """`"*" = "ignore"` is short for `"*" = { ignore = true }`."""
    is_short = isinstance(columns, dict) and columns.get(OTHERS) == "ignore"
    return (
        {**columns, OTHERS: {"ignore": True}} if is_short and isinstance(columns, dict) else columns
    )


def _model(types: Pairs[str, Any], required: Collection[str] = ()) -> Any:  # noqa: ANN401 # a type made from data
    """The model of a table that has no other keys."""
    fields: Any = {key: (kind, ... if key in required else None) for key, kind in types.items()}
    return create_model("Table", __config__=ConfigDict(extra="forbid"), **fields)


_LOOKUP: Final = {
    "file": Annotated[StrictStr, Limits(min_length=1)],
    "match": Annotated[dict[_Name, _Name], Limits(min_length=1)],
    "give": Annotated[dict[str, _Name], Limits(min_length=1)],
}
_column_model: Any = Annotated[_model(_COLUMN), BeforeValidator(_as_table)]
_lookup_model: Any = _model(_LOOKUP, _LOOKUP)
_DOCUMENT: Final[dict[str, Any]] = {
    "kind": KindName,
    "ignore": _NAMES,
    "unfilled": _NAMES,
    "strict": StrictBool,
    **{
        name: _model({key: kind for key, (kind, _) in keys.items()}, keys if name in _WHOLE else ())
        for name, keys in TABLES.items()
    },
    "columns": Annotated[dict[_Name, _column_model], BeforeValidator(_all_others)],
    "constants": dict[str, _Scalar],
    "lookup": tuple[_lookup_model, ...],
}
_document: Final = _model(_DOCUMENT, ("kind", "columns"))
_KEYS: Final[dict[str, Collection[str]]] = {**TABLES, "columns": _COLUMN, "lookup": _LOOKUP}


class OutsideLookup(UsageError):
    """A mapping that is valid, but for lookup files that it may not read."""

    @classmethod
    def of(cls, error: UsageError) -> OutsideLookup:
        """The error with the words of another one."""
        return cls(error.message, error.hint)


def load(path: Path, kind: str | None = None, lookups: Collection[Path] = ()) -> Mapping:
    """Loads and checks a mapping file of this kind; None accepts any.

    `lookups` are lookup files that may be outside the folder of the mapping. A mapping may come from somebody else, so
    it opens other files only if the user names them.

    Raises:
        OutsideLookup: it names lookup files that it may not read, and is valid otherwise.
        UsageError: the file is not a valid mapping; the message has the file, the lines and all mistakes.
    """
    return parse(_read(path), path, kind, lookups)


def parse(
    text: str, path: Path, kind: str | None = None, lookups: Collection[Path] = ()
) -> Mapping:
    """Parses and checks the text of a mapping file, as `load` does; `path` is where it comes from."""
    data = _parse(text, path)
    if (
        kind is not None
        and data.get("kind", kind) in KINDS
        and data.setdefault("kind", kind) != kind
    ):
        hint = f"Choose another file, or create one: orderbridge template {kind} --mapping"
        raise UsageError(f"{path} is a mapping for {data['kind']}, not {kind}", hint)
    positions = KeyPositions(text)
    try:
        document = _document.model_validate(data).model_dump(exclude_unset=True)
    except ValidationError as error:
        invalid = [
            _mistake(dict(one)) for one in error.errors(include_url=False, include_input=False)
        ]
        raise _invalid(path, positions, list(dict.fromkeys(invalid))) from None
    mapping = _mapping(document, path)
    errors = [*_column_mistakes(document, mapping), *mistakes(mapping)]
    outside = list(_outside(mapping, path, lookups))
    if outside and not errors:
        raise OutsideLookup.of(_invalid(path, positions, outside))
    if errors := [*errors, *outside]:
        raise _invalid(path, positions, errors)
    return mapping


def _column_mistakes(document: Pairs[str, Any], mapping: Mapping) -> Iterator[Mistake]:
    """Columns that are both mapped and ignored, or neither."""
    columns = document["columns"]
    for name, column in columns.items():
        if column.get("ignore", False) == ("field" in column):
            yield ("columns", name), f"{name!r} needs either a field or ignore = true"
    for name in document.get("ignore", ()):
        if name in columns:
            words = f"{name!r} is ignored, but is also listed under [columns]; remove one"
            yield ("ignore",), words
    if mapping.ignores_others and ("field" in columns[OTHERS] or mapping.strict):
        words = f'"{OTHERS}" stands for all other columns: it can only be "ignore", not strict'
        yield ("columns", OTHERS), words


def _outside(mapping: Mapping, path: Path, allowed: Collection[Path]) -> Iterator[Mistake]:
    """Lookup files outside the folder of the mapping, or private ones in it; links resolved."""
    folder = path.resolve().parent
    known = {file.resolve() for file in allowed}
    for lookup in mapping.lookups:
        file = lookup.path.resolve()
        if file in known:
            continue
        is_outside = not file.is_relative_to(folder)
        if is_outside or is_private(file, folder):
            where = (
                "outside of the mapping's folder"
                if is_outside
                else "a private file of a plan or of the settings"
            )
            yield (
                ("lookup", "file"),
                f"lookup {lookup.file} is {where}; allow it: --lookup {file}",
            )


def is_private(file: Path, folder: Path) -> bool:
    """Whether a file is in a plan, whose passwords are a CSV too, or in a hidden folder such as `.dlt`."""
    parents = [parent for parent in file.parents if parent.is_relative_to(folder)]
    is_hidden = any(part.startswith(".") for part in file.relative_to(folder).parts)
    return (
        is_hidden
        or file.name == "passwords.csv"
        or any((parent / "plan.json").exists() for parent in parents)
    )


def _read(path: Path) -> str:
    """The text of a mapping file. Raises UsageError."""
    try:
        with path.open("rb") as file:
            content = file.read(MAX_BYTES + 1)
        if len(content) > MAX_BYTES:
            raise UsageError(
                f"{path} is larger than {MAX_BYTES >> 20} MiB", "Check that it is a mapping file."
            )
        return content.decode("utf-8-sig")
    except OSError as error:
        raise UsageError(
            f"{path} cannot be read: {error.strerror}", "Check the file name and permissions."
        ) from None
    except UnicodeDecodeError:
        raise UsageError(
            f"{path} is not UTF-8", "Save it in your editor with the encoding UTF-8."
        ) from None


def _parse(text: str, path: Path) -> dict[str, Any]:
    """The content of a TOML text. Raises UsageError."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        hint = 'Put texts in quotes, and names with spaces or accents too: "Código" = "erpCode".'
        raise UsageError(f"{path} is not valid TOML: {error}", hint) from None
    except RecursionError:
        raise UsageError(
            f"{path} is not a mapping: its values are nested too deeply", GUIDE
        ) from None
    except ValueError:  # an integer with more digits than Python converts
        raise UsageError(
            f"{path} is not a mapping: a number has too many digits", "Put codes in quotes."
        ) from None


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
    known: Collection[str]
    if key[0] == "columns" and len(key) > 2 and key[-1] not in _COLUMN:
        known = _COLUMN
        name = key[2]
    else:
        known = _KEYS.get(key[0], _DOCUMENT) if len(key) > 1 else _DOCUMENT
        name = key[-1]
    shown = " › ".join(key)
    if key == ("file", "header_rows"):
        return (
            key,
            "header_rows is gone: remove it, set header_row to the lowest header line, name columns as there",
        )
    if error["type"] == "extra_forbidden":
        return key, f"unknown key {shown}{suggestion(name, known)}"
    if error["type"] == "missing":
        return key, f"{shown} is missing"
    message = str(error["msg"]).replace("Input should", "should")
    return key, f"{shown}: {message[:1].lower()}{message[1:]}"


def _mapping(document: dict[str, Any], path: Path) -> Mapping:
    folder = path.absolute().parent
    values: dict[str, dict[str, Any]] = {"": {}, "read_options": {}, "formats": {}}
    for table, keys in TABLES.items():
        for key, value in document.get(table, {}).items():
            owner, _, name = keys[key][1].rpartition(".")
            values[owner][name] = value
    columns = {
        name: _column(name, **given)
        for name, given in document["columns"].items()
        if name != OTHERS
    }
    return Mapping(
        document["kind"],
        columns | {name: MappedColumn(name, None) for name in document.get("ignore", ())},
        ReadOptions(**values["read_options"]),
        Formats(**values["formats"]),
        constants=document.get("constants", {}),
        lookups=tuple(
            Lookup(path=folder / one["file"], **one) for one in document.get("lookup", ())
        ),
        strict=document.get("strict", False),
        unfilled=tuple(document.get("unfilled", ())),
        ignores_others=OTHERS in document["columns"],
        path=path,
        **values[""],
    )


def _column(
    name: str,
    field: str | None = None,
    *,
    ignore: bool = False,
    **given: Any,  # noqa: ANN401  # cells of a TOML table
) -> MappedColumn:
    formats = Formats(**{key: given.pop(key) for key in _FORMATS if key in given})
    return MappedColumn(name, field, formats=formats, **given)
