"""Which orders do not count, because they were cancelled, rejected, refunded or tests: no field of an order is shown.

In: the classes of the values of the status, and columns of the raw orders whose names are of another status, of a
cancellation or of a test. Out: the class of each order, and how many have columns that contradict each other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from orderbridge.transforms.frames import TEXT, Bools, Column, array, column
from orderbridge.transforms.orders.names import ORDER_NAMES

Witness = Literal["status", "payment", "flag", "time", "test", "tags"]
"""What a column says: a status of the order, that of its payment, whether or when it was cancelled, whether it is a
test, or several words of which one may say that."""
_OF_TESTS: Final = ("test", "tags")
LOST: Final = ("cancelled", "refunded")
"""The classes of orders that count as cancelled."""
NO_STATUS: Final = "(none)"
"""The value of orders without a status, where others have one."""
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
    "test": re.compile(r"((is|es)_)?(order_)?(test|prueba|teste)(_(order|pedido))?"),
    "tags": re.compile(r"((order|pedido)_)?(tags?|labels?|etiquetas?)"),
}
TEST_TAGS: Final = "(?i)test|prueba"
"""What each text contains in which a tag may say that an order is a test."""
_TAG: Final = re.compile(r"\w[^\[\]\",;|]*")
"""One of several tags, as a JSON array or a text with commas has them."""
_LOST: Final = r"cancel|anulad|annul|storn|(?<![a-z])void|refund|reembols|chargeback|contracargo"
_OF_ORDER: Final = re.compile(
    rf"{_LOST}|reject|rechaz|declin|denied|denegad|refus|returned|devuelt"
)
_OF_PAYMENT: Final = re.compile(_LOST)
"""A payment that is rejected may be tried again."""
_REFUNDED: Final = re.compile(r"refund|reembols|return|devuel|chargeback|contracargo")
_GAP: Final = r"[^a-z0-9]*"
_PARTIAL: Final = "partial|parcial|partiel|parzial|teil|gedeeltelijk|deels"
_NOT: Final = "not|non|no|nao|nicht|niet|sin|un|to|por"
_UNDONE: Final = (
    "request|solicit|demand|beantrag|angefordert|richiest|aangevraagd|pend|process|proces|progress"
)
_AWAITED: Final = "await|aguard|esper|attente|wart|attesa|wacht"
_REQUESTED: Final = re.compile(rf"(?<![a-z])({_UNDONE}|{_AWAITED})")
_TAKEN_BACK: Final = "rembours|erstatt|ruckerstatt|rimbors|devolvid|estorn|storn|terugbeta|ruckzahl"
_OF: Final = "of|de|to|for|di|du|auf|op|la|le|una|un|eine|die|der"
_NOT_DONE: Final = re.compile(
    r"(cancell?ation|cancelaci[oó]n|cancelamento|cancel|anulaci[oó]n|refund|reembolso|return|devoluci[oó]n|void"
    rf"|remboursement|ruckerstattung|stornierung|rimborso|estorno|annulering){_GAP}"
    rf"((is|was|en|in){_GAP})?(reject|rechaz|declin|denied|deneg|refus|fail|fall|{_UNDONE})\w*"
    rf"|(?<![a-z])(request|solicit|pend|{_AWAITED}|window|{_PARTIAL}|{_NOT})[a-z]*{_GAP}(({_OF}){_GAP}){{0,2}}"
    rf"(cancel|anula|annul|refund|reembols|return|devol|devuel|void|reject|rechaz|{_TAKEN_BACK})\w*"
    rf"|(refund|reembols|return|devol|devuel|{_TAKEN_BACK})\w*{_GAP}({_PARTIAL})\w*"
)
"""Words of what was only requested, refused, or done in part: `CANCELLATION_REJECTED`, `window-to-cancel`."""
Codes = npt.NDArray[np.int8]
_CODES: Final = {
    name: code
    for code, name in enumerate(("unknown", "sale", "open", "cancelled", "refunded", "test"))
}
"""The classes of orders, as numbers while they are worked on."""
_YES: Final = frozenset({"true", "t", "1", "yes", "y", "si", "sí", "s", "x"})


def without_undone(text: str) -> str:
    """A status in lower case without the words of what was only requested, refused or done in part."""
    return _NOT_DONE.sub("", text).strip()


def undone_words(text: str) -> str:
    """The words of a status in lower case that say that it is only requested, refused or done in part."""
    found = _NOT_DONE.search(text)
    return "" if found is None else found[0]


def is_requested(text: str) -> bool:
    """Whether words of `undone_words` say that it is requested or under way, so that the outcome is open."""
    return _REQUESTED.search(text) is not None


def is_lost(text: str) -> bool:
    """Whether a status in lower case says that the order was cancelled, rejected or given back."""
    return _OF_ORDER.search(without_undone(text)) is not None


def has_lost_word(text: str) -> bool:
    """Whether a status in lower case has a word of `is_lost`, though it may be requested, refused or done in part."""
    return _OF_ORDER.search(text) is not None


def is_refunded(text: str) -> bool:
    """Whether what was lost was paid or delivered before, and went back."""
    return _REFUNDED.search(without_undone(text)) is not None


def means_cancelled(word: str, kind: Witness) -> bool:
    """Whether a word of a column says that the order does not count."""
    word = word.casefold()
    if kind == "time":
        return any(letter in "123456789" for letter in word)  # 0000-00-00 is none
    if kind == "test":
        return word in _YES
    if kind == "tags":
        return any(map(_is_test_tag, _TAG.findall(word)))
    if kind == "payment":
        return _OF_PAYMENT.search(without_undone(word)) is not None
    return (kind == "flag" and word in _YES) or is_lost(word)


def _is_test_tag(tag: str) -> bool:
    """Whether a tag is called as a column of tests is: `test_order`, `Test`."""
    return _NAMES["test"].fullmatch(re.sub(r"[\s-]+", "_", tag.strip())) is not None


def related_columns(names: Iterable[str], status: str | None) -> dict[str, Witness]:
    """The columns that may say that an order does not count, besides its status."""
    kinds: dict[str, Witness] = {}
    for name in names:
        if name in ORDER_NAMES["order_status"]:
            kinds[name] = "status"
        for kind, pattern in _NAMES.items():
            if pattern.fullmatch(name):
                kinds[name] = kind
    return {name: kind for name, kind in kinds.items() if name != status}


def second_columns(names: Iterable[str], status: str | None) -> list[str]:
    """The columns of another status, such as that of the payment, besides that of the order."""
    kinds = related_columns(names, status)
    return [name for name, kind in kinds.items() if kind in ("status", "payment")]


def test_row(name: str) -> str:
    """The row for a column of tests, or of tags, in the table of statuses and their classes."""
    return f"{name}: test" if _NAMES["tags"].fullmatch(name) else f"{name}: true"


def split_row(row: str) -> tuple[str, str]:
    """The column and the value of a row about another column, `payment_status: pending`; no column for others."""
    name, separator, value = row.partition(": ")
    return (name, value) if separator else ("", row)


@dataclass(frozen=True, slots=True)
class Cancellation:
    """How it is read whether an order counts, and why not.

    Attributes:
        witnesses: columns besides the status that say of a listed order at least that it does not count; one is enough.
        status: the column of the status; None: the orders have none, and are sales unless a witness says otherwise.
        classes: of each value of the status, in lower case, and of each `test_row`; a value without one is unknown.
        is_status_alone: a setting names the values that mean cancelled: then the status alone decides that.
        nested: the witness that is not a column of the orders, but of their payments; empty: none.
        others: by another column, the classes that a person has given its values, in lower case.
    """

    witnesses: Mapping[str, Witness] = field(default_factory=dict)
    status: str | None = None
    classes: Mapping[str, str] = field(default_factory=dict)
    is_status_alone: bool = False
    nested: str = ""
    others: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        status: str | None,
        words: Mapping[str, Collection[str]],
        *,
        is_status_alone: bool = False,
    ) -> Cancellation:
        """From the words of the `related_columns`."""
        kinds = related_columns(words, status)
        witnesses = {
            name: kind
            for name, kind in kinds.items()
            if (len(words[name]) <= STATUSES_MAX or kind in ("time", "tags"))
            and any(means_cancelled(word, kind) for word in words[name])
        }
        return cls(witnesses, status, is_status_alone=is_status_alone)

    @property
    def columns(self) -> list[str]:
        """The columns that are read besides the status."""
        return [*dict.fromkeys([*self.witnesses, *self.others])]

    @property
    def test_columns(self) -> list[str]:
        """The witnesses that say which orders are tests."""
        return [name for name, kind in self.witnesses.items() if kind in _OF_TESTS]

    def with_payments(self, name: str, words: Collection[str]) -> Cancellation:
        """The same with a column of the states of payments, if one of its words says that they went back.

        Where the status alone decides, that is not looked at.
        """
        says_something = any(means_cancelled(word, "payment") for word in words)
        if self.is_status_alone or not says_something:
            return self
        return replace(self, witnesses={**self.witnesses, name: "payment"}, nested=name)

    def with_classes(
        self, classes: Mapping[str, str], columns: Collection[str] = ()
    ) -> Cancellation:
        """The same with the classes of the values of the status, and of those of other columns."""
        others: dict[str, dict[str, str]] = {}
        for row, of_row in classes.items():
            name, value = split_row(row)
            if name in columns and name not in self.test_columns:
                others.setdefault(name, {})[value] = of_row
        return replace(self, classes=classes, others=others)

    def read(
        self, texts: Mapping[str, Column[Any]], statuses: Column[Any]
    ) -> tuple[Column[Any], Counter[str]]:
        """The class of each order, from the texts of `columns` and of the status.

        Returns:
            That, `unknown` where it is not known; and of how many orders a column says the contrary.
        """
        of_status = self._of_status(statuses)
        says = {
            name: self._says(texts[name], name, kind)
            for name, kind in self.witnesses.items()
            if kind not in _OF_TESTS
        }
        codes = of_status.copy()
        if not self.is_status_alone:
            for name, (yes, _, lost) in says.items():
                is_decided = _is_lost(codes) & (self.witnesses[name] in ("status", "payment"))
                codes = np.where(yes & ~is_decided, lost, codes)
        disputed = self._disputed(of_status, codes, says)
        for name, of_values in self.others.items():
            given = _coded(texts[name].fillna(""), of_values, "")
            is_decided = _is_lost(codes) & (given != _CODES["refunded"])
            codes = np.where((given >= 0) & ~is_decided, given, codes)
        for name in self.test_columns:
            is_test, _, _ = self._says(texts[name], name, self.witnesses[name])
            row = self.classes.get(test_row(name).casefold(), "test")
            if row == "test":
                codes = np.where(is_test, _CODES["test"], codes)
        classes = pa.DictionaryArray.from_arrays(codes, list(_CODES)).cast(TEXT)
        return column(classes, statuses.index), disputed

    def _of_status(self, statuses: Column[Any]) -> Codes:
        """The class of the status of each order; all are sales where there is no column of statuses."""
        if self.status is None:
            return np.full(len(statuses), _CODES["sale"], np.int8)
        return _coded(statuses.fillna(NO_STATUS), self.classes, "unknown")

    def _says(self, texts: Column[Any], name: str, kind: Witness) -> tuple[Bools, Bools, Codes]:
        """Where a column says that an order does not count, where it says the contrary, and the class that it means."""
        words = texts.dropna().unique()
        meant = [word for word in words if means_cancelled(word, kind)]
        yes: Bools = texts.isin(meant).to_numpy(np.bool_)
        given: Bools = texts.notna().to_numpy(np.bool_)
        no = given & ~yes & (kind in ("status", "flag"))
        refunded = [
            word
            for word in meant
            if is_refunded(name if kind in ("flag", "time") else word.casefold())
        ]
        is_back: Bools = texts.isin(refunded).to_numpy(np.bool_)
        return yes, no, np.where(is_back, _CODES["refunded"], _CODES["cancelled"]).astype(np.int8)

    def _disputed(
        self, of_status: Codes, codes: Codes, says: Mapping[str, tuple[Bools, Bools, Codes]]
    ) -> Counter[str]:
        """How many orders a column says the contrary of; a status without a lost class says it of none."""
        is_of_status = _is_lost(of_status)
        is_of_order = is_of_status.copy()
        if not self.is_status_alone:
            for name, (yes, _, _) in says.items():
                if self.witnesses[name] != "payment":
                    is_of_order |= yes
        contrary = {
            name: (no & is_of_order) | (yes & ~_is_lost(codes))
            for name, (yes, no, _) in says.items()
        }
        if self.status is not None and not set(self.classes.values()).isdisjoint(LOST):
            is_known = of_status != _CODES["unknown"]
            contrary[self.status] = is_known & ~is_of_status & is_of_order
        return Counter({name: int(where.sum()) for name, where in contrary.items() if where.any()})


def _coded(texts: Column[Any], classes: Mapping[str, str], otherwise: str) -> Codes:
    """The class of each text, by the text in lower case; -1 where there is none, and none otherwise."""
    encoded = array(texts).dictionary_encode()
    found = [classes.get(value.casefold(), otherwise) for value in encoded.dictionary.to_pylist()]
    codes: Codes = np.array([_CODES.get(one, -1) for one in found], np.int8)
    of_texts: Codes = codes[encoded.indices.to_numpy()]
    return of_texts


def _is_lost(codes: Codes) -> Bools:
    lost: Bools = (codes == _CODES["cancelled"]) | (codes == _CODES["refunded"])
    return lost
