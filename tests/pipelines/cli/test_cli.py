"""The command: help, what it refuses, streams and exit codes, what a monitor reads, the demo, the sandbox."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any, BinaryIO, cast
from unittest import mock

import click
import duckdb
import pytest
from click.testing import CliRunner

from orderbridge.pipelines.cli import check as check_command
from orderbridge.pipelines.cli import demo, options
from orderbridge.pipelines.cli.console import Reporter
from orderbridge.pipelines.cli.main import orderbridge
from orderbridge.pipelines.cli.reconcile import _lines
from orderbridge.pipelines.cli.run import summary
from orderbridge.pipelines.pull import check as pull_check
from orderbridge.pipelines.pull.model import PullResult
from orderbridge.pipelines.reconcile.erp.customers import MatchSummary
from orderbridge.pipelines.reconcile.reconcile import ReconcileResult
from orderbridge.pipelines.reporting.notification import run_summary
from orderbridge.pipelines.warehouse.failure import clear_failure
from orderbridge.pipelines.warehouse.lock import run_lock
from orderbridge.sources import errors
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import HttpRejected, PlatformError, RateLimited, Unreachable
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.settings.setting import SETTINGS
from tests.pipelines.bridge import LISTED, Bridge, command, start
from tests.pipelines.cli.test_terminal import HOSTILE, is_safe
from tests.pipelines.pull.truth import RESOURCES
from tests.pipelines.reporting.page import leftovers, leftovers_in

CHECKOUT = Path(__file__).parents[3]
EXIT_CODES = CHECKOUT / "docs/reference/exit-codes.md"
HIDDEN = "planted_hidden"
RULE = "customers.erp_code_duplicate"


def as_json(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


def test_help_and_version_need_no_settings_write_nothing_and_have_examples(
    tmp_path: Path, nobody: dict[str, str]
) -> None:
    def printed(*arguments: str) -> str:
        done = command(*arguments, env=nobody, cwd=tmp_path)
        assert (done.code, done.err) == (0, ""), arguments
        return done.out

    assert printed("-h") == printed("--help")
    for name, one in orderbridge.commands.items():
        text = printed(name, "--help")
        assert f"orderbridge {name}" in " ".join(text.partition("Example")[2].split()), name
        assert all(
            option.opts[-1] in text
            for option in one.params
            if isinstance(option, click.Option) and not option.hidden
        )
    assert re.match(
        r"orderbridge \d+\.\d+\.\d+(\.dev0)? \(dlt [\d.]+, duckdb [\d.]+", printed("--version")
    )
    assert {path.name for path in tmp_path.rglob("*")} == {"home", "tmp"}


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("pull coupons", f"'coupons' is not one of {', '.join(map(repr, LISTS))}"),
        ("pull --refresh coupons__lines", f"'coupons' is not one of {', '.join(LISTS)}"),
        ("status --max-age nan", "not a number of hours"),
        ("settle --settle nan", "nan is not a number of minutes"),
        ("push file --settle inf", "inf is not a number of minutes"),
        ("settle a --landed 1-x", "'1-x' is not the number of an operation"),
        ("settle a --landed 1,24-20", "'24-20' ends before it begins: write 20-24"),
        ("settle --landed 1", "an answer needs its plan"),
        ("sandbox --fault stall", "'stall' is not NAME=RATE"),
        ("sandbox --fault nonsense=1", "Use one of: rate_429"),
        ("sandbox --fault stall=x", "from 0 to 1"),
        ("--project none status", "there is no folder"),
        ("console", "No such command 'console'"),  # a module that is no command
        ("status", "there is no warehouse at "),
        ("template variants --for file", "--for requires --mapping"),
        ("demo --folder .", "--folder NAME"),
        ("demo --folder file/demo", "file/demo cannot be created: Not a directory"),
        (f"accept {RULE} --why x --up-to 3 --severity info", "`up_to` cannot be combined"),
        ("accept orders.form_changed --why x --up-to 3", "`up_to` cannot be combined"),
        ("accept match_doubtful --why x", "Did you mean erp_customers.match_doubtful?"),
        (f"accept {RULE} --why x --until 2026-01-01", "--until 2026-01-01 is past"),
        (f"accept {RULE} --withdraw", "nothing of that is accepted"),
        ("accept --why x", "no RULE is named"),
        (f"preview none{HOSTILE}.csv", "none"),
        (f"report --out no{HOSTILE}/where.html", "there is no folder"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    tmp_path: Path, nobody: dict[str, str], line: str, says: str
) -> None:
    (tmp_path / "file").touch()
    done = command(*shlex.split(line), env=nobody, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert says.casefold() in done.err.casefold()
    assert is_safe(done.err)
    assert {path.name for path in tmp_path.rglob("*")} == {"file", "home", "tmp"}


def test_answers_are_numbers_and_ranges_and_times_are_minutes() -> None:
    group = click.Context(orderbridge, **orderbridge.context_settings)
    for name in ("push", "settle"):
        line = [
            "plan",
            "--landed",
            "17,20-22",
            "--landed",
            "3",
            "--abandon",
            "4-4",
            "--settle",
            "2",
        ]
        with orderbridge.commands[name].make_context(name, line, group) as context:
            given = context.params
        assert given["landed"] == {3, 17, 20, 21, 22}
        assert (given["not_landed"], given["abandon"], given["settle"]) == (set(), {4}, 120)


def test_with_log_json_every_line_is_json_and_errors_too(shop: Bridge) -> None:
    done = shop.command("pull", "promotions", "--log", "json")
    assert done.code == 0
    (reported,) = as_json(done.out)
    assert (reported["published"], reported["exit_code"], reported["warehouse"]) == (
        True,
        0,
        str(shop.path),
    )
    (listed,) = cast(list[Any], reported["lists"])
    assert (listed["resource"], listed["rows"], listed["verdict"]) == (
        "promotions",
        LISTED["promotions"],
        "complete",
    )
    for line in (
        "pull coupons --log json",
        "status --json",
        "preview none.csv --json",
        "push none --json --log plain",
        "status --json --max-age 1d",
    ):
        done = shop.command(*line.split(), WAREHOUSE__PATH="none.duckdb")
        assert (done.code, len(as_json(done.err))) == (2, 1)
    assert "'1d' is not a valid number" in done.err
    misplaced = shop.command("status", "--project", ".")
    assert (misplaced.code, "orderbridge --project DIR status\n" in misplaced.err) == (2, True)


def test_check_prints_each_thing_and_ends_with_the_most_severe(shop: Bridge) -> None:
    done = shop.command("check", "--log", "json", SOURCES__HTTP__TIMEOUT_S="60")
    assert (done.code, done.err) == (0, "")
    lines = as_json(done.out)
    assert all(line.get("ok", True) for line in lines)
    assert {line["what"] for line in lines if "what" in line} >= {
        f"first page of {name}" for name in RESOURCES
    }
    shown = {str(line["message"]).strip() for line in lines}
    assert {"sources.http.timeout_s = 60 (SOURCES__HTTP__TIMEOUT_S)"} <= shown
    assert {"sources.public_v1.api_key = *** (SOURCES__PUBLIC_V1__API_KEY)"} <= shown
    assert "read_timeout_s" not in done.out
    done = shop.command("check", SOURCES__LEGACY__API_KEY=HIDDEN)
    assert (done.code, done.err) == (3, "")
    assert "wrong first page of customers: legacy GET /customers: authentication failed" in done.out
    assert "Replace the key in SOURCES__LEGACY__API_KEY, then: orderbridge check" in done.out
    assert "ok    first page of orders" in done.out


@pytest.mark.parametrize(
    ("error", "mark"),
    [
        (Unreachable("no answer", status=503), "retry"),
        (RateLimited("too many requests", status=429), "retry"),
        (Unreachable("cannot connect", reason="dns"), "wrong"),
        (HttpRejected("no", status=404), "wrong"),
    ],
)
def test_check_marks_what_may_pass(
    error: PlatformError, mark: str, capsys: pytest.CaptureFixture[str]
) -> None:
    result = pull_check.check_one("a page", mock.Mock(side_effect=error))
    check_command._reported(result, Reporter("plain"))
    assert capsys.readouterr().out.startswith(f"{mark} a page: ")
    assert result.exit_code == 4


def test_a_closed_pipe_is_reported_by_its_signal_without_a_traceback(shop: Bridge) -> None:
    with start("status", env=shop.environment(), cwd=shop.folder) as process:
        process.stdout.close()
        assert process.wait(30) == 128 + signal.SIGPIPE
        assert process.stderr.read() == ""


def test_the_help_and_a_page_list_the_exit_codes() -> None:
    expected = [(code.label, code.meaning) for code in errors.ExitCode]
    page = EXIT_CODES.read_text("utf-8")
    assert re.findall(r"^\| ([\d, ]+) \|", page, re.M) == [label for label, _ in expected]
    helped = CliRunner().invoke(orderbridge, ["--help"]).output
    assert (
        re.findall(r"^ +(\d+(?:, \d+)*) +(\S.*)$", helped.partition("Exit codes:")[2], re.M)
        == expected
    )
    assert list(map(int, errors.ExitCode)) == [*range(10), 130]
    kinds = (
        errors.BridgeError,
        errors.UsageError,
        errors.AccessError,
        errors.PlatformError,
        errors.CoverageError,
    )
    assert [kind.exit_code for kind in (*kinds, errors.LockedError)] == [1, 2, 3, 4, 7, 8]


def test_the_summary_of_a_run_says_what_was_held_back_found_and_published(
    shop: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    orders = ListResult("orders", verdict="complete", distinct=30)
    result = PullResult(
        "1", shop.path, [orders], held_back={"orders": "row count dropped"}, published=True
    )
    found = [
        ("customers", "x", "error", 2),
        ("erp_customers", "line_refused", "error", 1),
        ("orders", "y", "info", 3),
    ]
    tables = dict.fromkeys(
        ("customers", "price_lists", "orders", "customer_orders", "price_list_history"), 7
    )
    reconciled = ReconcileResult(
        "1", result.path, tables, found, never_read=["price_lists", "orders"]
    )
    assert summary(result, reconciled) == [
        "read: 30 orders (complete)",
        "orders: row count dropped",
        "reconciled: 7 customers",
        "findings: 3 error, 3 info (1 of the last comparison with the ERP); --verbose lists them, "
        "orderbridge report says what to do",
        "  2 error customers.x",
        "  1 error erp_customers.line_refused",
        f"published {shop.path}",
    ]
    assert "\n  1 error erp_customers.line_refused" in run_summary(result, reconciled)["text"]
    reconciled.match = MatchSummary([], 0, 0, [], 0, [2], {}, (), "")
    assert "findings: 3 error, 3 info; --verbose" in "".join(summary(result, reconciled)), (
        "they are of this one"
    )
    proposed = ReconcileResult(
        "1", result.path, order_fields={"total": "x"}, proposed={"total": "all"}
    )
    (key,) = re.findall(r"orderbridge answer (\S+) COLUMN", "".join(_lines(proposed, (), ())))
    assert key in SETTINGS
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "postgres")
    assert summary(result, None)[-1] == f"published {shop.path}, copied to postgres"
    told = ReconcileResult("1", result.path, {"orders": 30, "customer_history": 7})
    assert "reconciled" not in "".join(summary(result, told)), "its rows are those that were read"
    refused = errors.AccessError("no", "Replace the key")
    result.lists = [
        ListResult(name, error=refused, evidence=["refused"])
        for name in ("customers", "promotions")
    ]
    assert summary(result, None)[1:4] == [
        "customers: refused",
        "  Replace the key",
        "promotions: refused",
    ], "what to do is there once"


def test_a_run_whose_ledger_cannot_be_used_publishes_says_so_and_ends_with_2(
    fresh: Bridge,
) -> None:
    ledger = fresh.folder / "ledger.sqlite"
    ledger.write_bytes(b"no ledger")
    run = fresh.command("run", "--fail-on", "never")
    assert (run.code, fresh.one("SELECT exit_code FROM ops.runs")) == (2, 2), run
    for words in ("the ledger was not read", f"{ledger} is not a ledger", "set LEDGER__PATH"):
        assert words in run.out
    as_json = fresh.command("pull", "promotions", "--log", "json")
    record = json.loads(as_json.out.splitlines()[-1])
    assert (as_json.code, record["exit_code"]) == (2, 2)
    assert f"{ledger} is not a ledger" in record["ledger_problem"]


def test_status_reports_ages_old_lists_those_never_read_and_failed_runs(
    tmp_path: Path, shop: Bridge
) -> None:
    done = shop.command("status")
    assert (done.code, done.err) == (0, "")
    assert re.search(
        rf"^  customers +{LISTED['customers']} rows  complete +\d+ min old$", done.out, re.M
    )
    reported = json.loads(shop.command("status", "--json", "--max-age", "24").out)
    assert {row["resource"]: row["rows"] for row in reported["lists"]} == LISTED
    assert (reported["too_old"], reported["failure"], reported["warehouse"]) == (
        [],
        None,
        str(shop.path),
    )
    assert [shop.command("status", "--max-age", hours).code for hours in ("0.0000001", "0")] == [
        7,
        7,
    ]
    copy, lock = shutil.copyfile(shop.path, tmp_path / "w.duckdb"), tmp_path / ".w.duckdb.lock"
    with duckdb.connect(str(copy)) as connection:
        connection.execute(
            """UPDATE ops.coverage SET ended_at = ended_at - INTERVAL 25 HOUR WHERE resource IN ('orders', 'customers');
            UPDATE ops.coverage SET verdict = 'incomplete', published = false WHERE resource = 'price_lists'"""
        )
    broken = {"WAREHOUSE__PATH": str(copy), "SOURCES__LEGACY__API_KEY": HIDDEN}
    assert shop.command("pull", "customers", **broken).code == 3
    done = shop.command("status", "--json", "--max-age", "24", **broken)
    reported = json.loads(done.out)
    assert (done.code, sorted(reported["too_old"])) == (7, ["customers", "orders", "price_lists"])
    assert (reported["never_read"], reported["failure"]["exit_code"]) == (["price_lists"], 3)
    assert "authentication failed" in reported["failure"]["message"]
    words = shop.command("status", "--max-age", "24", **broken)
    assert (words.code, shop.command("status", **broken).code) == (7, 0)
    assert len(re.findall(r"25\.\d h old  TOO OLD \(limit 24 h\)$", words.out, re.M)) == 2
    assert re.search(r"^  price_lists  never read whole  TOO OLD \(limit 24 h\)$", words.out, re.M)
    assert "the last run failed and published nothing" in words.out
    assert shop.command("status", "--max-age", "99", **broken).code == 7, (
        "a list that was never read is enough"
    )
    lock.write_text("process 4711 (run, since 2026-11-26T03:15:00+00:00)")
    assert "a run was killed: process 4711 (run, since 2026" in shop.command("status", **broken).out
    with run_lock(lock, "run", ""):
        during = shop.command("status", **broken)
        assert (during.code, "was killed" in during.out) == (0, False)
        assert f"a run is going on: process {os.getpid()} (run, since 20" in during.out
    with run_lock(tmp_path / ".first.duckdb.lock", "pull", ""):
        first = shop.command(
            "status", "--max-age", "24", WAREHOUSE__PATH=str(tmp_path / "first.duckdb")
        )
        assert (first.code, "(pull, since" in first.out) == (7, True)
    clear_failure(copy, "run")  # the next night is well
    after = shop.command("status", **broken).out
    assert "was killed" not in after
    assert re.search(r"^  pull +failed 20.*, exit 3: .*authentication failed", after, re.M)


def test_status_does_not_show_the_exit_code_of_a_pull_as_that_of_its_import(
    tmp_path: Path, shop: Bridge
) -> None:
    copy = shutil.copyfile(shop.path, tmp_path / "w.duckdb")
    with duckdb.connect(str(copy)) as connection:
        connection.execute("UPDATE ops.runs SET command = 'import'")
    shown = shop.command("status", WAREHOUSE__PATH=str(copy)).out
    assert re.search(r"^  pull \(import\) ended 20.*, exit 0$", shown, re.M), shown
    assert "  import " not in shown


def in_one_process() -> None:
    """The demo's commands run in its process, which has imported them; those of the wheel's demo do not."""

    def run(
        line: list[str], cwd: Path, env: dict[str, str], stderr: int | BinaryIO, **_: object
    ) -> subprocess.CompletedProcess[str]:
        done = command(*line[3:], env=env, cwd=cwd)
        if isinstance(stderr, int):
            sys.stdout.write(done.said)
        else:
            sys.stdout.write(done.out)
            stderr.write(done.err.encode())
        return subprocess.CompletedProcess(line, done.code)

    mock.patch("subprocess.run", run).start()


def test_the_language_of_the_demo_is_that_of_what_an_office_reads() -> None:
    assert demo._spoken("desk", "es") == ["--lang=es"]
    assert demo._spoken("desk", None) == [], "then the desk follows the locale"
    assert demo._spoken("run", "es") == [], "it has no language"
    commands = options._DECLARED["commands"]
    assert all("--lang" in commands[name]["options"] for name in demo._SPEAKING)


def test_the_demo_needs_no_settings_touches_its_folder_alone_and_ends_well(
    tmp_path: Path, nobody: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (work := tmp_path / "work").mkdir()
    shown = work / "shown"
    foreign = {"WAREHOUSE__DESTINATION": "postgres", "SOURCES__HTTP__PROXY": "http://127.0.0.1:1"}
    done = command(
        "demo", "--folder", "shown", env={**nobody, **foreign}, cwd=work, preexec_fn=in_one_process
    )
    assert (done.code, done.err) == (0, "")
    lists = re.findall(r"^read: (.*)$", done.out, re.M)
    assert [line.count("(complete)") for line in lists] == [len(RESOURCES)] * 2
    assert [path.name for path in work.iterdir()] == ["shown"]
    assert not list((tmp_path / "home").iterdir())
    assert {stat.S_IMODE(path.stat().st_mode) & 0o077 for path in shown.rglob("*")} == {0}
    for words in (
        r"^  2 error erp_customers.erp_code_duplicate$", "^variants of the ERP: 38 as last confirmed, 0 different",
        "^ *read again: 48 customers on the platform as sent$",
        "^48 lines to send: 48 customers to create$", "^ +50  left out: on the platform already, identical$",
    ):  # fmt: skip
        assert re.search(words, done.out, re.M), words
    printed = [line for line in done.out.splitlines() if line and "▕" not in line]
    assert len(printed) <= 75, printed  # about sixty, and the progress of a slow machine
    readme = (CHECKOUT / "README.md").read_text("utf-8")
    (transcript,) = re.findall(r"^```\n(\$ orderbridge run\n.*?)^```$", readme, re.M | re.S)
    for line in filter(None, transcript.splitlines()):
        words = re.escape(line).replace("…", ".*")
        assert re.search(f"^{words}( +#.*)?$", done.out, re.M), f"README.md: {line}"
    log = (shown / "import.log").read_text("utf-8")
    assert "\nnothing to send\n" in log
    assert "\n38 lines to send: 38 variants to update, 76 requests\n" in log
    assert (shown / "report.html").is_file()
    with duckdb.connect(shown / "warehouse.duckdb", read_only=True) as warehouse:
        assert warehouse.execute(
            "SELECT max(uses_since_before) FROM bi.promotion_uses"
        ).fetchone() == (1,)
    (kept,) = shown.glob("plan-customers-*/passwords.csv")
    assert kept.with_name("result.xlsx").is_file()
    passwords = kept.read_text("utf-8-sig").splitlines()[1:]
    assert len(passwords) == 48
    secrets = [row.rpartition(";")[2] for row in passwords]
    others = [path for path in shown.rglob("*") if path.is_file() and path != kept]
    assert not [
        path for path in others if any(secret.encode() in path.read_bytes() for secret in secrets)
    ]
    assert not [secret for secret in secrets if secret in done.out]
    assert (leftovers(done.out), leftovers_in(shown)) == ([], {})
    monkeypatch.setenv("FILES__SHARED_FOLDER", str(tmp_path))
    assert demo._environment(tmp_path, "http://127.0.0.1:1")["FILES__SHARED_FOLDER"] == str(
        tmp_path
    )


def test_the_statements_of_the_views_are_printed(tmp_path: Path, nobody: dict[str, str]) -> None:
    done = command(
        "views", "--sql", env=nobody | {"WAREHOUSE__DESTINATION": "postgres"}, cwd=tmp_path
    )
    assert done.err == "the next version does not take `views --sql`: take it out of scripts\n"
    assert (done.code, done.out.count("CREATE OR REPLACE VIEW") > 5) == (0, True)


@pytest.mark.parametrize(
    "line", ["plan customers file.csv --batch-size 5", "push plan --concurrency 2"]
)
def test_an_option_that_goes_is_taken_with_one_line_that_says_so(
    line: str, tmp_path: Path, nobody: dict[str, str]
) -> None:
    (tmp_path / "plan").mkdir()
    (tmp_path / "file.csv").write_text("erpCode\n1\n", "utf-8")
    name, *_, option, _ = line.split()
    done = command(*line.split(), env=nobody, cwd=tmp_path)
    assert done.err.count(f"the next version does not take `{name} {option}`") == 1
    without = command(*line.split()[:-2], env=nobody, cwd=tmp_path)
    assert "the next version" not in without.err
    assert done.code == without.code


def test_a_sandbox_ends_well_on_many_signals_at_once(
    tmp_path: Path, nobody: dict[str, str]
) -> None:
    """A handler that ran while its thread held a lock, or just before it waited, let the sandbox hang."""
    with start("sandbox", "--customers", "1", env=nobody, cwd=tmp_path) as process:
        assert process.stdout.readline().startswith("ready ")
        stops = (1 << signal.SIGINT - 1) | (1 << signal.SIGTERM - 1)
        tasks = [*Path(f"/proc/{process.pid}/task").iterdir()]
        others = [task for task in tasks if task.name != str(process.pid)]
        assert others
        for task in others:
            blocked = re.search(r"SigBlk:\s*(\w+)", (task / "status").read_text())
            assert blocked
            assert int(blocked[1], 16) & stops == stops, "the main thread alone has them"
        for _ in range(50):
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert process.returncode == 0


def test_a_sandbox_writes_settings_that_init_and_pull_use_and_ends_on_a_signal(
    tmp_path: Path, nobody: dict[str, str]
) -> None:
    (tmp_path / "project").mkdir()
    project = ("--project", str(tmp_path / "project"))
    served = (
        *project,
        "sandbox",
        "--write-settings",
        "--customers",
        "3",
        "--fault",
        "error_503=0.1",
    )
    with start(*served, env=nobody, cwd=tmp_path) as process:
        lines = [process.stdout.readline().strip() for _ in range(7)]
        found = re.fullmatch(r"ready http://127\.0\.0\.1:(\d+)", lines[0])
        assert found
        taken = command("sandbox", "--port", found[1], env=nobody, cwd=tmp_path)
        done = command("init", env=nobody, cwd=tmp_path / "project")
        assert (done.code, ": not changed." in done.out) == (0, True), done.said
        assert re.search(r"^(\d+) of \1 checks are ok; each: orderbridge check$", done.out, re.M)
        done = command(*project, "pull", "customers", env=nobody, cwd=tmp_path)
        assert (done.code, re.findall(r"^customers +3 +3", done.out, re.M) != []) == (0, True), (
            done.said
        )
        reported = dict(line.split("=", 1) for line in lines[1:])
        done = command("check", env={**nobody, **reported}, cwd=tmp_path)
        assert (done.code, "ok    first page of customers" in done.out) == (0, True), done.said
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (process.returncode, out) == (0, "")
    assert (
        f"next, in another terminal in this folder: {shlex.join(['orderbridge', *project, 'run'])}"
        in err
    )
    assert (tmp_path / "project/warehouse.duckdb").exists()
    assert (taken.code, taken.out) == (2, "")
    assert f"cannot listen on port {found[1]}" in taken.err
