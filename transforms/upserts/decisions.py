"""The inputs of a file against each other and against the platform: a decision for each, and the fields that differ.

In: inputs as frames, one row each and null where a field is not given, and the platform's customers as they were read.
Out: which inputs of a file are equal or contradict each other, and which customers are new. An input that fits several
customers is ambiguous. Variants, which cannot be read, are in `transforms.upserts.confirmed`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    TEXT,
    Bools,
    Column,
    Ints,
    array,
    column,
    constant,
    first_true,
    is_repeated,
    joined_text,
    take_or_null,
    typed,
)
from orderbridge.transforms.values.keys import canonical_id, clean_text
from orderbridge.transforms.values.phones import same_phone
from orderbridge.transforms.values.texts import email_key, lookalike_key

_TEXT: Final = pd.ArrowDtype(TEXT)
CUSTOMER_KEYS: Final = {"erpCode": "erp_code", "email": "email", "loginCode": "login_code"}
"""The keys of a customer: the input's field and the raw column."""
CUSTOMER_FIELDS: Final = {
    **CUSTOMER_KEYS,
    "firstName": "first_name",
    "lastName": "last_name",
    "phone": "phone",
    "priceListId": "price_list_id",
}
"""The fields of a customer that can be read back, without its documents."""
DOCUMENT_FIELDS: Final = {
    "number": "number",
    "fiscalName": "fiscal_name",
    "fiscalAddress": "fiscal_address",
    "email": "email",
    "isDefault": "is_default",
    "forTaxes": "for_taxes",
}
INPUTS: Final = {"input": BIGINT, **dict.fromkeys(CUSTOMER_FIELDS, TEXT)}
INPUT_DOCUMENTS: Final = {
    "input": BIGINT,
    "position": BIGINT,
    **{name: BOOLEAN if name in ("isDefault", "forTaxes") else TEXT for name in DOCUMENT_FIELDS},
}
KNOWN: Final = {"id": TEXT, **dict.fromkeys(CUSTOMER_FIELDS.values(), TEXT)}
KNOWN_DOCUMENTS: Final = {
    "customer_id": TEXT,
    "position": BIGINT,
    **{
        DOCUMENT_FIELDS[name]: kind
        for name, kind in INPUT_DOCUMENTS.items()
        if name in DOCUMENT_FIELDS
    },
}
DECISIONS: Final = {"input": BIGINT, "decision": TEXT, "customer_id": TEXT}
FIELD_DIFFERENCES: Final = {
    "input": BIGINT,
    **dict.fromkeys(("customer_id", "field", "file_value", "platform_value"), TEXT),
}


def comparable(field: str, texts: Column[Any]) -> Column[Any]:
    """Texts of a customer's field in the form in which they are compared; null where blank."""
    if field == "email":
        return email_key(texts)
    return canonical_id(texts) if field == "priceListId" else clean_text(texts)


def search_key(field: str, texts: Column[Any]) -> Column[Any]:
    """Values of a key in the form in which inputs and customers are found: e-mail addresses that look alike are one."""
    return lookalike_key(texts) if field == "email" else comparable(field, texts)


def sharing(keys: pd.DataFrame) -> Bools:
    """Which rows have a key that another row has too; null is not shared."""
    is_shared = np.zeros(len(keys), np.bool_)
    for name in keys:
        is_shared |= is_repeated(keys[name]).to_numpy(np.bool_)
    return is_shared


def duplicates(keys: pd.DataFrame, bodies: pd.Series[str]) -> pd.DataFrame:
    """Rows that share a key: equal ones merge into the first, conflicting ones are all rejected.

    Args:
        keys: a column for each kind of key, normalized; null where a row has none.
        bodies: the contents of the rows, equal for equal rows.

    Returns:
        `decision` (`first`, `merged`, `conflicting`); `first`: position of the first row with the same contents; of
        conflicting rows `key`: the column of the shared key, and `other`: the position of the first row that has it
        with other contents.
    """
    size = len(keys)
    content = _numbers(bodies)
    is_conflicting = np.zeros(size, np.bool_)
    first = np.arange(size, dtype=np.int64)
    other = np.full(size, -1, np.int64)
    key = np.full(size, -1, np.int64)
    for place, name in enumerate(keys):
        numbers = _numbers(keys[name])
        rows = np.flatnonzero(numbers >= 0)
        heads = _first_of(rows, numbers[rows])
        first[rows] = np.minimum(first[rows], heads)
        differs = content[rows] != content[heads]
        # the first that differs from the head
        opponent = _first_of(np.where(differs, rows, size), numbers[rows])
        is_new = (opponent < size) & ~is_conflicting[rows]
        key[rows[is_new]] = place
        other[rows[is_new]] = np.where(differs, heads, opponent)[is_new]
        is_conflicting[rows[is_new]] = True
    is_merged = column(pa.array(first < np.arange(size)))
    return pd.DataFrame(
        {
            "decision": first_true(
                [(column(pa.array(is_conflicting)), "conflicting"), (is_merged, "merged")], "first"
            ),
            "first": column(pa.array(first)),
            "key": column(pa.array(map(str, keys), TEXT).take(pa.array(key, mask=key < 0))),
            "other": column(pa.array(other, mask=~is_conflicting)),
        }
    )


def _first_of(rows: Ints, groups: Ints) -> Ints:
    """The least of the rows in the group of each."""
    return pd.Series(rows).groupby(groups).transform("min").to_numpy(np.int64)


def _numbers(texts: Column[Any]) -> Ints:
    """A number for each text, equal for equal texts; -1 for null."""
    return pd.factorize(texts)[0].astype(np.int64)


def decide_customers(
    inputs: pd.DataFrame,
    documents: pd.DataFrame,
    known: pd.DataFrame,
    known_documents: pd.DataFrame,
    country: str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Decides which customers are to be created, and which exist with the same or other values.

    An input is searched by erpCode, email (ASCII letters in any case) and loginCode. Without a result it is `create`,
    or `no_key` if it has no key to be found by later. One result is `exists_same` where all given fields are equal,
    else `exists_differs`. Several are `ambiguous`, and so is one whose e-mail address only looks like the given one.

    Args:
        inputs: the columns of `INPUTS`; no two share a key.
        documents: the columns of `INPUT_DOCUMENTS`.
        known: the columns of `KNOWN`, of the raw customers that are not missing.
        known_documents: the columns of `KNOWN_DOCUMENTS`.
        country: of phone numbers without a country code (`transforms.values.phones.same_phone`).

    Returns:
        The columns of `DECISIONS`, a row for each input in its order. The columns of `FIELD_DIFFERENCES`: for
        `exists_differs` the fields that differ, for `ambiguous` the keys by which each customer was found.
    """
    inputs, known = typed(inputs, INPUTS), typed(known, KNOWN)
    pairs, has_key = _pairs(inputs, known)
    results = pairs.groupby("row").agg(
        known=("known", "first"), count=("known", "size"), certain=("is_certain", "all")
    )
    results = results.reindex(inputs.index)
    is_one = ((results["count"] == 1) & results["certain"].eq(True)).to_numpy(np.bool_)
    is_several = (results["count"].notna() & ~is_one).to_numpy(np.bool_)
    several = pairs[is_several[pairs["row"]]]  # the keys by which each was found are shown
    ours = inputs[is_one].reset_index(drop=True)
    theirs = known.iloc[results["known"][is_one].astype(np.int64)].reset_index(drop=True)
    differences = pd.concat(
        [
            _rows_where(
                _is_same_key,
                inputs.iloc[several["row"]].reset_index(drop=True),
                known.iloc[several["known"]].reset_index(drop=True),
                CUSTOMER_KEYS,
            ),
            _rows_where(partial(_differs, country=country), ours, theirs, CUSTOMER_FIELDS),
            _differing_documents(ours, theirs, typed(documents, INPUT_DOCUMENTS), known_documents),
        ]
    ).sort_values("input", kind="stable", ignore_index=True)
    differs = inputs["input"].isin(differences["input"])
    matched = take_or_null(
        known[["id"]], np.where(is_one, results["known"].fillna(-1), -1).astype(np.int64)
    )
    one, many, searched = (column(pa.array(flags)) for flags in (is_one, is_several, has_key))
    decision = first_true(
        [
            (many, "ambiguous"),
            (one & differs, "exists_differs"),
            (one, "exists_same"),
            (searched, "create"),
        ],
        "no_key",
    )
    decisions = inputs[["input"]].assign(decision=decision, customer_id=matched["id"])
    return typed(decisions, DECISIONS), typed(differences, FIELD_DIFFERENCES)


def _pairs(inputs: pd.DataFrame, known: pd.DataFrame) -> tuple[pd.DataFrame, Bools]:
    """Pairs of inputs and customers that share a key, and which inputs have a key.

    Returns:
        `row`, `known` (positions), `is_certain` (the values of a key are equal and do not only look alike); each pair
        once, by position. A boolean for each input.
    """
    has_key = np.zeros(len(inputs), np.bool_)
    matches = []
    for name, platform_name in CUSTOMER_KEYS.items():
        ours, theirs = (
            _with_keys(name, inputs[name], "row"),
            _with_keys(name, known[platform_name], "known"),
        )
        has_key[ours["row"]] = True
        # several are ambiguous
        both = ours.merge(theirs, on="key", suffixes=("", "_known"))
        matches.append(
            both.assign(is_certain=both["exact"] == both["exact_known"])[
                ["row", "known", "is_certain"]
            ]
        )
    pairs = pd.concat(matches).astype({"row": np.int64, "known": np.int64, "is_certain": np.bool_})
    return pairs.groupby(["row", "known"], as_index=False).agg(
        is_certain=("is_certain", "any")
    ), has_key


def _with_keys(name: str, texts: Column[Any], position: str) -> pd.DataFrame:
    """`key` and `exact` (forms of a key for search and comparison) and the position of each row that has it."""
    exact = comparable(name, texts)
    key = search_key(name, texts) if name == "email" else exact
    return pd.DataFrame({"key": key, "exact": exact, position: np.arange(len(texts))}).dropna()


def _rows_where(
    holds: Callable[..., Column[Any]],
    ours: pd.DataFrame,
    theirs: pd.DataFrame,
    fields: Mapping[str, str],
) -> pd.DataFrame:
    """Rows of `FIELD_DIFFERENCES`, field by field, where a condition holds for both values.

    `ours` has `input`, `theirs` `id`; both have the same index.
    """
    differences = []
    for name, platform_name in fields.items():
        values = ours[name], theirs[platform_name]
        mine, other = (column(array(given).cast(TEXT), given.index) for given in values)
        rows = {
            "input": ours["input"],
            "customer_id": theirs["id"],
            "file_value": mine,
            "platform_value": other,
        }
        found = pd.DataFrame(rows)[holds(name, *values)]
        differences.append(found.assign(field=constant(name, found.index)))
    return pd.concat(differences)


def _is_same_key(field: str, given: Column[Any], known: Column[Any]) -> Column[Any]:
    return (search_key(field, given) == search_key(field, known)).fillna(False)


def _differs(
    field: str, given: Column[Any], known: Column[Any], country: str | None = None
) -> Column[Any]:
    """Where a value is given, and the platform's is not equal."""
    is_text = given.dtype == _TEXT
    mine, other = (comparable(field, texts) if is_text else texts for texts in (given, known))
    differs = mine.notna() & ~(mine == other).fillna(False)
    if field == "phone" and differs.any():
        differs[differs] = ~same_phone(given[differs], known[differs], country)
    return differs


def _differing_documents(
    ours: pd.DataFrame, theirs: pd.DataFrame, documents: pd.DataFrame, known_documents: pd.DataFrame
) -> pd.DataFrame:
    """Compares each given document with the customer's document of its number, else with the one at its position.

    Positions are counted from 0 in a body and from 1 in the warehouse.
    """
    owners = pd.DataFrame({"input": ours["input"], "owner": theirs["id"]})
    given = documents.merge(owners, on="input", how="inner", validate="m:1")
    known = typed(known_documents, KNOWN_DOCUMENTS)
    number = (given["owner"], clean_text(given["number"]))
    position = (given["owner"], (given["position"] + 1).astype(_TEXT))
    by_number = _first_positions(number, (known["customer_id"], clean_text(known["number"])))
    by_position = _first_positions(
        position, (known["customer_id"], known["position"].astype(_TEXT))
    )
    partners = take_or_null(known, np.where(by_number >= 0, by_number, by_position)).assign(
        id=given["owner"]
    )
    rows = _rows_where(_differs, given, partners, DOCUMENT_FIELDS)
    return rows.assign(
        field=joined_text(["documents[", given["position"].loc[rows.index], "].", rows["field"]])
    )


def _first_positions(
    ours: tuple[Column[Any], Column[Any]], theirs: tuple[Column[Any], Column[Any]]
) -> Ints:
    """Where each pair of texts is first among others; -1 where it is not, or one of them is null."""
    mine, others = (joined_text(texts, "\0") for texts in (ours, theirs))
    at: Ints = pc.fill_null(
        pc.index_in(array(mine), value_set=array(others), skip_nulls=True), -1
    ).to_numpy()
    return at.astype(np.int64)
