"""What is found wrong or odd in the reconciled tables: the catalogue of rules, and the frames of findings.

In: rows of which a rule is true. Out: frames of `FINDINGS`. A detail holds ids, counts, field names and dates, and no
name, address, code or number of a document: the table may be shown to anyone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.frames import TEXT, frame, from_arrow

Severity = Literal["error", "warning", "info"]

FINDINGS: Final = {"entity": TEXT, "entity_id": TEXT, "rule": TEXT, "severity": TEXT, "detail": TEXT}
"""`entity_id` is null where the finding is of a column as a whole, or of a row without an id."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A kind of finding.

    Attributes:
        entity: the reconciled table that it is about.
        name: of the rule, within its entity.
        severity: `error` where a row is lost to the table or cannot be told from another, `warning` where something
            contradicts or will fail when used, `info` where something is only absent or worth a look.
        says: what is so, in one sentence.
    """

    entity: str
    name: str
    severity: Severity
    says: str


def _of_every(entity: str) -> tuple[Rule, ...]:
    return (
        Rule(entity, "id_missing", "error", "The row has no id, so it is not in the reconciled table."),
        Rule(entity, "id_duplicate", "error", "Another row has the same id; the one seen last is in the table."),
        Rule(entity, "unproven", "info", "The list is not proven whole: the platform may list what the table lacks."),
    )


def _of_date(entity: str, name: str, what: str) -> tuple[Rule, ...]:
    return (
        Rule(entity, f"{name}_form", "error", f"The form of {what} is not proven, so all of them are unread."),
        Rule(entity, f"{name}_unreadable", "warning", f"{what} is not in the form of its column, or is no real date."),
    )


RULES: Final = (
    *_of_every("customers"),
    Rule("customers", "erp_code_duplicate", "error", "Several customers have the same code of the ERP."),
    Rule("customers", "login_code_duplicate", "error", "Several customers log in by the same code."),
    Rule("customers", "email_duplicate", "warning", "Several customers have the same e-mail address."),
    Rule("customers", "erp_code_padded", "info", "The code of the ERP has blanks around it."),
    Rule("customers", "erp_code_missing", "info", "The customer has no code of the ERP."),
    Rule("customers", "login_missing", "warning", "The customer has neither an e-mail address nor a login code."),
    Rule("customers", "email_malformed", "warning", "The e-mail address is not of the form name@host."),
    Rule("customers", "phone_without_digits", "info", "The phone number has no digits."),
    Rule("customers", "name_missing", "info", "The customer has neither a first nor a last name."),
    Rule("customers", "birthdate_future", "warning", "The birthdate is in the future."),
    Rule("customers", "birthdate_absurd", "warning", "The birthdate is more than 120 years ago."),
    *_of_date("customers", "created_at", "createdAt"),
    Rule("customers", "created_at_future", "warning", "The customer was created in the future."),
    Rule("customers", "price_list_not_listed", "warning", "The customer's price list is not among the listed ones."),
    Rule(
        "customers", "price_lists_unproven", "info", "Customers name price lists that were not read and may be listed."
    ),
    Rule("customers", "price_list_id_impossible", "warning", "The price list is a number that no id can be."),
    Rule("customers", "document_missing", "info", "The customer has no document."),
    Rule("customers", "document_default_missing", "warning", "None of several documents is the default one."),
    Rule("customers", "document_default_several", "warning", "Several documents are default; the first is taken."),
    Rule("customers", "document_tax_missing", "info", "None of the documents is for taxes."),
    Rule("customers", "document_tax_several", "info", "Several documents are for taxes; the first is taken."),
    Rule("customers", "document_number_missing", "warning", "A document has no number."),
    Rule("customers", "document_number_shared", "warning", "Another customer has a document of the same number."),
    Rule("customers", "document_orphan", "error", "A document names a customer that is not in the table."),
    Rule("customers", "erp_ambiguous", "warning", "A key of the customer hits several lines, or several customers."),
    *_of_every("promotions"),
    Rule("promotions", "name_missing", "info", "The promotion has no name."),
    *_of_date("promotions", "dates", "startDate and expirationDate"),
    Rule("promotions", "ends_before_start", "warning", "The promotion expires before it starts."),
    Rule("promotions", "used_beyond_limit", "warning", "The promotion was used more often than its limit allows."),
    Rule("promotions", "use_count_negative", "warning", "The count of uses is below zero."),
    Rule("promotions", "usage_limit_not_positive", "warning", "The limit is zero or less; what that means: not shown."),
    Rule("promotions", "active_but_expired", "warning", "The promotion is active and has expired."),
    Rule("promotions", "active_but_exhausted", "info", "The promotion is active and has no uses left."),
    *_of_every("price_lists"),
    Rule("price_lists", "id_ambiguous", "warning", "Another listed price list has the same id, written otherwise."),
    Rule("price_lists", "name_missing", "info", "The price list has no name."),
    Rule("price_lists", "name_duplicate", "info", "Several listed price lists have the same name."),
    Rule("price_lists", "source_not_listed", "warning", "The source of the price list is not among the listed ones."),
    Rule("price_lists", "chain_orphaned", "info", "The chain of sources ends further up, at one that is not listed."),
    Rule("price_lists", "sources_unproven", "info", "Chains end at sources that were not read and may be listed."),
    Rule("price_lists", "chain_cycle", "error", "The chain of sources leads into a circle."),
    Rule("price_lists", "adjustment_contradicts", "warning", "The adjustment is NONE, and its value is not zero."),
    *_of_every("orders"),
    Rule("orders", "customer_unknown", "warning", "The order names a customer that is not in the table."),
    Rule("orders", "customers_unproven", "info", "Orders name customers that were not read and may be listed."),
    Rule("orders", "customer_ambiguous", "warning", "The order names a code of the ERP that several customers have."),
    Rule("orders", "customer_missing", "info", "The order names no customer."),
    *_of_date("orders", "ordered_at", "The order's date"),
    Rule("orders", "ordered_at_future", "warning", "The order is from the future."),
    Rule("orders", "total_unreadable", "warning", "The total is no decimal number of at most 9 decimals."),
    Rule("orders", "total_negative", "info", "The total is below zero."),
    Rule(
        "erp_customers", "line_refused", "error", "The line does not fit the header of the ERP's file; it is left out."
    ),
    Rule(
        "erp_customers",
        "customers_unproven",
        "info",
        "Lines may be of customers who were not read, first those only in the ERP.",
    ),
    Rule("erp_customers", "line_repeated", "info", "The line says what an earlier one says; the two count once."),
    Rule("erp_customers", "key_missing", "warning", "The line has nothing that a customer could be found by."),
    Rule("erp_customers", "erp_code_missing", "warning", "The line has no code of the ERP."),
    Rule(
        "erp_customers", "erp_code_duplicate", "error", "Different lines have the same code; none of them is matched."
    ),
    Rule("erp_customers", "login_code_duplicate", "warning", "Several lines have the same login code."),
    Rule("erp_customers", "email_duplicate", "warning", "Several lines have the same e-mail address."),
    Rule("erp_customers", "document_number_duplicate", "warning", "Several lines have the same document."),
    Rule("erp_customers", "match_ambiguous", "warning", "A key of the line hits several customers, or several lines."),
    Rule("erp_customers", "erp_code_contradicts", "warning", "Matched by another key, while the codes differ."),
    Rule("erp_customers", "customer_missing", "info", "A customer with this code was listed once, and is no more."),
    Rule("erp_customers", "erp_code_nearly", "info", "A customer's code is the same but for zeros before it or case."),
)

_BY_NAME: Final = {(rule.entity, rule.name): rule for rule in RULES}


def rule_findings(
    entity: str, name: str, ids: pa.Array, where: pa.Array | None = None, detail: pa.Array | str = ""
) -> pd.DataFrame:
    """Findings of one rule, one for each row in which it holds.

    Args:
        entity: of the rule.
        name: of the rule.
        ids: text, an id per row.
        where: boolean, whether the rule holds in that row; null is no. None: in every row.
        detail: text per row, or one for all.

    Raises:
        KeyError: there is no such rule.
    """
    rule = _BY_NAME[entity, name]
    columns = pa.table({"entity_id": ids, "detail": _column(detail, len(ids))})
    if where is not None:
        columns = columns.filter(where)
    count = len(columns)
    parts = {
        "entity": pa.repeat(rule.entity, count),
        "entity_id": columns["entity_id"],
        "rule": pa.repeat(rule.name, count),
        "severity": pa.repeat(rule.severity, count),
        "detail": columns["detail"],
    }
    return from_arrow(pa.table(parts).cast(pa.schema(list(FINDINGS.items()))))


def table_finding(entity: str, name: str, detail: str) -> pd.DataFrame:
    """The finding of a column as a whole. Raises KeyError: there is no such rule."""
    return rule_findings(entity, name, pa.nulls(1, TEXT), detail=detail)


def summarize_unless_proven(absent: pd.DataFrame, name: str, field: str, doubt: str) -> pd.DataFrame:
    """Findings about rows that name what was not read: as they are where that is proven not to be listed, else one.

    Args:
        absent: the findings, of one entity.
        name: of the rule that is said in place of them.
        field: what names it.
        doubt: why what was not read may be listed all the same; empty where it is proven not to be.

    Raises:
        KeyError: there is no such rule.
    """
    if not doubt or not len(absent):
        return absent
    entity = str(absent["entity"].iloc[0])
    return table_finding(entity, name, f"{field} of {len(absent)} {entity.replace('_', ' ')}: {doubt}")


def combine_findings(findings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All findings in one frame, by entity, rule, id and detail, however they came.

    Args:
        findings: frames of `FINDINGS`, each of one rule.
    """
    parts: dict[tuple[str, str], list[pa.Table]] = {}
    for one in findings:
        if len(one):
            table = pa.Table.from_pandas(one, pa.schema(list(FINDINGS.items())), preserve_index=False)
            parts.setdefault((table["entity"][0].as_py(), table["rule"][0].as_py()), []).append(table)
    if not parts:
        return frame(FINDINGS)
    return from_arrow(pa.concat_tables([_by_id(pa.concat_tables(parts[rule])) for rule in sorted(parts)]))


def _by_id(table: pa.Table) -> pa.Table:
    """Sorted by id and detail. Most come so, since the tables that they are about are sorted by id."""
    ids = table["entity_id"]
    if len(ids) < 2 or pc.all(pc.greater(ids.slice(1), ids.slice(0, len(ids) - 1)), skip_nulls=False).as_py():
        return table
    return table.take(pc.sort_indices(table, sort_keys=[("entity_id", "ascending"), ("detail", "ascending")]))


def count_text(before: str, counts: Any, after: str = "") -> pa.Array:  # noqa: ANN401 an array of numbers of any library
    """Details such as `3 documents`: a text before and after a number, per row."""
    numbers = pc.cast(pa.array(counts), TEXT)
    return pc.binary_join_element_wise(pa.scalar(before), numbers, pa.scalar(after), "", null_handling="replace")


def date_text(instants: pa.Array) -> pa.Array:
    """Dates for details: the day in UTC of each instant, as text."""
    return instants.cast(pa.date32()).cast(TEXT)


def _column(detail: pa.Array | str, count: int) -> pa.Array:
    return pa.repeat(detail, count).cast(TEXT) if isinstance(detail, str) else detail
