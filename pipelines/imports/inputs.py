"""`Inputs`: a file and its mapping as a stream of inputs in the file's order.

In: a source table and the bindings of its mapping. Out: inputs, one batch at a time in memory; either one by one, or
clean ones as columns.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from heapq import merge
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.columnar import CleanBatch, is_columnar, split_clean
from pipelines.imports.convert import Bounds, convert
from pipelines.imports.fields import IN_FILE, Bindings
from pipelines.imports.groups import changes, group_keys, torn_groups
from pipelines.imports.lines import BATCH_ROWS, LineBatch, prepared_lines, survey
from pipelines.imports.model import Item, Problem, RejectedInput
from pipelines.mapping import Mapping
from sources.files import CellRules, RejectedRow, SourceTable
from sources.files.model import LINE_COLUMN
from transforms.numbers import DOT

_NO_LINE: Final = 2**63
_SCATTERED = "group_apart", "the lines of this group are not consecutive; sort the file by the group's columns"
_TORN = "group_torn", "a neighbouring line could not be read and may belong to this group; fix that line"
_NO_KEY = "group_blank", "the columns that identify the group are empty"


class Inputs:
    """The inputs of a file; they can be iterated any number of times.

    Attributes:
        files: the input file, the mapping file and the lookup files: everything that the inputs depend on.
        password_column: the column with the passwords; None if there is none.
        notations: the detected notation of number columns, by column.
        notes: remarks for a person, e.g. a field that the login mode ignores.
    """

    def __init__(self, file: Path, table: SourceTable, bindings: Bindings, notes: Sequence[str]) -> None:
        self.mapping = mapping = bindings.mapping
        self.kind = mapping.kind
        self.files = [file, *([mapping.path] if mapping.path else []), *(lookup.path for lookup in mapping.lookups)]
        self.password_column = bindings.password_column
        first_pass = prepared_lines(table.with_cell_rules(_cell_rules(bindings)), mapping, bindings.columns)
        self._bindings, self._scattered, remarks = survey(first_pass, bindings)
        self.table = table.with_cell_rules(_cell_rules(self._bindings))
        self.notes = [*notes, *remarks]
        self.notations = {
            source.column: source.reading.notation
            for source in self._bindings.sources
            if source.detects_notation and source.lookup == IN_FILE and source.reading.notation is not None
        }

    def __iter__(self) -> Iterator[Item]:
        """Each input at the position of its first line.

        Raises:
            UsageError: the file cannot be read further.
        """
        pending: list[Item] = []
        torn: list[int] = []
        open_group: pa.Table | None = None
        for table, skipped, rejected in self._lines():
            pending += skipped
            pending += map(_as_input, rejected)
            torn += [row.line for row in rejected]
            closed, open_group = self._split(table, open_group)
            limit = _first_line(open_group) if open_group is not None else _last_line(table) + 1
            yield from self._convert(closed, pending, limit, [line for line in torn if line < limit])
            pending = [item for item in pending if item.lines[0] >= limit]
            torn = [line for line in torn if line > _last_line(closed)]
        yield from self._convert(open_group, pending, _NO_LINE, torn)

    def in_columns(self) -> Iterator[CleanBatch | Item]:
        """The same inputs; of each batch, clean ones first and as columns, if the mapping allows it.

        Raises:
            UsageError: the file cannot be read further.
        """
        if not is_columnar(self._bindings):
            yield from self
            return
        for table, skipped, rejected in self._lines():
            clean, rest = split_clean(self._bindings, table)
            if len(clean.lines):
                yield clean
            yield from self._convert(rest, [*skipped, *map(_as_input, rejected)], _NO_LINE, ())

    def passwords(self, lines: Collection[int]) -> dict[int, str]:
        """The passwords on these lines, read from the file again; lines without one are left out."""
        if self.password_column is None or not lines:
            return {}
        passwords: dict[int, str] = {}
        numbers = pa.array(sorted(lines), pa.int64())
        for batch in self.table.batches(BATCH_ROWS, lambda _: None):
            part = batch.select([self.password_column, LINE_COLUMN])
            part = part.filter(pc.is_in(part[LINE_COLUMN], numbers))
            pairs = zip(part[LINE_COLUMN].to_pylist(), part[self.password_column].to_pylist(), strict=True)
            passwords |= {line: secret for line, secret in pairs if secret.strip()}
        return passwords

    def complete_mapping(self) -> Mapping:
        """The mapping with what the file proved and whole paths: other rows are then read in the same way."""
        columns = dict(self.mapping.columns)
        for source in self._bindings.sources:
            name, read = source.column, source.reading
            if source.lookup == IN_FILE and source.is_number:
                formats = replace(columns[name].formats, currency=read.currency or columns[name].formats.currency)
                if (notation := self.notations.get(name)) is not None:
                    formats = replace(formats, decimal=notation.decimal, thousands=notation.thousands)
                columns[name] = replace(columns[name], formats=formats)
        lookups = tuple(replace(lookup, file=str(lookup.path.resolve())) for lookup in self.mapping.lookups)
        return replace(self.mapping, columns=columns, lookups=lookups)

    def _lines(self) -> Iterator[LineBatch]:
        return prepared_lines(self.table, self.mapping, self._bindings.columns)

    def _split(self, table: pa.Table, open_group: pa.Table | None) -> tuple[pa.Table, pa.Table | None]:
        """The lines of closed groups, and those of the last group, which may continue in the next batch."""
        if not self.mapping.group:
            return table, None
        joined = table if open_group is None else pa.concat_tables([open_group, table])
        if not joined.num_rows:
            return joined, None
        last = int(np.flatnonzero(changes(joined, self.mapping.group))[-1])
        return joined.slice(0, last), joined.slice(last)

    def _convert(
        self, table: pa.Table | None, pending: Sequence[Item], limit: int, torn: Sequence[int]
    ) -> Iterator[Item]:
        """The inputs of a table, merged in line order with the pending items before a line."""
        items: Sequence[Item] = []
        if table is not None and table.num_rows:
            bounds = self._bounds(table)
            items = list(convert(self._bindings, table, bounds))
            if bounds:
                items = self._check_groups(table, bounds, items, torn)
        before = sorted((item for item in pending if item.lines[0] < limit), key=lambda item: item.lines[0])
        return merge(items, before, key=lambda item: item.lines[0]) if before else iter(items)

    def _bounds(self, table: pa.Table) -> Bounds:
        if not self.mapping.group:
            return ()
        starts = np.flatnonzero(changes(table, self.mapping.group)).tolist()
        return list(zip(starts, [*starts[1:], table.num_rows], strict=True))

    def _check_groups(self, table: pa.Table, bounds: Bounds, items: Sequence[Item], torn: Sequence[int]) -> list[Item]:
        """Rejects groups that are not certainly complete."""
        keys = group_keys(table, self.mapping.group).to_pylist()
        groups = changes(table, self.mapping.group).cumsum() - 1
        may_lack_lines = torn_groups(table[LINE_COLUMN].to_numpy(), groups, torn)
        checked: list[Item] = []
        for group, item in enumerate(items):
            key = keys[bounds[group][0]]
            is_scattered, is_torn = key in self._scattered, group in may_lack_lines
            reason = _NO_KEY if key is None else _SCATTERED if is_scattered else _TORN if is_torn else None
            if reason is None:
                checked.append(item)
                continue
            problems = item.problems if isinstance(item, RejectedInput) else ()
            problem = Problem(", ".join(self.mapping.group), "", *reason)
            checked.append(RejectedInput(item.lines, (*problems, problem)))
        return checked


def _cell_rules(bindings: Bindings) -> dict[str, CellRules]:
    """How the cells of a sheet that are not text are written, by column.

    Numbers have the decimal sign of the column's texts, logical values the column's own words. Columns of texts, codes
    and ids, and those that lines are found by, must hold text.
    """
    rules: dict[str, CellRules] = {}
    for source in bindings.sources:
        if source.lookup != IN_FILE:
            continue
        reading = source.reading
        if source.is_number:
            sign = DOT if reading.notation is None else reading.notation.decimal
            rule = CellRules(decimal=sign)
        elif reading.kind == "boolean":
            rule = CellRules(true=reading.yes[0], false=reading.no[0])
        else:
            rule = CellRules(is_text=reading.kind != "date")
        before = rules.get(source.column)
        if before is not None and before.decimal != rule.decimal:
            rule = replace(rule, decimal=DOT)
        rules[source.column] = rule if before is None else replace(rule, is_text=rule.is_text or before.is_text)
    keys = [*bindings.mapping.group, *(name for lookup in bindings.mapping.lookups for name in lookup.match)]
    return dict.fromkeys(bindings.columns, CellRules()) | dict.fromkeys(keys, CellRules(is_text=True)) | rules


def _as_input(row: RejectedRow) -> RejectedInput:
    return RejectedInput((row.line,), (Problem("", "", row.code, row.reason, row.line),))


def _first_line(table: pa.Table) -> int:
    return int(table[LINE_COLUMN][0].as_py()) if table.num_rows else _NO_LINE


def _last_line(table: pa.Table) -> int:
    return int(table[LINE_COLUMN][-1].as_py()) if table.num_rows else -1
