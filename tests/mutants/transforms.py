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
    Mutant(
        "of-two-customers-who-fit-alike-one-is-matched",
        "transforms/erp/decide.py",
        "MARGIN: Final = 3",
        "MARGIN: Final = 0",
        "tests/transforms/erp/test_match.py -k several_customers",
    ),
    Mutant(
        "a-line-whose-code-a-matched-customer-has-is-only-in-the-erp",
        "transforms/erp/decide.py",
        'is_open &= ~is_decided[1] | evidence.equal["erp_code"]',
        "is_open &= ~is_decided[1]",
        "tests/transforms/erp/test_evidence.py tests/transforms/erp/test_laws.py",
    ),
    Mutant(
        "what-is-left-of-a-shared-key-is-not-decided-again",
        "transforms/erp/decide.py",
        "        rows = rows[~_shares_a_row(left, is_best)]\n",
        "        break\n",
        "tests/transforms/erp/test_evidence.py -k left_of",
    ),
    Mutant(
        "a-new-contact-of-a-firm-breaks-its-match",
        "transforms/erp/candidates.py",
        "_PERSON_DIFFERS: Final = -5",
        "_PERSON_DIFFERS: Final = -50",
        "tests/transforms/erp/test_evidence.py",
    ),
    Mutant(
        "equal-stand-ins-count-as-keys",
        "transforms/erp/candidates.py",
        "equal[field] = agrees & is_known",
        "equal[field] = agrees",
        "tests/transforms/erp/test_evidence.py tests/transforms/erp/test_laws.py",
    ),
    Mutant(
        "names-in-another-column-are-others",
        "transforms/erp/candidates.py",
        "(common > 1) & (common == least)",
        "(common > 99) & (common == least)",
        "tests/transforms/erp/test_evidence.py",
    ),
    Mutant(
        "only-the-default-document-is-compared",
        "transforms/erp/compare.py",
        "    is_named = at >= 0\n",
        "    is_named = at < -1\n",
        "tests/transforms/erp/test_evidence.py tests/transforms/erp/test_match.py",
    ),
    Mutant(
        "a-rejected-pair-comes-back",
        "transforms/erp/match.py",
        "np.setdiff1d(pairs.line * size + pairs.customer, numbers[~is_accepted])",
        "pairs.line * size + pairs.customer",
        "tests/transforms/erp/test_evidence.py -k decided",
    ),
    Mutant(
        "two-lines-with-one-code-share-their-reviews",
        "transforms/erp/tables.py",
        'codes[MATCH_KEYS["erp_code"].identifies(codes) & ~is_repeated(codes)]',
        'codes[MATCH_KEYS["erp_code"].identifies(codes)]',
        "tests/transforms/erp/test_evidence.py -k apart",
    ),
    Mutant(
        "a-match-whose-names-differ-is-not-pointed-out",
        "transforms/erp/findings.py",
        "(evidence.is_unlike | (",
        "((",
        "tests/transforms/erp/test_evidence.py -k doubtful",
    ),
    Mutant(
        "a-value-that-many-customers-have-contradicts",
        "transforms/erp/candidates.py",
        "of_key.customers[rows[1][is_frequent[1]]] = False",
        "pass",
        "tests/transforms/erp/test_evidence.py tests/transforms/erp/test_laws.py",
    ),
)
