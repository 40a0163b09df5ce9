"""What has to be known of the raw orders before they are reconciled: the table of their lines, and what settings name.

In: the raw tables of a build, and the answers in force. Out: the question about the table of the lines, its finding,
errors for settings that name what is not there, and what the run after this one compares with.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from datetime import datetime
from typing import Final

import duckdb
import pandas as pd

from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.answers.questions import LINES
from orderbridge.pipelines.warehouse.sql import columns_of, sql_name, table_names
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import ANSWERS
from orderbridge.sources.words import number
from orderbridge.transforms.findings import FINDINGS, table_finding, to_answer
from orderbridge.transforms.frames import frame
from orderbridge.transforms.orders.fields import (
    COLUMN_QUESTIONS,
    OTHER_ANSWERS,
    FieldChoice,
)
from orderbridge.transforms.orders.line_fields import LINE_QUESTIONS, ONE
from orderbridge.transforms.orders.lines import lines_tables
from orderbridge.transforms.orders.orders import OrderCustomers
from orderbridge.transforms.questions import Answer, Choice, Evidence, Question, question

_NO_ROWS: Final = number(0, "row")
_NUMBERS: Final = ("DECIMAL", "DOUBLE", "BIGINT", "INTEGER", "HUGEINT")
_LISTED: Final = "SELECT count(*) FROM raw.{} WHERE _missing_since IS NULL"


def check_settings(answers: Mapping[str, Answer], columns: Collection[str]) -> None:
    """Checks the columns of orders that settings name. Raises UsageError for one that the raw orders do not have."""
    for key in COLUMN_QUESTIONS.values():
        answer = answers.get(key)
        is_usable = answer is None or answer.value in (*columns, *OTHER_ANSWERS.get(key, ()))
        if answer is not None and _is_set(answer) and not is_usable:
            raise UsageError(
                f"{key} is {answer.value!r}, which is not a column of raw.orders",
                f"Show the choices with: orderbridge questions {key}\n"
                f"  To use one of them: orderbridge init {key}=COLUMN",
            )


def check_line_settings(answers: Mapping[str, Answer], columns: Collection[str]) -> None:
    """Checks the columns of lines that settings name. Raises UsageError for one that the raw lines do not have."""
    for key in LINE_QUESTIONS.values():
        answer = answers.get(key)
        if answer is None or not _is_set(answer) or answer.value in (*columns, ONE):
            continue
        raise UsageError(
            f"{key} is {answer.value!r}, which is not a column of the lines of orders",
            f"There are: {', '.join(columns)}. Without the setting, the column is detected.",
        )


def lines_question(build: duckdb.DuckDBPyConnection, answer: Answer | None) -> Question | None:
    """The question which child table of the raw orders holds their lines; None where there is none.

    Raises:
        UsageError: a setting names a table that is not there.
    """
    children = [name for name in table_names(build, "raw") if name.startswith("orders__")]
    candidates = lines_tables(children)
    if answer is not None and answer.value in children:
        candidates.append(answer.value)
    elif answer is not None and _is_set(answer):
        raise UsageError(
            f"{LINES} is {answer.value!r}, which is not a child table of raw.orders",
            f"There are: {', '.join(sorted(children)) or 'none'}. Without the setting, the table is detected.",
        )
    # A table that the platform has renamed keeps the lines of orders that are no longer listed, or none.
    rows = {name: _listed_rows(build, name) for name in dict.fromkeys(candidates)}
    best = max(rows, key=lambda name: rows[name], default=None)
    if best is None and answer is None:
        return _unnamed_lines(build, children)
    filled = [name for name, count in rows.items() if count]
    choices = tuple(_lines_choices(rows, answer))
    return question(Evidence(LINES, choices, best, is_proven=len(filled) < 2), answer)


def _unnamed_lines(build: duckdb.DuckDBPyConnection, children: Collection[str]) -> Question | None:
    """The question which table has the lines, where none has a known name; None where none has numbers."""
    choices: list[Choice] = []
    for name in sorted(children):
        columns = columns_of(build, f"raw.{sql_name(name)}")
        is_of_order = not any(column.endswith("_position") for column in columns)
        has_numbers = any(kind.startswith(_NUMBERS) for kind in columns.values())
        rows = _listed_rows(build, name)
        if is_of_order and has_numbers and rows:
            choices.append(Choice(name, f"{number(rows, 'row')}; {', '.join(columns)}"))
    if not choices:
        return None
    return question(Evidence(LINES, tuple(choices), reason="no table has a known name"), None)


def _lines_choices(rows: Mapping[str, int], answer: Answer | None) -> Iterator[Choice]:
    """The tables with their rows; one that is answered, and has none while another has, cannot be used."""
    used = answer.value if answer is not None else None
    for name, count in rows.items():
        if name == used and not count and any(rows.values()):
            against = f"{name} has no rows"
            yield Choice(name, _NO_ROWS, None, against, is_possible=False)
        else:
            yield Choice(name, number(count, "row"))
    if used is not None and used not in rows:
        yield Choice(used, _NO_ROWS, None, f"{used} is gone", is_possible=False)


def lines_findings(asked: Question) -> pd.DataFrame:
    """That other tables have lines too, that another table was used before, or that the answer is contradicted."""
    table = asked.value
    if table is None and asked.evidence.choices:
        tables = ", ".join(choice.value for choice in asked.evidence.choices)
        detail = to_answer(f"lines: {asked.reason}; tables: {tables}", LINES)
        return table_finding("order_lines", "field_not_found", detail, "lines")
    notes = [*_changes_of_lines(asked)]
    if table is None or not notes:
        return frame(FINDINGS)
    detail = to_answer(f"lines: {table} is used; {', '.join(notes)}", LINES)
    return table_finding("orders", "field_changed", detail, "lines")


def _changes_of_lines(asked: Question) -> Iterator[str]:
    """What speaks against the table that is used, in words; an answer is only contradicted by what it was given on."""
    answer = asked.answer
    if answer is not None and not answer.is_assumption:
        if asked.state == "contradicted":
            yield asked.reason
        return
    if answer is not None and answer.value != asked.value:
        yield f"{answer.value} was used before"
    for choice in asked.evidence.choices:
        if choice.value != asked.value and choice.is_possible and choice.evidence != _NO_ROWS:
            yield f"{choice.value} has {choice.evidence}"


def last_matched_share(build: duckdb.DuckDBPyConnection, accepted: Accepted) -> float | None:
    """The share of orders with a known customer to compare with; None: none, or a person has accepted a change."""
    last = ops.last_order_fields(build)
    column = last.columns.get("customer_id", "")
    if accepted.is_changed("orders.matched_share_fell", column, last.at):
        return None
    return last.matched_share


def record_used_fields(
    build: duckdb.DuckDBPyConnection,
    run_id: str,
    at: datetime,
    choice: FieldChoice,
    customers: OrderCustomers,
    lines: str | None,
    last_share: float | None,
) -> None:
    """Records the columns that the orders were read from, and the share of orders with a known customer.

    The next run compares with the largest share that was not accepted since: an alarm does not fall silent by itself.
    """
    shares = [one for one in (last_share, customers.matched_share) if one is not None]
    columns = choice.fields.columns()
    if lines is not None:
        columns["lines"] = lines
    used = ops.LastOrderFields(columns, max(shares, default=None), at=at)
    ops.record_order_fields(build, run_id, used)


def _is_set(answer: Answer) -> bool:
    """Whether it is set in a file or in the environment, and not answered."""
    return not answer.is_assumption and answer.origin != ANSWERS


def _listed_rows(build: duckdb.DuckDBPyConnection, table: str) -> int:
    ((count,),) = build.execute(_LISTED.format(sql_name(table))).fetchall()
    return int(count)
