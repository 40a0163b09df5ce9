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
from functools import cache
from pathlib import Path
from typing import Final, Literal, NamedTuple

CHUNK_BYTES: Final = 512 * 1024
_CONTEXT: Final = re.compile(rb"[\x80-\xff](?<=(?s:(..)))([\x80-\xff]*)(?=(?s:(.?)))")
"""A run of non-ASCII bytes: its first byte with the one before, the rest, and the byte after."""
PROOF_SHARE: Final = 0.001
UNUSUAL_SHARE: Final = 0.03
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


class Implausible(NamedTuple):
    """The offset of the first implausible place in the file."""

    offset: int


def implausible_place(path: Path, without: re.Pattern[bytes] | None = None) -> Implausible | None:
    """The first place that does not read like a Western language; None if the text as a whole is plausible.

    Args:
        path: the file.
        without: what to leave out; then the place is not exact.
    """
    counts: Counter[tuple[bytes, bytes, bytes]] = Counter()
    last = b"\n"
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            chunk = without.sub(b" ", chunk) if without is not None else chunk
            counts.update(_CONTEXT.findall(last + chunk))
            last = chunk[-1:]
    letters = Counter[str]()
    for (first, rest, _), count in counts.items():
        for char in _decoded(first[1:] + rest):
            letters[char] += count
    languages = _Languages.of(letters)
    total = counts.total()
    verdicts = {context: _verdict(*context, languages) for context in counts}
    proofs = sum(count for context, count in counts.items() if verdicts[context] == "proof")
    unusual = sum(count for context, count in counts.items() if verdicts[context] == "unusual")
    kinds = sum(verdict == "unusual" for verdict in verdicts.values())
    is_unusual = kinds > 1 and unusual >= UNUSUAL_SHARE * total
    if not is_unusual and (not proofs or proofs < PROOF_SHARE * total):
        return None
    wanted: Literal["proof", "unusual"] = "proof" if proofs else "unusual"
    return Implausible(_first(path, {context for context, verdict in verdicts.items() if verdict == wanted}))


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
def _decoded(text: bytes) -> str:
    return text.decode("cp1252", "replace")


def _verdict(first: bytes, rest: bytes, following: bytes, languages: _Languages) -> Literal["proof", "unusual", ""]:
    """What a run of non-ASCII characters, with its neighbours, says about the text."""
    run = _decoded(first[1:] + rest)
    text = f"{_decoded(first[:1])}{run}{_decoded(following)}"
    accented = [char for char in run if _is_letter(char)]
    unusual = len(accented) > 2 and len(set(accented)) > 1
    for at in range(1, len(run) + 1):
        before, char, after = text[at - 1], text[at], text[at + 1 : at + 2]
        if not _is_letter(char):
            kind = _sign_verdict(before, char, after)
        elif (char in "ƒµ" and _is_letter(before)) or (char in _ICELANDIC and not languages.icelandic):
            kind = "proof"
        else:
            kind = "unusual" if _is_unusual(before, char, after, languages) else ""
        if kind == "proof":
            return "proof"
        unusual = unusual or kind == "unusual"
    return "unusual" if unusual else ""


def _is_letter(char: str) -> bool:
    return char.isalpha() and char not in "ªº"


def _sign_verdict(before: str, char: str, after: str) -> str:
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


def _first(path: Path, contexts: set[tuple[bytes, bytes, bytes]]) -> int:
    """The offset of the first of these contexts."""
    begin, last = -1, b"\n"
    with path.open("rb") as file:
        while chunk := file.read(CHUNK_BYTES):
            for match in _CONTEXT.finditer(last + chunk):
                if match.groups() in contexts:
                    return begin + match.start()
            begin += len(chunk)
            last = chunk[-1:]
    return 0
