"""Setting up a project: what is asked and written, and that nothing that exists is replaced."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import tomllib
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pipelines.cli import init, project_files
from pipelines.cli.main import orderbridge
from sources.errors import ExitCode, UsageError
from tests.pipelines.bridge import Bridge, bridge, command, start

CHECKOUT = Path(__file__).parents[3]


def environment(folder: Path) -> dict[str, str]:
    """The environment of someone who has set nothing."""
    (folder / "home").mkdir(exist_ok=True)
    (folder / "tmp").mkdir(exist_ok=True)
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "TMPDIR": str(folder / "tmp"),
        "PYTHONWARNINGS": "error",
        "PYTHONUTF8": "1",
    }


def project(folder: Path) -> Path:
    made = folder / "project"
    made.mkdir()
    return made


@pytest.fixture
def ended(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The exit codes of commands that run in this process, whose checks find nothing wrong."""
    codes: list[int] = []
    monkeypatch.setattr(init, "exit_process", codes.append)
    monkeypatch.setattr(init, "run_checks", lambda _: ExitCode.DONE)
    return codes


def test_init_asks_until_the_answers_are_valid_and_writes_them_for_the_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: list[int]
) -> None:
    monkeypatch.chdir(project(tmp_path))
    answers = [
        "http://shop.example", "https://shop.example", "k-1", "prod", "production", "email",
        "https://api.example", "brand_live_2",
    ]  # fmt: skip
    done = CliRunner().invoke(orderbridge, ["init"], input="".join(f"{answer}\n" for answer in answers))
    assert (ended, done.exception) == ([0], None)
    path = tmp_path / "project/.dlt/secrets.toml"
    assert tomllib.loads(path.read_text("utf-8")) == {
        "sources": {
            "legacy": {
                "base_url": "https://shop.example",
                "api_key": "k-1",
                "environment": "production",
                "login_mode": "email",
            },
            "public_v1": {"base_url": "https://api.example", "api_key": "brand_live_2"},
        }
    }
    assert path.stat().st_mode & 0o777 == 0o600
    assert "http is for" in done.stderr or "https://" in done.stderr
    assert "not one of sandbox, production" in done.stderr
    assert "k-1" not in done.output
    assert "brand_live_2" not in done.output


def test_a_family_is_skipped_with_an_empty_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: list[int]
) -> None:
    monkeypatch.chdir(project(tmp_path))
    CliRunner().invoke(orderbridge, ["init"], input="\nhttps://api.example\nbrand_test_2\n")
    assert ended == [0]
    text = (tmp_path / "project/.dlt/secrets.toml").read_text("utf-8")
    assert list(tomllib.loads(text)["sources"]) == ["public_v1"]


def test_without_any_family_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project(tmp_path))
    done = CliRunner().invoke(orderbridge, ["init"], input="\n\n")
    assert isinstance(done.exception, UsageError)
    assert not list((tmp_path / "project").iterdir())


def test_init_for_the_sandbox_asks_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: list[int]) -> None:
    made = project(tmp_path)
    done = CliRunner().invoke(orderbridge, ["--project", str(made), "init", "--sandbox"])
    assert ended == [0]
    assert "orderbridge sandbox --port 8765" in done.stdout
    values = tomllib.loads((made / ".dlt/secrets.toml").read_text("utf-8"))["sources"]
    assert values["legacy"]["base_url"] == values["public_v1"]["base_url"] == "http://127.0.0.1:8765"


def test_what_exists_is_kept_and_gitignore_gets_the_lines_that_it_lacks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ended: list[int]
) -> None:
    made = project(tmp_path)
    monkeypatch.chdir(made)
    (made / ".dlt").mkdir()
    (made / ".dlt/secrets.toml").write_text("# mine\n")
    (made / ".gitignore").write_bytes(b"mine\n*.duckdb\n# a\xf1o")
    for _ in range(2):
        done = CliRunner().invoke(orderbridge, ["init", "--sandbox"])
        assert "exists: not changed" in done.stdout
    assert (made / ".dlt/secrets.toml").read_text() == "# mine\n"
    lines = (made / ".gitignore").read_text("latin-1").splitlines()
    assert lines[:3] == ["mine", "*.duckdb", "# año"]
    assert set(project_files.IGNORED) <= set(lines)
    assert len(lines) == len(set(lines))


def test_the_checkout_ignores_what_init_would_ignore() -> None:
    assert set(project_files.IGNORED) <= set((CHECKOUT / ".gitignore").read_text("utf-8").splitlines())


def test_exports_of_an_erp_are_ignored_whatever_the_case_of_their_names(tmp_path: Path) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    project_files.ignore_private_files(tmp_path)
    subprocess.run(["git", "init", "-q"], cwd=tmp_path, check=True)
    names = ["a.csv", "CLIENTES.CSV", "b.Tsv", "c.XLS", "d.xlsx", "e.XLSM", "f.ods"]
    done = subprocess.run(
        ["git", "check-ignore", *names, "clientes.toml"], cwd=tmp_path, check=True, capture_output=True, text=True
    )
    assert done.stdout.split() == names


def test_settings_that_are_not_the_sandboxs_are_never_replaced(tmp_path: Path) -> None:
    values = {"sources.legacy.api_key": 'a"b\\c\n'}
    path = project_files.write_settings(tmp_path, values)
    assert tomllib.loads(path.read_text("utf-8"))["sources"]["legacy"]["api_key"] == 'a"b\\c\n'
    for mark in ("", project_files.SANDBOX_MARK):
        with pytest.raises(UsageError, match="exists"):
            project_files.write_settings(tmp_path, {}, mark)
    path.unlink()
    for _ in range(2):
        project_files.write_settings(tmp_path, values, project_files.SANDBOX_MARK)


def test_init_without_a_terminal_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    result = CliRunner().invoke(orderbridge, ["init"], input="")
    assert isinstance(result.exception, UsageError)
    assert "--sandbox" in result.exception.hint
    assert not (tmp_path / ".dlt").exists()


def test_a_sandbox_writes_settings_that_init_and_pull_use(tmp_path: Path) -> None:
    made, env = project(tmp_path), environment(tmp_path)
    with start(
        "--project", str(made), "sandbox", "--write-settings", "--customers", "3", env=env, cwd=tmp_path
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline().startswith("ready http://127.0.0.1:")
        done = command("init", env=env, cwd=made)
        assert (done.code, "exists: not changed" in done.out) == (0, True), done.said
        assert "ok    first page of customers" in done.out
        pulled = command("--project", str(made), "pull", "customers", env=env, cwd=tmp_path)
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=300)
    assert pulled.code == 0, pulled.said
    assert (made / "warehouse.duckdb").exists()


def test_projects_do_not_mix(tmp_path: Path) -> None:
    """Two organizations, each with its folder: the settings of one never reach the other's host."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    with bridge(tmp_path / "first") as one, bridge(tmp_path / "second", customers=7) as two:
        env = environment(tmp_path)
        for name, made in (("one", one), ("two", two)):
            _write(tmp_path / name, made)
        for name, made, customers in (("one", one, 40), ("two", two, 7)):
            asked = made.platform.state.requests
            done = command("--project", str(tmp_path / name), "pull", "customers", env=env, cwd=tmp_path)
            assert done.code == 0, done.said
            assert f"customers  {customers:>5}" in done.out or f" {customers} " in done.out
            assert made.platform.state.requests > asked


def _write(folder: Path, made: Bridge) -> None:
    values = {
        "sources.legacy.base_url": made.platform.url,
        "sources.legacy.api_key": made.platform.legacy_key,
        "sources.legacy.environment": "sandbox",
        "warehouse.path": str(folder / "warehouse.duckdb"),
    }
    project_files.write_settings(folder, values)


def test_a_project_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    done = CliRunner().invoke(orderbridge, ["--project", str(tmp_path / "none"), "status"])
    assert isinstance(done.exception, UsageError)
    assert "there is no folder" in str(done.exception)


def test_the_options_of_the_group_are_in_its_help() -> None:
    assert {option.name for option in orderbridge.params if isinstance(option, click.Option)} >= {"project"}
    assert "--project DIR" in CliRunner().invoke(orderbridge, ["--help"]).output


def test_check_lists_all_that_is_missing_at_once_and_shows_what_is_set(tmp_path: Path) -> None:
    made = project(tmp_path)
    (made / ".dlt").mkdir()
    (made / ".dlt/config.toml").write_text('[sources.legacy]\nenvironment = "sandbox"\n')
    done = command("--project", str(made), "check", env=environment(tmp_path), cwd=tmp_path)
    assert done.code == 2
    for key in ("base_url", "api_key"):
        for section in ("LEGACY", "PUBLIC_V1"):
            assert f"Set SOURCES__{section}__{key.upper()}, or `{key}` under" in done.out
    assert "sources.legacy.environment = sandbox (.dlt/config.toml)" in done.out
    assert "Settings(" not in done.out
    assert "None" not in done.out
