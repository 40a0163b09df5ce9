"""Odd values: what no column or table of an undocumented record holds, kept in `_extra` by the path of its field."""

from __future__ import annotations

from orderbridge.sources.decode.column_kinds import path_text

OddKeys = tuple[str | int, ...]
"""The names, and the positions of items from 1, that lead to a value in its row or item."""


def keep_odd(odd: dict[str, object], keys: OddKeys, value: object) -> None:
    """Keeps an odd value by its path, such as `customer.id` or `lines[2]`.

    Two values may have one path: `a.b` is a field of that name, and `b` in `a`. The second has its keys as JSON.
    """
    path = ""
    for key in keys:
        if isinstance(key, int):
            path += f"[{key}]"
        else:
            path += f".{key}" if path else key
    names = keys
    while path in odd:
        path = path_text(names)
        names = (path,)
    odd[path] = value
