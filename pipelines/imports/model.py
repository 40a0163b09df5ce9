"""What a file's lines become: an input that is ready, one that is rejected, or none."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec

MAX_NAMED: Final = 10
"""Columns that an error names; a file may have thousands."""


class Problem(msgspec.Struct, frozen=True):
    """Why an input is rejected.

    Attributes:
        column: of the file; empty where no one column is at fault.
        field: its path; empty where the whole line is at fault.
        code: stable, for machines.
        words: for people; they never hold what the cell says.
        line: of the cell; 0 where it is the input as a whole.
    """

    column: str
    field: str
    code: str
    words: str
    line: int = 0


class ReadyInput(msgspec.Struct, frozen=True):
    """An input that holds to the interface.

    Attributes:
        lines: of the file, 1-based, in order.
        path: parameters of the request's path.
        body: fields in the contract's order; numbers are Decimals, to be written with all their digits.
        password_line: the line whose password it is; None where none is given.
    """

    lines: tuple[int, ...]
    path: dict[str, str]
    body: dict[str, Any]
    password_line: int | None = None


class RejectedInput(msgspec.Struct, frozen=True):
    """An input that does not hold to it, and all that is wrong with it."""

    lines: tuple[int, ...]
    problems: tuple[Problem, ...]


class SkippedLine(msgspec.Struct, frozen=True):
    """Lines that are no input, and need not be."""

    lines: tuple[int, ...]
    why: str


Item = ReadyInput | RejectedInput | SkippedLine


def named(names: Sequence[str], told: Callable[[str], str] = str) -> str:
    """The first of many names in a row, each as it is told, and how many more there are."""
    row = ", ".join(map(told, names[:MAX_NAMED]))
    return f"{row} and {len(names) - MAX_NAMED:,} more" if len(names) > MAX_NAMED else row
