"""The report: one page that needs nothing else and holds nobody's data; its numbers are those of the tables."""

from __future__ import annotations

import os
import re
import shlex
from datetime import timedelta
from decimal import Decimal
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest

from orderbridge.pipelines.cli.reconcile import print_reconcile
from orderbridge.pipelines.cli.status import lines
from orderbridge.pipelines.reconcile.reconcile import reconcile
from orderbridge.pipelines.reporting.notification import run_summary
from orderbridge.pipelines.reporting.report import START, report
from orderbridge.pipelines.reporting.status import Status, _is_older, read_status
from orderbridge.pipelines.reporting.tables import anchor
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.ops import LastRead
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.transforms.rules import RULES
from tests.pipelines.bridge import Done, bridge, command, pulled
from tests.pipelines.reporting.page import change, made, personal

RUN = "(SELECT max(ended_at) FROM ops.runs)"


def words_of(path: Path, sql: str = "") -> str:
    """The text of the page, after a change of the warehouse."""
    if sql:
        change(path, sql)
    return " ".join(made(path).words.split())


def test_the_page_is_one_file_counts_what_the_tables_hold_without_personal_data(
    warehouse: Path,
) -> None:
    change(
        warehouse,
        """CREATE OR REPLACE TABLE reconciled.erp_variants AS SELECT '1' AS product_id, '2' AS variant_id,
            'V-1' AS erp_code, 'S-1' AS sku, 'never_sent' AS status, 'nothing was sent' AS evidence""",
    )
    page, html = made(warehouse), warehouse.with_name("report.html").read_text("utf-8")
    words = " ".join(page.words.split())
    forbidden = {
        "script",
        "link",
        "iframe",
        "object",
        "embed",
        "form",
        "base",
        "img",
        "use",
        "image",
        "foreignobject",
    }
    assert {name for name, _ in page.found}.isdisjoint(forbidden)
    charts = [ET.fromstring(chart) for chart in re.findall(r"<svg.*?</svg>", html, re.DOTALL)]
    assert charts
    for chart in charts:
        assert chart.attrib["aria-label"]
        assert all(
            bar.findtext("text") and len(bar.findall("rect")) == 2 for bar in chart.findall("g")
        )
    assert not [
        name for _, attributes in page.found for name in attributes if name.startswith("on")
    ]
    assert "default-src 'none'" in html
    assert not re.search(r"(src|href)=\"(?!#|data:)|@import|url\(|https?:", html)
    places = [attributes["id"] for _, attributes in page.found if "id" in attributes]
    links = {(link["href"] or "").removeprefix("#") for link in page.all("a")}
    assert len(set(places)) == len(places) > 0
    assert links == set(places) <= {anchor(rule.entity, rule.name) for rule in RULES}
    with open_warehouse(warehouse) as connection:
        for table in ("customers", "promotions", "price_lists", "orders"):
            ((count,),) = connection.execute(f"SELECT count(*) FROM reconciled.{table}").fetchall()
            assert f"{count} {table.replace('_', ' ')} " in words
        found = connection.execute(
            "SELECT entity, rule, severity, count(*) FROM reconciled.exceptions GROUP BY entity, rule, severity"
        ).fetchall()
        for entity, rule, severity, count in found:
            said = f"{entity}: {rule}".replace("_", " ")
            assert f"{said} {severity}, {count} found" in words
        ((run,),) = connection.execute(
            "SELECT run_id FROM ops.runs WHERE command = 'reconcile'"
        ).fetchall()
    for text in (
        run, "matched by ERP code 2", "matched by login code 0", "matched by e-mail 1", "ambiguous in the ERP 2",
        "ambiguous on the platform 1", "only in the ERP 1", "only on the platform 36", "never sent 1",
        "Match with the ERP: 50.0 % of its 6 lines are matched (3).",
        "matched by a person 0", "an empty page", "one answer with everything", "marked as the end",
        "customer history 40 –", "erp customers 43", "erp differences", "erp variants 1 –",
    ):  # fmt: skip
        assert text in words
    assert re.search(r"\d errors \d+ warnings \d+ info Lists", words)
    assert not [value for value in personal(warehouse, "first_name") if value in html]


def test_joins_of_the_views_add_and_lose_no_row(warehouse: Path) -> None:
    change(
        warehouse,
        """UPDATE reconciled.orders SET customer_id = 'nobody', customer_status = 'unknown'
        WHERE order_id = (SELECT max(order_id) FROM reconciled.orders);
        UPDATE reconciled.order_lines SET line_amount = 10;
        UPDATE reconciled.promotions SET use_count = 9000000000000000000, usage_limit = -1""",
    )
    with open_warehouse(warehouse) as connection:
        for sql, expected in (
            ("min(revenue), max(revenue) FROM bi.order_lines WHERE is_cancelled", (0, 0)),
            ("DISTINCT used_percent FROM bi.promotions", (None,)),  # the limit means nothing
        ):
            assert connection.execute(f"SELECT {sql}").fetchall() == [expected]
        for view in ("customers", "orders", "promotions", "price_lists", "order_lines"):
            table = "orders__lines" if view == "order_lines" else view
            counts = f"SELECT (SELECT count(*) FROM bi.{view}), (SELECT count(*) FROM raw.{table})"
            ((rows, expected_rows),) = connection.execute(counts).fetchall()
            assert rows == expected_rows, view


EXPIRE = f"""UPDATE reconciled.promotions SET status = '{{}}', name = '{{}}', expires_at = {RUN} + to_hours({{}})
    WHERE promotion_id = (SELECT {{}} FROM reconciled.promotions)"""


@pytest.mark.parametrize(
    ("sql", "says", "silent"),
    [
        (
            """DELETE FROM reconciled.erp_customers; DROP TABLE reconciled.erp_differences;
            INSERT INTO reconciled.exceptions BY NAME SELECT 'orders' AS entity, '1' AS entity_id,
                unnest(['from_the_future', 'from_the_past']) AS rule, 'warning' AS severity, '' AS detail,
                rule = 'from_the_past' AS is_accepted;
            UPDATE ops.runs SET ended_at = ended_at + INTERVAL 3 DAY;
            INSERT INTO ops.coverage BY NAME SELECT 'x' AS run_id, 'orders' AS resource, 'incomplete' AS verdict,
                'walk failed' AS evidence, 'error' AS ended_by, max(ended_at) + INTERVAL 3 DAY AS ended_at
            FROM ops.coverage;
            INSERT INTO ops.runs (run_id, command, started_at, ended_at, exit_code) SELECT '99991231T000000Z-0',
            'pull', max(ended_at), max(ended_at) + INTERVAL 1 HOUR, 0 FROM ops.runs""",
            [
                "No ERP export was compared", "from the future", "does not know the rule", "read again",
                "failed, not published", "3 days", "Accepted and not listed: 1.", "orders from the future 1 ",
            ],
            ["Match with the ERP"],
        ),
        (
            "".join(f"DELETE FROM reconciled.{one};" for one in ("customers", *LISTS, "exceptions")),
            ["no rule found anything", "No price list is listed", "No promotion is listed", "No order is listed"],
            [],
        ),
        (
            f"""UPDATE reconciled.customers SET is_missing = customer_id <> (SELECT min(id) FROM raw.customers);
            UPDATE reconciled.promotions SET status = 'inactive';
            UPDATE ops.runs SET started_at = started_at - INTERVAL 2 YEAR, ended_at = ended_at - INTERVAL 2 YEAR;
            {EXPIRE.format("running", "Ends soon", 29 * 24, "min(promotion_id)")};
            {EXPIRE.format("unknown", "Ends today", -6, "median(promotion_id::INT)::INT")};
            {EXPIRE.format("running", "Ends later", 31 * 24, "max(promotion_id)")}""",
            [
                " 1 customers ", "in 365 days, of 1.", "customers 40 39",
                "Expiring within 30 days of the run: 2", "Ends today", "Ends soon",
            ],
            ["Ends later"],
        ),
        (
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
            [
                "price lists: price_lists: unproven, quarantined rows: 1", "No order was read.",
                "No promotion was read.",
                "Some of them may still be on the platform: 2 lines only in the ERP: customers: unproven.",
                "price lists complete 6 1 ", "derives from a list that was not read", "on a list that was not read",
            ],
            [],
        ),
        (
            f"""DELETE FROM ops.coverage WHERE resource = 'promotions'; DELETE FROM reconciled.price_lists;
            UPDATE ops.coverage SET ended_at = ended_at + INTERVAL 1 DAY WHERE resource = 'price_lists';
            UPDATE reconciled.orders SET total = 10, order_status = order_id, is_cancelled = false,
                is_sale = true, ordered_at = {RUN} + INTERVAL 2 DAY, currency = CASE
                order_id WHEN (SELECT min(order_id) FROM reconciled.orders) THEN '€' ELSE
                CASE WHEN number % 2 = 0 THEN 'Euros' END END;
            UPDATE reconciled.order_lines SET line_amount = NULL WHERE line_number = 1;
            UPDATE reconciled.customer_orders SET is_active_30_days = NULL, is_active_365_days = NULL""",
            [
                " 40 customers ", " – promotions ", " 0 price lists ", " 30 orders ", "Never read: promotions.",
                "29 orders have no readable total, or one of several unknown currencies", "change € 10.00 1 ",
                "No order is dated within the 30 days before the run", "No price list was read.",
                "30 lines have no known amount: the revenue of products is without them.",
            ],
            ["290.00", "Customers who ordered", "status orders currency total"],
        ),
    ],
)  # fmt: skip
def test_the_page_says_what_is_so_and_nothing_that_is_not(
    warehouse: Path, sql: str, says: list[str], silent: list[str]
) -> None:
    words = words_of(warehouse, sql)
    assert (
        [text for text in says if text not in words]
        == [text for text in silent if text in words]
        == []
    )


def test_revenue_by_day_is_summed_by_currency_and_the_running_month_is_marked(
    warehouse: Path,
) -> None:
    words = words_of(
        warehouse,
        """UPDATE ops.runs SET ended_at = '2026-03-20 10:00:00Z'; DELETE FROM reconciled.orders;
        INSERT INTO reconciled.orders BY NAME SELECT days || currency || total AS order_id, currency, total,
            '2026-03-20 10:00:00Z'::TIMESTAMPTZ - to_days(days) AS ordered_at, total = 7 AS is_cancelled,
            NOT is_cancelled AS is_sale,
            if(is_cancelled, 'Cancelled', 'DELIVERED') AS order_status, false AS is_missing,
            'matched' AS customer_status
        FROM (VALUES (2, 'EUR', 10.25), (29, 'EUR', 10.25), (2, 'EUR', 7), (0, 'ANA <b>', 10.25),
            (30, 'EUR', 4), (59, 'EUR', 4.2), (60, 'EUR', 100), (730, 'EUR', 0.5)) AS t (days, currency, total)""",
    )
    for text in (
        "3 orders in the 30 days before the run, 20.50 EUR and 10.25 (currency unknown) in total "
        "(cancelled or refunded, not counted: 1).",
        "7 orders are counted below. 1 more is listed and cancelled", "Orders: 7 by a known customer",
        "last 30 days change EUR 129.20 6 20.50 +150 % unknown 10.25 1 10.25 –",
        "Revenue by day in EUR, the last 30 days", "2026-03-18: 10.25 EUR", "2026-03 so far: 2 orders",
        "DELIVERED 6 EUR 129.20 ", "other (fewer than 5 orders each) 1 EUR 7.00",
        "The fainter bar is the running month",
    ):  # fmt: skip
        assert text in words
    assert "<b>" not in words
    with open_warehouse(warehouse) as connection:
        days = "SELECT sum(orders), sum(cancelled_orders), sum(revenue) FROM bi.revenue_by_day WHERE currency = 'EUR'"
        assert connection.execute(days).fetchall() == [(6, 1, Decimal("129.20"))]
    lately = "WHERE ordered_date > '2026-02-18' AND currency = 'EUR'"
    unknown = words_of(warehouse, f"UPDATE reconciled.orders SET total = NULL {lately}")
    assert "EUR 108.70 6 – –" in unknown, "orders were made, and no total of them is known"
    assert "EUR 108.70 4 0.00 -100 %" in words_of(
        warehouse, f"DELETE FROM reconciled.orders {lately}"
    )


def test_it_has_twelve_whole_months_and_the_best_customers_of_a_year(
    warehouse: Path,
) -> None:
    words = words_of(
        warehouse,
        """UPDATE ops.runs SET ended_at = '2026-12-01 01:00:00Z'; DELETE FROM reconciled.orders;
        INSERT INTO reconciled.orders BY NAME SELECT day || customer_id AS order_id, 'EUR' AS currency, total,
            (day || ' 12:00:00Z')::TIMESTAMPTZ AS ordered_at, false AS is_cancelled, true AS is_sale,
            'DELIVERED' AS order_status, false AS is_missing, 'matched' AS customer_status, customer_id,
            total - net AS charges_in_total
        FROM (VALUES ('2025-11-30', 'A', 5000, 5000), ('2025-12-05', 'B', 100, 80), ('2026-11-05', 'C', 70, 65),
            ('2026-11-06', 'A', 20, 10), ('2026-11-07', 'C', 20, 20), ('2025-12-01', 'A', 3e10, 3e10),
            ('2025-12-01', 'R', -3e10, -3e10), ('2026-11-08', 'U', NULL, NULL)) AS t (day, customer_id, total, net)""",
    )
    assert "2025-12 EUR 3 100.00" in words, (
        "also where returns leave a share that is no number of 32 bits"
    )
    assert "2025-11 EUR" not in words
    assert (
        "last order C EUR 85.00 90.00 2 2026-11-07 B EUR 80.00 100.00 1 2025-12-05"
        " A EUR 10.00 20.00 1 2026-11-06 " in words
    )


def test_what_changed_is_counted_since_the_run_before_with_what_imports_have_read(
    warehouse: Path,
) -> None:
    words = words_of(
        warehouse,
        """INSERT INTO ops.runs BY NAME SELECT last.* REPLACE (id AS run_id, name AS command) FROM (
            SELECT * FROM ops.runs ORDER BY rowid DESC LIMIT 1) AS last,
            (VALUES ('i', 'import'), ('p', 'pull'), ('r', 'reconcile')) AS added (id, name);
        INSERT INTO ops.coverage BY NAME SELECT one.* REPLACE (id AS run_id) FROM (
            SELECT * FROM ops.coverage WHERE resource = 'customers' LIMIT 1) AS one,
            (VALUES ('i'), ('p')) AS added (id);
        INSERT INTO ops.control_totals BY NAME SELECT * FROM (VALUES ('i', 'customers', 'new', 301),
            ('p', 'customers', 'new', 7), ('r', 'reconciled.orders', 'rows', 1))
            AS t (run_id, entity, measure, value)""",
    )
    assert "customers 308 " in words[words.index("What changed") :]


def test_lists_that_an_import_has_read_since_are_newer_than_the_figures(warehouse: Path) -> None:
    words = words_of(
        warehouse,
        """INSERT INTO ops.runs BY NAME SELECT * REPLACE ('i' AS run_id, 'import' AS command)
            FROM ops.runs ORDER BY rowid DESC LIMIT 1;
        INSERT INTO ops.coverage BY NAME SELECT * REPLACE ('i' AS run_id)
            FROM ops.coverage WHERE resource = 'customers' LIMIT 1""",
    )
    assert "Lists were read again until" in words
    assert "Records when the lists were last reconciled" in words
    assert "Records listed now" not in words


def test_it_says_whose_data_it_is_who_stopped_and_how_the_quality_develops(warehouse: Path) -> None:
    words = words_of(
        warehouse,
        """UPDATE ops.warehouse SET organization = 'Bodega <i>', legacy_host = 'shop.example', public_v1_host = NULL;
        INSERT INTO ops.finding_counts BY NAME SELECT * REPLACE (recorded_at - INTERVAL 1 DAY AS recorded_at,
            'before' AS run_id, findings + 9 AS findings, accepted + 2 AS accepted) FROM ops.finding_counts;
        CREATE TABLE later AS FROM ops.control_totals; DELETE FROM ops.control_totals;
        INSERT INTO ops.control_totals BY NAME SELECT 'before' AS run_id, 'reconciled.orders' AS entity;
        INSERT INTO ops.control_totals BY NAME SELECT 'before' AS run_id, 'reconciled.erp_customers' AS entity,
            unnest(['matched', 'only_in_erp']) AS measure, unnest([1, 7]) AS value;
        INSERT INTO ops.control_totals FROM later; DROP TABLE later;
        INSERT INTO ops.promotion_uses SELECT promotion_id, 'r', use_count + 12345, read_at + INTERVAL 1 DAY
            FROM ops.promotion_uses ORDER BY promotion_id LIMIT 1;
        CREATE OR REPLACE TABLE reconciled.erp_pairs AS SELECT 'email' AS matched_by, * FROM (VALUES
            ('possible', 4), ('matched', 9), ('matched', 9), ('matched', 10)) AS t (status, weight);
        UPDATE reconciled.orders SET ordered_at = (SELECT max(ended_at) FROM ops.runs) - to_days(n::INTEGER),
            customer_id = (SELECT min(customer_id) FROM reconciled.customers), customer_status = 'matched',
            is_cancelled = false, is_sale = true
        FROM (SELECT order_id, 29 + row_number() OVER (ORDER BY order_id) AS n FROM reconciled.orders) AS nth
        WHERE nth.order_id = orders.order_id;
        UPDATE reconciled.customers SET price_list_id = 'L9', price_list_name = NULL;
        UPDATE reconciled.erp_customers SET members = NULL WHERE status = 'ambiguous';
        INSERT INTO ops.coverage SELECT * REPLACE ((SELECT max_by(run_id, rowid) FROM ops.runs) AS run_id)
            FROM ops.coverage WHERE resource = 'customers';
        INSERT INTO ops.control_totals BY NAME SELECT max_by(run_id, rowid) AS run_id, 'customers' AS entity,
            'new' AS measure, 0 AS value FROM ops.runs;
        UPDATE ops.runs SET command = 'import' WHERE command = 'pull'""",
    )
    assert "Sales and data of Bodega <i>, 20" in words
    assert (
        "from the sandbox environment of Bodega <i> (shop.example). Days and months are those of UTC."
        in words
    )
    for text in (
        "are matched (3); in the run before 12.5 %.",
        "Regular customers who have stopped by now: 1 of 1 Those who stopped had 30 orders",
        "price list regular customers stopped not listed: L9 1 1",
        "No order is dated within the 30 days before the run",  # one is of the day before these
        "To be decided by a person: 1 possible pair, 2 doubtful matches", "ambiguous in the ERP, 2 repeat a code",
        "UTC by an import.", " 12,345 ", "customers of the platform have no line in the ERP",
    ):  # fmt: skip
        assert text in words
    assert words.index("Revenue and customers, by month") < words.index("What changed")
    found = re.findall(r"(?:error|warning|info) (?:[a-z]+ ){1,2}?([a-z ]+?) (\d+) (\d+) ", words)
    assert len(found) > 5
    assert {int(before) - int(count) for _, count, before in found} == {7}
    assert re.search(
        r"Over time run \(UTC\) errors warnings info new gone (\S+ \S+ \d+ \d+ \d+ \d+ \d+ ){2}",
        words,
    )


def test_a_status_of_fewer_than_five_orders_is_not_shown_it_may_be_a_name(warehouse: Path) -> None:
    status = """UPDATE reconciled.orders SET order_status = '{}' WHERE order_id IN
        (SELECT order_id FROM reconciled.orders WHERE NOT is_missing ORDER BY order_id LIMIT {} OFFSET {})"""
    changes = ["UPDATE reconciled.orders SET order_status = 'paid'"]
    changes += [
        status.format(*one) for one in (("Zoe Quispe", 4, 0), ("Ana Ñ", 1, 4), ("sent", 5, 5))
    ]
    changes.append(
        """CREATE OR REPLACE TABLE reconciled.meanings AS SELECT 'reconcile.order_statuses' AS question,
        'assumed' AS state, 'paid=sale,Zoe Quispe=sale' AS value"""
    )
    words = words_of(warehouse, "; ".join(changes))
    assert not [name for name in ("Zoe", "Quispe", "Ana Ñ") if name in words]
    assert "other (fewer than 5 orders each) 5 " in words
    assert "sent 5 " in words
    assert "that no person has confirmed: which statuses of orders are sales. To see" in words


def test_it_is_read_without_a_repository_its_keys_and_tables_are_in_commands_alone(
    warehouse: Path,
) -> None:
    settings = [one.key for one in SETTINGS.values() if one.section == "reconcile"]
    assumed = ", ".join(f"('{key}', 'assumed', 'a')" for key in settings)
    change(
        warehouse,
        f"""CREATE OR REPLACE TABLE reconciled.meanings AS
        SELECT * FROM (VALUES {assumed}) AS m(question, state, value)""",
    )
    out = warehouse.with_name("report.html")
    report(out)
    text = out.read_text("utf-8")
    (title,) = re.findall("<title>(.*?)</title>", text)
    assert f"<h1>{title}</h1>" in text
    plain = re.sub(r"<style>.*?</style>|<code>.*?</code>|<[^<>]*>", " ", text, flags=re.DOTALL)
    assert "that no person has confirmed" in plain
    assert not re.findall(r"\b(?:reconcile|reconciled|sources|bi|raw|ops)\.\w+|\w+\.md\b", plain)


def test_findings_and_names_of_any_number_and_length_have_a_report_of_bounded_size(
    warehouse: Path,
) -> None:
    rules = ", ".join(f"('{rule.entity}', '{rule.name}', '{rule.severity}')" for rule in RULES)
    words = words_of(
        warehouse,
        f"""INSERT INTO reconciled.exceptions BY NAME
        SELECT entity, i::VARCHAR AS entity_id, rule, severity, 'detail ' || i AS detail, false AS is_accepted
        FROM (VALUES {rules}) AS rules(entity, rule, severity), range(1000) numbers(i);
        INSERT INTO reconciled.price_lists BY NAME SELECT 'L' || i AS price_list_id, repeat('name ', 99) AS name,
            'root' AS chain_status, 1234567 AS customer_count, FALSE AS is_missing FROM range(3000) numbers(i)""",
    )
    assert re.search(r"\d{2},\d{3} errors \d{2},\d{3} warnings", words)
    assert "name name…" in words.replace(" …", "…")
    assert f"And {len(RULES) - 40} more." in words
    html = warehouse.with_name("report.html").read_text("utf-8")
    assert (
        max(table.count("<tr>") for table in re.findall("<tbody>(.*?)</tbody>", html, re.DOTALL))
        == 40
    )
    assert len(html) < 150_000


def test_a_report_has_the_same_bytes_is_private_and_replaces_reports_alone(
    warehouse: Path, tmp_path: Path
) -> None:
    once, again, link = tmp_path / "once.html", tmp_path / "again.html", tmp_path / "link.html"
    link.symlink_to(once)
    for mode in (0o600, 0o644):
        report(link)
        assert (link.is_symlink(), once.stat().st_mode & 0o777) == (True, mode)
        once.chmod(0o644)
    assert once.read_text("utf-8").startswith(START)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "TZ": "Asia/Tokyo",
        "LC_ALL": "C.UTF-8",
    }
    done = command(
        "report",
        "--out",
        str(again),
        env=environment | {"WAREHOUSE__PATH": str(warehouse)},
        cwd=tmp_path,
    )
    assert (done.code, done.err) == (0, "")
    assert done.out.startswith(f"wrote {again}: as of run ")
    assert again.read_bytes() == once.read_bytes()
    (tmp_path / "other").write_text("<!doctype html>\n<p>somebody's page")
    (tmp_path / "folder").mkdir()
    before, listed = (
        (warehouse.read_bytes(), (tmp_path / "other").read_bytes()),
        sorted(tmp_path.iterdir()),
    )
    for out in (
        warehouse,
        tmp_path / "other",
        tmp_path / "folder",
        tmp_path / "no/where.html",
        Path("/dev/null"),
    ):
        with pytest.raises(UsageError, match=r"--out report\.html"):
            report(out)
    assert (warehouse.read_bytes(), (tmp_path / "other").read_bytes()) == before
    assert sorted(tmp_path.iterdir()) == listed


@pytest.mark.parametrize("name", ["r.pdf", "r.XLSX", "r.docx"])
def test_a_name_that_another_program_would_open_is_refused_with_the_right_command(
    warehouse: Path, tmp_path: Path, name: str
) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(tmp_path)}
    environment["WAREHOUSE__PATH"] = str(warehouse)

    def run(*words: str) -> Done:
        return command(*words, env=environment, cwd=tmp_path)

    refused = run("report", "--lang", "es", "--out", name)
    assert (refused.code, refused.out) == (2, "")
    proposed = refused.err.strip().rpartition(": ")[2]
    assert proposed == "orderbridge report --lang es --out r.html"
    assert not (tmp_path / name).exists()
    assert run(*shlex.split(proposed)[1:]).code == 0
    (tmp_path / "r.html").rename(tmp_path / name)
    assert run("report", "--out", name).code == 0, "one that was written before goes on"


def test_the_first_run_of_a_project_refuses_such_a_name_and_later_nights_go_on(
    tmp_path: Path,
) -> None:
    with bridge(tmp_path) as shop:
        night = ("run", "--report", "night.pdf")
        refused = shop.command(*night)
        assert (refused.code, shop.platform.state.requests) == (2, 0)
        assert refused.err.strip().endswith("orderbridge run --report night.html")
        assert shop.command("run").code in (0, 9)
        assert shop.command(*night).code in (0, 9)
        assert (shop.folder / "night.pdf").read_text("utf-8").startswith(START)


def test_without_anything_reconciled_by_this_version_there_is_no_report(
    warehouse: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, none = tmp_path / "report.html", tmp_path / "none.duckdb"
    # as in version 0.2
    change(warehouse, "ALTER TABLE reconciled.exceptions DROP COLUMN is_accepted")
    with pytest.raises(
        UsageError, match="only by another version of orderbridge\n  Run `orderbridge reconcile`"
    ):
        report(out)
    monkeypatch.setenv("WAREHOUSE__PATH", str(none))
    with pytest.raises(UsageError, match="there is no warehouse"):
        report(out)
    change(none, "CREATE TABLE t (a INTEGER)")
    with pytest.raises(UsageError, match="orderbridge reconcile"):
        report(out)
    assert not out.exists()


@pytest.mark.parametrize(
    ("age", "tail", "text", "is_too_old"),
    [
        (25.0, None, "25.0 h old  TOO OLD (limit 24 h)", True),
        (-0.05, None, "-3 min old", False),
        (-2400.0, None, "-2400.0 h old  TOO OLD (limit 24 h)", True),
        (30.0, 2.0, "30.0 h old, tail 2.0 h old", False),
        (50.0, 25.0, "50.0 h old, tail 25.0 h old  TOO OLD (limit 24 h)", True),
    ],
)
def test_a_list_is_as_old_as_its_last_read_or_tail_and_too_old_if_in_the_future(
    age: float, tail: float | None, text: str, is_too_old: bool
) -> None:
    """A clock that was wrong once would otherwise silence the monitor for years."""
    status = Status("w.duckdb", max_age_h=24, too_old=["orders"] if is_too_old else [])
    at, tail_at = (
        status.at - timedelta(hours=age),
        None if tail is None else status.at - timedelta(hours=tail),
    )
    began = at - timedelta(minutes=37)
    read = LastRead("orders", "run", "complete", 5, 0, began, at, None, None, tail_at)
    status.lists.append(read)
    assert _is_older(status.lists[0].ages_h(status.at), 24) is is_too_old
    shown = status.as_dict()["lists"][0]
    assert (shown["age_h"], shown["tail_age_h"]) == (pytest.approx(age), pytest.approx(tail))
    assert lines(status)[1].endswith(text)


def test_what_is_new_leads_status_webhook_and_the_output_of_a_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pulled(tmp_path, reconcile) as made:
        assert read_status().new_findings == [], "nothing was before"
        first, *_ = made.platform.state.ids("customers")
        made.platform.state.change("customers", first, {"email": "nobody"})
        done, result = made.pull(), reconcile()
        status, summary, page = read_status(), run_summary(done, result), words_of(made.path)
    news = ["new since the last run: 1 warning", "  warning customers.email_malformed: 1"]
    print_reconcile(result, "plain")
    for said in (
        lines(status)[:2],
        summary["text"].splitlines()[2:4],
        capsys.readouterr().out.splitlines()[1:3],
    ):
        assert said == news
    assert status.as_dict()["new_findings"][0]["rule"] == "email_malformed"
    assert summary["new_findings"][0]["findings"] == 1
    shown = "1 warning warning, customers: email malformed: 1"
    assert f"What changed Findings new since the last run: {shown}" in page
