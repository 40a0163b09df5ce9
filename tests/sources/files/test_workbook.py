"""Workbooks: cells as text, errors, sheets, layouts, sizes; whole columns and chunks are read as cells one by one."""

from __future__ import annotations

import datetime as dt
import math
import re
import zipfile
from html import unescape
from pathlib import Path
from typing import Any
from xml.parsers.expat import ExpatError

import numpy as np
import pytest

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import (
    CellRules,
    ReadOptions,
    RejectedRow,
    Row,
    SourceTable,
    open_table,
    sheet_xml,
)
from orderbridge.sources.files import workbook as workbooks
from orderbridge.sources.files.sheet_cells import (
    Cell,
    CellKind,
    column_of,
    number_format,
    number_text,
)
from orderbridge.sources.files.sheet_xml import SheetScan, WorkbookXml
from tests.sources.files.reading import cells, described, rows_of
from tests.sources.files.workbooks import of_texts, sheet, text, workbook, zipped

HEADER = (1, text("A1", "code") + text("B1", "name") + text("C1", "value"))
TABLE = of_texts("code;name;value\n1;x\n2;y")


def opened(folder: Path, *rows: tuple[int, str], **options: Any) -> SourceTable:
    return open_table(workbook(folder, ("H", sheet(HEADER, *rows)), **options))


def one(folder: Path, cell: str, rules: CellRules, **options: Any) -> Row | RejectedRow:
    """The row of a cell in the column `value`: its attributes and content, or its content alone."""
    xml = f"<c r='C2'{' ' if cell.startswith(('s=', 't=')) else '>'}{cell}</c>"
    [row] = (
        opened(folder, (2, text("A2", "1") + xml), **options)
        .with_cell_rules({"value": rules})
        .rows()
    )
    return row


@pytest.mark.parametrize(
    ("xml", "shown"),
    [
        *((f"<v>{held}</v>", shown) for held, shown in (
            ("0.1", "0.1"), ("0.00001", "0.00001"), ("-0", "0"), ("19.990000000000002", "19.99"),
            ("56.99999999999999", "57"),
            ("7501234567890123", "7.5012345678901230E+15"), ("-1E+15", "-1.0000000000000000E+15"))),
        *((f't="inlineStr"><is><t xml:space="preserve">{words}</t></is>', words)
          for words in ("007", " NULL ", "7,50123E+12", "#N/A as text", "1E5")),
        ('s="1"><v>45000</v>', "2023-03-15"),
        ('s="2"><v>45000.5</v>', "2023-03-15T12:00:00"),
        ('t="b"><v>1</v>', "TRUE"),
        ("<f>B2</f><v>5</v>", "5"),
        ('t="str"><f>B3</f><v></v>', ""),
    ],
)  # fmt: skip
def test_a_cell_is_the_text_that_the_sheet_shows(tmp_path: Path, xml: str, shown: str) -> None:
    row = one(tmp_path, xml, CellRules())
    assert isinstance(row, Row)
    assert row.cells == ("1", "", shown)


def test_the_rule_of_a_column_gives_the_notation_of_its_cells(tmp_path: Path) -> None:
    rules = CellRules(decimal=",", true="sí", false="no")
    shown = [
        one(tmp_path, xml, rules).cells[2]
        for xml in ("<v>1.5</v>", 't="b"><v>0</v>', 't="b"><v>1</v>')
    ]
    assert shown == ["1,5", "no", "sí"]
    euros = '<numFmts><numFmt numFmtId="170" formatCode="0 EUR"/></numFmts><cellXfs><xf/><xf numFmtId="170"/></cellXfs>'
    for is_text in (False, True):
        row = one(tmp_path, 's="1"><v>738</v>', CellRules(is_text=is_text), styles=euros)
        assert row.cells[2] == ("#N/A (738)" if is_text else "738")
    assert isinstance(row, RejectedRow)
    assert (row.code, row.reason[:46]) == (
        "cell_type",
        "'value' is a number that the sheet shows in an",
    )


@pytest.mark.parametrize(
    ("xml", "reason", "cell"),
    [
        ('t="e"><v>#N/A</v>', "'value' has an error value such as #N/A", "#N/A"),
        *((f">{formula}", "'value' has a formula without a result; open the file", "#N/A") for formula in
          ("<f>B2</f>", "<f>B2</f><v></v>", '<f t="shared" si="0"/><v/>', '<x:f xmlns:x="{MAIN}">B2</x:f>\n')),
        ('s="5"><v>0.21</v>', "'value' is a percentage in the sheet", "#N/A (0.21)"),
    ],
)  # fmt: skip
def test_a_cell_without_a_certain_value_rejects_its_row_if_its_column_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, xml: str, reason: str, cell: str
) -> None:
    rows = [
        (2, text("A2", "1")),
        (3, text("A3", "2") + f'<c r="C3" {xml}</c>'),
        (4, text("A4", "3")),
    ]
    path = workbook(tmp_path, ("S", f"<!-- not the usual form -->{sheet(HEADER, *rows)}"))
    for size in range(150, 330, 12):  # at every end of a part
        monkeypatch.setattr(sheet_xml, "_CHUNK", size)
        found, [rejected] = rows_of(open_table(path))
        assert [row.line for row in found] == [2, 4]
        assert (rejected.line, rejected.cells) == (3, ("2", "", cell)), (
            "it is rejected again until it is filled in"
        )
        assert rejected.reason.startswith(reason)
    table = open_table(path)
    assert len(cells(table.with_cell_rules({"code": CellRules(is_text=True)}))) == 3
    assert rows_of(table.with_cell_rules({"value": CellRules()}))[1] == [rejected]


@pytest.mark.parametrize("block", [1, 2, 4096])
def test_number_formats_belong_to_their_rows_in_every_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(workbooks, "_BLOCK_ROWS", block)
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="00000"/><numFmt numFmtId="165" formatCode="&quot;A-&quot;00"/>'
        '</numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs>'
        '<dxfs><dxf><numFmt numFmtId="164" formatCode="0.0"/></dxf></dxfs><!--<numFmt numFmtId="165"/>-->'
    )
    rows = [(3, text("B3", "code") + text("C3", "name"))] + [
        (line, f'<c r="B{line}" s="{line % 3}"><v>{line}</v></c>' + text(f"C{line}", "x"))
        for line in (4, 5, 6, 8, 9)
    ]
    table = open_table(workbook(tmp_path, ("H", sheet(*rows)), styles=styles))
    assert cells(table) == [("00004", "x"), ("A-05", "x"), ("6", "x"), ("A-08", "x"), ("9", "x")]


@pytest.mark.parametrize(
    ("cell", "words"),
    [
        ('s="1"><v>46082</v>', "date or time"),
        ('t="b"><v>1</v>', "logical value"),
        ('s="3"><v>0.5</v>', "date or time"),
    ],
)
def test_a_code_that_became_a_date_or_a_logical_value_is_rejected(
    tmp_path: Path, cell: str, words: str
) -> None:
    rows = [
        (n, text(f"A{n}", f"MAR{n}") + f'<c r="C{n}" s="1"><v>4500{n}</v></c>') for n in (2, 3, 4)
    ]
    rows.append((5, f'<c r="A5" {cell}</c><c r="C5" s="1"><v>45000</v></c>'))
    table = opened(tmp_path, *rows, (6, text("A6", "MAR6") + text("C6", "pending")))
    for found in (
        table,
        table.with_cell_rules({"code": CellRules(is_text=True), "value": CellRules()}),
    ):
        dates, [row] = rows_of(found)
        shown = [date.cells[2] for date in dates]
        assert shown == ["2023-03-17", "2023-03-18", "2023-03-19", "pending"], (
            "a column of dates is one"
        )
        assert (row.line, row.code, row.cells[0][:6]) == (5, "cell_type", "#N/A ("), (
            "rejected until it is corrected"
        )
        assert row.reason.startswith(f"'code' is a {words}")
        assert "format the column as Text and enter the value again" in row.reason


def test_an_error_is_one_of_its_own_column_in_a_sheet_that_begins_further_right(
    tmp_path: Path,
) -> None:
    table = open_table(workbook(tmp_path, ("H", of_texts(";code;name\n;1;x\n;#REF!;y"))))
    [rejected] = rows_of(table.with_cell_rules({"code": CellRules()}))[1]
    assert rejected.reason.startswith("'code' has an error value")
    assert rejected.cells == ("#N/A", "y")


def test_hidden_rows_and_merged_cells_are_counted(tmp_path: Path) -> None:
    row = '<row r="{0}"{1}><c r="A{0}"><v>{0}</v></c><c r="B{0}"><v>1</v></c></row>'
    states = {3: ' hidden="1"', 4: " hidden='true'", 5: ' hidden="0"'}
    body = sheet(HEADER) + "".join(row.format(n, states.get(n, "")) for n in range(2, 7))
    ranges = "".join(
        f'<mergeCell ref="{cells}"/>' for cells in ("A1:C1", "B2:B4", "C2:C4", "A7:B7", "A9:B9")
    )
    path = workbook(
        tmp_path, ("S", f"{body}</sheetData><mergeCells>{ranges}</mergeCells><sheetData>")
    )
    detected = open_table(path).format
    assert (detected.hidden_rows, detected.merged_cells) == (2, 2)


THREE = "code;name;price\nA1;Perno;1\nA2;Llave;2\nA3;Clavo;3\n"
LAYOUTS: list[tuple[str, dict[str, Any]]] = [
    ("LISTADO\nFecha:;02/01/2025\n\ncode;name;price\n;;€\nA1;Perno;1\nA2;Llave;2\nTotal;;3\n\nPrecios sin IVA\nFin",
     {"rejected": "5 rule, 8 totals", "rows": [6, 7], "footnotes": (10, 11), "preamble": (1, 2), "header": (4,)}),
    ("code;name;value\n1;x\ncode;name;value\nTotal;;2\n3;;z\n---;---\n4;v",
     {"rejected": "3 repeated_header, 4 totals, 6 rule", "cells": [("1", "x", ""), ("3", "", "z"), ("4", "v", "")]}),
    (f"{THREE}A4;Pala;4;x", {"rejected": "5 too_long"}),
    ("A0041;Perno;1,50\nA0042;Llave;2,50\nA0043;Clavo;3,50", {"rejected": "", "rows": [1, 2, 3], "header": ()}),
    ("\n;Listado\n\n;code;name;city\n\n;1;x;y\n;2;#REF!;\n\n;Total 2",
     {"columns": "code,name,city", "preamble": (2,), "header": (4,), "rows": [6], "rejected": "7 cell_error",
      "footnotes": (9,)}),
    *((THREE + second, {"error": f"two tables: line {line}"}) for second, line in (
        ("\ncliente;ciudad;saldo\nC1;Roma;5\n", 6), ("\nCLIENTES\ncliente;ciudad\nAna;Roma\n", 7),
        ("name;code;price\nTornillo;A4;5\n", 5), ("\nname;code;price\nTornillo;A4;5\n", 6))),
]  # fmt: skip


@pytest.mark.parametrize(("texts", "expected"), LAYOUTS)
def test_titles_units_totals_notes_and_other_tables_in_a_sheet_are_no_rows(
    tmp_path: Path, texts: str, expected: dict[str, Any]
) -> None:
    table = open_table(workbook(tmp_path, ("H", of_texts(texts))))
    if "error" in expected:
        for read in (table.rows, table.batches):
            with pytest.raises(UsageError, match=expected["error"]):
                list(read())
        return
    found = described(table)
    assert {name: found[name] for name in expected} == expected
    if first := re.match("[0-9]+", found["rejected"]):
        with pytest.raises(UsageError, match=f"line {first[0]}: "):
            list(table.batches())


def test_the_only_visible_sheet_with_a_table_is_taken_or_the_one_given(tmp_path: Path) -> None:
    old, note = TABLE.replace("code", "old"), of_texts("Léeme;v2\nx")
    path = workbook(
        tmp_path,
        ("Old", old),
        ("Notas", note),
        ("Empty", ""),
        ("A &amp; B", TABLE),
        hidden=("Old",),
    )
    assert open_table(path).format.sheet == "A & B"
    assert open_table(path).format.sheets == ("Old", "Notas", "Empty", "A & B")
    for choice in ("Old", "1"):
        assert open_table(path, ReadOptions(sheet=choice)).columns[0] == "old"
    several = workbook(
        tmp_path, ("Notas", note), ("Enero", TABLE), ("Feb &amp; Mar", TABLE), name="several.xlsx"
    )
    hidden = workbook(tmp_path, ("Old", old), ("Empty", ""), name="hidden.xlsx", hidden=("Old",))
    wrong: list[tuple[Path, str | None, str]] = [
        (path, "Hoja9", "no sheet 'Hoja9'"),
        (path, "Empty", "no table"),
        (several, None, 'sheets hold a table: Enero, Feb & Mar(.|\n)*--sheet "Enero"'),
        (hidden, None, "no visible sheet with cells"),
    ]
    for file, wanted, words in wrong:
        with pytest.raises(UsageError, match=words):
            open_table(file, ReadOptions(sheet=wanted))


@pytest.mark.parametrize(
    ("encoding", "name"), [("utf-8", "&quot;a&quot; &lt;b"), ("unknown", "&#xC1;&#233;>")]
)
def test_a_sheet_is_found_whatever_its_workbook_declares(
    tmp_path: Path, encoding: str, name: str
) -> None:
    path = workbook(tmp_path, (name, TABLE), name="in.csv")  # the name of the file does not count
    with zipfile.ZipFile(path) as archive:
        parts = {part: archive.read(part).decode() for part in archive.namelist()}
    xml = parts["xl/workbook.xml"].replace("<sheet ", '<sheet xmlns:x="urn:x" x:id="r99" ')
    parts["xl/workbook.xml"] = f'<?xml version="1.0" encoding="{encoding}"?>{xml}'
    table = open_table(zipped(path, parts))
    assert (table.format.kind, table.format.sheet, len(cells(table))) == (
        "workbook",
        unescape(name),
        2,
    )


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (
            {"mimetype": "application/x", "content.xml": "<x/>"},
            r"an OpenDocument spreadsheet \(\.ods\)(.|\n)*\.xlsx",
        ),
        ({"xl/workbook.bin": "x"}, r"a binary Excel workbook \(\.xlsb\)(.|\n)*\.xlsx"),
        ({"readme": "x"}, r"a zip archive(.|\n)*Unpack"),
        ({"xl/workbook.xml": "<workbook"}, r"a damaged workbook"),
    ],
)
def test_other_archives_are_named_with_what_to_do(
    tmp_path: Path, parts: dict[str, str], words: str
) -> None:
    with pytest.raises(UsageError, match=f"in.xlsx is {words}"):
        open_table(zipped(tmp_path / "in.xlsx", parts))


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ('<row r="1"/><row><c r="A4294967295"><v>1</v></c></row>', "outside of the limits"),
        ('<row r="1"/><row><c r="ZZZZ5"><v>1</v></c></row>', "outside of the limits"),
        (
            '<row><c r="A1"><v>1</v></c></row><row><c r="CV100000"><v>1</v></c></row>',
            "to row 100,000 and column 100",
        ),
        (f'<row r="{"9" * 5000}"><c><v>1</v></c></row>', "outside of the limits"),
        (
            sheet(HEADER, (2, text("A2", "a") + '<c r="C2" s="4"><v>34600112233</v></c>')),
            "formatted as a duration",
        ),
    ],
)
def test_cells_beyond_the_limits_are_an_error_before_they_are_allocated(
    tmp_path: Path, rows: str, words: str
) -> None:
    with pytest.raises(UsageError, match=words):
        open_table(workbook(tmp_path, ("H", rows)))


def test_formatted_cells_without_content_are_not_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = workbook(tmp_path, ("H", TABLE + '<row r="1048576"><c r="XFD1048576" s="1"/></row>'))
    assert len(cells(open_table(path))) == 2
    monkeypatch.setattr(sheet_xml, "SPARSE", 1)  # as for a large table: filled, it is not refused
    assert len(cells(open_table(path))) == 2


def test_an_archive_that_lies_or_is_too_large_and_a_panic_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class PanicException(BaseException):  # named as that of pyo3
        pass

    def panic(*_: object) -> None:
        raise PanicException

    path = workbook(tmp_path, ("H", TABLE))
    for name, value, words in (
        ("orderbridge.sources.files.workbook._table", panic, "is a damaged workbook"),
        ("orderbridge.sources.files.sheet_xml.MAX_UNPACKED_BYTES", 100, "unpacks to"),
        ("orderbridge.sources.files.sheet_xml.MAX_PART_BYTES", 100, "larger than 0 MiB"),
    ):
        with monkeypatch.context() as patch:
            patch.setattr(name, value)
            with pytest.raises(UsageError, match=words):
                open_table(path)
    content = bytearray(path.read_bytes())
    at = content.rindex(b"xl/worksheets/s1.xml") - 46
    size = int.from_bytes(content[at + 24 : at + 28], "little")
    content[at + 24 : at + 28] = (size // 2).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is a damaged workbook"):
        open_table(path)


FORMATS = [
    number_format(code)
    for code in ("00000", '"ART-"0000', "0%", '0.00 "€"', "000-000", '0"-"00" A"')
]


def converted(cells: list[Cell], formats: list[int]) -> list[tuple[str, int]]:
    texts, kinds = column_of(cells, np.array(formats, np.int32), FORMATS)
    return list(zip(texts.to_pylist(), kinds.tolist(), strict=True))


@pytest.mark.parametrize(
    "column",
    [
        [
            (value, 0)
            for value in (
                1e-5,
                0.1 + 0.2,
                1e15,
                -1e15,
                999999999999999.9,
                1e-7,
                math.inf,
                -0.0,
                5e-324,
            )
        ],
        [
            (0.0001, 0),
            (0.00012345678901234, 0),
            (123456.789012345, 0),
            (-1.5, 0),
            (math.nan, 0),
            (10**17, 0),
        ],
        [
            (cell, number)
            for cell in (38.0, "38", True, dt.date(2024, 5, 1), -7.25, dt.timedelta(2))
            for number in range(7)
        ],
    ],
)
def test_a_column_of_cells_is_converted_as_each_of_them(column: list[tuple[Cell, int]]) -> None:
    found = converted([cell for cell, _ in column], [number for _, number in column])
    assert found == [converted([cell], [number])[0] for cell, number in column]
    for (cell, number), (shown, _) in zip(column, found, strict=True):
        if isinstance(cell, int | float) and not isinstance(cell, bool) and number in (0, 3, 4):
            assert shown == number_text(cell)


@pytest.mark.parametrize(
    ("cell", "code", "text", "kind"),
    [
        ("x", "00000", "x", CellKind.TEXT), (True, "00000", "TRUE", CellKind.LOGICAL),
        (False, "0%", "FALSE", CellKind.PERCENTAGE), (38.0, "00000", "00038", CellKind.NUMBER),
        (0.5, "0%", "0.5", CellKind.PERCENTAGE), (21, '0.00"%"', "21", CellKind.PERCENTAGE),
        (38.5, "00000", "38.5", CellKind.OTHER_FORM), (-3.0, "00000", "-3", CellKind.OTHER_FORM),
        (38.0, '0"-"00" A"', "0-38 A", CellKind.NUMBER), (123456.0, '0"-"00" A"', "1234-56 A", CellKind.NUMBER),
        (12345, "00\\.000", "12.345", CellKind.NUMBER), (38, "[Red]0000", "0038", CellKind.NUMBER),
        (1234, "#,##0", "1234", CellKind.NUMBER),
        *((38, code, "38", CellKind.NUMBER) for code in ("General", "@", "0", "0.00")),
        *((38, code, "38", CellKind.OTHER_FORM) for code in ('0.00 "€"', "[<=9]00;000", "0,", "# ?/?", "#-00")),
        (dt.date(2024, 5, 1), "0", "2024-05-01", CellKind.DATE), (dt.time(7, 5), "00000", "07:05:00", CellKind.DATE),
        (dt.datetime(2024, 5, 1, 7), "0", "2024-05-01T07:00:00", CellKind.DATE),
        (dt.timedelta(1, 3723, 500000), "0", "25:02:03.5", CellKind.DATE),
    ],
)  # fmt: skip
def test_a_cell_is_its_text_and_its_kind(cell: Cell, code: str, text: str, kind: CellKind) -> None:
    known = number_format(code)
    texts, kinds = column_of([cell], np.array([int(known.kind != "digits")], np.int32), [known])
    assert (texts.to_pylist(), kinds.tolist()) == ([text], [kind])


def scanned(folder: Path, rows: str) -> SheetScan:
    styles = (
        "<cellXfs>" + "".join(f'<xf numFmtId="{number}"/>' for number in (0, 9, 2)) + "</cellXfs>"
    )
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
    found = scanned(
        tmp_path,
        xml.replace("</", f"</{prefix}").replace("<", f"<{prefix}").replace(f"<{prefix}/", "</"),
    )
    assert (found.cells, found.holds_table, found.hidden) == (7, True, {4})
    assert {at: sorted(columns) for at, columns in found.without_value.items()} == {3: [1, 5]}
    assert {
        column: np.flatnonzero(numbers).tolist() for column, numbers in found.formats.items()
    } == {3: [3], 9: [3]}


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
def test_a_cell_cannot_be_hidden_from_the_limits(
    tmp_path: Path, rows: str, words: str, filler: int
) -> None:
    """What the reader of the cells sees is seen before it allocates: in attributes, prefixes and between chunks."""
    with pytest.raises(ExpatError if words == "token" else UsageError, match=words):
        scanned(tmp_path, " " * filler + rows)
