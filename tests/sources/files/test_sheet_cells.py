"""Cells and tags of a sheet by whole columns and chunks are what they are one by one."""

from __future__ import annotations

import datetime as dt
import math
import zipfile
from pathlib import Path
from xml.parsers.expat import ExpatError

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sources.errors import UsageError
from sources.files import sheet_xml
from sources.files.sheet_cells import Cell, CellKind, column_of, number_format, number_text
from sources.files.sheet_xml import SheetScan, WorkbookXml
from tests.sources.files.workbooks import workbook

FORMATS = [number_format(code) for code in ("00000", '"ART-"0000', "0%", '0.00 "€"', "000-000", '0"-"00" A"')]
CELL = st.one_of(
    st.floats(), st.integers(-(10**17), 10**17).map(float), st.decimals(-(10**6), 10**6, places=3).map(float),
    st.integers(), st.text(max_size=3), st.booleans(), st.dates(), st.datetimes(), st.times(),
    st.timedeltas(dt.timedelta(0), dt.timedelta(9)),
)  # fmt: skip


def converted(cells: list[Cell], formats: list[int]) -> list[tuple[str, int]]:
    texts, kinds = column_of(cells, np.array(formats, np.int32), FORMATS)
    return list(zip(texts.to_pylist(), kinds.tolist(), strict=True))


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.tuples(CELL, st.integers(0, len(FORMATS))), min_size=1, max_size=12))
@example([(value, 0) for value in (1e-5, 0.1 + 0.2, 1e15, -1e15, 999999999999999.9, 1e-7, math.inf, -0.0, 5e-324)])
@example([(0.0001, 0), (0.00012345678901234, 0), (123456.789012345, 0), (-1.5, 0), (math.nan, 0)])
def test_a_column_of_cells_is_converted_as_each_of_them(column: list[tuple[Cell, int]]) -> None:
    found = converted([cell for cell, _ in column], [number for _, number in column])
    assert found == [converted([cell], [number])[0] for cell, number in column]
    for (cell, number), (text, _) in zip(column, found, strict=True):
        if isinstance(cell, int | float) and not isinstance(cell, bool) and number in (0, 3, 4):
            assert text == number_text(cell)


@pytest.mark.parametrize(
    ("cell", "code", "text", "kind"),
    [
        ("x", "00000", "x", CellKind.TEXT), (True, "00000", "TRUE", CellKind.LOGICAL),
        (False, "0%", "FALSE", CellKind.PERCENTAGE), (38.0, "00000", "00038", CellKind.NUMBER),
        (123456.0, "00000", "123456", CellKind.NUMBER), (38.0, '"ART-"0000', "ART-0038", CellKind.NUMBER),
        (0.5, "0%", "0.5", CellKind.PERCENTAGE), (21, '0.00"%"', "21", CellKind.PERCENTAGE),
        (38.5, "00000", "38.5", CellKind.OTHER_FORM), (-3.0, "00000", "-3", CellKind.OTHER_FORM),
        (1e15, '"ART-"0000', "1.0000000000000000E+15", CellKind.OTHER_FORM),
        (123456.0, "000-000", "123-456", CellKind.NUMBER), (0.0, "000-000", "000-000", CellKind.NUMBER),
        (38.0, '0"-"00" A"', "0-38 A", CellKind.NUMBER), (123456.0, '0"-"00" A"', "1234-56 A", CellKind.NUMBER),
        (12345, "00\\.000", "12.345", CellKind.NUMBER), (38, "[Red]0000", "0038", CellKind.NUMBER),
        (38, "0000_);(0000)", "0038", CellKind.NUMBER), (1234, "#,##0", "1234", CellKind.NUMBER),
        *((38, code, "38", CellKind.NUMBER) for code in ("General", "@", "0", "0.00")),
        *((38, code, "38", CellKind.OTHER_FORM) for code in ('0.00 "€"', "[<=9]00;000", "0,", "# ?/?", "#-00")),
        (dt.date(2024, 5, 1), "0", "2024-05-01", CellKind.DATE), (dt.time(7, 5), "00000", "07:05:00", CellKind.DATE),
        (dt.datetime(2024, 5, 1, 7), "0", "2024-05-01T07:00:00", CellKind.DATE),
        (dt.datetime(2024, 5, 1, 7, 0, 0, 5), "0%", "2024-05-01T07:00:00.000005", CellKind.PERCENTAGE),
        (dt.timedelta(1, 3723, 500000), "0", "25:02:03.5", CellKind.DATE),
        (dt.timedelta(0, 3660), "0", "1:01:00", CellKind.DATE),
    ],
)  # fmt: skip
def test_a_cell_is_its_text_and_its_kind(cell: Cell, code: str, text: str, kind: CellKind) -> None:
    known = number_format(code)
    texts, kinds = column_of([cell], np.array([int(known.kind != "digits")], np.int32), [known])
    assert (texts.to_pylist(), kinds.tolist()) == ([text], [kind])


def scanned(folder: Path, rows: str) -> SheetScan:
    styles = "<cellXfs>" + "".join(f'<xf numFmtId="{number}"/>' for number in (0, 9, 2)) + "</cellXfs>"
    with zipfile.ZipFile(workbook(folder, ("H", rows), styles=styles)) as archive:
        return WorkbookXml(archive, "in.xlsx").scan("H")


VALUE = "<v>1</v></c>"


@pytest.mark.parametrize("chunk", [200, 1 << 18])
@pytest.mark.parametrize("prefix", ["", "x:"])
@pytest.mark.parametrize("row", ['<row r="3">', "<row/><row/><row>", "<row r='2'/>\n<row>"])
def test_tags_are_read_in_every_form_and_at_every_end_of_a_chunk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int, prefix: str, row: str
) -> None:
    monkeypatch.setattr(sheet_xml, "_CHUNK", chunk)
    cells = (
        f"<c>{VALUE}<c t='e'>{VALUE}<c  r = 'D3'  s = '1' >{VALUE}<c\ny='>' x=\"/>\" r=\"F3\" s=\"2\" t=\"e\">{VALUE}"
        f'<c s="1"/><c s=\'1\' t=\'e\'></c><c r="J3" s="1" t="inlineStr"><is><t>carl\'s /> "</t></is></c>'
    )
    xml = f"{row}{cells}</row><row hidden='1'>{' ' * 150}<c>{VALUE}<c>{VALUE}</row><row/>"
    found = scanned(tmp_path, xml.replace("</", f"</{prefix}").replace("<", f"<{prefix}").replace(f"<{prefix}/", "</"))
    assert (found.cells, found.holds_table, found.hidden) == (7, True, {4})
    assert {at: sorted(columns) for at, columns in found.without_value.items()} == {3: [1, 5]}
    assert {column: np.flatnonzero(numbers).tolist() for column, numbers in found.formats.items()} == {3: [3], 9: [3]}


FAR = 'r="XFD1048576"'
FIRST = f'<row r="1"><c r="A1">{VALUE}</row>'
FILL = f"{'<c/>' * 16_383}"


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        *((f"{FIRST}<row>{tag}{VALUE}</row>", "row 1,048,576 and column 16,384") for tag in (
            f'<c x=">" {FAR}>', f'<c {FAR} x="/>">', f"<c {FAR} x='/>'>", f"<c{' ' * 5000}{FAR}>", f"<c\n{FAR}\t>",
            f"<c {FAR}>/>", f'<!--<c x="" r="A1" y="--><c {FAR}>')),
        (f"{FIRST}<row><a.b:c {FAR}><v>1</v></a.b:c></row>", "row 1,048,576 and column 16,384"),
        *((f'<row r="3">{FILL}{fake}<c>{VALUE}</row><row r="400000"><c>{VALUE}</row>', "row 400,000 and column 16,384")
          for fake in ('<!--<row r="3">-->', '<?a <row r="3">?>')),  # it would restart the count of columns
        (f"<!-- --><row><c {FAR}>{VALUE}</row><!--", "token"),
        (f"<row><c {' ' * 3 * sheet_xml._CHUNK}{FAR}/></row>", "does not end"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("filler", [0, sheet_xml._CHUNK - 3])
def test_a_cell_cannot_be_hidden_from_the_limits(tmp_path: Path, rows: str, words: str, filler: int) -> None:
    """What the reader of the cells sees is seen before it allocates: in attributes, prefixes and between chunks."""
    with pytest.raises(ExpatError if words == "token" else UsageError, match=words):
        scanned(tmp_path, " " * filler + rows)
