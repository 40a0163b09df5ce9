"""Files of text: dialects, quotes, line ends, what is no table; both readers agree; cells that a spreadsheet runs."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import (
    ReadOptions,
    RejectedRow,
    Row,
    encoding,
    open_table,
    records,
    text_table,
)
from orderbridge.sources.files.arrow_blocks import ArrowBlocks
from orderbridge.sources.files.dialect import Dialect
from orderbridge.sources.files.formulas import (
    CsvFile,
    UnescapedTable,
    csv_lines,
    escape,
    neutralize,
    neutralize_column,
    people_rows,
    unescape,
)
from orderbridge.sources.files.row_shape import RowShape
from tests.sources.files.reading import cells, check, rows_of, table

BASIC = "Código;Nombre;PVP\r\n007;Peña;1,50\r\n1E5;NULL;2,75\r\n ;  x  ;3,10\r\n"
CELLS = [("007", "Peña", "1,50"), ("1E5", "NULL", "2,75"), (" ", "  x  ", "3,10")]
LITERAL, GIVEN = ReadOptions(quote="none"), ReadOptions(quote='"')


@pytest.mark.parametrize("size", [1, 2, 7, encoding.CHUNK_BYTES])
def test_line_ends_are_found_also_at_the_end_of_a_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(encoding, "CHUNK_BYTES", size)
    for end, name in (("\n", "LF"), ("\r\n", "CRLF"), ("\r", "CR")):
        opened = table(tmp_path, BASIC.replace("\r\n", end))
        assert (opened.format.line_ends, cells(opened)) == ((name,), CELLS)
        assert [row.line for row in opened.rows()] == [2, 3, 4]
    mixed = table(tmp_path, "a;b\r\n1;x\x0by\n2;\x85\u2028\r3;z\x1a\n4;w")
    assert mixed.format.line_ends == ("CRLF", "LF", "CR")
    expected = [("1", "x\x0by"), ("2", "\x85\u2028"), ("3", "z\x1a"), ("4", "w")]
    assert cells(mixed) == expected, (
        "only Unicode calls these line ends, and a mark of the end amid a file is none"
    )


@pytest.mark.parametrize(
    ("text", "given", "delimiter", "expected"),
    [
        (BASIC + "\x1a\0\0\0\r\n", None, ";", CELLS),
        *((f"code{mark}name\n" + f"1{mark}{quote}A{mark}B{quote}\n" * 5, None, mark, [("1", f"A{mark}B")] * 5)
          for mark in ",;\t|" for quote in "\"'"),
        ('a,b\n"x \\"y\\", z",""\n"q",1\n', None, ",", [('x "y", z', ""), ("q", "1")]),
        ('a,b\n"x ""y""",C:\\dir\n', None, ",", [('x "y"', "C:\\dir")]),
        ("sep=^\r\na^b\r\n1;1^2\r\n", None, "^", [("1;1", "2")]),
        *((f"sep={mark}\n{BASIC}", None, ";", CELLS) for mark in ",;|"),  # a wrong one too
        ('part\tsize\n1\t"a" b\n2\t"c" d\n', LITERAL, "\t", [("1", '"a" b'), ("2", '"c" d')]),
        ('code, name, sum\n"1", "Perno, i", 1.50\n2, x, 3\n', None, ",", [("1", "Perno, i", "1.50"), ("2", "x", "3")]),
        # white space beside the delimiters, or after closing quotes
        *((f"Code{mark}Nom{mark}Prix\nA1{mark}Perno{mark}12\nA2{mark}{mark}3\n", None, ",",
           [("A1", "Perno", "12"), ("A2", "", "3")]) for mark in (",\t", "\t,", "\t, ", " \t,\t")),
        *((f"Code{mark}Nom{mark}Prix\nA1{mark}Perno{mark}12,50\nA2{mark}{mark}3\n", None, "\t",
           [("A1", "Perno", "12,50"), ("A2", "", "3")]) for mark in (",\t", "\t,")),
        *((f'"Day"{mark}"Note, x"{mark}Unit\n"1"{mark}"a ""b"" , c"{mark}HKD\n"2"{mark}"x\ny , z"{mark}HKD\n',
           None, ",", [("1", 'a "b" , c', "HKD"), ("2", "x\ny , z", "HKD")]) for mark in ("\t,", " ,", "\t,\t")),
        ('code, size, sum\n1, "a ""x""", "3,50"\n2, x, "4,50"\n', None, ",",
         [("1", 'a "x"', "3,50"), ("2", "x", "4,50")]),
        ('"a";"b" \n"1";"2" \n"3";"4" \n', None, ";", [("1", "2"), ("3", "4")]),
        # MySQL's escapes, where the whole file proves them
        ('code,name,note\n1,"x \\"y\\"",\\N\n\\N,"a \\\\N",N\n', None, ",", [("1", 'x "y"', ""), ("", "a \\N", "N")]),
        ("code\tname\n1\t\\N\n2\tN\n3\ta\\\tb\n", None, "\t", [("1", ""), ("2", "N"), ("3", "a\tb")]),
        ("code;name\n1;\\N\n2;C:\\dir\n", None, ";", [("1", "\\N"), ("2", "C:\\dir")]),
        # ditto marks, which look like quoted cells of several lines
        ('code;name;city\nA1;N1;Madrid\nA2;N2;"\nA3;N3;"\nA4;N4;Lugo\nA5;N5;"\nA6;N6;Vigo', None, ";",
         [("A1", "N1", "Madrid"), ("A2", "N2", '"'), ("A3", "N3", '"'), ("A4", "N4", "Lugo"), ("A5", "N5", '"'),
          ("A6", "N6", "Vigo")]),
        ("a;b;c\n" + "1;A;x\n" * 9 + "2;'Classic';x\n", None, ";", [("1", "A", "x")] * 9 + [("2", "'Classic'", "x")]),
    ],
)  # fmt: skip
def test_the_dialect_is_found_or_taken_as_given(
    tmp_path: Path,
    text: str,
    given: ReadOptions | None,
    delimiter: str,
    expected: list[tuple[str, ...]],
) -> None:
    opened = table(tmp_path, text, given)
    assert (opened.format.delimiter, cells(opened)) == (delimiter, expected)
    assert opened.format.escape == ("\\" if re.search(r'\\"|\\N(?!(.|\n)*dir)', text) else "")
    assert opened.format.is_padded is (re.search(r'^code, |[\t ],|,\t|" \n', text) is not None)
    assert opened.format.preamble == ((1,) if text.startswith("sep") else ())


@pytest.mark.parametrize(
    "wrong",
    [{"delimiter": ";;"}, {"delimiter": " "}, {"quote": "ab"}, {"escape": "xx"}, {"quote": ";", "delimiter": ";"},
     {"quote": '"', "escape": '"'}],
)  # fmt: skip
def test_a_dialect_of_other_than_single_characters_is_an_error(
    tmp_path: Path, wrong: dict[str, str]
) -> None:
    with pytest.raises(UsageError, match="must be one character"):
        table(tmp_path, BASIC, ReadOptions(**wrong))  # type: ignore[arg-type]


def customers(count: int, delimiter: str = ",", end: str = "\n", **changed: str) -> str:
    """A table of customers, some of whose lines are changed: l21="…"."""
    lines = ["email,firstName,lastName,password"]
    lines += [f"u{n - 1}@b.c,Ana {n - 1},x,secret{n - 1}" for n in range(2, count + 2)]
    for line, text in changed.items():
        lines[int(line[1:]) - 1] = text
    return "".join(line.replace(",", delimiter) + end for line in lines)


NAME = "Ref,Nombre,PVP\nA1,Perno,1.50\n"
STRAY = {"l4": 'u@b.c,"open,x,s', "l6": 'u@b.c,b",x,s'}
INCHES = [
    '5"',
    '1/2" x 3/4"',
    'x "y" z',
    '"',
    "'t Hoff",
    '4" tube',
    '5" x 3"',
    '3/4"x1/2"',
    "12''",
    '"a ""b"" c"',
]


@pytest.mark.parametrize(
    ("text", "given", "rejected"),
    [
        ('a;b\n"1";2\n"x"y;3\n4;"5"\n6;"p\nq"r\n7;8\n', None, "3 quoting, 5-6 quoting"),
        *((f'{customers(9)}u@b.c,"open,x,s\n{between}u@b.c,Eva,x,s\nu@b.c,b",x,s\n{customers(9)}', None,
           f"11-{last} quoting, {last + 1} repeated_header")
          for between, last in (("", 13), ("\n", 14), ("u@b.c,b,c,d,e\n", 14))),
        (customers(9, end=",\n", **STRAY), None, "4-6 quoting"),
        (customers(9, **STRAY), GIVEN, ""),  # a quote that is given is believed
        (customers(9, l4='u@b.c,"unclosed,x,p'), LITERAL, ""),
        ('part\tsize\n1\t"a" b\n2\t"c" d\n', None, "2 quoting, 3 quoting"),
        *((f'{NAME}14"Tornillo M14, inox",14.50\nA3,Tuerca 5",2.50\n{more}', None, "3 quoting")
          for more in ("", '"x, y",Tuerca,"1,50"\n')),
        ("Ref,Talla,X\n" + "".join(f"A{n},{size},{size}\n" for n, size in enumerate(INCHES) if size != '"'), None, ""),
        ("part,size,kind\n" + "".join(f"{n},{size},x\n" for n, size in enumerate(INCHES[:6]))
         + '7,"open,x\n8,"a" b,x\n9,"a" or "b",x\n', None, "8 quoting, 9 quoting, 10 quoting"),
        ('Código;Nombre;PVP\nA1;x;1,50\n"A2";"y; z";"9,00"\n "A4"; "P"; "1,00"\nA5;C; "2,00"\nA6;5" x;1\n', None,
         "4 quoting, 5 quoting"),
        # a delimiter is missing before a quoted cell of two lines, and the one in the cell makes up for it
        *((customers(9, l4=f'u@b.c,Ana "one,x,s\n{tail}', l8='u@b.c,"Ana ""x""",x,s'), None, rejected)
          for tail, rejected in (('two ""x"""', "4 torn, 5 too_short"), ('two"', "4 torn, 5 too_short"),
                                 ("two\nthree x", "4 torn, 5 too_short, 6 too_short"))),
        (customers(9, l4='u@b.c,3"x4,x,s', l5='u@b.c,tube 3",x,s', l8='u@b.c,"Ana ""x""",x,s'), None, ""),
        *((f'code;text;name;price\n1;"a; b";c;1\n2;{row}\n3;5"" tube;4"x3";7\n4;"two\n5""x3"" lines";6";7\n', None,
           f"3{'-4' * (chr(10) in row)} quoting")
          for row in ('"two\nlines";Pieza"Rojo; inox";9', 'Pieza ""Rojo; inox"";9',
                      '"two\nlines";Pieza""Rojo; inox"";9', '"x";"two\nlines";9"a;b"')),
        # a delimiter is missing before a quoted cell that ends with a quote of its own, such as inches
        *((f"n,code,name,price\n1,A1,Chair,9\n2,A2,{good},9\n3,A3{bad},9\n4,A4,Sofa,9\n", None, "4 quoting")
          for good, bad in (('Sofa 5"', '"Table, Round 60"""'), ('"Sofa, 5"""', '"Table ""x"", Round 60"""'),
                            ('4""', '"Table, ""Round"" 60"""'), ("Sofa", '"""Round"" table, 60"'))),
        ("Code\t;Nom\t;Prix\nA1\t;Perno\t;12,50\nA2\t;;Clavo\t;3\nA3\t;Tuerca\t;4\n", None, "3 too_long"),
        # escapes whose meaning is not proven
        *((f'code,name,note\n1,"x \\"y\\"",{more}\n2,{cell},"a"\n3,N,b\n', None, "3 quoting")
          for more, cell in (("C:\\\\x", "a\\tb"), ("\\N", "a\\nb"), ("\\/", "\\Nx"), ("\\-", "\\N"))),
        # a quote that nothing opens
        *((f'Código;Alta;Talla\nA1;"01/02/2025";5\nA2;02/02/2025;7"\n{row}\n', None, rejected)
          for row, rejected in (('A3;03/02/2025";8', "4 quoting"), ('A3";03/02/2025;8', "4 quoting"),
                                ('A003";03/02/2025;8', "4 quoting"), ('A3;03/02/2025;XL"', "4 quoting"),
                                ('A3;03/02/2025;1/2"', ""), ('A3;03/02/2025;12.5"', ""))),
        ("a;b\nx;y\nx;y\0z\nx;y\n", None, "3 nul"),
        ('a;b\nx;"y"\nx1;"\nx2;"\nx;y\n', None, "3-4 quoting"),  # ditto marks
        *((f"\ufeffa;b\n\ufeff{line}\n3;4\n5;\ufeff6\n", None, "2 byte_order_mark") for line in ("1;2", "a;b")),
    ],
)  # fmt: skip
def test_a_quote_or_a_sign_out_of_place_rejects_its_row_and_no_other(
    tmp_path: Path, text: str, given: ReadOptions | None, rejected: str
) -> None:
    check(tmp_path, text, given, rejected=rejected)


def test_quotes_beyond_the_sample_are_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(encoding, "SAMPLE", 300)
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 100)
    check(
        tmp_path,
        customers(900, l800='u@b.c,"open,x,s', l804='u@b.c,b",x,s'),
        rejected="800-804 quoting",
    )
    literal = customers(30, l4='u@b.c,"a" b,x,p', l29='u@b.c,"Ana",x,s')
    assert table(tmp_path, literal).format.quote == ""
    check(tmp_path, literal, rejected="4 quoting, 29 quoting")


def test_an_open_quote_and_an_endless_line_are_errors_after_the_rows_before_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ReadOptions(quote='"', delimiter=";")
    check(
        tmp_path,
        f'a;b\n"1";"2"\n"3;4\n{"5;6" * 9}',
        options,
        error="a quote opened on line 3 is never closed",
    )
    for last, codes in (("5;6", []), ("5", ["torn", "too_short"])):
        opened = table(tmp_path, f'a;b\n"1";"2"\n3;4\n{last}\n"7;8\n', options)
        found: list[Row | RejectedRow] = []
        rejects: list[RejectedRow] = []
        with pytest.raises(UsageError, match="a quote opened on line 5 is never closed"):
            found.extend(opened.rows())
        with pytest.raises(UsageError, match="a quote opened on line 5 is never closed"):
            list(opened.batches(on_reject=rejects.append))
        assert ([row.line for row in found], [row.code for row in rejects]) == ([2, 3, 4], codes)
    for module in (encoding, records, text_table):
        monkeypatch.setattr(module, "MAX_LINE", encoding.MIB)
    with pytest.raises(UsageError, match=r"line 2 of in\.csv is longer than 1 million"):
        table(tmp_path, b"a;b\n" + b"x" * (encoding.MIB + 1))
    opened = table(tmp_path, b'a;b\n1;"2"\n3;"' + b"x\n" * encoding.MIB, options)
    with pytest.raises(UsageError, match="a quote opened on line 3 is not closed within 1 million"):
        list(opened.rows())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\0\0\x1a", "is empty"),
        (bytes(1 << 16) + b"a;b\n", "is empty"),
        (b"\n\n  \n", "no table"),
        (b"PK\x03\x04rest", "a damaged workbook or zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel workbook"),
        (
            b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"),
            "a workbook protected by a password … remove",
        ),
        (b"%PDF-1.7", "a document (PDF or RTF)"),
        (b"\x1f\x8b\x08\0", "compressed … Unpack"),
        (b"  <html><table>", "HTML or XML"),
        (b"code;name\nA1;Tub=C3=B3n\n", "is quoted-printable … Decode it"),
        (b"code;name\nA1;Tub=F3n =3D 1=\n2\n", "is quoted-printable … Decode it"),
        (b"code;name\nA1;Tub%C3%B3n\n", "is percent-encoded … Decode it"),
        (BASIC.encode("utf-16-le"), "a binary file … --encoding utf-16-le"),
    ],
)
def test_what_is_no_table_is_an_error(tmp_path: Path, data: bytes, words: str) -> None:
    check(tmp_path, data, error=words)


def test_folders_pipes_and_what_cannot_be_read_are_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "locked.csv").write_bytes(b"a;b\n")
    (tmp_path / "locked.csv").chmod(0)
    for name in ("~$clients.xlsx", ".~lock.clients.xlsx#"):
        (tmp_path / name).write_bytes(b",ana,pc,01.01.2025 10:00,file:///home/ana;\n")
    lock = r"is not a table: .* while the file is open there(.|\n)*: clients.xlsx$"
    paths = {
        tmp_path / "~$clients.xlsx": lock,
        tmp_path / ".~lock.clients.xlsx#": lock,
        tmp_path: "is a folder",
        tmp_path / "none.csv": r"cannot be read: No such file(.|\n)*Check the file name",
        tmp_path
        / "lock.csv": r"lock.csv cannot be read: No such file(.|\n)*Did you mean locked.csv\?",
        tmp_path / "pipe": "is a pipe or a device",
    }
    if not os.access(tmp_path / "locked.csv", os.R_OK):
        paths[tmp_path / "locked.csv"] = "cannot be read: Permission denied"
    for path, words in paths.items():
        with pytest.raises(UsageError, match=words):
            open_table(path)


ODD_BODIES = [
    *("Sum;;\nb;c;d\n", 'a;"b\nc;d;e\nf;g;h"\n', ";;\n;\n\na;b;c\n ; ;\n", "a\rb;c\r\nh0;h1;h2\n"),
    *('a;b;"f\ng";h"\n', '"a";\'b;c\'\n"x";"y";"z', ' "a" ;"b" ;c\n gesamt;;9\n'),
]


@pytest.mark.parametrize("body", ODD_BODIES)
@pytest.mark.parametrize(
    "options", [{}, {"quote": '"'}, {"quote": "'", "escape": "\\"}, {"short_rows": "fill"}]
)
def test_both_readers_agree(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, options: dict[str, str]
) -> None:
    read = ReadOptions(delimiter=";", header_row=1, **options)  # type: ignore[arg-type]
    opened = table(tmp_path, f"h0;h1;h2\n{body}", read)
    for size in (7, 40, encoding.CHUNK_BYTES):
        monkeypatch.setattr(encoding, "CHUNK_BYTES", size)
        with contextlib.suppress(UsageError):
            rows_of(opened)


@pytest.mark.parametrize(
    ("body", "surplus", "is_fast"),
    [
        *((body, 0, True) for body in (
            "a;b;c\nd;e;f\n", 'a;"b;x";c\n"d";"e ""y""";""\n', "a;b;c\r\nd;;f\r\n", "a;b;c\rd;e;f",
            "ñ;Total;x\nsum;a;b\n", "x;b;c\nx;y;c\n")),
        *((body, 0, False) for body in ('a;"b"x;c\n', "a;b\n", "a;\0;c\n", "Total;;\n", 'a;b; "c"\n')),
        (f"a;b;c{';' * 10}\n", 10, True),
        (f"a;b;c{';' * 16_000}\n", 16_000, False),
    ],
)  # fmt: skip
def test_ordinary_blocks_are_read_by_arrow(body: str, surplus: int, is_fast: bool) -> None:
    blocks = ArrowBlocks(Dialect(";"), RowShape(("x", "y", "z"), False, surplus), quote_given=False)
    lines = len(body.splitlines())
    found = blocks.read(body, 5)
    assert (found is not None) is is_fast
    assert found is None or found.rows["_line"].to_pylist() == [*range(5, 5 + lines)]


NASTY = [
    ("x;y", '"q"', "07E5"),
    ("two\nlines", "ñ\r\n", ""),
    ("'s", "tab\t|,^", "\\ \\'"),
    ("", " ", "' '"),
]


@pytest.mark.parametrize("name", ["utf-8", "utf-8-sig", "utf-16", "utf-16-be", "utf-32", "cp1252"])
@pytest.mark.parametrize("chunk", [1, 5, encoding.CHUNK_BYTES])
def test_any_text_comes_back_where_the_dialect_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, chunk: int
) -> None:
    monkeypatch.setattr(encoding, "CHUNK_BYTES", chunk)
    for delimiter, quote, mark, end in (
        (";", '"', "", "\n"),
        ("\t", "'", "\\", "\r\n"),
        ("^", "'", "", "\r"),
    ):
        out = io.StringIO(newline="")
        csv.writer(
            CsvFile(out, end), delimiter=delimiter, quotechar=quote, escapechar=mark or None, doublequote=not mark,
            quoting=csv.QUOTE_ALL if mark else csv.QUOTE_MINIMAL,
        ).writerows([("a", "b", "c"), *NASTY])  # fmt: skip
        options = ReadOptions(name, delimiter, quote, mark, header_row=1)
        assert cells(table(tmp_path, out.getvalue().encode(name), options)) == NASTY


ESCAPED = {text: f"'{text}" for text in
           ("=1+1", "+cmd|'/c calc'!A1", "-2+3", "@SUM(A1)", '=HYPERLINK("http://x")', "＝1", "+A1")} | {
    "x;=1+1;y": "x;'=1+1;y",
    "x\t-2+3": "x\t'-2+3",
    'b|"=1"': "b|'\"=1\"",
    "two\n=lines": "two\n'=lines",
    "\t=1": "'\t'=1",
    "\r=1": "'\r'=1",
} | {text: text for text in
     ("-5", "+34 600 112 233", "-1.234,50", "+1", "-", "", "a=b", "'quoted'", "5-3", "1e5", "Ana", " =1", "12,-",
      "a; -1", "3,50;-4", "two\r\nlines")}  # fmt: skip


@pytest.mark.parametrize("text", ESCAPED)
def test_a_formula_gets_an_apostrophe_and_numbers_and_texts_stay_readable(text: str) -> None:
    assert neutralize(text) == escape(text) == ESCAPED[text]
    assert unescape(ESCAPED[text]) == text


@given(st.text(st.sampled_from("'\"=+-@\t\r\n5,; .aＡ＝"), max_size=6))
def test_what_was_escaped_is_restored_and_never_runs(text: str) -> None:
    assert unescape(escape(text)) == text
    for cell in (escape(text), neutralize(text)):
        for part in re.split("[,;|\t\r\n]", cell):
            assert not re.match('"*[=+@＝-]', part) or re.fullmatch("[+-][0-9 .]*", part)
        assert neutralize(cell) == cell
    column = pa.array([None, text])
    assert neutralize_column(column).to_pylist() == [None, neutralize(text)]


@pytest.mark.parametrize("width", [1, 2])
def test_rows_written_by_columns_are_those_of_a_csv_writer(width: int) -> None:
    rows = [
        row[:width]
        for row in (("a;b", 'x"y'), ("two\r\nlines", ""), ("", "a,b"), (" é", "'=1"), ("", "\n"))
    ]
    file = io.StringIO(newline="")
    csv.writer(file).writerows(rows)
    assert (
        csv_lines([pa.chunked_array([column], pa.string()) for column in zip(*rows, strict=True)])
        == file.getvalue()
    )
    assert csv_lines([pa.chunked_array([["a\rb"]], pa.string())]) == '"a\rb"\r\n'


@pytest.mark.parametrize("text", ["line;words\n1;a\n2\n", "line;words\n1;a;b\n", "line\n1\n"])
def test_a_file_for_people_whose_cells_were_cut_off_is_refused(tmp_path: Path, text: str) -> None:
    (tmp_path / "failed.csv").write_text(text, "utf-8")
    with pytest.raises(UsageError, match=r"failed\.csv was changed after it was written"):
        list(people_rows(tmp_path / "failed.csv", ["line", "words"]))


def test_rejected_rows_of_a_file_of_rejects_are_restored_too(tmp_path: Path) -> None:
    (tmp_path / "rejects.csv").write_text("code;'=name\n'=1;a\n'=2;b;c\n'-x;d\n", "utf-8")
    again = UnescapedTable(open_table(tmp_path / "rejects.csv", ReadOptions(delimiter=";")))
    assert again.columns == ("code", "=name")
    taken: list[RejectedRow] = []
    rows = [
        row
        for batch in again.batches(2, taken.append)
        for row in batch.drop_columns("_line").to_pylist()
    ]
    assert rows == [{"code": "=1", "=name": "a"}, {"code": "-x", "=name": "d"}]
    assert [row.cells for row in taken] == [("=2", "b", "c")]
    assert [row.cells for row in again.rows()] == [("=1", "a"), ("=2", "b", "c"), ("-x", "d")]
    with pytest.raises(UsageError, match="line 3: 3 cells"):
        list(again.batches())
    (tmp_path / "whole.csv").write_text("code;'=name\n" + "'=1;a\n" * 5, "utf-8")
    # read by Arrow
    whole = UnescapedTable(open_table(tmp_path / "whole.csv", ReadOptions(delimiter=";")))
    assert [row.cells for row in whole.rows()] == [("=1", "a")] * 5
    (tmp_path / "torn.csv").write_text(
        "a;b;c;d;line;words\n1;x;y;z;2;w\nGil;3;w\n3;x;y;z;5;w\n", "utf-8"
    )
    torn = UnescapedTable(open_table(tmp_path / "torn.csv", ReadOptions(delimiter=";")), added=2)
    assert [rows.num_rows for rows in torn.batches(on_reject=taken.append)] in ([], [0])
    assert [row.code for row in taken[1:]] == ["torn", "too_short", "torn"]
