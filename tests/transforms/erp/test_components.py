"""Rows that a key connects get the same bucket, on any machine."""

from __future__ import annotations

import numpy as np
import pandas as pd
from hypothesis import given
from hypothesis import strategies as st

from tests.transforms.erp.test_match import customers
from tests.transforms.erp.whole import hashes as good_hashes
from transforms.erp.components import buckets, components, connected_homes, links, row_homes
from transforms.erp.match_keys import hash_keys, key_values

PAIRS = st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=40)


@given(PAIRS)
def test_a_root_is_the_smallest_home_that_is_connected(pairs: list[tuple[int, int]]) -> None:
    smallest = {home: home for pair in pairs for home in pair}
    for _ in smallest:
        for pair in pairs:
            smallest[pair[0]] = smallest[pair[1]] = min(smallest[home] for home in pair)
    roots = components(pd.DataFrame(pairs, columns=["home", "other"], dtype=np.uint64))
    assert dict(zip(roots["home"], roots["root"], strict=True)) == smallest


def test_values_that_identify_nobody_have_no_hash_and_keys_do_not_mix() -> None:
    rows = customers(*({"erp_code": code, "login_code": "007"} for code in ("007", "ALFKI", "0", None, " 70.0 ")))
    hashes = hash_keys(key_values(rows, {key: key for key in ("erp_code", "login_code")}), good_hashes)
    assert hashes["erp_code"].index.tolist() == [0, 1, 4]
    assert hashes["login_code"].nunique() == 1
    assert not set(hashes["erp_code"]) & set(hashes["login_code"])


def test_rows_that_any_key_connects_share_a_bucket() -> None:
    rows = customers(
        {"erp_code": "A", "email": "one@x"},
        {"erp_code": "B", "email": "ONE@x"},
        {"erp_code": "0", "email": "one@x", "login_code": "L"},
        {"erp_code": "C", "login_code": "L"},
        {"erp_code": "D", "login_code": "-", "email": "noemail@x"},
        {"erp_code": "E", "login_code": "-", "email": "noemail@x"},
    )
    hashes = hash_keys(key_values(rows, {key: key for key in ("erp_code", "login_code", "email")}), good_hashes)
    homes = row_homes(rows, hashes.values(), ["customer_id"], good_hashes)
    roots = components(connected_homes(links(hashes.values(), homes)))
    numbers = buckets(homes, roots, 2**40)
    assert len(set(numbers[:4])) == 1
    assert len(set(numbers)) == 3
    nothing = components(connected_homes(links([], homes)))
    assert buckets(homes, nothing, 7).tolist() == (homes % np.uint64(7)).tolist(), "nothing connects them"
