"""What holds of every match: nothing is lost, nothing fans out, and it is what a slow and plain reading makes of it."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from pandas.testing import assert_frame_equal

from tests.transforms.erp.test_match import GONE, customers, documents, erp, matched, reported
from tests.transforms.erp.whole import MatchResult, match
from transforms.erp.certain_pairs import Hashes, certain_pairs
from transforms.erp.match_keys import MATCH_KEYS
from transforms.erp.tables import ERP_FIELDS, PLATFORM_CUSTOMERS

CODES = ("A", "B", "C", "a", "01", "1", "-", "", None)
EMAILS = ("a@x", "A@X", "b@x", "maria@shop.es", "maria@ſhop.es", "noemail@x", "bad", "", None)
NUMBERS = ("D1", "d-1", "D2", "D3", "0", "S/N", "", None)
VALUES = {"erp_code": CODES, "login_code": CODES, "email": EMAILS, "document_number": NUMBERS}
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
        if not text or text in STAND_INS:
            return text
        before, at, host = text.partition("@")
        return f"{before}x{case}{at}{host}"

    for case in range(cases):
        first = len(known) + 1
        for _ in range(chance.randint(0, 8)):
            optional = {name: chance.choice(CODES) for name in ("first_name", "phone") if chance.random() < 0.5}
            lines.append({name: value(name, case) for name in VALUES} | optional)
        for _ in range(chance.randint(0, 8)):
            row = {name: value(name, case) for name in ("erp_code", "login_code", "email")}
            row |= {name: chance.choice(CODES) for name in ("first_name", "phone")}
            known.append(row | ({"_missing_since": GONE} if chance.random() < 0.5 else {}))
        for _ in range(chance.randint(0, 8)):
            owner, number = str(first + chance.randrange(8)), value("document_number", case)
            papers.append({"customer_id": owner, "number": number, "is_default": chance.random() < 0.5})
    return lines, known, papers


def made(sides: Sides, **more: Any) -> MatchResult:
    lines, known, papers = sides
    return matched(erp(*lines), customers(*known), documents(*papers), **more)


def plain(lines: list[Row], known: list[Row], papers: list[Row]) -> tuple[set[tuple[Any, ...]], int]:
    """The match by the words of its description, over Python's own sets; and how many lines are repeated."""
    seen: set[tuple[Any, ...]] = set()
    of_lines: dict[int, Row] = {}
    for number, line in enumerate(lines, 2):
        values = tuple((line.get(name) or "").strip() for name in ERP_FIELDS)
        if values not in seen:
            seen.add(values)
            of_lines[number] = line
    of_customers = {str(n): row for n, row in enumerate(known, 1) if row.get("_missing_since") is None}

    def key_of(name: str, text: str | None) -> str | None:
        if not text or text in STAND_INS:
            return None
        if name == "email":
            return text.casefold()
        return text.replace("-", "").lower() if name == "document_number" else text

    def values_of(name: str, customer: str) -> set[str]:
        texts = numbers[customer] if name == "document_number" else [of_everyone[customer].get(name)]
        return {key for text in texts if (key := key_of(name, text))}

    def is_contradicted(number: int, customer: str, by: str) -> bool:
        line, row = lines[number - 2], of_everyone[customer]
        if by == "email" and line["email"].lower() != row["email"].lower():  # ſ has no other lower case
            return True
        differing = 0
        for name in MATCH_KEYS:
            ours, theirs = key_of(name, line.get(name)), values_of(name, customer)
            if name.endswith("_code") and ours:
                ours, theirs = ours.lstrip("0").lower(), {key.lstrip("0").lower() for key in theirs}
            differing += name != by and bool(ours and theirs) and ours not in theirs
        return differing > 1

    of_everyone = dict(of_customers)
    numbers: dict[str, list[str | None]] = defaultdict(list)
    for paper in papers:
        numbers[paper["customer_id"]].append(paper["number"])
    rows: set[tuple[Any, ...]] = set()
    for name in MATCH_KEYS:
        left: dict[str, set[int]] = defaultdict(set)
        right: dict[str, set[str]] = defaultdict(set)
        for number, line in of_lines.items():
            if key := key_of(name, line.get(name)):
                left[key].add(number)
        for customer in of_customers:
            for key in values_of(name, customer):
                right[key].add(customer)
        fits = {(number, customer) for key in left for number in left[key] for customer in right[key]}
        by_line, by_customer = Counter(a for a, _ in fits), Counter(b for _, b in fits)
        for number, customer in fits:
            if by_line[number] == by_customer[customer] == 1 and not is_contradicted(number, customer, name):
                rows.add((number, customer, "matched", name))
        contradicting = {n for key in left if len(left[key]) > 1 for n in left[key]} if name == "erp_code" else set()
        for number in {a for a, _ in fits} | contradicting:
            if (number, *[c for n, c in fits if n == number], "matched", name) not in rows:
                rows.add((number, None, "ambiguous", name))
            del of_lines[number]
        matched_customers = {row[1] for row in rows}
        for customer in {b for _, b in fits}:
            if customer not in matched_customers:
                rows.add((None, customer, "ambiguous", name))
            del of_customers[customer]
    rows |= {(number, None, "only_in_erp", None) for number in of_lines}
    rows |= {(None, customer, "only_in_platform", None) for customer in of_customers}
    return rows, len(lines) - len(seen)


@few
@given(SEEDS)
def test_it_is_what_a_plain_reading_makes_of_it_and_no_row_is_lost_or_twice_there(seed: int) -> None:
    for cases in (1, CASES):  # of a single one, a side may be empty
        check_against_a_plain_reading(sides_of(random.Random(seed + cases), cases))


def check_against_a_plain_reading(sides: Sides) -> None:
    found = made(sides)
    rows, repeated = plain(*sides)
    assert sorted(map(str, reported(found, "line", "customer_id", "status", "matched_by"))) == sorted(map(str, rows))
    lines = [line for (line,) in reported(found, "line") if line is not None]
    assert len(lines) == len(set(lines)) == len(sides[0]) - found.repeated
    assert found.repeated == repeated
    ids = sorted(customer for (customer,) in reported(found, "customer_id") if customer is not None)
    assert ids == sorted(str(n) for n, row in enumerate(sides[1], 1) if row.get("_missing_since") is None)
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
    for name in ("customers", "differences", "findings"):
        assert_frame_equal(getattr(first, name), getattr(again, name))
        assert serialized(getattr(first, name)) == serialized(getattr(again, name))
    assert first.repeated == again.repeated


def few_hashes(texts: pa.Array) -> Hashes:
    """A poor hash: many texts have the same."""
    return np.array([len(text) % 3 for text in texts.to_pylist()], np.uint64)


def good_hashes(texts: pa.Array) -> Hashes:
    return pd.util.hash_array(texts.to_numpy(zero_copy_only=False), categorize=False)


@few
@given(SEEDS)
def test_certain_pairs_change_nothing(seed: int) -> None:
    """The match with and without them is the same, whatever else is in the lists."""
    chance = random.Random(seed)
    lines, known, papers = sides_of(chance)
    for _ in range(chance.randint(8, 80)):  # lines that are customers, some of them there twice or not at all
        code, user = chance.randint(1, 60), chance.randint(1, 120)
        row = {"erp_code": f"E{code}", "email": f"{user}@x"}
        line = {**row, "first_name": "Zoe" if code % 2 else "", "document_number": f"N{code}"}
        lines[:0] = [line] * chance.choice((0, 1, 1, 1, 2))
        if chance.random() < 0.9:
            known.append({**row, "first_name": "Zoë"})
            papers.append({"customer_id": str(len(known)), "number": f"N{code}", "is_default": code > user})
    whole = made((lines, known, papers))
    for hash_texts in (few_hashes, good_hashes):
        narrowed = made((lines, known, papers), hash_texts=hash_texts)
        for name in ("customers", "differences", "findings"):
            assert_frame_equal(getattr(whole, name), getattr(narrowed, name))
        assert whole.repeated == narrowed.repeated


def test_rows_whose_keys_are_equal_and_their_own_are_certain_pairs() -> None:
    lines = [{"erp_code": str(n), "email": f"{n}@x", "first_name": "" if n % 2 else "Zoë"} for n in range(10, 100)]
    known = [{**line, "first_name": "Zoë"} for line in reversed(lines)]
    lines[5]["first_name"] = "Zoe"
    lines[6]["email"] = lines[7]["email"] = known[0]["email"] = "shared@x"
    papers = documents().assign(customer=pd.Series(dtype=np.int64), key=pd.Series(dtype="string[pyarrow]"))
    customer_of_line = certain_pairs(erp(*lines), customers(*known), papers, good_hashes)
    assert customer_of_line.tolist() == [89 - n if n not in (6, 7, 89) else -1 for n in range(90)]


def serialized(table: pd.DataFrame) -> bytes:
    sink = pa.BufferOutputStream()
    arrow = pa.Table.from_pandas(table, preserve_index=False).combine_chunks()
    with pa.ipc.new_stream(sink, arrow.schema) as stream:
        stream.write_table(arrow)
    whole: bytes = sink.getvalue().to_pybytes()
    return whole


def test_an_independent_comparer_agrees() -> None:
    """100,000 seeded customers; of the ERP's, some are gone, some new, some changed, and many written otherwise."""
    datacompy = pytest.importorskip("datacompy", reason="datacompy is in the group `bench`: make bench-setup")
    chance = np.random.default_rng(20)
    count = 100_000
    known = pd.DataFrame(
        {
            "erp_code": [f"{n:07d}" for n in range(count)],
            "email": [f"user.{n}@example.com" for n in range(count)],
            "last_name": [f"Núñez {n % 977}" for n in range(count)],
            "phone": [f"0051{n:09d}" for n in range(count)],
        },
        dtype="string[pyarrow]",
    )
    lines = known[chance.random(count) > 0.03].copy()
    fresh = lines.sample(2_500, random_state=1).assign(
        erp_code=lambda rows: "N" + rows["erp_code"], email=lambda rows: "new." + rows["email"]
    )
    for name, share in (("email", 0.02), ("last_name", 0.05), ("phone", 0.01)):
        where = chance.random(len(lines)) < share
        lines.loc[where, name] = lines.loc[where, name] + "7"
    emptied = chance.random(len(lines)) < 0.01
    lines.loc[emptied, "last_name"] = ""
    lines = pd.concat([lines, fresh]).sample(frac=1, random_state=2, ignore_index=True)

    asked = datacompy.PandasCompare(
        lines.assign(last_name=lines["last_name"].where(lines["last_name"] != "")), known, join_columns="erp_code"
    )
    silent = int((lines["last_name"] == "").sum())
    written = lines.assign(_line=range(2, len(lines) + 2))
    loud, padded = written.index % 3 == 0, written.index % 5 == 0
    written.loc[loud, "email"] = written.loc[loud, "email"].str.upper()
    written.loc[padded, "erp_code"] = " " + written.loc[padded, "erp_code"] + " "
    written["phone"] = "+" + written["phone"].str.slice(2)
    ids = known.assign(customer_id=known["erp_code"]).reindex(columns=list(PLATFORM_CUSTOMERS))
    ids["_missing_since"] = None
    found = match(written, ids, documents())

    status = found.customers["status"].value_counts()
    assert status["matched"] == len(asked.intersect_rows) > 90_000
    assert status["only_in_erp"] == len(asked.df1_unq_rows) == 2_500
    assert status["only_in_platform"] == len(asked.df2_unq_rows) > 2_500
    assert set(status.index) == {"matched", "only_in_erp", "only_in_platform"}
    fields = found.differences["field"].value_counts()
    theirs = {stat["column"]: stat["unequal_cnt"] for stat in asked.column_stats}
    # datacompy counts the emptied names, of which ours says that the ERP is silent
    assert dict(fields) == {name: theirs[name] - (silent if name == "last_name" else 0) for name in fields.index}
    assert set(fields.index) == {"email", "last_name", "phone"}
    differing = (~asked.intersect_rows[[f"{name}_match" for name in ("email", "last_name", "phone")]].all(axis=1)).sum()
    counts = found.customers["difference_count"]
    is_silent = asked.intersect_rows["last_name_df1"].isna()
    others = asked.intersect_rows["email_match"] & asked.intersect_rows["phone_match"]
    assert (counts > 0).sum() == differing - (is_silent & others).sum()
