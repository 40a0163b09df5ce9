"""The command `preview`: the detected format of a file, its first rows, and the whole file as clean CSV.

In: a file. Out: on stdout the format and the first rows; on stderr each rejected row with line and reason; with a
target, UTF-8 CSV with CRLF, written completely or not at all.
"""

from __future__ import annotations

import csv
import io
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pipelines.cli.options import json_option
from pipelines.cli.process import STOP, exit_process
from pipelines.cli.terminal import escape
from sources.disk import disk_errors, replace_file, resolve_link
from sources.errors import ExitCode, UsageError

if TYPE_CHECKING:
    import pyarrow as pa

    from sources.files import DetectedFormat, ReadOptions, RejectedRow, Row, SourceTable

MAX_REPORTED: Final = 100
MAX_SHOWN: Final = 40
"""Characters of a cell on a terminal; JSON and CSV have all of them."""
WIDE: Final = 100_000


@dataclass(frozen=True)
class PreviewOptions:
    """Options of `orderbridge preview`.

    Attributes:
        rows: the number of rows to show.
        target: the CSV to write.
        as_json: print JSON for scripts.
        keep_broken: rejected lines are shown and written too, cells split at each delimiter, with their problem. For
            looking at a damaged file; such a CSV is not meant for planning.
    """

    rows: int = 10
    target: Path | None = None
    as_json: bool = False
    keep_broken: bool = False


def preview(path: Path, read: ReadOptions, options: PreviewOptions) -> ExitCode:
    """Prints the format and the first rows; with a target, writes the whole file as CSV.

    All rows are read in any case, so that a rejected row at the end is reported.

    Args:
        path: the file.
        read: what is not to be detected.
        options: what to show and write.

    Raises:
        UsageError: the file cannot be read, or the target cannot be written.
    """
    from sources.files import RejectedRow, Row, open_table
    from sources.files.model import LINE_COLUMN

    table = open_table(path, read)
    shown = _Shown(options)
    width = max((len(row.cells) for row, _ in _marked(table)), default=0) if options.keep_broken else 0
    with _writer(options, path, table, width) as writer:
        if options.keep_broken or LINE_COLUMN in table.columns:
            for row, problem in _marked(table) if options.keep_broken else ((row, "") for row in table.rows()):
                if isinstance(row, RejectedRow):
                    shown.reject(row)
                    continue
                shown.accepted_count += not problem
                shown.add([Row(row.line, (*row.cells, f"← {problem}")) if problem else row])
                if writer is not None:
                    writer.writerow([row.line, problem, *row.cells] if options.keep_broken else row.cells)
        else:
            for batch in table.batches(on_reject=shown.reject):
                shown.accepted_count += batch.num_rows
                head = batch.slice(0, options.rows - len(shown.first))
                shown.add(map(Row, head[LINE_COLUMN].to_pylist(), _cells(head, table.columns)))
                if writer is not None:
                    writer.writerows(_cells(batch, table.columns))
    counts = shown.accepted_count, shown.rejected_count
    if options.as_json:
        import json

        data = _as_json(table.format, shown.first, shown.rejected, *counts)
        sys.stdout.write(json.dumps(data, ensure_ascii=False) + "\n")
    else:
        if shown.rejected_count > MAX_REPORTED and options.target is None:
            sys.stderr.write(f"and {shown.rejected_count - MAX_REPORTED} more; --csv OUT lists all of them\n")
        _show(table.format, shown.first, *counts)
    return ExitCode.REJECTED if shown.rejected_count else ExitCode.DONE


class _Shown:
    """The first rows and the rejected ones; a rejected row is reported at once."""

    def __init__(self, options: PreviewOptions) -> None:
        self._options = options
        self.first: list[Row] = []
        self.rejected: list[RejectedRow] = []
        self.accepted_count = self.rejected_count = 0

    def add(self, rows: Iterable[Row]) -> None:
        self.first += islice(rows, self._options.rows - len(self.first))

    def reject(self, row: RejectedRow) -> None:
        self.rejected_count += 1
        if len(self.rejected) < MAX_REPORTED:
            self.rejected.append(row)
        if not self._options.as_json and (self._options.target is not None or self.rejected_count <= MAX_REPORTED):
            sys.stderr.write(f"line {row.line} rejected: {escape(row.reason)}\n")


def _cells(batch: pa.Table, columns: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    return zip(*(batch[name].to_pylist() for name in columns), strict=True)


def _marked(table: SourceTable) -> Iterator[tuple[Row | RejectedRow, str]]:
    """The rows; after each rejected one its lines, split at each delimiter, with the problem."""
    from sources.files import RejectedRow, Row
    from sources.files.model import UnreadableRest

    try:
        for row in table.rows():
            yield row, ""
            if isinstance(row, RejectedRow):
                lines = [table.split_literally(line) for line in row.raw] or [list(row.cells)]
                for number, cells in enumerate(lines, row.line):
                    yield Row(number, tuple(cells)), row.code
    except UnreadableRest as error:
        yield RejectedRow(error.line, error.line, "quoting", error.message), ""
        for number, cells in table.literal_lines(error.line):
            yield Row(number, tuple(cells)), "quoting"


def _as_json(
    detected: DetectedFormat, first: list[Row], rejected: list[RejectedRow], accepted_count: int, rejected_count: int
) -> dict[str, Any]:
    return {
        "format": asdict(detected),
        "rows": accepted_count,
        "rejected": rejected_count,
        "first": [{"line": row.line, "cells": row.cells} for row in first],
        "first_rejected": [
            {"line": row.line, "last_line": row.last_line, "code": row.code, "reason": row.reason} for row in rejected
        ],
    }


def _show(detected: DetectedFormat, first: list[Row], accepted_count: int, rejected_count: int) -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    out = Console(highlight=False)
    for name, value in _described(detected):
        out.print(f"{name:<12}{escape(value)}", markup=False, soft_wrap=True)
    out.print(f"{'rows':<12}{accepted_count}, and {rejected_count} rejected", markup=False, soft_wrap=True)
    if not first:
        return
    grid = Grid(box=None, pad_edge=False)
    for name in ("line", *detected.columns):
        grid.add_column(_printable(name), no_wrap=True)
    for row in first:
        grid.add_row(str(row.line), *map(_printable, row.cells))
    out.print()
    # the terminal wraps long lines; no column is cut
    Console(highlight=False, width=WIDE).print(grid, soft_wrap=True)


def _printable(cell: str) -> str:
    """A cell for a terminal: control characters and the markup of rich are shown as text."""
    shown = escape(cell[: MAX_SHOWN + 1])
    if len(shown) > MAX_SHOWN:
        shown = shown[: MAX_SHOWN - 1] + "…"
    return shown.replace("[", "\\[")


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


def _lines(lines: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:10]))
    return f"{shown} and {len(lines) - 10} more" if len(lines) > 10 else shown


@contextmanager
def _writer(options: PreviewOptions, source: Path, table: SourceTable, width: int) -> Iterator[Any]:
    """A CSV writer to a temporary file that replaces the target on success."""
    target = options.target
    if target is None:
        yield None
        return
    if target.exists() and (not target.is_file() or target.samefile(source)):
        what = "the input file" if target.is_file() else "a folder" if target.is_dir() else "a device or a pipe"
        raise UsageError(f"--csv is {what}", "Choose another file.")
    target = resolve_link(target)  # replace the target of a link, not the link
    with (
        disk_errors(f"{target.name} cannot be written", "Free space, or choose a file in another folder."),
        replace_file(target) as raw,
        io.TextIOWrapper(raw, "utf-8", newline="") as file,
    ):
        writer = csv.writer(file)
        extra = [f"extra_{number}" for number in range(1, width - len(table.columns) + 1)]
        writer.writerow(["_line", "_problem", *table.columns, *extra] if options.keep_broken else table.columns)
        yield writer


@click.command("preview", epilog="Example: orderbridge preview articulos.csv --csv clean.csv")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--csv", "target", type=click.Path(path_type=Path), metavar="OUT", help="Write the whole table as UTF-8 CSV."
)
@click.option("--rows", type=click.IntRange(min=0), default=10, show_default=True, help="Number of rows to show.")
@click.option("--encoding", help="utf-8, cp1252, utf-16, cp850 …; detected by default, like the options below.")
@click.option("--delimiter", help="A character, or comma, semicolon, tab, pipe, spaces, 'runs of two spaces'.")
@click.option("--quote", help="A character, or double, single, none.")
@click.option("--escape", help="How a quote inside quotes is written: doubled, or backslash.")
@click.option("--header-row", type=click.IntRange(min=0), metavar="N", help="Line of the header; 0 for none.")
@click.option("--header-rows", type=click.IntRange(1, 5), metavar="N", help="Number of lines that the header spans.")
@click.option("--fill-short", is_flag=True, help="Accept rows with too few cells; fill them with empty ones.")
@click.option("--sheet", metavar="NAME", help="Sheet of a workbook: its name, or its number from 1.")
@click.option("--keep-broken", is_flag=True, help="Show and write rejected lines too, marked; to look at, not to plan.")
@json_option
def command(
    file: Path,
    target: Path | None,
    rows: int,
    as_json: bool,
    keep_broken: bool,
    fill_short: bool,
    **options: Any,  # noqa: ANN401 # as click gives them: the other fields of ReadOptions
) -> None:
    """Show how a CSV or .xlsx is read (encoding, dialect, header) and its first rows.

    Each cell is shown as its text. Rows that do not fit are reported on stderr, and the exit code is 5.
    """
    from sources.files import ReadOptions

    STOP.listen()
    read = ReadOptions(**options, short_rows="fill" if fill_short else "reject")
    exit_process(preview(file, read, PreviewOptions(rows, target, as_json, keep_broken)))
