"""A batch in the types that a pipeline of a user has stored: drift in undocumented fields stops no load.

In: a batch as a walk typed it, and the types of the pipeline's columns. Out: the batch in these types, so that no
column is narrower than it was; values that do not fit are in a column of their own, named as dlt names its variants
(`total__v_decimal`).
"""

from __future__ import annotations

from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.sources.decode.column_kinds import ARROW, ColumnKind
from orderbridge.sources.decode.json_numbers import Number
from orderbridge.sources.decode.values import coerced

_KINDS: Final[dict[str, ColumnKind]] = {
    "text": "text",
    "bigint": "bigint",
    "decimal": "decimal",
    "bool": "boolean",
}
"""The kinds of columns by dlt's types."""
_BY_ARROW: Final = {ARROW[kind]: name for name, kind in _KINDS.items()}
_CASTS: Final = {("bigint", "decimal"), ("decimal", "bigint"), ("bigint", "text"), ("bool", "text")}
"""Types between which Arrow casts as rows are cast. Of texts it would make numbers of codes: `007` would be 7."""
_DOUBLE: Final = "double"
"""The type of numbers with a fraction in columns that version 0.2 made."""


def as_stored(batch: pa.Table, stored: Mapping[str, str]) -> tuple[pa.Table, list[str]]:
    """Casts the columns whose type is not the stored one.

    Args:
        batch: of one table.
        stored: dlt's types of columns, by name; a column that is not there keeps its type.

    Returns:
        The batch, and the names of the columns that were split off.
    """
    columns: dict[str, pa.ChunkedArray] = {}
    variants = []
    for name, values in zip(batch.column_names, batch.columns, strict=True):
        columns[name] = values
        own = _BY_ARROW.get(values.type)
        kind = stored.get(name, own)
        if kind == _DOUBLE and own in ("bigint", "decimal"):
            # directly, 1905.33 is ….3300000000002
            columns[name] = pc.cast(pc.cast(values, pa.string()), pa.float64())
        if own is None or kind == own or kind not in _KINDS:
            continue
        columns[name], others = _split(values, own, kind)
        if others is not None:
            variants.append(f"{name}__v_{own}")
            columns[variants[-1]] = others
    return pa.table(columns), variants


def _split(
    values: pa.ChunkedArray, own: str, stored: str
) -> tuple[pa.ChunkedArray, pa.ChunkedArray | None]:
    """The values in the stored type, and those that it does not hold; None if there are none."""
    kind = _KINDS[stored]
    if (own, stored) in _CASTS:
        try:
            return pc.cast(values, ARROW[kind]), None
        except pa.ArrowInvalid:
            pass
    pairs = [(value, _fitted(kind, value)) for value in values.to_pylist()]
    fitting = pa.chunked_array([pa.array([fit for _, fit in pairs], ARROW[kind])])
    if fitting.null_count == values.null_count:
        return fitting, None
    others = [None if fit is not None else value for value, fit in pairs]
    return fitting, pa.chunked_array([pa.array(others, values.type)])


def _fitted(kind: ColumnKind, value: Any) -> object:  # noqa: ANN401 # of any column
    """A value as a column of this kind holds it, exactly; None if it does not."""
    plain = value if isinstance(value, (bool, str)) or value is None else Number(str(value))
    fitted = None if plain is None else coerced(kind, plain)
    return None if isinstance(fitted, Decimal) and fitted != Decimal(str(plain)) else fitted
