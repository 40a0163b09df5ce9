"""The ERP's files to compare, and the contents of the one with its customers, as the mapping reads it.

In: a CSV or .xlsx file, and a mapping of its columns to fields. Out: a frame for the match, and the lines left out. The
lines are prepared as for a plan: filled from above, skipped, and completed from lookup files. They are read before
anything else is done: a run that cannot read them ends before its first request.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.fields import IN_FILE, Bindings, Source, field_sources
from orderbridge.pipelines.imports.groups import (
    blank_lines,
    changes,
    group_keys,
    scattered_keys,
    torn_groups,
    whole,
)
from orderbridge.pipelines.imports.inputs import SCATTERED, TORN
from orderbridge.pipelines.imports.lines import prepared_lines
from orderbridge.pipelines.imports.lookups import LookupTable
from orderbridge.pipelines.imports.open import (
    count_reject_columns,
    layout_notes,
    open_input_table,
    open_lookups,
)
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping import assume, load, propose, sample
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import CellRules, SourceTable
from orderbridge.sources.files.model import LINE_COLUMN
from orderbridge.transforms.documents import first_row_per_owner
from orderbridge.transforms.erp.match_keys import MATCH_KEYS
from orderbridge.transforms.frames import (
    BIGINT,
    TEXT,
    from_arrow,
    positions,
    take_or_null,
    to_arrow,
)

log = logging.getLogger("orderbridge.reconcile")
ERP_COLUMNS: Final = {
    "erpCode": "erp_code",
    "loginCode": "login_code",
    "email": "email",
    "documents[0].number": "document_number",
    "firstName": "first_name",
    "lastName": "last_name",
    "phone": "phone",
    "priceListId": "price_list_id",
    "documents[0].fiscalName": "fiscal_name",
    "documents[0].fiscalAddress": "fiscal_address",
    "documents[0].email": "document_email",
}
"""The fields of a customer that are compared, of a list its first item: their names in a mapping, and in
`transforms.erp.tables`."""


@dataclass(frozen=True, slots=True)
class ErpFiles:
    """The files of the ERP to compare, None for none; and their mappings, None: detected by the columns' names.

    `lookups` are the lookup files that a mapping may read outside its own folder. `scheduler` is the address of the
    Dask cluster that works on the parts of long lists; None: this process does. `forget`: without a file, the result of
    the last one is not kept. `result`: a workbook that gets the match with the customers once it is published.
    """

    customers: Path | None = None
    mapping: Path | None = None
    variants: Path | None = None
    variants_mapping: Path | None = None
    lookups: tuple[Path, ...] = field(default=(), kw_only=True)
    scheduler: str | None = field(default=None, kw_only=True)
    forget: bool = field(default=False, kw_only=True)
    result: Path | None = field(default=None, kw_only=True)


@dataclass(frozen=True, slots=True)
class ErpCustomers:
    """The contents of a file of the ERP's customers; `columns` and `unread` as in the `MatchSummary`.

    Attributes:
        rows: `_line`, and a text column for each of `ERP_COLUMNS` that the file has.
        refused: code and reason by line, of lines that do not fit the file's header or have no answer in a lookup file,
            and of groups of lines that a plan rejects.
        skipped: number of lines that the mapping skips (`skip_blank`), or that continue the group of the line above.
    """

    rows: pd.DataFrame
    refused: dict[int, str]
    skipped: int
    columns: dict[str, str]
    unread: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _File:
    """The file of customers, opened.

    Attributes:
        columns: of the file, without those that a plan added to rejects.
        sources: of `ERP_COLUMNS`, by their names in the frame.
        used: columns that are read.
    """

    table: SourceTable
    mapping: ColumnMapping
    columns: Sequence[str]
    sources: dict[str, Source]
    lookups: Sequence[LookupTable]
    used: Sequence[str]


def read_erp_customers(files: ErpFiles) -> ErpCustomers | None:
    """Reads the file of the ERP's customers; None without one.

    Raises:
        UsageError: the file or its mapping cannot be read, or no column of it is a key.
    """
    if files.customers is None:
        for name, given in (("mapping", files.mapping), ("result", files.result)):
            if given is not None:
                raise UsageError(
                    f"--erp-{name} requires --erp-customers",
                    "Name the file with --erp-customers FILE.",
                )
        return None
    mapping = load(files.mapping, "customers", files.lookups) if files.mapping is not None else None
    file = _open(files.customers, mapping)
    rows, refused, skipped, groups = _read_lines(file)
    if groups is not None:
        single = {
            name: source for name, source in file.sources.items() if not source.target.is_each
        }
        rows = rows[~rows[LINE_COLUMN].isin(list(refused))].reset_index(drop=True)
        groups = groups.filter(
            pc.is_in(groups[LINE_COLUMN], to_arrow(rows, {LINE_COLUMN: BIGINT})[LINE_COLUMN])
        )
        merged, differing = _first_of_groups(rows, groups, file.mapping.group, single)
        refused |= dict.fromkeys(
            differing, "lines_differ: the lines of its group have different values"
        )
        skipped += len(rows) - len(differing) - len(merged)
        rows = merged
    _fill_defaults(rows, file.sources)
    origins = {
        name: source.column
        if source.lookup == IN_FILE
        else f"{source.column} of {file.mapping.lookups[source.lookup].file}"
        for name, source in file.sources.items()
    }
    unread = tuple(name for name in file.columns if name not in file.used)
    return ErpCustomers(rows, dict(sorted(refused.items())), skipped, origins, unread)


def _open(path: Path, mapping: ColumnMapping | None) -> _File:
    table = open_input_table(path, mapping.read_options if mapping is not None else None, mapping)
    table.check_line_column()
    warn_of_layout(path, table)
    columns = table.columns[: len(table.columns) - count_reject_columns(table.columns, mapping)]
    mapping = mapping or _proposed(columns, sample(table))
    fields = (
        (one.path.replace("[+]", "[0]").removesuffix("[0]"), one) for one in field_sources(mapping)
    )
    sources = {ERP_COLUMNS[name]: one for name, one in fields if name in ERP_COLUMNS}
    lookups = open_lookups(mapping, list(sources.values()))
    used = Bindings(mapping, list(sources.values()), lookups, login_mode=None).columns
    missing = sorted(set(used) - set(columns))
    if missing:
        raise UsageError(
            f"{path.name} has no column {', '.join(missing)}, which the mapping names",
            f"Its columns: {', '.join(columns)}.",
        )
    if not set(MATCH_KEYS) & set(sources):
        raise UsageError(
            f"{path.name}: no column is a code, login code, e-mail address or document number",
            f"Its columns: {', '.join(columns)}. Name the columns in a mapping file: --erp-mapping FILE.",
        )
    return _File(table, mapping, columns, sources, lookups, used)


def _proposed(columns: Sequence[str], samples: Mapping[str, Sequence[str]]) -> ColumnMapping:
    """The columns by their names and values. What they do not prove is assumed, since nothing is written with it."""
    return assume(propose(columns, "customers", samples=samples), samples)


def _read_lines(file: _File) -> tuple[pd.DataFrame, dict[int, str], int, pa.Table | None]:
    """The rows, `refused` and `skipped` as in `ErpCustomers`; the columns of the mapping's groups, and `_line`."""
    mapping, sources = file.mapping, file.sources
    schema = pa.schema([*((name, TEXT) for name in sources), (LINE_COLUMN, BIGINT)])
    parts = [schema.empty_table()]
    groups: list[pa.Table] = []
    skipped = 0
    refused: dict[int, str] = {}
    texts = {name for lookup in mapping.lookups for name in lookup.match}
    texts |= {source.column for source in sources.values() if source.lookup == IN_FILE}
    rules = dict.fromkeys(file.used, CellRules()) | dict.fromkeys(texts, CellRules(is_text=True))
    table = file.table.with_cell_rules(rules)
    for batch in prepared_lines(table, mapping, file.used):
        refused |= {row.line: f"{row.code}: {row.reason}" for row in batch.rejected}
        skipped += len(batch.skipped)
        if mapping.group:
            groups.append(batch.table.select([*mapping.group, LINE_COLUMN]))
        lines, values = _looked_up(batch.table, file.lookups, refused)
        cells = {
            name: _value(
                lines[source.column] if source.lookup == IN_FILE else values[source.path], source
            )
            for name, source in sources.items()
        }
        parts.append(pa.table({**cells, LINE_COLUMN: lines[LINE_COLUMN]}, schema))
    rows = from_arrow(pa.concat_tables(parts).combine_chunks())
    if not groups:
        return rows, refused, skipped, None
    keys = pa.concat_tables(groups)
    return rows, _incomplete_groups(keys, mapping.group, refused) | refused, skipped, keys


def _fill_defaults(rows: pd.DataFrame, sources: Mapping[str, Source]) -> None:
    """Fills blank cells with the mapping's defaults: of a customer, not of each line of its group.

    Those of a document only where a line has one: alone they are no document.
    """
    documents = [
        name
        for path, name in ERP_COLUMNS.items()
        if path.startswith("documents") and name in sources
    ]
    lacks_document = blank_lines(to_arrow(rows, dict.fromkeys(documents, TEXT)), documents)
    defaults = {
        name: str(source.default) for name, source in sources.items() if source.default is not None
    }
    for name, default in defaults.items():
        is_blank = rows[name].str.strip().fillna("").eq("")
        rows[name] = rows[name].mask(
            is_blank & ~lacks_document if name in documents else is_blank, default
        )


def warn_of_layout(file: Path, table: SourceTable) -> None:
    """Logs which lines and cells of a file may not mean what a person sees."""
    for note in layout_notes(table):
        log.warning("%s: %s", file.name, note)


def _looked_up(
    lines: pa.Table, lookups: Sequence[LookupTable], refused: dict[int, str]
) -> tuple[pa.Table, dict[str, pa.Array]]:
    """The lines that every lookup has an answer for, and the answers by field path; the others go to `refused`."""
    values: dict[str, pa.Array] = {}
    for lookup in lookups:
        found, codes = lookup.find(lines)
        is_known = pc.is_null(codes)
        numbers = lines[LINE_COLUMN].filter(pc.is_valid(codes)).to_pylist()
        reasons = (f"{code}: {lookup.words(code)}" for code in codes.drop_null().to_pylist())
        refused |= dict(zip(numbers, reasons, strict=True))
        lines = lines.filter(is_known)
        values = {path: cells.filter(is_known) for path, cells in (values | found).items()}
    return lines, values


def _incomplete_groups(
    keys: pa.Table, names: Sequence[str], refused: Mapping[int, str]
) -> dict[int, str]:
    """Why lines of groups that may lack one are left out, as for a plan: a line is refused, unreadable or elsewhere."""
    lines = keys[LINE_COLUMN].to_numpy()
    is_blank = blank_lines(keys, names)
    groups = (changes(keys, names) | is_blank).cumsum()
    is_apart = pc.is_in(
        group_keys(keys, names), pa.array(list(scattered_keys(keys, names)), TEXT)
    ).to_numpy(zero_copy_only=False)
    reasons = dict.fromkeys(groups[is_apart].tolist(), ": ".join(SCATTERED))
    blank_groups = set(groups[is_blank].tolist())
    torn = torn_groups(keys, groups, refused.keys() - set(lines.tolist()))
    reasons |= dict.fromkeys(torn - blank_groups, ": ".join(TORN))
    reasons |= {
        group: refused[line]
        for line, group in zip(lines.tolist(), groups.tolist(), strict=True)
        if line in refused
    }
    found = np.isin(groups, list(reasons))
    return dict(
        zip(lines[found].tolist(), map(reasons.__getitem__, groups[found].tolist()), strict=True)
    )


def _first_of_groups(
    rows: pd.DataFrame, keys: pa.Table, names: Sequence[str], single: Mapping[str, Source]
) -> tuple[pd.DataFrame, list[int]]:
    """One row for each group of lines: the first value of each field, and the first document.

    Lines without a key are of no group. Returns the rows, and the lines of groups with several values of a field that
    takes one for the group (`single`), as a plan reads them: these groups have no row.
    """
    starts = changes(keys, names) | blank_lines(keys, names)
    groups = starts.cumsum() - 1
    size = int(starts.sum())
    texts = to_arrow(
        rows, dict.fromkeys((name for name in ERP_COLUMNS.values() if name in rows), TEXT)
    )
    is_given = {name: ~blank_lines(texts, [name]) for name in texts.column_names}
    own = [
        name
        for path, name in ERP_COLUMNS.items()
        if path.startswith("documents") and name in is_given
    ]
    is_given |= dict.fromkeys(own, ~blank_lines(texts, own))

    is_differing = np.zeros(size, np.bool_)
    for name, source in single.items():
        values, _ = source.reading.read(whole(texts, name))
        values = values.cast(pa.float64()) if source.is_number else values
        first = first_row_per_owner(
            groups, pc.is_valid(values).to_numpy(zero_copy_only=False), size
        )
        others = values.take(positions(first[groups]))
        is_differing[
            groups[pc.not_equal(values, others).fill_null(False).to_numpy(zero_copy_only=False)]
        ] = True
    columns = [
        take_or_null(rows[[name]], first_row_per_owner(groups, is_given.get(name, starts), size))
        for name in map(str, rows)
    ]
    result = pd.concat(columns, axis="columns")
    return result[~is_differing].reset_index(drop=True), rows[LINE_COLUMN][
        is_differing[groups]
    ].tolist()


def _value(cells: pa.Array | pa.ChunkedArray, source: Source) -> pa.Array | pa.ChunkedArray:
    """The cells of a field, null for the texts that the mapping declares empty."""
    if not source.reading.empty:
        return cells
    is_empty = pc.is_in(
        pc.utf8_trim_whitespace(cells), value_set=pa.array(source.reading.empty, TEXT)
    )
    return pc.if_else(is_empty, pa.scalar(None, TEXT), cells)
