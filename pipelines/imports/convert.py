"""Lines of text to inputs, with every problem reported: the reference conversion.

In: a table of lines. Out: one input per line, or per group of lines. Cells are parsed a column at a time; bodies are
validated against the pydantic model only where a columnar check fails, to name each limit that a row breaks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.bodies import Array, Given, Object, bodies, values
from pipelines.imports.fields import IN_FILE, Bindings, Source
from pipelines.imports.groups import whole
from pipelines.imports.model import Item, Problem, ReadyInput, RejectedInput, SkippedLine
from sources.contract import Field
from sources.files.model import LINE_COLUMN
from sources.inputs import ITEM_FIELDS, ITEM_VALUES, fits, violations
from sources.kinds import KINDS, PASSWORD

Bounds = Sequence[tuple[int, int]]
"""Begin and end of each group's lines in a table; empty if each line is an input."""
NO_FIELDS: Final = "no field has a value"
_BLANK: Final = 'is empty (the mapping sets blank = "reject")'
_REQUIRED: Final = "required"
_DIFFERS: Final = "the lines of this group have different values; only a list field ([+]) takes one from each line"


def convert(bindings: Bindings, table: pa.Table, bounds: Bounds = ()) -> Iterator[Item]:
    """The inputs of lines: text columns and the line numbers, and the bounds of groups."""
    batch = _Batch(bindings, table, bounds)
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
    json_bodies = bodies(bindings.shape, Given(batch.columns, batch.size, batch.lines, batch.bounds))
    paths = batch.paths()
    batch.check_passwords()
    batch.check_limits(json_bodies)
    for row, body in enumerate(json_bodies):
        if problems := batch.problems.get(row):
            yield RejectedInput(batch.numbers[row], tuple(problems))
        elif not body:
            yield SkippedLine(batch.numbers[row], NO_FIELDS)
        else:
            yield ReadyInput(batch.numbers[row], paths[row], body)


class _Batch:
    """Parsed columns of a batch of lines, and the problems of its inputs.

    Attributes:
        size: the number of inputs.
        numbers: the line numbers of each input.
        columns: by path, a value per input.
        lines: by path, a value per line.
    """

    def __init__(self, bindings: Bindings, table: pa.Table, bounds: Bounds) -> None:
        self._bindings = bindings
        self._line_numbers: list[int] = table[LINE_COLUMN].to_pylist()
        self.bounds = bounds or [(at, at + 1) for at in range(len(self._line_numbers))]
        self.size = len(self.bounds)
        self.numbers = [tuple(self._line_numbers[begin:end]) for begin, end in self.bounds]
        self._input_of_line = [row for row, (begin, end) in enumerate(self.bounds) for _ in range(begin, end)]
        self.columns: dict[str, list[Any]] = {}
        self.lines: dict[str, list[Any]] = {}
        self._distinct: dict[str, list[Any]] = {}
        self.problems: dict[int, list[Problem]] = defaultdict(list)
        self._reported: dict[int, list[str]] = defaultdict(list)

    def parse(self, source: Source, cells: pa.Array) -> None:
        """Parses the cells of a source."""
        parsed, codes = source.reading.read(cells)
        column_name = source.column if source.lookup == IN_FILE else ""
        self.report_codes(column_name, [source.path], codes, source.reading.words)
        self.lines[source.path], self._distinct[source.path] = values(source.reading.kind, parsed)

    def report_codes(self, column: str, paths: Sequence[str], codes: pa.Array, words: Callable[[str], str]) -> None:
        """Records a problem for each line that has a code."""
        if codes.null_count == len(codes):
            return
        for line in np.flatnonzero(pc.is_valid(codes).to_numpy(zero_copy_only=False)).tolist():
            code = codes[line].as_py()
            row = self._input_of_line[line]
            self.report(row, paths[0], code, words(code), column, self._line_numbers[line])
            self._reported[row] += paths

    def report(self, row: int, path: str, code: str, words: str, column: str = "", line: int = 0) -> None:
        """Records a problem of an input, unless one of the same field on the same line is recorded already."""
        if not line and len(self.numbers[row]) == 1:
            line = self.numbers[row][0]
        is_reported = any(_within(path, other) or _within(other, path) for other in self._reported.get(row, ()))
        is_other_line = path in self._reported[row] and any(
            problem.line != line for problem in self.problems[row] if problem.field == path
        )
        if is_reported and not (line and is_other_line):
            return
        self._reported[row].append(path)
        self.problems[row].append(Problem(column, path, code, words, line))

    def merge(self) -> None:
        """Merges the lines of each group, then applies the mapping's rule for empty cells."""
        for source in self._bindings.sources:
            if source.target.is_each:
                continue
            column = self._merged(source, self.lines[source.path])
            if source.blank != "omit":
                column = self._blanks(source, column)
            if source.change:
                column = [value or None for value in column]  # a change by 0 is not sent
            self.columns[source.path] = column

    def paths(self) -> list[dict[str, str]]:
        """The parameters of each request's path."""
        sources = self._bindings.sources
        defaults = {source.path: source.default for source in sources} | self._bindings.mapping.constants
        names_in_file = {source.path: source.column for source in sources if source.lookup == IN_FILE}
        paths: list[dict[str, str]] = [{} for _ in range(self.size)]
        for name in self._bindings.params:
            default = defaults.get(name)
            for row, value in enumerate(self.columns.get(name, [None] * self.size)):
                if value is None and default is None:
                    self.report(row, name, "required", _REQUIRED, names_in_file.get(name, ""))
                paths[row][name] = str(default) if value is None else value
        return paths

    def check_passwords(self) -> None:
        """Rejects inputs none of whose lines has a password."""
        column = self._bindings.password_column
        for row, (begin, end) in enumerate(self.bounds if column is not None else ()):
            if all(secret is None for secret in self.lines[PASSWORD][begin:end]):
                self.report(row, PASSWORD, "required", _REQUIRED, column or "", self._line_numbers[begin])

    def check_limits(self, json_bodies: list[dict[str, Any]]) -> None:
        """Validates the bodies that the columns do not prove valid."""
        bindings, kind = self._bindings, self._bindings.mapping.kind
        rows: Sequence[int] = range(self.size)
        is_proven = not (bindings.mapping.group or needs_model_check(bindings.shape, kind)) and all(
            fits(source.target.field, self._distinct[source.path])
            for source in bindings.sources
            if source.target.steps and has_limits(source.target.field)
        )
        if is_proven:
            rows = [row for row in rows if any(name not in json_bodies[row] for name in bindings.required_fields)]
        checked = [json_bodies[row] for row in rows]
        for violation in violations(kind, checked, bindings.login_mode, with_password=False):
            row = rows[violation.row]
            source = self._source_of(row, violation.field)
            path = source.path if source is not None else violation.field
            self.report(row, path, violation.code, violation.words, source.column if source is not None else "")

    def _source_of(self, row: int, field: str) -> Source | None:
        """The source of a body's field. Absent items shift the positions of later ones."""
        sources = [s for s in self._bindings.sources if s.lookup == IN_FILE and s.path in self.columns]
        array, is_item, rest = field.partition("[")
        if not is_item:
            below = [source for source in sources if source.path.startswith((f"{field}[", f"{field}."))]
            return next((source for source in sources if source.path == field), below[0] if len(below) == 1 else None)
        prefix = tuple(array.split("."))
        depth = len(prefix)
        items = [source for source in sources if source.target.steps[:depth] == prefix]
        position, _, member = rest.partition("]")
        deciding = [source for source in items if source.target.steps[-1] in ITEM_VALUES] or items
        present = {s.target.steps[depth] for s in deciding if self.columns[s.path][row] is not None}
        order = [key for key in dict.fromkeys(s.target.steps[depth] for s in items) if key in present]
        order.sort(key=lambda key: (isinstance(key, str), key if isinstance(key, int) else 0))
        steps = (*prefix, *order[int(position) : int(position) + 1], *([member[1:]] if member else []))
        return next((source for source in items if source.target.steps == steps), None)

    def _merged(self, source: Source, column: list[Any]) -> list[Any]:
        """One value per group: all lines that have one must agree."""
        merged: list[Any] = []
        for row, (begin, end) in enumerate(self.bounds):
            value = None
            for index in range(begin, end):
                if column[index] is None:
                    continue
                if value is not None and column[index] != value:
                    name = source.column if source.lookup == IN_FILE else ""
                    self.report(row, source.path, "lines_differ", _DIFFERS, name, self._line_numbers[index])
                    break
                value = column[index]
            merged.append(value)
        return merged

    def _blanks(self, source: Source, column: list[Any]) -> list[Any]:
        if source.blank == "clear":
            return ["" if value is None else value for value in column]
        for row, value in enumerate(column):
            if value is None:
                self.report(row, source.path, "blank", _BLANK, source.column)
        return column


def _within(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}["))


def has_limits(field: Field) -> bool:
    """Whether a parsed value may still break a limit of its field."""
    is_limited = field.minimum is not None or field.max_decimals is not None or field.min_length > 1
    return field.type == "integer" or is_limited


def needs_model_check(shape: Object, kind: str) -> bool:
    """Whether a body may break a limit that spans columns: of a list, or of required fields within an object."""
    fields = {field.name: field for field in KINDS[kind].record.fields}
    for name, node in shape.members:
        field = fields[name]
        if any(inner.required for inner in field.fields):
            return True
        if isinstance(node, Array):
            limit = field.max_items
            needed = ITEM_FIELDS.intersection(inner.name for inner in field.fields)
            needs_more = any(needed - {item.needs} for item in node.items if isinstance(item, Object))
            if needs_more or field.min_items > 1 or (limit is not None and len(node.items) > limit):
                return True
    return False
