"""Where keys go: what a folder of somebody else can do with keys of the environment."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderbridge.sources.settings import key_routes

KEY = "brand_test_PLANTED-SECRET-77"
HOST = "https://a.example"


@pytest.fixture
def config(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings file of a folder; key and host of the legacy family are in the environment."""
    (tmp_path / ".dlt").mkdir(0o700)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("SOURCES__LEGACY__API_KEY", KEY)
    monkeypatch.setenv("SOURCES__LEGACY__BASE_URL", HOST)
    return tmp_path / ".dlt" / "config.toml"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[sources.http]\nca_file = 'ca.pem'", "or to whoever has a certificate of ca.pem"),
        ("[warehouse]\ndestination = 'filesystem'", "a copy of the warehouse goes to filesystem"),
    ],
)
def test_a_file_of_the_folder_that_leads_keys_or_data_elsewhere_is_asked_about(
    config: Path, text: str, words: str
) -> None:
    assert [route.is_split for route in key_routes()] == [False]
    config.write_text(text)
    (route,) = [route for route in key_routes() if route.is_split]
    assert words in route.words
    assert route.words.endswith("(.dlt/config.toml)")


def test_a_key_in_a_file_of_its_own_is_not_in_the_folder(
    config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCES__LEGACY__API_KEY")
    monkeypatch.delenv("SOURCES__LEGACY__BASE_URL")
    secrets = config.with_name("secrets.toml")
    secrets.write_text(f"[sources.legacy]\nbase_url = '{HOST}'\napi_key = '{KEY}'\n")
    assert [route.is_split for route in key_routes()] == [False]
    (config.parent.parent / "key").write_text(KEY)
    monkeypatch.setenv("SOURCES__LEGACY__API_KEY_FILE", "key")
    (route,) = key_routes()
    assert route == (
        f"sources.legacy.api_key (SOURCES__LEGACY__API_KEY_FILE) goes to {HOST} (.dlt/secrets.toml)",
        True,
    )
