"""Workbooks: cells as text, errors, sheets, layouts. Each workbook is the XML of its rows, zipped in its test."""

from __future__ import annotations

import re
import zipfile
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from pipelines.imports.open import layout_notes
from pipelines.mapping.cells import Reading, ValueKind
from sources.errors import UsageError
from sources.files import CellRules, ReadOptions, RejectedRow, Row, SourceTable, open_table, sheet_xml
from sources.files import workbook as workbooks
from transforms.numbers import POINT

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
KINDS: tuple[ValueKind, ...] = ("text", "id", "number_id", "number", "integer")
STYLES = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22, 21, 46))


def text(ref: str, words: str) -> str:
    return f'<c r="{ref}" t="inlineStr"><is><t xml:space="preserve">{words}</t></is></c>'


def sheet(*rows: tuple[int, str]) -> str:
    return "".join(f'<row r="{number}">{cells}</row>' for number, cells in rows)


def workbook(
    tmp_path: Path,
    *sheets: tuple[str, str],
    name: str = "in.xlsx",
    hidden: tuple[str, ...] = (),
    styles: str = f"<cellXfs>{STYLES}</cellXfs>",
) -> Path:
    path = tmp_path / name
    numbers = range(1, len(sheets) + 1)
    with zipfile.ZipFile(path, "w") as archive:
        office = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
        archive.writestr("_rels/.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{office}</Relationships>')
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{PACKAGE}/content-types"></Types>')
        links = "".join(
            f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>' for n in numbers
        )
        links += f'<Relationship Id="r99" Type="{OFFICE}/styles" Target="styles.xml"/>'
        archive.writestr(
            "xl/_rels/workbook.xml.rels", f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>'
        )
        tags = "".join(
            f'<sheet name="{title}" sheetId="{n}" r:id="r{n}" state="{"hidden" if title in hidden else "visible"}"/>'
            for n, (title, _) in zip(numbers, sheets, strict=True)
        )
        archive.writestr(
            "xl/workbook.xml", f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{tags}</sheets></workbook>'
        )
        archive.writestr("xl/styles.xml", f'<styleSheet xmlns="{MAIN}">{styles}</styleSheet>')
        for n, (_, rows) in zip(numbers, sheets, strict=True):
            archive.writestr(
                f"xl/worksheets/s{n}.xml",
                f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>',
            )
    return path


def cells(table: SourceTable) -> list[tuple[str, ...]]:
    return [row.cells for row in table.rows() if isinstance(row, Row)]


HEADER = (1, text("A1", "code") + text("B1", "name") + text("C1", "value"))


def test_cells_are_text_as_the_sheet_holds_them(tmp_path: Path) -> None:
    values = {
        "<v>7</v>": "7",
        "<v>0.1</v>": "0.1",
        "<v>-12.5</v>": "-12.5",
        "<v>7501230000000</v>": "7501230000000",
        "<v>0.00001</v>": "0.00001",
        "<v>-0</v>": "0",
        "<v>999999999999999</v>": "999999999999999",
    }
    rows = [(n, text(f"A{n}", "007") + text(f"B{n}", " NULL ") + f'<c r="C{n}">{xml}</c>')
            for n, xml in enumerate(values, 2)]  # fmt: skip
    table = open_table(workbook(tmp_path, ("Hoja1", sheet(HEADER, *rows))))
    assert table.columns == ("code", "name", "value")
    assert cells(table) == [("007", " NULL ", value) for value in values.values()]
    assert [line for part in table.batches(2) for line in part["_line"].to_pylist()] == [2, 3, 4, 5, 6, 7, 8]


@pytest.mark.parametrize(
    "digits", ["7501234567890123", "1000000000000000", "1E+15", "12345678901234567", "123456789012345678901", "1E+300"]
)
@pytest.mark.parametrize("sign", ["", "-"])
def test_a_number_with_more_digits_than_a_spreadsheet_keeps_is_refused_as_a_code(
    tmp_path: Path, digits: str, sign: str
) -> None:
    row = (2, text("A2", "1") + f'<c r="C2"><v>{sign}{digits}</v></c>')
    [(_, _, found)] = cells(open_table(workbook(tmp_path, ("H", sheet(HEADER, row)))))
    codes = {kind: Reading(kind, POINT).read(pa.array([found], pa.string()))[1].to_pylist() for kind in KINDS}
    assert codes == {
        "text": ["damaged_code"],
        "id": ["damaged_code"],
        "number_id": ["damaged_code"],
        "number": ["not_a_number"],
        "integer": ["not_a_number"],
    }


def test_two_numbers_that_no_spreadsheet_keeps_apart_are_not_one_key(tmp_path: Path) -> None:
    rows = [(n, text(f"A{n}", "1") + f'<c r="C{n}"><v>750123456789012{n}</v></c>') for n in (2, 3)]
    first, second = cells(open_table(workbook(tmp_path, ("H", sheet(HEADER, *rows)))))
    assert first != second


@pytest.mark.parametrize(
    ("held", "shown"),
    [
        ("19.990000000000002", "19.99"),
        ("0.30000000000000004", "0.3"),
        ("-1234567.8900000001", "-1234567.89"),
        ("0.123456789012345", "0.123456789012345"),
    ],
)
def test_a_computed_number_has_the_digits_that_the_sheet_shows(tmp_path: Path, held: str, shown: str) -> None:
    row = (2, text("A2", "1") + f'<c r="C2"><v>{held}</v></c>')
    assert cells(open_table(workbook(tmp_path, ("H", sheet(HEADER, row))))) == [("1", "", shown)]


def test_dates_are_iso_and_truth_is_upper_case(tmp_path: Path) -> None:
    row = '<c r="A2" s="1"><v>45000</v></c><c r="B2" s="2"><v>45000.5</v></c><c r="C2" t="b"><v>1</v></c>'
    table = open_table(workbook(tmp_path, ("Hoja1", sheet(HEADER, (2, row)))))
    assert cells(table) == [("2023-03-15", "2023-03-15T12:00:00", "TRUE")]


def test_a_barcode_damaged_into_text_stays_as_it_is(tmp_path: Path) -> None:
    row = text("A2", "7,50123E+12") + text("B2", "#N/A as text") + text("C2", "1E5")
    assert cells(open_table(workbook(tmp_path, ("H", sheet(HEADER, (2, row)))))) == [
        ("7,50123E+12", "#N/A as text", "1E5")
    ]


def test_a_cell_with_an_error_refuses_its_row(tmp_path: Path) -> None:
    rows = [(2, text("A2", "1")), (3, text("A3", "2") + '<c r="C3" t="e"><v>#N/A</v></c>'), (4, text("A4", "3"))]
    table = open_table(workbook(tmp_path, ("H", sheet(HEADER, *rows))))
    refused = [row for row in table.rows() if isinstance(row, RejectedRow)]
    assert [(row.line, row.code, row.reason, row.cells) for row in refused] == [
        (3, "cell_error", "'value' has an error value such as #N/A", ("2", "", "#N/A"))
    ]
    assert cells(table) == [("1", "", ""), ("3", "", "")]


@pytest.mark.parametrize("encoding", ["utf-8", "shift_jis", "unknown"])
def test_a_sheet_is_found_whatever_encoding_and_other_ids_its_workbook_declares(tmp_path: Path, encoding: str) -> None:
    path = workbook(tmp_path, ("H", sheet(HEADER, (2, text("A2", "1")))))
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    parts["xl/workbook.xml"] = parts["xl/workbook.xml"].replace(b"<sheet ", b'<sheet xmlns:x="urn:x" x:id="r99" ')
    declaration = f'<?xml version="1.0" encoding="{encoding}"?>'.encode()
    parts["xl/workbook.xml"] = declaration + parts["xl/workbook.xml"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    assert cells(open_table(path)) == [("1", "", "")]


def test_a_cell_of_a_column_that_is_not_used_refuses_no_row(tmp_path: Path) -> None:
    rows = [(2, text("A2", "1") + '<c r="B2" t="e"><v>#N/A</v></c><c r="C2" s="1"><v>0.21</v></c>')]
    formats = '<cellXfs><xf numFmtId="0"/><xf numFmtId="9"/></cellXfs>'
    table = open_table(workbook(tmp_path, ("H", sheet(HEADER, *rows)), styles=formats))
    assert [type(row) for row in table.with_cell_rules({"code": CellRules(is_text=True)}).rows()] == [Row]
    for name in ("name", "value"):
        assert [type(row) for row in table.with_cell_rules({name: CellRules()}).rows()] == [RejectedRow]


@pytest.mark.parametrize(
    ("formula", "is_rejected"),
    [
        ("<f>B2</f>", True),
        ("<f>B2</f><v></v>", True),
        ('<f t="shared" si="0"/><v/>', True),
        ('<x:f xmlns:x="{MAIN}">B2</x:f>\n', True),
        ("<f>B2</f><v>5</v>", False),
    ],
)
@pytest.mark.parametrize("before", ["", "<!-- not the usual form -->"])
def test_a_formula_without_a_result_is_not_an_empty_cell(
    tmp_path: Path, before: str, formula: str, is_rejected: bool
) -> None:
    rows = [(2, text("A2", "007") + text("B2", "Ana") + f'<c r="C2">{formula}</c>')]
    rows.append((3, text("A3", "008") + '<c r="C3" t="str"><f>B3</f><v></v></c>'))
    opened = open_table(workbook(tmp_path, ("S", before + sheet(HEADER, *rows))))
    first, second = opened.rows()
    assert isinstance(second, Row)
    if not is_rejected:
        assert isinstance(first, Row)
        return
    assert isinstance(first, RejectedRow)
    assert (first.line, first.code) == (2, "cell_error")
    assert first.reason.startswith("'value' has a formula without a result; open the file")
    assert first.cells == ("007", "Ana", "#N/A"), "it is rejected again until it is filled in"


def test_a_formula_at_every_end_of_a_part_is_seen(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(
        tmp_path, ("S", sheet(HEADER, *((n, text(f"A{n}", "x") + f'<c r="B{n}"><f>C1</f></c>') for n in (2, 3))))
    )
    for size in range(150, 330):
        monkeypatch.setattr(sheet_xml, "_CHUNK", size)
        assert [row.line for row in open_table(path).rows() if isinstance(row, RejectedRow)] == [2, 3], size


def test_hidden_rows_and_merged_cells_are_counted(tmp_path: Path) -> None:
    row = '<row r="{0}"{1}><c r="A{0}"><v>{0}</v></c><c r="B{0}"><v>1</v></c></row>'
    states = {3: ' hidden="1"', 4: " hidden='true'", 5: ' hidden="0"'}
    body = sheet(HEADER) + "".join(row.format(n, states.get(n, "")) for n in range(2, 7))
    ranges = "".join(f'<mergeCell ref="{cells}"/>' for cells in ("A1:C1", "B2:B4", "C2:C4", "A9:B9"))
    merged = f"<mergeCells>{ranges}</mergeCells>"
    for xml in (body, re.sub(r' r="[A-Z]?[0-9]"', "", body)):
        path = workbook(tmp_path, ("S", f"{xml}</sheetData>{merged}<sheetData>"))
        detected = open_table(path).format
        assert (detected.hidden_rows, detected.merged_cells) == (2, 2)
    assert [note.partition(":")[0] for note in layout_notes(open_table(path))] == [
        "hidden rows of the sheet are read too",
        "groups of merged cells",
    ]


def test_a_table_that_begins_inside_the_sheet_is_found(tmp_path: Path) -> None:
    rows = sheet(
        (2, text("B2", "Listado")),
        (4, text("B4", "code") + text("C4", "name") + text("D4", "city")),
        (6, text("B6", "1") + text("C6", "x") + text("D6", "y")),
        (7, text("B7", "2") + '<c r="D7" t="e"><v>#REF!</v></c>'),
        (9, text("B9", "Total 2")),
    )
    table = open_table(workbook(tmp_path, ("H", rows)))
    assert table.columns == ("code", "name", "city")
    assert (table.format.preamble, table.format.header_lines, table.format.footnotes) == ((2,), (4,), (9,))
    assert [(row.line, type(row)) for row in table.rows()] == [(6, Row), (7, RejectedRow)]
    assert "'city'" in next(row.reason for row in table.rows() if isinstance(row, RejectedRow))


def test_the_first_visible_sheet_with_cells_is_taken_or_the_one_reported(tmp_path: Path) -> None:
    body = sheet(HEADER, (2, text("A2", "1")))
    path = workbook(tmp_path, ("Old", body.replace("code", "old")), ("Empty", ""), ("A &amp; B", body), hidden=("Old",))
    assert open_table(path).format.sheet == "A & B"
    assert open_table(path).format.sheets == ("Old", "Empty", "A & B")
    assert open_table(path, ReadOptions(sheet="Old")).columns[0] == "old"
    assert open_table(path, ReadOptions(sheet="1")).columns[0] == "old"
    with pytest.raises(UsageError, match="no sheet 'Hoja9'"):
        open_table(path, ReadOptions(sheet="Hoja9"))
    with pytest.raises(UsageError, match="no table"):
        open_table(path, ReadOptions(sheet="Empty"))
    with pytest.raises(UsageError, match="no visible sheet with cells"):
        open_table(workbook(tmp_path, ("Old", body), ("Empty", ""), name="none.xlsx", hidden=("Old",)))


def test_rows_that_do_not_fit_the_table_are_rejected_in_their_place(tmp_path: Path) -> None:
    error = '<c r="C{0}" t="e"><v>#N/A</v></c>'
    rows = [
        (2, text("A2", "1") + text("B2", "x")),
        (3, text("A3", "code") + text("B3", "name") + text("C3", "value")),
        (4, text("A4", "Total") + text("C4", "2")),
        (5, text("A5", "3") + text("C5", "z")),
        (6, text("A6", "---") + text("B6", "---")),
        (7, text("A7", "4") + text("B7", "v")),
        (8, text("A8", "5") + text("B8", "w") + error.format(8)),
    ]
    table = open_table(workbook(tmp_path, ("H", sheet(HEADER, *rows))))
    rejects = [(3, "repeated_header"), (4, "totals"), (6, "rule"), (8, "cell_error")]
    assert [row.line for row in table.rows()] == [2, 3, 4, 5, 6, 7, 8]
    assert [(row.line, row.code) for row in table.rows() if isinstance(row, RejectedRow)] == rejects
    taken: list[RejectedRow] = []
    lines = [(batch["_line"].to_pylist(), len(taken)) for batch in table.batches(2, taken.append)]
    assert lines == [([2, 5], 2), ([7], 3)], "a reject is passed on before the rows that follow it"
    assert [(row.line, row.code) for row in taken] == rejects
    with pytest.raises(UsageError, match="line 3: repeats the header"):
        list(table.batches())


def test_the_bytes_and_not_the_name_say_what_a_file_is(tmp_path: Path) -> None:
    path = workbook(tmp_path, ("H", sheet(HEADER, (2, text("A2", "1")))), name="in.csv")
    assert open_table(path).format.kind == "workbook"
    (tmp_path / "real.xlsx").write_bytes(b"a;b\n1;2\n")
    assert open_table(tmp_path / "real.xlsx").format.kind == "text"


def test_a_broken_or_huge_workbook_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path, ("H", sheet(HEADER, (2, text("A2", "1")))))
    broken = tmp_path / "broken.xlsx"
    with zipfile.ZipFile(broken, "w") as archive:
        archive.writestr("xl/workbook.xml", "<workbook")
    with pytest.raises(UsageError, match=r"broken\.xlsx is a damaged workbook"):
        open_table(broken)
    monkeypatch.setattr(sheet_xml, "MAX_UNPACKED_BYTES", 100)
    with pytest.raises(UsageError, match="unpacks to"):
        open_table(path)


# --- what a sheet shows and what it holds ----------------------------------------------------------------------------


def formatted(tmp_path: Path, code: str, number: str, *, is_text: bool) -> Row | RejectedRow:
    """The row of a cell with a number in a format; the column is one of texts or not."""
    quoted = code.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    styles = f'<numFmts><numFmt numFmtId="170" formatCode="{quoted}"/></numFmts>'
    styles += '<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/></cellXfs>'
    row = (2, text("A2", "1") + f'<c r="C2" s="1"><v>{number}</v></c>')
    path = workbook(tmp_path, ("H", sheet(HEADER, row)), styles=styles)
    table = open_table(path).with_cell_rules({"value": CellRules(is_text=is_text)})
    [found] = table.rows()
    return found


@pytest.mark.parametrize(
    ("code", "number", "as_text", "as_number"),
    [
        ("00000", "38", "00038", "00038"),
        ("00000", "123456", "123456", "123456"),
        ('"ART-"0000', "38", "ART-0038", "ART-0038"),
        ("000-000", "123456", "123-456", "123-456"),
        ("00\\.000", "12345", "12.345", "12.345"),
        ("[Red]0000", "38", "0038", "0038"),
        ("0000_);(0000)", "38", "0038", "0038"),
        ("General", "38", "38", "38"),
        ("@", "38", "38", "38"),
        ("0", "38", "38", "38"),
        ("#,##0", "1234", "1234", "1234"),
        ("0.00", "38", "38", "38"),
        ("0.000", "19.367", "19.367", "19.367"),
        ('0.00 "€"', "19.367", None, "19.367"),
        ("00000", "38.5", None, "38.5"),
        ("00000", "-38", None, "-38"),
        ("[<=9]00;000", "5", None, "5"),
        ("0,", "38000", None, "38000"),
        ("# ?/?", "0.5", None, "0.5"),
        ("0%", "0.21", None, None),
    ],
)
def test_7_the_number_format_is_honoured_and_what_is_unknown_is_rejected(
    tmp_path: Path, code: str, number: str, as_text: str | None, as_number: str | None
) -> None:
    for is_text, expected in ((True, as_text), (False, as_number)):
        row = formatted(tmp_path, code, number, is_text=is_text)
        if expected is None:
            assert isinstance(row, RejectedRow)
            assert (row.code, row.reason[:8]) == ("cell_type", "'value' ")
            assert number not in row.reason
        else:
            assert isinstance(row, Row)
            assert row.cells[2] == expected


def test_formats_of_conditions_and_in_comments_are_not_those_of_cells(tmp_path: Path) -> None:
    row = (2, text("A2", "1") + '<c r="C2" s="1"><v>38</v></c>')
    own = '<numFmts><numFmt numFmtId="170" formatCode="00000"/></numFmts>'
    conditions = '<dxfs><dxf><numFmt numFmtId="170" formatCode="0.0"/></dxf></dxfs>'
    styles = (
        f'<!--{own.replace("000", "0")}-->{own}<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/></cellXfs>{conditions}'
    )
    table = open_table(workbook(tmp_path, ("H", sheet(HEADER, row)), styles=styles))
    [found] = table.with_cell_rules({"value": CellRules(is_text=True)}).rows()
    assert isinstance(found, Row)
    assert found.cells[2] == "00038"


@pytest.mark.parametrize("written", ["&#xC1;&#233;>", "&quot;a&quot; &lt;b"])
def test_names_of_sheets_may_have_character_references(tmp_path: Path, written: str) -> None:
    path = workbook(tmp_path, (written, sheet(HEADER, (2, text("A2", "1")))))
    assert open_table(path).format.sheet == unescape(written)


def test_7_a_built_in_percentage_is_rejected(tmp_path: Path) -> None:
    row = (2, text("A2", "1") + '<c r="C2" s="1"><v>0.21</v></c>')
    path = workbook(
        tmp_path, ("H", sheet(HEADER, row)), styles='<cellXfs><xf numFmtId="0"/><xf numFmtId="9"/></cellXfs>'
    )
    [found] = open_table(path).rows()
    assert isinstance(found, RejectedRow)
    assert "percentage" in found.reason


@pytest.mark.parametrize(
    ("cell", "words"),
    [('s="1"><v>46082</v>', "date or time"), ('t="b"><v>1</v>', "logical value"), ('s="3"><v>0.5</v>', "date or time")],
)
def test_7_a_code_that_became_a_date_or_a_logical_value_is_rejected(tmp_path: Path, cell: str, words: str) -> None:
    rows = [(n, text(f"A{n}", f"MAR{n}") + f'<c r="C{n}"><v>{n}</v></c>') for n in (2, 3, 4)]
    rows.append((5, f'<c r="A5" {cell}</c><c r="C5"><v>9</v></c>'))
    table = open_table(workbook(tmp_path, ("H", sheet(HEADER, *rows))))
    for found in (table, table.with_cell_rules({"code": CellRules(is_text=True)})):
        [row] = [row for row in found.rows() if isinstance(row, RejectedRow)]
        assert (row.line, row.code, row.cells[0][:6]) == (5, "cell_type", "#N/A ("), "rejected until it is corrected"
        assert f"'code' is a {words}" in row.reason
        assert "format the column as Text and enter the value again" in row.reason


def test_7_a_column_of_dates_is_one(tmp_path: Path) -> None:
    rows = [(n, text(f"A{n}", f"x{n}") + f'<c r="C{n}" s="1"><v>4500{n}</v></c>') for n in (2, 3, 4)]
    table = open_table(workbook(tmp_path, ("H", sheet(HEADER, *rows))))
    assert [row[2] for row in cells(table)] == ["2023-03-17", "2023-03-18", "2023-03-19"]


OLE = b"\xd0\xcf\x11\xe0" + b"\0" * 600
TABLE = sheet(HEADER, (2, text("A2", "1") + text("B2", "x")), (3, text("A3", "2") + text("B3", "y")))


def test_7_one_of_several_sheets_with_a_table_is_not_taken_silently(tmp_path: Path) -> None:
    path = workbook(tmp_path, ("Notas", sheet((1, text("A1", "Léeme")))), ("Enero", TABLE), ("Feb &amp; Mar", TABLE))
    with pytest.raises(UsageError, match="2 sheets hold a table: Enero, Feb & Mar") as error:
        open_table(path)
    assert '--sheet "Enero"' in str(error.value)
    assert open_table(path, ReadOptions(sheet="Feb & Mar")).format.sheet == "Feb & Mar"
    path = workbook(tmp_path, ("Notas", sheet((1, text("A1", "Léeme")), (2, text("A2", "x")))), ("Enero", TABLE))
    assert open_table(path).format.sheet == "Enero"
    path = workbook(tmp_path, ("Enero", TABLE), ("Vieja", TABLE), hidden=("Vieja",))
    assert open_table(path).format.sheet == "Enero"


def zipped(path: Path, **members: str) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_xml", ".xml").replace("_bin", ".bin"), content)
    return path


@pytest.mark.parametrize(
    ("content", "words", "cure"),
    [
        (
            OLE + "EncryptedPackage".encode("utf-16-le"),
            "protected by a password",
            "remove",
        ),
        (
            OLE + "Workbook".encode("utf-16-le"),
            r"an old Excel workbook \(\.xls\)",
            r"\.xlsx",
        ),
        ({"mimetype": "application/x", "content_xml": "<x/>"}, r"an OpenDocument spreadsheet \(\.ods\)", r"\.xlsx"),
        ({"xl__workbook_bin": "x"}, r"a binary Excel workbook \(\.xlsb\)", r"\.xlsx"),
        ({"word__document_xml": "x"}, "a Word document", r"\.xlsx"),
        ({"readme": "x"}, "a zip archive", "Unpack"),
    ],
    ids=["password", "xls", "ods", "xlsb", "docx", "zip"],
)
def test_7_other_spreadsheets_are_named_with_what_to_do(tmp_path: Path, content: Any, words: str, cure: str) -> None:
    path = tmp_path / "in.xlsx"
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        zipped(path, **content)
    with pytest.raises(UsageError, match=f"in.xlsx is .*{words}") as error:
        open_table(path)
    assert re.search(cure, error.value.hint)


# --- sizes -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        (
            (text("A1", "a") + text("B1", "b"), '<c r="XFD1048576"><v>1</v></c>'),
            "to row 1,048,576 and column 16,384",
        ),
        ((text("A1", "a") + text("B1", "b"), '<c r="A4294967295"><v>1</v></c>'), "outside of the limits"),
        ((text("A1", "a") + text("B1", "b"), '<c r="ZZZZ5"><v>1</v></c>'), "outside of the limits"),
    ],
)
def test_14_5_cells_far_apart_are_an_error_before_they_are_allocated(tmp_path: Path, rows: Any, words: str) -> None:
    path = workbook(tmp_path, ("H", f'<row r="1">{rows[0]}</row><row>{rows[1]}</row>'))
    assert path.stat().st_size < 4000
    with pytest.raises(UsageError, match=words):
        open_table(path)


def test_a_row_of_many_digits_is_an_input_error(tmp_path: Path) -> None:
    path = workbook(tmp_path, ("S", f'<row r="{"9" * 5000}"><c><v>1</v></c></row>'))
    with pytest.raises(UsageError, match="outside of the limits of a sheet"):
        open_table(path)


def test_14_5_formatted_cells_without_content_are_not_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = workbook(tmp_path, ("H", TABLE + '<row r="1048576"><c r="XFD1048576" s="1"/></row>'))
    assert len(cells(open_table(path))) == 2
    monkeypatch.setattr(sheet_xml, "SPARSE", 1)  # as for a large table: filled, it is not refused
    assert len(cells(open_table(path))) == 2


def test_14_5_a_panic_of_the_reader_is_an_input_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class PanicException(BaseException):  # named as that of pyo3
        pass

    def panic(*_: object) -> None:
        raise PanicException

    path = workbook(tmp_path, ("H", TABLE))
    monkeypatch.setattr("sources.files.workbook._table", panic)
    with pytest.raises(UsageError, match="is a damaged workbook"):
        open_table(path)


def test_a_number_that_is_too_large_for_its_format_of_hours_is_an_input_error(tmp_path: Path) -> None:
    path = workbook(tmp_path, ("H", sheet(HEADER, (2, f'{text("A2", "a")}<c r="C2" s="4"><v>34600112233</v></c>'))))
    with pytest.raises(UsageError, match="formatted as a duration"):
        open_table(path)


def test_14_5_a_part_whose_size_is_false_is_an_error(tmp_path: Path) -> None:
    path = workbook(tmp_path, ("H", TABLE))
    content = bytearray(path.read_bytes())
    at = content.rindex(b"xl/worksheets/s1.xml") - 46
    size = int.from_bytes(content[at + 24 : at + 28], "little")
    content[at + 24 : at + 28] = (size // 2).to_bytes(4, "little")
    path.write_bytes(content)
    with pytest.raises(UsageError, match="is a damaged workbook"):
        open_table(path)


@pytest.mark.parametrize("block", [1, 2, 4096])
def test_16_4_number_formats_belong_to_their_rows_in_every_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: int
) -> None:
    monkeypatch.setattr(workbooks, "_BLOCK_ROWS", block)
    styles = (
        '<numFmts><numFmt numFmtId="164" formatCode="00000"/><numFmt numFmtId="165" formatCode="&quot;A-&quot;00"/>'
        '</numFmts><cellXfs><xf numFmtId="0"/><xf numFmtId="164"/><xf numFmtId="165"/></cellXfs>'
    )
    rows = [(3, text("B3", "code") + text("C3", "name"))] + [
        (line, f'<c r="B{line}" s="{line % 3}"><v>{line}</v></c>' + text(f"C{line}", "x")) for line in (4, 5, 6, 8, 9)
    ]
    table = open_table(workbook(tmp_path, ("H", sheet(*rows)), styles=styles))
    assert cells(table) == [("00004", "x"), ("A-05", "x"), ("6", "x"), ("A-08", "x"), ("9", "x")]


def lines_of_texts(tmp_path: Path, text_of_cells: str) -> Path:
    """A sheet of texts, written as CSV."""
    rows = [
        (number, "".join(text(f"{'ABCDEF'[at]}{number}", cell) for at, cell in enumerate(line.split(";")) if cell))
        for number, line in enumerate(text_of_cells.splitlines(), 1)
    ]
    return workbook(tmp_path, ("H", sheet(*rows)))


@pytest.mark.parametrize(
    "second",
    [
        "\ncliente;ciudad;saldo\nC1;Roma;5\n",
        "\nCLIENTES\ncliente;ciudad\nAna;Roma\n",
        "name;code;price\nTornillo;A4;5\n",
        "\nname;code;price\nTornillo;A4;5\n",
    ],
)
def test_a_second_table_in_a_sheet_is_not_read_on(tmp_path: Path, second: str) -> None:
    opened = open_table(lines_of_texts(tmp_path, f"code;name;price\nA1;Perno;1\nA2;Llave;2\nA3;Clavo;3\n{second}"))
    for read in (opened.rows, opened.batches):
        with pytest.raises(UsageError, match=r"two tables: line [567]"):
            list(read())


def test_titles_units_and_notes_in_a_sheet_are_no_rows(tmp_path: Path) -> None:
    above = "LISTADO\nFecha:;02/01/2025\n\n"
    below = "\nPrecios sin IVA, salvo error\nFin\n"
    path = lines_of_texts(tmp_path, f"{above}code;name;price\n;;€\nA1;Perno;1\nA2;Llave;2\nTotal;;3\n{below}")
    opened = open_table(path)
    assert (opened.format.preamble, opened.format.header_lines, opened.format.footnotes) == ((1, 2), (4,), (10, 11))
    assert [(row.line, row.code) for row in opened.rows() if isinstance(row, RejectedRow)] == [
        (5, "rule"),
        (8, "totals"),
    ]
    assert cells(opened) == [("A1", "Perno", "1"), ("A2", "Llave", "2")]


def test_a_sheet_without_a_header_has_numbered_columns(tmp_path: Path) -> None:
    opened = open_table(lines_of_texts(tmp_path, "A0041;Perno;1,50\nA0042;Llave;2,50\nA0043;Clavo;3,50\n"))
    assert opened.columns == ("column_1", "column_2", "column_3")
    assert len(cells(opened)) == 3
