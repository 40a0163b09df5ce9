"""`orderbridge push`: exit codes, signals, secrets; what it leaves in the warehouse and in the status."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import duckdb
import pytest

from orderbridge.pipelines.cli import push
from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.push_log import publish_push_log
from orderbridge.pipelines.plan.make import PlanOptions, make_plan
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.push import run
from orderbridge.pipelines.push.passwords import PASSWORDS_FILE
from orderbridge.pipelines.warehouse import ops
from orderbridge.sources.errors import UsageError
from tests.pipelines.push.plans import Place, customer, patch, place, subcategory, warehouse


def test_a_push_reports_what_became_of_the_lines(at: Place) -> None:
    plan = at.plan([customer(1), customer(2, firstName=7)])
    done = at.command("push", str(plan))
    assert (done.code, "2 customers would be sent" in done.err, at.platform.state.requests) == (
        2,
        True,
        0,
    )
    at.platform.set_faults({"lost_answer": 1.0})
    done = at.command("push", str(plan), "--yes")
    assert (done.code, "\nnext: run it again:\n" in done.out) == (6, True)
    at.platform.set_faults({})
    done = at.command("push", str(at.plan([customer(1), customer(3)])), "--yes", "--settle", "15")
    assert (done.code, "1  not sent: something else has to end first" in done.out) == (5, True)
    assert re.search("\nnext: run it again from [^\n]+ on:\n  orderbridge push ", done.out), (
        done.out
    )
    done = at.command("push", str(plan), "--yes", "--settle", "0")
    assert (done.code, done.err, at.codes()) == (5, "", ["C00001", "C00003"])
    assert "1  confirmed\n" in done.out
    assert "1  rejected\n" in done.out
    for is_terminal in (False, True):
        stdin = SimpleNamespace(isatty=lambda is_terminal=is_terminal: is_terminal)
        with mock.patch.object(push, "sys", SimpleNamespace(stdin=stdin)):
            done = at.command("push", str(plan))
        assert (done.code, done.err) == (5, ""), "nobody is asked"
        assert "nothing was left to send; earlier pushes:\n" in done.out
    reported = json.loads(at.command("push", str(plan), "--yes", "--log", "json").out)
    assert reported["operations"] == {"confirmed": 1, "rejected": 1}
    assert reported["lines"] == {"confirmed.confirmed": 1, "rejected.rejected": 1}
    assert reported["exit_code"] == 5


def test_a_push_that_is_stopped_says_whether_it_has_sent(at: Place) -> None:
    plan = at.plan([customer(1)])
    again = f"orderbridge push {plan.name} --yes"
    with mock.patch.object(run, "check_before_writes", side_effect=KeyboardInterrupt):
        done = at.command("push", plan.name, "--yes")
    words = f"stopped; this run sent nothing. To go on, run it again: {again}\n"
    assert (done.code, done.err, at.codes()) == (130, words, [])
    with mock.patch.object(push, "print_result", side_effect=KeyboardInterrupt):
        done = at.command("push", plan.name, "--yes")
    words = "stopped; what was sent is recorded, and nothing is sent twice\n"
    assert (done.code, done.err, at.codes()) == (130, words, ["C00001"])


def test_no_key_and_no_password_is_anywhere_but_in_its_file(at: Place) -> None:
    plan, said = at.plan([customer(n) for n in range(1, 6)]), ""
    for faults in ({"error_with_password": 0.5, "redirect": 0.3}, {"lost_answer": 0.5}, {}):
        at.platform.set_faults(faults)
        said += at.command("push", str(plan), "--yes", "--settle", "0", "--log", "json").said
    secrets = [body["password"] for body in at.platform.state.customer_inputs]
    own = (plan / PASSWORDS_FILE).read_text()
    assert secrets
    assert all(secret in own for secret in secrets)
    with sqlite3.connect(at.ledger) as ledger:
        ledger.execute("PRAGMA wal_checkpoint")
        said += "\n".join(ledger.iterdump())
    ledger.close()
    planted = [*secrets, at.platform.legacy_key, "sandbox-planted"]
    files = [
        path for path in at.folder.rglob("*") if path.is_file() and path.name != PASSWORDS_FILE
    ]
    content = said.encode() + b"".join(path.read_bytes() for path in files)
    assert not [secret for secret in planted if secret.encode() in content]


def open_plans(at: Place) -> list[tuple[str, dict[str, int]]]:
    shown = json.loads(at.command("status", "--json").out)["open_plans"]
    return [(plan["folder"], plan["states"]) for plan in shown]


def test_status_shows_open_plans_unless_they_can_never_be_sent(at: Place) -> None:
    gone, changed, resumable = (at.stopped(warehouse(n)) for n in (1, 2, 3))
    (at.folder / "plans").mkdir()
    doubted = at.plan([warehouse(4), warehouse(5)]).rename(at.folder / "plans" / "a plan")
    at.lose(doubted, "reset_before")
    shutil.rmtree(gone)
    changed.with_name(f"{changed.name}.csv").write_text("tonight's", "utf-8")
    at.stopped(warehouse(6))
    assert at.code(at.plan([warehouse(6)], name="newer")) == 0
    done = at.command("status")
    assert done.code == 0
    lines = done.out.splitlines()
    title = f"  not finished: warehouses, '{doubted}': 2 with unknown outcome (requests)"
    assert lines[lines.index(title) + 1 :] == [
        "    next: look on the platform, then answer:",
        "      orderbridge questions",
    ]
    assert f"      orderbridge push {resumable.name} --yes" in lines
    found = [(str(resumable), {"planned": 1}), (str(doubted), {"in_doubt": 2})]
    assert open_plans(at) == found
    copied_from = at.folder.with_name("original")
    shutil.copytree(doubted, copied_from / "plans" / doubted.name)
    with closing(sqlite3.connect(at.ledger)) as connection, connection:
        paths = (str(at.folder), str(copied_from))
        connection.execute("UPDATE plans SET folder = replace(folder, ?, ?)", paths)
    assert open_plans(at) == found, "of a project that was moved or copied"
    with closing(sqlite3.connect(at.ledger)) as connection, connection:
        connection.execute("UPDATE operations SET state = 'in_flight' WHERE state = 'in_doubt'")
    assert title in at.command("status").out
    with ledger_lock(at.ledger):
        sent = at.command("status").out
    assert f"  being sent now: warehouses, '{doubted}': 2 on their way (requests)\n" in sent
    assert "unknown outcome" not in sent
    with closing(sqlite3.connect(at.ledger)) as connection, connection:
        connection.execute("UPDATE operations SET state = 'conflict' WHERE state = 'in_flight'")
    shutil.rmtree(doubted)
    shutil.rmtree(copied_from)
    lost = "warehouses, a plan, which is gone: 2 with unknown outcome"
    assert lost in at.command("status").out


def test_settle_prints_a_line_for_each_reason_with_its_count(at: Place) -> None:
    at.lost(patch(1, 1), patch(2, 2), patch(3, 3, repeatable=False, stock=5))
    done = at.command("settle")
    assert (
        done.code,
        done.out.count("operation"),
        "3 requests with unknown outcome" in done.out,
    ) == (
        6,
        2,
        True,
    ), done.out
    assert "and 1 other: run it again: orderbridge push " in done.out


def test_the_push_log_comes_into_the_warehouse_which_notices_an_older_ledger(
    at: Place,
) -> None:
    assert at.code(at.plan([patch(1, 1)])) == 0
    at.pull("customers")
    sql = "SELECT operation_id, kind, method, path, state, status, attempts FROM ops.push_log ORDER BY path"
    logged = [
        ("1", "variants", "PATCH", f"/products/1/variants/{n}", "confirmed", 204, 1) for n in (1, 2)
    ]
    assert at.query(sql) == logged[:1]
    old = shutil.copy(at.ledger, at.folder / "old.sqlite")
    assert at.code(at.plan([patch(1, 2)])) == 0
    assert publish_push_log() is True
    assert at.query(sql) == logged
    options = PlanOptions("variants", at.folder / "in.csv", out=at.folder / "made")
    options.file.write_text("productId,variantId,sku\n1,2,S1\n", "utf-8")
    shutil.copy(old, at.ledger)
    with closing(sqlite3.connect(at.ledger)) as connection, connection:  # pushed with since
        connection.execute("UPDATE operations SET attempts = attempts + 1")
    publish_push_log()  # does not take the older one for the newest
    pulled = pull(PullOptions(("customers",)))
    assert (pulled.exit_code, pulled.published) == (2, True)
    assert "which has 1 more requests" in pulled.ledger_problem
    assert at.query(sql) == logged
    with pytest.raises(
        UsageError, match=r"the ledger is older than its copy .* which has 1 more requests"
    ):
        make_plan(options)
    done = at.command("settle", "--accept-ledger")
    assert (done.code, done.out.splitlines()) == (
        0,
        [
            "0 requests with unknown outcome",
            "the ledger is accepted: what its copy in the warehouse has besides is replaced",
        ],
    )
    assert make_plan(options).manifest.operations == 1


def seen(at: Place, what: str, *plans: Path) -> list[tuple[object, ...]]:
    """What pushes of these plans bring into `ops.observations` of an empty warehouse."""
    with duckdb.connect(str(at.folder / "warehouse.duckdb")) as connection:
        ops.create_missing(connection)
    for plan in plans:
        result = at.push(plan)
        assert publish_push_log(Plan(plan).manifest.plan_id, result.observed) is True
    return at.query(
        "SELECT what, value, first_run_id FROM ops.observations "
        f"WHERE regexp_matches(what, '{what}') ORDER BY ALL"
    )


def test_what_answers_show_of_the_gaps_is_observed_once_and_what_none_settles(
    tmp_path: Path,
) -> None:
    readings = {"created_status": "200", "legacy_error_status": "422", "created_body": "empty"}
    readings |= {"whoami_names": "terse", "subcategory_required": "name"}
    with place(tmp_path, readings=readings) as at:
        os.environ |= {
            "SOURCES__PUBLIC_V1__BASE_URL": at.platform.url,
            "SOURCES__PUBLIC_V1__API_KEY": at.platform.v1_key,
        }
        plans = (
            at.plan([customer(1), customer(2, firstName=7)]),
            at.plan([patch(1, 1, price=2.5, weight=1.5)]),
            at.plan([subcategory(1), subcategory(2, name=None)]),
        )
        created, patched, parts = (Plan(folder).manifest.plan_id for folder in plans)
        assert seen(at, "created|content|legacy_error|whoami|required|semantics", *plans) == [
            ("created_body", "customers: no id in it", created),
            ("created_body", "subcategories: no id in it", parts),
            ("created_status", "200", created),
            ("legacy_error_status", "customers: status 422, code TYPE", created),
            ("legacy_error_status", "subcategories: status 422, code 1002", parts),
            ("no_content_status", "204", patched),
            (
                "price_semantics",
                "confirmed; whether it was set or added cannot be read back",
                patched,
            ),
            ("subcategory_required", "status 422", parts),
            ("subcategory_required", "what was sent was enough", parts),
            ("whoami_names", "environment: env", created),
        ]
        before = at.query("FROM ops.observations ORDER BY ALL")
        assert publish_push_log() is True
        assert at.query("FROM ops.observations ORDER BY ALL") == before
