"""The reasons of lines in the language of the person who reads them.

In: the English words that the files of a plan keep, with their codes. Out: the same in another language, as far as the
catalogue has them. What it does not have, such as the platform's own words, stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

from orderbridge.pipelines.plan.outcomes import CELLS, SEPARATOR, join_problems
from orderbridge.sources.texts import Texts

_COLUMN_END: Final = re.compile(": ")
_PART: Final = "; "


def problems_in(texts: Texts, codes: str, words: str) -> str:
    """The words of the problems of a line, which are separated as their codes are."""
    parts, names = words.split(SEPARATOR), codes.split(SEPARATOR)
    if len(parts) != len(names):
        return reason_in(texts, words)
    pairs = zip(names, parts, strict=True)
    return join_problems([problem_in(texts, code, part) for code, part in pairs])


def problem_in(texts: Texts, code: str, words: str) -> str:
    """The words of one problem; a column and its cell may stand before them, and the cells of the row after them."""
    own, mark, cells = words.partition(CELLS)
    tail = f"{_PART}{texts.reworded(f'{CELLS.removeprefix(_PART)}{cells}', 'note')}" if mark else ""
    starts = [0, *(found.end() for found in _COLUMN_END.finditer(own))]
    for start in starts:
        reworded = texts.reworded(own[start:], f"reject.{code}")
        if reworded != own[start:]:
            return _with_field(texts, own[:start] + reworded) + tail
    return own + tail


def _with_field(texts: Texts, words: str) -> str:
    """Words that begin with a field of the interface, or with a column: the field as people call it."""
    name, mark, rest = words.partition(": ")
    is_field = name != name.lower()  # a file may have a column `email` or `price`
    return f"{texts.field(name)}{mark}{rest}" if is_field else words


def reason_in(texts: Texts, words: str) -> str:
    """The words of a line that was sent, or not sent, part by part."""
    if texts.language == "en":
        return words
    return _PART.join(texts.reworded(part, "reason", "note") for part in words.split(_PART))
