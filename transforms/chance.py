"""Whether a share of rows fell by more than chance: the one test behind each judgement of few rows.

In: how many of some rows have a property, and how many had it before. Out: how likely so few are where nothing changed.
A judgement compares the new and changed rows of a pull with earlier ones. A few dozen rows move shares far by chance,
so neither a fixed share nor a fixed number of rows can tell an accident from a change of the platform.
"""

from __future__ import annotations

from math import exp, lgamma
from typing import Final, NamedTuple

LEVEL: Final = 1e-6
"""A fall that is less likely than this by chance is a change. A project of 100 columns makes at most ten judgements of
each column a night, 365,000 in a year: less than 0.4 false alarms are expected in a year."""
_NEGLIGIBLE: Final = 1e-17
"""Terms below this part of the sum change no digit of it."""


class Share(NamedTuple):
    """How many of some rows have a property, such as a value, or a value of the expected form."""

    hits: int
    rows: int

    @property
    def part(self) -> float:
        """The share as a number from 0 to 1; 1 of no rows."""
        return self.hits / self.rows if self.rows else 1.0


def has_fallen(now: Share, before: Share) -> bool:
    """Whether a share is smaller than before, and chance does not explain it; see `LEVEL`."""
    return now.part < before.part and chance_of_fall(now, before) < LEVEL


def chance_of_fall(now: Share, before: Share) -> float:
    """The probability that so few of the rows have the property, if it is as frequent among them as it was before.

    This is Fisher's exact test, one-sided: all rows are taken together, and `now` is a random sample of them. No
    assumption is made about the frequency itself, so that the test holds for three rows as for a million.
    """
    rows = now.rows + before.rows
    hits = now.hits + before.hits
    fewest = max(0, now.rows - (rows - hits))
    all_samples = _log_choices(rows, now.rows)
    total = 0.0
    larger_term = 0.0
    for count in range(now.hits, fewest - 1, -1):
        ways = _log_choices(hits, count) + _log_choices(rows - hits, now.rows - count)
        term = exp(ways - all_samples)
        total += term
        is_falling = term <= larger_term
        if is_falling and term <= total * _NEGLIGIBLE:
            break
        larger_term = term
    return min(total, 1.0)


def _log_choices(number: int, chosen: int) -> float:
    """The logarithm of how many ways there are to choose some of a number of rows."""
    return lgamma(number + 1) - lgamma(chosen + 1) - lgamma(number - chosen + 1)
