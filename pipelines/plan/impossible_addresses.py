"""New customers whose e-mail address cannot be one are rejected, where customers log in with it.

In: the decision for a table of inputs. Out: the same, with `rejected` in place of `send`, and the reason with the cell.
Customers that the platform has already are left as they are, whatever it took as their address.
"""

from __future__ import annotations

import json
from typing import Final

import numpy as np
import pyarrow.compute as pc

from orderbridge.pipelines.mapping.cells import IMPOSSIBLE_ADDRESS, WORDS
from orderbridge.pipelines.plan.decide import Decision, InputReason
from orderbridge.pipelines.plan.outcomes import words_of_problem

FIELD: Final = "email"
CODE: Final = "not_an_address"


def reject_impossible(decision: Decision, column: str) -> Decision:
    """Rejects the inputs to send whose address cannot be one. `column` of the file has the addresses."""
    texts = decision.table[FIELD].combine_chunks()
    is_impossible = pc.fill_null(pc.match_substring_regex(texts, IMPOSSIBLE_ADDRESS), False)
    is_rejected = pc.and_(is_impossible, pc.equal(decision.outcome, "send"))
    reasons: dict[int, InputReason] = {}
    for row in np.flatnonzero(is_rejected.to_numpy(zero_copy_only=False)).tolist():
        words = words_of_problem(column, json.loads(texts[row].as_py()), WORDS[CODE])
        reasons[row] = InputReason(FIELD, CODE, words)
    return decision.with_reasons("rejected", reasons)
