"""What holds of every match: nothing is lost, nothing fans out, and it is what a slow and plain reading makes of it."""

from __future__ import annotations

import random
from collections import Counter
from typing import Any

import pandas as pd
import pyarrow as pa
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from tests.transforms.erp.test_match import GONE, customers, documents, erp, matched, reported
from transforms.erp.match_keys import MATCH_KEYS
from transforms.erp.tables import ERP_FIELDS

CODES = ("A", "B", "C", "a", "01", "1", "-", "", None)
EMAILS = ("a@x", "A@X", "b@x", "maria@shop.es", "maria@ſhop.es", "noemail@x", "bad", "", None)
NUMBERS = ("D1", "d-1", "D2", "D3", "0", "S/N", "", None)
NAMES = ("Ana", "Luis", "Ana Luisa", "", None)
VALUES = {"erp_code": CODES, "login_code": CODES, "email": EMAILS, "document_number": NUMBERS, "first_name": NAMES}
STAND_INS = {"-", "noemail@x", "bad", "0", "S/N"}
SEEDS = st.integers(0, 2**32)
CASES = 25
few = settings(max_examples=settings().max_examples // 10, phases=(Phase.reuse, Phase.generate))
"""A match takes as long as hundreds of rows in it, so each example has many cases, which share no key. No smaller
seed is a smaller example: a failed one is not shrunk."""
Row = dict[str, Any]
Sides = tuple[list[Row], list[Row], list[Row]]


def sides_of(chance: random.Random, cases: int = CASES) -> Sides:
    """Up to eight lines, customers and documents of each case."""
    lines: list[Row] = []
    known: list[Row] = []
    papers: list[Row] = []

    def value(name: str, case: int) -> str | None:
        text: str | None = chance.choice(VALUES[name])
        if not text or text in STAND_INS or name == "first_name":
            return text
        before, at, host = text.partition("@")
        return f"{before}x{case}{at}{host}"

    for case in range(cases):
        first = len(known) + 1
        for _ in range(chance.randint(0, 8)):
            lines.append({name: value(name, case) for name in VALUES})
        for _ in range(chance.randint(0, 8)):
            row = {name: value(name, case) for name in VALUES if name != "document_number"}
            known.append(row | ({"_missing_since": GONE} if chance.random() < 0.5 else {}))
        for _ in range(chance.randint(0, 8)):
            owner, number = str(first + chance.randrange(8)), value("document_number", case)
            papers.append({"customer_id": owner, "number": number, "is_default": chance.random() < 0.5})
    return lines, known, papers


def plain(lines: list[Row], known: list[Row], papers: list[Row]) -> tuple[set[tuple[Any, ...]], int]:
    """The match by the words of its description, over Python's own sets; and how many lines are repeated."""
    of_lines: dict[int, Row] = {}
    seen = set[tuple[Any, ...]]()
    for number, line in enumerate(lines, 2):
        values = tuple((line.get(name) or "").strip() for name in ERP_FIELDS)
        if values not in seen:
            seen.add(values)
            of_lines[number] = line
    numbers: dict[str, list[Row]] = {}
    for paper in papers:
        numbers.setdefault(paper["customer_id"], []).append(paper)
    of_customers = {str(n): row for n, row in enumerate(known, 1) if row.get("_missing_since") is None}

    def forms(name: str, text: str | None) -> tuple[str, str]:
        """The exact and the loose form; empty for a stand-in."""
        if not text or text in STAND_INS:
            return "", ""
        if name == "email":
            return text.replace("A", "a").replace("X", "x"), text.casefold()
        exact = text.replace("-", "").lower() if name == "document_number" else text
        return exact, exact.replace("-", "").lower().lstrip("0")

    def document(line: Row, customer: str) -> str | None:
        own = numbers.get(customer, [])
        exact = forms("document_number", line["document_number"])[0] or (line["document_number"] or "").lower()
        named = [
            one
            for one in own
            if exact and (forms("document_number", one["number"])[0] or (one["number"] or "").lower()) == exact
        ]
        defaults = [one for one in own if one["is_default"]] or (own if len(own) == 1 else [])
        chosen = [*named, *defaults]
        return chosen[0]["number"] if chosen else None

    weights, keys = {}, {}
    table = {"erp_code": (10, 3, -4), "login_code": (9, 2, -3), "email": (7, 0, -3), "document_number": (8, 3, -5)}
    for number, line in of_lines.items():
        for customer, row in of_customers.items():
            weight, equal, near = 0, set[str](), set[str]()
            for name, of_key in table.items():
                theirs = document(line, customer) if name == "document_number" else row.get(name)
                (mine, loose), (other, loose_other) = forms(name, line[name]), forms(name, theirs)
                if mine and mine == other:
                    weight, equal = weight + of_key[0], equal | {name}
                elif mine and loose == loose_other:
                    weight, near = weight + of_key[1], near | {name}
                elif mine and other:
                    weight += of_key[2]
            words, others = (set((one["first_name"] or "").lower().split()) for one in (line, row))
            if words and others:
                weight += 3 if words & others else -5
            mine = forms("document_number", line["document_number"])[1]
            held = {forms("document_number", one["number"])[1] for one in numbers.get(customer, [])}
            if equal or near or (mine and mine in held):
                weights[number, customer], keys[number, customer] = weight, (equal, near)
    rows, left = set[tuple[Any, ...]](), dict(weights)
    while True:
        best = set()
        for (number, customer), weight in left.items():
            rivals = [w for (n, c), w in left.items() if (n == number) != (c == customer)]
            equal, near = keys[number, customer]
            if weight >= 5 and (equal or near - {"email"}) and all(weight - rival >= 3 for rival in rivals):
                best.add((number, customer))
        if not best:
            break
        for number, customer in best:
            equal, near = keys[number, customer]
            by = next(name for name in [*(k for k in MATCH_KEYS if k in equal), *(k for k in MATCH_KEYS if k in near)])
            rows.add((number, customer, "matched", by))
        taken = {n for n, _ in best} | {c for _, c in best}
        left = {(n, c): w for (n, c), w in left.items() if n not in taken and c not in taken}
    is_line, is_customer = {row[0] for row in rows}, {row[1] for row in rows}
    ambiguous, of_customer = set[Any](), set[Any]()
    codes = Counter(forms("erp_code", line["erp_code"])[0] for line in of_lines.values())
    repeated = {code for code, count in codes.items() if code and count > 1}
    for (number, customer), weight in weights.items():
        equal, near = keys[number, customer]
        is_open = equal or "email" in near or (near and weight > 0)
        if is_open and number not in is_line and (customer not in is_customer or "erp_code" in equal):
            ambiguous.add(number)
            of_customer |= {customer} - is_customer
    ambiguous |= {
        n for n, line in of_lines.items() if n not in is_line and forms("erp_code", line["erp_code"])[0] in repeated
    }
    rows |= {(n, None, "ambiguous" if n in ambiguous else "only_in_erp", None) for n in of_lines if n not in is_line}
    rows |= {
        (None, c, "ambiguous" if c in of_customer else "only_in_platform", None)
        for c in of_customers
        if c not in is_customer
    }
    return rows, len(lines) - len(of_lines)


@few
@given(SEEDS)
def test_it_is_what_a_plain_reading_makes_of_it_and_no_row_is_lost_or_twice_there(seed: int) -> None:
    for cases in (1, CASES):  # of a single one, a side may be empty
        check_against_a_plain_reading(sides_of(random.Random(seed + cases), cases))


def check_against_a_plain_reading(sides: Sides) -> None:
    lines, known, papers = sides
    found = matched(erp(*lines), customers(*known), documents(*papers))
    rows, repeated = plain(*sides)
    made = {
        (line, customer, status, by if status == "matched" else None)
        for line, customer, status, by in reported(found, "line", "customer_id", "status", "matched_by")
    }
    assert made == rows
    assert len(found.customers) == len(rows)
    assert found.repeated == repeated
    counts = Counter(found.differences["platform_id"])
    for customer, status, count in reported(found, "customer_id", "status", "difference_count"):
        assert (count is None) == (status != "matched")
        assert (count or 0) == counts.get(customer, 0)


@few
@given(SEEDS)
def test_the_order_of_rows_and_columns_changes_nothing(seed: int) -> None:
    chance = random.Random(seed)
    sides = sides_of(chance)
    frames = [erp(*sides[0]), customers(*sides[1]), documents(*sides[2])]
    first = matched(*frames)

    def shuffled(table: pd.DataFrame) -> pd.DataFrame:
        rows, names = list(range(len(table))), list(table)
        chance.shuffle(rows)
        chance.shuffle(names)
        return table.iloc[rows][names]

    again = matched(*map(shuffled, frames))
    for name in ("customers", "pairs", "differences", "findings"):
        assert_frame_equal(getattr(first, name), getattr(again, name))
        assert serialized(getattr(first, name)) == serialized(getattr(again, name))
    assert first.repeated == again.repeated


def serialized(table: pd.DataFrame) -> bytes:
    sink = pa.BufferOutputStream()
    arrow = pa.Table.from_pandas(table, preserve_index=False).combine_chunks()
    with pa.ipc.new_stream(sink, arrow.schema) as stream:
        stream.write_table(arrow)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole
