"""The fields that a mapping fills, ready to be read: where the cells come from, how they are read, where they go.

In: a checked mapping. Out: a source for each field, and the shape of the bodies.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

from pipelines.mapping import Blank, Formats, Mapping, Scalar
from pipelines.mapping.places import EACH, Place, Step, place
from sources.contract import Field
from sources.errors import BridgeError
from sources.inputs import pairs
from sources.kinds import KINDS, PASSWORD
from transforms.numbers import COMMA, POINT, Notation
from transforms.upserts.bodies import Array, Leaf, Node, Object
from transforms.upserts.cells import NO, YES, Kind, Reading

_KINDS: Final[dict[str, Kind]] = {
    "text": "text",
    "decimal_text": "text",
    "integer": "integer",
    "number": "number",
    "boolean": "boolean",
    "date": "date",
}
MAPPED: Final = -1


@dataclass(frozen=True, slots=True)
class Source:
    """What fills a field.

    Attributes:
        place: where it goes.
        reading: how the texts are read.
        column: of the file, or of the lookup's file.
        lookup: which one; `MAPPED`: the file itself.
        proves: whether its column must prove how its numbers are written.
        blank, default, change: as the mapping says.
    """

    place: Place
    reading: Reading
    column: str
    lookup: int = MAPPED
    proves: bool = False
    blank: Blank = "omit"
    default: Any = None
    change: bool = False

    @property
    def path(self) -> str:
        """As the mapping writes it."""
        return self.place.path

    @property
    def is_number(self) -> bool:
        """Whether its cells are read as numbers."""
        return self.reading.kind in ("integer", "number")


def sources(mapping: Mapping) -> list[Source]:
    """A source for each field that a column or a lookup fills, in the mapping's order."""
    found: list[Source] = []
    for name, column in mapping.columns.items():
        for path in (column.field, *column.also):
            if path is None:
                continue
            where = found_place(mapping.kind, path)
            formats = column.formats.over(mapping.formats)
            reading, proves = _reading(where, formats, trim=column.trim)
            default = None if column.default is None else constant(where.field, column.default)
            found.append(
                Source(where, reading, name, MAPPED, proves, column.blank, default, column.change and not where.is_item)
            )
    for at, lookup in enumerate(mapping.lookups):
        for path, name in lookup.give.items():
            where = found_place(mapping.kind, path)
            reading, proves = _reading(where, Formats(), trim=True)
            found.append(Source(where, reading, name, at, proves))
    return found


def found_place(kind: str, path: str) -> Place:
    """The place of a path that was checked."""
    found = place(kind, path)
    if isinstance(found, str):
        raise BridgeError(f"a mapping was not checked: {path} {found}")
    return found


def constant(field: Field, value: Scalar) -> Any:  # noqa: ANN401 # of the field's type
    """A value of TOML as a body has it."""
    if field.type == "number":
        return Decimal(repr(value)) if isinstance(value, float) else Decimal(value)
    return str(value) if field.type == "identifier" else value


def _reading(where: Place, formats: Formats, *, trim: bool) -> tuple[Reading, bool]:
    """How a field's texts are read, and whether their notation must be proven."""
    field = where.field
    if where.path == PASSWORD:
        return Reading("secret"), False
    kind: Kind = (
        ("number_id" if field.json == "integer" else "id") if field.type == "identifier" else _KINDS[field.type]
    )
    notation = _notation(formats)
    return Reading(
        kind,
        notation,
        yes=formats.yes or YES,
        no=formats.no or NO,
        date=formats.date or "YYYY-MM-DD",
        empty=formats.empty or (),
        trim=trim,
    ), kind in ("integer", "number") and notation is None


def _notation(formats: Formats) -> Notation | None:
    if formats.decimal is None:
        return None
    usual = COMMA if formats.decimal == "," else POINT
    return Notation(formats.decimal, usual.thousands if formats.thousands is None else formats.thousands)


def shape(kind: str, found: Iterable[Source], constants: dict[str, Scalar]) -> Object:
    """The shape of the bodies: what the sources and constants fill, in the contract's order, without the password."""
    ways: list[tuple[tuple[Step, ...], Leaf]] = [
        (source.place.steps, Leaf(source.path, source.default))
        for source in found
        if source.path != PASSWORD and source.place.steps
    ]
    for path, value in constants.items():
        where = found_place(kind, path)
        if where.steps:
            ways.append((where.steps, Leaf(None, constant(where.field, value))))
    return Object(tuple(_members(KINDS[kind].record.fields, ways, pairs(kind))))


def _members(
    fields: Iterable[Field], ways: Sequence[tuple[tuple[Step, ...], Leaf]], named: frozenset[str]
) -> list[tuple[str, Node]]:
    made: list[tuple[str, Node]] = []
    for field in fields:
        mine = [(steps[1:], leaf) for steps, leaf in ways if steps[0] == field.name]
        if not mine:
            continue
        if field.type == "object":
            made.append((field.name, Object(tuple(_members(field.fields, mine, frozenset())))))
        elif field.type == "array":
            made.append((field.name, _array(field, mine, is_pair=field.name in named)))
        else:
            made.append((field.name, mine[0][1]))
    return made


def _array(field: Field, ways: Sequence[tuple[tuple[Step, ...], Leaf]], *, is_pair: bool) -> Array:
    keys = sorted({steps[0] for steps, _ in ways if isinstance(steps[0], int)})
    names = dict.fromkeys(steps[0] for steps, _ in ways if isinstance(steps[0], str) and steps[0] != EACH)
    items: dict[Step, Node] = {}
    order: list[Step] = [*keys, *names, EACH]
    for key in order:
        mine = [(steps[1:], leaf) for steps, leaf in ways if steps[0] == key]
        if not mine:
            continue
        if not field.fields:
            items[key] = mine[0][1]
            continue
        members = _members(field.fields, mine, frozenset())
        if key in names:
            members.insert(0, ("name", Leaf(None, str(key)[1:])))
        has_value = any(name == "value" for name, _ in members)
        items[key] = Object(tuple(members), "value" if is_pair and has_value else None)
    each = items.pop(EACH, None)
    return Array(tuple(items.values()), each)
