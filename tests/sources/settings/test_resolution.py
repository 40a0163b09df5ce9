"""How settings are read: precedence, unknown names, files that cannot be used."""

from __future__ import annotations

import tomllib
from pathlib import Path
from unittest import mock

import pytest

from sources.settings import known_secrets, legacy_settings, misspelt_names, public_v1_settings, set_values
from sources.settings.loaders import is_set
from tests.sources.settings.samples import KEY, LEGACY, LOADERS, V1, refused, write

HUGE = "9" * 5000


def test_the_environment_precedes_secrets_and_secrets_precede_config(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, LEGACY + "page_limit = 20\n", "[sources.legacy]\npage_limit = 30\nlogin_mode = 'code'\n")
    settings = legacy_settings()
    assert (settings.base_url, settings.api_key.reveal(), settings.environment) == ("https://a.example", KEY, "sandbox")
    assert (settings.page_limit, settings.login_mode, settings.stock_semantics) == (20, "code", "unknown")
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMIT", "10")
    assert legacy_settings().page_limit == 10


def test_a_family_needs_only_its_own_settings(root: Path) -> None:
    write(root, V1 + "[sources.legacy]\nnonsense = 1\n")
    settings = public_v1_settings()
    assert (settings.base_url, settings.environment, settings.page_limit) == ("https://b.example", "sandbox", 100)
    write(root, V1)
    assert (is_set("sources.public_v1"), is_set("sources.legacy")) == (True, False)


@pytest.mark.parametrize("left_out", ["base_url", "api_key", "environment"])
def test_missing_settings_are_named_with_their_variables(root: Path, left_out: str) -> None:
    write(root, "\n".join(line for line in LEGACY.splitlines() if not line.startswith(left_out)))
    with refused(f"sources.legacy.{left_out} (SOURCES__LEGACY__{left_out.upper()}) is not set", "orderbridge init"):
        legacy_settings()
    with refused("base_url (SOURCES__PUBLIC_V1__BASE_URL)", "api_key (SOURCES__PUBLIC_V1__API_KEY) are not set"):
        public_v1_settings()


def test_a_missing_setting_suggests_a_similar_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCES__LEGACY_BASE_URL", "https://a.example")
    with refused("There is a `SOURCES__LEGACY_BASE_URL`"):
        legacy_settings()
    write(root, LEGACY.replace("sources.legacy", "source.legacy"))
    monkeypatch.delenv("SOURCES__LEGACY_BASE_URL")
    with refused("There is a `source.legacy.base_url`"):
        legacy_settings()


@pytest.mark.parametrize(
    "name",
    [
        *("LEDGER_PATH", "SOURCES_LEGACY_STOCK_SEMANTICS", "SOURCES__LEAGCY__STOCK_SEMANTICS"),
        *("sources.leagcy", "source.legacy", "sources.Legacy", "dev.sources.legacy", "legacy"),
    ],
)
def test_a_name_that_only_looks_like_a_setting_is_named(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write(root, LEGACY)
    assert misspelt_names() == {}
    if name.isupper():
        monkeypatch.setenv(name, "PLANTED")
        assert list(misspelt_names()) == [name]
    else:
        write(root, f"{LEGACY}\n[{name}]\nstock_semantics = 'set'\n")
        assert misspelt_names() == {f"{name}.stock_semantics": "sources.legacy.stock_semantics"}


@pytest.mark.parametrize(
    ("line", "nearest"), [("page_limmit = 5", "mean `page_limit`"), ("API_KEY = 'PLANTED'", "Known: base_url, api_key")]
)
def test_an_unknown_name_suggests_the_nearest(root: Path, line: str, nearest: str) -> None:
    write(root, f"{LEGACY}{line}\n")
    with refused(f"there is no setting `sources.legacy.{line.partition(' ')[0]}`", nearest):
        legacy_settings()
    assert misspelt_names() == {}


@pytest.mark.parametrize(
    "name",
    [
        *("SOURCES__LEGACY__APIKEY", "sources__legacy__api_key", "SOURCES__LEGACY__API__KEY"),
        *("WAREHOUSE__PATHS", "LEDGER__FILE"),
    ],
)
def test_an_unknown_variable_suggests_the_nearest(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write(root, LEGACY)
    monkeypatch.setenv(name, "PLANTED")
    section = next(one for one in LOADERS if name.upper().startswith(one + "__"))
    with refused(name, "Did you mean `SOURCES__LEGACY__API_KEY`" if "API" in name.upper() else "Known: "):
        LOADERS[section]()
    assert misspelt_names() == {} or name == "SOURCES__LEGACY__API__KEY"


@pytest.mark.parametrize("file", ["secrets.toml", "config.toml"])
@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"[sources.legacy]\napi_key = PLANTED\n", "line 2: not valid TOML"),
        (b"x = '\xff'\n", "UTF-8"),
        (b"sources = 5\n", "is not a table"),
        (f"[sources.legacy]\npage_limit = {HUGE}\n".encode(), "too long"),
        (f"unrelated = {HUGE}\n".encode(), "too long"),
        (b"unrelated = " + b"[" * 5000 + b"]" * 5000, "nested too deeply"),
        (b"unrelated = " + b"{a = " * 400 + b"1" + b"}" * 400, "nested too deeply"),
        (b"a." * 5000 + b"b = 1\n", "nested too deeply"),
    ],
)
def test_a_file_that_cannot_be_used_is_an_error_that_does_not_quote_it(
    root: Path, file: str, text: bytes, words: str
) -> None:
    (root / ".dlt" / file).write_bytes(text)
    with refused(file, words):
        legacy_settings()


def test_a_secret_in_the_config_file_is_an_error(root: Path) -> None:
    write(root, "", LEGACY)
    with refused("Move it to .dlt/secrets.toml"):
        legacy_settings()


def test_known_secrets_are_those_of_both_families_even_if_other_settings_are_invalid(root: Path) -> None:
    write(root, LEGACY.replace(KEY, "legacy-key") + "environment_ = 1\n" + V1.replace("https", "gopher"))
    assert known_secrets() == (KEY,)
    write(root, LEGACY.replace(KEY, "legacy-key") + V1.replace("https", "gopher"))
    assert known_secrets() == (KEY, "legacy-key")


@pytest.mark.parametrize(
    ("password", "secrets"),
    [("p%C3%A4@ssw", ["p%C3%A4@ssw", "pä@ssw"]), ("e", []), ("proxy", [])],
    ids=["encoded", "a letter", "a word"],
)
def test_the_password_of_a_proxy_is_a_known_secret_unless_it_may_be_part_of_any_text(
    root: Path, password: str, secrets: list[str]
) -> None:
    write(root, V1, f'[sources.http]\nproxy = "http://user:{password}@proxy.example:3128"\n')
    assert known_secrets() == tuple(sorted((KEY, *secrets)))


def test_each_file_is_parsed_once_until_it_changes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, LEGACY + V1, "[sources.legacy]\npage_limit = 7\n")
    loads = mock.Mock(side_effect=tomllib.loads)
    monkeypatch.setattr(tomllib, "loads", loads)
    for _ in range(2):
        assert legacy_settings().page_limit == 7
        assert public_v1_settings().page_limit == 100
        assert known_secrets() == (KEY,)
    assert loads.call_count == 2
    write(root, LEGACY + V1, "[sources.legacy]\npage_limit = 70\n")
    assert legacy_settings().page_limit == 70


def test_what_is_set_is_shown_with_its_origin_and_secrets_are_masked(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    misplaced = "[sources.public_v1]\napi_key = 'PLANTED'\n"
    write(root, LEGACY, f"[sources.http]\nproxy = 'http://u:PLANTED@proxy:1'\nunknown = 1\n{misplaced}")
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
