"""Whether the columns of a file look like those of another kind than the one that a person has chosen.

In: the names of columns, and the chosen kind. Out: the likelier kind. It is a remark for a person: nothing rests on it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Final

from orderbridge.pipelines.mapping import propose
from orderbridge.sources.kinds import KindName

_CANDIDATES: Final[tuple[KindName, ...]] = ("customers", "variants")
"""Kinds with names of columns of their own; those of a warehouse are in most files of customers."""
_COLUMNS_MIN: Final = 2
_TIMES: Final = 2
"""So many columns have to be of the other kind alone, and so many times as many as of the chosen one alone."""


def likelier_kind(columns: Sequence[str], kind: KindName) -> KindName | None:
    """The kind that the names of the columns speak for; None: not for another one than `kind`."""
    own = _known(columns, kind)
    for other in _CANDIDATES:
        known = _known(columns, other)
        speaks_for_it = len(known - own)
        speaks_against_it = len(own - known)
        if speaks_for_it >= max(_COLUMNS_MIN, _TIMES * speaks_against_it):
            return other
    return None


def _known(columns: Collection[str], kind: KindName) -> set[str]:
    """The columns whose names are those of a field of the kind."""
    found = propose([*columns], kind, conflicts="leave").columns
    return {name for name, column in found.items() if column.field is not None}
