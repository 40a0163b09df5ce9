"""Files of text: texts, dialects, layouts, and what is refused. Each file is bytes in its test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from sources.errors import UsageError
from sources.files import ReadOptions, RejectedRow, Row, SourceTable, open_table
from sources.files import encoding as texts

BASIC = "Código;Nombre;PVP\r\n007;Peña;1,50\r\n1E5;NULL;2,75\r\n ;  x  ;3,10\r\n"
CELLS = [("007", "Peña", "1,50"), ("1E5", "NULL", "2,75"), (" ", "  x  ", "3,10")]


def table(tmp_path: Path, data: bytes | str, reported: ReadOptions | None = None, name: str = "in.csv") -> SourceTable:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return open_table(path, reported)


def cells(opened: SourceTable) -> list[tuple[str, ...]]:
    rows = list(opened.rows())
    assert all(isinstance(row, Row) for row in rows), rows
    by_batch = [tuple(row.values()) for part in opened.batches(2) for row in part.drop_columns("_line").to_pylist()]
    found = [row.cells for row in rows if isinstance(row, Row)]
    assert by_batch == found
    return found


def refusals(opened: SourceTable) -> list[tuple[int, int, str]]:
    taken: list[RejectedRow] = []
    rows = [row for row in opened.rows() if isinstance(row, Row)]
    lines = [line for part in opened.batches(3, taken.append) for line in part["_line"].to_pylist()]
    refused = [row for row in opened.rows() if isinstance(row, RejectedRow)]
    assert taken == refused
    assert lines == [row.line for row in rows]
    return [(row.line, row.last_line, row.code) for row in refused]


@pytest.mark.parametrize(
    ("text", "options", "words"),
    [
        ("a;b\n1;2\n", ReadOptions(header_row=9), "no header begins on line 9"),
        ("a;b\n1;2\n", ReadOptions(header_row=1, header_rows=3), "--header-rows is 3, but fewer rows follow"),
        (";;a;;\n;;1;;\n;;2;;\n", ReadOptions(delimiter=";"), "no line looks like column names"),
        (";".join(f"c{n}" for n in range(20_000)) + "\n1\n", ReadOptions(delimiter=";", header_row=1), "the limit is"),
        ("_line;b\n1;2\n", ReadOptions(), "a column is named _line, which is reserved"),
    ],
)
def test_what_cannot_be_a_header_is_an_input_error(tmp_path: Path, text: str, options: ReadOptions, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        list(table(tmp_path, text, options).batches())


# --- texts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "found", "mark"),
    [
        ("utf-8", "utf-8", False),
        ("utf-8-sig", "utf-8", True),
        ("cp1252", "cp1252", False),
        ("utf-16", "utf-16-le", True),
        ("utf-32", "utf-32-le", True),
    ],
)
def test_the_encoding_is_found(tmp_path: Path, written: str, found: str, mark: bool) -> None:
    opened = table(tmp_path, BASIC.encode(written))
    assert (opened.format.encoding, opened.format.has_bom) == (found, mark)
    assert opened.columns == ("Código", "Nombre", "PVP")
    assert cells(opened) == CELLS


@pytest.mark.parametrize("reported", ["utf-8", "UTF8", "utf-8-sig", "utf_16", "utf-16-le", "cp1252", "cp850"])
def test_a_reported_encoding_is_taken(tmp_path: Path, reported: str) -> None:
    assert cells(table(tmp_path, BASIC.encode(reported), ReadOptions(encoding=reported))) == CELLS


def test_a_byte_that_cp1252_lacks_is_refused_with_its_offset(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"in\.csv: invalid cp1252 at byte 6"):
        table(tmp_path, b"a;b\n\xe9;\x81\n")


def test_a_late_byte_makes_the_whole_file_cp1252(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(texts, "CHUNK_BYTES", 7)
    opened = table(tmp_path, b"a;b\n" + b"1;2\n" * 50 + b"3;\xf1\n")
    assert opened.format.encoding == "cp1252"
    assert cells(opened)[-1] == ("3", "ñ")


def test_chunks_cut_anywhere_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in range(1, 12):
        monkeypatch.setattr(texts, "CHUNK_BYTES", size)
        opened = table(tmp_path, 'k;v\r\nñ;"a\r\nb"\r\n\r\n€;2\r3;4\n\x1a\0\0')
        assert cells(opened) == [("ñ", "a\r\nb"), ("€", "2"), ("3", "4")]
        assert opened.format.lines == 6
        assert [row.line for row in opened.rows()] == [2, 5, 6]


@pytest.mark.parametrize("line", ["\ufeff1;2", "\ufeffa;b"])
def test_12_a_byte_order_mark_that_begins_a_line_rejects_it(tmp_path: Path, line: str) -> None:
    first, *rest = table(tmp_path, f"\ufeffa;b\n{line}\n3;4\n5;\ufeff6\n").rows()
    assert isinstance(first, RejectedRow)
    assert (first.line, first.code) == (2, "byte_order_mark")
    assert [row.cells for row in rest] == [("3", "4"), ("5", "\ufeff6")]


def test_an_unknown_encoding_is_a_usage_error(tmp_path: Path) -> None:
    for reported in ("klingon", "base64", "rot13"):
        with pytest.raises(UsageError, match="unknown text encoding"):
            table(tmp_path, BASIC, ReadOptions(encoding=reported))


def test_ctrl_z_and_nuls_at_the_end_are_no_cells(tmp_path: Path) -> None:
    assert cells(table(tmp_path, BASIC + "\x1a\0\0\0\r\n")) == CELLS


def test_a_nul_in_a_cell_refuses_its_row(tmp_path: Path) -> None:
    assert refusals(table(tmp_path, "a;b\nx;y\nx;y\0z\nx;y\n")) == [(3, 3, "nul")]


# --- dialects --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_delimiter_and_quote_are_found(tmp_path: Path, delimiter: str, quote: str) -> None:
    lines = [("code", "name", "price")] + [(f"{n:03}", f"{quote}A{delimiter}B{quote}", f"{n}.50") for n in range(5)]
    opened = table(tmp_path, "\n".join(map(delimiter.join, lines)))
    assert (opened.format.delimiter, opened.format.quote) == (delimiter, quote)
    assert cells(opened) == [(f"{n:03}", f"A{delimiter}B", f"{n}.50") for n in range(5)]


def test_decimal_commas_do_not_make_the_delimiter(tmp_path: Path) -> None:
    opened = table(tmp_path, "base;peso\n" + "".join(f"{n},5;{n},25\n" for n in range(30)))
    assert opened.format.delimiter == ";"


def test_backslashes_before_quotes_are_found(tmp_path: Path) -> None:
    opened = table(tmp_path, 'a,b\n"x \\"y\\", z",""\n"q",1\n')
    assert opened.format.escape == "\\"
    assert cells(opened) == [('x "y", z', ""), ("q", "1")]
    plain = table(tmp_path, 'a,b\n"x ""y""",C:\\dir\n')
    assert plain.format.escape == ""
    assert cells(plain) == [('x "y"', "C:\\dir")]


def test_quotes_that_do_not_enclose_a_whole_cell_are_taken_literally_only_if_told(tmp_path: Path) -> None:
    text = 'part\tsize\n1\t"a" b\n2\t"c" d\n'
    opened = table(tmp_path, text)
    assert opened.format.quote == ""
    assert [row.code for row in opened.rows() if isinstance(row, RejectedRow)] == ["quoting"] * 2
    assert cells(table(tmp_path, text, ReadOptions(quote=""))) == [("1", '"a" b'), ("2", '"c" d')]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_are_found(tmp_path: Path, end: str) -> None:
    opened = table(tmp_path, BASIC.replace("\r\n", end))
    assert opened.format.line_ends == ({"\n": "LF", "\r\n": "CRLF", "\r": "CR"}[end],)
    assert cells(opened) == CELLS


def test_mixed_line_ends_and_signs_that_only_unicode_calls_line_ends(tmp_path: Path) -> None:
    opened = table(tmp_path, "a;b\r\n1;x\x0by\n2;\x85\u2028\r3;z")
    assert opened.format.line_ends == ("CRLF", "LF", "CR")
    assert cells(opened) == [("1", "x\x0by"), ("2", "\x85\u2028"), ("3", "z")]


def test_a_sep_line_names_the_delimiter(tmp_path: Path) -> None:
    opened = table(tmp_path, "sep=^\r\na^b\r\n1;1^2\r\n")
    assert (opened.format.delimiter, opened.format.preamble) == ("^", (1,))
    assert cells(opened) == [("1;1", "2")]


def test_what_is_reported_is_not_looked_for(tmp_path: Path) -> None:
    reported = ReadOptions(delimiter=",", quote="", header_row=2)
    opened = table(tmp_path, 'x\n"a;b",c\n1;2,3\n', reported)
    assert opened.columns == ('"a;b"', "c")
    assert opened.format.preamble == (1,)
    for wrong in (
        ReadOptions(delimiter=";;"),
        ReadOptions(delimiter=" "),
        ReadOptions(quote="ab"),
        ReadOptions(escape="xx"),
        ReadOptions(quote=";", delimiter=";"),
    ):
        with pytest.raises(UsageError):
            table(tmp_path, BASIC, wrong)


# --- layouts ---------------------------------------------------------------------------------------------------------


def test_preamble_and_footnotes_are_reported_and_left_out(tmp_path: Path) -> None:
    opened = table(tmp_path, "Listado de precios\nFecha;2024-05-01\n\n" + BASIC + "\r\nTotal registros: 3\r\n")
    assert opened.format.preamble == (1, 2)
    assert opened.format.header_lines == (4,)
    assert opened.format.footnotes == (9,)
    assert cells(opened) == CELLS


def test_a_padded_preamble_is_no_header(tmp_path: Path) -> None:
    opened = table(tmp_path, "Listado;;\r\n;;\r\n" + BASIC)
    assert (opened.format.preamble, opened.columns) == ((1,), ("Código", "Nombre", "PVP"))
    opened = table(tmp_path, "Listado;\ncode;name\nA1;Ana\nA2;Eva\n")
    assert (opened.format.preamble, opened.columns) == ((1,), ("code", "name"))
    names = ("código", "nombre", "apellido", "alias", "correo", "calle", "ciudad", "barrio", "país", "nota")
    groups = f"Persona;;;;;Domicilio;;;;\n{';'.join(names)}\n" + ";".join("abcdefghij") + "\n"
    opened = table(tmp_path, groups)
    assert (opened.format.preamble, opened.columns) == ((1,), names)


def test_a_row_cut_off_at_the_end_is_refused_and_no_footnote(tmp_path: Path) -> None:
    assert refusals(table(tmp_path, BASIC + "008;Gil")) == [(5, 5, "too_short")]
    assert refusals(table(tmp_path, BASIC + "008")) == [(4, 4, "torn"), (5, 5, "too_short")]


@pytest.mark.parametrize(
    "last",
    [
        "\n3;Eva;e@b.com",
        "4,Eva,e@b.com,Roma",
        "\n4,Eva,e@b.com,Roma",
        "3",
        "\n3",
        "28001 Madrid",
        "x|y",
        "\nx1;y",
        "\n0041",
    ],
)
def test_a_broken_row_at_the_end_is_rejected_and_no_footnote(tmp_path: Path, last: str) -> None:
    opened = table(tmp_path, "code;name;email;city\n1;Ana;a@b.com;Roma\n2;Leo;l@b.com;Vic\n" + last + "\n")
    assert opened.format.footnotes == ()
    line = 4 + last.startswith("\n")
    assert (line, line, "too_short") in refusals(opened)


@pytest.mark.parametrize(
    "last",
    [
        "\nPrecios sin IVA, salvo error",
        "Total: 1.234,50",
        "Fin",
        "\nListado;;;",
        "\nNota\nVálido hasta mayo",
        "\n;;;\nNota",
    ],
)
def test_a_note_after_a_blank_line_or_with_a_closing_word_is_no_row(tmp_path: Path, last: str) -> None:
    opened = table(tmp_path, "code;name;email;city\n1;Ana;a@b.com;Roma\n2;Leo;l@b.com;Vic\n" + last + "\n")
    assert len(opened.format.footnotes) == max(1, last.count("\nV") + 1)
    assert len(cells(opened)) == 2


@pytest.mark.parametrize("end", ["", ";"])
def test_both_parts_of_a_row_that_a_line_break_tore_are_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, end: str
) -> None:
    lines = [f"{n};Ana;a@b.com;Calle {n}" for n in range(2, 60)]
    lines[8:9] = ["10;Ana;a@b.com;Calle 10", "28001 Madrid"]  # the rest of the last cell
    lines[18:19] = ["001", "9;Ana;a@b.com;Calle 19"]  # the first cell
    lines[28:29] = ["30;Ana;a@b.com;Calle 30", "", "28001 Madrid"]  # with a blank line in it
    lines[40:41] = ["42;Ana", "María;a@b.com;Calle 40"]  # a cell in the middle
    text = "".join(f"{line}{end}\n" if line else "\n" for line in ["code;name;email;street", *lines])
    torn = {10: "torn", 11: "too_short", 12: "torn", 19: "torn", 20: "too_short", 21: "torn", 30: "torn"}
    torn |= {32: "too_short", 33: "torn", 42: "too_short", 43: "too_short"}
    for size in (20, 50, 1000, texts.CHUNK_BYTES):
        monkeypatch.setattr(texts, "CHUNK_BYTES", size)
        found = refusals(table(tmp_path, text))
        assert {line: code for line, _, code in found} == torn


def test_lines_within_a_last_quoted_cell_are_no_footnotes(tmp_path: Path) -> None:
    assert cells(table(tmp_path, 'a;b\n1;2\n3;"x\n\nTotal"\n'))[-1] == ("3", "x\n\nTotal")


def test_a_header_over_two_rows_is_asked_about_and_joined(tmp_path: Path) -> None:
    data = "Artículo;;Precios;\nCódigo;Nombre;Compra;Venta\n" + "1;a;2;3\n" * 3
    with pytest.raises(UsageError, match="If both have: --header-row 1 --header-rows 2"):
        table(tmp_path, data)
    opened = table(tmp_path, data, ReadOptions(header_row=1, header_rows=2))
    assert opened.columns == ("Artículo Código", "Artículo Nombre", "Precios Compra", "Precios Venta")
    assert (opened.format.header_lines, len(cells(opened))) == ((1, 2), 3)
    reported = table(tmp_path, "co;na\nde;me\n1;2\n", ReadOptions(header_row=1, header_rows=2))
    assert reported.columns == ("co de", "na me")


def test_a_first_row_of_data_is_never_joined_to_the_header(tmp_path: Path) -> None:
    opened = table(tmp_path, "code;name;city\n;Ana;Roma\n2;Eva;Pisa\n3;Leo;Bari\n")
    assert opened.columns == ("code", "name", "city")
    assert cells(opened)[0] == ("", "Ana", "Roma")


def test_empty_and_repeated_names_are_numbered(tmp_path: Path) -> None:
    opened = table(tmp_path, "a;;a;a_2\n1;2;3;4\n")
    assert opened.columns == ("a", "column_2", "a_3", "a_2")
    assert opened.format.renamed == ("column_2", "a_3")


def test_no_header_numbers_the_columns(tmp_path: Path) -> None:
    opened = table(tmp_path, "1;x\n2;y\n", ReadOptions(header_row=0))
    assert (opened.columns, cells(opened)) == (("column_1", "column_2"), [("1", "x"), ("2", "y")])


def test_a_delimiter_at_the_end_of_each_line_is_no_column(tmp_path: Path) -> None:
    for header, line in (("a;b;", None), ("a;b", 1)):
        opened = table(tmp_path, f"{header}\n1;2;\n3;4;\n", ReadOptions(header_row=line))
        assert (opened.columns, cells(opened)) == (("a", "b"), [("1", "2"), ("3", "4")])


def test_blank_lines_are_passed_over_and_lines_counted(tmp_path: Path) -> None:
    opened = table(tmp_path, 'a;b\n\n1;2\n   \n"x\ny";4\n5;6\n')
    assert [row.line for row in opened.rows()] == [3, 5, 7]
    assert refusals(opened) == []


def test_rows_of_another_width_are_refused(tmp_path: Path) -> None:
    opened = table(tmp_path, "a;b;c\n1;2;3\n1;2;3;4\n1;2\n1;2;3;;\n1;2;3\n")
    assert refusals(opened) == [(3, 3, "too_long"), (4, 4, "too_short"), (5, 5, "too_long")]
    with pytest.raises(UsageError, match="line 3: 4 cells, but the header has 3"):
        list(opened.batches())
    filled = table(tmp_path, "a;b;c\n1;2;3\n1;2\n1;2;3\n", ReadOptions(short_rows="fill"))
    assert cells(filled)[1] == ("1", "2", "")


def test_a_header_wider_than_the_rows_is_asked_about(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="line 1 looks like the header, but has 4 cells where the rows have 3"):
        table(tmp_path, "code;name;city;note\n1;x;y\n2;x;y\n3;x;y\n")


@pytest.mark.parametrize("units", [";;;€;kg", ";;;(EUR);[kg]", ";;;EUR;Stück"])
def test_a_line_of_units_is_no_row(tmp_path: Path, units: str) -> None:
    text = f"code;name;kind;price;stock\n{units}\nA1;x;y;1;2\n;kg;x;3;4\n;;;€;5\n"
    assert refusals(table(tmp_path, text)) == [(2, 2, "rule")]


def test_a_header_alone_is_a_table_without_rows(tmp_path: Path) -> None:
    opened = table(tmp_path, "a;b;c\r\n")
    assert (opened.columns, cells(opened)) == (("a", "b", "c"), [])


# --- what is broken or hostile ---------------------------------------------------------------------------------------


def test_a_quote_out_of_place_refuses_its_record_and_the_rest_goes_on(tmp_path: Path) -> None:
    data = 'a;b\n"1";2\n"x"y;3\n4;"5"\n6;"p\nq"r\n7;8\n'
    assert refusals(table(tmp_path, data)) == [(3, 3, "quoting"), (5, 6, "quoting")]


def test_a_quote_never_closed_is_an_error_with_its_line(tmp_path: Path) -> None:
    opened = table(tmp_path, 'a;b\n"1";"2"\n"3;4\n' + "5;6\n" * 9, ReadOptions(quote='"', delimiter=";"))
    for walk in (opened.rows, opened.batches):
        with pytest.raises(UsageError, match="a quote opened on line 3 is never closed"):
            list(walk())


def test_a_line_or_a_cell_beyond_all_measure_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"line 2 of in\.csv is longer than 8 million"):
        table(tmp_path, b"a;b\n" + b"x" * (9 << 20))
    opened = table(tmp_path, b'a;b\n1;"2"\n3;"' + b"x\n" * (5 << 20), ReadOptions(quote='"', delimiter=";"))
    with pytest.raises(UsageError, match="a quote opened on line 3 is not closed within 8 million"):
        list(opened.rows())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\0\0\x1a", "is empty"),
        (bytes(1 << 16) + b"a;b\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\n\n  \n", "no table"),
        (b"PK\x03\x04rest", "a damaged workbook or zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "old Excel workbook"),
        (b"%PDF-1.7", "a document .PDF or RTF."),
        (b"\x1f\x8b\x08\0", "compressed"),
        (b"  <html><table>", "HTML or XML"),
        (bytes(range(256)) * 4, "a binary file"),
    ],
)
def test_what_is_no_table_is_an_error(tmp_path: Path, data: bytes, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        table(tmp_path, data)


def test_a_folder_and_a_missing_file_are_errors(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="is a folder"):
        open_table(tmp_path)
    with pytest.raises(UsageError, match="cannot be read: No such file"):
        open_table(tmp_path / "none.csv")
    with pytest.raises(UsageError, match="cannot be read: File name too long"):
        open_table(tmp_path / ("a" * 300))
    os.mkfifo(tmp_path / "pipe")
    for pipe in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(UsageError, match="is a pipe or a device"):
            open_table(pipe)
    locked = tmp_path / "locked.csv"
    locked.write_bytes(b"a;b\n")
    locked.chmod(0)
    if not os.access(locked, os.R_OK):
        with pytest.raises(UsageError, match="cannot be read: Permission denied"):
            open_table(locked)


def test_no_error_and_no_reason_holds_a_value(tmp_path: Path) -> None:
    opened = table(
        tmp_path, 'a;b\n1;2\nSECRET;x;SECRET\n"SECRET"SECRET;1\nSECRET\nSECRET;\0SECRET\n3;4\n', ReadOptions(quote='"')
    )
    reported = [row for row in opened.rows() if isinstance(row, RejectedRow)]
    assert len(reported) == 4
    assert "SECRET" not in repr(reported)
