"""Which column of a file is which field of the interface: told in a TOML file, or proposed by the columns' names.

In: a mapping file, or the names of columns. Out: a `Mapping`, and its TOML.
"""

from __future__ import annotations

from pipelines.mapping.model import Blank, Formats, Lookup, Make, MappedColumn, Mapping, Scalar
from pipelines.mapping.propose import propose
from pipelines.mapping.read import load
from pipelines.mapping.write import to_toml

__all__ = ["Blank", "Formats", "Lookup", "Make", "MappedColumn", "Mapping", "Scalar", "load", "propose", "to_toml"]
