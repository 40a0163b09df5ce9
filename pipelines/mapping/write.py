"""A mapping as the text of a TOML file, in one form: the same mapping gives the same bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping as Pairs
from dataclasses import fields
from typing import Any

from pipelines.intake import Told
from pipelines.mapping.model import NO, YES, Column, Mapping

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def written(mapping: Mapping) -> str:
    """The TOML text, which `read.load` reads as the same mapping."""
    parts = [f"kind = {_value(mapping.kind)}\n"]
    file = {one.name: getattr(mapping.file, one.name) for one in fields(Told)}
    parts += _section("file", {name: value for name, value in file.items() if value != getattr(Told(), name)})
    if mapping.decimal is not None:
        parts += _section("numbers", {"decimal": mapping.decimal, "thousands": mapping.thousands or ""})
    if (mapping.yes, mapping.no) != (YES, NO):
        parts += _section("booleans", {"yes": mapping.yes, "no": mapping.no})
    rows = {name: getattr(mapping, name) for name in ("blanks", "fill_down", "fill_within", "skip_blank")}
    parts += _section("rows", {name: value for name, value in rows.items() if value})
    parts += _section("group", {"by": mapping.group_by} if mapping.group_by else {})
    parts += _section("passwords", {"make": mapping.make_passwords} if mapping.make_passwords else {})
    parts += _section("columns", {name: _column(column) for name, column in mapping.columns.items()})
    parts += _section("constants", mapping.constants)
    for lookup in mapping.lookups:
        told = {"file": lookup.file, "match": dict(lookup.match), "give": dict(lookup.give)}
        parts += ["\n[[lookup]]\n", *_lines(told)]
    return "".join(parts)


def _column(column: Column) -> object:
    if column.field is None:
        return {"ignore": True}
    told = {one.name: getattr(column, one.name) for one in fields(Column)}
    plain = Column(column.field)
    more = {name: value for name, value in told.items() if value != getattr(plain, name)}
    return {"field": column.field, **more} if more else column.field


def _section(name: str, told: Pairs[str, Any]) -> list[str]:
    return [f"\n[{name}]\n", *_lines(told)] if told else []


def _lines(told: Pairs[str, Any]) -> list[str]:
    return [f"{_key(name)} = {_value(value)}\n" for name, value in told.items()]


def _key(name: str) -> str:
    return name if _BARE.fullmatch(name) else _value(name)


def _value(value: object) -> str:
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{_key(name)} = {_value(member)}" for name, member in value.items()) + " }"
    if isinstance(value, tuple | list):
        return "[" + ", ".join(map(_value, value)) + "]"
    return repr(value)
