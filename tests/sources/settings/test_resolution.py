"""How settings are read: precedence, unknown names, files that cannot be used."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from dlt.common.configuration.providers import environ

from sources.errors import UsageError
from sources.settings import (
    effective_settings,
    known_secrets,
    ledger_path,
    legacy_settings,
    loaders,
    misspelt_names,
    public_v1_settings,
    warehouse_path,
)
from tests.sources.settings.samples import KEY, LEGACY, V1, write

HUGE = "9" * 5000


def test_a_file_gives_the_settings_with_their_defaults(root: Path) -> None:
    write(root, LEGACY + V1)
    settings = legacy_settings()
    assert (settings.base_url, settings.api_key.reveal(), settings.environment) == ("https://a.example", KEY, "sandbox")
    assert (settings.page_limit, settings.login_mode, settings.stock_semantics) == (100, None, "unknown")
    assert public_v1_settings().environment == "sandbox"


def test_the_environment_precedes_secrets_and_secrets_precede_config(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, LEGACY + "page_limit = 20\n", "[sources.legacy]\npage_limit = 30\nlogin_mode = 'code'\n")
    assert (legacy_settings().page_limit, legacy_settings().login_mode) == (20, "code")
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMIT", "10")
    assert legacy_settings().page_limit == 10


def test_a_family_needs_only_its_own_settings(root: Path) -> None:
    write(root, V1 + "[sources.legacy]\nnonsense = 1\n")
    assert public_v1_settings().base_url == "https://b.example"


@pytest.mark.parametrize(
    ("section", "left_out"),
    [("legacy", "base_url"), ("legacy", "api_key"), ("legacy", "environment"), ("v1", "base_url"), ("v1", "api_key")],
)
def test_a_missing_setting_is_named_with_its_variable(root: Path, section: str, left_out: str) -> None:
    text = LEGACY if section == "legacy" else V1
    write(root, "\n".join(line for line in text.splitlines() if not line.startswith(left_out)))
    with pytest.raises(UsageError) as caught:
        legacy_settings() if section == "legacy" else public_v1_settings()
    assert f".{left_out} (SOURCES__" in str(caught.value)
    assert left_out.upper() in str(caught.value)


def test_a_missing_setting_suggests_a_similar_name(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCES__LEGACY_BASE_URL", "https://a.example")
    with pytest.raises(UsageError, match="There is a `SOURCES__LEGACY_BASE_URL`"):
        legacy_settings()
    write(root, LEGACY.replace("sources.legacy", "source.legacy"))
    monkeypatch.delenv("SOURCES__LEGACY_BASE_URL")
    with pytest.raises(UsageError, match=r"There is a `source\.legacy\.base_url`"):
        legacy_settings()


@pytest.mark.parametrize("name", ["LEDGER_PATH", "SOURCES_LEGACY_STOCK_SEMANTICS", "SOURCES__LEAGCY__STOCK_SEMANTICS"])
def test_a_variable_that_only_looks_like_a_setting_is_named(
    root: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    write(root, LEGACY)
    assert misspelt_names() == {}
    monkeypatch.setenv(name, "PLANTED")
    assert list(misspelt_names()) == [name]


@pytest.mark.parametrize("name", ["sources.leagcy", "source.legacy", "sources.Legacy", "dev.sources.legacy"])
def test_a_section_that_only_looks_like_one_is_named(root: Path, name: str) -> None:
    write(root, f"{LEGACY}\n[{name}]\nstock_semantics = 'set'\n")
    assert misspelt_names() == {f"{name}.stock_semantics": "sources.legacy.stock_semantics"}


@pytest.mark.parametrize(
    ("secrets", "wrong", "nearest"),
    [
        (LEGACY + "page_limmit = 5\n", "sources.legacy.page_limmit", "page_limit"),
        (LEGACY + "API_KEY = 'PLANTED'\n", "sources.legacy.API_KEY", "Known: base_url, api_key"),
    ],
)
def test_an_unknown_name_suggests_the_nearest(root: Path, secrets: str, wrong: str, nearest: str) -> None:
    write(root, secrets)
    with pytest.raises(UsageError) as caught:
        legacy_settings()
    assert wrong in str(caught.value)
    assert nearest in str(caught.value)
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize("name", ["SOURCES__LEGACY__APIKEY", "sources__legacy__api_key", "SOURCES__LEGACY__API__KEY"])
def test_an_unknown_variable_suggests_the_nearest(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    write(root, LEGACY)
    monkeypatch.setenv(name, "PLANTED")
    with pytest.raises(UsageError, match="Did you mean `SOURCES__LEGACY__API_KEY`") as caught:
        legacy_settings()
    assert name in str(caught.value)
    assert "PLANTED" not in str(caught.value)


@pytest.mark.parametrize("name", ["WAREHOUSE__PATHS", "LEDGER__FILE"])
def test_an_unknown_variable_of_a_path_is_an_error(root: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setenv(name, "x")
    with pytest.raises(UsageError, match=name):
        (warehouse_path if name.startswith("WAREHOUSE") else ledger_path)()


@pytest.mark.parametrize("file", ["secrets.toml", "config.toml"])
def test_invalid_toml_is_reported_with_its_line(root: Path, file: str) -> None:
    (root / ".dlt" / file).write_text("[sources.legacy]\napi_key = PLANTED\n")
    with pytest.raises(UsageError, match=f"{file}, line 2") as caught:
        legacy_settings()
    assert "PLANTED" not in str(caught.value)
    assert caught.value.__cause__ is None
    (root / ".dlt" / file).write_bytes(b"x = '\xff'\n")
    with pytest.raises(UsageError, match="UTF-8"):
        legacy_settings()


def test_a_section_that_is_not_a_table_is_an_error(root: Path) -> None:
    write(root, "sources = 5\n")
    with pytest.raises(UsageError, match="is not a table"):
        legacy_settings()


def test_a_secret_in_the_config_file_is_an_error(root: Path) -> None:
    write(root, "", LEGACY)
    with pytest.raises(UsageError, match=r"Move it to \.dlt/secrets\.toml") as caught:
        legacy_settings()
    assert "PLANTED" not in str(caught.value)


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
def test_a_document_beyond_the_limits_of_parsers_is_an_error(root: Path, config: str) -> None:
    write(root, LEGACY, config)
    with pytest.raises(UsageError, match=r"too long or values are nested too deeply|not valid TOML") as caught:
        legacy_settings()
    assert caught.value.exit_code == 2
    assert HUGE not in str(caught.value)


def test_known_secrets_are_those_of_both_families_even_if_other_settings_are_invalid(root: Path) -> None:
    write(root, LEGACY.replace(KEY, "legacy-key") + "environment_ = 1\n" + V1.replace("https", "gopher"))
    assert known_secrets() == (KEY,)
    write(root, LEGACY.replace(KEY, "legacy-key") + V1.replace("https", "gopher"))
    assert known_secrets() == (KEY, "legacy-key")


def test_each_file_is_parsed_once_until_it_changes(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write(root, LEGACY + V1, "[sources.legacy]\npage_limit = 7\n")
    parsed: list[str] = []
    loads = tomllib.loads

    def counted(text: str) -> dict[str, object]:
        parsed.append(text)
        return loads(text)

    monkeypatch.setattr(tomllib, "loads", counted)
    for _ in range(2):
        assert legacy_settings().page_limit == 7
        assert public_v1_settings().page_limit == 100
        assert len(list(effective_settings())) > 10
        assert known_secrets() == (KEY,)
    assert len(parsed) == 2
    write(root, LEGACY + V1, "[sources.legacy]\npage_limit = 70\n")
    assert legacy_settings().page_limit == 70


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


def test_a_secret_may_be_a_mounted_file(root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Docker and Kubernetes provide them; other settings are read from variables."""
    write(root, LEGACY)
    mounted = tmp_path / "secrets"
    mounted.mkdir()
    (mounted / "sources--legacy--api-key").write_text("mounted-key\n")
    (mounted / "sources--legacy--base-url").write_text("https://mounted.example\n")
    monkeypatch.setattr(loaders, "MOUNTED_SECRETS", mounted)
    monkeypatch.setattr(environ, "SECRET_STORAGE_PATH", f"{mounted}/%s")
    assert legacy_settings().api_key.reveal() == "mounted-key"
    assert legacy_settings().base_url == "https://a.example"


def test_a_name_that_is_an_error_of_its_section_is_not_named_a_second_time(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(root, f"{LEGACY}page_limt = 7\n")
    monkeypatch.setenv("SOURCES__LEGACY__PAGE_LIMITS", "7")
    assert misspelt_names() == {}
    with pytest.raises(UsageError, match="there is no setting"):
        legacy_settings()
