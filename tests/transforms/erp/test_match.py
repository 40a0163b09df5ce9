"""The ERP's customers are matched one to one by evidence, compared by meaning, and none of either side is lost."""

from __future__ import annotations

import random
from collections import Counter
from datetime import UTC, datetime
from itertools import product
from typing import Any
from unittest.mock import patch

import numpy as np
import pandas as pd
from pandas.testing import assert_frame_equal

from orderbridge.pipelines.reconcile.erp import match as matching
from orderbridge.transforms.chance import Share
from orderbridge.transforms.erp.candidates import common_keys
from orderbridge.transforms.erp.codes import code_questions, other_forms, unlike_codes
from orderbridge.transforms.erp.compare import Pairs
from orderbridge.transforms.erp.match import REVIEWS
from orderbridge.transforms.erp.match_keys import MATCH_KEYS, CodeForm
from orderbridge.transforms.erp.tables import ERP_CUSTOMERS, ERP_DIFFERENCES
from orderbridge.transforms.frames import BIGINT, TEXT, frame
from tests.transforms.erp.matching import (
    MatchResult,
    customers,
    documents,
    erp,
    erp_pairs,
    match,
)
from tests.transforms.erp.truth import accuracy, truth
from tests.transforms.rows import values

GONE = datetime(2026, 2, 1, tzinfo=UTC)
PERSON = {"first_name": "Ana", "last_name": "García Ruiz", "phone": "+51 987 654 321"}
OTHER = {"first_name": "Luis", "last_name": "Peña Soto", "phone": "+51 912 345 678"}
FIRM = {"fiscal_name": "Aceros del Norte S.A.C."}
Rows = list[dict[str, Any]]


def reported(made: MatchResult, *names: str) -> list[Any]:
    return values(made.customers, *names)


def differing(made: MatchResult) -> list[Any]:
    return values(made.differences, "platform_id", "field", "erp_value", "platform_value")


def rules(made: MatchResult) -> list[Any]:
    return values(made.findings, "entity", "rule", "entity_id")


def test_keys_are_tried_in_their_order() -> None:
    lines = erp(
        {"erp_code": " A1 ", "email": "b@x"}, {"erp_code": "zz", "login_code": "L2"}, {"email": "C@X "},
        {"document_number": "12.345-k"}, {"erp_code": "nobody"}, {"erp_code": "70.0"}, {"erp_code": "gone"},
    )  # fmt: skip
    known = customers(
        {"erp_code": "A1"}, {"login_code": " L2", "erp_code": "B2"}, {"email": " c@x"}, {"erp_code": "D4"},
        {"email": "b@x"}, {"erp_code": "70"}, {"erp_code": "gone", "_missing_since": GONE},
    )  # fmt: skip
    papers = documents(
        {"customer_id": "4", "number": "1"}, {"customer_id": "4", "number": "12345K"}
    )
    made = match(lines, known, papers)
    assert reported(made, "line", "erp_code", "customer_id", "status", "matched_by") == [
        (2, " A1 ", "1", "matched", "erp_code"),
        (3, "zz", "2", "matched", "login_code"),
        (4, None, "3", "matched", "email"),
        (5, None, "4", "matched", "document_number"),
        (6, "nobody", None, "only_in_erp", None),
        (7, "70.0", "6", "matched", "erp_code"),
        (8, "gone", None, "only_in_erp", None),
        (None, None, "5", "only_in_platform", None),
    ]
    assert [(rule, line) for _, rule, line in rules(made)] == [
        ("customer_missing", "8"),
        ("erp_code_contradicts", "3"),
        ("erp_code_missing", "4"),
        ("erp_code_missing", "5"),
    ]
    for frame_, schema in ((made.customers, ERP_CUSTOMERS), (made.differences, ERP_DIFFERENCES)):
        assert (
            dict(zip(frame_, (kind.pyarrow_dtype for kind in frame_.dtypes), strict=True)) == schema
        )


def test_an_address_of_several_customers_makes_all_of_them_ambiguous() -> None:
    known = [
        {"email": "a@x"},
        {"email": "A@X"},
        {"email": "c@x"},
        *[{"email": "b@x"}] * 15,
        *[{"login_code": "L"}] * 8,
    ]
    made = match(erp({"email": "a@x"}, {"email": "b@x", "login_code": "L"}), customers(*known))
    rows = reported(made, "line", "customer_id", "status", "matched_by", "members", "member_lines")
    of_many = "10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 4, 5, 6, 3 more"
    assert [row for row in rows if row[0] or row[1] in ("1", "2", "3")] == [
        (2, None, "ambiguous", "email", "1, 2", None),
        (3, None, "ambiguous", "login_code", of_many, None),
        (None, "1", "ambiguous", "email", None, "2"),
        (None, "2", "ambiguous", "email", None, "2"),
        (None, "3", "only_in_platform", None, None, None),
    ]
    assert {("erp_customers", "match_ambiguous", "2"), ("customers", "erp_ambiguous", "1")} <= set(
        rules(made)
    )


def test_equal_lines_count_once_and_different_ones_with_a_code_are_ambiguous() -> None:
    rows = [("A", "1"), ("A ", "1"), ("B", "1"), ("B", "2"), ("C", "1"), ("C", "2")]
    lines = erp(*({"erp_code": code, "phone": phone} for code, phone in rows))
    made = match(lines, customers({"erp_code": "A", "phone": "1"}, {"erp_code": "B"}))
    assert made.repeated == 1
    assert reported(made, "line", "customer_id", "status", "members", "member_lines") == [
        (2, "1", "matched", None, None),
        *((line, None, "ambiguous", "2", None) for line in (4, 5)),
        *((line, None, "ambiguous", None, None) for line in (6, 7)),
        (None, "2", "ambiguous", None, "4, 5"),
    ]
    assert ("erp_customers", "line_repeated", "3") in rules(made)
    assert [line for _, rule, line in rules(made) if rule == "erp_code_duplicate"] == list("4567")


DIFFERING: tuple[tuple[str, str | None, str | None, bool], ...] = (
    ("email", "ANA@x.com", "ana@X.com", False), ("email", "maria@shop.es", "maria@ſhop.es", True),
    ("phone", "11", None, True), ("phone", " ", "11", False), ("phone", "+51 (9) 11", "0051911", False),
    ("last_name", "Ñandu\u0301", "Ñandú", False),
    ("first_name", "ANA", "Ana", False), ("first_name", "Ana", "ANA", True), ("first_name", "ANNA", "Ana", True),
    ("first_name", None, "Ana", False), ("last_name", "Ruiz", " ", True), ("last_name", "a\u00a0b", "a b", False),
    ("price_list_id", "02", "2", False), ("price_list_id", "20,00", "20", False), ("price_list_id", "2.0", "2", False),
    ("price_list_id", "20,000", "20", True), ("price_list_id", "2,50", "2", True), ("price_list_id", "0", "2", True),
)  # fmt: skip


def test_differences_are_of_meaning_and_reported_as_they_came() -> None:
    lines, known = (
        [{"erp_code": f"A{n}", case[0]: case[side]} for n, case in enumerate(DIFFERING)]
        for side in (1, 2)
    )
    made = match(erp(*lines), customers(*known))
    assert differing(made) == [
        (str(n), *case[:3]) for n, case in enumerate(DIFFERING, 1) if case[3]
    ]
    assert reported(made, "difference_count") == [
        int(is_different) for *_, is_different in DIFFERING
    ]


def test_the_document_with_the_lines_number_is_compared_else_the_default_one() -> None:
    papers = [
        {"customer_id": str(n), "number": f"D{n}{number}", "fiscal_name": name, "is_default": number == 2}
        for n, (number, name) in product(range(1, 5), ((1, "Uno"), (2, "Duo")))
    ]  # fmt: skip
    known = [{"erp_code": f"A{n}", "email": f"b{n}@x"} for n in range(1, 6)]
    lines: Rows = [
        {"erp_code": "A1", "document_number": "d-11", "fiscal_name": "Uno S.A.", "document_email": "B@x"},
        {"erp_code": "A2", "document_number": "D29", "fiscal_name": "Duo"},
        {"erp_code": "A3", "document_number": "D39", "email": "a@x"},
        {"erp_code": "A4", "fiscal_name": "Uno"}, {"erp_code": "A5", "fiscal_name": "Uno"},
    ]  # fmt: skip
    papers[0]["email"] = "b@x"
    made = match(erp(*lines), customers(*known), documents(*papers))
    assert differing(made) == [
        ("1", "fiscal_name", "Uno S.A.", "Uno"), ("2", "document_number", "D29", "D22"),
        ("4", "fiscal_name", "Uno", "Duo"), ("5", "fiscal_name", "Uno", None),
    ]  # fmt: skip
    assert ("ambiguous", "email, document_number differ") in reported(made, "status", "reason")
    without = match(
        erp(lines[3], without=("document_number",)), customers(*known), documents(*papers)
    )
    assert differing(without) == [("4", "fiscal_name", "Uno", "Duo")]


def test_columns_or_rows_that_a_side_lacks() -> None:
    lines = frame({"_line": BIGINT, "email": TEXT}, [{"_line": 2, "email": "a@x"}])
    made = match(lines, customers({"email": "a@x", "erp_code": "A", "phone": "1"}))
    assert reported(made, "erp_code", "customer_id", "status", "difference_count") == [
        (None, "1", "matched", 0)
    ]
    assert reported(match(erp(), customers({})), "status") == ["only_in_platform"]
    assert reported(match(erp({"erp_code": "A"}), customers()), "status") == ["only_in_erp"]


PAIRS: list[tuple[dict[str, Any], dict[str, Any], str | None]] = [
        # One other key that differs may be a typo; two are more likely another customer.
        ({"erp_code": "A1", "email": "a@x"}, {"erp_code": "A1", "email": "b@x"}, "erp_code"),
        ({"erp_code": "A1", "email": "a@x", "document_number": "D1"},
         {"erp_code": "A1", "email": "b@x", "document_number": "D2"}, "email, document_number differ"),
        ({"erp_code": "A1", "email": "a@x", "document_number": "D1"},
         {"erp_code": "B2", "email": "b@x", "document_number": "d-1"}, "erp_code, email differ"),
        # Values that prove nothing do not differ.
        ({"erp_code": "A1", "email": "a@x", "login_code": "S/N"},
         {"erp_code": "A1", "email": "b@x", "login_code": "L2"}, "erp_code"),
        ({"email": "a@x", "login_code": "S/N"}, {"email": "a@x", "login_code": "S/N"}, "email"),
        # Composed accents and invisible characters make no other value.
        ({"erp_code": "Ñ\u200b"}, {"erp_code": "N\u0303"}, "erp_code"),
        ({"email": "\ufeffNIño@x\u00a0"}, {"email": "nin\u0303o@x"}, "email"),
        # An address moves to another firm, and a code to another customer.
        ({"email": "a@x", **PERSON}, {"email": "a@x", **OTHER}, "names differ"),
        ({"email": "a@x", "erp_code": "A1"}, {"email": "a@x", "erp_code": "B2"}, "erp_code differ"),
        ({"erp_code": "A1", **PERSON, **FIRM}, {"erp_code": "A1", **OTHER, "fiscal_name": "Bodega Sur"},
         "names differ"),
        # Who speaks for a firm changes; a name may be in one column, in another order, without accents.
        ({"erp_code": "A1", **PERSON, **FIRM}, {"erp_code": "A1", **OTHER, "fiscal_name": "ACEROS NORTE"}, "erp_code"),
        ({"email": "a@x", "erp_code": "A1", "fiscal_name": "GARCIA RUIZ, ANA"},
         {"email": "a@x", "erp_code": "B2", **PERSON}, "email"),
        # Spouses share an address and a phone, siblings their surnames.
        ({"email": "a@x", **PERSON}, {"email": "a@x", **PERSON, "first_name": "Luis"}, "email"),
        ({"email": "a@x", "document_number": "112", **PERSON},
         {"email": "a@x", "document_number": "223", **PERSON, "first_name": "Luis"}, "document_number differ"),
        # A spreadsheet drops zeros: a match where the rest agrees, else to be looked at.
        ({"erp_code": "007", **PERSON}, {"erp_code": "7", **PERSON}, "erp_code"),
        ({"document_number": "7654321", **PERSON}, {"document_number": "07654321", **PERSON}, "document_number"),
        ({"erp_code": "C-0012"}, {"erp_code": "c12"}, "the keys are only nearly equal"),
        ({"document_number": "7654321"}, {"document_number": "07654321"}, "the keys are only nearly equal"),
        ({"erp_code": "007", **PERSON}, {"erp_code": "7", **OTHER}, None),
        # A match of which names, or all other fields, differ is doubtful.
        ({"erp_code": "A1", "first_name": "Ana"}, {"erp_code": "A1", "first_name": "Luis"}, "erp_code, doubtful"),
        ({"erp_code": "A1", **PERSON, **FIRM}, {"erp_code": "A1", **OTHER, **FIRM}, "erp_code"),
        ({"erp_code": "A1", "phone": "987654321", "fiscal_address": "Sol 1"},
         {"erp_code": "A1", "phone": "912345678", "fiscal_address": "Luna 2"}, "erp_code, doubtful"),
        ({"erp_code": "A1", "phone": "987654321"}, {"erp_code": "A1", "phone": "912345678"}, "erp_code"),
        ({"erp_code": "A1", "first_name": "Ana María"}, {"erp_code": "A1", "first_name": "Ana"}, "erp_code"),
        # Two firms of one owner, a firm and its successor: person, phone and address of the mailbox prove nothing.
        ({"email": "a@x", "document_number": "B1234567", **PERSON, **FIRM},
         {"email": "a@x", "document_number": "B7654321", **PERSON, "fiscal_name": "Bodega Sur"},
         "document_number, names differ"),
        ({"email": "a@x", "document_number": "B1234567", **PERSON, **FIRM},
         {"email": "a@x", "document_number": "B7654321", **PERSON, **FIRM}, "document_number differ"),
        ({"email": "a@x", "document_number": "B1234567", **PERSON},
         {"email": "a@x", "document_number": "B1234657", **PERSON}, "email"),
        ({"email": "a@x", "document_number": "B1234567", **PERSON},
         {"email": "a@x", "document_number": "B5234167", **PERSON}, "document_number differ"),
        # Another spelling or alphabet is no other name, and proves none.
        ({"email": "a@x", "first_name": "Jürgen", "last_name": "Müller-Łukasz"},
         {"email": "a@x", "first_name": "JUERGEN", "last_name": "Mueller Lukasz"}, "email"),
        ({"document_number": "8754321", "first_name": "Γιώργος", "last_name": "Βλάχος", "phone": "6946239900"},
         {"document_number": "8754321", "first_name": "Giorgos", "last_name": "Vlachos", "phone": "2106239900"},
         "document_number"),
        ({"document_number": "8754322", "first_name": "Χρήστος"},
         {"document_number": "8754322", "first_name": "Hristos"}, "document_number"),
        ({"email": "a@x", "login_code": "L1", "first_name": "Νίκος", "last_name": "Παπαδόπουλος"},
         {"email": "a@x", "login_code": "M2", "first_name": "Nikos", "last_name": "Papadopoulos"}, "email"),
        ({"email": "a@x", "login_code": "L1", "first_name": "JosÃ©", "last_name": "PeÃ±a"},
         {"email": "a@x", "login_code": "M2", "first_name": "José", "last_name": "Peña"}, "email"),
        # Half of an address says nothing.
        ({"email": "a@x", "login_code": "L1", "fiscal_address": "Calle Luna 12 Vigo"},
         {"email": "a@x", "login_code": "M2", "fiscal_address": "Calle Luna 34 Lugo"}, "login_code differ"),
        ({"email": "a@x", "first_name": "Γιώργος", "last_name": "Βλάχος"},
         {"email": "a@x", "first_name": "Giorgos", "last_name": "Vlahakis"}, "email"),
        # An ERP has a firm in place of a person, with the branch; another branch is another customer.
        ({"document_number": "8754323", "first_name": "NOVALUX - COSTA VERDE", "fiscal_name": "NOVALUX S.L."},
         {"document_number": "8754323", **PERSON, "fiscal_name": "Novalux SL"}, "document_number"),
        ({"document_number": "8754324", "first_name": "NOVALUX - COSTA VERDE", "fiscal_name": "NOVALUX S.L."},
         {"document_number": "8754324", "first_name": "Novalux (La Plaza)", "fiscal_name": "Novalux"}, "names differ"),
        # A code with another prefix may be the same one.
        ({"erp_code": "C-0951", "email": "a@x"}, {"erp_code": "777", "email": "a@x"}, "email"),
        ({"erp_code": "C-0951", "email": "a@x"}, {"erp_code": "D-0951", "email": "a@x"}, "erp_code differ"),
        # A tax number with the prefix of its country, or a word before it; a mailbox with a tag.
        ({"document_number": "NIF: B5837843"}, {"document_number": "B5837843"}, "document_number"),
        ({"email": "a@x", "document_number": "IT 08.754.325"}, {"email": "a+web@x", "document_number": "08754325"},
         "email"),
]  # fmt: skip


def test_a_pair_is_matched_or_doubtful_or_ambiguous_with_the_reason() -> None:
    """All are in one match, in which each has keys of its own."""
    sides: tuple[Rows, Rows] = ([], [])
    for (n, pair), side in product(enumerate(PAIRS, 10), (0, 1)):
        keys = {
            name: value
            for name, value in pair[side].items()
            if name in MATCH_KEYS and value != "S/N"
        }
        own = {
            name: value.replace("@x", f"@x{n}") if "@" in value else f"{value}{n}"
            for name, value in keys.items()
        }
        sides[side].append(pair[side] | own)
    names = [
        f"{one.get('first_name') or ''} {one.get('last_name') or ''}".strip() for one in sides[1]
    ]
    known = [one | {"full_name": name} for one, name in zip(sides[1], names, strict=True)]
    papers = [
        {"customer_id": str(n), "is_default": True, "number": one.pop("document_number", None)}
        | {name: one.pop(name, None) for name in ("fiscal_name", "fiscal_address")}
        for n, one in enumerate(known, 1)
    ]
    made = match(erp(*sides[0]), customers(*known), documents(*papers))
    rows = reported(
        made, "line", "customer_id", "status", "matched_by", "reason", "members", "member_lines"
    )
    found, differences = set(rules(made)), {one for one, *_ in differing(made)}
    for line, (*pair, outcome) in enumerate(PAIRS, 2):
        customer = str(line - 1)
        of_pair = [row[2:] for row in rows if row[0] == line or row[1] == customer]
        if outcome is None:
            assert [row[0] for row in of_pair] == ["only_in_erp", "only_in_platform"], pair
        elif outcome.endswith(("differ", "equal")):
            key = of_pair[0][1]
            assert of_pair == [
                ("ambiguous", key, outcome, customer, None), ("ambiguous", key, outcome, None, str(line))
            ], pair  # fmt: skip
            assert customer not in differences
            assert {
                ("erp_customers", "match_ambiguous", str(line)),
                ("customers", "erp_ambiguous", customer),
            } <= found
        else:
            key, _, doubtful = outcome.partition(", ")
            assert of_pair == [("matched", key, None, None, None)], pair
            assert (("erp_customers", "match_doubtful", str(line)) in found) == bool(doubtful), pair


def test_a_tax_number_is_the_same_with_the_prefix_of_its_country() -> None:
    numbers = [
        ("ESB58378431", "B58378431"),
        ("FR40303265045", "303265045"),
        ("EL 094259216", "094259216"),
    ]
    lines = erp(
        *({"document_number": ours} for ours, _ in numbers), {"document_number": "PT999111222"}
    )
    papers = [
        {"customer_id": str(n), "number": theirs}
        for n, theirs in enumerate([*(theirs for _, theirs in numbers), "999111222"], 1)
    ]
    made = match(lines, customers({}, {}, {}, {}), documents(*papers))
    found = reported(made, "line", "customer_id", "status", "reason")[:4]
    assert found[:3] == [(n + 1, str(n), "matched", None) for n in (1, 2, 3)]
    assert found[3] == (5, None, "ambiguous", "the keys are only nearly equal")  # no valid number


def test_codes_are_the_same_without_a_prefix_or_zeros_where_a_person_says_so() -> None:
    lines = erp({"erp_code": "C-000006"}, {"erp_code": "000007"}, {"erp_code": "P-8"})
    known = customers({"erp_code": "6"}, {"erp_code": "7"}, {"erp_code": "8"})
    cases = {
        (None, None): ["ambiguous"],
        ("C-", None): ["ambiguous", "ambiguous"],
        (None, "ignore"): ["matched"],
        ("c-", "ignore"): ["matched", "matched"],
    }
    for form, expected in cases.items():
        made = match(lines, known, form=form)
        statuses = reported(made, "status")[:3]
        assert [one for one in statuses if one != "only_in_erp"] == expected, form
        assert differing(made) == []
        assert reported(made, "erp_code")[:3] == ["C-000006", "000007", "P-8"]


def test_a_prefix_is_asked_once_with_what_speaks_for_it_and_never_assumed() -> None:
    ours = pd.Series(["C-06", "C-07", "C-08", "9", "X-10"], dtype=pd.ArrowDtype(TEXT))
    theirs = pd.Series(["06", "07", "08", "9", "11"], dtype=pd.ArrowDtype(TEXT))
    others = Pairs(np.array([0, 1, 2]), np.array([0, 1, 3]))
    unlike = unlike_codes(ours, theirs)
    forms = other_forms(unlike, others, 5)
    assert forms["C-"] == (3, "C-06 and 06", Share(2, 3))
    of_another_line = Pairs(np.array([0, 1, 4]), np.array([0, 1, 2]))
    assert other_forms(unlike, of_another_line, 5)["C-"].agreement == Share(2, 3)
    (asked,) = code_questions(forms, CodeForm(), {})
    assert (asked.id, asked.state, asked.value) == ("reconcile.erp_code_prefix", "open", None)
    assert asked.evidence.proposal is None
    agreeing = other_forms(unlike, Pairs(np.arange(3), np.arange(3)), 5)
    (proposed,) = code_questions(agreeing, CodeForm(), {})
    assert (proposed.state, proposed.evidence.proposal) == ("open", "C-")


def test_zeros_in_front_are_no_question_of_codes_with_two_prefixes() -> None:
    sides = [["A-007", "A-08", "09"], ["B-7", "A-8", "C-9"]]
    ours, theirs = (pd.Series(side, dtype=pd.ArrowDtype(TEXT)) for side in sides)
    nothing = Pairs(np.empty(0, np.int64), np.empty(0, np.int64))
    forms = other_forms(unlike_codes(ours, theirs), nothing, 3)
    assert {name: of.lines for name, of in forms.items()} == {"C-": 1, "zeros in front": 2}


def test_a_pair_shows_what_agrees_and_what_differs_and_its_weight() -> None:
    known = {"erp_code": "A1", "email": "b@x", "full_name": "Ana García Ruiz", **PERSON}
    named = {"erp_code": "A3", **OTHER, "phone": None}
    lines = erp(
        {"erp_code": "A1", "email": "a@x", **PERSON},
        {"erp_code": "A2", "phone": PERSON["phone"]},
        named | FIRM,
    )
    result = match(
        lines,
        customers(known, {"erp_code": "A2", "phone": " "}, named),
        documents({"customer_id": "3", "is_default": True, **FIRM}),
    )
    assert values(result.pairs) == [
        (2, "A1", "1", "matched", "erp_code", 10 - 2 + 5 + 3, "erp_code, first_name, last_name, phone", "email",
         "email: a@x / b@x", "code A1"),
        (3, "A2", "2", "matched", "erp_code", 10, "erp_code", "", None, "code A2"),
        (4, "A3", "3", "matched", "erp_code", 10 + 5 + 3, "erp_code, first_name, last_name, fiscal_name", "", None,
         "code A3"),
    ]  # fmt: skip


def test_a_key_of_several_is_decided_by_the_rest() -> None:
    """In a family by names and documents; not by elimination alone; a code of whom other keys found."""
    family, numbers = {"email": "casa@x"}, ("10000", "10001", "10002")
    made = match(
        erp(
            family | {"document_number": "10000", "first_name": "Ana"},
            family | {"document_number": "10001", "first_name": "Bea"},
            family | {"first_name": "Ciro"},
            {"erp_code": "A", "email": "a@x"}, {"email": "a@x"}, {"erp_code": "A", "email": "z@x"},
            {"email": "b@x", "document_number": "D1"}, {"erp_code": "B"},
        ),
        customers(
            *(family | {"full_name": name, "first_name": name} for name in ("Ana", "Bea", "Ciro")),
            {"erp_code": "A", "email": "a@x"}, {"email": "a@x"}, {"erp_code": "B", "email": "b@x"},
        ),
        documents(
            *({"customer_id": str(n), "number": number, "is_default": True} for n, number in enumerate(numbers, 1)),
            {"customer_id": "6", "number": "D1", "is_default": True},
        ),
    )  # fmt: skip
    assert reported(made, "line", "customer_id", "status") == [
        (2, "1", "matched"), (3, "2", "matched"), (4, "3", "matched"),
        (5, "4", "matched"), (6, None, "ambiguous"), (7, None, "ambiguous"),
        (8, "6", "matched"), (9, None, "ambiguous"), (None, "5", "ambiguous"),
    ]  # fmt: skip


def test_a_match_weighs_three_more_than_the_next_pair() -> None:
    """Two customers with one address and one name: the phone of one is the line's, or only its document's address."""
    line = {"email": "a@x", **PERSON, "document_email": "b@x"}
    named = {**PERSON, "email": "a@x", "phone": None}
    with_phone = match(erp(line), customers(named, {**named, "phone": PERSON["phone"]}))
    assert reported(with_phone, "customer_id", "status")[0] == ("2", "matched")
    paper = documents({"customer_id": "2", "email": "b@x"})
    with_paper = match(erp(line), customers(named, named), paper)
    assert reported(with_paper, "status")[0] == "ambiguous"


def test_a_mailbox_of_two_lines_decides_nothing_where_only_one_has_a_name() -> None:
    lines = erp({"email": "a@x"}, {"email": "a@x", "first_name": "Luis", "last_name": "Peña"})
    made = match(lines, customers({"email": "a@x", "first_name": "Ana", "last_name": "García"}))
    assert reported(made, "status")[0] == "ambiguous"


def test_of_two_alike_one_is_decided_once_its_twin_is_matched_by_code() -> None:
    both = {"email": "casa@x", "first_name": "Ana"}
    made = match(
        erp(
            both | {"erp_code": "A", "document_number": "D1"},
            both | {"document_number": "D1"},
        ),
        customers(
            both | {"full_name": "Ana", "erp_code": "A"},
            both | {"full_name": "Ana"},
        ),
        documents(
            {"customer_id": "1", "number": "D1", "is_default": True},
            {"customer_id": "2", "number": "D1", "is_default": True},
        ),
    )
    assert reported(made, "line", "customer_id", "status") == [
        (2, "1", "matched"),
        (3, "2", "matched"),
    ]


def test_a_value_that_over_twenty_rows_have_is_no_key_and_does_not_differ() -> None:
    known = [
        {"erp_code": one, "email": f"u{n}@{one}x"}
        for one, count in (("C", 21), ("D", 20))
        for n in range(count)
    ]
    known += [{"erp_code": f"E{n}", "email": f"e{n}@x"} for n in range(60)]
    lines = [
        {"erp_code": "C", "email": "u7@Cx"},
        {"erp_code": "C"},
        {"erp_code": "D", "phone": "1"},
    ]
    numbers = [
        *((f"7{n}1", "12345678") for n in range(30)),
        *(("87654321", f"7{n}2") for n in range(30)),
    ]
    lines += [
        {"erp_code": f"E{n}", "email": f"{n}@y", "document_number": ours}
        for n, (ours, _) in enumerate(numbers)
    ]
    papers = [
        {"customer_id": str(n), "number": one, "is_default": True}
        for n, (_, one) in enumerate(numbers, 42)
    ]
    statuses = reported(
        match(erp(*lines), customers(*known), documents(*papers)), "line", "customer_id", "status"
    )
    assert statuses[:3] == [(2, "8", "matched"), (3, None, "only_in_erp"), (4, None, "ambiguous")]
    assert statuses[3:63] == [(n, str(n + 37), "matched") for n in range(5, 65)]


def test_a_value_that_many_rows_have_makes_no_pairs() -> None:
    for count, pairs in ((20, 400), (21, 0)):  # a million rows with one value would make a billion
        hashes = {"email": pd.Series([7] * count, dtype="uint64")}
        assert len(common_keys(hashes, hashes, (count, count)).pairs().line) == pairs


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
RESEMBLING = {
    "erp_code": ["7", "1111", "SIN-1", "N100", "Ñ"], "login_code": ["testa"],
    "email": ["na@pepe.com", "nadal@x", "12345@qq.com", "notario@x", "sinead@x"],
    "document_number": ["11.111.112", "1K"],
}  # fmt: skip


def test_stand_ins_are_no_keys_and_values_that_only_resemble_them_are() -> None:
    for of_kind, is_key in ((STAND_INS, False), (RESEMBLING, True)):
        for name, texts in of_kind.items():
            key, column = (
                MATCH_KEYS[name],
                frame({"text": TEXT}, [{"text": one} for one in texts])["text"],
            )
            assert dict(
                zip(texts, key.identifies(key.normalize(column)), strict=True)
            ) == dict.fromkeys(texts, is_key)
    codes = [{"erp_code": "S/N"}, {"erp_code": "7"}]
    made = match(erp(*codes), customers(*codes))
    assert reported(made, "status") == ["only_in_erp", "matched", "only_in_platform"]
    assert {("erp_customers", rule, "2") for rule in ("key_missing", "key_stand_in")} <= set(
        rules(made)
    )


LOOK_ALIKE = (
    ("maria@shop.es", "maria@ſhop.es"), ("mi\u212ae@x.de", "mike@x.de"), ("strasse@x.de", "straße@x.de"),
    ("JOSÉ@x.es", "josé@x.es"), ("ｍaria@x.es", "maria@x.es"),
)  # fmt: skip


def test_look_alike_addresses_are_never_matched_by_and_shown() -> None:
    lines = erp(*({"email": ours, **PERSON} for ours, _ in LOOK_ALIKE))
    alone = match(lines, customers(*({"email": theirs, **PERSON} for _, theirs in LOOK_ALIKE)))
    found = set(reported(alone, "status", "matched_by", "reason"))
    assert found == {("ambiguous", "email", "the addresses only look alike")}
    both = match(
        lines, customers(*({"email": email} for pair in LOOK_ALIKE for email in pair[::-1]))
    )
    statuses = [(line, status) for line, status in reported(both, "line", "status") if line]
    assert statuses == [(n + 2, "matched") for n in range(len(LOOK_ALIKE))]


def test_what_a_person_decided_about_a_pair_holds() -> None:
    lines = erp({"email": "a@x"}, {"erp_code": "B", "email": "b@x"}, {"erp_code": "C"})
    known = customers({"email": "a@x"}, {"email": "a@x"}, {"erp_code": "B"}, {"email": "other@x"})
    first = match(lines, known)
    keys = dict(zip(first.pairs["line"], first.pairs["line_key"], strict=True)) | {4: "code C"}
    decided = [(2, "2", True), (3, "3", False), (4, "4", True), (9, "1", True), (3, "77", True)]
    reviews = frame(REVIEWS, [
        {"line_key": keys.get(line, "gone"), "customer_id": customer, "is_accepted": is_accepted}
        for line, customer, is_accepted in decided
    ])  # fmt: skip
    result = match(lines, known, reviews=reviews)
    assert reported(result, "line", "customer_id", "status", "matched_by") == [
        (2, "2", "matched", "reviewed"),
        (3, None, "only_in_erp", None),
        (4, "4", "matched", "reviewed"),
        (None, "1", "only_in_platform", None),
        (None, "3", "only_in_platform", None),
    ]
    assert set(result.pairs["line_key"]) == {keys[2], "code C"}
    assert keys[2].startswith("keys ")


def test_what_no_key_finds_is_suggested_by_phones_and_names_and_never_matched() -> None:
    """Of the others, one has another document, one a name of one word, one a heavier pair, and one is too light."""
    lines = erp(
        {"erp_code": "A", "email": "a@x", **PERSON, "phone": "987654321"},
        {"erp_code": "B", **FIRM},
        {
            "erp_code": "C",
            "document_number": "12345678",
            "fiscal_address": "Calle Luna 12",
            **OTHER,
        },
        {"erp_code": "D", "first_name": "Eva"},
        {"erp_code": "E", "phone": "911111111", **FIRM},
        {"erp_code": "F", "fiscal_name": "Bodega del Sur"},
        {
            "erp_code": "G",
            "email": "g@x",
            "first_name": "Luz",
            "last_name": "Rey",
            "phone": "922222222",
        },
    )
    known = customers(
        {"email": "other@x", **PERSON, "first_name": "RUIZ GARCÍA", "last_name": "ANA"},
        {"phone": "911111111"},
        {"email": "c@x", **OTHER},
        {"email": "d@x", "first_name": "Eva"},
        {},
        {"email": "h@x", "first_name": "Luz", "last_name": "Rey", "phone": "933333333"},
    )
    papers = documents(
        {"customer_id": "2", "fiscal_name": "Aceros Norte SAC"},
        {"customer_id": "3", "number": "87654321", "fiscal_address": "Calle Luna 12"},
        {"customer_id": "5", "fiscal_name": "Bodega Sur"},
    )
    made = match(lines, known, papers, country="PE")
    assert set(made.customers["status"]) == {"only_in_erp", "only_in_platform"}
    expected = [("A", "1", "suggested", "name, phone"), ("E", "2", "suggested", "name, phone")]
    expected.append(("F", "5", "suggested", "name"))
    shown = ("erp_code", "customer_id", "status", "matched_by")
    assert values(made.pairs, *shown) == expected
    key = made.pairs["line_key"].iloc[0]
    for is_accepted, pair in ((True, [("A", "1", "matched", "reviewed")]), (False, [])):
        review = {"line_key": key, "customer_id": "1", "is_accepted": is_accepted}
        decided = match(lines, known, papers, country="PE", reviews=frame(REVIEWS, [review]))
        assert values(decided.pairs, *shown) == [*pair, *expected[1:]]
    with patch.object(matching, "LEFT_ROWS_MAX", 12):
        too_many = match(lines, known, papers, country="PE")
    assert too_many.pairs.empty, "13 rows are left over"


def test_the_later_decision_about_a_line_or_a_customer_counts() -> None:
    """Which line is accepted as which of two customers, one after the other, and whose each is then."""
    cases: list[tuple[list[tuple[int, int]], list[int | None]]] = [
        ([(0, 0), (0, 1)], [1, None]), ([(0, 1), (0, 0)], [0, None]),
        ([(0, 0), (1, 0)], [None, 0]), ([(1, 0), (0, 1), (1, 1)], [None, 1]),
    ]  # fmt: skip
    lines = [
        {"erp_code": f"K{n}{line}", "email": f"ana{n}@x" if line == 0 else None}
        for n in range(4)
        for line in (0, 1)
    ]
    known = [{"email": f"ana{n // 2}@x"} for n in range(8)]
    reviews = [
        {"line_key": f"code K{n}{line}", "customer_id": str(2 * n + one + 1), "is_accepted": True}
        for n, (decided, _) in enumerate(cases)
        for line, one in decided
    ]
    made = match(erp(*lines), customers(*known), reviews=frame(REVIEWS, reviews))
    expected = [
        None if one is None else str(2 * n + one + 1)
        for n, (_, of) in enumerate(cases)
        for one in of
    ]
    assert reported(made, "customer_id")[:8] == expected


def test_lines_with_one_code_are_reviewed_apart() -> None:
    lines = erp(
        {"erp_code": "D", "email": "d@x"}, {"erp_code": "D", "email": "e@x"}, {"erp_code": "F"}
    )
    pairs = match(lines, customers({"email": "d@x"}, {"email": "e@x"}, {"erp_code": "F"})).pairs
    assert pairs["line_key"].nunique() == 3
    assert [key.partition(" ")[0] for key in pairs["line_key"]] == ["keys", "keys", "code"]


def test_a_code_of_several_customers_makes_no_match_of_two_documents() -> None:
    paper = {"email": "a@x", "document_number": "1234567", **PERSON}
    known = customers({"erp_code": "Z", "email": "a@x", **PERSON}, {"erp_code": "Z"})
    other = documents({"customer_id": "1", "number": "7654321"})
    made = match(erp({"erp_code": "Z", **paper}), known, other)
    assert reported(made, "status", "reason")[0] == ("ambiguous", "document_number differ")
    alone = match(erp({"erp_code": "Z", **paper}), known.iloc[:1], other)
    assert reported(alone, "status")[0] == "matched"


def test_a_match_stays_over_night_unless_it_is_contradicted() -> None:
    """Of pairs of the last match: one too light now, of two firms, rejected, below nothing, without a key."""
    lines = erp(
        {"erp_code": "A", "email": "a@x", "phone": "987654321"},
        {"erp_code": "B", "email": "b@x", "document_number": "1234567", **FIRM},
        {"erp_code": "C", "email": "c@x", "phone": "987654321"},
        {"erp_code": "D", "email": "d@x", "phone": "987654321"},
        {"erp_code": "E", "login_code": "E", "email": "e@x", **PERSON},
        {
            "erp_code": "F",
            "email": "f@x",
            "first_name": "Luz",
            "last_name": "Rey",
            "phone": "944444444",
        },
    )
    known = customers(
        *({"email": f"{name}@x", "phone": "912345678"} for name in "abcd"),
        {"erp_code": "EE", "login_code": "EE", "email": "e@x", **OTHER},
        {"email": "g@x", "first_name": "Luz", "last_name": "Rey", "phone": "944444444"},
    )
    papers = documents({"customer_id": "2", "number": "7654321", "fiscal_name": "Bodega Sur"})
    last = erp_pairs(
        ("code A", "1"), ("code B", "2"), ("code C", "3"), ("code E", "5"), ("code F", "6")
    )
    rejected = frame(REVIEWS, [{"line_key": "code C", "customer_id": "3", "is_accepted": False}])
    made = match(lines, known, papers, reviews=rejected, last=last)
    assert reported(made, "line", "customer_id", "status")[:6] == [
        (2, "1", "matched"), (3, None, "ambiguous"), (4, None, "only_in_erp"), (5, None, "ambiguous"),
        (6, None, "ambiguous"), (7, None, "only_in_erp"),
    ]  # fmt: skip
    found = made.findings[made.findings["rule"] == "pairs_parted"]
    assert values(found, "severity", "detail") == [("info", "3 pairs of the last match")]


def test_a_pair_whose_review_is_withdrawn_is_decided_anew() -> None:
    lines = erp({"erp_code": "A", "email": "a@x", "phone": "987654321"})
    known = customers({"email": "a@x", "phone": "912345678"})
    last = erp_pairs(("code A", "1"))
    reviewed = last.assign(matched_by=last["matched_by"].str.replace("email", "reviewed"))
    for pairs, status in ((last, "matched"), (reviewed, "ambiguous")):
        assert reported(match(lines, known, last=pairs), "status")[0] == status


def some_reviews(made: MatchResult, seed: int) -> pd.DataFrame:
    """Half of them accept a pair of rows that have nothing in common."""
    known = (
        made.pairs.drop_duplicates("line")
        .drop_duplicates("customer_id")
        .sample(20, random_state=seed)
    )
    ids = known["customer_id"].tolist()
    others = [*ids[:10], *random.Random(seed).sample(ids[10:], 10)]
    rows = enumerate(zip(known["line_key"], others, strict=True))
    return frame(
        REVIEWS,
        [{"line_key": key, "customer_id": one, "is_accepted": n >= 10} for n, (key, one) in rows],
    )


def test_no_row_is_lost_or_twice_there_and_neither_order_nor_buckets_change_it() -> None:
    """Of families, typos and stand-ins; some lines are repeated or have another's code, some customers are gone."""
    chance, known = random.Random(2), truth(2, 200)
    for line in chance.sample(known.lines, 20):
        line["erp_code"] = chance.choice(known.lines)["erp_code"]
    for gone in chance.sample(known.customers, 30):
        gone["_missing_since"] = GONE
    lines = [
        *known.lines,
        *chance.sample(known.lines, 20),
        {"phone": "7"},
        {"erp_code": "0"},
        {"erp_code": "0 "},
    ]
    frames = erp(*lines), customers(*known.customers), documents(*known.documents)

    def shuffled(table: pd.DataFrame) -> pd.DataFrame:
        return table.iloc[chance.sample(range(len(table)), len(table))][
            chance.sample(list(table), len(list(table)))
        ]

    with patch("orderbridge.transforms.erp.candidates.FREQUENT", 3):
        whole = match(*frames, country="PE")
        reviews = some_reviews(whole, 2)
        reviewed = match(*frames, country="PE", reviews=reviews)
        for made, decided in ((whole, None), (reviewed, reviews)):
            parts = match(
                *map(shuffled, frames), country="PE", rows_per_bucket=250, reviews=decided
            )
            for one, other in zip(made[:4], parts[:4], strict=True):
                assert_frame_equal(one, other)
            assert made.repeated == parts.repeated
    assert (reviewed.customers["matched_by"] == "reviewed").sum() > 5
    assert set(whole.customers["status"]) == {
        "matched",
        "ambiguous",
        "only_in_erp",
        "only_in_platform",
    }
    assert set(whole.customers["matched_by"].dropna()) == set(MATCH_KEYS)
    of_lines, of_customers = (whole.customers[name].dropna() for name in ("line", "customer_id"))
    assert of_lines.is_unique
    assert len(of_lines) + whole.repeated == len(lines)
    assert sorted(of_customers) == sorted(
        frames[1]["customer_id"][frames[1]["_missing_since"].isna()]
    )
    counts = Counter(whole.differences["platform_id"])
    for line, customer, status, count in reported(
        whole, "line", "customer_id", "status", "difference_count"
    ):
        assert (
            (status == "matched")
            == (line is not None and customer is not None)
            == (count is not None)
        )
        assert (count or 0) == counts.get(customer, 0)


def test_of_5000_lines_matches_are_right_and_few_are_missed() -> None:
    """Of what is missed, nearly all has no key in common."""
    precision, recall = accuracy(1, 5000)
    assert (precision >= 0.999, recall >= 0.97) == (True, True), (precision, recall)
