"""The files that a project starts with: `.dlt/secrets.toml` and the lines of `.gitignore`. Existing content is kept.

In: values of settings by key. Out: files on disk; the settings are readable by their owner only.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from itertools import groupby
from pathlib import Path
from typing import Final

from sources.disk import PRIVATE_FOLDER, disk_errors, write_private
from sources.errors import UsageError
from sources.settings import own_path
from sources.settings.ownership import check_private

SANDBOX_MARK: Final = "# Written by `orderbridge sandbox --write-settings`; the next start replaces this file.\n"
IGNORED: Final = (
    ".dlt/secrets.toml*", ".dlt/.anonymous_id", ".dlt/pipelines/", "*.duckdb", "*.duckdb.*", ".build-*/", "*.sqlite",
    "*.sqlite-*", "*.sqlite.*", "*.failed.json", "plan-*/", ".orderbridge-plan-*/", "report*.html", "passwords.csv",
    ".env", ".env.*", "*.env", "nightly.jsonl", "nightly.log", "imports.jsonl", "*.[cC][sS][vV]", "*.[tT][sS][vV]",
    "*.[xX][lL][sS]*", "*.[oO][dD][sS]",
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


def write_settings(folder: Path, values: Mapping[str, str], mark: str = "") -> Path:
    """Writes `.dlt/secrets.toml`, mode 0600, from values by key. `mark` is its first line.

    Raises:
        UsageError: the file exists and does not begin with the mark, or cannot be written.
    """
    path = secrets_file(folder)
    with disk_errors(f"{path} cannot be written", _HINT):
        if path.exists() and not (mark and path.read_text("utf-8", errors="replace").startswith(mark)):
            raise UsageError(f"{path} exists", "Edit it, or move it away first: existing settings are not replaced.")
        path.parent.mkdir(mode=PRIVATE_FOLDER, exist_ok=True)
        check_private(path.parent)
        write_private(path, (mark + settings_toml(values)).encode())
    return path


def settings_toml(values: Mapping[str, str]) -> str:
    """Settings as TOML tables, in the order given."""
    tables = []
    for section, keys in groupby(values, lambda key: key.rpartition(".")[0]):
        # a JSON string is a TOML string
        lines = [f"{key.rpartition('.')[2]} = {json.dumps(values[key])}" for key in keys]
        tables.append("\n".join([f"[{section}]", *lines, ""]))
    return "\n".join(tables)


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
            with path.open("a", encoding="utf-8") as file:
                file.write(separator + "".join(f"{line}\n" for line in lines))
    return missing
