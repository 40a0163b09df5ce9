"""Every table and column of a warehouse is described: in the file, and in the data dictionary."""

from __future__ import annotations

import re

import duckdb

from docs.dictionary import tables
from docs.generate import CHECKOUT
from orderbridge.pipelines.warehouse.bi.descriptions import write_comments
from tests.pipelines.bridge import LISTED, Bridge

DESCRIBED = "schema_name IN ('raw', 'reconciled', 'ops', 'bi')"


def test_the_dictionary_has_every_column_and_none_more_and_each_has_a_comment(
    reconciled: Bridge,
) -> None:
    listed = {(*table, column) for table, columns in tables().items() for column, _ in columns}
    sql = f"SELECT schema_name, table_name, column_name, comment FROM duckdb_columns() WHERE {DESCRIBED}"
    comments = {tuple(name): comment for *name, comment in reconciled.rows(sql)}
    assert listed - comments.keys() == set()
    assert {(schema, table) for schema, table, _ in comments.keys() - listed} == {
        ("raw", "orders"), ("raw", "orders__lines"), ("raw", "orders__lines__taxes"),
        ("reconciled", "orders"), ("reconciled", "order_lines"),
    }  # fmt: skip
    of_orders = {
        name for schema, table, name in comments if schema == "raw" and table.startswith("orders")
    }
    further = {name for schema, _, name in comments.keys() - listed if schema == "reconciled"}
    assert {name.removeprefix("raw_") for name in further} <= of_orders
    assert [name for name, comment in comments.items() if not comment] == []
    words = "field of the platform's orders, which the interface does not show"
    for name, comment in {
        "raw.customers.first_name": "first name; firstName of GET /customers", "raw.orders.created_at": words,
        "reconciled.orders.raw_total": words,
        "raw.orders__lines__taxes.lines_position": "position of the row in orders__lines that it belongs to",
    }.items():  # fmt: skip
        assert comments[tuple(name.split("."))] == comment
    for kind in ("tables", "views"):
        assert (
            reconciled.rows(f"FROM duckdb_{kind}() WHERE {DESCRIBED} AND comment IS NULL") == []
        ), kind
    with duckdb.connect(str(reconciled.path)) as connection:
        connection.execute(
            "COMMENT ON TABLE ops.runs IS 'earlier'; COMMENT ON COLUMN ops.runs.run_id IS 'earlier'"
        )
        write_comments(connection)
        for kind in ("tables", "columns"):
            assert (
                connection.execute(f"FROM duckdb_{kind}() WHERE comment = 'earlier'").fetchall()
                == []
            )


def test_the_questions_of_the_docs_have_answers(reconciled: Bridge) -> None:
    questions = re.findall(r"```sql\n(.*?)```", (CHECKOUT / "docs/bi.md").read_text("utf-8"), re.S)
    answers = [len(reconciled.rows(sql)) for sql in questions]
    assert (len(answers), answers[0], answers[9]) == (21, 10, len(LISTED))
    assert answers[10] == 0, "there is no run before it"
