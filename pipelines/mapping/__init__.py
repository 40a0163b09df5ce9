"""Column mappings: which column of a file fills which field of the interface.

In: a mapping file (TOML), or the column names of an input file. Out: a `Mapping`, loaded or proposed, and its TOML.
"""

from __future__ import annotations

from orderbridge.pipelines.mapping.column_names import normalize
from orderbridge.pipelines.mapping.column_values import are_phrases
from orderbridge.pipelines.mapping.model import (
    Blank,
    Formats,
    Lookup,
    MappedColumn,
    Mapping,
    Scalar,
)
from orderbridge.pipelines.mapping.propose import (
    assume,
    contested_columns,
    doubts,
    is_empty,
    is_improbable,
    propose,
    sample,
    sample_of_all,
)
from orderbridge.pipelines.mapping.read import OutsideLookup, load, parse
from orderbridge.pipelines.mapping.write import to_toml

__all__ = [
    "Blank",
    "Formats",
    "Lookup",
    "MappedColumn",
    "Mapping",
    "OutsideLookup",
    "Scalar",
    "are_phrases",
    "assume",
    "contested_columns",
    "doubts",
    "is_empty",
    "is_improbable",
    "load",
    "normalize",
    "parse",
    "propose",
    "sample",
    "sample_of_all",
    "to_toml",
]
