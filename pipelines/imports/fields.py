"""The fields that a mapping fills, resolved: where their cells are, how they are parsed, where the values go.

In: a checked mapping. Out: `Bindings`, a source for each field and the shape of the bodies, which the
conversion and the survey of the file work from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final

from pipelines.imports.json_columns import json_text
from pipelines.imports.lookups import LookupTable
from pipelines.mapping import Blank, Formats, Mapping, Scalar
from pipelines.mapping.cells import NO, YES, Reading
from pipelines.mapping.field_paths import EACH, FieldPath, Step, resolve
from sources.contract import Field
from sources.errors import BridgeError
from sources.inputs import ITEM_VALUES, required
from sources.kinds import KINDS, PASSWORD, LoginMode
from transforms.numbers import COMMA, POINT, Notation

IN_FILE: Final = -1
"""The `lookup` of a source whose column is in the input file itself."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A value of a column, or the default where that has none; without a column a constant. As text, like columns."""

    path: str | None
    default: str | None = None


@dataclass(frozen=True, slots=True)
class Object:
    """Members in their order. `needs`: the member without which there is no object."""

    members: tuple[tuple[str, Node], ...]
    needs: str | None = None


@dataclass(frozen=True, slots=True)
class Array:
    """Items in their order; `each` adds an item for every line of a group."""

    items: tuple[Node, ...] = ()
    each: Node | None = None


Node = Leaf | Object | Array


@dataclass(frozen=True, slots=True)
class Source:
    """What fills a field.

    Attributes:
        column: the column, of the input file or of a lookup file.
        lookup: the index of the lookup, or `IN_FILE`.
        detects_notation: whether the notation of its numbers has to be detected from the column.
        blank, default, change: as in the mapping.
    """

    target: FieldPath
    reading: Reading
    column: str
    lookup: int = IN_FILE
    detects_notation: bool = False
    blank: Blank = "omit"
    default: Scalar | None = None
    change: bool = False

    @property
    def path(self) -> str:
        """The field path as the mapping writes it."""
        return self.target.path

    @property
    def column_in_file(self) -> str:
        """The column of the input file; empty for one of a lookup file."""
        return self.column if self.lookup == IN_FILE else ""

    @property
    def is_number(self) -> bool:
        """Whether its cells are parsed as numbers."""
        return self.reading.kind in ("integer", "number")


@dataclass(frozen=True)
class Bindings:
    """Everything that fills the inputs of one kind; the sources are in the mapping's order."""

    mapping: Mapping
    sources: Sequence[Source]
    lookups: Sequence[LookupTable]
    login_mode: LoginMode | None

    @cached_property
    def shape(self) -> Object:
        """The shape of the bodies."""
        return body_shape(self.mapping.kind, self.sources, self.mapping.constants)

    @property
    def params(self) -> list[str]:
        """The parameters of the request's path."""
        return [field.name for field in KINDS[self.mapping.kind].operation.params]

    @property
    def required_fields(self) -> list[str]:
        """Top-level fields that every body must have; the password is never in a body."""
        names = required(self.mapping.kind, self.login_mode)
        fields = KINDS[self.mapping.kind].record.fields
        return [field.name for field in fields if field.name != PASSWORD and (field.required or field.name in names)]

    @property
    def columns(self) -> list[str]:
        """Every column of the input file that is read."""
        mapping = self.mapping
        names = [source.column for source in self.sources if source.lookup == IN_FILE]
        names += [*mapping.group, *mapping.fill_down, *mapping.fill_within, *mapping.skip_blank]
        names += [name for lookup in mapping.lookups for name in lookup.match]
        return list(dict.fromkeys(names))


def field_sources(mapping: Mapping) -> list[Source]:
    """A source for each field that a column or a lookup fills, in the mapping's order."""
    sources: list[Source] = []
    for name, column in mapping.columns.items():
        for path in column.paths:
            target = _resolved(mapping.kind, path)
            reading, detects = _reading(target, column.formats.over(mapping.formats), trim=column.trim)
            default = None if column.change else column.default  # of changes, it is 0, which is not sent
            sources.append(Source(target, reading, name, IN_FILE, detects, column.blank, default, column.change))
    for index, lookup in enumerate(mapping.lookups):
        for path, name in lookup.give.items():
            target = _resolved(mapping.kind, path)
            reading, detects = _reading(target, Formats(), trim=True)
            sources.append(Source(target, reading, name, index, detects))
    return sources


def _resolved(kind: str, path: str) -> FieldPath:
    target = resolve(kind, path)
    if isinstance(target, str):
        raise BridgeError(f"unchecked mapping: {path} {target}")
    return target


def _text(target: FieldPath, value: Scalar | None) -> str | None:
    """A TOML value as a column of the field has it."""
    if value is None or target.is_plain:
        return value if value is None else str(value)
    return json_text(Decimal(str(value)) if target.field.type == "number" else value)


def _reading(target: FieldPath, formats: Formats, *, trim: bool) -> tuple[Reading, bool]:
    """How a field's cells are parsed, and whether their notation has to be detected."""
    if target.path == PASSWORD:
        return Reading("secret"), False
    notation = _notation(formats)
    reading = Reading(
        target.value_kind,
        notation,
        formats.currency or "",
        yes=formats.yes or YES,
        no=formats.no or NO,
        date=formats.date or "YYYY-MM-DD",
        empty=formats.empty or (),
        trim=trim,
    )
    return reading, reading.kind in ("integer", "number") and notation is None


def _notation(formats: Formats) -> Notation | None:
    if formats.decimal is None:
        return None
    usual = COMMA if formats.decimal == "," else POINT
    return Notation(formats.decimal, usual.thousands if formats.thousands is None else formats.thousands)


def body_shape(kind: str, sources: Iterable[Source], constants: dict[str, Scalar]) -> Object:
    """The shape of the bodies: the fields that sources and constants fill, in the contract's order; no password."""
    leaves: list[tuple[tuple[Step, ...], Leaf]] = [
        (source.target.steps, Leaf(source.path, _text(source.target, source.default)))
        for source in sources
        if source.path != PASSWORD and source.target.steps
    ]
    for path, value in constants.items():
        target = _resolved(kind, path)
        if target.steps:
            leaves.append((target.steps, Leaf(None, _text(target, value))))
    return Object(tuple(_members(KINDS[kind].record.fields, leaves)))


def _members(fields: Iterable[Field], leaves: Sequence[tuple[tuple[Step, ...], Leaf]]) -> list[tuple[str, Node]]:
    members: list[tuple[str, Node]] = []
    for field in fields:
        below = [(steps[1:], leaf) for steps, leaf in leaves if steps[0] == field.name]
        if not below:
            continue
        if field.type == "object":
            members.append((field.name, Object(tuple(_members(field.fields, below)))))
        elif field.type == "array":
            members.append((field.name, _array(field, below)))
        else:
            members.append((field.name, below[0][1]))
    return members


def _array(field: Field, leaves: Sequence[tuple[tuple[Step, ...], Leaf]]) -> Array:
    positions = sorted({steps[0] for steps, _ in leaves if isinstance(steps[0], int)})
    names = dict.fromkeys(steps[0] for steps, _ in leaves if isinstance(steps[0], str) and steps[0] != EACH)
    items: dict[Step, Node] = {}
    order: list[Step] = [*positions, *names, EACH]
    for key in order:
        below = [(steps[1:], leaf) for steps, leaf in leaves if steps[0] == key]
        if not below:
            continue
        if not field.fields:
            items[key] = below[0][1]
            continue
        members = _members(field.fields, below)
        if key in names:
            members.insert(0, ("name", Leaf(None, json_text(str(key)[1:]))))
        items[key] = Object(tuple(members), next((name for name, _ in members if name in ITEM_VALUES), None))
    each = items.pop(EACH, None)
    return Array(tuple(items.values()), each)
