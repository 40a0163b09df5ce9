"""The types of the file reader: options in, detected format and rows out."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple, Self, TypeAlias

import pyarrow as pa

from orderbridge.sources.errors import UsageError

LINE_COLUMN: Final = "_line"
BATCH_ROWS: Final = 65_536
MAX_COLUMNS: Final = 16_384
"""The limit of a spreadsheet; more means a wrong delimiter or a hostile file."""
OnReject = Callable[["RejectedRow"], object]
RejectCode = Literal[
    "too_short",
    "too_long",
    "torn",
    "quoting",
    "nul",
    "control",
    "cell_error",
    "cell_type",
    "repeated_header",
    "totals",
    "rule",
    "shifted",
    "byte_order_mark",
    "fill_torn",
]
DELIMITER_NAMES: Final = {",": "comma", ";": "semicolon", "\t": "tab", "|": "pipe"}
_DELIMITER_WORDS: Final = {name: mark for mark, name in DELIMITER_NAMES.items()} | {"\\t": "\t"}
_QUOTE_WORDS: Final = {"none": "", "single": "'", "double": '"', "doubled": ""}
_ESCAPE_WORDS: Final = {"none": "", "doubled": "", "double": "", "backslash": "\\"}


@dataclass(frozen=True)
class ReadOptions:
    """How to read a file. None: detect.

    Words such as `tab`, `single`, `none` and `backslash` stand for characters that are hard to type.

    Attributes:
        encoding: a codec name of Python.
        delimiter: one character.
        quote: one character, or "" for none.
        escape: a backslash, or "" if quotes within quotes are doubled.
        header_row: the 1-based line of the header; 0 for none, and the columns are numbered.
        short_rows: whether a row with fewer cells than the header is rejected, or filled with empty cells.
        sheet: the sheet of a workbook, by name or 1-based number.
        totals: whether lines of totals are rejected, rejected in order to be skipped, or rows.
        keeps_headings: a line with a few cells is a row: whoever reads the file fills others from it, or skips it.
        checks_rows: lines are checked for titles, totals and so on by all rules; otherwise as version 0.3 did.
        known_columns: columns that such files have; a line with all of them is the header.
    """

    encoding: str | None = None
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    header_row: int | None = None
    short_rows: Literal["reject", "fill"] = "reject"
    sheet: str | None = None
    totals: Literal["reject", "skip", "keep"] = "reject"
    keeps_headings: bool = False
    checks_rows: bool = True
    known_columns: tuple[str, ...] = ()

    @classmethod
    def given(cls, sheet: str = "", encoding: str = "", delimiter: str = "") -> Self:
        """What a person has chosen; empty: detect."""
        return cls(sheet=sheet or None, encoding=encoding or None, delimiter=delimiter or None)

    def __post_init__(self) -> None:
        for name, words in (
            ("delimiter", _DELIMITER_WORDS),
            ("quote", _QUOTE_WORDS),
            ("escape", _ESCAPE_WORDS),
        ):
            value = getattr(self, name)
            object.__setattr__(self, name, words.get(value, value))


@dataclass(frozen=True)
class DetectedFormat:
    """How a file is read: the same for the same file and `ReadOptions`. Lines are 1-based.

    Attributes:
        kind: text or workbook; attributes of the other kind are None or empty.
        columns: the column names, in order.
        header_lines: the line of each header row.
        preamble: non-blank lines before the header.
        footnotes: non-blank lines after the table.
        renamed: columns that were numbered because their name was empty or taken.
        dropped_columns: empty columns without a name at the right: a delimiter at the end of each line.
        lines: the number of lines of the file.
        is_encoding_assumed: another single-byte encoding cannot be ruled out.
        has_signs: control characters are read as the signs that cp1252 has in their place.
        is_padded: white space, or a second delimiter, stands beside the delimiters and is not part of the cells.
        line_ends: those of LF, CRLF and CR that occur, including within cells.
        may_be_cut_off: the last line has no line end, and nothing proves that its last cell is whole.
        sheets: all sheets of the workbook.
        hidden_rows: the number of rows that the sheet hides; they are read.
        merged_cells: the number of groups of merged cells; all but the first cell of each are empty.
    """

    kind: Literal["text", "workbook"]
    columns: tuple[str, ...]
    header_lines: tuple[int, ...]
    preamble: tuple[int, ...] = ()
    footnotes: tuple[int, ...] = ()
    renamed: tuple[str, ...] = ()
    dropped_columns: int = 0
    lines: int = 0
    encoding: str | None = None
    is_encoding_assumed: bool = False
    has_signs: bool = False
    has_bom: bool = False
    delimiter: str | None = None
    quote: str | None = None
    escape: str | None = None
    is_padded: bool = False
    line_ends: tuple[str, ...] = ()
    may_be_cut_off: bool = False
    sheet: str | None = None
    sheets: tuple[str, ...] = ()
    hidden_rows: int = 0
    merged_cells: int = 0


@dataclass(frozen=True)
class CellRules:
    """How cells of a workbook that are not text are written in a column. Text files have no such cells.

    Attributes:
        decimal: the decimal sign of numbers.
        true, false: the texts of logical values.
        is_text: the column holds texts or codes; a date, a logical value, or a number that is shown in another form is
            rejected, because the text that was typed is unknown.
    """

    decimal: str = "."
    true: str = "TRUE"
    false: str = "FALSE"
    is_text: bool = False


class Row(NamedTuple):
    """A row with one cell per column. `line` is the 1-based line on which it begins."""

    line: int
    cells: tuple[str, ...]


@dataclass(frozen=True)
class RejectedRow:
    """A row that does not fit. `reason` names lines and columns, never the content of a cell."""

    line: int
    last_line: int
    code: RejectCode
    reason: str
    cells: tuple[str, ...] = field(default=(), repr=False)


Part: TypeAlias = pa.Table | Row | RejectedRow


class Unclear(UsageError):
    """A file that can be read in several ways.

    Attributes:
        choices: by what each means, the options that choose a reading; all of them are in the hint.
    """

    def __init__(
        self, problem: str, fix: str, choices: Mapping[str, Mapping[str, str | int]]
    ) -> None:
        hints = [f"If {meaning}: {_as_typed(options)}." for meaning, options in choices.items()]
        super().__init__(
            problem,
            " ".join([*filter(None, [fix]), *hints]) or "Look at the file in a text editor.",
        )
        self.problem = problem
        self.fix = fix
        self.choices = choices


def _as_typed(options: Mapping[str, str | int]) -> str:
    """Options as on a command line."""
    words = {
        name: DELIMITER_NAMES.get(value, value)
        for name, value in options.items()
        if isinstance(value, str)
    }
    return " ".join(
        f"--{name.replace('_', '-')} {words.get(name, value)}" for name, value in options.items()
    )


class UnreadableRest(UsageError):
    """A file that cannot be read from a line on."""


class SourceTable(ABC):
    """A file as rows of text cells; it can be read any number of times.

    Attributes:
        sha256: of the file, as it was when it was opened.
        is_excerpt: whether it has the rejected rows of another file, without the rows between them.
    """

    format: DetectedFormat
    sha256: str
    is_excerpt: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The column names."""
        return self.format.columns

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """The rows in the file's order, one by one or as tables of text columns and, last, their lines.

        Raises:
            UnreadableRest: the file cannot be read further, e.g. a quote is never closed.
        """

    def rows(self) -> Iterator[Row | RejectedRow]:
        """The rows in the file's order; blank lines are skipped.

        Raises:
            UnreadableRest: the file cannot be read further, e.g. a quote is never closed.
        """
        for part in self.parts():
            yield from rows_of(part) if isinstance(part, pa.Table) else (part,)

    def batches(
        self, size: int = BATCH_ROWS, on_reject: OnReject | None = None
    ) -> Iterator[pa.Table]:
        """The rows as Arrow tables of text columns plus `_line` (int64), each of at most `size` rows.

        Args:
            size: the maximum number of rows of a table.
            on_reject: called with each rejected row; without it, the first one raises.

        Raises:
            UsageError: as for rows(); a row was rejected without `on_reject`; or a column is named `_line`.
        """
        self.check_line_column()
        tables: list[pa.Table] = []
        rows: list[Row] = []
        count = 0
        for part in self.parts():
            if isinstance(part, RejectedRow):
                if on_reject is None:
                    raise UsageError(f"line {part.line}: {part.reason}", "Fix or remove the line.")
                on_reject(part)
                continue
            if isinstance(part, Row):
                rows.append(part)
                count += 1
            else:
                tables += [self._to_arrow(rows), part] if rows else [part]
                rows = []
                count += part.num_rows
            if count >= size:
                table = pa.concat_tables([*tables, self._to_arrow(rows)])
                full = count // size * size
                for start in range(0, full, size):
                    yield table.slice(start, size).combine_chunks()
                tables = [table.slice(full)]
                rows = []
                count = count - full
        if count:
            yield pa.concat_tables([*tables, self._to_arrow(rows)]).combine_chunks()

    def _to_arrow(self, rows: list[Row]) -> pa.Table:
        cells = zip(*(row.cells for row in rows), strict=True) if rows else [()] * len(self.columns)
        arrays = [pa.array(column, pa.string()) for column in cells]
        lines = pa.array([row.line for row in rows], pa.int64())
        return pa.Table.from_arrays([*arrays, lines], names=[*self.columns, LINE_COLUMN])

    def with_cell_rules(self, rules: Mapping[str, CellRules]) -> SourceTable:
        """A copy in which the cells of these columns are written by the given rules; a text file returns itself.

        The other columns are not used: what is wrong with a cell there rejects no row.
        """
        return self

    def with_added_columns(self, added: int) -> SourceTable:
        """A copy whose last columns were added to the rows of another file, also to those with too few cells."""
        return self

    def check_line_column(self) -> None:
        """Raises UsageError if a column has the reserved name `_line`."""
        if LINE_COLUMN in self.columns:
            raise UsageError(
                f"a column is named {LINE_COLUMN}, which is reserved",
                "Rename the column in the file.",
            )


def rows_of(table: pa.Table) -> Iterator[Row]:
    """The rows of a table of text columns and, last, their lines."""
    *cells, lines = (column.to_pylist() for column in table.columns)
    return map(Row, lines, zip(*cells, strict=True))
