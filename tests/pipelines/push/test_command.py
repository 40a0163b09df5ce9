"""`orderbridge push` and `verify` in processes of their own: exit codes, signals, secrets, what comes after."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import sqlite3
import threading
from collections import Counter
from dataclasses import replace
from pathlib import Path

import duckdb
import pytest

from pipelines.ledger.push_log import publish_push_log
from pipelines.plan.make import PlanOptions, make_plan
from pipelines.plan.model import Plan
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.push import verify as verifying
from pipelines.push.listing import CustomerListing
from pipelines.push.model import SETTLE_S
from pipelines.push.passwords import PASSWORDS_FILE
from pipelines.push.verify import verify
from pipelines.reporting.status import read_status
from sources.errors import ExitCode, UsageError
from sources.kinds import KindName
from tests.pipelines.bridge import command, start, wait_for
from tests.pipelines.push.plans import (
    YES,
    Place,
    customer,
    means,
    outcomes,
    patch,
    place,
    results,
    subcategory,
    warehouse,
)


def test_a_push_reports_what_became_of_the_lines(at: Place) -> None:
    plan = at.plan([customer(1), customer(2, firstName=7)])
    done = command("push", str(plan), env=at.environment(), cwd=at.folder)
    assert done.code == 2
    assert "2 customers would be sent" in done.err
    assert at.platform.state.requests == 0
    done = command("push", str(plan), "--yes", env=at.environment(), cwd=at.folder)
    assert (done.code, done.err) == (5, "")
    assert "1  confirmed\n" in done.out
    assert "1  rejected\n" in done.out
    reported = json.loads(command("push", str(plan), "--yes", "--log", "json", env=at.environment(), cwd=at.folder).out)
    assert reported["operations"] == {"confirmed": 1, "rejected": 1}
    assert reported["lines"] == {"confirmed.confirmed": 1, "rejected.rejected": 1}
    assert reported["exit_code"] == 5


def test_a_file_that_changed_is_planned_again_by_the_command_that_is_reported(at: Place) -> None:
    plan = at.plan([customer(1)])
    reported = json.loads((plan / "plan.json").read_text("utf-8"))
    file = Path(reported["input"]["path"])
    file.write_bytes(file.read_bytes() + b"\n")
    done = command("push", str(plan), "--yes", env=at.environment(), cwd=at.folder)
    assert done.code == 2
    assert f"{file} was changed after the plan was made" in done.err
    again = f"orderbridge plan customers {shlex.quote(str(file))}"
    assert again in done.err
    assert at.platform.state.requests == 0


def test_what_another_plan_is_writing_is_blocked_and_names_the_folder_of_that_plan(at: Place) -> None:
    first, second = at.plan([customer(1)]), at.plan([customer(1), customer(2)])
    at.platform.set_faults({"lost_answer": 1.0})
    at.push(first)
    at.platform.set_faults({})
    done = command("push", str(second), "--yes", "--settle", "15", env=at.environment(), cwd=at.folder)
    assert done.code == 5
    assert "1  not sent (1 blocked)" in done.out
    assert "results/unsent.csv" in done.out
    (row,) = results(second)["unsent"]
    assert row["words"].startswith(f"operation 1 of the plan {first} may have created this record: push again from ")


def test_a_finished_plan_blocks_nothing(at: Place) -> None:
    """Issue 12, item 4. What it created exists; a list that does not show it yet does not make it again."""
    first, second = at.plan([customer(1)]), at.plan([customer(1), customer(2)])
    at.push(first)
    at.means = means(read_customers=lambda keys: CustomerListing(True, "complete"))
    assert at.push(second, replace(YES, settle_s=SETTLE_S)).exit_code == 5
    assert outcomes(second) == {"2": "unsent.exists_now", "3": "confirmed.confirmed"}
    (row,) = results(second)["unsent"]
    assert row["words"] == f"operation 1 of the plan {first} has created this record: pull, and plan this file again"
    assert at.codes() == ["C00001", "C00002"]


def test_two_pushes_at_once_create_nobody_twice(tmp_path: Path) -> None:
    with place(tmp_path, latency_ms=10) as at:
        plan, other = at.plan([customer(n) for n in range(1, 40)]), at.plan([customer(n) for n in range(20, 60)])
        env = at.environment()
        with start("push", str(plan), "--yes", env=env, cwd=at.folder) as process:
            wait_for(lambda: len(at.codes()) > 2)
            process.send_signal(signal.SIGSTOP)
            for second in (plan, other):
                refused = command("push", str(second), "--yes", env=env, cwd=at.folder)
                assert refused.code == 8
                assert str(process.pid) in refused.err
            process.send_signal(signal.SIGCONT)
            process.communicate(timeout=300)
            assert process.returncode == 0
        assert at.push(other).exit_code == 5
        assert sorted(at.codes()) == sorted({f"C{n:05d}" for n in range(1, 60)})


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_a_signal_ends_a_push_at_a_clean_point(tmp_path: Path, number: signal.Signals, code: int) -> None:
    with place(tmp_path, latency_ms=20) as at:
        plan = at.plan([customer(n) for n in range(1, 80)])
        with start("push", str(plan), "--yes", env=at.environment(), cwd=at.folder) as process:
            wait_for(lambda: len(at.codes()) > 3)
            process.send_signal(number)
            process.send_signal(number)
            out, err = process.communicate(timeout=300)
        assert (process.returncode, err) == (code, "")
        assert "run the same command again" in out
        found = results(plan)
        assert len(found["confirmed"]) == len(at.codes())
        assert found["in_doubt"] == []
        assert len(found["confirmed"]) + len(found["unsent"]) == 79
        assert at.push(plan).exit_code == 0
        assert sorted(at.codes()) == [f"C{n:05d}" for n in range(1, 80)]


def test_no_key_and_no_password_is_anywhere_but_in_its_file(at: Place) -> None:
    key = at.platform.legacy_key
    plan = at.plan([customer(n) for n in range(1, 6)])
    said = ""
    for faults in ({"error_with_password": 0.5, "redirect": 0.3}, {"lost_answer": 0.5}, {}, {}):
        at.platform.set_faults(faults)
        options = ("push", str(plan), "--yes", "--settle", "0", "--log", "json")
        said += command(*options, env=at.environment(), cwd=at.folder).said
    assert at.codes()
    secrets = [body["password"] for body in at.platform.state.customer_inputs]
    own = (plan / PASSWORDS_FILE).read_text()
    assert all(secret in own for secret in secrets)
    with sqlite3.connect(at.ledger) as ledger:
        ledger.execute("PRAGMA wal_checkpoint")
        said += "\n".join(ledger.iterdump())
    ledger.close()
    planted = [*secrets, key, "sandbox-planted"]
    for path in at.folder.rglob("*"):
        if path.is_file() and path.name != PASSWORDS_FILE:
            content = path.read_bytes()
            assert not [secret for secret in planted if secret.encode() in content], path
    assert not [secret for secret in planted if secret in said]


def test_an_error_of_our_own_shows_no_password(at: Place) -> None:
    plan = at.plan([customer(1)])
    broken = at.folder / "broken"
    broken.mkdir()
    (broken / "sitecustomize.py").write_text(
        "from sources.http.client import Client\n"
        "def send(self, verb, path, body):\n    raise ValueError(body.decode())\n"
        "Client.send = send\n"
    )
    env = at.environment()
    root = str(Path(__file__).parents[3])
    import subprocess
    import sys

    process = subprocess.run(
        [sys.executable, "-m", "pipelines.cli", "push", str(plan), "--yes"],
        env={**env, "PYTHONPATH": f"{root}{os.pathsep}{broken}"},
        cwd=at.folder,
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 1
    assert "ValueError" in process.stderr
    secret = (plan / PASSWORDS_FILE).read_text().strip().rsplit(",", 1)[1]
    assert secret not in process.stdout + process.stderr
    assert "ana1@" not in process.stdout + process.stderr
    assert at.states(plan) == ["in_flight"]
    assert at.push(plan).exit_code == 0


def test_status_shows_open_plans(at: Place) -> None:
    plan = at.plan([warehouse(1), warehouse(2)], "warehouses").rename(at.folder / "a plan")
    at.platform.set_faults({"reset_before": 1.0})
    at.push(plan)
    done = command("status", env=at.environment(), cwd=at.folder)
    assert done.code == 0
    assert "warehouses: 2 in doubt" in done.out
    assert f"orderbridge push '{plan}'" in done.out
    reported = json.loads(command("status", "--json", env=at.environment(), cwd=at.folder).out)
    assert [plan["states"] for plan in reported["open_plans"]] == [{"in_doubt": 2}]


def test_the_log_of_what_was_pushed_comes_into_the_warehouse(at: Place) -> None:
    pull(PullOptions(("customers",)))
    plan = at.plan([warehouse(1)], "warehouses")
    assert at.push(plan).exit_code == 0
    sql = "SELECT operation_id, kind, method, path, state, status, attempts FROM ops.push_log"
    logged = [("1", "warehouses", "POST", "/logistics/warehouses", "confirmed", 201, 1)]
    assert query(at, sql) == []
    assert publish_push_log() is True
    assert query(at, sql) == logged
    other = at.plan([warehouse(2)], "warehouses")
    assert at.push(other).exit_code == 0
    pull(PullOptions(("customers",)))
    assert len(query(at, sql)) == 2


def test_a_ledger_older_than_its_copy_in_the_warehouse_is_noticed_before_anything_is_planned(at: Place) -> None:
    pull(PullOptions(("customers",)))
    assert at.push(at.plan([patch(1, 1)], "variants")).exit_code == 0
    old = shutil.copy(at.ledger, at.folder / "old.sqlite")
    assert at.push(at.plan([patch(1, 2)], "variants")).exit_code == 0
    publish_push_log()
    file = at.folder / "in.csv"
    file.write_text("productId,variantId,sku\n1,2,S1\n", "utf-8")
    shutil.copy(old, at.ledger)
    for _ in range(2):  # a pull does not take the older one for the newest
        with pytest.raises(UsageError, match=r"the ledger is older than its copy .* which has 1 more requests"):
            make_plan(PlanOptions(kind="variants", file=file, out=at.folder / "made"))
        pull(PullOptions(("customers",)))
    done = command("settle", "--accept-ledger", env=at.environment(), cwd=at.folder)
    assert (done.code, done.out) == (0, "0 writes in doubt\n")
    assert make_plan(PlanOptions(kind="variants", file=file, out=at.folder / "made")).manifest.operations == 1


def test_a_plan_that_can_never_be_sent_is_not_open(at: Place) -> None:
    stop = threading.Event()
    stop.set()
    gone, changed, resumable = (at.plan([warehouse(n)], "warehouses") for n in (1, 2, 3))
    for plan in (gone, changed, resumable):
        at.push(plan, stop=stop)
    shutil.rmtree(gone)
    changed.with_name(f"{changed.name}.csv").write_text("tonight's", "utf-8")
    assert [plan.folder for plan in read_status().open_plans] == [str(resumable)]


def test_what_the_answers_show_of_the_gaps_is_observed(tmp_path: Path) -> None:
    readings = {"created_status": "200", "legacy_error_status": "422", "created_body": "empty"}
    with place(tmp_path, readings=readings) as at:
        pull(PullOptions(("customers",)))
        customers, variants = (
            at.plan([customer(1), customer(2, firstName=7)]),
            at.plan([patch(1, 1, weight=1.5)], "variants"),
        )
        assert (at.push(customers).exit_code, at.push(variants).exit_code) == (5, 0)
        assert publish_push_log() is True
        sql = "SELECT what, value, first_run_id, last_run_id FROM ops.observations WHERE what ~ 'created|content|error'"
        created, patched = (Plan(folder).manifest.plan_id for folder in (customers, variants))
        assert sorted(query(at, sql)) == [
            ("created_body", "customers: no id in it", created, created),
            ("created_status", "200", created, created),
            ("legacy_error_status", "customers: status 422, code TYPE", created, created),
            ("no_content_status", "204", patched, patched),
        ]
        before = query(at, "FROM ops.observations ORDER BY ALL")
        assert publish_push_log() is True
        assert query(at, "FROM ops.observations ORDER BY ALL") == before


def test_what_no_answer_settles_of_the_gaps_is_reported_too(tmp_path: Path) -> None:
    with place(tmp_path, readings={"whoami_names": "terse", "subcategory_required": "name"}) as at:
        pull(PullOptions(("customers",)))
        os.environ["SOURCES__PUBLIC_V1__BASE_URL"] = at.platform.url
        os.environ["SOURCES__PUBLIC_V1__API_KEY"] = at.platform.v1_key
        prices = at.plan([patch(1, 1, price=2.5, weight=1.5)], "variants")
        parts = at.plan([subcategory(1), subcategory(2, name=None)], "subcategories")
        reported = [at.push(prices), at.push(parts)]
        assert [pushed.exit_code for pushed in reported] == [0, 5]
        for folder, pushed in zip((prices, parts), reported, strict=True):
            assert publish_push_log(Plan(folder).manifest.plan_id, pushed.observed) is True
        sql = "SELECT what, value FROM ops.observations WHERE what ~ 'whoami|required|semantics' ORDER BY ALL"
        assert query(at, sql) == [
            ("price_semantics", "confirmed; whether it was set or added cannot be read back"),
            ("subcategory_required", "status 400"),
            ("subcategory_required", "what was sent was enough"),
            ("whoami_names", "environment: env"),
        ]


def seen(at: Place, plan: Path) -> list[tuple[object, ...]]:
    """What a push of this plan brings of limits and keys into `ops.observations`."""
    pushed = at.push(plan)
    assert publish_push_log(Plan(plan).manifest.plan_id, pushed.observed) is True
    return query(at, "SELECT what, value FROM ops.observations WHERE what ~ 'rate|auth' ORDER BY ALL")


def test_a_platform_that_is_too_busy_for_a_push_is_observed(tmp_path: Path) -> None:
    with place(tmp_path) as at:
        pull(PullOptions(("customers",)))
        plan = at.plan([patch(1, 1)], "variants")
        at.platform.set_faults({"rate_429": 1.0})
        assert seen(at, plan) == [("rate_limit", "legacy: 429 received")]


def test_a_platform_that_is_busy_while_a_push_looks_for_customers_is_observed(tmp_path: Path) -> None:
    with place(tmp_path, seed=3) as at:
        at.platform.state.add("customers", {"erpCode": "C00001"})
        pull(PullOptions(("customers",)))
        plan = at.plan([customer(1)])
        at.platform.set_faults({"rate_429": 0.5})
        assert seen(at, plan) == [("rate_limit", "legacy: 429 received")]
        assert outcomes(plan) == {"2": "unsent.exists_now"}


@pytest.mark.parametrize("kind", ["customers", "variants"])
def test_a_key_that_is_refused_is_observed_by_a_push(tmp_path: Path, kind: KindName) -> None:
    with place(tmp_path, readings={"legacy_auth_failure": "403_errors"}) as at:
        pull(PullOptions(("customers",)))
        plan = at.plan([patch(1, 1)] if kind == "variants" else [customer(1)], kind)
        os.environ["SOURCES__LEGACY__API_KEY"] = "another-key"
        (found,) = seen(at, plan)
        assert found[0] == "legacy_auth_failure"
        assert re.fullmatch("status 403, code (?!none).+", str(found[1]))


def test_what_the_walk_of_a_push_observes_is_kept(tmp_path: Path) -> None:
    with place(tmp_path) as at:
        pushed = at.push(at.plan([customer(1)]))
        assert ("legacy_first_page", "customers: 1") in pushed.observed


def query(at: Place, sql: str) -> list[tuple[object, ...]]:
    with duckdb.connect(str(at.folder / "warehouse.duckdb"), read_only=True) as connection:
        return connection.execute(sql).fetchall()


def test_verify_holds_what_was_sent_against_what_was_pulled_since(at: Place) -> None:
    document = {"number": "B1", "isDefault": True}
    plan = at.plan([customer(n, documents=[document]) for n in range(1, 5)]).rename(at.folder / "a plan")
    with pytest.raises(UsageError, match="never pushed") as caught:
        verify(plan)
    assert caught.value.hint == f"Push it: orderbridge push '{plan}'"
    assert at.push(plan).exit_code == 0
    with pytest.raises(UsageError, match="no warehouse"):
        verify(plan)
    pull(PullOptions(("customers",)))
    made = verify(plan)
    assert (dict(made.outcomes), made.exit_code) == ({"unsettled": 0, "same": 4}, 0)
    state = at.platform.state
    by_code = {row.get("erpCode"): row["id"] for row in state.records("customers")}
    state.change("customers", by_code["C00001"], {"firstName": "Otra"})
    state.change("customers", by_code["C00002"], {"documents": [{"number": "B2"}]})
    state.remove("customers", by_code["C00003"])
    pull(PullOptions(("customers",), accept_shrink=True))
    made = verify(plan)
    assert {name: made.outcomes[name] for name in ("same", "differs", "missing")} == {
        "same": 1,
        "differs": 2,
        "missing": 1,
    }
    assert dict(made.fields) == {"firstName": 1, "documents": 1}
    assert made.exit_code == 5
    found = (plan / verifying.VERIFY_FILE).read_text().splitlines()
    assert found[1].endswith(",differs," + str(by_code["C00001"]) + ',firstName,"""Ana""","""Otra"""')
    done = command("verify", str(plan), env=at.environment(), cwd=at.folder)
    assert done.code == 5
    assert "2  differ" in done.out
    assert "Otra" not in done.out


def test_verify_looks_a_customer_up_by_the_id_that_its_create_returned(at: Place) -> None:
    """Issue 12, item 4."""
    plan = at.plan([customer(1), customer(2)])
    assert at.push(plan).exit_code == 0
    state = at.platform.state
    by_code = {row.get("erpCode"): row["id"] for row in state.records("customers")}
    state.change("customers", by_code["C00001"], {"email": "new@example.test", "erpCode": "X1"})
    state.add("customers", {"erpCode": "C00002", "firstName": "Otra"})
    pull(PullOptions(("customers",)))
    result = verify(plan)
    assert {name: count for name, count in result.outcomes.items() if count} == {"differs": 1, "same": 1}
    assert dict(result.fields) == {"erpCode": 1, "email": 1}
    manifest = json.loads((plan / "plan.json").read_bytes())
    (plan / "plan.json").write_text(json.dumps({**manifest, "organization": "org-1"}))
    with duckdb.connect(str(at.folder / "warehouse.duckdb")) as connection:
        connection.execute("UPDATE ops.warehouse SET organization = 'org-2'")
    with pytest.raises(UsageError, match="another organization than the plan: organization org-2, not org-1"):
        verify(plan)


def test_verify_counts_a_customer_that_is_there_twice_although_the_id_of_one_is_known(at: Place) -> None:
    plan = at.plan([customer(1), customer(2)])
    assert at.push(plan).exit_code == 0
    at.platform.state.add("customers", {k: v for k, v in customer(1).body.items() if k != "notification"})
    pull(PullOptions(("customers",)))
    result = verify(plan)
    assert ({name: count for name, count in result.outcomes.items() if count}, result.exit_code) == (
        {"several": 1, "same": 1},
        ExitCode.REJECTED,
    )


@pytest.mark.parametrize(("verdict", "code"), [("complete", ExitCode.REJECTED), ("unproven", ExitCode.COVERAGE)])
def test_a_customer_missing_from_an_unproven_list_is_no_finding_but_coverage(verdict: str, code: ExitCode) -> None:
    assert verifying.VerifyResult("customers", Counter(missing=1, same=2), verdict=verdict).exit_code == code


def test_verify_refuses_a_list_that_is_older_than_the_push(at: Place) -> None:
    pull(PullOptions(("customers",)))
    plan = at.plan([customer(1)])
    at.push(plan)
    with pytest.raises(UsageError, match="before the last of them was sent"):
        verify(plan)
    with duckdb.connect(str(at.folder / "warehouse.duckdb")) as connection:
        connection.execute("UPDATE ops.runs SET legacy_host = 'other.test'")
    with pytest.raises(UsageError, match=r"this warehouse is of other\.test, the plan of "):
        verify(plan)
    with duckdb.connect(str(at.folder / "warehouse.duckdb")) as connection:
        connection.execute("DELETE FROM ops.coverage")
    with pytest.raises(UsageError, match="never pulled into this warehouse"):
        verify(plan)


def test_what_cannot_be_read_back_is_said_and_counted(at: Place) -> None:
    plan = at.plan([patch(1, 1), patch(2, 2, sku=7)], "variants")
    at.push(plan)
    done = command("verify", str(plan), env=at.environment(), cwd=at.folder)
    assert done.code == 0
    assert "1  confirmed, and cannot be read back" in done.out
    assert "1  not sent, rejected or in doubt" in done.out


def test_a_push_that_was_cut_off_is_looked_for_and_reported(at: Place) -> None:
    plan = at.plan([customer(1)])
    at.platform.set_faults({"lost_answer": 1.0})
    done = command("push", str(plan), "--yes", env=at.environment(), cwd=at.folder)
    assert done.code == 6
    assert "run it again from" in done.out
    assert outcomes(plan) == {"2": "in_doubt.in_doubt"}
    pull(PullOptions(("customers",)))
    verified = verify(plan)
    assert (verified.in_doubt, verified.exit_code) == (1, ExitCode.IN_DOUBT)
    at.platform.set_faults({})
    assert at.push(plan, replace(YES, settle_s=SETTLE_S)).exit_code == 6
    assert command("push", str(plan), "--yes", "--settle", "0", env=at.environment(), cwd=at.folder).code == 0
    assert at.codes() == ["C00001"]
