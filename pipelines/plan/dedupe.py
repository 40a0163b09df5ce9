"""Inputs sorted out: each is sent, merged, refused, or needs nothing; the operations are written as they are decided.

In: the walk over the file, what decides, how operations are made. Out: `operations.jsonl`, the outcome of each
line, and counts. First the walk, then what lines of one file say of each other, then table by table what is sent.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.imports import CleanBatch, Inputs, Problem, ReadyInput, RejectedInput
from pipelines.plan.decide import Decider
from pipelines.plan.model import OPERATIONS_FILE
from pipelines.plan.outcomes import CONFLICT, Outcomes, first_of, joined
from pipelines.plan.requests import RequestOptions, requests
from pipelines.plan.spool import InputSpool, key_columns
from sources.disk import create_private
from sources.errors import BridgeError
from transforms.frames import TEXT, from_arrow
from transforms.upserts.decisions import duplicates, sharing

Ints = npt.NDArray[np.int64]
NAMES: Final = ("send", "unchanged", "exists_same", "exists_differs", "ambiguous", "rejected", "skipped")


@dataclass(slots=True)
class Sorted:
    """What was counted.

    Attributes:
        lines: of the file that hold a row. sent: of those, in an operation.
        inputs: that are sent, in `operations`. once: operations that cannot be repeated. messages: to customers.
    """

    lines: int = 0
    sent: int = 0
    inputs: int = 0
    operations: int = 0
    once: int = 0
    messages: int = 0


def partition(
    inputs: Inputs, spool: InputSpool, outcomes: Outcomes, decider: Decider, wishes: RequestOptions, folder: Path
) -> Sorted:
    """Walks the file, decides, and writes the operations.

    Raises:
        BridgeError: a line is in no outcome, or in two.
    """
    made = Sorted(lines=_walk(inputs, spool, outcomes))
    among = _Among(inputs, spool)
    fate = np.zeros(spool.rows, np.int8)
    sent: list[pa.Array] = []
    before = 0
    with create_private(folder / OPERATIONS_FILE) as out:
        for table in spool.batches():
            rows = np.arange(before, before + table.num_rows)
            before += table.num_rows
            among.refuse(rows, table["lines"], outcomes)
            is_kept = ~among.is_conflicting[rows] & (among.first[rows] == rows)
            kept = table.filter(pa.array(is_kept))
            decided = decider.decide(kept)
            fate[rows[is_kept]] = pc.index_in(decided.outcome, value_set=pa.array(NAMES)).to_numpy()
            is_sent = pc.equal(decided.outcome, "send")
            going = decided.table.filter(is_sent)
            asked = requests(going, spool.kind, made.operations, wishes)
            out.write(asked.text)
            made.operations += asked.count
            made.once += asked.once
            made.messages += asked.messages
            made.inputs += going.num_rows
            sent.append(pc.list_flatten(going["lines"].combine_chunks()))
            columns = {"outcome": decided.outcome, "id": decided.id, "evidence": decided.evidence}
            is_rejected = pc.equal(decided.outcome, "rejected")
            columns |= {name: pc.if_else(is_rejected, getattr(decided, name), "") for name in ("code", "words")}
            stays = pc.invert(is_sent)
            outcomes.add_table(
                kept["lines"].combine_chunks().filter(stays), {name: c.filter(stays) for name, c in columns.items()}
            )
            among.merge(rows, table["lines"], fate, outcomes)
    made.sent = sum(map(len, sent))
    told = pa.concat_arrays([*sent, outcomes.whole()["line"].combine_chunks()])
    if not made.lines == len(told) == len(pc.unique(told)):
        raise BridgeError(f"{made.lines} lines were read, and {len(told)} have an outcome: they do not add up")
    return made


def _walk(inputs: Inputs, spool: InputSpool, outcomes: Outcomes) -> int:
    """Spools what can go; tells what cannot. Returns how many lines hold a row."""
    lines = 0
    for item in inputs.in_columns():
        lines += len(item.lines)
        if isinstance(item, CleanBatch):
            spool.add_columns(item.lines, item.columns)
        elif isinstance(item, ReadyInput):
            spool.add(item)
        elif isinstance(item, RejectedInput):
            told = [(problem.field, problem.code, _about(problem)) for problem in item.problems]
            field, code, words = (joined(parts) for parts in zip(*told, strict=True))
            outcomes.add(item.lines, "rejected", field=field, code=code, words=words)
        else:
            outcomes.add(item.lines, "skipped", words=item.reason)
    spool.end()
    return lines


def _about(problem: Problem) -> str:
    """What is wrong, with the name that the column has in the file."""
    return f"{problem.column}: {problem.words}" if problem.column else problem.words


class _Among:
    """What the inputs of one file say of each other.

    Attributes:
        is_conflicting: whether another input has one of its keys, and says something else.
        first: the first input that says the same; itself, mostly.
        line: the first line of each input.
    """

    def __init__(self, inputs: Inputs, spool: InputSpool) -> None:
        keys: dict[str, list[pa.Array]] = {}
        lines = [np.empty(0, np.int64)]
        for table in spool.batches():
            lines.append(first_of(table["lines"].combine_chunks()))
            for name, texts in key_columns(spool.kind, table).items():
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
        said = from_arrow(pa.table({"said": pa.array(_said(inputs, spool, rows), TEXT)}))["said"]
        found = duplicates(frame.iloc[rows].reset_index(drop=True), said)
        self.first[rows] = rows[found["first"].to_numpy(np.int64)]
        conflicts = np.flatnonzero((found["decision"] == "conflicting").to_numpy(np.bool_))
        self.is_conflicting[rows[conflicts]] = True
        for at, key, other in zip(
            rows[conflicts].tolist(), found["key"].iloc[conflicts], found["other"].iloc[conflicts], strict=True
        ):
            self._why[at] = (key, int(self.line[rows[other]]))

    def refuse(self, rows: Ints, lines: pa.ChunkedArray, outcomes: Outcomes) -> None:
        """Tells why the conflicting ones of these inputs are refused."""
        for at in np.flatnonzero(self.is_conflicting[rows]).tolist():
            key, other = self._why[int(rows[at])]
            words = f"line {other} has the same {key}, and says something else: nobody knows which is right"
            outcomes.add(lines[at].as_py(), "rejected", field=key, code=CONFLICT, words=words)

    def merge(self, rows: Ints, lines: pa.ChunkedArray, fate: npt.NDArray[np.int8], outcomes: Outcomes) -> None:
        """Tells what becomes of those of these inputs that say the same as one before them."""
        where = np.flatnonzero(~self.is_conflicting[rows] & (self.first[rows] < rows))
        if not len(where):
            return
        first = self.first[rows[where]]
        names = pa.array(("merged", *NAMES[1:])).take(pa.array(fate[first]))
        same_as = pa.array(self.line[first])
        outcomes.add_table(lines.take(pa.array(where)).combine_chunks(), {"outcome": names, "same_as": same_as})


def _said(inputs: Inputs, spool: InputSpool, rows: Ints) -> list[str]:
    """A digest of what these inputs say, passwords too; it is kept in memory only."""
    digests: list[str] = []
    at = 0
    is_wanted = np.zeros(spool.rows, np.bool_)
    is_wanted[rows] = True
    for table in spool.batches():
        chosen = table.filter(pa.array(is_wanted[at : at + table.num_rows]))
        at += table.num_rows
        secrets: dict[int, str] = {}
        if inputs.password_column is not None:
            secrets = inputs.passwords(set(pc.list_flatten(chosen["lines"]).to_pylist()))
        columns: list[Any] = [chosen[name].to_pylist() for name in chosen.column_names]
        for lines, *texts in zip(*columns, strict=True):
            said = [*texts, *sorted({secrets[line] for line in lines if line in secrets})]
            digests.append(hashlib.blake2b(repr(said).encode(), digest_size=16).hexdigest())
    return digests
