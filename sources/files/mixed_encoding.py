"""Detects files that mix UTF-8 with another encoding; read as cp1252, `José` in UTF-8 becomes `JosÃ©`.

In: a file that is not UTF-8 as a whole. Out: nothing if it may be cp1252; otherwise an error with a line of each kind,
which the caller raises unless the rest is not cp1252 either.

A non-ASCII character of UTF-8 looks in cp1252 like a letter (or × or ÷) followed by one to three punctuation marks or
symbols. Genuine cp1252 has such a sequence only where a word ends before closing punctuation: `«CAFÉ»`, `NESCAFÉ®`,
`é »`, `3×½`; after lower-case letters never with a capital, and never followed by another accented letter. `Â` and
`Ã`, with which the accented letters of UTF-8 begin, are excluded. So one sequence of any other form proves UTF-8,
however many other lines there are.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

import numpy as np

from sources.errors import UsageError
from sources.files.text import measure

CHUNK_BYTES: Final = 512 * 1024
_BEYOND: Final = 5
"""The bytes of the longest sequence and its context."""
_ASCII: Final = bytes(range(128))
UTF8_SEQUENCE: Final = re.compile(  # a single set for the first byte makes the search five times as fast
    rb"[\xc2-\xf4](?:(?<=[\xc2-\xdf])[\x80-\xbf]"
    rb"|(?<=\xe0)[\xa0-\xbf][\x80-\xbf]|(?<=\xed)[\x80-\x9f][\x80-\xbf]|(?<=[\xe1-\xec\xee\xef])[\x80-\xbf]{2}"
    rb"|(?<=\xf0)[\x90-\xbf][\x80-\xbf]{2}|(?<=\xf4)[\x80-\x8f][\x80-\xbf]{2}|(?<=[\xf1-\xf3])[\x80-\xbf]{3})"
)
_CLOSING: Final = rb"[\x85\x92\x94-\x97\x99\x9b\xa0\xae\xb7\xbb-\xbe]"  # … ’ ” • – — ™ › no-break space ® · » ¼ ½ ¾
_PLAUSIBLE: Final = re.compile(
    rb"(?:(?<![a-z\xdf-\xff])(?:[\xc4\xc5]%(s)s(?![A-Za-z])|[\xc6-\xde]%(s)s)"  # Ä and Å also begin Czech letters
    rb"|\xdf%(s)s|[\xe0-\xef]%(s)s{2}|[\xf0-\xf4]%(s)s{3})(?![\xc0-\xff])" % {b"s": _CLOSING}
)


def find_mixture(path: Path, other: int) -> UsageError | None:
    """The error for a file that contains UTF-8 sequences that are implausible as cp1252; None for other files.

    Args:
        path: the file.
        other: the offset of the first byte that is invalid in UTF-8.

    Returns:
        An error for an implausible sequence, or for more plausible ones than other non-ASCII bytes.
    """
    high = plausible = 0
    first = None
    buffer, begin, at = b"\n", -1, 1  # offset of the buffer; bytes done, one of them context
    with path.open("rb") as file:
        while True:
            chunk = file.read(CHUNK_BYTES)
            high += len(chunk.translate(None, _ASCII))
            buffer += chunk
            end = len(buffer) - _BEYOND if chunk else len(buffer)
            codes = np.frombuffer(buffer, np.uint8)
            may_match = ((codes[:-1] >= 0xC2) & (codes[1:] >> 6 == 0b10)).any()
            for match in UTF8_SEQUENCE.finditer(buffer, at) if may_match else ():
                if match.start() >= end:
                    break
                at = match.end()
                if not _PLAUSIBLE.match(buffer, match.start()):
                    return _mixed(path, begin + match.start(), other)
                first = begin + match.start() if first is None else first
                plausible += len(match[0])
            if not chunk:
                break
            at = max(at, end)
            buffer, begin, at = buffer[at - 1 :], begin + at - 1, 1
    if first is not None and plausible > high - plausible:
        return _mixed(path, first, other)
    return None


def _mixed(path: Path, utf8: int, other: int) -> UsageError:
    return UsageError(
        f"{path.name} mixes two encodings: line {line_of(path, utf8)} is UTF-8 (byte {utf8}), line "
        f"{line_of(path, other)} is not (byte {other})",
        "Export it again in one encoding. If all of it is cp1252 and texts such as `Ã©` are right: --encoding cp1252",
    )


def line_of(path: Path, offset: int) -> int:
    """The 1-based line of a byte that ends no line."""
    return measure(path, "latin-1", most=offset + 1).lines
