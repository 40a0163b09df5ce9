"""What single settings accept."""

from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from sources.settings import (
    HttpSettings,
    check_same_environment,
    http_settings,
    ledger_path,
    legacy_settings,
    public_v1_settings,
    reconcile_settings,
    warehouse_path,
    warehouse_settings,
)
from sources.urls import checked_proxy, checked_webhook
from tests.sources.settings.samples import KEY, LEGACY, LIVE, LOADERS, V1, legacy, refused, v1, write

PRIVATE_HOSTS = ("10.0.0.7", "192.168.1.7", "[fd00::7]", "0.0.0.0", "nas", "127.0.0.1.a.example", "localhost.a.example")


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
        *((f"http://{host}", "unencrypted") for host in PRIVATE_HOSTS),
        ("https://a.example:port", "is not an address"),
        ("https://a.exam\nple", "line end"),
        ("https://a.example\\@b.example", "a character that no address has"),
        ("https://[::1", "is not an address"),
        ("https://127.0.0.1%2e.example", "zone or an escape"),
        ("", "is not an address"),
    ],
)
def test_an_invalid_base_url_is_an_error(base_url: str, why: str) -> None:
    for make in (legacy, v1):
        with refused(why, "BASE_URL"):
            make(base_url)


@pytest.mark.parametrize(
    ("written", "url"),
    [
        *(
            (f"http://{host}//", f"http://{host}")
            for host in ("127.0.0.1:8000", "127.9.9.9", "[::1]:8000", "localhost")
        ),
        ("HTTPS://Shop.Example:8443/Base/", "https://shop.example:8443/Base"),
        ("https://a.example:443/base", "https://a.example/base"),
        ("https://a.example:", "https://a.example"),
        ("https://[fd00::443]:443", "https://[fd00::443]"),
        ("https://a.example:80", "https://a.example:80"),
        ("http://LocalHost:80", "http://localhost"),
    ],
)
def test_an_address_has_one_form(written: str, url: str) -> None:
    """The ledger and the warehouse tell platforms apart by this text."""
    assert legacy(written).base_url == url


@pytest.mark.parametrize(
    "key",
    [
        "", " ", "a b", "brand_test_x\n", "brand_test_x\r\nX: PLANTED", "brand_test_ñ", "brand_test_\x7f",
        '"brand_test"', "brand_live_replace-me",
    ],
)  # fmt: skip
def test_a_key_that_would_break_its_header_is_an_error(key: str) -> None:
    for make in (legacy, v1):
        with refused("API_KEY"):
            make(key=key)


def test_webhooks_and_proxies() -> None:
    assert checked_webhook("notify.url", "https://hooks.example/T?x=1") == "https://hooks.example/T?x=1"
    for url in ("http://hooks.example/PLANTED", "ftp://x/PLANTED", "https://u:PLANTED@x/", "https:///PLANTED"):
        with refused("notify.url"):
            checked_webhook("notify.url", url)
    assert checked_proxy("p", "http://u:PLANTED@proxy:8080/") == "http://u:PLANTED@proxy:8080"
    for url in ("socks5://127.0.0.1:1", "https://p:1", "http://", "http://p", "http://u:PLANTED@b:x", "http://p:1/a"):
        with refused("p is not"):
            checked_proxy("p", url)


@pytest.mark.parametrize(
    ("key", "environment"),
    [
        ("b_live_x", "production"),
        ("b_test_x", "sandbox"),
        ("my_brand_live_x", "production"),
        *((key, "") for key in ("PLANTED", "_test_PLANTED", "brand-test-PLANTED", "brand_prod_PLANTED")),
        *((key, "") for key in ("PLANTED_test_live_x", "PLANTED_live_x_test_y")),
    ],
)
def test_the_prefix_of_a_v1_key_is_its_environment(key: str, environment: str) -> None:
    if environment:
        assert v1(key=key).environment == environment
    else:
        with refused("SOURCES__PUBLIC_V1__API_KEY"):
            v1(key=key)


def test_families_of_two_environments_are_an_error() -> None:
    check_same_environment(legacy(), v1())
    with refused("different environments"):
        check_same_environment(legacy(), v1(key=LIVE))


@pytest.mark.parametrize(
    ("host", "environment", "fits"),
    [
        ("sandbox.a.example", "production", False), ("api.sbx.a.example", "production", False),
        ("production.a.example", "sandbox", False), ("sandbox.a.example", "sandbox", True),
        ("api.a.example", "production", True), ("testing.a.example", "production", True),
        ("sandbox.production.a.example", "sandbox", False),
    ],
)  # fmt: skip
def test_a_host_named_after_the_other_environment_is_an_error(host: str, environment: str, fits: bool) -> None:
    key = LIVE if environment == "production" else KEY
    if fits:
        legacy(f"https://{host}", key, environment)
        v1(f"https://{host}", key)
        return
    with refused("SOURCES__LEGACY__BASE_URL"):
        legacy(f"https://{host}", key, environment)
    with refused("SOURCES__PUBLIC_V1__BASE_URL"):
        v1(f"https://{host}", key)


CHOICES = ("ENVIRONMENT", "LOGIN_MODE", "STOCK_SEMANTICS", "PRICE_SEMANTICS")
HUGE = "9" * 5000
INVALID = {
    "SOURCES__LEGACY__PAGE_LIMIT": ("0", "-1", "x", "1.5", "²", HUGE, "-" + HUGE, "1e99999"),
    "SOURCES__PUBLIC_V1__PAGE_LIMIT": ("0", "101"),
    **{f"SOURCES__LEGACY__{name}": ("Sandbox", "", "5") for name in CHOICES},
    "SOURCES__HTTP__TIMEOUT_S": ("0", HUGE, "1e99999", "nan", "inf"),
    "SOURCES__HTTP__READ_TIMEOUT_S": ("soon",),
    "SOURCES__HTTP__PROXY": ("https://p:1", "p:1"),
    "RECONCILE__TIMEZONE": ("Madrid",),
    "RECONCILE__COUNTRY": ("es",),
    "RECONCILE__ORDER_TOTAL": (" ",),
    "WAREHOUSE__DESTINATION_DATASET": ("Two Words",),
    "WAREHOUSE__PATH": ("", " ", ".", "~no-such-user/w.duckdb"),
    "SOURCES__PUBLIC_V1__ORDER_KEY": (" ",),
}


@pytest.mark.parametrize("name", INVALID)
def test_an_invalid_value_is_an_error_that_names_the_variable(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(root, LEGACY + V1)
    load = LOADERS[name.rpartition("__")[0]]
    load()
    for value in INVALID[name]:
        monkeypatch.setenv(name, value)
        with refused(name):
            load()


@pytest.mark.parametrize(
    ("name", "line"),
    [
        *((f"SOURCES__LEGACY__{name}", f"{name.lower()} = 5") for name in ("BASE_URL", "API_KEY", "ENVIRONMENT")),
        ("SOURCES__LEGACY__PAGE_LIMIT", "page_limit = true"),
        ("WAREHOUSE__PATH", 'path = "a\\u0000b"'),
        ("RECONCILE__COUNTRY", "country = 34"),
    ],
)
def test_a_value_that_only_a_file_can_hold_is_an_error(root: Path, name: str, line: str) -> None:
    section = name.rpartition("__")[0]
    key = line.partition(" ")[0]
    rest = "\n".join(one for one in LEGACY.splitlines() if not one.startswith(key)) if "LEGACY" in name else ""
    table = rest or f"[{section.lower()}]"
    write(root, f"{table}\n{line}\n")
    with refused(name, "is not"):
        LOADERS[section]()


def test_values_are_read_from_files_and_variables(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert http_settings() == HttpSettings(timeout_s=120.0, read_timeout_s=30.0)
    assert (reconcile_settings().timezone, reconcile_settings().country) == (None, None)
    assert warehouse_settings().destination_dataset == "orderbridge"
    write(
        root,
        LEGACY + "page_limit = 500\n" + V1 + "order_key = 'uuid'\npage_limit = 100\n",
        "[sources.http]\ntimeout_s = 60\nca_file = 'ca.pem'\nproxy = 'http://u:PLANTED@proxy:8080/'\n"
        "[reconcile]\ntimezone = 'Europe/Madrid'\ncountry = 'ES'\norder_total = ' x '\n",
    )
    monkeypatch.setenv("SOURCES__HTTP__READ_TIMEOUT_S", "2.5")
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "postgres")
    http, reconcile = http_settings(), reconcile_settings()
    assert (http.timeout_s, http.read_timeout_s, http.ca_file) == (60.0, 2.5, root / "ca.pem")
    assert http.proxy is not None
    assert (http.proxy.reveal(), "PLANTED" in repr(http)) == ("http://u:PLANTED@proxy:8080", False)
    assert (reconcile.timezone, reconcile.country, reconcile.orders.total) == ("Europe/Madrid", "ES", "x")
    assert (legacy_settings().page_limit, public_v1_settings().order_key) == (500, "uuid")
    assert warehouse_settings().destination == "postgres"


def test_paths_are_relative_to_the_project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (root / "notebooks").mkdir()
    monkeypatch.chdir(root / "notebooks")
    assert (warehouse_path(), ledger_path()) == (root / "warehouse.duckdb", root / "ledger.sqlite")
    write(root, "", "[warehouse]\npath = 'data/w.duckdb'\n[sources.http]\nca_file = 'ca.pem'\n")
    assert (warehouse_path(), ledger_path()) == (root / "data" / "w.duckdb", root / "data" / "ledger.sqlite")
    assert http_settings().ca_file == root / "ca.pem"
    monkeypatch.setenv("LEDGER__PATH", str(tmp_path / "l.sqlite"))
    assert ledger_path() == tmp_path / "l.sqlite"


@pytest.mark.parametrize("name", ["WAREHOUSE__PATH", "LEDGER__PATH", "SOURCES__HTTP__CA_FILE"])
@pytest.mark.parametrize(
    ("form", "message"),
    [
        ('"{}"', "begins or ends with a quotation mark"), ("'{}", "begins or ends with a quotation mark"),
        (" {}", "or a blank"), ("{}\r", "or a blank"), ("$HOME{}", "a variable that was not expanded"),
        ("${{HOME}}{}", "a variable that was not expanded"),
    ],
)  # fmt: skip
def test_a_path_as_docker_cron_or_an_editor_leaves_it_names_no_other_file(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str, message: str
) -> None:
    monkeypatch.setenv(name, form.format(root / "file"))
    with refused(name, message):
        LOADERS[name.rpartition("__")[0]]()


def test_a_secret_is_masked_and_not_pickled() -> None:
    settings = legacy()
    for text in (repr(settings), str(settings), f"{settings.api_key:>9}", repr(v1()), str(vars(settings))):
        assert "PLANTED" not in text
    assert "***" in repr(settings)
    with pytest.raises(TypeError):
        pickle.dumps(settings.api_key)
    assert copy.deepcopy(settings) == settings != legacy(key="another")
    assert hash(copy.copy(settings.api_key)) == hash(settings.api_key)
