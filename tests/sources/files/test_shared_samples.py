"""Real exports, where they are on the machine: as .csv and as .xlsx they give the same cells."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

import pytest

from sources.files import Row, open_table
from tests.sources.files.test_workbook import sheet, text, workbook

FOLDERS = [parent / "shared" / "data" for parent in Path(__file__).resolve().parents]
SAMPLES = [file for folder in FOLDERS for file in sorted(folder.glob("*/*.csv"))]


def column(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters


@pytest.mark.skipif(not SAMPLES, reason="the shared samples are not on this machine")
@pytest.mark.parametrize("file", SAMPLES, ids=lambda file: file.stem)
def test_a_sample_is_the_same_as_csv_and_as_workbook(tmp_path: Path, file: Path) -> None:
    table = open_table(file)
    rows = [row.cells for row in table.rows() if isinstance(row, Row)]
    lines = [table.columns, *rows]
    xml = []
    for number, cells in enumerate(lines, 1):
        filled = [(column(at), escape(cell.replace("\r", ""))) for at, cell in enumerate(cells, 1) if cell]
        xml.append((number, "".join(text(f"{letters}{number}", cell) for letters, cell in filled)))
    path = workbook(tmp_path, ("H", sheet(*xml)))
    opened = open_table(path)
    assert opened.columns == table.columns
    assert [row.cells for row in opened.rows() if isinstance(row, Row)] == [
        tuple(cell.replace("\r", "") for cell in cells) for cells in rows
    ]
