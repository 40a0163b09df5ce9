"""A list that is added to the contract is as safe as the others: `invoices`, by cursor, documented and not."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from unittest import mock

import pytest

import sandbox.app
import sandbox.records
from pipelines.cli.pull import print_pull
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.reconcile.entities import STEPS, Entity, StepInputs
from pipelines.reconcile.reconcile import Reconciling
from pipelines.warehouse.descriptions import column_description
from sandbox.config import SandboxConfig
from sandbox.messages import Call, encoded
from sandbox.public_v1 import PublicV1
from sandbox.rows import Rows
from sources.contract import LISTS, OPERATIONS, RECORDS, Field, Operation, Record
from sources.extract.result import ListResult
from tests.pipelines.bridge import Bridge, bridge
from transforms import findings
from transforms.rules import read_rules

NAME = "invoices"
COUNT, PAGE = 50, 20
DOCUMENTED = (Field("id", "identifier", "string", required=True), Field("number", "text"), Field("total", "number"))


def _reconcile(inputs: StepInputs) -> Entity:
    raw = inputs.raw(NAME)[["id", "_missing_since"]]
    return Entity(raw.rename(columns={"id": "invoice_id"}))


def _generator(config: SandboxConfig) -> sandbox.records.Generate:
    return lambda n: encoded({"id": f"inv_{n:04d}", "number": f"F-{n}", "total": 10.5, "lines": [{"sku": f"{n}"}]})


@pytest.fixture(params=[DOCUMENTED, ()], ids=["documented", "undocumented"])
def added(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Operation:
    """The list in contract, sandbox and reconciled, by their tables of data alone."""
    record = Record(NAME, request.param, key="id")
    query = ("limit", "startingAfter")
    operation = Operation(
        "list_invoices", "public_v1", "GET", "/invoices", query, paging="cursor", records=record, rows_field=NAME
    )
    monkeypatch.setitem(RECORDS, NAME, record)
    monkeypatch.setitem(LISTS, NAME, operation)
    monkeypatch.setattr(sandbox.app, "OPERATIONS", (*OPERATIONS, operation))
    monkeypatch.setitem(sandbox.records.GENERATORS, NAME, _generator)
    monkeypatch.setitem(STEPS, NAME, _reconcile)
    text = files("transforms").joinpath("rules.toml").read_text("utf-8")
    for rule in read_rules(text.replace("[lists]\n", '[lists]\ninvoices = "an invoice"\n')):
        monkeypatch.setitem(findings._BY_NAME, (rule.entity, rule.name), rule)
    return operation


@pytest.fixture
def made(added: Operation, tmp_path: Path) -> Iterator[Bridge]:
    with bridge(tmp_path, page_limit=PAGE, others=COUNT) as bridged:
        yield bridged


def _pull(*lists: str) -> ListResult:
    """The list's walk in a pull of these lists, or of all, reconciled."""
    result = pull(PullOptions(lists), step=Reconciling())
    print_pull(result, "json")
    (walked,) = [one for one in result.lists if one.resource == NAME]
    return walked


def test_its_rows_are_loaded_reconciled_and_described(made: Bridge) -> None:
    walked = _pull()
    assert (walked.verdict, walked.distinct, len(walked.sweeps)) == ("complete", COUNT, 1)
    listed = set(made.platform.state.ids(NAME))
    assert {row[0] for row in made.rows("SELECT id FROM raw.invoices")} == listed
    assert made.one("SELECT sum(total) FROM raw.invoices") == COUNT * Decimal("10.5")
    assert {row[0] for row in made.rows("SELECT invoice_id FROM reconciled.invoices")} == listed
    assert made.one("SELECT value FROM ops.control_totals WHERE entity = 'reconciled.invoices' AND measure = 'raw'")
    if not RECORDS[NAME].fields:
        assert made.one("SELECT count(*) FROM raw.invoices__lines") == COUNT
        assert column_description("raw", "invoices__lines", "sku") == column_description("raw", NAME, "total")
        assert "invoices" in column_description("raw", NAME, "total")
        assert made.one("SELECT count(*) FROM ops.field_kinds WHERE resource = 'invoices'")
        assert made.one("SELECT count(*) FROM ops.observations WHERE what = 'invoices.total: type of a field'")


@pytest.mark.parametrize("added", [()], ids=["undocumented"], indirect=True)
def test_a_row_that_its_cursor_skips_is_neither_lost_nor_marked_as_missing(made: Bridge) -> None:
    answer, is_gone = PublicV1.answer, "inv_0004"

    def removing(self: PublicV1, call: Call) -> object:
        """Removes a record of the list once its first page is sent."""
        sent = answer(self, call)
        if call.operation.path == "/invoices" and not call.cursor and is_gone in self.state.ids(NAME):
            self.state.remove(NAME, is_gone)
        return sent

    _pull(NAME, "orders")
    by_offset = mock.patch.object(Rows, "after", lambda self, rank: int(rank) + 1)
    with by_offset, mock.patch.object(PublicV1, "answer", removing):
        walked = _pull(NAME, "orders")
    assert (walked.verdict, len(walked.sweeps)) == ("unproven", 2)
    assert made.one("SELECT count(*) FROM raw.invoices WHERE _missing_since IS NULL") == COUNT
    (unproven,) = made.rows("SELECT severity FROM reconciled.exceptions WHERE entity = 'invoices'")
    assert unproven == ("warning",)
    walked = _pull(NAME, "orders")
    assert (walked.verdict, walked.distinct) == ("complete", COUNT - 1)
    assert made.rows("SELECT id FROM raw.invoices WHERE _missing_since IS NOT NULL") == [("inv_0004",)]
