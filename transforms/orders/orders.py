"""Orders, whose fields are not shown: who ordered, when, for how much, in which currency, and how far the order is.

In: the columns of the raw orders that hold the fields (see `transforms.orders.fields`), part by part, and the
reconciled customers. Out: our columns of each order, and findings. What concerns the column as a whole (which customers
its values are, the form of the dates, the notation of the totals) is decided before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.findings import (
    Part,
    combine_findings,
    date_text,
    rule_findings,
    table_finding,
    to_answer,
)
from orderbridge.transforms.frames import (
    BOOLEAN,
    DATE,
    MONEY,
    TEXT,
    TIMESTAMP,
    Column,
    array,
    column,
    constant,
    first_true,
    joined_text,
    typed,
)
from orderbridge.transforms.orders.amount_unit import in_units
from orderbridge.transforms.orders.cancelled import LOST
from orderbridge.transforms.orders.columns import has_form, money, texts_of
from orderbridge.transforms.orders.customer_evidence import NOTATION
from orderbridge.transforms.orders.customer_index import (
    CustomerIndex,
    CustomerMatch,
    CustomerNotation,
)
from orderbridge.transforms.orders.fields import CHARGES, FieldChoice
from orderbridge.transforms.orders.names import ORDER_NAMES
from orderbridge.transforms.questions import (
    Answer,
    Choice,
    Evidence,
    Question,
    answer_about,
    question,
)
from orderbridge.transforms.values.dates import (
    OFFSET_MAX,
    ColumnForm,
    DateColumn,
    DateContext,
    form_findings,
    local_days,
    read_dates,
    unread_findings,
)
from orderbridge.transforms.values.texts import without_blank

ORDERS: Final = {
    "order_id": TEXT,
    "customer_id": TEXT,
    "customer_status": TEXT,
    "ordered_at": TIMESTAMP,
    "total": MONEY,
    "order_status": TEXT,
    "currency": TEXT,
    "is_cancelled": BOOLEAN,
    "status_class": TEXT,
    "is_sale": BOOLEAN,
    "refunded": MONEY,
    "is_missing": BOOLEAN,
    "ordered_date": DATE,
    "unknown_because": TEXT,
    "tax_in_total": MONEY,
    "shipping_in_total": MONEY,
    "charges_in_total": MONEY,
}
"""The columns that every reconciled order has; those of the raw orders follow."""
SHARE_FALL_MAX: Final = 0.1
"""A matched share may fall by so much between two runs: new guests, removed customers."""

ORDER_CUSTOMERS: Final = {"customer_id": TEXT, "customer_status": TEXT, "is_ambiguous": BOOLEAN}
_UTC_NAMES: Final = ("_gmt", "_utc")
"""How the names of columns end whose times are in UTC, whatever the time zone is."""
_MIDNIGHT_IN_UTC: Final = r"[0-9/-]{8,10}[T ]00:00(:00(\.0+)?)?(Z| ?UTC|[+-]00:?00)"
_TERM: Final = pa.decimal128(37, 9)
"""Amounts of this type have a sum that is MONEY."""
_LEAST_LEFT: Final = 0.0099
"""A cent, as floats count it. A total that is the sum of lines with discounts has fractions of cents."""
UNKNOWN_STATUS: Final = "order_status: what this status means is not known"
"""Why it is not known whether an order is a sale."""
WITNESS: Final = "cancelled:"
"""Before the name of a column that may say that an order is cancelled."""


@dataclass(frozen=True, slots=True)
class OrderCustomers:
    """The customers of the values of a column.

    Attributes:
        table: the columns of `ORDER_CUSTOMERS`, a row for each value.
        notation: the question how the column is read; None: nothing shows it.
        matched_share: of the listed orders, those of a known customer; None where none is listed.
        unknown: why it is not known who ordered; empty where it is.
        findings: about the column as a whole.
    """

    table: pd.DataFrame
    notation: Question | None
    matched_share: float | None
    unknown: str
    findings: pd.DataFrame


def order_customers(
    values: Column[Any],
    counts: Column[Any],
    index: CustomerIndex,
    name: str,
    answer: Answer | None = None,
    last_matched_share: float | None = None,
) -> OrderCustomers:
    """The customers that the distinct values of a column refer to, by its name; `counts` are listed orders.

    `customer_status` is `matched`, `unknown` (the customer is not in the table), `none` (the order has no customer).
    The column is read as ids or as ERP codes, as the answer in force says or `CustomerIndex.match` finds; `customer_id`
    is the id of the customer. Of an unknown one it is the value of a column of ids, else null. Where the reading is
    unproven, or far fewer orders are of a known customer than `last_matched_share`, that of the last run, nothing is
    stated about the others: null.
    """
    answer = answer_about(answer, name)
    is_assumed = answer is not None and answer.is_assumption
    match = index.match(texts_of(values), name, _notation(answer), counts, is_assumed=is_assumed)
    notation = _notation_question(match, name, answer)
    named = match.named
    known = match.customer_id
    status = first_true([(known.notna(), "matched"), (named.notna(), "unknown")], "none")
    findings: list[pd.DataFrame] = []
    unknown = ""
    if match.is_unproven:
        detail = to_answer(f"{name}: {match.evidence}", NOTATION)
        findings.append(table_finding("orders", "customer_notation", detail))
        unknown = f"{name}: ids or ERP codes, neither is proven"
        status = status.where(named.isna())
    elif notation is not None and notation.state == "contradicted":
        detail = to_answer(f"customer_id: {notation.reason}", NOTATION)
        findings.append(table_finding("orders", "field_changed", detail, "customer_id"))
    listed = int(counts.sum())
    share: float | None = None
    if listed:
        share = int(counts[known.notna()].sum()) / listed
        if last_matched_share is not None and share < last_matched_share - SHARE_FALL_MAX:
            unknown = f"{name}: {share:.0%} of {listed} orders are of a known customer, {last_matched_share:.0%} before"
            findings.append(table_finding("orders", "matched_share_fell", unknown))
            status = status.where(known.notna())
    customer_id = known if match.is_by_code or match.is_unproven else known.fillna(named)
    table = pd.DataFrame(
        {"customer_id": customer_id, "customer_status": status, "is_ambiguous": match.is_ambiguous}
    )
    return OrderCustomers(table, notation, share, unknown, combine_findings(findings))


def _notation(answer: Answer | None) -> CustomerNotation | None:
    if answer is None:
        return None
    return "codes" if answer.value == "codes" else "ids"


def _notation_question(match: CustomerMatch, name: str, answer: Answer | None) -> Question | None:
    """The question how a column names customers; None where too few are known to tell."""
    against = ""
    if answer is not None and match.is_contradicted:
        against = f"{name} is read as {answer.value}, but {match.evidence}"
    counts = {"ids": match.ids, "codes": match.codes}
    zeros = f", {match.bare} of them without zeros in front" if match.bare else ""
    words = {"ids": "are ids of customers", "codes": f"are {match.code_words}{zeros}"}
    total = match.counts.sum()
    choices = [
        Choice(
            value,
            f"{count} of {total} {words[value]}",
            against=against if answer is not None and value == answer.value else "",
        )
        for value, count in counts.items()
    ]
    proposal = match.notation
    dispute = "ids or ERP codes, neither is proven" if match.is_unproven else ""
    if proposal is None and answer is None and not dispute:
        return None
    evidence = Evidence(
        NOTATION,
        tuple(choices),
        proposal,
        is_proven=proposal is not None,
        dispute=dispute,
        about=name,
    )
    return question(evidence, answer)


def orders_part(
    rows: pd.DataFrame,
    choice: FieldChoice,
    form: ColumnForm,
    context: DateContext,
    gap: str,
    *,
    are_dates: bool = False,
) -> Part:
    """Reconciles any of the orders.

    Args:
        rows: `id`, `is_missing`, the values of the columns of `choice` by field, those of the witnesses of its
            cancellation as `cancelled:` and their name, and of the customer the columns of `ORDER_CUSTOMERS`.
        choice: the columns of all orders, and how these are read.
        form: of the column of dates, as all of them prove it.
        context: columns of dates named `…_gmt` or `…_utc` are in UTC, whatever its time zone.
        gap: why other customers than the known ones may be listed; empty where these are proven to be all.
        are_dates: orders at midnight in UTC have a date, which is the same in every zone.

    Returns:
        The columns of `ORDERS`, in the order of the rows; findings; counts for `orders_findings`.
    """
    fields = choice.fields
    is_in_utc = choice.is_in_utc or is_named_utc(fields.ordered_at or "")
    timezone = "UTC" if is_in_utc else context.timezone
    dates = read_dates(_texts(rows, "ordered_at"), context.order, timezone, form)
    days = local_days(dates.at, context.zone)
    if are_dates:
        is_date = is_midnight_in_utc(_texts(rows, "ordered_at"))
        days = days.where(~is_date, local_days(dates.at, None))
    currency = _texts(rows, "currency").str.upper()
    amounts = _amounts(rows, choice, currency)
    total = amounts["total"]
    status = _texts(rows, "order_status")
    said = {name: _texts(rows, f"{WITNESS}{name}") for name in choice.cancellation.columns}
    status_class, disputed = choice.cancellation.read(said, status)
    # money that goes back is no sale, and makes nobody active
    is_kept = status_class.isin(["sale", "unknown"])
    is_back = (total < 0) & is_kept
    is_all_back = _is_all_back(total, amounts["refunded"], fields.total) & is_kept
    status_class = first_true([(is_back | is_all_back, "refunded")], status_class)
    all_of_it = amounts["refunded"].fillna(column(pc.abs(array(total)), rows.index))
    refunded = amounts["refunded"].where(status_class != "refunded", all_of_it)
    ours = rows.rename(columns={"id": "order_id"}).assign(
        ordered_at=dates.at,
        total=total,
        **{f"{name}_in_total": amounts[name] for name in CHARGES},
        charges_in_total=_sum_of([amounts[name] for name in choice.charges], rows.index),
        order_status=status,
        status_class=status_class,
        is_cancelled=_is_of_class(status_class, LOST),
        is_sale=_is_of_class(status_class, ("sale",)),
        currency=currency,
        refunded=refunded,
        ordered_date=days.fillna(dates.doubled_day),
    )
    ours["unknown_because"] = _unknown_because(ours, choice)
    counts = _counts(ours, is_back)
    counts.update(zone_unknown=dates.zone_count)
    counts.update({f"disputed {name}": count for name, count in disputed.items()})
    for name in choice.charges:
        is_unread = amounts[name].isna() & ~rows["is_missing"]
        counts[f"unread {name}"] = int(is_unread.sum())
    findings = [
        *_customer_findings(ours, fields.customer_id or "", gap, counts),
        *_date_findings(ours, fields.ordered_at or "", dates, context),
    ]
    if "has_refund" in rows:
        is_unknown = rows["has_refund"] & rows["refunded"].isna() & is_kept & ~rows["is_missing"]
        findings.append(rule_findings("orders", "refund_unknown", rows["id"], is_unknown))
    if "total" in rows:
        findings += _total_findings(ours, texts_of(rows["total"]), choice, counts)
    return Part(typed(ours, ORDERS), combine_findings(findings), counts)


def _amounts(
    rows: pd.DataFrame, choice: FieldChoice, currency: Column[Any]
) -> dict[str, Column[Any]]:
    """Total, what went back of it, tax and shipping (MONEY) in units of the currency; null where one is not known.

    Tax and shipping are 0 where their column has no value.
    """
    nothing = constant(None, rows.index, MONEY)
    amounts = {"total": nothing, "refunded": nothing, **dict.fromkeys(CHARGES, nothing)}
    if "total" in rows:
        amounts["total"] = money(rows["total"], choice.amounts)
    if "refunded" in rows:
        amounts["refunded"] = rows["refunded"].where(rows["refunded"] > 0)
    for name, evidence in choice.charges.items():
        read = money(rows[name], evidence)
        amounts[name] = read.mask(texts_of(rows[name]).isna(), Decimal(0))
    if choice.fields.is_in_cents:
        divided_by = None if choice.is_shown_by_lines else currency
        amounts = {name: in_units(values, divided_by) for name, values in amounts.items()}
    amounts["refunded"] = amounts["refunded"].where(amounts["total"].notna())
    return amounts


def _sum_of(amounts: Sequence[Column[Any]], index: pd.Index[Any]) -> Column[Any]:
    """The sum of amounts of each order (MONEY); null where one of them is not known, and without any."""
    if not amounts:
        return constant(None, index, MONEY)
    total = array(amounts[0])
    for one in amounts[1:]:
        total = pc.add(total.cast(_TERM), array(one).cast(_TERM))
    return column(total.cast(MONEY), index)


def _is_all_back(total: Column[Any], refunded: Column[Any], name: str | None) -> Column[Any]:
    """Whether less than a cent is left of the total of each order; a total after refunds is what is left of it."""
    if name in ORDER_NAMES["total_after_refunds"]:
        return constant(False, total.index, BOOLEAN)
    left = total.astype("float64") - refunded.astype("float64")
    return (total > 0) & (left < _LEAST_LEFT)


def _unknown_because(ours: pd.DataFrame, choice: FieldChoice) -> Column[Any]:
    """Why a field of each order is not known; null where all are."""
    looked_at = {
        "customer_id": "customer_status",
        "ordered_at": "ordered_at",
        "total": "total",
        "order_status": "is_sale",
    }
    reasons = [
        pc.if_else(
            array(ours[column].isna()),
            f"{choice.unknown.get(name, f'{name}: no readable value')}; ",
            "",
        )
        for name, column in looked_at.items()
    ]
    because = pc.utf8_rtrim(pc.binary_join_element_wise(*reasons, ""), "; ")
    return without_blank(column(because, ours.index))


def _counts(ours: pd.DataFrame, is_back: Column[Any]) -> Counter[str]:
    """Counts for findings about all orders. Those whose money went back are not counted as cancelled."""
    listed = ours[~ours["is_missing"]]
    counted = listed[listed["total"].notna()]
    is_cancelled = counted["is_cancelled"] & ~is_back[counted.index].fillna(False)
    counts = Counter(f"currency {name}" for name in counted["currency"].dropna().unique())
    counts["listed"] = len(listed)
    counts["status unknown"] = int(listed["is_sale"].isna().sum())
    counts["with total"] = len(counted)
    counts["cancelled with total"] = int((is_cancelled & (counted["total"] != 0)).sum())
    return counts


def _date_findings(
    ours: pd.DataFrame, name: str, dates: DateColumn, context: DateContext
) -> Iterator[pd.DataFrame]:
    """Dates that cannot be read although their form is known, and those of the future."""
    if not dates.is_unreadable:
        yield unread_findings("orders", "ordered_at", name, dates, ours["order_id"])
    is_future = (ours["ordered_at"] > context.as_of + OFFSET_MAX) & ~ours["is_missing"]
    detail = joined_text([f"{name} ", date_text(ours["ordered_at"])])
    yield rule_findings("orders", "ordered_at_future", ours["order_id"], is_future, detail)


def _total_findings(
    ours: pd.DataFrame, texts: Column[Any], choice: FieldChoice, counts: Counter[str]
) -> Iterator[pd.DataFrame]:
    """Totals that cannot be read or are negative; those that no notation is proven for are counted."""
    is_unread = texts.notna() & ours["total"].isna()
    if choice.amounts.is_ambiguous:
        counts["unread totals"] = int(is_unread.sum())
        return
    is_negative = (ours["total"] < 0) & ~ours["is_missing"]
    for rule, where in (("total_unreadable", is_unread), ("total_negative", is_negative)):
        yield rule_findings("orders", rule, ours["order_id"], where, choice.fields.total or "")


def is_named_utc(column: str) -> bool:
    """Whether the name of a column of dates says that they are in UTC, such as `created_at_gmt`."""
    return column.endswith(_UTC_NAMES)


def is_midnight_in_utc(texts: Column[Any]) -> Column[Any]:
    """Whether each time is midnight in UTC, as platforms write a date; not so for nulls."""
    return has_form(texts, _MIDNIGHT_IN_UTC)


def orders_findings(
    counts: Counter[str], choice: FieldChoice, form: ColumnForm, gap: str
) -> pd.DataFrame:
    """What is wrong with the orders as a whole (`FINDINGS`), from the counts of all parts; see `orders_part`."""
    findings: list[pd.DataFrame] = []
    names = choice.fields.columns()
    if unlisted := counts["unlisted"]:
        detail = f"{names['customer_id']} of {unlisted} orders: {gap}"
        findings.append(table_finding("orders", "customers_unproven", detail))
    findings += form_findings(
        "orders", "ordered_at", names.get("ordered_at", ""), form, counts["zone_unknown"]
    )
    if choice.amounts.is_ambiguous:
        detail = f"{names['total']}: {counts['unread totals']} texts such as 1.234"
        findings.append(table_finding("orders", "total_notation", detail))
    unread = {name: counts[f"unread {name}"] for name in CHARGES}
    parts = [f"{name} in {names[name]} of {count}" for name, count in unread.items() if count]
    if parts:
        detail = f"{', '.join(parts)} of {counts['listed']} orders"
        findings.append(table_finding("orders", "charges_unreadable", detail))
    currencies = sum(name.startswith("currency ") for name in counts)
    if currencies > 1:
        findings.append(table_finding("orders", "currencies_mixed", f"{currencies} currencies"))
    if unknown := counts["status unknown"]:
        detail = f"order_status: {names['order_status']} of {unknown} of {counts['listed']} orders"
        findings.append(table_finding("orders", "status_unknown", detail, "order_status"))
    if cancelled := counts["cancelled with total"]:
        detail = f"{cancelled} of {counts['with total']} orders with a total are cancelled"
        findings.append(table_finding("orders", "cancelled_with_total", detail))
    cancellation = choice.cancellation
    stating = [*cancellation.witnesses, cancellation.status]
    contrary = {name: counts[f"disputed {name}"] for name in stating}
    if any(contrary.values()):
        said = ", ".join(f"{name} in {count} orders" for name, count in contrary.items() if count)
        findings.append(
            table_finding("orders", "cancelled_disputed", f"the contrary is said by {said}")
        )
    return combine_findings(findings)


def _customer_findings(
    ours: pd.DataFrame, name: str, gap: str, counts: Counter[str]
) -> list[pd.DataFrame]:
    """Orders of no or of an unknown customer; those that a gap may explain are counted."""
    ids = ours["order_id"]
    status = ours["customer_status"]
    is_listed = ~ours["is_missing"]
    is_unknown = (status == "unknown") & is_listed
    is_absent = (is_unknown & ~ours["is_ambiguous"]).fillna(False)
    if gap:
        counts["unlisted"] = int(is_absent.sum())
    return [
        rule_findings("orders", "customer_unknown", ids, is_absent & (not gap), name),
        rule_findings("orders", "customer_ambiguous", ids, is_unknown & ours["is_ambiguous"], name),
        rule_findings("orders", "customer_missing", ids, (status == "none") & is_listed, name),
    ]


def _is_of_class(classes: Column[Any], wanted: Sequence[str]) -> Column[Any]:
    """Whether the class of each order is one of these; null where it is not known."""
    values = array(classes)
    is_wanted = pc.is_in(values, value_set=pa.array(wanted, TEXT))
    return column(pc.if_else(pc.not_equal(values, "unknown"), is_wanted, None), classes.index)


def _texts(rows: pd.DataFrame, name: str) -> Column[Any]:
    return texts_of(rows[name]) if name in rows else constant(None, rows.index)


def raw_column_names(ours: Iterable[str], theirs: Sequence[str]) -> dict[str, str]:
    """The names of the raw columns in a table that has our columns too, by their own; some begin with `raw_`.

    The warehouse does not distinguish upper and lower case.
    """
    names: dict[str, str] = {}
    for name in theirs:
        taken = {
            other.casefold()
            for other in (*ours, *names.values(), *theirs)
            if other != name or other in ours
        }
        new = name
        while new.casefold() in taken:
            new = f"raw_{new}"
        names[name] = new
    return names
