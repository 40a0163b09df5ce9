"""What is evidence that two rows are one customer: no stand-in, no look-alike, no pair that other keys contradict."""

from __future__ import annotations

from typing import Any

import pytest

from tests.transforms.erp.test_match import customers, differing, documents, erp, matched, reported, rules
from tests.transforms.erp.whole import MatchResult

ROW = ("line", "customer_id", "status", "matched_by", "reason")


@pytest.mark.parametrize(
    ("line", "customer", "number", "reason"),
    [
        ({"erp_code": "A1", "email": "a@x", "document_number": "D1"}, {"erp_code": "A1", "email": "b@x"}, "D2",
         "email, document_number differ"),
        ({"erp_code": "A1", "email": "a@x", "login_code": "L1"}, {"erp_code": "B2", "email": "a@x", "login_code": "L2"},
         None, "erp_code, login_code differ"),
        ({"erp_code": "A1", "email": "a@x", "document_number": "D1"}, {"erp_code": "B2", "email": "b@x"}, "d-1",
         "erp_code, email differ"),
    ],
    ids=["by code", "by email", "by document"],
)  # fmt: skip
def test_a_pair_that_two_other_keys_contradict_is_ambiguous_with_the_reason(
    line: dict[str, Any], customer: dict[str, Any], number: str | None, reason: str
) -> None:
    papers = documents({"customer_id": "1", "number": number}) if number else documents()
    result = matched(erp(line), customers(customer), papers)
    (key,) = {row[0] for row in reported(result, "matched_by")}
    assert key in line
    assert reported(result, *ROW) == [(2, None, "ambiguous", key, reason), (None, "1", "ambiguous", key, reason)]
    assert reported(result, "members", "member_lines") == [("1", None), (None, "2")]
    assert differing(result) == []
    assert {("erp_customers", "match_ambiguous", "2"), ("customers", "erp_ambiguous", "1")} <= set(rules(result))


@pytest.mark.parametrize(
    ("line", "customer"),
    [
        ({"email": "a@x"}, {"email": "b@x"}),
        ({"email": "a@x", "login_code": "007"}, {"email": "b@x", "login_code": "7"}),
        ({"email": "a@x", "login_code": "L-1"}, {"email": "b@x", "login_code": "l1"}),
        ({"email": "a@x", "login_code": "S/N"}, {"email": "b@x", "login_code": "L2"}),
        ({"email": "noemail@x", "login_code": "L1"}, {"email": "b@x", "login_code": "L2"}),
        ({"email": "a@x", "login_code": "L1"}, {"email": None, "login_code": "L2"}),
    ],
    ids=["one", "near code", "punctuation", "stand-in of the ERP", "stand-in in an address", "not on both sides"],
)
def test_one_key_that_differs_or_values_that_prove_nothing_do_not_contradict(
    line: dict[str, Any], customer: dict[str, Any]
) -> None:
    result = matched(erp({"erp_code": "A1", **line}), customers({"erp_code": "A1", **customer}))
    assert reported(result, *ROW) == [(2, "1", "matched", "erp_code", None)]


def test_a_document_contradicts_only_where_none_of_the_customer_has_its_number() -> None:
    line = {"erp_code": "A1", "email": "a@x", "document_number": "D3"}
    papers = [{"customer_id": "1", "number": number} for number in ("D1", "D2", "D3")]
    known = customers({"erp_code": "A1", "email": "b@x"})
    assert reported(matched(erp(line), known, documents(*papers)), "status") == [("matched",)]
    without = reported(matched(erp(line), known, documents(*papers[:2])), "status", "reason")
    assert set(without) == {("ambiguous", "email, document_number differ")}


def test_values_that_many_rows_have_do_not_contradict() -> None:
    lines = [{"erp_code": f"A{n}", "email": f"erp{n}@x", "document_number": "12345678"} for n in range(60)]
    known = [{"erp_code": f"A{n}", "email": f"{n}@shop.x"} for n in range(60)]
    papers = [{"customer_id": str(n), "number": f"D{n}"} for n in range(1, 61)]
    result = matched(erp(*lines), customers(*known), documents(*papers))
    assert set(reported(result, "status")) == {("matched",)}


def test_a_stand_in_that_many_documents_have_is_no_frequent_number() -> None:
    lines = [{"erp_code": f"A{n}", "email": f"erp{n}@x", "document_number": f"8000{n}"} for n in range(60)]
    known = [{"erp_code": f"A{n}", "email": f"c{n}@shop.x"} for n in range(60)]
    papers = [
        {"customer_id": str(n), "number": number, "is_default": number == "S/N"}
        for n in range(1, 61)
        for number in ("S/N", f"D{n}")
    ]
    result = matched(erp(*lines), customers(*known), documents(*papers))
    assert set(reported(result, "status", "reason")) == {("ambiguous", "email, document_number differ")}


STAND_INS = {
    "erp_code": ["-", "--", ".", "0", "00000000", "99999", "S/N", "s.n.", "N/A", "na", "#N/A", "NULL", "sin código",
        "XXX"],
    "login_code": ["-", "0", "N/D", "No tiene", "ninguno"],
    "email": [
        "-", "0", "noemail@x.com", "no-email@x.com", "sincorreo@gmail.com", "NoTiene@x.com", "no.tiene@x.com",
        "a.x.com", "@x.com", "a@", "a@b@c", "a b@c", "test1@x.com", "0000@x.com", "noreply@x.com", "a@x;b@x",
    ],
    "document_number": ["-", "0", "00000000", "11.111.111", "99999999", "S/N", "N/A", "no tiene"],
}  # fmt: skip


RESEMBLING = (
    ("erp_code", "7"), ("erp_code", "1111"), ("erp_code", "SIN-1"), ("erp_code", "N100"), ("erp_code", "Ñ"),
    ("login_code", "testa"), ("email", "na@pepe.com"), ("email", "nadal@x"), ("email", "12345@qq.com"),
    ("email", "notario@x"), ("email", "sinead@x"), ("document_number", "11.111.112"), ("document_number", "1K"),
)  # fmt: skip
VALUES = (*((key, value) for key, values in STAND_INS.items() for value in values), *RESEMBLING)


@pytest.fixture(scope="module")
def match_of_values() -> MatchResult:
    """One match of all these values, each in a line and in a customer that have nothing else."""
    known = [{} if key == "document_number" else {key: value} for key, value in VALUES]
    papers = [
        {"customer_id": str(n), "number": value} for n, (key, value) in enumerate(VALUES, 1) if key == "document_number"
    ]
    return matched(erp(*({key: value} for key, value in VALUES)), customers(*known), documents(*papers))


def outcome_of(result: MatchResult, key: str, value: str) -> tuple[list[tuple[Any, ...]], set[str]]:
    """The rows (line, customer, status) with the line or the customer of a value, and the findings about the line."""
    n = VALUES.index((key, value))
    line, customer = n + 2, str(n + 1)
    rows = [row for row in reported(result, "line", "customer_id", "status") if row[0] == line or row[1] == customer]
    found = {rule for entity, rule, entity_id in rules(result) if (entity, entity_id) == ("erp_customers", str(line))}
    return [(row[0] == line, row[1] == customer, row[2]) for row in rows], found


@pytest.mark.parametrize(("key", "value"), [(key, value) for key, values in STAND_INS.items() for value in values])
def test_a_stand_in_is_no_key(match_of_values: MatchResult, key: str, value: str) -> None:
    rows, found = outcome_of(match_of_values, key, value)
    assert rows == [(True, False, "only_in_erp"), (False, True, "only_in_platform")]
    assert "key_missing" in found
    if any(sign.isalnum() for sign in value) or key.endswith(("_code", "email")):
        assert "key_stand_in" in found


@pytest.mark.parametrize(("key", "value"), RESEMBLING)
def test_a_value_that_only_resembles_a_stand_in_is_a_key(match_of_values: MatchResult, key: str, value: str) -> None:
    assert outcome_of(match_of_values, key, value)[0] == [(True, True, "matched")]


def test_rows_with_a_stand_in_are_matched_by_their_other_keys() -> None:
    lines = erp(
        {"erp_code": "0", "email": "a@x"},
        {"erp_code": "0", "email": "noemail@x", "document_number": "D2"},
        {"erp_code": "0", "email": "noemail@x", "document_number": "S/N"},
    )
    known = customers({"erp_code": "0", "email": "a@x"}, {"erp_code": "0", "email": "noemail@x"}, {"email": "c@x"})
    result = matched(
        lines, known, documents({"customer_id": "2", "number": "D2"}, {"customer_id": "3", "number": "S/N"})
    )
    assert reported(result, "line", "customer_id", "status", "matched_by") == [
        (2, "1", "matched", "email"),
        (3, "2", "matched", "document_number"),
        (4, None, "only_in_erp", None),
        (None, "3", "only_in_platform", None),
    ]


def test_a_value_that_more_than_fifty_rows_have_is_no_key() -> None:
    known = [{"erp_code": "CONTADO", "email": f"u{n}@x"} for n in range(51)]
    result = matched(erp({"erp_code": "CONTADO", "email": "u7@x"}), customers(*known))
    assert reported(result, *ROW)[0] == (2, "8", "matched", "email", None)
    assert ("erp_customers", "key_stand_in", "2") in rules(result)
    fewer = matched(erp({"erp_code": "CONTADO", "email": "u7@x"}), customers(*known[:50]))
    assert reported(fewer, *ROW)[0] == (2, None, "ambiguous", "erp_code", "several customers")


@pytest.mark.parametrize("text", ["nin\u0303o@x", "niño\u200b@x", "\ufeffNIÑO@x".replace("Ñ", "ñ"), " niño@X\u00a0"])
def test_composed_accents_and_invisible_characters_make_no_other_value(text: str) -> None:
    result = matched(
        erp({"email": text, "erp_code": "Ñ\u200b1"}), customers({"email": "niño@x", "erp_code": "N\u03031"})
    )
    assert reported(result, "status", "matched_by", "difference_count") == [("matched", "erp_code", 0)]
    by_email = matched(erp({"email": text}), customers({"email": "niño@x"}))
    assert reported(by_email, "status", "matched_by", "difference_count") == [("matched", "email", 0)]


LOOK_ALIKE = {
    "long s": ("maria@shop.es", "maria@ſhop.es"),
    "Kelvin sign": ("mike@shop.es", "mi\u212ae@shop.es"),
    "sharp s": ("strasse@x.de", "straße@x.de"),
    "case beyond ASCII": ("josé@x.es", "JOSÉ@x.es"),
    "full width": ("maria@shop.es", "ｍaria@shop.es"),
}
PAIRS = [(*pair[::step], f"{name}{' swapped' * (step < 0)}") for step in (1, -1) for name, pair in LOOK_ALIKE.items()]


@pytest.fixture(scope="module")
def look_alikes() -> tuple[list[tuple[str, str]], MatchResult, MatchResult, MatchResult]:
    """The pairs, each with its number in the addresses, matched: alone, where the right one is there too, by code."""
    pairs = [(ours.replace("@", f"+{n}@"), theirs.replace("@", f"+{n}@")) for n, (ours, theirs, _) in enumerate(PAIRS)]
    lines = erp(*({"email": ours} for ours, _ in pairs))
    alone = matched(lines, customers(*({"email": theirs} for _, theirs in pairs)))
    both = matched(lines, customers(*({"email": email} for ours, theirs in pairs for email in (theirs, ours))))
    by_code = matched(
        erp(*({"erp_code": f"A{n}", "email": ours} for n, (ours, _) in enumerate(pairs))),
        customers(*({"erp_code": f"A{n}", "email": theirs} for n, (_, theirs) in enumerate(pairs))),
    )
    return pairs, alone, both, by_code


@pytest.mark.parametrize("n", range(len(PAIRS)), ids=[name for *_, name in PAIRS])
def test_look_alike_addresses_are_ambiguous_and_shown(
    look_alikes: tuple[list[tuple[str, str]], MatchResult, MatchResult, MatchResult], n: int
) -> None:
    pairs, alone, both, by_code = look_alikes
    line, customer, reason = n + 2, str(n + 1), "the addresses only look alike"
    assert [row for row in reported(alone, *ROW) if row[0] == line or row[1] == customer] == [
        (line, None, "ambiguous", "email", reason),
        (None, customer, "ambiguous", "email", reason),
    ]
    assert ("erp_customers", "match_ambiguous", str(line)) in rules(alone)
    assert [row for row in reported(both, *ROW) if row[0] == line] == [
        (line, None, "ambiguous", "email", "several customers")
    ]
    assert [row for row in differing(by_code) if row[0] == customer] == [(customer, "email", *pairs[n])]


def test_every_ambiguous_row_has_its_key_and_its_reason() -> None:
    lines = erp(
        {"erp_code": "A"},
        {"erp_code": "A", "email": "z@x"},
        {"email": "b@x"},
        {"erp_code": "C"},
        {"erp_code": "C", "phone": "1"},
    )
    result = matched(lines, customers({"erp_code": "A"}, {"email": "b@x"}, {"email": "b@x"}))
    assert reported(result, *ROW) == [
        (2, None, "ambiguous", "erp_code", "several lines"),
        (3, None, "ambiguous", "erp_code", "several lines"),
        (4, None, "ambiguous", "email", "several customers"),
        (5, None, "ambiguous", "erp_code", "several lines"),
        (6, None, "ambiguous", "erp_code", "several lines"),
        (None, "1", "ambiguous", "erp_code", "several lines"),
        (None, "2", "ambiguous", "email", "several customers"),
        (None, "3", "ambiguous", "email", "several customers"),
    ]


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("C-0012", "C12"), ("C 12", "c-12"), ("A.001.7", "A17"), ("ñ-01", "n\u03031")],
)
def test_a_near_code_is_a_finding(ours: str, theirs: str) -> None:
    result = matched(erp({"erp_code": ours}), customers({"erp_code": theirs}))
    assert reported(result, "status") == [("only_in_erp",), ("only_in_platform",)]
    assert ("erp_customers", "erp_code_nearly", "2") in rules(result)
