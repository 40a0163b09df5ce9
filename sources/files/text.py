"""A text file, decoded and measured in one streaming pass, then read in blocks of whole lines.

In: a path and an encoding. Out: `Text`, with the length, line ends and NULs of the file. Invalid bytes raise an error
with their offset; they are never replaced.
"""

from __future__ import annotations

import codecs
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sources.errors import UsageError

MIB: Final = 1 << 20
MAX_LINE: Final = 8 * MIB
"""Characters of a line or a cell; a spreadsheet allows 32,767 per cell."""
CHUNK_BYTES: Final = 128 * 1024
CONTROLS: Final = re.compile("[\x80-\x84\x86-\x9f]")
"""Control characters that no text has: cp1252 was taken for ISO-8859-1. The one left out ends a line on mainframes."""
_CONTROL_BYTES: Final = re.compile(rb"\xc2[\x80-\x84\x86-\x9f]")
TAIL: Final = 64 * 1024


@dataclass(frozen=True)
class Text:
    """A text file that was decoded once from end to end.

    Attributes:
        begin: the offset of the first byte after the byte order mark.
        chars: the number of characters, without NUL and Ctrl-Z padding at the end.
        lines: the number of lines, including a last one without a line end.
        nuls: the number of NUL characters.
        marks: the number of byte order marks that are not at the beginning.
        has_controls: whether there are characters of `CONTROLS`.
        line_ends: those of LF, CRLF and CR that occur.
        tail: the last characters.
        is_assumed: the encoding is plausible, not proven.
    """

    path: Path
    encoding: str
    has_bom: bool
    begin: int
    chars: int
    lines: int
    nuls: int
    marks: int
    line_ends: tuple[str, ...]
    tail: str
    has_controls: bool = False
    is_assumed: bool = False

    def blocks(self) -> Iterator[str]:
        """The text in blocks that end with a line end; only the last one may lack it."""
        partial: list[str] = []
        for text in decode_file(self.path, self.encoding, self.begin, self.chars):
            # a final CR may be half of a CRLF, so it stays with the next chunk
            cut = max(text.rfind("\n"), text.rfind("\r", 0, max(len(text) - 1, 0))) + 1
            if cut:
                yield "".join([*partial, text[:cut]])
                partial = []
            if cut < len(text):
                partial.append(text[cut:])
        if partial:
            yield "".join(partial)


def decode_file(path: Path, encoding: str, begin: int, chars: int = sys.maxsize) -> Iterator[str]:
    """At most `chars` characters, in chunks. The `start` of a UnicodeDecodeError is the offset in the file."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        file.seek(begin)
        at = begin
        while chars:
            chunk = file.read(CHUNK_BYTES)
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)[:chars]
            except UnicodeDecodeError as error:
                error.start += at - pending
                raise
            at += len(chunk)
            chars -= len(text)
            if text:
                yield text
            if not chunk:
                return


def measure(path: Path, encoding: str, bom: bytes = b"", most: int = sys.maxsize) -> Text:
    """Decodes the whole file, or its first `most` characters.

    Raises:
        UnicodeDecodeError: a byte is invalid in the encoding; its `start` is the offset in the file.
        UsageError: the file is empty, cannot be read, or has an excessively long line.
    """
    chars = feeds = returns = pairs = nuls = marks = run = 0
    tail = last = ""
    has_controls = False
    padding = -1  # the position of trailing NULs and Ctrl-Zs
    try:
        for text in decode_file(path, encoding, len(bom), most):
            body = text.rstrip("\0\x1a\r\n")
            rest = text[len(body) :]
            first = min((at for at in (rest.find("\0"), rest.find("\x1a")) if at >= 0), default=-1)
            if body:
                padding = -1
            if padding < 0 and first >= 0:
                padding = chars + len(body) + first
            feeds += text.count("\n")
            returns += text.count("\r")
            pairs += text.count("\r\n") + (last == "\r" and text[0] == "\n")
            nuls += text.count("\0")
            marks += text.count("\ufeff")
            if not (has_controls or text.isascii()):  # 10 times as fast in bytes
                has_controls = _CONTROL_BYTES.search(text.encode("utf-8", "surrogatepass")) is not None
            end = max(text.rfind("\n"), text.rfind("\r"))
            run = run + len(text) if end < 0 else len(text) - end - 1
            if run > MAX_LINE and padding < 0:
                raise UsageError(
                    f"line {feeds + returns - pairs + 1} of {path.name} is longer than {MAX_LINE // MIB} million "
                    "characters",
                    "This is not a table with a row per line. Export it again as CSV or .xlsx.",
                )
            chars += len(text)
            last = text[-1]
            tail = (tail + text)[-TAIL:]
    except OSError as error:
        raise UsageError(f"{path.name} cannot be read: {error.strerror}", "Check the disk or network drive.") from None
    if padding >= 0:
        return measure(path, encoding, bom, padding)
    if not chars:
        raise UsageError(f"{path.name} is empty", "Export it again.")
    ends = (("CRLF", pairs), ("LF", feeds - pairs), ("CR", returns - pairs))
    lines = feeds + returns - pairs + (last not in ("\r", "\n"))
    line_ends = tuple(name for name, count in ends if count)
    return Text(path, encoding, bool(bom), len(bom), chars, lines, nuls, marks, line_ends, tail, has_controls)
