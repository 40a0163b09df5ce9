"""Settings to start from: files as a person writes them, and sections made directly."""

from __future__ import annotations

from pathlib import Path

from sources.settings import LegacySettings, PublicV1Settings, Secret

CHECKOUT = Path(__file__).parents[3]
KEY = "brand_test_PLANTED-SECRET-77"
LIVE = "brand_live_PLANTED-SECRET-77"
LEGACY = f'[sources.legacy]\nbase_url = "https://a.example"\napi_key = "{KEY}"\nenvironment = "sandbox"\n'
V1 = f'[sources.public_v1]\nbase_url = "https://b.example"\napi_key = "{KEY}"\n'


def write(root: Path, secrets: str = "", config: str = "") -> None:
    (root / ".dlt" / "secrets.toml").write_text(secrets, "utf-8")
    (root / ".dlt" / "config.toml").write_text(config, "utf-8")


def legacy(base_url: str = "https://a.example", key: str = KEY, environment: str = "sandbox") -> LegacySettings:
    return LegacySettings(base_url=base_url, api_key=Secret(key), environment=environment)  # type: ignore[arg-type]


def v1(base_url: str = "https://b.example", key: str = KEY) -> PublicV1Settings:
    return PublicV1Settings(base_url=base_url, api_key=Secret(key))
