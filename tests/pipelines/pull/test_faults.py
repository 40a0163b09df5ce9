"""Pulls of a platform that misbehaves: one of each kind of fault, and faults and readings mixed at random."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from pipelines.cli.pull import print_pull
from tests.pipelines.bridge import bridge
from tests.pipelines.bridge import pulled as published
from tests.pipelines.pull.mixtures import judge, mixture, pulled, representative, wrongs
from tests.pipelines.pull.truth import ids, same
from tests.sources.http.backoff import without_backoff


def test_a_fault_at_every_request_costs_no_table(tmp_path: Path) -> None:
    with without_backoff(), published(tmp_path, seed=5) as made:
        before = made.path.read_bytes()
        made.platform.set_faults({"error_503": 1.0})
        assert pulled(made) == (None, 4)
        assert made.path.read_bytes() == before
        made.platform.set_faults({"page_drift": 1.0})
        done, _ = pulled(made)
        assert done is not None
        for walked in done.lists:
            assert ids(made.path, walked.resource) >= set(made.platform.state.always(walked.resource))
            assert walked.error is None or same(made.path, made.platform.state, walked.resource)


@pytest.mark.parametrize("seed", representative(1000)[::12])
def test_mixed_at_random(tmp_path: Path, seed: int) -> None:
    assert judge(mixture(seed), tmp_path).problems == []


def test_the_judge_sees_a_wrong_complete(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        done, code = pulled(made, "customers")
        made.platform.state.change("customers", made.platform.state.ids("customers")[0], {"lastName": "otro"})
        assert list(wrongs(made, done, code, False)) == ["customers: complete, and the rows are not the platform's"]


def test_what_a_reading_shows_is_observed_and_orders_under_another_key_are_read_once_the_setting_names_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    readings = {
        "promotions_data": "object_by_id", "customers_end": "status_404", "legacy_first_page": "zero",
        "order_key": "uuid",
    }  # fmt: skip
    with without_backoff(), bridge(tmp_path, readings=readings) as made:
        refused = made.pull()
        print_pull(refused, "plain")
        (rows,) = (len(walked.quarantined) for walked in refused.lists if walked.resource == "orders")
        assert refused.exit_code == 5
        assert f"  orders: {rows} rows: id: expected an identifier, found nothing\n" in capsys.readouterr().out
        ended_by, evidence = made.rows("SELECT ended_by, evidence FROM ops.coverage WHERE resource = 'customers'")[0]
        assert "assumed" in f"{ended_by} {evidence}"
        os.environ["SOURCES__PUBLIC_V1__ORDER_KEY"] = "uuid"
        assert made.code("orders") == 0
        assert ids(made.path, "orders") == set(made.platform.state.ids("orders"))
        assert set(made.rows("SELECT what, value FROM ops.observations")) >= {
            ("promotions_data", "object_by_id"), ("customers_end", "assumed: status 404"),
            ("legacy_first_page", "customers: 0"), ("adjustment_types", "NONE"), ("order_key", "uuid"),
        }  # fmt: skip
