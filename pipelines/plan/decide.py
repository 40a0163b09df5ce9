"""A decision for each input of a table, by what is known of the platform; one class for each way of knowing.

In: tables of inputs (`pipelines.plan.spool`), no two for one record, and what is known. Out: `Decided`: an outcome for
each, and the table with only the fields that are to be sent. The comparing is in `transforms.upserts`.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import reduce
from typing import ClassVar, Final, Protocol

import msgspec
import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from pipelines.ledger.store import body_hash
from pipelines.plan.current_state import Customers
from pipelines.plan.outcomes import DIFFERENCE, first_of
from pipelines.plan.spool import text_of
from pipelines.plan.summary import MAX_JUMPS, Jump
from transforms.frames import BIGINT, TEXT, array, from_arrow
from transforms.upserts.confirmed import price_jumps, variants
from transforms.upserts.decisions import FIELDS, INPUT_DOCUMENTS, customers
from transforms.upserts.json_columns import bytes_of

_DOCUMENTS: Final = {name: kind for name, kind in INPUT_DOCUMENTS.items() if name not in ("input", "position")}
NUMBERED: Final = ("priceListId",)


@dataclass(frozen=True, slots=True)
class Decided:
    """What becomes of the inputs of a table.

    Attributes:
        outcome: of each: `send`, or as in the manifest; `rejected` is for the one reason in `code`.
        table: the same inputs, each field null that is not to be sent.
        id: of the platform's record, where there is one.
        evidence: of what needs nothing.
        code, words: of what was rejected.
    """

    outcome: pa.Array
    table: pa.Table
    id: pa.Array
    evidence: pa.Array
    code: str = ""
    words: str = ""


class Decider(Protocol):
    """Decides table by table."""

    def decide(self, table: pa.Table) -> Decided:
        """The outcomes of a table's inputs."""

    @property
    def differences(self) -> Sequence[pa.Table]:
        """Fields that the platform has otherwise, in the columns of `DIFFERENCE`, of all tables so far."""


class ByWarehouse:
    """Customers: beside those that were read."""

    def __init__(self, known: Customers) -> None:
        self._known = known
        self.differences: list[pa.Table] = []

    def decide(self, table: pa.Table) -> Decided:
        """See `Decider`."""
        rows = pa.array(np.arange(table.num_rows))
        given = {name: table[name].combine_chunks() if name in NUMBERED else text_of(table[name]) for name in FIELDS}
        inputs = from_arrow(pa.table({"input": rows, **given}))
        documents = _documents(rows, table["documents"].combine_chunks())
        decisions, differences = customers(inputs, documents, self._known.rows, self._known.documents)
        decision = array(decisions["decision"])
        if len(differences):
            where = array(differences["input"])
            told = pa.Table.from_pandas(differences.drop(columns="input"), preserve_index=False)
            lines = pa.array(first_of(table["lines"].combine_chunks())).take(where)
            told = told.append_column("line", lines).append_column("outcome", decision.take(where))
            self.differences.append(told.select(DIFFERENCE.names))
        names = {"create": "send", "no_key": "rejected"}
        outcome = pa.array([names.get(name, name) for name in decision.to_pylist()], TEXT)
        evidence = pa.array([f"read by run {self._known.read.run_id}"] * len(rows), TEXT)
        words = "neither erpCode, email nor loginCode: it could not be found again"
        return Decided(outcome, table, pc.fill_null(array(decisions["customer_id"]), ""), evidence, "no_key", words)


def _documents(rows: pa.Array, texts: pa.Array) -> pd.DataFrame:
    """The documents of inputs as `INPUT_DOCUMENTS`, from their JSON."""
    where = pc.is_valid(texts)
    if not pc.any(where).as_py():
        return from_arrow(pa.schema(list(INPUT_DOCUMENTS.items())).empty_table())
    parts = (rows.filter(where).cast(TEXT), texts.filter(where))
    data = bytes_of(pc.binary_join_element_wise('{"input":', parts[0], ',"documents":', parts[1], "}\n", ""))
    schema = pa.schema({"input": BIGINT, "documents": pa.list_(pa.struct(list(_DOCUMENTS.items())))})
    read = arrow_json.read_json(
        io.BytesIO(data),
        arrow_json.ReadOptions(use_threads=False, block_size=len(data)),
        arrow_json.ParseOptions(explicit_schema=schema, unexpected_field_behavior="ignore"),
    ).combine_chunks()
    lists = read["documents"].combine_chunks()
    parents, flat = pc.list_parent_indices(lists), pc.list_flatten(lists)
    starts = pc.list_value_length(lists).to_numpy(zero_copy_only=False).cumsum()
    before = np.append([0], starts[:-1]).astype(np.int64)
    position = np.arange(len(flat)) - before[parents.to_numpy()]
    columns = {name: pc.struct_field(flat, name) for name in _DOCUMENTS}
    return from_arrow(pa.table({"input": read["input"].take(parents), "position": pa.array(position), **columns}))


@dataclass
class ByLedger:
    """Variants: beside what was last confirmed, since they cannot be read.

    Attributes:
        confirmed: key, field, value.
        changes: fields whose values are changes (semantics `increment`): sent as they stand, never compared.
        jumps: prices that jump, the first of them; `jumps_in_all`: how many.
    """

    confirmed: pd.DataFrame
    changes: frozenset[str] = frozenset()
    jumps: list[Jump] = field(default_factory=list)
    jumps_in_all: int = 0
    differences: ClassVar[Sequence[pa.Table]] = ()

    def decide(self, table: pa.Table) -> Decided:
        """See `Decider`."""
        fields = {name: table[name].combine_chunks() for name in table.column_names if name not in ("lines", "path")}
        absolute = {name: texts for name, texts in fields.items() if name not in self.changes}
        inputs = from_arrow(pa.table({"key": table["path"], **absolute}))
        if len(self.confirmed):
            is_here = pc.is_in(array(self.confirmed["key"]), value_set=table["path"].combine_chunks())
            known = self.confirmed[is_here.to_numpy(zero_copy_only=False)]
            differs = variants(inputs, known)
            for name in absolute:
                fields[name] = pc.if_else(array(differs[name]), fields[name], pa.scalar(None, TEXT))
            self._look_at_prices(inputs, known, table)
        outcome = pc.if_else(_any_given(fields), "send", "unchanged")
        evidence = pa.array(["assumed: as last confirmed"] * table.num_rows, TEXT)
        kept = pa.table({"lines": table["lines"], "path": table["path"], **fields})
        return Decided(outcome, kept, pa.array([""] * table.num_rows, TEXT), evidence)

    def _look_at_prices(self, inputs: pd.DataFrame, known: pd.DataFrame, table: pa.Table) -> None:
        if "price" in self.changes:
            return
        found = price_jumps(inputs, known)
        self.jumps_in_all += len(found)
        lines = first_of(table["lines"].combine_chunks())
        for row in found.head(MAX_JUMPS - len(self.jumps)).to_dict("records"):
            self.jumps.append(Jump(int(lines[row["row"]]), row["before"], row["now"], int(row["power"])))


def _any_given(fields: dict[str, pa.Array]) -> pa.Array:
    return reduce(pc.or_, map(pc.is_valid, fields.values()))


class ByHash:
    """Subcategories and warehouses: beside the creates that were confirmed, since nothing else is known of them."""

    differences: ClassVar[Sequence[pa.Table]] = ()

    def __init__(self, created: set[str]) -> None:
        self._created = created

    def decide(self, table: pa.Table) -> Decided:
        """See `Decider`."""
        names = [name for name in table.column_names if name not in ("lines", "path")]
        outcome = []
        for row in table.select(["path", *names]).to_pylist() if self._created else ():
            body = {name: msgspec.json.decode(row[name]) for name in names if row[name] is not None}
            outcome.append("unchanged" if body_hash(row["path"], body) in self._created else "send")
        size = table.num_rows
        told = pa.array(outcome or ["send"] * size, TEXT)
        evidence = pa.array(["the same was created before"] * size, TEXT)
        return Decided(told, table, pa.array([""] * size, TEXT), evidence)
