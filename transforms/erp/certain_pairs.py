"""Lines and customers that are one and the same beyond doubt, found before the keys are settled one after another.

In: both sides, and a hash function. Out: pairs of rows that have the same code, differ in no other key, and share no
key with any other row of their side. `match` would pair them by code, without a finding, and without them no other row
is matched differently: only the others have to be looked at closely.

Keys are compared by their hashes. Two keys with the same hash only leave a pair to the closer look, since the texts
themselves are compared too.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.erp.match_keys import MATCH_KEYS
from transforms.frames import Bools, Ints, array

Hashes = npt.NDArray[np.uint64]
HashTexts = Callable[[pa.Array], Hashes]
"""The hash of each text, none of them null."""
THREADS: Final = 2
"""Columns that are worked on at the same time: more take more memory."""


class _Key(NamedTuple):
    """The rows that have a value of a key, ascending, and the hashes of the normalized values."""

    rows: Ints
    hashes: Hashes


def certain_pairs(
    lines: pd.DataFrame, customers: pd.DataFrame, documents: pd.DataFrame, hash_texts: HashTexts
) -> pd.DataFrame:
    """`line` and `customer`: row numbers of pairs, by line.

    Args:
        lines: the keys of the ERP's file.
        customers: the keys of a customer.
        documents: `customer` (row number, ascending), `number` and `key` (the number, normalized).
        hash_texts: is called by several threads.
    """
    if "erp_code" not in lines:
        return pd.DataFrame({"line": [], "customer": []}, dtype=np.int64)
    names = [name for name in MATCH_KEYS if name in lines]

    def key_of_lines(name: str) -> _Key:
        return _key(MATCH_KEYS[name].normalize(lines[name]), hash_texts)

    def key_of_customers(name: str) -> _Key:
        if name == "document_number":
            return _key(documents.set_index("customer")["key"], hash_texts)
        return _key(MATCH_KEYS[name].normalize(customers[name]), hash_texts)

    with ThreadPoolExecutor(THREADS) as pool:
        ours, theirs = list(pool.map(key_of_lines, names)), list(pool.map(key_of_customers, names))
        line, customer = _equal_hashes(ours[0], theirs[0])
        owners = documents["customer"].to_numpy(np.int64)
        is_alone_there = _is_alone(len(customers), theirs) & (np.bincount(owners, minlength=len(customers)) <= 1)
        is_pair = _is_alone(len(lines), ours)[line] & is_alone_there[customer]
        line, customer = line[is_pair], customer[is_pair]
        document = np.full(len(customers), -1)
        document[owners] = np.arange(len(owners))

        def is_equal(name: str) -> Bools:
            if name == "document_number":
                return _is_equal(lines[name], line, documents["number"], document[customer])
            return _is_equal(lines[name], line, customers[name], customer)

        is_pair = np.logical_and.reduce(list(pool.map(is_equal, names)))
        line, customer = line[is_pair], customer[is_pair]
        code = MATCH_KEYS["erp_code"]
        is_key = code.identifies(code.normalize(lines["erp_code"].iloc[line])).to_numpy(np.bool_)
    return pd.DataFrame({"line": line[is_key], "customer": customer[is_key]})


def _key(values: pd.Series[str], hash_texts: HashTexts) -> _Key:
    values = values.dropna()
    return _Key(values.index.to_numpy(np.int64), hash_texts(array(values)))


def _is_alone(size: int, keys: list[_Key]) -> Bools:
    """Whether each row shares no value of a key with another."""
    is_alone = np.ones(size, np.bool_)
    for key in keys:
        ordered = np.sort(key.hashes)
        repeated = np.unique(ordered[1:][ordered[1:] == ordered[:-1]])
        is_alone[key.rows[np.isin(key.hashes, repeated)]] = False
    return is_alone


def _equal_hashes(left: _Key, right: _Key) -> tuple[Ints, Ints]:
    """Rows of both sides with the same hash, by the left one; where it is repeated, any of them."""
    if not len(right.rows):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    order, order_there = np.argsort(left.hashes), np.argsort(right.hashes)  # sorted keys are found faster
    hashes, hashes_there = left.hashes[order], right.hashes[order_there]
    at = np.searchsorted(hashes_there, hashes).clip(max=len(hashes_there) - 1)
    is_equal = hashes_there[at] == hashes
    rows, rows_there = left.rows[order[is_equal]], right.rows[order_there[at[is_equal]]]
    ascending = np.argsort(rows)
    return rows[ascending], rows_there[ascending]


def _is_equal(left: pd.Series[str], left_rows: Ints, right: pd.Series[str], right_rows: Ints) -> Bools:
    """Whether the values on the left are blank or equal to those on the right; a negative row has no value."""
    ours = array(left).take(pa.array(left_rows))
    theirs = array(right).take(pa.array(right_rows, mask=right_rows < 0))
    is_blank = pc.fill_null(pc.equal(ours, ""), True)
    is_equal: Bools = pc.or_(is_blank, pc.fill_null(pc.equal(ours, theirs), False)).to_numpy(zero_copy_only=False)
    return is_equal
