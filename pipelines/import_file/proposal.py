"""The columns of a file as an import proposes them: a person is asked about what names and cells alone do not show.

In: the columns of a file and their first cells. Out: the proposal of `mapping.propose`, without price lists that are
not among those known from the platform (they may be codes of the ERP), and with all prices of a file that numbers
several, such as `Tarifa 1` and `Tarifa 2`: which of them the platform shows is a decision. Price lists and columns
without a name that have no values are left out, and nobody is asked before they have some.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final

from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping import is_empty, normalize, propose
from orderbridge.pipelines.plan.current_state import known_price_lists
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.column_names import is_without_name

_PRICE: Final = "price"
PRICE_LIST: Final = "priceListId"
_NUMBERED: Final = re.compile(r"(.*\D)([1-9])")
"""A normalized name of one of several columns."""


def propose_columns(
    columns: Sequence[str], kind: str, samples: Mapping[str, Sequence[str]]
) -> ColumnMapping:
    """The proposal for an import, where several columns may match one field."""
    proposed = propose(columns, kind, conflicts="leave", samples=samples)
    proposed = _without_empty_columns(proposed, samples)
    return _with_all_prices(_with_known_price_lists(proposed, samples), samples)


def check_unchecked(asked: ColumnMapping, answers: Mapping[str, str]) -> None:
    """Raises UsageError where nobody has answered about a column that may be sent as a price list."""
    for name in asked.unchecked:
        if f"column/{name}" not in answers:
            raise UsageError(
                f"{name!r} may be {PRICE_LIST}, and its values are not known as price lists of the platform",
                "If they are its ids, or to ignore the column: orderbridge questions",
            )


def _without_empty_columns(
    proposed: ColumnMapping, samples: Mapping[str, Sequence[str]]
) -> ColumnMapping:
    """The proposal without price lists that have no values, which may be codes of the ERP, and such unnamed columns."""
    if not any(samples.values()):
        return proposed  # names alone, of which nothing is kept
    empty = [name for name in samples if is_empty(samples[name])]
    contested = proposed.contested.get(PRICE_LIST, ())
    unfilled = {name for name in empty if name in contested or is_without_name(name)}
    for name in empty:
        column = proposed.columns.get(name)
        if column is not None and column.field == PRICE_LIST and not _is_by_name(name):
            unfilled.add(name)
    return replace(
        proposed,
        columns={name: one for name, one in proposed.columns.items() if name not in unfilled},
        unknown=tuple(name for name in proposed.unknown if name not in unfilled),
        contested={
            path: names for path, names in proposed.contested.items() if unfilled.isdisjoint(names)
        },
        unfilled=_in_order(samples, [*unfilled]),
    )


def _is_by_name(column: str) -> bool:
    """Whether a column is named as price lists are in the interface."""
    return normalize(column) == normalize(PRICE_LIST)


def _with_known_price_lists(
    proposed: ColumnMapping, samples: Mapping[str, Sequence[str]]
) -> ColumnMapping:
    """The proposal without columns of price lists, and guesses of such, that are not known from the platform."""
    claimed = [name for name, one in proposed.columns.items() if one.field == PRICE_LIST]
    claimed += proposed.contested.get(PRICE_LIST, ())
    guessed = [name for name, path in proposed.guesses.items() if path == PRICE_LIST]
    unknown = _unknown_price_lists({name: samples[name] for name in (*claimed, *guessed)})
    unchecked = tuple(name for name in claimed if name in unknown)
    return replace(
        proposed,
        columns={name: one for name, one in proposed.columns.items() if name not in unchecked},
        unknown=_in_order(samples, (*proposed.unknown, *unchecked)),
        doubtful=proposed.doubtful | dict.fromkeys(unchecked, PRICE_LIST),
        guesses={name: path for name, path in proposed.guesses.items() if name not in unknown},
        unchecked=unchecked,
    )


def _unknown_price_lists(columns: Mapping[str, Sequence[str]]) -> list[str]:
    """The columns that have values which are no known price lists; one that is named as in the interface has ids."""
    doubtful = {
        name: cells
        for name, cells in columns.items()
        if not _is_by_name(name) and not is_empty(cells)
    }
    if not doubtful:
        return []
    known = known_price_lists()
    return [name for name, cells in doubtful.items() if not known.has_all(cells)]


def _with_all_prices(
    proposed: ColumnMapping, samples: Mapping[str, Sequence[str]]
) -> ColumnMapping:
    """The proposal in which the first of several numbered prices fills nothing: each of them may be the price."""
    first = next((name for name, one in proposed.columns.items() if one.field == _PRICE), "")
    numbered = _NUMBERED.fullmatch(normalize(first))
    if numbered is None:
        return proposed
    prices = [name for name in proposed.unknown if _is_other(name, numbered[1], samples[name])]
    if not prices:
        return proposed
    names = _in_order(samples, (first, *prices))
    return replace(
        proposed,
        columns={name: one for name, one in proposed.columns.items() if name != first},
        unknown=_in_order(samples, (first, *proposed.unknown)),
        contested=proposed.contested | {_PRICE: names},
    )


def _is_other(name: str, stem: str, cells: Sequence[str]) -> bool:
    """Whether a column is another one of several that are numbered, with cells."""
    numbered = _NUMBERED.fullmatch(normalize(name))
    return numbered is not None and numbered[1] == stem and not is_empty(cells)


def _in_order(columns: Mapping[str, object], names: Sequence[str]) -> tuple[str, ...]:
    """These columns, in the order of the file."""
    return tuple(name for name in columns if name in names)
