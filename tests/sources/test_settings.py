from __future__ import annotations

import copy
import os
import pickle
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest

from sources.errors import UsageError
from sources.settings import (
    HttpSettings,
    LegacySettings,
    PublicV1Settings,
    Secret,
    check_same_environment,
    effective_settings,
    find_root,
    http_settings,
    known_secrets,
    ledger_path,
    legacy_settings,
    permission_warnings,
    public_v1_settings,
    reconcile_settings,
    set_project,
    warehouse_path,
    warehouse_settings,
)
from sources.settings.table import SECTIONS, variable

KEY = "brand_test_PLANTED-SECRET-77"
LIVE = "brand_live_PLANTED-SECRET-77"
LEGACY = f'[sources.legacy]\nbase_url = "https://a.example"\napi_key = "{KEY}"\nenvironment = "sandbox"\n'
V1 = f'[sources.public_v1]\nbase_url = "https://b.example"\napi_key = "{KEY}"\n'


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    prefixes = tuple(variable(section) + "__" for section in SECTIONS)
    for name in list(os.environ):
        if name.startswith((*prefixes, "DLT_")):
            monkeypatch.delenv(name)
    project = tmp_path / "project"
    (project / ".dlt").mkdir(parents=True)
    monkeypatch.chdir(project)
    before = set(os.environ)
    yield project
    for name in set(os.environ) - before:  # dlt puts a mounted secret into the environment
        del os.environ[name]


def write(root: Path, secrets: str = "", config: str = "") -> None:
    (root / ".dlt" / "secrets.toml").write_text(secrets, "utf-8")
    (root / ".dlt" / "config.toml").write_text(config, "utf-8")


def legacy(base_url: str = "https://a.example", key: str = KEY, environment: str = "sandbox") -> LegacySettings:
    return LegacySettings(base_url=base_url, api_key=Secret(key), environment=environment)  # type: ignore[arg-type]


def v1(base_url: str = "https://b.example", key: str = KEY) -> PublicV1Settings:
    return PublicV1Settings(base_url=base_url, api_key=Secret(key))


def test_a_file_gives_the_settings_with_their_defaults(root: Path) -> None:
    write(root, LEGACY + V1)
    told = legacy_settings()
    assert (told.base_url, told.api_key.reveal(), told.environment) == ("https://a.example", KEY, "sandbox")
    assert (told.page_limit, told.login_mode, told.stock_semantics) == (100, None, "unknown")
    assert public_v1_settings().environment == "sandbox"


def test_the_environment_wins_over_secrets_and_secrets_over_config(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, LEGACY + "page_limit = 20\n", "[sources.legacy]\npage_limit = 30\nlogin_mode = 'code'\n")
    assert (legacy_settings().page_limit, legacy_settings().login_mode) == (20, "code")
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMIT", "10")
    assert legacy_settings().page_limit == 10


def test_one_family_needs_its_own_settings_alone(root: Path) -> None:
    write(root, V1 + "[sources.legacy]\nnonsense = 1\n")
    assert public_v1_settings().base_url == "https://b.example"


def test_dlt_itself_resolves_the_same(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY, "[sources.legacy]\npage_limit = 7\n")
    program = (
        "import os, sys; from pathlib import Path; from sources.settings import *\n"
        "root = find_root(); prepare_dlt(root, Path(sys.argv[1])); assert 'dlt' not in sys.modules\n"
        "os.chdir('/')\n"
        "ours = legacy_settings(root)\n"
        "import dlt\n"
        "assert dlt.secrets['sources.legacy.api_key'] == ours.api_key.reveal()\n"
        "assert dlt.config['sources.legacy.page_limit'] == ours.page_limit == 7\n"
        "assert os.umask(0) == 0o077\n"
    )
    checkout = str(Path(__file__).parents[2])
    subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "data")],
        check=True,
        env={**os.environ, "PYTHONPATH": checkout},
        timeout=60,
    )


def test_dlt_imported_before_is_told_the_root_too(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY)
    program = (
        "import sys; from pathlib import Path; import dlt; from sources.settings import *\n"
        "assert dlt.secrets.get('sources.legacy.api_key') is None\n"
        "prepare_dlt(Path(sys.argv[1]), Path(sys.argv[2]))\n"
        "assert dlt.secrets['sources.legacy.api_key']\n"
    )
    checkout = str(Path(__file__).parents[2])
    subprocess.run(
        [sys.executable, "-c", program, str(root), str(tmp_path / "data")],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": checkout, "DLT_DATA_DIR": str(tmp_path / "data")},
        timeout=60,
    )


def test_the_root_is_the_nearest_folder_with_dlt(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = root / "notebooks" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    assert find_root() == root
    monkeypatch.setenv("DLT_PROJECT_DIR", str(deep))
    assert find_root() == deep
    monkeypatch.setenv("DLT_PROJECT_DIR", str(deep / "none"))
    with pytest.raises(UsageError, match="DLT_PROJECT_DIR"):
        find_root()


def test_the_folder_that_dlt_keeps_for_itself_is_no_root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".dlt").mkdir()
    (tmp_path / "work").mkdir()
    monkeypatch.delenv("DLT_PROJECT_DIR", raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path / "work")
    config = tmp_path / ".dlt" / "config.toml"
    for foreign in ("", "[runtime]\ndlthub_telemetry = true\n", "[sources.github]\napi_key = 'x'\n"):
        config.write_text(foreign)
        assert find_root() == Path(__file__).parents[2]
    config.write_text("[sources.legacy]\nbase_url = 'https://api.example.com'\n")
    assert find_root() == tmp_path


def test_the_checkout_is_the_root_where_no_folder_above_has_dlt(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("DLT_PROJECT_DIR", raising=False)
    monkeypatch.chdir("/")
    assert find_root() == Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("section", "left_out"),
    [("legacy", "base_url"), ("legacy", "api_key"), ("legacy", "environment"), ("v1", "base_url"), ("v1", "api_key")],
)
def test_a_missing_key_is_named_with_its_variable(root: Path, section: str, left_out: str) -> None:
    text = LEGACY if section == "legacy" else V1
    write(root, "\n".join(line for line in text.splitlines() if not line.startswith(left_out)))
    with pytest.raises(UsageError) as refused:
        legacy_settings() if section == "legacy" else public_v1_settings()
    assert f".{left_out} (SOURCES__" in str(refused.value)
    assert left_out.upper() in str(refused.value)


def test_a_missing_key_names_what_looks_like_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCES__LEGACY_BASE_URL", "https://a.example")
    with pytest.raises(UsageError, match="There is a `SOURCES__LEGACY_BASE_URL`"):
        legacy_settings()
    write(root, LEGACY.replace("sources.legacy", "source.legacy"))
    monkeypatch.delenv("SOURCES__LEGACY_BASE_URL")
    with pytest.raises(UsageError, match=r"There is a `source\.legacy\.base_url`"):
        legacy_settings()


@pytest.mark.parametrize(
    ("base_url", "why"),
    [
        ("ftp://a.example", "https://"),
        ("a.example", "https://"),
        ("https://", "no host"),
        ("https://user:PLANTED@a.example", "user name"),
        ("https://a.example?x=PLANTED", "query"),
        ("https://a.example/#", "fragment"),
        ("https://a.example/public/v1/", "Remove /public/v1"),
        ("http://a.example", "unencrypted"),
        ("http://127.0.0.1.a.example", "unencrypted"),
        ("https://a.example:port", "is not an address"),
        ("https://a.exam\nple", "line end"),
        ("https://a.example\\@b.example", "a character that no address has"),
        ("https://[::1", "is not an address"),
        ("", "is not an address"),
    ],
)
def test_a_base_url_that_cannot_be_is_refused(base_url: str, why: str) -> None:
    for make in (legacy, v1):
        with pytest.raises(UsageError) as refused:
            make(base_url)
        assert why in str(refused.value)
        assert "BASE_URL" in str(refused.value)
        assert "PLANTED" not in str(refused.value)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "127.9.9.9", "[::1]:8000", "localhost"])
def test_http_is_for_loopback(host: str) -> None:
    assert legacy(f"http://{host}//").base_url == f"http://{host}"


@pytest.mark.parametrize(
    "key",
    ["", " ", "a b", "brand_test_x\n", "brand_test_x\r\nX: y", "brand_test_ñ", "brand_test_\x7f", '"brand_test_x"'],
)
def test_a_key_that_would_break_the_header_is_refused(key: str) -> None:
    for make in (legacy, v1):
        with pytest.raises(UsageError) as refused:
            make(key=key)
        assert "API_KEY" in str(refused.value)
        assert "X: y" not in str(refused.value)


@pytest.mark.parametrize("key", ["PLANTED", "_test_PLANTED", "brand-test-PLANTED", "brand_prod_PLANTED"])
def test_a_v1_key_without_its_prefix_is_refused(key: str) -> None:
    with pytest.raises(UsageError, match="SOURCES__PUBLIC_V1__API_KEY") as refused:
        v1(key=key)
    assert "PLANTED" not in str(refused.value)


@pytest.mark.parametrize(
    ("key", "environment"),
    [
        ("b_live_x", "production"),
        ("b_test_x", "sandbox"),
        ("my_brand_live_x", "production"),
        ("b_live_x_test_y", "production"),
    ],
)
def test_the_prefix_of_a_v1_key_is_its_environment(key: str, environment: str) -> None:
    assert v1(key=key).environment == environment


def test_families_of_two_environments_are_refused() -> None:
    check_same_environment(legacy(), v1())
    with pytest.raises(UsageError, match="different environments") as refused:
        check_same_environment(legacy(), v1(key=LIVE))
    assert "PLANTED" not in str(refused.value)


@pytest.mark.parametrize(
    ("host", "environment", "fits"),
    [
        ("sandbox.a.example", "production", False),
        ("api.sbx.a.example", "production", False),
        ("production.a.example", "sandbox", False),
        ("sandbox.a.example", "sandbox", True),
        ("api.a.example", "production", True),
        ("testing.a.example", "production", True),
        ("sandbox.production.a.example", "sandbox", False),
    ],
)
def test_a_host_that_names_the_other_environment_is_refused(host: str, environment: str, fits: bool) -> None:
    key = LIVE if environment == "production" else KEY
    if fits:
        legacy(f"https://{host}", key, environment)
        v1(f"https://{host}", key)
        return
    with pytest.raises(UsageError, match="SOURCES__LEGACY__BASE_URL"):
        legacy(f"https://{host}", key, environment)
    with pytest.raises(UsageError, match="SOURCES__PUBLIC_V1__BASE_URL"):
        v1(f"https://{host}", key)


@pytest.mark.parametrize("limit", ["0", "-1", "x", "1.5", "²"])
def test_a_page_limit_is_a_whole_number(root: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    write(root, LEGACY + V1)
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMIT", limit)
    with pytest.raises(UsageError, match="SOURCES__LEGACY__PAGE_LIMIT"):
        legacy_settings()


def test_a_page_limit_of_v1_is_at_most_100(root: Path) -> None:
    write(root, LEGACY + "page_limit = 500\n" + V1 + "page_limit = 101\n")
    assert legacy_settings().page_limit == 500
    with pytest.raises(UsageError, match="from 1 to 100"):
        public_v1_settings()


def test_true_is_no_page_limit(root: Path) -> None:
    write(root, LEGACY + "page_limit = true\n")
    with pytest.raises(UsageError, match="PAGE_LIMIT"):
        legacy_settings()


@pytest.mark.parametrize("name", ["environment", "login_mode", "stock_semantics", "price_semantics"])
@pytest.mark.parametrize("value", ["Sandbox", "", "5"])
def test_a_choice_is_one_of_its_words(root: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    write(root, LEGACY)
    monkeypatch.setenv(f"SOURCES__LEGACY__{name.upper()}", value)
    with pytest.raises(UsageError, match=rf"{name} \(SOURCES__LEGACY__{name.upper()}\) is not one of"):
        legacy_settings()


@pytest.mark.parametrize("name", ["base_url", "api_key", "environment"])
def test_a_value_of_another_type_is_refused(root: Path, name: str) -> None:
    write(root, "\n".join(f"{name} = 5" if line.startswith(name) else line for line in LEGACY.splitlines()))
    with pytest.raises(UsageError, match=f"LEGACY__{name.upper()}"):
        legacy_settings()


@pytest.mark.parametrize(
    ("secrets", "wrong", "nearest"),
    [
        (LEGACY + "page_limmit = 5\n", "sources.legacy.page_limmit", "page_limit"),
        (LEGACY + "API_KEY = 'PLANTED'\n", "sources.legacy.API_KEY", "Known: base_url, api_key"),
    ],
)
def test_an_unknown_key_names_the_nearest(root: Path, secrets: str, wrong: str, nearest: str) -> None:
    write(root, secrets)
    with pytest.raises(UsageError) as refused:
        legacy_settings()
    assert wrong in str(refused.value)
    assert nearest in str(refused.value)
    assert "PLANTED" not in str(refused.value)


@pytest.mark.parametrize("name", ["SOURCES__LEGACY__APIKEY", "sources__legacy__api_key", "SOURCES__LEGACY__API__KEY"])
def test_an_unknown_variable_names_the_nearest(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write(root, LEGACY)
    monkeypatch.setenv(name, "PLANTED")
    with pytest.raises(UsageError, match="Did you mean `SOURCES__LEGACY__API_KEY`") as refused:
        legacy_settings()
    assert name in str(refused.value)
    assert "PLANTED" not in str(refused.value)


@pytest.mark.parametrize("name", ["WAREHOUSE__PATHS", "LEDGER__FILE"])
def test_an_unknown_variable_of_a_path_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    with pytest.raises(UsageError, match=name):
        (warehouse_path if name.startswith("WAREHOUSE") else ledger_path)()


@pytest.mark.parametrize("file", ["secrets.toml", "config.toml"])
def test_a_file_that_is_no_toml_is_told_by_its_line(root: Path, file: str) -> None:
    (root / ".dlt" / file).write_text("[sources.legacy]\napi_key = PLANTED\n")
    with pytest.raises(UsageError, match=f"{file}, line 2") as refused:
        legacy_settings()
    assert "PLANTED" not in str(refused.value)
    assert refused.value.__cause__ is None
    (root / ".dlt" / file).write_bytes(b"x = '\xff'\n")
    with pytest.raises(UsageError, match="UTF-8"):
        legacy_settings()


def test_a_section_that_is_no_table_is_refused(root: Path) -> None:
    write(root, "sources = 5\n")
    with pytest.raises(UsageError, match="is not a table"):
        legacy_settings()


def test_a_secret_in_the_config_file_is_refused(root: Path) -> None:
    write(root, "", LEGACY)
    with pytest.raises(UsageError, match=r"Move it to \.dlt/secrets\.toml") as refused:
        legacy_settings()
    assert "PLANTED" not in str(refused.value)


def test_paths_are_relative_to_the_current_folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = root / "notebooks"
    deep.mkdir()
    monkeypatch.chdir(deep)
    assert warehouse_path() == deep / "warehouse.duckdb"
    assert ledger_path() == deep / "ledger.sqlite"
    write(root, "", "[warehouse]\npath = 'data/w.duckdb'\n")
    assert warehouse_path() == deep / "data" / "w.duckdb"
    assert ledger_path() == deep / "data" / "ledger.sqlite"
    monkeypatch.setenv("LEDGER__PATH", str(tmp_path / "l.sqlite"))
    assert ledger_path() == tmp_path / "l.sqlite"
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "postgres")
    assert warehouse_settings().destination == "postgres"


@pytest.mark.parametrize("path", ["", " ", "."])
def test_a_path_that_is_no_file_is_refused(root: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("WAREHOUSE__PATH", path)
    with pytest.raises(UsageError, match="WAREHOUSE__PATH"):
        warehouse_path()


def test_secrets_that_others_can_read_are_warned_of(root: Path) -> None:
    assert permission_warnings() == []
    secrets = root / ".dlt" / "secrets.toml"
    write(root, LEGACY)
    secrets.chmod(0o644)
    (warning,) = permission_warnings()
    assert "chmod 600" in warning
    secrets.chmod(stat.S_IRUSR | stat.S_IWUSR)
    assert permission_warnings() == []


def test_a_secret_shows_itself_to_nobody() -> None:
    told = legacy()
    for text in (repr(told), str(told), f"{told.api_key}", f"{told.api_key:>9}", repr(v1()), str(vars(told))):
        assert "PLANTED" not in text
    assert "***" in repr(told)
    with pytest.raises(TypeError):
        pickle.dumps(told.api_key)
    assert copy.deepcopy(told) == told
    assert hash(copy.copy(told.api_key)) == hash(told.api_key)


# --- files that others could have written --------------------------------------------------------------------------

needs_root = pytest.mark.skipif(os.name == "nt" or os.geteuid() != 0, reason="changing owners takes root")
STRANGER = 54321


@needs_root
@pytest.mark.parametrize("name", [".dlt", ".dlt/config.toml", ".dlt/secrets.toml"])
def test_settings_that_another_user_owns_are_refused(root: Path, name: str) -> None:
    write(root, LEGACY)
    assert legacy_settings().base_url == "https://a.example"
    os.chown(root / name, STRANGER, -1)
    with pytest.raises(UsageError, match="belongs to another user") as caught:
        legacy_settings()
    assert str(root / name) in str(caught.value)


@needs_root
def test_settings_of_the_checkout_may_belong_to_the_owner_of_its_code(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, LEGACY)
    os.chown(root / ".dlt", STRANGER, -1)
    monkeypatch.setattr("sources.settings.root._CHECKOUT", root)
    with pytest.raises(UsageError, match="belongs to another user"):
        legacy_settings()
    monkeypatch.setattr("sources.settings.root._code_owner", lambda: STRANGER)
    assert legacy_settings().base_url == "https://a.example"


@needs_root
def test_a_link_that_another_user_made_is_refused(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY)
    (root / ".dlt").rename(tmp_path / "settings")
    (root / ".dlt").symlink_to(tmp_path / "settings")
    assert legacy_settings().base_url == "https://a.example"
    os.chown(root / ".dlt", STRANGER, -1, follow_symlinks=False)
    with pytest.raises(UsageError, match="belongs to another user"):
        legacy_settings()


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
@pytest.mark.parametrize(
    ("name", "mode"), [(".dlt", 0o777), (".dlt/config.toml", 0o646), (".dlt/secrets.toml", 0o602), (".dlt", 0o1777)]
)
def test_settings_that_others_can_write_are_refused(root: Path, name: str, mode: int) -> None:
    write(root, LEGACY)
    (root / name).chmod(mode)
    with pytest.raises(UsageError, match="can be written by other users") as caught:
        legacy_settings()
    assert f"chmod go-w {root / name}" in caught.value.hint
    with pytest.raises(UsageError, match="can be written by other users") if name == ".dlt" else nullcontext():
        find_root()


@needs_root
def test_settings_that_a_shared_group_can_write_are_refused(root: Path) -> None:
    write(root, LEGACY)
    os.chown(root / ".dlt/config.toml", -1, STRANGER)
    (root / ".dlt/config.toml").chmod(0o664)
    with pytest.raises(UsageError, match="can be written by other users"):
        legacy_settings()


def test_the_search_for_settings_ends_before_a_folder_that_everyone_can_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = tmp_path / "shared"
    work = shared / "mine" / "work"
    work.mkdir(parents=True)
    for folder in (shared, tmp_path):
        (folder / ".dlt").mkdir()
        (folder / ".dlt" / "config.toml").write_text("[sources.legacy]\nbase_url = 'https://planted.example'\n")
    monkeypatch.delenv("DLT_PROJECT_DIR", raising=False)
    monkeypatch.chdir(work)
    assert find_root() == shared
    shared.chmod(0o1777)
    assert find_root() == Path(__file__).parents[2]


def test_the_search_for_settings_ends_at_home_and_at_a_mount(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = tmp_path / "home"
    (home / "work").mkdir(parents=True)
    (tmp_path / ".dlt").mkdir()
    monkeypatch.delenv("DLT_PROJECT_DIR", raising=False)
    monkeypatch.chdir(home / "work")
    assert find_root() == tmp_path
    with monkeypatch.context() as patched:
        patched.setenv("HOME", str(home))
        assert find_root() == Path(__file__).parents[2]
    monkeypatch.setattr(Path, "is_mount", lambda path: path == home)
    assert find_root() == Path(__file__).parents[2]


def test_a_project_is_named_for_the_process(root: Path, tmp_path: Path) -> None:
    write(root, LEGACY)
    other = tmp_path / "other"
    (other / ".dlt").mkdir(parents=True)
    (other / ".dlt" / "secrets.toml").write_text(LEGACY.replace("a.example", "other.example"), "utf-8")
    assert set_project(other) == other
    assert legacy_settings().base_url == "https://other.example"
    assert os.environ["DLT_PROJECT_DIR"] == str(other)
    with pytest.raises(UsageError, match="--project: there is no folder"):
        set_project(tmp_path / "none")


def test_host_and_key_come_from_one_folder(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A host in dlt's global folder, or in a folder above, gets no key of the project."""
    write(root, LEGACY.replace('base_url = "https://a.example"\n', ""))
    monkeypatch.setenv("HOME", str(tmp_path))
    for folder in (tmp_path / ".dlt", tmp_path / "global" / "dlt"):
        folder.mkdir(parents=True)
        (folder / "config.toml").write_text("[sources.legacy]\nbase_url = 'https://planted.example'\n")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "global"))
    with pytest.raises(UsageError, match=r"base_url .* is not set"):
        legacy_settings()


def isolated(program: str, root: Path, tmp_path: Path, **environment: str) -> None:
    """Runs a program in a process of its own: dlt's context is the process's."""
    subprocess.run(
        [sys.executable, "-c", program, str(root), str(tmp_path / "data")],
        check=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2]), **environment},
        timeout=60,
    )


@pytest.mark.parametrize("is_imported", [True, False], ids=["dlt before", "dlt after"])
def test_the_global_folder_of_dlt_is_not_read(root: Path, tmp_path: Path, is_imported: bool) -> None:
    """For a user whose home cannot be written it is `<tmp>/dlt`, which anyone may create."""
    write(root, LEGACY)
    planted = tmp_path / "tmp" / "dlt"
    planted.mkdir(parents=True)
    (planted / "secrets.toml").write_text("[destination.postgres]\ncredentials = 'postgres://planted'\n")
    if not is_imported:  # it is used at import, and would look for a package that is not there
        (planted / "config.toml").write_text("[runtime]\nsentry_dsn = 'https://planted.example'\n")
    before = "import dlt\nassert dlt.secrets.get('destination.postgres.credentials'), 'dlt reads that folder'\n"
    program = (
        "import os, sys; from pathlib import Path\n"
        "os.geteuid = lambda: 1000\n"  # dlt has another folder for root
        f"{before if is_imported else ''}"
        "from sources.settings import *\n"
        "root = Path(sys.argv[1]); prepare_dlt(root, Path(sys.argv[2]))\n"
        "assert legacy_settings(root).base_url == 'https://a.example'\n"
        "import dlt\n"
        "assert dlt.current.run_context().global_dir == str(root / '.dlt')\n"
        "assert dlt.secrets.get('destination.postgres.credentials') is None\n"
        "assert dlt.config.get('runtime.sentry_dsn') is None\n"
        "assert dlt.secrets['sources.legacy.api_key']\n"
    )
    isolated(program, root, tmp_path, TMPDIR=str(tmp_path / "tmp"), HOME="/nonexistent")


def test_telemetry_is_off_for_whoever_imports_the_sources(tmp_path: Path) -> None:
    program = (
        "import os; os.environ.pop('RUNTIME__DLTHUB_TELEMETRY', None)\n"
        "import sources.legacy\n"
        "import dlt\n"
        "assert dlt.current.run_context().runtime_config.dlthub_telemetry is False\n"
    )
    isolated(program, tmp_path, tmp_path, DLT_DATA_DIR=str(tmp_path / "data"))


# --- values beyond what a parser handles ---------------------------------------------------------------------------

HUGE = "9" * 5000


@pytest.mark.parametrize(
    "config",
    [
        pytest.param(f"[sources.legacy]\npage_limit = {HUGE}\n", id="a number"),
        pytest.param(f"unrelated = {HUGE}\n", id="a number elsewhere"),
        pytest.param(f"unrelated = {'[' * 5000}{']' * 5000}\n", id="arrays"),
        pytest.param(f"unrelated = {'{a = ' * 400}1{'}' * 400}\n", id="tables"),
        pytest.param(f"{'a.' * 5000}b = 1\n", id="dotted names"),
    ],
)
def test_a_document_beyond_every_parser_is_refused(root: Path, config: str) -> None:
    write(root, LEGACY, config)
    with pytest.raises(UsageError, match=r"too long or values are nested too deeply|not valid TOML") as caught:
        legacy_settings()
    assert caught.value.exit_code == 2
    assert HUGE not in str(caught.value)


@pytest.mark.parametrize("value", [HUGE, "-" + HUGE, "1e99999", "nan", "inf"])
@pytest.mark.parametrize("name", ["SOURCES__LEGACY__PAGE_LIMIT", "SOURCES__HTTP__TIMEOUT_S"])
def test_a_number_beyond_every_limit_is_refused(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    write(root, LEGACY)
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=name) as caught:
        (http_settings if "HTTP" in name else legacy_settings)()
    assert HUGE not in str(caught.value)


@pytest.mark.parametrize("host", ["[::1%25eth0]:8000", "[::1%eth0]", "127.0.0.1%2e.example"])
def test_a_host_with_a_zone_or_an_escape_is_refused(host: str) -> None:
    for make in (legacy, v1):
        for scheme in ("http", "https"):
            with pytest.raises(UsageError, match=r"zone or an escape|is not an address"):
                make(f"{scheme}://{host}")


# --- environments, HTTP, secrets -----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", ["acme_test_live_x", "acme_test_x_live_y"])
def test_a_v1_key_that_may_be_live_is_not_read_as_sandbox(key: str) -> None:
    with pytest.raises(UsageError, match="its environment is unclear") as caught:
        v1(key=key)
    assert key not in str(caught.value)


def test_settings_of_http(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_settings() == HttpSettings(timeout_s=120.0, read_timeout_s=30.0)
    write(root, "", "[sources.http]\ntimeout_s = 60\nca_file = 'ca.pem'\nproxy = 'http://u:PLANTED@proxy:8080/'\n")
    monkeypatch.setenv("SOURCES__HTTP__READ_TIMEOUT_S", "2.5")
    http = http_settings()
    assert (http.timeout_s, http.read_timeout_s, http.ca_file) == (60.0, 2.5, root / "ca.pem")
    assert http.proxy is not None
    assert http.proxy.reveal() == "http://u:PLANTED@proxy:8080"
    assert "PLANTED" not in repr(http)
    for name, value in (("TIMEOUT_S", "0"), ("READ_TIMEOUT_S", "soon"), ("PROXY", "https://p:1"), ("PROXY", "p:1")):
        with monkeypatch.context() as patched:
            patched.setenv(f"SOURCES__HTTP__{name}", value)
            with pytest.raises(UsageError, match=f"SOURCES__HTTP__{name}"):
                http_settings()


def test_settings_of_reconcile_and_the_copy(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert (reconcile_settings().timezone, reconcile_settings().country) == (None, None)
    assert warehouse_settings().destination_dataset == "orderbridge"
    write(
        root,
        V1 + "order_key = 'uuid'\n",
        "[reconcile]\ntimezone = 'Europe/Madrid'\ncountry = 'ES'\norder_total = ' x '\n",
    )
    assert (reconcile_settings().timezone, reconcile_settings().country) == ("Europe/Madrid", "ES")
    assert reconcile_settings().orders.total == "x"
    assert public_v1_settings().order_key == "uuid"
    for name, value, load in (
        ("RECONCILE__TIMEZONE", "Madrid", reconcile_settings),
        ("RECONCILE__COUNTRY", "es", reconcile_settings),
        ("RECONCILE__ORDER_TOTAL", " ", reconcile_settings),
        ("WAREHOUSE__DESTINATION_DATASET", "Two Words", warehouse_settings),
        ("SOURCES__PUBLIC_V1__ORDER_KEY", " ", public_v1_settings),
    ):
        with monkeypatch.context() as patched:
            patched.setenv(name, value)
            with pytest.raises(UsageError, match=name):
                load()


def test_known_secrets_are_those_of_both_families_however_wrong_the_rest(root: Path) -> None:
    write(root, LEGACY.replace(KEY, "legacy-key") + "environment_ = 1\n" + V1.replace("https", "gopher"))
    assert known_secrets() == (KEY,)
    write(root, LEGACY.replace(KEY, "legacy-key") + V1.replace("https", "gopher"))
    assert known_secrets() == (KEY, "legacy-key")


def test_effective_settings_name_their_origin_and_mask_secrets(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, LEGACY, "[sources.http]\nproxy = 'http://u:PLANTED@proxy:1'\n")
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMIT", "7")
    monkeypatch.setenv("LEDGER__PATH", " ")
    facts = {item.setting.key: (item.text, item.origin) for item in effective_settings()}
    assert facts["sources.legacy.api_key"] == ("***", ".dlt/secrets.toml")
    assert facts["sources.http.proxy"] == ("***", ".dlt/config.toml")
    assert facts["sources.legacy.page_limit"] == ("7", "SOURCES__LEGACY__PAGE_LIMIT")
    assert facts["sources.http.timeout_s"] == ("120", "default")
    assert not {"ledger.path", "sources.public_v1.base_url"} & set(facts)
