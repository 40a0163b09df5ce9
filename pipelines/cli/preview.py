"""The command `preview`: the detected format of a file, its first rows, and the whole file as clean CSV.

In: a file. Out: on stdout the format and the first rows; on stderr each rejected row with line and reason; with a
target, UTF-8 CSV with CRLF, written completely or not at all.
"""

from __future__ import annotations

import csv
import io
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
    from orderbridge.sources.files import CellRules, Row, Unclear, open_table
    from orderbridge.sources.files.formulas import csv_lines
    from orderbridge.sources.files.model import LINE_COLUMN

    try:
        table = open_table(path, read)
    except Unclear as error:
        if not as_json:
            _print_readings(path, read, error)
        raise
    if read.sheet is not None and table.format.kind == "text":
        raise UsageError(f"{path.name} is a text file, which has no sheets", "Leave out --sheet.")
    if used is not None:
        table = table.with_cell_rules({name: CellRules() for name in table.columns if name in used})
    first: list[Row] = []
    rejected: list[RejectedRow] = []
    accepted_count = rejected_count = 0

    def reject(row: RejectedRow) -> None:
        nonlocal rejected_count
        if row.code == "totals" and read.totals == "skip":
            return
        rejected_count += 1
        if rejected_count <= MAX_REPORTED:
            rejected.append(row)
        if not as_json and (target is not None or rejected_count <= MAX_REPORTED):
            sys.stderr.write(f"line {row.line} rejected: {escape(row.reason)}\n")

    with _target(target, path, table) as file:
        for batch in table.batches(on_reject=reject):
            accepted_count += batch.num_rows
            head = batch.slice(0, rows - len(first))
            cells = zip(*(head[name].to_pylist() for name in table.columns), strict=True)
            first += map(Row, head[LINE_COLUMN].to_pylist(), cells)
            if file is not None:
                file.write(csv_lines([batch[name] for name in table.columns]))
    if rejected_count > MAX_REPORTED and target is None and not as_json:
        sys.stderr.write(f"and {rejected_count - MAX_REPORTED} more; --csv OUT lists all of them\n")
    counts = (
        "rows",
        f"{accepted_count}, and {rejected_count} rejected; import checks their values",
    )
    lines = [f"{name:<12}{value}" for name, value in (*_described(table.format), counts)]
    record = {
        "format": asdict(table.format),
        "rows": accepted_count,
        "rejected": rejected_count,
        "first": [{"line": row.line, "cells": row.cells} for row in _masked(table.columns, first)],
        "first_rejected": [
            {name: getattr(row, name) for name in ("line", "last_line", "code", "reason")}
            for row in rejected
        ],
    }
    print_result("preview", lines, record, "json" if as_json else "plain")
    if first and not as_json:
        print_lines("", *_row_lines(table.columns, first))
    return ExitCode.REJECTED if rejected_count else ExitCode.DONE


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
    from orderbridge.sources.files.model import DELIMITER_NAMES

    if detected.kind == "workbook":
        yield "sheet", f"{detected.sheet} (of {', '.join(detected.sheets)})"
    else:
        note = (
            " (assumed)"
            if detected.is_encoding_assumed
            else ", byte order mark"
            if detected.has_bom
            else ""
        )
        signs = ", control characters read as signs of cp1252" if detected.has_signs else ""
        yield "encoding", f"{detected.encoding}{note}{signs}"
        padding = ", beside white space" if detected.is_padded else ""
        yield (
            "delimiter",
            f"{DELIMITER_NAMES.get(detected.delimiter or '', repr(detected.delimiter))}{padding}",
        )
        escape = f"escaped by {detected.escape}" if detected.escape else "doubled in cells"
        yield "quote", f"{detected.quote or 'none'}, {escape}"
        open_end = ", none after the last line" if detected.may_be_cut_off else ""
        yield "line ends", f"{', '.join(detected.line_ends) or 'none'}{open_end}"
    yield (
        "header",
        f"line {detected.header_lines[0]}"
        if detected.header_lines
        else f"none: the names {detected.columns[0]} and so on are not in the file",
    )
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
        raise UsageError(f"--csv is {what}", "Choose another file.")
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
    read, used = ReadOptions(**given), None
    if mapping is not None:
        from orderbridge.pipelines.mapping import load

        loaded = load(mapping)
        read, used = replace(loaded.read_options, **given), loaded.used_columns
    finder = _WithoutPandas()
    sys.meta_path.insert(0, finder)
    click.get_current_context().call_on_close(lambda: sys.meta_path.remove(finder))
    return preview(file, read, used, rows=rows, target=target, as_json=STOP.style == "json")
