"""Decides for each input what to do, from what is known about the platform; one class per source of that knowledge.

In: tables of inputs, no two for one record, and the current state. Out: `Decision`: an outcome for each input, and the
table with only the fields to send. The comparisons are in `transforms.upserts`.
"""

from __future__ import annotations

import io
from abc import ABC, abstractmethod
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from functools import cached_property, reduce
from typing import Any, Final, NamedTuple

import msgspec
import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from pyarrow import json as arrow_json

from orderbridge.pipelines.imports.json_columns import as_json, bytes_of
from orderbridge.pipelines.ledger.keys import body_hash, record_hash
from orderbridge.pipelines.plan.alike import CODE as NEARLY_KNOWN
from orderbridge.pipelines.plan.alike import AlikePair, Customer, likeness
from orderbridge.pipelines.plan.current_state import CurrentCustomers
from orderbridge.pipelines.plan.lost_zeros import CODE as LOST_ZEROS
from orderbridge.pipelines.plan.lost_zeros import LostZeros
from orderbridge.pipelines.plan.outcomes import DIFFERENCE_SCHEMA, Reason, first_of
from orderbridge.pipelines.plan.summary import MAX_JUMPS, PlanStatistics
from orderbridge.pipelines.plan.suspicious import SuspiciousValues
from orderbridge.pipelines.warehouse.answers.reviews import Review
from orderbridge.sources.files.formulas import neutralize
from orderbridge.sources.kinds import InputKind
from orderbridge.sources.settings import UNSET_COUNTRY
from orderbridge.sources.words import listed
from orderbridge.transforms.erp.match_keys import loose_code
from orderbridge.transforms.frames import BIGINT, TEXT, Column, array, from_arrow, is_repeated
from orderbridge.transforms.upserts.confirmed import changed_fields, moved_codes, price_jumps
from orderbridge.transforms.upserts.decisions import (
    CUSTOMER_FIELDS,
    CUSTOMER_KEYS,
    INPUT_DOCUMENTS,
    decide_customers,
    search_key,
)
from orderbridge.transforms.values.keys import canonical_id
from orderbridge.transforms.values.texts import tidied, without_blank

_TEXT: Final = pd.ArrowDtype(TEXT)
_CODES: Final = ("erpCode", "sku")
_HALF: Final = 0.5
"""Fields of variants that name an article."""
CUSTOMER_CODES: Final = ("erpCode", "loginCode")
_DOCUMENT_FIELDS: Final = {
    name: kind for name, kind in INPUT_DOCUMENTS.items() if name not in ("input", "position")
}


class InputReason(NamedTuple):
    """Why an input is not sent: its field, a code, and words."""

    field: str
    code: str
    words: str


@dataclass(frozen=True, slots=True)
class Decision:
    """The outcomes of the inputs of a table.

    Attributes:
        outcome: of each: `send`, or as in the manifest.
        table: the same inputs, their texts as JSON; fields that are not sent are null.
        evidence: for an outcome other than `send`.
        more: `id` of the platform's record, `code` and `words` of the reason for a rejection: a text for each.
        repeated: of fields that are always sent, whether the value of each input is as last confirmed.
    """

    outcome: pa.Array
    table: pa.Table
    evidence: str
    more: Mapping[str, pa.Array] = field(default_factory=dict)
    repeated: Mapping[str, pa.Array] = field(default_factory=dict)

    def with_reasons(self, outcome: str, reasons: Mapping[int, InputReason]) -> Decision:
        """A copy in which some inputs, by their row, have another outcome, each for its reason."""
        if not reasons:
            return self
        rows = pa.array(np.isin(np.arange(self.table.num_rows), list(reasons)))
        ordered = [reasons[row] for row in sorted(reasons)]
        none = pa.array([""] * self.table.num_rows, TEXT)
        more = dict(self.more)
        for name, values in zip(InputReason._fields, zip(*ordered, strict=True), strict=True):
            texts = pa.array(values, TEXT)
            more[name] = pc.replace_with_mask(more.get(name, none), rows, texts)
        return replace(self, outcome=pc.if_else(rows, outcome, self.outcome), more=more)


@dataclass(eq=False)
class Decider(ABC):
    """Decides table by table.

    Attributes:
        suspicious: gets inputs to send that a person should look at first.
        statistics: of the plan; gets price jumps, and the number of accepted differences, which are not listed.
        differences: fields that differ on the platform, of all tables so far: `DIFFERENCE_SCHEMA`.
    """

    suspicious: SuspiciousValues
    statistics: PlanStatistics
    differences: list[pa.Table] = field(default_factory=list, init=False)

    def prepare(self, tables: Sequence[pa.Table]) -> None:  # noqa: B027 # most need not
        """Looks at all inputs of the file, before any is decided."""

    @abstractmethod
    def decide(self, table: pa.Table) -> Decision:
        """Decides for the inputs of a table."""

    def reasons(self) -> list[Reason]:
        """What is suspicious, after the last table."""
        return self.suspicious.reasons()


@dataclass(eq=False)
class CustomerDecider(Decider):
    """Customers: compared with those read from the platform.

    Attributes:
        country: of phone numbers without a country code.
        accepted: differences that a person has accepted: customer, field, value in the file and on the platform; both
            empty for any.
        created_as: the platform's ids of customers that were created before, by the position of the keys that it gets.
        file: SHA-256 of the file, where nobody has said that its codes are as they should be.
        lost_zeros: fields whose codes have lost their zeros, as another file has shown whose rows these are.
        reviews: reads what people have said about pairs of a code and a customer.
        alike: pairs that hold new customers back, since nobody has reviewed them.
        held_lines: first lines of new customers that are held since another line has their code in another spelling.
    """

    current: CurrentCustomers
    country: str | None
    accepted: Set[tuple[str, ...]]
    created_as: Callable[[Iterable[Mapping[str, str]]], Mapping[int, str]]
    file: str | None = None
    lost_zeros: list[LostZeros] = field(default_factory=list)
    reviews: Callable[[], Mapping[str, Review]] = dict
    alike: list[AlikePair] = field(default_factory=list, init=False)
    held_lines: set[int] = field(default_factory=set, init=False)
    _new_codes: list[pa.Table] = field(default_factory=list, init=False)
    _unchecked: set[str] = field(default_factory=set, init=False)

    def prepare(self, tables: Sequence[pa.Table]) -> None:
        """See `Decider`."""
        if not tables or self.file is None:
            return
        for name in CUSTOMER_CODES:
            codes = pa.chunked_array([chunk for one in tables for chunk in one[name].chunks], TEXT)
            known = array(self.current.rows[CUSTOMER_KEYS[name]]).drop_null()
            found = LostZeros.find(self.file, name, codes.combine_chunks().drop_null(), known)
            if found is not None:
                self.lost_zeros.append(found)

    def decide(self, table: pa.Table) -> Decision:
        """See `Decider`."""
        rows = pa.array(np.arange(table.num_rows))
        inputs = from_arrow(
            pa.table(
                {"input": rows, **{name: table[name] for name in CUSTOMER_FIELDS}}
            ).combine_chunks()
        )
        documents = _documents(rows, table["documents"].combine_chunks())
        known = self.current
        decisions, differences = decide_customers(
            inputs, documents, known.rows, known.documents, self.country
        )
        all_lines = pa.array(first_of(table["lines"].combine_chunks()))
        decisions = self._with_created(inputs, decisions)
        decisions, alike = self._with_alike(inputs, decisions, all_lines)
        differences, is_same = self._without_accepted(decisions, differences)
        decision = pc.if_else(pa.array(is_same), "exists_same", array(decisions["decision"]))
        if len(differences):
            rows_with = array(differences["input"])
            lines = all_lines.take(rows_with)
            found = pa.Table.from_pandas(differences.drop(columns="input"), preserve_index=False)
            found = found.append_column("line", lines).append_column(
                "outcome", decision.take(rows_with)
            )
            self.differences.append(found.select(DIFFERENCE_SCHEMA.names))
        decision, codes, words = self._with_held(inputs, decision, alike)
        is_new = pc.equal(decision, "create")
        self._point_out(inputs[is_new.to_numpy(zero_copy_only=False)], all_lines.filter(is_new))
        is_keyless = pc.equal(decision, "no_key")
        outcome = pc.if_else(is_new, "send", pc.if_else(is_keyless, "rejected", decision))
        no_key = "no erpCode, email or loginCode, so that it could not be looked up"
        more = {
            "code": pc.if_else(is_keyless, "no_key", codes),
            "words": pc.if_else(is_keyless, no_key, words),
        }
        more["id"] = pc.fill_null(array(decisions["customer_id"]), "")
        evidence = f"read by run {known.read.run_id}"
        return Decision(outcome, pa.table(as_json("customers", _arrays(table))), evidence, more)

    def _with_held(
        self, inputs: pd.DataFrame, decision: pa.Array, alike: Mapping[int, AlikePair]
    ) -> tuple[pa.Array, pa.Array, pa.Array]:
        """The decisions, with new customers held that may be known ones; the code and words of each that is held."""
        is_alike = pa.array(np.isin(np.arange(len(decision)), list(alike)))
        texts = [alike[row].words if row in alike else "" for row in range(len(decision))]
        words = pa.array(texts, TEXT)
        codes = pc.if_else(is_alike, NEARLY_KNOWN, "")
        is_new = pc.equal(decision, "create")
        decision = pc.if_else(is_alike, "held", decision)
        for lost in self.lost_zeros:
            is_held = pc.and_(is_new, lost.may_lack_zeros(array(inputs[lost.field])))
            decision = pc.if_else(is_held, "held", decision)
            codes = pc.if_else(is_held, LOST_ZEROS, codes)
            words = pc.if_else(is_held, lost.words, words)
        return decision, codes, words

    def _with_alike(
        self, inputs: pd.DataFrame, decisions: pd.DataFrame, lines: pa.Array
    ) -> tuple[pd.DataFrame, dict[int, AlikePair]]:
        """New customers that are known ones with another spelling of their code, as reviews say.

        Returns:
            The decisions, and the pairs that nobody has reviewed, by row.
        """
        found: dict[int, str] = {}
        held: dict[int, AlikePair] = {}
        found_alike = self._alike_customers(inputs, _rows_to_create(decisions))
        rows = np.array([*found_alike], np.int64)
        for row, keys in zip(rows.tolist(), _texts_of(inputs, rows), strict=True):
            known = likeness(keys, found_alike[row], self.reviews())
            if known.customer is not None:
                found[row] = known.customer
            elif known.open is not None:
                held[row] = msgspec.structs.replace(known.open, line=lines[row].as_py())
        self.alike += held.values()
        return _with_known(decisions, found), held

    def _alike_customers(
        self, inputs: pd.DataFrame, rows: npt.NDArray[np.int64]
    ) -> dict[int, list[Customer]]:
        """The known customers with a code of an input in any spelling, by its row."""
        found: dict[int, dict[int, Customer]] = defaultdict(dict)
        known = self.current.rows
        columns = {"id": "id", **CUSTOMER_KEYS}
        for name, spellings in self._known_spellings.items():
            codes = spelling_key(inputs[name].iloc[rows])
            ours = pd.DataFrame({"code": codes.array, "row": rows}).dropna()
            theirs = spellings[spellings["code"].isin(ours["code"])]
            pairs = ours.merge(theirs, on="code")  # spellings of one code are many
            for row, place in zip(pairs["row"].tolist(), pairs["place"].tolist(), strict=True):
                texts = {one: known[column].iloc[place] for one, column in columns.items()}
                found[row][place] = {one: text for one, text in texts.items() if pd.notna(text)}
        return {row: list(customers.values()) for row, customers in found.items()}

    @cached_property
    def _known_spellings(self) -> dict[str, pd.DataFrame]:
        """The codes of the platform's customers in no spelling, with their places, by field."""
        rows = self.current.rows
        return {
            name: pd.DataFrame(
                {"code": spelling_key(rows[CUSTOMER_KEYS[name]]), "place": np.arange(len(rows))}
            ).dropna()
            for name in CUSTOMER_CODES
        }

    def _with_created(self, inputs: pd.DataFrame, decisions: pd.DataFrame) -> pd.DataFrame:
        """New customers that were created before, and are there by their id: the platform respells their keys."""
        at = _rows_to_create(decisions)
        known = set(array(self.current.rows["id"]).to_pylist())
        created = self.created_as(_texts_of(inputs, at))
        found = {int(at[row]): one for row, one in created.items() if one in known}
        return _with_known(decisions, found)

    def _without_accepted(
        self, decisions: pd.DataFrame, differences: pd.DataFrame
    ) -> tuple[pd.DataFrame, npt.NDArray[np.bool_]]:
        """The differences that nobody has accepted, and which inputs differ in accepted ones alone."""
        differs = decisions["decision"] == "exists_differs"
        texts = differences[["customer_id", "field", "file_value", "platform_value"]].fillna("")
        accepted = [
            (*row[:2], *map(neutralize, row[2:])) in self.accepted
            or (*row[:2], "", "") in self.accepted
            for row in (texts.itertuples(index=False, name=None) if self.accepted else ())
        ]
        is_accepted = np.array(accepted or [False] * len(differences), np.bool_)
        is_accepted &= differences["input"].isin(decisions["input"][differs]).to_numpy(np.bool_)
        self.statistics.accepted += int(is_accepted.sum())
        left = differences[~is_accepted]
        return left, (differs & ~decisions["input"].isin(left["input"])).to_numpy(np.bool_)

    def _point_out(self, new: pd.DataFrame, lines: pa.Array) -> None:
        """New customers that were there before, with a code that a program may have changed, or a wrong price list."""
        was_there = np.zeros(len(new), np.bool_)
        for name, platform_name in CUSTOMER_KEYS.items() if len(self.current.missing) else ():
            known = search_key(name, self.current.missing[platform_name]).dropna()
            was_there |= search_key(name, new[name]).isin(known).to_numpy(np.bool_)
        self.suspicious.count("", "was_there", lines.filter(pa.array(was_there)))
        codes = array(spelling_key(new["erpCode"]))
        is_near = pc.is_in(codes, value_set=self._loose_codes, skip_nulls=True)
        self.suspicious.count("erpCode", "nearly_known", lines.filter(is_near))
        is_missing = pa.array(new["erpCode"].isna().to_numpy(np.bool_))
        self._new_codes.append(pa.table({"code": codes, "line": lines, "is_missing": is_missing}))
        named = array(canonical_id(new["priceListId"]))
        price_lists = self.current.price_lists
        if price_lists.gap:
            self._unchecked |= set(named.drop_null().to_pylist())
            return
        is_listed = pc.is_in(named, value_set=price_lists.ids)
        is_unknown = pc.and_(pc.is_valid(named), pc.invert(is_listed))
        self.suspicious.count("priceListId", "not_listed", lines.filter(is_unknown))

    def reasons(self) -> list[Reason]:
        """See `Decider`."""
        if self._new_codes:
            new = from_arrow(pa.concat_tables(self._new_codes).combine_chunks())
            new = new[~new["line"].isin(self.held_lines)]
            self.suspicious.count(
                "erpCode", "nearly_repeated", array(new.loc[is_repeated(new["code"]), "line"])
            )
            without_code = new.loc[new["is_missing"], "line"]
            if len(without_code) < _HALF * len(new):
                self.suspicious.count("erpCode", "code_missing", array(without_code))
        if self._unchecked:
            gap = self.current.price_lists.gap
            names = listed(sorted(self._unchecked))
            is_one = len(self._unchecked) == 1
            lists = f"price list {names} was" if is_one else f"price lists {names} were"
            note = f"{lists} not checked: {gap}"
            self.statistics.notes = [*self.statistics.notes, note]
        if self.country is None and any(
            "phone" in found["field"].to_pylist() for found in self.differences
        ):
            self.statistics.notes = [*self.statistics.notes, UNSET_COUNTRY]
        return super().reasons()

    @cached_property
    def _loose_codes(self) -> pa.Array:
        return array(self._known_spellings["erpCode"]["code"])


def _texts_of(inputs: pd.DataFrame, rows: npt.NDArray[np.int64]) -> Iterator[dict[str, str]]:
    """The keys that each of these inputs has."""
    columns = [array(inputs[name].iloc[rows]).to_pylist() for name in CUSTOMER_KEYS]
    for texts in zip(*columns, strict=True):
        keys = zip(CUSTOMER_KEYS, texts, strict=True)
        yield {name: text for name, text in keys if text is not None}


def _rows_to_create(decisions: pd.DataFrame) -> npt.NDArray[np.int64]:
    """The rows of new customers."""
    return np.flatnonzero((decisions["decision"] == "create").to_numpy(np.bool_))


def _with_known(decisions: pd.DataFrame, found: Mapping[int, str]) -> pd.DataFrame:
    """The decisions, with known customers of these ids, by row, in place of new ones."""
    if not found:
        return decisions
    decided = array(decisions["decision"]).to_pylist()
    ids = array(decisions["customer_id"]).to_pylist()
    for row, customer_id in found.items():
        decided[row] = "exists_same"
        ids[row] = customer_id
    columns = {"decision": decided, "customer_id": ids}
    return decisions.assign(
        **{name: pd.Series(one, decisions.index, _TEXT) for name, one in columns.items()}
    )


def _arrays(table: pa.Table) -> dict[str, pa.Array]:
    return {name: table[name].combine_chunks() for name in table.column_names}


def spelling_key(codes: Column[Any]) -> Column[Any]:
    """Codes as `loose_code` has them, without invisible characters; null where nothing is left."""
    return without_blank(loose_code(tidied(codes)))


def _documents(rows: pa.Array, texts: pa.Array) -> pd.DataFrame:
    """The documents of inputs, from their JSON: `INPUT_DOCUMENTS`."""
    where = pc.is_valid(texts)
    if not pc.any(where).as_py():
        return from_arrow(pa.schema(list(INPUT_DOCUMENTS.items())).empty_table())
    parts = (rows.filter(where).cast(TEXT), texts.filter(where))
    data = bytes_of(
        pc.binary_join_element_wise('{"input":', parts[0], ',"documents":', parts[1], "}\n", "")
    )
    schema = pa.schema(
        {"input": BIGINT, "documents": pa.list_(pa.struct(list(_DOCUMENT_FIELDS.items())))}
    )
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
    columns = {name: pc.struct_field(flat, name) for name in _DOCUMENT_FIELDS}
    return from_arrow(
        pa.table({"input": read["input"].take(parents), "position": pa.array(position), **columns})
    )


@dataclass(eq=False)
class UpdateDecider(Decider):
    """Updates, as of variants: compared with what was last confirmed, because these records cannot be read.

    Attributes:
        kind: of the updates.
        confirmed: key, field, value.
        increments: fields whose values are increments: sent as they are, never compared.
        always: fields that are sent although they are as last confirmed; None: all.
    """

    kind: InputKind
    confirmed: pd.DataFrame
    increments: frozenset[str]
    always: frozenset[str] | None

    def decide(self, table: pa.Table) -> Decision:
        """See `Decider`."""
        fields = as_json(self.kind.name, _arrays(table.drop_columns(["lines", "path"])))
        absolute = {name: texts for name, texts in fields.items() if name not in self.increments}
        inputs = from_arrow(pa.table({"key": table["path"], **absolute}))
        repeated: dict[str, pa.Array] = {}
        if len(self.confirmed):
            is_here = pc.is_in(
                array(self.confirmed["key"]), value_set=table["path"].combine_chunks()
            )
            known = self.confirmed[is_here.to_numpy(zero_copy_only=False)]
            differs = changed_fields(inputs, known)
            repeated = {name: pc.invert(array(differs[name])) for name in absolute}
            for name in absolute.keys() - (absolute.keys() if self.always is None else self.always):
                fields[name] = pc.if_else(array(differs[name]), fields[name], pa.scalar(None, TEXT))
            self._find_jumps(inputs, known, table)
            self._find_moved_codes(inputs, table)
        outcome = pc.if_else(reduce(pc.or_, map(pc.is_valid, fields.values())), "send", "unchanged")
        to_send = pa.table({"lines": table["lines"], "path": table["path"], **fields})
        return Decision(outcome, to_send, "assumed: last confirmed value", repeated=repeated)

    def _find_moved_codes(self, inputs: pd.DataFrame, table: pa.Table) -> None:
        lines = pa.array(first_of(table["lines"].combine_chunks()))
        for name in _CODES:
            if name in inputs:
                is_moved = array(moved_codes(inputs, self.confirmed, name))
                self.suspicious.count(name, "moved", lines.filter(is_moved))

    def _find_jumps(self, inputs: pd.DataFrame, known: pd.DataFrame, table: pa.Table) -> None:
        if "price" in self.increments or "price" not in inputs:
            return
        jumps = price_jumps(inputs, known)
        self.statistics.jump_count += len(jumps)
        shown = jumps.head(MAX_JUMPS - len(self.statistics.jumps))
        lines = first_of(table["lines"].combine_chunks())[shown.pop("row").to_numpy(np.int64)]
        self.statistics.jumps += shown.assign(line=lines).to_dict("records")


@dataclass(eq=False)
class CreateDecider(Decider):
    """Subcategories and warehouses: compared with the confirmed creates, because they cannot be read."""

    kind: InputKind
    is_created: Callable[[bytes], bool]

    def decide(self, table: pa.Table) -> Decision:
        """See `Decider`."""
        to_send = pa.table(as_json(self.kind.name, _arrays(table)))
        outcome = []
        for row in to_send.drop_columns("lines").to_pylist():
            path = row.pop("path")
            body = {
                name: msgspec.json.decode(text) for name, text in row.items() if text is not None
            }
            is_known = self.is_created(record_hash(path, body, self.kind.unique_fields))
            is_same = self.is_created(body_hash(path, body))
            outcome.append("unchanged" if is_same else "exists_differs" if is_known else "send")
        return Decision(pa.array(outcome, TEXT), to_send, "an identical one was created before")
