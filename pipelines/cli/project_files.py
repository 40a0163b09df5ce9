"""The files that a project starts with: `.dlt/secrets.toml` and the lines of `.gitignore`. Existing content is kept.

In: values of settings by key. Out: files on disk; the settings are readable by their owner only.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from orderbridge.sources.disk import PRIVATE_FOLDER, append_private, disk_errors, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import is_new_project, own_path
from orderbridge.sources.settings.ownership import check_private

SANDBOX_MARK: Final = (
    "# Written by `orderbridge sandbox --write-settings`; the next start replaces this file.\n"
)
IGNORED: Final = (
    ".dlt/secrets.toml*", ".dlt/.anonymous_id", ".dlt/pipelines/", "*.duckdb", "*.duckdb.*", ".build-*/", "*.sqlite",
    "*.sqlite-*", "*.sqlite.*", "*.failed.json", "plan-*/", ".orderbridge-plan-*/",
    ".orderbridge-writing-*/", ".*.new", "report*.html", "passwords.csv",
    ".env", ".env.*", "*.env", "nightly.jsonl", "nightly.log", "imports.jsonl", "*.asked.json",
    ".lookup-records.json", "*.[cC][sS][vV]", "*.[tT][sS][vV]", "*.[xX][lL][sS]*", "*.[oO][dD][sS]",
)  # fmt: skip
"""What a project's git must not hold: keys, the warehouse and what is next to it, ledger, plans, reports, ERP files."""
_HINT: Final = "Free space, or name a folder that you can write to: orderbridge --project DIR …"


def project_folder() -> Path:
    """The folder of the project: that of `--project` or `DLT_PROJECT_DIR`, otherwise the current one.

    Raises UsageError where others can write to it.
    """
    folder = Path(os.environ.get("DLT_PROJECT_DIR") or ".").absolute()
    own_path(folder / ".gitignore")
    return folder


def secrets_file(folder: Path) -> Path:
    """The project's file of settings with keys."""
    return folder / ".dlt" / "secrets.toml"


def write_settings(folder: Path, values: Mapping[str, object], mark: str = "") -> Path:
    """Sets values by key in `.dlt/secrets.toml`, mode 0600; every other line stays as it is.

    With a `mark`, its first line, the file is made anew, in place of one that begins with the mark alone.

    Raises:
        UsageError: the file exists and does not begin with the mark; it is not TOML, or cannot be written.
    """
    import tomlkit

    path = secrets_file(folder)
    with disk_errors(f"{path} cannot be written", _HINT):
        text = path.read_bytes().decode("utf-8", "replace") if path.exists() else ""
        if mark and text and not text.startswith(mark):
            raise UsageError(
                f"{path} exists",
                "Edit it, or move it away first: existing settings are not replaced.",
            )
        path.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        check_private(path.parent, refuses=is_new_project)
        try:
            document: Any = tomlkit.parse(mark or text.removeprefix(SANDBOX_MARK))
            for key, value in values.items():
                *sections, name = key.split(".")
                table = document
                for section in sections:
                    table = table.setdefault(
                        section, tomlkit.table(is_super_table=section != sections[-1])
                    )
                table[name] = value
        except (ValueError, TypeError, AttributeError):
            words = f"{path} is not TOML, or has its sections in one line"
            raise UsageError(words, f"Edit it by hand: {', '.join(values)}.") from None
        write_private(own_path(path), tomlkit.dumps(document).encode())
    return path


def ignore_private_files(folder: Path) -> list[str]:
    """Adds the missing lines to the project's `.gitignore`. Returns them. Raises UsageError."""
    path = folder / ".gitignore"
    with disk_errors(f"{path} cannot be written", _HINT):
        text = path.read_text("utf-8", errors="replace") if path.exists() else ""
        present = {line.strip() for line in text.splitlines()}
        missing = [line for line in IGNORED if line not in present]
        if missing:
            separator = "" if not text or text.endswith("\n") else "\n"
            lines = ("# private files of orderbridge", *missing)
            with os.fdopen(append_private(path), "a", encoding="utf-8") as file:
                file.write(separator + "".join(f"{line}\n" for line in lines))
    return missing
