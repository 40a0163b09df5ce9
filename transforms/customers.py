"""Customers for analysis: comparable texts, real dates, names of price lists, the documents that count.

In: the raw customers with their documents, part by part, and the raw price lists (interface, Resources). Out: our
columns of each customer, and findings. How createdAt is written is decided before, and values that several customers
share are found after. Customers that are no longer listed stay in the table, with findings only about
rows and dates that could not be read. Price lists come from the other family, whose ids are texts where those of the
customers are numbers: both are brought to one notation before they are compared.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, date, datetime
from typing import Any, Final

import pandas as pd

from orderbridge.transforms.documents import with_documents
from orderbridge.transforms.findings import (
    Part,
    UniqueValues,
    combine_findings,
    date_text,
    rule_findings,
    table_finding,
)
from orderbridge.transforms.frames import (
    BIGINT,
    BOOLEAN,
    DATE,
    TEXT,
    TIMESTAMP,
    Column,
    constant,
    first_true,
    joined_text,
    look_up,
    typed,
)
from orderbridge.transforms.values.dates import (
    OFFSET_MAX,
    ColumnForm,
    DateContext,
    form_findings,
    read_dates,
    unread_findings,
)
from orderbridge.transforms.values.keys import BOOKKEEPING, canonical_id, clean_text, phone_digits
from orderbridge.transforms.values.texts import email_key

_TEXTS: Final = (
    "first_name",
    "last_name",
    "phone",
    "email",
    "login_code",
    "created_at",
    "price_list_id",
    "erp_code",
)
RAW_CUSTOMERS: Final = {
    "id": TEXT,
    **dict.fromkeys(_TEXTS, TEXT),
    "birthdate": DATE,
    "_extra": TEXT,
    **BOOKKEEPING,
}
LISTED_PRICE_LISTS: Final = {"id": TEXT, "name": TEXT, "_missing_since": TIMESTAMP}
"""The columns that are used; there may be others."""

CUSTOMERS: Final = {
    "customer_id": TEXT,
    "erp_code": TEXT,
    "login_code": TEXT,
    "first_name": TEXT,
    "last_name": TEXT,
    "full_name": TEXT,
    "email": TEXT,
    "email_normalized": TEXT,
    "phone": TEXT,
    "phone_digits": TEXT,
    "birthdate": DATE,
    "created_at": TIMESTAMP,
    "created_at_text": TEXT,
    "price_list_id": TEXT,
    "price_list_name": TEXT,
    "price_list_status": TEXT,
    "document_count": BIGINT,
    "default_document_number": TEXT,
    "default_fiscal_name": TEXT,
    "tax_document_number": TEXT,
    "is_missing": BOOLEAN,
    "_extra": TEXT,
    **BOOKKEEPING,
}
READ_CUSTOMERS: Final = ("id", *_TEXTS, "birthdate", "_missing_since")
"""The raw columns that are used; the others are passed on."""
CUSTOMER_FIELDS: Final = {
    name: kind
    for name, kind in CUSTOMERS.items()
    if (name not in RAW_CUSTOMERS and name not in ("customer_id", "created_at_text"))
    or name == "price_list_id"
} | {"created_at": TIMESTAMP}
"""The columns that are made here."""
AGE_YEARS_MAX: Final = 120
_EMAIL: Final = r"[^@\s]+@[^@\s]+"
_ID_NUMBER: Final = r"[0-9]+"
_NUMBER: Final = r"[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?"


def customers_part(
    part: tuple[pd.DataFrame, pd.DataFrame],
    form: ColumnForm,
    price_lists: pd.DataFrame,
    context: DateContext,
    gap: str,
) -> Part:
    """Reconciles any of the customers, with all of their documents.

    The default document is the first one that is marked as default; if none is, the only one, or none.
    `price_list_id` is the id in the price list's own notation where it is matched, else the original text.
    `price_list_status` is `matched`, `default` (the customer names no price list), `not_listed` (proven not to be
    listed, or not a possible id) or `unknown` (not among those read, and others may be listed). `phone_digits` are
    digits only, with a leading `+` written as `00`, so that both notations of a country code are equal.

    Args:
        part: the columns of `READ_CUSTOMERS`, one row for each id; those of `OWNED_DOCUMENTS`.
        form: of createdAt, as all customers prove it.
        price_lists: the columns of `LISTED_PRICE_LISTS`, of the raw price lists.
        context: with the instant that ages and future dates are relative to.
        gap: why others than `price_lists` may be listed; empty where they are proven to be all.

    Returns:
        The columns of `CUSTOMER_FIELDS`, in the order of the rows; findings; counts for `customers_findings`; values.
    """
    rows, documents = part
    dates = read_dates(rows["created_at"], context.order, context.timezone, form)
    names = [rows[name].str.strip().fillna("") for name in ("first_name", "last_name")]
    rows = rows.rename(columns={"id": "customer_id", "created_at": "created_at_text"}).assign(
        created_at=dates.at,
        is_missing=rows["_missing_since"].notna(),
        full_name=clean_text(joined_text(names, " ")),
        email_normalized=email_key(rows["email"]),
        phone_digits=phone_digits(rows["phone"]),
    )
    rows, unlisted, impossible = _with_price_lists(
        rows, typed(price_lists, LISTED_PRICE_LISTS), gap
    )
    rows, numbers, findings = with_documents(rows, documents)
    ids = rows["customer_id"]
    is_listed = ~rows["is_missing"]
    if not dates.is_unreadable:
        findings.append(unread_findings("customers", "created_at", "createdAt", dates, ids))
    counts = Counter(zone_unknown=dates.zone_count, unlisted=len(unlisted) if gap else 0)
    findings += [impossible, *_field_findings(rows, context.as_of), *([] if gap else [unlisted])]
    unique = {
        "document_number_shared": numbers,
        "erp_code_duplicate": UniqueValues(ids, clean_text(rows["erp_code"]), is_listed),
        "login_code_duplicate": UniqueValues(ids, clean_text(rows["login_code"]), is_listed),
        "email_duplicate": UniqueValues(ids, rows["email_normalized"], is_listed),
    }
    values = [
        pd.DataFrame({"rule": constant(rule, one.ids.index), "id": one.ids, "value": one.values})[
            (one.where & one.values.notna()).fillna(False)
        ]
        for rule, one in unique.items()
    ]
    table = rows[list(CUSTOMER_FIELDS)]
    return Part(table, combine_findings(findings), counts, pd.concat(values, ignore_index=True))


def customers_findings(counts: Counter[str], form: ColumnForm, gap: str) -> pd.DataFrame:
    """What is wrong with the customers as a whole, from the counts of all parts; see `customers_part`."""
    findings = form_findings("customers", "created_at", "createdAt", form, counts["zone_unknown"])
    if count := counts["unlisted"]:
        detail = f"priceListId of {count} customers: {gap}"
        findings.append(table_finding("customers", "price_lists_unproven", detail))
    return combine_findings(findings)


def _with_price_lists(
    rows: pd.DataFrame, price_lists: pd.DataFrame, gap: str
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Adds name and status of each customer's price list; of several with equal ids the first listed one counts.

    Returns:
        The rows; findings of ids that are not listed; findings of impossible ids.
    """
    lists = (
        price_lists.assign(
            key=canonical_id(price_lists["id"]), is_gone=price_lists["_missing_since"].notna()
        )
        .dropna(subset="key")
        .sort_values(["key", "is_gone", "id", "name"])
        .drop_duplicates("key")
    )
    key = canonical_id(rows["price_list_id"])
    own = look_up(key, lists, "key")
    is_named = key.notna()
    is_known = own["id"].notna()
    is_listed = is_known & ~own["is_gone"].fillna(True)
    is_impossible = (key.str.fullmatch(_NUMBER) & ~key.str.fullmatch(_ID_NUMBER)).fillna(False)
    status = first_true(
        [
            (~is_named, "default"),
            (is_listed, "matched"),
            (is_impossible | (not gap), "not_listed"),
        ],
        "unknown",
    )
    is_unlisted = is_named & ~is_listed & ~rows["is_missing"]
    detail = first_true([(is_known, "priceListId: listed before")], "priceListId")
    absent = rule_findings(
        "customers",
        "price_list_not_listed",
        rows["customer_id"],
        is_unlisted & ~is_impossible,
        detail,
    )
    impossible = rule_findings(
        "customers",
        "price_list_id_impossible",
        rows["customer_id"],
        is_unlisted & is_impossible,
        "priceListId",
    )
    rows = rows.assign(
        price_list_id=own["id"].where(is_listed, rows["price_list_id"]),
        price_list_name=own["name"],
        price_list_status=status,
    )
    return rows, absent, impossible


def _field_findings(rows: pd.DataFrame, as_of: datetime) -> list[pd.DataFrame]:
    """What is wrong with single fields of listed customers; `created_at` is null where it is unreadable."""
    ids = rows["customer_id"]
    is_listed = ~rows["is_missing"]
    born = rows["birthdate"]
    code = clean_text(rows["erp_code"])
    today = as_of.astimezone(UTC).date()
    oldest = date(
        today.year - AGE_YEARS_MAX,
        today.month,
        28 if (today.month, today.day) == (2, 29) else today.day,
    )
    birthdate = joined_text(["birthdate ", date_text(born)])
    created_at = joined_text(["createdAt ", date_text(rows["created_at"])])
    cases: tuple[tuple[str, Column[Any], Column[Any] | str], ...] = (
        ("erp_code_padded", code != rows["erp_code"], "erpCode"),
        ("erp_code_missing", code.isna(), "erpCode"),
        (
            "login_missing",
            rows["email_normalized"].isna() & clean_text(rows["login_code"]).isna(),
            "email, loginCode",
        ),
        ("email_malformed", ~rows["email_normalized"].str.fullmatch(_EMAIL), "email"),
        (
            "phone_without_digits",
            clean_text(rows["phone"]).notna() & rows["phone_digits"].isna(),
            "phone",
        ),
        ("name_missing", rows["full_name"].isna(), "firstName, lastName"),
        ("birthdate_future", born > today, birthdate),
        ("birthdate_absurd", born < oldest, birthdate),
        ("created_at_future", rows["created_at"] > as_of + OFFSET_MAX, created_at),
    )
    return [
        rule_findings("customers", name, ids, where & is_listed, detail)
        for name, where, detail in cases
    ]
