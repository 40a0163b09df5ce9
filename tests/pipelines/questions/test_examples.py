"""A question that is shown has what a person can judge it by: orders side by side, sums, lines with names, clocks."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pytest

from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reconcile.reconcile import Reconciling, reconcile
from orderbridge.pipelines.warehouse.answers.accepted import accepted_file, read_acceptances
from tests.pipelines.bridge import Bridge, Done, bridge
from tests.pipelines.push.plans import customer, patch, place

CUSTOMER = "reconcile.order_customer_id"
NOTATION = "reconcile.order_customer_notation"
TOTAL = "reconcile.order_total"
ZONE = "reconcile.timezone"
CLOCK = "reconcile.order_clock"
GONE = "finding:orders.values_gone"
ORDERS = 60
CUSTOMERS = 20


def order(n: int, **more: object) -> dict[str, Any]:
    """An order of two pieces, for the customers in turn."""
    price = 10 + n
    return {
        "id": f"o{n:03d}",
        "createdAt": f"2026-11-{n % 28 + 1:02d}T23:40:00Z",
        "total": 2.0 * price,
        "items": [{"sku": "S", "quantity": 2, "price": price}],
        **more,
    }


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    """A shop without orders."""
    with bridge(
        tmp_path, customers=CUSTOMERS, orders=0, promotions=1, price_lists=1, others=1
    ) as made:
        (made.folder / ".dlt").mkdir()
        monkeypatch.setenv("DLT_PROJECT_DIR", str(made.folder))
        yield made


def read_all(made: Bridge, *orders: dict[str, Any]) -> PullResult:
    for one in orders:
        made.platform.state.add("orders", one)
    return pull(PullOptions(("customers", "orders"), command="run"), step=Reconciling())


def run(made: Bridge, line: str, **more: str) -> Done:
    return made.command(*shlex.split(line), DLT_PROJECT_DIR=str(made.folder), **more)


def shown(made: Bridge, question: str) -> list[str]:
    done = run(made, f"questions {shlex.quote(question)}")
    assert done.code == 0, done.err
    return done.out.splitlines()


def customer_ids(made: Bridge) -> list[int]:
    return sorted(map(int, made.platform.state.ids("customers")))


def names(made: Bridge, column: str = "customer_id") -> dict[str, str]:
    return dict(made.rows(f"SELECT {column}, full_name FROM reconciled.customers"))


def test_two_columns_of_customers_are_shown_as_orders_side_by_side_with_both_names(
    shop: Bridge,
) -> None:
    """In each third order the account is another customer than the one that ordered."""
    ids = customer_ids(shop)
    orders = [
        order(n, customerId=ids[n % 20], account={"id": ids[(n + (n % 3 == 0)) % 20]})
        for n in range(ORDERS)
    ]
    assert read_all(shop, *orders).exit_code == 9
    lines = shown(shop, CUSTOMER)
    assert "  20 of 60 orders are of different customers. Who placed these?" in lines
    side_by_side = re.findall(
        r"    order o([0-9]+)\n      customer_id ([0-9]+): (.+)\n      account__id ([0-9]+): (.+)",
        "\n".join(lines),
    )
    assert len(side_by_side) == 3
    name = names(shop)
    for number, left, left_name, right, right_name in side_by_side:
        assert (int(left), int(right)) == (ids[int(number) % 20], ids[(int(number) + 1) % 20])
        assert name[left] in left_name
        assert name[right] in right_name
    kept = shop.rows("SELECT evidence FROM reconciled.meanings")
    listed = run(shop, "questions --json").out
    assert not [one for one in name.values() if one in f"{kept} {listed}"], "names are kept nowhere"


def test_a_disputed_field_names_the_command_that_shows_it(shop: Bridge) -> None:
    ids = customer_ids(shop)
    orders = [order(n, customerId=ids[n % 20], account={"id": ids[-n % 20]}) for n in range(ORDERS)]
    assert read_all(shop, *orders).exit_code == 9
    details = "SELECT detail FROM reconciled.exceptions WHERE rule = 'field_disputed'"
    command = shop.one(details).partition("; to answer: orderbridge ")[2]
    answers = [line for line in run(shop, command).out.splitlines() if "to answer: " in line]
    assert f"to answer: orderbridge answer {CUSTOMER} customer_id" in answers
    assert run(shop, answers[0].removeprefix("to answer: orderbridge ")).code == 0
    assert reconcile().exit_code == 0
    with duckdb.connect(shop.path) as warehouse:
        before = "UPDATE reconciled.exceptions SET detail = regexp_replace(detail, 'to answer: .*', 'set x.y_z')"
        warehouse.execute(before)
    assert [one.text for one in reconcile().new] == [], "the same finding in other words"


def test_ids_and_codes_that_are_those_of_others_are_shown_side_by_side(shop: Bridge) -> None:
    """The ERP's codes are the ids in another order, but for one."""
    ids = [str(one) for one in customer_ids(shop)]
    codes = dict(zip(ids, ["X", *reversed(ids[1:])], strict=True))
    for one, code in codes.items():
        shop.platform.state.change("customers", one, {"erpCode": code})
    read_all(shop, *(order(n, buyer=codes[ids[n % 20]]) for n in range(ORDERS)))
    lines = shown(shop, NOTATION)
    assert "  54 of 57 orders are of different customers. Who placed these?" in lines
    name = names(shop)
    sides = re.findall(
        r"      ([0-9]+) as an id: (.+)\n      \1 as an ERP code: (.+)", "\n".join(lines)
    )
    assert len(sides) == 3
    for value, by_id, by_code in sides:
        assert name[value] in by_id
        assert name[next(one for one, code in codes.items() if code == value)] in by_code


def test_two_totals_are_shown_with_their_ratio_and_sums_beside_the_lines(
    shop: Bridge,
) -> None:
    orders = [order(n, grandTotal=round(2.0 * (10 + n) * 1.21, 2)) for n in range(ORDERS)]
    read_all(shop, *orders)
    lines = [line.strip() for line in shown(shop, TOTAL)]
    assert "order o059: total 138, grand_total 166.98" in lines
    assert "1.21 × total in 60 of 60 orders" in lines
    assert "these orders sum to 4,740.00, their lines to 4,740.00" in lines
    assert "these orders sum to 5,735.40, their lines to 4,740.00" in lines
    with duckdb.connect(shop.path) as warehouse:
        warehouse.execute(
            "UPDATE raw.orders SET grand_total = total * (1.1 + (hash(id) % 20) / 100)"
        )
    reconcile()
    assert " × total in " not in "\n".join(shown(shop, TOTAL)), "the ratio varies"


@pytest.mark.parametrize(
    ("written", "clocks"),
    [
        ("2026-11-29T23:40:00Z", ["23:40 on 2026-11-29 in UTC", "00:40 on 2026-11-30 in Europe/Madrid"]),
        ("2026-11-29 23:40:00", ["read as the time of UTC, it is 23:40 on 2026-11-29 in UTC",
            "read as the time of Europe/Madrid, it is 22:40 on 2026-11-29 in UTC"]),
    ],
)  # fmt: skip
def test_the_zone_is_shown_by_the_clock_of_an_order_in_each_zone(
    shop: Bridge, written: str, clocks: list[str]
) -> None:
    orders = [order(n, createdAt=written.replace("-29", f"-{n + 1:02d}")) for n in range(29)]
    read_all(shop, *orders)
    lines = shown(shop, ZONE)
    assert [line.strip() for line in lines if ":40 on " in line] == clocks
    assert [line for line in lines if line.startswith(f"  order o028 is written as {written}")]
    assert f"another: orderbridge answer {ZONE} VALUE  # such as Europe/Madrid" in lines


def test_times_without_an_offset_are_local_until_somebody_says_that_they_are_in_utc(
    shop: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Databases keep UTC without saying so: of each two orders one was then made after midnight by the shop's clock."""
    monkeypatch.setenv("RECONCILE__TIMEZONE", "America/Lima")
    hours = ("02:10:00", "21:10:00")
    orders = [order(n, createdAt=f"2026-11-{n + 1:02d} {hours[n % 2]}") for n in range(28)]
    read_all(shop, *orders)
    days = "SELECT DISTINCT day(ordered_date) FROM bi.orders WHERE order_id = 'o026'"
    assert shop.one(days) == 27
    lines = [
        line.strip()
        for line in run(
            shop, f"questions {CLOCK}", RECONCILE__TIMEZONE="America/Lima"
        ).out.splitlines()
    ]
    assert (
        "order o027 is written as 2026-11-28 21:10:00. What did the clock in America/Lima show then?"
        in lines
    )
    assert "21:10 on 2026-11-28, if local" in lines
    assert "16:10 on 2026-11-28, if utc" in lines
    assert "local  14 of 28 orders were then made from 0:00 to 6:00 in America/Lima" in lines
    assert "utc    0 of 28 orders were then made from 0:00 to 6:00 in America/Lima" in lines
    assert run(shop, f"answer {CLOCK} utc", RECONCILE__TIMEZONE="America/Lima").code == 0
    read_all(shop)
    assert shop.one(days) == 26, "at ten past nine in the evening of the day before"


def test_day_or_month_first_is_shown_by_a_date_that_is_another_day(shop: Bridge) -> None:
    written = ["05/05/2026", "11/12/2026", "03/04/2026"]
    orders = [order(n, createdAt=written[n % 3]) for n in range(30)]
    read_all(shop, *orders)
    lines = shown(shop, "reconcile.date_order")
    at = lines.index("  order o029 is written as 03/04/2026. On which day was it made?")
    assert lines[at + 1 : at + 3] == [
        "    3 April 2026 if day_first",
        "    4 March 2026 if month_first",
    ]
    listed = run(shop, "questions").out
    assert "finding:orders.ordered_at_form" not in listed, "it goes away with the answer"


def test_a_request_without_an_answer_is_shown_with_its_lines_and_values(tmp_path: Path) -> None:
    with place(tmp_path) as made:
        made.lost(customer(1))
        made.lost(patch(1, 1, stock=7))  # its mapping reads no column, so the file names no record
        document = json.loads(made.command("questions", "--json").out)
        asked = [one["id"] for one in document["questions"] if one["id"].startswith("write:")]
        shown = "".join(made.command("questions", one).out for one in asked)
        assert re.search(
            r"^  line 2 of .+\.csv: erpCode: C00001, .*email: .+@", shown, re.MULTILINE
        )
        assert re.search(r"^  line 2 of .+\.csv: stock: 7$", shown, re.MULTILINE)
        assert "C00001" not in str(document)


def test_fields_that_vanish_together_are_one_question_and_one_answer(shop: Bridge) -> None:
    orders = [order(n, channel=f"c{n}", note=f"n{n}") for n in range(ORDERS)]
    read_all(shop, *orders)
    for one in orders:
        shop.platform.state.change("orders", one["id"], {"channel": None, "note": None})
    assert read_all(shop).exit_code == 9
    listed = run(shop, "questions").out.splitlines()
    (line,) = [line for line in listed if line.startswith("open ") and GONE in line]
    assert re.search(r"channel, note: no values since \d{4}-\d\d-\d\d \d\d:\d\d UTC$", line)
    question = f"{GONE}/orders: channel + orders: note"
    lines = shown(shop, question)
    assert "  orders: channel: 60 values before, none in 60 rows now" in lines
    assert "  orders: note: 60 values before, none in 60 rows now" in lines
    assert "  to look at on the platform: order o059" in lines
    (accept, *_) = [line for line in lines if line.startswith("to answer: ")]
    assert run(shop, accept.removeprefix("to answer: orderbridge ")).code == 0
    assert {one.place for one in read_acceptances(accepted_file())} == {
        "orders: channel",
        "orders: note",
    }
    assert GONE not in run(shop, "questions").out
    assert reconcile().exit_code == 0
    for one in orders:
        shop.platform.state.change("orders", one["id"], {"createdAt": None})
    assert read_all(shop).exit_code == 9, "another field is another question"
    assert f"{GONE}/orders: createdAt" in run(shop, "questions").out
    assert run(shop, f"answer {shlex.quote(question)} --withdraw").code == 0
    assert read_acceptances(accepted_file()) == []


def test_a_code_that_several_have_is_shown_with_lines_names_and_the_file(shop: Bridge) -> None:
    ids = [str(one) for one in customer_ids(shop)]
    for one in ids[:2]:
        shop.platform.state.change("customers", one, {"erpCode": "TWICE"})
    assert pull(PullOptions(("customers",))).published
    file = shop.folder / "clientes noviembre.csv"
    rows = ["Código;Razón social;E-mail", "A1;Bodega Luz;luz@x.example", "A2;Bar Sol;sol@x.example"]
    file.write_text("\n".join([*rows, "A1;Bodega Luz SAC;otra@x.example"]), "utf-8")
    assert reconcile(ErpFiles(customers=file)).exit_code == 9
    lines = shown(shop, "finding:erp_customers.erp_code_duplicate")
    assert lines[lines.index("  in clientes noviembre.csv:") + 1] == (
        "    code A1: line 2 (Bodega Luz), line 4 (Bodega Luz SAC)"
    )
    assert [
        line
        for line in lines
        if "correct it in the ERP and export again; then this goes away" in line
    ]
    lines = shown(shop, "finding:customers.erp_code_duplicate")
    name = names(shop)
    (found,) = [line for line in lines if line.startswith("    code TWICE: ")]
    assert (
        found == f"    code TWICE: {', '.join(f'customer {one} ({name[one]})' for one in ids[:2])}"
    )
    document = json.loads(run(shop, "questions --json").out)
    assert not any(name[one] in str(document) for one in ids[:2])


def test_a_list_that_lost_records_shows_the_names_of_some(shop: Bridge) -> None:
    assert read_all(shop).published
    name = names(shop)
    for one in sorted(name, key=int)[:15]:
        shop.platform.state.remove("customers", one)
    read_all(shop)
    lines = [line.strip() for line in shown(shop, "list:customers")]
    found = [line.partition(": ") for line in lines if line.partition(": ")[0] in name]
    assert found
    assert all(name[one] in shown_name for one, _, shown_name in found)


def test_each_choice_says_what_it_has_as_a_consequence_before_anything_was_read(
    shop: Bridge,
) -> None:
    for key, words in (
        ("sources.legacy.login_mode", "a line without one is not sent"),
        ("sources.legacy.stock_semantics", "a file has changes"),
    ):
        assert words in "\n".join(shown(shop, key))


def test_another_column_of_statuses_is_shown_beside_the_sales_and_can_decide(shop: Bridge) -> None:
    """Saleor and WooCommerce keep what is paid beside how far the order is."""
    statuses = "reconcile.order_statuses"
    rows = [
        order(n, status="processing", paymentStatus="pending" if n % 3 == 0 else "paid")
        for n in range(ORDERS)
    ]
    assert read_all(shop, *rows).exit_code == 0
    assert "payment_status: paid in 40, payment_status: pending in 20" in " ".join(
        shown(shop, statuses)
    )
    assert run(shop, f"answer {statuses} 'payment_status: pending=open' --now").code == 0
    counts = "SELECT status_class, count(*) FROM reconciled.orders GROUP BY 1 ORDER BY 1"
    assert shop.rows(counts) == [("open", 20), ("sale", 40)]
    assert "no order has" not in " ".join(shown(shop, statuses))


def test_a_line_with_a_discount_is_shown_with_the_amounts_that_tell_what_it_is(
    shop: Bridge,
) -> None:
    rows = [order(n) for n in range(ORDERS)]
    for row in rows[:9]:
        row["items"][0]["discount"] = 3
        row["total"] -= 1
    assert read_all(shop, *rows).exit_code == 0
    lines = shown(shop, "reconcile.order_line_discount_unit")
    assert "  look at one of these lines on the platform:" in lines
    assert "    order o008: quantity 2, price 18, discount 3; total of the order 35" in lines


def test_a_status_that_nobody_has_classed_comes_first_in_what_there_is_to_answer(
    shop: Bridge,
) -> None:
    rows = [order(n, status="xyzzy" if n % 5 == 0 else "paid") for n in range(ORDERS)]
    assert read_all(shop, *rows).exit_code == 0
    lines = shown(shop, "reconcile.order_statuses")
    (first, then) = [line for line in lines if line.startswith("to ")]
    assert first.startswith(
        "to answer: orderbridge answer reconcile.order_statuses VALUE  # one of "
    )
    assert "xyzzy=sale, xyzzy=open" in first
    assert (
        then == "to confirm what is used now: orderbridge answer reconcile.order_statuses paid=sale"
    )
