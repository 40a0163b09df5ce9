"""Questions about the values of lists: time zone, order of day and month, country of phones, how customers log in.

In: how the dates of each list were read, and counts of phones, e-mail addresses and login codes. Out: a question for
each subject that the values do not decide.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from orderbridge.transforms.chance import Share
from orderbridge.transforms.questions import Answer, Choice, Evidence, Question, is_broken, question
from orderbridge.transforms.values.dates import ReadDates
from orderbridge.transforms.values.phones import CALLING_CODES

LOGIN_MODE: Final = "sources.legacy.login_mode"
DATE_ORDER: Final = "reconcile.date_order"
TIMEZONE: Final = "reconcile.timezone"
CLOCK: Final = "reconcile.order_clock"
DATES: Final = "dates"
"""The answer to `CLOCK` that orders at midnight in UTC have a date and no time."""
COUNTRY: Final = "reconcile.country"
CURSOR_AFTER_END: Final = "sources.http.cursor_after_end"
EMPTY_ARRAY: Final = "sources.http.empty_array"
_UTC: Final = "UTC"
_ORDERS: Final = ("day_first", "month_first")
_LIKELY_MIN: Final = 0.9
_LIKELY_PHONES_MIN: Final = 20
"""The least share and number of phones with the calling code of one country, to propose it for the others."""


@dataclass(frozen=True, slots=True)
class FailedRead:
    """How the last read of a list failed since nobody has answered what a page means.

    Attributes:
        resource: the list.
        seen: where the page was, in words.
        rows: that were read before it.
        known: records that the last complete read had; None: there is none.
    """

    resource: str
    seen: str
    rows: int
    known: int | None

    @property
    def words(self) -> str:
        """The evidence in words."""
        known = (
            ""
            if self.known is None
            else f"; the list had {self.known} records when it was last read"
        )
        return f"{self.resource}: {self.seen}, after {self.rows} rows{known}"


def page_question(
    key: str, choices: Sequence[str], failed: Sequence[FailedRead], answer: Answer | None
) -> Question | None:
    """The question what a page means that the interface does not describe; None where no read failed for it.

    Args:
        key: `CURSOR_AFTER_END` or `EMPTY_ARRAY`.
        choices: the possible answers.
        failed: the reads that failed.
        answer: in force.
    """
    if not failed:
        return None
    reason = "; ".join(one.words for one in failed)
    made = tuple(map(Choice, choices))
    return question(Evidence(key, made, reason=reason), answer)


def zone_question(read: Mapping[str, ReadDates], answer: Answer | None) -> Question | None:
    """The question in which time zone times are; None where no list has dates.

    It counts for two things: times that are written without an offset, and the days and months of reports.
    """
    dated = {name: one for name, one in read.items() if one.form != "empty"}
    if not dated:
        return None
    naive = [
        f"{one.naive_count} times of {name} are written without a zone and read as UTC"
        for name, one in dated.items()
        if one.naive_count
    ]
    if not naive:
        naive = ["every time is written with its zone"]
    words = "; ".join([*naive, "days and months are those of UTC"])
    return question(Evidence(TIMEZONE, (Choice(_UTC, words),), _UTC), answer)


def clock_question(
    nights: Mapping[str, Share], zone: str, answer: Answer | None
) -> Question | None:
    """The question by which clock the times of orders are; None where they have an offset, or the zone is UTC.

    Args:
        nights: for `local` and `utc`, how many orders were made between midnight and six if their times are so.
        zone: of the reports.
        answer: in force.
    """
    if not any(share.rows for share in nights.values()) or zone == _UTC:
        return None
    choices = [
        Choice(
            clock, f"{share.hits} of {share.rows} orders were then made from 0:00 to 6:00 in {zone}"
        )
        for clock, share in nights.items()
    ]
    return question(Evidence(CLOCK, tuple(choices), "local"), answer)


def dates_question(midnights: Share, zone: str, answer: Answer | None) -> Question | None:
    """The question whether times at midnight in UTC are dates; None where few are so, or the zone is UTC.

    Dates are the same day in every zone. That all times are midnights proves it; one with a time does not end it.

    Args:
        midnights: how many orders are at midnight in UTC.
        zone: of the reports.
        answer: in force.
    """
    are_all = midnights.hits == midnights.rows > 0
    if zone == _UTC or (not are_all and (answer is None or answer.value != DATES)):
        return None
    words = f"{midnights.hits} of {midnights.rows} orders are at midnight in UTC"
    against = ""
    if answer is not None and answer.value == DATES and is_broken(midnights, answer.share):
        against = f"{DATES} is kept, but {words}"
    dates = Choice(DATES, words, midnights, against)
    local = Choice("local", f"they are times, and their days are those of {zone}")
    return question(
        Evidence(CLOCK, (dates, local), DATES if are_all else None, is_proven=are_all), answer
    )


def order_question(read: Mapping[str, ReadDates], answer: Answer | None) -> Question | None:
    """The question whether day or month is first; None where every column proves it, or has no such dates."""
    ambiguous = {name: one for name, one in read.items() if one.form == "ambiguous"}
    proven = {name: one.form for name, one in read.items() if one.form in _ORDERS}
    if not ambiguous and (answer is None or answer.value not in _ORDERS):
        return None
    choices = tuple(_order_choice(order, proven, answer) for order in _ORDERS)
    reason = "; ".join(f"{name}: {one.column}: {one.evidence}" for name, one in ambiguous.items())
    return question(Evidence(DATE_ORDER, choices, reason=reason), answer)


def _order_choice(order: str, proven: Mapping[str, str], answer: Answer | None) -> Choice:
    """An order of day and month, from the lists whose dates prove one."""
    lists = [name for name, form in proven.items() if form == order]
    others = [name for name, form in proven.items() if form != order]
    evidence = f"the dates of {' and '.join(lists)} are so" if lists else ""
    is_answer = answer is not None and order == answer.value
    if not is_answer or lists or not others:
        return Choice(order, evidence)
    against = f"{order} is kept, but the dates of {' and '.join(others)} prove the other"
    return Choice(order, evidence, against=against)


def country_question(
    prefixes: Mapping[str, int], without_code: int, answer: Answer | None
) -> Question | None:
    """The question in which country phones without a calling code are; None where every phone has one.

    Args:
        prefixes: how many phones with a calling code begin so, by their first three digits after `00`.
        without_code: how many phones have none.
        answer: in force.
    """
    if not without_code and answer is None:
        return None
    counts: dict[str, int] = {}
    for prefix, count in prefixes.items():
        country = _country_of(prefix)
        if country is not None:
            counts[country] = counts.get(country, 0) + count
    ranked = sorted(counts, key=lambda country: -counts[country])
    total = sum(prefixes.values())
    choices = [
        Choice(name, f"{counts[name]} of {total} phones with a calling code are of this country")
        for name in ranked
    ]
    proposal = None
    if ranked and counts[ranked[0]] >= max(_LIKELY_MIN * total, _LIKELY_PHONES_MIN):
        proposal = ranked[0]
    evidence = Evidence(
        COUNTRY,
        tuple(choices),
        proposal,
        reason=f"{without_code} phones have no calling code",
        is_only_proposed=True,
    )
    return question(evidence, answer)


def login_question(logins: Mapping[str, Share], answer: Answer | None) -> Question | None:
    """The question how customers log in; None where no customer is listed.

    It is proposed where nearly all customers have what is needed to log in one way, and few what the other way needs.

    Args:
        logins: by mode, the customers that have an address or a code that no other customer has, of all.
        answer: in force.
    """
    if not any(share.rows for share in logins.values()):
        return None
    words = {
        "email": "an e-mail address that no other has",
        "code": "a login code that no other has",
    }
    choices: list[Choice] = []
    for mode, share in logins.items():
        against = ""
        text = f"{share.hits} of {share.rows} customers have {words[mode]}"
        if answer is not None and mode == answer.value and is_broken(share, answer.share):
            against = f"{mode} is kept, but {text}"
        choices.append(Choice(mode, text, share, against))
    likely = [mode for mode, share in logins.items() if share.part >= _LIKELY_MIN]
    unlikely = [mode for mode, share in logins.items() if 1 - share.part >= _LIKELY_MIN]
    proposal = likely[0] if len(likely) == 1 and len(unlikely) == 1 else None
    evidence = Evidence(
        LOGIN_MODE,
        tuple(choices),
        proposal,
        reason="the list of customers does not decide it",
        is_only_proposed=True,
    )
    return question(evidence, answer)


def _country_of(prefix: str) -> str | None:
    """The country whose calling code digits begin with; of several that share one, the first."""
    for length in (3, 2, 1):
        for country, code in CALLING_CODES.items():
            if code == prefix[:length]:
                return str(country)
    return None
