"""A file that starts the desk of a project by a double click: `.desktop` on Linux, `.cmd` on Windows with WSL 2.

In: the path of the file, whose ending says which. Out: its text. The `.cmd` starts the desk inside WSL, where it prints
the address: the browser of Windows reaches 127.0.0.1 of WSL 2.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from orderbridge.pipelines.desk.jobs import command_line
from orderbridge.pipelines.desk.texts import Language
from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import disk_errors, replace_file
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import find_root, own_path

_MODE: Final = 0o700
_PLAIN: Final = re.compile(r"[^\x00-\x1f\"'`$%\\^&|<>!]+")
"""Words that mean the same in double quotes to a desktop, a shell and Windows."""
_DESKTOP: Final = """\
[Desktop Entry]
Type=Application
Name=orderbridge: {name}
Exec={command}
Icon=applications-office
Terminal=true
Categories=Office;
"""
_CMD: Final = """\
@echo off\r
title orderbridge: {name}\r
wsl.exe{distribution} -- {command}\r
pause\r
"""


def write_launcher(path: Path, language: Language) -> None:
    """Writes a launcher for the project, readable by this user alone.

    Raises:
        UsageError: the ending is another one, a path has a character that a launcher cannot hold, or the disk fails.
    """
    root = find_root()
    words = [*command_line(["desk", "--lang", language])]
    if path.suffix == ".desktop":
        text = _DESKTOP.format(name=_checked(root.name), command=_quoted(words))
    elif path.suffix == ".cmd":
        distribution = os.environ.get("WSL_DISTRO_NAME", "")
        chosen = f' -d "{_checked(distribution)}"' if distribution else ""
        command = _quoted([*words, "--no-browser"])
        text = _CMD.format(name=_checked(root.name), distribution=chosen, command=command)
    else:
        raise UsageError(
            f"{path.name} is no launcher", "Name a file that ends with .desktop, or .cmd for WSL."
        )
    with (
        disk_errors(path, "Name another file.", _location_hint(path.parent)),
        replace_file(own_path(path), _MODE) as file,
    ):
        file.write(text.encode())


def _location_hint(folder: Path) -> str:
    """What to do where the launcher cannot be written in this folder."""
    if folder.exists():
        return f"Name a file in a folder that you can write to, instead of {folder}."
    make = f"mkdir -p {shlex.quote(str(folder))}"
    return f"There is no folder {folder}. To make it: {make}\n  Then {run_again()}"


def _quoted(words: Sequence[str]) -> str:
    return " ".join(f'"{_checked(word)}"' for word in words)


def _checked(word: str) -> str:
    if not _PLAIN.fullmatch(word):
        raise UsageError(
            f"{word}: a launcher cannot hold this name",
            "Use a folder without quotes and signs, or start it in a terminal: orderbridge desk",
        )
    return word
