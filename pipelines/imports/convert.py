"""Lines of text to inputs, whole columns at a time.

In: a table of lines. Out: an input for each line, or for each group of lines. A column is read as a whole; only what a
columnar check leaves in doubt is held row by row against the model, to name each limit that it breaks.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.fields import MAPPED, Source, shape
from pipelines.imports.lookups import LookupTable
from pipelines.imports.model import Item, Problem, ReadyInput, RejectedInput, SkippedLine
from pipelines.mapping import Mapping
from sources.contract import Field
from sources.files.model import LINE_COLUMN
from sources.inputs import fits, required, violations
from sources.kinds import KINDS, PASSWORD, LoginMode
from transforms.upserts.bodies import Array, Given, bodies, values
from transforms.upserts.lines import whole

Bounds = Sequence[tuple[int, int]]
NOTHING: Final = "no field is given"
_BLANK: Final = "is empty, and the mapping says that it must not be"
_REQUIRED: Final = "is required, and nothing is given"
_DIFFERS: Final = "the lines of one input say different things; only a list takes an item from each"


class Converter:
    """What makes inputs of lines.

    Args:
        mapping: checked.
        sources: of its fields, their notations known.
        lookups: its other files.
        login_mode: of the customers.
    """

    def __init__(
        self, mapping: Mapping, sources: Sequence[Source], lookups: Sequence[LookupTable], login_mode: LoginMode | None
    ) -> None:
        self._kind, self._login_mode = mapping.kind, login_mode
        self._sources, self._lookups = sources, lookups
        self._shape = shape(mapping.kind, sources, mapping.constants)
        self._is_grouped = bool(mapping.group)
        params = [field.name for field in KINDS[mapping.kind].operation.params]
        self._params = {name: str(mapping.constants[name]) if name in mapping.constants else None for name in params}
        self._password = next((source.column for source in sources if source.path == PASSWORD), None)
        needed = required(mapping.kind, login_mode)
        fields = [field for field in KINDS[mapping.kind].record.fields if field.name != PASSWORD]
        self._needed = [field.name for field in fields if field.required or field.name in needed]
        self._is_doubtful = self._is_grouped or is_doubtful(self._shape, mapping.kind)

    def convert(self, table: pa.Table, bounds: Bounds = ()) -> list[Item]:
        """The inputs of lines.

        Args:
            table: text columns and the numbers of the lines.
            bounds: of groups: where the lines of each begin and end.
        """
        batch = _Batch(table, bounds)
        for at, lookup in enumerate(self._lookups):
            given, codes = lookup.find(table)
            columns = ", ".join(lookup.lookup.match)
            batch.refuse(columns, list(given), codes, lookup.words)
            for source in self._sources:
                if source.lookup == at:
                    batch.read(source, given[source.path])
        for source in self._sources:
            if source.lookup == MAPPED:
                batch.read(source, whole(table, source.column))
        batch.merge(self._sources)
        return list(self._items(batch))

    def _items(self, batch: _Batch) -> Iterator[Item]:
        made = bodies(self._shape, Given(batch.columns, batch.size, batch.lines, batch.bounds, batch.full))
        paths = self._paths(batch)
        passwords: Sequence[int | None] = [None] * batch.size
        if self._password is not None:
            passwords = batch.password_lines(self._password)
        self._judge(batch, made)
        if not batch.problems and all(made):
            yield from map(ReadyInput, batch.numbers, paths, made, passwords)
            return
        for row, body in enumerate(made):
            if problems := batch.problems.get(row):
                yield RejectedInput(batch.numbers[row], tuple(problems))
            elif not body:
                yield SkippedLine(batch.numbers[row], NOTHING)
            else:
                yield ReadyInput(batch.numbers[row], paths[row], body, passwords[row])

    def _paths(self, batch: _Batch) -> list[dict[str, str]]:
        columns: list[Sequence[str | None]] = []
        for name, value in self._params.items():
            column = batch.columns.get(name, [value] * batch.size)
            for row, one in enumerate(column) if name not in batch.full else ():
                if one is None:
                    batch.tell(row, name, "required", _REQUIRED, self._column_of(name))
            columns.append(column)
        names = tuple(self._params)
        if not names:
            return [{} for _ in range(batch.size)]
        rows = zip(*columns, strict=True)
        return [dict(zip(names, row)) for row in rows]  # noqa: B905 # a column for each name

    def _judge(self, batch: _Batch, made: list[dict[str, Any]]) -> None:
        """Holds doubtful bodies against the model."""
        rows: Sequence[int] = range(batch.size)
        if not self._is_doubtful and all(
            fits(source.place.field, batch.distinct[source.path])
            for source in self._sources
            if source.path in batch.distinct and source.place.steps and has_limits(source.place.field)
        ):
            needed = [name for name in self._needed if name not in batch.full]
            rows = [row for row in rows if any(name not in made[row] for name in needed)] if needed else ()
        for found in violations(self._kind, [made[row] for row in rows], self._login_mode, with_password=False):
            row = rows[found.row]
            source = self._source_of(batch, row, found.field)
            path = source.path if source is not None else found.field
            batch.tell(row, path, found.code, found.words, source.column if source is not None else "")

    def _column_of(self, path: str) -> str:
        return next((source.column for source in self._sources if source.path == path and source.lookup == MAPPED), "")

    def _source_of(self, batch: _Batch, row: int, field: str) -> Source | None:
        """The source of a body's field; items that are not given have moved the others up."""
        mapped = [source for source in self._sources if source.lookup == MAPPED and source.path in batch.columns]
        array, is_item, rest = field.partition("[")
        if not is_item:
            under = [source for source in mapped if source.path.startswith((f"{field}[", f"{field}."))]
            return next((source for source in mapped if source.path == field), under[0] if len(under) == 1 else None)
        prefix = tuple(array.split("."))
        depth = len(prefix)
        items = [source for source in mapped if source.place.steps[:depth] == prefix]
        position, _, member = rest.partition("]")
        given = {s.place.steps[depth] for s in items if batch.columns[s.path][row] is not None}
        order = [key for key in dict.fromkeys(s.place.steps[depth] for s in items) if key in given]
        order.sort(key=lambda key: (isinstance(key, str), key if isinstance(key, int) else 0))
        wanted = (*prefix, *order[int(position) : int(position) + 1], *([member[1:]] if member else []))
        return next((source for source in items if source.place.steps == wanted), None)


class _Batch:
    """Columns of values as they are read, and what is wrong with them.

    Attributes:
        size: how many inputs. numbers: their lines.
        columns: values by path, one an input; lines: one a line; distinct: each value once.
        full: paths that every input is given.
        bounds: of the lines of each input; empty where each line is one.
        problems: by input.
    """

    def __init__(self, table: pa.Table, bounds: Bounds) -> None:
        numbers: list[int] = table[LINE_COLUMN].to_numpy().tolist()
        self._line_numbers = numbers
        self.bounds = bounds
        self.size = len(bounds) if bounds else len(numbers)
        self.numbers = [tuple(numbers[a:b]) for a, b in bounds] if bounds else list(zip(numbers, strict=True))
        self._inputs: npt.NDArray[np.int64] | None = None
        if bounds:
            self._inputs = np.repeat(np.arange(len(bounds)), [end - begin for begin, end in bounds])
        self.columns: dict[str, list[Any]] = {}
        self.lines: dict[str, list[Any]] = {}
        self.distinct: dict[str, list[Any]] = {}
        self.full: set[str] = set()
        self.problems: dict[int, list[Problem]] = defaultdict(list)
        self._told: dict[int, list[str]] = defaultdict(list)

    def read(self, source: Source, texts: pa.Array) -> None:
        """Reads the texts of a source."""
        made, codes = source.reading.read(texts)
        self.refuse(source.column if source.lookup == MAPPED else "", [source.path], codes, source.reading.words)
        column, distinct = values(source.reading.kind, made)
        is_full = not made.null_count
        if source.change:
            column = [value or None for value in column]  # a change by nothing is none
            is_full = False
        self.lines[source.path] = column
        self.distinct[source.path] = distinct
        if is_full:
            self.full.add(source.path)

    def refuse(self, column: str, paths: Sequence[str], codes: pa.Array, words: Any) -> None:  # noqa: ANN401 # code → words
        """Tells what is wrong with lines."""
        if codes.null_count == len(codes):
            return
        for line in np.flatnonzero(pc.is_valid(codes).to_numpy(zero_copy_only=False)).tolist():
            code = codes[line].as_py()
            row = line if self._inputs is None else int(self._inputs[line])
            self.tell(row, paths[0], code, words(code), column, self._line_numbers[line])
            self._told[row] += paths

    def tell(self, row: int, path: str, code: str, words: str, column: str = "", line: int = 0) -> None:
        """Tells what is wrong with an input; not again where something of the same field is."""
        if not line and len(self.numbers[row]) == 1:
            line = self.numbers[row][0]
        if any(_within(path, other) or _within(other, path) for other in self._told.get(row, ())) and not (
            path in self._told[row] and line and any(p.line != line for p in self.problems[row] if p.field == path)
        ):
            return
        self._told[row].append(path)
        self.problems[row].append(Problem(column, path, code, words, line))

    def merge(self, sources: Sequence[Source]) -> None:
        """Lines to inputs; then what the mapping says of empty cells."""
        for source in sources:
            if self.bounds and source.place.is_each:
                continue
            column = self.lines[source.path]
            if self.bounds:
                column = self._agreed(source, column)
            if source.blank != "omit" and source.path not in self.full:
                column = self._blanks(source, column)
            self.columns[source.path] = column

    def password_lines(self, column: str) -> list[int | None]:
        """Where each input's password stands."""
        found: list[int | None] = []
        secrets = self.lines[PASSWORD]
        for row, numbers in enumerate(self.numbers):
            begin, end = self.bounds[row] if self.bounds else (row, row + 1)
            place = next((at for at in range(begin, end) if secrets[at] is not None), None)
            if place is None:
                self.tell(row, PASSWORD, "required", _REQUIRED, column, numbers[0])
            found.append(None if place is None else self._line_numbers[place])
        return found

    def _agreed(self, source: Source, column: list[Any]) -> list[Any]:
        merged: list[Any] = []
        for row, (begin, end) in enumerate(self.bounds):
            said = None
            for at in range(begin, end):
                if column[at] is None:
                    continue
                if said is not None and column[at] != said:
                    name = source.column if source.lookup == MAPPED else ""
                    self.tell(row, source.path, "lines_differ", _DIFFERS, name, self._line_numbers[at])
                    break
                said = column[at]
            merged.append(said)
        return merged

    def _blanks(self, source: Source, column: list[Any]) -> list[Any]:
        if source.blank == "clear":
            self.full.add(source.path)
            return ["" if value is None else value for value in column]
        for row, value in enumerate(column):
            if value is None:
                self.tell(row, source.path, "blank", _BLANK, source.column)
        return column


def _within(path: str, other: str) -> bool:
    return path == other or path.startswith((f"{other}.", f"{other}["))


def has_limits(field: Field) -> bool:
    """Whether a value that was read may still be refused: a number has no more digits than it may, a text has one."""
    is_limited = field.minimum is not None or field.max_decimals is not None or field.min_length > 1
    return field.type == "integer" or is_limited


def is_doubtful(found: Any, kind: str) -> bool:  # noqa: ANN401 # the shape
    """Whether a body may break a limit that no single column shows: of its lists, and of the fields within objects."""
    fields = {field.name: field for field in KINDS[kind].record.fields}
    for name, node in found.members:
        field = fields[name]
        if any(inner.required for inner in field.fields):
            return True
        if isinstance(node, Array):
            most = field.max_items
            pair = {inner.name for inner in field.fields} == {"name", "value"}
            if pair or field.min_items > 1 or (most is not None and len(node.items) > most):
                return True
    return False
