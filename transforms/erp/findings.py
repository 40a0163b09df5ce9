"""What is found when the ERP's customers are matched with the platform's.

In: the lines of the ERP, the customers, and what each key has settled. Out: frames of findings. A line is told by its
number in the file: codes, addresses and names stay out of the findings.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from transforms.erp.cascade import Pairs, Settled
from transforms.findings import rule_findings, shared_value_findings
from transforms.frames import TEXT
from transforms.keys import canonical_id, fold_case

LINES: Final = "erp_customers"
"""The entity of findings about lines; their `entity_id` is the line's number."""


def about_lines(lines: pa.Table, repeated: pa.Table, keys: Mapping[str, pa.Array]) -> list[pd.DataFrame]:
    """What the file says on its own.

    Args:
        lines: `_line`, without the repeated ones.
        repeated: lines that are equal to an earlier one.
        keys: by which lines can be matched: of each a column of the lines, normalised.
    """
    numbers = _numbers(lines)
    made = [rule_findings(LINES, "line_repeated", _numbers(repeated))]
    has_none = pa.repeat(True, len(lines))
    for name, values in keys.items():
        has_none = pc.and_(has_none, pc.is_null(values))
        made.append(shared_value_findings(LINES, f"{name}_duplicate", numbers, values, pa.repeat(True, len(lines))))
        if name == "erp_code":
            made.append(rule_findings(LINES, "erp_code_missing", numbers, pc.is_null(values)))
    return [*made, rule_findings(LINES, "key_missing", numbers, has_none)]


def about_several(lines: pa.Table, customers: pa.Table, by_key: Mapping[str, Settled]) -> list[pd.DataFrame]:
    """Lines and customers that are ambiguous, by the key that is to blame."""
    numbers, ids = _numbers(lines), customers["customer_id"].combine_chunks()
    made = []
    for name, key in by_key.items():
        made.append(
            rule_findings(LINES, "match_ambiguous", numbers.take(pa.array(key.left_several)), detail=f"by {name}")
        )
        made.append(
            rule_findings("customers", "erp_ambiguous", ids.take(pa.array(key.right_several)), detail=f"by {name}")
        )
    return made


def about_codes(
    lines: pa.Table,
    codes: pa.Array | None,
    customers: pa.Table,
    gone: pa.Table,
    pairs: Pairs,
    by_key: Mapping[str, Settled],
) -> list[pd.DataFrame]:
    """Codes of the ERP that contradict a match, or nearly make one.

    Args:
        lines: of the ERP.
        codes: of the lines, normalised; None where the file has none.
        customers: the present ones.
        gone: those that went missing.
        pairs: lines and customers that matched.
        by_key: what each key has settled.
    """
    if codes is None:
        return []
    numbers = _numbers(lines)
    known = canonical_id(customers["erp_code"].combine_chunks())
    left, right = pa.array(pairs.left), pa.array(pairs.right)
    contradicts = pc.not_equal(codes.take(left), known.take(right))
    settled = np.zeros(len(lines), np.bool_)
    settled_there = np.zeros(len(customers), np.bool_)
    for key in by_key.values():
        settled[key.left] = settled[key.left_several] = True
        settled_there[key.right] = settled_there[key.right_several] = True
    alone = pa.array(~settled)
    codes, numbers_alone = codes.filter(alone), numbers.filter(alone)
    was_there = pc.is_in(codes, value_set=canonical_id(gone["erp_code"].combine_chunks()), skip_nulls=True)
    near = pc.is_in(_loosely(codes), value_set=_loosely(known.filter(pa.array(~settled_there))), skip_nulls=True)
    return [
        rule_findings(LINES, "erp_code_contradicts", numbers.take(left), contradicts),
        rule_findings(LINES, "customer_missing", numbers_alone, was_there),
        rule_findings(LINES, "erp_code_nearly", numbers_alone, near),
    ]


def _loosely(codes: pa.Array) -> pa.Array:
    """Codes without leading zeros, in any case: what a spreadsheet makes of them."""
    return fold_case(pc.utf8_ltrim(codes, "0"))


def _numbers(lines: pa.Table) -> pa.Array:
    return lines["_line"].combine_chunks().cast(TEXT)
