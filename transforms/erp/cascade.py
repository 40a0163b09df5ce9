"""Lines of the ERP and customers of the platform paired by one key after another, one to one only.

In: the values of each key on both sides. Out: which line is which customer, and which of them are ambiguous and why.
Rows that a key has decided take no part in the later ones.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.erp.match_keys import FREQUENT, MATCH_KEYS
from transforms.frames import TEXT, Bools, Ints, array, column, constant

MEMBERS_MAX: Final = 20
"""So many members of a group are listed, then the number of the others."""


class Side(NamedTuple):
    """The lines or the customers.

    Attributes:
        names: text that identifies each row, for lists of members.
        is_open: whether each row is to be matched; the others take no part.
        keys: for each key its values, indexed by row number: of lines normalized and without nulls; of customers as
            given, since most are matched by the first key, and of documents several a row.
    """

    names: pd.Series[str]
    is_open: Bools
    keys: Mapping[str, pd.Series[str]]

    def undecided(self, *decided: pd.Series[int] | pd.Index[Any]) -> Bools:
        """Whether each row is to be matched and is not among these."""
        is_open = self.is_open.copy()
        for rows in decided:
            is_open[rows] = False
        return is_open


class Groups(NamedTuple):
    """The group of each row with a value, indexed by row number. A group is the first line that has the value."""

    lines: pd.Series[int]
    customers: pd.Series[int]


@dataclass(frozen=True, slots=True)
class Decisions:
    """What the keys have decided.

    Attributes:
        pairs: `line`, `customer` (row numbers), `matched_by`.
        ambiguous_lines, ambiguous_customers: `row`, `matched_by`, `members` (names of the rows of the other side that
            it may be; null for none), `reason`.
        stand_ins: `row`, `matched_by`: lines whose value of a key identifies nobody.
    """

    pairs: pd.DataFrame
    ambiguous_lines: pd.DataFrame
    ambiguous_customers: pd.DataFrame
    stand_ins: pd.DataFrame


def _empty(*columns: str) -> pd.DataFrame:
    rows = ("line", "customer", "row")
    return pd.DataFrame({name: pd.Series(dtype=np.int64 if name in rows else _TEXT) for name in columns})


_TEXT: Final = pd.ArrowDtype(TEXT)
_NO_ROWS: Final = _empty("row", "matched_by", "members", "reason")
_NOTHING: Final = Decisions(_empty("line", "customer", "matched_by"), _NO_ROWS, _NO_ROWS, _empty("row", "matched_by"))


def cascade(lines: Side, customers: Side) -> Decisions:
    """Pairs lines and customers by each key that the file has, in the order of `MATCH_KEYS`.

    A line has at most one value of a key, a customer may have several.
    """
    is_open, is_open_there = lines.undecided(), customers.undecided()
    decisions = []
    for key in (name for name in MATCH_KEYS if name in lines.keys):
        left, right = lines.keys[key], customers.keys[key]
        left = left[is_open[left.index]]
        right = MATCH_KEYS[key].normalize(right[is_open_there[right.index]]).dropna()
        is_key = MATCH_KEYS[key].identifies(left)
        decided = settle(key, shared_groups(left[is_key], right), left.index[~is_key], lines.names, customers.names)
        is_open[decided.pairs["line"]] = is_open[decided.ambiguous_lines["row"]] = False
        is_open_there[decided.pairs["customer"]] = is_open_there[decided.ambiguous_customers["row"]] = False
        decisions.append(decided)
    return _combine(decisions)


def _combine(decisions: list[Decisions]) -> Decisions:
    """The decisions of all keys: pairs by line, the others by row."""
    several = [_NOTHING, *decisions]
    pairs = pd.concat([decided.pairs for decided in several if len(decided.pairs)] or [_NOTHING.pairs])
    return Decisions(
        pairs.sort_values("line", ignore_index=True),
        by_row(*(decided.ambiguous_lines for decided in several)),
        by_row(*(decided.ambiguous_customers for decided in several)),
        by_row(*(decided.stand_ins for decided in several)),
    )


def by_row(*parts: pd.DataFrame) -> pd.DataFrame:
    """The rows of several frames by `row`."""
    return pd.concat([part for part in parts if len(part)] or parts[:1]).sort_values(
        "row", kind="stable", ignore_index=True
    )


def shared_groups(lines: pd.Series[str], customers: pd.Series[str]) -> Groups:
    """The groups of rows with the same value; customers whose value no line has are left out.

    Both are values, indexed by row number: of lines ascending, each row once.
    """
    numbers, _ = pd.factorize(pd.concat([lines, customers], ignore_index=True))
    of_lines, of_customers = np.split(numbers, [len(lines)])
    first_line = pd.Series(lines.index).groupby(of_lines).first()
    groups = pd.Series(first_line.reindex(of_customers).to_numpy(), customers.index).dropna().astype(np.int64)
    if not groups.index.is_unique:  # two documents of one customer may have one number
        groups = groups[~groups.rename_axis("row").reset_index(name="group").duplicated().to_numpy()]
    return Groups(pd.Series(first_line.to_numpy()[of_lines], lines.index), groups)


def settle(
    key: str, groups: Groups, stand_ins: pd.Index[int], line_names: pd.Series[str], customer_names: pd.Series[str]
) -> Decisions:
    """Which rows are one and the same: those of a group of one line and one customer, who is in no other group.

    Every other row of a group that both sides have is ambiguous. Lines with the same ERP code contradict each other:
    they are ambiguous even where no customer has it. A group of more than `FREQUENT` rows of a side decides nothing.
    `stand_ins` are the rows of lines whose value identifies nobody, and the names those of each `Side`.
    """
    size = len(line_names)
    lines, customers = _counts(groups, size)
    is_frequent = (lines > FREQUENT) | (customers > FREQUENT)
    no_keys = groups.lines.index[is_frequent[groups.lines]].union(stand_ins)
    if is_frequent.any():
        groups = Groups(*(rows[~is_frequent[rows]] for rows in groups))
        lines, customers = _counts(groups, size)
    is_pair = (lines == 1) & (customers == 1)
    is_pair[groups.customers[groups.customers.index.duplicated(keep=False)]] = False
    is_ambiguous = ~is_pair & ((customers > 0) | ((lines > 1) & (key == "erp_code")))

    paired = groups.customers[is_pair[groups.customers]]
    ours, theirs = (rows[is_ambiguous[rows]] for rows in groups)
    ambiguous = np.flatnonzero(is_ambiguous)
    choices = [customers[ambiguous] <= 1, lines[ambiguous] == 1]
    reasons = pd.Series(
        np.select(choices, ["several lines", "several customers"], "several lines and customers"), ambiguous
    )
    pairs = pd.DataFrame({"line": paired.to_numpy(), "customer": paired.index})
    return Decisions(
        pairs.assign(matched_by=constant(key, pairs.index)),
        _ambiguous(key, ours, _members(theirs, customer_names), reasons),
        _ambiguous(key, theirs, _members(ours, line_names), reasons),
        pd.DataFrame({"row": no_keys, "matched_by": constant(key, no_keys).array}),
    )


def _counts(groups: Groups, size: int) -> tuple[Ints, Ints]:
    """The lines and the customers of each group."""
    return np.bincount(groups.lines, minlength=size), np.bincount(groups.customers, minlength=size)


def _ambiguous(key: str, groups: pd.Series[int], members: pd.Series[str], reasons: pd.Series[str]) -> pd.DataFrame:
    """A row for each ambiguous row, with the members of all of its groups and the reason of the first."""
    if groups.empty:
        return _NO_ROWS
    rows = pd.DataFrame({"row": groups.index, "group": groups.to_numpy()}).sort_values(["row", "group"])
    texts = joined_texts(members.reindex(rows["group"]), rows["row"])
    first = rows.drop_duplicates("row")
    return pd.DataFrame(
        {
            "row": first["row"].to_numpy(),
            "matched_by": constant(key, first.index).array,
            "members": texts.array,
            "reason": reasons.astype(texts.dtype).reindex(first["group"]).array,
        }
    )


def _members(groups: pd.Series[int], names: pd.Series[str]) -> pd.Series[str]:
    """The names of the rows of each group, in the order of rows: at most `MEMBERS_MAX`, then how many more."""
    if groups.empty:
        return names[:0]
    rows = pd.DataFrame({"group": groups.to_numpy(), "row": groups.index}).sort_values(["group", "row"])
    listed = rows[rows.groupby("group").cumcount() < MEMBERS_MAX]
    texts = joined_texts(names.iloc[listed["row"]], listed["group"])
    more = rows["group"].value_counts().reindex(texts.index) - MEMBERS_MAX
    return texts.mask(more > 0, texts + ", " + more.astype(texts.dtype) + " more")


def joined_texts(texts: pd.Series[str], groups: pd.Series[int]) -> pd.Series[str]:
    """The texts of each group (ascending) in one, with commas between; indexed by group. Null where a text is null.

    An Arrow kernel: `groupby(...).agg(", ".join)` calls Python for each group, and there may be a million.
    """
    numbers, begin = np.unique(groups.to_numpy(), return_index=True)
    lists = pa.ListArray.from_arrays(pa.array(np.append(begin, len(groups)), pa.int32()), array(texts))
    return column(pc.binary_join(lists, ", "), pd.Index(numbers))
