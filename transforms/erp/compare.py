"""Field by field: what the ERP says of a customer against what the platform says.

In: pairs of rows that are one customer. Out: a row for each field that differs, both values as they came. What is
compared is normalised on both sides, so that a difference is one of meaning:

- codes and ids without the blanks around them, `1.0` as `1`, with their zeros;
- e-mail addresses in any case; phones by their digits, `+` like `00`; a document's number by its letters and digits, in
  any case;
- names and addresses with any run of blanks as one, and letters with their accents composed; case counts.

An empty cell of the ERP says nothing, since exports leave out what they do not know: it differs from no value. A value
of the ERP against none of the platform is a difference.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from transforms.documents import default_row_per_owner, first_row_per_owner
from transforms.erp.cascade import Pairs
from transforms.frames import TEXT, Ints
from transforms.keys import canonical_id, clean_text, fold_case, phone_digits


def letters_and_digits(texts: pa.Array) -> pa.Array:
    """A document's number without points, dashes and blanks, in any case; null where nothing is left."""
    if pc.all(pc.utf8_is_alnum(texts)).as_py():
        return fold_case(texts)
    return fold_case(pc.replace_substring_regex(texts, r"[^\p{L}\p{N}]+", ""))


def phone(texts: pa.Array) -> pa.Array:
    """The digits; where there are none, the text itself."""
    return pc.coalesce(phone_digits(texts), fold_case(texts))


def name(texts: pa.Array) -> pa.Array:
    """One blank for each run of them, accents composed."""
    return pc.utf8_normalize(pc.replace_substring_regex(clean_text(texts), r"[\s\p{Z}]+", " "), form="NFC")


NORMALISED: Final[dict[str, Callable[[pa.Array], pa.Array]]] = {
    "erp_code": canonical_id,
    "login_code": canonical_id,
    "email": fold_case,
    "document_number": letters_and_digits,
    "first_name": name,
    "last_name": name,
    "phone": phone,
    "price_list_id": canonical_id,
    "fiscal_name": name,
    "fiscal_address": name,
    "document_email": fold_case,
}
"""The fields of an ERP's customer that are compared, and how; the order is that of the differences."""

DOCUMENT_FIELDS: Final = {
    "document_number": "number",
    "fiscal_name": "fiscal_name",
    "fiscal_address": "fiscal_address",
    "document_email": "email",
}
"""Those that stand in a document of the platform's customer, by their names there."""


def differs(field: str, erp: pa.Array, platform: pa.Array) -> Ints:
    """The positions at which two columns of a field differ, as `NORMALISED` compares them."""
    equal = pc.fill_null(pc.equal(erp, platform), False)
    unequal = np.flatnonzero(pc.and_(pc.is_valid(erp), pc.invert(equal)).to_numpy(zero_copy_only=False))
    where = pa.array(unequal)
    normalised = NORMALISED[field]
    said, known = normalised(erp.take(where)), normalised(platform.take(where))
    is_different = pc.and_not(pc.is_valid(said), pc.fill_null(pc.equal(said, known), False))
    found: Ints = unequal[is_different.to_numpy(zero_copy_only=False)]
    return found


def documents_of(documents: pa.Table, numbers: pa.Array, size: int) -> Ints:
    """The document of each customer that the ERP means: the first of its number, else the default one; -1 for none.

    Args:
        documents: `owner` (position of the customer), `number`, `is_default`; by owner and position.
        numbers: what the ERP says of each customer's document.
        size: of customers.
    """
    owner = documents["owner"].to_numpy()
    wanted = letters_and_digits(numbers).take(documents["owner"].combine_chunks())
    is_wanted = pc.fill_null(pc.equal(letters_and_digits(documents["number"].combine_chunks()), wanted), False)
    named = first_row_per_owner(owner, is_wanted.to_numpy(zero_copy_only=False), size)
    is_default = pc.fill_null(documents["is_default"], False).to_numpy()
    return np.where(named >= 0, named, default_row_per_owner(owner, is_default, size))


def differences(lines: pa.Table, customers: pa.Table, documents: pa.Table, pairs: Pairs) -> tuple[pa.Table, Ints]:
    """The differing fields of pairs, and how many each pair has.

    Args:
        lines: those of `NORMALISED` that the ERP's file has.
        customers: those of `NORMALISED` that are not a document's.
        documents: `owner` (position of the customer), `position` and the fields; by owner and position.
        pairs: positions of a line and a customer that are one.

    Returns:
        `pair` (bigint), `field`, `erp_value`, `platform_value`, by pair and field; the count of each pair.
    """
    fields = [field for field in NORMALISED if field in lines.column_names]
    on_left, on_right = pa.array(pairs.left), pa.array(pairs.right)
    if any(field in DOCUMENT_FIELDS for field in fields):
        line_of = np.full(len(customers), -1, np.int64)
        line_of[pairs.right] = pairs.left
        numbers = lines["document_number"] if "document_number" in fields else pa.nulls(len(lines), TEXT)
        numbers = _whole(numbers).take(pa.array(line_of, mask=line_of < 0))
        chosen = documents_of(documents, numbers, len(customers))[pairs.right]
    found = []
    for number, field in enumerate(fields):
        said = _whole(lines[field]).take(on_left)
        if field in DOCUMENT_FIELDS:
            known = _whole(documents[DOCUMENT_FIELDS[field]]).take(pa.array(chosen, mask=chosen < 0))
        else:
            known = _whole(customers[field]).take(on_right)
        rows = differs(field, said, known)
        where = pa.array(rows)
        found.append(
            pa.table(
                {
                    "pair": where,
                    "number": pa.array(np.full(len(rows), number)),
                    "field": pa.repeat(field, len(rows)),
                    "erp_value": said.take(where),
                    "platform_value": known.take(where),
                }
            )
        )
    if not found:
        empty = {"pair": pa.int64(), "field": TEXT, "erp_value": TEXT, "platform_value": TEXT}
        return pa.schema(list(empty.items())).empty_table(), np.zeros(len(pairs.left), np.int64)
    made = pa.concat_tables(found).sort_by([("pair", "ascending"), ("number", "ascending")])
    return made.drop_columns("number"), np.bincount(made["pair"].to_numpy(), minlength=len(pairs.left))


def _whole(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
