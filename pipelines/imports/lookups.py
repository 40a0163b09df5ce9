"""Lookup files: ids and other values that are in another file, found by the values of a line.

In: a lookup of the mapping, and lines. Out: the values for each line, or a code if there is no row or no single answer.
The file is held in memory, indexed by its key columns.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.groups import whole
from orderbridge.pipelines.mapping import Lookup
from orderbridge.pipelines.mapping.cells import filled
from orderbridge.pipelines.mapping.field_paths import suggestion
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import CellRules, RejectedRow, open_table
from orderbridge.sources.words import listed
from orderbridge.transforms.frames import TEXT
from orderbridge.transforms.values.numbers import DOT

NOT_FOUND, AMBIGUOUS = "lookup_not_found", "lookup_ambiguous"
MESSAGES: Final = {
    NOT_FOUND: "no row of {file} matches in {columns}",
    AMBIGUOUS: "several rows of {file} match in {columns}, with different values",
}
_SEPARATOR: Final = "\x1f"
_SEVERAL: Final = -1
_DIGEST_BYTES: Final = 8


class LookupTable:
    """An opened lookup file; its columns `numbers` are parsed as numbers.

    Raises:
        UsageError: the file cannot be read, or lacks a column.
    """

    def __init__(self, lookup: Lookup, numbers: Collection[str] = ()) -> None:
        self.lookup = lookup
        if not lookup.path.is_file():
            raise UsageError(
                f"lookup file {lookup.file} not found", f"It is expected at {lookup.path}."
            )
        table = open_table(lookup.path)
        names = list(dict.fromkeys([*lookup.match.values(), *lookup.give.values()]))
        for name in names:
            if name not in table.columns:
                raise UsageError(
                    f"lookup file {lookup.file} has no column {name!r}{suggestion(name, table.columns)}",
                    f"Its columns: {listed(table.columns)}.",
                )
        rules = {
            name: CellRules(decimal=DOT) if name in numbers else CellRules(is_text=True)
            for name in names
        }
        table = table.with_cell_rules(rules)
        empty = pa.schema([(name, TEXT) for name in names]).empty_table()
        batches = table.batches(on_reject=self._reject)
        rows = pa.concat_tables([empty, *(batch.select(names) for batch in batches)])
        self.values = {path: filled(whole(rows, name)) for path, name in lookup.give.items()}
        values = _joined(rows, list(lookup.give.values()), keep_null=True).to_pylist()
        self._given = values
        self._row_of: dict[str, int] = {}
        for row, key in enumerate(_joined(rows, list(lookup.match.values())).to_pylist()):
            if key is None:
                continue
            first = self._row_of.setdefault(key, row)
            if first != _SEVERAL and values[first] != values[row]:
                self._row_of[key] = _SEVERAL

    def _reject(self, row: RejectedRow) -> None:
        raise UsageError(
            f"lookup file {self.lookup.file}, line {row.line}: {row.reason}",
            "Fix or remove the line.",
        )

    def find(self, lines: pa.Table) -> tuple[dict[str, pa.Array], pa.Array]:
        """The values for each line by field path; and a code for each line without a single answer, else null."""
        keys = _joined(lines, list(self.lookup.match))
        rows = list(map(self._row_of.get, keys.to_numpy(zero_copy_only=False).tolist()))
        indices = pa.array([None if row == _SEVERAL else row for row in rows], pa.int64())
        codes = [
            NOT_FOUND if row is None else AMBIGUOUS if row == _SEVERAL else None for row in rows
        ]
        return {path: column.take(indices) for path, column in self.values.items()}, pa.array(
            codes, TEXT
        )

    def records(self) -> dict[str, str]:
        """The hash of what each key leads to, by the hash of the key; several different rows of a key have none."""
        rows = ((key, row) for key, row in self._row_of.items() if row != _SEVERAL)
        return {_digest(key): _digest(self._given[row]) for key, row in rows}

    def moved_keys(self, before: Mapping[str, str]) -> list[str]:
        """The keys that lead to something else than `before`, which has what `records` returned then."""
        now = self.records()
        digests = ((key, _digest(key)) for key in self._row_of)
        return [key for key, own in digests if own in now and before.get(own, now[own]) != now[own]]

    def has_key(self, lines: pa.Table, keys: Sequence[str]) -> pa.Array:
        """Which lines have one of these keys."""
        joined = _joined(lines, list(self.lookup.match))
        return pc.is_in(joined, value_set=pa.array(keys, TEXT))

    def words(self, code: str) -> str:
        """The explanation of a code."""
        return MESSAGES[code].format(file=self.lookup.file, columns=", ".join(self.lookup.match))


def _digest(text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=_DIGEST_BYTES).hexdigest()


def _joined(table: pa.Table, columns: Sequence[str], *, keep_null: bool = False) -> pa.Array:
    """The texts of several columns joined; null where one of them is empty, unless `keep_null`."""
    texts = [filled(whole(table, name)) for name in columns]
    if keep_null:
        texts = [pc.fill_null(column, "") for column in texts]
    return pc.binary_join_element_wise(*texts, _SEPARATOR)
