"""Quotes out of place are refused with their lines; cells of several lines are read."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest

from sources.files import ReadOptions, RejectedRow, Row, SourceTable, open_table
from sources.files import encoding as texts


def table(folder: Path, text: str, reported: ReadOptions | None = None) -> SourceTable:
    path = folder / "in.csv"
    path.write_bytes(text.encode())
    return open_table(path, reported)


def walked(opened: SourceTable) -> tuple[list[int], list[tuple[int, int, str]]]:
    """The lines of rows, and the refusals; the same row by row and in batches."""
    refused: list[RejectedRow] = []
    lines = [line for part in opened.batches(7, refused.append) for line in part["_line"].to_pylist()]
    rows = list(opened.rows())
    assert [row.line for row in rows if isinstance(row, Row)] == lines
    assert [row for row in rows if isinstance(row, RejectedRow)] == refused
    return lines, [(row.line, row.last_line, row.code) for row in refused]


def customers(count: int, delimiter: str = ",", end: str = "\n", **changed: str) -> str:
    """A table of customers, some of whose lines are changed: l21="…"."""
    lines = ["email,firstName,lastName,password"]
    lines += [f"u{n - 1}@b.c,Ana {n - 1},x,secret{n - 1}" for n in range(2, count + 2)]
    for line, text in changed.items():
        lines[int(line[1:]) - 1] = text
    return "".join(line.replace(",", delimiter) + end for line in lines)


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("last", [22, 23, 26])
def test_lines_between_two_stray_quotes_are_refused(tmp_path: Path, delimiter: str, end: str, last: int) -> None:
    stray = {"l21": 'u20@b.c,"unclosed,x,secret20', f"l{last}": f'u@b.c,b",x,secret{last - 1}'}
    opened = table(tmp_path, customers(30, delimiter, end, **stray))
    lines, refused = walked(opened)
    assert refused == [(21, last, "quoting")]
    assert lines == [*range(2, 21), *range(last + 1, 32)]
    [row] = [row for row in opened.rows() if isinstance(row, RejectedRow)]
    assert not row.cells
    assert "secret" not in row.reason


@pytest.mark.parametrize("between", ["", "\n", "a,b\n", "u@b.c,b,c,d,e\n"])
def test_lines_of_another_width_between_them_hide_nothing(tmp_path: Path, between: str) -> None:
    text = customers(9) + 'u@b.c,"open,x,s\n' + between + 'u@b.c,Eva,x,s\nu@b.c,b",x,s\n' + customers(9)
    last = 13 + between.count("\n")
    assert walked(table(tmp_path, text))[1] == [(11, last, "quoting"), (last + 1, last + 1, "repeated_header")]


def test_a_delimiter_at_the_end_of_each_line_hides_nothing(tmp_path: Path) -> None:
    text = customers(9, end=",\n", l4='u@b.c,"open,x,s', l6='u@b.c,b",x,s')
    assert walked(table(tmp_path, text))[1] == [(4, 6, "quoting")]


def test_quotes_beyond_the_sample_are_found_across_blocks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    text = customers(20_000, l19000='u@b.c,"open,x,s', l19004='u@b.c,b",x,s')
    monkeypatch.setattr(texts, "CHUNK_BYTES", 1000)
    lines, refused = walked(table(tmp_path, text))
    assert (len(lines), refused) == (19_995, [(19_000, 19_004, "quoting")])


@pytest.mark.parametrize(
    ("header", "cell"),
    [
        ("code,name", "Red\nSoft, warm"),
        ("code,name", "Two\nlines"),
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
    assert [found.cells for found in table(tmp_path, out.getvalue()).rows() if isinstance(found, Row)][::2] == [row] * 2


def test_a_reported_quote_is_believed(tmp_path: Path) -> None:
    text = customers(9, l4='u@b.c,"open,x,s', l6='u@b.c,b",x,s')
    lines, refused = walked(table(tmp_path, text, ReadOptions(quote='"')))
    assert (lines, refused) == ([2, 3, 4, 7, 8, 9, 10], [])


def test_a_quote_that_nothing_closes_is_refused_where_none_is_meant(tmp_path: Path) -> None:
    text = customers(9, l4='u@b.c,"unclosed,x,p')
    opened = table(tmp_path, text)
    assert opened.format.quote == ""
    assert walked(opened) == ([2, 3, 5, 6, 7, 8, 9, 10], [(4, 4, "quoting")])
    assert walked(table(tmp_path, text, ReadOptions(quote=""))) == (list(range(2, 11)), [])


def test_inches_are_no_quotes(tmp_path: Path) -> None:
    sizes = ['5"', '1/2" x 3/4"', 'x "y" z', '"', "'t Hoff", '4" tube']
    text = "part,size,kind\n" + "".join(f"{n},{size},x\n" for n, size in enumerate(sizes))
    opened = table(tmp_path, text + '7,"open,x\n8,"a" b,x\n9,"a" or "b",x\n')
    assert opened.format.quote == ""
    assert walked(opened) == (list(range(2, 8)), [(8, 8, "quoting"), (9, 9, "quoting"), (10, 10, "quoting")])
    assert [row.cells[1] for row in opened.rows() if isinstance(row, Row)] == sizes


def test_a_quoted_cell_beyond_the_sample_of_a_file_without_quotes_is_not_literal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys.modules["sources.files.encoding"], "SAMPLE", 300)
    monkeypatch.setattr(texts, "CHUNK_BYTES", 100)
    opened = table(tmp_path, customers(30, l4='u@b.c,"a" b,x,p', l29='u@b.c,"Ana",x,s'))
    assert opened.format.quote == ""
    assert walked(opened)[1] == [(4, 4, "quoting"), (29, 29, "quoting")]


@pytest.mark.parametrize("tail", ['two ""x"""', 'two"', "two\nthree x"])
def test_a_quote_inside_a_cell_that_the_next_line_closes_is_refused(tmp_path: Path, tail: str) -> None:
    """A delimiter is missing before a quoted cell of two lines, and the delimiter in the cell makes up for it."""
    text = customers(9, l4=f'u@b.c,Ana "one,x,s\n{tail}', l8='u@b.c,"Ana ""x""",x,s')
    last = 4 + 1 + tail.count("\n")
    rejected = [(line, line, "torn" if line == 4 else "too_short") for line in range(4, last + 1)]
    assert walked(table(tmp_path, text))[1] == rejected
    inches = customers(9, l4='u@b.c,3"x4,x,s', l5='u@b.c,tube 3",x,s', l8='u@b.c,"Ana ""x""",x,s')
    assert walked(table(tmp_path, inches))[1] == []


@pytest.mark.parametrize(
    "row",
    [
        '"two\nlines";Pieza"Rojo; inox";9',
        'Pieza ""Rojo; inox"";9',
        '"two\nlines";Pieza""Rojo; inox"";9',
        '"x";"two\nlines";9"a;b"',
    ],
)
def test_a_stray_quote_after_a_quoted_cell_of_several_lines_is_refused(tmp_path: Path, row: str) -> None:
    text = f'code;text;name;price\n1;"a; b";c;1\n2;{row}\n3;5"" tube;4"x3";7\n4;"two\n5""x3"" lines";6";7\n'
    lines, refused = walked(table(tmp_path, text))
    assert [code for _, _, code in refused] == ["quoting"]
    assert refused[0][0] == 3
    assert len(lines) == 3


def test_single_quotes_around_one_cell_are_part_of_it(tmp_path: Path) -> None:
    rows = "".join(f"{n};Ana;x\n" for n in range(9))
    opened = table(tmp_path, f"code;name;kind\n{rows}10;'Classic';x\n")
    assert opened.format.quote == '"'
    assert [row.cells for row in opened.rows()][-1] == ("10", "'Classic'", "x")
