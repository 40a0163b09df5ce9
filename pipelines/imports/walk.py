"""A file walked: its lines prepared, grouped, converted, and handed on in the file's order.

In: a table of the intake, and what was made of its mapping. Out: a stream of inputs, a batch at a time in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from heapq import merge
from pathlib import Path
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.columns import Clean, columnar
from pipelines.imports.convert import Bounds, Converter
from pipelines.imports.fields import MAPPED, Source
from pipelines.imports.lines import WALK_ROWS, Lines
from pipelines.imports.lookups import LookupTable
from pipelines.imports.model import Item, Problem, ReadyInput, RejectedInput, SkippedLine
from pipelines.imports.survey import group_keys, survey
from pipelines.mapping import Mapping
from sources.files import RejectedRow, SourceTable
from sources.files.model import LINE_COLUMN
from sources.kinds import LoginMode
from transforms.numbers import DOT
from transforms.upserts.lines import changes

_NO_BATCH: Final = 2**63
_APART = "group_apart", "lines of the same group stand apart from these: sort the file by it"
_TORN = "group_torn", "a line beside these could not be read, and may belong to them"
_NAMELESS = "group_blank", "the columns that tell a group are empty"


class Inputs:
    """A file opened with its mapping; it may be walked any number of times.

    Attributes:
        kind: of the inputs.
        table: the file as the intake reads it.
        mapping: told or proposed.
        files: the file itself, the mapping and the lookups: what the inputs rest on.
        password_column: the column that holds the passwords; None where there is none.
        proven: how the numbers of a column are written, where the column itself had to prove it.
        notes: what a person should know of how it was read, e.g. a field that the login mode ignores.
    """

    def __init__(
        self,
        file: Path,
        table: SourceTable,
        mapping: Mapping,
        sources: Sequence[Source],
        lookups: Sequence[LookupTable],
        password_column: str | None,
        login_mode: LoginMode | None,
        notes: Sequence[str],
    ) -> None:
        self.kind, self.mapping = mapping.kind, mapping
        self.files = [file, *([mapping.path] if mapping.path else []), *(lookup.path for lookup in mapping.lookups)]
        self.password_column = password_column
        needed = [source.column for source in sources if source.lookup == MAPPED]
        needed += [*mapping.group, *mapping.fill_down, *mapping.fill_within, *mapping.skip_blank]
        needed += [name for lookup in mapping.lookups for name in lookup.match]
        needed = list(dict.fromkeys(needed))
        found = survey(Lines(table.with_decimals(_signs(sources)), mapping, needed), mapping, sources, lookups)
        self.table = table.with_decimals(_signs(found.sources))
        self._lines = Lines(self.table, mapping, needed)
        self.notes = [*notes, *found.notes]
        self.proven = {
            source.column: source.reading.notation
            for source in found.sources
            if source.proves and source.lookup == MAPPED and source.reading.notation is not None
        }
        self._apart = found.apart
        self._converter = Converter(mapping, found.sources, lookups, login_mode)
        self._columnar = columnar(mapping, found.sources, lookups, login_mode)

    def __iter__(self) -> Iterator[ReadyInput | RejectedInput | SkippedLine]:
        """Each input where its first line stands.

        Raises:
            UsageError: the file cannot be read any further.
        """
        held: list[Item] = []
        torn: list[int] = []
        waiting: pa.Table | None = None
        for table, skipped, refused in self._lines:
            held += self._skipped(skipped)
            held += [_as_rejected(row) for row in refused]
            torn += [row.line for row in refused]
            whole_groups, waiting = self._split(table, waiting)
            limit = _first_line(waiting) if waiting is not None else _last_line(table) + 1
            yield from self._merged(whole_groups, held, limit, torn)
            held = [item for item in held if item.lines[0] >= limit]
            torn = [line for line in torn if line > _last_line(whole_groups)]
        yield from self._merged(waiting, held, _NO_BATCH, torn)

    def in_columns(self) -> Iterator[Clean | ReadyInput | RejectedInput | SkippedLine]:
        """The same inputs; those that can be are handed on as columns, and of a batch before all others.

        Raises:
            UsageError: the file cannot be read any further.
        """
        if self._columnar is None:
            yield from self
            return
        for table, skipped, refused in self._lines:
            clean, others = self._columnar.split(table)
            if len(clean.lines):
                yield clean
            yield from self._merged(others, [*self._skipped(skipped), *map(_as_rejected, refused)], _NO_BATCH, ())

    def passwords(self, lines: Collection[int]) -> dict[int, str]:
        """The passwords on these lines, read from the file again; a line without one is left out."""
        if self.password_column is None or not lines:
            return {}
        found: dict[int, str] = {}
        wanted = pa.array(sorted(lines), pa.int64())
        for batch in self.table.batches(WALK_ROWS, lambda _: None):
            part = batch.select([self.password_column, LINE_COLUMN])
            part = part.filter(pc.is_in(part[LINE_COLUMN], wanted))
            pairs = zip(part[LINE_COLUMN].to_pylist(), part[self.password_column].to_pylist(), strict=True)
            found |= {line: secret for line, secret in pairs if secret.strip()}
        return found

    def _skipped(self, lines: Sequence[int]) -> list[SkippedLine]:
        why = f"{', '.join(self.mapping.skip_blank)}: empty, so that it is no input"
        return [SkippedLine((line,), why) for line in lines]

    def _split(self, table: pa.Table, waiting: pa.Table | None) -> tuple[pa.Table, pa.Table | None]:
        """The lines that can be converted, and those of the last group, which may go on in the next batch."""
        if not self.mapping.group:
            return table, None
        joined = table if waiting is None else pa.concat_tables([waiting, table])
        if not joined.num_rows:
            return joined, None
        last = int(np.flatnonzero(changes(joined, self.mapping.group))[-1])
        return joined.slice(0, last), joined.slice(last)

    def _merged(self, table: pa.Table | None, held: Sequence[Item], limit: int, torn: Sequence[int]) -> Iterator[Item]:
        """The inputs of lines, and what else stands before a line, in the file's order."""
        items: Sequence[Item] = []
        if table is not None and table.num_rows:
            bounds = self._bounds(table)
            items = self._converter.convert(table, bounds)
            if bounds:
                items = self._whole(table, bounds, items, torn)
        others = sorted((item for item in held if item.lines[0] < limit), key=lambda item: item.lines[0])
        return merge(items, others, key=lambda item: item.lines[0]) if others else iter(items)

    def _bounds(self, table: pa.Table) -> Bounds:
        if not self.mapping.group:
            return ()
        starts = np.flatnonzero(changes(table, self.mapping.group)).tolist()
        return list(zip(starts, [*starts[1:], table.num_rows], strict=True))

    def _whole(self, table: pa.Table, bounds: Bounds, items: Sequence[Item], torn: Sequence[int]) -> list[Item]:
        """Groups, those rejected of which not every line is there for certain."""
        keys = group_keys(table, self.mapping.group).to_pylist()
        numbers = table[LINE_COLUMN].to_numpy()
        starts = np.array([begin for begin, _ in bounds])
        beside: set[int] = set()
        for line in torn:
            after = int(np.searchsorted(numbers, line))
            near = [row for row in (after - 1, after) if 0 <= row < len(numbers)]
            beside |= {int(np.searchsorted(starts, row, "right")) - 1 for row in near}
        made: list[Item] = []
        for group, item in enumerate(items):
            key = keys[bounds[group][0]]
            why = _NAMELESS if key is None else _APART if key in self._apart else _TORN if group in beside else None
            if why is None:
                made.append(item)
                continue
            before = item.problems if isinstance(item, RejectedInput) else ()
            made.append(RejectedInput(item.lines, (*before, Problem(", ".join(self.mapping.group), "", *why))))
        return made


def _signs(sources: Sequence[Source]) -> dict[str, str]:
    """How a sheet's own numbers are written in each column that is read as numbers: as the column's texts are."""
    signs: dict[str, str] = {}
    for source in sources:
        if source.is_number and source.lookup == MAPPED:
            sign = DOT if source.reading.notation is None else source.reading.notation.decimal
            signs[source.column] = DOT if signs.get(source.column, sign) != sign else sign
    return signs


def _as_rejected(row: RejectedRow) -> RejectedInput:
    return RejectedInput((row.line,), (Problem("", "", row.code, row.reason, row.line),))


def _first_line(table: pa.Table) -> int:
    return int(table[LINE_COLUMN][0].as_py()) if table.num_rows else _NO_BATCH


def _last_line(table: pa.Table) -> int:
    return int(table[LINE_COLUMN][-1].as_py()) if table.num_rows else -1
