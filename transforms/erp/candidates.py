"""Pairs of a line and a customer that have a key in common, and what else they have in common.

In: the hashes of the keys of both sides, then their rows. Out: the pairs, and for each a weight: how much more likely
it is one customer than two, as the sum of `WEIGHTS` of what agrees and differs. A pair that agrees in its ERP code and
in nothing else weighs 10; one that has an e-mail address in common and differs in document and name weighs less than
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.erp.compare import Compared, Pairs, is_given
from orderbridge.transforms.erp.match_keys import MATCH_KEYS
from orderbridge.transforms.frames import TEXT, Bools, Ints, array, column, positions

FREQUENT: Final = 20
"""A value that more rows of one side than this have in common identifies none of them."""


class Weights(NamedTuple):
    """The weight of a field that is equal, nearly equal, and different on both sides."""

    equal: int
    near: int
    different: int


WEIGHTS: Final = {
    "erp_code": Weights(10, 3, -4),
    "login_code": Weights(9, 2, -3),
    "email": Weights(7, 0, -3),
    "document_number": Weights(8, 3, -5),
    "first_name": Weights(3, 3, -5),
    "last_name": Weights(3, 3, -4),
    "fiscal_name": Weights(4, 4, -5),
    "phone": Weights(3, 3, -2),
    "fiscal_address": Weights(2, 2, -1),
    "document_email": Weights(2, 2, -1),
}
"""Keys are nearly equal in their `MatchKey.loose` form, names where one has all words of the other. Names that have
some words in common weigh nothing; nor does a value that is a stand-in, or missing on a side."""
NAMES: Final = ("first_name", "last_name", "fiscal_name")
_PERSON_DIFFERS: Final = -5
"""First and last name together weigh no less: who speaks for a firm changes."""
_WHOLE_NAME: Final = 5
"""Of names that are the same, but in other columns or in one: `García Ruiz, Ana`."""
_PHONE_FORM: Final = r"[0-9](?:[^0-9]*[0-9]){5}"
_NO_WORDS: Final = ("sa", "sac", "srl", "sl", "slu", "sas", "spa", "eirl", "ltda", "cia", "inc", "ltd", "llc", "gmbh",
    "de", "del", "la", "las", "los", "el", "da", "do", "dos", "the", "and")  # fmt: skip


class UsableKeys(NamedTuple):
    """What the values of a key are good for.

    A value that is frequent on a side identifies nobody, nor does a stand-in of a line.

    Attributes:
        lines, customers: whether the value of each line, and of each customer, may identify it.
        first: the first line that has the value of each line; -1 where no other line has it.
    """

    lines: Bools
    customers: Bools
    first: Ints


class Candidates(NamedTuple):
    """The pairs of lines and customers that may be one.

    Attributes:
        pairs: those that have a key in common, and those that a person has accepted, but none that one has rejected.
        is_accepted: whether a person has accepted each pair.
        usable: what the values of each key are good for.
    """

    pairs: Pairs
    is_accepted: Bools
    usable: dict[str, UsableKeys]

    def of(self, lines: Ints, customers: Ints) -> Candidates:
        """Those of some lines and customers (ascending row numbers) that have no key in common with others."""
        pairs, is_here = self.pairs, np.isin(self.pairs.line, lines)
        own = Pairs(
            np.searchsorted(lines, pairs.line[is_here]),
            np.searchsorted(customers, pairs.customer[is_here]),
        )
        usable = {
            key: UsableKeys(
                one.lines[lines],
                one.customers[customers],
                np.where(one.first[lines] < 0, -1, np.searchsorted(lines, one.first[lines])),
            )
            for key, one in self.usable.items()
        }
        return Candidates(own, self.is_accepted[is_here], usable)


def find_candidates(
    ours: Mapping[str, pd.Series[int]],
    theirs: Mapping[str, pd.Series[int]],
    sizes: tuple[int, int],
    reviewed: tuple[Ints, Ints, Bools] | None = None,
) -> Candidates:
    """The candidates among so many lines and customers, from the hashes of their keys: see `common_keys`.

    `reviewed` are pairs that a person has decided about, in the order of the decisions, and whether each is accepted.
    Of several accepted pairs of a line or of a customer only the last one counts.
    """
    pairs, usable = common_keys(ours, theirs, sizes)
    if reviewed is None or not len(reviewed[0]):
        return Candidates(pairs, np.zeros(len(pairs.line), np.bool_), usable)
    numbers, is_accepted = reviewed[0] * sizes[1] + reviewed[1], reviewed[2]
    accepted = numbers[is_accepted]
    is_replaced = [pd.Index(side).duplicated("last") for side in np.divmod(accepted, sizes[1])]
    accepted = accepted[~np.logical_or(*is_replaced)]
    others = np.setdiff1d(pairs.line * sizes[1] + pairs.customer, numbers[~is_accepted])
    numbers = np.union1d(others, accepted)
    return Candidates(Pairs(*np.divmod(numbers, sizes[1])), np.isin(numbers, accepted), usable)


def common_keys(
    ours: Mapping[str, pd.Series[int]], theirs: Mapping[str, pd.Series[int]], sizes: tuple[int, int]
) -> tuple[Pairs, dict[str, UsableKeys]]:
    """The pairs that have a key in common, and the rows that each key may identify.

    Both are hashes of keys, by key and row number (see `hash_keys`), of customers several of a row where it has several
    documents; `sizes` is how many lines and customers there are.
    """
    pairs, usable = [np.empty(0, np.int64)], {}
    for key, hashes in ours.items():
        lines, customers = (side.index.to_numpy(np.int64) for side in (hashes, theirs[key]))
        codes, values = pd.factorize(np.concatenate([theirs[key], hashes]))
        known, codes = codes[: len(customers)], codes[len(customers) :]
        counts = [np.bincount(side, minlength=len(values)) for side in (codes, known)]
        is_frequent = np.maximum(*counts) > FREQUENT
        is_shared = counts[0][codes] > 1
        first = np.empty(len(values), np.int64)
        first[codes[::-1]] = lines[::-1]
        of_key = UsableKeys(
            np.zeros(sizes[0], np.bool_), np.ones(sizes[1], np.bool_), np.full(sizes[0], -1)
        )
        of_key.lines[lines] = ~is_frequent[codes]
        of_key.customers[customers[is_frequent[known]]] = False
        of_key.first[lines[is_shared]] = first[codes[is_shared]]
        usable[key] = of_key
        count = np.where(is_frequent, 0, counts[1])[codes]
        begin = (np.cumsum(counts[1]) - counts[1])[codes] - (np.cumsum(count) - count)
        at = np.repeat(begin, count) + np.arange(count.sum())
        pairs.append(
            np.repeat(lines, count) * sizes[1] + customers[np.argsort(known, kind="stable")[at]]
        )
    numbers = np.sort(
        np.concatenate(pairs), kind="stable"
    )  # those of each key are sorted, so these mostly are
    numbers = numbers[np.diff(numbers, prepend=-1) > 0]
    return Pairs(*np.divmod(numbers, max(sizes[1], 1))), usable


def buckets(candidates: Candidates, count: int) -> tuple[Ints, Ints]:
    """The bucket of each line and of each customer, from 0 to `count` - 1.

    Rows that share a key, directly or through other rows, are in the same one: each can be matched on its own. Values
    with the same hash only put more rows into one, which changes no result.
    """
    usable = list(candidates.usable.values())
    size = len(usable[0].lines)
    left = [candidates.pairs.line, *(np.flatnonzero(one.first >= 0) for one in usable)]
    right = [candidates.pairs.customer + size, *(one.first[one.first >= 0] for one in usable)]
    ends = np.concatenate(left), np.concatenate(right)
    root = np.arange(size + len(usable[0].customers))
    while (root[ends[0]] != root[ends[1]]).any():
        lower, higher = (
            extreme(root[ends[0]], root[ends[1]]) for extreme in (np.minimum, np.maximum)
        )
        np.minimum.at(root, higher, lower)
        while (root[root] != root).any():
            root = root[root]
    return root[:size] % count, root[size:] % count


class Evidence(NamedTuple):
    """What speaks for each pair and against it.

    Attributes:
        equal, near, different: for each field whether it is so.
        is_alike, is_unlike: whether names are the same, in whatever column; whether all that both sides have differ.
        weight: the sum of `WEIGHTS`.
    """

    equal: dict[str, Bools]
    near: dict[str, Bools]
    different: dict[str, Bools]
    is_alike: Bools
    is_unlike: Bools
    weight: Ints


def weigh(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    pairs: Pairs,
    compared: Compared,
    usable: Mapping[str, UsableKeys],
) -> Evidence:
    """The evidence of pairs of lines, customers and their documents.

    `compared` is what `compare` made of them, and `usable` is that of `common_keys`.
    """
    none = np.zeros(len(pairs.line), np.bool_)
    equal, near, different = ({field: none.copy() for field in WEIGHTS} for _ in range(3))
    given = compared.differences[
        is_given(array(compared.differences["platform_value"])).to_numpy(zero_copy_only=False)
    ]
    for field, agrees in compared.agrees.items():
        if field not in WEIGHTS:
            continue
        values, is_known = given[given["field"] == field].set_index("row"), ~none
        ours, theirs = values["erp_value"], values["platform_value"]
        is_near = np.zeros(len(values), np.bool_)
        is_different = ~is_near
        if field in MATCH_KEYS:
            key = MATCH_KEYS[field]
            is_known = usable[field].lines[pairs.line] & usable[field].customers[pairs.customer]
            ours, theirs = key.normalize(ours), key.normalize(theirs)
            is_near = (key.loose(ours) == key.loose(theirs)).fillna(False).to_numpy(np.bool_)
            is_different = ~is_near & key.identifies(theirs).to_numpy(np.bool_)
        elif field in NAMES:
            common, least = common_words(ours, theirs)
            is_near, is_different = (common > 0) & (common == least), (common == 0) & (least > 0)
        elif field == "phone":
            is_phone = pc.match_substring_regex(array(lines[field]), _PHONE_FORM)
            is_known = pc.fill_null(is_phone, False).to_numpy(zero_copy_only=False)[pairs.line]
        equal[field] = agrees & is_known
        near[field][values.index[is_near]] = True
        different[field][values.index[is_different]] = True
        near[field] &= is_known
        different[field] &= is_known

    weights = {
        field: weight.equal * equal[field]
        + weight.near * near[field]
        + weight.different * different[field]
        for field, weight in WEIGHTS.items()
    }
    person = np.maximum(weights["first_name"] + weights["last_name"], _PERSON_DIFFERS)
    is_alike = np.logical_or.reduce([equal[name] | near[name] for name in NAMES])
    open_rows = np.flatnonzero(~is_alike)
    whole = _have_one_name(
        lines, customers, documents, pairs.where(open_rows), compared.document[open_rows]
    )
    is_unlike = ~is_alike & np.logical_or.reduce([different[name] for name in NAMES])
    is_unlike[open_rows[whole]] = False
    is_alike[open_rows[whole]] = True
    names = person + weights["fiscal_name"]
    names[open_rows[whole]] = _WHOLE_NAME
    weight = sum((values for field, values in weights.items() if field not in NAMES), names)
    return Evidence(equal, near, different, is_alike, is_unlike, weight)


def _have_one_name(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    pairs: Pairs,
    document: Ints,
) -> Ints:
    """The numbers of the pairs of which one side has all words of the other's names, at least two."""
    names = [array(lines[name]).take(positions(pairs.line)) for name in NAMES if name in lines]
    if not names:
        return np.empty(0, np.int64)
    theirs = [
        array(customers["full_name"]).take(positions(pairs.customer)),
        array(documents["fiscal_name"]).take(positions(document)),
    ]
    ours, others = (
        column(pc.binary_join_element_wise(*(pc.fill_null(one, "") for one in side), " "))
        for side in (names, theirs)
    )
    common, least = common_words(ours, others)
    return np.flatnonzero((common > 1) & (common == least))


def common_words(ours: pd.Series[str], theirs: pd.Series[str]) -> tuple[Ints, Ints]:
    """For each row how many words both texts have, and how many the shorter one has.

    Case, accents, order and punctuation make no difference; single letters and the forms of firms are no words.
    """
    size = len(ours)
    texts = pa.chunked_array([array(ours), array(theirs)], TEXT).combine_chunks()
    plain = pc.utf8_lower(
        pc.replace_substring_regex(pc.utf8_normalize(texts, "NFKD"), r"\p{M}", "")
    )
    lists = pc.split_pattern_regex(plain, r"[^\p{L}\p{N}]+")
    words, rows = pc.list_flatten(lists), pc.list_parent_indices(lists)
    is_word = pc.and_(
        pc.greater(pc.utf8_length(words), 1), pc.invert(pc.is_in(words, pa.array(_NO_WORDS)))
    )
    codes = pc.dictionary_encode(words.filter(is_word))
    count = max(len(codes.dictionary), 1)
    numbers = np.unique(
        rows.filter(is_word).to_numpy().astype(np.int64) * count + codes.indices.to_numpy()
    )
    counts = np.bincount(numbers // count, minlength=2 * size)
    mine, others = numbers[numbers < size * count], numbers[numbers >= size * count] - size * count
    common = np.intersect1d(mine, others, assume_unique=True) // count
    return np.bincount(common, minlength=size), np.minimum(counts[:size], counts[size:])
