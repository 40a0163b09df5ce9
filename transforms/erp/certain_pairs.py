"""Pairs of a line and a customer that match beyond doubt, found before the keys are settled one after another.

In: both sides, and a hash function. Out: pairs of rows that have the same ERP code, differ in no other key, and share
no key with any other row of their side. `cascade` would pair them by code, without a finding, and decides all other
rows in the same way without them.

Keys are compared by their hashes. Two keys with the same hash only leave a pair to `cascade`, since the texts
themselves are compared too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.erp.match_keys import MATCH_KEYS
from transforms.frames import THREADS, Bools, Ints, array, positions, unlike

Hashes = npt.NDArray[np.uint64]
HashTexts = Callable[[pa.Array], Hashes]
"""The hash of each text; none is null."""


class _Key(NamedTuple):
    """The rows that have a value of a key, and the hashes of the normalized values."""

    rows: Ints
    hashes: Hashes


def certain_pairs(lines: pd.DataFrame, customers: pd.DataFrame, documents: pd.DataFrame, hash_texts: HashTexts) -> Ints:
    """The row number of the customer of each line; -1 for a line without a certain pair.

    Args:
        lines: the keys of the ERP's file.
        customers: the keys of a customer.
        documents: `customer` (row number), `number` and `key` (the number, normalized).
        hash_texts: is called by several threads.
    """
    customer = np.full(len(lines), -1)
    if "erp_code" not in lines:
        return customer
    names = [name for name in MATCH_KEYS if name in lines]

    def key(side: pd.DataFrame, name: str) -> _Key:
        if side is customers and name == "document_number":
            values = documents.set_index("customer")["key"]
        else:
            values = MATCH_KEYS[name].normalize(side[name])
        if values.hasnans:  # `dropna` copies
            values = values.dropna()
        return _Key(values.index.to_numpy(np.int64), hash_texts(array(values)))

    def is_like(name: str) -> Bools:
        """Whether the value of each line is blank or its customer's; a negative row has none."""
        if name == "document_number":
            theirs = array(documents["number"]).take(positions(document[customer]))
        else:
            theirs = array(customers[name]).take(customer_positions)
        ours = array(lines[name])
        is_unlike: Bools = pc.and_not_kleene(unlike(ours, theirs), pc.equal(ours, "")).to_numpy(zero_copy_only=False)
        return ~is_unlike

    with ThreadPoolExecutor(THREADS) as pool:
        ours = list(pool.map(lambda name: key(lines, name), names))
        theirs = list(pool.map(lambda name: key(customers, name), names))
        code = MATCH_KEYS["erp_code"]
        is_code = pool.submit(lambda: code.identifies(code.normalize(lines["erp_code"])).to_numpy(np.bool_))
        line, candidate = _equal_hashes(ours[0], theirs[0], len(lines))
        owners = documents["customer"].to_numpy(np.int64)
        is_alone_there = _is_alone(len(customers), theirs) & (np.bincount(owners, minlength=len(customers)) <= 1)
        is_pair = _is_alone(len(lines), ours)[line] & is_alone_there[candidate]
        customer[line[is_pair]] = candidate[is_pair]
        customer_positions = positions(customer)
        document = np.full(len(customers) + 1, -1)
        document[owners] = np.arange(len(owners))
        is_certain = np.logical_and.reduce([is_code.result(), *pool.map(is_like, names)])
    return np.where(is_certain, customer, -1)


def _equal_hashes(lines: _Key, customers: _Key, size: int) -> tuple[Ints, Ints]:
    """Rows of `size` lines and of customers with the same hash; where it is repeated, any of them."""
    rows = np.concatenate([lines.rows, customers.rows + size])
    rows, is_like_next = _by_hash(_Key(rows, np.concatenate([lines.hashes, customers.hashes])))
    at = np.flatnonzero(is_like_next & (rows[:-1] < size) & (rows[1:] >= size))
    return rows[at], rows[at + 1] - size


def _is_alone(size: int, keys: Iterable[_Key]) -> Bools:
    """Whether each row shares no value of a key with another."""
    is_alone = np.ones(size, np.bool_)
    for key in keys:
        rows, is_like_next = _by_hash(key)
        is_alone[rows[:-1][is_like_next]] = is_alone[rows[1:][is_like_next]] = False
    return is_alone


def _by_hash(key: _Key) -> tuple[Ints, Bools]:
    """The rows by hash, those of one hash ascending; and whether each but the last has the hash of the next.

    The lowest bits of a hash give way to the row number: sorting such numbers takes a quarter of the time of `argsort`.
    """
    bits = np.uint64(int(key.rows.max(initial=0)).bit_length())
    ordered = np.sort((key.hashes >> bits << bits) | key.rows.astype(np.uint64))
    hashes = ordered >> bits
    return (ordered ^ (hashes << bits)).astype(np.int64), hashes[1:] == hashes[:-1]
