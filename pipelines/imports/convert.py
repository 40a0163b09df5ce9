"""Lines of text to inputs, whole columns at a time; each problem is reported with its line, column and field.

In: a table of lines, each an input or grouped. Out: the inputs that meet the interface as columns of texts
(`ReadyInputs`), the rejected and the skipped ones. Only inputs that a columnar check does not prove valid become Python
objects, for the pydantic model to name each limit that they break.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.bodies import (
    NULL_TEXT,
    Bodies,
    Texts,
    any_given,
    decoded_body,
    needs_model_check,
)
from orderbridge.pipelines.imports.fields import IN_FILE, Bindings, Source, in_order
from orderbridge.pipelines.imports.groups import whole
from orderbridge.pipelines.imports.json_columns import numbers, strings
from orderbridge.pipelines.imports.model import (
    Item,
    Problem,
    ReadyInputs,
    RejectedInput,
    SkippedLine,
)
from orderbridge.pipelines.mapping.field_paths import Step
from orderbridge.sources.contract import Field
from orderbridge.sources.files.model import LINE_COLUMN
from orderbridge.sources.inputs import ITEM_VALUES, fits, violations
from orderbridge.sources.kinds import KINDS, PASSWORD
from orderbridge.transforms.frames import BOOLEAN, TEXT, Bools, Ints

NO_FIELDS: Final = "no field has a value"
_BLANK: Final = 'is empty (the mapping sets blank = "reject")'
_REQUIRED: Final = "required"
_DIFFERS: Final = "the lines of this group have different values; only a list field ([+]) takes one from each line"


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
    bodies = Bodies(batch.inputs, batch.lines, batch.offsets)
    fields = KINDS[bindings.mapping.kind].record.fields
    columns = batch.parameters() | bodies.members(fields, bindings.leaves)
    batch.check_passwords()
    body = {name: texts for name, texts in columns.items() if name not in bindings.params}
    batch.check_limits(body)
    for row, fault in (faults or {}).items():
        batch.problems[row].append(fault)
    has_problems = np.zeros(batch.size, np.bool_)
    has_problems[list(batch.problems)] = True
    is_ready = pc.and_(any_given(body.values(), batch.size), pa.array(~has_problems))
    yield from _ready(batch, columns, is_ready)
    for row in _where(pc.invert(is_ready)):
        lines = tuple(batch.lines_of(row))
        problems = batch.problems.get(row)
        if problems:
            yield RejectedInput(lines, tuple(problems))
        else:
            yield SkippedLine(lines, NO_FIELDS)


def _ready(batch: _Batch, columns: Texts, is_ready: pa.Array) -> Iterator[ReadyInputs]:
    """The inputs that are ready, all at once; nothing if none is."""
    line_numbers = pa.ListArray.from_arrays(
        pa.array(batch.offsets, pa.int32()), pa.array(batch.line_numbers)
    )
    if pc.all(is_ready).as_py():
        yield ReadyInputs(line_numbers, columns)
    elif pc.any(is_ready).as_py():
        ready = {name: texts.filter(is_ready) for name, texts in columns.items()}
        yield ReadyInputs(line_numbers.filter(is_ready), ready)


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
        self._bindings = bindings
        self._is_grouped = starts is not None
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
        if codes.null_count == len(codes):
            return
        for line in _where(pc.is_valid(codes)):
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
                texts = pc.if_else(pc.equal(texts, "0"), NULL_TEXT, texts)
            self.inputs[source.path] = texts

    def parameters(self) -> Texts:
        """The parameters of each request's path."""
        constants = self._bindings.mapping.constants
        sources = {source.path: source for source in self._bindings.sources}
        columns: Texts = {}
        for name in self._bindings.params:
            source = sources.get(name)
            default = constants.get(name, source.default if source is not None else None)
            texts = self.inputs.get(name, pa.nulls(self.size, TEXT))
            columns[name] = texts if default is None else pc.coalesce(texts, str(default))
            column = source.column_in_file if source is not None else ""
            for row in _where(pc.is_null(columns[name])):
                self.report(row, name, "required", _REQUIRED, column)
        return columns

    def check_passwords(self) -> None:
        """Rejects inputs none of whose lines has a password."""
        column = self._bindings.mapping.password_column
        if column is None or not self.size:
            return
        is_given = pc.is_valid(self.lines[PASSWORD]).to_numpy(zero_copy_only=False)
        has_password = np.logical_or.reduceat(is_given, self.offsets[:-1])
        for row in np.flatnonzero(~has_password).tolist():
            self.report(row, PASSWORD, "required", _REQUIRED, column, self.lines_of(row)[0])

    def check_limits(self, body: Texts) -> None:
        """Validates the bodies that the columns do not prove valid."""
        bindings = self._bindings
        kind = self._bindings.mapping.kind
        rows = _where(pc.invert(pc.and_(self._is_proven(body), self._is_within)))
        members: list[dict[str, str | None]] = [{} for _ in rows]
        if rows and body:
            members = pa.table(body).take(pa.array(rows, pa.int64())).to_pylist()
        bodies = [decoded_body(kind, one) for one in members]
        for violation in violations(kind, bodies, bindings.login_mode, with_password=False):
            row = rows[violation.row]
            source = self._source_of(row, violation.field)
            path = source.path if source is not None else violation.field
            column = source.column if source is not None else ""
            self.report(row, path, violation.code, violation.words, column)

    def _is_proven(self, body: Texts) -> pa.Array:
        """Where the columns prove that a body has all that is required, and breaks no limit that spans columns."""
        bindings = self._bindings
        is_spanning = needs_model_check(bindings.leaves, bindings.mapping.kind)
        is_proven = pa.array([not (self._is_grouped or is_spanning)] * self.size, BOOLEAN)
        for name in bindings.required_fields:
            is_given = pc.is_valid(body[name]) if name in body else pa.scalar(False)
            is_proven = pc.and_(is_proven, is_given)
        return is_proven

    def _source_of(self, row: int, field: str) -> Source | None:
        """The source of a body's field. Absent items shift the positions of later ones."""
        sources = [
            source
            for source in self._bindings.sources
            if source.lookup == IN_FILE and source.path in self.inputs
        ]
        array, is_item, rest = field.partition("[")
        if not is_item:
            return _source_of_field(sources, field)
        list_steps = tuple(array.split("."))
        depth = len(list_steps)
        of_list = [source for source in sources if source.target.steps[:depth] == list_steps]
        position, _, member = rest.partition("]")
        item = self._items_present(row, of_list, depth)[int(position) : int(position) + 1]
        steps = (*list_steps, *item, *([member[1:]] if member else []))
        return next((source for source in of_list if source.target.steps == steps), None)

    def _items_present(self, row: int, of_list: Sequence[Source], depth: int) -> list[Step]:
        """The items of a list that an input has, in their order, each as its step, which is at this depth."""
        values = [source for source in of_list if source.target.steps[-1] in ITEM_VALUES]
        present = {
            source.target.steps[depth]
            for source in values or of_list
            if self.inputs[source.path][row].is_valid
        }
        steps = in_order(source.target.steps[depth] for source in of_list)
        return [step for step in steps if step in present]

    def _merged(self, source: Source, texts: pa.Array) -> pa.Array:
        """One value per group: all lines that have one must agree."""
        if not self._is_grouped or not self.size:
            return texts
        count = len(texts)
        rows = np.arange(count)
        starts = self.offsets[:-1]
        is_given = pc.is_valid(texts).to_numpy(zero_copy_only=False)
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


def _source_of_field(sources: Sequence[Source], field: str) -> Source | None:
    """The source of a field, or the only one of what is in it."""
    for source in sources:
        if source.path == field:
            return source
    inner = [source for source in sources if source.path.startswith((f"{field}[", f"{field}."))]
    return inner[0] if len(inner) == 1 else None


def _json_of(source: Source, parsed: pa.Array) -> pa.Array:
    """The texts of a source: JSON, unless they are plain."""
    if source.reading.kind == "boolean":
        return pc.if_else(parsed, "true", "false")
    if source.is_number:
        texts = numbers(parsed)
        return pc.if_else(pc.equal(texts, "-0"), "0", texts)
    return parsed if source.target.is_plain else strings(parsed)


def _is_within(source: Source, parsed: pa.Array) -> pa.Array:
    """Where the values of a source are within the limits of its field."""
    field = source.target.field
    distinct = pc.unique(parsed.drop_null())
    values: list[Any] = distinct.to_pylist()
    if source.reading.kind == "integer":
        values = [int(text) for text in values]
    elif source.is_number:
        values = [_decimal(text) for text in values]
    if fits(field, values):
        return pa.array(np.ones(len(parsed), np.bool_))
    fitting = [fits(field, [value]) for value in values]
    return pc.or_(pc.is_null(parsed), pc.is_in(parsed, distinct.filter(pa.array(fitting))))


def _decimal(text: str) -> Decimal:
    """Without trailing zeros, which do not count for limits of decimals."""
    return Decimal(text.rstrip("0").rstrip(".") if "." in text else text)


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
