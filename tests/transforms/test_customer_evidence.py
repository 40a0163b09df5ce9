"""The evidence about the column of the customer."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from orderbridge.transforms.frames import column, constant
from orderbridge.transforms.orders.customer_evidence import customer_evidence
from orderbridge.transforms.orders.customer_index import CustomerIndex
from orderbridge.transforms.orders.field_evidence import ExaminedColumns


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


def test_codes_without_zeros_put_ids_in_doubt_and_are_codes_if_a_person_says_so() -> None:
    """Of 60 customers, the code of each is its id and 20 with zeros in front: `21` may be two of them."""
    ids = [str(n) for n in range(1, 61)]
    codes = [f"{n + 20:05d}" for n in range(1, 61)]
    customers = pd.DataFrame({"customer_id": ids, "erp_code": codes, "is_missing": False})
    index = CustomerIndex.of(customers)
    values = column(pa.array([str(n) for n in range(21, 81)]))

    found = index.match(values, "kd_nr")
    assert (found.ids, found.codes, found.bare, found.is_unproven) == (40, 60, 60, True)
    assert found.customer_id.isna().all()
    assert "60 are ERP codes (60 without zeros in front)" in found.evidence

    answered = index.match(values, "kd_nr", "codes")
    assert answered.customer_id.tolist() == ids
    assert not answered.is_contradicted

    # what was only assumed takes no other code for one
    assert index.match(values, "kd_nr", "codes", is_assumed=True).customer_id.isna().all()

    # who has said that they are ids is not asked again
    assert not index.match(values, "kd_nr", "ids").is_contradicted

    # where the ids fit, nothing is in doubt; a bare form of two codes names neither
    own = index.match(column(pa.array(ids)), "kd_nr")
    assert (own.ids, own.bare, own.is_unproven) == (60, 0, False)
    twice = CustomerIndex.of(customers.assign(erp_code=["007", "07", *codes[2:]]))
    assert twice.match(column(pa.array(["7"])), "kd_nr", "codes").customer_id.isna().all()


def test_a_column_of_addresses_is_offered_to_people_and_never_proposed() -> None:
    emails = [f"buyer{n}@example.com" for n in range(20)]
    written = [email.upper() if n % 2 else email for n, email in enumerate(emails)]
    values = pd.DataFrame({"customer": column(pa.array(written))})
    ids = column(pa.array([f"{n}" for n in range(20)]))
    known = pd.DataFrame({"customer_id": ids, "erp_code": constant(None, ids.index)})
    known["is_missing"] = constant(False, ids.index, pa.bool_())
    by_email = known.drop(columns="erp_code").assign(
        email_normalized=column(pa.array([*emails[:18], *emails[:1], None]))
    )
    index = replace(CustomerIndex.of(known), emails=lambda: by_email)
    match = index.match(values["customer"], "customer")
    assert [*match.customer_id.dropna()] == [f"{n}" for n in range(1, 18)]
    assert [*values["customer"][match.is_ambiguous]] == [emails[0]]
    assert match.evidence == "0 of 20 are ids of customers, 18 are e-mail addresses of customers"
    # an address is no number: with a zero in front it is another one
    zeros = by_email.assign(email_normalized=[f"0{email}" for email in emails])
    others = replace(index, emails=lambda: zeros).match(values["customer"], "customer")
    assert others.customer_id.isna().all()
    for name in ("customer", "buyer_contact"):
        named = values.rename(columns={"customer": name})
        orders: Any = SimpleNamespace(
            kinds={name: pa.string()},
            keys=(),
            rows=20,
            distinct=lambda names, named=named: named.assign(row_count=1)[[*names, "row_count"]],
        )
        columns = ExaminedColumns(orders, {}, [name], {}, {}, {}, {}, {})
        evidence = customer_evidence(orders, index, columns, {})
        assert evidence.proposal is None
        assert [choice.value for choice in evidence.choices] == [name]
        assert "@" not in evidence.choices[0].evidence
