"""The report: one page that needs nothing else, holds nobody's data, and is the same for the same warehouse."""

from __future__ import annotations

import os
import re
from pathlib import Path
from xml.etree import ElementTree as ET

import duckdb
import pytest

from pipelines.reporting.report import START, report
from pipelines.reporting.status import read_status
from pipelines.reporting.tables import anchor
from pipelines.warehouse.build import open_warehouse
from sources.errors import UsageError
from tests.pipelines.bridge import command
from tests.pipelines.reconcile.erp_file import PRIVATE
from tests.pipelines.reporting.page import change, made
from transforms.rules import RULES

NASTY = "</bdi><script>alert(1)</script> $\\frac{ & \u202e\u0007'\""
VARIANTS = """
    CREATE OR REPLACE TABLE reconciled.erp_variants AS
        SELECT '1' AS product_id, '2' AS variant_id, 'V-1' AS erp_code, 'S-1' AS sku, 'never_sent' AS status,
            'nothing was sent' AS evidence"""


def test_the_page_needs_no_other_file(warehouse: Path) -> None:
    change(warehouse, "UPDATE reconciled.orders SET ordered_at = ordered_at - INTERVAL 1 YEAR")
    page = made(warehouse)
    forbidden = {"script", "link", "iframe", "object", "embed", "form", "base", "img", "use", "image", "foreignobject"}
    assert {name for name, _ in page.found}.isdisjoint(forbidden)
    text = warehouse.with_name("report.html").read_text("utf-8")
    charts = [ET.fromstring(chart) for chart in re.findall(r"<svg.*?</svg>", text, re.DOTALL)]
    assert len(charts) == 2
    for chart in charts:
        assert chart.attrib["role"] == "img"
        assert chart.attrib["aria-label"]
        bars = chart.findall("g")
        assert bars
        assert all(bar.findtext("text") and len(bar.findall("rect")) == 2 for bar in bars)
    assert len([span for span in page.all("span") if (span.get("class") or "").split()[:1] == ["bar"]]) > 20
    for _, attributes in page.found:
        assert not [name for name in attributes if name.startswith("on")]
    assert "default-src 'none'" in text
    assert not re.search(r"(src|href)=\"(?!#|data:)|@import|url\(|https?:", text)


def test_every_link_leads_to_a_place_on_the_page(warehouse: Path) -> None:
    page = made(warehouse)
    places = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    links = {(link["href"] or "").removeprefix("#") for link in page.all("a")}
    assert len(set(places)) == len(places)
    assert links == set(places)
    assert links <= {anchor(rule.entity, rule.name) for rule in RULES}
    assert links


def test_names_from_outside_are_escaped(warehouse: Path) -> None:
    with duckdb.connect(str(warehouse)) as connection:
        connection.execute("UPDATE reconciled.price_lists SET name = ?", [NASTY])
    page = made(warehouse)
    assert "<script>alert(1)</script> $\\frac{ &" in page.words
    assert "\u202e" not in page.words
    assert "\x07" not in page.words


def test_it_counts_what_the_tables_hold(warehouse: Path) -> None:
    change(warehouse, VARIANTS)
    words = made(warehouse).words
    with open_warehouse(warehouse) as connection:
        for table in ("customers", "promotions", "price_lists", "orders"):
            ((count,),) = connection.execute(f"SELECT count(*) FROM reconciled.{table}").fetchall()
            assert f"{count} {table.replace('_', ' ')} " in words
        found = connection.execute(
            "SELECT entity, rule, severity, count(*) FROM reconciled.exceptions GROUP BY entity, rule, severity"
        ).fetchall()
        for entity, rule, severity, count in found:
            assert f"{entity.replace('_', ' ')}: {rule}  {severity}, {count} found" in words
        ((run,),) = connection.execute("SELECT run_id FROM ops.runs WHERE command = 'reconcile'").fetchall()
    assert run in words
    for step in (
        "matched by ERP code 2",
        "matched by login code 0",
        "matched by e-mail 1",
        "ambiguous in the ERP 2",
        "ambiguous on the platform 1",
        "only in the ERP 1",
        "only on the platform 36",
    ):
        assert step in words
    assert "never sent 1" in words
    for word in ("an empty page", "one answer with everything", "marked as the end"):
        assert word in words
    for table in ("customer history 40 –", "erp customers 43", "erp differences", "erp variants 1 –"):
        assert table in words


def test_it_holds_no_personal_data(warehouse: Path) -> None:
    made(warehouse)
    text = warehouse.with_name("report.html").read_text("utf-8")
    with open_warehouse(warehouse) as connection:
        private = connection.execute(
            """SELECT DISTINCT unnest([first_name, full_name, email, phone, erp_code, login_code, default_fiscal_name,
                default_document_number]) AS value FROM reconciled.customers"""
        ).fetchall()
    for value in [*PRIVATE, *(value for (value,) in private if value and len(value) > 3)]:
        assert value not in text


def test_the_same_warehouse_gives_the_same_bytes(warehouse: Path, tmp_path: Path) -> None:
    once, again = tmp_path / "once.html", tmp_path / "again.html"
    report(once)
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TZ": "Asia/Tokyo", "LC_ALL": "C.UTF-8"}
    environment |= {"WAREHOUSE__PATH": str(warehouse), "PYTHONWARNINGS": "error", "PYTHONHASHSEED": "7"}
    done = command("report", "--out", str(again), env=environment, cwd=tmp_path)
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"wrote {again}: as of run ")
    assert again.read_bytes() == once.read_bytes()


def test_what_is_no_longer_listed_is_not_counted_as_listed(warehouse: Path) -> None:
    change(
        warehouse,
        """UPDATE reconciled.customers SET is_missing = TRUE;
        UPDATE reconciled.customers SET is_missing = FALSE WHERE customer_id = (SELECT min(id) FROM raw.customers)""",
    )
    words = " ".join(made(warehouse).words.split())
    assert "Records listed now, and findings by severity 1 customers " in words
    assert re.search(r"Customers who ordered: .* in 365 days, of 1\.", words)
    assert "customers 40 39" in words


def test_severities_have_the_same_words_everywhere(warehouse: Path) -> None:
    words = " ".join(made(warehouse).words.split())
    assert re.search(r"\d errors \d+ warnings \d+ info Lists", words)
    assert "notes" not in words


def test_what_expires_soon_is_reported_of_the_instant_of_the_run(warehouse: Path) -> None:
    run = "(SELECT max(ended_at) FROM ops.runs)"
    change(
        warehouse,
        f"""UPDATE reconciled.promotions SET status = 'inactive';
        UPDATE ops.runs SET started_at = started_at - INTERVAL 2 YEAR, ended_at = ended_at - INTERVAL 2 YEAR;
        UPDATE reconciled.promotions SET status = 'running', name = 'Ends soon', expires_at = {run} + INTERVAL 29 DAY
        WHERE promotion_id = (SELECT min(promotion_id) FROM reconciled.promotions);
        UPDATE reconciled.promotions SET status = 'unknown', name = 'Ends today', expires_at = {run} - INTERVAL 6 HOUR
        WHERE promotion_id = (SELECT median(promotion_id::INT)::INT FROM reconciled.promotions);
        UPDATE reconciled.promotions SET status = 'running', name = 'Ends later', expires_at = {run} + INTERVAL 31 DAY
        WHERE promotion_id = (SELECT max(promotion_id) FROM reconciled.promotions)""",
    )
    words = made(warehouse).words
    assert "Expiring within 30 days of the run: 2" in words
    assert words.index("Ends today") < words.index("Ends soon")
    assert "Ends later" not in words


def test_the_page_has_a_note_where_no_erp_file_was_compared(warehouse: Path) -> None:
    change(warehouse, "DELETE FROM reconciled.erp_customers; DELETE FROM reconciled.erp_differences")
    assert "No ERP export was compared" in made(warehouse).words
    change(warehouse, "DROP TABLE reconciled.erp_customers; DROP TABLE reconciled.erp_differences")
    assert "No ERP export was compared" in made(warehouse).words


def test_a_warehouse_without_any_row_has_a_report(warehouse: Path) -> None:
    for table in ("customers", "promotions", "price_lists", "orders", "exceptions"):
        change(warehouse, f"DELETE FROM reconciled.{table}")
    words = made(warehouse).words
    for reported in (
        "no rule found anything",
        "No price list is listed",
        "No promotion is listed",
        "No order is listed",
    ):
        assert reported in words


def test_what_was_not_read_is_not_said_to_be_absent(warehouse: Path) -> None:
    assert "not proven" not in made(warehouse).words.casefold()
    change(
        warehouse,
        """DELETE FROM reconciled.orders; DELETE FROM reconciled.promotions;
        UPDATE ops.coverage SET verdict = 'unproven' WHERE resource = 'promotions';
        DELETE FROM ops.coverage WHERE resource = 'orders';
        UPDATE reconciled.price_lists SET chain_status = 'unknown';
        UPDATE reconciled.customers SET price_list_status = 'unknown';
        INSERT INTO ops.quarantine SELECT run_id, resource, unnest([1, 2]), 1, 'adjustmentValue', 'a hash', NULL
        FROM ops.coverage WHERE resource = 'price_lists';
        INSERT INTO reconciled.exceptions (entity, entity_id, rule, severity, detail) VALUES
            ('erp_customers', NULL, 'customers_unproven', 'info', '2 lines only in the ERP: customers: unproven'),
            ('price_lists', NULL, 'unproven', 'info', 'price_lists: unproven, quarantined rows: 1')""",
    )
    words = " ".join(made(warehouse).words.split())
    for reported in (
        "price lists: price_lists: unproven, quarantined rows: 1",
        "Some of them may still be on the platform: 2 lines only in the ERP: customers: unproven.",
        "No order was read.",
        "No promotion was read.",
        "derives from a list that was not read",
        "on a list that was not read",
    ):
        assert reported in words
    assert re.search(r"price lists complete 6 1 ", words)


def test_what_is_not_known_is_not_shown_as_none_or_as_one_sum(warehouse: Path) -> None:
    change(
        warehouse,
        """DELETE FROM ops.coverage WHERE resource = 'promotions';
        UPDATE reconciled.orders SET total = 10, order_status = 'paid', is_cancelled = false, currency = CASE order_id
            WHEN (SELECT min(order_id) FROM reconciled.orders) THEN '€' ELSE
            CASE WHEN number % 2 = 0 THEN 'Euros' ELSE 'US dollars' END END;
        UPDATE reconciled.customer_orders SET is_active_30_days = NULL, is_active_365_days = NULL""",
    )
    words = " ".join(made(warehouse).words.split())
    assert "findings by severity 40 customers – promotions 6 price lists 30 orders" in words
    assert "Never read: promotions." in words
    assert "29 orders have no readable total, or one of several unknown currencies" in words
    assert re.search(r"change € 10\.00 1 ", words)
    assert "290.00" not in words
    assert "Customers who ordered" not in words


def test_lists_pulled_after_the_run_are_reported(warehouse: Path) -> None:
    assert "pulled again" not in made(warehouse).words
    change(
        warehouse,
        """INSERT INTO ops.runs (run_id, command, started_at, ended_at, exit_code)
        SELECT '99991231T000000Z-00000000', 'pull', max(ended_at), max(ended_at) + INTERVAL 1 HOUR, 0 FROM ops.runs""",
    )
    assert "pulled again" in made(warehouse).words


def test_a_walk_that_failed_is_reported_with_the_age_of_what_is_there(warehouse: Path) -> None:
    change(
        warehouse,
        """UPDATE ops.runs SET ended_at = ended_at + INTERVAL 3 DAY;
        INSERT INTO ops.coverage BY NAME SELECT 'x' AS run_id, 'orders' AS resource, 'incomplete' AS verdict,
            'walk failed' AS evidence, 'error' AS ended_by, max(ended_at) + INTERVAL 3 DAY AS ended_at
        FROM ops.coverage""",
    )
    words = made(warehouse).words
    assert "incomplete, not published" in words
    assert "3 days" in words


def test_what_is_new_leads_and_what_is_accepted_is_only_counted(warehouse: Path) -> None:
    change(
        warehouse,
        """INSERT INTO ops.finding_counts BY NAME SELECT 'earlier' AS run_id, 'customers' AS entity,
            'email_malformed' AS rule, 'warning' AS severity, 41 AS findings, 4 AS accepted;
        CREATE TEMP TABLE own AS FROM ops.control_totals;
        DELETE FROM ops.control_totals;
        INSERT INTO ops.control_totals VALUES ('earlier', 'reconciled.customers', 'raw', 1);
        INSERT INTO ops.control_totals FROM own;
        UPDATE reconciled.exceptions SET first_run_id = 'earlier';
        DELETE FROM reconciled.exceptions WHERE rule IN ('email_malformed', 'values_gone');
        INSERT INTO reconciled.exceptions BY NAME SELECT 'customers' AS entity, '1' AS entity_id,
            'email_malformed' AS rule, 'warning' AS severity, '' AS detail, n > 2 AS is_accepted,
            (SELECT arg_max(run_id, rowid) FROM ops.runs) AS first_run_id FROM range(50) numbers(n);
        INSERT INTO reconciled.exceptions BY NAME SELECT 'orders' AS entity, 'values_gone' AS rule,
            'error' AS severity, 'orders: total: 40 values before' AS detail, false AS is_accepted,
            (SELECT arg_max(run_id, rowid) FROM ops.runs) AS first_run_id""",
    )
    words = " ".join(made(warehouse).words.split())
    news = (
        "Findings new since the last run: 1 error, 3 warnings error orders.values_gone: orders: total: 40 values before"
    )
    assert f"What changed {news} warning customers.email_malformed: 3" in words
    assert "warning customers email malformed 3 37" in words
    assert "Accepted and not listed: 47." in words


def test_a_rule_of_another_version_is_reported_as_unknown(warehouse: Path) -> None:
    change(
        warehouse,
        """INSERT INTO reconciled.exceptions BY NAME SELECT 'orders' AS entity, '1' AS entity_id,
        'from_the_future' AS rule, 'warning' AS severity, '' AS detail, false AS is_accepted""",
    )
    words = made(warehouse).words
    assert "from_the_future" in words
    assert "does not know the rule" in words


def test_a_new_report_is_its_owners_and_a_replaced_one_keeps_its_mode(warehouse: Path, tmp_path: Path) -> None:
    out, link = tmp_path / "out" / "report.html", tmp_path / "link.html"
    out.parent.mkdir()
    report(out)
    assert out.stat().st_mode & 0o777 == 0o600
    out.chmod(0o644)
    link.symlink_to(out)
    report(link)
    assert link.is_symlink()
    assert out.stat().st_mode & 0o777 == 0o644
    assert out.read_text("utf-8").startswith(START)
    assert [path.name for path in out.parent.iterdir()] == ["report.html"]


@pytest.mark.parametrize("kind", ["warehouse", "folder", "other", "nowhere", "device"])
def test_what_is_no_report_is_not_overwritten(warehouse: Path, tmp_path: Path, kind: str) -> None:
    (tmp_path / "other").write_text("<!doctype html>\n<p>somebody's page")
    (tmp_path / "folder").mkdir()
    out = {"warehouse": warehouse, "nowhere": tmp_path / "no" / "where.html", "device": Path("/dev/null")}.get(
        kind, tmp_path / kind
    )
    before = warehouse.read_bytes(), (tmp_path / "other").read_bytes()
    listed = sorted(tmp_path.iterdir())
    with pytest.raises(UsageError, match="--out FILE"):
        report(out)
    assert (warehouse.read_bytes(), (tmp_path / "other").read_bytes()) == before
    assert sorted(tmp_path.iterdir()) == listed


def test_without_anything_reconciled_there_is_no_report(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    out, none = tmp_path / "report.html", tmp_path / "none.duckdb"
    monkeypatch.setenv("WAREHOUSE__PATH", str(none))
    with pytest.raises(UsageError, match="orderbridge run"):
        report(out)
    change(none, "CREATE TABLE t (a INTEGER)")
    with pytest.raises(UsageError, match="orderbridge reconcile"):
        report(out)
    assert not out.exists()


def test_the_first_thing_shown_is_what_changed_since_the_run_before(warehouse: Path) -> None:
    words = " ".join(made(warehouse).words.split())
    assert "This is the first run: everything is new" in words
    assert words.index("What changed") < words.index("Lists: coverage")
    change(
        warehouse,
        f"""{RECORDED_BEFORE.format(run="00000000T000000Z-0", ended_at="2026-01-02 03:04Z")};
        UPDATE ops.control_totals SET value = 7 WHERE entity = 'customers' AND measure = 'changed';
        UPDATE ops.control_totals SET value = 1203 WHERE entity = 'customers' AND measure = 'newly_missing'""",
    )
    words = " ".join(made(warehouse).words.split())
    assert "customers 40 7 1,203 2026-01-02 03:04" in words
    assert "promotions 9 0 0 –" in words


def test_a_run_of_a_clock_that_was_wrong_is_not_the_last_one_for_ever(warehouse: Path) -> None:
    change(warehouse, RECORDED_BEFORE.format(run="20990101T000000Z-0", ended_at="2099-01-01 00:00Z"))
    words = " ".join(made(warehouse).words.split())
    assert "customers 40 0 0 2099-01-01 00:00" in words
    assert "pulled again" not in words
    with open_warehouse(warehouse) as connection:
        last = connection.execute("SELECT run_id FROM bi.lists WHERE resource = 'customers'").fetchall()
        assert read_status().runs[-1]["run_id"] == "20990101T000000Z-0"
        sql = "SELECT run_id FROM ops.coverage WHERE resource = 'customers' AND read_number > 0"
        assert last == connection.execute(sql).fetchall()


RECORDED_BEFORE = """
    CREATE TEMP TABLE coverage AS FROM ops.coverage;
    CREATE TEMP TABLE runs AS FROM ops.runs;
    TRUNCATE ops.coverage;
    TRUNCATE ops.runs;
    INSERT INTO ops.coverage BY NAME SELECT '{run}' AS run_id, resource, verdict, published,
        '{ended_at}'::TIMESTAMPTZ AS ended_at, 0 AS read_number FROM temp.coverage WHERE resource = 'customers';
    INSERT INTO ops.coverage FROM temp.coverage;
    INSERT INTO ops.runs (run_id, command, ended_at) VALUES ('{run}', 'pull', '{ended_at}');
    INSERT INTO ops.runs FROM temp.runs"""
"""A read of the customers, recorded before all others."""


def test_the_match_with_the_erp_is_a_percentage_of_its_lines(warehouse: Path) -> None:
    words = " ".join(made(warehouse).words.split())
    assert "Match with the ERP: 50.0 % of its 6 customers are matched (3)." in words


def test_revenue_by_day_is_summed_by_currency_and_the_running_month_is_marked(warehouse: Path) -> None:
    with open_warehouse(warehouse) as connection:
        ((count,),) = connection.execute(
            """SELECT count(*) FROM reconciled.orders
            WHERE ordered_at::DATE > (SELECT max(ended_at) FROM ops.runs)::DATE - 30"""
        ).fetchall()
    assert count > 0
    assert f"{count} orders in the 30 days before the run" in made(warehouse).words
    change(
        warehouse, "UPDATE reconciled.orders SET ordered_at = '2025-05-01 00:00Z'::TIMESTAMPTZ + to_hours(number % 99)"
    )
    assert "No order is dated within the 30 days before the run; the latest is of 2025-" in made(warehouse).words
    run = "'2026-03-20 10:00Z'::TIMESTAMPTZ"
    change(
        warehouse,
        f"""UPDATE ops.runs SET ended_at = {run};
        DELETE FROM reconciled.orders
        WHERE order_id NOT IN (SELECT order_id FROM reconciled.orders ORDER BY order_id LIMIT 5);
        UPDATE reconciled.orders SET total = 10.25, currency = 'EUR', ordered_at = {run} - INTERVAL 2 DAY,
            order_status = 'DELIVERED', is_cancelled = false;
        UPDATE reconciled.orders SET order_status = 'Cancelled', is_cancelled = true
        WHERE order_id = (SELECT order_id FROM reconciled.orders ORDER BY order_id LIMIT 1 OFFSET 1);
        UPDATE reconciled.orders SET ordered_at = {run} - INTERVAL 2 YEAR, total = 0.5
        WHERE order_id = (SELECT min(order_id) FROM reconciled.orders);
        UPDATE reconciled.orders SET ordered_at = {run}, currency = '<b>'
        WHERE order_id = (SELECT max(order_id) FROM reconciled.orders)""",
    )
    page = made(warehouse)
    words = " ".join(page.words.split())
    assert (
        "3 orders in the 30 days before the run, 20.50 EUR and 10.25 (currency unknown) in total "
        "(cancelled and not counted: 1)."
    ) in words
    assert "4 orders are counted below. 1 more are listed and cancelled" in words
    assert re.search(r"currency revenue orders revenue, last 30 days change EUR 21.00 3 20.50", words)
    assert "Revenue by day in EUR, the last 30 days" in words
    assert "2026-03-18: 20.50 EUR" in words
    assert "2026-03 so far: 3 orders" in words
    assert "DELIVERED 4" in words
    assert "Cancelled 1" in words
    assert "The fainter bar is the running month" in words
    assert "EUR 21.00" in words
    assert "unknown 10.25" in words
    assert "<b>" not in words


def test_it_says_whose_data_it_is_and_answers_what_sells_who_stopped_and_how_the_quality_develops(
    warehouse: Path,
) -> None:
    change(
        warehouse,
        """UPDATE ops.warehouse SET organization = 'Bodega & Cía', legacy_host = 'shop.example', public_v1_host = NULL;
        INSERT INTO ops.finding_counts BY NAME SELECT * REPLACE (recorded_at - INTERVAL 1 DAY AS recorded_at,
            'before' AS run_id, findings + 7 AS findings) FROM ops.finding_counts;
        CREATE TABLE later AS FROM ops.control_totals; DELETE FROM ops.control_totals;
        INSERT INTO ops.control_totals BY NAME SELECT 'before' AS run_id, 'reconciled.orders' AS entity;
        INSERT INTO ops.control_totals FROM later; DROP TABLE later;
        INSERT INTO ops.promotion_uses SELECT promotion_id, 'r', use_count + 12345, read_at + INTERVAL 1 DAY
            FROM ops.promotion_uses ORDER BY promotion_id LIMIT 1;
        CREATE OR REPLACE TABLE reconciled.erp_pairs AS SELECT 'email' AS matched_by, * FROM (VALUES
            ('possible', 4), ('matched', 9), ('matched', 9), ('matched', 10)) AS t (status, weight);
        UPDATE reconciled.orders SET ordered_at = (SELECT max(ended_at) FROM ops.runs) - to_days(n::INTEGER),
            customer_id = (SELECT min(customer_id) FROM reconciled.customers), customer_status = 'matched',
            is_cancelled = false
        FROM (SELECT order_id, 29 + row_number() OVER (ORDER BY order_id) AS n FROM reconciled.orders) AS nth
        WHERE nth.order_id = orders.order_id""",
    )
    words = " ".join(made(warehouse).words.split())
    assert "from the sandbox environment of Bodega & Cía (shop.example). Days and months are those of UTC." in words
    found = re.findall(r"(?:error|warning|info) (?:[a-z]+ ){1,2}?([a-z ]+?) (\d+) (\d+) ", words)
    rule_counts = {(rule, int(count), int(before)) for rule, count, before in found}
    with open_warehouse(warehouse) as connection:
        ((product, revenue),) = connection.execute(
            "SELECT product, revenue FROM bi.top_products ORDER BY revenue DESC NULLS LAST LIMIT 1"
        ).fetchall()
    assert re.search(rf"Top products .*{product} .* {revenue:,.2f}", words)
    assert "Regular customers who stopped: 1 of 1" in words
    assert "No order is dated within the 30 days before the run" in words, "one is of the day before these"
    assert len(rule_counts) > 5
    assert rule_counts == {(rule, count, count + 7) for rule, count, _ in rule_counts}
    assert re.search(r"Uses between runs .* 12,345 ", words)
    assert re.search(r"Over time run \(UTC\) errors warnings info new gone .* .*", words)
    assert "To be decided by a person: 1 possible pairs, 2 doubtful matches" in words
