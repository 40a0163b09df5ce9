"""Partitions the inputs of a file into those that are sent, merged, rejected or need nothing.

In: the inputs of a file, a decider, options for requests. Out: `operations.jsonl`, the outcome of each line, counts.
First the file is read, then lines of the same record are compared, then it is decided table by table what is sent.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports import Inputs, ReadyInputs, RejectedInput
from pipelines.plan.decide import Decider
from pipelines.plan.model import OPERATIONS_FILE
from pipelines.plan.outcomes import CONFLICTING_LINES, Outcomes, first_of, join_problems
from pipelines.plan.requests import PlanCounts, RequestOptions, requests
from pipelines.plan.spool import InputSpool, key_columns
from pipelines.plan.suspicious import SuspiciousValues
from sources.disk import create_private
from sources.errors import BridgeError
from sources.kinds import KINDS
from transforms.frames import TEXT, Bools, Ints, from_arrow
from transforms.upserts.decisions import duplicates as find_duplicates
from transforms.upserts.decisions import sharing

_OUTCOMES: Final = ("send", "unchanged", "exists_same", "exists_differs", "ambiguous", "rejected", "skipped")


def partition(
    inputs: Inputs, spool: InputSpool, outcomes: Outcomes, decider: Decider, options: RequestOptions, folder: Path
) -> PlanCounts:
    """Reads the file, decides, writes the operations, and adds the outcomes of the lines that are not sent.

    Raises:
        BridgeError: a line is in no outcome, or in two.
    """
    counts = PlanCounts(lines=_spool(inputs, spool, outcomes))
    duplicates = _Duplicates(inputs, spool)
    suspicious = SuspiciousValues(options.increments, is_sheet=inputs.files[0].suffix.casefold() == ".xlsx")
    outcome_of_row = np.zeros(spool.rows, np.int8)
    sent: list[pa.Array] = []
    before = 0
    with create_private(folder / OPERATIONS_FILE) as out:
        for table in spool.batches():
            rows = np.arange(before, before + table.num_rows)
            before += table.num_rows
            duplicates.reject(rows, table["lines"], outcomes)
            is_decided = ~duplicates.is_conflicting[rows] & (duplicates.first[rows] == rows)
            first_rows = table.filter(pa.array(is_decided))
            decision = decider.decide(first_rows)
            outcome_of_row[rows[is_decided]] = pc.index_in(decision.outcome, value_set=pa.array(_OUTCOMES)).to_numpy()
            is_sent = pc.equal(decision.outcome, "send")
            to_send = decision.table.filter(is_sent)
            suspicious.add(to_send)
            out.write(requests(to_send, spool.kind, options, counts))
            sent.append(pc.list_flatten(to_send["lines"].combine_chunks()))
            is_unsent, is_rejected = pc.invert(is_sent), pc.equal(decision.outcome, "rejected")
            columns = {"outcome": decision.outcome, "evidence": pc.if_else(is_unsent, decision.evidence, "")}
            columns |= {name: pc.if_else(is_rejected, getattr(decision, name), "") for name in ("code", "words")}
            columns |= {"id": decision.id} if decision.id is not None else {}
            unsent = {name: column.filter(is_unsent) for name, column in columns.items()}
            outcomes.add_table(first_rows["lines"].combine_chunks().filter(is_unsent), unsent)
            duplicates.merge(rows, table["lines"], outcome_of_row, outcomes)
            suspicious.add_merged(table.filter(pa.array(duplicates.are_merged(rows))))
    counts.sent = sum(map(len, sent))
    counts.suspicious = suspicious.reasons()
    lines = pa.concat_arrays([*sent, outcomes.table()["line"].combine_chunks()])
    if not counts.lines == len(lines) == len(pc.unique(lines)):
        raise BridgeError(f"{counts.lines} lines were read, but {len(lines)} have an outcome")
    return counts


def _spool(inputs: Inputs, spool: InputSpool, outcomes: Outcomes) -> int:
    """Spools the valid inputs and adds the outcomes of the others. Returns the number of rows of the file."""
    lines = 0
    for item in inputs:
        if isinstance(item, ReadyInputs):
            lines += len(item.lines.flatten())
            spool.add(item)
            continue
        lines += len(item.lines)
        if isinstance(item, RejectedInput):
            problems = [(p.field, p.code, f"{p.column}: {p.words}" if p.column else p.words) for p in item.problems]
            field, code, words = (join_problems(parts) for parts in zip(*problems, strict=True))
            outcomes.add(item.lines, "rejected", field=field, code=code, words=words)
        else:
            outcomes.add(item.lines, "skipped", words=item.reason)
    spool.finish()
    return lines


class _Duplicates:
    """Inputs of one file that are about the same record.

    Attributes:
        is_conflicting: whether another input has one of its keys and other values.
        first: position of the first input with the same values; mostly its own.
        line: first line of each input.
    """

    def __init__(self, inputs: Inputs, spool: InputSpool) -> None:
        keys: dict[str, list[pa.Array]] = {}
        lines = [np.empty(0, np.int64)]
        for table in spool.batches():
            lines.append(first_of(table["lines"].combine_chunks()))
            for name, texts in key_columns(KINDS[spool.kind], table).items():
                keys.setdefault(name, []).append(texts)
        self.line = np.concatenate(lines)
        self.first = np.arange(spool.rows)
        self.is_conflicting = np.zeros(spool.rows, np.bool_)
        self._why: dict[int, tuple[str, int]] = {}
        if not spool.rows:
            return
        frame = from_arrow(pa.table({name: pa.chunked_array(parts) for name, parts in keys.items()}).combine_chunks())
        rows = np.flatnonzero(sharing(frame))
        if not len(rows):
            return
        digests = from_arrow(pa.table({"digest": pa.array(_digests(inputs, spool, rows), TEXT)}))["digest"]
        found = find_duplicates(frame.iloc[rows].reset_index(drop=True), digests)
        self.first[rows] = rows[found["first"].to_numpy(np.int64)]
        conflicts = np.flatnonzero((found["decision"] == "conflicting").to_numpy(np.bool_))
        self.is_conflicting[rows[conflicts]] = True
        for at, key, other in zip(
            rows[conflicts].tolist(), found["key"].iloc[conflicts], found["other"].iloc[conflicts], strict=True
        ):
            self._why[at] = (key, int(self.line[rows[other]]))

    def reject(self, rows: Ints, lines: pa.ChunkedArray, outcomes: Outcomes) -> None:
        """Adds the outcome of the conflicting ones of these inputs."""
        for at in np.flatnonzero(self.is_conflicting[rows]).tolist():
            key, other = self._why[int(rows[at])]
            words = f"line {other} has the same {key} and other values"
            outcomes.add(lines[at].as_py(), "rejected", field=key, code=CONFLICTING_LINES, words=words)

    def are_merged(self, rows: Ints) -> Bools:
        """Which of these inputs equal an earlier one."""
        return ~self.is_conflicting[rows] & (self.first[rows] < rows)

    def merge(self, rows: Ints, lines: pa.ChunkedArray, decided: npt.NDArray[np.int8], outcomes: Outcomes) -> None:
        """Adds the outcome of those of these inputs that equal an earlier one."""
        where = np.flatnonzero(self.are_merged(rows))
        if not len(where):
            return
        first = self.first[rows[where]]
        names = pa.array(("merged", *_OUTCOMES[1:])).take(pa.array(decided[first]))
        same_as = pa.array(self.line[first])
        outcomes.add_table(lines.take(pa.array(where)).combine_chunks(), {"outcome": names, "same_as": same_as})


def _digests(inputs: Inputs, spool: InputSpool, rows: Ints) -> list[str]:
    """A digest of the values of these inputs including passwords; kept in memory only."""
    is_wanted = np.zeros(spool.rows, np.bool_)
    is_wanted[rows] = True
    parts, at = [], 0
    for table in spool.batches():
        parts.append(table.filter(pa.array(is_wanted[at : at + table.num_rows])))
        at += table.num_rows
    chosen = pa.concat_tables(parts)
    lines_of_rows = set(pc.list_flatten(chosen["lines"]).to_pylist())
    secrets = inputs.passwords(lines_of_rows) if inputs.password_column is not None else {}
    digests = []
    columns: list[Any] = [chosen[name].to_pylist() for name in chosen.column_names]
    for lines, *texts in zip(*columns, strict=True):
        values = [*texts, *sorted({secrets[line] for line in lines if line in secrets})]
        digests.append(hashlib.blake2b(repr(values).encode(), digest_size=16).hexdigest())
    return digests
