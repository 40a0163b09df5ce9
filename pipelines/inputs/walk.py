"""A file walked: its lines prepared, grouped, converted, and handed on in the file's order.

In: a table of the intake, and what was made of its mapping. Out: a stream of inputs, a batch at a time in memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from heapq import merge
from pathlib import Path
from typing import Final, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.inputs.columns import Clean, columnar
from pipelines.inputs.convert import Bounds, Converter
from pipelines.inputs.fields import MAPPED, Source
from pipelines.inputs.lookups import LookupTable
from pipelines.inputs.model import Item, Problem, Ready, Rejected, Skipped
from pipelines.intake import Refused, Table
from pipelines.intake.model import LINE_COLUMN
from pipelines.mapping import Mapping
from sources.inputs import LoginMode
from transforms.csv_rows import filled
from transforms.file_lines import blank_lines, changes, filled_down, whole
from transforms.numbers import COMMA, POINT, Evidence

WALK_ROWS: Final = 16_384
_NO_BATCH: Final = 2**63
_APART = "group_apart", "lines of the same group stand apart from these: sort the file by it"
_TORN = "group_torn", "a line beside these could not be read, and may belong to them"
_NAMELESS = "group_blank", "the columns that tell a group are empty"


class Prepared(NamedTuple):
    """Lines of a batch that are inputs; those that are none; those that the intake refused."""

    table: pa.Table
    skipped: list[int]
    refused: list[Refused]


class Lines:
    """The lines of a file: cells filled from above, lines that are no input set aside.

    Args:
        table: of the intake.
        mapping: checked.
        columns: that are needed.
    """

    def __init__(self, table: Table, mapping: Mapping, columns: Sequence[str]) -> None:
        self._table, self._mapping = table, mapping
        self._columns = [*columns, LINE_COLUMN]

    def __iter__(self) -> Iterator[Prepared]:
        mapping = self._mapping
        empty = mapping.formats.empty or ()
        refused: list[Refused] = []
        above: pa.Table | None = None
        for batch in self._table.batches(WALK_ROWS, refused.append):
            table = batch.select(self._columns)
            is_none = blank_lines(table, mapping.skip_blank, empty) if mapping.skip_blank else None
            if mapping.fill_down:
                joined = table if above is None else pa.concat_tables([above, table])
                table = filled_down(joined, mapping.fill_down, mapping.fill_within, empty)
                table = table if above is None else table.slice(1)
                above = table.slice(table.num_rows - 1)
            skipped: list[int] = []
            if is_none is not None and is_none.any():
                skipped = table[LINE_COLUMN].to_numpy()[is_none].tolist()
                table = table.filter(pa.array(~is_none))
            yield Prepared(table, skipped, refused)
            refused.clear()
        if refused:
            yield Prepared(pa.table({name: pa.array([], _type(name)) for name in self._columns}), [], refused)


def _type(name: str) -> pa.DataType:
    return pa.int64() if name == LINE_COLUMN else pa.string()


@dataclass(frozen=True, slots=True)
class Surveyed:
    """What the whole file shows, before it is walked.

    Attributes:
        sources: with the notation of their numbers, where it had to be proven.
        apart: keys of groups whose lines do not stand together.
        notes: for a person.
    """

    sources: list[Source]
    apart: frozenset[str]
    notes: list[str]


def survey(lines: Lines, mapping: Mapping, sources: Sequence[Source], lookups: Sequence[LookupTable]) -> Surveyed:
    """Looks through the file for what one line alone cannot tell; not at all where everything is told."""
    evidence = {at: Evidence() for at, source in enumerate(sources) if source.proves}
    in_file = {at: sources[at] for at in evidence if sources[at].lookup == MAPPED}
    for at in evidence.keys() - in_file.keys():
        evidence[at].add(lookups[sources[at].lookup].given[sources[at].path])
    apart = _Apart()
    if in_file or mapping.group:
        for table, _, _ in lines:
            for at, source in in_file.items():
                evidence[at].add(filled(whole(table, source.column), source.reading.empty))
            if mapping.group:
                apart.add(table, mapping.group)
    made = list(sources)
    notes = []
    for at, found in evidence.items():
        source = sources[at]
        if found.proof in ("comma", "point"):
            notation = COMMA if found.proof == "comma" else POINT
            made[at] = replace(source, reading=replace(source.reading, notation=notation))
            notes.append(f"{source.column}: a {found.proof} is the decimal mark, as its numbers prove")
        elif found.proof == "both":
            made[at] = replace(source, reading=replace(source.reading, unproven="mixed_numbers"))
            notes.append(f"{source.column}: its numbers are written in two ways, and those with a mark are rejected")
        elif found.proof == "ambiguous":
            notes.append(f"{source.column}: no number proves its decimal mark, and those with a mark are rejected")
    return Surveyed(made, frozenset(apart.found), notes)


class _Apart:
    """Keys that come again after another one. It remembers the hash of every key."""

    def __init__(self) -> None:
        self.found: set[str] = set()
        self._seen: set[int] = set()
        self._last: str | None = None

    def add(self, table: pa.Table, columns: Sequence[str]) -> None:
        if not table.num_rows:
            return
        keys = group_keys(table, columns)
        for key in keys.filter(pa.array(changes(table, columns))).to_pylist():
            if key is None or key == self._last:
                continue
            if hash(key) in self._seen:
                self.found.add(key)
            self._seen.add(hash(key))
            self._last = key
        self._last = keys[-1].as_py()


def group_keys(table: pa.Table, columns: Sequence[str]) -> pa.Array:
    """One text for the columns that tell a group; null where all are empty."""
    texts = [pc.fill_null(filled(whole(table, name)), "") for name in columns]
    keys = pc.binary_join_element_wise(*texts, "\x1f")
    return pc.if_else(pa.array(blank_lines(table, columns)), pa.scalar(None, pa.string()), keys)


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
        table: Table,
        mapping: Mapping,
        sources: Sequence[Source],
        lookups: Sequence[LookupTable],
        password_column: str | None,
        login_mode: LoginMode | None,
        notes: Sequence[str],
    ) -> None:
        self.kind, self.table, self.mapping = mapping.kind, table, mapping
        self.files = [file, *([mapping.path] if mapping.path else []), *(lookup.path for lookup in mapping.lookups)]
        self.password_column = password_column
        needed = [source.column for source in sources if source.lookup == MAPPED]
        needed += [*mapping.group, *mapping.fill_down, *mapping.fill_within, *mapping.skip_blank]
        needed += [name for lookup in mapping.lookups for name in lookup.match]
        self._lines = Lines(table, mapping, list(dict.fromkeys(needed)))
        found = survey(self._lines, mapping, sources, lookups)
        self.notes = [*notes, *found.notes]
        self.proven = {
            source.column: source.reading.notation
            for source in found.sources
            if source.proves and source.lookup == MAPPED and source.reading.notation is not None
        }
        self._apart = found.apart
        self._converter = Converter(mapping, found.sources, lookups, login_mode)
        self._columnar = columnar(mapping, found.sources, lookups, login_mode)

    def __iter__(self) -> Iterator[Ready | Rejected | Skipped]:
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

    def in_columns(self) -> Iterator[Clean | Ready | Rejected | Skipped]:
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

    def _skipped(self, lines: Sequence[int]) -> list[Skipped]:
        why = f"{', '.join(self.mapping.skip_blank)}: empty, so that it is no input"
        return [Skipped((line,), why) for line in lines]

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
            before = item.problems if isinstance(item, Rejected) else ()
            made.append(Rejected(item.lines, (*before, Problem(", ".join(self.mapping.group), "", *why))))
        return made


def _as_rejected(row: Refused) -> Rejected:
    return Rejected((row.line,), (Problem("", "", row.code, row.reason, row.line),))


def _first_line(table: pa.Table) -> int:
    return int(table[LINE_COLUMN][0].as_py()) if table.num_rows else _NO_BATCH


def _last_line(table: pa.Table) -> int:
    return int(table[LINE_COLUMN][-1].as_py()) if table.num_rows else -1
