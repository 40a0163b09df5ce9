"""The ERP's record of a customer compared with the platform's, field by field.

In: pairs of a line and a customer. Out: the fields in which they agree, and a row for each that differs, with both
values as given. Values that mean the same are equal however they are written:

- codes: surrounding whitespace and `1.0` for `1` make no difference, zeros in front do;
- price lists, which are numbers: nor do zeros in front and `1,00`;
- e-mail addresses: the case of ASCII letters; documents' numbers: punctuation and case;
- phones: see `transforms.values.phones`;
- names and addresses: runs of whitespace, how accents are encoded, and case where the ERP writes in capitals.

An empty cell of the ERP differs from nothing, since exports leave out what they do not know. A value of the ERP where
the platform has none is a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Final, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.transforms.documents import default_row_per_owner
from orderbridge.transforms.erp.match_keys import CodeForm, code, document_number
from orderbridge.transforms.frames import (
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
from orderbridge.transforms.values.phones import same_phone
from orderbridge.transforms.values.texts import email_key, single_spaced, tidied


class Notation(NamedTuple):
    """How values are written where they do not show it.

    Attributes:
        country: of phone numbers without a country code (ISO 3166-1 alpha-2); None: they are compared as written.
        codes: what is ignored in ERP codes.
    """

    country: str | None = None
    codes: CodeForm = CodeForm()


AS_GIVEN: Final = Notation()
Same = Callable[["pd.Series[str]", "pd.Series[str]", Notation], "pd.Series[bool]"]
"""Of values of the ERP and the platform, and how they are written: which are equal."""
DIFFERENCE: Final = {"row": BIGINT, "field": TEXT, "erp_value": TEXT, "platform_value": TEXT}


def _same_form(normalize: Callable[[pd.Series[str]], pd.Series[str]]) -> Same:
    return lambda erp, platform, _: (normalize(erp) == normalize(platform)).fillna(False)


def _same_name(erp: pd.Series[str], platform: pd.Series[str], _: Notation) -> pd.Series[bool]:
    """Names as written; where the ERP writes in capitals, in any case."""
    ours, theirs = single_spaced(erp), single_spaced(platform)
    return ((ours == theirs) | (ours.str.isupper() & (ours == theirs.str.upper()))).fillna(False)


def _whole_number(texts: pd.Series[str]) -> pd.Series[str]:
    return code(texts).str.replace(r"^0*([0-9]+?)(?:,00?)?$", r"\1", regex=True)


def _same_erp_code(
    erp: pd.Series[str], platform: pd.Series[str], notation: Notation
) -> pd.Series[bool]:
    return _same_form(notation.codes.key)(erp, platform, notation)


def _same_number(
    erp: pd.Series[str], platform: pd.Series[str], notation: Notation
) -> pd.Series[bool]:
    return same_phone(erp, platform, notation.country)


_same_email = _same_form(email_key)
COMPARISONS: Final[dict[str, Same]] = {
    "erp_code": _same_erp_code,
    "login_code": _same_form(code),
    "email": _same_email,
    "document_number": _same_form(document_number),
    "first_name": _same_name,
    "last_name": _same_name,
    "phone": _same_number,
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


class Pairs(NamedTuple):
    """Pairs of a line and a customer, by their row numbers; in the order of lines, then of customers."""

    line: Ints
    customer: Ints

    def where(self, rows: Bools | Ints) -> Pairs:
        """Some of them."""
        return Pairs(self.line[rows], self.customer[rows])


class Compared(NamedTuple):
    """What the comparison of pairs found.

    Attributes:
        differences: the columns of `DIFFERENCE`, by row and field; `row` is the number of the pair.
        agrees: for each field whether both sides of each pair have a value, and it is the same.
        document: the row of the document that each pair is about: see `compare`.
    """

    differences: pd.DataFrame
    agrees: dict[str, Bools]
    document: Ints


def compare(
    lines: pd.DataFrame,
    customers: pd.DataFrame,
    documents: pd.DataFrame,
    pairs: Pairs,
    notation: Notation = AS_GIVEN,
) -> Compared:
    """The fields in which the lines and customers of pairs agree and differ.

    A document is compared with the customer's default one, or with the first other one that has the same number.

    Args:
        lines: those of `COMPARISONS` that the ERP's file has.
        customers: those of `COMPARISONS` that are not a document's.
        documents: `customer` (row number), `key` (its number, normalized), `is_default` and the fields; by customer and
            position.
        pairs: to compare.
        notation: how values are written.
    """
    fields = [field for field in COMPARISONS if field in lines]
    document = _documents_of_pairs(lines, documents, pairs, len(customers))
    of_lines, of_customers, of_documents = map(positions, (pairs.line, pairs.customer, document))

    def compared(field: str) -> tuple[pd.DataFrame, Bools]:
        ours = array(lines[field]).take(of_lines)
        if field in FIELDS_OF_DOCUMENTS:
            theirs = array(documents[FIELDS_OF_DOCUMENTS[field]]).take(of_documents)
        else:
            theirs = array(customers[field]).take(of_customers)
        is_unlike = unlike(ours, theirs)
        agrees = pc.and_not(is_given(ours), is_unlike).to_numpy(zero_copy_only=False).copy()
        # Most values are equal as written: only the others are compared by meaning.
        different = pc.indices_nonzero(is_unlike)
        index = pd.Index(different.to_numpy().astype(np.int64), name="row")
        erp, platform = column(ours.take(different), index), column(theirs.take(different), index)
        is_equal = COMPARISONS[field](erp, platform, notation)
        is_different = tidied(erp).notna() & ~is_equal
        values = pd.DataFrame(
            {"erp_value": erp[is_different], "platform_value": platform[is_different]}
        )
        agrees[index[is_equal]] = True
        return values.reset_index().assign(field=constant(field, values.index).array), agrees

    with ThreadPoolExecutor(THREADS) as pool:
        parts, agrees = zip(*pool.map(compared, fields), strict=True) if fields else ((), ())
    found = [rows for rows in parts if len(rows)]
    differences = typed(pd.concat(found), DIFFERENCE) if found else frame(DIFFERENCE)
    differences = differences.sort_values("row", kind="stable", ignore_index=True)
    return Compared(differences, dict(zip(fields, agrees, strict=True)), document)


def is_given(values: pa.Array) -> pa.Array:
    """Whether each value is neither null nor blank."""
    return pc.fill_null(pc.not_equal(pc.utf8_trim_whitespace(values), ""), False)


def _documents_of_pairs(
    lines: pd.DataFrame, documents: pd.DataFrame, pairs: Pairs, customers: int
) -> Ints:
    """The row of the document that each pair is about; -1 for none."""
    owner = documents["customer"].to_numpy(np.int64)
    chosen = default_row_per_owner(
        owner, documents["is_default"].fillna(False).to_numpy(np.bool_), customers
    )
    of_pairs: Ints = chosen[pairs.customer]
    if "document_number" not in lines or documents.empty:
        return of_pairs
    wanted = array(document_number(lines["document_number"])).take(positions(pairs.line))
    others = pc.indices_nonzero(unlike(wanted, array(documents["key"]).take(positions(of_pairs))))
    rows = others.to_numpy()
    left = pd.DataFrame({"customer": pairs.customer[rows], "key": column(wanted.take(others))})
    known = documents.loc[np.isin(owner, left["customer"]), ["customer", "key"]].drop_duplicates()
    found = left.merge(known.reset_index(names="document"), how="left", validate="m:1")["document"]
    of_pairs[rows[found.notna()]] = found.dropna()
    return of_pairs
