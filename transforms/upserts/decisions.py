"""The inputs of a file against each other and against the platform: a decision for each, and the fields that differ.

In: inputs as frames, one row each and null where a field is not given, and the platform's customers as they were read.
Out: which inputs of a file are equal or contradict each other, and which customers are new. An input that fits several
customers is ambiguous. Variants, which cannot be read, are in `transforms.upserts.confirmed`.
"""

from __future__ import annotations

from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import BIGINT, BOOLEAN, TEXT, Bools, Ints, array, column, from_arrow, typed
from transforms.keys import canonical_id, clean_text, positions
from transforms.texts import email_key, lookalike_key

KEYS: Final = {"erpCode": "erp_code", "email": "email", "loginCode": "login_code"}
"""The keys of a customer: the input's field and the raw column."""
FIELDS: Final = {
    **KEYS,
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
INPUTS: Final = {"input": BIGINT, **dict.fromkeys(FIELDS, TEXT)}
INPUT_DOCUMENTS: Final = {
    "input": BIGINT,
    "position": BIGINT,
    **{name: BOOLEAN if name in ("isDefault", "forTaxes") else TEXT for name in DOCUMENT_FIELDS},
}
KNOWN: Final = {"id": TEXT, **dict.fromkeys(FIELDS.values(), TEXT)}
KNOWN_DOCUMENTS: Final = {
    "customer_id": TEXT,
    "position": BIGINT,
    **{DOCUMENT_FIELDS[name]: kind for name, kind in INPUT_DOCUMENTS.items() if name in DOCUMENT_FIELDS},
}
DECISIONS: Final = {"input": BIGINT, "decision": TEXT, "customer_id": TEXT}
DIFFERENCES: Final = {
    "input": BIGINT,
    "customer_id": TEXT,
    "field": TEXT,
    "file_value": TEXT,
    "platform_value": TEXT,
}


def comparable(field: str, texts: pa.Array) -> pa.Array:
    """Texts of a customer's field in the form in which they are compared; null where blank."""
    if field == "email":
        return array(email_key(column(texts)))
    return canonical_id(texts) if field == "priceListId" else clean_text(texts)


def search_key(field: str, texts: pa.Array) -> pa.Array:
    """Values of a key in the form in which inputs and customers are found: e-mail addresses that look alike are one."""
    return array(lookalike_key(column(texts))) if field == "email" else comparable(field, texts)


def sharing(keys: pd.DataFrame) -> Bools:
    """Which rows have a key that another row has too; null is shared by nobody."""
    found = np.zeros(len(keys), np.bool_)
    for name in keys.columns:
        codes = _codes(array(keys[name]))
        found |= (codes >= 0) & (np.bincount(codes + 1)[codes + 1] > 1)
    return found


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
    said = _codes(array(bodies))
    is_conflicting = np.zeros(size, np.bool_)
    first = np.arange(size, dtype=np.int64)
    other = np.full(size, -1, np.int64)
    key = np.full(size, -1, np.int64)
    for at, name in enumerate(keys.columns):
        codes = _codes(array(keys[name]))
        rows = np.flatnonzero(codes >= 0)
        order = rows[np.argsort(codes[rows], kind="stable")]
        if not len(order):
            continue
        starts = np.flatnonzero(np.diff(codes[order], prepend=-1))
        lengths = np.diff(np.append(starts, len(order)))
        heads = np.repeat(order[starts], lengths)
        first[order] = np.minimum(first[order], heads)
        differs = said[order] != said[heads]
        against = np.minimum.reduceat(np.where(differs, order, size), starts)  # the first that its head contradicts
        told = np.repeat(against < size, lengths) & ~is_conflicting[order]
        key[order[told]] = at
        other[order[told]] = np.where(differs, heads, np.repeat(against, lengths))[told]
        is_conflicting[order[told]] = True
    decision = np.where(is_conflicting, "conflicting", np.where(first < np.arange(size), "merged", "first"))
    columns = {
        "decision": pa.array(decision.tolist(), TEXT),
        "first": pa.array(first),
        "key": pa.array(list(keys.columns), TEXT).take(pa.array(key, mask=~is_conflicting)),
        "other": pa.array(other, mask=~is_conflicting),
    }
    return from_arrow(pa.table(columns))


def customers(
    inputs: pd.DataFrame, documents: pd.DataFrame, known: pd.DataFrame, known_documents: pd.DataFrame
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

    Returns:
        The columns of `DECISIONS`, a row for each input in its order. The columns of `DIFFERENCES`: for
        `exists_differs` the fields that differ, for `ambiguous` the keys by which each customer was found.
    """
    rows, there = typed(inputs, INPUTS), typed(known, KNOWN)
    pairs, has_key = _pairs(rows, there)
    counts = np.bincount(pairs["row"].to_numpy(), minlength=len(rows))
    counts[pairs.loc[~pairs["is_certain"], "row"]] += 1
    found = np.full(len(rows), -1, np.int64)
    found[pairs["row"].to_numpy()] = pairs["known"].to_numpy()
    one = np.flatnonzero(counts == 1)
    differences = [
        _ambiguous(rows, there, pairs[counts[pairs["row"].to_numpy()] > 1]),
        *_differing(rows.iloc[one], there.iloc[found[one]]),
        *_differing_documents(rows.iloc[one], there.iloc[found[one]], documents, known_documents),
    ]
    told = pd.concat(differences, ignore_index=True).sort_values("input", kind="stable", ignore_index=True)
    differs = rows["input"].isin(told["input"]).to_numpy(np.bool_)
    names = np.select(
        [counts > 1, (counts == 1) & differs, counts == 1, has_key],
        ["ambiguous", "exists_differs", "exists_same", "create"],
        "no_key",
    )
    ids = array(there["id"]).take(pa.array(found, mask=counts != 1))
    decision = pa.array(names.tolist(), TEXT)
    decisions = pa.table({"input": array(rows["input"]), "decision": decision, "customer_id": ids})
    return from_arrow(decisions), typed(told, DIFFERENCES)


def _codes(texts: pa.Array) -> Ints:
    """A number for each text, alike for alike ones; -1 for null."""
    codes: Ints = pc.fill_null(texts.dictionary_encode().indices.cast(BIGINT), -1).to_numpy()
    return codes


def _pairs(rows: pd.DataFrame, there: pd.DataFrame) -> tuple[pd.DataFrame, Bools]:
    """Pairs of inputs and customers that share a key, and which inputs have a key.

    Returns:
        `row`, `known` (positions), `is_certain` (the values of a key are equal and do not only look alike); each pair
        once. A boolean for each input.
    """
    has_key = np.zeros(len(rows), np.bool_)
    found = []
    for name, platform_name in KEYS.items():
        ours, theirs = _with_keys(name, rows[name], "row"), _with_keys(name, there[platform_name], "known")
        has_key[ours["row"]] = True
        both = ours.merge(theirs, on="key", suffixes=("", "_known"), validate="m:m")  # several are ambiguous
        found.append(both.assign(is_certain=both["exact"] == both["exact_known"])[["row", "known", "is_certain"]])
    pairs = pd.concat(found).astype({"row": np.int64, "known": np.int64, "is_certain": np.bool_})
    return pairs.groupby(["row", "known"], as_index=False).agg(is_certain=("is_certain", "any")), has_key


def _with_keys(name: str, texts: pd.Series[str], position: str) -> pd.DataFrame:
    """`key` and `exact` (forms of a key for search and comparison) and the position of each row that has it."""
    forms = {"key": column(search_key(name, array(texts))), "exact": column(comparable(name, array(texts)))}
    return pd.DataFrame({**forms, position: np.arange(len(texts))}).dropna()


def _told(said: pd.DataFrame, there: pd.DataFrame, field: str, file_value: pa.Array, value: pa.Array) -> pd.DataFrame:
    """Rows of `DIFFERENCES`, for inputs and customers side by side."""
    return from_arrow(
        pa.table(
            {
                "input": array(said["input"]),
                "customer_id": array(there["id"]),
                "field": pa.array([field] * len(said), TEXT),
                "file_value": file_value.cast(TEXT),
                "platform_value": value.cast(TEXT),
            }
        )
    )


def _ambiguous(rows: pd.DataFrame, there: pd.DataFrame, pairs: pd.DataFrame) -> pd.DataFrame:
    """The keys by which each customer of an ambiguous input was found."""
    said, known = rows.iloc[pairs["row"]], there.iloc[pairs["known"]]
    made = []
    for name, platform_name in KEYS.items():
        ours, theirs = array(said[name]), array(known[platform_name])
        same = pc.fill_null(pc.equal(search_key(name, ours), search_key(name, theirs)), False)
        where = same.to_numpy(zero_copy_only=False)
        made.append(_told(said[where], known[where], name, ours.filter(same), theirs.filter(same)))
    return pd.concat(made)


def _differing(said: pd.DataFrame, there: pd.DataFrame) -> list[pd.DataFrame]:
    made = []
    for name, platform_name in FIELDS.items():
        ours, theirs = array(said[name]), array(there[platform_name])
        where = _differs(comparable(name, ours), comparable(name, theirs))
        mask = pa.array(where)
        made.append(_told(said[where], there[where], name, ours.filter(mask), theirs.filter(mask)))
    return made


def _differing_documents(
    said: pd.DataFrame, there: pd.DataFrame, documents: pd.DataFrame, known_documents: pd.DataFrame
) -> list[pd.DataFrame]:
    """Compares each given document with the customer's document of its number, else with the one at its position."""
    ours = typed(documents, INPUT_DOCUMENTS)
    at = positions(array(ours["input"]), array(said["input"]))
    is_wanted = pc.is_valid(at).to_numpy(zero_copy_only=False)
    ours = ours[is_wanted]
    owners = array(there["id"]).take(at.filter(pc.is_valid(at)))
    theirs = typed(known_documents, KNOWN_DOCUMENTS)
    by_number = _first_positions(
        (owners, clean_text(array(ours["number"]))), (array(theirs["customer_id"]), clean_text(array(theirs["number"])))
    )
    by_place = _first_positions(
        (owners, array(ours["position"]).cast(TEXT)),
        (array(theirs["customer_id"]), array(theirs["position"]).cast(TEXT)),
    )
    partner = pc.coalesce(by_number, by_place)
    made = []
    places = array(ours["position"]).to_numpy()
    for name, platform_name in DOCUMENT_FIELDS.items():
        mine, known = array(ours[name]), array(theirs[platform_name]).take(partner)
        is_text = mine.type == TEXT
        differing = _differs(*(comparable(name, texts) if is_text else texts for texts in (mine, known)))
        for place in np.unique(places[differing]):
            mask = differing & (places == place)
            owned = pd.DataFrame({"id": from_arrow(pa.table({"id": owners.filter(pa.array(mask))}))["id"]})
            values = (texts.filter(pa.array(mask)) for texts in (mine, known))
            made.append(_told(ours[mask], owned, f"documents[{place}].{name}", *values))
    return made


def _first_positions(ours: tuple[pa.Array, pa.Array], theirs: tuple[pa.Array, pa.Array]) -> pa.Array:
    """Where the pair of texts stands first among others; null where it is not, or half of it is null."""
    mine, others = (pc.binary_join_element_wise(*texts, "\0") for texts in (ours, theirs))
    return pc.index_in(mine, value_set=others, skip_nulls=True)


def _differs(said: pa.Array, known: pa.Array) -> Bools:
    """Where a value is given, and the platform's is not equal."""
    same = pc.fill_null(pc.equal(said, known), False)
    found: Bools = pc.and_(pc.is_valid(said), pc.invert(same)).to_numpy(zero_copy_only=False)
    return found
