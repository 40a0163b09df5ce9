"""A file looked through before it is walked, for what one line alone cannot tell.

In: its lines, and the fields that they fill. Out: how the numbers of each column are written, where that is not told;
and the groups whose lines do not stand together. Where all is told and nothing grouped, no line is read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.fields import MAPPED, Source
from pipelines.imports.lines import Lines
from pipelines.imports.lookups import LookupTable
from pipelines.mapping import Mapping
from transforms.numbers import COMMA, POINT, NotationEvidence
from transforms.upserts.cells import filled
from transforms.upserts.lines import blank_lines, changes, whole


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
    proving = {at: source for at, source in enumerate(sources) if source.proves}
    evidence = {at: NotationEvidence(whole=source.reading.kind == "integer") for at, source in proving.items()}
    in_file = {at: source for at, source in proving.items() if source.lookup == MAPPED}
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
