"""A list that is added to the contract is as safe as the others: `invoices`, by cursor and undocumented."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal
from importlib.resources import files
from pathlib import Path
from unittest import mock

import pytest

from orderbridge.pipelines.cli.pull import print_pull
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.entities import STEPS, Entity, StepInputs
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.pipelines.warehouse.bi.descriptions import column_description
from orderbridge.sandbox import app, records
from orderbridge.sandbox.config import SandboxConfig
from orderbridge.sandbox.messages import Call, encoded
from orderbridge.sandbox.public_v1 import PublicV1
from orderbridge.sandbox.rows import Rows
from orderbridge.sources.contract import LISTS, OPERATIONS, RECORDS, Operation, Record
from orderbridge.sources.extract.result import ListResult
from orderbridge.transforms import findings
from orderbridge.transforms.rules import read_rules
from tests.pipelines.bridge import Bridge, bridge

NAME = "invoices"
COUNT = 50


def _reconcile(inputs: StepInputs) -> Entity:
    raw = inputs.raw(NAME)[["id", "_missing_since"]]
    return Entity(raw.rename(columns={"id": "invoice_id"}))


def _generator(config: SandboxConfig) -> records.Generate:
    return lambda n: encoded(
        {"id": f"inv_{n:04d}", "number": f"F-{n}", "total": 10.5, "lines": [{"sku": f"{n}"}]}
    )


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Bridge]:
    """The list in contract, sandbox and reconciled, by their tables of data alone."""
    record = Record(NAME, (), key="id")
    query = ("limit", "startingAfter")
    operation = Operation(
        "list_invoices",
        "public_v1",
        "GET",
        "/invoices",
        query,
        paging="cursor",
        records=record,
        rows_field=NAME,
    )
    monkeypatch.setitem(RECORDS, NAME, record)
    monkeypatch.setitem(LISTS, NAME, operation)
    monkeypatch.setattr(app, "OPERATIONS", (*OPERATIONS, operation))
    monkeypatch.setitem(records.GENERATORS, NAME, _generator)
    monkeypatch.setitem(STEPS, NAME, _reconcile)
    text = files("orderbridge.transforms").joinpath("rules.toml").read_text("utf-8")
    for rule in read_rules(text.replace("[lists]\n", '[lists]\ninvoices = "an invoice"\n')):
        monkeypatch.setitem(findings._BY_NAME, (rule.entity, rule.name), rule)
    with bridge(tmp_path, page_limit=20, others=COUNT) as bridged:
        yield bridged


def _pull(*lists: str) -> ListResult:
    """The list's walk in a pull of these lists, or of all, reconciled."""
    result = pull(PullOptions(lists), step=Reconciling())
    print_pull(result, "json")
    (walked,) = [one for one in result.lists if one.resource == NAME]
    return walked


def test_its_rows_are_loaded_and_described_and_one_that_its_cursor_skips_is_kept(
    made: Bridge,
) -> None:
    answer, is_gone, listed = PublicV1.answer, "inv_0004", set(made.platform.state.ids(NAME))
    walked = _pull(NAME, "orders")
    assert (walked.verdict, walked.distinct, len(walked.sweeps)) == ("complete", COUNT, 1)
    assert {row[0] for row in made.rows("SELECT id FROM raw.invoices")} == listed
    assert made.one("SELECT sum(total) FROM raw.invoices") == COUNT * Decimal("10.5")
    assert {row[0] for row in made.rows("SELECT invoice_id FROM reconciled.invoices")} == listed
    assert made.one(
        "SELECT value FROM ops.control_totals WHERE entity = 'reconciled.invoices' AND measure = 'raw'"
    )
    assert made.one("SELECT count(*) FROM raw.invoices__lines") == COUNT
    assert column_description("raw", "invoices__lines", "sku") == column_description(
        "raw", NAME, "total"
    )
    assert "invoices" in column_description("raw", NAME, "total")
    assert made.one("SELECT count(*) FROM ops.field_kinds WHERE resource = 'invoices'")
    assert made.one(
        "SELECT count(*) FROM ops.observations WHERE what = 'invoices.total: type of a field'"
    )

    def removing(self: PublicV1, call: Call) -> object:
        """Removes a record of the list once its first page is sent."""
        sent = answer(self, call)
        if (
            call.operation.path == "/invoices"
            and not call.cursor
            and is_gone in self.state.ids(NAME)
        ):
            self.state.remove(NAME, is_gone)
        return sent

    by_offset = mock.patch.object(Rows, "after", lambda self, rank: int(rank) + 1)
    with by_offset, mock.patch.object(PublicV1, "answer", removing):
        walked = _pull(NAME, "orders")
    assert (walked.verdict, len(walked.sweeps)) == ("unproven", 2)
    assert made.one("SELECT count(*) FROM raw.invoices WHERE _missing_since IS NULL") == COUNT
    (unproven,) = made.rows("SELECT severity FROM reconciled.exceptions WHERE entity = 'invoices'")
    assert unproven == ("warning",)
    (walked,) = made.pull(NAME).lists
    assert (walked.verdict, walked.distinct) == ("complete", COUNT - 1)
    assert made.rows("SELECT id FROM raw.invoices WHERE _missing_since IS NOT NULL") == [(is_gone,)]
