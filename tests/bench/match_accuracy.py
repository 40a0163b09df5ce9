"""Precision and recall of the match with the ERP, compared with splink on the same rows: `make bench-accuracy`.

About 20,000 lines and customers are generated: families, branches, accountants, reused codes, lost zeros and typos
(`tests.transforms.erp.truth`). splink, a library of probabilistic record linkage, compares the same keys, names, phones
and addresses by edit distance and similarity, learns its weights from the rows, and links each line to its most
probable customer. It gets the rows as they are, and again normalized as ours are, with stand-ins made null.

    make bench-accuracy BENCH='--seed 21'
"""

from __future__ import annotations

import argparse
import logging
import sys
import time
import warnings
from collections.abc import Callable, Mapping

import pandas as pd
import pyarrow as pa

from orderbridge.transforms.erp.match_keys import MATCH_KEYS
from tests.transforms.erp.truth import Truth, accuracy, truth

KEYS = tuple(MATCH_KEYS)
NAMES = ("first_name", "last_name", "fiscal_name")
OTHERS = ("phone", "fiscal_address")
PROBABILITY_MIN = 0.95


def frames(known: Truth, is_normalized: bool) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Lines and customers as splink takes them: `unique_id` and the fields."""
    fields = [*KEYS, *NAMES, *OTHERS]
    left = pd.DataFrame(known.lines).reindex(columns=fields)
    left = left.assign(unique_id=[str(n) for n in range(2, len(left) + 2)])
    papers = (
        pd.DataFrame(known.documents)
        .set_index("customer_id")
        .rename(columns={"number": "document_number"})
    )
    right = pd.DataFrame(known.customers).assign(
        unique_id=[str(n) for n in range(1, len(known.customers) + 1)]
    )
    right = right.join(papers, on="unique_id")[[*fields, "unique_id"]]
    sides = (left, right)
    if is_normalized:
        sides = (_normalized(left), _normalized(right))
    return sides


def _normalized(rows: pd.DataFrame) -> pd.DataFrame:
    columns = {}
    for name in NAMES:
        columns[name] = (
            rows[name]
            .str.normalize("NFKD")
            .str.encode("ascii", "ignore")
            .str.decode("ascii")
            .str.lower()
        )
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
        comparisons=[
            *(library.LevenshteinAtThresholds(name, [1, 2]) for name in (*KEYS, *OTHERS)),
            *(library.JaroWinklerAtThresholds(name, [0.9, 0.7]) for name in NAMES),
        ],
        blocking_rules_to_generate_predictions=[block_on(name) for name in KEYS],
    )
    linker = Linker(
        [left, right], settings, DuckDBAPI(), input_table_aliases=["a_lines", "b_customers"]
    )
    linker.training.estimate_probability_two_random_records_match(
        [block_on("erp_code")], recall=0.8
    )
    linker.training.estimate_u_using_random_sampling(max_pairs=1_000_000, seed=1)
    for name in ("erp_code", "email"):
        linker.training.estimate_parameters_using_expectation_maximisation(block_on(name))
    pairs = linker.inference.predict(
        threshold_match_probability=PROBABILITY_MIN
    ).as_pandas_dataframe()
    best = pairs.sort_values(["match_probability", "match_weight"], ascending=False, kind="stable")
    best = best.drop_duplicates("unique_id_l").drop_duplicates("unique_id_r")
    return {
        int(line): str(customer)
        for line, customer in zip(best["unique_id_l"], best["unique_id_r"], strict=True)
    }


def by_splink(seed: int, is_normalized: bool) -> tuple[float, float]:
    known = truth(seed)
    links = linked(*frames(known, is_normalized))
    right = sum(known.customer_of_line.get(line) == customer for line, customer in links.items())
    return right / len(links), right / len(known.customer_of_line)


def main() -> int:
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
        print(
            f"{name:<20}{precision:>10.4f}{recall:>10.4f}{time.perf_counter() - begun:>8.1f}",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
