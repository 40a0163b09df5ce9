"""Which orders do not count, because they were cancelled, rejected or refunded: no field of an order is shown.

In: columns of the raw orders whose names are of a status or of a cancellation. Out: whether each order is cancelled,
and how many have columns that contradict each other. What a word means is a policy, which a setting replaces.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal

import numpy as np

from orderbridge.transforms.frames import Bools, Column
from orderbridge.transforms.order_names import ORDER_NAMES

Witness = Literal["status", "payment", "flag", "time"]
"""What a column says: the status of the order, that of its payment, yes or no, or when it was cancelled."""
STATUSES_MAX: Final = 40
_OBJECT: Final = r"((order|pedido|cancellation|cancelacion|status|estado)__)?"
_DONE: Final = r"(cancell?ed|cancelad[oa]|anulad[oa]|annulled|void(ed)?|refunded|reembolsad[oa]|rejected|rechazad[oa])"
_NAMES: Final[Mapping[Witness, re.Pattern[str]]] = {
    "payment": re.compile(r"(financial|payment)_+(status|state)|estado_(de_)?pago"),
    "flag": re.compile(rf"{_OBJECT}((is|was|esta|fue)_)?{_DONE}"),
    "time": re.compile(
        rf"{_OBJECT}((date_)?{_DONE}(_(at|on|date|time|timestamp|en|el))|date_{_DONE}|cancel(lation)?_(date|time|at)"
        r"|fecha_(de_)?(cancelacion|anulacion|cancelado|anulado|reembolso|rechazo))"
    ),
}
_LOST: Final = r"cancel|anulad|annul|storn|(?<![a-z])void|refund|reembols|chargeback|contracargo"
_OF_ORDER: Final = re.compile(
    rf"{_LOST}|reject|rechaz|declin|denied|denegad|refus|returned|devuelt"
)
_OF_PAYMENT: Final = re.compile(_LOST)
"""A payment that is rejected may be tried again."""
_GAP: Final = r"[^a-z0-9]*"
_NOT_DONE: Final = re.compile(
    rf"(cancell?ation|cancelaci[oó]n|cancel|anulaci[oó]n|refund|reembolso|return|devoluci[oó]n|void){_GAP}"
    rf"((is|was|en|in){_GAP})?(reject|rechaz|declin|denied|deneg|refus|fail|fall|request|solicit|pend|process|proces|progress)\w*"
    rf"|(?<![a-z])(request|solicit|pend|partial|parcial|window|not|non|no|sin|un|to|por)[a-z]*{_GAP}((of|de|to|for){_GAP})?"
    r"(cancel|anula|refund|reembols|return|devol|devuel|void|reject|rechaz)\w*"
)
"""Words of what was only requested, refused, or done in part: `CANCELLATION_REJECTED`, `window-to-cancel`."""
_YES: Final = frozenset({"true", "t", "1", "yes", "y", "si", "sí", "s", "x"})


def means_cancelled(word: str, kind: Witness) -> bool:
    """Whether a word of a column says that the order does not count."""
    word = word.casefold()
    if kind == "time":
        return any(letter in "123456789" for letter in word)  # 0000-00-00 is none
    rest = _NOT_DONE.sub("", word)
    return (kind == "flag" and word in _YES) or bool(
        (_OF_PAYMENT if kind == "payment" else _OF_ORDER).search(rest)
    )


def related_columns(names: Iterable[str], status: str | None) -> dict[str, Witness]:
    """The columns that may say that an order is cancelled, besides its status."""
    kinds: dict[str, Witness] = {}
    for name in names:
        if name in ORDER_NAMES["order_status"]:
            kinds[name] = "status"
        for kind, pattern in _NAMES.items():
            if pattern.fullmatch(name):
                kinds[name] = kind
    return {name: kind for name, kind in kinds.items() if name != status}


@dataclass(frozen=True, slots=True)
class Cancellation:
    """How it is read whether an order is cancelled.

    Attributes:
        witnesses: columns that say it of a listed order at least; an order is cancelled if any of them says so.
        values: of the status, in lower case, that a setting names: then they alone decide. None: words do.
    """

    witnesses: Mapping[str, Witness] = field(default_factory=dict)
    values: frozenset[str] | None = None

    @classmethod
    def of(
        cls,
        status: str | None,
        words: Mapping[str, Collection[str]],
        values: Collection[str] | None,
    ) -> Cancellation:
        """From the words of the status and of the `related_columns`."""
        kinds = related_columns(words, status)
        if status is not None and status in words:
            kinds[status] = "status"
        configured = None if values is None else frozenset(map(str.casefold, values))
        own = {status} if configured is not None else set()
        return cls(
            {
                name: kind
                for name, kind in kinds.items()
                if (len(words[name]) <= STATUSES_MAX or kind == "time" or name == status)
                and (name in own or any(means_cancelled(word, kind) for word in words[name]))
            },
            configured,
        )

    def is_found(self, words: Collection[str]) -> bool:
        """Whether any of the words is a value that the setting names."""
        return any(word.casefold() in (self.values or ()) for word in words)

    def read(
        self, texts: Mapping[str, Column[Any]], status: str | None, rows: int
    ) -> tuple[Bools, Counter[str]]:
        """Whether each of so many orders is cancelled, from the texts of the witnesses.

        Returns:
            That; and of how many orders a column says the contrary.
        """
        says = {name: self._says(values, name, status) for name, values in texts.items()}
        none = np.zeros(rows, np.bool_)
        is_cancelled: Bools = np.logical_or.reduce([none, *(yes for yes, _ in says.values())])
        of_order = [yes for name, (yes, _) in says.items() if self.witnesses[name] != "payment"]
        is_of_order: Bools = np.logical_or.reduce([none, *of_order])
        if self.values is not None and status in says:
            is_cancelled = is_of_order = says[status][0]
        contrary = {
            name: (no & is_of_order) | (yes & ~is_cancelled) for name, (yes, no) in says.items()
        }
        return is_cancelled, Counter(
            {name: int(where.sum()) for name, where in contrary.items() if where.any()}
        )

    def _says(self, texts: Column[Any], name: str, status: str | None) -> tuple[Bools, Bools]:
        """Where a column says that an order is cancelled, and where it says that it is not."""
        kind, words = self.witnesses[name], texts.dropna().unique()
        if self.values is not None and name == status:
            meant = [word for word in words if word.casefold() in self.values]
        else:
            meant = [word for word in words if means_cancelled(word, kind)]
        yes: Bools = texts.isin(meant).fillna(False).to_numpy(np.bool_)
        given: Bools = texts.notna().to_numpy(np.bool_)
        return yes, given & ~yes & (kind in ("status", "flag"))
