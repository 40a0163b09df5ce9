"""Ids and other values that stand in another file: found by what a line says.

In: a lookup of the mapping, and the lines. Out: what that file gives for each line, or a code where it gives nothing,
or two things. The file lies in memory by its keys.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports.model import named
from pipelines.mapping import Lookup
from pipelines.mapping.places import nearest
from sources.errors import UsageError
from sources.files import open_table
from transforms.frames import TEXT
from transforms.numbers import DOT
from transforms.upserts.cells import filled
from transforms.upserts.lines import whole

NOT_FOUND, AMBIGUOUS = "lookup_not_found", "lookup_ambiguous"
WORDS: Final = {
    NOT_FOUND: "no line of {file} has the same in {columns}",
    AMBIGUOUS: "several lines of {file} have the same in {columns}, and do not give the same",
}
_BETWEEN: Final = "\x1f"


class LookupTable:
    """A lookup's file, opened.

    Args:
        lookup: of the mapping.
        numbers: columns of its file that are read as numbers.

    Raises:
        UsageError: the file cannot be read, or lacks a column.
    """

    def __init__(self, lookup: Lookup, numbers: Collection[str] = ()) -> None:
        self.lookup = lookup
        if not lookup.path.is_file():
            raise UsageError(
                f"the lookup {lookup.file} is not there", f"It is looked for as {lookup.path}, beside the mapping file."
            )
        table = open_table(lookup.path)
        for name in (*lookup.match.values(), *lookup.give.values()):
            if name not in table.columns:
                raise UsageError(
                    f"the lookup {lookup.file} has no column {name!r}{nearest(name, table.columns)}",
                    f"Its columns: {named(table.columns)}.",
                )
        table = table.with_decimals(dict.fromkeys(numbers, DOT))
        names = list(dict.fromkeys([*lookup.match.values(), *lookup.give.values()]))
        empty = pa.schema([(name, TEXT) for name in names]).empty_table()
        rows = pa.concat_tables([empty, *(batch.select(names) for batch in table.batches())])
        self.given = {path: filled(whole(rows, name)) for path, name in lookup.give.items()}
        said = _joined(rows, list(lookup.give.values()), keep_null=True)
        self._places: dict[str, int] = {}
        self._said = said.to_pylist()
        for place, key in enumerate(_joined(rows, list(lookup.match.values())).to_pylist()):
            if key is None:
                continue
            first = self._places.setdefault(key, place)
            if first >= 0 and self._said[first] != self._said[place]:
                self._places[key] = -1

    def find(self, lines: pa.Table) -> tuple[dict[str, pa.Array], pa.Array]:
        """What the file gives for each line, by field; and a code where it gives nothing for certain."""
        keys = _joined(lines, list(self.lookup.match))
        places = list(map(self._places.get, keys.to_numpy(zero_copy_only=False).tolist()))
        found = pa.array([None if place is None or place < 0 else place for place in places], pa.int64())
        codes = [
            None if place is not None and place >= 0 else NOT_FOUND if place is None else AMBIGUOUS for place in places
        ]
        return {path: column.take(found) for path, column in self.given.items()}, pa.array(codes, TEXT)

    def words(self, code: str) -> str:
        """What a code means."""
        return WORDS[code].format(file=self.lookup.file, columns=", ".join(self.lookup.match))


def _joined(table: pa.Table, columns: Sequence[str], *, keep_null: bool = False) -> pa.Array:
    """One text for several columns; null where one of them is empty, unless that is to be kept."""
    texts = [filled(whole(table, name)) for name in columns]
    if keep_null:
        texts = [pc.fill_null(column, "") for column in texts]
    return pc.binary_join_element_wise(*texts, _BETWEEN) if texts else pa.nulls(table.num_rows, TEXT)
