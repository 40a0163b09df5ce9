"""Raw values of settings, in dlt's order: environment, `.dlt/secrets.toml`, `.dlt/config.toml`.

In: a section and the project's root. Out: raw values by name; misspelt names and unreadable files are errors. dlt
takes a second to import, so it is imported only where secrets are mounted as files, which it reads.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from sources.errors import UsageError
from sources.settings.files import FILES, key_paths, read_toml
from sources.settings.root import check_private, find_root, load_dlt
from sources.settings.sections import SETTINGS, settings_of
from sources.settings.setting import Setting, named, variable

MOUNTED_SECRETS: Final = Path("/run/secrets")
"""Where Docker and Kubernetes mount secrets as files."""


class Resolution:
    """The raw values of one section; other sections are neither read nor checked.

    Raises:
        UsageError: a file that others can write, that cannot be read, or that is not TOML; an unknown name or variable
            in this section.
    """

    def __init__(self, section: str, root: Path | None = None) -> None:
        self._section = section
        self._folder = (root or find_root()) / ".dlt"
        for path in (self._folder, *(self._folder / name for name in FILES)):
            check_private(path)
        self._documents = {name: read_toml(self._folder / name) for name in FILES}
        self._tables = {name: self._table(name, document) for name, document in self._documents.items()}
        self._check_names()

    def value(self, name: str) -> object:
        """The raw value of a setting of the section; None if it is not set."""
        return self.origin(name)[0]

    def origin(self, name: str) -> tuple[object, str]:
        """The raw value of a setting and where it is set: a variable or a file; (None, "") if it is not set.

        Raises UsageError for a secret in config.toml.
        """
        setting = SETTINGS[f"{self._section}.{name}"]
        if (given := _from_environment(setting)) is not None:
            return given, setting.variable
        if name in self._tables["secrets.toml"]:
            return self._tables["secrets.toml"][name], ".dlt/secrets.toml"
        value = self._tables["config.toml"].get(name)
        if value is not None and setting.is_secret:
            raise UsageError(
                f"{named(setting.key)} is a secret, but it is in .dlt/config.toml",
                "Move it to .dlt/secrets.toml, which git ignores; if it was ever committed, replace the key.",
            )
        return value, ".dlt/config.toml" if value is not None else ""

    def missing(self, settings: Sequence[Setting]) -> UsageError:
        """The error for required settings that are not set, all at once."""
        names = ", ".join(named(setting.key) for setting in settings)
        verb = "is" if len(settings) == 1 else "are"
        hints = "\n  ".join(self._how_to_set(setting) for setting in settings)
        return UsageError(f"{names} {verb} not set (settings are read from {self._folder})", hints)

    def _how_to_set(self, setting: Setting) -> str:
        """Where to set it, and what looks like a misspelling of it."""
        hint = f"Set {setting.variable}, or `{setting.name}` under [{self._section}] in .dlt/{setting.file}: "
        hint += f"{setting.help}."
        written = [path for document in self._documents.values() for path in key_paths(document)]
        similar = get_close_matches(setting.variable, os.environ, n=1, cutoff=0.87)
        similar += get_close_matches(setting.key, written, n=1, cutoff=0.87)
        similar = [name for name in similar if name not in SETTINGS and name not in map(variable, SETTINGS)]
        if similar:
            correct = setting.variable if similar[0].isupper() else setting.key
            hint += f"\n  There is a `{similar[0]}`. Did you mean {correct}?"
        return hint

    def _table(self, file: str, document: dict[str, object]) -> dict[str, object]:
        """The section's table in a file; empty where the file has none."""
        table: object = document
        for part in self._section.split("."):
            table = table.get(part, {}) if isinstance(table, dict) else table
        if not isinstance(table, dict):
            raise UsageError(
                f".dlt/{file}: `{self._section}` is not a table", f"Write [{self._section}] on a line of its own."
            )
        return table

    def _check_names(self) -> None:
        names = [setting.name for setting in settings_of(self._section)]
        for file, table in self._tables.items():
            for name in table:
                if name not in names:
                    raise _unknown(f"{self._section}.{name}", f".dlt/{file}", name, names)
        prefix = variable(self._section) + "__"
        variables = [prefix + name.upper() for name in names]
        for name in os.environ:
            if name.upper().startswith(prefix) and name not in variables:
                raise _unknown(name, "the environment", name.upper(), variables)


def _from_environment(setting: Setting) -> str | None:
    """A setting's variable; a secret can be a mounted file instead, `/run/secrets/<name>`, which dlt reads."""
    if not (setting.is_secret and MOUNTED_SECRETS.is_dir()):
        return os.environ.get(setting.variable)
    load_dlt()
    from dlt.common.configuration.providers import EnvironProvider
    from dlt.common.typing import TSecretStrValue

    value, _ = EnvironProvider().get_value(setting.name, TSecretStrValue, "", *setting.section.split("."))
    # dlt returns a mounted file with its last newline, and puts it without that into the environment
    return None if value is None else os.environ.get(setting.variable, str(value))


def _unknown(key: str, where: str, name: str, names: Sequence[str]) -> UsageError:
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    guess = f"Did you mean `{nearest[0]}`? " if nearest else ""
    return UsageError(f"{where}: there is no setting `{key}`", f"{guess}Known: {', '.join(names)}.")
