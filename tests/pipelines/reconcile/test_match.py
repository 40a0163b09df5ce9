"""The match in buckets is the match: the same rows, differences and findings, whatever connects the rows."""

from __future__ import annotations

import random
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import duckdb
import pandas as pd
import pytest
from pandas.testing import assert_frame_equal

from pipelines.reconcile import match as match_module
from pipelines.reconcile.parts import Findings, Parts
from pipelines.warehouse.sql import replace
from tests.transforms.erp.test_match import GONE, customers, documents, erp
from tests.transforms.erp.truth import truth
from tests.transforms.erp.whole import MatchResult, hashes, match
from transforms.erp.match import REVIEWS
from transforms.erp.match_keys import MATCH_KEYS
from transforms.erp.tables import ERP_CUSTOMERS, ERP_DIFFERENCES, ERP_PAIRS
from transforms.frames import frame, from_arrow, typed


def match_in_buckets(
    lines: pd.DataFrame,
    known: pd.DataFrame,
    papers: pd.DataFrame,
    reviews: pd.DataFrame | None = None,
) -> MatchResult:
    """The match by way of a build on disk, and of files and buckets of two rows."""
    with TemporaryDirectory() as folder, duckdb.connect(f"{folder}/build.duckdb") as build:
        build.execute("SET TimeZone = 'UTC'; CREATE SCHEMA raw; CREATE SCHEMA reconciled")
        replace(build, "customers", known.assign(is_missing=known["_missing_since"].notna()))
        replace(build, "papers", papers)
        build.execute("CREATE TABLE raw.customers__documents AS FROM reconciled.papers")
        findings, repeated = match_module.match_lines(Parts(build, Findings(Path(folder))), lines, "PE", reviews)
        rows, pairs, differences = (
            typed(from_arrow(build.sql(f"FROM reconciled.{name}").to_arrow_table()), schema)
            for name, schema in (
                ("erp_customers", ERP_CUSTOMERS),
                ("erp_pairs", ERP_PAIRS),
                ("erp_differences", ERP_DIFFERENCES),
            )
        )
    return MatchResult(rows, pairs, differences, findings, repeated)


def assert_equal(whole: MatchResult, parts: MatchResult) -> None:
    for name in ("customers", "pairs", "differences", "findings"):
        assert_frame_equal(getattr(whole, name), getattr(parts, name))
    assert whole.repeated == parts.repeated


def some_frames(seed: int) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Families, branches, typos and stand-ins; some lines are repeated, or have another's code, some customers gone."""
    chance, known = random.Random(seed), truth(seed, 200)
    for line in chance.sample(known.lines, 20):
        line["erp_code"] = chance.choice(known.lines)["erp_code"]
    for gone in chance.sample(known.customers, 30):
        gone["_missing_since"] = GONE
    lines = [*known.lines, *chance.sample(known.lines, 20), {"phone": "7"}, {"erp_code": "0"}, {"erp_code": "0 "}]
    return erp(*lines), customers(*known.customers), documents(*known.documents)


def _some_reviews(made: MatchResult, seed: int) -> pd.DataFrame:
    """Half of them accept a pair of rows that have nothing in common."""
    chance = random.Random(seed)
    known = made.pairs.drop_duplicates("line").drop_duplicates("customer_id").sample(20, random_state=seed)
    ids = known["customer_id"].tolist()
    others = [*ids[:10], *chance.sample(ids[10:], 10)]
    rows = zip(known["line_key"], others, strict=True)
    return frame(
        REVIEWS,
        [{"line_key": key, "customer_id": one, "is_accepted": n >= 10} for n, (key, one) in enumerate(rows)],
    )


@pytest.mark.parametrize(("seed", "frequent", "rows"), [(2, 3, 250), (1, 50, 10**6)])
def test_the_match_in_buckets_is_the_match(seed: int, frequent: int, rows: int) -> None:
    frames = some_frames(seed)
    with (
        patch.multiple(match_module, ROWS_PER_BUCKET=rows, hash_texts=hashes),
        patch("pipelines.reconcile.parts.PART_ROWS", 60),
        patch("transforms.erp.candidates.FREQUENT", frequent),
    ):
        whole = match(*frames, country="PE")
        assert_equal(whole, match_in_buckets(*frames))
        reviews = _some_reviews(whole, seed)
        reviewed = match(*frames, country="PE", reviewed=reviews)
        assert_equal(reviewed, match_in_buckets(*frames, reviews=reviews))
    assert (reviewed.customers["matched_by"] == "reviewed").sum() > 5
    assert set(whole.customers["status"]) == {"matched", "ambiguous", "only_in_erp", "only_in_platform"}
    assert set(whole.customers["matched_by"].dropna()) == set(MATCH_KEYS)
