"""The intake: files as an ERP writes them, to rows of text cells.

In: a path, and what a person tells about it. Out: a `SourceTable`, which says how it reads the file (`found`) and
streams its rows: each cell is text as it stands in the file, nothing is typed. A row that does not fit is handed on as
refused, with its line and the reason; a file that cannot be read for certain is an error.
"""

from __future__ import annotations

from pathlib import Path

from sources.files.model import DetectedFormat, ReadOptions, RejectedRow, Row, SourceTable
from sources.files.reader import open_text
from sources.files.workbook import is_workbook, open_workbook

__all__ = ["DetectedFormat", "ReadOptions", "RejectedRow", "Row", "SourceTable", "open_table"]


def open_table(path: Path, told: ReadOptions | None = None) -> SourceTable:
    """Opens a file of text or a workbook; what it is, its bytes say and not its name.

    Args:
        path: the file.
        told: what is known about it; the rest is found.

    Raises:
        UsageError: it cannot be read.
    """
    told = told or ReadOptions()
    return open_workbook(path, told) if is_workbook(path) else open_text(path, told)
