"""Customers that the list shows in rows which the walk refuses: they are there, and are not created again."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipelines.push.listing import differing_fields, keys_in_row
from sources.kinds import KINDS
from tests.pipelines.push.plans import Place, customer, outcomes, place, results

UNREADABLE = {"password", "notification"}
"""Fields of a create that the list does not show under their name: what `verify` cannot compare."""
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
    "row",
    [
        {**ODD, "erpCode": "C00001", "email": ["a"]},
        {**ODD, "email": " ANA1@Example.test", "loginCode": "L1"},
        '{"id":901,"erpCode":"C00001","erpCode":"C00009"}',
    ],
)
def test_a_customer_whose_row_is_refused_is_not_created_again_whatever_is_accepted(
    tmp_path: Path, row: dict[str, object] | str
) -> None:
    with place(tmp_path, records=records(tmp_path, row)) as at:
        plan = at.plan([customer(1), customer(2)])
        pushed = at.push(plan, accept_unproven=True)
        assert (pushed.exit_code, pushed.error) == (5, None)
        assert outcomes(plan) == {"2": "unsent.exists_now", "3": "confirmed.confirmed"}
        assert "in a quarantined row of the list: after `orderbridge pull" in results(plan)["unsent"][0]["words"]


def test_creates_wait_while_a_row_may_be_anybodys(tmp_path: Path) -> None:
    with place(tmp_path, records=records(tmp_path, {**ODD, "firstName": "Ana"})) as at:
        pushed = at.push(plan := at.plan([customer(1)]))
        assert (pushed.exit_code, at.codes()) == (7, [])
        reported = str(pushed.error)
        assert reported.startswith("1 row of the list of customers may be any customer: each is in quarantine, or")
        assert ("--accept-unproven" in reported, "when the list changes less" in reported) == (True, False)
        assert at.code(plan, accept_unproven=True) == 0


def test_a_number_is_a_key_too(tmp_path: Path) -> None:
    with place(tmp_path, records=records(tmp_path, {"id": 901, "erpCode": 9})) as at:
        plan = at.plan([customer(1, erpCode="0009"), customer(2, erpCode="9")])
        assert at.code(plan) == 7
        assert outcomes(plan) == {"2": "unsent.blocked", "3": "unsent.exists_now"}
        assert at.code(plan, accept_unproven=True) == 5
        assert at.codes() == ["0009"]


@pytest.mark.parametrize(
    ("row", "keys", "is_certain"),
    [
        (b'{"erpCode":7.0,"email":"A@b.c"}', {("erpCode", "7"), ("email", "a@b.c")}, False),
        (b'{"erpCode":"007","email":null}', {("erpCode", "007")}, True),
        (b'{"erpCode":"E1","priceListId":NaN}', {("erpCode", "E1")}, False),
        (b'{"erpCode":"E1","firstName":"\xff"}', {("erpCode", "E1")}, False),
        (b'{"erpCode":"E1","erpCode":"E2"}', {("erpCode", "E1"), ("erpCode", "E2")}, False),
        (b'{"erpCode":"E1\\u0000"}', {("erpCode", "E1\0")}, False),
        (b"[]", set(), False),
        (b"[" * 100_000, set(), False),
        (b'{"email":" "}', set(), False),
    ],
)
def test_the_keys_of_a_refused_row_are_read_as_far_as_they_can_be(
    row: bytes, keys: set[tuple[str, str]], is_certain: bool
) -> None:
    assert keys_in_row(row) == (keys, is_certain)


def test_a_list_that_is_not_whole_is_not_made_so_by_what_its_refused_rows_tell(tmp_path: Path) -> None:
    given = records(tmp_path, {**ODD, "erpCode": "C00009"}, count=60)
    with place(tmp_path, records=given, readings={"legacy_limit": "ignored"}) as at:
        pushed = at.push(at.plan([customer(1)]))
        assert (pushed.exit_code, at.codes()) == (7, [])
        assert str(pushed.error).startswith("the list of customers is unproven: creates that may exist already")
        assert "quarantine" not in str(pushed.error)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"birthdate": 7}, "a quarantined row of the list has its erpCode"),
        ({"birthdate": 7, "erpCode": None, "email": None}, "not found, but a row of the list that is in quarantine"),
    ],
)
def test_a_create_in_doubt_that_a_row_may_be_is_not_sent_again_and_waits_for_a_person(
    at: Place, change: dict[str, Any], words: str
) -> None:
    plan = at.plan([customer(1, erpCode="0009")])
    at.lose(plan)
    at.platform.state.change("customers", at.platform.state.ids("customers")[-1], change)
    for _ in range(2):
        assert (at.code(plan), at.states(plan), at.codes()) == (6, ["in_doubt"], ["0009"])
    (row,) = results(plan)["in_doubt"]
    assert words in row["words"]
    assert "--landed" in row["words"]
    assert at.code(plan, landed=frozenset({1})) == 0


def test_a_create_without_a_code_is_looked_up_by_its_email_alone(at: Place) -> None:
    uncoded = customer(4)
    plan = at.plan([msgspec.structs.replace(uncoded, keys={"email": uncoded.keys["email"]})])
    at.platform.state.add("customers", {"erpCode": "C00004", "email": "other@example.test"})
    assert (at.code(plan), at.codes()) == (0, ["C00004"])


ONE, TWO = {"number": "1"}, {"number": "2"}


@pytest.mark.parametrize(
    ("name", "sent", "actual", "is_same"),
    [
        ("documents", [ONE], [{**ONE, "id": 7}], True),
        ("documents", [ONE], None, False),
        ("documents", [ONE], [ONE, TWO], False),
        ("email", "maría@ſhop.es", "MaRíA@ſhop.es", True),
        ("email", "maría@ſhop.es", "MARÍA@ſhop.es", False),
        ("priceListId", 7, "7.0", False),
        ("priceListId", 7.0, "7", True),
        ("priceListId", [7.0, 8], "[7,8]", True),  # a list of values, in its column
        ("firstName", " Ana", "Ana ", True),
        ("lastName", "", None, True),
    ],
)
def test_a_value_is_the_same_only_as_far_as_the_platform_may_write_it_otherwise(
    name: str, sent: Any, actual: Any, is_same: bool
) -> None:
    assert differing_fields({name: sent}, {name: actual}, "ES") == ([] if is_same else [name])


def test_every_field_of_a_create_is_compared_or_named_as_unreadable() -> None:
    names = {field.name for field in KINDS["customers"].record.fields}
    assert {name for name in names if differing_fields({name: "sent"}, {})} == names - UNREADABLE
