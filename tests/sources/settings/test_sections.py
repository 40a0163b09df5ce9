"""What single settings accept."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable
from pathlib import Path

import pytest

from sources.errors import UsageError
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
from tests.sources.settings.samples import KEY, LEGACY, LIVE, V1, legacy, v1, write

HUGE = "9" * 5000


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
def test_an_invalid_base_url_is_an_error(base_url: str, why: str) -> None:
    for make in (legacy, v1):
        with pytest.raises(UsageError) as caught:
            make(base_url)
        assert why in str(caught.value)
        assert "BASE_URL" in str(caught.value)
        assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize("host", ["127.0.0.1:8000", "127.9.9.9", "[::1]:8000", "localhost"])
def test_http_is_allowed_for_loopback(host: str) -> None:
    assert legacy(f"http://{host}//").base_url == f"http://{host}"


@pytest.mark.parametrize(
    "key",
    ["", " ", "a b", "brand_test_x\n", "brand_test_x\r\nX: y", "brand_test_ñ", "brand_test_\x7f", '"brand_test_x"'],
)
def test_a_key_that_would_break_its_header_is_an_error(key: str) -> None:
    for make in (legacy, v1):
        with pytest.raises(UsageError) as caught:
            make(key=key)
        assert "API_KEY" in str(caught.value)
        assert "X: y" not in str(caught.value)


def test_scheme_and_host_of_an_address_are_in_lower_case() -> None:
    assert legacy("HTTPS://Shop.Example:8443/Base/").base_url == "https://shop.example:8443/Base"
    assert legacy("HTTP://LocalHost:8080").base_url == "http://localhost:8080"


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("https://a.example:443/base", "https://a.example/base"),
        ("https://a.example:", "https://a.example"),
        ("https://[fd00::443]:443", "https://[fd00::443]"),
        ("https://a.example:80", "https://a.example:80"),
        ("http://localhost:80", "http://localhost"),
    ],
)
def test_a_host_with_its_schemes_own_port_is_the_host_without_it(written: str, url: str) -> None:
    """The ledger and the warehouse tell platforms apart by this text."""
    assert legacy(written).base_url == url


@pytest.mark.parametrize("key", ["PLANTED", "_test_PLANTED", "brand-test-PLANTED", "brand_prod_PLANTED"])
def test_a_v1_key_without_a_prefix_is_an_error(key: str) -> None:
    with pytest.raises(UsageError, match="SOURCES__PUBLIC_V1__API_KEY") as caught:
        v1(key=key)
    assert "PLANTED" not in str(caught.value)


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


def test_families_of_two_environments_are_an_error() -> None:
    check_same_environment(legacy(), v1())
    with pytest.raises(UsageError, match="different environments") as caught:
        check_same_environment(legacy(), v1(key=LIVE))
    assert "PLANTED" not in str(caught.value)


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
def test_a_host_named_after_the_other_environment_is_an_error(host: str, environment: str, fits: bool) -> None:
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


def test_a_boolean_is_not_a_page_limit(root: Path) -> None:
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
def test_a_value_of_another_type_is_an_error(root: Path, name: str) -> None:
    write(root, "\n".join(f"{name} = 5" if line.startswith(name) else line for line in LEGACY.splitlines()))
    with pytest.raises(UsageError, match=f"LEGACY__{name.upper()}"):
        legacy_settings()


def test_paths_are_relative_to_the_project(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    deep = root / "notebooks"
    deep.mkdir()
    monkeypatch.chdir(deep)
    assert warehouse_path() == root / "warehouse.duckdb"
    assert ledger_path() == root / "ledger.sqlite"
    write(root, "", "[warehouse]\npath = 'data/w.duckdb'\n[sources.http]\nca_file = 'ca.pem'\n")
    assert warehouse_path() == root / "data" / "w.duckdb"
    assert ledger_path() == root / "data" / "ledger.sqlite"
    assert http_settings().ca_file == root / "ca.pem"
    monkeypatch.setenv("LEDGER__PATH", str(tmp_path / "l.sqlite"))
    assert ledger_path() == tmp_path / "l.sqlite"
    monkeypatch.setenv("WAREHOUSE__DESTINATION", "postgres")
    assert warehouse_settings().destination == "postgres"


@pytest.mark.parametrize(
    ("text", "read"),
    [('[warehouse]\npath = "a\\u0000b"\n', warehouse_path), ("[reconcile]\ncountry = 34\n", reconcile_settings)],
)
def test_a_value_that_only_a_file_can_hold_is_an_error(root: Path, text: str, read: Callable[[], object]) -> None:
    write(root, "", text)
    with pytest.raises(UsageError, match="is not"):
        read()


@pytest.mark.parametrize("path", ["", " ", ".", "~no-such-user/w.duckdb"])
def test_a_path_that_is_not_a_file_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch, path: str) -> None:
    monkeypatch.setenv("WAREHOUSE__PATH", path)
    with pytest.raises(UsageError, match="WAREHOUSE__PATH"):
        warehouse_path()


@pytest.mark.parametrize("name", ["WAREHOUSE__PATH", "LEDGER__PATH", "SOURCES__HTTP__CA_FILE"])
@pytest.mark.parametrize(
    ("form", "message"),
    [
        ('"{}"', "begins or ends with a quotation mark"),
        ("'{}", "begins or ends with a quotation mark"),
        (" {}", "begins or ends with .* a blank"),
        ("{}\r", "begins or ends with .* a blank"),
        ("$HOME{}", "a variable that was not expanded"),
        ("${{HOME}}{}", "a variable that was not expanded"),
    ],
)
def test_a_path_as_docker_cron_or_an_editor_leaves_it_names_no_other_file(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, form: str, message: str
) -> None:
    monkeypatch.setenv(name, form.format(root / "file"))
    read = {"WAREHOUSE__PATH": warehouse_path, "LEDGER__PATH": ledger_path}.get(name, http_settings)
    with pytest.raises(UsageError, match=f"{name}.*{message}"):
        read()


def test_a_secret_is_masked_and_not_pickled() -> None:
    settings = legacy()
    for text in (
        repr(settings),
        str(settings),
        f"{settings.api_key}",
        f"{settings.api_key:>9}",
        repr(v1()),
        str(vars(settings)),
    ):
        assert "PLANTED" not in text
    assert "***" in repr(settings)
    with pytest.raises(TypeError):
        pickle.dumps(settings.api_key)
    assert copy.deepcopy(settings) == settings
    assert hash(copy.copy(settings.api_key)) == hash(settings.api_key)


@pytest.mark.parametrize("value", [HUGE, "-" + HUGE, "1e99999", "nan", "inf"])
@pytest.mark.parametrize("name", ["SOURCES__LEGACY__PAGE_LIMIT", "SOURCES__HTTP__TIMEOUT_S"])
def test_a_number_beyond_every_limit_is_an_error(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str, value: str
) -> None:
    write(root, LEGACY)
    monkeypatch.setenv(name, value)
    with pytest.raises(UsageError, match=name) as caught:
        (http_settings if "HTTP" in name else legacy_settings)()
    assert HUGE not in str(caught.value)


@pytest.mark.parametrize("host", ["[::1%25eth0]:8000", "[::1%eth0]", "127.0.0.1%2e.example"])
def test_a_host_with_a_zone_or_an_escape_is_an_error(host: str) -> None:
    for make in (legacy, v1):
        for scheme in ("http", "https"):
            with pytest.raises(UsageError, match=r"zone or an escape|is not an address"):
                make(f"{scheme}://{host}")


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
