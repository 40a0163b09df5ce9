"""The command `preview`: the detected format of a file, its first rows, and the whole file as clean CSV.

In: a file. Out: on stdout the format and the first rows; on stderr each rejected row with line and reason; with a
target, UTF-8 CSV with CRLF, written completely or not at all.
"""

from __future__ import annotations

import csv
import io
import shlex
import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP
from orderbridge.pipelines.cli.terminal import escape, print_lines, print_result
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.disk import disk_errors, replace_file
from orderbridge.sources.errors import ExitCode, UsageError
from orderbridge.sources.kinds import PASSWORD_NAME
from orderbridge.sources.words import listed, number

if TYPE_CHECKING:
    from orderbridge.sources.files import (
        DetectedFormat,
        ReadOptions,
        RejectedRow,
        Row,
        SourceTable,
        Unclear,
    )

MAX_REPORTED: Final = 100
READING_ROWS: Final = 3
MAX_SHOWN: Final = 40
"""Characters of a cell on a terminal; JSON and CSV have all of them."""


def preview(
    path: Path,
    read: ReadOptions,
    used: Collection[str] | None = None,
    *,
    rows: int = 10,
    target: Path | None = None,
    as_json: bool = False,
) -> ExitCode:
    """Prints the format and the first rows; with a target, writes the whole file as CSV.

    All rows are read in any case, so that a rejected row at the end is reported, at once. `read` has what is not to be
    detected. If given, only the cells of the columns in `used` reject a row.

    Raises:
        Unclear: the file can be read in several ways; each was shown.
        UsageError: the file cannot be read, or the target cannot be written.
    """
    from orderbridge.sources.files import CellRules, Unclear, open_table

    try:
        table = open_table(path, read)
    except Unclear as error:
        if not as_json:
            _print_readings(path, read, error)
        raise
    if read.sheet is not None and table.format.kind == "text":
        raise UsageError(
            f"{path.name} is a text file, which has no sheets",
            f"Leave out --sheet: orderbridge preview {shlex.quote(str(path))}",
        )
    if used is not None:
        table = table.with_cell_rules({name: CellRules() for name in table.columns if name in used})
    rejects = _Rejects(
        is_printed=not as_json,
        printed_max=None if target is not None else MAX_REPORTED,
        are_totals_skipped=read.totals == "skip",
    )
    with _target(target, path, table) as file:
        accepted_count, first = _read_all(table, rejects, rows, file)
    rejects.print_rest()
    _print_result(table, accepted_count, first, rejects, as_json=as_json)
    return ExitCode.REJECTED if rejects.count else ExitCode.DONE


class _Rejects:
    """The rejected rows of a file, printed as they come.

    Args:
        is_printed: whether they are.
        printed_max: so many at most.
        are_totals_skipped: whether rows of totals are left out in silence.
    """

    def __init__(
        self, *, is_printed: bool, printed_max: int | None, are_totals_skipped: bool
    ) -> None:
        self.count = 0
        self.first: list[RejectedRow] = []
        self._is_printed = is_printed
        self._printed_max = printed_max
        self._are_totals_skipped = are_totals_skipped

    def add(self, row: RejectedRow) -> None:
        if row.code == "totals" and self._are_totals_skipped:
            return
        self.count += 1
        if self.count <= MAX_REPORTED:
            self.first.append(row)
        is_within = self._printed_max is None or self.count <= self._printed_max
        if self._is_printed and is_within:
            sys.stderr.write(f"line {row.line} rejected: {escape(row.reason)}\n")

    def print_rest(self) -> None:
        """Prints how many were not printed."""
        if self._is_printed and self._printed_max is not None and self.count > self._printed_max:
            rest = self.count - self._printed_max
            sys.stderr.write(f"and {rest} more; --csv OUT lists all of them\n")


def _read_all(
    table: SourceTable, rejects: _Rejects, rows: int, file: TextIO | None
) -> tuple[int, list[Row]]:
    """Reads the whole file, and writes it as CSV if there is a file for it.

    Returns:
        how many rows it has, and the first of them.
    """
    from orderbridge.sources.files import Row
    from orderbridge.sources.files.formulas import csv_lines
    from orderbridge.sources.files.model import LINE_COLUMN

    count = 0
    first: list[Row] = []
    for batch in table.batches(on_reject=rejects.add):
        count += batch.num_rows
        head = batch.slice(0, rows - len(first))
        cells = zip(*(head[name].to_pylist() for name in table.columns), strict=True)
        first += map(Row, head[LINE_COLUMN].to_pylist(), cells)
        if file is not None:
            file.write(csv_lines([batch[name] for name in table.columns]))
    return count, first


def _print_result(
    table: SourceTable, count: int, first: list[Row], rejects: _Rejects, *, as_json: bool
) -> None:
    """Prints the format, the number of rows, and the first of them."""
    counts = ("rows", f"{count}, and {rejects.count} rejected; import checks their values")
    lines = [f"{name:<12}{value}" for name, value in (*_described(table.format), counts)]
    record = {
        "format": asdict(table.format),
        "rows": count,
        "rejected": rejects.count,
        "first": [{"line": row.line, "cells": row.cells} for row in _masked(table.columns, first)],
        "first_rejected": [
            {name: getattr(row, name) for name in ("line", "last_line", "code", "reason")}
            for row in rejects.first
        ],
    }
    print_result("preview", lines, record, "json" if as_json else "plain")
    if first and not as_json:
        print_lines("", *_row_lines(table.columns, first))


def _print_readings(path: Path, read: ReadOptions, error: Unclear) -> None:
    """The first rows of a file under each of its readings."""
    from orderbridge.sources.files import Row, Unclear, open_table

    for meaning, given in error.choices.items():
        try:
            table = open_table(path, replace(read, **given))  # type: ignore[arg-type] # names of its attributes
        except Unclear:
            continue
        rows = list(islice((row for row in table.rows() if isinstance(row, Row)), READING_ROWS))
        print_lines(f"If {meaning}:", *_row_lines(table.columns, rows), "")


def _row_lines(columns: tuple[str, ...], rows: list[Row]) -> list[str]:
    from orderbridge.pipelines.cli.console import table_lines

    lines = ([str(row.line), *map(_shortened, row.cells)] for row in _masked(columns, rows))
    return table_lines(("line", *map(_shortened, columns)), lines)


def _masked(columns: Sequence[str], rows: Sequence[Row]) -> Iterator[Row]:
    """The rows without passwords."""
    secret = {at for at, name in enumerate(columns) if PASSWORD_NAME.search(name)}
    for row in rows:
        yield row._replace(
            cells=tuple(
                "***" if at in secret and cell else cell for at, cell in enumerate(row.cells)
            )
        )


def _shortened(cell: str) -> str:
    shown = escape(cell[: MAX_SHOWN + 1])
    return shown if len(shown) <= MAX_SHOWN else shown[: MAX_SHOWN - 1] + "…"


def _described(detected: DetectedFormat) -> Iterator[tuple[str, str]]:
    """The detected format as labelled values."""
    if detected.kind == "workbook":
        yield "sheet", f"{detected.sheet} (of {', '.join(detected.sheets)})"
    else:
        yield from _described_text(detected)
    if detected.header_lines:
        yield "header", f"line {detected.header_lines[0]}"
    else:
        first = detected.columns[0]
        yield "header", f"none: the names {first} and so on are not in the file"
    if detected.preamble:
        yield "preamble", f"line {listed(list(map(str, detected.preamble)))}"
    if detected.footnotes:
        yield "footnotes", f"line {listed(list(map(str, detected.footnotes)))}"
    yield "columns", f"{len(detected.columns)}: {', '.join(detected.columns)}"
    if detected.renamed:
        yield "numbered", f"{', '.join(detected.renamed)} (name empty or already used)"
    if detected.dropped_columns:
        empty = number(detected.dropped_columns, "empty column")
        yield "left out", f"{empty} without a name at the right"
    if detected.hidden_rows:
        yield "hidden rows", f"{detected.hidden_rows}, which are read too"
    if detected.merged_cells:
        yield (
            "merged",
            f"{detected.merged_cells} groups of cells; only the first of each has the value",
        )


def _described_text(detected: DetectedFormat) -> Iterator[tuple[str, str]]:
    """How a text file is written, as labelled values."""
    from orderbridge.sources.files.model import DELIMITER_NAMES

    encoding = str(detected.encoding)
    if detected.is_encoding_assumed:
        encoding = f"{encoding} (assumed)"
    elif detected.has_bom:
        encoding = f"{encoding}, byte order mark"
    if detected.has_signs:
        encoding = f"{encoding}, control characters read as signs of cp1252"
    yield "encoding", encoding
    delimiter = DELIMITER_NAMES.get(detected.delimiter or "", repr(detected.delimiter))
    padding = ", beside white space" if detected.is_padded else ""
    yield "delimiter", f"{delimiter}{padding}"
    inside = ", doubled in cells" if detected.quote else ""
    if detected.escape:
        inside = f", escaped by {detected.escape}"
    yield "quote", f"{detected.quote or 'none'}{inside}"
    open_end = ", none after the last line" if detected.may_be_cut_off else ""
    yield "line ends", f"{', '.join(detected.line_ends) or 'none'}{open_end}"


@contextmanager
def _target(target: Path | None, source: Path, table: SourceTable) -> Iterator[TextIO | None]:
    """A temporary CSV with the column names that replaces the target on success."""
    if target is None:
        yield None
        return
    if target.exists() and (not target.is_file() or target.samefile(source)):
        what = (
            "the input file"
            if target.is_file()
            else "a folder"
            if target.is_dir()
            else "a device or a pipe"
        )
        raise UsageError(
            f"--csv is {what}", f"Choose another file: {typed_command('--csv', 'clean.csv')}"
        )
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.sources.settings import own_path

    Reporter(STOP.style).attach()
    target = own_path(target)  # replaces the target of a link, not the link
    with (
        disk_errors(
            f"{target.name} cannot be written", "Free space, or choose a file in another folder."
        ),
        replace_file(target) as raw,
        io.TextIOWrapper(raw, "utf-8", newline="") as file,
    ):
        csv.writer(file).writerow(table.columns)
        yield file


class _WithoutPandas:
    """Makes `import pandas` fail, as if it were not installed, unless it is loaded.

    pyarrow imports it at its first conversion (0.3 s, 44 MB), to recognize objects that a preview does not have.
    """

    def find_spec(self, name: str, *_: object) -> None:
        """See `importlib.abc.MetaPathFinder`."""
        if name == "pandas":
            raise ModuleNotFoundError(name=name)


@declared("preview")
@click.argument("file", type=click.Path(path_type=Path))
def command(
    file: Path,
    target: Path | None,
    rows: int,
    fill_short: bool,
    mapping: Path | None,
    **options: Any,  # noqa: ANN401 # checked by click
) -> int:
    """Show how a CSV or .xlsx is read (encoding, dialect, header) and its first rows.

    Each cell is shown as its text. Rows that do not fit are reported on stderr, and the exit code is 5.
    """
    from orderbridge.sources.files import ReadOptions

    STOP.listen()
    given = {name: value for name, value in options.items() if value is not None}
    if fill_short:
        given["short_rows"] = "fill"
    read = ReadOptions(**given)
    used = None
    if mapping is not None:
        from orderbridge.pipelines.mapping import load

        loaded = load(mapping)
        read = replace(loaded.read_options, **given)
        used = loaded.used_columns
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    click.get_current_context().call_on_close(lambda: sys.meta_path.remove(finder))
    return preview(file, read, used, rows=rows, target=target, as_json=STOP.style == "json")
