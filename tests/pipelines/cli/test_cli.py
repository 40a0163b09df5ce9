"""The command: help, settings that are wrong, exit codes, what stands on which stream, what a monitor reads."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pipelines.cli import demo
from pipelines.cli import main as cli
from pipelines.cli.run import summary
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.push.results import RESULT_COLUMNS
from pipelines.reconcile.reconcile import Reconciling
from pipelines.warehouse.failure import failure_file
from sources import errors
from sources.files.formulas import people_rows
from sources.settings.sections import SETTINGS
from tests.artefacts import leftovers, leftovers_in
from tests.pipelines.bridge import SMALL, Bridge, Done, bridge, command, start
from tests.pipelines.pull.truth import RESOURCES

CHECKOUT = Path(__file__).parents[3]
COMMANDS = sorted(cli.orderbridge.commands)
HIDDEN = "planted_hidden"


@pytest.fixture(autouse=True)
def _no_note_stays(request: pytest.FixtureRequest) -> Iterator[None]:
    """A run that fails on purpose leaves its note to its own test."""
    yield
    if "pulled" in request.fixturenames:
        failure_file(request.getfixturevalue("pulled")[0].path).unlink(missing_ok=True)


@pytest.fixture(scope="module")
def pulled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Bridge, Done]]:
    """A sandbox, and a warehouse that the command pulled from it, with what it said."""
    before = dict(os.environ)
    with bridge(tmp_path_factory.mktemp("cli")) as made:
        yield made, command("pull", "--log", "json", env=made.environment(), cwd=made.folder)
    os.environ.clear()
    os.environ.update(before)


def run(made: Bridge, *arguments: str, **more: str) -> Done:
    """A command with the settings of that bridge, and more."""
    return command(*arguments, env=made.environment(**more), cwd=made.folder)


def bare(folder: Path) -> dict[str, str]:
    """The environment of someone who has set nothing."""
    (folder / "home").mkdir()
    return {"PATH": os.environ["PATH"], "HOME": str(folder / "home"), "PYTHONWARNINGS": "error", "PYTHONUTF8": "1"}


def as_json(text: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in text.splitlines()]


# --- help ----------------------------------------------------------------------------------------------------------


def test_the_help_lists_the_commands_and_how_to_begin() -> None:
    for option in ("--help", "-h"):
        reported = CliRunner().invoke(cli.orderbridge, [option])
        assert reported.exit_code == 0
        assert "orderbridge demo" in reported.output
        assert re.search(r"^ +Then with your own: +orderbridge init\n +orderbridge run$", reported.output, re.M)
        assert "\\b" not in reported.output
        assert all(re.search(rf"^  {name} ", reported.output, re.M) for name in COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_each_command_has_help_with_an_example(name: str) -> None:
    reported = CliRunner().invoke(cli.orderbridge, [name, "--help"])
    assert reported.exit_code == 0
    example = re.search(r"Example[^:]*:\s(.*)", reported.output, re.S)
    assert example
    assert f"orderbridge {name}" in " ".join(example[1].split())
    for option in cli.orderbridge.commands[name].params:
        assert isinstance(option, click.Argument) or option.opts[-1] in reported.output


def test_help_and_version_need_no_settings_and_write_nothing(tmp_path: Path) -> None:
    env, work = bare(tmp_path), tmp_path / "work"
    work.mkdir()
    for arguments in (("--help",), ("pull", "--help"), ("sandbox", "-h"), ("--version",)):
        done = command(*arguments, env=env, cwd=work)
        assert (done.code, done.err) == (0, "")
    assert re.match(r"orderbridge \d+\.\d+\.\d+ \(dlt [\d.]+, duckdb [\d.]+", done.out)
    assert "\n\tvariants,\n" in command("import", env=env, cwd=work).err
    assert not list(work.iterdir())
    assert not list((tmp_path / "home").iterdir())


# --- what cannot be --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["nonsense"], "No such command 'nonsense'"),
        (["pull", "coupons"], "'coupons' is not one of 'customers', 'promotions', 'price_lists', 'orders'"),
        (["run", "customers"], "unexpected extra argument"),
        (["pull", "--sweeps", "0"], "--sweeps"),
        (["pull", "--sweeps", "many"], "--sweeps"),
        (["pull", "--log", "xml"], "--log"),
        (["pull", "--nonsense"], "No such option"),
        (["status", "--max-age", "-1"], "--max-age"),
        (["status", "--max-age", "day"], "--max-age"),
        (["sandbox", "--fault", "stall"], "'stall' is not NAME=RATE"),
        (["sandbox", "--port", "70000"], "--port"),
        (["sandbox", "--records", "nowhere"], "nowhere"),
        (["demo", "--folder"], "--folder"),
    ],
)
def test_arguments_that_cannot_be_are_reported(arguments: list[str], says: str) -> None:
    reported = CliRunner().invoke(cli.orderbridge, arguments)
    assert reported.exit_code == 2
    assert says.casefold() in reported.stderr.casefold()
    assert reported.stdout == ""


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["sandbox", "--fault", "nonsense=1"], "Use one of: rate_429"),
        (["sandbox", "--fault", "stall=2"], "from 0 to 1"),
        (["sandbox", "--fault", "stall=x"], "from 0 to 1"),
        (["sandbox", "--reading", "nonsense=1"], "Use one of: "),
    ],
)
def test_a_sandbox_that_cannot_be_is_reported(arguments: list[str], says: str) -> None:
    reported = CliRunner().invoke(cli.orderbridge, arguments)
    assert isinstance(reported.exception, errors.UsageError)
    assert says in str(reported.exception)


GONE = "\0"
WRONG = [
    ("SOURCES__LEGACY__BASE_URL", GONE, "is not set"),
    ("SOURCES__LEGACY__API_KEY", GONE, "is not set"),
    ("SOURCES__LEGACY__ENVIRONMENT", GONE, "is not set"),
    ("SOURCES__PUBLIC_V1__BASE_URL", GONE, "is not set"),
    ("SOURCES__PUBLIC_V1__API_KEY", GONE, "is not set"),
    ("SOURCES__LEGACY__BASE_URL", f"http://{HIDDEN}.example", "https://"),
    ("SOURCES__PUBLIC_V1__BASE_URL", f"http://10.0.0.1/{HIDDEN}", "https://"),
    ("SOURCES__PUBLIC_V1__BASE_URL", f"https://{HIDDEN}.example/public/v1", "Remove /public/v1"),
    ("SOURCES__LEGACY__BASE_URL", HIDDEN, "https://"),
    ("SOURCES__LEGACY__ENVIRONMENT", HIDDEN, "sandbox, production"),
    ("SOURCES__LEGACY__PAGE_LIMIT", "0", "of at least 1"),
    ("SOURCES__LEGACY__PAGE_LIMIT", HIDDEN, "of at least 1"),
    ("SOURCES__PUBLIC_V1__PAGE_LIMIT", "0", "from 1 to 100"),
    ("SOURCES__PUBLIC_V1__PAGE_LIMIT", "101", "from 1 to 100"),
    ("SOURCES__PUBLIC_V1__PAGE_LIMIT", HIDDEN, "from 1 to 100"),
    ("SOURCES__LEGACY__API_KEY", f"{HIDDEN} {HIDDEN}", "contains a space"),
    ("SOURCES__PUBLIC_V1__API_KEY", HIDDEN, "no prefix"),
    ("SOURCES__PUBLIC_V1__API_KEY", f"brand_live_{HIDDEN}", "different environments"),
    ("SOURCES__LEGACY__API_KYE", HIDDEN, "Did you mean `SOURCES__LEGACY__API_KEY`?"),
    ("SOURCES__PUBLIC_V1__BASEURL", HIDDEN, "Did you mean `SOURCES__PUBLIC_V1__BASE_URL`?"),
    ("WAREHOUSE__PAHT", HIDDEN, "Did you mean `WAREHOUSE__PATH`?"),
    ("WAREHOUSE__PATH", " ", "Leave it out"),
]


@pytest.mark.parametrize(
    ("name", "value", "cure"), WRONG, ids=[f"{name}-{number}" for number, (name, *_) in enumerate(WRONG)]
)
def test_a_wrong_setting_is_named_and_not_shown(
    tmp_path: Path, pulled: tuple[Bridge, Done], name: str, value: str, cure: str
) -> None:
    made, _ = pulled
    os.environ.update(made.environment())
    del os.environ["PYTHONWARNINGS"]
    os.environ["DLT_PROJECT_DIR"] = str(tmp_path)
    os.environ.pop(name, None) if value == GONE else os.environ.update({name: value})
    asked = made.platform.state.requests
    with pytest.raises(errors.UsageError) as refused:
        made.pull()
    said = str(refused.value)
    assert refused.value.exit_code == 2
    assert name in said
    assert cure in said
    assert HIDDEN not in said
    if not name.endswith(("KYE", "BASEURL", "PAHT")):
        assert name.lower().replace("__", ".") in said
    assert made.platform.state.requests == asked


def test_a_live_key_with_a_sandbox_host_is_an_error(pulled: tuple[Bridge, Done]) -> None:
    made, _ = pulled
    live = {"SOURCES__PUBLIC_V1__API_KEY": f"brand_live_{HIDDEN}"}
    done = run(made, "pull", "orders", **live, SOURCES__PUBLIC_V1__BASE_URL="https://sandbox.platform.example")
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith("orderbridge: sources.public_v1.api_key (SOURCES__PUBLIC_V1__API_KEY) is for production")
    assert "SOURCES__PUBLIC_V1__BASE_URL" in done.err
    assert HIDDEN not in done.said


# --- streams and exit codes ------------------------------------------------------------------------------------------


def test_with_log_json_every_line_is_json(pulled: tuple[Bridge, Done]) -> None:
    made, done = pulled
    assert done.code == 0
    (reported,) = as_json(done.out)
    assert (reported["published"], reported["exit_code"], reported["warehouse"]) == (True, 0, str(made.path))
    lists = reported["lists"]
    assert isinstance(lists, list)
    assert {one["resource"]: (one["rows"], one["verdict"]) for one in lists} == {
        name: (SMALL[name], "complete") for name in RESOURCES
    }
    assert all(line["event"] for line in as_json(done.err))


def test_check_prints_ok_for_each_thing(pulled: tuple[Bridge, Done]) -> None:
    made, _ = pulled
    done = run(made, "check", "--log", "json")
    assert (done.code, done.err) == (0, "")
    lines = as_json(done.out)
    assert all(line.get("ok", True) for line in lines)
    assert {line["what"] for line in lines if "what" in line} >= {f"first page of {name}" for name in RESOURCES}


def test_check_with_a_wrong_key_ends_with_3_and_looks_at_the_rest(pulled: tuple[Bridge, Done]) -> None:
    made, _ = pulled
    done = run(made, "check", SOURCES__LEGACY__API_KEY=HIDDEN)
    assert done.code == 3
    assert "wrong first page of customers: legacy GET /customers: authentication failed" in done.out
    assert "Check sources.legacy.api_key" in done.out
    assert "ok    first page of orders" in done.out
    assert done.err == ""
    assert HIDDEN not in done.said


def test_a_closed_pipe_ends_without_a_traceback(pulled: tuple[Bridge, Done]) -> None:
    made, _ = pulled
    script = f'"{sys.executable}" -m pipelines.cli pull promotions | head -c 0'
    env = {**made.environment(), "PYTHONPATH": str(CHECKOUT)}
    done = subprocess.run(
        ["/bin/sh", "-c", script], env=env, cwd=made.folder, capture_output=True, text=True, timeout=300
    )
    assert "Traceback" not in done.stderr
    assert "internal error" not in done.stderr
    assert "Exception ignored" not in done.stderr


def test_the_readme_and_the_help_list_the_exit_codes_with_their_meanings() -> None:
    rows = re.findall(r"^\| ([\d, ]+) \| ([^|]+) \|", (CHECKOUT / "README.md").read_text("utf-8"), re.M)
    expected = [(code.label, code.meaning) for code in errors.ExitCode]
    assert [(code, meaning.replace("`", "")) for code, meaning in rows] == expected
    helped = CliRunner().invoke(cli.orderbridge, ["--help"]).output
    assert re.findall(r"^ +(\d+(?:, \d+)?) +(\S.*)$", helped.partition("Exit codes:")[2], re.M) == expected
    assert list(map(int, errors.ExitCode)) == [*range(10), 130]
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and issubclass(kind, errors.BridgeError)]
    assert {kind.exit_code for kind in kinds} <= set(errors.ExitCode)
    assert "bug" in errors.BridgeError.exit_code.meaning
    assert "settings" in errors.UsageError.exit_code.meaning
    assert "authentication" in errors.AccessError.exit_code.meaning
    assert "platform" in errors.PlatformError.exit_code.meaning
    assert "coverage" in errors.CoverageError.exit_code.meaning
    assert "lock" in errors.LockedError.exit_code.meaning


def test_reconcile_names_the_settings_that_choose_the_columns_of_an_order(pulled: tuple[Bridge, Done]) -> None:
    done = run(pulled[0], "reconcile")
    named = set(re.findall(r"RECONCILE__\w+", done.out))
    assert done.code == 0
    assert {"RECONCILE__ORDER_TOTAL", "RECONCILE__ORDER_STATUS"} <= named
    assert named <= {setting.variable for setting in SETTINGS.values()}


def test_the_progress_of_a_finished_list_is_its_total(
    pulled: tuple[Bridge, Done], caplog: pytest.LogCaptureFixture
) -> None:
    made, _ = pulled
    calls: dict[str, list[tuple[int, int | None, int]]] = {}

    def progress(resource: str, pages: int, rows: int, total: int | None, sweep: int) -> None:
        calls.setdefault(resource, []).append((rows, total, sweep))

    os.environ.update(made.environment())
    caplog.set_level("INFO", "orderbridge.steps")
    step = Reconciling()
    result = pull(PullOptions(), progress, step=step)
    read, sizes, findings, published = summary(result, step.result)
    assert read.startswith(f"read: {SMALL['customers']} customers (complete), ")
    assert sizes.startswith(f"reconciled: {SMALL['customers']} customers, ")
    assert re.match(r"findings: [0-9]+ .*; --verbose lists them", findings)
    assert published == f"published {made.path} (run {result.run_id})"
    result.held_back["orders"] = "row count dropped"
    assert "orders: row count dropped" in summary(result, None)
    assert {name: seen[-1][:2] for name, seen in calls.items()} == {name: (SMALL[name],) * 2 for name in RESOURCES}
    assert {total for _, total, sweep in calls["customers"] if sweep == 1} == {None}
    assert {total for _, total, sweep in calls["customers"] if sweep == 2} == {SMALL["customers"]}
    merging, *reconciling, publishing = caplog.messages
    assert (merging.partition(" ")[0], publishing) == ("merging", "publishing")
    assert {"reconciling customers", "reconciling orders"} <= set(reconciling)


# --- status ----------------------------------------------------------------------------------------------------------


def test_status_reports_lists_runs_and_ages(pulled: tuple[Bridge, Done]) -> None:
    made, _ = pulled
    done = run(made, "status")
    assert (done.code, done.err) == (0, "")
    for name in RESOURCES:
        assert re.search(rf"^  {name} +{SMALL[name]} rows  complete +\d+ min old$", done.out, re.M)
    assert re.search(r"^  run \S+  pull +ended .* UTC, exit 0$", done.out, re.M)


def test_status_for_a_monitor(pulled: tuple[Bridge, Done]) -> None:
    made, _ = pulled
    done = run(made, "status", "--json", "--max-age", "24")
    assert (done.code, done.err) == (0, "")
    reported = json.loads(done.out)
    assert {row["resource"]: (row["rows"], row["verdict"]) for row in reported["lists"]} == {
        name: (SMALL[name], "complete") for name in RESOURCES
    }
    assert (reported["too_old"], reported["failure"], reported["warehouse"]) == ([], None, str(made.path))


def test_status_without_a_warehouse_has_what_to_do(tmp_path: Path) -> None:
    done = command("status", env={**bare(tmp_path), "WAREHOUSE__PATH": str(tmp_path / "none.duckdb")}, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert f"there is no warehouse at {tmp_path / 'none.duckdb'}" in done.err
    assert "orderbridge pull" in done.err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_status_reports_of_lists_that_are_old_and_of_a_run_that_failed(
    tmp_path: Path, pulled: tuple[Bridge, Done]
) -> None:
    import duckdb

    made, _ = pulled
    copy = shutil.copyfile(made.path, tmp_path / "w.duckdb")
    with duckdb.connect(str(copy)) as connection:
        connection.execute(
            "UPDATE ops.coverage SET ended_at = ended_at - INTERVAL 25 HOUR WHERE resource IN ('orders', 'customers')"
        )
    broken = {"WAREHOUSE__PATH": str(copy), "SOURCES__LEGACY__API_KEY": HIDDEN}
    assert run(made, "pull", "customers", **broken).code == 3
    done = run(made, "status", "--json", "--max-age", "24", **broken)
    reported = json.loads(done.out)
    assert (done.code, sorted(reported["too_old"])) == (7, ["customers", "orders"])
    assert reported["failure"]["exit_code"] == 3
    assert "authentication failed" in reported["failure"]["message"]
    words = run(made, "status", "--max-age", "24", **broken)
    assert words.code == 7
    assert len(re.findall(r"25\.\d h old  TOO OLD$", words.out, re.M)) == 2
    assert "the last run failed and published nothing" in words.out
    assert run(made, "status", "--max-age", "26", **broken).code == 0


def test_a_list_that_was_tried_and_never_read_is_too_old_for_a_monitor(
    tmp_path: Path, pulled: tuple[Bridge, Done]
) -> None:
    import duckdb

    made, _ = pulled
    copy = shutil.copyfile(made.path, tmp_path / "w.duckdb")
    with duckdb.connect(str(copy)) as connection:
        connection.execute(
            "UPDATE ops.coverage SET verdict = 'incomplete', published = false WHERE resource = 'price_lists'"
        )
    done = run(made, "status", "--json", "--max-age", "24", WAREHOUSE__PATH=str(copy))
    reported = json.loads(done.out)
    assert (done.code, reported["too_old"], reported["never_read"]) == (7, ["price_lists"], ["price_lists"])
    words = run(made, "status", "--max-age", "24", WAREHOUSE__PATH=str(copy))
    assert re.search(r"^  price_lists  never read whole  TOO OLD$", words.out, re.M)
    assert run(made, "status", WAREHOUSE__PATH=str(copy)).code == 0


# --- demo and sandbox ------------------------------------------------------------------------------------------------


def test_the_demo_hides_settings_except_whose_folder_is_trusted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FILES__SHARED_FOLDER", str(tmp_path))
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "postgres")
    environment = demo._environment(tmp_path, "http://127.0.0.1:1")
    assert "WAREHOUSE__DESTINATION" not in environment
    assert environment["FILES__SHARED_FOLDER"] == str(tmp_path)


def test_the_demo_needs_no_settings_touches_its_folder_alone_and_ends_well(tmp_path: Path) -> None:
    env, work = bare(tmp_path), tmp_path / "work"
    work.mkdir()
    foreign = {"WAREHOUSE__DESTINATION": "postgres", "SOURCES__HTTP__PROXY": "http://127.0.0.1:1"}
    done = command("demo", "--folder", "shown", env={**env, **foreign}, cwd=work)
    assert (done.code, done.err) == (0, "")
    verdicts = re.findall(rf"^(?:{'|'.join(RESOURCES)}) +\d+ .* (\S+)$", done.out, re.M)
    assert verdicts == ["complete"] * 2 * len(RESOURCES)
    assert {path.relative_to(work).parts[0] for path in work.rglob("*")} == {"shown"}
    assert not list((tmp_path / "home").iterdir())
    assert {path.stat().st_mode & 0o077 for path in (work / "shown").rglob("*")} == {0}
    assert re.findall(r"^error +(.*)", done.out, re.M) == ["erp_customers  erp_code_duplicate         2"]
    assert re.search(r"^variants of the ERP: 38 as last confirmed, 0 different", done.out, re.M)
    assert (work / "shown" / "report.html").is_file()
    assert "make notebooks" in done.out
    # an import was killed and continued
    assert re.search(r"had created (2\d|3\d) customers when the import was killed", done.out)
    assert "The platform has 48 new customers, none of them twice." in done.out
    assert "19.367,25 in the file is 19367.25 on the platform, and 00038 is '00038'." in done.out
    assert re.search(r"^ +48  on the platform as sent$", done.out, re.M)
    (plan,) = (work / "shown").glob("plan-customers-*")
    assert (plan / "result.xlsx").is_file()
    for file, lines in (("confirmed", 50), ("rejected", 3), ("in_doubt", 0), ("unsent", 2)):
        rows = people_rows(plan / "results" / f"{file}.csv", RESULT_COLUMNS)
        assert len(list(rows)) == lines, file
    passwords = (plan / "passwords.csv").read_text("utf-8-sig").splitlines()[1:]
    assert len(passwords) == 48
    secrets = [row.rpartition(";")[2] for row in passwords]
    others = [path for path in (work / "shown").rglob("*") if path.is_file() and path.name != "passwords.csv"]
    assert not [path for path in others if any(secret.encode() in path.read_bytes() for secret in secrets)]
    assert not [secret for secret in secrets if secret in done.said]
    assert leftovers(done.out) == []
    assert leftovers_in(work / "shown") == {}


def test_the_demo_leaves_a_folder_of_others_alone(tmp_path: Path) -> None:
    env = bare(tmp_path)
    done = command("demo", "--folder", str(tmp_path), env=env, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "--folder NAME" in done.err
    assert (tmp_path / "home").is_dir()


def test_a_folder_that_the_demo_cannot_make_is_no_bug(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = command("demo", "--folder", "file/demo", env=bare(tmp_path), cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert "file/demo cannot be created: Not a directory" in done.err
    assert "--folder NAME" in done.err


def test_the_sandbox_prints_when_it_is_ready_and_ends_on_a_signal(tmp_path: Path) -> None:
    env = bare(tmp_path)
    with start("sandbox", "--customers", "3", "--fault", "error_503=0.1", env=env, cwd=tmp_path) as process:
        assert process.stdout is not None
        lines = [process.stdout.readline().strip() for _ in range(7)]
        assert re.fullmatch(r"ready http://127\.0\.0\.1:\d+", lines[0])
        reported = dict(line.split("=", 1) for line in lines[1:])
        warehouse = tmp_path / "w" / "warehouse.duckdb"
        done = command("pull", "customers", env={**env, **reported, "WAREHOUSE__PATH": str(warehouse)}, cwd=tmp_path)
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=300)
    assert (done.code, process.returncode, out, err) == (0, 0, "", "")
    assert re.search(r"^customers +3 +3", done.out, re.M)


def test_a_port_that_is_taken_is_an_error_with_a_hint(pulled: tuple[Bridge, Done], tmp_path: Path) -> None:
    port = pulled[0].platform.url.rsplit(":", 1)[1]
    done = command("sandbox", "--port", port, env=bare(tmp_path), cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert f"cannot listen on port {port}" in done.err
    assert "choose another one with --port" in done.err


@pytest.mark.parametrize("hours", ["0.0000001", "0"])
def test_an_age_of_less_than_a_second_is_an_age(pulled: tuple[Bridge, Done], hours: str) -> None:
    assert run(pulled[0], "status", "--max-age", hours).code == 7


def test_an_age_that_is_no_number_is_refused(pulled: tuple[Bridge, Done]) -> None:
    assert run(pulled[0], "status", "--max-age", "nan").code == 2


@pytest.mark.parametrize(
    ("arguments", "more", "code"),
    [
        (["check", "--log", "json"], {"SOURCES__LEGACY__API_KEY": "wrong"}, 3),
        (["pull", "--log", "json"], {"SOURCES__LEGACY__PAGE_LIMIT": "0"}, 2),
        (["pull", "coupons", "--log", "json"], {}, 2),
        (["status", "--json"], {"WAREHOUSE__PATH": "none.duckdb"}, 2),
        (["preview", "none.csv", "--json"], {}, 2),
        (["push", "none", "--json"], {}, 2),
    ],
)
def test_errors_are_json_too(
    pulled: tuple[Bridge, Done], arguments: list[str], more: dict[str, str], code: int
) -> None:
    done = run(pulled[0], *arguments, **more)
    assert done.code == code
    assert as_json(done.out if arguments[0] == "check" else done.err)


def test_a_closed_pipe_is_reported_by_its_signal(pulled: tuple[Bridge, Done]) -> None:
    made, _ = pulled
    with start("status", env=made.environment(), cwd=made.folder) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.wait(30) == 128 + signal.SIGPIPE
        assert process.stderr is not None
        assert process.stderr.read() == ""
