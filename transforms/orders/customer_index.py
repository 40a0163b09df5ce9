"""Which customer an order refers to: by id, by ERP code, or by e-mail address where a person said so.

In: the reconciled customers, and a column of the raw orders. Out: the customer of each value, and how many values
are ids or codes of customers.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Final, Literal, NamedTuple

import pandas as pd

from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    TEXT,
    Column,
    constant,
    frame,
    is_repeated,
    look_up,
    typed,
)
from orderbridge.transforms.orders.names import CODE_NAME, ID_NAME
from orderbridge.transforms.values.keys import canonical_id, clean_text
from orderbridge.transforms.values.texts import email_key

ORDERING_CUSTOMERS: Final = {"customer_id": TEXT, "erp_code": TEXT, "is_missing": BOOLEAN}
"""The columns of the reconciled customers that are used."""
CUSTOMER_EMAILS: Final = {"customer_id": TEXT, "email_normalized": TEXT, "is_missing": BOOLEAN}
"""Those that are used where orders name customers by e-mail address."""
CustomerNotation = Literal["ids", "codes"]
"""How a column of the orders names customers: by their ids, or by their ERP codes."""
_GUEST: Final = "0"
MATCHED_SHARE_MIN: Final = 0.9
"""Share of the named customers that must be known. Orders of removed customers keep it below 1."""
AGREEMENT_MIN: Final = 0.9
"""Share of the orders in which an id and a code must refer to the same customer."""


@dataclass(frozen=True, slots=True)
class CustomerMatch:
    """The customers that the values of a column refer to.

    Attributes:
        counts: how many rows have each value.
        named: the values; null for `0`, which platforms write for a guest, unless a customer has that id.
        customer_id: of each value; null where it refers to none, or to several.
        is_ambiguous: boolean; the value is an ERP code that several customers have.
        ids: how many rows have ids of customers.
        codes: how many have ERP codes.
        bare: how many of these codes are written without the zeros in front.
        is_by_code: whether the column is read as ERP codes rather than as ids.
        is_unproven: it is neither: its name is that of a code, but its values are ids rather than codes; or they are
            codes without their zeros rather than ids.
        is_contradicted: only the other reading fits its values.
        code_words: what the codes are.
    """

    counts: Column[Any]
    named: Column[Any]
    customer_id: Column[Any]
    is_ambiguous: Column[Any]
    ids: int
    codes: int
    bare: int
    is_by_code: bool
    is_unproven: bool
    is_contradicted: bool
    code_words: str = "ERP codes"

    @property
    def named_count(self) -> int:
        """How many rows name a customer."""
        return _number(self.named.notna(), self.counts)

    @property
    def notation(self) -> CustomerNotation | None:
        """How the column is read; None where only the other reading fits, or this one less than half of its values."""
        if self.is_contradicted or 2 * (self.codes if self.is_by_code else self.ids) < max(
            self.named_count, 1
        ):
            return None
        return "codes" if self.is_by_code else "ids"

    @property
    def evidence(self) -> str:
        """What the reading rests on, in counts; no value."""
        zeros = f" ({self.bare} without zeros in front)" if self.bare else ""
        words = f"are ids of customers, {self.codes} are {self.code_words}{zeros}"
        return f"{self.ids} of {self.counts.sum()} {words}"


@dataclass(frozen=True, slots=True)
class CustomerIndex:
    """The customers that an order may refer to.

    Attributes:
        ids: `customer_id`.
        codes: `code` and `customer_id`: ERP codes that one customer has. A listed customer has a code before one that
            is missing.
        shared: ERP codes that several have.
        bare_codes: `code` and `customer_id` of codes that begin with zeros, without these, where no other one is so.
        emails: reads the columns of `CUSTOMER_EMAILS`; None: addresses name no customer.
    """

    ids: pd.DataFrame
    codes: pd.DataFrame
    shared: Column[Any]
    bare_codes: pd.DataFrame
    emails: Callable[[], pd.DataFrame] | None = None

    @classmethod
    def of(cls, customers: pd.DataFrame) -> CustomerIndex:
        """The index of the columns of `ORDERING_CUSTOMERS`."""
        customers = typed(customers, ORDERING_CUSTOMERS)
        codes = customers.assign(code=clean_text(customers["erp_code"])).dropna(subset="code")
        if codes["is_missing"].any():
            is_reused = codes["is_missing"] & codes["code"].isin(
                codes.loc[~codes["is_missing"], "code"]
            )
            codes = codes[~is_reused]
        is_shared = is_repeated(codes["code"])
        shared = codes.loc[is_shared, "code"].drop_duplicates()
        own = codes.loc[~is_shared, ["code", "customer_id"]]
        return cls(customers[["customer_id"]], own, shared, _bare_codes(codes))

    @classmethod
    def _of_emails(cls, customers: pd.DataFrame) -> CustomerIndex:
        """The index whose codes are the addresses; one with a zero in front is another one."""
        named = customers.rename(columns={"email_normalized": "erp_code"})
        no_codes = frame({"code": TEXT, "customer_id": TEXT})
        return replace(cls.of(named), ids=frame({"customer_id": TEXT}), bare_codes=no_codes)

    def match(
        self,
        values: Column[Any],
        name: str,
        notation: CustomerNotation | None = None,
        counts: Column[Any] | None = None,
        *,
        is_assumed: bool = False,
    ) -> CustomerMatch:
        """Reads a column as ids or as ERP codes, whichever more of its values are.

        Codes such as `12` are ids of others by chance, and ids are codes. If `name` is that of one kind, half as many
        of it are enough. Where that leaves two readings that give orders to different customers, the column is
        unproven: nearly all values are of the other kind and not of this one, or of both and `name` is that of neither.
        `notation` is how it is read whatever its values are, and `counts` how many rows have each value; None: one.
        E-mail addresses are read like codes.

        A code without its zeros, such as `21` for `00021`, counts as a code where a person said that they are codes:
        not where `notation` is only assumed. Without a notation it puts ids in doubt.
        """
        if counts is None:
            counts = constant(1, values.index, BIGINT)
        if self.emails is not None and _are_emails(values, counts):
            found = self._of_emails(self.emails()).match(email_key(values), name, "codes", counts)
            return replace(found, code_words="e-mail addresses of customers")
        read = self._read(values, name, notation, counts, is_assumed=is_assumed)
        chosen, other = read.chosen, read.other
        is_expected = notation is not None or _names_a_kind(name) or read.bare > 0
        is_open = chosen.hits < read.hits_min if is_expected else read.is_by_code
        is_contradicted = is_open and 0 < read.hits_min <= other.hits
        customer_id = chosen.customer_id
        is_unproven = False
        if is_contradicted and notation is None:
            is_unproven = not same_customers(customer_id, other.customer_id, counts)
        if is_unproven:
            customer_id = customer_id.where(constant(False, values.index, BOOLEAN))
        return CustomerMatch(
            counts=counts,
            named=read.named,
            customer_id=customer_id,
            is_ambiguous=read.is_shared & read.is_by_code,
            ids=read.by_id.hits,
            codes=read.by_code.hits,
            bare=read.bare,
            is_by_code=read.is_by_code,
            is_unproven=is_unproven,
            is_contradicted=is_contradicted,
        )

    def _read(
        self,
        values: Column[Any],
        name: str,
        notation: CustomerNotation | None,
        counts: Column[Any],
        *,
        is_assumed: bool,
    ) -> _Readings:
        """Both readings of a column, see `match`."""
        ids_of = canonical_id(values)
        is_shared = constant(False, values.index, BOOLEAN)
        if len(self.shared):
            is_shared = values.isin(self.shared)
        by_id = _reading(look_up(ids_of, self.ids, "customer_id"), counts)
        by_code = _reading(look_up(values, self.codes, "code"), counts, is_shared)
        is_by_code = (
            _is_by_code(name, by_id.hits, by_code.hits) if notation is None else notation == "codes"
        )
        has_customer = (by_code if is_by_code else by_id).customer_id.notna()
        named = values.where(has_customer | (ids_of != _GUEST))
        hits_min = MATCHED_SHARE_MIN * _number(named.notna(), counts)
        bare = 0
        is_said = notation == "codes" and not is_assumed
        may_be_bare = notation is None and not is_by_code and by_id.hits < hits_min
        if is_said or may_be_bare:
            of_bare = look_up(values, self.bare_codes, "code")
            by_any_code = _reading(of_bare, counts, is_shared, first=by_code.customer_id)
            if is_said or hits_min <= by_any_code.hits:
                bare = by_any_code.hits - by_code.hits
                by_code = by_any_code
        return _Readings(by_id, by_code, is_by_code, bare, is_shared, named, hits_min)


class _Reading(NamedTuple):
    """The customers that values refer to if they are ids, or codes.

    Attributes:
        customer_id: of each value.
        hits: how many rows have such a value, of several customers too.
    """

    customer_id: Column[Any]
    hits: int


class _Readings(NamedTuple):
    """Both readings of a column, and which of them is chosen.

    Attributes:
        by_id, by_code: the readings.
        is_by_code: whether that of ERP codes is chosen.
        bare, named: see `CustomerMatch`.
        is_shared: boolean; the value is an ERP code that several customers have.
        hits_min: so many rows must name customers that are known.
    """

    by_id: _Reading
    by_code: _Reading
    is_by_code: bool
    bare: int
    is_shared: Column[Any]
    named: Column[Any]
    hits_min: float

    @property
    def chosen(self) -> _Reading:
        """The reading that is used."""
        return self.by_code if self.is_by_code else self.by_id

    @property
    def other(self) -> _Reading:
        """The one that is not."""
        return self.by_id if self.is_by_code else self.by_code


def _reading(
    found: pd.DataFrame,
    counts: Column[Any],
    is_shared: Column[Any] | None = None,
    *,
    first: Column[Any] | None = None,
) -> _Reading:
    """The reading that a look-up gives. `is_shared`: also a hit; `first`: customers that go before those found."""
    customer_id = found["customer_id"]
    if first is not None:
        customer_id = first.fillna(customer_id)
    is_hit = customer_id.notna()
    if is_shared is not None:
        is_hit = is_hit | is_shared
    return _Reading(customer_id, _number(is_hit, counts))


def _bare_codes(codes: pd.DataFrame) -> pd.DataFrame:
    """`code` and `customer_id` of the codes that zeros stand in front of, without these, where that names one code."""
    bare = codes["code"].str.lstrip("0")
    is_certain = (bare != codes["code"]) & (bare != "") & ~is_repeated(bare)
    return codes.assign(code=bare).loc[is_certain, ["code", "customer_id"]]


def _are_emails(values: Column[Any], counts: Column[Any]) -> bool:
    """Whether most of the rows that have a value have an e-mail address."""
    is_email = values.str.contains("@", regex=False)
    return 2 * _number(is_email, counts) > _number(values.notna(), counts)


def _names_a_kind(name: str) -> bool:
    """Whether the name of a column is that of ids or of codes."""
    return CODE_NAME.search(name) is not None or ID_NAME.search(name) is not None


def _is_by_code(name: str, ids: int, codes: int) -> bool:
    """Whether a column has ERP codes: those of which it has more, or half as many where its name is of that kind."""
    if _names_a_kind(name):
        prefers_code = CODE_NAME.search(name) is not None
        preferred = codes if prefers_code else ids
        if 0 < max(ids, codes) <= 2 * preferred:
            return prefers_code
    return codes > ids


def same_customers(left: Column[Any], right: Column[Any], counts: Column[Any]) -> bool:
    """Whether two columns of customers' ids refer to the same ones, where both refer to one."""
    is_both = left.notna() & right.notna()
    return _number(left == right, counts) >= AGREEMENT_MIN * _number(is_both, counts)


def _number(where: Column[Any], counts: Column[Any]) -> int:
    """How many rows are of the values for which this holds."""
    return int(counts[where.fillna(False)].sum())
