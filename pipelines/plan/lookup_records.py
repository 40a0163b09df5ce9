"""What the lookups of a mapping led to in the last import: a code that leads to another record since is pointed out.

In: the opened lookups of an input, and what was kept. Out: the lines whose code has moved; a private file of the
project with hashes of codes and records, which an import writes once its plan was agreed to.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import msgspec
import pyarrow as pa

from orderbridge.pipelines.imports import Inputs
from orderbridge.sources.disk import disk_errors, write_private
from orderbridge.sources.settings import warehouse_path

FILE: Final = ".lookup-records.json"
_Records = dict[str, dict[str, str]]
"""Of each lookup file, by its path: the hash of the record, by that of the code."""


def moved_lines(inputs: Inputs) -> Iterator[tuple[str, pa.Array]]:
    """For each lookup with codes that have moved: the columns of the code, and the lines with one of these."""
    kept = _kept() if inputs.lookups else {}
    for table in inputs.lookups:
        before = kept.get(os.path.realpath(table.lookup.path), {})
        if keys := table.moved_keys(before):
            yield ", ".join(table.lookup.match), inputs.lines_with(table, keys)


def keep_records(inputs: Inputs) -> None:
    """Keeps what the lookups lead to, for the next import. Raises UsageError."""
    if not inputs.lookups:
        return
    own = {os.path.realpath(table.lookup.path): table.records() for table in inputs.lookups}
    path = _path()
    with disk_errors(path.parent, "Free space; what was sent stays sent."):
        write_private(path, msgspec.json.encode(_kept() | own))


def _path() -> Path:
    return warehouse_path().parent / FILE


def _kept() -> _Records:
    """What was kept; nothing if there is no such file, or it was damaged: it only adds a remark."""
    try:
        return msgspec.json.decode(_path().read_bytes(), type=_Records)
    except (OSError, msgspec.DecodeError):
        return {}
