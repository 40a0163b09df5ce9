"""Secrets that are files of their own, as Docker, Kubernetes and systemd provide them.

In: `NAME_FILE` of the environment, where `NAME` is the variable of a secret, or the folder `CREDENTIALS_DIRECTORY`, in
which systemd puts a file by the key of the setting. Out: the raw value, and where it is set. No error shows a value.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

from orderbridge.sources.disk import unreadable
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.checks import file
from orderbridge.sources.settings.ownership import check_private
from orderbridge.sources.settings.setting import SETTINGS, Setting, named

CREDENTIALS: Final = "CREDENTIALS_DIRECTORY"
_BYTES_MAX: Final = 65_536


def secret_variable(setting: Setting) -> str:
    """The variable that names the file of a secret."""
    return f"{setting.variable}_FILE"


def read_secret(setting: Setting) -> dict[str, tuple[object, str]]:
    """A secret by its name, with where it is set; empty where it has no file.

    Raises:
        UsageError: others can write to the file or replace it; it cannot be read; its variable is set as well.
    """
    path, origin = secret_file(setting)
    if path is None:
        return {}
    if origin == secret_variable(setting) and setting.variable in os.environ:
        raise UsageError(f"{setting.variable} and {origin} are both set", "Remove one of them.")
    return {setting.name: (_content(path, setting), origin)}


def secret_file(setting: Setting) -> tuple[Path | None, str]:
    """The file of a secret, and where it is named; None if it has none. Raises UsageError."""
    name = secret_variable(setting)
    given = os.environ.get(name, "")
    if given:
        return file(name, given), name
    folder = os.environ.get(CREDENTIALS, "")
    credential = Path(folder, setting.key)
    # a folder that this user cannot open is that of another one's service
    if folder and os.path.exists(credential):  # noqa: PTH110 # Path.exists raises PermissionError
        return credential, f"the credential {setting.key}"
    return None, ""


def paths_of_secrets() -> list[Path]:
    """The files of all secrets that have one, where they are named as they should be."""
    found: list[Path] = []
    for setting in SETTINGS.values():
        if setting.is_secret:
            with suppress(UsageError):
                path, _ = secret_file(setting)
                found += [path] if path is not None else []
    return found


def _content(path: Path, setting: Setting) -> str:
    """The text of a file, without line ends and blanks around it. Raises UsageError."""
    check_private(path, refuses=lambda: True)
    try:
        if not path.is_file():
            raise _refused(path, "is not a file", setting)
        with path.open("rb") as content:
            raw = content.read(_BYTES_MAX + 1)
    except OSError as error:
        raise unreadable(path, error) from None
    if len(raw) > _BYTES_MAX:
        raise _refused(path, "is too large", setting)
    try:
        text = raw.decode("utf-8-sig").strip()
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8", "Save it as UTF-8.") from None
    if not text:
        raise _refused(path, "is empty", setting)
    return text


def _refused(path: Path, words: str, setting: Setting) -> UsageError:
    return UsageError(f"{path} {words}", f"It should have {named(setting.key)} alone.")
