"""A few seeds of each campaign; and code that is broken on purpose, which their judges must catch."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pandas as pd
import pytest

from pipelines.import_file import run as importing
from pipelines.import_file.run import ImportOptions
from pipelines.mapping import Mapping
from pipelines.plan.model import Plan
from pipelines.plan.rejects import RejectsWriter
from pipelines.push import eligibility
from pipelines.push.lookups import doubts_of
from pipelines.reconcile import odd_values
from pipelines.warehouse.accepted import Accepted
from pipelines.warehouse.merge import TableMerges
from sandbox.messages import encoded
from sources.decode import rows, schema_inference
from sources.decode.documented import decode
from sources.decode.rows import Decoded
from sources.extract import page_files
from sources.extract import walk as walks
from sources.extract.page_files import PageFiles
from sources.extract.result import ListResult
from tests.soak.campaigns import block
from tests.soak.fortnight import ImportFortnight, fortnight_seed
from tests.soak.history import history_seed
from tests.soak.nights import nights_seed
from tests.soak.outcome import Outcome
from tests.soak.platforms import platform_seed
from tests.soak.reconciled import reconciled_seed
from tests.soak.tails import tail_seed
from tests.soak.walks import WalkSeed, walk_seed
from transforms import cancelled, customers, documents, keys, order_fields, price_lists, promotions, total_candidates
from transforms.keys import clean_text

SEEDS = 60
DATES_AT_THE_INSTANT = 42


def test_walks_with_random_faults_and_stops_are_judged_right() -> None:
    counts, problems = block(("pull", 0, SEEDS))
    assert problems == []
    assert counts["complete"] + counts["unproven"] + counts["incomplete"] == SEEDS
    assert min(counts["complete"], counts["unproven"], counts["stops"], counts["faults"]) > 5


def test_walks_of_platforms_that_page_unusually_are_judged_right() -> None:
    counts, problems = block(("platforms", 0, SEEDS))
    assert problems == []
    assert min(counts["complete"], counts["unproven"]) > 15


def test_a_seed_can_be_run_again() -> None:
    assert WalkSeed.drawn(7) == WalkSeed.drawn(7)
    assert [walk_seed(seed) for seed in range(8)] == [walk_seed(seed) for seed in range(8)]


def test_history_under_whole_and_short_walks() -> None:
    counts, problems = block(("history", 0, 5))
    assert problems == []
    assert min(counts["complete"], counts["unproven"]) > 2


def test_tails_among_whole_reads() -> None:
    counts, problems = block(("tails", 0, 12))
    assert problems == []
    assert min(counts["tail"], counts["tail with new orders"], counts["complete"]) > 5


def test_a_few_days_of_nightly_imports_leave_the_platform_as_the_erp_is() -> None:
    outcomes = [fortnight_seed(3, days=4), fortnight_seed(8, days=2), fortnight_seed(3, 3, ImportFortnight)]
    assert [outcome.problems for outcome in outcomes] == [[], [], []]
    counts = Counter[str]()
    for outcome in outcomes:
        counts.update(outcome.counts)
    assert min(counts[name] for name in ("plans deleted", "customers", "crashes", "exit 6", "continued")) > 1
    assert counts["corrected"]


BROKEN_PUSHES: dict[str, Callable[[], Any]] = {
    "only a plan itself settles its doubts": lambda: mock.patch.object(
        eligibility, "due_doubts", lambda plan, ledger, rules: doubts_of(ledger, ledger.now() - rules.settle_s, plan)
    ),
    "stock is sent when it was changed here": lambda: mock.patch.object(
        Mapping, "always_sent", return_value=frozenset()
    ),
}


@pytest.mark.parametrize("name", BROKEN_PUSHES)
def test_the_judge_of_fortnights_catches_broken_code(name: str) -> None:
    with BROKEN_PUSHES[name]():
        assert any(fortnight_seed(seed, days=3).problems for seed in range(2, 9))


def _last_plan(options: ImportOptions) -> Plan | None:
    """Whatever was done with the file since."""
    found = sorted(Path().glob(f"plan-{options.kind}-*"), key=lambda path: path.stat().st_mtime_ns)
    return Plan(found[-1]) if found else None


def _without_first(rows: Callable[..., Any]) -> Callable[..., Any]:
    return lambda self: islice(rows(self), 1, None)


BROKEN_IMPORTS: dict[str, Callable[[], Any]] = {
    "a plan is continued although its file was overwritten": lambda: mock.patch.object(
        importing, "_unfinished_plan", _last_plan
    ),
    "a rejected line is not in the workbook": lambda: mock.patch.object(
        RejectsWriter, "rows", _without_first(RejectsWriter.rows)
    ),
    "mappings are not found again": lambda: mock.patch.object(importing, "find_mapping", return_value=None),
}


@pytest.mark.parametrize("name", BROKEN_IMPORTS)
def test_the_judge_of_imports_catches_broken_code(name: str) -> None:
    with BROKEN_IMPORTS[name]():
        assert fortnight_seed(3, 3, ImportFortnight).problems


def test_a_campaign_goes_on_after_an_exception_and_names_its_seed() -> None:
    with mock.patch.object(walks._ListWalk, "run", side_effect=ZeroDivisionError("bug")):
        assert block(("pull", 3, 5)) == (Counter(), [(3, "ZeroDivisionError: bug"), (4, "ZeroDivisionError: bug")])


def _lossy(record: Any, pages: Any) -> Decoded:
    decoded = decode(record, pages)
    return replace(decoded, tables={name: table.slice(1) for name, table in decoded.tables.items()})


def _doubled(write: Callable[..., Any]) -> Callable[..., Any]:
    def written(self: PageFiles, later_keys: Any) -> Any:
        return write(self, [])

    return written


BROKEN_WALKS: dict[str, Callable[[], Any]] = {
    "any two sweeps agree": lambda: mock.patch.object(
        walks._ListWalk, "_is_agreed", lambda self, files: len(files) > 1
    ),
    "the decoder loses a row": lambda: mock.patch.object(page_files, "decode", _lossy),
    "sweeps are not merged": lambda: mock.patch.object(PageFiles, "write", _doubled(PageFiles.write)),
    "a lone sweep proves a list": lambda: mock.patch.object(walks._ListWalk, "_is_agreed", return_value=True),
    "numbers lose their digits": lambda: mock.patch.object(rows, "canonical", lambda number: str(float(number))),
}


@pytest.mark.parametrize("name", BROKEN_WALKS)
def test_the_judge_of_walks_catches_broken_code(name: str) -> None:
    with BROKEN_WALKS[name]():
        assert any(walk_seed(seed).problems for seed in reversed(range(SEEDS)))  # the last ones find more


@pytest.mark.parametrize("name", ["any two sweeps agree", "a lone sweep proves a list", "the decoder loses a row"])
def test_the_judge_of_platforms_catches_broken_code(name: str) -> None:
    seed = 900004
    assert platform_seed(seed).problems == []
    with BROKEN_WALKS[name]():
        assert platform_seed(seed).problems


def _merged_as_complete() -> Any:
    """What was read in part ends the records that it lacks."""
    merge_all = TableMerges.merge_all

    def marking(self: TableMerges, walked: Sequence[ListResult], run_id: str) -> None:
        merge_all(self, [replace(one, verdict="complete") for one in walked], run_id)

    return mock.patch.object(TableMerges, "merge_all", marking)


@pytest.mark.parametrize("run", [history_seed, tail_seed])
def test_the_judges_of_histories_and_tails_catch_partial_reads_that_end_records(run: Callable[[int], Outcome]) -> None:
    with _merged_as_complete():
        assert any(run(seed).problems for seed in range(8))


def test_orders_whose_fields_drift_are_the_tables_of_each_night_and_every_loss_is_announced() -> None:
    outcome = nights_seed(14, 8)
    assert outcome.problems == []
    assert min(outcome.counts[name] for name in ("odd_value", "form_changed", "values_gone", "accepted")) > 0


BROKEN_NIGHTS: dict[str, Callable[[], Any]] = {
    "kinds are forgotten": lambda: mock.patch.object(schema_inference.InferredNode, "keep"),
    "odd values are nothing": lambda: mock.patch.object(schema_inference, "is_nothing", return_value=True),
    "objects are never lists": lambda: mock.patch.object(schema_inference, "is_keyed", return_value=False),
    "alarms fall silent": lambda: mock.patch.object(Accepted, "is_changed", return_value=True),
    "nobody counts the values": lambda: mock.patch.object(odd_values, "gone_values", return_value=[]),
}


@pytest.mark.parametrize("name", BROKEN_NIGHTS)
def test_the_judge_of_nights_catches_broken_code(name: str) -> None:
    with BROKEN_NIGHTS[name]():
        assert nights_seed(3, 6).problems


def _one_step(source: Any) -> Any:
    return source, (source != np.arange(len(source))).astype(np.int64)


def _last_first(rows: pd.DataFrame) -> pd.DataFrame:
    return rows.iloc[::-1].sort_values("owner", ignore_index=True, kind="stable")


def test_reconciled_tables_are_what_plain_python_makes_of_the_records() -> None:
    counts, problems = block(("reconcile", 0, 5))
    assert problems == []
    assert min(counts["records"], counts["findings"]) > 50


BROKEN_TRANSFORMS: dict[str, Callable[[], Any]] = {
    "ids are compared as they are written": lambda: mock.patch.object(customers, "canonical_id", clean_text),
    "times without an offset are exact": lambda: mock.patch.object(promotions, "OFFSET_MAX", timedelta()),
    "a last day is over when it begins": lambda: mock.patch.object(promotions, "day_ends", lambda starts, zone: starts),
    "cancelled orders count": lambda: mock.patch.object(cancelled, "means_cancelled", return_value=False),
    "lines do not show what a column holds": lambda: mock.patch.object(total_candidates, "_holding", return_value=None),
    "an account puts no customer in doubt": lambda: mock.patch.object(order_fields, "_RIVAL_CUSTOMERS_MIN", 2),
    "the row seen first is kept": lambda: mock.patch.object(keys, "_most_relevant_first", lambda rows: rows.iloc[::-1]),
    "a chain ends after one source": lambda: mock.patch.object(price_lists, "_ends", _one_step),
    "documents are in reverse": lambda: mock.patch.object(documents, "sort_documents", _last_first),
}


@pytest.mark.parametrize("name", BROKEN_TRANSFORMS)
def test_the_judge_of_reconciled_tables_catches_broken_transforms(name: str) -> None:
    with BROKEN_TRANSFORMS[name]():
        assert any(reconciled_seed(seed).problems for seed in (DATES_AT_THE_INSTANT, *range(8)))


BROKEN_SANDBOXES: dict[str, Callable[[], Any]] = {
    "errors are cut off": lambda: mock.patch("sandbox.messages.encoded", lambda value: encoded(value)[:-1]),
    "an exception is answered with 500": lambda: mock.patch("sandbox.legacy.compare_digest", side_effect=KeyError),
}


@pytest.mark.parametrize("name", BROKEN_SANDBOXES)
def test_the_judge_of_the_sandbox_catches_broken_answers(name: str) -> None:
    assert block(("sandbox", 0, 1))[1] == []
    with BROKEN_SANDBOXES[name]():
        assert block(("sandbox", 0, 1))[1]
