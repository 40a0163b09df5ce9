"""New customers of one file whose codes differ in their spelling only: perhaps they are one.

In: the inputs of a file, and the decision for each of its tables. Out: the same, with `held` in place of `send` for
each after the first, since a create cannot be undone. Two different e-mail addresses tell customers apart. Once the
first one is created, the next import of the file asks whether the other is the same (`pipelines.plan.alike`).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.ledger.keys import loose_code
from orderbridge.pipelines.plan.alike import Customer, alike_pairs
from orderbridge.pipelines.plan.decide import CUSTOMER_CODES, Decision, InputReason, spelling_key
from orderbridge.pipelines.plan.outcomes import first_of
from orderbridge.transforms.frames import TEXT, array, column, is_repeated
from orderbridge.transforms.upserts.decisions import CUSTOMER_KEYS

CODE: Final = "nearly_repeated"


class RepeatedCodes:
    """The codes that several inputs of a file have, each in its own spelling.

    Attributes:
        lines: the first line of each input that is held.
    """

    def __init__(self, tables: Sequence[pa.Table]) -> None:
        self.lines: set[int] = set()
        self._repeated = {name: _repeated(tables, name) for name in CUSTOMER_CODES}
        self._sent: dict[tuple[str, str], list[Customer]] = defaultdict(list)

    def hold(self, table: pa.Table, decision: Decision) -> Decision:
        """Holds the inputs of a table to send that may be a customer of an earlier line to send."""
        is_sent = pc.equal(decision.outcome, "send")
        may_be_one = pa.array(np.zeros(table.num_rows, np.bool_))
        for name, codes in self._repeated.items():
            if not len(codes):
                continue
            own = array(spelling_key(column(table[name].combine_chunks())))
            may_be_one = pc.or_(may_be_one, pc.is_in(own, value_set=codes, skip_nulls=True))
        lines = first_of(table["lines"].combine_chunks())
        reasons: dict[int, InputReason] = {}
        rows = np.flatnonzero(pc.and_(is_sent, may_be_one).to_numpy(zero_copy_only=False))
        for row in rows.tolist():
            keys = {name: table[name][row].as_py() for name in CUSTOMER_KEYS}
            customer = {name: text for name, text in keys.items() if text is not None}
            reason = self._reason(customer)
            if reason is None:
                self._add({**customer, "id": str(lines[row])})
            else:
                reasons[row] = reason
                self.lines.add(int(lines[row]))
        return decision.with_reasons("held", reasons)

    def _reason(self, customer: Customer) -> InputReason | None:
        others = [one for place in _places(customer) for one in self._sent.get(place, ())]
        pair = next(alike_pairs(customer, others), None)
        if pair is None:
            return None
        words = (
            f"{pair.written} may be the customer of line {pair.customer}, whose code is {pair.known}: "
            "once that one is created, import the file again, and it is asked whether they are the same"
        )
        return InputReason(pair.field, CODE, words)

    def _add(self, customer: Customer) -> None:
        for place in _places(customer):
            self._sent[place].append(customer)


def _places(customer: Customer) -> list[tuple[str, str]]:
    """The codes of a customer in no spelling, each with its field."""
    codes = [(name, loose_code(customer.get(name) or "")) for name in CUSTOMER_CODES]
    return [place for place in codes if place[1]]


def _repeated(tables: Sequence[pa.Table], name: str) -> pa.Array:
    """The codes of a field, in no spelling, that several inputs have."""
    chunks = [chunk for table in tables for chunk in table[name].chunks]
    texts = pa.chunked_array(chunks, TEXT).combine_chunks()
    codes = spelling_key(column(texts))
    return array(codes[is_repeated(codes)]).unique()
