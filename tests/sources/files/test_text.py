"""Files of text: dialects, quotes, line ends, and what is no table. Each file is bytes in its test."""

from __future__ import annotations

import csv
import io
import os
from pathlib import Path

import pytest

from sources.errors import UsageError
from sources.files import ReadOptions, RejectedRow, Row, dialect, encoding, open_table, reader
from tests.sources.files.reading import cells, check, rows_of, table

BASIC = "Código;Nombre;PVP\r\n007;Peña;1,50\r\n1E5;NULL;2,75\r\n ;  x  ;3,10\r\n"
CELLS = [("007", "Peña", "1,50"), ("1E5", "NULL", "2,75"), (" ", "  x  ", "3,10")]
LITERAL, GIVEN = ReadOptions(quote="none"), ReadOptions(quote='"')


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("quote", ['"', "'"])
def test_delimiter_and_quote_are_found(tmp_path: Path, delimiter: str, quote: str) -> None:
    lines = [("code", "name", "price")] + [(f"{n:03}", f"{quote}A{delimiter}B{quote}", f"{n}.50") for n in range(5)]
    opened = table(tmp_path, "\n".join(map(delimiter.join, lines)))
    assert (opened.format.delimiter, opened.format.quote) == (delimiter, quote)
    assert cells(opened) == [(f"{n:03}", f"A{delimiter}B", f"{n}.50") for n in range(5)]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_are_found(tmp_path: Path, end: str) -> None:
    opened = table(tmp_path, BASIC.replace("\r\n", end))
    assert opened.format.line_ends == ({"\n": "LF", "\r\n": "CRLF", "\r": "CR"}[end],)
    assert cells(opened) == CELLS
    mixed = table(tmp_path, "a;b\r\n1;x\x0by\n2;\x85\u2028\r3;z")
    assert mixed.format.line_ends == ("CRLF", "LF", "CR")
    assert cells(mixed) == [("1", "x\x0by"), ("2", "\x85\u2028"), ("3", "z")], "only Unicode calls these line ends"


def test_a_mark_of_the_end_amid_a_file_ends_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for size in range(1, 16):
        monkeypatch.setattr(encoding, "CHUNK_BYTES", size)
        assert cells(table(tmp_path, "a;b\n1;x\x1a\n2;y\n")) == [("1", "x\x1a"), ("2", "y")]


@pytest.mark.parametrize(
    ("text", "given", "delimiter", "expected"),
    [
        (BASIC + "\x1a\0\0\0\r\n", None, ";", CELLS),
        ("base;peso\n" + "1,5;7,25\n" * 30, None, ";", [("1,5", "7,25")] * 30),  # no decimal comma
        ('a,b\n"x \\"y\\", z",""\n"q",1\n', None, ",", [('x "y", z', ""), ("q", "1")]),
        ('a,b\n"x ""y""",C:\\dir\n', None, ",", [('x "y"', "C:\\dir")]),
        ("sep=^\r\na^b\r\n1;1^2\r\n", None, "^", [("1;1", "2")]),
        *((f"sep={mark}\n{BASIC}", None, ";", CELLS) for mark in ",;|"),  # a wrong one too
        ('part\tsize\n1\t"a" b\n2\t"c" d\n', LITERAL, "\t", [("1", '"a" b'), ("2", '"c" d')]),
        ('code, name, sum\n"1", "Perno, i", 1.50\n2, x, 3\n', None, ",", [("1", "Perno, i", "1.50"), ("2", "x", "3")]),
        # ditto marks, which look like quoted cells of several lines
        ('code;name;city\nA1;N1;Madrid\nA2;N2;"\nA3;N3;"\nA4;N4;Lugo\nA5;N5;"\nA6;N6;Vigo', None, ";",
         [("A1", "N1", "Madrid"), ("A2", "N2", '"'), ("A3", "N3", '"'), ("A4", "N4", "Lugo"), ("A5", "N5", '"'),
          ("A6", "N6", "Vigo")]),
        ("a;b\n1; x\n2;y\n3;z\n", None, ";", [("1", " x"), ("2", "y"), ("3", "z")]),
        ("a;b;c\n" + "1;A;x\n" * 9 + "2;'Classic';x\n", None, ";", [("1", "A", "x")] * 9 + [("2", "'Classic'", "x")]),
    ],
)  # fmt: skip
def test_the_dialect_is_found_or_taken_as_given(
    tmp_path: Path, text: str, given: ReadOptions | None, delimiter: str, expected: list[tuple[str, ...]]
) -> None:
    opened = table(tmp_path, text, given)
    assert (opened.format.delimiter, cells(opened)) == (delimiter, expected)
    assert opened.format.escape == ("\\" if '\\"' in text else "")
    assert opened.format.is_padded is text.startswith("code, ")
    assert opened.format.preamble == ((1,) if text.startswith("sep") else ())


@pytest.mark.parametrize(
    "wrong",
    [{"delimiter": ";;"}, {"delimiter": " "}, {"quote": "ab"}, {"escape": "xx"}, {"quote": ";", "delimiter": ";"},
     {"quote": '"', "escape": '"'}],
)  # fmt: skip
def test_a_dialect_of_other_than_single_characters_is_an_error(tmp_path: Path, wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="must be one character"):
        table(tmp_path, BASIC, ReadOptions(**wrong))  # type: ignore[arg-type]


def customers(count: int, delimiter: str = ",", end: str = "\n", **changed: str) -> str:
    """A table of customers, some of whose lines are changed: l21="…"."""
    lines = ["email,firstName,lastName,password"]
    lines += [f"u{n - 1}@b.c,Ana {n - 1},x,secret{n - 1}" for n in range(2, count + 2)]
    for line, text in changed.items():
        lines[int(line[1:]) - 1] = text
    return "".join(line.replace(",", delimiter) + end for line in lines)


@pytest.mark.parametrize(("delimiter", "end"), [(",", "\n"), (";", "\r\n"), ("\t", "\r")])
@pytest.mark.parametrize("last", [22, 26])
def test_lines_between_two_stray_quotes_are_rejected(tmp_path: Path, delimiter: str, end: str, last: int) -> None:
    stray = {"l21": 'u20@b.c,"unclosed,x,secret20', f"l{last}": f'u@b.c,b",x,secret{last - 1}'}
    text = customers(30, delimiter, end, **stray)
    check(tmp_path, text, rejected=f"21-{last} quoting", rows=[*range(2, 21), *range(last + 1, 32)])
    _, [row] = rows_of(table(tmp_path, text))
    assert not row.cells
    assert "secret" not in row.reason


NAME = "Ref,Nombre,PVP\nA1,Perno,1.50\n"
STRAY = {"l4": 'u@b.c,"open,x,s', "l6": 'u@b.c,b",x,s'}
INCHES = ['5"', '1/2" x 3/4"', 'x "y" z', '"', "'t Hoff", '4" tube', '5" x 3"', '3/4"x1/2"', "12''", '"a ""b"" c"']


@pytest.mark.parametrize(
    ("text", "given", "rejected"),
    [
        ('a;b\n"1";2\n"x"y;3\n4;"5"\n6;"p\nq"r\n7;8\n', None, "3 quoting, 5-6 quoting"),
        *((f'{customers(9)}u@b.c,"open,x,s\n{between}u@b.c,Eva,x,s\nu@b.c,b",x,s\n{customers(9)}', None,
           f"11-{last} quoting, {last + 1} repeated_header")
          for between, last in (("", 13), ("\n", 14), ("a,b\n", 14), ("u@b.c,b,c,d,e\n", 14))),
        (customers(9, end=",\n", **STRAY), None, "4-6 quoting"),
        (customers(9, **STRAY), GIVEN, ""),  # a quote that is given is believed
        (customers(9, l4='u@b.c,"unclosed,x,p'), None, "4 quoting"),
        (customers(9, l4='u@b.c,"unclosed,x,p'), LITERAL, ""),
        ('part\tsize\n1\t"a" b\n2\t"c" d\n', None, "2 quoting, 3 quoting"),
        *((f'{NAME}14"Tornillo M14, inox",14.50\nA3,Tuerca 5",2.50\n{more}', None, "3 quoting")
          for more in ("", '"x, y",Tuerca,"1,50"\n')),
        (f'{NAME}14"Tornillo M14, inox",14.50\n', GIVEN, ""),
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
        ("a;b\nx;y\nx;y\0z\nx;y\n", None, "3 nul"),
        ('a;b\nx;"y"\nx1;"\nx2;"\nx;y\n', None, "3-4 quoting"),  # ditto marks
        *((f"\ufeffa;b\n\ufeff{line}\n3;4\n5;\ufeff6\n", None, "2 byte_order_mark") for line in ("1;2", "a;b")),
    ],
)  # fmt: skip
def test_a_quote_or_a_sign_out_of_place_rejects_its_row_and_no_other(
    tmp_path: Path, text: str, given: ReadOptions | None, rejected: str
) -> None:
    check(tmp_path, text, given, rejected=rejected)


def test_quotes_beyond_the_sample_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(encoding, "SAMPLE", 300)
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 100)
    check(tmp_path, customers(900, l800='u@b.c,"open,x,s', l804='u@b.c,b",x,s'), rejected="800-804 quoting")
    literal = customers(30, l4='u@b.c,"a" b,x,p', l29='u@b.c,"Ana",x,s')
    assert table(tmp_path, literal).format.quote == ""
    check(tmp_path, literal, rejected="4 quoting, 29 quoting")


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        ("code,name", "Red\nSoft, warm"),
        ("code,name", "Two\nlines"),
        ("code,name", "Red\nSoft,warm"),
        ("name,code", "Red, soft\nwarm"),
        ("code,address,city", "Calle Mayor, 5\n28013 Madrid, Spain"),
        ("code,name,price,text", "Sizes:\nS,M,L,XL\nWash at 30"),
        ("code,text,price,stock", "Colours: red, green, blue, black\n\nred, green\nred"),
        ("a,b,c,d,e,f,g,text", "<p>a, b, c</p>\n<ul>\n<li>one,two</li>\n</ul>"),
        ("a,b,c,text,e,f,g,h", "One, two, three, four, five, six, seven, eight\n" * 2),
        ("text", "x\n\ny"),
    ],
)
def test_a_cell_of_several_lines_is_read(tmp_path: Path, header: str, cell: str) -> None:
    names = header.split(",")
    row = tuple(cell if name in ("name", "text", "address") else "1" for name in names)
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([names, row, ["x"] * len(names), row])
    assert cells(table(tmp_path, out.getvalue()))[::2] == [row] * 2


def test_a_quote_never_closed_and_a_line_beyond_all_measure_are_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = ReadOptions(quote='"', delimiter=";")
    check(tmp_path, f'a;b\n"1";"2"\n"3;4\n{"5;6" * 9}', options, error="a quote opened on line 3 is never closed")
    for module in (encoding, dialect, reader):
        monkeypatch.setattr(module, "MAX_LINE", encoding.MIB)
    with pytest.raises(UsageError, match=r"line 2 of in\.csv is longer than 1 million"):
        table(tmp_path, b"a;b\n" + b"x" * (encoding.MIB + 1))
    opened = table(tmp_path, b'a;b\n1;"2"\n3;"' + b"x\n" * encoding.MIB, options)
    with pytest.raises(UsageError, match="a quote opened on line 3 is not closed within 1 million"):
        list(opened.rows())


@pytest.mark.parametrize(("last", "codes"), [("5;6", []), ("5", ["torn", "too_short"])])
def test_what_is_before_a_quote_never_closed_is_read(tmp_path: Path, last: str, codes: list[str]) -> None:
    opened = table(tmp_path, f'a;b\n"1";"2"\n3;4\n{last}\n"7;8\n', ReadOptions(quote='"', delimiter=";"))
    found: list[Row | RejectedRow] = []
    rejects: list[RejectedRow] = []
    with pytest.raises(UsageError, match="a quote opened on line 5 is never closed"):
        found.extend(opened.rows())
    with pytest.raises(UsageError, match="a quote opened on line 5 is never closed"):
        list(opened.batches(on_reject=rejects.append))
    assert ([row.line for row in found], [row.code for row in rejects]) == ([2, 3, 4], codes)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "is empty"),
        (b"\0\0\x1a", "is empty"),
        (bytes(1 << 16) + b"a;b\n", "is empty"),
        (b"\xef\xbb\xbf", "is empty"),
        (b"\n\n  \n", "no table"),
        (b"PK\x03\x04rest", "a damaged workbook or zip archive"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "an old Excel workbook"),
        (b"\xd0\xcf\x11\xe0" + "EncryptedPackage".encode("utf-16-le"), "a workbook protected by a password … remove"),
        (b"%PDF-1.7", "a document (PDF or RTF)"),
        (b"\x1f\x8b\x08\0", "compressed … Unpack"),
        (b"  <html><table>", "HTML or XML"),
        (bytes(range(256)) * 4, "a binary file"),
        (BASIC.encode("utf-16-le"), "a binary file … --encoding utf-16-le"),
        ("a;b\n1;2\n".encode("utf-16-be"), "a binary file"),
    ],
)
def test_what_is_no_table_is_an_error(tmp_path: Path, data: bytes, words: str) -> None:
    check(tmp_path, data, error=words)


def test_folders_pipes_and_what_cannot_be_read_are_errors(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "locked.csv").write_bytes(b"a;b\n")
    (tmp_path / "locked.csv").chmod(0)
    paths = {
        tmp_path: "is a folder",
        tmp_path / "none.csv": r"cannot be read: No such file(.|\n)*Check the file name",
        tmp_path / "lock.csv": r"lock.csv cannot be read: No such file(.|\n)*Did you mean locked.csv\?",
        tmp_path / ("a" * 300): "cannot be read: File name too long",
        tmp_path / "pipe": "is a pipe or a device",
        Path("/dev/zero"): "is a pipe or a device",
    }
    if not os.access(tmp_path / "locked.csv", os.R_OK):
        paths[tmp_path / "locked.csv"] = "cannot be read: Permission denied"
    for path, words in paths.items():
        with pytest.raises(UsageError, match=words):
            open_table(path)
