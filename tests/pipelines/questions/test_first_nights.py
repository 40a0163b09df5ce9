"""The first nights on this version: a project of 0.3.0 goes on as it was, without an answer and without a word more."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import duckdb
import pytest

from tests.pipelines.bridge import Bridge, Done

TOTAL = "reconcile.order_total"
FILES = {
    "accepted.toml": """[[accepted]]
rule = "customers.email_duplicate"
subject = "1"
who = "ana"
when = 2026-01-01T00:00:00Z
why = "one mailbox"
""",
    "orders.toml": '# "status" = "text"\n',
    "reviewed.csv": "\ufeffpair;decision;who;when;why\r\ncode 7 = 1;accept;ana;2026-01-01;\r\n",
    "config.toml": '[reconcile]\norder_status = "status"\n',
}
AS_0_3 = (
    "DROP TABLE ops.questions",
    "DROP TABLE reconciled.meanings",
    "ALTER TABLE ops.runs DROP COLUMN answers_hash",
    "UPDATE ops.runs SET version = '0.3.0'",
    "ALTER TABLE reconciled.orders DROP COLUMN status_class",
    "ALTER TABLE reconciled.orders DROP COLUMN is_sale",
    "UPDATE ops.order_fields SET notation = 'ids'",
    "INSERT INTO ops.order_fields BY NAME SELECT * REPLACE ('total_unit' AS field, 'whole' AS column_name) "
    "FROM ops.order_fields WHERE field = 'total'",
)
GROSS = (
    "ALTER TABLE raw.orders ADD COLUMN grand_total DECIMAL(38, 9)",
    "UPDATE raw.orders SET grand_total = total * 1.21",
)
FIGURES = """
    SELECT count(*), count(total), sum(total), count(ordered_at), count(customer_id), count(currency),
        count(order_status), count_if(is_cancelled) FROM reconciled.orders"""


@pytest.fixture
def old(reconciled: Bridge) -> Bridge:
    """A project that 0.3.0 has left, with the files of its `.dlt`."""
    folder = reconciled.folder / ".dlt"
    folder.mkdir(mode=0o700, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_text(text, "utf-8")
    update(reconciled, *AS_0_3)
    return reconciled


def update(made: Bridge, *sql: str) -> None:
    with duckdb.connect(made.path) as warehouse:
        for one in sql:
            warehouse.execute(one)


def night(made: Bridge, line: str = "reconcile", **settings: str) -> Done:
    return made.command(*shlex.split(line), DLT_PROJECT_DIR=str(made.folder), **settings)


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.suffix}


def test_three_nights_without_an_answer_end_as_before_and_change_nothing(
    old: Bridge,
) -> None:
    before, figures = files_of(old.folder / ".dlt"), old.rows(FIGURES)
    for line in ("run --log json", "reconcile", "reconcile --log json"):
        done = night(old, line)
        assert done.code == 0, done.err
        assert "question" not in f"{done.out}{done.err}".replace("new_questions", "")
        assert old.rows(FIGURES) == figures
        assert files_of(old.folder / ".dlt") == before
    assumed = dict(old.rows("SELECT question, assumption FROM ops.questions"))
    assert (assumed[TOTAL], assumed["reconcile.order_customer_notation"]) == ("total", "ids")


def test_what_leaves_the_revenue_is_reported_once_with_sums_and_the_answer(
    old: Bridge,
) -> None:
    """0.3.0 counted whatever its words did not call cancelled: pending orders, and numbers."""
    status = "['DELIVERED', 'PENDING', '7'][id[-1:]::INT % 3 + 1]"
    update(
        old,
        f"UPDATE raw.orders SET status = {status}",
        f"UPDATE reconciled.orders SET is_cancelled = false, order_status = {status.replace('id[', 'order_id[')}",
    )
    counted = old.one("SELECT sum(total) FROM reconciled.orders")
    pending = old.one("SELECT sum(total) FROM reconciled.orders WHERE order_status = 'PENDING'")
    revenue = "SELECT sum(revenue) FROM bi.revenue_by_day"
    months = "SELECT count(*) FROM reconciled.exceptions WHERE rule = 'revenue_left'"
    done = night(old)
    assert (done.code, done.err) == (0, "")
    assert "not counted as revenue any more" in done.out
    assert old.one(revenue) == counted - pending
    dated = "SELECT count(DISTINCT strftime(ordered_date, '%Y-%m')) FROM reconciled.orders WHERE NOT is_sale"
    assert old.one(months) == old.one(dated) > 0
    again = night(old)
    assert (again.code, old.one(months)) == (0, 0)
    assert "not counted as revenue any more" not in again.out
    (command,) = re.findall(r"to count them: orderbridge (.*)", done.out)
    assert night(old, command).code == 0
    assert (night(old).code, old.one(revenue)) == (0, counted)
    # what comes later is asked, and nothing else changes
    update(old, "UPDATE raw.orders SET status = '8' WHERE id = (SELECT min(id) FROM raw.orders)")
    later = night(old, "reconcile --log json")
    assert (later.code, "status_unknown" in later.out) == (0, True)
    assert old.one("SELECT count(*) FROM reconciled.orders WHERE is_sale IS NULL") == 1


def test_totals_beside_words_for_one_currency_are_added_up_as_before(old: Bridge) -> None:
    """A new project would have a revenue for each word: two for a shop that writes `EUR` and `€`."""
    word = "['EUR', '€'][id[-1:]::INT % 2 + 1]"
    update(old, f"UPDATE raw.orders SET currency = {word}")
    update(old, "DELETE FROM ops.order_fields WHERE field = 'currency'")
    update(old, "UPDATE reconciled.orders SET currency = NULL")
    for _ in range(2):
        assert night(old).code == 0
        assert old.rows("SELECT DISTINCT currency FROM bi.revenue_by_day") == [(None,)]
    assert night(old, "answer reconcile.order_currency currency").code == 0
    assert night(old).code == 0
    assert len(old.rows("SELECT DISTINCT currency FROM bi.revenue_by_day")) == 2


def test_a_month_in_which_no_order_was_a_sale_is_reported_with_a_revenue_of_0(old: Bridge) -> None:
    update(
        old,
        "UPDATE raw.orders SET status = if(id = (SELECT min(id) FROM raw.orders), 'DELIVERED', 'PENDING')",
        "UPDATE reconciled.orders SET is_cancelled = false, order_status = 'PENDING'",
    )
    months = re.findall(r"→ (.*), [0-9]+ orders? not counted", night(old).out)
    assert months
    assert not [one for one in months if "unknown" in one]


def test_fields_of_lines_are_those_of_the_version_before(old: Bridge) -> None:
    """Many lines have no product, and no version before knew `price_subtotal`: neither is an alarm or a new figure."""
    lines = "SELECT count(product), sum(line_amount), count(line_total) FROM reconciled.order_lines"
    (before,) = old.rows(lines)
    update(
        old,
        "UPDATE raw.orders__lines SET sku = NULL WHERE order_id[-1:]::INT % 2 = 0",
        "ALTER TABLE raw.orders__lines ADD COLUMN price_subtotal DECIMAL(38, 9)",
        "UPDATE raw.orders__lines SET price_subtotal = 7",
    )
    for _ in range(2):
        assert night(old).code == 0
        ((products, amount, totals),) = old.rows(lines)
        assert (products < before[0], amount, totals) == (True, *before[1:])


def test_a_discount_is_taken_off_lines_whose_prices_no_version_before_knew(old: Bridge) -> None:
    """0.3.0 took off no discount. Where it knew no amount, none stays without."""
    update(
        old,
        "ALTER TABLE raw.orders__lines RENAME unit_price TO list_price",
        "ALTER TABLE raw.orders__lines ADD COLUMN discount DECIMAL(38, 9) DEFAULT 0.25",
        "UPDATE raw.orders SET total = total * 0.75",
        "UPDATE reconciled.order_lines SET unit_price = NULL, line_total = NULL",
    )
    is_wrong = "line_amount IS DISTINCT FROM round(quantity * unit_price * 0.75, 9)"
    assert night(old).code == 0
    assert old.one(f"SELECT count_if({is_wrong}) FROM reconciled.order_lines") == 0


def test_what_was_left_out_of_the_revenue_stays_so(old: Bridge) -> None:
    """0.3.0 took `refunded partially` for a refund, whose words say now that the order is a sale."""
    status = "['DELIVERED', 'refunded partially', 'awaiting refund'][id[-1:]::INT % 3 + 1]"
    of_order = status.replace("id[", "order_id[")
    is_left_out = f"{of_order} <> 'DELIVERED'"
    update(
        old,
        f"UPDATE raw.orders SET status = {status}",
        f"UPDATE reconciled.orders SET is_cancelled = {is_left_out}, order_status = {of_order}",
    )
    cancelled = "SELECT count_if(is_cancelled), count(is_cancelled) FROM reconciled.orders"
    counted = old.rows(cancelled)
    for _ in range(2):
        assert night(old).code == 0
        assert old.rows(cancelled) == counted


def test_a_first_run_ends_with_what_is_assumed_and_open_and_a_second_one_does_not(
    fresh: Bridge,
) -> None:
    first = night(fresh, "run")
    assert first.code == 0, first.err
    _, _, screen = first.out.partition("what values mean, until you answer")
    assert "assumed reconcile.timezone UTC is used" in " ".join(screen.split())
    assert "to confirm what is assumed or proposed: orderbridge answer --proposed" in screen
    assert "what values mean" not in night(fresh, "run").out


def test_what_a_new_rule_would_choose_contradicts_nothing_and_an_old_alarm_goes_on(
    old: Bridge,
) -> None:
    """The rules prefer `total`; what 0.3 had pinned stays in use, silently unless 0.3 had reported it."""
    pinned = "UPDATE ops.order_fields SET column_name = 'grand_total' WHERE field = 'total'"
    update(old, *GROSS, pinned)
    for _ in range(2):
        assert night(old).code == 0
        assert old.one("SELECT sum(total) = sum(grand_total) FROM reconciled.orders")
    alarm = """
        INSERT INTO reconciled.exceptions BY NAME SELECT 'orders' AS entity, 'field_changed' AS rule,
            'error' AS severity, 'total: grand_total is kept, total fits better now' AS detail, false AS is_accepted"""
    update(old, *AS_0_3[:2], alarm)
    for _ in range(2):
        assert night(old).code == 9
        assert old.one("SELECT sum(total) = sum(grand_total) FROM reconciled.orders")


def test_a_question_that_comes_later_is_said_once(old: Bridge) -> None:
    assert night(old).code == 0
    update(old, *GROSS, f"UPDATE ops.questions SET assumption = NULL WHERE question = '{TOTAL}'")
    said = [
        night(old, f"{line} --log json").out.count(TOTAL) for line in ("reconcile", "reconcile")
    ]
    assert said[0] > said[1]
    hashes = "SELECT DISTINCT answers_hash FROM ops.runs WHERE answers_hash IS NOT NULL"
    assert len(old.rows(hashes)) == 1
    night(old, f"answer {TOTAL} total")
    night(old)
    assert len(old.rows(hashes)) == 2


def test_midnights_stay_dates_when_an_order_has_a_time(old: Bridge) -> None:
    """Midnight in UTC is the evening before in Lima."""
    at = "strftime(ordered_at, '%Y-%m-%dT00:00:00Z')"
    update(
        old,
        f"UPDATE raw.orders o SET created_at = {at} FROM reconciled.orders r WHERE order_id = o.id",
    )
    others = "SELECT min(order_id), count_if(ordered_date <> CAST(created_at[:10] AS DATE)) FROM reconciled.orders"
    clock = "SELECT state, value FROM reconciled.meanings WHERE question = 'reconcile.order_clock'"
    lima = {"RECONCILE__TIMEZONE": "America/Lima"}
    assert night(old, **lima).code == 0
    ((first, wrong),) = old.rows(others)
    assert (wrong, old.rows(clock)) == (0, [("proven", "dates")])
    later = "UPDATE raw.orders SET created_at = replace(created_at, 'T00', 'T02')"
    update(old, f"{later} WHERE id = '{first}'")
    for _ in range(2):
        assert night(old, **lima).code == 0
        assert old.rows(others) == [(first, 1)]
        assert old.rows(clock) == [("assumed", "dates")]
    update(old, later)
    assert night(old, **lima).code == 9
    assert old.rows(clock) == [("contradicted", "dates")]
