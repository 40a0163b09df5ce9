"""Lines to JSON texts, whole columns at a time: the fast path for lines without problems.

In: a table of lines. Out: the lines that certainly meet the interface, as columns (`CleanBatch`), and the rest, which
`convert` takes apart to report each problem.

`convert` alone would do, but it makes Python objects of every row. Planning 1M rows takes 10 s of CPU this way and
17 s through `convert` alone, over the bar of 12 s (measured with the file of tests/bench/plan.py). A
property test in test_columnar.py holds both equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.bodies import Leaf, Node, Object, counting, values
from pipelines.imports.convert import has_limits, needs_model_check
from pipelines.imports.fields import IN_FILE, Bindings, Source
from pipelines.imports.groups import whole
from pipelines.imports.json_columns import arrays, json_text, numbers, objects, strings
from sources.files.model import LINE_COLUMN
from sources.inputs import fits
from transforms.frames import BOOLEAN, TEXT


class CleanBatch(NamedTuple):
    """Ready inputs of one line each.

    Attributes:
        lines: their lines in the file.
        columns: parameters of the request's path as text; fields of the body as JSON text, null where absent.
    """

    lines: pa.Array
    columns: dict[str, pa.Array]


def is_columnar(bindings: Bindings) -> bool:
    """Whether each line is one input and no limit spans several columns: then `split_clean` can be used."""
    has_item_default = any(source.default is not None and source.target.is_item for source in bindings.sources)
    is_by_line = not (bindings.mapping.group or has_item_default)
    return is_by_line and not needs_model_check(bindings.shape, bindings.mapping.kind)


def split_clean(bindings: Bindings, table: pa.Table) -> tuple[CleanBatch, pa.Table]:
    """The lines that certainly meet the interface, converted; and the rest, for `convert`."""
    size = table.num_rows
    is_clean = pa.array([True] * size, BOOLEAN)
    texts: dict[str, pa.Array] = {}
    looked_up: list[dict[str, pa.Array]] = []
    for lookup in bindings.lookups:
        cells, codes = lookup.find(table)
        looked_up.append(cells)
        is_clean = pc.and_(is_clean, pc.is_null(codes))
    for source in bindings.sources:
        in_file = source.lookup == IN_FILE
        cells = whole(table, source.column) if in_file else looked_up[source.lookup][source.path]
        texts[source.path], is_valid = _convert(source, cells)
        is_clean = pc.and_(is_clean, is_valid)
    columns = dict(_members(bindings.shape, texts, size))
    has_body = _any_given(list(columns.values()), size)
    for name in bindings.params:
        columns[name] = texts.get(name, _constant(str(bindings.mapping.constants.get(name, "")), size))
    for name in (*bindings.params, *bindings.required_fields):
        is_given = pc.is_valid(columns[name]) if name in columns else pa.array([False] * size, BOOLEAN)
        is_clean = pc.and_(is_clean, is_given)
    is_clean = pc.and_(is_clean, has_body)
    lines = table[LINE_COLUMN].combine_chunks()
    if pc.all(is_clean).as_py():
        return CleanBatch(lines, columns), table.slice(0, 0)
    clean = {name: column.filter(is_clean) for name, column in columns.items()}
    return CleanBatch(lines.filter(is_clean), clean), table.filter(pc.invert(is_clean))


def _convert(source: Source, cells: pa.Array) -> tuple[pa.Array, pa.Array]:
    """The JSON texts of a source, and where they are certainly valid."""
    parsed, codes = source.reading.read(cells)
    is_valid = pc.is_null(codes)
    kind, field = source.reading.kind, source.target.field
    if kind == "secret":
        return parsed, pc.is_valid(parsed)
    if source.blank == "reject":
        is_valid = pc.and_(is_valid, pc.is_valid(parsed))
    if source.target.steps and has_limits(field):
        _, distinct = values(kind, parsed)
        if not fits(field, distinct):
            singles = (
                (text, values(kind, pa.array([text], TEXT))[1]) for text in pc.unique(parsed.drop_null()).to_pylist()
            )
            fitting = pa.array([text for text, value in singles if fits(field, value)], TEXT)
            is_valid = pc.and_(is_valid, pc.or_(pc.is_null(parsed), pc.is_in(parsed, fitting)))
    if kind == "boolean":
        texts = pc.if_else(parsed, "true", "false")
    elif kind in ("integer", "number"):
        texts = numbers(parsed)
        texts = pc.if_else(pc.equal(texts, "-0"), "0", texts)
        if source.change:
            texts = pc.if_else(pc.equal(texts, "0"), pa.scalar(None, TEXT), texts)
    elif source.target.steps:
        texts = strings(parsed)
    else:
        texts = parsed
    if source.blank == "clear":
        texts = pc.coalesce(texts, '""')
    if source.default is not None:
        texts = pc.coalesce(texts, json_text(source.default) if source.target.steps else str(source.default))
    return texts, is_valid


def _constant(text: str, size: int) -> pa.Array:
    return pa.array([text or None] * size, TEXT)


def _members(node: Object, texts: dict[str, pa.Array], size: int) -> list[tuple[str, pa.Array]]:
    return [(name, _json(member, texts, size)) for name, member in node.members]


def _json(node: Node, texts: dict[str, pa.Array], size: int) -> pa.Array:
    """The JSON text of a node, null where it is absent."""
    if isinstance(node, Leaf):
        return _constant(json_text(node.default), size) if node.path is None else texts[node.path]
    if isinstance(node, Object):
        return objects(dict(_members(node, texts, size)))
    items = []
    for item in node.items:
        own = [texts[path] for path in sorted(counting(item))]
        json = _json(item, texts, size)
        items.append(pc.if_else(_any_given(own, size), json, pa.scalar(None, TEXT)) if own else json)
    return arrays(items)


def _any_given(columns: Sequence[pa.Array], size: int) -> pa.Array:
    """Where at least one of the columns has a value."""
    return reduce(pc.or_, map(pc.is_valid, columns), pa.array([False] * size, BOOLEAN))
