"""The match with the ERP, in buckets: lines and customers with a key in common are in the same one.

In: a build with the reconciled customers, and the ERP's lines. Out: its tables of the match. A task has one bucket in
memory, here or on a cluster; a small match is one bucket. What has to be known of the match as a whole is narrow: the
hashes of keys, the pairs that they make, and the codes that have no match.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa

from orderbridge.pipelines.reconcile import parts
from orderbridge.pipelines.reconcile.parts import Parts, RowFile, folder_of
from orderbridge.pipelines.warehouse.sql import has_tables
from orderbridge.sources.words import number
from orderbridge.transforms.erp.candidates import (
    Candidates,
    CommonKeys,
    buckets,
    common_keys,
    find_candidates,
)
from orderbridge.transforms.erp.codes import OtherForms, other_forms, unlike_codes
from orderbridge.transforms.erp.compare import AS_GIVEN, Notation
from orderbridge.transforms.erp.findings import LINE_ENTITY, missing_customer_findings
from orderbridge.transforms.erp.match import (
    REVIEWS,
    PartialMatch,
    distinct_lines,
    match_part,
    reviewed_rows,
)
from orderbridge.transforms.erp.match_keys import MATCH_KEYS, Hashes, code, hash_keys, key_values
from orderbridge.transforms.erp.suggestions import suggested_pairs
from orderbridge.transforms.erp.tables import (
    DIFFERENCES,
    ERP_CUSTOMERS,
    ERP_DIFFERENCES,
    ERP_FIELDS,
    ERP_PAIRS,
    PLATFORM_CUSTOMERS,
    PLATFORM_DOCUMENTS,
)
from orderbridge.transforms.findings import FINDINGS, combine_findings, rule_findings, table_finding
from orderbridge.transforms.frames import frame, from_arrow

ROWS_PER_BUCKET: Final = 400_000
"""Lines, customers and documents together. A worker takes about a kilobyte for each."""
LEFT_ROWS_MAX: Final = 400_000
"""Where more lines and customers are left over, nothing is suggested: they might not fit into memory."""
_OWN_KEYS: Final = ", ".join(key for key in MATCH_KEYS if key in PLATFORM_CUSTOMERS)
_NUMBERED: Final = f"""
    CREATE OR REPLACE TEMP TABLE match_keys AS
    SELECT customer_id, {_OWN_KEYS} FROM reconciled.customers WHERE NOT is_missing ORDER BY customer_id"""
_KEYS: Final = f"""
    SELECT rowid AS row, {_OWN_KEYS}, NULL::VARCHAR AS document_number FROM match_keys
    UNION ALL BY NAME
    SELECT k.rowid AS row, d.number AS document_number
    FROM raw.customers__documents d JOIN match_keys k USING (customer_id)"""
_SIDES: Final = {
    "customers": (PLATFORM_CUSTOMERS, "reconciled.customers"),
    "documents": (PLATFORM_DOCUMENTS, "raw.customers__documents"),
}
_LEFT: Final = {
    side: f"SELECT {', '.join(columns)} FROM {source} SEMI JOIN left_customers USING (customer_id) "
    "ORDER BY customer_id"
    for side, (columns, source) in _SIDES.items()
}
_SIZES: Final = """
    SELECT coalesce(min(rowid), 0), count(*), (SELECT count(*) FROM raw.customers__documents) FROM match_keys"""
_MISSING_CODES: Final = "SELECT erp_code FROM reconciled.customers WHERE is_missing"
_TABLES: Final = {
    "erp_customers": (ERP_CUSTOMERS, ERP_CUSTOMERS, "line NULLS LAST, customer_id"),
    "erp_pairs": (ERP_PAIRS, ERP_PAIRS, "line, customer_id"),
    "erp_differences": (
        DIFFERENCES,
        ERP_DIFFERENCES,
        f"line, list_position({list(ERP_FIELDS)}, field)",
    ),
}
"""The columns that a part has, those of the table, and its order."""
_LAST_MATCHES: Final = """
    SELECT line_key, customer_id, true AS is_accepted FROM reconciled.erp_pairs
    WHERE status = 'matched' AND matched_by <> 'reviewed'"""
_PARTED: Final = """
    SELECT count(*) FROM reconciled.erp_pairs SEMI JOIN last_matches USING (line_key, customer_id)
    WHERE status <> 'matched'"""
_Bucket = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, Candidates]


def hash_texts(texts: pa.Array) -> Hashes:
    """The hash of each text, by DuckDB: a million take 0.02 s."""
    # A cursor: a database of its own would take as long as a million hashes.
    with duckdb.cursor() as connection:
        connection.register("texts", pa.table({"text": texts}))
        hashed = connection.sql("SELECT hash(text) AS hash FROM texts").to_arrow_table()
        hashes: Hashes = hashed["hash"].to_numpy()
    return hashes


class MatchedLines(NamedTuple):
    """What a match made besides its tables.

    Attributes:
        findings: about lines and customers.
        repeated: the number of lines that are equal to an earlier one.
        forms: see `transforms.erp.codes.other_forms`.
    """

    findings: pd.DataFrame
    repeated: int
    forms: dict[str, OtherForms]


def match_lines(
    tables: Parts,
    erp: pd.DataFrame,
    notation: Notation = AS_GIVEN,
    reviews: pd.DataFrame | None = None,
) -> MatchedLines:
    """Makes `reconciled.erp_customers`, `.erp_pairs` and `.erp_differences` from the lines of the ERP's file.

    Args:
        tables: of a build with the reconciled customers and raw documents.
        erp: see `transforms.erp.match.distinct_lines`.
        notation: how values are written.
        reviews: the columns of `transforms.erp.match.REVIEWS`.

    """
    build = tables.build
    lines, repeated = distinct_lines(erp)
    build.execute(_NUMBERED)
    ((first, customers, papers),) = build.execute(_SIZES).fetchall()
    keys = [key for key in MATCH_KEYS if key in lines]
    ours = _hashes(
        notation,
        keys,
        (lines[at : at + parts.PART_ROWS] for at in range(0, len(lines), parts.PART_ROWS)),
    )
    batches = map(from_arrow, build.sql(_KEYS).to_arrow_reader(parts.PART_ROWS))
    theirs = _hashes(
        notation,
        keys,
        (rows.assign(row=rows["row"] - first).set_index("row") for rows in batches),
        with_stand_ins=True,
    )
    common = common_keys(ours, theirs, (len(lines), customers))
    del ours, theirs
    last = _last_matches(build)
    reviewed, matched_before = None, None
    if len(last) or (reviews is not None and len(reviews)):
        ids = build.sql("SELECT customer_id FROM match_keys").to_arrow_table()["customer_id"]
        reviewed = reviewed_rows(lines, ids, reviews) if reviews is not None else None
        matched_before = reviewed_rows(lines, ids, last)[:2]
    candidates = find_candidates(common, reviewed, matched_before)
    forms = _code_forms(build, lines, common) if "erp_code" in lines else {}
    del common
    count = (len(lines) + customers + papers) // ROWS_PER_BUCKET + 1
    files = {name: RowFile(folder_of(build), columns) for name, (columns, *_) in _TABLES.items()}
    findings = [rule_findings(LINE_ENTITY, "line_repeated", repeated)]
    codes = []
    left = _LeftRows([], [])
    for part in tables.map_tasks(
        partial(_match_bucket, notation=notation), _buckets(tables, lines, candidates, count)
    ):
        for file, rows in zip(
            files.values(), (part.customers, part.pairs, part.differences), strict=True
        ):
            file.add(rows)
        findings.append(part.findings)
        codes.append(part.unmatched)
        left.add(part)
    files["erp_pairs"].add(_suggested(tables, lines, left, notation, reviews))
    for name, (_, columns, order) in _TABLES.items():
        build.execute(
            f"CREATE OR REPLACE TABLE reconciled.{name} AS "
            f"SELECT {', '.join(columns)} FROM {files[name].written()} ORDER BY {order}"
        )
    findings.append(_parted(tables, last))
    missing_codes = from_arrow(build.sql(_MISSING_CODES).to_arrow_table())["erp_code"]
    findings.append(missing_customer_findings(pd.concat(codes), missing_codes))
    return MatchedLines(combine_findings(findings), len(repeated), forms)


class _LeftRows(NamedTuple):
    """The numbers of lines and the ids of customers that have no key in common with anybody, in parts."""

    lines: list[pd.Series[int]]
    customers: list[pd.Series[str]]

    def add(self, part: PartialMatch) -> None:
        """Adds those of a part."""
        status = part.customers["status"]
        self.lines.append(part.customers["line"][status == "only_in_erp"])
        self.customers.append(part.customers["customer_id"][status == "only_in_platform"])


def _suggested(
    tables: Parts,
    lines: pd.DataFrame,
    left: _LeftRows,
    notation: Notation,
    reviews: pd.DataFrame | None,
) -> pd.DataFrame:
    """See `suggested_pairs`; none where a side has nothing left over, or both have too much."""
    of_lines, ids = (pd.concat(rows) for rows in left)
    if not len(of_lines) or not len(ids) or len(of_lines) + len(ids) > LEFT_ROWS_MAX:
        return frame(ERP_PAIRS)
    with tables.given("left_customers", pd.DataFrame({"customer_id": ids})):
        customers, documents = (
            from_arrow(tables.build.sql(sql).to_arrow_table()) for sql in _LEFT.values()
        )
    own = lines[lines["_line"].isin(of_lines)].reset_index(drop=True)
    return suggested_pairs(own, customers, documents, notation, reviews)


def _code_forms(
    build: duckdb.DuckDBPyConnection, lines: pd.DataFrame, common: CommonKeys
) -> dict[str, OtherForms]:
    """The codes of both sides that are equal in another form."""
    known = from_arrow(build.sql("SELECT erp_code FROM match_keys").to_arrow_table())
    unlike = unlike_codes(code(lines["erp_code"]), code(known["erp_code"]))
    if unlike.empty:
        return {}
    return other_forms(unlike, common.pairs(without="erp_code"), len(known))


def _last_matches(build: duckdb.DuckDBPyConnection) -> pd.DataFrame:
    """The pairs of the last match that no person has decided, in the columns of `REVIEWS`."""
    if not has_tables(build, "reconciled", "erp_pairs"):
        return frame(REVIEWS)
    return from_arrow(build.sql(_LAST_MATCHES).to_arrow_table())


def _parted(tables: Parts, last: pd.DataFrame) -> pd.DataFrame:
    """A finding with the number of pairs of the last match that are questions now."""
    with tables.given("last_matches", last):
        ((count,),) = tables.build.execute(_PARTED).fetchall()
    if not count:
        return frame(FINDINGS)
    detail = f"{number(count, 'pair')} of the last match"
    return table_finding(LINE_ENTITY, "pairs_parted", detail)


def _hashes(
    notation: Notation,
    keys: Sequence[str],
    frames: Iterable[pd.DataFrame],
    *,
    with_stand_ins: bool = False,
) -> dict[str, pd.Series[int]]:
    """See `hash_keys`; the frames are indexed by row number."""
    made: dict[str, list[pd.Series[int]]] = {key: [] for key in keys}
    for rows in frames:
        values = key_values(rows, dict(zip(keys, keys, strict=True)))
        if "erp_code" in values:
            values["erp_code"] = notation.codes.without_ignored(values["erp_code"])
        for key, hashes in hash_keys(values, hash_texts, with_stand_ins=with_stand_ins).items():
            made[key].append(hashes)
    return {key: pd.concat([pd.Series(dtype=np.uint64), *hashes]) for key, hashes in made.items()}


def _buckets(
    tables: Parts, lines: pd.DataFrame, candidates: Candidates, count: int
) -> Iterator[_Bucket]:
    """The rows of each bucket, and their candidates."""
    build = tables.build
    of_lines, of_customers = buckets(candidates, count)
    # sorts in less time than bucket and id
    place = np.argsort(np.argsort(of_customers, kind="stable"))
    with tables.given("bucket_of", pd.DataFrame({"bucket": of_customers, "place": place})):
        for side, (columns, source) in _SIDES.items():
            build.execute(
                f"CREATE OR REPLACE TEMP TABLE match_{side} AS SELECT {', '.join(columns)}, bucket FROM {source} "
                "JOIN (FROM match_keys POSITIONAL JOIN bucket_of SELECT customer_id, bucket, place) "
                "USING (customer_id) ORDER BY place"
            )
    for bucket in range(count):
        sides = (
            build.sql(
                f"SELECT * EXCLUDE bucket FROM match_{side} WHERE bucket = {bucket}"
            ).to_arrow_table()
            for side in _SIDES
        )
        customers, documents = (from_arrow(rows.combine_chunks()) for rows in sides)
        numbers = [np.flatnonzero(of_side == bucket) for of_side in (of_lines, of_customers)]
        yield (
            lines.iloc[numbers[0]].reset_index(drop=True),
            customers,
            documents,
            candidates.of(*numbers),
        )
    build.execute("DROP TABLE match_customers; DROP TABLE match_documents; DROP TABLE match_keys")


def _match_bucket(bucket: _Bucket, notation: Notation) -> PartialMatch:
    return match_part(*bucket, notation)
