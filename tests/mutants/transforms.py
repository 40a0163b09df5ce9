"""Planted bugs in the transforms: keys, numbers, dates, statuses, the match with the ERP."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutant import Mutant

MUTANTS: Final = (
    Mutant(
        "a-promotion-past-its-end-is-running",
        "transforms/promotions.py",
        '(ends["latest_end"] <= as_of, "expired"),',
        "",
        "tests/transforms/test_promotions.py",
    ),
    Mutant(
        "a-circle-of-price-lists-is-a-chain",
        "transforms/price_lists.py",
        '(is_cycle, "cycle"), ',
        "",
        "tests/transforms/test_price_lists.py",
    ),
    Mutant(
        "an-id-loses-its-leading-zeros",
        "transforms/keys.py",
        "    return without_zero_fraction(clean_text(ids))",
        '    return without_zero_fraction(clean_text(ids).str.lstrip("0"))',
        "tests/transforms/test_keys.py tests/transforms/test_customers.py",
    ),
    Mutant(
        "an-ambiguous-number-is-guessed",
        "transforms/numbers.py",
        '            return "ambiguous"\n',
        '            return "comma"\n',
        "tests/transforms/test_numbers.py",
    ),
    Mutant(
        "a-number-of-more-digits-than-a-double-holds-is-sent",
        "transforms/numbers.py",
        "DOUBLE_DIGITS_MAX: Final = 15",
        "DOUBLE_DIGITS_MAX: Final = 17",
        "tests/transforms/test_numbers.py tests/transforms/upserts",
    ),
    Mutant(
        "a-pair-whose-other-keys-differ-is-matched",
        "transforms/erp/decide.py",
        "is_possible[rows] & (weight[rows] >= CERTAIN_FROM)",
        "is_possible[rows].copy()",
        "tests/transforms/erp/test_match.py tests/transforms/erp/test_evidence.py",
    ),
    Mutant(
        "the-last-part-decides-the-form-of-dates",
        "transforms/dates.py",
        "self._proofs.get(family.name, FormEvidence()) + family.examine()",
        "family.examine()",
        "tests/transforms/test_dates.py tests/pipelines/reconcile/test_parts.py",
    ),
    Mutant(
        "buckets-separate-rows-that-a-key-connects",
        "transforms/erp/components.py",
        'is_pair = links["home"] != other',
        'is_pair = links["home"] < other',
        "tests/transforms/erp/test_components.py tests/pipelines/reconcile/test_match.py",
    ),
    Mutant(
        "contradicting-lines-of-a-key-are-merged",
        "transforms/upserts/decisions.py",
        "        is_conflicting[order[is_new]] = True\n",
        "",
        "tests/transforms/upserts/test_decisions.py tests/pipelines/plan/test_make.py -k duplicate or same",
    ),
)
