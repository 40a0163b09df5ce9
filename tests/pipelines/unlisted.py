"""Records that no list shows, a variant and a site in each state, and what each command says about them.

In: a folder. Out: by kind and command, the words for each state. Only the ledger knows these records: nothing is read,
and each write gets the answer that its state needs.
"""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from unittest import mock

from orderbridge.pipelines.ledger.clock import ClockReading
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.make import PlanOptions, make_plan
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.settle import settle
from orderbridge.pipelines.push.verify import verify
from orderbridge.pipelines.reconcile.erp.files import ErpFiles
from orderbridge.pipelines.reconcile.erp.variants import read_erp_variants
from orderbridge.sources.http.exchange import WriteOutcome
from orderbridge.sources.kinds import KindName
from orderbridge.transforms.erp.variants import variants
from tests.pipelines.push.plans import (
    LOST,
    WAITS,
    Answer,
    Answering,
    Place,
    ids,
    means,
    outcomes,
    patch,
    place,
    subcategory,
    warehouse,
)
from tests.pipelines.states import INVALID, NOT_FOUND, SETTLE_S, UPTIME, Said, copy_ledger, step_in

VARIANTS = (
    "known", "renamed", "moved", "gone", "refused", "lost", "again", "overtaken", "vanished"
)  # fmt: skip
"""What became of a variant.

- known: confirmed
- renamed: confirmed, and then with another code
- moved: confirmed, and tonight's file has its code for another variant
- gone: confirmed, and another update was refused since
- refused: the platform has rejected it
- lost: an update of its stock, which may add, has an unknown outcome
- again: so has one of its code, which may be repeated
- overtaken: the same, and another code was confirmed since
- vanished: an update of its stock was refused in another form, and one of its code was rejected since, likewise
"""
SITES = ("known", "renamed", "refused", "lost", "given_up")
"""What became of the create of a warehouse or a subcategory.

- known: confirmed
- renamed: confirmed, and tonight's file has other values for its name
- refused: the platform has rejected it
- lost: its outcome is unknown
- given_up: the same, and a person has given it up
"""
SECOND_S = SETTLE_S + 101.0
"""When the second plan is sent."""
ADDING = ("lost", "vanished")


@dataclass
class Unlisted:
    """Plans of a kind, and their ledger."""

    at: Place
    began: float = field(default_factory=time.time)

    def set(self, answer: Answer, seconds: float) -> None:
        """Answers writes so from now on, so many seconds after the beginning."""
        client = Answering(answer)
        self.at.means = means(
            client=lambda settings, stop: client,
            read_clock=lambda: ClockReading(self.began + seconds, "boot", UPTIME + seconds),
        )

    def push(self, plan: Path, **options: Any) -> list[str]:
        """What became of the lines of a plan, which are sent until all were: unknown outcomes end a push."""
        for _ in range(2):
            self.at.push(plan, WAITS, settle_s=SETTLE_S, concurrency=1, **options)
        ended = sorted(outcomes(plan).items(), key=lambda line: int(line[0]))
        return [end.partition(".")[2] for _, end in ended]

    def copy(self, name: str) -> None:
        """Uses a copy of the ledger from now on."""
        copy_ledger(self.at.folder, "ledger", name)
        os.environ["LEDGER__PATH"] = str(self.at.folder / f"{name}.sqlite")

    def settled(self, plan: Path) -> list[str]:
        """What `settle` leaves of the operations of a plan, and what it advises."""
        result = settle(None, Answers(), SETTLE_S, dependencies=self.at.means)
        advice = {one.operation: step_in(one.advice) for one in result.left}
        with Ledger.open(Path(os.environ["LEDGER__PATH"]), readonly=True) as ledger:
            rows = PlanLedger(ledger, Plan(plan).manifest.plan_id).rows()
            return [", ".join(filter(None, (row.state, advice.get(row.id)))) for row in rows]

    def planned(self, kind: KindName, lines: Sequence[str]) -> list[str]:
        """What a plan of a file decides about each of its lines, and points out."""
        (file := self.at.folder / "tonight.csv").write_text("\n".join([*lines, ""]), "utf-8")
        made = make_plan(PlanOptions(kind, file))
        words = {one.line: [str(one.outcome)] for one in Plan(made.folder).unsent_lines()}
        for reason in made.statistics.suspicious:
            for line in reason.first:
                words.setdefault(line, ["send"]).append(reason.code)
        return [", ".join(words.get(line, ["send"])) for line in range(2, len(lines) + 1)]

    def verified(self, plan: Path) -> str:
        result = verify(plan)
        counts = {**result.outcomes, "in doubt": result.in_doubt}
        return ", ".join(f"{count} {name}" for name, count in sorted(counts.items()))


def said(folder: Path) -> dict[tuple[str, str], Said]:
    """What each command says about each state, by kind and command."""
    found: dict[tuple[str, str], Said] = {}
    kinds: tuple[KindName, ...] = ("variants", "warehouses", "subcategories")
    for kind in kinds:
        (folder / kind).mkdir()
        with mock.patch.dict(os.environ, clear=True), place(folder / kind) as at:
            of_kind = _variants(Unlisted(at)) if kind == "variants" else _sites(Unlisted(at), kind)
        states = VARIANTS if kind == "variants" else SITES
        for command, words in of_kind.items():
            found[kind, command] = dict(zip(states, words, strict=True))
    return found


def _variants(shop: Unlisted) -> dict[str, list[str]]:
    at = shop.at

    def update(state: str, code: str) -> PlannedOperation:
        number = VARIANTS.index(state) + 1
        if state in ADDING and code != "B":
            return patch(number, number, stock=number)
        return patch(number, number, sku=f"{code}{number}")

    def answer(answers: Mapping[str, WriteOutcome]) -> Answer:
        numbers = {VARIANTS.index(state) + 1: outcome for state, outcome in answers.items()}
        return lambda place, path, body: numbers.get(int(path.rpartition("/")[2]))

    shop.set(answer({}), 0.0)
    before = at.stopped(*(update(state, "O") for state in VARIANTS))
    first = at.plan([update(state, "A") for state in VARIANTS])
    lost = dict.fromkeys(("lost", "again", "overtaken"), LOST)
    shop.set(answer({**lost, **dict.fromkeys(("refused", "vanished"), NOT_FOUND)}), 0.0)
    shop.push(first)
    second = at.plan([update(state, "B") for state in ("renamed", "gone", "overtaken", "vanished")])
    shop.set(answer(dict.fromkeys(("gone", "vanished"), NOT_FOUND)), SECOND_S)
    shop.push(second)
    lines = {
        state: f"1,{number},,{number}" if state in ADDING else f"1,{number},A{number},"
        for number, state in enumerate(VARIANTS, 1)
    }
    lines["moved"] = lines["moved"].replace("1,3,", "1,99,")
    found = {"plan": shop.planned("variants", ["productId,variantId,sku,stock", *lines.values()])}
    erp = read_erp_variants(ErpFiles(variants=at.folder / "tonight.csv"))
    assert erp is not None
    rows = variants(erp.rows, erp.confirmed)
    plans = {Plan(plan).manifest.plan_id: name for plan, name in ((first, "A"), (second, "B"))}
    found["reconcile"] = [
        f"{status}, "
        + re.sub(r"last confirmed \S+ in plan (\w+)", lambda one: plans[one[1]], evidence)
        for status, evidence in zip(rows["status"], rows["evidence"], strict=True)
    ]
    found["verify"] = [shop.verified(first)] * len(VARIANTS)
    shop.set(answer({}), SECOND_S + 1)
    shop.copy("settle")
    found["settle"] = shop.settled(first)
    shop.copy("push")
    found["push"] = shop.push(before)
    return found


def _sites(shop: Unlisted, kind: KindName) -> dict[str, list[str]]:
    at = shop.at

    def create(state: str) -> PlannedOperation:
        number = SITES.index(state) + 1
        return (warehouse if kind == "warehouses" else subcategory)(number)

    creates = [*map(create, SITES)]
    lost = {creates[SITES.index(state)].body["name"]: LOST for state in ("lost", "given_up")}
    refused = {create("refused").body["name"]: INVALID}

    def answer(place: int, path: str, body: bytes) -> WriteOutcome | None:
        return (lost | refused).get(json.loads(body)["name"])

    shop.set(answer, 0.0)
    first = at.plan(creates)
    shop.push(first)
    shop.at.push(first, WAITS, abandon=ids(SITES.index("given_up") + 1))
    found = {
        "plan": shop.planned(kind, [*site_lines(kind, creates)]),
        "verify": [shop.verified(first)] * len(SITES),
    }
    shop.set(lambda *_: None, SECOND_S)
    shop.copy("settle")
    found["settle"] = shop.settled(first)
    tonight = at.plan(creates)
    shop.copy("push")
    found["push"] = shop.push(tonight)
    found["push --accept-unproven"] = shop.push(tonight, accept_unproven=True)
    return found


def site_lines(kind: KindName, creates: Sequence[PlannedOperation]) -> Iterator[str]:
    """A file with these creates; one has another value."""
    if kind == "warehouses":
        yield "name,isDefault,location.line"
    else:
        yield "categoryId,name,order"
    for state, create in zip(SITES, creates, strict=True):
        name = create.body["name"]
        if kind == "warehouses":
            yield f"{name},false,{'Calle 2' if state == 'renamed' else 'Calle 1'}"
        else:
            yield f"7,{name},{'2' if state == 'renamed' else ''}"
