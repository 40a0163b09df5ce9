"""What a frame is here: Arrow-backed columns, so that a null stays null, a bigint no float, and money decimal.

In: Arrow tables, as the warehouse gives them, or rows of a test. Out: pandas frames with a declared type per column,
and Arrow tables again. Every transform takes such frames and gives such frames, with its columns in a declared order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa

Schema = Mapping[str, pa.DataType]
Ints = npt.NDArray[np.int64]
Bools = npt.NDArray[np.bool_]

TEXT: Final = pa.string()
BIGINT: Final = pa.int64()
BOOLEAN: Final = pa.bool_()
DATE: Final = pa.date32()
TIMESTAMP: Final = pa.timestamp("us", "UTC")
MONEY: Final = pa.decimal128(38, 9)


def from_arrow(table: pa.Table) -> pd.DataFrame:
    """A frame of a table's columns, each of the type that it has there."""
    made: pd.DataFrame = table.to_pandas(types_mapper=pd.ArrowDtype)
    return made


def to_arrow(frame: pd.DataFrame, schema: Schema) -> pa.Table:
    """A table with exactly these columns in this order.

    Raises:
        KeyError: a column is not in the frame.
        pa.ArrowInvalid: a value does not fit its column's type.
    """
    return pa.Table.from_pandas(frame[list(schema)], pa.schema(list(schema.items())), preserve_index=False)


def frame(schema: Schema, rows: Iterable[Mapping[str, Any]] = ()) -> pd.DataFrame:
    """A frame of these rows; a column that a row does not name is null there."""
    return from_arrow(pa.Table.from_pylist([dict(row) for row in rows], pa.schema(list(schema.items()))))


def array(column: pd.Series[Any]) -> pa.Array:
    """The Arrow array of a frame's column, in one chunk."""
    values = pa.array(column.array)
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def typed(columns: pd.DataFrame, schema: Schema) -> pd.DataFrame:
    """The frame with exactly these columns, in this order and of these types."""
    return from_arrow(to_arrow(columns, schema))
