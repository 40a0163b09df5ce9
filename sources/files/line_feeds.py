"""Lines on their way to the CSV reader: a log of the current record, and blocks that are read as needed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from sources.files.dialect import lines_of


class LineLog:
    """Passes lines on and keeps those of the current record."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)
        self._taken: list[str] = []

    def __iter__(self) -> Iterator[str]:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self._taken.append(line)
        return line

    def take(self) -> tuple[str, ...]:
        """The lines since the last call."""
        lines = tuple(self._taken)
        self._taken.clear()
        return lines


class BlockFeed:
    """Lines of a block, then of the next blocks while a reader asks for more; `count` is the number offered."""

    def __init__(self, block: str, count: int, more: Iterator[str]) -> None:
        self.count = count
        self._block, self._more = block, more

    def lines(self) -> Iterator[str]:
        """The lines of the block, then those of the next ones."""
        yield from lines_of(self._block)
        for block in self._more:
            self.count += count_lines(block)
            yield from lines_of(block)


def count_lines(block: str) -> int:
    """The number of lines of a block, including a last one without a line end."""
    ends = block.count("\n") + block.count("\r") - block.count("\r\n")
    return ends + (block[-1] not in "\r\n")
