"""The class of a status: a sale, not yet one, cancelled, refunded, a test; or not known.

In: the values of the column of statuses, and what was answered, assumed or counted before. Out: the class of each value
and the question about them, a table. Words of eight languages propose (`statuses.toml`). A value that says
nothing, such as a number, is asked: its orders are neither revenue nor left out of it, but unknown.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Final, Literal, get_args

from orderbridge.transforms.orders.cancelled import (
    NO_STATUS,
    has_lost_word,
    is_lost,
    is_refunded,
    is_requested,
    undone_words,
    without_undone,
)
from orderbridge.transforms.orders.names import SECOND_STATUSES
from orderbridge.transforms.questions import (
    Answer,
    Choice,
    Evidence,
    Question,
    question,
    table_of,
    table_text,
)
from orderbridge.transforms.values.texts import plain_words

StatusClass = Literal["sale", "open", "cancelled", "refunded", "test"]
_CLASSES: Final[dict[str, StatusClass]] = {one: one for one in get_args(StatusClass)}
STATUSES: Final = "reconcile.order_statuses"
"""The question about the values of the column of statuses: the key of its setting."""
_WORDS: Final = tomllib.loads(
    files("orderbridge.transforms.orders").joinpath("statuses.toml").read_text("utf-8")
)
_REGION_NAMES: Final = re.compile(r"(order_)?(state|estado|stato|etat|estat)")
"""Columns of this name may be the region of an address."""
_REGION_CODE: Final = re.compile(r"[A-Z]{2,3}")
_NEGATION: Final = re.compile(
    r"\b(?:no|not|never|nao|sem|sin|non|senza|pas|sans|nicht|nie|kein\w*|ohne|niet|geen|sense)\b"
)
"""A word before that of a sale which turns it around, such as `Não entregue`."""


def _pattern(languages: Mapping[str, Iterable[str]]) -> re.Pattern[str]:
    """Any of the phrases, as whole words, the longest first; `*` is the rest of a word."""
    phrases = {phrase for of_language in languages.values() for phrase in of_language}
    longest_first = sorted(phrases, key=lambda phrase: (-phrase.count(" "), -len(phrase)))
    parts = [re.escape(phrase).replace(r"\*", r"\w*") for phrase in longest_first]
    return re.compile(rf"\b(?:{'|'.join(parts)})\b")


_PATTERNS: Final = {name: _pattern(languages) for name, languages in _WORDS.items()}


def class_of_word(status: str) -> StatusClass | None:
    """The class that the words of a status propose; None where they decide nothing."""
    return _CLASSES.get(_found(status) or "")


def _found(status: str) -> str | None:
    """The table of `statuses.toml` that decides about a status; None where it has none of the words."""
    text = plain_words(status)
    if _PATTERNS["test"].search(text):
        return "test"
    if is_lost(text):
        return "refunded" if is_refunded(text) else "cancelled"
    rest = without_undone(text)
    longest: dict[str, int] = {}
    for name, pattern in _PATTERNS.items():
        counts = [match.count(" ") + 1 for match in pattern.findall(rest)]
        longest[name] = max(counts, default=0)
    best = max(longest, key=lambda name: longest[name])  # of equal ones the first table
    if best == "sale" and longest[best] and _NEGATION.search(rest):
        return "undecided"
    if longest[best]:
        return best
    if rest == text:
        return None
    return "undecided" if is_requested(undone_words(text)) else "sale"


def status_columns(names: Sequence[str], words: Mapping[str, Collection[str]]) -> list[str]:
    """Of the columns that may be the status those that are.

    A column `state` may be the region of an address, such as SP or RJ. The status of the payment, or the kind of the
    document, is that of the order only where there is no other.

    Args:
        names: the columns, the preferred first.
        words: the values of each.
    """
    fitting = [
        name
        for name in names
        if _REGION_NAMES.fullmatch(name) is None or any(map(_is_status, words[name]))
    ]
    own = [name for name in fitting if name not in SECOND_STATUSES]
    return own or [name for name in fitting if len(words[name]) > 1]


def region_or_status(names: Sequence[str], words: Mapping[str, Collection[str]]) -> list[str]:
    """Of the columns that may be the status those that only a person can tell from the region of an address.

    Their values are no known words of statuses, and no codes of regions either.
    """
    return [
        name
        for name in names
        if _REGION_NAMES.fullmatch(name)
        and not any(map(_is_status, words[name]))
        and not all(map(_REGION_CODE.fullmatch, words[name]))
    ]


def _is_status(word: str) -> bool:
    return len(word) == 1 or word.isdecimal() or _found(word) is not None


@dataclass(frozen=True, slots=True)
class StatusEvidence:
    """What is known of the values of the column of statuses.

    Attributes:
        column: its name; None: the orders have no status.
        listed: the values that a listed order has, the most frequent first; `NO_STATUS` is one of them.
        others: the values that only orders have that are no longer listed.
        flags: rows for columns of tests, such as `test: true`.
        given: rows that a person has given for other columns, such as `payment_status: pending`.
        counted: values that an older version counted as revenue; they stay sales unless their words say otherwise.
        left_out: values that an older version counted in no order; those that it took for cancelled stay so.
        cancelled: the values that `reconcile.order_cancelled` names, in lower case; None: it is not set.
    """

    column: str | None
    listed: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    given: tuple[str, ...] = ()
    counted: frozenset[str] = frozenset()
    left_out: frozenset[str] = frozenset()
    cancelled: frozenset[str] | None = None

    @property
    def has_values(self) -> bool:
        """Whether any order has a status."""
        return any(value != NO_STATUS for value in (*self.listed, *self.others))

    @property
    def rows(self) -> list[str]:
        """The rows of the table."""
        return [*(self.listed if self.has_values else ()), *self.flags, *self.given]


def proposed_classes(
    known: StatusEvidence, assumed: Mapping[str, str], given: Mapping[str, str]
) -> dict[str, str]:
    """The class of each value that is assumed, or that its words propose.

    What was assumed stays. Where every value would be open, the classes decide nothing: then `pending` is the word of
    this shop for an order.

    Args:
        known: the values.
        assumed: by value, what earlier runs assumed.
        given: by value, what a person has answered.
    """
    kept = _folded(assumed)
    answered = _folded(given)
    proposed = dict(assumed)
    fresh = [one for one in (*known.listed, *known.others) if one.casefold() not in kept]
    for value in fresh:
        found = _proposed(value, known)
        if found is not None:
            proposed[value] = found
    for flag in known.flags:
        proposed.setdefault(flag, "test")
    used = {**_folded(as_set(known, proposed)), **answered}
    if "sale" in (used.get(value.casefold()) for value in known.listed):
        return proposed
    for value in fresh:
        if proposed.get(value) == "open":
            del proposed[value]
            if value in known.counted:
                proposed[value] = "sale"
    return proposed


def as_set(known: StatusEvidence, proposed: Mapping[str, str]) -> dict[str, str]:
    """The classes where a setting names the values that mean cancelled: these are, and no others.

    What it does not name is a sale, unless it is not yet one, or a test. Without the setting, they are as proposed.
    """
    if known.cancelled is None:
        return dict(proposed)
    classes: dict[str, str] = dict(proposed)
    for value in (*known.listed, *known.others):
        if value.casefold() in known.cancelled:
            classes[value] = "cancelled"
        elif proposed.get(value) not in ("open", "test"):
            classes[value] = "sale"
    return classes


def _proposed(value: str, known: StatusEvidence) -> str | None:
    """The class of a value that nothing is assumed of."""
    if not known.has_values:
        return "sale"
    by_word = None if value == NO_STATUS else class_of_word(value)
    if by_word is None and value in known.counted:
        return "sale"
    was_lost = value in known.left_out and has_lost_word(value.casefold())
    if was_lost and by_word in (None, "sale"):
        return "cancelled"
    return by_word


def status_question(
    known: StatusEvidence,
    proposed: Mapping[str, str],
    answer: Answer | None,
    counts: Mapping[str, str],
) -> Question | None:
    """The question about the values; None where there are none. `counts` say how many orders each has, in words."""
    if not known.rows:
        return None
    used = as_set(known, proposed)
    by_value = _folded(used)
    unknown_first = sorted(known.rows, key=lambda value: value.casefold() in by_value)
    choices = [
        Choice(table_text({value: by_value.get(value.casefold(), "sale")}), counts.get(value, ""))
        for value in unknown_first
    ]
    evidence = Evidence(
        STATUSES,
        tuple(choices),
        table_text(used) if used else None,
        about=known.column or "",
        assumed_rows=table_text(proposed) if proposed else "",
    )
    return question(evidence, answer)


def classes_in_force(
    known: StatusEvidence, proposed: Mapping[str, str], answer: Answer | None
) -> dict[str, str]:
    """The class of each value, by the value in lower case: as answered, else as set, else as proposed."""
    return {**_folded(as_set(known, proposed)), **_folded(given_classes(answer))}


def given_classes(answer: Answer | None) -> dict[str, str]:
    """The classes that a person has given, by value."""
    return table_of(answer.value) if answer is not None and not answer.is_own_assumption else {}


def _folded(classes: Mapping[str, str]) -> dict[str, str]:
    return {value.casefold(): of_value for value, of_value in classes.items()}
