"""A mapping as TOML text in one canonical form: equal mappings give equal text."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping as Pairs
from dataclasses import fields, replace
from operator import attrgetter
from pathlib import Path
from typing import Any, Final

from orderbridge.pipelines.mapping.field_paths import all_paths, suggestion
from orderbridge.pipelines.mapping.key_positions import KeyPositions
from orderbridge.pipelines.mapping.model import Formats, MappedColumn, Mapping
from orderbridge.pipelines.mapping.read import TABLES
from orderbridge.sources.disk import write_private
from orderbridge.sources.errors import UsageError

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(mapping: Mapping) -> str:
    """A mapping as TOML that `load` reads back as an equal mapping; unmatched columns become comments."""
    parts = [f"kind = {value(mapping.kind)}\n"]
    ignored = [name for name, column in mapping.columns.items() if column.field is None]
    parts += _lines({"ignore": ignored} if ignored else {})
    parts += _lines({"unfilled": mapping.unfilled} if mapping.unfilled else {})
    parts += _lines({"strict": True} if mapping.strict else {})
    usual = Mapping(mapping.kind, {})
    for table, keys in TABLES.items():
        values = {key: attrgetter(attribute) for key, (_, attribute) in keys.items()}
        parts += _section(
            table, {key: of(mapping) for key, of in values.items() if of(mapping) != of(usual)}
        )
    parts += [
        "\n[columns]\n",
        *_lines(
            {name: _column(column) for name, column in mapping.columns.items() if column.field}
        ),
    ]
    parts += _lines({"*": "ignore"} if mapping.ignores_others else {})
    parts += [_unknown(name, mapping) for name in mapping.unknown]
    parts += _section("constants", mapping.constants)
    for lookup in mapping.lookups:
        parts += [
            "\n[[lookup]]\n",
            *_lines({"file": lookup.file, "match": lookup.match, "give": lookup.give}),
        ]
    return "".join(parts)


def answer_column(path: Path, column: MappedColumn, *, is_ignored: bool) -> None:
    """Writes a person's answer to a column of a mapping file: it is right, or ignored. All other lines stay.

    Raises:
        UsageError: the column has no line of its own.
    """
    name = column.name
    lines = path.read_text("utf-8").splitlines(keepends=True)
    at = KeyPositions("".join(lines)).line_of(("columns", name)) - 1
    try:
        is_own = list(tomllib.loads(lines[at])) == [name]
    except tomllib.TOMLDecodeError:
        is_own = False
    if not is_own:
        raise UsageError(
            f"{path}: the column {name!r} has no line of its own",
            "Add answered = true to the column there, or ignore it: ignore = true.",
        )
    answered = {"ignore": True} if is_ignored else _column(replace(column, answered=True))
    lines[at] = f"{key(name)} = {value(answered)}\n"
    write_private(path, "".join(lines).encode())


def _unknown(name: str, mapping: Mapping) -> str:
    """The comment for a column without a field."""
    doubt = mapping.doubtful.get(name)
    if doubt is not None:
        why = f"may be {doubt}, which neither name nor values prove"
    else:
        why = f"matches no field{suggestion(name, all_paths(mapping.kind))}"
    return f'# {key(name)} = ""  # {why}: enter one, or {{ ignore = true }}\n'


def key(name: str) -> str:
    """A TOML key, quoted if needed."""
    return name if _BARE.fullmatch(name) else value(name)


def value(data: object) -> str:
    """A TOML value."""
    if isinstance(data, str):
        # controls and bidirectional overrides are escaped: the text may be printed on a terminal, or reviewed
        quoted = json.dumps(data, ensure_ascii=False)
        return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)
    if isinstance(data, bool):
        return "true" if data else "false"
    if isinstance(data, dict):
        return (
            "{ "
            + ", ".join(f"{key(name)} = {value(member)}" for name, member in data.items())
            + " }"
        )
    if isinstance(data, tuple | list):
        return "[" + ", ".join(map(value, data)) + "]"
    return repr(data)


def _column(column: MappedColumn) -> object:
    details = {"also": column.also} if column.also else {}
    details |= _changed(column.formats, Formats())
    details |= _changed(
        column, MappedColumn(column.name, column.field, column.also, column.formats)
    )
    return {"field": column.field, **details} if details else column.field


def _changed(data: Any, default: Any) -> dict[str, Any]:  # noqa: ANN401 # two of the same dataclass
    """The fields in which a dataclass differs from its default."""
    values = (
        (one.name, getattr(data, one.name), getattr(default, one.name)) for one in fields(data)
    )
    return {name: own for name, own, other in values if own != other}


def _section(name: str, values: Pairs[str, Any]) -> list[str]:
    return [f"\n[{name}]\n", *_lines(values)] if values else []


def _lines(values: Pairs[str, Any]) -> list[str]:
    return [f"{key(name)} = {value(data)}\n" for name, data in values.items()]
