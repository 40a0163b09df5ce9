"""What is evidence that two rows are one customer, and what against it; no stand-in is, and no look-alike."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pytest

from tests.transforms.erp.test_match import customers, differing, documents, erp, matched, reported, rules
from tests.transforms.erp.whole import MatchResult
from transforms.erp.candidates import common_keys
from transforms.erp.match import REVIEWS, reviewed_lines
from transforms.frames import frame

ROW = ("line", "customer_id", "status", "matched_by", "reason")
PERSON = {"first_name": "Ana", "last_name": "García Ruiz", "phone": "+51 987 654 321"}
OTHER = {"first_name": "Luis", "last_name": "Peña Soto", "phone": "+51 912 345 678"}
FIRM = {"fiscal_name": "Aceros del Norte S.A.C."}


def pair(line: dict[str, Any], customer: dict[str, Any]) -> MatchResult:
    """The match of one line and one customer; the keys of a document are in a document."""
    paper: dict[str, Any] = {name: customer.pop(name, None) for name in ("fiscal_name", "fiscal_address")}
    paper |= {"number": customer.pop("document_number", None)}
    customer["full_name"] = f"{customer.get('first_name') or ''} {customer.get('last_name') or ''}".strip()
    return matched(erp(line), customers(customer), documents({"customer_id": "1", "is_default": True, **paper}))


@pytest.mark.parametrize(
    ("ours", "theirs", "outcome"),
    [
        # One other key that differs may be a typo; two are more likely another customer.
        ({"erp_code": "A1", "email": "a@x"}, {"erp_code": "A1", "email": "b@x"}, "erp_code"),
        ({"erp_code": "A1", "email": "a@x", "document_number": "D1"},
         {"erp_code": "A1", "email": "b@x", "document_number": "D2"}, "email, document_number differ"),
        ({"erp_code": "A1", "email": "a@x", "login_code": "L1"},
         {"erp_code": "B2", "email": "a@x", "login_code": "L2"}, "erp_code, login_code differ"),
        ({"erp_code": "A1", "email": "a@x", "document_number": "D1"},
         {"erp_code": "B2", "email": "b@x", "document_number": "d-1"}, "erp_code, email differ"),
        # Values that prove nothing do not differ.
        ({"erp_code": "A1", "email": "a@x", "login_code": "S/N"},
         {"erp_code": "A1", "email": "b@x", "login_code": "L2"}, "erp_code"),
        ({"erp_code": "A1", "email": "noemail@x", "login_code": "L1"},
         {"erp_code": "A1", "email": "b@x", "login_code": "L2"}, "erp_code"),
        ({"erp_code": "A1", "email": "a@x", "login_code": "L-01"},
         {"erp_code": "A1", "email": "b@x", "login_code": "l1"}, "erp_code"),
        # An address moves to another firm, and a code to another customer.
        ({"email": "a@x", **PERSON}, {"email": "a@x", **OTHER}, "names differ"),
        ({"email": "a@x", "erp_code": "A1", **PERSON}, {"email": "a@x", "erp_code": "B2", **PERSON}, "email"),
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
        ({"erp_code": "ñ-01"}, {"erp_code": "n\u03031"}, "the keys are only nearly equal"),
        ({"document_number": "7654321"}, {"document_number": "07654321"}, "the keys are only nearly equal"),
        ({"erp_code": "007", **PERSON}, {"erp_code": "7", **OTHER}, None),
    ],
)  # fmt: skip
def test_a_pair_is_matched_or_ambiguous_with_the_reason(
    ours: dict[str, Any], theirs: dict[str, Any], outcome: str | None
) -> None:
    result = pair(ours, dict(theirs))
    line, *rest = reported(result, "status", "matched_by", "reason")
    if outcome in ours:
        assert (line, rest) == (("matched", outcome, None), [])
    elif outcome is None:
        assert (line[0], rest[0][0]) == ("only_in_erp", "only_in_platform")
    else:
        assert (line[0], line[2]) == ("ambiguous", outcome)
        assert rest == [line]
        assert reported(result, "members", "member_lines") == [("1", None), (None, "2")]
        assert differing(result) == []
        assert {("erp_customers", "match_ambiguous", "2"), ("customers", "erp_ambiguous", "1")} <= set(rules(result))


def test_a_pair_shows_what_agrees_and_what_differs_and_its_weight() -> None:
    result = pair({"erp_code": "A1", "email": "a@x", **PERSON}, {"erp_code": "A1", "email": "b@x", **PERSON})
    assert result.pairs.astype(object).where(result.pairs.notna(), None).to_dict("records") == [
        {
            "line": 2,
            "erp_code": "A1",
            "customer_id": "1",
            "status": "matched",
            "matched_by": "erp_code",
            "weight": 10 - 3 + 3 + 3 + 3,
            "agreeing": "erp_code, first_name, last_name, phone",
            "differing": "email",
            "differences": "email: a@x / b@x",
            "line_key": "code A1",
        }
    ]


@pytest.mark.parametrize(
    ("ours", "theirs", "is_doubtful"),
    [
        ({"first_name": "Ana"}, {"first_name": "Luis"}, True),
        (PERSON, PERSON, False),
        (PERSON | FIRM, OTHER | FIRM, False),
        ({"phone": "987654321", "fiscal_address": "Sol 1"}, {"phone": "912345678", "fiscal_address": "Luna 2"}, True),
        ({"phone": "987654321"}, {"phone": "912345678"}, False),
        ({"first_name": "Ana María"}, {"first_name": "Ana"}, False),
    ],
    ids=["names", "none", "the firm is the same", "all others", "one field", "fewer words"],
)
def test_a_match_whose_names_or_other_fields_differ_is_doubtful(
    ours: dict[str, Any], theirs: dict[str, Any], is_doubtful: bool
) -> None:
    result = pair({"erp_code": "A1", **ours}, {"erp_code": "A1", **theirs})
    assert reported(result, "status") == [("matched",)]
    assert (("erp_customers", "match_doubtful", "2") in rules(result)) == is_doubtful


def test_in_a_family_with_one_mailbox_documents_and_names_decide() -> None:
    numbers = ("10000", "10001", None)
    lines = [
        {"email": "casa@x", "document_number": number, "first_name": name}
        for number, name in zip(numbers, ("Ana", "Bea", "Ciro"), strict=True)
    ]
    known = [{"email": "casa@x", "full_name": name, "first_name": name} for name in ("Ciro", "Bea", "Ana")]
    papers = [{"customer_id": str(n), "number": f"1000{3 - n}", "is_default": True} for n in (1, 2, 3)]
    result = matched(erp(*lines), customers(*known), documents(*papers))
    assert reported(result, "line", "customer_id", "status") == [
        (2, "3", "matched"), (3, "2", "matched"), (4, "1", "matched"),
    ]  # fmt: skip


def test_what_is_left_of_a_shared_key_is_matched_and_a_code_stays_taken() -> None:
    lines = erp({"erp_code": "A", "email": "a@x"}, {"email": "a@x"}, {"erp_code": "A", "email": "z@x"})
    result = matched(lines, customers({"erp_code": "A", "email": "a@x"}, {"email": "a@x"}))
    assert reported(result, "line", "customer_id", "status", "reason") == [
        (2, "1", "matched", None),
        (3, "2", "matched", None),
        (4, None, "ambiguous", "several lines"),
    ]


def test_a_line_whose_code_a_customer_has_who_was_found_by_other_keys_is_not_only_in_the_erp() -> None:
    lines = erp({"email": "a@x", "document_number": "D1"}, {"erp_code": "A"})
    known = customers({"erp_code": "A", "email": "a@x"})
    result = matched(lines, known, documents({"customer_id": "1", "number": "D1", "is_default": True}))
    assert reported(result, *ROW[:3]) == [(2, "1", "matched"), (3, None, "ambiguous")]


def test_a_document_differs_only_where_none_of_the_customer_has_its_number() -> None:
    line = {"erp_code": "A1", "email": "a@x", "document_number": "D3"}
    papers = [{"customer_id": "1", "number": number, "is_default": number == "D1"} for number in ("D1", "D2", "D3")]
    known = customers({"erp_code": "A1", "email": "b@x"})
    assert reported(matched(erp(line), known, documents(*papers)), "status") == [("matched",)]
    without = reported(matched(erp(line), known, documents(*papers[:2])), "status", "reason")
    assert set(without) == {("ambiguous", "email, document_number differ")}


def test_a_value_that_many_rows_have_is_no_key_and_does_not_differ() -> None:
    known = [{"erp_code": "CONTADO", "email": f"u{n}@x"} for n in range(21)]
    result = matched(erp({"erp_code": "CONTADO", "email": "u7@x"}), customers(*known))
    assert reported(result, *ROW)[0] == (2, "8", "matched", "email", None)
    assert reported(result, *ROW)[1][2] == "only_in_platform"
    fewer = matched(erp({"erp_code": "CONTADO", "phone": "1"}), customers(*known[:20]))
    assert reported(fewer, *ROW)[0] == (2, None, "ambiguous", "erp_code", "several customers")
    for ours, theirs in (("12345678", "7{}1"), ("7{}1", "12345678")):
        lines = [{"erp_code": f"A{n}", "email": f"erp{n}@x", "document_number": ours.format(n)} for n in range(30)]
        clients = [{"erp_code": f"A{n}", "email": f"{n}@shop.x"} for n in range(30)]
        papers = [{"customer_id": str(n), "number": theirs.format(n), "is_default": True} for n in range(1, 31)]
        frequent = matched(erp(*lines), customers(*clients), documents(*papers))
        assert set(reported(frequent, "status")) == {("matched",)}, ours


def test_a_value_that_many_rows_have_makes_no_pairs() -> None:
    for count, pairs in ((20, 400), (21, 0)):  # a million rows with one value would make a billion
        hashes = {"email": pd.Series([7] * count, dtype="uint64")}
        assert len(common_keys(hashes, hashes, (count, count))[0].line) == pairs


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


def test_stand_ins_are_no_keys_and_values_that_only_resemble_them_are() -> None:
    """One match of all these values, each in a line and in a customer that have nothing else."""
    values = [*((key, value) for key, of_key in STAND_INS.items() for value in of_key), *RESEMBLING]
    known = [{} if key == "document_number" else {key: value} for key, value in values]
    papers = [
        {"customer_id": str(n), "number": value} for n, (key, value) in enumerate(values, 1) if key == "document_number"
    ]
    result = matched(erp(*({key: value} for key, value in values)), customers(*known), documents(*papers))
    status = {line: status for line, status in reported(result, "line", "status") if line}
    found = set(rules(result))
    for line, (key, value) in enumerate(values, 2):
        is_key = (key, value) in RESEMBLING
        assert status[line] == ("matched" if is_key else "only_in_erp"), (key, value)
        assert (("erp_customers", "key_missing", str(line)) in found) != is_key, (key, value)
        if any(sign.isalnum() for sign in value) or key.endswith(("_code", "email")):
            assert (("erp_customers", "key_stand_in", str(line)) in found) != is_key, (key, value)


def test_rows_with_a_stand_in_are_matched_by_their_other_keys() -> None:
    lines = erp(
        {"erp_code": "0", "email": "a@x"},
        {"erp_code": "0", "email": "noemail@x", "document_number": "D2"},
        {"erp_code": "0", "email": "noemail@x", "document_number": "S/N"},
    )
    known = customers({"erp_code": "0", "email": "a@x"}, {"erp_code": "0", "email": "noemail@x"}, {"email": "c@x"})
    papers = documents({"customer_id": "2", "number": "D2"}, {"customer_id": "3", "number": "S/N"})
    made = matched(lines, known, papers)
    assert reported(made, "line", "customer_id", "status", "matched_by") == [
        (2, "1", "matched", "email"),
        (3, "2", "matched", "document_number"),
        (4, None, "only_in_erp", None),
        (None, "3", "only_in_platform", None),
    ]
    assert {line for _, rule, line in rules(made) if rule == "key_stand_in"} == {"4"}, "others are matched"


def test_composed_accents_and_invisible_characters_make_no_other_value() -> None:
    texts = ("nin\u0303o@x", "niño\u200b@x", "\ufeffNIñO@x", " niño@X\u00a0")
    lines, known = (
        [{"email": email.replace("@", f"{n}@")} for n, email in enumerate(of)] for of in (texts, ["niño@x"] * 4)
    )
    by_email = matched(erp(*lines), customers(*known))
    assert set(reported(by_email, "status", "matched_by", "difference_count")) == {("matched", "email", 0)}
    coded = [{**one, "erp_code": f"Ñ\u200b{n}"} for n, one in enumerate(lines)]
    by_code = matched(erp(*coded), customers(*({**one, "erp_code": f"N\u0303{n}"} for n, one in enumerate(known))))
    assert set(reported(by_code, "status", "matched_by", "difference_count")) == {("matched", "erp_code", 0)}


LOOK_ALIKE = {
    "long s": ("maria@shop.es", "maria@ſhop.es"),
    "Kelvin sign": ("mike@shop.es", "mi\u212ae@shop.es"),
    "sharp s": ("strasse@x.de", "straße@x.de"),
    "case beyond ASCII": ("josé@x.es", "JOSÉ@x.es"),
    "full width": ("maria@shop.es", "ｍaria@shop.es"),
}


def test_look_alike_addresses_are_never_matched_by_and_shown() -> None:
    pairs = [found[::step] for step in (1, -1) for found in LOOK_ALIKE.values()]
    pairs = [(ours.replace("@", f"+{n}@"), theirs.replace("@", f"+{n}@")) for n, (ours, theirs) in enumerate(pairs)]
    lines = erp(*({"email": ours, **PERSON} for ours, _ in pairs))
    alone = reported(matched(lines, customers(*({"email": theirs, **PERSON} for _, theirs in pairs))), *ROW)
    assert {row[2:] for row in alone} == {("ambiguous", "email", "the addresses only look alike")}
    both = matched(lines, customers(*({"email": email} for ours, theirs in pairs for email in (theirs, ours))))
    statuses = [(line, status) for line, status in reported(both, "line", "status") if line]
    assert statuses == [(n + 2, "matched") for n in range(len(pairs))]
    coded = [({"erp_code": f"A{n}", "email": ours}, {"erp_code": f"A{n}", "email": theirs})
        for n, (ours, theirs) in enumerate(pairs)]  # fmt: skip
    by_code = matched(erp(*(ours for ours, _ in coded)), customers(*(theirs for _, theirs in coded)))
    assert [row[2:] for row in differing(by_code)] == pairs


def test_what_a_person_decided_about_a_pair_holds() -> None:
    lines = erp({"email": "a@x"}, {"erp_code": "B", "email": "b@x"}, {"erp_code": "C"})
    known = customers({"email": "a@x"}, {"email": "a@x"}, {"erp_code": "B"}, {"email": "other@x"})
    first = matched(lines, known)
    keys = dict(zip(first.pairs["line"], first.pairs["line_key"], strict=True)) | {4: "code C"}
    decided = [(2, "2", True), (3, "3", False), (4, "4", True), (9, "1", True)]
    reviews = frame(REVIEWS, [
        {"line_key": keys.get(line, "gone"), "customer_id": customer, "is_accepted": is_accepted}
        for line, customer, is_accepted in decided
    ])  # fmt: skip
    result = matched(lines, known, reviewed=reviewed_lines(lines, reviews))
    assert reported(result, "line", "customer_id", "status", "matched_by") == [
        (2, "2", "matched", "reviewed"),
        (3, None, "only_in_erp", None),
        (4, "4", "matched", "reviewed"),
        (None, "1", "only_in_platform", None),
        (None, "3", "only_in_platform", None),
    ]
    assert set(result.pairs["line_key"]) == {keys[2], "code C"}
    assert keys[2].startswith("keys ")


def test_lines_with_one_code_are_reviewed_apart() -> None:
    lines = erp({"erp_code": "D", "email": "d@x"}, {"erp_code": "D", "email": "e@x"}, {"erp_code": "F"})
    pairs = matched(lines, customers({"email": "d@x"}, {"email": "e@x"}, {"erp_code": "F"})).pairs
    assert pairs["line_key"].nunique() == 3
    assert [key.partition(" ")[0] for key in pairs["line_key"]] == ["keys", "keys", "code"]
