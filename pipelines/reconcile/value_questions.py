"""What has to be known of all lists to read their values: the time zone, day or month first, the country of phones.

In: the answers in force, how the dates of each list were read, the reconciled customers. Out: the settings that a run
uses, and the questions that are left.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final, cast

import duckdb
import pandas as pd

from orderbridge.pipelines.warehouse.answers.questions import RunQuestions
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import ReconcileSettings
from orderbridge.sources.settings.sections import Clock, CodeZeros
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.transforms.chance import Share
from orderbridge.transforms.erp.codes import CODE_PREFIX, CODE_ZEROS
from orderbridge.transforms.findings import combine_findings, table_finding, to_answer
from orderbridge.transforms.orders.orders import is_named_utc
from orderbridge.transforms.questions import Answer, Question
from orderbridge.transforms.value_questions import (
    CLOCK,
    COUNTRY,
    CURSOR_AFTER_END,
    DATE_ORDER,
    EMPTY_ARRAY,
    LOGIN_MODE,
    TIMEZONE,
    FailedRead,
    clock_question,
    country_question,
    dates_question,
    login_question,
    order_question,
    page_question,
    zone_question,
)
from orderbridge.transforms.values.date_forms import DateOrder
from orderbridge.transforms.values.dates import ReadDates
from orderbridge.transforms.values.phones import CALLING_CODES

_NAIVE: Final = "iso_naive"
"""The form of times without an offset: such as databases write them."""
_PHONES: Final = """
    SELECT if(phone_digits LIKE '00%', substr(phone_digits, 3, 3), NULL), count(*)
    FROM reconciled.customers WHERE phone_digits IS NOT NULL AND NOT is_missing GROUP BY 1"""
_LOGINS: Final = """
    SELECT count(*), count(DISTINCT email_normalized), count(DISTINCT nullif(trim(login_code), ''))
    FROM reconciled.customers WHERE NOT is_missing"""
_FAILED_READS: Final = """
    WITH last AS (
        SELECT resource, arg_max(run_id, rowid) AS run_id, arg_max(verdict, rowid) AS verdict,
            arg_max(rows, rowid) AS rows
        FROM ops.coverage GROUP BY resource)
    SELECT o.what, last.resource, substr(o.value, length(last.resource) + 3), last.rows, r."distinct"
    FROM ops.observations o
    JOIN last ON o.last_run_id = last.run_id AND starts_with(o.value, last.resource || ': ')
    LEFT JOIN ops.last_read r ON r.resource = last.resource
    WHERE list_contains(?, o.what) AND last.verdict = 'incomplete' ORDER BY last.resource"""
_NIGHTS: Final = """
    WITH times AS (
        SELECT ordered_at AT TIME ZONE $read_in AS written
        FROM reconciled.orders WHERE ordered_at IS NOT NULL AND NOT is_missing)
    SELECT count(*) FILTER (hour(written) < 6),
        count(*) FILTER (hour((written AT TIME ZONE 'UTC') AT TIME ZONE $zone) < 6), count(*)
    FROM times"""
_CONTRADICTED_IN: Final = {
    "customers": "created_at_contradicted",
    "promotions": "dates_contradicted",
    "orders": "ordered_at_contradicted",
}


def settings_in_force(
    settings: ReconcileSettings, answers: Mapping[str, Answer]
) -> ReconcileSettings:
    """The settings with the answers of people, also those that are not confirmed yet.

    The assumption that a zone is UTC is not one of them: times without an offset stay unproven.
    """

    def given(key: str) -> str | None:
        answer = answers.get(key)
        return answer.value if answer is not None and not answer.is_own_assumption else None

    return replace(
        settings,
        date_order=cast(DateOrder | None, given(DATE_ORDER)) or settings.date_order,
        timezone=given(TIMEZONE) or settings.timezone,
        country=given(COUNTRY) or settings.country,
        erp_code_prefix=given(CODE_PREFIX) or settings.erp_code_prefix,
        erp_code_zeros=cast(CodeZeros | None, given(CODE_ZEROS)) or settings.erp_code_zeros,
        orders=replace(
            settings.orders, clock=cast(Clock | None, given(CLOCK)) or settings.orders.clock
        ),
    )


def check_country(country: str | None) -> None:
    """Checks that phones of a country have a calling code. Raises UsageError."""
    if country is not None and country not in CALLING_CODES:
        raise UsageError(
            f"reconcile.country is {country}, which is not a country with a calling code",
            "Set it to a code of ISO 3166-1, such as ES; the United Kingdom is GB.\n"
            "  To change it: orderbridge init reconcile.country=ES",
        )


def ask_about_values(
    build: duckdb.DuckDBPyConnection,
    questions: RunQuestions,
    read: Mapping[str, ReadDates],
    settings: ReconcileSettings,
) -> pd.DataFrame:
    """Adds the questions that are left when all lists are reconciled. Returns findings: what rows contradict.

    Args:
        build: with the reconciled tables.
        questions: of the run, with the answers in force.
        read: how the dates of each list were read.
        settings: in force.
    """
    answers = questions.answers
    order = order_question(read, answers.get(DATE_ORDER))
    login = _login(build, answers)
    questions.add(
        zone_question(read, answers.get(TIMEZONE)), order, _country(build, answers), login
    )
    clock = _clock(build, settings, read.get("orders"), answers)
    questions.add(clock, *_pages(build, answers))
    found: list[pd.DataFrame] = []
    if clock is not None and clock.state == "contradicted":
        detail = to_answer(f"ordered_at: {clock.reason}", CLOCK)
        found.append(table_finding("orders", "field_changed", detail, "ordered_at"))
    if order is not None and order.state == "contradicted":
        found += _contradicted_dates(order, read)
    if login is not None and login.state == "contradicted":
        detail = to_answer(login.reason, LOGIN_MODE)
        found.append(table_finding("customers", "login_mode_contradicted", detail))
    return combine_findings(found)


def _pages(
    build: duckdb.DuckDBPyConnection, answers: Mapping[str, Answer]
) -> Iterator[Question | None]:
    """What pages mean because of which the last read of a list failed."""
    settings = {key: SETTINGS[key] for key in (CURSOR_AFTER_END, EMPTY_ARRAY)}
    names = [setting.name for setting in settings.values()]
    rows = build.execute(_FAILED_READS, [names]).fetchall()
    for key, setting in settings.items():
        failed = [FailedRead(*row) for what, *row in rows if what == setting.name]
        yield page_question(key, setting.choices, failed, answers.get(key))


def _clock(
    build: duckdb.DuckDBPyConnection,
    settings: ReconcileSettings,
    read: ReadDates | None,
    answers: Mapping[str, Answer],
) -> Question | None:
    """Whether times without an offset are by the clock of the zone, or midnights are dates.

    There is no question where the name of the column says that its times are in UTC.
    """
    zone = settings.timezone
    if zone is None or read is None:
        return None
    if read.form != _NAIVE:
        return dates_question(read.midnights, zone, answers.get(CLOCK))
    if is_named_utc(read.column):
        return None
    read_in = "UTC" if settings.orders.clock == "utc" else zone
    counted = build.execute(_NIGHTS, {"zone": zone, "read_in": read_in}).fetchall()
    ((by_clock, in_utc, rows),) = counted
    nights = {"local": Share(by_clock, rows), "utc": Share(in_utc, rows)}
    return clock_question(nights, zone, answers.get(CLOCK))


def _country(build: duckdb.DuckDBPyConnection, answers: Mapping[str, Answer]) -> Question | None:
    counts = dict(build.execute(_PHONES).fetchall())
    without_code = counts.pop(None, 0)
    return country_question(counts, without_code, answers.get(COUNTRY))


def _login(build: duckdb.DuckDBPyConnection, answers: Mapping[str, Answer]) -> Question | None:
    ((rows, emails, codes),) = build.execute(_LOGINS).fetchall()
    logins = {"email": Share(emails, rows), "code": Share(codes, rows)}
    return login_question(logins, answers.get(LOGIN_MODE))


def _contradicted_dates(order: Question, read: Mapping[str, ReadDates]) -> list[pd.DataFrame]:
    """A finding for each list whose dates prove another order than the answer."""
    found: list[pd.DataFrame] = []
    for name, one in read.items():
        if one.form in ("day_first", "month_first") and one.form != order.value:
            detail = to_answer(f"{one.column}: {order.reason}", DATE_ORDER)
            found.append(table_finding(name, _CONTRADICTED_IN[name], detail))
    return found
