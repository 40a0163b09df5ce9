"""How many columns a table has, and how many empty cells its rows have beyond them.

In: the cells of lines. Out: widths. A delimiter at the end of each line makes no column.
"""

from __future__ import annotations

from collections import Counter


def trimmed_width(rows: list[list[str]], width: int, share: float = 0.0) -> int:
    """The width without columns at the end that at most this share of the rows fills: a delimiter ends each line."""
    full = [cells for cells in rows if len(cells) == width]
    while width > 1 and sum(bool(cells[width - 1]) for cells in full) <= share * len(full):
        width -= 1
    return width


def names_width(header: list[str], rows: list[list[str]]) -> int:
    """The number of columns of a header; of a few rows, no column without a name counts."""
    width = len(header)
    same = [cells for cells in rows if len(cells) == width]
    return max(trimmed_width([header], width), trimmed_width(same, width, 0.5))


def surplus_cells(rows: list[list[str]], width: int, in_header: int) -> int:
    """The number of empty cells beyond the columns that nearly all rows have, or the header and most rows; else 0."""
    sizes = Counter(len(cells) for cells in rows if len(cells) >= width and not any(cells[width:]))
    size, count = sizes.most_common(1)[0] if sizes else (width + in_header, 0)
    is_usual = 10 * count >= 9 * sizes.total() or size - width == in_header
    return size - width if is_usual else 0
