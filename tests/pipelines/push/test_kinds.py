"""Every kind of the contract is planned from its template, sent, and remembered; and one that is not in it: `rates`.

`rates` takes the place of a kind that exists: the names of kinds are a type, which is extended beside `KINDS`.
"""

from __future__ import annotations

import csv
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from orderbridge.pipelines.cli.template import template
from orderbridge.pipelines.mapping.field_paths import all_paths
from orderbridge.pipelines.plan.make import PlanOptions, PlanResult, make_plan
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.push.verify import VERIFY_FILE, verify
from orderbridge.sandbox import app
from orderbridge.sources import inputs
from orderbridge.sources.contract import LISTS, OPERATIONS, Field, Operation, Record, path_pattern
from orderbridge.sources.decode.table_schema import snake
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS, InputKind, KindName
from tests.pipelines.push.plans import Place

CELLS: Final = {"number": "1.5", "boolean": "true", "date": "2026-01-31"}
NAME: Final[KindName] = "warehouses"
DAY = Field("validFrom", "date", "string")
RECORD = Record("rate_update", (Field("name", "text"), Field("rate", "number", minimum=0), DAY))
MAPPING = 'kind = "warehouses"\n[dates]\nformat = "DD/MM/YYYY"\n[columns]\nrateId = "rateId"\n'
UPDATE = Operation(
    "update_rate", "legacy", "PATCH", "/rates/{rateId}", input=RECORD, error_code="integer",
    params=(Field("rateId", "identifier", "number", required=True),),
)  # fmt: skip
RENAME = Operation(
    "update_promotion", "legacy", "PATCH", "/promotions/{promotionId}", error_code="integer",
    input=Record("promotion_update", (Field("name", "text"), Field("startDate", "date", "string"))),
    params=(Field("promotionId", "identifier", "number", required=True),),
)  # fmt: skip


def cell(at: Place, path: str, field: Field, number: int) -> str:
    """A value of a field; an id is that of a record, where the platform lists such records: priceListId."""
    listed = f"{snake(path.removesuffix('Id'))}s"
    if field.type == "identifier" and listed in LISTS:
        at.platform.state.grow(listed, 2 - len(at.platform.state.ids(listed)))
        return at.platform.state.ids(listed)[number]
    return (
        f"a{number}@example.test"
        if field.name == "email"
        else CELLS.get(field.type, str(number + 1))
    )


def planned(at: Place, kind: KindName) -> PlanResult:
    """A plan of two lines with every column of the template."""
    if KINDS[kind].is_listed:
        at.pull("customers")
    file, fields = at.folder / f"{kind}.csv", inputs.paths(kind)
    columns = {path: fields[re.sub(r"\[\d+\]", "[]", path)] for path in all_paths(kind)}
    with file.open("w", encoding="utf-8", newline="") as out:
        rows = (
            [cell(at, path, field, number) for path, field in columns.items()]
            for number in range(2)
        )
        csv.writer(out).writerows([columns, *rows])
    return make_plan(PlanOptions(kind, file))


@pytest.mark.parametrize("kind", KINDS)
def test_every_column_of_a_kind_is_sent_once_and_then_unchanged(at: Place, kind: KindName) -> None:
    made = planned(at, kind)
    assert (made.manifest.operations >= 2, at.push(made.folder).exit_code) == (True, 0)
    pattern = path_pattern(KINDS[kind].operation.path)
    sent = [entry for entry in at.platform.state.log if entry.method != "GET"]
    assert [entry for entry in sent if not pattern.fullmatch(entry.path)] == []
    assert len(sent) == made.manifest.operations
    names = {re.split(r"[.\[]", path)[0] for path in all_paths(kind)} - {
        p.name for p in KINDS[kind].operation.params
    }
    names -= {"password", "loginCode"}  # they log in by e-mail
    assert {name for op in Plan(made.folder).operations() for name in op.body} == names
    assert planned(at, kind).manifest.operations == 0


@pytest.fixture
def rates(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[None]:
    """`rates`, or another operation, in the contract, which is all that the sandbox needs."""
    operation = getattr(request, "param", UPDATE)
    monkeypatch.setattr(app, "OPERATIONS", (*OPERATIONS, operation))
    monkeypatch.setitem(
        KINDS, NAME, InputKind(NAME, operation.name.removeprefix("update_"), operation)
    )
    forget()
    yield
    forget()


def forget() -> None:
    """What is kept of the kinds' fields."""
    for function in [
        *vars(inputs).values(),
        *vars(sys.modules["orderbridge.pipelines.mapping.propose"]).values(),
    ]:
        getattr(function, "cache_clear", list)()


@pytest.mark.usefixtures("rates")
def test_a_kind_that_is_added_is_planned_pushed_and_remembered(at: Place) -> None:
    def importing(rows: str) -> str:
        (at.folder / "rates.csv").write_text(f"rateId;name;rate\n{rows}", "utf-8")
        made = make_plan(PlanOptions(NAME, at.folder / "rates.csv"))
        assert at.push(made.folder).exit_code == (5 if "-1" in rows else 0)
        return (made.folder / "rejects.csv").read_text("utf-8-sig")

    importing("7;Mayoristas;1.5\n8;Web;2\n")
    kept = at.platform.state.updated[UPDATE.name]
    assert {ids: one.fields for ids, one in kept.items()} == {
        (7,): {"name": "Mayoristas", "rate": 1.5}, (8,): {"name": "Web", "rate": 2},
    }  # fmt: skip
    importing("07;Mayoristas;1.75\n8;Web;2\n")
    assert (kept[7,].fields["rate"], kept[7,].counts, kept[8,].applied) == (
        1.75,
        {"name": 1, "rate": 2},
        1,
    )
    assert "is less than 0" in importing("8;Web;-1\n")


@pytest.mark.usefixtures("rates", "at")
def test_a_date_is_a_day_in_the_form_of_the_mapping_and_not_suspicious(tmp_path: Path) -> None:
    file, mapping = tmp_path / "rates.csv", tmp_path / "rates.toml"
    file.write_text("rateId;from\n7;01/12/2026\n8;31/02/2026\n", "utf-8")
    mapping.write_text(f'{MAPPING}from = "validFrom"\n', "utf-8")
    assert [
        "# [dates]" in template(kind, mapping=True, file=None) for kind in (NAME, "customers")
    ] == [True, False]
    made = make_plan(PlanOptions(NAME, file, mapping))
    assert [op.body for op in Plan(made.folder).operations()] == [{"validFrom": "2026-12-01"}]
    assert made.statistics.suspicious == []
    (reject,) = made.statistics.reasons
    assert (reject.code, "DD/MM/YYYY" in reject.words, "[dates]" in reject.words) == (
        "not_a_date",
        True,
        True,
    )
    for day in ("31/12/2026", "2026-02-31"):
        mapping.write_text(f'{MAPPING}from = "name"\n[constants]\nvalidFrom = "{day}"\n', "utf-8")
        with pytest.raises(UsageError, match="constant validFrom is not a da"):
            make_plan(PlanOptions(NAME, file, mapping))


@pytest.mark.parametrize("rates", [RENAME], indirect=True)
@pytest.mark.usefixtures("rates")
def test_an_update_of_a_record_that_a_list_shows_is_verified_by_its_id(at: Place) -> None:
    platform = at.platform.state
    platform.grow("promotions", 2)
    one, two = platform.ids("promotions")
    file = at.folder / "promotions.csv"
    file.write_text(
        f"promotionId,name,startDate\n{one},A,2026-12-01\n{two},B,2026-12-02\n", "utf-8"
    )
    done = at.command("import", NAME, str(file), "--yes")
    assert (done.code, "read again: 2 warehouses on the platform as sent" in done.out) == (0, True)
    (plan,) = at.folder.glob("plan-*")
    assert "not compared with the platform's list of promotions, but with" in (
        plan / "summary.md"
    ).read_text("utf-8")
    platform.change("promotions", one, {"name": "C", "startDate": "2026-12-01T00:00:00Z"})
    platform.drift("promotions", 1, removes=True)
    at.pull("promotions")
    found = verify(plan)
    assert (found.outcomes["differs"], found.outcomes["missing"], dict(found.fields)) == (
        1,
        1,
        {"name": 1},
    )
    header, *rows = (plan / VERIFY_FILE).read_text("utf-8-sig").splitlines()
    assert header == "line,operation,outcome,promotion_id,field,sent,found"
    assert [row.split(",")[:5] for row in rows] == [
        ["2", "1", "differs", one, "name"],
        ["3", "2", "missing", two, ""],
    ]
