"""The limits of `transforms`: frames and counts of one below, at and one above each."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal

import numpy as np
import pandas as pd
import pyarrow as pa

from orderbridge.transforms import customers, questions, value_questions
from orderbridge.transforms.chance import Share
from orderbridge.transforms.erp import codes, decide, evidence, suggestions
from orderbridge.transforms.erp.match_keys import CodeForm
from orderbridge.transforms.frames import BIGINT, TEXT, column, constant, frame
from orderbridge.transforms.orders import (
    amount_unit,
    cancelled,
    customer_evidence,
    customer_index,
    field_evidence,
    fields,
    line_discounts,
    orders,
    total_candidates,
)
from orderbridge.transforms.orders.amount_unit import UNITS, unit_question
from orderbridge.transforms.orders.customer_index import same_customers
from orderbridge.transforms.orders.fields import FIELD_QUESTIONS, OrderFields
from orderbridge.transforms.orders.total_candidates import SUM_OF_LINES, TotalCandidates
from orderbridge.transforms.questions import is_broken
from orderbridge.transforms.upserts import confirmed
from orderbridge.transforms.value_questions import country_question, login_question
from orderbridge.transforms.values import date_forms, dates, numbers, tax_numbers
from orderbridge.transforms.values.dates import DateContext, read_dates
from tests.limits.border import ABOVE, BELOW, FROM, UP_TO, limit
from tests.pipelines.reconcile.in_parts import NIGHT, choose_fields
from tests.pipelines.reconcile.in_parts import orders as reconciled_orders
from tests.transforms.erp.matching import customers as customer_rows
from tests.transforms.erp.matching import erp, match
from tests.transforms.test_customers import reconciled, row
from tests.transforms.test_order_fields import COUNT, CUSTOMERS, details, with_values
from tests.transforms.test_order_fields import orders as orders_of
from tests.transforms.test_upserts import CONFIRMED, texts

NO_PRICES = np.empty(0)


def texts_of(*values: str | None) -> pd.Series[str]:
    return column(pa.array(values, TEXT))


# amounts in cents


def unit_of(values: list[float]) -> tuple[str | None, bool]:
    """The proposed unit of totals in euros, and whether they look like cents."""
    given = np.array(values, np.float64)
    made = unit_question("total", None, given, NO_PRICES, {"EUR": len(values)}, None)
    assert made is not None
    return made.evidence.proposal, bool(made.evidence.reason)


@limit(amount_unit, "_ORDERS_MIN", BELOW)
def test_few_totals_that_look_like_cents_are_taken_as_units(n: int, holds: bool) -> None:
    assert unit_of([1999.0] * n) == (UNITS if holds else None, True)


@limit(amount_unit, "_TYPICAL_MIN", FROM)
def test_totals_of_a_typical_amount_look_like_cents(n: int, holds: bool) -> None:
    """Half of the totals are smaller, and half larger; a tenth is no multiple of a hundred."""
    assert unit_of([101.0] * 15 + [n] + [9900.0] * 15)[1] is holds


@limit(amount_unit, "_BROKEN_MIN", FROM, of=40)
def test_totals_that_are_no_hundreds_look_like_cents(n: int, holds: bool) -> None:
    assert unit_of([1999.0] * n + [2000.0] * (40 - n))[1] is holds


# orders: cancelled, customers, totals


@limit(cancelled, "STATUSES_MAX", UP_TO)
def test_a_column_of_few_words_says_what_is_cancelled(n: int, holds: bool) -> None:
    words = ["cancelled", *(f"word {number}" for number in range(n - 1))]
    witnesses = cancelled.Cancellation.of(None, {"payment_status": words}).witnesses
    assert ("payment_status" in witnesses) is holds


@limit(fields, "_CURRENCIES_MAX", UP_TO)
def test_a_few_words_that_are_no_codes_are_currencies(n: int, holds: bool) -> None:
    rows = orders_of("money: total; currency: currency")
    words = pd.Series([f"word {number % n}" for number in range(len(rows))], rows.index)
    rows["currency"] = words.astype(rows["currency"].dtype)
    assert choose_fields(rows, CUSTOMERS).fields.currency == ("currency" if holds else None)


@limit(customer_evidence, "CUSTOMER_ROWS_MIN", FROM, of=COUNT)
def test_the_column_of_customers_names_one_in_enough_orders(n: int, holds: bool) -> None:
    """The other orders are of guests."""
    rows = orders_of("id: customer_id")
    rows["customer_id"] = rows["customer_id"].where(rows.index < n, 0)
    assert choose_fields(rows, CUSTOMERS).fields.customer_id == ("customer_id" if holds else None)


@limit(customer_evidence, "_RIVAL_CUSTOMERS_MIN", FROM, of=COUNT)
def test_an_account_that_names_enough_customers_is_a_rival(n: int, holds: bool) -> None:
    rows = orders_of("id: customer_id; another: account__id")
    rows["account__id"] = rows["account__id"].where(rows.index >= COUNT - n, 1)
    rows["account__id"] = rows["account__id"].where(rows.index != 0, 2 if n < COUNT else 1)
    number = rows["account__id"].nunique()
    assert number == n
    assert (choose_fields(rows, CUSTOMERS).fields.customer_id is None) is holds


@limit(customer_index, "MATCHED_SHARE_MIN", FROM, of=COUNT)
def test_nearly_all_named_customers_are_known(n: int, holds: bool) -> None:
    rows = orders_of("id: customer_id")
    rows["customer_id"] = rows["customer_id"].where(rows.index < n, 999)
    assert choose_fields(rows, CUSTOMERS).fields.customer_id == ("customer_id" if holds else None)


@limit(customer_index, "AGREEMENT_MIN", FROM, of=20)
def test_columns_name_the_same_customers_in_nearly_all_rows(n: int, holds: bool) -> None:
    ids = texts_of(*map(str, range(20)))
    others = texts_of(*(str(number if number < n else -1) for number in range(20)))
    assert same_customers(ids, others, constant(1, ids.index, BIGINT)) is holds


@limit(orders, "SHARE_FALL_MAX", UP_TO, of=60)
def test_the_share_of_known_customers_may_fall_a_little(n: int, holds: bool) -> None:
    rows = orders_of("id: customer_id")
    rows["customer_id"] = rows["customer_id"].where(rows.index >= n, 999)
    made = reconciled_orders(
        rows, CUSTOMERS, OrderFields("customer_id"), DateContext(NIGHT), last_matched_share=1.0
    )
    assert ("matched_share_fell" not in set(made.findings["rule"])) is holds


@limit(field_evidence, "FILLED_SHARE_MIN", FROM, of=COUNT)
def test_a_column_in_use_has_values_in_nearly_all_orders(n: int, holds: bool) -> None:
    rows = with_values("money: total", total=range(n))
    choice = choose_fields(rows, CUSTOMERS, assumed={"total": "total"})
    assert (details(choice, "field_changed") == []) is holds


@limit(field_evidence, "_OFFERED_MAX", ABOVE)
def test_so_many_columns_are_offered_where_no_name_is_known(n: int, holds: bool) -> None:
    names = " ".join(f"val{number}" for number in range(n))
    choice = choose_fields(orders_of(f"money: {names}"), CUSTOMERS)
    (total,) = [one for one in choice.questions if one.id == FIELD_QUESTIONS["total"]]
    assert (len(total.evidence.choices) < n) is holds


def candidates(amounts: list[float], **columns: list[float]) -> TotalCandidates:
    """Candidates beside what the lines come to."""
    sums = dict(zip(total_candidates.LINE_SUMS, (amounts, [1.0] * len(amounts)), strict=True))
    return TotalCandidates.of(pd.DataFrame({**columns, **sums}), NO_PRICES)


@limit(total_candidates, "ORDERS_MIN", FROM)
def test_so_many_orders_show_that_a_column_is_the_amount(n: int, holds: bool) -> None:
    made = candidates([10.0] * n + [0.0] * 9, total=[10.0] * (n + 9))
    assert made.holdings.get("total") == ("amount" if holds else None)
    few = candidates([10.0] * n, total=[10.0] * n)
    assert few.is_summed(SUM_OF_LINES) is holds


@limit(total_candidates, "SHARE_MIN", FROM, of=20)
def test_so_large_a_share_of_orders_shows_that_a_column_is_the_amount(n: int, holds: bool) -> None:
    made = candidates([10.0] * 20, total=[10.0] * n + [5000.0] * (20 - n))
    assert made.holdings["total"] == ("amount" if holds else "other")
    partly = candidates([10.0] * n + [np.nan] * (20 - n), total=[10.0] * 20)
    assert partly.is_summed(SUM_OF_LINES) is holds


@limit(total_candidates, "ADDS_UP_MIN", FROM, of=20)
def test_orders_unlike_their_lines_are_found_where_nearly_all_are_like_them(
    n: int, holds: bool
) -> None:
    made = candidates([10.0] * 20, total=[10.0] * n + [11.0] * (20 - n))
    assert bool(made.unlike_lines("total")) is holds


@limit(total_candidates, "_MULTIPLE_MIN", FROM, of=20)
def test_a_multiple_is_shown_where_nearly_all_orders_have_it(n: int, holds: bool) -> None:
    made = candidates([np.nan] * 20, one=[10.0] * 20, two=[20.0] * n + [39.0] * (20 - n))
    assert bool(made.multiple_of("two", "one")) is holds


@limit(total_candidates, "_DIFFER_MIN", ABOVE, of=40)
def test_columns_differ_in_more_than_a_few_orders(n: int, holds: bool) -> None:
    made = candidates([np.nan] * 40, one=[10.0] * 40, two=[10.0] * (40 - n) + [11.0] * n)
    assert ("two" in made.differing("one")) is holds


# discounts of lines


@limit(line_discounts, "_ORDERS_MIN", FROM)
def test_so_many_orders_show_how_a_discount_is_read(n: int, holds: bool) -> None:
    assert bool(line_discounts._shown({"amount": n, "percent": 0}, n)) is holds


@limit(line_discounts, "_SHARE_MIN", FROM, of=20)
def test_so_large_a_share_of_orders_shows_how_a_discount_is_read(n: int, holds: bool) -> None:
    assert bool(line_discounts._shown({"amount": n, "percent": 0}, 20)) is holds


@limit(line_discounts, "_LINES_MIN", FROM, of=20)
def test_own_amounts_are_quantity_and_price_on_nearly_all_lines(n: int, holds: bool) -> None:
    rows = pd.DataFrame(
        {"quantity": [2] * 20, "unit_price": [5] * 20, "line_total": [10] * n + [9] * (20 - n)}
    )
    kept = rows.map(Decimal).astype(pd.ArrowDtype(pa.decimal128(38, 9)))
    assert line_discounts._is_own_gross(kept) is holds


# dates


@limit(customers, "AGE_YEARS_MAX", UP_TO)
def test_nobody_is_older(n: int, holds: bool) -> None:
    """Someone of exactly that age is listed; a day older is absurd."""
    _, findings = reconciled([row("1", birthdate=date(2026 - n, 3, 1))])
    assert ("birthdate_absurd" not in set(findings["rule"])) is holds


@limit(date_forms, "YEAR_MIN", FROM)
def test_earlier_years_are_not_read(n: int, holds: bool) -> None:
    last = {True: "01-01", False: "12-31"}[holds]
    assert read_dates(texts_of(f"{n}-{last}", "2024-01-31")).at.notna()[0] == holds
    stamps = read_dates(texts_of(f"{n}{last.replace('-', '')}000000", "20240131000000"))
    assert stamps.at.notna()[0] == holds


@limit(date_forms, "YEAR_MAX", UP_TO)
def test_later_years_are_not_read(n: int, holds: bool) -> None:
    last = {True: "12-31", False: "01-01"}[holds]
    assert read_dates(texts_of(f"{n}-{last}", "2024-01-31")).at.notna()[0] == holds
    assert read_dates(texts_of(f"{n}-{last}T23:59:59Z"[:20])).at.notna()[0] == holds


@limit(date_forms, "SHARE_MIN", FROM, of=40)
def test_a_form_that_does_not_prove_itself_is_that_of_nearly_all(n: int, holds: bool) -> None:
    read = read_dates(texts_of(*["31/01/2024"] * n, *["soon"] * (40 - n)))
    assert read.form == ("day_first" if holds else "mixed")


@limit(date_forms, "PROOF_MIN", FROM, of=100)
def test_so_many_texts_prove_the_order_of_day_and_month(n: int, holds: bool) -> None:
    for proof, form in (("31/01/2024", "day_first"), ("01/31/2024", "month_first")):
        read = read_dates(texts_of(*[proof] * n, *["01/02/2024"] * (100 - n)))
        assert read.form == (form if holds else "ambiguous")
    swapped = read_dates(texts_of(*["2024-31-01"] * n, *["2024-01-02"] * (100 - n)))
    assert swapped.form == ("ambiguous" if holds else "date_only")


@limit(date_forms, "_STAMPS_MAX", UP_TO, of=20)
def test_so_many_times_since_1970_may_be_stamps(n: int, holds: bool) -> None:
    """A number such as 1501011200 is both: a time in 2017, and the 1st of January 2015 at 12."""
    times = [str(1500000000 + number * 2_000_000) for number in range(20 - n)]
    read = read_dates(texts_of(*["1501011200"] * n, *times))
    assert read.form == ("epoch_s" if holds else "ambiguous")


@limit(date_forms, "_EPOCH_MIN_S", FROM)
def test_small_numbers_are_no_times_since_1970(n: int, holds: bool) -> None:
    assert read_dates(texts_of(str(n), "1700000000")).at.notna()[0] == holds


@limit(dates, "OFFSET_MAX", UP_TO)
def test_a_time_may_lie_in_the_future_by_an_offset(n: int, holds: bool) -> None:
    created = datetime(2026, 3, 1, 12, tzinfo=UTC) + timedelta(seconds=n)
    _, findings = reconciled([row("1", created_at=created.isoformat())])
    assert ("created_at_future" not in set(findings["rule"])) is holds


# the match with an ERP


def forms_of(lines: int, agreement: Share) -> dict[str, codes.OtherForms]:
    return {"C-": codes.OtherForms(lines, "C-1 and 1", agreement)}


@limit(codes, "_ASKED_FROM", FROM)
def test_so_many_codes_make_a_question(n: int, holds: bool) -> None:
    assert bool(codes.code_questions(forms_of(n, Share(9, 9)), CodeForm(None, None), {})) is holds
    (made,) = codes.code_questions(forms_of(9, Share(n, n)), CodeForm(None, None), {})
    assert (made.evidence.proposal == "C-") is holds


@limit(codes, "_DECISIVE_MIN", FROM, of=20)
def test_so_large_an_agreement_proposes_a_prefix(n: int, holds: bool) -> None:
    (made,) = codes.code_questions(forms_of(20, Share(n, 20)), CodeForm(None, None), {})
    assert (made.evidence.proposal == "C-") is holds


def pairs_of(*rows: tuple[int, int, int]) -> pd.DataFrame:
    """Pairs by line, customer and weight."""
    return pd.DataFrame(rows, columns=["line", "customer", "weight"])


def matched(pairs: pd.DataFrame) -> list[bool]:
    nothing = np.zeros(len(pairs), np.bool_)
    return list(map(bool, decide._matches(pairs, ~nothing, nothing, nothing)))


@limit(decide, "CERTAIN_FROM", FROM)
def test_a_match_has_a_weight(n: int, holds: bool) -> None:
    assert matched(pairs_of((0, 0, n))) == [holds]


@limit(decide, "MARGIN", FROM)
def test_a_match_weighs_more_than_the_next_pair(n: int, holds: bool) -> None:
    heavy = decide.CERTAIN_FROM + 9
    assert matched(pairs_of((0, 0, heavy), (0, 1, heavy - n)))[0] is holds
    assert matched(pairs_of((0, 0, heavy), (1, 0, heavy - n)))[0] is holds


@limit(decide, "MEMBERS_MAX", ABOVE)
def test_so_many_members_of_a_group_are_listed(n: int, holds: bool) -> None:
    by_email = [{"email": "a@x"}] * 10
    by_code = [{"login_code": "L"}] * (n - 10)
    made = match(erp({"email": "a@x", "login_code": "L"}), customer_rows(*by_email, *by_code))
    (members,) = made.customers["members"].dropna()
    assert members.endswith("1 more") is holds
    assert len(members.split(", ")) == n


@limit(evidence, "_LENGTH_MIN", FROM)
def test_a_typing_error_is_seen_in_long_numbers(n: int, holds: bool) -> None:
    number = "1234567890"[:n]
    assert evidence._is_slip(number, "9" + number[1:]) is holds


@limit(suggestions, "_SAME_MAX", UP_TO)
def test_what_few_rows_have_suggests_a_pair(n: int, holds: bool) -> None:
    assert len(suggestions._rare(pd.Series([7] * n))) == (n if holds else 0)


@limit(suggestions, "_WORDS_MIN", FROM)
def test_a_name_of_several_words_suggests_a_pair(n: int, holds: bool) -> None:
    name = texts_of("ana ruiz soto"[: (0, 3, 8, 13)[n]])
    ours, theirs = suggestions._numbers_of_names(name, name)
    assert (len(ours), len(theirs)) == ((1, 1) if holds else (0, 0))


# numbers, answers, plans


@limit(numbers, "DOUBLE_DIGITS_MAX", UP_TO)
def test_numbers_of_so_many_digits_survive_as_a_double(n: int, holds: bool) -> None:
    for text in ("1" * n, "0." + "1" * n, "-" + "1" * (n - 2) + ".25"):
        kept, code = numbers.doubles(pa.array([text]))
        assert (kept[0].as_py(), code[0].as_py()) == (
            (text, None) if holds else (None, "too_many_digits")
        )


@limit(numbers, "WHOLE_DIGITS_MAX", UP_TO)
def test_whole_numbers_have_so_many_digits(n: int, holds: bool) -> None:
    _, code = numbers.whole_numbers(pa.array(["1" * n]))
    assert code[0].as_py() == (None if holds else "too_many_digits")


@limit(tax_numbers, "_DIGITS_MIN", FROM)
def test_a_tax_number_with_letters_among_so_many_digits_is_mistyped(n: int, holds: bool) -> None:
    number = f"{'1' * n:X<9}"
    assert (tax_numbers.tax_number_problem(number, "ES") == "tax_number_form") is holds


@limit(questions, "SHARE_KEPT_MIN", BELOW, of=1000)
def test_an_answer_that_fewer_rows_fit_is_broken(n: int, holds: bool) -> None:
    assert is_broken(Share(n, 1000), None) is holds
    assert is_broken(Share(n, 1000), Share(1000, 1000)) is holds
    assert is_broken(Share(n * 100, 200_000), Share(100_000, 200_000)) is holds


@limit(confirmed, "JUMP", FROM)
def test_a_price_that_is_many_times_the_last_one_is_a_jump(n: int, holds: bool) -> None:
    for now, before in ((f"{n}.00", "1"), ("1", f"{n}")):
        known = frame(CONFIRMED, [{"key": "1", "field": "price", "value": before}])
        jumps = confirmed.price_jumps(texts(key=["1"], price=[now]), known)
        assert bool(len(jumps)) is holds


@limit(value_questions, "_LIKELY_MIN", FROM, of=100)
def test_a_country_and_a_login_that_nearly_all_have_are_proposed(n: int, holds: bool) -> None:
    country = country_question({"511": n, "349": 100 - n}, 5, None)
    assert country is not None
    assert country.evidence.proposal == ("PE" if holds else None)
    for email, code in ((n, 0), (100, 100 - n)):
        made = login_question({"email": Share(email, 100), "code": Share(code, 100)}, None)
        assert made is not None
        assert made.evidence.proposal == ("email" if holds else None)


@limit(value_questions, "_LIKELY_PHONES_MIN", FROM)
def test_a_country_is_proposed_by_so_many_phones(n: int, holds: bool) -> None:
    country = country_question({"511": n}, 5, None)
    assert country is not None
    assert country.evidence.proposal == ("PE" if holds else None)
