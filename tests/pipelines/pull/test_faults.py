"""Pulls of a platform that misbehaves: each fault at every request, each reading. `test_mixtures` mixes them."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Any

import pytest

from pipelines.cli.pull import print_result
from pipelines.pull.check import check, worst_exit_code
from pipelines.pull.model import PullResult
from sandbox.public_v1 import KEYS, Key
from sources.gaps import GAPS
from tests.pipelines.bridge import Bridge, bridge
from tests.pipelines.bridge import pulled as published
from tests.pipelines.pull.mixtures import READ_FAULTS, pulled, wrongs
from tests.pipelines.pull.truth import RESOURCES, ids, same
from tests.sources.http.backoff import without_backoff

FATAL = {
    "rate_429", "rate_429_retry_after", "error_500", "error_502", "error_503", "error_504",
    "error_with_password", "redirect", "echoed_key", "reset_before", "reset_amid", "truncated_json", "html_200",
    "error_200", "gzip_truncated", "gzip_bomb",
}  # fmt: skip
"""Where nothing is published if the fault comes at every request: exit code 4. The others are slow, or met
by one family alone."""

SEEN = {
    ("promotions_data", "array"): "array",
    ("promotions_data", "object_by_id"): "object_by_id",
    ("promotions_data", "object_wrapped"): "object_wrapped",
    ("promotions_data", "object_single"): "object_single",
    ("customers_end", "empty_page"): "empty page",
    ("customers_end", "pagination"): "hasNextPage false",
    ("customers_end", "repeat_last"): "repeated page",
    ("customers_end", "status_404"): "assumed: status 404",
    ("customers_end", "status_400"): "assumed: status 400",
    ("adjustment_types", "none_only"): "NONE",
    ("adjustment_types", "percentage"): "PERCENTAGE",
    ("legacy_first_page", "one"): "customers: 1",
    ("legacy_first_page", "zero"): "customers: 0",
}
"""What a pull observes of a gap, by its reading."""

PULLED = (
    "date_format", "promotions_data", "customers_end", "legacy_limit", "legacy_first_page", "order_shape",
    "adjustment_types", "rate_limit",
)  # fmt: skip
GAPS_PULLED = [gap for gap in GAPS if gap.name in PULLED]
"""The gaps that any pull meets. Failures of access have tests of their own below; the others are of the writes."""
PLATFORMS = [
    {gap.name: gap.readings[number if number < len(gap.readings) else 0] for gap in GAPS_PULLED}
    for number in range(max(len(gap.readings) for gap in GAPS_PULLED))
]
"""The fewest platforms that have every reading of these gaps between them."""

QUICK: dict[str, Any] = {"stall_s": 0.2, "drip_s": 0.00002}


def judged(made: Bridge, altered: bool = False) -> tuple[PullResult | None, int]:
    """A first pull, found to have said nothing wrong."""
    done, code = pulled(made)
    assert list(wrongs(made, done, code, altered)) == []
    return done, code


@pytest.mark.parametrize("name", READ_FAULTS)
def test_a_fault_at_every_request_costs_no_table(tmp_path: Path, name: str) -> None:
    with without_backoff(), published(tmp_path, seed=5, **QUICK) as made:
        before = made.path.read_bytes()
        made.platform.set_faults({name: 1.0})
        done, code = pulled(made)
        if name in FATAL:
            assert (done, code) == (None, 4)
            assert made.path.read_bytes() == before
            return
        assert done is not None
        for walked in done.lists:
            assert ids(made.path, walked.resource) >= set(made.platform.state.always(walked.resource))
            if walked.error is not None:
                assert same(made.path, made.platform.state, walked.resource)


@pytest.mark.parametrize("readings", PLATFORMS, ids=lambda readings: " ".join(readings.values()))
def test_a_reading_of_what_is_not_shown(tmp_path: Path, readings: dict[str, str]) -> None:
    with without_backoff(), bridge(tmp_path, readings=readings) as made:
        _, code = judged(made)
        assert code == 0
        assert all(same(made.path, made.platform.state, name) for name in RESOURCES)
        observations = made.rows("SELECT what, value FROM ops.observations")
        for gap, reading in readings.items():
            if (gap, reading) in SEEN:
                assert (gap, SEEN[gap, reading]) in observations


def test_the_platforms_have_every_reading_of_what_is_not_shown() -> None:
    every = {(gap.name, reading) for gap in GAPS_PULLED for reading in gap.readings}
    assert {reading for readings in PLATFORMS for reading in readings.items()} == every


def test_orders_under_another_key_are_read_once_the_setting_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with bridge(tmp_path, readings={"order_key": "uuid"}) as made:
        refused = made.pull("orders")
        print_result(refused, "plain")
        said = capsys.readouterr().out
        assert refused.exit_code == 5
        rows = len(refused.lists[0].quarantined)
        assert f"  orders: {rows} rows: id: expected an identifier, found nothing\n" in said
        assert "name it in sources.public_v1.order_key" in said
        os.environ["SOURCES__PUBLIC_V1__ORDER_KEY"] = "uuid"
        assert made.code("orders") == 0
        assert [key for (key,) in made.rows("SELECT id FROM raw.orders ORDER BY 1")] == made.platform.state.ids(
            "orders"
        )
        assert ("order_key", "uuid") in made.rows("SELECT what, value FROM ops.observations")


def test_a_list_whose_end_is_assumed_is_reported_so(tmp_path: Path) -> None:
    with bridge(tmp_path, readings={"customers_end": "status_404"}) as made:
        assert made.code("customers") == 0
        ended_by, evidence = made.rows("SELECT ended_by, evidence FROM ops.coverage WHERE resource = 'customers'")[0]
        assert "assumed" in f"{ended_by} {evidence}"


def test_a_drifting_list_never_marks_what_is_there(tmp_path: Path) -> None:
    with without_backoff(), bridge(tmp_path, customers=120, page_limit=10) as made:
        assert made.code("customers") == 0
        made.platform.set_faults({"page_drift": 0.5})
        made.pull("customers")
        assert ids(made.path, "customers") >= set(made.platform.state.always("customers"))


@pytest.mark.parametrize("reading", ["401_errors", "403_errors", "401_empty", "403_text"])
def test_a_refused_legacy_key_ends_that_family_alone(tmp_path: Path, reading: str) -> None:
    with bridge(tmp_path, readings={"legacy_auth_failure": reading}) as made:
        os.environ["SOURCES__LEGACY__API_KEY"] = "unknown"
        done, code = judged(made)
        assert done is not None
        assert code == 3
        assert {w.resource for w in done.lists if w.error is not None} == {"customers", "promotions"}


@pytest.mark.parametrize(
    ("reading", "ended"),
    [("403_error", {"price_lists"}), ("403_empty", {"price_lists"}), ("401_error", {"price_lists"})],
)
def test_a_missing_scope_keeps_that_list_from_being_published(tmp_path: Path, reading: str, ended: set[str]) -> None:
    with bridge(tmp_path, readings={"missing_scope": reading}) as made:
        os.environ["SOURCES__PUBLIC_V1__API_KEY"] = made.platform.v1_no_scope_key
        done, code = judged(made)
        assert done is not None
        assert code == 3
        assert {w.resource for w in done.lists if w.error is not None} == ended


@pytest.mark.parametrize("reading", ["camel", "nested", "terse"])
def test_whoami_is_read_whatever_its_names(tmp_path: Path, reading: str) -> None:
    with bridge(tmp_path, readings={"whoami_names": reading}):
        results = list(check(threading.Event()))
    assert worst_exit_code(results) == 0
    (found,) = (result.message for result in results if "(whoami)" in result.what)
    assert "environment sandbox, scopes " in found
    assert "prices:read" in found


@pytest.mark.parametrize(
    ("key", "exit_code", "words"),
    [
        (Key(scopes=("orders:read",)), 3, "missing: prices:read"),
        (Key("LIVE"), 2, "this key is for production, its prefix is for sandbox"),
    ],
)
def test_check_names_what_whoami_reports_of_a_key_that_cannot_be_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, key: Key, exit_code: int, words: str
) -> None:
    with bridge(tmp_path):
        monkeypatch.setitem(KEYS, os.environ["SOURCES__PUBLIC_V1__API_KEY"], key)
        results = list(check(threading.Event()))
    assert worst_exit_code(results) == exit_code
    assert any(words in result.message and result.exit_code == exit_code for result in results)
