"""The ERP's record of a customer compared with the platform's, field by field.

In: pairs of rows that are one customer. Out: a row for each field that differs, with both values as given. Values that
mean the same are equal however they are written:

- codes and ids: surrounding whitespace and `1.0` for `1` make no difference, zeros in front do;
- e-mail addresses: the case of ASCII letters; documents' numbers: punctuation and case;
- phones: see `transforms.phones`;
- names and addresses: runs of whitespace, how accents are encoded, and case where the ERP writes in capitals.

An empty cell of the ERP differs from nothing, since exports leave out what they do not know. A value of the ERP against
none of the platform is a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.documents import default_row_per_owner, first_row_per_owner
from transforms.erp.match_keys import code, document_number
from transforms.frames import BIGINT, TEXT, Ints, array, column, frame, typed
from transforms.phones import same_phone
from transforms.texts import email_key, single_spaced, tidied

Same = Callable[["pd.Series[str]", "pd.Series[str]", "str | None"], "pd.Series[bool]"]
DIFFERENCE: Final = {"pair": BIGINT, "field": TEXT, "erp_value": TEXT, "platform_value": TEXT}


def _same_form(
    normalize: Callable[[pd.Series[str]], pd.Series[str]],
    erp: pd.Series[str],
    platform: pd.Series[str],
    country: str | None,  # of phones
) -> pd.Series[bool]:
    return (normalize(erp) == normalize(platform)).fillna(False)


def _same_name(erp: pd.Series[str], platform: pd.Series[str], country: str | None) -> pd.Series[bool]:  # of phones
    """Names as written; where the ERP writes in capitals, in any case."""
    ours, theirs = single_spaced(erp), single_spaced(platform)
    return ((ours == theirs) | (ours.str.isupper() & (ours == theirs.str.upper()))).fillna(False)


_same_code, _same_email = partial(_same_form, code), partial(_same_form, email_key)
COMPARISONS: Final[dict[str, Same]] = {
    "erp_code": _same_code,
    "login_code": _same_code,
    "email": _same_email,
    "document_number": partial(_same_form, document_number),
    "first_name": _same_name,
    "last_name": _same_name,
    "phone": same_phone,
    "price_list_id": _same_code,
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
    pairs: pd.DataFrame,
    numbers: pd.Series[str] | None = None,
    country: str | None = None,
) -> pd.DataFrame:
    """The fields in which pairs differ.

    Args:
        lines: those of `COMPARISONS` that the ERP's file has.
        customers: those of `COMPARISONS` that are not a document's.
        documents: `customer` (row number), `key` (its number, normalized), `is_default` and the fields; by customer and
            position.
        pairs: `line`, `customer` (row numbers).
        numbers: of the documents that the lines name, normalized, indexed by row number; None: the file has none.
        country: of phone numbers without a country code.

    Returns:
        The columns of `DIFFERENCE`, by pair and field. `pair` is the position in `pairs`.
    """
    fields = [field for field in COMPARISONS if field in lines]
    if any(field in FIELDS_OF_DOCUMENTS for field in fields):
        rows = _documents_of_pairs(numbers, documents, pairs, len(customers))
        document = pa.array(rows, mask=rows < 0)
    line, customer = pa.array(pairs["line"].to_numpy()), pa.array(pairs["customer"].to_numpy())
    differing = [frame(DIFFERENCE)]
    for field in fields:
        ours = array(lines[field]).take(line)
        if field in FIELDS_OF_DOCUMENTS:
            theirs = array(documents[FIELDS_OF_DOCUMENTS[field]]).take(document)
        else:
            theirs = array(customers[field]).take(customer)
        is_like = pc.fill_null(pc.equal(ours, theirs), False)  # of most pairs: only the others are compared by meaning
        unlike = pc.indices_nonzero(pc.and_not(pc.is_valid(ours), is_like))
        if not len(unlike):
            continue
        index = pd.Index(unlike.to_numpy().astype(np.int64))
        erp, platform = column(ours.take(unlike), index), column(theirs.take(unlike), index)
        is_different = tidied(erp).notna() & ~COMPARISONS[field](erp, platform, country)
        values = pd.DataFrame({"erp_value": erp[is_different], "platform_value": platform[is_different]})
        differing.append(values.rename_axis("pair").reset_index().assign(field=field))
    return typed(pd.concat(differing).sort_values("pair", kind="stable", ignore_index=True), DIFFERENCE)


def _documents_of_pairs(
    numbers: pd.Series[str] | None, documents: pd.DataFrame, pairs: pd.DataFrame, customers: int
) -> Ints:
    """The row of the document that the ERP means: the first with its number, else the default one; -1 for none."""
    owner = documents["customer"].to_numpy(np.int64)
    chosen = default_row_per_owner(owner, documents["is_default"].fillna(False).to_numpy(np.bool_), customers)
    if numbers is not None:
        line = np.full(customers, -1)
        line[pairs["customer"]] = pairs["line"]
        wanted = numbers.reindex(line[owner]).reset_index(drop=True)
        is_named = (documents["key"] == wanted).fillna(False).to_numpy(np.bool_)
        named = first_row_per_owner(owner, is_named, customers)
        chosen = np.where(named >= 0, named, chosen)
    of_pairs: Ints = chosen[pairs["customer"]]
    return of_pairs
