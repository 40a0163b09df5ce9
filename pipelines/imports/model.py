"""What the lines of a file become: ready inputs, rejected inputs, or skipped lines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec
import pyarrow as pa

from orderbridge.sources.errors import UsageError


class CurrencyChange(NamedTuple):
    """The sign or code of the currency that a mapping names, and that of the numbers."""

    named: str
    found: str


class OtherCurrency(UsageError):
    """Columns whose numbers have another currency than the one that the mapping names.

    Attributes:
        columns: the change, by column.
    """

    def __init__(self, columns: Mapping[str, CurrencyChange], mapping: Path | None) -> None:
        self.columns = columns
        changes = [
            f"{name}: amounts in {change.found}, and the mapping names {change.named}"
            for name, change in columns.items()
        ]
        super().__init__(
            "; ".join(changes),
            "Nothing was sent. If the platform's amounts are in that currency, import the file in a terminal, which "
            f"asks, or change currency of the column in {mapping}; otherwise correct the file.",
        )


class Problem(msgspec.Struct, frozen=True):
    """Why an input is rejected.

    Attributes:
        column: the column of the file; empty if no single column is at fault.
        field: the field path; empty if the whole line is at fault.
        code: a stable code for scripts.
        words: the explanation for people; never contains the cell's value.
        line: the line of the cell; 0 if the input as a whole is at fault.
        cell: the text that could not be read, for private files; empty if no single cell is at fault.
    """

    column: str
    field: str
    code: str
    words: str
    line: int = 0
    cell: str = ""


class ReadyInputs(NamedTuple):
    """Inputs that meet every limit of the interface, in the order of the file.

    Attributes:
        lines: their 1-based lines in the file, a list each, ascending.
        columns: parameters of the request's path and texts of the body as they are; other fields of the body as JSON
            texts; in the contract's order, null where absent.
    """

    lines: pa.ListArray
    columns: dict[str, pa.Array]


class RejectedInput(msgspec.Struct, frozen=True):
    """An input that is not sent, with all of its problems."""

    lines: tuple[int, ...]
    problems: tuple[Problem, ...]


class SkippedLine(msgspec.Struct, frozen=True):
    """Lines that are not an input, and why that is expected."""

    lines: tuple[int, ...]
    reason: str


Item = ReadyInputs | RejectedInput | SkippedLine
