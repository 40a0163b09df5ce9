"""`Inputs`: a file and its mapping as a stream of inputs.

In: a source table and the bindings of its mapping. Out: inputs, one batch at a time in memory. Of a file with
groups, all lines are in memory, as columns of texts.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.convert import convert
from orderbridge.pipelines.imports.fields import IN_FILE, Bindings
from orderbridge.pipelines.imports.groups import changes, group_keys, scattered_keys, torn_groups
from orderbridge.pipelines.imports.lines import BATCH_ROWS, prepared_lines
from orderbridge.pipelines.imports.lookups import LookupTable
from orderbridge.pipelines.imports.model import Item, Problem, RejectedInput
from orderbridge.pipelines.imports.notations import survey
from orderbridge.pipelines.mapping import Mapping
from orderbridge.sources.files import CellRules, SourceTable
from orderbridge.sources.files.model import LINE_COLUMN
from orderbridge.transforms.values.numbers import DOT

SCATTERED = (
    "group_apart",
    "the lines of this group are not consecutive; sort the file by the group's columns",
)
TORN = (
    "group_torn",
    "a neighbouring line could not be read and may belong to this group; fix that line",
)
_NO_KEY = "group_blank", "the columns that identify the group are empty"


class Inputs:
    """The inputs of a file; they can be iterated any number of times.

    Attributes:
        files: the input file, the mapping file and the lookup files: everything that the inputs depend on.
        password_column: the column with the passwords; None if there is none.
        notes: remarks for a person, e.g. a field that the login mode ignores.
    """

    def __init__(
        self, file: Path, table: SourceTable, bindings: Bindings, notes: Sequence[str]
    ) -> None:
        self.mapping = mapping = bindings.mapping
        self.kind = mapping.kind
        self.files = [
            file,
            *([mapping.path] if mapping.path else []),
            *(lookup.path for lookup in mapping.lookups),
        ]
        self.password_column = mapping.password_column
        first_pass = prepared_lines(
            table.with_cell_rules(_cell_rules(bindings)), mapping, bindings.columns
        )
        self._bindings, remarks = survey(first_pass, bindings, is_excerpt=table.is_excerpt)
        self.table = table.with_cell_rules(_cell_rules(self._bindings))
        self.notes = [*notes, *remarks]

    def __iter__(self) -> Iterator[Item]:
        """The inputs: ready ones in the order of the file, a batch at a time.

        Raises:
            UsageError: the file cannot be read further.
        """
        groups: list[pa.Table] = []
        torn: list[int] = []
        for table, skipped, rejected in prepared_lines(
            self.table, self.mapping, self._bindings.columns
        ):
            yield from skipped
            for row in rejected:
                yield RejectedInput((row.line,), (Problem("", "", row.code, row.reason, row.line),))
            if self.mapping.group:
                groups.append(table)
                torn += [row.line for row in rejected]
            else:
                yield from convert(self._bindings, table)
        if groups:
            yield from self._groups(pa.concat_tables(groups), torn)

    def passwords(self, lines: Collection[int]) -> dict[int, str]:
        """The passwords on these lines, read from the file again; lines without one are left out."""
        if self.password_column is None or not lines:
            return {}
        passwords: dict[int, str] = {}
        numbers = pa.array(sorted(lines), pa.int64())
        for batch in self.table.batches(BATCH_ROWS, lambda _: None):
            part = batch.select([self.password_column, LINE_COLUMN])
            part = part.filter(pc.is_in(part[LINE_COLUMN], numbers))
            pairs = zip(
                part[LINE_COLUMN].to_pylist(), part[self.password_column].to_pylist(), strict=True
            )
            passwords |= {line: secret for line, secret in pairs if secret.strip()}
        return passwords

    @property
    def lookups(self) -> Sequence[LookupTable]:
        """The opened lookup files."""
        return self._bindings.lookups

    def lines_with(self, lookup: LookupTable, keys: Sequence[str]) -> pa.Array:
        """The lines that a lookup finds by one of these keys."""
        found = [pa.array([], pa.int64())]
        for table, _, _ in prepared_lines(self.table, self.mapping, self._bindings.columns):
            lines = table[LINE_COLUMN].combine_chunks()
            found.append(lines.filter(lookup.has_key(table, keys)))
        return pa.concat_arrays(found)

    def with_currencies(self, mapping: Mapping) -> Mapping:
        """A mapping with the currency that all numbers of a column have, so that another one is noticed later."""
        columns = dict(mapping.columns)
        for source in self._bindings.sources:
            if source.lookup == IN_FILE and source.is_number and source.reading.currency:
                column = columns[source.column]
                formats = replace(column.formats, currency=source.reading.currency)
                columns[source.column] = replace(column, formats=formats)
        return replace(mapping, columns=columns)

    def complete_mapping(self) -> Mapping:
        """The mapping with what the file proved and whole paths: other rows are then read in the same way."""
        columns = dict(self.mapping.columns)
        for source in self._bindings.sources:
            name, read = source.column, source.reading
            if source.lookup == IN_FILE and source.is_number:
                formats = replace(
                    columns[name].formats, currency=read.currency or columns[name].formats.currency
                )
                if source.detects_notation and read.certain_notation is not None:
                    formats = replace(
                        formats,
                        decimal=read.certain_notation.decimal,
                        thousands=read.certain_notation.thousands,
                    )
                columns[name] = replace(columns[name], formats=formats)
        lookups = tuple(
            replace(lookup, file=str(lookup.path.resolve())) for lookup in self.mapping.lookups
        )
        return replace(self.mapping, columns=columns, lookups=lookups)

    def _groups(self, lines: pa.Table, torn: Sequence[int]) -> Iterator[Item]:
        """The inputs of groups of lines. A group that is not certainly complete is rejected."""
        names = self.mapping.group
        is_start = changes(lines, names)
        starts = np.flatnonzero(is_start)
        keys = group_keys(lines, names).filter(pa.array(is_start)).to_pylist()
        apart = scattered_keys(lines, names)
        torn_ones = torn_groups(lines, is_start.cumsum() - 1, torn)
        reasons = (
            _NO_KEY
            if key is None
            else SCATTERED
            if key in apart
            else TORN
            if group in torn_ones
            else None
            for group, key in enumerate(keys)
        )
        faults = {
            group: Problem(", ".join(names), "", *reason)
            for group, reason in enumerate(reasons)
            if reason
        }
        for first in range(0, len(starts), BATCH_ROWS):
            part = np.append(starts, lines.num_rows)[first : first + BATCH_ROWS + 1]
            own = {
                group - first: fault
                for group, fault in faults.items()
                if 0 <= group - first < len(part) - 1
            }
            yield from convert(
                self._bindings, lines.slice(part[0], part[-1] - part[0]), part[:-1] - part[0], own
            )


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
        rules[source.column] = (
            rule if before is None else replace(rule, is_text=rule.is_text or before.is_text)
        )
    keys = [
        *bindings.mapping.group,
        *(name for lookup in bindings.mapping.lookups for name in lookup.match),
    ]
    return (
        dict.fromkeys(bindings.columns, CellRules())
        | dict.fromkeys(keys, CellRules(is_text=True))
        | rules
    )
