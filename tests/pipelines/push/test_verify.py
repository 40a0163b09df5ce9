"""What was sent against what was pulled since."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import duckdb
import pytest

from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.push import verify as verifying
from pipelines.push.verify import VerifyResult, verify
from sources.errors import ExitCode, UsageError
from tests.pipelines.bridge import command
from tests.pipelines.push.plans import Place, customer, patch


def counted(result: VerifyResult) -> dict[str, int]:
    return {name: count for name, count in result.outcomes.items() if count}


def by_code(at: Place) -> dict[str, int]:
    return {str(row.get("erpCode")): row["id"] for row in at.platform.state.records("customers")}


def test_what_was_sent_is_compared_field_by_field_with_what_was_pulled_since(at: Place) -> None:
    document = {"number": "B1", "isDefault": True}
    plan = at.plan([customer(n, documents=[document]) for n in range(1, 5)]).rename(at.folder / "a plan")
    with pytest.raises(UsageError, match="never pushed") as caught:
        verify(plan)
    assert caught.value.hint == f"Push it: orderbridge push '{plan}'"
    assert at.code(plan) == 0
    with pytest.raises(UsageError, match="no warehouse"):
        verify(plan)
    pull(PullOptions(("customers",)))
    result = verify(plan)
    assert (counted(result), result.exit_code) == ({"same": 4}, 0)
    state, ids = at.platform.state, by_code(at)
    state.change("customers", ids["C00001"], {"firstName": "Otra"})
    state.change("customers", ids["C00002"], {"documents": [{"number": "B2"}]})
    state.remove("customers", ids["C00003"])
    pull(PullOptions(("customers",), accept_shrink=True))
    result = verify(plan)
    assert (counted(result), result.exit_code) == ({"same": 1, "differs": 2, "missing": 1}, 5)
    assert dict(result.fields) == {"firstName": 1, "documents": 1}
    found = (plan / verifying.VERIFY_FILE).read_text().splitlines()
    assert found[1].endswith(",differs," + str(ids["C00001"]) + ',firstName,"""Ana""","""Otra"""')
    done = command("verify", str(plan), env=at.environment(), cwd=at.folder)
    assert (done.code, "2  differ" in done.out, "Otra" in done.out) == (5, True, False)


def test_a_customer_is_looked_up_by_the_id_that_its_create_returned_and_counts_if_it_is_there_twice(at: Place) -> None:
    plan = at.plan([customer(1), customer(2), customer(3)])
    assert at.code(plan) == 0
    at.platform.state.change("customers", by_code(at)["C00001"], {"email": "new@example.test", "erpCode": "X1"})
    at.platform.state.add("customers", {"erpCode": "C00002", "firstName": "Otra"})
    at.platform.state.add("customers", {k: v for k, v in customer(3).body.items() if k != "notification"})
    pull(PullOptions(("customers",)))
    result = verify(plan)
    assert (counted(result), result.exit_code) == ({"differs": 1, "same": 1, "several": 1}, ExitCode.REJECTED)
    assert dict(result.fields) == {"erpCode": 1, "email": 1}


@pytest.mark.parametrize(
    ("outcome", "verdict", "code"),
    [
        ("missing", "complete", ExitCode.REJECTED),
        ("missing", "unproven", ExitCode.COVERAGE),
        ("several", "unproven", ExitCode.REJECTED),
        ("unsettled", "complete", ExitCode.DONE),
    ],
)
def test_a_customer_missing_from_an_unproven_list_is_no_finding_but_coverage(
    outcome: str, verdict: str, code: ExitCode
) -> None:
    assert VerifyResult("customers", Counter({outcome: 1, "same": 2}), verdict=verdict).exit_code == code


def test_a_warehouse_that_is_older_than_the_push_or_of_another_shop_is_refused(at: Place) -> None:
    pull(PullOptions(("customers",)))
    plan: Path = at.plan([customer(1)])
    at.push(plan)
    with pytest.raises(UsageError, match="before the last of them was sent"):
        verify(plan)
    pull(PullOptions(("customers",)))
    manifest = json.loads((plan / "plan.json").read_bytes())
    (plan / "plan.json").write_text(json.dumps({**manifest, "organization": "org-1"}))
    for sql, words in (
        (
            "UPDATE ops.warehouse SET organization = 'org-2'",
            "another organization than the plan: organization org-2, not",
        ),
        ("UPDATE ops.runs SET legacy_host = 'other.test'", r"were read from other\.test, not from "),
        ("DELETE FROM ops.coverage", "no customers read from the platform"),
    ):
        with duckdb.connect(str(at.folder / "warehouse.duckdb")) as connection:
            connection.execute(sql)
        with pytest.raises(UsageError, match=words):
            verify(plan)


def test_what_cannot_be_read_back_or_is_in_doubt_is_counted(at: Place) -> None:
    plan = at.plan([patch(1, 1), patch(2, 2, sku=7)])
    at.push(plan)
    done = command("verify", str(plan), env=at.environment(), cwd=at.folder)
    assert done.code == 0
    assert "1  confirmed, and cannot be read back (requests)" in done.out
    assert "1  not sent, rejected or in doubt" in done.out
    doubted = at.lost(*[customer(1)])
    pull(PullOptions(("customers",)))
    result = verify(doubted)
    assert (result.in_doubt, result.exit_code) == (1, ExitCode.IN_DOUBT)
