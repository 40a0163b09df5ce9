"""Whether text decoded as cp1252 is plausible: a file in another code page decodes too, into other letters.

In: the bytes of a file that is not UTF-8. Out: nothing if they read like a Western European language; otherwise the
first implausible place. `Dvořák` in cp1250 becomes `Dvoøák`, `Muñoz` in cp850 `Mu¤oz`, `Привет` in cp1251 `Ïðèâåò`.

Only the non-ASCII characters and their neighbours are looked at. Some combinations are practically proof (a sign
between letters), others merely unusual in Western languages (three accented letters in a row, `è` before a vowel, `ñ`
before a consonant). Since names and typing errors occur in every file, a share of them is accepted.
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
PROOF_SHARE: Final = 0.001
UNUSUAL_SHARE: Final = 0.03
LONGEST_WORD: Final = 30
_VOWELS: Final = frozenset("aeiouAEIOU")
_BETWEEN_LETTERS: Final = frozenset("’‘´·'\xa0\xad")
"""Apostrophes, the Catalan middle dot and invisible characters may be between letters."""
_BETWEEN_WORDS: Final = frozenset("–—…™®ªº°")
"""These may follow a word, and a capital letter follow them."""
_ADJACENT: Final = (
    "çã çõ çá çú çó çé çà çâ éç íç úç ôç êç âç áç óç àç éé éè éê éâ éà éô ïé âé éï éû ùé ôé áñ éñ íñ óñ úñ ãñ ñá ñé "
    "ñí ñó ñú ää öö üü õõ äö öä åä äå öå åö æå øæ åæ æø øå üß öß äß ßö ßü ßä üö öü õü üõ äü õä ïä éö öé üé éü áí íá "
    "óí íó êê îé öæ æð ðæ íð ðí áð ðá óð ðó úð ðú öð ðö ýð ðý éð þæ þé þá þó þí þö þú þý íþ áþ óþ æþ ðþ ýþ úþ öþ âê "
    "àê êà àé èé úó"
)
_PAIRS: Final = frozenset(_ADJACENT.split(" "))
"""Accented letters that are next to each other in Western languages."""
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
        letters[_chars(code)[1]] += count
    languages = _Languages.of(letters)
    verdicts = {code: _verdict(*_chars(code), languages) for code in counts}
    proofs = {code for code, verdict in verdicts.items() if verdict == "proof"}
    unusual = {code for code, verdict in verdicts.items() if verdict == "unusual"}
    total = counts.total()
    if proofs and sum(counts[code] for code in proofs) >= PROOF_SHARE * total:
        return _offsets(path, proofs, 1)[0] if without is None else 0
    if unusual and sum(counts[code] for code in unusual) >= UNUSUAL_SHARE * total:
        offsets = _offsets(path, unusual, LONGEST_WORD) if without is None else [0, LONGEST_WORD]
        if len(offsets) == LONGEST_WORD or offsets[-1] - offsets[0] >= len(offsets):  # more than a single word
            return offsets[0]
    return None


def _contexts(path: Path, without: re.Pattern[bytes] | None = None) -> Iterator[tuple[_Ints, _Ints]]:
    """The offsets of non-ASCII bytes, and each with its neighbours packed into a number."""
    with path.open("rb") as file:
        begin, buffer = -1, b"\n"
        while True:
            chunk = file.read(CHUNK_BYTES)
            buffer += chunk if chunk else b"\n"
            text = without.sub(b" ", buffer) if without is not None else buffer
            data = np.frombuffer(text, np.uint8)
            at = np.flatnonzero(data[1:-1] >= 0x80) + 1
            wide = data.astype(np.int64)
            yield at + begin, wide[at - 1] << 16 | wide[at] << 8 | wide[at + 1]
            if not chunk:
                return
            begin, buffer = begin + len(buffer) - 2, buffer[-2:]


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
    estonian: bool

    @staticmethod
    def of(letters: Counter[str]) -> _Languages:
        eth = sum(letters[char] for char in _ICELANDIC)
        support = sum(letters[char] for char in _ICELANDIC_SUPPORT)
        against = sum(letters[char] for char in _NOT_ICELANDIC)
        tilde = letters["õ"] + letters["Õ"]
        return _Languages(
            icelandic=support / 10 <= eth <= 2 * support and against <= eth,
            estonian=letters["ä"] + letters["Ä"] >= tilde > 0,
        )


@cache
def _chars(code: int) -> tuple[str, str, str]:
    """A character with the one before and the one after."""
    text = code.to_bytes(3, "big").decode("cp1252", "replace")
    return text[0], text[1], text[2]


def _verdict(before: str, char: str, after: str, languages: _Languages) -> Literal["proof", "unusual", ""]:
    """Whether a non-ASCII character, with its neighbours, proves the encoding wrong or is unusual."""
    if not _is_letter(char):
        return _sign_verdict(before, char, after)
    if (char in "ƒµ" and _is_letter(before)) or (char in _ICELANDIC and not languages.icelandic):
        return "proof"
    in_run = all(_is_letter(other) and not other.isascii() for other in (before, after)) and not before == char == after
    return "unusual" if in_run or _is_unusual(before, char, after, languages) else ""


def _is_letter(char: str) -> bool:
    return char.isalpha() and char not in "ªº"


def _sign_verdict(before: str, char: str, after: str) -> Literal["proof", "unusual", ""]:
    """A sign between letters."""
    if char in _BETWEEN_LETTERS or not (_is_letter(before) and _is_letter(after)):
        return "unusual" if char in "‚ƒ„†‡ˆ‰‹•˜›¤¦¨¬¯¸" and (_is_letter(before) or _is_letter(after)) else ""
    if char in _BETWEEN_WORDS:
        return "unusual" if before.islower() and after.islower() else ""
    return "proof"


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
        "è": vowel,
        "ì": bool(follows),
        "ù": bool(follows),
        "ï": bool(follows) and not after_vowel,
        "ò": vowel,
        "õ": follows not in ("e", "E") and not languages.estonian,
        "ã": consonant and follows.lower() not in "sz",
        "æ": before in ("i", "I"),
        "ë": before.isascii() and before.isalpha() and not after_vowel,
        "ç": consonant or follows.lower() in ("e", "i"),
        "ñ": consonant,
        "ê": before in ("i", "I"),
        "ÿ": consonant,
        "œ": follows.lower() in ("w", "m", "k", "p", "z", "o", "a", "y"),
        "ø": before in ("è", "ì", "ù", "á", "í", "ý"),
        "û": before in ("e", "E", "i", "I"),
    }.get(low, False)
