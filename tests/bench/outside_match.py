"""How right and how complete the match is, on customers made by somebody who does not know its rules.

    make bench-outside                                      three seeds
    make bench-outside BENCH='--seeds 4 --examples 20'
    make bench-outside BENCH='--size 1500 --no-splink'      quick
    make bench-outside BENCH=--answered                     and once a person has answered
    make bench-outside BENCH=--held-out                     once, at the end

Each seed makes two lists (`outside_customers`). A sandbox serves the platform's, a CSV has the ERP's, and the commands
`pull` and `reconcile --erp-customers` are run as a user runs them; the pairs are read from the published tables and
compared with the truth. A pair is found where it is matched, and asked where it is shown as possible or as a question.
A customer who is twice in a list has several pairs, so that a match of one to one cannot find all of them: `customers`
counts those of the platform that have a partner, and got one. splink, where it is installed, gets the same rows.
"""

from __future__ import annotations

import argparse
import csv
import json
import logging
import sys
import tempfile
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import duckdb

from tests.bench.measure import line_of, run, serving
from tests.bench.outside_customers import (
    FIRST,
    HELD_OUT,
    HELD_OUT_SEEDS,
    Json,
    Pair,
    Population,
    Truth,
    make,
    plain,
)

SIZE = 5_000
"""About 4,000 customers in each list."""
READY_LINES = 7
COMMAND = "orderbridge.pipelines.cli"
PAIR, CODES, GROUP = "match:", "reconcile.erp_code", "matches:"
"""How questions about pairs begin, those about the form of codes, and those about many pairs at once."""
PROBABILITY_MIN = 0.9
KINDS_MIN = 8
"""Kinds with fewer pairs are left out."""


@dataclass(frozen=True)
class Found:
    """What a contender says: pairs that are the same, those that it asks about, and what it remarks on which pair.

    `answered` is what it says once a person has answered its questions, of which `questions` says how many there were.
    """

    pairs: set[Pair]
    asked: set[Pair]
    findings: Mapping[Pair, frozenset[str]]
    seconds: float
    answered: Found | None = None
    questions: str = ""


@dataclass(frozen=True)
class Case:
    """One seed: both lists, and what is so."""

    platform: list[Json]
    erp: list[Json]
    truth: Truth


# The program.


def by_program(case: Case, population: Population, *, is_answered: bool = False) -> Found:
    """The published tables of a project of its own; and those after a person who knows the truth has answered."""
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as temporary:
        folder = Path(temporary)
        records = folder / "records"
        records.mkdir()
        (records / "customers.json").write_text(
            json.dumps(case.platform, ensure_ascii=False), "utf-8"
        )
        with (folder / "clientes.csv").open("w", newline="", encoding="utf-8") as file:
            lines = csv.DictWriter(file, list(case.erp[0]))
            lines.writeheader()
            lines.writerows(case.erp)
        with serving(
            COMMAND, "sandbox", "--records", "records", "--orders", "0", folder=folder
        ) as platform:
            ready = [line_of(platform).partition("=") for _ in range(READY_LINES)]
            settings = {name: value for name, _, value in ready[1:]}
            settings |= {"WAREHOUSE__PATH": "shop.duckdb", "RECONCILE__COUNTRY": population.home}
            run(COMMAND, "pull", "customers", folder=folder, settings=settings)
        file_options = ("--erp-customers", "clientes.csv", "--fail-on", "never")
        begun = time.perf_counter()
        run(COMMAND, "reconcile", *file_options, folder=folder, settings=settings, codes=(0, 5))
        seconds = time.perf_counter() - begun

        def say(*words: str) -> str:
            return run(COMMAND, *words, folder=folder, settings=settings, codes=(0, 5))[1]

        def published() -> Found:
            pairs = {one["id"] for one in _asked(say) if one["id"].startswith(PAIR)}
            return _published(folder / "shop.duckdb", pairs, seconds)

        first = published()
        if not is_answered:
            return first
        counts = _answer(say, case, folder)
        say("reconcile", *file_options)
        return replace(first, answered=published(), questions=counts)


def _asked(say: Callable[..., str]) -> list[Json]:
    """The questions that are asked."""
    printed = say("questions", "--json").splitlines()
    answer = next(json.loads(line) for line in printed if line.startswith("{"))
    found: list[Json] = answer["questions"]
    return found


def _answer(say: Callable[..., str], case: Case, folder: Path) -> str:
    """Answers the questions about codes, then those about pairs that are left, by the truth. Returns how many."""
    of_codes = [one for one in _asked(say) if one["id"].startswith(CODES) and one["proposal"]]
    for one in of_codes:
        say("answer", one["id"], one["proposal"])
    say("reconcile", "--erp-customers", "clientes.csv", "--fail-on", "never")
    groups = _answer_groups(say, case, folder)
    asked = {one["id"] for one in _asked(say) if one["id"].startswith(PAIR)}
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as connection:
        pairs = connection.execute(
            "SELECT line_key, customer_id, erp_code FROM reconciled.erp_pairs"
        ).fetchall()
    with (folder / "decided.csv").open("w", newline="", encoding="utf-8") as file:
        lines = csv.writer(file)
        lines.writerow(["pair", "decision", "why"])
        for key, customer, code in pairs:
            if f"{PAIR}{key}/{customer}" in asked:
                is_same = (customer, code) in case.truth.pairs
                lines.writerow([f"{key} = {customer}", "accept" if is_same else "reject", ""])
    say("review", "decided.csv")
    counts = f"{len(of_codes)} about codes, {groups} about groups, {len(asked)} about pairs"
    return f"{counts} of {len(case.erp)} lines"


def _answer_groups(say: Callable[..., str], case: Case, folder: Path) -> int:
    """Answers the questions about many pairs: the same, where all examples are right. Returns how many."""
    of_groups = [one for one in _asked(say) if one["id"].startswith(GROUP)]
    with duckdb.connect(str(folder / "shop.duckdb"), read_only=True) as connection:
        suggested = connection.execute(
            "SELECT line, customer_id, erp_code FROM reconciled.erp_pairs WHERE status = 'suggested'"
        ).fetchall()
    pairs = {str(line): (customer, code) for line, customer, code in suggested}
    for group in of_groups:
        lines = [text.partition(",")[0].removeprefix("line ") for text in group["examples"]]
        if all(pairs[line] in case.truth.pairs for line in lines):
            say("answer", group["id"], "same")
    return len(of_groups)


def _published(warehouse: Path, questions: set[str], seconds: float) -> Found:
    with duckdb.connect(str(warehouse), read_only=True) as connection:
        rows = connection.execute(
            "SELECT customer_id, erp_code, status, line::VARCHAR, 'match:' || line_key || '/' || customer_id "
            "FROM reconciled.erp_pairs"
        ).fetchall()
        remarks: dict[str, set[str]] = {}
        for line, rule in connection.execute(
            "SELECT entity_id, rule FROM reconciled.exceptions "
            "WHERE entity = 'erp_customers' AND entity_id IS NOT NULL"
        ).fetchall():
            remarks.setdefault(line, set()).add(rule)
    return Found(
        {(customer, code) for customer, code, status, *_ in rows if status == "matched"},
        {
            (customer, code)
            for customer, code, status, _, question in rows
            if status != "matched" or question in questions
        },
        {(row[0], row[1]): frozenset(remarks.get(row[3], ())) for row in rows},
        seconds,
    )


# splink.

_COLUMNS = ("code", "mail", "tax", "phone", "first", "last", "fiscal", "address")


def _flat(row: Json) -> list[str]:
    """A record of either list in the same columns."""
    if "documents" not in row:
        names = "erpCode email documents[0].number phone firstName lastName documents[0].fiscalName"
        return [row[name] for name in (*names.split(), "documents[0].fiscalAddress")]
    paper = row["documents"][0] if row["documents"] else {}
    values = [row["erpCode"], row["email"], paper.get("number"), row["phone"]]
    values += [
        row["firstName"],
        row["lastName"],
        paper.get("fiscalName"),
        paper.get("fiscalAddress"),
    ]
    return [value or "" for value in values]


def _normalized(values: Sequence[str]) -> list[str | None]:
    """As anybody would begin: letters and digits alone, in lower case, without accents; the last digits of phones."""
    code, mail, tax, phone, *names = values
    digits = "".join(sign for sign in phone if sign.isdigit())[-9:]
    number = "".join(sign for sign in code if sign.isdigit()).lstrip("0")
    bare = "".join(sign for sign in tax.casefold() if sign.isalnum())
    words = [" ".join(plain(name).casefold().replace(".", "").split()) for name in names]
    return [value or None for value in (number, mail.strip().casefold(), bare, digits, *words)]


def has_equal_key(one: Json, line: Json) -> bool:
    """Whether code, mail, document or phone are equal at first sight: without any, a pair is told by names alone."""
    first, second = _normalized(_flat(one)), _normalized(_flat(line))
    return any(a and a == b for a, b in zip(first[:4], second[:4], strict=True))


def by_splink(case: Case) -> Found:
    """Untuned, one to one: the most probable customer of each line, where it is that of no more probable line."""
    import pandas as pd
    import splink.comparison_library as library
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    logging.getLogger("splink").setLevel(logging.ERROR)
    begun = time.perf_counter()
    sides = [
        pd.DataFrame(
            [[name(row), *_normalized(_flat(row))] for row in rows],
            columns=["unique_id", *_COLUMNS],
        ).astype("string")
        for rows, name in (
            (case.erp, lambda row: row["erpCode"]),
            (case.platform, lambda row: str(row["id"])),
        )
    ]
    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[
            *(library.LevenshteinAtThresholds(name, [1, 2]) for name in _COLUMNS[:4]),
            *(library.JaroWinklerAtThresholds(name, [0.9, 0.7]) for name in _COLUMNS[4:]),
        ],
        blocking_rules_to_generate_predictions=[
            *(block_on(name) for name in _COLUMNS[:4]),
            block_on("first", "last"),
            block_on("fiscal"),
        ],
    )
    linker = Linker(sides, settings, DuckDBAPI(), input_table_aliases=["a_lines", "b_customers"])
    linker.training.estimate_probability_two_random_records_match([block_on("tax")], recall=0.6)
    linker.training.estimate_u_using_random_sampling(max_pairs=1_000_000, seed=1)
    for name in ("tax", "mail"):
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(name))
    pairs = linker.inference.predict(
        threshold_match_probability=PROBABILITY_MIN
    ).as_pandas_dataframe()
    best = pairs.sort_values(["match_probability", "match_weight"], ascending=False, kind="stable")
    best = best.drop_duplicates("unique_id_l").drop_duplicates("unique_id_r")
    found = {
        (str(customer), str(code))
        for code, customer in zip(best["unique_id_l"], best["unique_id_r"], strict=True)
    }
    return Found(found, set(), {}, time.perf_counter() - begun)


# Figures.


@dataclass(frozen=True)
class Judged:
    """A contender's pairs of one seed beside the truth."""

    case: Case
    found: Found

    @property
    def right(self) -> set[Pair]:
        return self.found.pairs & self.case.truth.pairs.keys()

    @property
    def wrong(self) -> set[Pair]:
        return self.found.pairs - self.case.truth.pairs.keys()

    @property
    def missed(self) -> set[Pair]:
        return self.case.truth.pairs.keys() - self.found.pairs

    def why_wrong(self, pair: Pair) -> frozenset[str]:
        return self.case.truth.non_pairs.get(pair, frozenset({"strangers"}))

    def dirt(self, pair: Pair) -> frozenset[str]:
        truth = self.case.truth
        return truth.platform_kinds[pair[0]] | truth.erp_kinds[pair[1]]


def share(part: int, whole: int) -> str:
    return f"{100 * part / whole:5.1f} %" if whole else "    –  "


def headline(name: str, judged: Sequence[Judged]) -> str:
    right, wrong = (sum(len(one.right) for one in judged), sum(len(one.wrong) for one in judged))
    pairs = sum(len(one.case.truth.pairs) for one in judged)
    asked = sum(len(one.missed & one.found.asked) for one in judged)
    asked_wrong = sum(len(one.found.asked - one.case.truth.pairs.keys()) for one in judged)
    served = sum(len({customer for customer, _ in one.right}) for one in judged)
    customers = sum(len({customer for customer, _ in one.case.truth.pairs}) for one in judged)
    precision, recall = right / max(right + wrong, 1), right / pairs
    both = 2 * precision * recall / max(precision + recall, 1e-9)
    return (
        f"{name:<22}{precision:>10.4f}{recall:>8.4f}{both:>8.4f}{served / customers:>11.4f}"
        f"{(right + asked) / pairs:>13.4f}{wrong:>7}{pairs - right:>8}{asked_wrong:>13}"
        f"{sum(one.found.seconds for one in judged):>8.1f}"
    )


HEADER = (
    f"{'':<22}{'precision':>10}{'recall':>8}{'F1':>8}{'customers':>11}{'with asked':>13}{'wrong':>7}{'missed':>8}"
    f"{'asked wrong':>13}{'s':>8}"
)


def _ordered(counts: Counter[str]) -> list[tuple[str, int]]:
    """The most frequent first."""
    return sorted(counts.items(), key=lambda one: (-one[1], one[0]))


def _table(title: str, rows: Iterable[tuple[str, ...]], *names: str) -> None:
    print(f"\n{title:<62}{''.join(f'{name:>10}' for name in names)}")
    for kind, *cells in rows:
        print(f"  {kind:<60}{''.join(f'{cell:>10}' for cell in cells)}")


def report(judged: Sequence[Judged]) -> None:
    """Of the program: wrong and missed pairs by kind, and how many of them it remarks on."""
    traps = Counter(
        kind for one in judged for why in one.case.truth.non_pairs.values() for kind in why
    )
    why = Counter(kind for one in judged for pair in one.wrong for kind in one.why_wrong(pair))
    _table(
        "wrong pairs, by what they are",
        ((kind, str(n), str(traps[kind] or "–")) for kind, n in _ordered(why)),
        "wrong",
        "of",
    )
    dirt = Counter(kind for one in judged for pair in one.wrong for kind in one.dirt(pair))
    total = sum(len(one.wrong) for one in judged)
    rows = [(kind, str(n), share(n, total)) for kind, n in _ordered(dirt) if n > 1]
    _table("wrong pairs, by the dirt of their records", rows, "wrong", "share")
    all_of: Counter[str] = Counter()
    missed: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for one in judged:
        for pair, kinds in one.case.truth.pairs.items():
            number = len([kind for kind in kinds if _is_dirt(kind)])
            for kind in (
                *kinds,
                f"kinds of dirt: {min(number, 4)}{' or more' if number > 3 else ''}",
            ):
                all_of[kind] += 1
                missed[kind] += pair in one.missed
                asked[kind] += pair in one.missed and pair in one.found.asked
    kept = [kind for kind, n in all_of.items() if n >= KINDS_MIN]
    _table(
        "missed pairs, by kind",
        (
            (
                kind,
                str(all_of[kind]),
                str(missed[kind]),
                share(missed[kind], all_of[kind]),
                str(asked[kind]),
            )
            for kind in sorted(kept, key=lambda kind: (-missed[kind] / all_of[kind], kind))
        ),
        "pairs",
        "missed",
        "share",
        "asked",
    )
    _remarks(judged)
    _without_key(judged)


def _is_dirt(kind: str) -> bool:
    """Not a habit of a source, and nothing that is only not known."""
    habits = ("branch", "phone: a rare form", "name: in Latin letters", "login: known")
    return (
        not kind.startswith(("source:", "code:"))
        and "not in both" not in kind
        and kind not in habits
    )


def _remarks(judged: Sequence[Judged]) -> None:
    """Shares of wrong and of right pairs with each finding of their line, with any, and that are asked."""
    found = {
        name: [
            one.found.findings.get(pair, frozenset())
            | ({"asked"} if pair in one.found.asked else set())
            for one in judged
            for pair in (one.wrong if name == "wrong" else one.right)
        ]
        for name in ("wrong", "right")
    }
    rules = sorted(
        {rule for rows in found.values() for rules in rows for rule in rules} | {"asked"}
    )
    rows = [
        (
            "any finding",
            *(share(sum(bool(one - {"asked"}) for one in of), len(of)) for of in found.values()),
        )
    ]
    rows += [
        (rule, *(share(sum(rule in one for one in of), len(of)) for of in found.values()))
        for rule in rules
    ]
    _table("matched pairs that carry a finding, or are asked", rows, "wrong", "right")


def _without_key(judged: Sequence[Judged]) -> None:
    alone = found = 0
    for one in judged:
        customers = {str(row["id"]): row for row in one.case.platform}
        lines = {row["erpCode"]: row for row in one.case.erp}
        for customer, code in one.case.truth.pairs:
            if not has_equal_key(customers[customer], lines[code]):
                alone += 1
                found += (customer, code) in one.found.pairs
    print(
        f"\npairs without an equal code, mail, document or phone at first sight: {alone}, found {found}"
    )


def examples(judged: Judged, number: int) -> None:
    """Some wrong and some missed pairs, as both lists have them."""
    customers = {str(row["id"]): row for row in judged.case.platform}
    lines = {row["erpCode"]: row for row in judged.case.erp}
    for name, pairs in (("wrong", judged.wrong), ("missed", judged.missed)):
        for pair in sorted(pairs)[:number]:
            why = judged.why_wrong(pair) if name == "wrong" else judged.case.truth.pairs[pair]
            print(f"\n{name}: {', '.join(sorted(why))}")
            for row in (customers[pair[0]], lines[pair[1]]):
                print(f"  {' | '.join(_flat(row))}")


def judged_by(
    seeds: Sequence[int],
    size: int,
    population: Population,
    *,
    with_splink: bool,
    is_answered: bool,
) -> dict[str, list[Judged]]:
    """Each contender on each seed; prints a line for each."""
    contenders: dict[str, list[Judged]] = {"orderbridge": []}
    for seed in seeds:
        case = Case(*make(seed, size, population))
        one = Judged(case, by_program(case, population, is_answered=is_answered))
        contenders["orderbridge"].append(one)
        print(headline(f"orderbridge, seed {seed}", [one]), flush=True)
        if one.found.answered is not None:
            answered = Judged(case, one.found.answered)
            contenders.setdefault("orderbridge, answered", []).append(answered)
            print(headline("  answered", [answered]), f" {one.found.questions}", flush=True)
        if with_splink:
            other = Judged(case, by_splink(case))
            contenders.setdefault("splink", []).append(other)
            print(headline(f"splink, seed {seed}", [other]), flush=True)
    return contenders


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        "make bench-outside",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--seeds", type=int, nargs="+", default=[1, 2, 3])
    parser.add_argument("--size", type=int, default=SIZE)
    parser.add_argument("--no-splink", action="store_true", help="the program alone")
    parser.add_argument(
        "--answered", action="store_true", help="also after the answers to what it asks"
    )
    parser.add_argument("--held-out", action="store_true", help="the population for the end")
    parser.add_argument(
        "--examples", type=int, default=0, help="of each seed, so many wrong and missed pairs"
    )
    options: Any = parser.parse_args(arguments)
    if options.held_out and options.examples:
        parser.error("who looks at pairs of the held-out population tunes for it: no examples")
    warnings.simplefilter("ignore")
    population = HELD_OUT if options.held_out else FIRST
    print(HEADER)
    seeds = list(HELD_OUT_SEEDS) if options.held_out else options.seeds
    with_splink = not options.no_splink and find_spec("splink") is not None
    contenders = judged_by(
        seeds, options.size, population, with_splink=with_splink, is_answered=options.answered
    )
    for name, judged in contenders.items():
        print(headline(f"{name}, all", judged))
    report(contenders["orderbridge"])
    for one in contenders["orderbridge"] if options.examples else ():
        examples(one, options.examples)
    return 0


if __name__ == "__main__":
    sys.exit(main())
