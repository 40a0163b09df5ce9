"""The customers made in buckets are those made at once: the same rows and findings, whatever the customers share."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any
from unittest.mock import patch

import duckdb
import pytest
from pandas.testing import assert_frame_equal

from pipelines.reconcile import customers_on_cluster
from pipelines.warehouse.tables import replace
from tests.pipelines.reconcile.test_match_on_cluster import Here
from tests.transforms.test_customers import AS_OF
from transforms.customers import CUSTOMERS, LISTED_PRICE_LISTS, RAW_CUSTOMERS, customers
from transforms.dates import DateContext
from transforms.documents import RAW_DOCUMENTS
from transforms.frames import frame, from_arrow, typed

DATES = {"iso": "2024-0{}-15T10:00:00", "ambiguous": "0{}/0{}/2024"}


@pytest.mark.parametrize(("dates", "gap"), [("iso", "the list is unproven"), ("ambiguous", "")])
def test_issue_16_3_the_customers_in_buckets_are_the_customers(tmp_path: Path, dates: str, gap: str) -> None:
    chance = random.Random(dates + gap)

    def text(letter: str) -> str | None:
        return chance.choice([f"{letter}{chance.randint(1, 60)}", f" {letter}{chance.randint(1, 9)} ", "", None])

    def row(number: int) -> dict[str, Any]:
        return {
            "id": chance.choice([str(number)] * 9 + ["7", " ", None]),
            "email": chance.choice([f"{text('e')}@x", f"{text('E')}@x", text("e")]),
            "created_at": chance.choice([DATES[dates].format(number % 9 + 1, number % 7 + 1)] * 8 + ["soon", None]),
            "price_list_id": chance.choice(["1", "1.0", "2", "9", "x", "-1", None]),
            "_missing_since": chance.choice([None, None, None, AS_OF]),
            **{name: text(name[0]) for name in ("first_name", "last_name", "phone", "login_code", "erp_code")},
        }

    raw = frame(RAW_CUSTOMERS, [row(number) for number in range(150)])
    documents = frame(
        RAW_DOCUMENTS,
        [
            {"customer_id": str(chance.randint(0, 170)), "position": chance.randint(0, 2), "number": text("D")}
            | {name: chance.choice([True, False, None]) for name in ("is_default", "for_taxes")}
            for _ in range(200)
        ],
    )
    lists = frame(LISTED_PRICE_LISTS, [{"id": "1", "name": "A"}, {"id": "2", "name": "B", "_missing_since": AS_OF}])
    table, findings, dates_read = customers(raw, documents, lists, DateContext(AS_OF), gap)
    with duckdb.connect(str(tmp_path / "build.duckdb")) as build:
        build.execute("SET TimeZone = 'UTC'; CREATE SCHEMA raw; CREATE SCHEMA reconciled")
        for name, rows in (("customers", raw), ("customers__documents", documents)):
            replace(build, name, rows)
            build.execute(f"CREATE TABLE raw.{name} AS FROM reconciled.{name}")
        with patch.object(customers_on_cluster, "ROWS_PER_BUCKET", 120):
            there = customers_on_cluster.customers_on_cluster(build, lists, DateContext(AS_OF), gap, Here(""))
        assert_frame_equal(typed(from_arrow(build.table("reconciled.customers").to_arrow_table()), CUSTOMERS), table)
    assert_frame_equal(there[0], findings)
    assert (there[1].form, there[1].evidence) == (dates_read.form, dates_read.evidence)
    rules = set(findings["rule"])
    assert {"id_missing", "id_duplicate", "document_number_shared", "email_duplicate", "document_orphan"} <= rules
    assert ("price_lists_unproven" in rules) == bool(gap)
    assert list(tmp_path.iterdir()) == [tmp_path / "build.duckdb"]
