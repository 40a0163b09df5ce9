"""A mapping as the text of a TOML file, in one form: the same mapping gives the same text."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Pairs
from dataclasses import fields
from typing import Any, Final

from pipelines.mapping.model import Formats, MappedColumn, Mapping
from pipelines.mapping.places import examples, nearest
from sources.files import ReadOptions

_BARE: Final = re.compile(r"[A-Za-z0-9_-]+")


def to_toml(mapping: Mapping) -> str:
    """A mapping as TOML, which `load` reads as the same mapping; a column that fits no field stands as a comment."""
    parts = [f"kind = {value(mapping.kind)}\n"]
    ignored = [name for name, column in mapping.columns.items() if column.field is None]
    parts += _lines({"ignore": ignored} if ignored else {})
    parts += _section("file", _told(mapping.told, ReadOptions()))
    formats = mapping.formats
    parts += _section("numbers", _given(decimal=formats.decimal, thousands=formats.thousands))
    parts += _section("dates", _given(format=formats.date))
    parts += _section("booleans", _given(yes=formats.yes, no=formats.no))
    rows = {name: getattr(mapping, name) or None for name in ("fill_down", "fill_within", "skip_blank")}
    parts += _section("rows", _given(empty=formats.empty, **rows))
    parts += _section("group", _given(by=mapping.group or None))
    parts += _section("passwords", _given(make=mapping.make))
    parts += [
        "\n[columns]\n",
        *_lines({name: _column(column) for name, column in mapping.columns.items() if column.field}),
    ]
    known = examples(mapping.kind)
    parts += [
        f'# {key(name)} = ""  # fits no field{nearest(name, known)}: name one, or {{ ignore = true }}\n'
        for name in mapping.unknown
    ]
    parts += _section("constants", mapping.constants)
    for lookup in mapping.lookups:
        parts += ["\n[[lookup]]\n", *_lines({"file": lookup.file, "match": lookup.match, "give": lookup.give})]
    return "".join(parts)


def key(name: str) -> str:
    """A key of TOML, quoted where it must be."""
    return name if _BARE.fullmatch(name) else value(name)


def value(said: object) -> str:
    """A value of TOML."""
    if isinstance(said, str):
        return json.dumps(said, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(said, bool):
        return "true" if said else "false"
    if isinstance(said, dict):
        return "{ " + ", ".join(f"{key(name)} = {value(member)}" for name, member in said.items()) + " }"
    if isinstance(said, tuple | list):
        return "[" + ", ".join(map(value, said)) + "]"
    return repr(said)


def _column(column: MappedColumn) -> object:
    more = _given(also=column.also or None) | _told(column.formats, Formats())
    plain = MappedColumn(column.name, column.field)
    more |= {
        name: getattr(column, name)
        for name in ("blank", "default", "change", "trim")
        if getattr(column, name) != getattr(plain, name)
    }
    return {"field": column.field, **more} if more else column.field


def _told(said: Any, plain: Any) -> dict[str, Any]:  # noqa: ANN401 # any dataclass
    both = ((one.name, getattr(said, one.name), getattr(plain, one.name)) for one in fields(said))
    return {name: mine for name, mine, default in both if mine != default}


def _given(**told: Any) -> dict[str, Any]:  # noqa: ANN401 # values of TOML
    return {name: said for name, said in told.items() if said is not None}


def _section(name: str, told: Pairs[str, Any]) -> list[str]:
    return [f"\n[{name}]\n", *_lines(told)] if told else []


def _lines(told: Pairs[str, Any]) -> list[str]:
    return [f"{key(name)} = {value(said)}\n" for name, said in told.items()]
