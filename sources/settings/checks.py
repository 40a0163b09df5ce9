"""Checks of single settings: what a file or a variable holds, to a typed value.

In: the name of a setting, for messages, and its raw or typed value. Out: the typed value, or a UsageError that names
the setting and never shows the value. Each check accepts its own result.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final
from zoneinfo import available_timezones

from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.root import in_project
from orderbridge.sources.settings.setting import Check, OneOf, Secret, TableOf
from orderbridge.sources.urls import checked_key, checked_proxy, checked_webhook


def _secret(check: Callable[[str, object], str]) -> Check:
    """A text that is masked from then on."""
    return lambda name, value: Secret(
        check(name, value.reveal() if isinstance(value, Secret) else value)
    )


def _text(is_valid: Callable[[str], object], problem: str, hint: str) -> Check:
    """A text that is valid as it is written."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or not is_valid(value):
            raise UsageError(f"{name} is not {problem}", hint)
        return value

    return check


api_key: Final = _secret(checked_key)
proxy: Final = _secret(checked_proxy)
webhook: Final = _secret(checked_webhook)
dataset: Final = _text(
    re.compile(r"[a-z][a-z0-9_]{0,39}").fullmatch,
    "a valid prefix for dataset names",
    "Use up to 40 lower-case letters, digits and underscores, starting with a letter.",
)


@cache
def _time_zones() -> set[str]:
    """The names of all zones, which are those of 600 files."""
    return available_timezones()


def time_zone(name: str, value: object) -> str:
    """The IANA name of a zone: as it is written, or of the only zone that is so called or ends with it."""
    zones = _time_zones()
    if isinstance(value, str) and value in zones:
        return value
    typed = str(value).strip().replace(" ", "_").casefold()
    same = [zone for zone in zones if zone.casefold() == typed]
    ending = [zone for zone in zones if zone.casefold().endswith(f"/{typed}")]
    for found in (same, ending):
        if len(found) == 1:
            return found[0]
    raise UsageError(
        f"{name} is not a known time zone", "Use an IANA name, such as Europe/Madrid or UTC."
    )


country: Final = _text(
    re.compile(r"[A-Z]{2}").fullmatch,
    "a country code",
    "Use two capital letters (ISO 3166-1), such as ES.",
)


def choice(*words: str) -> OneOf:
    """One of these words."""
    return OneOf(words)


def _number(
    kind: type[int] | type[float], digits: str, is_valid: Callable[[float], bool], problem: str
) -> Check:
    """A number, perhaps as text."""

    def check(name: str, value: object) -> float:
        if isinstance(value, str) and re.fullmatch(digits, value.strip()):
            value = kind(value)
        if isinstance(value, bool) or not isinstance(value, int | kind) or not is_valid(value):
            raise UsageError(f"{name} is not {problem}", "Leave it out for the default.")
        return kind(value)

    return check


def whole_number(least: int, most: int | None = None) -> Check:
    """A whole number within limits."""
    limits = f"from {least} to {most}" if most is not None else f"of at least {least}"
    return _number(
        int, r"[0-9]{1,9}", lambda n: least <= n <= (most or n), f"a whole number {limits}"
    )


seconds: Final = _number(
    float, r"[0-9]{1,9}(\.[0-9]{1,6})?", lambda n: 0 < n < 10**6, "a positive number of seconds"
)


def text(what: str) -> Check:
    """A name that is not empty."""

    def check(name: str, value: object) -> str:
        if not isinstance(value, str) or not value.strip():
            raise UsageError(
                f"{name} is not {what}", "Put it in quotes, or leave it out for the default."
            )
        return value.strip()

    return check


def table(*words: str) -> TableOf:
    """Rows with one of these words each."""
    return TableOf(words)


def file(name: str, value: object) -> Path:
    """The path of a file, absolute; a relative one is relative to the project."""
    path = _path(name, value, "a file")
    if path.is_dir():
        raise UsageError(f"{name} is a folder: {path}", "Name a file in it.")
    return path


def folder(name: str, value: object) -> Path:
    """The path of a folder that exists, absolute; a relative one is relative to the project."""
    path = _path(name, value, "a folder")
    if not path.is_dir():
        raise UsageError(
            f"{name} is not a folder: {path}", "Name one that exists, or leave it out."
        )
    return path


def _path(name: str, value: object, what: str) -> Path:
    if isinstance(value, Path):
        value = str(value)
    if not isinstance(value, str) or not value.strip() or "\0" in value:
        raise UsageError(f"{name} is not the path of {what}", "Leave it out for the default.")
    if value != value.strip() or {value[0], value[-1]} & set("\"'"):
        raise UsageError(
            f"{name} begins or ends with a quotation mark or a blank", "Give the path alone."
        )
    if re.search(r"\$[A-Za-z_{]", value):
        raise UsageError(
            f"{name} contains a variable that was not expanded",
            "Cron and systemd expand none: write it out.",
        )
    try:
        return in_project(Path(value))
    except RuntimeError:
        raise UsageError(f"{name} names a home folder that does not exist") from None
