"""The command `preview`: the detected format of a file, its first rows, and the whole file as clean CSV.

In: a file. Out: on stdout the format and the first rows; on stderr each rejected row with line and reason; with a
target, UTF-8 CSV with CRLF, written completely or not at all.
"""

from __future__ import annotations

import csv
import io
import re
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, fields, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from pipelines.cli.options import json_option, path_option
from pipelines.cli.process import STOP, exit_process
from pipelines.cli.terminal import escape, print_json, print_lines
from sources.disk import disk_errors, replace_file
from sources.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from sources.files import DetectedFormat, ReadOptions, RejectedRow, Row, SourceTable, Unclear

MAX_REPORTED: Final = 100
READING_ROWS: Final = 3
PASSWORD_NAME: Final = re.compile("pass|pwd|contrase|clave( de acceso)?$|senha|kennwort", re.I)
"""In the name of a column whose cells are not shown; `--csv` writes them, to a private file."""
MAX_SHOWN: Final = 40
"""Characters of a cell on a terminal; JSON and CSV have all of them."""


@dataclass(frozen=True)
class PreviewOptions:
    """Options of `orderbridge preview`."""

    rows: int = 10
    target: Path | None = None
    as_json: bool = False


def preview(path: Path, read: ReadOptions, options: PreviewOptions, used: Collection[str] | None = None) -> ExitCode:
    """Prints the format and the first rows; with a target, writes the whole file as CSV.

    All rows are read in any case, so that a rejected row at the end is reported. `read` has what is not to be detected.
    If given, only the cells of the columns in `used` reject a row.

    Raises:
        Unclear: the file can be read in several ways; each was shown.
        UsageError: the file cannot be read, or the target cannot be written.
    """
    from sources.files import CellRules, Row, Unclear, open_table
    from sources.files.formulas import csv_lines
    from sources.files.model import LINE_COLUMN

    try:
        table = open_table(path, read)
    except Unclear as error:
        if not options.as_json:
            _print_readings(path, read, error)
        raise
    if read.sheet is not None and table.format.kind == "text":
        raise UsageError(f"{path.name} is a text file, which has no sheets", "Leave out --sheet.")
    if used is not None:
        table = table.with_cell_rules({name: CellRules() for name in table.columns if name in used})
    shown = _Shown(options, skips_totals=read.totals == "skip")
    with _target(options, path, table) as target:
        for batch in table.batches(on_reject=shown.reject):
            shown.accepted_count += batch.num_rows
            head = batch.slice(0, options.rows - len(shown.first))
            cells = zip(*(head[name].to_pylist() for name in table.columns), strict=True)
            shown.first += map(Row, head[LINE_COLUMN].to_pylist(), cells)
            if target is not None:
                target.write(csv_lines([batch[name] for name in table.columns]))
    shown.print(table.format)
    return ExitCode.REJECTED if shown.rejected_count else ExitCode.DONE


class _Shown:
    """The first rows and the rejected ones; a rejected row is reported at once."""

    def __init__(self, options: PreviewOptions, *, skips_totals: bool = False) -> None:
        self._options, self._skips_totals = options, skips_totals
        self.first: list[Row] = []
        self.rejected: list[RejectedRow] = []
        self.accepted_count = self.rejected_count = 0

    def reject(self, row: RejectedRow) -> None:
        if row.code == "totals" and self._skips_totals:
            return
        self.rejected_count += 1
        if len(self.rejected) < MAX_REPORTED:
            self.rejected.append(row)
        if not self._options.as_json and (self._options.target is not None or self.rejected_count <= MAX_REPORTED):
            sys.stderr.write(f"line {row.line} rejected: {escape(row.reason)}\n")

    def print(self, detected: DetectedFormat) -> None:
        """Prints the format, the first rows, and how many there are."""
        counts = ("rows", f"{self.accepted_count}, and {self.rejected_count} rejected")
        lines = [f"{name:<12}{value}" for name, value in (*_described(detected), counts)]
        if self._options.as_json:
            names = ("line", "last_line", "code", "reason")
            print_json(
                "preview",
                lines,
                {
                    "format": asdict(detected),
                    "rows": self.accepted_count,
                    "rejected": self.rejected_count,
                    "first": [{"line": row.line, "cells": row.cells} for row in _masked(detected.columns, self.first)],
                    "first_rejected": [{name: getattr(row, name) for name in names} for row in self.rejected],
                },
            )
            return
        if self.rejected_count > MAX_REPORTED and self._options.target is None:
            sys.stderr.write(f"and {self.rejected_count - MAX_REPORTED} more; --csv OUT lists all of them\n")
        print_lines(*lines)
        if self.first:
            print_lines("")
            _print_rows(detected.columns, self.first)


def _print_readings(path: Path, read: ReadOptions, error: Unclear) -> None:
    """The first rows of a file under each of its readings."""
    from sources.files import Row, Unclear, open_table

    for meaning, given in error.choices.items():
        try:
            table = open_table(path, replace(read, **given))  # type: ignore[arg-type] # names of its attributes
        except Unclear:
            continue
        print_lines(f"If {meaning}:")
        _print_rows(table.columns, list(islice((row for row in table.rows() if isinstance(row, Row)), READING_ROWS)))
        print_lines("")


def _print_rows(columns: tuple[str, ...], rows: list[Row]) -> None:
    from pipelines.cli.console import print_table

    lines = ([str(row.line), *map(_shortened, row.cells)] for row in _masked(columns, rows))
    print_table(("line", *map(_shortened, columns)), lines)


def _masked(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    """The rows without passwords."""
    secret = {at for at, name in enumerate(columns) if PASSWORD_NAME.search(name)}
    for row in rows:
        yield row._replace(cells=tuple("***" if at in secret and cell else cell for at, cell in enumerate(row.cells)))


def _shortened(cell: str) -> str:
    shown = escape(cell[: MAX_SHOWN + 1])
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 1] + "…"


def _described(detected: DetectedFormat) -> Iterator[tuple[str, str]]:
    """The detected format as labelled values."""
    from sources.files.model import DELIMITER_NAMES

    if detected.kind == "workbook":
        yield "sheet", f"{detected.sheet} (of {', '.join(detected.sheets)})"
    else:
        note = " (assumed)" if detected.is_encoding_assumed else ", byte order mark" if detected.has_bom else ""
        yield "encoding", f"{detected.encoding}{note}"
        padding = ", followed by spaces" if detected.is_padded else ""
        yield "delimiter", f"{DELIMITER_NAMES.get(detected.delimiter or '', repr(detected.delimiter))}{padding}"
        escape = f"escaped by {detected.escape}" if detected.escape else "doubled in cells"
        yield "quote", f"{detected.quote or 'none'}, {escape}"
        yield "line ends", ", ".join(detected.line_ends) or "none"
    yield "header", f"line {_lines(detected.header_lines)}" if detected.header_lines else "none, columns are numbered"
    if detected.preamble:
        yield "preamble", f"line {_lines(detected.preamble)}"
    if detected.footnotes:
        yield "footnotes", f"line {_lines(detected.footnotes)}"
    yield "columns", f"{len(detected.columns)}: {', '.join(detected.columns)}"
    if detected.renamed:
        yield "numbered", f"{', '.join(detected.renamed)} (name empty or already used)"
    if detected.dropped_columns:
        yield "left out", f"{detected.dropped_columns} empty columns without a name at the right"
    if detected.hidden_rows:
        yield "hidden rows", f"{detected.hidden_rows}, which are read too"
    if detected.merged_cells:
        yield "merged", f"{detected.merged_cells} groups of cells; only the first of each has the value"


def _lines(lines: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:10]))
    return f"{shown} and {len(lines) - 10} more" if len(lines) > 10 else shown


@contextmanager
def _target(options: PreviewOptions, source: Path, table: SourceTable) -> Iterator[TextIO | None]:
    """A temporary CSV with the column names that replaces the target on success."""
    target = options.target
    if target is None:
        yield None
        return
    if target.exists() and (not target.is_file() or target.samefile(source)):
        what = "the input file" if target.is_file() else "a folder" if target.is_dir() else "a device or a pipe"
        raise UsageError(f"--csv is {what}", "Choose another file.")
    from sources.settings import own_path

    target = own_path(target)  # replaces the target of a link, not the link
    with (
        disk_errors(f"{target.name} cannot be written", "Free space, or choose a file in another folder."),
        replace_file(target) as raw,
        io.TextIOWrapper(raw, "utf-8", newline="") as file,
    ):
        csv.writer(file).writerow(table.columns)
        yield file


class _WithoutPandas:
    """Makes `import pandas` fail, as if it were not installed, unless it is loaded.

    pyarrow imports it at the first conversion, which takes 0.3 s, to recognize objects that a preview does not use.
    """

    def __enter__(self) -> None:
        sys.meta_path.insert(0, self)

    def __exit__(self, *_: object) -> None:
        sys.meta_path.remove(self)

    def find_spec(self, name: str, *_: object) -> None:
        """As `importlib.abc.MetaPathFinder`."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


@click.command("preview", epilog="Example: orderbridge preview articulos.csv --csv clean.csv")
@click.argument("file", type=click.Path(path_type=Path))
@path_option("--csv", "target", metavar="OUT", help="Write the whole table as UTF-8 CSV.")
@click.option("--rows", type=click.IntRange(min=0), default=10, show_default=True, help="Number of rows to show.")
@click.option("--encoding", help="utf-8, cp1252, utf-16, cp850 …; detected by default, like the options below.")
@click.option("--delimiter", help="A character, or comma, semicolon, tab, pipe.")
@click.option("--quote", help="A character, or double, single, none.")
@click.option("--escape", help="How a quote inside quotes is written: doubled, or backslash.")
@click.option("--header-row", type=click.IntRange(min=0), metavar="N", help="Line of the header; 0 for none.")
@click.option("--header-rows", type=click.IntRange(1, 5), metavar="N", help="Number of lines that the header spans.")
@click.option("--fill-short", is_flag=True, help="Accept rows with too few cells; fill them with empty ones.")
@click.option("--sheet", metavar="NAME", help="Sheet of a workbook: its name, or its number from 1.")
@path_option(
    "--mapping", help="Read the file as this mapping does: cells of columns that it does not use reject no row."
)
@json_option
def command(file: Path, fill_short: bool, mapping: Path | None, **options: Any) -> None:  # noqa: ANN401 # checked by click
    """Show how a CSV or .xlsx is read (encoding, dialect, header) and its first rows.

    Each cell is shown as its text. Rows that do not fit are reported on stderr, and the exit code is 5.
    """
    from sources.files import ReadOptions

    STOP.listen()
    shown = PreviewOptions(**{item.name: options.pop(item.name) for item in fields(PreviewOptions)})
    read = ReadOptions(**options, short_rows="fill" if fill_short else "reject")
    used = None
    if mapping is not None:
        from pipelines.mapping import load

        loaded = load(mapping)
        given = {name: value for name, value in options.items() if value is not None}
        read, used = replace(loaded.read_options, **given), loaded.used_columns
    with _WithoutPandas():
        code = preview(file, read, shown, used)
    exit_process(code)
