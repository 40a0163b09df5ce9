"""Customers that the list shows in rows which the walk refuses: they are there, and are not created again."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipelines.push.listing import CustomerListing, RowKeys, keys_in_row
from tests.pipelines.push.plans import YES, customer, outcomes, place, results

ODD = {"id": 901, "birthdate": 7}
"""What puts a row in quarantine: a date that is a number."""


def records(folder: Path, *rows: dict[str, object] | str, count: int = 30) -> Path:
    """A folder of the sandbox's customers; a text is a row as it stands."""
    good = [{"id": n, "email": f"x{n}@example.test", "firstName": "X"} for n in range(1, count)]
    texts = [row if isinstance(row, str) else json.dumps(row) for row in (*good, *rows)]
    (folder / "given").mkdir()
    (folder / "given" / "customers.json").write_text(f"[{','.join(texts)}]", "utf-8")
    return folder / "given"


@pytest.mark.parametrize(
    ("reported", "body"),
    [({"erpCode": "C00001"}, {}), ({"email": " ANA1@Example.test"}, {}), ({"loginCode": "L1"}, {"loginCode": "L1"})],
)
def test_a_customer_whose_row_is_refused_is_not_created_again(
    tmp_path: Path, reported: dict[str, str], body: dict[str, Any]
) -> None:
    with place(tmp_path, records=records(tmp_path, {**ODD, **reported})) as at:
        plan = at.plan([customer(1, **body), customer(2)])
        pushed = at.push(plan)
        assert (pushed.exit_code, pushed.error) == (5, None)
        assert outcomes(plan) == {"2": "unsent.exists_now", "3": "confirmed.confirmed"}
        assert at.codes() == ["C00002"]
        (row,) = results(plan)["unsent"]
        assert "in a quarantined row of the list" in row["words"]
        assert "ops.quarantine" in row["words"]


UNTOLD = {
    "no key at all": {**ODD, "firstName": "Ana"},
    "a list": {**ODD, "erpCode": ["C00009"]},
    "a name twice": '{"id":901,"erpCode":"C00009","erpCode":"C00008"}',
    "NUL": {"id": 901, "erpCode": "C00009\0"},
}


@pytest.mark.parametrize("row", UNTOLD.values(), ids=UNTOLD)
def test_creates_wait_while_a_refused_row_may_be_anybodys(tmp_path: Path, row: dict[str, object] | str) -> None:
    with place(tmp_path, records=records(tmp_path, row)) as at:
        plan = at.plan([customer(1)])
        pushed = at.push(plan)
        assert (pushed.exit_code, at.codes()) == (7, [])
        reported = str(pushed.error)
        assert reported.startswith(
            "1 quarantined row of the list of customers may be any customer: creates that may exist already"
        )
        assert "--accept-unproven" in reported
        assert "quarantine" in reported
        assert "when the list changes less" not in reported
        assert at.push(plan, replace(YES, accept_unproven=True)).exit_code == 0
        assert at.codes() == ["C00001"]


READABLE = {
    "a name twice": '{"id":901,"erpCode":"C00001","erpCode":"C00009"}',
    "another key is a list": {**ODD, "erpCode": "C00001", "email": ["a"]},
}


@pytest.mark.parametrize("row", READABLE.values(), ids=READABLE)
def test_what_can_be_read_of_a_broken_row_is_not_created_whatever_is_accepted(
    tmp_path: Path, row: dict[str, object] | str
) -> None:
    with place(tmp_path, records=records(tmp_path, row)) as at:
        plan = at.plan([customer(1), customer(2)])
        assert at.push(plan, replace(YES, accept_unproven=True)).exit_code == 5
        assert at.codes() == ["C00002"]


def test_a_number_is_a_key_and_proves_no_absence() -> None:
    keys = {("erpCode", "7"), ("email", "a@b.c")}
    assert keys_in_row(b'{"erpCode":7.0,"email":"A@b.c"}') == RowKeys(keys, {"erpCode"}, True)
    assert keys_in_row(b'{"erpCode":"007","email":null}') == RowKeys({("erpCode", "007")}, set(), True)
    listing = CustomerListing(True, "complete", numeric={"erpCode"})
    assert not listing.is_absent([("erpCode", "C00001"), ("email", "7@b.c")])
    assert listing.is_absent([("loginCode", "7")])
    assert not replace(listing, is_whole=False).is_absent([("loginCode", "7")])


@pytest.mark.parametrize("odd", [{}, {"birthdate": 7}], ids=["loaded", "in quarantine"])
def test_creates_with_a_code_wait_where_the_list_has_a_code_as_a_number(tmp_path: Path, odd: dict[str, object]) -> None:
    with place(tmp_path, records=records(tmp_path, {"id": 901, "erpCode": 9, **odd})) as at:
        uncoded = customer(4)
        uncoded = msgspec.structs.replace(uncoded, keys={"email": uncoded.keys["email"]})
        plan = at.plan([*(customer(n, erpCode=code) for n, code in enumerate(("C00001", "0009", "9"), 1)), uncoded])
        pushed = at.push(plan)
        assert (pushed.exit_code, at.codes()) == (7, ["C00004"])
        assert outcomes(plan) == {
            "2": "unsent.blocked",
            "3": "unsent.blocked",
            "4": "unsent.exists_now",
            "5": "confirmed.confirmed",
        }
        words = "the list of customers has numbers as erpCode: creates that may exist already were not sent (2)"
        assert str(pushed.error).startswith(words)
        assert "leading zeros" in str(pushed.error)
        assert at.push(plan, replace(YES, accept_unproven=True)).exit_code == 5
        assert at.codes() == ["C00004", "C00001", "0009"]


def test_a_create_in_doubt_is_not_sent_again_while_a_number_in_the_list_may_be_its_code(tmp_path: Path) -> None:
    with place(tmp_path) as at:
        plan = at.plan([customer(1, erpCode="0009"), customer(2)])
        at.platform.set_faults({"lost_answer": 1.0})
        assert at.push(plan).exit_code == 6
        at.platform.set_faults({})
        first, second = at.platform.state.ids("customers")[-2:]
        at.platform.state.change("customers", first, {"erpCode": 9, "email": None})
        at.platform.state.change("customers", second, {"erpCode": None, "email": "other@example.test"})
        assert at.push(plan).exit_code == 6
        assert at.codes() == ["0009", "C00002"]
        for row in results(plan)["in_doubt"]:
            assert "the list has a number as erpCode" in row["words"]


@pytest.mark.parametrize("more", [b'"priceListId":NaN', b'"firstName":"\\ud800"', b'"firstName":"\xff"'])
def test_what_python_reads_of_no_proper_row_is_a_key_and_no_sure_one(more: bytes) -> None:
    assert keys_in_row(b'{"erpCode":"E1",%b}' % more) == RowKeys({("erpCode", "E1")}, set(), False)


@pytest.mark.parametrize("row", [b"[]", b"7", b'{"erpCode":', b"\xff", b"[" * 100_000, b'{"email":" "}'])
def test_what_is_no_record_reports_nothing(row: bytes) -> None:
    assert keys_in_row(row) == RowKeys(set(), set(), False)


def test_a_list_that_is_not_whole_is_not_made_so_by_what_its_refused_rows_tell(tmp_path: Path) -> None:
    given = records(tmp_path, {**ODD, "erpCode": "C00009"}, count=60)
    with place(tmp_path, records=given, readings={"legacy_limit": "ignored"}) as at:
        pushed = at.push(at.plan([customer(1)]))
        assert (pushed.exit_code, at.codes()) == (7, [])
        assert str(pushed.error).startswith("the list of customers is unproven: creates that may exist already")
        assert "when the list changes less" in str(pushed.error)
        assert "quarantine" not in str(pushed.error)


def test_a_create_in_doubt_that_is_listed_as_a_quarantined_row_is_settled_by_a_person(tmp_path: Path) -> None:
    with place(tmp_path) as at:
        plan = at.plan([customer(1), customer(2)])
        at.platform.set_faults({"lost_answer": 1.0})
        assert at.push(plan).exit_code == 6
        at.platform.set_faults({})
        first, _ = at.platform.state.ids("customers")[-2:]
        at.platform.state.change("customers", first, {"birthdate": 7})
        for _ in range(2):
            assert at.push(plan).exit_code == 6
            assert at.states(plan) == ["in_doubt", "confirmed"]
        (row,) = results(plan)["in_doubt"]
        assert "a quarantined row of the list has its erpCode" in row["words"]
        assert "--landed" in row["words"]
        assert at.codes() == ["C00001", "C00002"]
        assert at.push(plan, replace(YES, landed=frozenset({1}))).exit_code == 0


def test_a_create_in_doubt_is_not_sent_again_while_a_refused_row_may_be_its_own(tmp_path: Path) -> None:
    with place(tmp_path) as at:
        plan = at.plan([customer(1)])
        at.platform.set_faults({"lost_answer": 1.0})
        assert at.push(plan).exit_code == 6
        at.platform.set_faults({})
        (made,) = at.platform.state.ids("customers")[-1:]
        at.platform.state.change("customers", made, {"birthdate": 7, "erpCode": None, "email": None})
        assert at.push(plan).exit_code == 6
        assert "a quarantined row of the list may be this customer" in results(plan)["in_doubt"][0]["words"]
        assert at.codes() == ["C00001"]
