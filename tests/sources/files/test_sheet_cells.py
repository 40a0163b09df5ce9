"""Cells and tags of a sheet by whole columns and chunks are what they are one by one."""

from __future__ import annotations

import datetime as dt
import math
import re
import tempfile
import zipfile
from collections import Counter
from decimal import Decimal
from pathlib import Path
from xml.parsers.expat import ExpatError

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from sources.errors import UsageError
from sources.files import sheet_xml
from sources.files.sheet_cells import Cell, CellKind, NumberFormat, column_of, number_format, number_text
from sources.files.sheet_xml import WorkbookXml
from tests.sources.files.workbooks import workbook

FORMATS = [None, *map(number_format, ("00000", '"ART-"0000', "0%", '0.00 "€"', "000-000", '0"-"00" A"'))]
SOME_CELLS = st.one_of(
    st.floats(),
    st.integers(-(10**17), 10**17).map(float),
    st.decimals(-(10**6), 10**6, places=3).map(float),
    st.integers(),
    st.text(max_size=3),
    st.booleans(),
    st.dates(),
    st.datetimes(),
    st.times(),
    st.timedeltas(dt.timedelta(0), dt.timedelta(9)),
)


def one_by_one(cell: Cell, fmt: NumberFormat | None) -> tuple[str, CellKind]:
    """The text of a cell and its kind, without Arrow."""
    if isinstance(cell, str):
        return cell, CellKind.TEXT
    is_percentage = fmt is not None and fmt.kind == "percent"
    if isinstance(cell, bool):
        return "TRUE" if cell else "FALSE", CellKind.PERCENTAGE if is_percentage else CellKind.LOGICAL
    if isinstance(cell, int | float):
        text = number_text(cell)
        if is_percentage or fmt is None:
            return text, CellKind.PERCENTAGE if is_percentage else CellKind.NUMBER
        if fmt.kind == "other" or not text.isdecimal():
            return text, CellKind.OTHER_FORM
        return padded(fmt, text), CellKind.NUMBER
    kind = CellKind.PERCENTAGE if is_percentage else CellKind.DATE
    if isinstance(cell, dt.timedelta):
        minutes, seconds = divmod(cell.total_seconds(), 60)
        shown = format(Decimal(repr(seconds)).normalize(), "f")
        return f"{int(minutes // 60)}:{int(minutes % 60):02}:{shown:0>2}", kind
    return cell.isoformat(), kind


def padded(fmt: NumberFormat, digits: str) -> str:
    """The digits of a padded format, one after the other; surplus ones are at its first place."""
    places = fmt.parts.count("")
    digits = digits.zfill(places)
    surplus, rest = digits[: len(digits) - places], iter(digits[len(digits) - places :])
    text = ""
    for part in fmt.parts:
        text += part or surplus + next(rest)
        surplus = surplus if part else ""
    return text


@settings(max_examples=2 * settings().max_examples)
@given(st.lists(st.tuples(SOME_CELLS, st.sampled_from(FORMATS)), min_size=1, max_size=12))
@example([(value, None) for value in (1e-5, 0.1 + 0.2, 1e15, -1e15, 999999999999999.9, 1e-7, math.inf, -0.0, 5e-324)])
@example([(0.0001, None), (0.00012345678901234, None), (123456.789012345, None), (-1.5, None), (math.nan, None)])
@example([(38.0, FORMATS[-1]), (123456.0, FORMATS[-1]), (0.0, FORMATS[-2]), (-3.0, FORMATS[1]), (1e15, FORMATS[1])])
@example([(0.5, FORMATS[3]), (38.0, FORMATS[1]), (38.5, FORMATS[1]), (38.0, FORMATS[2])])
def test_a_column_of_cells_is_converted_as_each_of_them(column: list[tuple[Cell, NumberFormat | None]]) -> None:
    numbers = np.array([FORMATS.index(fmt) for _, fmt in column], np.int32)
    texts, kinds = column_of([cell for cell, _ in column], numbers, [fmt for fmt in FORMATS if fmt is not None])
    assert list(zip(texts.to_pylist(), kinds.tolist(), strict=True)) == [one_by_one(*cell) for cell in column]


REFERENCES = ['r="{}"', " r = '{}'", '\n r="{}"', 'y=">" r="{}"', "y='n' r=\"{}\"", ""]
CELL = st.tuples(
    st.integers(1, 3),  # columns to the right
    st.sampled_from(REFERENCES),
    st.sampled_from(["", ' t="e"', " t='e'", ' s="1"', " s = '1' ", ' s="2" t="e"', ' s="2"', ' s="1" x="/>"']),
    st.sampled_from(["<v>1</v></c>", "", "<is><t>mailto:carl's /> \"</t></is></c>"]),  # "" for no content
)


@given(
    st.lists(st.lists(CELL, max_size=5), min_size=1, max_size=5),
    st.sampled_from([200, 1 << 18]),
    st.sampled_from(["", "x:", "a-b:"]),
    st.booleans(),
)
@example([[(1, 'r="{}"', ' t="e"', "")]], 1 << 18, "", False)
@example([[(1, 'r="{}"', ' s="1"', "")]], 1 << 18, "", False)
@example([[(1, 'r="{}"', ' s="1" x="/>"', "<v>1</v></c>")]], 1 << 18, "", False)
def test_tags_are_read_in_every_form_and_at_every_end_of_a_chunk(
    rows: list[list[tuple[int, str, str, str]]], chunk: int, prefix: str, is_row_numbered: bool
) -> None:
    xml, positions = "", list[tuple[int, int]]()
    errors, formats = dict[int, dict[int, str]](), dict[int, set[int]]()
    for row, cells in enumerate(rows, 1):
        xml += f'<{prefix}row r="{row}">' if is_row_numbered else f"<{prefix}row>"
        column = 0
        for step, reference, attributes, content in cells:
            column += step if reference else 1
            letters = chr(64 + column)
            space = "" if reference[:1] in ("", " ", "\n") else " "
            xml += f"<{prefix}c{space}{reference.format(f'{letters}{row}')}{attributes}"
            content_xml = re.sub("(</?)(?=[a-z])", rf"\1{prefix}", content)
            xml += f">{content_xml}" if content else "/>"
            if content:
                positions.append((row, column))
                if "'e'" in attributes or '"e"' in attributes:
                    errors.setdefault(row, {})[column - 1] = "an error value such as #N/A"
                if "1" in attributes:
                    formats.setdefault(column - 1, set()).add(row)
        xml += f"</{prefix}row>"
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(sheet_xml, "_CHUNK", chunk)
        styles = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 9, 2))
        path = workbook(Path(folder), ("H", xml), styles=f"<cellXfs>{styles}</cellXfs>")
        with zipfile.ZipFile(path) as archive:
            scan = WorkbookXml(archive, "in.xlsx").scan("H")
    assert scan.cells == len(positions)
    assert scan.without_value == errors
    assert {column: set(np.flatnonzero(numbers).tolist()) for column, numbers in scan.formats.items()} == formats
    widths = Counter(row for row, _ in positions)
    assert scan.holds_table == (sum(width > 1 for width in widths.values()) > 1)


def test_a_cell_cannot_be_hidden_from_the_limits(tmp_path: Path) -> None:
    """What the reader of the cells sees is seen before it allocates: in attributes, prefixes and between chunks."""
    far = 'r="XFD1048576"'
    in_values = f'<c x=">" {far}>', f'<c {far} x="/>">', f"<c {far} x='/>'>"
    for tag in (*in_values, f"<a.b:c {far}>", f"<c{' ' * 5000}{far}>", f"<c\n{far}\t>", f"<c {far}>/>"):
        for filler in (0, sheet_xml._CHUNK - 3):
            cell = f"{tag}<v>1</v></{'a.b:' * ('a.b:' in tag)}c>"
            rows = f'<row r="1"><c r="A1"><v>1</v></c></row>{" " * filler}<row>{cell}</row>'
            with zipfile.ZipFile(workbook(tmp_path, ("H", rows))) as archive:
                xml = WorkbookXml(archive, "in.xlsx")
                with pytest.raises(UsageError, match="row 1,048,576 and column 16,384"):
                    xml.scan("H")
    commented = workbook(tmp_path, ("H", f'<row><!--<c x="" r="A1" y="--><c {far}><v>">1</v></c></row>'))
    with zipfile.ZipFile(commented) as archive, pytest.raises(UsageError, match="row 1,048,576 and column 16,384"):
        WorkbookXml(archive, "in.xlsx").scan("H")
    for fake in ('<!--<row r="3">-->', '<?a <row r="3">?>'):  # it would restart the count of columns
        cells = f'<row r="3">{"<c/>" * 16_383}{fake}<c><v>1</v></c></row><row r="400000"><c><v>1</v></c></row>'
        for before in ("", " " * sheet_xml._CHUNK):
            with zipfile.ZipFile(workbook(tmp_path, ("H", before + cells))) as archive:
                xml = WorkbookXml(archive, "in.xlsx")
                with pytest.raises(UsageError, match="row 400,000 and column 16,384"):
                    xml.scan("H")
    torn = workbook(tmp_path, ("H", f"<!-- --><row><c {far}><v>1</v></c></row><!--"))
    with zipfile.ZipFile(torn) as archive, pytest.raises(ExpatError):
        WorkbookXml(archive, "in.xlsx").scan("H")
    endless = workbook(tmp_path, ("H", f"<row><c {' ' * 3 * sheet_xml._CHUNK}{far}/></row>"))
    with zipfile.ZipFile(endless) as archive, pytest.raises(UsageError, match="does not end"):
        WorkbookXml(archive, "in.xlsx").scan("H")
