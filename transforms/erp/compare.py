"""The ERP's record of a customer compared with the platform's, field by field.

In: lines and the customer of each. Out: a row for each field that differs, with both values as given. Values that mean
the same are equal however they are written:

- codes: surrounding whitespace and `1.0` for `1` make no difference, zeros in front do;
- price lists, which are numbers: nor do zeros in front and `1,00`;
- e-mail addresses: the case of ASCII letters; documents' numbers: punctuation and case;
- phones: see `transforms.phones`;
- names and addresses: runs of whitespace, how accents are encoded, and case where the ERP writes in capitals.

An empty cell of the ERP differs from nothing, since exports leave out what they do not know. A value of the ERP where
the platform has none is a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from transforms.documents import default_row_per_owner, first_row_per_owner
from transforms.erp.match_keys import MATCH_KEYS, code, document_number
from transforms.frames import (
    BIGINT,
    TEXT,
    THREADS,
    Bools,
    Ints,
    array,
    column,
    constant,
    frame,
    positions,
    typed,
    unlike,
)
from transforms.phones import same_phone
from transforms.texts import email_key, single_spaced, tidied

Same = Callable[["pd.Series[str]", "pd.Series[str]", "str | None"], "pd.Series[bool]"]
"""Of values of the ERP and the platform, and the country of phone numbers: which are equal."""
DIFFERENCE: Final = {"row": BIGINT, "field": TEXT, "erp_value": TEXT, "platform_value": TEXT}


def _same_form(normalize: Callable[[pd.Series[str]], pd.Series[str]]) -> Same:
    return lambda erp, platform, _: (normalize(erp) == normalize(platform)).fillna(False)


def _same_name(erp: pd.Series[str], platform: pd.Series[str], _: str | None) -> pd.Series[bool]:
    """Names as written; where the ERP writes in capitals, in any case."""
    ours, theirs = single_spaced(erp), single_spaced(platform)
    return ((ours == theirs) | (ours.str.isupper() & (ours == theirs.str.upper()))).fillna(False)


def _whole_number(texts: pd.Series[str]) -> pd.Series[str]:
    return code(texts).str.replace(r"^0*([0-9]+?)(?:,00?)?$", r"\1", regex=True)


_same_code, _same_email = _same_form(code), _same_form(email_key)
COMPARISONS: Final[dict[str, Same]] = {
    "erp_code": _same_code,
    "login_code": _same_code,
    "email": _same_email,
    "document_number": _same_form(document_number),
    "first_name": _same_name,
    "last_name": _same_name,
    "phone": same_phone,
    "price_list_id": _same_form(_whole_number),
    "fiscal_name": _same_name,
    "fiscal_address": _same_name,
    "document_email": _same_email,
}
"""The fields that are compared, and how; the order is that of the differences."""
FIELDS_OF_DOCUMENTS: Final = {
    "document_number": "number",
    "fiscal_name": "fiscal_name",
    "fiscal_address": "fiscal_address",
    "document_email": "email",
}
"""The fields that the platform keeps in a document of the customer, and their names there."""


def compare(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    customer: Ints,
    numbers: pd.Series[str] | None = None,
    country: str | None = None,
    *,
    equal_keys: Bools | None = None,
) -> pd.DataFrame:
    """The fields in which lines and their customers differ.

    Args:
        lines: those of `COMPARISONS` that the ERP's file has.
        customers: those of `COMPARISONS` that are not a document's.
        documents: `customer` (row number), `key` (its number, normalized), `is_default` and the fields; by customer and
            position.
        customer: the row number of the customer of each line; -1: none, and nothing to compare.
        numbers: of the documents that the lines name, normalized, indexed by row number; None: the file has none.
        country: of phone numbers without a country code.
        equal_keys: the lines whose `MATCH_KEYS` are known to be equal to those of their customers; None: no line.

    Returns:
        The columns of `DIFFERENCE`, by row and field. `row` is the row number of the line.
    """
    fields = [field for field in COMPARISONS if field in lines]
    unproven = customer if equal_keys is None else np.where(equal_keys, -1, customer)
    document = _documents_of_lines(numbers, documents, customer, len(customers))
    of_all, of_unproven = positions(customer), positions(unproven)

    def differences(field: str) -> pd.DataFrame:
        rows = of_unproven if field in MATCH_KEYS else of_all
        ours = array(lines[field])
        if field in FIELDS_OF_DOCUMENTS:
            at = positions(document if rows is of_all else np.where(unproven < 0, -1, document))
            theirs = array(documents[FIELDS_OF_DOCUMENTS[field]]).take(at)
        else:
            theirs = array(customers[field]).take(rows)
        # Most values are equal as written: only the others are compared by meaning.
        different = pc.indices_nonzero(pc.and_(unlike(ours, theirs), pc.is_valid(rows)))
        index = pd.Index(different.to_numpy().astype(np.int64), name="row")
        erp, platform = column(ours.take(different), index), column(theirs.take(different), index)
        is_different = tidied(erp).notna() & ~COMPARISONS[field](erp, platform, country)
        values = pd.DataFrame({"erp_value": erp[is_different], "platform_value": platform[is_different]})
        return values.reset_index().assign(field=constant(field, values.index).array)

    with ThreadPoolExecutor(THREADS) as pool:
        parts = [rows for rows in pool.map(differences, fields) if len(rows)]
    if not parts:
        return frame(DIFFERENCE)
    return typed(pd.concat(parts).sort_values("row", kind="stable", ignore_index=True), DIFFERENCE)


def _documents_of_lines(
    numbers: pd.Series[str] | None, documents: pd.DataFrame, customer: Ints, customers: int
) -> Ints:
    """The row of the document that each line means: the first with its number, else the default one; -1 for none."""
    owner = documents["customer"].to_numpy(np.int64)
    chosen = default_row_per_owner(owner, documents["is_default"].fillna(False).to_numpy(np.bool_), customers)
    if numbers is not None:
        named = pd.Series(numbers.array, customer[numbers.index])
        named = named[named.index >= 0]
        rows = np.flatnonzero(np.isin(owner, named.index))
        is_named = np.zeros(len(owner), np.bool_)
        is_equal = documents["key"].iloc[rows].reset_index(drop=True) == named.reindex(owner[rows]).reset_index(
            drop=True
        )
        is_named[rows] = is_equal.fillna(False)
        first = first_row_per_owner(owner, is_named, customers)
        chosen = np.where(first >= 0, first, chosen)
    of_lines: Ints = np.append(chosen, -1)[customer]
    return of_lines
