"""Files in which UTF-8 and another encoding are mixed, told from files in cp1252: read as that, `José` is `JosÃ©`.

In: a file that is no UTF-8 as a whole. Out: nothing, where it may be cp1252; else an error with a line of each kind.

A character of UTF-8 beyond ASCII is a letter of cp1252 (or × or ÷) with one to three signs behind it. Real cp1252 has
such a sequence only where a word ends and a sign closes it, as in `«CAFÉ»`, `NESCAFÉ®`, `é »` and `3×½`: the sign is
one that closes; the letter, where it is a capital, ends no word of small letters; and no other letter beyond ASCII
follows. `Â` and `Ã` are left out, with which the accents of UTF-8 begin. So a single sequence of any other form is
proof, be the other lines ever so many.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Final

from sources.errors import UsageError

CHUNK_BYTES: Final = 512 * 1024
_BEYOND: Final = 5
"""Bytes of the longest sequence, and of what stands behind it."""
_ASCII: Final = bytes(range(128))
_UTF8: Final = re.compile(  # one set for the first byte, for which the search is five times as fast
    rb"[\xc2-\xf4](?:(?<=[\xc2-\xdf])[\x80-\xbf]"
    rb"|(?<=\xe0)[\xa0-\xbf][\x80-\xbf]|(?<=\xed)[\x80-\x9f][\x80-\xbf]|(?<=[\xe1-\xec\xee\xef])[\x80-\xbf]{2}"
    rb"|(?<=\xf0)[\x90-\xbf][\x80-\xbf]{2}|(?<=\xf4)[\x80-\x8f][\x80-\xbf]{2}|(?<=[\xf1-\xf3])[\x80-\xbf]{3})"
)
_CLOSES: Final = rb"[\x85\x92\x94-\x97\x99\x9b\xa0\xae\xb7\xbb-\xbe]"  # … ’ ” • – — ™ › (a blank) ® · » ¼ ½ ¾
_TRACE: Final = re.compile(
    rb"(?:(?<![a-z\xdf-\xff])(?:[\xc4\xc5]%(s)s(?![A-Za-z])|[\xc6-\xde]%(s)s)"  # Ä and Å begin the letters of Prague
    rb"|\xdf%(s)s|[\xe0-\xef]%(s)s{2}|[\xf0-\xf4]%(s)s{3})(?![\xc0-\xff])" % {b"s": _CLOSES}
)


def refuse_mixture(path: Path, other: int) -> None:
    """Refuses a file with UTF-8 in it, unless it is a trace of what cp1252 may have as well.

    Args:
        path: the file.
        other: the first byte that is nothing in UTF-8.

    Raises:
        UsageError: it holds UTF-8, or more traces than bytes that are none.
    """
    high = traces = 0
    first = None
    held, begin, at = b"\n", -1, 1  # bytes, where they begin in the file, and how many are done; one stands before
    with path.open("rb") as file:
        while True:
            chunk = file.read(CHUNK_BYTES)
            high += len(chunk.translate(None, _ASCII))
            held += chunk
            end = len(held) - _BEYOND if chunk else len(held)
            for match in _UTF8.finditer(held, at):
                if match.start() >= end:
                    break
                at = match.end()
                if not _TRACE.match(held, match.start()):
                    raise _mixed(path, begin + match.start(), other)
                first = begin + match.start() if first is None else first
                traces += len(match[0])
            if not chunk:
                break
            at = max(at, end)
            held, begin, at = held[at - 1 :], begin + at - 1, 1
    if first is not None and traces > high - traces:
        raise _mixed(path, first, other)


def _mixed(path: Path, utf8: int, other: int) -> UsageError:
    return UsageError(
        f"{path.name} is in two encodings: line {_line_of(path, utf8)} holds UTF-8 (byte {utf8}), line "
        f"{_line_of(path, other)} does not (byte {other})",
        "Export it again in one encoding. If all is cp1252, and holds texts such as `Ã©`, say so: --encoding cp1252.",
    )


def _line_of(path: Path, place: int) -> int:
    """The line of a byte of the file, 1-based."""
    ends = 0
    last = b""
    with path.open("rb") as file:
        while chunk := file.read(min(CHUNK_BYTES, place)):
            place -= len(chunk)
            ends += chunk.count(b"\n") + chunk.count(b"\r") - chunk.count(b"\r\n")
            ends -= last == b"\r" and chunk[:1] == b"\n"
            last = chunk[-1:]
    return ends + 1
