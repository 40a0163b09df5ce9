"""The parts of a JSON text as they are written: the items of an array, the members of an object, nesting.

In: bytes. Out: the bytes of each part, whatever it is. Only strings and brackets are looked at, so that a part that no
parser accepts does not keep the others from being read.
"""

from __future__ import annotations

import re
from itertools import accumulate, pairwise
from typing import Final

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},"]', re.DOTALL)
_NAME: Final = re.compile(rb'\s*("[^"\\]*(?:\\.[^"\\]*)*")\s*:\s*', re.DOTALL)
_VALUE: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[^\s"\[\]{},:]+|[\[{].*[\]}]', re.DOTALL)
"""A string, one token, or a container, whose brackets `_members` has matched."""
_CLOSING: Final = {b"[": b"]", b"{": b"}"}
_LEVELS: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def array_items(data: bytes) -> list[bytes]:
    """The items of an array, each whatever it is. Raises ValueError if the bytes are not one array of single values."""
    items = _members(data, b"[")
    if not all(map(_VALUE.fullmatch, items)):
        raise ValueError("an item is not a single value")
    return items


def object_members(data: bytes) -> list[tuple[bytes, bytes]]:
    """The names (JSON strings, quoted) and values of an object, repeated names too.

    Raises:
        ValueError: the bytes are not one object, or the value of a member is not a single one.
    """
    members = []
    for member in _members(data, b"{"):
        if not (name := _NAME.match(member)) or not _VALUE.fullmatch(member, name.end()):
            raise ValueError("a member is not a name and a single value")
        members.append((name[1], member[name.end() :]))
    return members


def depth(data: bytes) -> int:
    """Levels of arrays and objects."""
    return max(
        accumulate(_LEVELS.get(token.group(), 0) for token in _TOKEN.finditer(data)), default=0
    )


def _members(data: bytes, opening: bytes) -> list[bytes]:
    """The bytes between the commas of the outermost container.

    Raises:
        ValueError: it is another one, brackets do not match, a member is empty or not separated, or bytes follow it.
    """
    text = data.strip()
    if not text.startswith(opening):
        raise ValueError("not the container")
    cuts = _cuts(text)
    if cuts[-1] != len(text) - 1:
        raise ValueError("not complete")
    members = [text[start + 1 : end].strip() for start, end in pairwise(cuts)]
    if members == [b""]:
        return []
    if not all(members):
        raise ValueError("an empty member")
    return members


def _cuts(text: bytes) -> list[int]:
    """Where the outermost container begins, its commas are, and it ends.

    Raises:
        ValueError: a string does not end, brackets do not match, or a container within it is followed by another.
    """
    open_containers: list[bytes] = []
    cuts: list[int] = []
    is_after_container = False
    for token in _TOKEN.finditer(text):
        mark = token.group()
        if len(mark) > 1:  # a string; what it may follow, its member shows
            continue
        is_complete = bool(cuts) and not open_containers
        if mark == b'"' or is_complete:
            raise ValueError("not a single, complete value")
        if mark in _CLOSING:
            if is_after_container:
                raise ValueError("a member is not separated")
            open_containers.append(mark)
            is_cut = len(open_containers) == 1
        elif mark == b",":
            is_cut = len(open_containers) == 1
        else:
            if _CLOSING[open_containers.pop()] != mark:
                raise ValueError("brackets do not match")
            is_cut = not open_containers
        if is_cut:
            cuts.append(token.start())
        is_after_container = mark in (b"]", b"}")
    if open_containers:
        raise ValueError("not complete")
    return cuts
