"""A file and its mapping to inputs of the interface: ready ones, rejected ones with their reasons, skipped lines.

In: a file that the intake reads, and which column is which field. Out: a stream in the file's order, the same at each
walk. No body holds a password, and no reason holds what a cell says.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from collections.abc import Mapping as Map
from pathlib import Path
from typing import Any

import msgspec

from pipelines.intake import Table
from pipelines.mapping import Mapping
from sources.inputs import LoginMode


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


class Ready(msgspec.Struct, frozen=True):
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


class Rejected(msgspec.Struct, frozen=True):
    """An input that does not, and all that is wrong with it."""

    lines: tuple[int, ...]
    problems: tuple[Problem, ...]


class Skipped(msgspec.Struct, frozen=True):
    """Lines that are no input, and need not be."""

    lines: tuple[int, ...]
    why: str


class Inputs:
    """A file opened with its mapping; it may be walked any number of times.

    Attributes:
        kind: of the inputs.
        table: the file as the intake reads it.
        mapping: told or proposed.
        files: the file itself, the mapping and the lookups: what the inputs rest on.
        password_column: the column that holds the passwords; None where there is none.
        notes: what a person should know of how it was read, e.g. a field that the login mode ignores.
    """

    kind: str
    table: Table
    mapping: Mapping
    files: list[Path]
    password_column: str | None
    notes: list[str]

    def __iter__(self) -> Iterator[Ready | Rejected | Skipped]:
        """Each input where its first line stands.

        Raises:
            UsageError: the file cannot be read any further.
        """
        raise NotImplementedError

    def passwords(self, lines: Collection[int]) -> dict[int, str]:
        """The passwords on these lines, read from the file again."""
        raise NotImplementedError

    def cells(self, lines: Collection[int]) -> Iterator[tuple[int, tuple[str, ...]]]:
        """The cells of these lines as they stand in the file, in its order; of a refused line as many as it has."""
        raise NotImplementedError


def open_inputs(
    kind: str,
    file: Path,
    mapping: Mapping | None = None,
    *,
    login_mode: LoginMode | None = None,
    semantics: Map[str, str] | None = None,
) -> Inputs:
    """Opens a file as inputs of a kind.

    Args:
        kind: customers, variants, subcategories, warehouses.
        file: CSV or .xlsx.
        mapping: of its columns; None proposes one by their names.
        login_mode: of the customers.
        semantics: of the fields that are "added": field → `unknown`, `set`, `increment`.

    Raises:
        UsageError: the file cannot be read, or does not fit the mapping.
    """
    raise NotImplementedError
