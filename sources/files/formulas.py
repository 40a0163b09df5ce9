"""Cells that a spreadsheet would run as a formula: made harmless in files for people, restored when read back.

In: the text of a cell. Out: the text, with an apostrophe before what starts like a formula: at its beginning, and after
what a spreadsheet of another locale takes for a delimiter (`x;=1+1`). Plain numbers such as `-5` or `+34 600 112 233`
are left as they are.
"""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO, Final, TextIO

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.model import (
    LINE_COLUMN,
    CellRules,
    Part,
    RejectedRow,
    Row,
    SourceTable,
)

_SIGNS: Final = "=+\\-@\uff1d\uff0b\uff0d\uff20"
"""The last four are the full-width forms, which some spreadsheets treat alike."""
BYTE_ORDER_MARK: Final = "\ufeff"
_NUMBER: Final = r"(?:[+-]|[+-]?[0-9][0-9 .,]*)(?:[,;|\t\r\n]|\Z)"
_SPLITS: Final = r",;|\t\r\n"
"""Where a spreadsheet may split a cell: at the delimiter of its own locale, and at a line end."""


def _starts(before: str, quotes: str) -> re.Pattern[str]:
    """Matches `before` where a cell may start that a spreadsheet runs, after quotes or not."""
    return re.compile(
        rf"(?:^{before}(?={quotes}*[{_SIGNS}\t\r\n])|(?<=[{_SPLITS}]){before}(?={quotes}*[{_SIGNS}]))"
    )


_FORMULA: Final = _starts(f"(?!{_NUMBER})", '"')
_ESCAPABLE: Final = _starts(f"(?!{_NUMBER})", "[\"']")
_ESCAPED: Final = _starts("'", "[\"']")
_ANY: Final = f"(?:^|[{_SPLITS}])[\"']*[{_SIGNS}\t\r\n]"
"""For whole columns: what contains none of the above does not match it."""


def neutralize(text: str) -> str:
    """A cell that no spreadsheet runs, whatever it takes for a delimiter."""
    return _FORMULA.sub("'", text)


def escape(text: str) -> str:
    """Like `neutralize`, but reversible: `unescape(escape(text)) == text` for any text."""
    return _ESCAPABLE.sub("'", text)


def unescape(text: str) -> str:
    """The text that `escape` was given."""
    return _ESCAPED.sub("", text)


class CsvFile:
    """What `csv.writer` writes to with its default line end, for rows that end differently.

    Before Python 3.13 the writer quotes a carriage return only if its line end contains one. Unquoted, the rest of a
    cell would be a row of its own, and its first cell could be a formula.
    """

    def __init__(self, file: TextIO, line_end: str = "\n") -> None:
        self._file = file
        self._line_end = line_end

    def write(self, row: str) -> int:
        """Writes one row."""
        return self._file.write(row.removesuffix("\r\n") + self._line_end)


def people_writer(file: IO[bytes], delimiter: str) -> Callable[[Iterable[object]], object]:
    """Writes rows of a CSV for people: UTF-8 with a byte order mark, which Excel needs, and the input's delimiter."""
    text = io.TextIOWrapper(file, "utf-8", newline="", write_through=True)
    text.write(BYTE_ORDER_MARK)
    return csv.writer(CsvFile(text), delimiter=delimiter).writerow


def people_rows(path: Path, columns: Sequence[str]) -> Iterator[dict[str, str]]:
    """Reads a CSV for people. The delimiter is what follows the first name, of letters, in its header.

    Raises:
        UsageError: it lacks one of the columns, or was changed otherwise.
        OSError: it cannot be read.
    """
    try:
        with path.open(encoding="utf-8", newline="") as file:
            begin = len(BYTE_ORDER_MARK.encode()) if file.read(1) == BYTE_ORDER_MARK else 0
            file.seek(begin)
            after = re.search(r"[^\w\r\n]", file.readline())
            file.seek(begin)
            rows = csv.DictReader(
                file, delimiter=after[0] if after else ",", restkey="", strict=True
            )
            is_whole = set(columns) <= set(rows.fieldnames or ())
            for row in rows:
                is_whole = is_whole and "" not in row and None not in row.values()
                if not is_whole:
                    break
                yield row
    except (ValueError, csv.Error):
        is_whole = False
    if not is_whole:
        raise UsageError(
            f"{path} was changed after it was written", "Restore it, or make its plan again."
        )


def csv_lines(columns: Sequence[pa.ChunkedArray]) -> str:
    """Rows as `csv.writer` writes them, whole columns at a time."""
    comma, empty, quote, quotes = (
        pa.scalar(text, pa.large_string()) for text in (",", "", '"', '""')
    )
    cells = []
    for column in columns:
        texts = column.combine_chunks().cast(pa.large_string())
        codes = np.frombuffer(texts.buffers()[2] or b"", np.uint8)
        if any((codes == code).any() for code in b'",\r\n'):
            quoted = pc.binary_join_element_wise(
                quote, pc.replace_substring(texts, '"', '""'), quote, empty
            )
            texts = pc.if_else(pc.match_substring_regex(texts, '[",\r\n]'), quoted, texts)
        cells.append(
            texts if len(columns) > 1 else pc.if_else(pc.equal(texts, empty), quotes, texts)
        )
    return "\r\n".join([*pc.binary_join_element_wise(*cells, comma).to_pylist(), ""])


def neutralize_column(texts: pa.Array | pa.ChunkedArray) -> pa.Array | pa.ChunkedArray:
    """A column of cells that no spreadsheet runs."""
    return _each(neutralize, texts)


def _each(
    function: Callable[[str], str], texts: pa.Array | pa.ChunkedArray
) -> pa.Array | pa.ChunkedArray:
    if not pc.any(pc.match_substring_regex(texts, _ANY)).as_py():
        return texts
    return pa.array(
        [text if text is None else function(text) for text in texts.to_pylist()], pa.string()
    )


class UnescapedTable(SourceTable):
    """A table of rejected rows, whose cells and column names were written with `escape`.

    Args:
        table: of the file.
        added: the number of its last columns, which say why the rows were rejected.
    """

    is_excerpt = True

    def __init__(self, table: SourceTable, added: int = 0) -> None:
        self._table = table.with_added_columns(added)
        self.sha256 = table.sha256
        self.format = replace(table.format, columns=tuple(map(unescape, table.columns)))

    def parts(self) -> Iterator[Part]:
        """See `SourceTable`."""
        for part in self._table.parts():
            if isinstance(part, pa.Table):
                *texts, lines = part.columns
                yield pa.table(
                    [*(_each(unescape, column) for column in texts), lines],
                    [*self.columns, LINE_COLUMN],
                )
            else:
                cells = tuple(map(unescape, part.cells))
                yield (
                    replace(part, cells=cells)
                    if isinstance(part, RejectedRow)
                    else Row(part.line, cells)
                )

    def with_cell_rules(self, rules: Mapping[str, CellRules]) -> SourceTable:
        """See `SourceTable`."""
        names = dict(zip(self.columns, self._table.columns, strict=True))
        return UnescapedTable(
            self._table.with_cell_rules({names[name]: rule for name, rule in rules.items()})
        )
