"""On which line of a TOML text each key is, for error messages; the parser does not report it."""

from __future__ import annotations

import re
import tomllib
from typing import Final

_KEY: Final = re.compile(r"""\s*("(?:[^"\\]|\\.)*"|'[^']*'|[A-Za-z0-9_-]+)\s*=""")


class KeyPositions:
    """The lines of the keys and tables in a TOML text."""

    def __init__(self, text: str) -> None:
        self._keys: dict[tuple[str, str], int] = {}
        self._tables: dict[str, int] = {}
        table = ""
        for number, line in enumerate(text.splitlines(), 1):
            if header := re.match(r"\s*\[+\s*(\w+)\s*\]+", line):
                table = header[1]
                self._tables.setdefault(table, number)
            elif key := _KEY.match(line):
                name = key[1]
                if name[0] in "\"'":
                    try:
                        name = next(iter(tomllib.loads(f"{name} = 0")))
                    except tomllib.TOMLDecodeError:
                        continue
                self._keys.setdefault((table, name), number)

    def line_of(self, key: tuple[str, ...]) -> int:
        """The 1-based line of a key, or of its table; 0 if unknown."""
        table = self._tables.get(key[0], self._keys.get(("", key[0]), 0))
        if len(key) == 1:
            return self._keys.get(("", key[0]), table)
        return next(
            (self._keys[key[0], name] for name in key[1:] if (key[0], name) in self._keys), table
        )
