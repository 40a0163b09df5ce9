"""A lookup is proposed where a file lacks the ids that the platform requires, and another file has them.

In: an input file, its proposed mapping, and files that may have the ids: those given, and those beside it. Out: the
lookup that fits: its id columns are recognised by their names, all of them hold ids, and one column of the input finds
almost every line in one of its columns, and one record for each. Nothing is decided here: a person is asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.import_file.asking import FileQuestion
from orderbridge.pipelines.imports.groups import whole
from orderbridge.pipelines.mapping import Lookup, normalize, propose, sample
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping.cells import Reading, filled
from orderbridge.pipelines.mapping.field_paths import FieldPath, resolve
from orderbridge.pipelines.mapping.read import is_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import SourceTable, open_table
from orderbridge.transforms.frames import TEXT

_SUFFIXES: Final = (".csv", ".txt", ".tsv", ".xlsx")
_FILES_MAX: Final = 100
_BYTES_MAX: Final = 32 << 20
"""The number of files that are looked at, and the size up to which one is."""
_SHARE: Final = 0.9
"""Share of the lines with a key that a lookup has to find."""
_GIVEN_SHARE: Final = 0.5
"""The same for a file that a person gives: some lines may be of articles that the platform does not have yet."""


class LookupProposal(NamedTuple):
    """A lookup that fits; it finds `found` of the `lines` of the input that have its key."""

    lookup: Lookup
    found: int
    lines: int

    @property
    def question(self) -> FileQuestion:
        """What a person is asked."""
        (own, theirs), *_ = self.lookup.match.items()
        ids = ", ".join(f"{path} = {column}" for path, column in self.lookup.give.items())
        values = {
            "missing": ", ".join(self.lookup.give),
            "file": str(self.lookup.path),
            "ids": ids,
            "own": own,
            "theirs": theirs,
            "found": f"{self.found:,}",
            "lines": f"{self.lines:,}",
        }
        return FileQuestion(topic="lookup", values=values)


class _Key(NamedTuple):
    """A column of the input and one of the other file, which find `found` of the `lines` that have a code."""

    own: str
    theirs: str
    found: int
    lines: int

    @property
    def fit(self) -> tuple[int, bool]:
        """How well they fit: most lines first, then the same name."""
        return self.found, normalize(self.own) == normalize(self.theirs)


def tables_beside(file: Path) -> list[Path]:
    """The tables in the folder of a file, without itself, links elsewhere and private ones, the newest first."""
    folder = file.resolve().parent
    found = []
    for path in folder.iterdir():
        target = path.resolve()
        is_table = path.suffix.casefold() in _SUFFIXES and path.is_file()
        is_own = target.is_relative_to(folder) and target != file.resolve()
        if is_table and is_own and not is_private(target, folder):
            found.append(path)
    return sorted(found, key=lambda path: -path.stat().st_mtime_ns)


def propose_lookup(
    table: SourceTable,
    proposed: ColumnMapping,
    missing: Sequence[str],
    beside: Collection[Path],
    given: Collection[Path] = (),
) -> LookupProposal | None:
    """The first file that fits, of those given or beside the input, with the column that finds most lines.

    None if there is none.

    Raises:
        UsageError: the input cannot be read.
    """
    lines = _columns(table)
    for file in [*given, *beside][:_FILES_MAX]:
        share = _GIVEN_SHARE if file in given else _SHARE
        with suppress(UsageError):  # it is another kind of file
            if file.stat().st_size > _BYTES_MAX:
                continue
            other = open_table(file)
            give = _ids(other, proposed.kind, missing)
            keys = _keys(lines, _columns(other), give, share) if give else iter(())
            best = max(keys, key=lambda key: key.fit, default=None)
            if best is not None:
                lookup = Lookup(str(file), file.resolve(), {best.own: best.theirs}, give)
                return LookupProposal(lookup, best.found, best.lines)
    return None


def _ids(table: SourceTable, kind: str, missing: Sequence[str]) -> dict[str, str]:
    """The columns of a file that hold the missing ids, by field; empty if it lacks one."""
    cells = sample(table)
    columns = propose(table.columns, kind, conflicts="leave", samples=cells).columns
    by_path = {column.field: name for name, column in columns.items()}
    if not all(by_path.get(path) for path in missing):
        return {}
    give = {path: by_path[path] for path in missing}
    return give if all(are_ids(kind, path, cells[name]) for path, name in give.items()) else {}


def are_ids(kind: str, path: str, cells: Sequence[str]) -> bool:
    """Whether all cells that are not empty are ids of a field, and there is one."""
    target = resolve(kind, path)
    texts = pa.array(cells, TEXT)
    values, codes = Reading(target.value_kind if isinstance(target, FieldPath) else "id").read(
        texts
    )
    return bool(codes.null_count == len(codes) and values.null_count < len(values))


def _columns(table: SourceTable) -> dict[str, pa.Array]:
    """The columns of a table, cleaned as a lookup compares them."""
    batches = list(table.batches(on_reject=lambda row: None))
    if not batches:
        return {}
    rows = pa.concat_tables(batches)
    return {name: filled(whole(rows, name)) for name in table.columns}


def _keys(
    lines: dict[str, pa.Array], others: dict[str, pa.Array], give: dict[str, str], share: float
) -> Iterator[_Key]:
    """The pairs of columns that find enough lines, and one record for each."""
    ids = pc.binary_join_element_wise(
        *(pc.fill_null(others[name], "") for name in give.values()), "\x1f"
    )
    keys = {name: texts for name, texts in others.items() if name not in give.values()}
    unique = {name: _unique_keys(texts, ids) for name, texts in keys.items()}
    for own, texts in lines.items():
        given = texts.drop_null()
        if len(pc.unique(given)) * 2 <= len(given):
            continue  # a colour or a family, not a code; or an empty column
        for theirs, known in unique.items():
            found = pc.sum(pc.is_in(given, value_set=known)).as_py()
            if found >= share * len(given):
                yield _Key(own, theirs, found, len(given))


def _unique_keys(texts: pa.Array, ids: pa.Array) -> pa.Array:
    """The texts of a column that name one record each."""
    pairs = pa.table({"key": texts, "ids": ids}).group_by(["key", "ids"]).aggregate([])
    counts = pairs.group_by("key").aggregate([("ids", "count")])
    one = counts.filter(pc.and_(pc.equal(counts["ids_count"], 1), pc.is_valid(counts["key"])))
    return one["key"].combine_chunks()
