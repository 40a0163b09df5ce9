"""Real exports, where they are on the machine, and the same tables as workbooks."""

from __future__ import annotations

from pathlib import Path
from xml.sax.saxutils import escape

from sources.files import Row, open_table
from tests.sources.files.test_workbook import sheet, text, workbook

FOLDERS = [parent / "shared" / "data" for parent in Path(__file__).resolve().parents]
SAMPLES = {f"{file.parent.name}/{file.stem}": file for folder in FOLDERS for file in sorted(folder.glob("*/*.csv"))}
NO_SAMPLES = "the shared samples are not on this machine"


def as_workbook(folder: Path, file: Path) -> Path:
    """Writes a CSV as an .xlsx in which every cell is text."""
    table = open_table(file)
    rows = [table.columns, *(row.cells for row in table.rows() if isinstance(row, Row))]
    xml = []
    for number, cells in enumerate(rows, 1):
        filled = [(_letters(at), escape(cell.replace("\r", ""))) for at, cell in enumerate(cells, 1) if cell]
        xml.append((number, "".join(text(f"{letters}{number}", cell) for letters, cell in filled)))
    return workbook(folder, ("H", sheet(*xml)), name=f"{file.stem}.xlsx")


def _letters(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(65 + rest) + letters
    return letters
