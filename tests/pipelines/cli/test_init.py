"""Setting up a project: what is asked and written; nothing that exists is replaced, and projects do not mix."""

from __future__ import annotations

import os
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner, Result

from orderbridge.pipelines.cli import init, project_files
from orderbridge.pipelines.cli.main import orderbridge
from orderbridge.sources.errors import ExitCode, UsageError
from tests.pipelines.bridge import bridge, command

CHECKOUT = Path(__file__).parents[3]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, in which checks find nothing wrong."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(init, "check_briefly", lambda _: ExitCode.DONE)
    return tmp_path


def secrets(project: Path, text: str) -> Path:
    """The settings of the project, with this text."""
    (project / ".dlt").mkdir()
    file = project / ".dlt/secrets.toml"
    file.write_text(text)
    return file


def ask(*answers: str, changes: tuple[str, ...] = ()) -> Result:
    return CliRunner().invoke(
        orderbridge, ["init", *changes], input="".join(f"{answer}\n" for answer in answers)
    )


def written(folder: Path) -> dict[str, Any]:
    return dict(tomllib.loads((folder / ".dlt/secrets.toml").read_text("utf-8"))["sources"])


def test_init_asks_until_the_answers_are_valid_and_writes_them_for_the_owner_alone(
    project: Path,
) -> None:
    done = ask(
        "http://shop.example", "https://shop.example", "k-1", "prod", "production", "email",
        "https://api.example", "brand_live_2",
    )  # fmt: skip
    assert done.exception is None
    legacy = ("https://shop.example", "k-1", "production", "email")
    assert written(project) == {
        "legacy": dict(
            zip(("base_url", "api_key", "environment", "login_mode"), legacy, strict=True)
        ),
        "public_v1": {"base_url": "https://api.example", "api_key": "brand_live_2"},
    }
    assert (project / ".dlt/secrets.toml").stat().st_mode & 0o777 == 0o600
    assert "not one of sandbox, production" in done.stderr
    assert "next: orderbridge import or run" in done.stdout
    assert not [key for key in ("k-1", "brand_live_2") if key in done.output]


def test_init_asks_for_time_zone_and_country_until_they_are_valid_or_left_out(
    project: Path,
) -> None:
    shop = ("https://shop.example", "k-1", "production", "email", "")
    done = ask(*shop, "Mars", "America/Lima", "")
    assert done.exception is None
    document = tomllib.loads((project / ".dlt/secrets.toml").read_text("utf-8"))
    assert document["reconcile"] == {"timezone": "America/Lima"}
    assert "is not a known time zone" in done.stderr
    again = ask("", "PE")
    assert "reconcile.timezone:" not in again.stderr
    document = tomllib.loads((project / ".dlt/secrets.toml").read_text("utf-8"))
    assert document["reconcile"] == {"timezone": "America/Lima", "country": "PE"}


def test_an_empty_address_skips_an_api_and_without_any_nothing_is_written(
    project: Path,
) -> None:
    for answers in (("", ""), ()):
        assert isinstance(ask(*answers).exception, UsageError)
        assert not list(project.iterdir())
    ask("", "https://api.example", "brand_test_2")
    assert list(written(project)) == ["public_v1"]


def test_what_exists_is_kept_and_gitignore_gets_the_lines_that_it_lacks(project: Path) -> None:
    file = secrets(project, "# mine\n")
    (project / ".gitignore").write_bytes(b"mine\n*.duckdb\n# a\xf1o")
    for _ in range(2):
        done = CliRunner().invoke(orderbridge, ["init", "--sandbox"])
        assert "not changed. To change a setting, name it" in done.stdout
    assert file.read_text() == "# mine\n"
    lines = (project / ".gitignore").read_text("latin-1").splitlines()
    assert lines[:3] == ["mine", "*.duckdb", "# año"]
    assert set(project_files.IGNORED) <= set(lines)
    assert len(lines) == len(set(lines))
    assert set(project_files.IGNORED) <= set(
        (CHECKOUT / ".gitignore").read_text("utf-8").splitlines()
    )


MINE = """# of the shop
[destination.postgres]
credentials = "postgresql://x"

[sources.legacy]
base_url = "https://old.example"  # asked Ana in May
# page_limit = 7
api_key = "k-1"

[mine]
x = 1 # kept
"""


def test_a_second_init_shows_what_is_set_and_asks_for_what_is_missing_alone(project: Path) -> None:
    file = secrets(project, MINE)
    done = ask("production", "code", "")
    assert done.exception is None
    assert "sources.legacy.base_url = https://old.example (.dlt/secrets.toml)" in done.stderr
    assert ("k-1" in done.output, "api_key: key" in done.stderr) == (False, False)
    added = 'environment = "production"\nlogin_mode = "code"\n'
    assert file.read_text() == MINE.replace("[mine]", added + "\n[mine]").replace(
        '"k-1"\n\n', '"k-1"\n'
    )
    before = file.read_text()
    for answers in (("",), ()):
        done = ask(*answers)
        assert (done.exception, file.read_text()) == (None, before)
        assert "not changed" in done.stdout


def test_init_changes_the_settings_that_it_is_given_and_no_other_line(project: Path) -> None:
    file = secrets(project, project_files.SANDBOX_MARK + MINE)
    host, key = "sources.legacy.base_url=https://new.example", "sources.legacy.api_key"
    done = ask("k-2", changes=(host, key, "sources.legacy.page_limit=50"))
    assert (done.exception, "k-2" in done.output) == (None, False)
    changed = MINE.replace("old.example", "new.example").replace(
        '"k-1"\n', '"k-2"\npage_limit = 50\n'
    )
    assert file.read_text() == changed, "the next start of a sandbox does not replace it either"
    for change, words in (
        (f"{key}=k-3", "process list"),
        ("notify.url=https://hooks.example/x", "process list"),
        ("sources.legacy.apikey", "Did you mean sources.legacy.api_key"),
        ("sources.legacy.environment=prod", "not one of sandbox, production"),
        ("warehouse.destination=posgres", "dlt has no destination 'posgres'"),
    ):
        done = ask(changes=(change,))
        assert isinstance(done.exception, UsageError)
        assert (words in str(done.exception), file.read_text()) == (True, changed)
    file.write_text('sources = {legacy = {api_key = "k"}}\n')
    done = ask(changes=("sources.public_v1.page_limit=5",))
    assert ("Edit it by hand" in str(done.exception), file.read_text()[:7]) == (True, "sources")


def test_a_secret_is_typed_unseen_on_a_terminal_and_read_where_that_is_none(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for is_terminal, url in ((False, "https://hooks.example/x"), (True, "https://hooks.example/y")):
        if is_terminal:
            monkeypatch.setattr(
                init, "sys", SimpleNamespace(stdin=SimpleNamespace(isatty=lambda: True))
            )
        done = ask(url, changes=("notify.url",))
        assert (done.exception, done.output.count("notify.url: "), url in done.output) == (
            None,
            1,
            False,
        )
        assert f'url = "{url}"' in (project / ".dlt/secrets.toml").read_text()


def test_settings_that_are_not_the_sandboxs_are_never_replaced(tmp_path: Path) -> None:
    values = {"sources.legacy.api_key": 'a"b\\c\n'}
    path = project_files.write_settings(tmp_path, values)
    assert written(tmp_path)["legacy"]["api_key"] == 'a"b\\c\n'
    assert path.stat().st_mode & 0o777 == 0o600, "whatever the mask of the process"
    with pytest.raises(UsageError, match="exists"):
        project_files.write_settings(tmp_path, {}, project_files.SANDBOX_MARK)
    path.rename(tmp_path / "vault.toml")
    path.symlink_to("../vault.toml")
    project_files.write_settings(tmp_path, {"sources.legacy.api_key": "k-2"})
    assert (path.is_symlink(), written(tmp_path)["legacy"]["api_key"]) == (True, "k-2"), (
        "what a link names is changed"
    )
    path.unlink()
    for _ in range(2):
        project_files.write_settings(tmp_path, values, project_files.SANDBOX_MARK)


def test_a_change_shows_where_the_keys_go_and_its_problems_alone(tmp_path: Path) -> None:
    with bridge(tmp_path) as made:
        done = made.command("init", "notify.on=always", WAREHOUSE__PATH="none/warehouse.duckdb")
    assert done.code == 2, done.said
    shown = [line for line in done.out.splitlines() if not line.startswith("  ")]
    assert [line.split()[0] for line in shown] == ["wrote", "added", "wrong", "wrong", "15"]
    assert shown[-1] == "15 of 17 checks are ok; each: orderbridge check"
    assert "goes to" in done.out
    assert "notify.on = " not in done.out


def test_settings_of_one_project_never_reach_the_host_of_another(
    tmp_path: Path, nobody: dict[str, str]
) -> None:
    with bridge(tmp_path / "first") as one, bridge(tmp_path / "second", customers=7) as two:
        for name, made, customers in (("one", one, 40), ("two", two, 7)):
            (tmp_path / name).mkdir()
            values = {
                "base_url": made.platform.url,
                "api_key": made.platform.legacy_key,
                "environment": "sandbox",
            }
            project_files.write_settings(
                tmp_path / name, {f"sources.legacy.{key}": values[key] for key in values}
            )
            done = command(
                "--project", str(tmp_path / name), "pull", "customers", env=nobody, cwd=tmp_path
            )
            assert (done.code, f"customers  {customers:>4} " in done.out) == (0, True), done.said
            assert (tmp_path / name / "warehouse.duckdb").exists()


def test_a_new_gitignore_is_private_whatever_the_mask(tmp_path: Path) -> None:
    """The access control list of a folder counts in place of the mask."""
    os.umask(0)
    project_files.ignore_private_files(tmp_path)
    assert (tmp_path / ".gitignore").stat().st_mode & 0o777 == 0o600


def test_a_setting_that_the_environment_has_too_is_named(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE__COUNTRY", "ES")
    done = ask(changes=("reconcile.country=PE", "reconcile.timezone=America/Lima"))
    assert "but RECONCILE__COUNTRY is set too, and counts: change reconcile.country there\n" in (
        done.output
    )
    assert "reconcile.timezone there" not in done.output


@pytest.mark.parametrize(
    "given", ["https://api.example/public/v1", "https://api.example/public/v1/"]
)
def test_the_path_of_the_api_behind_an_address_is_left_out(project: Path, given: str) -> None:
    assert ask(changes=(f"sources.public_v1.base_url={given}",)).exception is None
    assert written(project)["public_v1"]["base_url"] == "https://api.example"
    assert ask(given, changes=("sources.public_v1.base_url",)).exception is None
    assert written(project)["public_v1"]["base_url"] == "https://api.example"
