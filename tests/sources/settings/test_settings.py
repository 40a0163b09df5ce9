"""Settings: what each accepts, how they are read, where they are found, and who may write them."""

from __future__ import annotations

import copy
import grp
import os
import pickle
import pwd
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from unittest import mock

import pytest

from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import (
    HttpSettings,
    LegacySettings,
    PublicV1Settings,
    Secret,
    check_same_environment,
    checks,
    find_root,
    http_settings,
    known_secrets,
    ledger_path,
    legacy_settings,
    misspelt_names,
    own_path,
    project_file,
    public_v1_settings,
    reconcile_settings,
    set_values,
    warehouse_path,
    warehouse_settings,
)
from orderbridge.sources.settings.loaders import is_set
from orderbridge.sources.settings.sections import SECTIONS
from orderbridge.sources.settings.setting import variable
from orderbridge.sources.urls import checked_proxy, checked_webhook

CHECKOUT = Path(__file__).parents[3]
KEY = "brand_test_PLANTED-SECRET-77"
LIVE = "brand_live_PLANTED-SECRET-77"
HUGE = "9" * 5000
LEGACY = f'[sources.legacy]\nbase_url = "https://a.example"\napi_key = "{KEY}"\nenvironment = "sandbox"\n'
V1 = f'[sources.public_v1]\nbase_url = "https://b.example"\napi_key = "{KEY}"\n'
LOADERS: dict[str, Callable[[], object]] = {
    "SOURCES__LEGACY": legacy_settings,
    "SOURCES__PUBLIC_V1": public_v1_settings,
    "SOURCES__HTTP": http_settings,
    "RECONCILE": reconcile_settings,
    "WAREHOUSE": warehouse_settings,
    "LEDGER": ledger_path,
}


def write(root: Path, secrets: str = "", config: str = "") -> None:
    (root / ".dlt" / "secrets.toml").write_text(secrets, "utf-8")
    (root / ".dlt" / "config.toml").write_text(config, "utf-8")


def legacy(
    base_url: str = "https://a.example", key: str = KEY, environment: str = "sandbox"
) -> LegacySettings:
    return LegacySettings(base_url=base_url, api_key=Secret(key), environment=environment)  # type: ignore[arg-type]


def v1(base_url: str = "https://b.example", key: str = KEY) -> PublicV1Settings:
    return PublicV1Settings(base_url=base_url, api_key=Secret(key))


@contextmanager
def refused(*words: str) -> Iterator[None]:
    """A UsageError with all of these words, and without a planted value."""
    with pytest.raises(UsageError) as caught:
        yield
    text = str(caught.value)
    assert all(word in text for word in words), text
    assert not [planted for planted in ("PLANTED", HUGE) if planted in text]
    assert caught.value.__cause__ is None


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


INVALID_URLS = {
    "https://": ("ftp://a.example", "a.example"),
    "no host": ("https://",),
    "user name": ("https://user:PLANTED@a.example",),
    "query": ("https://a.example?x=PLANTED", "https://a.example/#"),
    "Remove /public/v1": ("https://a.example/public/v1/", "https://a.example/Public/V1"),
    "unencrypted": (
        "http://192.168.1.7",
        "http://0.0.0.0",
        "http://nas",
        "http://localhost.a.example",
    ),
    "is not an address": ("https://a.example:port", ""),
    "a character that no address has": ("https://a.example\\@b.example", "https://a.exam\nple"),
    "zone or an escape": ("https://127.0.0.1%2e.example",),
}


@pytest.mark.parametrize("why", INVALID_URLS)
def test_an_invalid_base_url_is_an_error(why: str) -> None:
    for base_url in INVALID_URLS[why]:
        for make in (legacy, v1):
            with refused(why, "BASE_URL"):
                make(base_url)


def test_an_address_has_one_form() -> None:
    """The ledger and the warehouse tell platforms apart by this text."""
    hosts = ("127.0.0.1:8000", "127.9.9.9", "[::1]:8000", "localhost")
    addresses = {f"http://{host}//": f"http://{host}" for host in hosts} | {
        "HTTPS://Shop.Example:8443/Base/": "https://shop.example:8443/Base",
        "https://a.example:": "https://a.example",
        "https://[fd00::443]:443": "https://[fd00::443]",
        "http://LocalHost:80": "http://localhost",
    }
    assert {written: legacy(written).base_url for written in addresses} == addresses


def test_a_key_that_would_break_its_header_is_an_error() -> None:
    for key in (
        "",
        " ",
        "a b",
        "brand_test_x\r\nX: PLANTED",
        "brand_test_ñ",
        "\x7f",
        '"x"',
        "brand_live_replace-me",
    ):
        for make in (legacy, v1):
            with refused("API_KEY"):
                make(key=key)


@pytest.mark.parametrize(
    ("typed", "zone"),
    [
        ("Europe/Madrid", "Europe/Madrid"),
        ("europe/madrid", "Europe/Madrid"),
        (" madrid ", "Europe/Madrid"),
        ("New York", "America/New_York"),
        ("utc", "UTC"),
        ("EST", "EST"),
    ],
)
def test_a_time_zone_is_known_by_its_city(typed: str, zone: str) -> None:
    assert checks.time_zone("reconcile.timezone", typed) == zone


@pytest.mark.parametrize("typed", ["Mars", "Buenos Aires", "", "/", 5])
def test_a_time_zone_that_is_none_or_one_of_several_is_an_error(typed: object) -> None:
    with pytest.raises(UsageError, match="not a known time zone"):
        checks.time_zone("reconcile.timezone", typed)


@pytest.mark.parametrize("typed", ["", "paid", "paid=sale,=open", "paid=sold", 5])
def test_a_table_that_lacks_a_value_or_one_of_its_words_is_an_error(typed: object) -> None:
    with pytest.raises(UsageError, match="not a table of values and words"):
        checks.table("sale", "open")("reconcile.order_statuses", typed)


def test_webhooks_and_proxies() -> None:
    assert (
        checked_webhook("notify.url", "https://hooks.example/T?x=1")
        == "https://hooks.example/T?x=1"
    )
    for url in (
        "http://hooks.example/PLANTED",
        "ftp://x/PLANTED",
        "https://u:PLANTED@x/",
        "https:///PLANTED",
    ):
        with refused("notify.url"):
            checked_webhook("notify.url", url)
    assert checked_proxy("p", "http://u:PLANTED@proxy:8080/") == "http://u:PLANTED@proxy:8080"
    for url in (
        "socks5://127.0.0.1:1",
        "https://p:1",
        "http://",
        "http://p",
        "http://u:PLANTED@b:x",
        "http://p:1/a",
    ):
        with refused("p is not"):
            checked_proxy("p", url)


def test_the_prefix_of_a_v1_key_is_its_environment() -> None:
    environments = {
        "b_live_x": "production",
        "b_test_x": "sandbox",
        "my_brand_live_x": "production",
    }
    assert {key: v1(key=key).environment for key in environments} == environments
    for key in (
        "PLANTED",
        "_test_PLANTED",
        "brand-test-PLANTED",
        "brand_prod_PLANTED",
        "PLANTED_live_x_test_y",
    ):
        with refused("orderbridge init sources.public_v1.api_key"):
            v1(key=key)
    check_same_environment(legacy(), v1())
    with refused("different environments"):
        check_same_environment(legacy(), v1(key=LIVE))


@pytest.mark.parametrize("environment", ["production", "sandbox"])
@pytest.mark.parametrize("host", ["api", "testing", "prod", "api.sbx", "sandbox.production"])
def test_a_host_named_after_the_other_environment_is_an_error(environment: str, host: str) -> None:
    key, url = LIVE if environment == "production" else KEY, f"https://{host}.a.example"
    names = {"prod": ["production"], "api.sbx": ["sandbox"], "sandbox.production": []}.get(
        host, [environment]
    )
    for make, setting in (
        (lambda: legacy(url, key, environment), "LEGACY"),
        (lambda: v1(url, key), "PUBLIC_V1"),
    ):
        with nullcontext() if environment in names else refused(f"SOURCES__{setting}__BASE_URL"):
            make()


CHOICES = ("ENVIRONMENT", "LOGIN_MODE", "STOCK_SEMANTICS", "PRICE_SEMANTICS")
INVALID = {
    "SOURCES__LEGACY__PAGE_LIMIT": ("0", "-1", "x", "1.5", "²", HUGE),
    "SOURCES__PUBLIC_V1__PAGE_LIMIT": ("0", "101"),
    **{f"SOURCES__LEGACY__{name}": ("Sandbox", "", "5") for name in CHOICES},
    "SOURCES__HTTP__TIMEOUT_S": ("0", HUGE, "nan", "soon"),
    "SOURCES__HTTP__PROXY": ("https://p:1", "p:1"),
    "RECONCILE__TIMEZONE": ("Mars",),
    "RECONCILE__COUNTRY": ("es",),
    "RECONCILE__ORDER_TOTAL": (" ",),
    "WAREHOUSE__DESTINATION_DATASET": ("Two Words",),
    "WAREHOUSE__PATH": ("", " ", ".", "~no-such-user/w.duckdb"),
}


def test_paths_are_relative_to_the_project(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "notebooks").mkdir()
    monkeypatch.chdir(root / "notebooks")
    assert (warehouse_path(), ledger_path()) == (root / "warehouse.duckdb", root / "ledger.sqlite")
    write(root, "", "[warehouse]\npath = 'data/w.duckdb'\n[sources.http]\nca_file = 'ca.pem'\n")
    assert (warehouse_path(), ledger_path()) == (
        root / "data" / "w.duckdb",
        root / "data" / "ledger.sqlite",
    )
    assert http_settings().ca_file == root / "ca.pem"
    monkeypatch.setenv("LEDGER__PATH", str(tmp_path / "l.sqlite"))
    assert ledger_path() == tmp_path / "l.sqlite"


def without(setting: str, line: str = "") -> str:
    """The settings of the legacy family without one, or with another line for it."""
    return "\n".join(line if each.startswith(setting) else each for each in LEGACY.splitlines())


PATHS_LEFT = {
    "begins or ends with a quotation mark": ('"{}"', "'{}"),
    "or a blank": (" {}", "{}\r"),
    "a variable that was not expanded": ("$HOME{}", "${{HOME}}{}"),
}
"""Paths as docker, cron or an editor leaves them."""
REFUSALS: list[tuple[str, str, dict[str, str], str]] = [
    # what is not set
    *(("SOURCES__LEGACY", without(name), {}, f"sources.legacy.{name} (SOURCES__LEGACY__{name.upper()}) is not set")
      for name in ("base_url", "api_key", "environment")),
    ("SOURCES__PUBLIC_V1", "", {}, "base_url (SOURCES__PUBLIC_V1__BASE_URL) … API_KEY) are not … init"),
    ("SOURCES__LEGACY", "", {"SOURCES__LEGACY_BASE_URL": "https://x"}, "There is a `SOURCES__LEGACY_BASE_URL`"),
    ("SOURCES__LEGACY", LEGACY.replace("sources.", "source."), {}, "There is a `source.legacy.base_url`"),
    # what is no setting
    ("SOURCES__LEGACY", f"{LEGACY}page_limmit = 5", {}, "no setting `sources.legacy.page_limmit` … mean `page_limit`"),
    *(("SOURCES__LEGACY", LEGACY, {name: "PLANTED"}, f"{name} … Did you mean `SOURCES__LEGACY__API_KEY`")
      for name in ("SOURCES__LEGACY__APIKEY", "sources__legacy__api_key", "SOURCES__LEGACY__API__KEY")),
    # values that cannot be used, and those that only a file can hold
    *((name.rpartition("__")[0], LEGACY + V1, {name: value}, name)
      for name, values in INVALID.items() for value in values),
    *(("SOURCES__LEGACY", without(name, f"{name} = 5"), {}, f"SOURCES__LEGACY__{name.upper()} … is not")
      for name in ("base_url", "api_key", "environment")),
    ("SOURCES__LEGACY", f"{LEGACY}page_limit = true", {}, "SOURCES__LEGACY__PAGE_LIMIT … is not … "
     "To change it in .dlt/secrets.toml: orderbridge init sources.legacy.page_limit"),
    ("WAREHOUSE", '[warehouse]\npath = "a\\u0000b"', {}, "WAREHOUSE__PATH … is not"),
    *((name.rpartition("__")[0], "", {name: form.format("/data/file")}, f"{name} … {words}")
      for name in ("WAREHOUSE__PATH", "LEDGER__PATH", "SOURCES__HTTP__CA_FILE")
      for words, forms in PATHS_LEFT.items() for form in forms),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSALS)))
def test_settings_that_cannot_be_used_are_named_with_what_to_do(
    root: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    loader, secrets, environment, words = REFUSALS[number]
    write(root, secrets)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with refused(*words.split(" … ")):
        LOADERS[loader]()


def test_a_secret_is_masked_and_not_pickled() -> None:
    settings = legacy()
    for text in (
        repr(settings),
        str(settings),
        f"{settings.api_key:>9}",
        repr(v1()),
        str(vars(settings)),
    ):
        assert "PLANTED" not in text
    assert "***" in repr(settings)
    with pytest.raises(TypeError):
        pickle.dumps(settings.api_key)
    assert copy.deepcopy(settings) == settings != legacy(key="another")


def test_the_environment_precedes_secrets_and_secrets_precede_config(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert http_settings() == HttpSettings(timeout_s=120.0, read_timeout_s=30.0)
    config = (
        "[sources.legacy]\npage_limit = 30\nlogin_mode = 'code'\n[reconcile]\norder_total = ' x '\n"
    )
    write(root, LEGACY + "page_limit = 20\n" + V1 + "order_key = 'uuid'\n", config)
    settings = legacy_settings()
    assert (settings.page_limit, settings.login_mode, settings.stock_semantics) == (
        20,
        "code",
        "unknown",
    )
    assert (public_v1_settings().order_key, reconcile_settings().orders.total) == ("uuid", "x")
    write(root, (root / ".dlt/secrets.toml").read_text().replace("= 20", "= 25"), config)
    assert legacy_settings().page_limit == 25, "a change that keeps the length"
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMIT", "10")
    monkeypatch.setenv("SOURCES__HTTP__READ_TIMEOUT_S", "2.5")
    assert (legacy_settings().page_limit, http_settings().read_timeout_s) == (10, 2.5)
    write(root, V1 + "[sources.legacy]\nnonsense = 1\n")  # of another family
    assert (public_v1_settings().environment, is_set("sources.public_v1")) == ("sandbox", True)
    monkeypatch.delenv("SOURCES__LEGACY__PAGE_LIMIT")
    write(root, V1)
    assert not is_set("sources.legacy")


@pytest.mark.parametrize(
    "name", ["LEDGER_PATH", "SOURCES__LEAGCY__STOCK_SEMANTICS", "sources.Legacy", "legacy"]
)
def test_a_name_that_only_looks_like_a_setting_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(root, LEGACY)
    monkeypatch.setenv("SOURCES__LEGACY__APIKEY", "PLANTED")  # an error of its own
    assert misspelt_names() == {}
    if name.isupper():
        monkeypatch.setenv(name, "PLANTED")
        assert list(misspelt_names()) == [name]
    else:
        write(root, f"{LEGACY}\n[{name}]\nstock_semantics = 'set'\n")
        assert misspelt_names() == {f"{name}.stock_semantics": "sources.legacy.stock_semantics"}


UNUSABLE: dict[bytes, str] = {
    b"[sources.legacy]\napi_key = PLANTED\n": "line 2: not valid TOML",
    b"x = '\xff'\n": "UTF-8",
    b"sources = 5\n": "is not a table",
    f"[sources.legacy]\npage_limit = {HUGE}\n".encode(): "too long",
    b"unrelated = " + b"[" * 5000 + b"]" * 5000: "nested too deeply",
}


@pytest.mark.parametrize("file", ["secrets.toml", "config.toml"])
def test_a_file_that_cannot_be_used_is_an_error_that_does_not_quote_it(
    root: Path, file: str
) -> None:
    for text, words in UNUSABLE.items():
        (root / ".dlt" / file).write_bytes(text)
        with refused(file, words):
            legacy_settings()
    write(root, "", LEGACY)
    with refused("Move it to .dlt/secrets.toml"):
        legacy_settings()


def test_known_secrets_are_of_both_families_even_if_other_settings_are_invalid(
    root: Path,
) -> None:
    write(
        root,
        LEGACY.replace(KEY, "legacy-key") + "environment_ = 1\n" + V1.replace("https", "gopher"),
    )
    assert known_secrets() == (KEY,)
    write(root, LEGACY.replace(KEY, "legacy-key") + V1.replace("https", "gopher"))
    assert known_secrets() == (KEY, "legacy-key")
    for password, secrets in (("p%C3%A4@ssw", ["p%C3%A4@ssw", "pä@ssw"]), ("e", []), ("proxy", [])):
        write(root, V1, f'[sources.http]\nproxy = "http://user:{password}@proxy.example:3128"\n')
        assert known_secrets() == tuple(sorted((KEY, *secrets))), (
            "but for what may be part of any text"
        )


def test_what_is_set_is_shown_with_its_origin_and_secrets_are_masked(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    misplaced = "[sources.public_v1]\napi_key = 'PLANTED'\n"
    write(
        root,
        LEGACY,
        f"[sources.http]\nproxy = 'http://u:PLANTED@proxy:1'\nunknown = 1\n{misplaced}",
    )
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMIT", "7")
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMITS", "8")
    monkeypatch.setenv("LEDGER__PATH", " ")  # invalid
    assert list(set_values()) == [
        "sources.legacy.base_url = https://a.example (.dlt/secrets.toml)",
        "sources.legacy.api_key = *** (.dlt/secrets.toml)",
        "sources.legacy.environment = sandbox (.dlt/secrets.toml)",
        "sources.legacy.page_limit = 7 (SOURCES__LEGACY__PAGE_LIMIT)",
        "sources.http.proxy = *** (.dlt/config.toml)",
    ]


# For a user whose home cannot be written, dlt's global folder is `<tmp>/dlt`, which anyone may create. For root it has
# another one.
PROGRAM = """
import os, sys
from pathlib import Path
os.geteuid = lambda user=os.geteuid() or 1000: user
os.environ.pop("RUNTIME__DLTHUB_TELEMETRY", None)
if is_before := sys.argv[4] == "before":
    import dlt
    assert dlt.secrets.get("destination.postgres.credentials"), "dlt reads that folder"
from orderbridge.sources.settings import *
assert os.environ["RUNTIME__DLTHUB_TELEMETRY"] == "false", "sources alone turn it off"
root, other, data = map(Path, sys.argv[1:4])
prepare_dlt(root, data)
os.chdir("/")
ours = legacy_settings()
assert ("dlt" in sys.modules) is is_before
started = []
sys.addaudithook(lambda event, about: started.append(about) if event == "subprocess.Popen" else None)
load_dlt()
assert not started, "dlt's import starts programs, with all keys in their environment"
import dlt
context = dlt.current.run_context()
assert (context.global_dir, context.runtime_config.dlthub_telemetry) == (str(root / ".dlt"), False)
assert dlt.secrets["sources.legacy.api_key"] == ours.api_key.reveal()
assert dlt.config["sources.legacy.page_limit"] == ours.page_limit == 7
assert dlt.secrets.get("destination.postgres.credentials") is None
prepare_dlt(other, data)
load_dlt()
assert dlt.secrets["sources.legacy.api_key"] == "of another organization"
assert dlt.current.run_context().local_dir == str(other)
assert os.umask(0) == 0o077
"""


@pytest.mark.parametrize("read", ["before", "later"])
def test_dlt_reads_the_settings_of_the_project_and_no_others(
    root: Path, tmp_path: Path, read: str
) -> None:
    """In a process of its own: dlt's context is the process's."""
    write(root, LEGACY, "[sources.legacy]\npage_limit = 7\n")
    other, planted, data = (tmp_path / name for name in ("other", "tmp/dlt", "data"))
    for folder in (planted, other / ".dlt"):
        folder.mkdir(parents=True)
    write(other, "[sources.legacy]\napi_key = 'of another organization'\n")
    (planted / "secrets.toml").write_text(
        "[destination.postgres]\ncredentials = 'postgres://planted'\n"
    )
    environment = {
        "DLT_DATA_DIR": str(data),
        "TMPDIR": str(tmp_path / "tmp"),
    }
    subprocess.run(
        [sys.executable, "-c", PROGRAM, root, other, data, read],
        check=True,
        cwd=tmp_path,
        env={**os.environ, **environment, "HOME": "/nonexistent"},
        timeout=60,
    )


def test_the_root_is_the_nearest_folder_with_dlt(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deep = root / "notebooks" / "deep"
    deep.mkdir(parents=True)
    assert project_file("plan") == Path("plan")
    monkeypatch.chdir(deep)
    assert (find_root(), project_file("plan")) == (root, root / "plan")
    monkeypatch.setenv("DLT_PROJECT_DIR", str(deep))
    assert find_root() == deep
    monkeypatch.setenv("DLT_PROJECT_DIR", str(deep / "none"))
    with refused("DLT_PROJECT_DIR"):
        find_root()


def test_home_counts_if_it_has_our_settings_and_the_search_ends_there_or_at_mounts(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the checkout counts if it has settings, otherwise the current folder."""
    home, work = tmp_path / "home", tmp_path / "home" / "work"
    for folder in (tmp_path / ".dlt", home / ".dlt", work):
        folder.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(work)
    for foreign in (
        "",
        "[runtime]\ndlthub_telemetry = true\n",
        "[sources.github]\napi_key = 'x'\n",
    ):
        write(home, config=foreign)
        assert find_root() == work
    write(home, config="[sources.legacy]\nbase_url = 'https://api.example.com'\n")
    assert find_root() == home
    (home / ".dlt").rename(home / "settings")
    with monkeypatch.context() as patched:
        patched.setenv("HOME", "/nonexistent")
        patched.setattr(Path, "is_mount", lambda path: path == home)
        assert find_root() == work
    write(root, LEGACY)
    monkeypatch.setattr("orderbridge.sources.settings.root.CHECKOUT", root)
    assert find_root() == root


@pytest.mark.parametrize("name", ["warehouse.duckdb", "ledger.sqlite"])
def test_files_where_earlier_versions_had_them_are_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(root, LEGACY)
    (root / "sub").mkdir()
    monkeypatch.chdir(root / "sub")
    (root / "sub" / name).touch()
    with refused(f"{root / name} does not exist, but {root / 'sub' / name} does"):
        ledger_path()
    (root / "sub/.dlt").mkdir()
    monkeypatch.setenv("DLT_PROJECT_DIR", str(root))
    write(root / "sub", LEGACY)
    assert ledger_path() == root / "ledger.sqlite", "that of another project is its own"
    monkeypatch.setenv("WAREHOUSE__PATH", str(root / "warehouse.duckdb"))
    assert ledger_path() == root / "ledger.sqlite"


needs_root = pytest.mark.skipif(
    os.name == "nt" or os.geteuid() != 0, reason="changing owners takes root"
)
STRANGER = 54321


@needs_root
@pytest.mark.parametrize(
    ("name", "owner", "mode"),
    [
        *((name, STRANGER, 0o700) for name in (".dlt", ".dlt/config.toml", ".dlt/secrets.toml")),
        *(
            (".dlt", 0, 0o777),
            (".dlt/config.toml", 0, 0o646),
            (".dlt/secrets.toml", 0, 0o602),
            (".dlt", 0, 0o1777),
        ),
    ],
)
def test_settings_that_another_user_owns_or_can_write_are_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, owner: int, mode: int
) -> None:
    write(root, LEGACY, f"[files]\nshared_folder = '{root}'\n")
    assert legacy_settings().base_url == "https://a.example"
    (root / "mine/work").mkdir(parents=True)
    (root / name).chmod(mode)
    os.chown(root / name, owner, -1)
    words = "belongs to another user" if owner else f"chmod go-w {root / name}"
    if mode & stat.S_ISVTX:  # as /tmp is, which all programs of the machine use
        words = "Use a folder of your own\n"
    for folder in (root, root / "mine/work"):
        monkeypatch.chdir(folder)
        with refused(words, str(root / name)):
            legacy_settings()  # what the file itself says does not count
    monkeypatch.setattr("orderbridge.sources.settings.ownership._code_owner", lambda: owner)
    with refused(words):
        legacy_settings()
    with monkeypatch.context() as checkout:
        checkout.setattr("orderbridge.sources.settings.ownership.CHECKOUT", root)
        with nullcontext() if owner else refused(words):  # that may belong to the owner of its code
            legacy_settings()
    monkeypatch.setenv("FILES__SHARED_FOLDER", str(root))
    assert legacy_settings().base_url == "https://a.example"


@needs_root
def test_a_link_that_another_user_made_is_an_error(root: Path) -> None:
    link = root / "report.html"
    link.symlink_to(root / "target")
    (root / "target").touch()
    assert own_path(link) == root / "target"
    os.lchown(link, STRANGER, -1)
    with refused("belongs to another user"):
        own_path(link)


@pytest.mark.parametrize("mode", [0o1777, 0o777, 0o775, 0o757])
def test_a_folder_that_others_can_write_holds_no_private_file(
    root: Path, monkeypatch: pytest.MonkeyPatch, mode: int
) -> None:
    shared, own, team = root / "shared", root / "own", mock.Mock(gr_gid=-1)
    for folder in (shared, own):
        folder.mkdir()
    shared.chmod(mode)
    (own / "ledger.sqlite").symlink_to(shared / "ledger.sqlite")
    monkeypatch.setattr(grp, "getgrgid", lambda _: team)
    monkeypatch.setenv("WAREHOUSE__PATH", str(shared / "w.duckdb"))
    monkeypatch.setenv("LEDGER__PATH", str(own / "ledger.sqlite"))
    for path_of in (warehouse_path, ledger_path):
        with refused(
            f"{shared} can be written by other users", "set FILES__SHARED_FOLDER to the folder"
        ):
            path_of()
    write(root, config=f"[files]\nshared_folder = '{shared}'\n")
    assert (warehouse_path(), ledger_path()) == (shared / "w.duckdb", shared / "ledger.sqlite")
    shared.chmod(0o755)
    write(root)
    assert warehouse_path() == shared / "w.duckdb"


def test_a_group_of_the_user_alone_is_the_user(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    root.chmod(0o775)
    team = mock.Mock(gr_gid=root.stat().st_gid)
    monkeypatch.setattr(grp, "getgrgid", lambda _: team)
    monkeypatch.setattr(pwd, "getpwuid", lambda _: mock.Mock(pw_name="ana", pw_gid=team.gr_gid))
    for team.gr_name, team.gr_mem in (("ana", []), ("ana", ["ana"])):
        assert own_path(root / "w.duckdb") == root / "w.duckdb"
    for team.gr_name, team.gr_mem in (("ana", ["ana", "bea"]), ("staff", [])):
        with refused("can be written by other users"):
            own_path(root / "w.duckdb")


@needs_root
@pytest.mark.parametrize(
    "name",
    ["", "w.duckdb", "w.duckdb.wal", "w.duckdb-journal", "w.duckdb.failed.json", ".w.duckdb.lock"],
)
def test_a_folder_of_another_user_or_what_one_left_in_it_is_an_error(root: Path, name: str) -> None:
    folder = root / "data"
    folder.mkdir()
    (folder / "other.txt").touch()
    os.chown(folder / "other.txt", STRANGER, -1)
    assert own_path(folder / "w.duckdb") == folder / "w.duckdb"
    if name:
        (folder / name).touch()
    os.chown(folder / name, STRANGER, -1)
    with refused(f"{folder / name} belongs to another user (uid {STRANGER})"):
        own_path(folder / "w.duckdb")


@pytest.mark.parametrize("way", ["variable", "systemd", "kubernetes"])
def test_secrets_are_read_from_files_of_their_own(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    other = LEGACY.replace(KEY, "brand_test_ANOTHER")
    write(root, other)
    folder = tmp_path / "mounted"
    file = folder / "sources.legacy.api_key"
    folder.mkdir()
    if way == "kubernetes":  # links into a folder that is swapped
        folder.chmod(0o1777)
        (folder / "..2026").mkdir()
        (folder / "..data").symlink_to("..2026")
        file.symlink_to("..data/key")
    file.write_text(f"{KEY}\n")
    if way == "systemd":
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
        origin = "the credential sources.legacy.api_key"
    else:
        monkeypatch.setenv("SOURCES__LEGACY__API_KEY_FILE", str(file))
        origin = "SOURCES__LEGACY__API_KEY_FILE"
    assert legacy_settings().api_key.reveal() == KEY
    assert f"sources.legacy.api_key = *** ({origin})" in [*set_values()]
    assert KEY in known_secrets()
    if way == "systemd":
        monkeypatch.setenv("SOURCES__LEGACY__API_KEY", "brand_test_nearer")
        assert legacy_settings().api_key.reveal() == "brand_test_nearer"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (None, "cannot be read|is not a file"),
        (b"", "is empty"),
        (b" \n", "is empty"),
        (KEY.encode() + b"\xff", "is not UTF-8"),
        (KEY.encode() * 5000, "is too large"),
        ("ñ".encode() * 40_000, "is too large"),
    ],
)
def test_a_file_that_holds_no_secret_is_named_and_never_shown(
    root: Path, monkeypatch: pytest.MonkeyPatch, content: bytes | None, words: str
) -> None:
    write(root, LEGACY)
    if content is not None:
        (root / "key").write_bytes(content)
    monkeypatch.setenv("SOURCES__LEGACY__API_KEY_FILE", "key")
    with pytest.raises(UsageError, match=words) as caught:
        legacy_settings()
    assert str(root / "key") in str(caught.value)
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize("folder", ["x" * 5000, "/dev/null/x", "nowhere", ""])
def test_a_folder_of_credentials_that_is_not_ours_is_not_read(
    root: Path, monkeypatch: pytest.MonkeyPatch, folder: str
) -> None:
    write(root, LEGACY)
    monkeypatch.setenv("CREDENTIALS_DIRECTORY", folder)
    assert legacy_settings().api_key.reveal() == KEY


def test_a_path_that_was_not_expanded_is_no_file_of_a_secret(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, LEGACY)
    for path in ("~nosuchuser/key", "$HOME/key", "'key'"):
        monkeypatch.setenv("SOURCES__LEGACY__API_KEY_FILE", path)
        with refused("SOURCES__LEGACY__API_KEY_FILE"):
            legacy_settings()


def test_a_file_of_a_secret_is_under_the_rule_for_private_files(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, LEGACY)
    (root / "ledger.sqlite").touch()
    folder = tmp_path / "mounted"
    folder.mkdir()
    (folder / "key").write_text(KEY)
    monkeypatch.setenv("SOURCES__LEGACY__API_KEY_FILE", str(folder / "key"))
    folder.chmod(0o777)
    with refused(f"{folder} can be written by other users"):
        legacy_settings()
    folder.chmod(0o700)
    (folder / "key").chmod(0o646)
    with refused(f"{folder / 'key'} can be written by other users"):
        legacy_settings()
    (folder / "key").chmod(0o600)
    monkeypatch.setenv("SOURCES__LEGACY__API_KEY", KEY)
    with refused("SOURCES__LEGACY__API_KEY and SOURCES__LEGACY__API_KEY_FILE are both set"):
        legacy_settings()
    monkeypatch.delenv("SOURCES__LEGACY__API_KEY")
    monkeypatch.setenv("SOURCES__LEGACY__BASE_URL_FILE", str(folder / "key"))
    with refused("there is no setting"):
        legacy_settings()


def test_certificates_that_others_can_write_are_an_error(root: Path) -> None:
    file = root / "ca.pem"
    file.touch()
    write(root, config=f"[sources.http]\nca_file = '{file}'\n")
    assert http_settings().ca_file == file
    file.chmod(0o646)
    with refused("ca.pem can be written by other users"):
        http_settings()
