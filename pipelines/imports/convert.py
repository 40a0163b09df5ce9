"""Lines of text to inputs, whole columns at a time; each problem is reported with its line, column and field.

In: a table of lines, each an input or grouped. Out: the inputs that meet the interface as columns of texts
(`ReadyInputs`), the rejected and the skipped ones. Only inputs that a columnar check does not prove valid become Python
objects, for the pydantic model to name each limit that they break.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from functools import reduce
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.fields import (
    IN_FILE,
    Bindings,
    Leaf,
    Source,
    below,
    body_leaves,
    deciding_member,
    in_order,
)
from orderbridge.pipelines.imports.groups import whole
from orderbridge.pipelines.imports.json_columns import (
    PLAIN,
    arrays,
    json_text,
    numbers,
    objects,
    strings,
)
from orderbridge.pipelines.imports.model import (
    Item,
    Problem,
    ReadyInputs,
    RejectedInput,
    SkippedLine,
)
from orderbridge.pipelines.mapping import Scalar
from orderbridge.pipelines.mapping.field_paths import EACH, Step
from orderbridge.sources.contract import Field
from orderbridge.sources.files.model import LINE_COLUMN
from orderbridge.sources.inputs import ITEM_FIELDS, ITEM_VALUES, fits, violations
from orderbridge.sources.kinds import KINDS, PASSWORD
from orderbridge.transforms.frames import BOOLEAN, TEXT, Bools, Ints

Texts = dict[str, pa.Array]
"""Columns by field path, null where no value is given: JSON texts, but for fields that are plain texts."""
NO_FIELDS: Final = "no field has a value"
_BLANK: Final = 'is empty (the mapping sets blank = "reject")'
_REQUIRED: Final = "required"
_DIFFERS: Final = "the lines of this group have different values; only a list field ([+]) takes one from each line"
_NONE: Final = pa.scalar(None, TEXT)
_decode: Final = msgspec.json.Decoder(float_hook=Decimal).decode


def convert(
    bindings: Bindings,
    table: pa.Table,
    starts: Ints | None = None,
    faults: Mapping[int, Problem] | None = None,
) -> Iterator[Item]:
    """The inputs of lines: first the ready ones, all at once, then the others in their order.

    Args:
        bindings: what fills the inputs.
        table: text columns and the line numbers.
        starts: the first row of each input; None: each row is one.
        faults: a problem of inputs as a whole, by their number.
    """
    batch = _Batch(bindings, table, starts)
    for index, lookup in enumerate(bindings.lookups):
        cells, codes = lookup.find(table)
        batch.report_codes(", ".join(lookup.lookup.match), list(cells), codes, lookup.words)
        for source in bindings.sources:
            if source.lookup == index:
                batch.parse(source, cells[source.path])
    for source in bindings.sources:
        if source.lookup == IN_FILE:
            batch.parse(source, whole(table, source.column))
    batch.merge()
    fields = KINDS[bindings.mapping.kind].record.fields
    columns = batch.parameters() | _Bodies(batch.inputs, batch.lines, batch.offsets).members(
        fields, bindings.leaves
    )
    batch.check_passwords()
    body = {name: texts for name, texts in columns.items() if name not in bindings.params}
    batch.check_limits(body)
    for row, fault in (faults or {}).items():
        batch.problems[row].append(fault)
    is_ready, has_problems = (
        _any_given(list(body.values()), batch.size),
        np.zeros(batch.size, np.bool_),
    )
    has_problems[list(batch.problems)] = True
    if has_problems.any():
        is_ready = pc.and_(is_ready, pa.array(~has_problems))
    numbers_of_input = pa.ListArray.from_arrays(
        pa.array(batch.offsets, pa.int32()), pa.array(batch.line_numbers)
    )
    if pc.all(is_ready).as_py():
        yield ReadyInputs(numbers_of_input, columns)
        return
    if pc.any(is_ready).as_py():
        ready = {name: texts.filter(is_ready) for name, texts in columns.items()}
        yield ReadyInputs(numbers_of_input.filter(is_ready), ready)
    for row in np.flatnonzero(~is_ready.to_numpy(zero_copy_only=False)).tolist():
        lines, problems = tuple(batch.lines_of(row)), batch.problems.get(row)
        yield RejectedInput(lines, tuple(problems)) if problems else SkippedLine(lines, NO_FIELDS)


class _Batch:
    """Parsed columns of a batch of lines, and the problems of its inputs.

    Attributes:
        size: the number of inputs.
        line_numbers: of each line in the file.
        offsets: of each input's first line, and the number of lines.
        lines, inputs: the texts of each line; those of each input, without defaults.
        problems: by number of the input.
    """

    def __init__(self, bindings: Bindings, table: pa.Table, starts: Ints | None) -> None:
        self._bindings, self._is_grouped = bindings, starts is not None
        self.line_numbers: Ints = table[LINE_COLUMN].to_numpy()
        count = len(self.line_numbers)
        self.offsets = np.append(np.arange(count) if starts is None else starts, count)
        self.size = len(self.offsets) - 1
        self.lines: Texts = {}
        self.inputs: Texts = {}
        self._is_within = pa.array(np.ones(self.size, np.bool_))
        self.problems: dict[int, list[Problem]] = defaultdict(list)
        self._reported: dict[int, list[str]] = defaultdict(list)

    def lines_of(self, row: int) -> list[int]:
        """The lines of an input."""
        numbers: list[int] = self.line_numbers[self.offsets[row] : self.offsets[row + 1]].tolist()
        return numbers

    def parse(self, source: Source, cells: pa.Array) -> None:
        """Parses the cells of a source."""
        parsed, codes = source.reading.read(cells)
        self.report_codes(source.column_in_file, [source.path], codes, source.reading.words, cells)
        if source.target.steps and has_limits(source.target.field) and not self._is_grouped:
            self._is_within = pc.and_(self._is_within, _is_within(source, parsed))
        self.lines[source.path] = _json_of(source, parsed)

    def report_codes(
        self,
        column: str,
        paths: Sequence[str],
        codes: pa.Array,
        words: Callable[[str], str],
        cells: pa.Array | None = None,
    ) -> None:
        """Records a problem for each line that has a code, with its cell if a single one is at fault."""
        for line in _where(pc.is_valid(codes)) if codes.null_count < len(codes) else ():
            code = codes[line].as_py()
            row = self._input_of(line)
            number = int(self.line_numbers[line])
            cell = "" if cells is None else cells[line].as_py()
            self.report(row, paths[0], code, words(code), column, number, cell)
            self._reported[row] += paths

    def report(
        self,
        row: int,
        path: str,
        code: str,
        words: str,
        column: str = "",
        line: int = 0,
        cell: str = "",
    ) -> None:
        """Records a problem of an input, unless one of the same field on the same line is recorded already."""
        if not line and len(self.lines_of(row)) == 1:
            line = self.lines_of(row)[0]
        is_reported = any(
            _within(path, other) or _within(other, path) for other in self._reported.get(row, ())
        )
        is_other_line = path in self._reported[row] and any(
            problem.line != line for problem in self.problems[row] if problem.field == path
        )
        if is_reported and not (line and is_other_line):
            return
        self._reported[row].append(path)
        self.problems[row].append(Problem(column, path, code, words, line, cell))

    def merge(self) -> None:
        """Merges the lines of each group, then applies the mapping's rule for empty cells."""
        for source in self._bindings.sources:
            if source.target.is_each:
                continue
            texts = self._merged(source, self.lines[source.path])
            if source.blank == "clear":
                texts = pc.coalesce(texts, "" if source.target.is_plain else '""')
            elif source.blank == "reject" and texts.null_count:
                for row in _where(pc.is_null(texts)):
                    self.report(row, source.path, "blank", _BLANK, source.column)
            if source.change:  # a change by 0 is not sent
                texts = pc.if_else(pc.equal(texts, "0"), _NONE, texts)
            self.inputs[source.path] = texts

    def parameters(self) -> Texts:
        """The parameters of each request's path."""
        mapping, sources = (
            self._bindings.mapping,
            {source.path: source for source in self._bindings.sources},
        )
        columns: Texts = {}
        for name in self._bindings.params:
            source = sources.get(name)
            default = mapping.constants.get(name, source.default if source is not None else None)
            texts = self.inputs.get(name, pa.nulls(self.size, TEXT))
            columns[name] = texts if default is None else pc.coalesce(texts, str(default))
            for row in _where(pc.is_null(columns[name])) if columns[name].null_count else ():
                self.report(
                    row,
                    name,
                    "required",
                    _REQUIRED,
                    source.column_in_file if source is not None else "",
                )
        return columns

    def check_passwords(self) -> None:
        """Rejects inputs none of whose lines has a password."""
        if (column := self._bindings.mapping.password_column) is not None and self.size:
            is_given = pc.is_valid(self.lines[PASSWORD]).to_numpy(zero_copy_only=False)
            for row in np.flatnonzero(
                ~np.logical_or.reduceat(is_given, self.offsets[:-1])
            ).tolist():
                self.report(row, PASSWORD, "required", _REQUIRED, column, self.lines_of(row)[0])

    def check_limits(self, body: Texts) -> None:
        """Validates the bodies that the columns do not prove valid."""
        bindings, kind = self._bindings, self._bindings.mapping.kind
        is_proven = pa.array(
            [not (self._is_grouped or needs_model_check(bindings.leaves, kind))] * self.size,
            BOOLEAN,
        )
        for name in bindings.required_fields:
            is_proven = pc.and_(
                is_proven, pc.is_valid(body[name]) if name in body else pa.scalar(False)
            )
        rows = _where(pc.invert(pc.and_(is_proven, self._is_within)))
        parts = (
            pa.table(body).take(pa.array(rows, pa.int64())).to_pylist()
            if rows and body
            else [{} for _ in rows]
        )
        for violation in violations(
            kind, [_body(kind, one) for one in parts], bindings.login_mode, with_password=False
        ):
            row = rows[violation.row]
            source = self._source_of(row, violation.field)
            path = source.path if source is not None else violation.field
            self.report(
                row,
                path,
                violation.code,
                violation.words,
                source.column if source is not None else "",
            )

    def _source_of(self, row: int, field: str) -> Source | None:
        """The source of a body's field. Absent items shift the positions of later ones."""
        sources = [
            s for s in self._bindings.sources if s.lookup == IN_FILE and s.path in self.inputs
        ]
        array, is_item, rest = field.partition("[")
        if not is_item:
            below = [
                source for source in sources if source.path.startswith((f"{field}[", f"{field}."))
            ]
            return next(
                (source for source in sources if source.path == field),
                below[0] if len(below) == 1 else None,
            )
        prefix = tuple(array.split("."))
        depth = len(prefix)
        items = [source for source in sources if source.target.steps[:depth] == prefix]
        position, _, member = rest.partition("]")
        deciding = [source for source in items if source.target.steps[-1] in ITEM_VALUES] or items
        present = {s.target.steps[depth] for s in deciding if self.inputs[s.path][row].is_valid}
        order = [step for step in in_order(s.target.steps[depth] for s in items) if step in present]
        steps = (
            *prefix,
            *order[int(position) : int(position) + 1],
            *([member[1:]] if member else []),
        )
        return next((source for source in items if source.target.steps == steps), None)

    def _merged(self, source: Source, texts: pa.Array) -> pa.Array:
        """One value per group: all lines that have one must agree."""
        if not self._is_grouped or not self.size:
            return texts
        count, starts = len(texts), self.offsets[:-1]
        is_given, rows = pc.is_valid(texts).to_numpy(zero_copy_only=False), np.arange(count)
        first = np.minimum.reduceat(np.where(is_given, rows, count), starts)
        codes = np.append(pc.fill_null(texts.dictionary_encode().indices, -1).to_numpy(), -1)
        differs = is_given & (codes[:-1] != np.repeat(codes[first], np.diff(self.offsets)))
        other = np.minimum.reduceat(np.where(differs, rows, count), starts)
        for row in np.flatnonzero(other < count).tolist():
            line = int(self.line_numbers[other[row]])
            self.report(row, source.path, "lines_differ", _DIFFERS, source.column_in_file, line)
        return texts.take(pa.array(first, mask=first == count))

    def _input_of(self, line: int) -> int:
        return int(np.searchsorted(self.offsets, line, "right")) - 1


def _json_of(source: Source, parsed: pa.Array) -> pa.Array:
    """The texts of a source: JSON, unless they are plain."""
    kind = source.reading.kind
    if kind == "boolean":
        return pc.if_else(parsed, "true", "false")
    if source.is_number:
        texts = numbers(parsed)
        return pc.if_else(pc.equal(texts, "-0"), "0", texts)
    return parsed if source.target.is_plain else strings(parsed)


def _is_within(source: Source, parsed: pa.Array) -> pa.Array:
    """Where the values of a source are within the limits of its field."""
    distinct, field = pc.unique(parsed.drop_null()), source.target.field
    make: Callable[[Any], Any] = (
        int if source.reading.kind == "integer" else _decimal if source.is_number else lambda x: x
    )
    values = list(map(make, distinct.to_pylist()))
    if fits(field, values):
        return pa.array(np.ones(len(parsed), np.bool_))
    fitting = [fits(field, [value]) for value in values]
    return pc.or_(pc.is_null(parsed), pc.is_in(parsed, distinct.filter(pa.array(fitting))))


def _decimal(text: str) -> Decimal:
    """Without trailing zeros, which do not count for limits of decimals."""
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


class _Bodies(NamedTuple):
    """Columns of bodies: texts of each input, those of each line, and the first line of each input."""

    inputs: Texts
    lines: Texts
    offsets: Ints

    def members(self, fields: Iterable[Field], leaves: Sequence[Leaf]) -> Texts:
        """The members of an object that have a leaf, in the contract's order."""
        parts = {field.name: (field, below(leaves, field.name)) for field in fields}
        return {name: self.json(field, own) for name, (field, own) in parts.items() if own}

    def json(self, field: Field, leaves: Sequence[Leaf]) -> pa.Array:
        """The JSON text of a field for each input, null where it is absent."""
        if field.type == "object":
            return objects(self.members(field.fields, leaves))
        if field.type != "array":
            return self.leaf(leaves[0])
        items = []
        for step in in_order(leaf.steps[0] for leaf in leaves):
            if step != EACH:
                items.append(self.item(field, step, below(leaves, step)))
                continue
            by_line = _Bodies(self.lines, self.lines, np.arange(self.offsets[-1] + 1))
            of_lines = by_line.item(field, step, below(leaves, step))
            counts = np.append(0, np.cumsum(pc.is_valid(of_lines).to_numpy(zero_copy_only=False)))[
                self.offsets
            ]
            several = pa.ListArray.from_arrays(pa.array(counts, pa.int32()), of_lines.drop_null())
            joined = pc.binary_join(several, ",")
            items.append(pc.if_else(pc.equal(joined, ""), _NONE, joined))
        return arrays(items)

    def item(self, array: Field, step: Step, leaves: Sequence[Leaf]) -> pa.Array:
        """An item where one of its own values is given; constants and defaults alone add no item."""
        member = deciding_member(leaves)
        own = {
            leaf.path
            for leaf in leaves
            if leaf.path and (member is None or leaf.steps[0] == member)
        }
        name = (
            [Leaf(("name",), None, json_text(step[1:]))]
            if isinstance(step, str) and step != EACH
            else []
        )
        json = (
            objects(self.members(array.fields, [*name, *leaves]))
            if array.fields
            else self.leaf(leaves[0])
        )
        given = [self.inputs[path] for path in sorted(own)]
        return pc.if_else(_any_given(given, len(json)), json, _NONE) if own else json

    def leaf(self, leaf: Leaf) -> pa.Array:
        """A value, or its default."""
        texts = (
            pa.nulls(len(self.offsets) - 1, TEXT) if leaf.path is None else self.inputs[leaf.path]
        )
        return texts if leaf.default is None else pc.coalesce(texts, leaf.default)


def _body(kind: str, texts: Mapping[str, str | None]) -> dict[str, Any]:
    """A body as the models of `sources.inputs` take it."""
    fields = {field.name: field for field in KINDS[kind].record.fields}
    given = {name: text for name, text in texts.items() if text is not None}
    body = {
        name: text if fields[name].type in PLAIN else _decode(text) for name, text in given.items()
    }
    return {
        name: _typed(value, fields[name].fields or [fields[name]]) for name, value in body.items()
    }


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


def constant_body(kind: str, values: dict[str, Scalar]) -> dict[str, Any]:
    """The body of constants alone, by field path."""
    bodies = _Bodies({}, {}, np.array([0, 1]))
    columns = bodies.members(KINDS[kind].record.fields, body_leaves(kind, (), values))
    return _body(kind, {name: texts[0].as_py() for name, texts in columns.items()})


def _any_given(columns: Iterable[pa.Array], size: int) -> pa.Array:
    """Where at least one of the columns has a value."""
    return reduce(pc.or_, map(pc.is_valid, columns), pa.array([False] * size, BOOLEAN))


def _where(flags: pa.Array) -> list[int]:
    found: Bools = flags.to_numpy(zero_copy_only=False)
    rows: list[int] = np.flatnonzero(found).tolist()
    return rows


def _within(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}["))


def has_limits(field: Field) -> bool:
    """Whether a parsed value may still break a limit of its field."""
    is_limited = field.minimum is not None or field.max_decimals is not None or field.min_length > 1
    return field.type == "integer" or is_limited


def needs_model_check(leaves: Sequence[Leaf], kind: str) -> bool:
    """Whether a body may break a limit that spans columns: of a list, or of required fields within an object."""
    for field in KINDS[kind].record.fields:
        own = below(leaves, field.name)
        if own and any(inner.required for inner in field.fields):
            return True
        if own and field.type == "array":
            items = {leaf.steps[0] for leaf in own}
            needed = ITEM_FIELDS.intersection(inner.name for inner in field.fields)
            needs_more = any(needed - {deciding_member(below(own, item))} for item in items)
            if needs_more or field.min_items > 1 or len(items) > (field.max_items or len(items)):
                return True
    return False
