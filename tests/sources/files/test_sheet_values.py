"""The columns of a plain sheet are those that calamine gives (issue 16, item 4)."""

from __future__ import annotations

import tempfile
import zipfile
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from python_calamine import CalamineError, CalamineWorkbook

from sources.errors import UsageError
from sources.files import ReadOptions, open_table, sheet_xml
from sources.files.sheet_cells import SheetColumn
from sources.files.sheet_xml import WorkbookXml
from sources.files.workbook import _columns
from tests.sources.files.test_workbook import MAIN, workbook

CODES = ("dd/mm/yyyy", "00000", '0.00 "€"', "[h]:mm", 'yyyy"-"mm', '0 "dias"', "[$-409]d/m/yy", "h:mm AM/PM")
STYLES = (
    "<numFmts>"
    + "".join(f"<numFmt numFmtId='{170 + n}' formatCode='{code}'/>" for n, code in enumerate(CODES))
    + "</numFmts><cellXfs>"
    + "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22, 46, 9, *range(170, 170 + len(CODES))))
    + "</cellXfs>"
)
STRINGS = ("plain", "a &amp; b &lt;c&gt; &quot;&apos;", "ñ漢", "", "00038", "a > b", "two\nlines", "\xa0x\u2003")
SPACED = (" kept ", "\n", " ")
UNUSUAL = (" a", "b ", "&#10;", "&nbsp;", "_x000D_", "c\r\nd", "<![CDATA[e]]>", "<!--f-->g")
NUMBERS = (
    *("0", "1", "007", "12.50", "0.1", "0.10000000000000001", "1E5", "1e-7", "123456789012345678", "-3.75"),
    *("45000", "61", "60", "2958465", ".5", "5.", "0.00001", "0.0001", "999999999999999", "-0"),
)
UNUSUAL_NUMBERS = (
    "45000.123456789",
    "212261.94719907985",
    "0.25",
    "-1",
    "2958466",
    "+5",
    "1e400",
    "nan",
    " 7",
    "1_0",
    "",
    "45678.999999999",
)


def tag(kind: str, text: str) -> str:
    return f"<{kind}>{text}</{kind}>"


def spaced(text: str) -> str:
    return f'<t xml:space="preserve">{text}</t>'


PLAIN = (
    st.sampled_from(NUMBERS).map(lambda text: ("", f"<v>{text}</v>")),
    st.floats(-1e6, 1e6).map(lambda number: (' t="n"', f"<v>{number!r}</v>")),
    st.integers(61 * 86_400, 2_958_466 * 86_400 - 1).map(lambda second: (' s="2"', f"<v>{second / 86_400!r}</v>")),
    st.decimals(-(10**6), 10**6, places=3).map(lambda number: ("", f"<v>{number}</v>")),
    st.sampled_from(STRINGS).map(lambda text: (' t="inlineStr"', f"<is>{tag('t', text)}</is>")),
    st.sampled_from(SPACED).map(lambda text: (' t="inlineStr"', f"<is>{spaced(text)}</is>")),
    st.sampled_from(STRINGS).map(lambda text: (' t="str"', f"<f>A1</f><v>{text}</v>")),
    st.integers(0, len(STRINGS) + len(SPACED) - 1).map(lambda number: (' t="s"', f"<v>{number}</v>")),
    st.sampled_from("01").map(lambda text: (' t="b"', f"<v>{text}</v>")),
    st.just((' t="e"', "<v>#N/A</v>")),
    st.just(("", "")),
)
UNUSUAL_CELLS = (
    st.sampled_from(UNUSUAL_NUMBERS).map(lambda text: ("", f"<v>{text}</v>")),
    st.floats(61, 2_958_465).map(lambda number: ("", f"<v>{number!r}</v>")),
    st.sampled_from(UNUSUAL).map(lambda text: (' t="inlineStr"', f"<is>{tag('t', text)}</is>")),
    st.just((' t="str"', "<v> x </v>")),
    st.just((' t="s"', "<v>99</v>")),
    st.just((' t="b"', "<v>2</v>")),
    st.just((' t="inlineStr"', "<is><r><t>two</t></r><r><t>runs</t></r></is>")),
    st.just((' t="x"', "<v>1</v>")),
)
ORDINARY = [
    [("", "<v>1</v>"), (' t="s"', "<v>1</v>"), (' s="1"', "<v>45000</v>"), (' t="b"', "<v>1</v>")],
    [(' s="6"', "<v>38</v>"), ("", ""), (' s="2"', "<v>45000.25</v>"), (' t="inlineStr"', "<is><t>a</t></is>")],
    [(' t="str"', "<f>A1</f><v>x</v>"), (' t="e"', "<v>#N/A</v>"), ("", ""), (' s="7"', "<v>0.1</v>")],
]


def both(folder: Path, rows: Sequence[Sequence[tuple[str, str]]], styles: str = STYLES) -> tuple[object, object]:
    """The first column and the columns of a sheet, and the same by calamine."""
    xml = ""
    for row, cells in enumerate(rows, 2):
        xml += f'<row r="{row}">'
        for column, (attributes, content) in enumerate(cells):
            if attributes or content:
                xml += f'<c r="{"BCDEFG"[column]}{row}"{attributes}' + (f">{content}</c>" if content else "/>")
        xml += "</row>"
    items = (*(tag("t", text) for text in STRINGS), *map(spaced, SPACED))
    path = workbook(folder, ("H", xml), styles=styles)
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/sharedStrings.xml", shared("".join(tag("si", item) for item in items)))
    return read(path)


def shared(items: str) -> str:
    return f'<sst xmlns="{MAIN}">{items}</sst>'


def read(path: Path) -> tuple[object, object]:
    """The columns of a workbook, and those by calamine: None if it refuses."""
    with path.open("rb") as file, zipfile.ZipFile(path) as archive:
        parts = WorkbookXml(archive, "in.xlsx")
        scan = parts.scan("H")
        try:
            reference = _columns(CalamineWorkbook.from_filelike(file).get_sheet_by_name("H"), scan)
        except (CalamineError, OverflowError):
            return shown(parts.columns(scan)), None
        return shown(parts.columns(scan)), shown(reference)


def shown(columns: tuple[int, list[SheetColumn]] | None) -> object:
    return None if columns is None else (columns[0], [(c.texts.to_pylist(), c.kinds.tolist()) for c in columns[1]])


def sheets(*cells: st.SearchStrategy[tuple[str, str]]) -> st.SearchStrategy[list[list[tuple[tuple[str, str], int]]]]:
    """Rows of cells, each with a style."""
    return st.lists(st.lists(st.tuples(st.one_of(cells), st.integers(0, 12)), max_size=5), min_size=1, max_size=4)


@settings(max_examples=60, deadline=None)
@given(st.one_of(sheets(*PLAIN), sheets(*PLAIN, *UNUSUAL_CELLS)), st.sampled_from([100, 1 << 18]))
def test_16_4_plain_sheets_are_read_as_by_calamine(rows: list[list[tuple[tuple[str, str], int]]], chunk: int) -> None:
    styled = [
        [(f' s="{style}"{kind}' if style and "s=" not in kind else kind, content) for (kind, content), style in row]
        for row in rows
    ]
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as folder:
        patch.setattr(sheet_xml, "_CHUNK", chunk)
        ours, reference = both(Path(folder), styled)
    assert ours in (None, reference)


@pytest.mark.parametrize("chunk", [120, 1 << 18])
def test_16_4_ordinary_sheets_are_plain(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, chunk: int) -> None:
    monkeypatch.setattr(sheet_xml, "_CHUNK", chunk)
    ours, reference = both(tmp_path, ORDINARY)
    assert ours == reference
    assert ours is not None


def test_16_4_days_counted_from_1904_are_left_to_calamine(tmp_path: Path) -> None:
    path = workbook(tmp_path, ("H", '<row r="1"><c r="A1" s="1"><v>45000</v></c></row>'), styles=STYLES)
    other = tmp_path / "1904.xlsx"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(other, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name).replace(b"<sheets>", b'<workbookPr date1904="1"/><sheets>')
            copy.writestr(name, content)
    with zipfile.ZipFile(path) as archive:
        xml = WorkbookXml(archive, "in.xlsx")
        assert xml.columns(xml.scan("H")) is not None
    with zipfile.ZipFile(other) as archive:
        xml = WorkbookXml(archive, "in.xlsx")
        assert xml.columns(xml.scan("H")) is None
    assert open_table(other, ReadOptions(header_row=0)).format.lines == 1
    assert [row.cells for row in open_table(other, ReadOptions(header_row=0)).rows()] == [("2027-03-16",)]


DATE = '<numFmts><numFmt numFmtId="170" formatCode="dd/mm/yyyy"/></numFmts>'
DATES = '<cellXfs><xf numFmtId="0"/><xf numFmtId="170"/></cellXfs>'


@pytest.mark.parametrize(
    ("styles", "attributes"),
    [
        (f'{DATE}{DATES}<dxfs><dxf><numFmt numFmtId="170" formatCode="0.0"/></dxf></dxfs>', 's="1"'),
        (f'{DATES.replace("170", "4")}<dxfs><dxf><numFmt numFmtId="4" formatCode="d/m/yy"/></dxf></dxfs>', 's="1"'),
        (f"{DATE}{DATES}".replace("dd/mm", "[>100]dd/mm"), 's="1"'),
        *(
            (f"{DATE}{DATES}".replace("dd/mm/yyyy", code), 's="1"')
            for code in (";d", r"\d", "0ap", "General/", "&#100;")
        ),
        (DATES + DATE, 's="1"'),
        (f"{DATE}<cellXfs/>{DATES}", 's="1"'),
        (f"<numFmts/>{DATE}{DATES}", 's="1"'),
        (f"{DATE.replace('170', '0170')}{DATES}", 's="1"'),
        (f"<!--{DATES.replace('170', '0')}-->{DATE}{DATES}", 's="1"'),
        (f"{DATE}<cellXfs><xf/><xf numFmtId='170'/><xf numFmtId='0'/></cellXfs>", 's="1"'),
        (f"{DATE}{DATES}", 's="01"'),
        ('<cellXfs><xf numFmtId="14"/></cellXfs>', ""),
        ('<cellXfs><xf numFmtId="0"/><xf numFmtId="014"/></cellXfs>', 's="1"'),
    ],
)
def test_16_4_dates_are_those_of_calamine(tmp_path: Path, styles: str, attributes: str) -> None:
    ours, reference = both(tmp_path, [[(f" {attributes}", "<v>45000</v>")]], styles)
    assert ours in (None, reference)


def test_16_4_half_a_millisecond_is_rounded_as_by_calamine(tmp_path: Path) -> None:
    ours, reference = both(tmp_path, [[(' s="2"', "<v>212261.94719907985</v>")]])
    assert ours in (None, reference)


def test_16_4_formats_of_conditions_are_not_those_of_cells(tmp_path: Path) -> None:
    styles = f'{DATE}{DATES}<dxfs><dxf><numFmt numFmtId="170" formatCode="0.0"/></dxf></dxfs>'
    assert both(tmp_path, [[(' s="1"', "<v>45000</v>")]], styles)[0] == (1, [(["", "2023-03-15"], [0, 3])])


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("xl/SharedStrings.xml", shared("<si><t>a</t></si>")),
        *(
            ("xl/sharedStrings.xml", shared(f"{item}<si><t>b</t></si>"))
            for item in ("<si><t/><rPh><t>x</t></rPh></si>", "<?x <si><t>q</t></si>?>", "<x:si><x:t>z</x:t></x:si>")
        ),
        ("xl/sharedStrings.xml", shared("<si><t>a</t></si>").removesuffix("</sst>")),
    ],
)
def test_16_4_shared_strings_are_those_of_calamine(tmp_path: Path, name: str, content: str) -> None:
    path = workbook(tmp_path, ("H", '<row r="1"><c r="A1" t="s"><v>0</v></c></row>'))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr(name, content)
    ours, reference = read(path)
    assert ours in (None, reference)


@pytest.mark.parametrize(
    "cells",
    [
        '<c r="A1">x="1"/><v>2</v></c>',
        '<c r="b1"><v>1</v></c>',
        '<?x <c r="A1"><v>1</v></c>?>',
        '<c r="A1" t="inlineStr"><is><t/><rPh><t>x</t></rPh></is></c>',
        '<c r="A1"><v>1</v></c></row><row r="2"><c r="A2"><v>2</v></c>',
        '<c r="B9"><v>1</v></c></row><row r="2"><c r="A2"><v>2</v></c>',
        '<c r="A1"><v>1</v></c></row></sheetData><x><row><c r="A2"><v>2</v></c>',
        '<c r="A1" t="s"><v>0x1</v></c>',
        '<c r="A1"><v>1</v></c></row><row><c r="A4"><v>2</v></c><c><v>3</v></c>',
        '<c r="A1" s="\xff"><v>1</v></c>',
    ],
)
def test_16_4_unusual_xml_is_read_as_by_calamine(tmp_path: Path, cells: str) -> None:
    path = workbook(tmp_path, ("H", f'<row r="1">{cells}</row>'))
    with zipfile.ZipFile(path, "a") as archive:
        archive.writestr("xl/sharedStrings.xml", shared("<si><t>a</t></si><si><t>b</t></si>"))
    ours, reference = read(path)
    assert ours in (None, reference)


def test_a_sheet_that_is_cut_off_is_damaged(tmp_path: Path) -> None:
    path = workbook(tmp_path, ("H", '<row r="1"><c r="A1"><v>1</v></c></row>'))
    cut = tmp_path / "cut.xlsx"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(cut, "w") as copy:
        for name in archive.namelist():
            copy.writestr(name, archive.read(name).partition(b"</row>")[0])
    with pytest.raises(UsageError, match="damaged workbook"):
        open_table(cut, ReadOptions(header_row=0))


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ('r:id="r1"', 'r:id="r9"', "damaged: sheet 'A' is missing"),
        ('state="hidden"', 'state="other"', "2 sheets hold a table: A, B"),
        ('name="A"', 'name="&#xC1;&#233;>"', "no sheet 'C'\n  Its sheets: Áé>, B"),
        ('<sheet name="A"', '<!--<sheet name="Z" r:id="r1"/>--><sheet name="A"', "no sheet 'C'\n  Its sheets: A, B"),
    ],
)
def test_no_sheet_is_lost(tmp_path: Path, before: str, after: str, words: str) -> None:
    rows = "".join(f'<row r="{n}"><c r="A{n}"><v>1</v></c><c r="B{n}"><v>2</v></c></row>' for n in (1, 2))
    path = workbook(tmp_path, ("A", rows), ("B", rows), hidden=("A",))
    other = tmp_path / "other.xlsx"
    with zipfile.ZipFile(path) as archive, zipfile.ZipFile(other, "w") as copy:
        for name in archive.namelist():
            content = archive.read(name).decode()
            copy.writestr(name, content.replace(before, after) if name == "xl/workbook.xml" else content)
    with pytest.raises(UsageError) as error:
        open_table(other, ReadOptions(sheet="C" if "no sheet" in words else None))
    assert words in str(error.value)
