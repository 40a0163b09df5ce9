"""Secrets in the platform's answers: one place that finds and masks them.

In: the secrets of the settings, and texts that a platform, or a proxy before it, may have put them into. Out: the same
texts with `***` in place of each secret and of each part of it, plain or encoded.
"""

from __future__ import annotations

import base64
import re
from bisect import bisect_right
from codecs import getincrementaldecoder
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from orderbridge.sources.settings import known_secrets

MASK: Final = "***"
PART_MIN: Final = 8
"""Characters from which a part of a secret is masked.

Seven characters of a key that a machine issued leave all others to be guessed, and words of eight letters are rarely
part of one by chance. A shorter secret is masked only whole and only as a word of its own.
"""
_BASE64_MIN: Final = PART_MIN * 8 // 6
_HEX_MIN: Final = PART_MIN * 2
_PREFIX: Final = re.compile(r"[a-z0-9]+_(?:live|test)_", re.IGNORECASE)
"""What precedes the secret of a v1 key: it is public, and messages about keys contain it."""
_WORD: Final = re.compile(r"(?<![^\W_])[a-z]{8,14}(?![^\W_])")
"""A word between separators, such as `production` in `my-production-key-4f8a`, long enough to be taken for a part."""
_RANDOM_MIN: Final = 16
"""Characters of a secret that must be left beside its words; where fewer are, the words are the secret."""
_UPPER: Final = {ord(upper): ord(upper) + 32 for upper in "ABCDEFGHIJKLMNOPQRSTUVWXYZ"}
"""Lower case of ASCII alone: that of other letters may have another length, and places would move."""

_ESCAPE: Final = re.compile(
    r"""(?xi)
    (?P<percent> (?: %(?:25)*[0-9a-f]{2} )+ )
    | \\+u(?P<high>d[89ab][0-9a-f]{2}) \\+u(?P<low>d[c-f][0-9a-f]{2})
    | (?: \\+u | %u ) (?P<unicode>[0-9a-f]{4})
    | \\+u\{ (?P<braced>[0-9a-f]{1,6}) \}
    | \\+x (?P<hex>[0-9a-f]{2})
    | &\#x (?P<entity_hex>[0-9a-f]{1,6});?
    | &\# (?P<entity>[0-9]{1,7});?
    | & (?P<named>amp|quot|apos|lt|gt);
    | \\+ (?P<escaped>["'/\\])
    """
)
_PERCENT_BYTE: Final = re.compile(r"%(?:25)*([0-9a-f]{2})", re.IGNORECASE)
_NAMED: Final = {"amp": "&", "quot": '"', "apos": "'", "lt": "<", "gt": ">"}
_CODE_POINTS: Final = (
    ("unicode", 16),
    ("braced", 16),
    ("hex", 16),
    ("entity_hex", 16),
    ("entity", 10),
)


class Masker:
    """Masks secrets: whole, in parts of `PART_MIN` characters, reversed, and encoded in any of these ways.

    Percent, JSON, unicode and HTML escapes, base64 and hex are recognized, in any case of letters. The public prefix of
    a key and whole words between separators are no parts of it.
    """

    __slots__ = ("_parts", "_short")

    def __init__(self, secrets: Iterable[str]) -> None:
        self._parts: dict[int, set[str]] = {}
        self._short: list[re.Pattern[str]] = []
        for secret in filter(None, secrets):
            self._learn(secret)

    def _learn(self, secret: str) -> None:
        lower = secret.translate(_UPPER)
        core = secret[_core_start(lower) :]
        if len(core) < PART_MIN:
            self._short.append(re.compile(rf"(?<!\w){re.escape(lower)}(?!\w)"))
            return
        self._add_parts(secret, len(secret))
        words = _harmless_words(core.translate(_UPPER))
        for text in (core, core[::-1]):
            self._add_parts(text, PART_MIN, words)
            encoded = text.encode("utf-8", "surrogatepass")
            self._add_parts(encoded.hex(), _HEX_MIN)
            for part in _base64_forms(encoded):
                self._add_parts(part, _BASE64_MIN)

    def _add_parts(self, text: str, width: int, words: tuple[str, ...] = ()) -> None:
        lower = text.translate(_UPPER)
        known = self._parts.setdefault(width, set())
        for start in range(len(lower) - width + 1):
            part = lower[start : start + width]
            is_of_a_word = any(part in word for word in words)
            if not is_of_a_word:
                known.add(part)

    def mask(self, text: str) -> str:
        """The text with `***` for each secret and each part of one."""
        decoded = _decode(text)
        pieces: list[str] = []
        end = 0
        for first, last in _joined(sorted(self._found(decoded.lower))):
            start = decoded.start_of(first)
            pieces += [text[end:start], MASK]
            end = decoded.end_of(last)
        return "".join([*pieces, text[end:]])

    def mask_bytes(self, body: bytes) -> bytes:
        """A body in UTF-8 with its secrets masked; bytes that are no UTF-8 stay as they are."""
        text = body.decode("utf-8", "surrogateescape")
        return self.mask(text).encode("utf-8", "surrogateescape")

    def _found(self, lower: str) -> Iterator[tuple[int, int]]:
        """First and last place of each part of a secret."""
        for width, parts in self._parts.items():
            for start in range(len(lower) - width + 1):
                if lower[start : start + width] in parts:
                    yield start, start + width - 1
        for pattern in self._short:
            for match in pattern.finditer(lower):
                yield match.start(), match.end() - 1


def masked(text: str | None) -> str | None:
    """The text without the secrets of the settings."""
    return text and Masker(known_secrets()).mask(text)


def _core_start(lower: str) -> int:
    """Where the secret of a key begins: near the end of its public prefix, if enough follows it.

    The last characters of the prefix are taken along, so that a part which begins there is one.
    """
    prefix = _PREFIX.match(lower)
    if prefix is None or len(lower) - prefix.end() < PART_MIN:
        return 0
    return max(0, prefix.end() - PART_MIN // 2)


def _harmless_words(core: str) -> tuple[str, ...]:
    """The words of a key that are masked only together with what surrounds them, and their reverses."""
    words = _WORD.findall(core)
    if len(core) - sum(map(len, words)) < _RANDOM_MIN:
        return ()
    return (*words, *(word[::-1] for word in words))


def _base64_forms(data: bytes) -> Iterator[str]:
    """What base64 makes of these bytes wherever they stand in a longer text, in both alphabets.

    The characters at both ends depend on the bytes next to them and are left out.
    """
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data)
        first = -(-offset * 8 // 6)
        last = (offset + len(data)) * 8 // 6
        form = encoded[first:last].decode()
        yield form
        yield form.replace("+", "-").replace("/", "_")


def _joined(places: Iterable[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Sorted places, with those that overlap or touch each other as one."""
    current: tuple[int, int] | None = None
    for first, last in places:
        if current is not None and first <= current[1] + 1:
            current = (current[0], max(current[1], last))
            continue
        if current is not None:
            yield current
        current = (first, last)
    if current is not None:
        yield current


@dataclass(frozen=True, slots=True)
class _Decoded:
    """A text without escapes, in lower case, and where its characters come from.

    Attributes:
        lower: the text.
        places: the decoded characters that begin a run: in each run, one character of `lower` is one of the original,
            except for an escape, which is a run of its own.
        spans: start and end of each run in the original.
    """

    lower: str
    places: list[int]
    spans: list[tuple[int, int, bool]]

    def start_of(self, place: int) -> int:
        """Where a decoded character starts in the original."""
        run = bisect_right(self.places, place) - 1
        start, _, is_escape = self.spans[run]
        return start if is_escape else start + place - self.places[run]

    def end_of(self, place: int) -> int:
        """Where a decoded character ends in the original."""
        run = bisect_right(self.places, place) - 1
        start, end, is_escape = self.spans[run]
        return end if is_escape else start + place - self.places[run] + 1


def _decode(text: str) -> _Decoded:
    """Resolves every escape of a text once."""
    pieces: list[str] = []
    places: list[int] = []
    spans: list[tuple[int, int, bool]] = []
    length = 0
    end = 0
    for char, start, stop in _escapes(text):
        if start > end:
            pieces.append(text[end:start])
            places.append(length)
            spans.append((end, start, False))
            length += start - end
        pieces.append(char)
        places.append(length)
        spans.append((start, stop, True))
        length += len(char)
        end = stop
    pieces.append(text[end:])
    places.append(length)
    spans.append((end, len(text), False))
    return _Decoded("".join(pieces).translate(_UPPER), places, spans)


def _escapes(text: str) -> Iterator[tuple[str, int, int]]:
    """Each escaped character, with the start and end of its escape."""
    for match in _ESCAPE.finditer(text):
        if match["percent"]:
            yield from _percent_escapes(text, match.start("percent"), match.end("percent"))
        elif char := _escaped_character(match):
            yield char, match.start(), match.end()


def _escaped_character(match: re.Match[str]) -> str:
    if match["high"]:
        pair = bytes.fromhex(match["high"] + match["low"])
        return pair.decode("utf-16-be")
    if match["named"]:
        return _NAMED[match["named"].lower()]
    if match["escaped"]:
        return match["escaped"]
    for name, base in _CODE_POINTS:
        if match[name]:
            number = int(match[name], base)
            return chr(number) if number <= 0x10FFFF else ""
    return ""


def _percent_escapes(text: str, start: int, end: int) -> Iterator[tuple[str, int, int]]:
    """The characters of a run of percent escapes, which are bytes of UTF-8."""
    decoder = getincrementaldecoder("utf-8")("replace")
    for match in _PERCENT_BYTE.finditer(text, start, end):
        char = decoder.decode(bytes.fromhex(match[1]))
        if char:
            yield char, start, match.end()
            start = match.end()
