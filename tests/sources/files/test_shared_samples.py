"""Real exports, where they are on the machine: as .csv and as .xlsx they give the same cells."""

from __future__ import annotations

from pathlib import Path

import pytest

from sources.files import Row, open_table
from tests.sources.files.samples import NO_SAMPLES, SAMPLES, as_workbook


@pytest.mark.skipif(not SAMPLES, reason=NO_SAMPLES)
@pytest.mark.parametrize("file", SAMPLES.values(), ids=SAMPLES)
def test_a_sample_is_the_same_as_csv_and_as_workbook(tmp_path: Path, file: Path) -> None:
    table = open_table(file)
    rows = [row.cells for row in table.rows() if isinstance(row, Row)]
    opened = open_table(as_workbook(tmp_path, file))
    assert opened.columns == table.columns
    assert [row.cells for row in opened.rows() if isinstance(row, Row)] == [
        tuple(cell.replace("\r", "") for cell in cells) for cells in rows
    ]
