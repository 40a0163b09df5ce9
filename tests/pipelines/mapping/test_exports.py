"""The columns of exports in the form of 22 systems: what each fills without a question, and what is guessed.

`exports.txt` has the columns of 53 files, each with three cells. Its second column is the field that is taken without a
question; with `?`, the one that a question proposes. Somebody wrote the files who did not know how columns are found.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from orderbridge.pipelines.mapping import propose

FILE = Path(__file__).with_name("exports.txt")
Column = tuple[str, str, list[str]]
"""The name, the field that is expected, and cells."""


def read_exports() -> dict[str, list[Column]]:
    """The columns of each export, by its name and kind."""
    exports: dict[str, list[Column]] = {}
    for line in FILE.read_text("utf-8").splitlines():
        if line.startswith("["):
            columns = exports.setdefault(line.strip("[]"), [])
        else:
            name, field, cells = line.split("\t")
            columns.append((name, field, cells.split("|")))
    return exports


EXPORTS = read_exports()


@pytest.mark.parametrize("export", EXPORTS)
def test_the_columns_of_an_export_fill_the_right_fields_or_are_asked_about(export: str) -> None:
    columns = EXPORTS[export]
    samples = {name: cells for name, _, cells in columns}
    proposed = propose(list(samples), export.split()[1], conflicts="leave", samples=samples)
    found = {name: column.field for name, column in proposed.columns.items()}
    contested = {name: path for path, names in proposed.contested.items() for name in names}
    guesses = proposed.guesses | proposed.doubtful | contested
    found |= {name: f"?{guesses[name]}" if name in guesses else "" for name in proposed.unknown}
    assert found == {name: field for name, field, _ in columns}
