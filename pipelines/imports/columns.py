"""Lines to JSON texts of their fields, whole columns at a time: the way of a plain mapping through a large file.

In: a table of lines. Out: those that surely hold to the interface as columns (`Clean`), and the others, which go the
way of `Converter`: it says what is wrong with them. Both ways give the same inputs.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.convert import has_limits, is_doubtful
from pipelines.imports.fields import MAPPED, Source, shape
from pipelines.imports.lookups import LookupTable
from pipelines.mapping import Mapping
from sources.files.model import LINE_COLUMN
from sources.inputs import fits, required
from sources.kinds import KINDS, PASSWORD, LoginMode
from transforms.frames import BOOLEAN, TEXT
from transforms.upserts.bodies import Leaf, Node, Object, counting, values
from transforms.upserts.json_columns import arrays, booleans, json_text, numbers, objects, strings
from transforms.upserts.lines import whole


class Clean(NamedTuple):
    """Inputs of a line each.

    Attributes:
        lines: of the file.
        columns: parameters of the request's path as texts; fields of the body as JSON texts, null where not given.
    """

    lines: pa.Array
    columns: dict[str, pa.Array]


class Columnar:
    """What makes columns of lines. See `columnar` for when there is one."""

    def __init__(
        self, mapping: Mapping, sources: Sequence[Source], lookups: Sequence[LookupTable], login_mode: LoginMode | None
    ) -> None:
        self._mapping, self._sources, self._lookups = mapping, sources, lookups
        self._shape = shape(mapping.kind, sources, mapping.constants)
        self._params = [field.name for field in KINDS[mapping.kind].operation.params]
        needed = required(mapping.kind, login_mode)
        fields = [field for field in KINDS[mapping.kind].record.fields if field.name != PASSWORD]
        self._needed = [field.name for field in fields if field.required or field.name in needed]

    def split(self, table: pa.Table) -> tuple[Clean, pa.Table]:
        """The lines that surely hold, and those of which `Converter` must say what they are."""
        size = table.num_rows
        good = pa.array([True] * size, BOOLEAN)
        texts: dict[str, pa.Array] = {}
        for at, lookup in enumerate(self._lookups):
            given, codes = lookup.find(table)
            good = pc.and_(good, pc.is_null(codes))
            for source in self._sources:
                if source.lookup == at:
                    texts[source.path], fine = _read(source, given[source.path])
                    good = pc.and_(good, fine)
        for source in self._sources:
            if source.lookup == MAPPED:
                texts[source.path], fine = _read(source, whole(table, source.column))
                good = pc.and_(good, fine)
        columns = dict(_members(self._shape, texts, size))
        any_given = _any(list(columns.values()), size)
        for name in self._params:
            columns[name] = texts.get(name, _constant(str(self._mapping.constants.get(name, "")), size))
        for name in (*self._params, *self._needed):
            good = pc.and_(good, pc.is_valid(columns[name])) if name in columns else pa.array([False] * size, BOOLEAN)
        good = pc.and_(good, any_given)
        lines = table[LINE_COLUMN].combine_chunks()
        if pc.all(good).as_py():
            return Clean(lines, columns), table.slice(0, 0)
        kept = {name: column.filter(good) for name, column in columns.items()}
        return Clean(lines.filter(good), kept), table.filter(pc.invert(good))


def columnar(
    mapping: Mapping, sources: Sequence[Source], lookups: Sequence[LookupTable], login_mode: LoginMode | None
) -> Columnar | None:
    """A way by columns, where each line is an input, and no limit lies between the columns."""
    is_filled = any(source.default is not None and source.place.is_item for source in sources)
    if mapping.group or is_filled or is_doubtful(shape(mapping.kind, sources, mapping.constants), mapping.kind):
        return None
    return Columnar(mapping, sources, lookups, login_mode)


def _read(source: Source, cells: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The JSON texts of a source, and where they are in no doubt."""
    read, codes = source.reading.read(cells)
    good = pc.is_null(codes)
    kind = source.reading.kind
    field = source.place.field
    if kind == "secret":
        return read, pc.is_valid(read)
    if source.blank == "reject":
        good = pc.and_(good, pc.is_valid(read))
    if source.place.steps and has_limits(field):
        _, distinct = values(kind, read)
        if not fits(field, distinct):
            alone = (
                (text, values(kind, pa.array([text], TEXT))[1]) for text in pc.unique(read.drop_null()).to_pylist()
            )
            fine = pa.array([text for text, value in alone if fits(field, value)], TEXT)
            good = pc.and_(good, pc.or_(pc.is_null(read), pc.is_in(read, fine)))
    if kind == "boolean":
        made = booleans(read)
    elif kind in ("integer", "number"):
        made = numbers(read)
        made = pc.if_else(pc.equal(made, "-0"), "0", made)
        if source.change:
            made = pc.if_else(pc.equal(made, "0"), pa.scalar(None, TEXT), made)
    elif source.place.steps:
        made = strings(read)
    else:
        made = read
    if source.blank == "clear":
        made = pc.coalesce(made, '""')
    if source.default is not None:
        made = pc.coalesce(made, json_text(source.default))
    return made, good


def _constant(text: str, size: int) -> pa.Array:
    return pa.array([text or None] * size, TEXT)


def _members(node: Object, texts: dict[str, pa.Array], size: int) -> list[tuple[str, pa.Array]]:
    return [(name, _text(member, texts, size)) for name, member in node.members]


def _text(node: Node, texts: dict[str, pa.Array], size: int) -> pa.Array:
    """The JSON of a node, null where it is not there."""
    if isinstance(node, Leaf):
        return _constant(json_text(node.default), size) if node.path is None else texts[node.path]
    if isinstance(node, Object):
        return objects(dict(_members(node, texts, size)))
    items = []
    for item in node.items:
        own = [texts[path] for path in sorted(counting(item))]
        made = _text(item, texts, size)
        items.append(_where(made, own) if own else made)
    return arrays(items)


def _where(made: pa.Array, own: Sequence[pa.Array]) -> pa.Array:
    """What was made, where one of its own values is given."""
    return pc.if_else(_any(own, len(made)), made, pa.scalar(None, TEXT))


def _any(columns: Sequence[pa.Array], size: int) -> pa.Array:
    """Where one of the columns has something."""
    return reduce(pc.or_, map(pc.is_valid, columns), pa.array([False] * size, BOOLEAN))
