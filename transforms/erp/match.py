"""The ERP's customers against the platform's: who is who, who is on one side only, and in what they differ.

In: rows of an ERP's file as text, the reconciled customers and the raw documents. Out: a row for each key of the ERP
and each present customer, the fields that differ, and findings. A match is one to one: by the ERP's code, else by the
login code, the e-mail address, the number of any document. A key that hits several rows of either side makes them all
ambiguous, and a row that a key has settled takes no part in the later ones. Customers that went missing take no part.

Lines that are equal in all fields count once, the first of them. Different lines with one code of the ERP contradict
each other: they are ambiguous, whether a customer has that code or not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.documents import sort_documents
from transforms.erp.cascade import Keyed, Mapper, Pairs, Settled, settled, shared_keys_by_bucket
from transforms.erp.compare import NORMALISED, differences, letters_and_digits
from transforms.erp.findings import about_codes, about_lines, about_several
from transforms.findings import combine_findings
from transforms.frames import BIGINT, BOOLEAN, TEXT, TIMESTAMP, Bools, Ints, from_arrow, to_arrow
from transforms.keys import canonical_id, clean_text, fold_case, positions

FIELDS: Final = tuple(NORMALISED)
"""Of the ERP's customer: columns of text, any of which may be absent. Beside them stands `_line` (bigint)."""
CUSTOMERS: Final = {
    "customer_id": TEXT,
    "erp_code": TEXT,
    "login_code": TEXT,
    "email": TEXT,
    "first_name": TEXT,
    "last_name": TEXT,
    "full_name": TEXT,
    "phone": TEXT,
    "price_list_id": TEXT,
    "_missing_since": TIMESTAMP,
}
"""The columns of the reconciled customers that are used."""
DOCUMENTS: Final = {
    "customer_id": TEXT,
    "position": BIGINT,
    "number": TEXT,
    "fiscal_name": TEXT,
    "fiscal_address": TEXT,
    "email": TEXT,
    "is_default": BOOLEAN,
}
"""The columns of the raw documents that are used."""

ERP_CUSTOMERS: Final = {
    "erp_code": TEXT,
    "customer_id": TEXT,
    "status": TEXT,
    "matched_by": TEXT,
    "difference_count": BIGINT,
    "line": BIGINT,
    "name": TEXT,
    "members": TEXT,
    "member_lines": TEXT,
}
"""`erp_code` is the ERP's, and the platform's in a row without a line. `matched_by` of an ambiguous row is the key that
hit several. `members` are the ids of the customers that an ambiguous line may be, `member_lines` the lines that an
ambiguous customer may be. `name` is whose row it is, as the ERP says where there is a line."""
ERP_DIFFERENCES: Final = {
    "entity": TEXT,
    "erp_code": TEXT,
    "platform_id": TEXT,
    "field": TEXT,
    "erp_value": TEXT,
    "platform_value": TEXT,
}
KEYS: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "erp_code": canonical_id,
    "login_code": canonical_id,
    "email": fold_case,
    "document_number": letters_and_digits,
}
"""What rows are matched by, in this order, and the form in which it is compared."""

_NONE: Final = np.empty(0, np.int64)


@dataclass(frozen=True, slots=True)
class MatchResult:
    """What a match comes to.

    Attributes:
        customers: the columns of `ERP_CUSTOMERS`: the lines of the ERP in their order, then the customers that no line
            is, by id.
        differences: the columns of `ERP_DIFFERENCES`, of matched rows, in their order.
        findings: about lines and customers.
        repeated: lines that are equal to an earlier one, and so are in no row.
    """

    customers: pd.DataFrame
    differences: pd.DataFrame
    findings: pd.DataFrame
    repeated: int


def match(
    erp: pd.DataFrame, customers: pd.DataFrame, documents: pd.DataFrame, buckets: int = 1, over: Mapper = map
) -> MatchResult:
    """Matches the ERP's customers with the platform's, one to one, and compares those that match.

    Args:
        erp: `_line` and any of `FIELDS`; blank is like null.
        customers: the columns of `CUSTOMERS`.
        documents: the columns of `DOCUMENTS`.
        buckets: into how many hash buckets each key is split.
        over: what maps over them: `map`, or that of a pool's or of an engine's.
    """
    lines, repeated = _without_repeated(_lines(erp))
    known = _table(customers, CUSTOMERS)
    gone = known.filter(pc.is_valid(known["_missing_since"]))
    known = _by_id(known.filter(pc.is_null(known["_missing_since"])))
    owned = _owned(_table(documents, DOCUMENTS), _column(known, "customer_id"))
    keys = {name: normalised(_column(lines, name)) for name, normalised in KEYS.items() if name in lines.column_names}
    by_key = _cascade(keys, lines, known, owned, buckets, over)
    pairs = _pairs(by_key)
    different, counts = differences(lines, known, owned, pairs)
    of_line = pa.array(pairs.left[different["pair"].to_numpy()])
    of_customer = pa.array(pairs.right[different["pair"].to_numpy()])
    told = {
        **{name: different[name] for name in ("field", "erp_value", "platform_value")},
        "entity": pa.repeat("customers", len(different)),
        "erp_code": _column(lines, "erp_code").take(of_line),
        "platform_id": _column(known, "customer_id").take(of_customer),
    }
    findings = [
        *about_lines(lines, repeated, keys),
        *about_several(lines, known, by_key),
        *about_codes(lines, keys.get("erp_code"), known, gone, pairs, by_key),
    ]
    return MatchResult(
        from_arrow(_rows(lines, known, by_key, pairs, counts)),
        from_arrow(pa.table({name: told[name].cast(kind) for name, kind in ERP_DIFFERENCES.items()})),
        combine_findings(findings),
        len(repeated),
    )


def _lines(erp: pd.DataFrame) -> pa.Table:
    """The lines in their order, with the columns that are known."""
    names = [name for name in FIELDS if name in erp]
    return _table(erp, {"_line": BIGINT, **dict.fromkeys(names, TEXT)}).sort_by("_line").combine_chunks()


def _by_id(customers: pa.Table) -> pa.Table:
    """The customers sorted by id, as most of them come."""
    ids = customers["customer_id"]
    if len(ids) < 2 or pc.all(pc.greater(ids.slice(1), ids.slice(0, len(ids) - 1)), skip_nulls=False).as_py():
        return customers.combine_chunks()
    return customers.sort_by("customer_id").combine_chunks()


def _owned(documents: pa.Table, ids: pa.Array) -> pa.Table:
    """The documents of these customers, in the order of their owners."""
    owners = positions(_column(documents, "customer_id"), ids).cast(BIGINT)
    owned = documents.drop_columns("customer_id").append_column("owner", owners).filter(pc.is_valid(owners))
    ordered = sort_documents(from_arrow(owned))
    return pa.Table.from_pandas(ordered, preserve_index=False).combine_chunks()


def _without_repeated(lines: pa.Table) -> tuple[pa.Table, pa.Table]:
    """The lines, and those that are equal to an earlier one."""
    fields = lines.column_names[1:]
    rows = np.arange(len(lines))
    for field in fields:  # equal lines share each field, so few are left after the first ones
        codes = pc.dictionary_encode(clean_text(_column(lines, field).take(pa.array(rows))), null_encoding="encode")
        of = codes.indices.to_numpy()
        rows = rows[np.bincount(of)[of] > 1] if len(of) else rows
    if not len(rows) or not fields:
        return lines, lines.slice(0, 0)
    few = pa.table({field: clean_text(_column(lines, field).take(pa.array(rows))) for field in fields})
    is_repeated = np.zeros(len(lines), np.bool_)
    is_repeated[rows[from_arrow(few).duplicated().to_numpy()]] = True
    return lines.filter(pa.array(~is_repeated)).combine_chunks(), lines.filter(pa.array(is_repeated)).combine_chunks()


def _cascade(
    keys: Mapping[str, pa.Array], lines: pa.Table, known: pa.Table, owned: pa.Table, buckets: int, over: Mapper
) -> dict[str, Settled]:
    """What each key has settled, of those that the ERP's file has: `keys`, a normalised column each."""
    is_open, is_open_there = np.ones(len(lines), np.bool_), np.ones(len(known), np.bool_)
    line_names, ids = _column(lines, "_line").cast(TEXT), _column(known, "customer_id")
    made: dict[str, Settled] = {}
    for name, key in keys.items():
        normalised = KEYS[name]
        left = _keyed(np.flatnonzero(is_open), key.filter(pa.array(is_open)))
        if name == "document_number":
            owners = owned["owner"].to_numpy().astype(np.int64)
            where = is_open_there[owners]
            numbers = normalised(_column(owned, "number").filter(pa.array(where)))
            right = _distinct(_keyed(owners[where], numbers))
        else:
            codes = normalised(_column(known, name).filter(pa.array(is_open_there)))
            right = _keyed(np.flatnonzero(is_open_there), codes)
        edges = shared_keys_by_bucket(left, right, name == "erp_code", buckets, over)
        done = settled(edges, line_names, ids)
        is_open[done.left] = is_open[done.left_several] = False
        is_open_there[done.right] = is_open_there[done.right_several] = False
        made[name] = done
    return made


def _keyed(rows: Ints, keys: pa.Array) -> Keyed:
    has_key = pc.is_valid(keys)
    return Keyed(rows[has_key.to_numpy(zero_copy_only=False)], keys.filter(has_key))


def _distinct(keyed: Keyed) -> Keyed:
    """Each pair of row and key once: two documents of one customer may have one number."""
    codes = pc.dictionary_encode(keyed.keys).indices.to_numpy().astype(np.int64)
    size = int(codes.max()) + 1 if len(codes) else 0
    _, at = np.unique(keyed.rows * size + codes, return_index=True)
    return keyed.only(at)


def _pairs(by_key: Mapping[str, Settled]) -> Pairs:
    """What matched by any key, in the order of the lines."""
    left = np.concatenate([_NONE, *(key.left for key in by_key.values())])
    right = np.concatenate([_NONE, *(key.right for key in by_key.values())])
    order = np.argsort(left)
    return Pairs(left[order], right[order])


def _rows(lines: pa.Table, known: pa.Table, by_key: Mapping[str, Settled], pairs: Pairs, counts: Ints) -> pa.Table:
    """The rows of `ERP_CUSTOMERS`."""
    customer_of, matched_to = np.full(len(lines), -1, np.int64), np.full(len(known), False)
    customer_of[pairs.left], matched_to[pairs.right] = pairs.right, True
    differing = np.full(len(lines), -1, np.int64)
    differing[pairs.left] = counts
    several = [(key.left_several, key.left_members) for key in by_key.values()]
    keyed = [np.concatenate([key.left, key.left_several]) for key in by_key.values()]
    members, is_several = _scattered(several, len(lines))
    is_matched = customer_of >= 0
    ids, line = _column(known, "customer_id"), _column(lines, "_line")
    of_lines = {
        "erp_code": _column(lines, "erp_code"),
        "customer_id": ids.take(pa.array(customer_of, mask=~is_matched)),
        "status": _status(is_matched, is_several, "only_in_erp"),
        "matched_by": _names(keyed, list(by_key), len(lines)),
        "difference_count": pa.array(differing, mask=~is_matched),
        "line": line,
        "name": _called(lines),
        "members": members,
        "member_lines": pa.nulls(len(lines), TEXT),
    }
    there = [(key.right_several, key.right_members) for key in by_key.values()]
    member_lines, is_several_there = _scattered(there, len(known))
    left_over = pa.array(~matched_to)
    of_customers = {
        "erp_code": known["erp_code"],
        "customer_id": ids,
        "status": _status(matched_to, is_several_there, "only_in_platform"),
        "matched_by": _names([key.right_several for key in by_key.values()], list(by_key), len(known)),
        "difference_count": pa.nulls(len(known), BIGINT),
        "line": pa.nulls(len(known), BIGINT),
        "name": known["full_name"],
        "members": pa.nulls(len(known), TEXT),
        "member_lines": member_lines,
    }
    schema = pa.schema(list(ERP_CUSTOMERS.items()))
    return pa.concat_tables([pa.table(of_lines).cast(schema), pa.table(of_customers).filter(left_over).cast(schema)])


def _called(lines: pa.Table) -> pa.Array:
    """Whose line it is: the fiscal name, else first and last name."""
    parts = (pc.fill_null(pc.utf8_trim_whitespace(_column(lines, name)), "") for name in ("first_name", "last_name"))
    return pc.coalesce(clean_text(_column(lines, "fiscal_name")), clean_text(pc.binary_join_element_wise(*parts, " ")))


def _status(is_matched: Bools, is_several: Bools, alone: str) -> pa.Array:
    return pc.if_else(pa.array(is_matched), "matched", pc.if_else(pa.array(is_several), "ambiguous", alone))


def _scattered(parts: Sequence[tuple[Ints, pa.Array]], size: int) -> tuple[pa.Array, Bools]:
    """Texts at their rows, and which rows those are."""
    at = np.full(size, -1, np.int64)
    at[np.concatenate([_NONE, *(rows for rows, _ in parts)])] = np.arange(sum(len(rows) for rows, _ in parts))
    texts = pa.concat_arrays([pa.nulls(0, TEXT), *(text for _, text in parts)])
    return texts.take(pa.array(at, mask=at < 0)), at >= 0


def _names(rows: Sequence[Ints], names: Sequence[str], size: int) -> pa.Array:
    """For each row the name of the key that settled it; null for none."""
    of = np.full(size, -1, np.int64)
    for number, settled_by in enumerate(rows):
        of[settled_by] = number
    return pa.array(list(names), TEXT).take(pa.array(of, mask=of < 0))


def _table(frame: pd.DataFrame, schema: Mapping[str, pa.DataType]) -> pa.Table:
    return to_arrow(frame, schema).combine_chunks()


def _column(table: pa.Table, name: str) -> pa.Array:
    """A column in one chunk; nulls where the table has none of the name."""
    if name not in table.column_names:
        return pa.nulls(len(table), TEXT)
    made = table[name].combine_chunks()
    return made if isinstance(made, pa.Array) else pa.concat_arrays(made.chunks)
