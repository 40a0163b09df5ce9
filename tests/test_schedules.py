"""The examples of schedules do what their page says: each is run here, by what would run it, in a folder of its own."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from orderbridge.sources.errors import ExitCode
from orderbridge.sources.settings.setting import SETTINGS, variable
from tests.pipelines.bridge import bridge, wait_for

CHECKOUT = Path(__file__).parents[1]
EXAMPLES = CHECKOUT / "docs/schedules"
ENVIRONMENT = EXAMPLES / "orderbridge.env.example"
SH = shutil.which("sh") or "/bin/sh"


def on_path(folder: Path, script: str) -> dict[str, str]:
    """An environment with a command `orderbridge` that notes its arguments, and then does what the script says."""
    file = folder / "bin/orderbridge"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f'#!{SH}\necho "$@" >>"{file.parent}/calls"\n{script}\n')
    file.chmod(0o755)
    return {"PATH": f"{file.parent}:{os.environ['PATH']}"}


def calls(folder: Path) -> list[str]:
    """The arguments of each call of that command."""
    file = folder / "bin/calls"
    return file.read_text().splitlines() if file.exists() else []


def sh(line: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [SH, "-c", line], cwd=cwd, env=environment, capture_output=True, text=True, timeout=300
    )


@contextmanager
def started(command: list[str], **more: Any) -> Iterator[subprocess.Popen[str]]:
    """A program, which is killed where the test has not brought about its end: `Popen` waits for that for ever."""
    with subprocess.Popen(command, text=True, **more) as process:
        try:
            yield process
        finally:
            process.kill()


def settings(path: Path) -> dict[str, str]:
    lines = path.read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if line and not line.startswith("#"))


def schedule() -> tuple[dict[str, str], list[list[str]]]:
    """Variables of the crontab, and its lines: five fields of time and a command."""
    lines = [
        one
        for one in (EXAMPLES / "orderbridge.cron").read_text("utf-8").splitlines()
        if one and one[0] != "#"
    ]
    variables = dict(line.split("=", 1) for line in lines if line[0].isupper())
    return variables, [line.split(maxsplit=5) for line in lines if not line[0].isupper()]


def test_the_environment_file_names_settings_and_reads_alike_in_sh_and_systemd(
    tmp_path: Path,
) -> None:
    reported = settings(ENVIRONMENT)
    known = {variable(key) for key in SETTINGS}
    assert set(reported) <= {*known, "DLT_PROJECT_DIR"}
    assert {name for name in known if name.endswith(("API_KEY", "BASE_URL"))} <= set(reported)
    done = sh(f"set -a; . {ENVIRONMENT}; env", tmp_path)
    assert {f"{name}={value}" for name, value in reported.items()} <= set(done.stdout.splitlines())
    assert not any(re.search(r"[\s$`\"'\\;&#]", value) for value in reported.values()), (
        "systemd has other quotes"
    )


def placed(text: str, tmp_path: Path) -> str:
    places = {
        "/srv/orderbridge/docs": CHECKOUT / "docs",
        "/srv/orderbridge": tmp_path / "srv",
        "/srv/shop": tmp_path / "shop",
        "/etc/orderbridge.env": tmp_path / "orderbridge.env",
    }
    for path, place in places.items():
        text = text.replace(path, str(place))
    return text


def test_the_crontab_runs_and_watches_a_platform(tmp_path: Path) -> None:
    variables, ((*_, night), (*_, monitor)) = schedule()
    assert (set(variables), "%" in night + monitor) == ({"SHELL", "PATH", "MAILTO"}, False)
    data, binaries = tmp_path / "shop", tmp_path / "srv/.venv/bin"
    data.mkdir(parents=True)
    binaries.parent.mkdir(parents=True)
    binaries.symlink_to(Path(sys.executable).parent)
    cron = {"PATH": placed(variables["PATH"], tmp_path), "HOME": str(tmp_path), "LOGNAME": "nobody"}
    with bridge(tmp_path) as made:
        reported = {name: value for name, value in made.environment().items() if "__" in name}
        reported |= {"WAREHOUSE__PATH": "warehouse.duckdb", "DLT_PROJECT_DIR": str(data)}
        assert {*reported, "SOURCES__LEGACY__LOGIN_MODE"} >= set(settings(ENVIRONMENT))
        (tmp_path / "orderbridge.env").write_text(
            "".join(f"{name}={value}\n" for name, value in reported.items())
        )
        done = sh(placed(night, tmp_path), tmp_path, **cron)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    # of dlt, which writes its id there
    written = {path.name: path for path in data.iterdir() if path.name != ".dlt"}
    assert set(written) == {"warehouse.duckdb", "nightly.jsonl", "report.html"}
    log = (data / "nightly.jsonl").read_text("utf-8")
    assert made.platform.legacy_key not in log
    assert '"published": true' in log
    watched = sh(placed(monitor, tmp_path), tmp_path, **cron)
    assert (watched.returncode, watched.stdout, watched.stderr) == (0, "", "")
    assert {
        stat.S_IMODE(path.stat().st_mode) for path in (*written.values(), data / "status.txt")
    } == {0o600}


ORGANIZATION = """
[ -z "$SOURCES__LEGACY__BASE_URL$DESTINATION__POSTGRES__CREDENTIALS" ] && [ "$LC_ALL$PWD" = "C$2" ] || exit 1
case "$2" in *bad) printf '%s\\n' '{"event": "error", "message": "the key is wrong\\n  Check it."}' >&2; exit 3;; *shy)
    [ -f tried ] || { touch tried; exit 4; };; *part)
    echo '{"event": "pull", "lists": [{"resource": "orders", "problem": "gone"}, {"resource": "x", "problem": ""}]}'
    exit 7;; *copy)
    case "$3" in run) echo '{"message": "the notification was not delivered: 403"}' >&2; exit 4;; esac
    echo '{"failure": null, "destination_failure": {"exit_code": 4}}';; *full) exit 2;; *deaf)
    echo '{"message": "the notification was not delivered: 403"}' >&2;;
    *slow) trap 'echo {}; exit 143' TERM; : >started; sleep 60 & wait;; esac
host=$(sed -n 's#.*//\\(.*\\)"#\\1#p' .dlt/secrets.toml)
[ -z "$host" ] || { mkdir "../$host" || exit 9; sleep 0.1; rmdir "../$host"; }
"""


def organizations(tmp_path: Path, *names: str) -> list[str]:
    """Projects, on two hosts in turn. Returns the command of a night, with an environment of its own."""
    for number, name in enumerate(names):
        (tmp_path / "projects" / name / ".dlt").mkdir(parents=True)
        settings = f'[sources.legacy]\nbase_url = "https://{("one", "two")[number % 2]}.example"\n'
        (tmp_path / "projects" / name / ".dlt/secrets.toml").write_text(
            "[torn" if name == "torn" else settings
        )
    environment = on_path(tmp_path, ORGANIZATION) | {
        "LC_ALL": "C",
        "ORDERBRIDGE": str(tmp_path / "bin/orderbridge"),
    }
    environment |= {
        "SOURCES__LEGACY__BASE_URL": "https://x",
        "DESTINATION__POSTGRES__CREDENTIALS": "postgresql://x",
    }
    command = [
        sys.executable,
        str(EXAMPLES / "organizations.py"),
        str(tmp_path / "projects"),
        "--wait-s=0",
    ]
    return ["env", "-i", *(f"{name}={value}" for name, value in environment.items()), *command]


def test_a_night_of_organizations_is_one_summary_and_one_failure_stops_no_other(
    tmp_path: Path,
) -> None:
    names = ("a", "b", "c-bad", "d", "e-shy", "f-part", "g-copy", "h-full", "i-deaf", "torn")
    night = organizations(tmp_path, *names)
    (tmp_path / "projects/d/nightly.jsonl").mkdir()  # which cannot be opened
    done = subprocess.run([*night, "--per-host=1"], capture_output=True, text=True, timeout=60)
    bad, unwritable, part, copy, full, deaf, total = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (7, "")
    assert bad == "c-bad: exit code 3: the key is wrong Check it."
    assert re.fullmatch("d: exit code 2: .*nightly.jsonl'", unwritable)
    assert part == "f-part: exit code 7: orders: gone"
    lost = "the notification was not delivered: 403"
    assert re.fullmatch(
        rf"g-copy: exit code 4: see nightly.jsonl \(\d+ MB are free in .*\); {lost}", copy
    )
    assert full.startswith(
        "h-full: exit code 2: nothing was written to nightly.jsonl: is the disk full? ("
    )
    assert deaf == f"i-deaf: exit code 0: {lost}"
    counts = "5 with exit code 0, 2 with exit code 2, 1 with exit code 3, 1 with exit code 4, 1 with exit code 7"
    assert re.fullmatch(f"10 organizations in . s: {counts}", total)
    ran = sorted(name for name in (*names, "e-shy") if name != "d")
    line = f"--project {tmp_path}/projects/{{}} run --log json --report report.html"
    assert sorted(call for call in calls(tmp_path) if " run " in call) == [
        line.format(name) for name in ran
    ]


def test_the_command_of_a_night_follows_two_dashes_and_quiet_prints_problems_alone(
    tmp_path: Path,
) -> None:
    night = organizations(tmp_path, "a")
    page = (CHECKOUT / "docs/organizations.md").read_text("utf-8")
    (monitor,) = re.findall(
        r"^ExecStart=.*/organizations.py /srv/projects --quiet -- (.*)$", page, re.M
    )
    done = subprocess.run(
        [*night, "--quiet", "--", *monitor.split()], capture_output=True, text=True, timeout=60
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert calls(tmp_path) == [f"--project {tmp_path}/projects/a {monitor}"]
    shutil.rmtree(tmp_path / "projects/a")
    done = subprocess.run([*night, "--quiet"], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stdout, "there is no project" in done.stderr) == (2, "", True)


def test_a_night_that_is_stopped_stops_its_runs_and_says_what_was_not_started(
    tmp_path: Path,
) -> None:
    night = organizations(tmp_path, "a-slow", "b")
    with started([*night, "--at-once=1"], stdout=subprocess.PIPE) as process:
        wait_for((tmp_path / "projects/a-slow/started").exists)
        process.terminate()
        said = process.communicate(timeout=30)[0].splitlines()
    assert process.returncode == 143
    assert said[0].startswith("a-slow: exit code 143: see nightly.jsonl (")
    assert said[1].endswith("1 with exit code 143, 1 not started (b)")
    assert (tmp_path / "projects/a-slow/nightly.jsonl").read_text() == "{}\n"


def test_the_summary_of_a_night_has_the_findings_and_why_lists_are_old() -> None:
    reason = runpy.run_path(str(EXAMPLES / "organizations.py"))["reason"]
    named = [("error", "login_missing"), ("error", "x"), ("info", "y")]
    found = [
        {"severity": severity, "entity": "customers", "rule": rule, "count": 8}
        for severity, rule in named
    ]
    status = {
        "event": "status",
        "max_age_h": 26.0,
        "too_old": ["customers", "orders"],
        "problems": {},
        "failure": None,
    }
    unread = "not read within 26 h: customers, orders"
    for event, words in (
        (
            {"event": "reconcile", "findings": found},
            "8 error customers.login_missing; 8 error customers.x",
        ),
        ({"event": "reconcile", "findings": found[2:]}, "8 info customers.y"),
        (
            status | {"failure": {"message": "cannot connect"}},
            f"{unread}; the last run failed: cannot connect",
        ),
        (status | {"problems": {"orders": "gone"}}, f"{unread}; orders: gone"),
        (
            {"event": "pull", "lists": [{"resource": one, "problem": "no key"} for one in "ab"]},
            "a, b: no key",
        ),
    ):
        assert reason(json.dumps(event)) == words


def night(folder: Path, script: str) -> tuple[subprocess.CompletedProcess[str], str]:
    """How nightly.sh ends with such a command, and the commands that it called."""
    done = sh(
        f"sh {EXAMPLES / 'nightly.sh'}", folder, **on_path(folder, script), ORDERBRIDGE_WAIT_S="0"
    )
    return done, " ".join(line.split()[0] for line in calls(folder))


NIGHTS = [
    ("exit 0", 0, "", "run report"),
    ("echo {}; exit 2", 2, "a setting", "run"),
    ("exit 3", 3, "does not accept a key", "run report"),
    ("exit 4", 4, "failed on every attempt", "run status run status run status report"),
    ("exit 5", 0, "ops.quarantine", "run report"),
    ("exit 6", 6, "exit code 6", "run"),
    ("exit 7", 7, "orderbridge status", "run report"),
    ("exit 8", 8, "another run held the lock", "run run run"),
    ("exit 9", 9, "nobody has accepted", "run report"),
    ("exit 143", 143, "stopped by a signal (143); the next run goes on", "run"),
    ("test -e second || { : >second; exit 4; }", 0, "", "run status run report"),
    ("exit 4", 4, "published; the copy to the destination failed", "run status report"),
]
COPY_FAILED = """status) echo '{"failure": null, "destination_failure": {"exit_code": 4}}';;"""


@pytest.mark.parametrize(("script", "ends", "says", "calls"), NIGHTS)
def test_a_night_ends_as_documented_and_is_tried_again_where_that_may_help(
    tmp_path: Path, script: str, ends: int, says: str, calls: str
) -> None:
    status = COPY_FAILED if "the copy" in says else ""
    done, called = night(tmp_path, f"case $1 in run) {script};; {status} esac")
    assert (done.returncode, done.stdout) == (ends, "")
    assert (says in done.stderr) if says else done.stderr == ""
    assert called == calls
    page = (CHECKOUT / "docs/reference/exit-codes.md").read_text("utf-8")
    assert re.search(rf"^\| [\d, ]*{script.split()[-1] if says else 0}[\d, ]* \|.*$", page, re.M)


def test_the_mail_of_a_night_begins_with_what_happened_and_a_command_that_works(
    tmp_path: Path,
) -> None:
    newer = tmp_path / "newer.sqlite"
    with closing(sqlite3.connect(newer)) as ledger:
        ledger.execute("PRAGMA user_version = 99")
    newer.chmod(0o600)
    copy = {
        "WAREHOUSE__DESTINATION": "duckdb",
        "DESTINATION__DUCKDB__CREDENTIALS": f"{tmp_path}/nowhere/copy.duckdb",
    }
    troubles: list[tuple[dict[str, str], int, str, str]] = [
        (
            {"SOURCES__LEGACY__API_KEY": "revoked"},
            3,
            "customers, promotions not read: legacy GET /customers: authentication failed",
            "Replace the key in SOURCES__LEGACY__API_KEY, then: orderbridge check",
        ),
        (
            {"SOURCES__LEGACY__BASE_URL": "http://127.0.0.1:9"},
            2,
            "this warehouse holds the data of another source",
            "orderbridge questions source",
        ),
        (
            {"LEDGER__PATH": f"{newer}"},
            2,
            "published; the ledger was not read",
            "Install that version or a newer one (in a checkout: git pull && make setup), then run it again: "
            "orderbridge run",
        ),
        (
            copy,
            4,
            "published; the copy to the destination failed",
            "orderbridge reconcile",
        ),
    ]
    with bridge(tmp_path) as made:
        assert made.command("run").code == 0
        for more, code, happened, todo in troubles:
            ended = made.command("run", "--log", "json", **more)
            (tmp_path / "run").write_text(ended.said)
            (tmp_path / "status").write_text(made.command("status", "--json", **more).said)
            script = f'cat "{tmp_path}/$1"; [ $1 = status ] || exit {ended.code}'
            done, _ = night(tmp_path, f"case $1 in run | status) {script};; esac")
            first, second, *_ = done.stderr.splitlines()
            assert (done.returncode, first.partition(":")[0]) == (code, "orderbridge"), done.stderr
            assert happened in first
            assert second == f"next: {todo}"
            if todo == "orderbridge questions source":
                assert made.command(*todo.split()[1:], **more).code == 0
        (made.folder / "copy").mkdir()
        copied = copy | {"DESTINATION__DUCKDB__CREDENTIALS": "copy/copy.duckdb"}
        assert made.command("reconcile", **copied).code == 0
        assert (made.folder / "copy/copy.duckdb").exists()
        assert made.command("run").code == 0


def test_a_night_mails_the_words_of_its_failure_and_nothing_of_earlier_ones(
    tmp_path: Path,
) -> None:
    words, lost = (
        'año: the key "a\\b" is wrong\n  Unset it.',
        "the notification was not delivered: 403",
    )
    event = json.dumps({"event": "error", "message": words, "exit_code": 3}, ensure_ascii=False)
    (tmp_path / "nightly.jsonl").write_text(
        '{"event": "error", "message": "of yesterday", "exit_code": 3}\n'
    )
    todo = "orderbridge init sources.legacy.api_key"
    following = json.dumps({"event": "next", "message": todo})
    (tmp_path / "said").write_text(f"{following}\n{event}\n", "utf-8")
    done, _ = night(tmp_path, f"case $1 in run) cat {tmp_path}/said; exit 3;; esac")
    assert done.stderr.splitlines()[1:] == [f"next: {todo}", *words.splitlines()]
    assert all(json.loads(line) for line in (tmp_path / "nightly.jsonl").read_text().splitlines())
    done, _ = night(tmp_path, "case $1 in run) exit 2;; esac")
    happened, todo = done.stderr.splitlines()
    full = "orderbridge: nothing was written to nightly.jsonl: is the disk full? ("
    assert happened.startswith(full)
    assert happened.endswith(f" MB are free in {tmp_path})")
    assert todo == f"next: Free space in {tmp_path}, then run it again: orderbridge run"
    done, _ = night(
        tmp_path, f"""case $1 in run) echo '{{"event": "log", "message": "{lost}"}}';; esac"""
    )
    assert (done.returncode, done.stderr) == (0, f"orderbridge: {lost}\n")


def test_a_night_that_is_stopped_while_it_writes_the_report_ends_with_143(tmp_path: Path) -> None:
    done, called = night(tmp_path, "case $1 in report) kill $PPID; sleep 60 & wait;; esac")
    assert (done.returncode, called, "stopped by a signal" in done.stderr) == (
        143,
        "run report",
        True,
    )


@pytest.mark.parametrize("pause", ["", "sleep 0.5; "], ids=["at once", "late"])
@pytest.mark.parametrize("script", ["nightly.sh", "import.sh x f"])
def test_a_signal_stops_the_command_and_a_killed_one_has_no_error_of_another_night(
    tmp_path: Path, script: str, pause: str
) -> None:
    name, *arguments = script.split()
    text = (EXAMPLES / name).read_text("utf-8")
    assert text.count("child=$!") == 1
    # the signal comes before the script knows which process to stop
    (tmp_path / name).write_text(text.replace("child=$!", f"{pause}child=$!"))
    env = on_path(
        tmp_path,
        "trap 'sleep 0.2; : >ended; exit 143' TERM\n: >started\n"
        "while kill -0 $PPID; do sleep 0.05; done",
    )
    command = [SH, name, *arguments]
    with started(command, cwd=tmp_path, env=env, stderr=subprocess.PIPE) as process:
        wait_for((tmp_path / "started").exists)
        process.terminate()
        said = process.communicate(timeout=30)[1]
    assert (process.returncode, (tmp_path / "ended").exists(), len(calls(tmp_path))) == (
        143,
        True,
        1,
    )
    assert "stopped by a signal (143); the next run goes on" in said
    for log in ("nightly.jsonl", "imports.jsonl"):
        (tmp_path / log).write_text('{"event": "error", "message": "of yesterday"}\n')
    done = subprocess.run(
        command, cwd=tmp_path, env=on_path(tmp_path, "kill -9 $$"), capture_output=True, text=True
    )
    assert (done.returncode, "killed (memory?); the next run goes on\n" in done.stderr) == (
        137,
        True,
    )
    assert "yesterday" not in done.stderr
    assert len((tmp_path / "imports.jsonl").read_text().splitlines()) == 1


def test_systemd_takes_the_units(tmp_path: Path) -> None:
    analyze = shutil.which("systemd-analyze")
    if analyze is None:
        pytest.skip("no systemd here")
    (tmp_path / "srv/.venv/bin").mkdir(parents=True)
    for name in ("orderbridge", "python"):
        (tmp_path / "srv/.venv/bin" / name).symlink_to(SH)
    units = [*EXAMPLES.glob("*.service"), *EXAMPLES.glob("*.timer")]
    assert len(units) == 6
    for unit in units:
        (tmp_path / unit.name).write_text(placed(unit.read_text("utf-8"), tmp_path))
    for unit in units:
        done = subprocess.run(
            [analyze, "verify", "--man=no", str(tmp_path / unit.name)],
            capture_output=True, text=True, timeout=300, env={"PATH": os.environ["PATH"], "HOME": str(tmp_path)},
        )  # fmt: skip
        reported = [
            line for line in done.stderr.splitlines() if unit.name.partition(".")[0] in line
        ]
        assert (done.returncode, reported) == (0, [])


def test_units_are_hardened_and_the_monitor_gets_no_keys() -> None:
    for name in ("orderbridge.service", "orderbridge-monitor.service"):
        text = (EXAMPLES / name).read_text("utf-8")
        hardening = "CapabilityBoundingSet= NoNewPrivileges=yes LimitCORE=0 ProtectSystem=strict"
        assert {*hardening.split(), "SystemCallFilter=@system-service"} <= set(text.splitlines())
        assert re.search(r"^RestrictAddressFamilies=(none|AF_INET AF_INET6 AF_UNIX)$", text, re.M)
    assert "PrivateNetwork=yes" in text
    monitor = schedule()[1][1][-1]
    assert not [one for one in (text, monitor) if "orderbridge.env" in one or "API_KEY" in one]


def test_a_unit_tries_again_for_what_may_pass_and_for_nothing_else() -> None:
    text = (EXAMPLES / "orderbridge.service").read_text("utf-8")
    good = set(re.findall(r"^SuccessExitStatus=(.*)$", text, re.MULTILINE)[0].split())
    failed = set(re.findall(r"^RestartPreventExitStatus=(.*)$", text, re.MULTILINE)[0].split())
    assert good == {"5"}
    assert re.search("^ExecStopPost=.* report ", text, re.MULTILINE), (
        "a run that ended with 7 or 9 has published"
    )
    assert {str(code.value) for code in ExitCode if 0 < code.value < 10} - good - failed == {
        "4",
        "8",
    }


WORKFLOW: dict[Any, Any] = yaml.safe_load((EXAMPLES / "github-actions.yml").read_text("utf-8"))
STEPS = {one["name"]: one for one in WORKFLOW["jobs"]["nightly"]["steps"] if "name" in one}


def test_the_workflow_gives_each_secret_to_the_step_that_needs_it() -> None:
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert WORKFLOW["concurrency"]["cancel-in-progress"] is False
    job = WORKFLOW["jobs"]["nightly"]
    assert "secrets." not in str(job["env"])
    for one in job["steps"]:
        assert "secrets." not in str(one) or (one["env"] and "${{" not in one["run"])
        assert "warehouse.duckdb" not in str(one.get("with", ""))
    settings_given = {*job["env"], *STEPS["Pull, reconcile, report"]["env"]}
    assert settings_given == {*settings(ENVIRONMENT)} - {"SOURCES__LEGACY__LOGIN_MODE"}


def test_the_workflow_keeps_the_warehouse_encrypted(tmp_path: Path) -> None:
    gpg, bash = shutil.which("gpg"), shutil.which("bash")
    if gpg is None or bash is None:
        pytest.skip("no gpg here")
    warehouse, home = tmp_path / "data/warehouse.duckdb", tmp_path / "g"
    for folder in (home, warehouse.parent):
        folder.mkdir(mode=0o700)
    warehouse.write_bytes(before := b"una.persona@example.com" * 100)
    environment = {"PATH": os.environ["PATH"], "GNUPGHOME": str(home)}

    def ends(name: str, passphrase: str) -> int:
        script, given = (
            [bash, "-e", "-o", "pipefail", "-c", STEPS[name]["run"]],
            {"PASSPHRASE": passphrase},
        )
        return subprocess.run(
            script, cwd=tmp_path, env=environment | given, capture_output=True
        ).returncode

    try:
        assert ends("Encrypt", "a long one") == 0
        assert b"persona" not in (tmp_path / "warehouse.gpg").read_bytes()
        warehouse.unlink()
        assert (ends("Decrypt", "another") == 0, warehouse.exists()) == (False, False)
        assert (ends("Decrypt", "a long one"), warehouse.read_bytes()) == (0, before)
    finally:
        subprocess.run(["gpgconf", "--kill", "all"], env=environment, check=False)


@pytest.mark.parametrize(
    ("code", "ends_with", "message"),
    [
        (0, 0, ""),
        (5, 0, "need a correction:\n1 rejected\nresult: r.xlsx\n"),
        (5, 5, "as they were sent:\n1 rejected\nresult: r.xlsx\n"),
        (6, 6, "is unknown:\n1 rejected\nresult: r.xlsx\n"),
        (4, 4, "goes on"),
        (2, 2, 'exit code 2: no column "x"\n'),
    ],
)
def test_a_drop_folder_keeps_what_was_not_done_and_moves_the_rest(
    tmp_path: Path, code: int, ends_with: int, message: str
) -> None:
    lines = {"rejected.plan": 1, "unsent.blocked": int(ends_with == 5)}
    event: dict[str, Any] = {
        "event": "import",
        "message": "1 rejected\nresult: r.xlsx",
        "kind": "x",
        "lines": lines,
    }
    said = json.dumps(
        {"event": "error", "message": 'no column "x"'}
        if code == 2
        else event | {"plan": {"kind": "x"}}
    )
    environment = on_path(
        tmp_path, f"printf '%s\\n' '{said}'; case \"$3\" in *b.xlsx) exit {code};; esac"
    )
    drop = tmp_path / "drop folder"
    drop.mkdir()
    for name in ("a.csv", "b.xlsx", "c.part"):
        (drop / name).touch()
    line = f"{SH} {EXAMPLES}/import.sh customers '{drop}'"
    done = sh(line, tmp_path, **environment, ORDERBRIDGE_IMPORT="--confirm 9")
    assert done.returncode == ends_with
    assert (message in done.stderr) if message else not done.stderr
    expected = [
        f"import customers {drop}/{name} --json --confirm 9" for name in ("a.csv", "b.xlsx")
    ]
    assert calls(tmp_path) == expected
    kept = {path.name for path in drop.glob("*.*")}
    assert kept == {"c.part", *(["b.xlsx"] if ends_with else [])}
    assert len(list((drop / "done").iterdir())) == 2 - bool(ends_with)


def test_an_import_of_no_file_is_named_and_the_page_imports_what_it_names(
    tmp_path: Path,
) -> None:
    environment = on_path(tmp_path, "")
    for arguments in ("customers ''", ""):
        done = sh(f"{SH} {EXAMPLES}/import.sh {arguments}", tmp_path, **environment)
        assert (done.returncode, "no file to import" in done.stderr, calls(tmp_path)) == (
            2,
            True,
            [],
        )
    for file in (
        "articulos.csv",
        "2026-11-24/clientes.csv",
        "2026-11-25/clientes.csv",
        "drop/clientes.csv",
    ):
        (tmp_path / "erp" / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "erp" / file).touch()
    (tmp_path / "shop").mkdir(parents=True)
    shutil.copy(ENVIRONMENT, tmp_path / "orderbridge.env")
    page = (CHECKOUT / "docs/nightly-import.md").read_text("utf-8")
    for line in re.findall(r"^(?:[\d*/]+ ){5}(.*import\.sh.*)$", page, re.MULTILINE):
        there = placed(line, tmp_path).replace("/srv/erp", f"{tmp_path}/erp")
        assert sh(there, tmp_path, **environment).returncode == 0
    imported = [
        Path(call.split()[2]).relative_to(tmp_path / "erp").as_posix() for call in calls(tmp_path)
    ]
    assert imported == ["articulos.csv", "2026-11-25/clientes.csv", "drop/clientes.csv"]
