"""Reads CSV and .xlsx files into rows of text cells.

In: a path and `ReadOptions`. Out: a `SourceTable`: the detected format, and a stream of rows. Cells are the text of the
file; nothing is typed. A row that does not fit is returned as a `RejectedRow` with its line and the reason; a file that
cannot be read with certainty raises an error.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Final

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.file_kinds import InputFile, is_workbook, open_file
from orderbridge.sources.files.model import (
    CellRules,
    DetectedFormat,
    ReadOptions,
    RejectedRow,
    Row,
    SourceTable,
    Unclear,
)
from orderbridge.sources.files.reader import open_text
from orderbridge.sources.files.workbook import open_workbook

__all__ = [
    "CellRules",
    "DetectedFormat",
    "ReadOptions",
    "RejectedRow",
    "Row",
    "SourceTable",
    "Unclear",
    "open_table",
]
TRIED_ROWS: Final = 200


def open_table(path: Path, options: ReadOptions | None = None) -> SourceTable:
    """Opens a text file or a workbook. The content decides which, not the name.

    Args:
        path: the file.
        options: what is known about the file; the rest is detected.

    Raises:
        Unclear: it can be read in several ways; each that is proposed was tried.
        UsageError: the file cannot be read.
    """
    options = options or ReadOptions()
    with open_file(path) as source:
        read = open_workbook if is_workbook(source) else open_text
        try:
            table = read(source, options)
        except Unclear as error:
            kept = {
                meaning: given
                for meaning, given in error.choices.items()
                if _reads(read, source, options, given)
            }
            raise Unclear(error.problem, error.fix, kept) from None
        source.file.seek(0)
        table.sha256 = hashlib.file_digest(source.file, "sha256").hexdigest()
    return table


def _reads(
    read: Callable[[InputFile, ReadOptions], SourceTable],
    source: InputFile,
    options: ReadOptions,
    given: Mapping[str, str | int],
) -> bool:
    """Whether a file can be read with the options that would be proposed, and most of its first rows fit."""
    try:
        table = read(source, replace(options, **given))  # type: ignore[arg-type] # names of its attributes
        rows = list(islice(table.rows(), TRIED_ROWS))
    except Unclear:  # something else is asked next
        return True
    except UsageError:
        return False
    is_whole = bool(table.format.header_lines) or not table.format.preamble
    return is_whole and 2 * sum(isinstance(row, Row) for row in rows) >= len(rows)
