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
from typing import BinaryIO, Final

import numpy as np
import numpy.typing as npt

_Ints = npt.NDArray[np.int64]

CHUNK_BYTES: Final = 512 * 1024
SHARES: Final = {"proof": 0.001, "foreign": 0.05, "icelandic": 0.15, "unusual": 0.03}
"""Of the non-ASCII characters, by what they are: from this share on, the text is implausible."""
LONGEST_WORD: Final = 30
_ADJACENT: Final = (
    "çã|çõ|çá|çú|çó|çé|çà|çâ|éç|íç|úç|ôç|êç|âç|áç|óç|àç|éé|éè|éê|éâ|éà|éô|ïé|âé|éï|éû|ùé|ôé|áñ|éñ|íñ|óñ|úñ|ãñ|ñá|ñé|ñí|"
    "ñó|ñú|ää|öö|üü|õõ|äö|öä|åä|äå|öå|åö|æå|øæ|åæ|æø|øå|üß|öß|äß|ßö|ßü|ßä|üö|öü|õü|üõ|äü|õä|ïä|éö|öé|üé|éü|áí|íá|óí|íó|"
    "êê|îé|öæ|æð|ðæ|íð|ðí|áð|ðá|óð|ðó|úð|ðú|öð|ðö|ýð|ðý|éð|þæ|þé|þá|þó|þí|þö|þú|þý|íþ|áþ|óþ|æþ|ðþ|ýþ|úþ|öþ|âê|àê|êà|àé|"
    "èé|úó"
)
"""Accented letters that are next to each other in Western languages."""
_CLASSES: Final = {
    "L": "[A-Za-zƒŠŒŽšœžŸµÀ-ÖØ-öø-ÿ]",
    "N": "[^A-Za-zƒŠŒŽšœžŸµÀ-ÖØ-öø-ÿ]",
    "A": "[ƒŠŒŽšœžŸµÀ-ÖØ-öø-ÿ]",
    "S": "[a-zƒšœžµªºß-öø-ÿ]",
    "C": "[A-ZŠŒŽŸÀ-ÖØ-Þ]",
    "V": "[aeiouAEIOU]",
    "ADJACENT": _ADJACENT,
    "K": "[b-df-hj-np-tv-zB-DF-HJ-NP-TV-Z]",
}
"""Letter, no letter, accented letter, small letter, capital, vowel and consonant of ASCII."""
_RULES: Final = (
    ("proof", "..¤"),  # the euro sign in another code page
    # don’t, dell’Olio
    (
        "fine",
        "LL[’‘](?:(?i:[stdm])N|(?i:re|ve|ll))|(?i:qu|ll|un|nt|st|tt|gl|nd|rd|zz)[’‘]L",
    ),
    ("foreign", r"LL[’‘]L|.L[–—][–—]|.L—\s"),
    ("fine", "(?!.S.S)(?:LL[–—]LL|NL[–—]LN)"),  # Café–Bar, A–B
    ("foreign", ".L[–—]L"),
    ("foreign", "..[ºª]L|LL[ºª]"),  # not Nº, Mª, 1º
    ("fine", "NL×LN"),
    ("foreign", ".L[•×]L|.S[…™®°]S"),
    # apostrophes, the Catalan middle dot, invisible characters, ends of words
    (
        "fine",
        ".L[’‘´·'\xa0\xad…™®°]L",
    ),
    ("proof", ".L(?!L).L"),
    ("foreign", ".L[‚„†‡ˆ‰•˜¦¨¬¯\xa7¶¡¢£¿]|..[†‡ˆ‰˜¦¨¬¯€™®¶¢]S"),  # after or before a word
    ("foreign", ".L“", "quoting"),
    ("unusual", ".L[‚‹›¸]|..[‚‹›¸]L"),
    ("unusual", "..„L", "quoting"),
    ("proof", ".L[ƒµ]|..ƒL"),
    ("icelandic", "..[þðÞÐ]", "icelandic", "other"),
    ("foreign", "..[þðÞÐýÝ]", "icelandic"),
    (
        "foreign",
        "..[šžŠŽ]|.LCS|.S[ŸŒ]|..ã(?![oes])L|..[çÇ](?!(?i:[aouáâãóôõúûåéíàei]))L|.L[œŒ](?!(?i:[uit]))",
    ),
    ("foreign", "..õ(?i:[^e])", "estonian"),
    ("foreign", "..[ûÛ]", "french"),
    ("unusual", r".(?!(.)\1\1)AAA|.SC|.(?!(?i:ADJACENT))AA"),
    ("unusual", "..Õ(?i:[^e])", "estonian"),
    (
        "unusual",
        "..[èÈòÒ]V|..[ìÌùÙ]L|.(?!V).[ïÏ]L|.K[ëË]|.(?i:i[æê]|[ei]û)|..[ñÑÿŸ]K|..(?i:œ[wmkpzoay])",
    ),
    ("unusual", ".[èìùáíý][øØ]"),
)
"""What a character (the third one) says with two neighbours on each side, and languages that have it: the first that
matches counts."""


def implausible_place(file: BinaryIO, without: re.Pattern[bytes] | None = None) -> int | None:
    """The offset of the first place that does not read like a Western language; None if the whole text is plausible.

    Args:
        file: the open file.
        without: what to leave out; then the place is not exact.
    """
    counts = _counted(file, without)
    by_verdict = _by_verdict(counts)
    for verdict, share in SHARES.items():
        wanted = by_verdict[verdict]
        if not wanted or sum(counts[code] for code in wanted) < share * counts.total():
            continue
        places = _places_of(wanted, file, without)
        endings = {code >> 16 for code in wanted}  # as Brontë, whatever follows it
        is_one_name = len(endings) == 1 and len(by_verdict["fine"]) > 0
        is_word = is_one_name or _are_one_word(places)
        if verdict != "unusual" or not is_word or without is not None:
            return int(places[0])
    return None


def _counted(file: BinaryIO, without: re.Pattern[bytes] | None) -> Counter[int]:
    """How often each non-ASCII byte with its neighbours occurs."""
    counts: Counter[int] = Counter()
    for _, codes in _contexts(file, without):
        different, times = np.unique(codes, return_counts=True)
        counts.update(dict(zip(different.tolist(), times.tolist(), strict=True)))
    return counts


def _by_verdict(counts: Counter[int]) -> dict[str, list[int]]:
    """The contexts by what the first rule that matches says of them; `fine` where none does."""
    texts = {code: code.to_bytes(5, "big").decode("cp1252", "replace") for code in counts}
    letters = Counter[str]()
    for code, text in texts.items():
        letters[text[2]] += counts[code]
    rules = _rules(frozenset(_languages(letters)))
    by_verdict: dict[str, list[int]] = {verdict: [] for verdict in (*SHARES, "fine")}
    for code, text in texts.items():
        match = rules.match(text)
        group = (match and match.lastgroup) or "fine"
        by_verdict[group.rstrip("0123456789")].append(code)
    return by_verdict


def _places_of(wanted: list[int], file: BinaryIO, without: re.Pattern[bytes] | None) -> _Ints:
    """The offsets of some contexts."""
    found = [at[np.isin(codes, wanted)] for at, codes in _contexts(file, without)]
    return np.concatenate(found)


def _are_one_word(places: _Ints) -> bool:
    """Whether all places are next to each other."""
    return len(places) < LONGEST_WORD and int(places[-1] - places[0]) < len(places)


def _contexts(file: BinaryIO, without: re.Pattern[bytes] | None) -> Iterator[tuple[_Ints, _Ints]]:
    """The offsets of non-ASCII bytes, and each with two neighbours on each side as a number."""
    file.seek(0)
    begin = -4
    buffer = b"\n" * 4
    chunk = b"\n"
    while chunk:
        chunk = file.read(CHUNK_BYTES)
        buffer += chunk or b"\n" * 4
        data = np.frombuffer(without.sub(b" ", buffer) if without is not None else buffer, np.uint8)
        at = np.flatnonzero(data[2:-2] >= 0x80)
        yield (
            at + begin + 2,
            np.lib.stride_tricks.sliding_window_view(data, 5)[at] @ 256 ** np.arange(4, -1, -1),
        )
        begin = begin + len(buffer) - 4
        buffer = buffer[-4:]


def _languages(letters: Counter[str]) -> Iterator[str]:
    """The languages whose letters are implausible in all others; `other`: not even as names in another one."""

    def count(chars: str) -> int:
        return sum(letters[char] for char in chars)

    icelandic, shared = count("þðÞÐýÝ"), count("áéíóúæÁÉÍÓÚÆ")
    if shared / 10 <= icelandic <= 2 * shared and count("çüÇÜøØåÅâêîôûàèìòùëïãõñ") <= icelandic:
        yield "icelandic"
    if count("áéíóúñàèêæåÁÉÍÓÚÑÀÈÊÆÅ") < 3 * count("þðÞÐ"):  # letters that Turkish lacks
        yield "other"
    if count("„") == count("“") > 0:  # „so“
        yield "quoting"
    if count("äÄ") >= count("õÕ") > 0:
        yield "estonian"
    if count("àèêçëïîôœÀÈÊÇËÏÎÔŒ"):
        yield "french"


@cache
def _rules(languages: frozenset[str]) -> re.Pattern[str]:
    """The rules that hold in these languages as one expression, whose last group is the verdict and a number."""
    parts = []
    for number, (verdict, pattern, *without) in enumerate(_RULES):
        if languages.isdisjoint(without):
            expanded = re.sub("ADJACENT|[A-Z]", lambda found: _CLASSES[found[0]], pattern)
            parts.append(f"(?P<{verdict}{number}>{expanded})")
    return re.compile("|".join(parts), re.DOTALL)
