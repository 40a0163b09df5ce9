"""Inputs on disk between the reading of the file and the decisions: Arrow tables, a column of JSON text per field.

In: `ReadyInputs`. Out: the same in tables, which can be read any number of times.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Final, Self

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports import ReadyInputs
from sources.disk import create_private
from sources.kinds import KINDS, InputKind, KindName
from transforms.frames import TEXT, array, column
from transforms.upserts.decisions import search_key

SPOOL_ROWS: Final = 131_072
_PARAMETER: Final = re.compile(r"\{(\w+)\}")


class InputSpool:
    """Inputs of one kind, written and then read. A context manager.

    Attributes:
        rows: number of inputs.
        fields: of the body, in the order of the contract.
    """

    def __init__(self, file: Path, kind: KindName) -> None:
        self.kind = kind
        self.rows = 0
        self.fields = tuple(field.name for field in KINDS[kind].record.fields)
        self._file = file
        self._out: IO[bytes] | None = create_private(file)
        self._schema = pa.schema(
            {"lines": pa.list_(pa.int64()), "path": pa.string(), **dict.fromkeys(self.fields, pa.string())}
        )
        self._writer = pa.ipc.new_file(self._out, self._schema)
        self._path = _PARAMETER.split(KINDS[kind].operation.path)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._out is not None:
            self._out.close()
        self._file.unlink(missing_ok=True)

    def add(self, ready: ReadyInputs) -> None:
        """Adds inputs."""
        columns, none = ready.columns, pa.nulls(len(ready.lines), TEXT)
        parts = [columns[part] if at % 2 else part for at, part in enumerate(self._path)]
        path = pc.binary_join_element_wise(*parts, none.fill_null(""), "")
        arrays = [ready.lines, path, *(columns.get(name, none) for name in self.fields)]
        self._writer.write_batch(pa.record_batch(arrays, schema=self._schema))
        self.rows += len(ready.lines)

    def finish(self) -> None:
        """Ends the writing; from now on the inputs can be read."""
        self._writer.close()
        if self._out is not None:
            self._out.close()
            self._out = None

    def batches(self) -> Iterator[pa.Table]:
        """The inputs in order: `lines`, `path`, and the JSON text of each field, null if not given."""
        with pa.memory_map(str(self._file)) as file, pa.ipc.open_file(file) as reader:
            pending: list[pa.RecordBatch] = []
            for at in range(reader.num_record_batches):
                pending.append(reader.get_batch(at))
                if sum(batch.num_rows for batch in pending) >= SPOOL_ROWS or at + 1 == reader.num_record_batches:
                    yield pa.Table.from_batches(pending)
                    pending = []


def key_columns(kind: InputKind, table: pa.Table) -> dict[str, pa.Array]:
    """The keys by which inputs of one file are compared: normalized texts, a column per key, null without one."""
    if kind.is_listed:
        return {name: array(search_key(name, column(decode_texts(table[name])))) for name in kind.list_keys}
    path = table["path"].combine_chunks()
    if not kind.unique_fields:
        return {", ".join(field.name for field in kind.operation.params): path}
    columns = {}
    is_open = pa.array(np.ones(len(path), np.bool_))
    for name in kind.unique_fields:
        text = table[name].combine_chunks()
        key = pc.binary_join_element_wise(path, text, "\0")
        columns[name] = pc.if_else(is_open, key, pa.scalar(None, pa.string()))
        is_open = pc.and_(is_open, pc.is_null(text))
    return columns


def decode_texts(column: pa.ChunkedArray) -> pa.Array:
    """The texts in a column of JSON strings; null stays null."""
    texts = column.combine_chunks()
    texts = pc.if_else(pc.equal(texts, "null"), pa.scalar(None, pa.string()), texts)
    inner = pc.utf8_slice_codeunits(texts, 1, -1)
    is_escaped = pc.fill_null(pc.match_substring(texts, "\\"), False)
    if not pc.any(is_escaped).as_py():
        return inner
    decoded = [msgspec.json.decode(text) for text in texts.filter(is_escaped).to_pylist()]
    return pc.replace_with_mask(inner, is_escaped, pa.array(decoded, pa.string()))
