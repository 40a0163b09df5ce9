"""Customers for analysis: comparable texts, real dates, names of price lists, the documents that count.

In: the raw customers, their documents and the raw price lists (interface, Resources). Out: one row per customer, the
findings, and how createdAt was read. Customers that are no longer listed stay in the table, with findings only about
rows and dates that could not be read. Price lists come from the other family, whose ids are texts where those of the
customers are numbers: both are brought to one notation before they are compared.
"""

from __future__ import annotations

from datetime import UTC, date, datetime
from typing import Any, Final

import numpy as np
import pandas as pd

from transforms.date_forms import DateOrder
from transforms.dates import OFFSET_MAX, DateColumn, date_findings, read_dates
from transforms.documents import default_row_per_owner, first_row_per_owner, sort_documents
from transforms.findings import (
    combine_findings,
    count_text,
    date_text,
    rule_findings,
    shared_value_findings,
    summarize_unless_proven,
)
from transforms.frames import (
    BIGINT,
    BOOLEAN,
    DATE,
    TEXT,
    TIMESTAMP,
    Column,
    first_true,
    joined_text,
    look_up,
    take_or_null,
    typed,
)
from transforms.keys import BOOKKEEPING, canonical_id, clean_text, one_row_per_id, phone_digits
from transforms.texts import email_key

RAW_CUSTOMERS: Final = {
    "id": TEXT,
    "first_name": TEXT,
    "last_name": TEXT,
    "phone": TEXT,
    "email": TEXT,
    "login_code": TEXT,
    "created_at": TEXT,
    "price_list_id": TEXT,
    "erp_code": TEXT,
    "birthdate": DATE,
    "_extra": TEXT,
    **BOOKKEEPING,
}
RAW_DOCUMENTS: Final = {
    "customer_id": TEXT,
    "position": BIGINT,
    "number": TEXT,
    "fiscal_name": TEXT,
    "is_default": BOOLEAN,
    "for_taxes": BOOLEAN,
}
"""The columns that are used; there may be others."""
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
AGE_YEARS_MAX: Final = 120
_EMAIL: Final = r"[^@\s]+@[^@\s]+"
_ID_NUMBER: Final = r"[0-9]+"
_NUMBER: Final = r"[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?"


def customers(
    raw: pd.DataFrame,
    documents: pd.DataFrame,
    price_lists: pd.DataFrame,
    as_of: datetime,
    date_order: DateOrder | None = None,
    coverage_gap: str = "",
    timezone: str | None = None,
) -> tuple[pd.DataFrame, pd.DataFrame, DateColumn]:
    """Reconciles the customers.

    The default document is the first one that is marked as default; if none is, the only one, or none.
    `price_list_id` is the id in the price list's own notation where it is matched, else the original text.
    `price_list_status` is `matched`, `default` (the customer names no price list), `not_listed` (proven not to be
    listed, or not a possible id) or `unknown` (not among those read, and others may be listed). `phone_digits` are
    digits only, with a leading `+` written as `00`, so that both notations of a country code are equal.

    Args:
        raw: the columns of `RAW_CUSTOMERS`.
        documents: the columns of `RAW_DOCUMENTS`, of the raw child table.
        price_lists: the columns of `LISTED_PRICE_LISTS`, of the raw price lists.
        as_of: the instant, with its offset, that ages and future dates are relative to.
        date_order: see `read_dates`.
        coverage_gap: why others than `price_lists` may be listed; empty where they are proven to be all.
        timezone: see `read_dates`.

    Returns:
        The columns of `CUSTOMERS`, sorted by id; findings; how createdAt was read.

    Raises:
        ValueError: as_of has no offset.
    """
    if as_of.tzinfo is None:
        raise ValueError("as_of needs an offset: datetime(..., tzinfo=UTC)")
    rows, findings = one_row_per_id(typed(raw, RAW_CUSTOMERS), "customers")
    dates = read_dates(rows["created_at"], date_order, timezone)
    rows = (
        rows.rename(columns={"id": "customer_id", "created_at": "created_at_text"})
        .assign(created_at=dates.at, is_missing=lambda rows: rows["_missing_since"].notna())
        .pipe(_with_comparable_texts)
    )
    rows, list_findings = _with_price_lists(rows, typed(price_lists, LISTED_PRICE_LISTS), coverage_gap)
    rows, document_findings = _with_documents(rows, typed(documents, RAW_DOCUMENTS))
    findings += [
        *document_findings,
        *list_findings,
        *_key_findings(rows),
        *_field_findings(rows, as_of),
        *_creation_findings(rows, dates, as_of),
    ]
    return typed(rows, CUSTOMERS), combine_findings(findings), dates


def _with_comparable_texts(rows: pd.DataFrame) -> pd.DataFrame:
    """Adds full name, normalized e-mail address and digits of the phone number."""
    names = [rows[name].str.strip().fillna("") for name in ("first_name", "last_name")]
    return rows.assign(
        full_name=clean_text(joined_text(names, " ")),
        email_normalized=email_key(rows["email"]),
        phone_digits=phone_digits(rows["phone"]),
    )


def _with_price_lists(
    rows: pd.DataFrame, price_lists: pd.DataFrame, gap: str
) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Adds name and status of each customer's price list; of several with equal ids the first listed one counts."""
    lists = (
        price_lists.assign(key=canonical_id(price_lists["id"]), is_gone=price_lists["_missing_since"].notna())
        .dropna(subset="key")
        .sort_values(["key", "is_gone", "id", "name"])
        .drop_duplicates("key")
    )
    key = canonical_id(rows["price_list_id"])
    own = look_up(key, lists, "key")
    is_named, is_known = key.notna(), own["id"].notna()
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
        "customers", "price_list_not_listed", rows["customer_id"], is_unlisted & ~is_impossible, detail
    )
    impossible = rule_findings(
        "customers", "price_list_id_impossible", rows["customer_id"], is_unlisted & is_impossible, "priceListId"
    )
    rows = rows.assign(
        price_list_id=own["id"].where(is_listed, rows["price_list_id"]),
        price_list_name=own["name"],
        price_list_status=status,
    )
    return rows, [summarize_unless_proven(absent, "price_lists_unproven", "priceListId", gap), impossible]


def _with_documents(rows: pd.DataFrame, documents: pd.DataFrame) -> tuple[pd.DataFrame, list[pd.DataFrame]]:
    """Adds how many documents each customer has, and the fields of those that count."""
    owners = rows[["customer_id", "is_missing"]].assign(owner=np.arange(len(rows)))
    owned = look_up(documents["customer_id"], owners, "customer_id")
    is_orphan = owned["owner"].isna()
    owned = sort_documents(documents.assign(owner=owned["owner"], is_missing=owned["is_missing"])[~is_orphan])
    owned = owned.assign(
        number_key=clean_text(owned["number"]),
        is_default=owned["is_default"].fillna(False),
        for_taxes=owned["for_taxes"].fillna(False),
    )
    owner, size = owned["owner"].to_numpy(np.int64), len(rows)
    default = take_or_null(owned, default_row_per_owner(owner, owned["is_default"].to_numpy(np.bool_), size))
    tax = take_or_null(owned[["number"]], first_row_per_owner(owner, owned["for_taxes"].to_numpy(np.bool_), size))

    def count(where: Column[Any] | None = None) -> Column[Any]:
        counted = owner if where is None else owner[where.to_numpy(np.bool_)]
        return pd.Series(np.bincount(counted, minlength=size), rows.index)

    total, defaults, taxes = count(), count(owned["is_default"]), count(owned["for_taxes"])
    unnumbered = count(owned["number_key"].isna())
    cases = (
        ("document_default_missing", (total > 1) & (defaults == 0), total, " documents"),
        ("document_default_several", defaults > 1, defaults, " documents are default"),
        ("document_tax_missing", (total > 0) & (taxes == 0), total, " documents"),
        ("document_tax_several", taxes > 1, taxes, " documents are for taxes"),
        ("document_number_missing", unnumbered > 0, unnumbered, " documents without a number"),
    )
    ids, is_listed = rows["customer_id"], ~rows["is_missing"]
    findings = [
        rule_findings("customers", "document_orphan", documents["customer_id"], is_orphan, "documents"),
        rule_findings("customers", "document_missing", ids, (total == 0) & is_listed, "documents"),
        shared_value_findings(
            "customers", "document_number_shared", owned["customer_id"], owned["number_key"], ~owned["is_missing"]
        ),
    ]
    for name, where, counts, words in cases:
        found = where & is_listed
        findings.append(rule_findings("customers", name, ids[found], detail=count_text("", counts[found], words)))
    rows = rows.assign(
        document_count=total,
        default_document_number=default["number"],
        default_fiscal_name=default["fiscal_name"],
        tax_document_number=tax["number"],
    )
    return rows, findings


def _key_findings(rows: pd.DataFrame) -> list[pd.DataFrame]:
    """Keys that several listed customers share."""
    keys = {
        "erp_code_duplicate": clean_text(rows["erp_code"]),
        "login_code_duplicate": clean_text(rows["login_code"]),
        "email_duplicate": rows["email_normalized"],
    }
    return [
        shared_value_findings("customers", name, rows["customer_id"], values, ~rows["is_missing"])
        for name, values in keys.items()
    ]


def _field_findings(rows: pd.DataFrame, as_of: datetime) -> list[pd.DataFrame]:
    """What is wrong with single fields of listed customers."""
    ids, is_listed = rows["customer_id"], ~rows["is_missing"]
    born, code = rows["birthdate"], clean_text(rows["erp_code"])
    today = as_of.astimezone(UTC).date()
    oldest = date(today.year - AGE_YEARS_MAX, today.month, 28 if (today.month, today.day) == (2, 29) else today.day)
    birthdate = joined_text(["birthdate ", date_text(born)])
    cases: tuple[tuple[str, Column[Any], Column[Any] | str], ...] = (
        ("erp_code_padded", code != rows["erp_code"], "erpCode"),
        ("erp_code_missing", code.isna(), "erpCode"),
        ("login_missing", rows["email_normalized"].isna() & clean_text(rows["login_code"]).isna(), "email, loginCode"),
        ("email_malformed", ~rows["email_normalized"].str.fullmatch(_EMAIL), "email"),
        ("phone_without_digits", clean_text(rows["phone"]).notna() & rows["phone_digits"].isna(), "phone"),
        ("name_missing", rows["full_name"].isna(), "firstName, lastName"),
        ("birthdate_future", born > today, birthdate),
        ("birthdate_absurd", born < oldest, birthdate),
    )
    return [rule_findings("customers", name, ids, where & is_listed, detail) for name, where, detail in cases]


def _creation_findings(rows: pd.DataFrame, dates: DateColumn, as_of: datetime) -> list[pd.DataFrame]:
    if dates.is_unreadable:
        return date_findings("customers", "created_at", "createdAt", dates, rows["customer_id"])
    is_future = (rows["created_at"] > as_of + OFFSET_MAX) & ~rows["is_missing"]
    detail = joined_text(["createdAt ", date_text(rows["created_at"])])
    return [
        *date_findings("customers", "created_at", "createdAt", dates, rows["customer_id"]),
        rule_findings("customers", "created_at_future", rows["customer_id"], is_future, detail),
    ]
