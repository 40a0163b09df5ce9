"""Reads settings, a section at a time: a pull of one family needs the settings of that family only.

In: raw values in dlt's order: environment, for secrets files of their own, `.dlt/secrets.toml`, `.dlt/config.toml`;
last what a person answered, in `.dlt/answers.toml`. Out: the dataclasses of `sections`, or a UsageError that names the
key and its variable, never its value; misspelt names and unreadable files are errors. dlt, which takes a second to
import, is not imported.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields, replace
from difflib import get_close_matches
from functools import partial
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote, urlsplit

from orderbridge.sources.contract import PUBLIC_V1_PREFIXES
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.answers import FILE as ANSWERS_FILE
from orderbridge.sources.settings.answers import read_answers
from orderbridge.sources.settings.data_source import DataSource
from orderbridge.sources.settings.ownership import check_mode, check_private
from orderbridge.sources.settings.root import FILES, find_root, key_paths, read_toml
from orderbridge.sources.settings.secret_files import read_secret, secret_variable
from orderbridge.sources.settings.sections import (
    SECTIONS,
    FileSettings,
    HttpSettings,
    LegacySettings,
    NotifySettings,
    OrderSettings,
    PublicV1Settings,
    ReconcileSettings,
    settings_of,
)
from orderbridge.sources.settings.setting import SETTINGS, Section, Setting, named, shown, variable
from orderbridge.sources.urls import checked_base_url

S = TypeVar("S", bound=Section)
ANSWERS: Final = f".dlt/{ANSWERS_FILE}"
"""Where a value is set that a person answered."""
_PASSWORD: Final = re.compile(r"//[^/:@]*:([^/]+)@")
"""A password in an address, such as a proxy's."""
_PASSWORD_MIN: Final = 6
"""Characters of a password that is looked for in texts: a shorter one may be a part of any word."""


def given_values(section: str) -> dict[str, tuple[object, str]]:
    """What is set in a section, by name: the raw value, and where it is set: a variable or a file.

    Other sections are neither read nor checked, but that answers count only for the source that they are about.

    Raises:
        UsageError: a file that others can write, that cannot be read, or that is not TOML; an unknown name or variable
            in this section; a secret in config.toml.
    """
    given, errors = _given(section)
    if errors:
        raise errors[0]
    return given


def _given(section: str) -> tuple[dict[str, tuple[object, str]], list[UsageError]]:
    """See `given_values`; what is wrong with single names is returned."""
    set_in_places, errors = _places(section)
    return {**_answered_values(section), **set_in_places}, errors


def _places(section: str) -> tuple[dict[str, tuple[object, str]], list[UsageError]]:
    """What the environment and the settings files set, without answers."""
    folder = find_root() / ".dlt"
    for name in FILES:
        check_mode(folder / name)
    settings = {setting.name: setting for setting in settings_of(section)}
    given: dict[str, tuple[object, str]] = {}
    errors: list[UsageError] = []
    for file in reversed(FILES):
        for name, value in _table(folder / file, section).items():
            if name in settings:
                given[name] = value, f".dlt/{file}"
            else:
                errors.append(_unknown(f"{section}.{name}", f".dlt/{file}", name, [*settings]))
    for setting in settings.values():
        if setting.is_secret:
            try:
                given |= read_secret(setting)
            except UsageError as error:
                errors.append(error)
    given |= _environment(settings)
    errors += _unknown_variables(section, settings)
    for name in _secrets_in_config(settings, given):
        del given[name]
        words = f"{named(settings[name].key)} is a secret, but it is in .dlt/config.toml"
        hint = "Move it to .dlt/secrets.toml, which git ignores; if it was ever committed, replace the key."
        errors.append(UsageError(words, hint))
    return given, errors


def _environment(settings: Mapping[str, Setting]) -> dict[str, tuple[object, str]]:
    """The settings whose variable is set, and that variable."""
    given: dict[str, tuple[object, str]] = {}
    for name, setting in settings.items():
        origin = setting.variable
        value = os.environ.get(origin)
        if value is not None:
            given[name] = value, origin
    return given


def _unknown_variables(section: str, settings: Mapping[str, Setting]) -> list[UsageError]:
    """An error for each variable that is named like one of the section and is none."""
    prefix = variable(section) + "__"
    named_so = [name for name in os.environ if name.upper().startswith(prefix)]
    if not named_so:
        return []
    variables = [setting.variable for setting in settings.values()]
    files = [secret_variable(setting) for setting in settings.values() if setting.is_secret]
    return [
        _unknown(name, "the environment", name.upper(), variables)
        for name in named_so
        if name not in (*variables, *files)
    ]


def _secrets_in_config(
    settings: Mapping[str, Setting], given: Mapping[str, tuple[object, str]]
) -> list[str]:
    """The secrets that are set in the file without secrets."""
    return [
        name
        for name, (_, origin) in given.items()
        if origin.endswith("config.toml") and settings[name].is_secret
    ]


def _answered_values(section: str) -> dict[str, tuple[object, str]]:
    """What people answered about settings of a section, where it is confirmed for the source of this project."""
    if not any(setting.asks for setting in settings_of(section)):
        return {}
    file = read_answers()
    answers = file.seen_from(configured_source()) if file.answers else {}
    return {
        SETTINGS[key].name: (answer.value, ANSWERS)
        for key, answer in answers.items()
        if SETTINGS[key].section == section and answer.is_confirmed
    }


def configured_source() -> DataSource:
    """The hosts and the environment that the settings name, checked or not; None for what is not set or not valid."""
    legacy, _ = _places("sources.legacy")
    public_v1, _ = _places("sources.public_v1")
    environment = _text(legacy.get("environment"))
    if environment is None:
        key = _text(public_v1.get("api_key")) or ""
        named_by_key = {name for prefix, name in PUBLIC_V1_PREFIXES.items() if prefix in key}
        environment = named_by_key.pop() if len(named_by_key) == 1 else None
    return DataSource(_host(legacy), _host(public_v1), environment)


def _host(given: Mapping[str, tuple[object, str]]) -> str | None:
    """The host of an address with its port, in the form that the checked address has."""
    try:
        return urlsplit(checked_base_url("base_url", _text(given.get("base_url")))).netloc
    except UsageError:
        return None


def _text(given: tuple[object, str] | None) -> str | None:
    """A raw value that is a text."""
    return given[0] if given is not None and isinstance(given[0], str) else None


def _table(path: Path, section: str) -> dict[str, object]:
    """The table of a section in a settings file; empty where the file has none."""
    table: object = read_toml(path)
    for part in section.split("."):
        table = table.get(part, {}) if isinstance(table, dict) else table
    if not isinstance(table, dict):
        raise UsageError(
            f".dlt/{path.name}: `{section}` is not a table",
            f"Write [{section}] on a line of its own.",
        )
    return table


def _missing(settings: Sequence[Setting]) -> UsageError:
    """The error for required settings that are not set, all at once."""
    names = ", ".join(named(setting.key) for setting in settings)
    verb = "is" if len(settings) == 1 else "are"
    hints = "\n  ".join(["To be asked for them: orderbridge init", *map(_how_to_set, settings)])
    return UsageError(
        f"{names} {verb} not set (settings are read from {find_root() / '.dlt'})", hints
    )


def _how_to_set(setting: Setting) -> str:
    """Where to set it, and what looks like a misspelling of it."""
    file = ".dlt/secrets.toml" if setting.is_secret else ".dlt/config.toml"
    hint = f"Set {setting.variable}, or `{setting.name}` under [{setting.section}] in {file}: {setting.help}."
    for name, correct in misspelt_names().items():
        if correct in (setting.key, setting.variable):
            hint += f"\n  There is a `{name}`. Did you mean {correct}?"
    return hint


def misspelt_names() -> dict[str, str]:
    """Variables, and names in the settings files, that are no setting but look like one: name → setting.

    Those in a section of ours are not among them: they are errors of that section. Raises UsageError for a file that
    cannot be read.
    """
    written = [path for file in FILES for path in key_paths(read_toml(find_root() / ".dlt" / file))]
    ours = {*SECTIONS, *map(variable, SECTIONS)}
    return {
        name: similar[0]
        for mark, names, known in (
            ("__", os.environ, [variable(key) for key in SETTINGS]),
            (".", written, [*SETTINGS]),
        )
        for name in names
        if name.rpartition(mark)[0] not in ours and (similar := _similar(name, known, mark))
    }


def _similar(name: str, known: Sequence[str], mark: str) -> list[str]:
    """The setting that a name without the beginning of its section is, as in `legacy.base_url`, or looks like."""
    whole = [key for key in known if mark in name and key.endswith(mark + name)]
    return whole or get_close_matches(name, known, n=1, cutoff=0.87)


def _unknown(key: str, where: str, name: str, names: Sequence[str]) -> UsageError:
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    guess = f"Did you mean `{nearest[0]}`? " if nearest else ""
    return UsageError(f"{where}: there is no setting `{key}`", f"{guess}Known: {', '.join(names)}.")


def load_section(kind: type[S]) -> S:
    """A section as it is set. Raises UsageError."""
    given = given_values(kind.prefix.rpartition(".")[0])
    settings = {
        item.name: SETTINGS[kind.prefix + item.name] for item in fields(kind) if item.metadata
    }
    if missing := [
        setting for setting in settings.values() if setting.required and setting.name not in given
    ]:
        raise _missing(missing)
    set_here = {name: setting for name, setting in settings.items() if setting.name in given}
    values: dict[str, Any] = {name: given[setting.name][0] for name, setting in set_here.items()}
    try:
        return kind(**values)
    except UsageError:
        for setting in set_here.values():
            _check(setting, *given[setting.name])
        raise


def _check(setting: Setting, value: object, origin: str) -> None:
    """Checks a value. Raises UsageError, with the command that changes it where it is set in the project's files."""
    try:
        setting.checked(value)
    except UsageError as error:
        if not origin.startswith(".dlt"):
            raise
        command = "answer" if origin == ANSWERS else "init"
        fix = f"To change it in {origin}: orderbridge {command} {setting.key}"
        raise UsageError(error.message, f"{error.hint}\n  {fix}".strip()) from None


legacy_settings = partial(load_section, LegacySettings)
public_v1_settings = partial(load_section, PublicV1Settings)
notify_settings = partial(load_section, NotifySettings)
file_settings = partial(load_section, FileSettings)


def http_settings() -> HttpSettings:
    """How requests are made. Raises UsageError, also for certificates that another user could replace."""
    settings = load_section(HttpSettings)
    if settings.ca_file is not None:
        check_private(settings.ca_file, file_settings().shared_folder)
    return settings


def reconcile_settings() -> ReconcileSettings:
    """How to read the raw tables. Raises UsageError."""
    return replace(load_section(ReconcileSettings), orders=load_section(OrderSettings))


def is_set(section: str) -> bool:
    """Whether any required setting of a section is set. Raises UsageError."""
    given = given_values(section)
    return any(setting.required and setting.name in given for setting in settings_of(section))


def known_secrets() -> tuple[str, ...]:
    """Every secret that is set, checked or not, and passwords in addresses: what no output may contain.

    A section with errors has none. Nor has an address with a password of fewer than `_PASSWORD_MIN` characters.
    """
    secrets = set[str]()
    for section in SECTIONS:
        with suppress(UsageError):
            given, errors = _places(section)  # no secret is an answer
            if errors:
                continue
            for name, (value, _) in given.items():
                text = value.strip() if isinstance(value, str) else ""
                if SETTINGS[f"{section}.{name}"].is_secret:
                    secrets.add(text)
                elif password := _PASSWORD.search(text):
                    secrets.update(
                        form
                        for form in (password[1], unquote(password[1]))
                        if len(form) >= _PASSWORD_MIN
                    )
    return tuple(sorted(secrets - {""}))


def set_values() -> Iterator[str]:
    """What is set and where, a line for each valid setting, from the table's beginning; secrets masked."""
    for setting in SETTINGS.values():
        with suppress(UsageError, KeyError):
            value, origin = _given(setting.section)[0][setting.name]
            yield f"{setting.key} = {shown(setting.checked(value))} ({origin})"


def check_same_environment(legacy: LegacySettings, public_v1: PublicV1Settings) -> None:
    """Raises UsageError for a run that would mix test data with real data."""
    if legacy.environment != public_v1.environment:
        raise UsageError(
            f"the two APIs have different environments: {named('sources.legacy.environment')} is "
            f"{legacy.environment}, the key in {named('sources.public_v1.api_key')} is for {public_v1.environment}",
            "Use hosts and keys of one environment, or pull the lists of one API alone.",
        )
