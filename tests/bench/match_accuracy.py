"""Precision and recall of the match with the ERP, compared with splink on the same rows: `make bench-accuracy`.

20,000 lines and customers are generated, with typos, swapped cells, shared mailboxes, stand-ins and accents
(`tests.transforms.erp.test_accuracy`). splink, a library of probabilistic record linkage, compares the same four keys
by edit distance, learns its weights from the rows, and links each line to its most probable customer. It gets the rows
as they are, and again normalized as ours are, with stand-ins made null.

    make bench-accuracy BENCH='--seed 21'
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import pandas as pd
import pyarrow as pa

from tests.transforms.erp.test_accuracy import accuracy, sides
from transforms.erp.match_keys import MATCH_KEYS

KEYS = tuple(MATCH_KEYS)
PROBABILITY_MIN = 0.95
Rows = list[dict[str, Any]]


def frames(lines: Rows, known: Rows, papers: Rows, is_normalized: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Lines and customers as splink takes them: `unique_id` and the four keys."""
    numbers = {paper["customer_id"]: paper["number"] for paper in papers}
    left = pd.DataFrame(lines, columns=list(KEYS)).assign(unique_id=[str(n) for n in range(2, len(lines) + 2)])
    right = pd.DataFrame(known, columns=list(KEYS)).assign(unique_id=[str(n) for n in range(1, len(known) + 1)])
    right["document_number"] = right["unique_id"].map(numbers)
    if is_normalized:
        left, right = (_normalized(side) for side in (left, right))
    return left, right


def _normalized(rows: pd.DataFrame) -> pd.DataFrame:
    columns = {}
    for name, key in MATCH_KEYS.items():
        values = key.normalize(rows[name].astype(pd.ArrowDtype(pa.string())))
        columns[name] = values.where(key.identifies(values))
    return rows.assign(**columns)


def linked(left: pd.DataFrame, right: pd.DataFrame) -> dict[int, str]:
    """The most probable customer of each line, by splink; a customer is that of its most probable line only."""
    import splink.comparison_library as library
    from splink import DuckDBAPI, Linker, SettingsCreator, block_on

    settings = SettingsCreator(
        link_type="link_only",
        comparisons=[library.LevenshteinAtThresholds(name, [1, 2]) for name in KEYS],
        blocking_rules_to_generate_predictions=[block_on(name) for name in KEYS],
    )
    linker = Linker([left, right], settings, DuckDBAPI(), input_table_aliases=["a_lines", "b_customers"])
    linker.training.estimate_probability_two_random_records_match([block_on("erp_code")], recall=0.8)
    linker.training.estimate_u_using_random_sampling(max_pairs=1_000_000, seed=1)
    for name in ("erp_code", "email"):
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(name))
    pairs = linker.inference.predict(threshold_match_probability=PROBABILITY_MIN).as_pandas_dataframe()
    best = pairs.sort_values(["match_probability", "match_weight"], ascending=False, kind="stable")
    best = best.drop_duplicates("unique_id_l").drop_duplicates("unique_id_r")
    return {int(line): str(customer) for line, customer in zip(best["unique_id_l"], best["unique_id_r"], strict=True)}


def by_splink(seed: int, is_normalized: bool) -> tuple[float, float]:
    """Precision and recall of splink's links."""
    lines, known, papers, truth = sides(seed)
    links = linked(*frames(lines, known, papers, is_normalized))
    right = sum(truth.get(line) == customer for line, customer in links.items())
    return right / len(links), right / len(truth)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser("make bench-accuracy")
    parser.add_argument("--seed", type=int, default=20)
    seed = parser.parse_args().seed
    contenders: Mapping[str, Callable[[], tuple[float, float]]] = {
        "ours": lambda: accuracy(seed),
        "splink": lambda: by_splink(seed, False),
        "splink, normalized": lambda: by_splink(seed, True),
    }
    warnings.simplefilter("ignore")
    logging.getLogger("splink").setLevel(logging.ERROR)
    print(f"{'contender':<20}{'precision':>10}{'recall':>10}{'s':>8}")
    for name, measure in contenders.items():
        begun = time.perf_counter()
        precision, recall = measure()
        print(f"{name:<20}{precision:>10.4f}{recall:>10.4f}{time.perf_counter() - begun:>8.1f}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
