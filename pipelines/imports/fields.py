"""The fields that a mapping fills, resolved: where their cells are, how they are parsed, where the values go.

In: a checked mapping. Out: `Bindings`, a source for each field and the values of the bodies, which the
conversion and the survey of the file work from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import Final, NamedTuple

from orderbridge.pipelines.imports.json_columns import json_text
from orderbridge.pipelines.imports.lookups import LookupTable
from orderbridge.pipelines.mapping import Blank, Formats, Mapping, Scalar
from orderbridge.pipelines.mapping.cells import NO, YES, Reading
from orderbridge.pipelines.mapping.field_paths import EACH, FieldPath, Step, resolve
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.inputs import ITEM_VALUES, required
from orderbridge.sources.kinds import KINDS, PASSWORD, LoginMode
from orderbridge.transforms.values.numbers import COMMA, POINT, Notation

IN_FILE: Final = -1
"""The `lookup` of a source whose column is in the input file itself."""


class Leaf(NamedTuple):
    """A value of a column, or the default where that has none; without a column a constant. As text, like columns.

    `steps` lead to the value from the body, or from the part of it that is looked at.
    """

    steps: tuple[Step, ...]
    path: str | None
    default: str | None = None


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
    def has_currency(self) -> bool:
        """Whether the mapping names the currency of its numbers."""
        return self.is_number and bool(self.reading.currency) and self.lookup == IN_FILE

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
    def leaves(self) -> list[Leaf]:
        """The values of the bodies."""
        return body_leaves(self.mapping.kind, self.sources, self.mapping.constants)

    @property
    def params(self) -> list[str]:
        """The parameters of the request's path."""
        return [field.name for field in KINDS[self.mapping.kind].operation.params]

    @property
    def required_fields(self) -> list[str]:
        """Top-level fields that every body must have; the password is never in a body."""
        names = required(self.mapping.kind, self.login_mode)
        fields = KINDS[self.mapping.kind].record.fields
        return [
            field.name
            for field in fields
            if field.name != PASSWORD and (field.required or field.name in names)
        ]

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
            reading, detects = _reading(
                target, column.formats.over(mapping.formats), trim=column.trim
            )
            # of changes, it is 0, which is not sent
            default = None if column.change else column.default
            sources.append(
                Source(
                    target, reading, name, IN_FILE, detects, column.blank, default, column.change
                )
            )
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
    thousands = usual.thousands if formats.thousands is None else formats.thousands
    return Notation(formats.decimal, "'" if thousands == "’" else thousands)


def body_leaves(kind: str, sources: Iterable[Source], constants: dict[str, Scalar]) -> list[Leaf]:
    """The values of the bodies, that sources and constants fill; no password."""
    leaves = [
        Leaf(source.target.steps, source.path, _text(source.target, source.default))
        for source in sources
        if source.path != PASSWORD
    ]
    for path, value in constants.items():
        target = _resolved(kind, path)
        leaves.append(Leaf(target.steps, None, _text(target, value)))
    return [leaf for leaf in leaves if leaf.steps]


def below(leaves: Iterable[Leaf], step: Step) -> list[Leaf]:
    """The values within a member or an item."""
    return [leaf._replace(steps=leaf.steps[1:]) for leaf in leaves if leaf.steps[0] == step]


def in_order(steps: Iterable[Step]) -> list[Step]:
    """The items of an array in their order: by position, by name, and last `EACH`, an item for each line of a group."""
    order = {
        step: (isinstance(step, str), step == EACH, step if isinstance(step, int) else 0)
        for step in steps
    }
    return sorted(order, key=order.__getitem__)


def deciding_member(leaves: Iterable[Leaf]) -> Step | None:
    """The member without which there is no item; None: any value makes one."""
    return next(
        (leaf.steps[0] for leaf in leaves if leaf.steps and leaf.steps[0] in ITEM_VALUES), None
    )
