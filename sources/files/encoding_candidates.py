"""Encodings that a file may be in, shown with a sample of its own words in each.

In: a file that is neither UTF-8 nor plausible as cp1252. Out: text for an error message. The plausibility of the
letters ranks the candidates, better than charset-normalizer does (words of test_code_pages.py); a person decides.
"""

from __future__ import annotations

import re
import unicodedata
from pathlib import Path
from typing import Final

CANDIDATES: Final = (
    "cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "iso8859_5", "cp866", "cp1253", "iso8859_7", "cp1254",
    "iso8859_9", "cp1257", "iso8859_13", "cp850", "cp437", "cp852", "cp857", "cp737", "cp775", "mac_roman",
    "mac_latin2", "mac_cyrillic", "mac_greek", "mac_turkish", "iso8859_15", "iso8859_16", "cp1255", "cp1256", "cp1258",
    "cp874", "cp932", "gb18030", "big5", "euc_kr", "koi8_u", "iso8859_3", "iso8859_4", "iso8859_10",
)  # fmt: skip
SHOWN: Final = 6
SAMPLE_BYTES: Final = 16 * 1024
SAMPLE_CHARS: Final = 60
_WORD: Final = re.compile(r"(?<![^\s;,|\"'])[^\W\d_]+(?:[–—•×’][^\W\d_]+)*(?![^\s;,|\"'])|[€¤]")
"""A word, also two with a sign between them, or a sign by which two code pages differ."""


def describe_candidates(path: Path) -> str:
    """Likely encodings, best first, each with words of the file; encodings that read the same are listed together."""
    line, sample = _sample(path)
    if not sample:
        return ""
    readings: list[tuple[float, int, str, str]] = []
    for position, name in enumerate(CANDIDATES):
        try:
            text = sample.decode(name)
        except UnicodeDecodeError:
            continue
        readings.append((_cost(text), position, name, text))
    by_words: dict[str, list[str]] = {}
    for _, _, name, text in sorted(readings):
        by_words.setdefault(_words(text), []).append(name.replace("iso8859_", "iso8859-"))
    shown = [(words, names) for words, names in by_words.items() if words]
    shown = shown[:SHOWN] + [item for item in shown[SHOWN:] if "cp1252" in item[1]]  # the most frequent of all
    lines = [f"{', '.join(names[:4])}: {words}" for words, names in shown]
    return "\n    ".join([f"from line {line} on it reads in", *lines])


def _sample(path: Path) -> tuple[int, bytes]:
    """The lines with non-ASCII bytes, up to a limit, and the number of the first one."""
    parts: list[bytes] = []
    first = size = 0
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            if line.isascii():
                continue
            first = first or number
            parts.append(line[:2048])
            size += len(parts[-1])
            if size > SAMPLE_BYTES:
                break
    return first, b"".join(parts)


def _cost(text: str) -> float:
    """How unlike a text of words it is: signs next to letters, mixed scripts and cases, rare letters; 0 is best."""
    odd = total = 0.0
    for at, char in enumerate(text):
        if char.isascii():
            continue
        total += 1
        before, after = text[at - 1 : at], text[at + 1 : at + 2]
        if not char.isalpha():
            odd += 1.0 if before.isalpha() or after.isalpha() else 0 if char == "€" else 0.5
            odd += 1.0 if unicodedata.category(char) in ("Cc", "Cf", "Co", "Cn", "So") or char == "¤" else 0
            continue
        script, neighbour = _script(char), before if before.isalpha() else after if after.isalpha() else ""
        odd += 1.0 if neighbour and _script(neighbour) != script else 0
        odd += 1.0 if before.islower() and char.isupper() else 0
        odd += 0.4 if script == "LATIN" and not before.isascii() and before.isalpha() else 0
        odd += 0.3 if script == "LATIN" and char.lower() not in _FREQUENT else 0
    return round(odd / total, 2) if total else 9.0


_FREQUENT: Final = frozenset("áéíóúñüàèìòùâêîôûäöëïçãõåæøßœčěřšžýůňťďąćęłńśźżőűăâîșşțţđğıāēģīķļņūėįųõ")


def _script(char: str) -> str:
    return unicodedata.name(char, "?").partition(" ")[0]


def _words(text: str) -> str:
    """Words with a non-ASCII letter, without numbers or codes, up to a limit."""
    words = dict.fromkeys(
        word for word in _WORD.findall(text) if not word.isascii() and (len(word) > 1 or word in "€¤")
    )
    shown = ""
    for word in words:
        if len(shown) + len(word) > SAMPLE_CHARS:
            break
        shown += f"{', ' if shown else ''}{word}"
    return shown
