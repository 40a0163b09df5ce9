"""`orderbridge schema`: the fields of orders are shown, written to a file, and used as a person declares them there."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.reconcile.reconcile import reconcile
from sources.errors import UsageError
from tests.pipelines.bridge import Bridge, command


@pytest.fixture
def shop(reconciled: Bridge, monkeypatch: pytest.MonkeyPatch) -> Bridge:
    """With a project of its own."""
    monkeypatch.setenv("DLT_PROJECT_DIR", str(reconciled.folder))
    return reconciled


def written(shop: Bridge) -> Path:
    done = command(
        "schema", "orders", "--write", env=shop.environment(DLT_PROJECT_DIR=str(shop.folder)), cwd=shop.folder
    )
    assert (done.code, done.err) == (0, "")
    return shop.folder / ".dlt/orders.toml"


def declare(shop: Bridge, lines: str) -> None:
    (shop.folder / ".dlt").mkdir(mode=0o700, exist_ok=True)
    (shop.folder / ".dlt/orders.toml").write_text(lines, "utf-8")


def test_the_file_shows_what_was_decided_and_keeps_what_a_person_wrote(shop: Bridge) -> None:
    file = written(shop)
    lines = file.read_text("utf-8").splitlines()
    assert '# "total" = "decimal"' in {line.partition("  ")[0] for line in lines}
    assert '# "lines.taxes" = "table"' in {line.partition("  ")[0] for line in lines}
    assert shop.code("orders") == 0, "a line that is a comment declares nothing"
    file.write_text(file.read_text("utf-8").replace('# "number" = "bigint"', '"number" = "text" # as printed'), "utf-8")
    state = shop.platform.state
    state.change("orders", state.ids("orders")[0], {"brand new": [1.5]})
    assert shop.code("orders") == 0
    again = written(shop).read_text("utf-8").splitlines()
    assert [line.split("#")[1].strip() for line in again[len(lines) :]] == ['"brand new" = "list"']
    assert '"number" = "text" # as printed' in "\n".join(again)


def test_declared_kinds_and_names_are_those_of_the_tables(shop: Bridge) -> None:
    declare(
        shop,
        '"number" = { kind = "text", name = "order_number" }\n"lines" = { kind = "table", name = "orders__items" }\n'
        '"shipping" = "json"\n"total" = "bigint"\n',
    )
    state = shop.platform.state
    state.change("orders", state.ids("orders")[0], {"total": 12})
    for _ in range(2):
        shop.pull("orders")
    orders = dict(
        shop.rows(
            "SELECT column_name, data_type FROM duckdb_columns() WHERE schema_name = 'raw' AND table_name = 'orders'"
        )
    )
    assert (orders["order_number"], orders["total"]) == ("VARCHAR", "BIGINT")
    assert shop.one("SELECT count(number) FROM raw.orders") == 0, "a column stays, for those who have views on it"
    assert shop.one("SELECT count(total) FROM raw.orders") < 30
    assert shop.one("SELECT count(*) FROM raw.orders WHERE total IS NULL AND json_keys(_extra) <> ['total']") == 0
    assert shop.one("SELECT count(*) FROM raw.orders__items") == 96
    assert shop.rows("SELECT path FROM ops.field_kinds WHERE previous_kind IS NOT NULL") == []
    findings = {finding[:2] for finding in reconcile().findings}
    assert ("orders", "field_changed") in findings, "the lines are in another table now: a person looks"


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ('"total" = "money"', "'total': Invalid enum value 'money'"),
        ('"total" = { kind = "text", name = "Total" }', "'total'"),
        ('"total" = { kind = "text", name = "_extra" }', "'total'"),
        ('customer.id = "text"', "'customer'"),
        ('"id" = "bigint"', "'id': its name or the field is reserved"),
        ('"lines" = { kind = "table", name = "items" }', "begin with orders__"),
        ('"[1]" = "text"', "'[1]'"),
    ],
)
def test_a_line_that_cannot_be_used_ends_a_pull_before_its_first_request(shop: Bridge, line: str, words: str) -> None:
    declare(shop, line + "\n")
    requests = shop.platform.state.requests
    with pytest.raises(UsageError) as error:
        shop.pull("orders")
    assert words in error.value.message
    assert shop.platform.state.requests == requests


def test_declared_kinds_count_in_the_first_pull(fresh: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(fresh.folder))
    declare(fresh, '"number" = "text"\n')
    assert fresh.code("orders") == 0
    assert (
        fresh.one("SELECT data_type FROM duckdb_columns() WHERE table_name = 'orders' AND column_name = 'number'")
        == "VARCHAR"
    )
