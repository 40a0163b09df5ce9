"""Customers as an analyst asks for them: comparable texts, real dates, price lists by name, the documents that count.

In: the raw customers, their documents and the raw price lists (interface, Resources). Out: one row per customer, the
findings, and how createdAt was read. Customers that are no longer listed stay, and raise only findings about rows and
dates that could not be read. Price lists come from the other family, whose ids are texts where these are numbers: both
are brought to one form before they are compared.
"""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.dates import DateColumn, DateOrder, read_dates
from transforms.documents import default_row_per_owner, first_row_per_owner, sort_documents, take_or_null
from transforms.frames import BIGINT, BOOLEAN, DATE, TEXT, TIMESTAMP, Bools, Ints, array, from_arrow, typed
from transforms.keys import (
    BOOKKEEPING,
    canonical_id,
    clean_text,
    fold_case,
    one_row_per_id,
    phone_digits,
    positions,
    shared_value_findings,
)
from transforms.rules import (
    combine_findings,
    count_text,
    date_text,
    rule_findings,
    summarize_unless_proven,
    table_finding,
)

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
"""The columns that are used; others may be there."""
LISTED_PRICE_LISTS: Final = {"id": TEXT, "name": TEXT, "_missing_since": TIMESTAMP}
"""The columns that are used; others may be there."""

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
_OFFSET_MAX: Final = timedelta(hours=14)
"""How far ahead of UTC a time without an offset may have been written."""
_EMAIL: Final = r"^[^@\s]+@[^@\s]+$"
_ID_NUMBER: Final = r"^[0-9]+$"
_NUMBER: Final = r"^[-+]?[0-9]*\.?[0-9]+([eE][-+]?[0-9]+)?$"


def customers(
    raw: pd.DataFrame,
    documents: pd.DataFrame,
    price_lists: pd.DataFrame,
    as_of: datetime,
    date_order: DateOrder | None = None,
    doubt: str = "",
) -> tuple[pd.DataFrame, pd.DataFrame, DateColumn]:
    """Reconciles the customers.

    The default document is the one flagged so, the first of several; where none is flagged, the only one there is, or
    none. `price_list_id` is the id that the price list itself has where it is matched, else the text as it came.
    `price_list_status` is `matched`, `default` (none is named), `not_listed` (it is proven not to be listed, or can be
    the id of none) or `unknown` (it is not among those read, and others may be listed).
    `phone_digits` are digits only, a leading `+` written `00`, so that both notations of a country's code are alike.

    Args:
        raw: the columns of `RAW_CUSTOMERS`.
        documents: the columns of `RAW_DOCUMENTS`, of the raw child table.
        price_lists: the columns of `LISTED_PRICE_LISTS`, of the raw price lists.
        as_of: the instant for which future and age are told, with its offset.
        date_order: see `read_dates`.
        doubt: why a price list may be listed that is not among them; empty where they are proven to be all.

    Returns:
        The columns of `CUSTOMERS`, sorted by id; findings; how createdAt was read.

    Raises:
        ValueError: as_of is without an offset.
    """
    if as_of.tzinfo is None:
        raise ValueError("as_of needs an offset: datetime(..., tzinfo=UTC)")
    rows, findings = one_row_per_id(typed(raw, RAW_CUSTOMERS), "customers")
    read = read_dates(rows["created_at"], date_order)
    of = {name: array(rows[name]) for name in RAW_CUSTOMERS}
    is_missing = pc.is_valid(of["_missing_since"])
    chosen, about_documents = _documents(typed(documents, RAW_DOCUMENTS), of["id"], pc.invert(is_missing))
    named, about_lists = _price_lists(of, typed(price_lists, LISTED_PRICE_LISTS), pc.invert(is_missing), doubt)
    names = (pc.fill_null(of[name], "") for name in ("first_name", "last_name"))
    full_name = clean_text(pc.binary_join_element_wise(*(pc.utf8_trim_whitespace(name) for name in names), " "))
    columns = {
        **of,
        **chosen,
        **named,
        "customer_id": of["id"],
        "full_name": full_name,
        "email_normalized": fold_case(of["email"]),
        "phone_digits": phone_digits(of["phone"]),
        "created_at": array(read.at),
        "created_at_text": of["created_at"],
        "is_missing": is_missing,
    }
    made = from_arrow(pa.table({name: columns[name].cast(kind) for name, kind in CUSTOMERS.items()}))
    about_values = _values(columns, pc.invert(is_missing), as_of)
    about_dates = _created(columns, read, as_of)
    return made, combine_findings([*findings, *about_documents, *about_lists, *about_values, *about_dates]), read


def _price_lists(
    of: dict[str, pa.Array], lists: pd.DataFrame, present: pa.Array, doubt: str
) -> tuple[dict[str, pa.Array], list[pd.DataFrame]]:
    """Name and status of each customer's price list; of lists whose ids are alike, the first listed one counts."""
    wanted = canonical_id(of["price_list_id"])
    known = pa.table(
        {
            "gone": pc.is_valid(array(lists["_missing_since"])),
            "key": canonical_id(array(lists["id"])),
            "id": array(lists["id"]),
            "name": array(lists["name"]),
        }
    )
    order = [("key", "ascending"), ("gone", "ascending"), ("id", "ascending"), ("name", "ascending")]
    known = known.filter(pc.is_valid(known["key"]))
    known = known.take(pc.sort_indices(known.set_column(0, "gone", known["gone"].cast(pa.int8())), sort_keys=order))
    first_row_per_owner = from_arrow(known)["key"].duplicated().to_numpy(dtype=np.bool_)
    known = known.filter(pa.array(~first_row_per_owner)).combine_chunks()
    at = positions(wanted, known["key"])
    is_listed = pc.fill_null(pc.invert(known["gone"].combine_chunks().take(at)), False)
    is_number = pc.match_substring_regex(wanted, _NUMBER)
    is_impossible = pc.fill_null(pc.and_not(is_number, pc.match_substring_regex(wanted, _ID_NUMBER)), False)
    unlisted = pc.if_else(pc.or_(is_impossible, pa.scalar(not doubt)), "not_listed", "unknown")
    status = pc.if_else(pc.is_null(wanted), "default", pc.if_else(is_listed, "matched", unlisted))
    columns = {
        "price_list_id": pc.if_else(is_listed, known["id"].combine_chunks().take(at), of["price_list_id"]),
        "price_list_name": known["name"].combine_chunks().take(at),
        "price_list_status": status,
    }
    is_unlisted = pc.and_(pc.invert(pc.or_(is_listed, pc.is_null(wanted))), present)
    detail = pc.if_else(pc.is_valid(at), "priceListId: listed before", "priceListId")
    absent = rule_findings(
        "customers", "price_list_not_listed", of["id"], pc.and_not(is_unlisted, is_impossible), detail
    )
    return columns, [
        summarize_unless_proven(absent, "price_lists_unproven", "priceListId", doubt),
        rule_findings(
            "customers", "price_list_id_impossible", of["id"], pc.and_(is_unlisted, is_impossible), "priceListId"
        ),
    ]


def _documents(
    documents: pd.DataFrame, ids: pa.Array, present: pa.Array
) -> tuple[dict[str, pa.Array], list[pd.DataFrame]]:
    """What each customer's documents come to, and what is wrong with them."""
    table = pa.Table.from_pandas(documents, preserve_index=False).combine_chunks()
    owners = positions(table["customer_id"].combine_chunks(), ids)
    orphans = table["customer_id"].combine_chunks().filter(pc.is_null(owners))
    table = table.append_column("owner", owners).filter(pc.is_valid(owners))
    table = sort_documents(table.select(["owner", *RAW_DOCUMENTS]).combine_chunks()).combine_chunks()
    owner: Ints = table["owner"].to_numpy().astype(np.int64)
    is_default = pc.fill_null(table["is_default"], False).to_numpy()
    is_tax = pc.fill_null(table["for_taxes"], False).to_numpy()
    size = len(ids)
    count, defaults, taxes = (np.bincount(owner[rows], minlength=size) for rows in (slice(None), is_default, is_tax))
    chosen, tax = default_row_per_owner(owner, is_default, size), first_row_per_owner(owner, is_tax, size)
    numbers = clean_text(table["number"].combine_chunks())
    columns = {
        "document_count": pa.array(count),
        "default_document_number": take_or_null(table["number"], chosen),
        "default_fiscal_name": take_or_null(table["fiscal_name"], chosen),
        "tax_document_number": take_or_null(table["number"], tax),
    }
    here = present.to_numpy(zero_copy_only=False)
    no_number = np.bincount(owner[pc.is_null(numbers).to_numpy(zero_copy_only=False)], minlength=size)
    held = ids.take(table["owner"]).combine_chunks() if len(table) else pa.array([], TEXT)
    held_here = pa.array(here[owner]) if len(table) else pa.array([], BOOLEAN)

    def of_customers(name: str, where: Bools, counts: Ints | None = None, what: str = "") -> pd.DataFrame:
        found = where & here
        detail = "documents" if counts is None else count_text("", counts[found], what)
        return rule_findings("customers", name, ids.filter(pa.array(found)), detail=detail)

    return columns, [
        rule_findings("customers", "document_orphan", orphans, detail="documents"),
        of_customers("document_missing", count == 0),
        of_customers("document_default_missing", (count > 1) & (defaults == 0), count, " documents"),
        of_customers("document_default_several", defaults > 1, defaults, " documents are default"),
        of_customers("document_tax_missing", (count > 0) & (taxes == 0), count, " documents"),
        of_customers("document_tax_several", taxes > 1, taxes, " documents are for taxes"),
        of_customers("document_number_missing", no_number > 0, no_number, " documents without a number"),
        shared_value_findings("customers", "document_number_shared", held, numbers, held_here),
    ]


def _values(columns: dict[str, pa.Array], present: pa.Array, as_of: datetime) -> list[pd.DataFrame]:
    """Findings about what the fields of present customers hold."""
    ids, born = columns["customer_id"], columns["birthdate"]
    codes, logins = clean_text(columns["erp_code"]), clean_text(columns["login_code"])
    emails, phones = columns["email_normalized"], clean_text(columns["phone"])
    today = as_of.astimezone(UTC).date()
    oldest = date(today.year - AGE_YEARS_MAX, today.month, 28 if (today.month, today.day) == (2, 29) else today.day)
    no_digits = pc.and_(pc.is_valid(phones), pc.is_null(columns["phone_digits"]))
    birthdate = pc.binary_join_element_wise("birthdate ", date_text(born), "")
    rules: tuple[tuple[str, pa.Array, pa.Array | str], ...] = (
        ("erp_code_padded", pc.not_equal(codes, columns["erp_code"]), "erpCode"),
        ("erp_code_missing", pc.is_null(codes), "erpCode"),
        ("login_missing", pc.and_(pc.is_null(emails), pc.is_null(logins)), "email, loginCode"),
        ("email_malformed", pc.invert(pc.match_substring_regex(emails, _EMAIL)), "email"),
        ("phone_without_digits", no_digits, "phone"),
        ("name_missing", pc.is_null(columns["full_name"]), "firstName, lastName"),
        ("birthdate_future", pc.greater(born, pa.scalar(today)), birthdate),
        ("birthdate_absurd", pc.less(born, pa.scalar(oldest)), birthdate),
    )
    return [
        shared_value_findings("customers", "erp_code_duplicate", ids, codes, present),
        shared_value_findings("customers", "login_code_duplicate", ids, logins, present),
        shared_value_findings("customers", "email_duplicate", ids, emails, present),
        *(rule_findings("customers", name, ids, pc.and_(where, present), detail) for name, where, detail in rules),
    ]


def _created(columns: dict[str, pa.Array], read: DateColumn, as_of: datetime) -> list[pd.DataFrame]:
    ids, at = columns["customer_id"], columns["created_at"]
    if read.is_unread_as_a_whole:
        return [table_finding("customers", "created_at_form", f"createdAt: {read.form}: {read.evidence}")]
    is_future = pc.greater(at, pa.scalar(as_of + _OFFSET_MAX, TIMESTAMP))
    detail = pc.binary_join_element_wise("createdAt ", date_text(at), "")
    return [
        rule_findings("customers", "created_at_unreadable", ids, array(read.unread), "createdAt"),
        rule_findings("customers", "created_at_future", ids, pc.and_not(is_future, columns["is_missing"]), detail),
    ]
