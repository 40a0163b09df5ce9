"""Plans without a mapping go on with the columns of the last one that was pushed."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from orderbridge.pipelines.imports.open import open_input_table
from orderbridge.pipelines.plan.make import PlanOptions, PlanResult, make_plan
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.questions.columns import Columns
from orderbridge.pipelines.questions.model import Given, GivenAnswer
from orderbridge.pipelines.questions.questions import answer_questions
from orderbridge.pipelines.reporting.status import read_status
from orderbridge.sources.errors import UsageError
from tests.pipelines.push.plans import Place, altered, place

HEADER = "productId;variantId;Artículo;PVP"
MAPPING = """\
kind = "variants"

[columns]
productId = "productId"
variantId = "variantId"
"Artículo" = "erpCode"
PVP = { field = "price", decimal = "," }
"""
NAMES = ("Tornillo corto", "Tuerca ancha", "Clavo largo")
QUESTION = "column:plan-variants/Artículo"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


def write(at: Place, name: str, header: str = HEADER, price: str = "1,5") -> Path:
    file = at.folder / f"{name}.csv"
    more = ";x" * (header.count(";") - HEADER.count(";"))
    rows = [f"1;{1001 + n};{text} {name};{price}{more}" for n, text in enumerate(NAMES)]
    file.write_text("\n".join([header, *rows, ""]), "utf-8")
    return file


def pushed(at: Place, name: str) -> Path:
    """A plan that was pushed as 0.3.0 left it: its columns were proposed, and no mapping was given."""
    mapping = at.folder / f"{name}.toml"
    mapping.write_text(MAPPING, "utf-8")
    made = make_plan(PlanOptions("variants", write(at, name), mapping))
    altered(made.folder, mapping=None)
    assert at.code(made.folder) == 0
    return made.folder


def planned(file: Path) -> PlanResult:
    return make_plan(PlanOptions("variants", file))


def fields_of(made: PlanResult) -> set[str]:
    return {name for one in Plan(made.folder).operations() for name in one.body}


def answer(value: str) -> None:
    given = Given(by="ana", at=datetime.now(UTC))
    answer_questions([GivenAnswer(question=QUESTION, value=value)], given)


@pytest.mark.parametrize(
    ("value", "sent"), [("erpCode", {"erpCode", "price"}), ("ignore", {"price"})]
)
def test_a_night_goes_on_with_columns_no_longer_proven_until_somebody_answers(
    at: Place, value: str, sent: set[str]
) -> None:
    pushed(at, "first")
    shown: list[str] = []
    made = make_plan(PlanOptions("variants", write(at, "second", price="2.5")), shown.extend)
    assert at.code(made.folder) == 0
    fields = at.platform.state.variants[1, 1001].fields
    assert (fields["erpCode"], fields["price"]) == ("Tornillo corto second", 2.5)
    assert shown[-1].startswith("As in the last plan that was pushed, though not proven: Artículo")
    (question,) = Columns().asked()
    assert (question.id, question.state, question.value) == (QUESTION, "open", "erpCode")
    before = planned(write(at, "before"))
    answer(value)
    assert at.code(before.folder) == 0, "it was planned before the answer"
    assert Columns().asked() == []
    assert fields_of(planned(write(at, "third", price="3,5"))) == sent


def test_columns_that_are_proven_make_the_same_plan_whether_one_was_pushed_or_not(
    at: Place,
) -> None:
    def articles(name: str) -> PlanResult:
        rows = "".join(f"1;{n};1,{n}\n" for n in range(1001, 1004))
        file = at.folder / f"{name}.csv"
        file.write_text(f"productId;variantId;PVP\n{rows}", "utf-8")
        return planned(file)

    proposed = articles("first")
    assert at.code(proposed.folder) == 0
    gone_on = articles("second")
    assert gone_on.manifest.mapping_toml == proposed.manifest.mapping_toml
    assert gone_on.statistics.notes == proposed.statistics.notes, "they are part of the plan's id"


def test_the_columns_of_the_last_plan_show_which_line_has_the_names(at: Place) -> None:
    pushed(at, "first")
    file = write(at, "second", price="2,5")
    file.write_text(f"Precios;2025;Tarifa;B\n{file.read_text('utf-8')}", "utf-8")
    with pytest.raises(UsageError, match="has the names: --header-row"):
        open_input_table(file)
    assert fields_of(planned(file)) == {"erpCode", "price"}


def test_columns_of_no_other_plan_count(at: Place) -> None:
    folder = pushed(at, "first")
    assert fields_of(planned(write(at, "more", f"{HEADER};sku", "7,5"))) == {"price", "sku"}
    before = altered(folder, plan_id="another")
    assert fields_of(planned(write(at, "other", price="7,5"))) == {"price"}, (
        "the folder has another plan"
    )
    altered(folder, **before)
    altered(folder, mapping={"path": "first.toml", "sha256": ""})
    assert fields_of(planned(write(at, "given", price="7,5"))) == {"price"}, (
        "a person gave the mapping"
    )
    altered(folder, mapping=None)
    os.environ["SOURCES__LEGACY__BASE_URL"] = "http://127.0.0.1:9"
    with pytest.raises(UsageError, match="is it the same platform"):
        planned(write(at, "host"))


def test_the_plan_that_the_next_one_goes_on_with_is_no_folder_that_can_go(at: Place) -> None:
    folders = [pushed(at, "first"), pushed(at, "second")]
    a_month_ago = time.time() - 31 * 86400
    for file in (file for folder in folders for file in (*folder.rglob("*"), folder)):
        os.utime(file, (a_month_ago, a_month_ago))
    assert [one.folder for one in read_status().removable_plans] == [str(folders[0])]
