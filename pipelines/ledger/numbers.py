"""Numbers of operations as people write them: `17`, `17,20-24`."""

from __future__ import annotations

import re
from typing import Final

from orderbridge.sources.errors import UsageError

_NUMBERS: Final = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_RANGE_MAX: Final = 1_000_000


def operation_numbers(text: str) -> set[int]:
    """The numbers in a text. Raises UsageError."""
    numbers: set[int] = set()
    for part in text.split(","):
        match = _NUMBERS.fullmatch(part.strip())
        if match is None:
            raise UsageError(f"{part!r} is not the number of an operation, such as 17 or 20-24")
        first = int(match[1])
        last = int(match[2] or match[1])
        if last < first:
            raise UsageError(f"{part!r} ends before it begins: write {last}-{first}")
        if last - first > _RANGE_MAX:
            raise UsageError(f"{part!r} is too long a range")
        numbers.update(range(first, last + 1))
    return numbers
