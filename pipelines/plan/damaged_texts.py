"""Inputs whose texts lost letters are held where nobody is there to look at them.

In: the decision for a table of inputs. Out: the same, with `held` in place of `send` where a text was converted to
UTF-8 twice (`PeÃ±a`) or has a question mark within a word (`Pe?a`), and the reason with the cell. A text that is sent
again as it was confirmed is on the platform already, and holds nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.plan.decide import Decision, InputReason
from orderbridge.pipelines.plan.outcomes import words_of_problem
from orderbridge.pipelines.plan.suspicious import pattern_of
from orderbridge.transforms.frames import TEXT

_WORDS: Final = {
    "mojibake": "letters such as Ã© for é, as in a text that was converted to UTF-8 twice",
    "lost_letter": "a question mark within a word, as where a letter was lost",
}
"""What is held, by code."""
_ADVICE: Final = (
    "export the file again as UTF-8, or correct the cell in result.xlsx; if the text is right, import the file in a "
    "terminal, where it is shown before anything is sent"
)


def hold_damaged(decision: Decision, columns: Mapping[str, str]) -> Decision:
    """Holds the inputs to send whose texts lost letters. `columns` of the file by the path of the field they fill."""
    table = decision.table
    is_sent = pc.equal(decision.outcome, "send")
    reasons: dict[int, InputReason] = {}
    for name in table.drop_columns(["lines", "path"]).column_names:
        texts = table[name].combine_chunks()
        is_held = pc.and_(is_sent, pc.is_valid(_codes(texts)))
        if name in decision.repeated:
            is_held = pc.and_not(is_held, decision.repeated[name])
        for row in np.flatnonzero(is_held.to_numpy(zero_copy_only=False)).tolist():
            reasons.setdefault(row, _reason(name, texts[row].as_py(), columns))
    return decision.with_reasons("held", reasons)


def _codes(texts: pa.Array) -> pa.Array:
    """What was done to each JSON text; null where nothing was."""
    codes = pa.nulls(len(texts), TEXT)
    for code in _WORDS:
        is_damaged = pc.match_substring_regex(texts, pattern_of(code))
        codes = pc.coalesce(codes, pc.if_else(is_damaged, code, pa.scalar(None, TEXT)))
    return codes


def _reason(name: str, text: str, columns: Mapping[str, str]) -> InputReason:
    """Why a JSON text of a field is held: that of the first text within it."""
    inner = list(_texts(json.loads(text), name))
    codes = _codes(pa.array([json.dumps(cell, ensure_ascii=False) for _, cell in inner], TEXT))
    path, cell, code = next(
        (path, cell, code)
        for (path, cell), code in zip(inner, codes.to_pylist(), strict=True)
        if code is not None
    )
    words = f"{_WORDS[code]}: {_ADVICE}"
    return InputReason(path, code, words_of_problem(columns.get(path, path), cell, words))


def _texts(value: Any, path: str) -> Iterator[tuple[str, str]]:  # noqa: ANN401 # JSON
    """The texts within a value, each with the path of its field."""
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, list):
        for at, item in enumerate(value):
            yield from _texts(item, f"{path}[{at}]")
    elif isinstance(value, dict):
        for name, member in value.items():
            yield from _texts(member, f"{path}.{name}")
