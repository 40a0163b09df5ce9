"""Names as sets of words: which of two are the same, however they are spelled and in whatever column they stand.

In: columns of names. Out: their words, row by row, and how many each row has in common with others. Case, accents,
order, punctuation and alphabets make no difference, nor do `ü` and `ue`; single letters and the forms of firms are
no words.
"""

from __future__ import annotations

import re
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Final

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
from anyascii import anyascii

from orderbridge.transforms.frames import TEXT, Bools, Ints, array, column, distinct

_NO_WORDS: Final = ("sa", "sac", "srl", "sl", "slu", "sas", "spa", "eirl", "ltda", "lda", "cia", "inc", "ltd", "llc",
    "gmbh", "ug", "kg", "sarl", "eurl", "cb", "snc", "oo", "sp", "ood", "eood", "ad", "ae", "oe", "epe", "ike",
    "de", "del", "la", "las", "los", "el", "da", "do", "dos", "the", "and")  # fmt: skip
_OTHER_ALPHABET: Final = r"[^\p{Latin}\P{L}]"
"""A letter that is not a Latin one."""
_DOUBLED: Final = "[ÂÃÄÅÎÏÐÑ][\u0080-\u00bf\u0152-\u2122]"
"""What the first two bytes of a letter in UTF-8 look like in cp1252."""
_SPELLINGS: Final = (("ae", "a"), ("oe", "o"), ("ue", "u"), ("ou", "u"), ("oy", "u"))
"""What writers without an umlaut or in Latin letters put in place of one: in the words of both sides."""


@dataclass(frozen=True, slots=True)
class NameWords:
    """The words of a column of names.

    Attributes:
        numbers: each word of a row once, as `row * words + code`, ascending.
        words: how many there are in all columns.
        size: how many rows the column has.
    """

    numbers: Ints
    words: int
    size: int

    @property
    def sizes(self) -> Ints:
        """How many words each row has."""
        return np.bincount(self.numbers // self.words, minlength=self.size)

    def numbers_of_sets(self) -> pd.Series[int]:
        """A number for each row, the same for rows with the same words; 0 for none."""
        of_words = np.random.default_rng(0).integers(2**62, size=self.words)
        numbers = np.zeros(self.size, np.int64)
        np.add.at(numbers, self.numbers // self.words, of_words[self.numbers % self.words])
        return pd.Series(numbers)

    def common(self, other: NameWords) -> Ints:
        """How many words of each row the same row of another column has too."""
        shared = np.intersect1d(self.numbers, other.numbers, assume_unique=True)
        return np.bincount(shared // self.words, minlength=self.size)

    def without(self, *others: NameWords) -> NameWords:
        """The words that no other column has in the same row."""
        left = self.numbers
        for other in others:
            left = np.setdiff1d(left, other.numbers, assume_unique=True)
        return replace(self, numbers=left)

    def where(self, rows: Bools) -> NameWords:
        """The words of some rows; the others have none."""
        return replace(self, numbers=self.numbers[rows[self.numbers // self.words]])

    def joined(self, other: NameWords) -> NameWords:
        """The words of both columns."""
        return replace(self, numbers=distinct(np.concatenate([self.numbers, other.numbers])))

    def or_else(self, other: NameWords) -> NameWords:
        """The words of each row, or those of another column where it has none."""
        return self.joined(other.where(self.sizes == 0))

    def is_same(self, other: NameWords) -> Bools:
        """Whether each row has the same words in both columns; none is the same as none."""
        common = self.common(other)
        is_same: Bools = (common == self.sizes) & (common == other.sizes)
        return is_same

    def covers(self, other: NameWords) -> Bools:
        """Whether one of the two has a word, and all words of it are the other's too."""
        least = np.minimum(self.sizes, other.sizes)
        is_covered: Bools = (least > 0) & (self.common(other) == least)
        return is_covered


def split_names(*columns: pd.Series[str]) -> list[NameWords]:
    """The words of several columns of as many rows each."""
    size = len(columns[0])
    texts = pa.chunked_array([array(one) for one in columns], TEXT).combine_chunks()
    lists = pc.split_pattern_regex(_plain(texts), "[^a-z0-9]+")
    words, rows = pc.list_flatten(lists), pc.list_parent_indices(lists)
    is_word = pc.and_(
        pc.match_substring_regex(words, "^(?:[0-9]|..+)$"),
        pc.invert(pc.is_in(words, pa.array(_NO_WORDS))),
    )
    words = words.filter(is_word)
    for written, plain in _SPELLINGS:
        words = pc.replace_substring(words, written, plain)
    codes = pc.dictionary_encode(words)
    count = max(len(codes.dictionary), 1)
    numbers = distinct(
        rows.filter(is_word).to_numpy().astype(np.int64) * count + codes.indices.to_numpy()
    )
    ends = np.searchsorted(numbers, np.arange(len(columns) + 1) * size * count)
    return [
        NameWords(numbers[begin:end] - n * size * count, count, size)
        for n, (begin, end) in enumerate(pairwise(ends))
    ]


def has_other_alphabet(names: pd.Series[str]) -> Bools:
    """Whether each text has letters that are not Latin ones."""
    found = pc.match_substring_regex(array(names), _OTHER_ALPHABET)
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), np.bool_)


def _plain(texts: pa.Array) -> pa.Array:
    """The texts in lower case and in ASCII letters."""
    names = column(texts)
    is_other = ~names.str.isascii().fillna(True)
    if is_other.any():
        names = names.copy()
        names[is_other] = column(_words_in_ascii(array(names[is_other]))).array
    dotted = pc.replace_substring_regex(array(names), r"\b([A-Za-z])\.", r"\1")  # S.A. is SA
    return pc.utf8_lower(dotted)


def _words_in_ascii(names: pa.Array) -> pa.Array:
    """Names in ASCII letters. Each word is written once: a list of names has fewer words than names."""
    lists = pc.split_pattern(names, " ")
    words = pc.dictionary_encode(pc.list_flatten(lists))
    written = pa.array([_in_ascii(word) for word in words.dictionary.to_pylist()], TEXT)
    return pc.binary_join(pa.ListArray.from_arrays(lists.offsets, written.take(words.indices)), " ")


def _in_ascii(word: str) -> str:
    if word.isascii():
        return word
    if re.search(_DOUBLED, word):
        with suppress(UnicodeError):
            word = word.encode("cp1252").decode("utf-8")
    return anyascii(word)
