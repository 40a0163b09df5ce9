"""The command `preview`: what the intake found in a file, its first rows, and the whole as clean CSV.

In: a file. Out: on stdout what was found, and values of its first rows, as asked for; on stderr each refused row by
line and reason; with a target, UTF-8 CSV with CRLF, which appears whole or not at all.
"""

from __future__ import annotations

import csv
import io
import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from pipelines.cli.options import json_option
from pipelines.cli.process import STOP, exit_process
from pipelines.cli.terminal import escape
from sources.disk import disk_errors, replace_file
from sources.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from sources.files import DetectedFormat, ReadOptions, RejectedRow, Row, SourceTable

MAX_TOLD: Final = 100
MAX_SHOWN: Final = 40
"""Characters of a cell on a terminal; JSON and CSV hold it whole."""
WIDE: Final = 100_000
_NONE: Final = {"none": "", "double": "", "doubled": ""}
_QUOTES: Final = {"single": "'"} | _NONE | {"double": '"'}


def told(
    encoding: str | None,
    delimiter: str | None,
    quote: str | None,
    escape: str | None,
    header_row: int | None,
    header_rows: int | None,
    fill_short: bool,
    sheet: str | None,
) -> ReadOptions:
    """What was said on the command line: characters, or words for those that a shell makes hard to type."""
    from sources.files import ReadOptions
    from sources.files.dialect import NAMES

    delimiters = {name: mark for mark, name in NAMES.items()} | {"\\t": "\t"}
    return ReadOptions(
        encoding,
        delimiters.get(delimiter, delimiter) if delimiter is not None else None,
        _QUOTES.get(quote, quote) if quote is not None else None,
        {**_NONE, "backslash": "\\"}.get(escape, escape) if escape is not None else None,
        header_row,
        header_rows,
        "fill" if fill_short else "refuse",
        sheet,
    )


def preview(path: Path, said: ReadOptions, rows: int, target: Path | None, as_json: bool) -> int:
    """Prints what was found and the first rows; writes the whole where a target is named.

    Without one, the other rows are read and counted all the same, so that a refused one at the end is told.

    Args:
        path: the file.
        said: what need not be found.
        rows: how many to show.
        target: of the clean CSV.
        as_json: for machines.

    Returns:
        5 where a row was refused, else 0.

    Raises:
        UsageError: the file cannot be read, or the target not be written.
    """
    from sources.files import RejectedRow, open_table

    table = open_table(path, said)
    first: list[Row] = []
    refused: list[RejectedRow] = []
    good = bad = 0
    with _written(target, path, table) as write:
        for row in table.rows():
            if isinstance(row, RejectedRow):
                bad += 1
                if len(refused) < MAX_TOLD:
                    refused.append(row)
                if not as_json and (target is not None or bad <= MAX_TOLD):
                    sys.stderr.write(f"line {row.line} refused: {escape(row.reason)}\n")
                continue
            good += 1
            if len(first) < rows:
                first.append(row)
            if write is not None:
                write.writerow(row.cells)
    if as_json:
        sys.stdout.write(json.dumps(_facts(table.found, first, refused, good, bad), ensure_ascii=False) + "\n")
    else:
        if bad > MAX_TOLD and target is None:
            sys.stderr.write(f"and {bad - MAX_TOLD} more; --csv OUT tells all\n")
        _show(table.found, first, good, bad)
    return ExitCode.REJECTED if bad else 0


def _facts(found: DetectedFormat, first: list[Row], refused: list[RejectedRow], good: int, bad: int) -> dict[str, Any]:
    return {
        "found": asdict(found),
        "rows": good,
        "refused": bad,
        "first": [{"line": row.line, "cells": row.cells} for row in first],
        "first_refused": [
            {"line": row.line, "last_line": row.last_line, "code": row.code, "reason": row.reason} for row in refused
        ],
    }


def _show(found: DetectedFormat, first: list[Row], good: int, bad: int) -> None:
    from rich.console import Console
    from rich.table import Table as Grid

    out = Console(highlight=False)
    for name, words in _words(found):
        out.print(f"{name:<12}{escape(words)}", markup=False, soft_wrap=True)
    out.print(f"{'rows':<12}{good}, and {bad} refused", markup=False, soft_wrap=True)
    if not first:
        return
    grid = Grid(box=None, pad_edge=False)
    for name in ("line", *found.columns):
        grid.add_column(_plain(name), no_wrap=True)
    for row in first:
        grid.add_row(str(row.line), *map(_plain, row.cells))
    out.print()
    # a terminal wraps what is wider than it is; no column is squeezed away
    Console(highlight=False, width=WIDE).print(grid, soft_wrap=True)


def _plain(cell: str) -> str:
    """A cell for a terminal: its controls, which could steer it, and rich's marks are shown as text."""
    shown = escape(cell[: MAX_SHOWN + 1])
    if len(shown) > MAX_SHOWN:
        shown = shown[: MAX_SHOWN - 1] + "…"
    return shown.replace("[", "\\[")


def _words(found: DetectedFormat) -> Iterator[tuple[str, str]]:
    from sources.files.dialect import NAMES

    if found.kind == "workbook":
        yield "sheet", f"{found.sheet} (of {', '.join(found.sheets)})"
    else:
        yield "encoding", f"{found.encoding}{', byte order mark' if found.has_bom else ''}"
        yield "delimiter", NAMES.get(found.delimiter or "", repr(found.delimiter))
        yield (
            "quote",
            f"{found.quote or 'none'}, {'escaped by ' + found.escape if found.escape else 'doubled in cells'}",
        )
        yield "line ends", ", ".join(found.line_ends) or "none"
    yield "header", f"line {_lines(found.header_lines)}" if found.header_lines else "none, columns are numbered"
    if found.preamble:
        yield "preamble", f"line {_lines(found.preamble)}"
    if found.footnotes:
        yield "footnotes", f"line {_lines(found.footnotes)}"
    yield "columns", f"{len(found.columns)}: {', '.join(found.columns)}"
    if found.renamed:
        yield "numbered", f"{', '.join(found.renamed)} (the name was empty or taken)"
    if found.dropped_columns:
        yield "left out", f"{found.dropped_columns} at the end, without name and cells"


def _lines(lines: tuple[int, ...]) -> str:
    shown = ", ".join(map(str, lines[:10]))
    return f"{shown} and {len(lines) - 10} more" if len(lines) > 10 else shown


@contextmanager
def _written(target: Path | None, source: Path, table: SourceTable) -> Iterator[Any]:
    """A writer of CSV into a file that takes the target's place when all went well."""
    if target is None:
        yield None
        return
    if target.exists() and (not target.is_file() or target.samefile(source)):
        what = "the file itself" if target.is_file() else "a folder" if target.is_dir() else "a device or a pipe"
        raise UsageError(f"--csv names {what}", "Name another file.")
    target = target.resolve()  # what a link names is replaced, and not the link
    with (
        disk_errors(f"{target.name} cannot be written", "Free space, or name a file in another folder."),
        replace_file(target) as raw,
        io.TextIOWrapper(raw, "utf-8", newline="") as file,
    ):
        write = csv.writer(file)
        write.writerow(table.columns)
        yield write


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
@json_option
def command(file: Path, target: Path | None, rows: int, as_json: bool, **options: object) -> None:
    """Show how a CSV or .xlsx is read (encoding, dialect, header) and its first rows.

    Each cell is shown as its text. Rows that do not fit are reported on stderr, and the exit code is 5.
    """
    STOP.listen()
    exit_process(preview(file, told(**options), rows, target, as_json))  # type: ignore[arg-type] # checked by click
