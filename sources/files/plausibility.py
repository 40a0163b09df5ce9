"""Whether text decoded as cp1252 is plausible: a file in another code page decodes too, into other letters.

In: the bytes of a file that is not UTF-8. Out: nothing if they read like a Western European language; otherwise the
first implausible place. `Dvořák` in cp1250 becomes `Dvoøák`, `Muñoz` in cp850 `Mu¤oz`, `Привет` in cp1251 `Ïðèâåò`.

Only the non-ASCII characters and two neighbours on each side are looked at. Some combinations are practically proof (a
sign between letters), some are foreign to Western texts but occur in one (a bullet between words, a name with `þ` or
`š`), others merely unusual (three accented letters in a row, `è` before a vowel, `ñ` before a consonant). Of each kind
another share is accepted.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

CHUNK_BYTES: Final = 512 * 1024
SHARES: Final = {"proof": 0.001, "foreign": 0.05, "icelandic": 0.15, "unusual": 0.03}
"""Of the non-ASCII characters, by what they are: from this share on, the text is implausible."""
LONGEST_WORD: Final = 30
_VOWELS: Final = frozenset("aeiouAEIOU")
_BETWEEN_LETTERS: Final = frozenset("’‘´·'\xa0\xad")
"""Apostrophes, the Catalan middle dot and invisible characters may be between letters."""
_BETWEEN_WORDS: Final = frozenset("…™®°")
"""These may follow a word, and a capital letter follow them."""
_NOT_AFTER: Final = frozenset("‚ƒ„†‡ˆ‰•˜¦¨¬¯“\xa7¶¡¢£¿")
"""Signs that do not follow a letter, and those that do not precede one."""
_NOT_BEFORE: Final = frozenset("†‡ˆ‰˜¦¨¬¯€™®¶¢")
_ADJACENT: Final = (
    "çã çõ çá çú çó çé çà çâ éç íç úç ôç êç âç áç óç àç éé éè éê éâ éà éô ïé âé éï éû ùé ôé áñ éñ íñ óñ úñ ãñ ñá ñé "
    "ñí ñó ñú ää öö üü õõ äö öä åä äå öå åö æå øæ åæ æø øå üß öß äß ßö ßü ßä üö öü õü üõ äü õä ïä éö öé üé éü áí íá "
    "óí íó êê îé öæ æð ðæ íð ðí áð ðá óð ðó úð ðú öð ðö ýð ðý éð þæ þé þá þó þí þö þú þý íþ áþ óþ æþ ðþ ýþ úþ öþ âê "
    "àê êà àé èé úó"
)
_PAIRS: Final = frozenset(_ADJACENT.split(" "))
"""Accented letters that are next to each other in Western languages."""
_FRENCH: Final = frozenset("àèêçëïîôœÀÈÊÇËÏÎÔŒ")
_WESTERN: Final = frozenset("áéíóúñàèêæåÁÉÍÓÚÑÀÈÊÆÅ")
"""Letters that Turkish lacks, whose code page has others in the place of the Icelandic ones."""
_ELIDED: Final = frozenset(("qu", "ll", "un", "nt", "st", "tt", "gl", "nd", "rd", "zz"))
"""What a longer word before an apostrophe ends with."""
_ICELANDIC: Final = frozenset("þðÞÐýÝ")
_ICELANDIC_SUPPORT: Final = frozenset("áéíóúæÁÉÍÓÚÆ")
_NOT_ICELANDIC: Final = frozenset("çüÇÜøØåÅâêîôûàèìòùëïãõñ")


def implausible_place(path: Path, without: re.Pattern[bytes] | None = None) -> int | None:
    """The offset of the first place that does not read like a Western language; None if the whole text is plausible.

    Args:
        path: the file.
        without: what to leave out; then the place is not exact.
    """
    counts: Counter[int] = Counter()
    for _, packed in _contexts(path, without):
        codes, numbers = np.unique(packed, return_counts=True)
        counts.update(dict(zip(codes.tolist(), numbers.tolist(), strict=True)))
    letters = Counter[str]()
    for code, count in counts.items():
        letters[_chars(code)[2]] += count
    languages = _Languages.of(letters)
    by_verdict: dict[str, set[int]] = {verdict: set() for verdict in (*SHARES, "")}
    for code in counts:
        by_verdict[_verdict(*_chars(code), languages)].add(code)
    total = counts.total()
    for verdict, share in SHARES.items():
        found = by_verdict[verdict]
        if not found or sum(counts[code] for code in found) < share * total:
            continue
        if verdict != "unusual":
            return _offsets(path, found, 1)[0] if without is None else 0
        offsets = _offsets(path, found, LONGEST_WORD) if without is None else [0, LONGEST_WORD]
        if len(offsets) == LONGEST_WORD or offsets[-1] - offsets[0] >= len(offsets):  # more than a single word
            return offsets[0]
    return None


def _contexts(path: Path, without: re.Pattern[bytes] | None = None) -> Iterator[tuple[_Ints, _Ints]]:
    """The offsets of non-ASCII bytes, and each with two neighbours on each side packed into a number."""
    with path.open("rb") as file:
        begin, buffer = -2, b"\n\n"
        while True:
            chunk = file.read(CHUNK_BYTES)
            buffer += chunk if chunk else b"\n\n"
            text = without.sub(b" ", buffer) if without is not None else buffer
            data = np.frombuffer(text, np.uint8)
            at = np.flatnonzero(data[2:-2] >= 0x80) + 2
            packed = np.zeros(len(at), np.int64)
            for place in range(-2, 3):
                packed = packed << 8 | data[at + place]
            yield at + begin, packed
            if not chunk:
                return
            begin, buffer = begin + len(buffer) - 4, buffer[-4:]


def _offsets(path: Path, codes: set[int], limit: int) -> list[int]:
    """The first offsets of these contexts."""
    wanted = np.array(sorted(codes))
    offsets: list[int] = []
    for at, packed in _contexts(path):
        offsets += at[np.isin(packed, wanted)].tolist()
        if len(offsets) >= limit:
            break
    return offsets[:limit]


class _Languages(NamedTuple):
    """Languages whose letters are implausible in all others."""

    icelandic: bool
    icelandic_names: bool
    estonian: bool
    french: bool

    @staticmethod
    def of(letters: Counter[str]) -> _Languages:
        eth = sum(letters[char] for char in _ICELANDIC)
        support = sum(letters[char] for char in _ICELANDIC_SUPPORT)
        against = sum(letters[char] for char in _NOT_ICELANDIC)
        tilde = letters["õ"] + letters["Õ"]
        return _Languages(
            icelandic=support / 10 <= eth <= 2 * support and against <= eth,
            icelandic_names=sum(letters[char] for char in _WESTERN) >= 3 * sum(letters[char] for char in "þðÞÐ"),
            french=any(letters[char] for char in _FRENCH),
            estonian=letters["ä"] + letters["Ä"] >= tilde > 0,
        )


@cache
def _chars(code: int) -> tuple[str, str, str, str, str]:
    """A character with the two before and the two after."""
    text = code.to_bytes(5, "big").decode("cp1252", "replace")
    return text[0], text[1], text[2], text[3], text[4]


_Verdict = Literal["proof", "foreign", "icelandic", "unusual", ""]


def _verdict(first: str, before: str, char: str, after: str, last: str, languages: _Languages) -> _Verdict:
    """What a non-ASCII character, with its neighbours, says about the encoding."""
    if not _is_letter(char):
        return _sign_verdict(first, before, char, after, last)
    if (char in "ƒµ" and _is_letter(before)) or (char == "ƒ" and _is_letter(after)):
        return "proof"
    if char in _ICELANDIC and not languages.icelandic:
        return "icelandic" if char not in "ýÝ" and languages.icelandic_names else "foreign"
    if _is_foreign(before, char, after, languages):
        return "foreign"
    in_run = all(_is_letter(other) and not other.isascii() for other in (before, after)) and not before == char == after
    return "unusual" if in_run or _is_unusual(before, char, after, languages) else ""


def _is_letter(char: str) -> bool:
    return char.isalpha() and char not in "ªºˆ"


def _sign_verdict(first: str, before: str, char: str, after: str, last: str) -> _Verdict:
    """A sign, above all between letters."""
    if char == "¤":  # the euro sign in another code page
        return "proof"
    is_between = _is_letter(before) and _is_letter(after)
    if char in "’‘" and is_between and _is_letter(first):
        is_suffix = (after in "stdmSTDM" and not _is_letter(last)) or (after + last).lower() in ("re", "ve", "ll")
        return "" if is_suffix or (first + before).lower() in _ELIDED else "foreign"
    if char in "–—" and after in "–—" and _is_letter(before):
        return "foreign"
    if char in "–—" and _is_letter(before):
        is_compound = (
            is_between and not (before.islower() and after.islower()) and _is_letter(first) == _is_letter(last)
        )
        return "foreign" if (is_between and not is_compound) or (char == "—" and after.isspace()) else ""
    if char in "ºª":  # Nº, Mª, 1º
        return "foreign" if _is_letter(after) or (_is_letter(before) and _is_letter(first)) else ""
    if is_between and char not in _BETWEEN_LETTERS:
        if char in "•×":
            return "" if char == "×" and not _is_letter(first) and not _is_letter(last) else "foreign"
        if char in _BETWEEN_WORDS:
            return "foreign" if before.islower() and after.islower() else ""
        return "proof"
    if not is_between and ((_is_letter(before) and char in _NOT_AFTER) or (after.islower() and char in _NOT_BEFORE)):
        return "foreign"
    return "unusual" if not is_between and char in "‚„‹›¸" and (_is_letter(before) or _is_letter(after)) else ""


def _is_foreign(before: str, char: str, after: str, languages: _Languages) -> bool:
    """A letter of other languages, or where Western ones do not have it; other code pages have their own there."""
    low, follows = char.lower(), after if _is_letter(after) else ""
    if low in "šž" or (
        char.isupper() and _is_letter(before) and (after.islower() or (before.islower() and char in "ŽŠŸŒ"))
    ):
        return True
    if char == "ã":
        return bool(follows) and follows not in "oes"
    if char in "çÇ" and follows and follows.lower() not in "aouáâãóôõúûåéíà":
        return True
    if char == "õ":
        return follows not in ("e", "E") and not languages.estonian
    if low == "û":
        return not languages.french
    return low == "œ" and _is_letter(before) and follows.lower() not in ("u", "i", "t")


def _is_unusual(before: str, char: str, after: str, languages: _Languages) -> bool:
    """An accented letter in a place where Western languages do not have it."""
    low, follows = char.lower(), after if _is_letter(after) else ""
    if char.isupper() and before.islower():
        return True
    if not before.isascii() and _is_letter(before) and f"{before}{char}".lower() not in _PAIRS:
        return True
    consonant = bool(follows) and follows.isascii() and follows not in _VOWELS
    vowel = bool(follows) and follows in _VOWELS
    after_vowel = before in _VOWELS
    return {
        "õ": follows not in ("e", "E") and not languages.estonian,
        "è": vowel,
        "ì": bool(follows),
        "ù": bool(follows),
        "ï": bool(follows) and not after_vowel,
        "ò": vowel,
        "æ": before in ("i", "I"),
        "ë": before.isascii() and before.isalpha() and not after_vowel,
        "ñ": consonant,
        "ê": before in ("i", "I"),
        "ÿ": consonant,
        "œ": follows.lower() in ("w", "m", "k", "p", "z", "o", "a", "y"),
        "ø": before in ("è", "ì", "ù", "á", "í", "ý"),
        "û": before in ("e", "E", "i", "I"),
    }.get(low, False)
