"""Reads CSV and .xlsx files into rows of text cells.

In: a path and `ReadOptions`. Out: a `SourceTable`: the detected format, and a stream of rows. Cells are the text of the
file; nothing is typed. A row that does not fit is returned as a `RejectedRow` with its line and the reason; a file that
cannot be read with certainty raises an error.
"""

from __future__ import annotations

from pathlib import Path

from sources.errors import UsageError
from sources.files.file_kinds import is_workbook, unreadable
from sources.files.model import CellRules, DetectedFormat, ReadOptions, RejectedRow, Row, SourceTable
from sources.files.open_text import open_text
from sources.files.workbook import open_workbook

__all__ = ["CellRules", "DetectedFormat", "ReadOptions", "RejectedRow", "Row", "SourceTable", "open_table"]


def open_table(path: Path, options: ReadOptions | None = None) -> SourceTable:
    """Opens a text file or a workbook. The content decides which, not the name.

    Args:
        path: the file.
        options: what is known about the file; the rest is detected.

    Raises:
        UsageError: the file cannot be read.
    """
    options = options or ReadOptions()
    try:
        is_device = path.exists() and not (path.is_file() or path.is_dir())
    except OSError as error:  # a name that is too long, a folder that may not be entered
        raise unreadable(path, error) from None
    if is_device:
        raise UsageError(
            f"{path} is a pipe or a device, and a table is read more than once", "Save it as a file and name that."
        )
    return open_workbook(path, options) if is_workbook(path) else open_text(path, options)
