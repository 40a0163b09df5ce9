"""Settings to start from: files as a person writes them, and sections made directly."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from sources.errors import UsageError
from sources.settings import (
    LegacySettings,
    PublicV1Settings,
    Secret,
    http_settings,
    ledger_path,
    legacy_settings,
    public_v1_settings,
    reconcile_settings,
    warehouse_settings,
)

CHECKOUT = Path(__file__).parents[3]
KEY = "brand_test_PLANTED-SECRET-77"
LIVE = "brand_live_PLANTED-SECRET-77"
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


def legacy(base_url: str = "https://a.example", key: str = KEY, environment: str = "sandbox") -> LegacySettings:
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
    assert "PLANTED" not in text
    assert "9" * 5000 not in text
    assert caught.value.__cause__ is None
