"""What is installed and from where, what a machine must have, and what the checks of a change run."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from unittest import mock

import pytest
import yaml
from click.testing import CliRunner

from orderbridge.pipelines.cli.main import orderbridge
from orderbridge.sources.errors import UsageError
from tests.conftest import pytest_runtest_makereport

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("sources", "sandbox", "transforms", "pipelines")
EXAMPLES = [*CHECKOUT.glob("docs/**/*.yml"), *CHECKOUT.glob(".github/workflows/*.yml")]
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))
REGISTRY = re.compile(
    r"://\S*(py(pi|thonhosted)|registry|artifact|/simple\b)|index-url\s*=", re.IGNORECASE
)
INSTALLS_BY_NAME = re.compile(
    r"(?:pipx?|uvx?|tool|add|install)\b[^\n|;]*[\s'\"]orderbridge(?:\[|['\"\s]*(?:$|[=<>~`]))", re.M
)
POSIX_MODULES = re.compile(r"^(import|from) (fcntl|grp|pty|pwd|resource|termios|tty)\b", re.M)


def test_each_package_is_in_the_wheel_and_lies_in_the_checkout() -> None:
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]
    assert wheel["force-include"] == {name: f"orderbridge/{name}" for name in PACKAGES}
    for name in PACKAGES:
        spec = find_spec(f"orderbridge.{name}")
        assert spec is not None
        assert Path(spec.origin or "").resolve().is_relative_to(CHECKOUT / name)


def test_a_former_name_of_a_package_says_the_new_one(tmp_path: Path) -> None:
    for name in PACKAGES:
        done = subprocess.run(
            [sys.executable, "-c", f"import {name}"], cwd=CHECKOUT, capture_output=True, text=True
        )
        assert f"ImportError: Import orderbridge.{name}, not {name}." in done.stderr


@pytest.mark.skipif(
    not (CHECKOUT / ".git").exists() or shutil.which("git") is None, reason="no checkout of git"
)
def test_no_tracked_file_names_a_registry_or_installs_an_unregistered_name() -> None:
    """Whoever registers `orderbridge` there would run code on the machines of our users."""
    listed = subprocess.run(
        ["git", "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True, text=True
    ).stdout
    for path in (CHECKOUT / name for name in listed.split("\0") if name):
        if path.is_file() and path != Path(__file__):
            text = path.read_text("utf-8", errors="replace")
            assert not REGISTRY.search(text), path
            assert not INSTALLS_BY_NAME.search(text), path


def pinned(file: str) -> dict[str, set[str]]:
    pins: dict[str, set[str]] = {}
    for name, version in re.findall(
        r"^([\w.-]+)==([^\s;]+)", (CHECKOUT / file).read_text("utf-8"), re.MULTILINE
    ):
        pins.setdefault(canonical(name), set()).add(version)
    return pins


def canonical(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[^\w.-]", requirement)[0]).lower()


def test_requirements_are_pinned_by_hash_and_name_no_host() -> None:
    files = list(CHECKOUT.glob("requirements*.txt"))
    assert len(files) > 5
    for file in files:
        text = file.read_text("utf-8")
        assert "://" not in text
        assert " @ " not in text
        assert all(
            "==" in entry and "--hash=sha256:" in entry
            for entry in re.split(r"\n(?=\S)", text.strip())
        ), file


def test_direct_dependencies_are_pinned_and_the_requirements_files_agree() -> None:
    groups, development = PROJECT["dependency-groups"], pinned("requirements-dev.txt")
    assert {"include-group": "build"} in groups["dev"]
    tools = [
        requirement
        for requirement in (*groups["dev"], *groups["build"])
        if isinstance(requirement, str)
    ]
    runtime = PROJECT["project"]["dependencies"]
    for file, wanted in (
        ("requirements.txt", runtime),
        ("requirements-dev.txt", [*runtime, *tools]),
    ):
        pins = pinned(file)
        for requirement in wanted:
            assert canonical(requirement) in pins, f"{requirement}: run make lock"
            if exact := re.fullmatch(r"[\w.-]+==([^;\s]+)", requirement):
                assert pins[canonical(requirement)] == {exact[1]}, f"{requirement}: run make lock"
    for file in ("requirements.txt", "requirements-build.txt", "requirements-notebooks.txt"):
        assert pinned(file).items() <= development.items(), file
    (backend,) = PROJECT["build-system"]["requires"]
    assert {"pip", canonical(backend)} <= set(pinned("requirements-build.txt"))


def test_windows_is_told_of_wsl_before_a_module_that_it_lacks_is_imported(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for path in chain.from_iterable((CHECKOUT / name).rglob("*.py") for name in PACKAGES):
        # it needs duckdb, which `main` does not import
        is_late = path.is_relative_to(CHECKOUT / "pipelines/warehouse")
        assert is_late or not POSIX_MODULES.search(path.read_text("utf-8")), path
    monkeypatch.setattr("orderbridge.pipelines.cli.main._IS_WINDOWS", True)
    result = CliRunner().invoke(orderbridge, ["status"])
    assert isinstance(result.exception, UsageError)
    assert "WSL 2" in str(result.exception)


def test_actions_are_pinned_by_commit() -> None:
    uses = [use for file in EXAMPLES for use in re.findall(r"uses: *(.*)", file.read_text("utf-8"))]
    assert len(uses) > 5
    assert not [
        use for use in uses if not re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use)
    ]


def test_an_environment_that_is_a_link_is_not_emptied(tmp_path: Path) -> None:
    for name in ("requirements-build.txt", "requirements.txt", "pyproject.toml", "kept/a"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / ".venv").symlink_to("kept")
    command = ["make", "-f", str(CHECKOUT / "Makefile"), f"PYTHON={sys.executable}", "setup"]
    made = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert made.returncode == 2
    assert "is a symbolic link" in made.stderr
    assert (tmp_path / "kept/a").exists()


FAKE_PYTHON = """#!/bin/sh
if test "$2" = venv; then
    mkdir -p "$4/bin"
    cp "$0" "$4/bin/python"
fi
while test $# -gt 1; do shift; done
echo "$1" >>installed
"""


class FakeCheckout:
    """The Makefile with requirements that are empty, and a Python that only notes what it should install."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "fake-python"
        self.python.write_text(FAKE_PYTHON)
        self.python.chmod(0o755)
        for name in PACKAGES:
            (folder / f"src/orderbridge/{name}").mkdir(parents=True)
            (folder / f"src/orderbridge/{name}/__init__.py").touch()
        for file in (*CHECKOUT.glob("requirements*.txt"), CHECKOUT / "pyproject.toml"):
            (folder / file.name).touch()

    def make(self, *words: str, changed: str = "") -> list[str]:
        """The last words of what was installed, after a change of a file."""
        for path in (self.folder, *self.folder.rglob("*")):
            os.utime(path, (1, 1))
        if changed:
            (self.folder / changed).touch()
        installed = self.folder / "installed"
        installed.unlink(missing_ok=True)
        command = ["make", "-s", "-f", str(CHECKOUT / "Makefile"), f"PYTHON={self.python}", *words]
        subprocess.run(command, cwd=self.folder, check=True, capture_output=True)
        return installed.read_text().split("\n")[:-1] if installed.exists() else []


def test_extras_stay_chosen_also_where_the_environment_is_made_anew(tmp_path: Path) -> None:
    checkout = FakeCheckout(tmp_path)
    base, project = ["requirements-build.txt", "requirements.txt"], "."
    postgres, dask = "requirements-postgres.txt", "requirements-dask.txt"

    def installed(*words: str, changed: str = "") -> list[str]:
        made = checkout.make(*words, changed=changed)
        return [line for line in made if line.endswith(".txt") or line == project]

    assert installed("setup", "EXTRAS=postgres") == [*base, postgres, project]
    assert installed("setup") == []
    assert installed("setup", changed="requirements.txt") == [*base, postgres, project]
    assert installed("dev", changed=postgres) == [postgres, "requirements-dev.txt", postgres]
    assert installed("setup", "EXTRAS=dask") == [dask]
    assert installed("setup", changed="requirements.txt") == [*base, dask, postgres, project]
    checkout.make("clean")
    assert installed("setup") == [*base, dask, postgres, project]
    assert installed("setup", "EXTRAS=") == [*base, project]
    assert installed("setup", changed="requirements.txt") == [*base, project]


def test_an_extra_that_does_not_exist_is_named(tmp_path: Path) -> None:
    command = ["make", "-f", str(CHECKOUT / "Makefile"), "setup", "EXTRAS=postgresql"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 2
    assert "there is no extra postgresql, only dask postgres s3" in done.stderr


def test_extras_add_to_the_requirements_and_can_be_installed_beside_each_other() -> None:
    (names,) = re.findall(
        r"^PACKAGE_EXTRAS := (.*)", (CHECKOUT / "Makefile").read_text("utf-8"), re.MULTILINE
    )
    assert set(names.split()) == set(PROJECT["project"]["optional-dependencies"])
    pins = pinned("requirements.txt")
    for name in names.split():
        added = pinned(f"requirements-{name}.txt")
        assert added, name
        assert not added.keys() & pinned("requirements.txt").keys(), name
        for package, versions in added.items():
            assert pins.setdefault(package, versions) == versions, f"{package}: run make lock"


def test_the_requirements_have_a_duckdb_that_dlt_and_ibis_read_with() -> None:
    for file in ("requirements.txt", "requirements-dev.txt"):
        assert {version.split(".")[0] for version in pinned(file)["duckdb"]} == {"1"}
    assert pinned("requirements-duckdb2.txt").keys() == {"duckdb"}


def test_no_page_installs_over_a_checkout() -> None:
    """It would replace the editable install by a copy, which `git pull` no longer changes."""
    over = re.compile(r"\binstall\b[^\n]*(/path/to/orderbridge\b|[\s'\"]\.\[|orderbridge\[)")
    for page in (*CHECKOUT.glob("*.md"), *CHECKOUT.glob("docs/**/*.md")):
        assert not over.search(page.read_text("utf-8")), page


def test_every_installation_of_a_checkout_uses_hashes() -> None:
    makefile = (CHECKOUT / "Makefile").read_text("utf-8")
    (install,) = re.findall(r"^INSTALL := (.*)", makefile, re.MULTILINE)
    files = [
        CHECKOUT / "Makefile",
        *CHECKOUT.glob(".ci/*"),
        *CHECKOUT.glob("*.md"),
        CHECKOUT / "docs/schedules.md",
    ]
    texts = [
        path.read_text("utf-8")
        for path in (*files, CHECKOUT / "docs/orchestrators/Dockerfile", *EXAMPLES)
    ]
    joined = (
        text.replace("\\\n", " ").replace("$(INSTALL)", install).replace(" && ", "\n")
        for text in texts
    )
    found = re.compile(r"\b(pip|PIP\)|pip\[@\]\}\") .*\b(install|wheel)\b")
    lines = [
        line
        for line in chain.from_iterable(text.splitlines() for text in joined)
        if found.search(line)
    ]
    assert len(lines) > 12
    for line in lines:
        # other tools, each in an environment of its own
        if "install $${one#*:}" in line or "install --only-binary :all: dbt-duckdb" in line:
            continue
        assert "--require-hashes" in line or "--no-deps" in line, line
        assert "--no-deps" not in line or "--no-build-isolation" in line or ".whl" in line, line


VULNERABLE = {"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}


def test_the_audit_is_never_silently_green(capsys: pytest.CaptureFixture[str]) -> None:
    for result, code, words in (
        (
            {"dependencies": [{"name": "a", "version": "1", "vulns": []}]},
            0,
            "1 packages, no known vulnerability",
        ),
        ({"dependencies": [VULNERABLE]}, 1, "a 1: PYSEC-1, fixed in 2"),
        ({"dependencies": [{"name": "a", "skip_reason": "not on the index"}]}, 75, "NOT CHECKED"),
        (None, 75, "NOT CHECKED: requirements.txt: no result: ConnectionError: no route"),
    ):

        def pip_audit(line: list[str], **_: object) -> subprocess.CompletedProcess[str]:
            (output,) = [
                Path(word.removeprefix("--output="))
                for word in line
                if word.startswith("--output=")
            ]
            if result is not None:  # noqa: B023
                output.write_text(json.dumps(result))  # noqa: B023
            return subprocess.CompletedProcess(line, 1, "", "ConnectionError: no route\n")

        arguments = mock.patch.object(sys, "argv", ["audit", "pip-audit", "requirements.txt"])
        with arguments, mock.patch("subprocess.run", pip_audit), pytest.raises(SystemExit) as ended:
            runpy.run_path(str(CHECKOUT / ".ci/audit"), run_name="__main__")
        assert (ended.value.code, words in "".join(capsys.readouterr())) == (code, True)


@pytest.mark.parametrize(("failing", "code"), [("none", 0), ("test", 2), ("site", 2)])
def test_the_script_of_ci_ends_as_its_checks_do(tmp_path: Path, failing: str, code: int) -> None:
    for name, script in {
        "make": f"echo $* >>{tmp_path}/made; echo '3 passed in 0.1s'; case \" $* \" in *' {failing} '*) exit 2; esac",
        "id": "echo 1000",
        "chromedriver": "",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run([CHECKOUT / ".ci/run"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, "3 passed in 0.1s")
    made = (tmp_path / "made").read_text().splitlines()
    environments = "-k -j2 dev .venv-docs/.requirements"
    assert made == [environments, ".venv/.desk test", ".venv-docs/.requirements", "site"]


def test_make_test_runs_each_check() -> None:
    rest = ["VENV=/nowhere", "-o", "dev", "--no-print-directory"]
    done = subprocess.run(
        ["make", "-n", "test", *rest], cwd=CHECKOUT, capture_output=True, text=True, check=True
    )
    commands = {" ".join(line.split()) for line in done.stdout.splitlines()}
    python = "/nowhere/bin/python"
    checks = {
        f"{python} -m {one}" for one in ("ruff check .", "ruff format --check .", "mypy", "pytest")
    }
    assert {*checks, f".ci/smoke {python}", "/nowhere/bin/lint-imports --no-logo"} <= commands


def test_ci_runs_what_needs_its_own_environment_every_night_without_skips() -> None:
    workflow = yaml.safe_load((CHECKOUT / ".github/workflows/ci.yml").read_text("utf-8"))
    optional = workflow["jobs"]["optional"]
    assert optional["if"] == "github.event_name == 'schedule'"
    assert workflow[True]["schedule"][0]["cron"].endswith("* * *"), "`on` is true in YAML"
    assert {"make orchestrators", "make duckdb2", "make ducklake", "make dbt"} <= {
        step.get("run") for step in optional["steps"]
    }
    makefile = (CHECKOUT / "Makefile").read_text("utf-8")
    for tests in ("tests/test_orchestrators.py", "tests/pipelines/reporting/test_dbt.py"):
        assert f"NO_SKIPS=1 $(PY) -m pytest -n0 {tests}" in makefile


def test_ci_runs_all_tests_on_each_python_every_night() -> None:
    workflow = yaml.safe_load((CHECKOUT / ".github/workflows/ci.yml").read_text("utf-8"))
    oldest, newer = workflow["jobs"]["check"], workflow["jobs"]["matrix"]
    assert "if" not in oldest
    assert "if" not in newer
    versions = newer["strategy"]["matrix"]["python"]
    assert {oldest["steps"][1]["with"]["python-version"], *versions} >= {"3.11", "3.12", "3.13"}
    assert ".ci/run" in {step.get("run") for step in oldest["steps"]}
    assert "python -m pytest -q tests" in {step.get("run") for step in newer["steps"]}


def test_a_skipped_test_fails_where_nothing_may_be_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, outcome in (("", "skipped"), ("1", "failed")):
        monkeypatch.setenv("NO_SKIPS", value)
        hook = pytest_runtest_makereport()
        next(hook)
        with pytest.raises(StopIteration) as ended:
            hook.send(pytest.TestReport("a", ("a", 1, "a"), {}, "skipped", None, "call"))
        assert ended.value.value.outcome == outcome
