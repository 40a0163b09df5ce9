"""Bodies of inputs as columns of JSON texts, put together from the columns of their fields.

In: the texts of each field, by line and by input, and the leaves that the bodies have. Out: a column for each member of
the body, null where an input has none of its values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.fields import (
    Leaf,
    below,
    body_leaves,
    deciding_member,
    in_order,
)
from orderbridge.pipelines.imports.json_columns import PLAIN, arrays, json_text, objects
from orderbridge.pipelines.mapping import Scalar
from orderbridge.pipelines.mapping.field_paths import EACH, Step
from orderbridge.sources.contract import Field
from orderbridge.sources.inputs import ITEM_FIELDS
from orderbridge.sources.kinds import KINDS
from orderbridge.transforms.frames import BOOLEAN, TEXT, Ints

Texts = dict[str, pa.Array]
"""Columns by field path, null where no value is given: JSON texts, but for fields that are plain texts."""
NULL_TEXT: Final = pa.scalar(None, TEXT)
_decode: Final = msgspec.json.Decoder(float_hook=Decimal).decode


class Bodies(NamedTuple):
    """Columns of bodies.

    Attributes:
        inputs, lines: texts of each input; those of each line.
        offsets: the first line of each input, and the number of lines.
    """

    inputs: Texts
    lines: Texts
    offsets: Ints

    def members(self, fields: Iterable[Field], leaves: Sequence[Leaf]) -> Texts:
        """The members of an object that have a leaf, in the contract's order."""
        members: Texts = {}
        for field in fields:
            own = below(leaves, field.name)
            if own:
                members[field.name] = self._json(field, own)
        return members

    def _json(self, field: Field, leaves: Sequence[Leaf]) -> pa.Array:
        """The JSON text of a field for each input, null where it is absent."""
        if field.type == "object":
            return objects(self.members(field.fields, leaves))
        if field.type != "array":
            return self._leaf(leaves[0])
        items = []
        for step in in_order(leaf.steps[0] for leaf in leaves):
            of_step = below(leaves, step)
            if step == EACH:
                items.append(self._items_of_lines(field, step, of_step))
            else:
                items.append(self._item(field, step, of_step))
        return arrays(items)

    def _items_of_lines(self, array: Field, step: Step, leaves: Sequence[Leaf]) -> pa.Array:
        """The items that the lines of each input have, with commas between them."""
        by_line = Bodies(self.lines, self.lines, np.arange(self.offsets[-1] + 1))
        of_lines = by_line._item(array, step, leaves)
        is_given = pc.is_valid(of_lines).to_numpy(zero_copy_only=False)
        items_before = np.append(0, np.cumsum(is_given))[self.offsets]
        of_inputs = pa.ListArray.from_arrays(
            pa.array(items_before, pa.int32()), of_lines.drop_null()
        )
        joined = pc.binary_join(of_inputs, ",")
        return pc.if_else(pc.equal(joined, ""), NULL_TEXT, joined)

    def _item(self, array: Field, step: Step, leaves: Sequence[Leaf]) -> pa.Array:
        """An item where one of its own values is given; constants and defaults alone add no item."""
        if not array.fields:
            item = self._leaf(leaves[0])
        elif isinstance(step, str) and step != EACH:
            name = Leaf(("name",), None, json_text(step[1:]))
            item = objects(self.members(array.fields, [name, *leaves]))
        else:
            item = objects(self.members(array.fields, leaves))
        member = deciding_member(leaves)
        deciding = [leaf for leaf in leaves if member is None or leaf.steps[0] == member]
        own = {leaf.path for leaf in deciding if leaf.path}
        if not own:
            return item
        given = [self.inputs[path] for path in sorted(own)]
        return pc.if_else(any_given(given, len(item)), item, NULL_TEXT)

    def _leaf(self, leaf: Leaf) -> pa.Array:
        """A value, or its default."""
        size = len(self.offsets) - 1
        texts = self.inputs[leaf.path] if leaf.path is not None else pa.nulls(size, TEXT)
        return texts if leaf.default is None else pc.coalesce(texts, leaf.default)


def decoded_body(kind: str, texts: Mapping[str, str | None]) -> dict[str, Any]:
    """A body as the models of `sources.inputs` take it; `texts` are its members, those that are null left out."""
    fields = {field.name: field for field in KINDS[kind].record.fields}
    body = {}
    for name, text in texts.items():
        if text is None:
            continue
        field = fields[name]
        value = text if field.type in PLAIN else _decode(text)
        body[name] = _typed(value, field.fields or [field])
    return body


def constant_body(kind: str, values: dict[str, Scalar]) -> dict[str, Any]:
    """The body of constants alone, by field path."""
    bodies = Bodies({}, {}, np.array([0, 1]))
    columns = bodies.members(KINDS[kind].record.fields, body_leaves(kind, (), values))
    return decoded_body(kind, {name: texts[0].as_py() for name, texts in columns.items()})


def any_given(columns: Iterable[pa.Array], size: int) -> pa.Array:
    """Where at least one of the columns has a value."""
    return reduce(pc.or_, map(pc.is_valid, columns), pa.array([False] * size, BOOLEAN))


def needs_model_check(leaves: Sequence[Leaf], kind: str) -> bool:
    """Whether a body may break a limit that spans columns: of a list, or of required fields within an object."""
    for field in KINDS[kind].record.fields:
        own = below(leaves, field.name)
        if not own:
            continue
        if any(inner.required for inner in field.fields):
            return True
        if field.type == "array" and _may_break_list(field, own):
            return True
    return False


def _may_break_list(array: Field, leaves: Sequence[Leaf]) -> bool:
    """Whether a list can have too few or too many items, or items that lack a value which they need."""
    items = {leaf.steps[0] for leaf in leaves}
    if array.min_items > 1:
        return True
    if array.max_items and len(items) > array.max_items:
        return True
    needed = ITEM_FIELDS.intersection(inner.name for inner in array.fields)
    return any(needed - {deciding_member(below(leaves, item))} for item in items)


def _typed(value: Any, fields: Sequence[Field]) -> Any:  # noqa: ANN401 # as deep as JSON goes
    """Decoded JSON whose whole numbers are decimals too, where their field is a number."""
    if isinstance(value, list):
        return [_typed(one, fields) for one in value]
    if isinstance(value, dict):
        inner = {field.name: field for field in fields}
        return {
            name: _typed(one, inner[name].fields or [inner[name]]) for name, one in value.items()
        }
    is_number = isinstance(value, int) and "number" in (fields[0].type, fields[0].items)
    return Decimal(value) if is_number else value
