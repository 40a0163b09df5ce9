"""Another kind of update in the contract is planned, pushed and remembered as variants are: `rates`.

It takes the place of a kind that exists: the names of kinds are a type, which is extended beside `KINDS`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

import sandbox.app
from pipelines.ledger.store import Ledger
from pipelines.plan.make import PlanOptions, make_plan
from pipelines.plan.model import Plan
from sandbox.legacy import Legacy
from sandbox.messages import SandboxResponse
from sources import inputs
from sources.contract import OPERATIONS, Field, Operation, Record
from sources.kinds import KINDS, InputKind, KindName
from tests.pipelines.push.plans import Place, place

NAME: Final[KindName] = "warehouses"
RECORD = Record("rate_update", (Field("name", "text"), Field("rate", "number")))
UPDATE = Operation(
    "update_rate", "legacy", "PATCH", "/rates/{rateId}", input=RECORD, outcome="no_content", error_code="integer",
    params=(Field("rateId", "identifier", "integer", required=True),),
)  # fmt: skip


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[tuple[str, Any]]]:
    """The kind in contract and sandbox, and what arrives there."""
    arrived: list[tuple[str, Any]] = []
    write = Legacy._write

    def written(self: Legacy, operation: Operation, call: Any, body: Any) -> SandboxResponse:
        if operation.name != UPDATE.name:
            return write(self, operation, call, body)
        arrived.append((call.parts["rateId"], body))
        return SandboxResponse(204, b"", ())

    monkeypatch.setattr(Legacy, "_write", written)
    monkeypatch.setattr(sandbox.app, "OPERATIONS", (*OPERATIONS, UPDATE))
    monkeypatch.setitem(KINDS, NAME, InputKind(NAME, "rate", UPDATE))
    forget()
    yield arrived
    forget()


def forget() -> None:
    """What is kept of the kinds' fields."""
    for function in [*vars(inputs).values(), *vars(sys.modules["pipelines.mapping.propose"]).values()]:
        getattr(function, "cache_clear", list)()


@pytest.fixture
def at(sent: list[tuple[str, Any]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    monkeypatch.chdir(tmp_path)
    with place(tmp_path) as made:
        yield made


def test_only_what_has_changed_since_it_was_confirmed_is_sent(at: Place, sent: list[tuple[str, Any]]) -> None:
    def importing(rows: str) -> None:
        (at.folder / "rates.csv").write_text(f"rateId;name;rate\n{rows}", "utf-8")
        made = make_plan(PlanOptions(NAME, at.folder / "rates.csv"))
        assert at.push(made.folder).exit_code == 0

    importing("7;Mayoristas;1.5\n8;Web;2\n")
    assert sorted(sent) == [("7", {"name": "Mayoristas", "rate": 1.5}), ("8", {"name": "Web", "rate": 2})]
    sent.clear()
    importing("7;Mayoristas;1.75\n8;Web;2\n")
    assert sent == [("7", {"rate": 1.75})]
    with Ledger.open(at.ledger, readonly=True) as ledger:
        rows = ledger.confirmed(at.platform.url).to_pylist()
    assert {(row["path"], row["field"]): row["value"] for row in rows} == {
        ("/rates/7", "name"): '"Mayoristas"', ("/rates/7", "rate"): "1.75",
        ("/rates/8", "name"): '"Web"', ("/rates/8", "rate"): "2",
    }  # fmt: skip


def test_an_update_in_doubt_is_repeated_by_the_next_push(at: Place, sent: list[tuple[str, Any]]) -> None:
    (at.folder / "rates.csv").write_text("rateId;name\n7;Web\n", "utf-8")
    made = make_plan(PlanOptions(NAME, at.folder / "rates.csv"))
    (operation,) = Plan(made.folder).operations()
    assert (operation.target, operation.repeatable) == ("/rates/7", True)
    at.platform.set_faults({"lost_answer": 1.0})
    assert at.push(made.folder).exit_code == 6
    at.platform.set_faults({})
    assert (at.push(made.folder).exit_code, at.states(made.folder)) == (0, ["confirmed"])
