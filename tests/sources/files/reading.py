"""A file from its text, and all that is read from it: by both readers, in blocks of any size."""

from __future__ import annotations

from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import (
    ReadOptions,
    RejectedRow,
    Row,
    SourceTable,
    encoding,
    open_table,
)
from orderbridge.sources.files.arrow_blocks import ArrowBlocks


def table(folder: Path, data: bytes | str, options: ReadOptions | None = None) -> SourceTable:
    path = folder / "in.csv"
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return open_table(path, options)


def exact_rows(opened: SourceTable) -> list[Row | RejectedRow]:
    """The rows as the exact reader has them, without Arrow."""
    with mock.patch.object(ArrowBlocks, "read", return_value=None):
        return list(opened.rows())


def rows_of(opened: SourceTable) -> tuple[list[Row], list[RejectedRow]]:
    """Rows, and rejected rows; the same by the exact reader and in batches."""
    found = exact_rows(opened)
    rows = [row for row in found if isinstance(row, Row)]
    rejects: list[RejectedRow] = []
    batches = [part.to_pylist() for part in opened.batches(3, rejects.append)]
    assert [tuple(row.values()) for part in batches for row in part] == [
        (*row.cells, row.line) for row in rows
    ]
    assert rejects == [row for row in found if isinstance(row, RejectedRow)]
    lines = [row.line for row in opened.rows()]
    assert lines == sorted(lines)
    return rows, rejects


def cells(opened: SourceTable) -> list[tuple[str, ...]]:
    rows, rejects = rows_of(opened)
    assert not rejects, rejects
    return [row.cells for row in rows]


def error_of(folder: Path, data: bytes | str, options: ReadOptions | None = None) -> str:
    with pytest.raises(UsageError) as error:
        list(table(folder, data, options).batches(on_reject=lambda _: None))
    with pytest.raises(UsageError) as exact:
        exact_rows(table(folder, data, options))
    assert str(exact.value) == str(error.value)
    return str(error.value)


def described(opened: SourceTable) -> dict[str, Any]:
    """What is read: `columns`, `cells`, lines of `header`, `preamble`, `footnotes` and `rows`, `rejected` and why."""
    rows, rejects = rows_of(opened)
    lines = ((row, f"-{row.last_line}" if row.last_line != row.line else "") for row in rejects)
    return {
        "columns": ",".join(opened.columns),
        "header": opened.format.header_lines,
        "preamble": opened.format.preamble,
        "footnotes": opened.format.footnotes,
        "rows": [row.line for row in rows],
        "rejected": ", ".join(f"{row.line}{until} {row.code}" for row, until in lines),
        "cells": [row.cells for row in rows],
    }


def check(
    folder: Path, data: bytes | str, options: ReadOptions | None = None, **expected: Any
) -> None:
    """Compares what is read with what is expected, or the `error` with its parts, whatever the size of the blocks."""
    for size in (encoding.CHUNK_BYTES, 150):
        with mock.patch.object(encoding, "CHUNK_BYTES", size):
            if "error" in expected:
                message = error_of(folder, data, options)
                assert all(part in message for part in expected["error"].split(" … ")), message
            else:
                found = described(table(folder, data, options))
                assert {name: found[name] for name in expected} == expected, found
