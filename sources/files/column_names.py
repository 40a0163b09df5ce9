"""The names of columns: as they are compared, and different from each other.

In: the cells of the header. Out: names.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from typing import Final

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.cell_types import unmarked
from orderbridge.sources.files.model import MAX_COLUMNS

MAX_ACRONYM: Final = 4
_NO_NAME: Final = "column"
_NUMBERED: Final = re.compile(rf"{_NO_NAME}_[0-9]+")


def column_name(text: str) -> str:
    """A name as it is compared: spaces single, accents composed, which is how they are typed; `="Name"` is `Name`."""
    return unicodedata.normalize("NFC", " ".join(unmarked(text.strip()).split()))


def numbered_names(names: list[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names, empty and repeated ones numbered without taking another name; and those that were."""
    if len(names) > MAX_COLUMNS:
        raise UsageError(
            f"the header has {len(names)} columns; the limit is {MAX_COLUMNS}",
            "Try another --delimiter.",
        )
    taken = set(names)
    seen = Counter[str]()
    columns: list[str] = []
    renamed: list[str] = []
    for position, name in enumerate(names, 1):
        seen[name] += 1
        column = name
        if not name or seen[name] > 1:
            column = _free_name(name or _NO_NAME, seen[name] if name else position, taken)
            taken.add(column)
            renamed.append(column)
        columns.append(column)
    return tuple(columns), tuple(renamed)


def is_without_name(column: str) -> bool:
    """Whether a column has the number that `numbered_names` gives to one without a name."""
    return _NUMBERED.fullmatch(column) is not None


def _free_name(name: str, count: int, taken: set[str]) -> str:
    """A name with a number, at least `count`, that no column has."""
    while (column := f"{name}_{count}") in taken:
        count += 1
    return column


def is_one_name(name: str) -> bool:
    """Whether a name cannot be two that lost the delimiter between them: no capital but the first, or a short one."""
    first, *others = name.split() or [""]
    is_short = first.isupper() and len(first) <= MAX_ACRONYM
    is_word = first[:1].isupper() and first[1:].islower()
    return (is_short or is_word) and all(word.islower() or word.isdecimal() for word in others)
