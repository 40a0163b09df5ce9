"""Finds what stands beside the delimiters of a text and is no data: white space, or a second delimiter.

In: a sample of a text, and its delimiter. Out: how they stand together (`Dialect.separator`), or that a space follows.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final

from orderbridge.sources.files.dialect import lines_of

_QUOTED: Final = re.compile(r'"(?:[^"\r\n]|"")*+"')
_SPACE: Final = r"[ \t]"
_RUN: Final = re.compile(r"[ \t]{2,}")
_SPACES: Final = re.compile(" {2,}")


def find_separator(text: str, delimiter: str, *, is_given: bool) -> str:
    """What separates cells if it is more than the delimiter: tabs beside each one, spaces after quotes, or two marks.

    Where a comma stands beside each tab, the tab is the delimiter: commas may also be those of decimals.
    """
    seconds = ",;|" if delimiter == "\t" else "\t"
    if not _has_any(text, delimiter, seconds):
        return ""
    run = _SPACES if delimiter == "\t" else _RUN
    lines = [_plain(line, run) for line in lines_of(text) if delimiter in line]
    if delimiter == "\t":
        second = "" if is_given else _second_delimiter(lines, delimiter, seconds)
        if second:
            return second
    elif _is_usual(lines, "\t", delimiter, "") or _is_usual(lines, "", delimiter, "\t"):
        return f" {delimiter} "
    spaced = re.compile(rf'""{_SPACE}(?:{re.escape(delimiter)}|$)')
    usual_spaces = sum(map(bool, map(spaced.search, lines)))
    return f" {delimiter} " if 2 * usual_spaces > len(lines) else ""


def _has_any(text: str, delimiter: str, seconds: str) -> bool:
    """Whether anything stands beside a delimiter, or white space after a quote."""
    besides = ['" ', '"\t']
    for second in seconds:
        besides += [f"{delimiter}{second}", f"{second}{delimiter}"]
    return delimiter in text and any(beside in text for beside in besides)


def _second_delimiter(lines: Sequence[str], delimiter: str, seconds: str) -> str:
    """The delimiter with another one that usually stands before or after it; "" if none does."""
    for other in seconds:
        if _is_usual(lines, other, delimiter, ""):
            return f"{other}{delimiter}"
        if _is_usual(lines, "", delimiter, other):
            return f"{delimiter}{other}"
    return ""


def _is_usual(lines: Sequence[str], before: str, delimiter: str, after: str) -> bool:
    """Whether this stands beside each delimiter of most lines."""
    usual = 0
    for line in lines:
        at_edge = line.startswith(delimiter) if before else line.endswith(delimiter)
        both = line.count(f"{before}{delimiter}{after}") + at_edge
        usual += line.count(delimiter) == both
    return 2 * usual > len(lines)


def has_padding(text: str, delimiter: str) -> bool:
    """Whether a space follows every delimiter outside of quotes in most of the lines with a delimiter."""
    if f"{delimiter} " not in text:
        return False
    lines = [_emptied(line) for line in lines_of(text) if delimiter in line]
    padded = sum(
        line.count(delimiter) == line.count(f"{delimiter} ") + line.endswith(delimiter)
        for line in lines
    )
    return padded > len(lines) / 2


def _plain(line: str, run: re.Pattern[str]) -> str:
    """A line with its quoted texts emptied, and each run of white space as one tab or space."""
    return run.sub(lambda found: "\t" if "\t" in found[0] else " ", _emptied(line))


def _emptied(line: str) -> str:
    """A line with its quoted texts emptied, without its end."""
    text = line.rstrip("\r\n")
    return _QUOTED.sub('""', text) if '"' in text else text
