"""The evidence about the column of the customer."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from orderbridge.transforms.customer_evidence import customer_evidence
from orderbridge.transforms.customer_index import CustomerIndex
from orderbridge.transforms.field_evidence import ExaminedColumns
from orderbridge.transforms.frames import column, constant


@pytest.mark.parametrize("step", [1, -1, 7])
def test_examples_are_the_same_in_whatever_order_threads_group_the_rows(step: int) -> None:
    ids = [f"{100 + step * n % 300}" for n in range(300)]
    values = pd.DataFrame({"customer_id": column(pa.array(ids))})
    known = values.assign(
        erp_code=constant(None, values.index), is_missing=constant(False, values.index, pa.bool_())
    )
    orders: Any = SimpleNamespace(
        kinds={"customer_id": pa.string()},
        keys=(),
        rows=300,
        distinct=lambda names: values.assign(row_count=1)[[*names, "row_count"]],
    )
    columns = ExaminedColumns(orders, {}, ["customer_id"], {}, {}, {}, {}, {})
    evidence = customer_evidence(orders, CustomerIndex.of(known), columns, {})
    assert columns.examples["customer_id"] == ["100", "101", "102"]
    assert evidence.proposal == "customer_id"
