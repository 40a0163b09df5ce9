"""Partitions the inputs of a file into those that are sent, merged, rejected or need nothing.

In: the inputs of a file, a decider, options for requests. Out: `operations.jsonl`, the outcome of each line, counts.
First the file is read, then lines of the same record are compared, then it is decided table by table what is sent.
"""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any, Final, get_args

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports import Inputs, ReadyInputs, RejectedInput
from orderbridge.pipelines.mapping.field_paths import root_of
from orderbridge.pipelines.plan.damaged_texts import hold_damaged
from orderbridge.pipelines.plan.decide import CustomerDecider, Decider
from orderbridge.pipelines.plan.impossible_addresses import FIELD as ADDRESS
from orderbridge.pipelines.plan.impossible_addresses import reject_impossible
from orderbridge.pipelines.plan.model import OPERATIONS_FILE, LineOutcome
from orderbridge.pipelines.plan.outcomes import (
    CONFLICTING_LINES,
    Outcomes,
    first_of,
    join_problems,
    words_of_problem,
)
from orderbridge.pipelines.plan.repeated_codes import RepeatedCodes
from orderbridge.pipelines.plan.requests import RequestWriter
from orderbridge.sources.disk import create_private
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.kinds import KINDS, PASSWORD, InputKind
from orderbridge.sources.words import listed
from orderbridge.transforms.frames import TEXT, Bools, Ints, array, column, from_arrow
from orderbridge.transforms.upserts.decisions import duplicates as find_duplicates
from orderbridge.transforms.upserts.decisions import search_key, sharing

_STEP: Final = re.compile(r"[^.\[\]]+")
_PARAMETER: Final = re.compile(r"\{(\w+)\}")
_MERGED: Final = "merged"
_OUTCOMES: Final = ("send", *(one for one in get_args(LineOutcome) if one != _MERGED))


def partition(
    inputs: Inputs,
    outcomes: Outcomes,
    decider: Decider,
    writer: RequestWriter,
    folder: Path,
    *,
    holds_damaged: bool = False,
    logs_in_by_address: bool = False,
) -> tuple[int, int]:
    """Reads the file, decides, writes the operations, and adds the outcomes of the lines that are not sent.

    With `holds_damaged`, inputs whose texts lost letters are among those that are not sent; with `logs_in_by_address`,
    new customers whose address cannot be one.

    Returns:
        The number of lines of the file, and of those that are sent.

    Raises:
        BridgeError: a line is in no outcome, or in two.
    """
    tables, lines_read = _read(inputs, outcomes)
    duplicates = _Duplicates(inputs, tables)
    repeated = RepeatedCodes(tables) if isinstance(decider, CustomerDecider) else None
    decider.prepare(tables)
    outcome_of_row = np.zeros(len(duplicates.first), np.int8)
    sent: list[pa.Array] = []
    # each decision prepares the platform's list
    before = 0
    together = 8 if KINDS[inputs.kind].is_listed else 4
    with create_private(folder / OPERATIONS_FILE) as out:
        while tables:
            table = pa.concat_tables(tables[:together])
            del tables[:together]  # their memory is free for what they become
            rows = np.arange(before, before + table.num_rows)
            before += table.num_rows
            duplicates.reject(rows, table["lines"], outcomes)
            is_decided = ~duplicates.is_conflicting[rows] & (duplicates.first[rows] == rows)
            first_rows = table.filter(pa.array(is_decided))
            decision = decider.decide(first_rows)
            if logs_in_by_address:
                column = _columns_by_path(inputs).get(ADDRESS, ADDRESS)
                decision = reject_impossible(decision, column)
            if holds_damaged:
                decision = hold_damaged(decision, _columns_by_path(inputs))
            if repeated is not None:
                decision = repeated.hold(first_rows, decision)
            outcome_of_row[rows[is_decided]] = pc.index_in(
                decision.outcome, value_set=pa.array(_OUTCOMES)
            ).to_numpy()
            is_sent = pc.equal(decision.outcome, "send")
            to_send = decision.table.filter(is_sent)
            decider.suspicious.add(to_send)
            out.write(writer.write(to_send))
            sent.append(pc.list_flatten(to_send["lines"].combine_chunks()))
            columns = {"outcome": decision.outcome, **decision.more}
            unsent = {name: column.filter(pc.invert(is_sent)) for name, column in columns.items()}
            lines = first_rows["lines"].combine_chunks().filter(pc.invert(is_sent))
            outcomes.add_table(lines, unsent, decision.evidence)
            duplicates.merge(rows, table["lines"], outcome_of_row, outcomes)
            decider.suspicious.add_merged(table.filter(pa.array(duplicates.are_merged(rows))))
    if isinstance(decider, CustomerDecider) and repeated is not None:
        decider.held_lines |= repeated.lines
    lines = pa.concat_arrays([*sent, outcomes.table()["line"].combine_chunks()])
    if not lines_read == len(lines) == len(pc.unique(lines)):
        raise BridgeError(f"{lines_read} lines were read, but {len(lines)} have an outcome")
    return lines_read, sum(map(len, sent))


def _read(inputs: Inputs, outcomes: Outcomes) -> tuple[list[pa.Table], int]:
    """The valid inputs in the order of the file; the outcomes of the others are added.

    Returns:
        Tables with `lines`, `path`, and a column for each field, null if not given (`ReadyInputs`); the number of rows
        of the file.
    """
    kind = KINDS[inputs.kind]
    pieces = _PARAMETER.split(kind.operation.path)
    tables: list[pa.Table] = []
    lines = 0
    for item in inputs:
        if isinstance(item, ReadyInputs):
            columns = dict(item.columns)
            parts = [columns.pop(part) if at % 2 else part for at, part in enumerate(pieces)]
            path = pc.binary_join_element_wise(*parts, pa.array([""] * len(item.lines)), "")
            if not kind.is_update:  # what no column fills is compared, and may be added
                none = pa.nulls(len(item.lines), TEXT)
                columns = {
                    field.name: columns.get(field.name, none) for field in kind.record.fields
                }
            tables.append(pa.table({"lines": item.lines, "path": path, **columns}))
            lines += len(item.lines.flatten())
            continue
        lines += len(item.lines)
        if isinstance(item, RejectedInput):
            problems = [
                (p.field, p.code, words_of_problem(p.column, p.cell, p.words))
                for p in item.problems
            ]
            field, code, words = (join_problems(parts) for parts in zip(*problems, strict=True))
            outcomes.add(item.lines, "rejected", field=field, code=code, words=words)
        else:
            outcomes.add(item.lines, "skipped", words=item.reason)
    return tables, lines


def _keys(kind: InputKind, table: pa.Table) -> dict[str, pa.Array]:
    """The keys by which inputs of one file are compared: normalized texts, a column per key, null without one."""
    if kind.is_listed:
        return {
            name: array(search_key(name, column(table[name].combine_chunks())))
            for name in kind.list_keys
        }
    path = table["path"].combine_chunks()
    if not kind.unique_fields:
        return {", ".join(field.name for field in kind.operation.params): path}
    columns = {}
    is_open = pa.array(np.ones(len(path), np.bool_))
    for name in kind.unique_fields:
        text = table[name].combine_chunks()
        key = pc.binary_join_element_wise(path, text, "\0")
        columns[name] = pc.if_else(is_open, key, pa.scalar(None, TEXT))
        is_open = pc.and_(is_open, pc.is_null(text))
    return columns


class _Duplicates:
    """Inputs of one file that are about the same record.

    Attributes:
        is_conflicting: whether another input has one of its keys and other values.
        first: position of the first input with the same values; mostly its own.
        line: first line of each input.
    """

    def __init__(self, inputs: Inputs, tables: list[pa.Table]) -> None:
        self.line = np.concatenate(
            [np.empty(0, np.int64), *(first_of(table["lines"]) for table in tables)]
        )
        self.first = np.arange(len(self.line))
        self.is_conflicting = np.zeros(len(self.line), np.bool_)
        self._why: dict[int, tuple[str, str]] = {}
        if not tables:
            return
        keys = pa.concat_tables([pa.table(_keys(KINDS[inputs.kind], table)) for table in tables])
        frame = from_arrow(keys.combine_chunks())
        rows = np.flatnonzero(sharing(frame))
        if not len(rows):
            return
        digests = from_arrow(pa.table({"digest": pa.array(_digests(inputs, tables, rows), TEXT)}))[
            "digest"
        ]
        found = find_duplicates(frame.iloc[rows].reset_index(drop=True), digests)
        self.first[rows] = rows[found["first"].to_numpy(np.int64)]
        conflicts = np.flatnonzero((found["decision"] == "conflicting").to_numpy(np.bool_))
        self.is_conflicting[rows[conflicts]] = True
        others = rows[found["other"].iloc[conflicts].to_numpy(np.int64)]
        one, other = (
            pa.concat_tables(tables).take(pa.array(at)).to_pylist()
            for at in (rows[conflicts], others)
        )
        pairs = (
            rows[conflicts].tolist(),
            found["key"].iloc[conflicts],
            self.line[others].tolist(),
            one,
            other,
        )
        for at, key, line, *both in zip(*pairs, strict=True):
            self._why[at] = key, f"line {line} has the same {_in_file(inputs, key, *both)}"

    def reject(self, rows: Ints, lines: pa.ChunkedArray, outcomes: Outcomes) -> None:
        """Adds the outcome of the conflicting ones of these inputs."""
        for at in np.flatnonzero(self.is_conflicting[rows]).tolist():
            key, words = self._why[int(rows[at])]
            outcomes.add(
                lines[at].as_py(), "rejected", field=key, code=CONFLICTING_LINES, words=words
            )

    def are_merged(self, rows: Ints) -> Bools:
        """Which of these inputs equal an earlier one."""
        return ~self.is_conflicting[rows] & (self.first[rows] < rows)

    def merge(
        self, rows: Ints, lines: pa.ChunkedArray, decided: npt.NDArray[np.int8], outcomes: Outcomes
    ) -> None:
        """Adds the outcome of those of these inputs that equal an earlier one."""
        where = np.flatnonzero(self.are_merged(rows))
        if not len(where):
            return
        first = self.first[rows[where]]
        names = pa.array((_MERGED, *_OUTCOMES[1:])).take(pa.array(decided[first]))
        same_as = pa.array(self.line[first])
        outcomes.add_table(
            lines.take(pa.array(where)).combine_chunks(), {"outcome": names, "same_as": same_as}
        )


def _columns_by_path(inputs: Inputs) -> dict[str, str]:
    """The column of the file that fills each field."""
    mapped = inputs.mapping.columns.items()
    return {path: name for name, column in mapped for path in column.paths}


def _in_file(inputs: Inputs, key: str, one: dict[str, Any], other: dict[str, Any]) -> str:
    """The columns of a key, and those in which two inputs that share it differ; of what no column fills, the field."""
    columns = _columns_by_path(inputs)
    fields = {"lines", "path", *map(root_of, columns)}
    keys = key.split(", ")
    paths = [*columns, *(name for name in one if name not in fields)]
    differing = [
        path for path in paths if path not in keys and _value(one, path) != _value(other, path)
    ]
    differing = (
        differing
        or [name for name in one if name != "lines" and one[name] != other[name]]
        or [PASSWORD]
    )
    names = listed(list(dict.fromkeys(columns.get(path, path) for path in differing)))
    return f"{', '.join(columns.get(path, path) for path in keys)}, but another {names}"


def _value(row: dict[str, Any], path: str) -> Any:  # noqa: ANN401 # JSON
    """A value of an input; of `documents[0].number` or `attributes.Color`, that of the item."""
    name, *steps = _STEP.findall(path)
    value = row.get(name)
    if steps and "+" not in steps and value is not None:
        value = json.loads(value)
        for step in steps:
            if isinstance(value, list):
                named = {item.get("name"): item for item in value if isinstance(item, dict)}
                value = {str(at): item for at, item in enumerate(value)} | named
            value = value.get(step) if isinstance(value, dict) else None
    return value


def _digests(inputs: Inputs, tables: list[pa.Table], rows: Ints) -> list[str]:
    """A digest of the values of these inputs including passwords; kept in memory only."""
    chosen = pa.concat_tables(tables).take(pa.array(rows))
    lines_of_rows = set(pc.list_flatten(chosen["lines"]).to_pylist())
    secrets = inputs.passwords(lines_of_rows) if inputs.password_column is not None else {}
    digests = []
    columns: list[Any] = [chosen[name].to_pylist() for name in chosen.column_names]
    for lines, *texts in zip(*columns, strict=True):
        values = [*texts, *sorted({secrets[line] for line in lines if line in secrets})]
        digests.append(hashlib.blake2b(repr(values).encode(), digest_size=16).hexdigest())
    return digests
