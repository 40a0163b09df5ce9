"""Values that are valid but rarely meant: pointed out in the summary before anything is sent.

In: tables of inputs to send, a JSON text per field. Out: for each kind of suspicious value its number and first lines.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.mapping.cells import ADDRESS
from pipelines.plan.outcomes import FIRST_LINES, Reason, first_of

_MONTHS: Final = "ene|jan|feb|mar|abr|apr|may|jun|jul|ago|aug|sept?|oct|nov|dic|dec"
_TEXTS: Final[Mapping[str, tuple[str, str]]] = {
    "invisible": (
        "contains invisible or control characters",
        r"[\x{7f}-\x{9f}\x{ad}\x{200b}-\x{200f}\x{2028}-\x{202e}\x{2060}-\x{2069}\x{feff}]"
        # or escaped in JSON, not after an escaped backslash; tabs and line ends are common in descriptions
        r"|(?:^|[^\\])(?:\\\\)*\\(?:u00(?:0[0-8bcef]|1[0-9a-f]|7f)|[bf])",
    ),
    "mojibake": (
        "contains letters such as Ã© for é: the text was converted to UTF-8 twice; export it again",
        r"Ã[\x{80}-\x{bf}‚ƒ„†‡ˆ‰Š‹ŒŽ‘“•–—˜™š›œžŸ]|Â[\x{a0}-\x{bf}]|â€|[├┬]\S",
    ),
    "lost_letter": (
        "contains a question mark within a word, as where letters were lost; export the file again as UTF-8",
        r'["\s]\pL*\?\p{Ll}',
    ),
    "null_word": (
        'is a word such as NULL; if it means an empty cell, set in the mapping under [rows]: empty = ["NULL"]',
        r'"(?:NULL|null|\(null\)|\\\\N|N/A|n/a|NaN|nan|None|undefined)"',
    ),
    "date": (
        "is a date, as where a spreadsheet has changed a code such as 1-11",
        r'"(?:[0-9]{1,2}[-/.][0-9]{1,2}[-/.](?:19|20)[0-9]{2}|(?:19|20)[0-9]{2}-[0-9]{2}-[0-9]{2}'
        rf'|[0-9]{{1,2}}-(?i:{_MONTHS})|(?i:{_MONTHS})-[0-9]{{1,2}})"',
    ),
}
"""Words and pattern (of the JSON text) by code, for all fields."""
_ANY_TEXT: Final = "|".join(pattern for _, pattern in _TEXTS.values())
_Check = Callable[[pa.Array], pa.Array]


def _numbers(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, "null"), pa.scalar(None, pa.string()), texts).cast(pa.float64())


def _lacks_number(texts: pa.Array) -> pa.Array:
    """Documents are parsed only where fewer numbers than braces are in the text."""
    numbers = pc.count_substring_regex(texts, r'"number":"[^"]*[^"\s]')
    may_lack = pc.fill_null(pc.less(numbers, pc.count_substring(texts, "{")), False).to_numpy(zero_copy_only=False)
    lacks = np.zeros(len(texts), np.bool_)
    lacks[may_lack] = [
        any(not (document.get("number") or "").strip() for document in msgspec.json.decode(text))
        for text in texts.filter(pa.array(may_lack)).to_pylist()
    ]
    return pa.array(lacks)


_CHECKS: Final[Mapping[str, tuple[str, str, _Check]]] = {
    "price": ("not_positive", "price is zero or negative", lambda texts: pc.less_equal(_numbers(texts), 0.0)),
    "stock": ("negative", "stock is negative", lambda texts: pc.less(_numbers(texts), 0.0)),
    "email": (
        "not_an_address",
        "email is not one valid e-mail address",
        lambda texts: pc.invert(pc.match_substring_regex(texts, f'^"{ADDRESS}"$')),
    ),
    "phone": ("no_digits", "phone has no digits", lambda texts: pc.match_substring_regex(texts, r'^"[^\pN"]+"$')),
    "documents": ("document_number_missing", "a document has no number", _lacks_number),
}


class SuspiciousValues:
    """Collects suspicious values.

    Args:
        increments: fields whose values are increments, which may be negative.
        is_sheet: the file is a workbook, whose cells show fewer digits than they have.
    """

    def __init__(self, increments: frozenset[str], *, is_sheet: bool = False) -> None:
        self._increments, self._is_sheet = increments, is_sheet
        self._reasons: dict[tuple[str, str], Reason] = {}

    def add(self, table: pa.Table) -> None:
        """Checks a table of inputs to send: `lines`, `path`, and a column per field."""
        lines = first_of(table["lines"].combine_chunks())
        for name in table.column_names:
            if name in ("lines", "path"):
                continue
            texts = table[name].combine_chunks()
            is_hit = pc.fill_null(pc.match_substring_regex(texts, _ANY_TEXT), False)
            for code, (words, pattern) in _TEXTS.items() if pc.any(is_hit).as_py() else ():
                hits = pc.match_substring_regex(texts.filter(is_hit), pattern)
                self._count(name, code, f"{name} {words}", hits, pa.array(lines).filter(is_hit))
            if name == "price" and self._is_sheet:
                hits = pc.match_substring_regex(texts, r"\.[0-9]{3}")
                self._count(name, "decimals", "price has more decimals than a sheet usually shows", hits, lines)
            if name in _CHECKS and name not in self._increments:
                code, words, check = _CHECKS[name]
                self._count(name, code, words, check(texts), lines)

    def add_merged(self, table: pa.Table) -> None:
        """Checks inputs that equal an earlier one and are merged with it: each of their increments may be meant."""
        lines = first_of(table["lines"].combine_chunks())
        for name in sorted(self._increments.intersection(table.column_names)):
            words = f"{name}: an equal change of an earlier line, so it is sent once; add up changes that are all meant"
            self._count(name, "merged", words, pc.is_valid(table[name].combine_chunks()), lines)

    def _count(self, field: str, code: str, words: str, is_hit: pa.Array, lines: object) -> None:
        hits = pa.array(lines).filter(pc.fill_null(is_hit, False))
        if len(hits):
            known = self._reasons.get((field, code), Reason(field, code, words, 0, []))
            first = [*known.first, *hits.slice(0, FIRST_LINES).to_pylist()][:FIRST_LINES]
            self._reasons[field, code] = known._replace(lines=known.lines + len(hits), first=first)

    def reasons(self) -> list[Reason]:
        """The kinds of suspicious values, the most frequent first."""
        return sorted(self._reasons.values(), key=lambda reason: -reason.lines)
