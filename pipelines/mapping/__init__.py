"""Which column of a file is which field of the interface: told in a TOML file, or proposed by the columns' names.

In: a mapping file, or the names of columns. Out: a `Mapping`, and its TOML.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from pipelines.mapping.model import Blank, Column, Formats, Lookup, Make, Mapping, Scalar

__all__ = ["Blank", "Column", "Formats", "Lookup", "Make", "Mapping", "Scalar", "load", "propose", "to_toml"]


def load(path: Path, kind: str | None = None) -> Mapping:
    """Reads a mapping file.

    Args:
        path: of the file.
        kind: what it should be a mapping of; None takes any.

    Raises:
        UsageError: it is no mapping, with the file, the line and what is wrong.
    """
    raise NotImplementedError


def propose(columns: Sequence[str], kind: str) -> Mapping:
    """A mapping by the names of columns; those that fit no field are in its `unknown`.

    Raises:
        UsageError: two columns would be the same field.
    """
    raise NotImplementedError


def to_toml(mapping: Mapping) -> str:
    """A mapping as TOML; it reads back as the same mapping."""
    raise NotImplementedError
