"""What Python's csv and DuckDB read from a file, where our reader accepts a row without a word and they differ.

Each difference has a named reason, which the file's format must confirm; a difference without one is a silent error of
one of the readers, and fails the test.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import duckdb

from sources.errors import UsageError
from sources.files import DetectedFormat, Row, open_table
from tests.sources.files.polluted import Document

Cells = tuple[str, ...]


def differences(path: Path) -> Iterator[tuple[str, str | None, Cells]]:
    """Reader, reason (None: unexplained) and cells of each row that we accept and another reader has otherwise."""
    try:
        table = open_table(path)
        rows = [row for row in table.rows() if isinstance(row, Row)]
    except UsageError:
        return
    for reader, read in (("csv", _by_csv), ("duckdb", _by_duckdb)):
        others = read(path, table.format)
        if others is None:  # it refuses the file, so that nothing is silent
            continue
        counts = Counter(others)
        missing = list((Counter(row.cells for row in rows) - counts).elements())
        known = Counter(tuple(_plain(cells, table.format)) for cells in others)
        for cells in missing:
            yield reader, _reason(reader, cells, table.format, others, known), cells


def unexplained(document: Document, folder: Path) -> list[tuple[str, Cells]]:
    """The rows of a damaged file that another reader has otherwise for no known reason."""
    path = folder / "in.csv"
    path.write_bytes(document.written())
    return [(reader, cells) for reader, reason, cells in differences(path) if reason is None]


def _by_csv(path: Path, detected: DetectedFormat) -> list[Cells] | None:
    """All records, with the delimiter that we found and the defaults for the rest."""
    text = path.read_bytes().decode(detected.encoding or "utf-8").removeprefix("\ufeff")
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=detected.delimiter or ",")
    try:
        return [tuple(row) for row in rows if row]
    except csv.Error:
        return None


def _by_duckdb(path: Path, detected: DetectedFormat) -> list[Cells] | None:
    """All records, with the delimiter that we found, and no header, so that each line is one."""
    if detected.encoding not in ("utf-8", "utf-16-le", "utf-16"):
        return None
    encoding = "utf-8" if detected.encoding == "utf-8" else "utf-16"
    try:
        rows = duckdb.read_csv(
            str(path), sep=detected.delimiter, header=False, all_varchar=True, encoding=encoding
        ).fetchall()
    except (duckdb.Error, UnicodeDecodeError):
        return None
    return [tuple("" if cell is None else cell for cell in row) for row in rows]


def _plain(cells: Cells, detected: DetectedFormat) -> list[str]:
    """The cells without what our format removes: the padding, the quotes, empty columns at the end."""
    end = "\r\n" if "CRLF" in detected.line_ends else "\n"
    plain = [cell.replace(end, "\n").replace("\r", "\n").replace('"', "").replace("\\", "").strip() for cell in cells]
    while plain and not plain[-1]:
        plain.pop()
    return plain


def _reason(
    reader: str, cells: Cells, detected: DetectedFormat, others: list[Cells], known: Counter[Cells]
) -> str | None:
    """Why another reader has no such row."""
    if reader == "duckdb" and len(others[0] if others else ()) != len(detected.columns) + detected.dropped_columns:
        return "another number of columns was sniffed"
    delimiter = detected.delimiter or ","
    if any("\n" in cell or "\r" in cell for row in others for cell in row if all(text in cell for text in cells)):
        return "lines after a stray quote are taken for one cell"
    plain = tuple(_plain(cells, detected))
    if reader == "duckdb" and any(cell[:1] == cell[-1:] == "'" for cell in cells):
        return "single quotes around a cell were taken for quotes"
    line = delimiter.join(plain)
    if any(line == delimiter.join(row).replace('"', "").rstrip(delimiter) for row in others):
        return "the line is split at each delimiter, also within quotes"
    if known[plain]:
        if detected.dropped_columns:
            return "a delimiter at the end of each line is no column"
        if detected.is_padded:
            return "spaces after the delimiter are no part of the cells"
        if detected.quote != '"':
            return "quotes are part of the cells: no cell of the file is enclosed in them"
        if detected.escape:
            return "quotes are escaped by backslashes"
    if detected.is_padded and any(mark in cell for cell in cells for mark in (detected.delimiter or ",", "\r", "\n")):
        return "a quote after a space encloses a cell"
    return None
