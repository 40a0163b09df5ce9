from __future__ import annotations

import ast
import importlib.util
import json
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest
import yaml  # type: ignore[import-untyped]
from click.testing import CliRunner

from pipelines.cli.main import orderbridge
from sources.errors import UsageError
from tests.conftest import pytest_runtest_makereport

CHECKOUT = Path(__file__).parents[1]
PACKAGES = ("sources", "sandbox", "transforms", "pipelines")
MODULES = sorted(path.relative_to(CHECKOUT) for name in PACKAGES for path in (CHECKOUT / name).rglob("*.py"))
IDS = [path.as_posix() for path in MODULES]
REGISTRY = re.compile(r"://\S*(py(pi|thonhosted)|registry|artifact|/simple\b)|index-url\s*=", re.IGNORECASE)
NAME = re.compile(r"[A-Za-z0-9._-]+")

FORBIDDEN = {
    "sources": ("transforms", "pipelines", "sandbox"),
    "transforms": ("httpx", "duckdb", "dlt", "sources", "pipelines", "sandbox"),
    "sandbox": ("transforms", "pipelines", "dlt", "httpx"),
    "pipelines": (),
}


@cache
def nodes(path: Path) -> list[ast.AST]:
    """The syntax of a file, each node."""
    return list(ast.walk(ast.parse((CHECKOUT / path).read_text("utf-8"))))


def imports(path: Path) -> Iterator[str]:
    """Each module that a file imports, wherever in it; `from a import b` gives `a` and `a.b`."""
    for node in nodes(path):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            yield node.module or ""
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def within(module: str, package: str) -> bool:
    return module == package or module.startswith(f"{package}.")


@pytest.mark.parametrize("name", PACKAGES)
def test_each_package_lies_in_the_checkout(name: str) -> None:
    # another distribution with the same top-level name would shadow ours, or be overwritten by it
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin is not None
    assert Path(spec.origin).is_relative_to(CHECKOUT)


def test_the_build_lists_each_package() -> None:
    assert tuple(pyproject()["tool"]["uv"]["build-backend"]["module-name"]) == PACKAGES


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_data_walks_one_way(path: Path) -> None:
    found = list(imports(path))
    for forbidden in FORBIDDEN[path.parts[0]]:
        assert not [module for module in found if within(module, forbidden)]
    if path.parts[0] == "sandbox":
        interface = ("sources.contract", "sources.gaps")
        assert not [m for m in found if within(m, "sources") and m != "sources" and not m.startswith(interface)]
    if path.parent != Path("sources/http"):
        assert not [module for module in found if within(module, "httpx")]
        assert not [module for module in found if within(module, "httpcore")]
    if path != Path("pipelines/cli/__main__.py"):
        assert not [module for module in found if within(module, "pipelines.cli.main")]


def test_dlt_is_not_imported_by_the_settings() -> None:
    for path in (CHECKOUT / "sources/settings").glob("*.py"):
        top = [
            node for node in ast.parse(path.read_text("utf-8")).body if isinstance(node, ast.Import | ast.ImportFrom)
        ]
        names = [
            alias.name if isinstance(node, ast.Import) else node.module or "" for node in top for alias in node.names
        ]
        assert not [name for name in names if within(name, "dlt")]


def test_no_tracked_file_names_a_registry() -> None:
    git = shutil.which("git")
    if git is None or not (CHECKOUT / ".git").exists():
        pytest.skip("no checkout of git")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True, text=True).stdout
    own = Path(__file__).relative_to(CHECKOUT).as_posix()
    for name in listed.split("\0"):
        path = CHECKOUT / name
        if name and name != own and path.is_file():
            assert not REGISTRY.search(path.read_text("utf-8", errors="replace")), name


def test_nothing_tells_to_install_from_an_index_where_the_name_is_not_registered() -> None:
    """Whoever registers `orderbridge` there would run code on the machines of our users."""
    git = shutil.which("git")
    if git is None or not (CHECKOUT / ".git").exists():
        pytest.skip("no checkout of git")
    listed = subprocess.run([git, "ls-files", "-z"], cwd=CHECKOUT, capture_output=True, check=True, text=True).stdout
    named = re.compile(r"(?:pipx?|uvx?|tool|add|install)\b[^\n|;]*[\s'\"]orderbridge(?:\[|['\"\s]*(?:$|[=<>~`]))", re.M)
    for name in filter(None, listed.split("\0")):
        path = CHECKOUT / name
        if path.is_file() and name.endswith((".py", ".md", ".toml", ".yml", ".yaml", ".ipynb", ".j2", "Dockerfile")):
            found = named.search(path.read_text("utf-8", errors="replace"))
            assert found is None, f"{name}: {found}"


REQUIREMENTS = sorted(path.name for path in CHECKOUT.glob("requirements*.txt"))


@pytest.mark.parametrize("file", REQUIREMENTS)
def test_requirements_are_pinned_by_hash_and_name_no_host(file: str) -> None:
    text = (CHECKOUT / file).read_text("utf-8")
    assert "://" not in text
    assert " @ " not in text
    for entry in re.split(r"\n(?=\S)", text.strip()):
        assert "==" in entry
        assert "--hash=sha256:" in entry


@pytest.mark.parametrize(("file", "dev"), [("requirements.txt", False), ("requirements-dev.txt", True)])
def test_each_direct_dependency_is_pinned(file: str, dev: bool) -> None:
    project, groups = pyproject()["project"], pyproject()["dependency-groups"]
    wanted = list(project["dependencies"])
    if dev:
        assert {"include-group": "build"} in groups["dev"]
        wanted += [requirement for requirement in (*groups["dev"], *groups["build"]) if isinstance(requirement, str)]
    pins = pinned(file)
    for requirement in wanted:
        name = NAME.match(requirement)
        assert name is not None
        assert canonical(name[0]) in pins, f"{requirement}: run make lock"
        exact = re.fullmatch(rf"{re.escape(name[0])}==([^;\s]+)", requirement)
        if exact:
            assert pins[canonical(name[0])] == {exact[1]}, f"{requirement}: run make lock"


@pytest.mark.parametrize("file", ["requirements.txt", "requirements-build.txt", "requirements-notebooks.txt"])
def test_the_requirements_files_agree(file: str) -> None:
    development = pinned("requirements-dev.txt")
    for name, versions in pinned(file).items():
        assert development[name] == versions


def test_what_only_benchmarks_need_is_not_set_up_by_make() -> None:
    """These are installed together with the others, so a package in both files has one version."""
    development, bench = pinned("requirements-dev.txt"), pinned("requirements-bench.txt")
    assert not {"datacompy", "polars", "splink", "matplotlib"} & set(development)
    assert {"datacompy", "splink", "matplotlib"} <= set(bench)
    assert {name: bench[name] for name in bench if name in development} == {
        name: development[name] for name in bench if name in development
    }


@pytest.mark.parametrize(
    ("target", "installed"),
    [("demo", {"", "-build"}), ("notebooks", {"", "-build", "-notebooks"}), ("unit", {"", "-build", "-dev"})],
)
def test_each_target_sets_up_only_what_it_needs(tmp_path: Path, target: str, installed: set[str]) -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make")
    command = [make, "--dry-run", "--always-make", f"VENV={tmp_path / 'venv'}", target]
    recipes = subprocess.run(command, cwd=CHECKOUT, capture_output=True, check=True, text=True).stdout
    assert set(re.findall(r"--no-compile --require-hashes -r requirements(-\w+)?\.txt", recipes)) == installed


# --- operating systems ------------------------------------------------------------------------------------------------
LINUX_ONLY = {"O_PATH", "O_TMPFILE", "copy_file_range", "eventfd", "memfd_create", "pidfd_open", "posix_fadvise"}
LINUX_ONLY |= {"posix_fallocate", "sched_getaffinity", "splice", "unshare", "SIGPWR", "sigwaitinfo", "sigtimedwait"}
POSIX_MODULES = {"fcntl", "grp", "pty", "pwd", "resource", "termios", "tty"}


@pytest.mark.parametrize("path", MODULES, ids=IDS)
def test_nothing_is_used_that_macos_lacks(path: Path) -> None:
    for node in nodes(path):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in {"os", "signal"}:
            assert node.attr not in LINUX_ONLY, f"{path}:{node.lineno}"
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("/proc/"):
            assert path == Path("pipelines/ledger/clock.py"), f"{path}:{node.lineno}"  # it has a fallback


def test_modules_that_windows_lacks_are_not_imported_before_its_message() -> None:
    for path in MODULES:
        module = nodes(path)[0]
        assert isinstance(module, ast.Module)
        for node in module.body:
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else []
            names += [node.module or ""] if isinstance(node, ast.ImportFrom) else []
            assert not POSIX_MODULES & set(names), path


def test_on_windows_the_command_names_wsl(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pipelines.cli.main._IS_WINDOWS", True)
    result = CliRunner().invoke(orderbridge, ["status"])
    assert isinstance(result.exception, UsageError)
    assert "WSL 2" in str(result.exception)


# --- supply chain -----------------------------------------------------------------------------------------------------
EXAMPLES = [*CHECKOUT.glob("docs/**/*.yml"), *CHECKOUT.glob(".github/workflows/*.yml")]


@pytest.mark.parametrize("file", EXAMPLES, ids=lambda file: str(file.relative_to(CHECKOUT)))
def test_actions_are_pinned_by_commit(file: Path) -> None:
    for use in re.findall(r"uses: *(.*)", file.read_text("utf-8")):
        assert re.fullmatch(r"[\w./-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", use), use


def test_the_build_backend_and_pip_are_pinned_by_hash() -> None:
    (backend,) = (NAME.match(text) for text in pyproject()["build-system"]["requires"])
    assert backend is not None
    assert set(pinned("requirements-build.txt")) == {"pip", canonical(backend[0])}


def test_every_installation_of_a_checkout_uses_hashes() -> None:
    makefile = (CHECKOUT / "Makefile").read_text("utf-8")
    (install,) = re.findall(r"^INSTALL := (.*)", makefile, re.MULTILINE)
    files = [CHECKOUT / "Makefile", *CHECKOUT.glob(".ci/*"), *CHECKOUT.glob("*.md"), CHECKOUT / "docs/schedules.md"]
    files.append(CHECKOUT / "docs/orchestrators/Dockerfile")
    lines = [
        (file.name, line)
        for file in (*files, *EXAMPLES)
        for line in file.read_text("utf-8")
        .replace("\\\n", " ")
        .replace("$(INSTALL)", install)
        .replace(" && ", "\n")
        .splitlines()
        if re.search(r"\b(pip|PIP\)|pip\[@\]\}\") .*\b(install|wheel)\b", line)
    ]
    assert len(lines) > 12
    for file, line in lines:
        if "install $${one#*:}" in line:  # the examples of the orchestrators, each in an environment of its own
            continue
        assert "--require-hashes" in line or "--no-deps" in line, (file, line)
        assert "--no-deps" not in line or "--no-build-isolation" in line or ".whl" in line, (file, line)


@pytest.mark.parametrize(
    ("result", "code", "words"),
    [
        ({"dependencies": [{"name": "a", "version": "1", "vulns": []}]}, 0, "1 packages, no known vulnerability"),
        (
            {"dependencies": [{"name": "a", "version": "1", "vulns": [{"id": "PYSEC-1", "fix_versions": ["2"]}]}]},
            1,
            "a 1: PYSEC-1, fixed in 2",
        ),
        ({"dependencies": [{"name": "a", "skip_reason": "not on the index"}]}, 75, "NOT CHECKED"),
        ({"dependencies": []}, 75, "NOT CHECKED"),
        (None, 75, "NOT CHECKED: requirements.txt: no result: ConnectionError: no route"),
    ],
)
def test_the_audit_is_never_silently_green(tmp_path: Path, result: object, code: int, words: str) -> None:
    (tmp_path / "result.json").write_text(json.dumps(result))
    program = tmp_path / "pip-audit"
    save = f'for a in "$@"; do case $a in --output=*) cp {tmp_path}/result.json "${{a#--output=}}";; esac; done'
    program.write_text(f"#!/bin/sh\n{save if result else 'echo ConnectionError: no route >&2; exit 1'}\n")
    program.chmod(0o755)
    done = subprocess.run(
        [sys.executable, CHECKOUT / ".ci/audit", program, "requirements.txt"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert (done.returncode, words in done.stdout + done.stderr) == (code, True), done.stdout + done.stderr


@pytest.mark.parametrize(("count", "code"), [(3, 0), (25_001, 1)])
def test_lines_of_code_are_counted_and_limited(tmp_path: Path, count: int, code: int) -> None:
    for package in ("pipelines", "sandbox", "sources", "transforms"):
        (tmp_path / package).mkdir()
    lines = ['"""A module."""', "", "import os", "from a import (", "    b,", ")", "# a comment", *["x = 1"] * count]
    (tmp_path / "sources" / "module.py").write_text("\n".join(lines))
    done = subprocess.run([sys.executable, CHECKOUT / ".ci/lines", tmp_path], capture_output=True, text=True)
    assert (done.returncode, f"lines of code: {count:,} of at most" in done.stdout) == (code, True), done.stdout


def pyproject() -> dict:  # type: ignore[type-arg] # as deep as TOML goes
    return tomllib.loads((CHECKOUT / "pyproject.toml").read_text("utf-8"))


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pinned(file: str) -> dict[str, set[str]]:
    pins: dict[str, set[str]] = {}
    for match in re.finditer(r"^([A-Za-z0-9._-]+)==([^\s;]+)", (CHECKOUT / file).read_text("utf-8"), re.MULTILINE):
        pins.setdefault(canonical(match[1]), set()).add(match[2])
    return pins


@pytest.mark.parametrize(("failing", "code"), [("", 0), ("test", 2), ("site", 2)])
def test_the_script_of_ci_ends_as_its_checks_do(tmp_path: Path, failing: str, code: int) -> None:
    for name, script in {
        "make": f"echo $1 >>{tmp_path}/made; echo '3 passed in 0.1s'; test \"$1\" != '{failing}' || exit 2",
        "id": "echo 1000",
    }.items():
        (tmp_path / name).write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / name).chmod(0o755)
    env = {"PATH": f"{tmp_path}:/usr/bin:/bin", "TMPDIR": str(tmp_path)}
    done = subprocess.run([CHECKOUT / ".ci/run"], env=env, capture_output=True, text=True)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (code, "3 passed in 0.1s")
    assert (tmp_path / "made").read_text().split() == ["test", ".venv-docs/.requirements", "site"]


def test_make_test_runs_each_check() -> None:
    make = shutil.which("make")
    if make is None:
        pytest.skip("no make")
    rest = ["VENV=/nowhere", "-o", "dev", "--no-print-directory"]
    done = subprocess.run([make, "-n", "test", *rest], cwd=CHECKOUT, capture_output=True, text=True, check=True)
    commands = {" ".join(line.split()) for line in done.stdout.splitlines()}
    python = "/nowhere/bin/python"
    checks = {"-m ruff check .", "-m ruff format --check .", "-m mypy", "-m pytest"}
    assert {f"{python} {one}" for one in checks} | {
        f".ci/smoke {python}",
        "/nowhere/bin/lint-imports --no-logo",
    } <= commands


def test_ci_runs_what_needs_an_environment_of_its_own_every_night() -> None:
    workflow = yaml.safe_load((CHECKOUT / ".github/workflows/ci.yml").read_text("utf-8"))
    optional = workflow["jobs"]["optional"]
    assert optional["if"] == "github.event_name == 'schedule'"
    assert workflow[True]["schedule"][0]["cron"].endswith("* * *"), "`on` is true in YAML"
    assert {"make orchestrators", "make ducklake"} <= {step.get("run") for step in optional["steps"]}
    assert "NO_SKIPS=1 $(PY) -m pytest -n0 tests/test_orchestrators.py" in (CHECKOUT / "Makefile").read_text("utf-8")


def test_a_skipped_test_fails_where_nothing_may_be_skipped(monkeypatch: pytest.MonkeyPatch) -> None:
    for value, outcome in (("", "skipped"), ("1", "failed")):
        monkeypatch.setenv("NO_SKIPS", value)
        hook = pytest_runtest_makereport()
        next(hook)
        with pytest.raises(StopIteration) as ended:
            hook.send(pytest.TestReport("a", ("a", 1, "a"), {}, "skipped", None, "call"))
        assert ended.value.value.outcome == outcome
