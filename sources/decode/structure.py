"""Where the values of a JSON array or object begin and end, whatever they contain.

In: bytes that a strict parser does not accept, since a value holds a lone surrogate, NaN, a raw control character or
too many levels. Out: the bytes of each member: one bad row does not cost its page. Iterative: depth costs nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

_TOKEN: Final = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{},:"]|[^\s"\[\]{},:]+', re.DOTALL)
_CLOSING: Final = {b"[": b"]", b"{": b"}"}
_OPENING: Final = frozenset(_CLOSING)
_SHAPES: Final = {b"[": ("v",), b"{": ("v", ":", "v")}
"""Tokens of one member of an array, and of an object."""


def array_items(data: bytes) -> list[bytes]:
    """The items of an array. Raises ValueError if the bytes are not one array."""
    return [data[start:end] for start, _, end in _members(data, b"[")]


def object_members(data: bytes) -> list[tuple[bytes, bytes]]:
    """The names (JSON strings, quoted) and values of an object, repeated names too.

    Raises:
        ValueError: the bytes are not one object.
    """
    members = []
    for start, colon, end in _members(data, b"{"):
        name = data[start:colon].rstrip()
        if not name.startswith(b'"'):
            raise ValueError("a name that is not a string")
        members.append((name, data[colon + 1 : end].lstrip()))
    return members


def depth(data: bytes) -> int:
    """Levels of arrays and objects."""
    level = deepest = 0
    for token in _TOKEN.finditer(data):
        text = token.group()
        if text in _OPENING:
            level += 1
            deepest = max(deepest, level)
        elif text in (b"]", b"}"):
            level -= 1
    return deepest


def _members(data: bytes, opening: bytes) -> Iterator[tuple[int, int, int]]:
    """Start, colon (0 in an array) and end of each member of the outermost container.

    Raises:
        ValueError: brackets do not match, a member is empty or not separated, or bytes follow the container.
    """
    stack: list[bytes] = []
    shape: list[str] = []
    start = colon = end = 0
    is_closed = False
    for token in _TOKEN.finditer(data):
        text = token.group()
        if is_closed or text == b'"' or (not stack and text != opening):
            raise ValueError("not a single, complete value")
        if text in _OPENING:
            stack.append(_CLOSING[text])
            if len(stack) != 2:
                continue
        elif text in (b"]", b"}"):
            if stack.pop() != text:
                raise ValueError("brackets do not match")
            if len(stack) == 1:
                end = token.end()
                continue
            is_closed = not stack
        if len(stack) > (2 if text in _OPENING else 1):
            continue
        if text == b"," or is_closed:
            if shape or text == b",":
                if tuple(shape) != _SHAPES[opening]:
                    raise ValueError("a member is empty or not separated")
                yield start, colon, end
            elif end:
                raise ValueError("a comma before the end")
            shape, colon = [], 0
            continue
        if not shape:
            start = token.start()
        shape.append(":" if text == b":" else "v")
        colon = token.start() if text == b":" else colon
        end = token.end()
    if not is_closed:
        raise ValueError("not complete")
