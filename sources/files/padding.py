"""White space, or a second mark, that stands beside delimiters and is no data.

In: lines of a text. Out: the lines without it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from orderbridge.sources.files.dialect import Dialect


def without_padding(lines: Iterable[str], dialect: Dialect) -> Iterator[str]:
    """Lines with the delimiter alone between cells, and no white space outside of the quotes of a cell."""
    padding = _Padding(dialect)
    is_open = False
    for line in lines:
        text, is_open = padding.remove(line, is_open=is_open)
        yield text


class _Padding:
    """What stands beside the delimiters and quotes of a dialect and is no data."""

    def __init__(self, dialect: Dialect) -> None:
        self.delimiter, self.quote = dialect.delimiter, dialect.quote
        before, _, after = dialect.separator.partition(dialect.delimiter)
        self.spaces = " \t".replace(dialect.delimiter, "")
        self.before = self.spaces if before.isspace() else ""
        self.second_before = before.strip()
        self.second_after = after.strip()
        mark = re.escape(dialect.quote or "\0")
        escaped = r"\\.|" if dialect.escape else ""
        self._quoted = re.compile(f"(?:{mark}{mark}|{escaped}[^{mark}])*+", re.DOTALL)
        self._spaces = re.compile(f"[{self.spaces}]*+")
        self._end = re.compile(
            f"[{self.spaces}]*+(?={re.escape(self.second_before)}{re.escape(self.delimiter)}|[\r\n]|\\Z)"
        )

    def remove(self, line: str, *, is_open: bool) -> tuple[str, bool]:
        """A line without padding, and whether a quoted cell goes on in the next one; `is_open`: it begins in one."""
        parts: list[str] = []
        at = 0
        while True:
            text, at, is_open = self._quoted_part(line, at, is_open=is_open)
            parts.append(text)
            end = -1 if is_open else line.find(self.delimiter, at)
            if end < 0:
                last = line[at:].rstrip("\r\n")
                parts += [last.rstrip(self.before), line[at + len(last) :]]
                return "".join(parts), is_open
            cell = line[at:end].removesuffix(self.second_before).rstrip(self.before)
            parts += [cell, self.delimiter]
            at = end + len(self.delimiter)
            if self.second_after and line.startswith(self.second_after, at):
                at += len(self.second_after)
            if self.before:
                at = self._end_of(self._spaces, line, at)

    def _quoted_part(self, line: str, at: int, *, is_open: bool) -> tuple[str, int, bool]:
        """The quoted part of a cell, where it ends in the line, and whether it goes on in the next line."""
        if not is_open:
            begin = self._end_of(self._spaces, line, at)
            if not self.quote or not line.startswith(self.quote, begin):
                return "", at, False
            at = begin + 1
        end = self._end_of(self._quoted, line, at)
        text = ("" if is_open else self.quote) + line[at:end]
        if end == len(line):
            return text, end, True
        padding = self._end.match(line, end + 1)
        return text + self.quote, padding.end() if padding else end + 1, False

    @staticmethod
    def _end_of(pattern: re.Pattern[str], line: str, at: int) -> int:
        match = pattern.match(line, at)
        return match.end() if match else at


def has_second_mark(cells: Iterable[str], dialect: Dialect) -> bool:
    """Whether a cell begins or ends with the second delimiter of a dialect: there is one too many."""
    second = dialect.separator.replace(dialect.delimiter, "").strip()
    return bool(second) and any(cell.startswith(second) or cell.endswith(second) for cell in cells)
