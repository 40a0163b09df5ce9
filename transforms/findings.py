"""Frames of findings: which rows break which rule of the catalogue.

In: rows for which a rule holds. Out: frames of `FINDINGS`. A detail holds ids, counts, field names and dates, but no
name, address, code or document number: everybody may see the table.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import pandas as pd
import pyarrow as pa

from orderbridge.transforms.frames import (
    TEXT,
    Column,
    array,
    column,
    constant,
    frame,
    from_arrow,
    is_repeated,
    joined_text,
    look_up,
    to_arrow,
)
from orderbridge.transforms.rules import RULES

FINDINGS: Final = {
    "entity": TEXT,
    "entity_id": TEXT,
    "rule": TEXT,
    "severity": TEXT,
    "detail": TEXT,
    "subject": TEXT,
}
"""`entity_id` is null where the finding is about a table as a whole, or about a row without an id. `subject` is what
such a finding is about within its table, such as a column; null where it is about a record, or nothing smaller."""

VALUES: Final = {"rule": TEXT, "id": TEXT, "value": TEXT}
"""A rule that the value of a record must be unique, the record, and the value."""

_NONE: Final = frame(FINDINGS)
_BY_NAME: Final = {(rule.entity, rule.name): rule for rule in RULES}


class Part(NamedTuple):
    """What is made of a part of a table.

    Attributes:
        table: the rows.
        findings: about single rows (the columns of `FINDINGS`).
        counts: for findings about the table as a whole; those of all parts add up.
        values: the columns of `VALUES`: those that no two records may have in common; None where there are none.
    """

    table: pd.DataFrame
    findings: pd.DataFrame
    counts: Counter[str]
    values: pd.DataFrame | None = None


def rule_findings(
    entity: str,
    name: str,
    ids: Column[Any],
    where: Column[Any] | None = None,
    detail: Column[Any] | str = "",
    subject: str | None = None,
) -> pd.DataFrame:
    """Findings of one rule (the columns of `FINDINGS`), one for each row in which it holds.

    `ids` is text; `where` is boolean, null is no, and None is every row; `detail` is a text per row, or one for all;
    `subject` is that of all.

    Raises:
        KeyError: there is no such rule.
    """
    rule = _BY_NAME[entity, name]
    # Most rules hold in no row of a list: Arrow makes a table in a tenth of the time that pandas makes a frame.
    columns = {"entity_id": array(ids)} | (
        {} if isinstance(detail, str) else {"detail": array(detail)}
    )
    rows = pa.table(columns)
    if where is not None:
        rows = rows.filter(array(where))
    if not len(rows):
        return _NONE
    same = {
        "entity": rule.entity,
        "rule": rule.name,
        "severity": rule.severity,
        "detail": detail,
        "subject": pa.scalar(subject, TEXT),
    }
    return from_arrow(
        pa.table(
            {
                key: rows[key] if key in columns else pa.repeat(same[key], len(rows))
                for key in FINDINGS
            }
        )
    )


def table_finding(entity: str, name: str, detail: str, subject: str | None = None) -> pd.DataFrame:
    """One finding about a table as a whole, or about a subject within it. Raises KeyError: there is no such rule."""
    no_id = constant(None, pd.RangeIndex(1))
    return rule_findings(entity, name, no_id, detail=detail, subject=subject)


def to_answer(detail: str, question: str) -> str:
    """A detail that ends with the command which shows a question; `findings.sql` does not compare that end."""
    return f"{detail}; to answer: orderbridge questions {question}"


class UniqueValues(NamedTuple):
    """Values that no two records may have in common.

    Attributes:
        ids: of the records, in order; a record may have several values, and the same one twice.
        values: null is no value.
        where: boolean, the rows that count.
    """

    ids: Column[Any]
    values: Column[Any]
    where: Column[Any]


def shared_value_findings(entity: str, name: str, values: UniqueValues) -> pd.DataFrame:
    """Findings of the rule about records whose value another record has too; details name the first of their ids."""
    rows = pd.DataFrame({"id": values.ids, "value": values.values})[values.where.fillna(False)]
    rows = rows[is_repeated(rows["value"])].drop_duplicates()
    rows = rows[is_repeated(rows["value"])].reset_index(drop=True)
    others = rows.groupby("value", sort=False)["id"].transform("count") - 1
    first = look_up(rows["value"], rows.drop_duplicates("value"), "value")["id"]
    detail = joined_text(["shared with ", others, " more; the first of all is ", first])
    return rule_findings(entity, name, rows["id"], detail=detail)


def combine_findings(findings: Sequence[pd.DataFrame]) -> pd.DataFrame:
    """All findings in one frame, sorted by entity, rule, id and detail."""
    found = [to_arrow(one, FINDINGS) for one in findings if len(one)]  # most rules hold in no row
    if not found:
        return _NONE
    rows = pa.concat_tables(found)
    order = [(name, "ascending") for name in ("entity", "rule", "entity_id", "detail")]
    return from_arrow(rows.sort_by(order).combine_chunks())


def count_text(before: str, counts: Column[Any], after: str = "") -> Column[Any]:
    """Details such as `3 documents`: a text before and after the number of each row; no number where it is null."""
    return joined_text([before, column(array(counts).cast(TEXT), counts.index).fillna(""), after])


def date_text(instants: Column[Any]) -> Column[Any]:
    """Dates for details: the day in UTC of each instant, as text."""
    return column(array(instants).cast(pa.date32()).cast(TEXT), instants.index)
