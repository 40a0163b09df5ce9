"""Files with two possible readings: both are named, and one is taken only where it is the only one."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from sources.errors import UsageError
from sources.files import ReadOptions, RejectedRow, Row, SourceTable, encoding, open_table


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows far from the beginning, in a small file."""
    monkeypatch.setattr(sys.modules["sources.files.encoding"], "SAMPLE", 2_000)
    monkeypatch.setattr(encoding, "CHUNK_BYTES", 1_000)


QUOTED = '"Z1";"x; y";"9,00"\n'
ROWS = "A1;Tornillo;12,50\nA2;Tuerca;0,30\nA3;Arandela;0,05\n"


def table(folder: Path, text: str, options: ReadOptions | None = None) -> SourceTable:
    path = folder / "in.csv"
    path.write_bytes(text.encode())
    return open_table(path, options)


def error_of(folder: Path, text: str, options: ReadOptions | None = None) -> str:
    with pytest.raises(UsageError) as error:
        list(table(folder, text, options).rows())
    return str(error.value)


def rejected(opened: SourceTable) -> list[tuple[int, str]]:
    """Line and code; the same row by row and in batches."""
    found: list[RejectedRow] = []
    rows = [row for row in opened.rows() if isinstance(row, Row)]
    assert sum(part.num_rows for part in opened.batches(2, found.append)) == len(rows)
    assert found == [row for row in opened.rows() if isinstance(row, RejectedRow)]
    return [(row.line, row.code) for row in found]


# --- 8: the header line does not vanish ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ('"Código"x;Nombre;PVP', "line 1 has misplaced quotes"),
        ("Código;Nombre;PVP;;Nota", "line 1 looks like the header, but has 5 cells where the rows have 3"),
        ("Código;PVP 2", "line 1 looks like the header, but has 2 cells where the rows have 3"),
        ("Código,Nombre,PVP", "line 1 looks like the header, but has 1 cell where the rows have 3"),
    ],
    ids=["quoting", "surplus delimiter", "a cell fewer", "other delimiter"],
)
@pytest.mark.parametrize("rows", [ROWS, "ANA;GIL;ROMA\nEVA;RUIZ;PISA\nLEO;SANZ;BARI\n"], ids=["data", "words"])
def test_8_a_header_that_cannot_be_read_is_not_replaced_by_the_first_row(
    tmp_path: Path, header: str, words: str, rows: str
) -> None:
    rows += QUOTED
    message = error_of(tmp_path, f"{header}\n{rows}")
    assert words in message
    assert "--header-row 2" in message
    opened = table(tmp_path, f"{header}\n{rows}", ReadOptions(header_row=2, delimiter=";"))
    assert len(list(opened.rows())) == 3


def test_8_metadata_above_names_is_a_preamble(tmp_path: Path) -> None:
    for above in ("Fecha;2024-05-01\n", "Listado de precios\n", "Empresa:;ACME\n", "Listado\nFecha;01/05/2024\n"):
        opened = table(tmp_path, above + "Código;Nombre;PVP\n" + ROWS)
        assert opened.columns == ("Código", "Nombre", "PVP")
        assert len(list(opened.rows())) == 3


# --- 9: rows that are shifted by a column ----------------------------------------------------------------------------


def test_9_a_surplus_cell_of_every_row_is_no_cell(tmp_path: Path) -> None:
    for header, line in (("Código;Nombre;PVP", 1), ("Código;Nombre;PVP;", None)):
        text = header + "\n" + ROWS.replace("\n", ";\n") + "12;Tornillo; inox;12,50;\n"
        opened = table(tmp_path, text, ReadOptions(header_row=line))
        assert opened.format.dropped_columns == 1
        assert rejected(opened) == [(5, "too_long")]


# --- 10: a quote inside an unquoted cell -----------------------------------------------------------------------------


@pytest.mark.parametrize("quoted", ["", '"x, y",Tuerca,"1,50"\n'], ids=["nothing quoted", "quoted elsewhere"])
def test_10_a_quote_inside_a_cell_that_holds_the_delimiter_is_rejected(tmp_path: Path, quoted: str) -> None:
    text = f'Ref,Nombre,PVP\nA1,Perno,1.50\n14"Tornillo M14, inox",14.50\nA3,Tuerca 5",2.50\n{quoted}'
    opened = table(tmp_path, text)
    assert rejected(opened) == [(3, "quoting")]
    assert "quote inside a cell" in next(row.reason for row in opened.rows() if isinstance(row, RejectedRow))


def test_10_inches_are_texts(tmp_path: Path) -> None:
    cells = ['5" x 3"', '14" monitor', '24"', '3/4"x1/2"', 'tube 1/2"', '"a ""b"" c"', "12''"]
    text = "Ref,Talla,Otra\n" + "".join(f"A{n},{cell},{cell}\n" for n, cell in enumerate(cells))
    assert rejected(table(tmp_path, text)) == []


def test_10_a_quote_that_the_options_state_is_believed(tmp_path: Path) -> None:
    text = 'Ref,Nombre,PVP\nA1,Perno,1.50\n14"Tornillo M14, inox",14.50\n'
    assert rejected(table(tmp_path, text, ReadOptions(quote='"'))) == []


# --- 12: structure that is not guessed -------------------------------------------------------------------------------


def test_12_a_first_table_is_not_a_preamble(tmp_path: Path) -> None:
    first = "".join(f"{n};Madrid;{n}\n" for n in range(100))
    second = "".join(f"{n};a;b;{n},5;c\n" for n in range(200))
    text = "Tienda;Ciudad;Ventas\n" + first + "\nCódigo;Nombre;Color;PVP;Nota\n" + second
    message = error_of(tmp_path, text)
    assert "two tables: lines 1 to 101 have 3 cells, and another one begins on line 103" in message
    assert "If it is that of line 1: --header-row 1. If it is that of line 103: --header-row 103." in message
    assert len(list(table(tmp_path, text, ReadOptions(header_row=103)).rows())) == 200


def test_12_two_columns_of_metadata_are_a_preamble_up_to_four_lines(tmp_path: Path) -> None:
    lines = ["Empresa;ACME", "Fecha;2024-05-01", "Almacén;Central", "Usuario;ana"]
    opened = table(tmp_path, "\n".join(lines) + "\n\nCódigo;Nombre;PVP\n" + ROWS)
    assert opened.format.preamble == (1, 2, 3, 4)
    assert "two tables" in error_of(tmp_path, "\n".join([*lines, "Serie;B"]) + "\n\nCódigo;Nombre;PVP\n" + ROWS)


@pytest.mark.parametrize("second", ["Cliente;Ciudad;Saldo\nC1;Roma;10\n", "Cliente;Ciudad\nAna;Roma 1\nEva;Pisa 2\n"])
def test_12_a_second_table_is_named(tmp_path: Path, second: str) -> None:
    text = "Código;Nombre;PVP\n" + ROWS + "\n" + second
    assert "two tables: line 6 has names where the rows have numbers" in error_of(tmp_path, text)
    assert "two tables: line 7 has names" in error_of(tmp_path, text.replace("\n\n", "\n\nClientes\n"))
    path = tmp_path / "both.csv"
    path.write_text(text)
    with pytest.raises(UsageError, match="line 6 has names"):
        list(open_table(path).batches())
    assert len(list(table(tmp_path, text, ReadOptions(header_row=1)).rows())) > 4


@pytest.mark.parametrize("blank", ["", "\n", ";;\n"])
@pytest.mark.parametrize("count", [3, 300])
@pytest.mark.usefixtures("small_blocks")
def test_a_second_table_with_the_names_in_another_order_is_not_read_on(tmp_path: Path, blank: str, count: int) -> None:
    rows = "".join(f"A{n};Tornillo;{n},50\n" for n in range(count))
    others = "".join(f"Tornillo;A{n};{n},50\n" for n in range(count))
    text = f"Código;Nombre;PVP\n{rows}{blank}Nombre;Código;PVP\n{others}"
    assert f"two tables: line {count + 2 + bool(blank)} has names" in error_of(tmp_path, text)
    with pytest.raises(UsageError, match="two tables"):
        list(table(tmp_path, text).batches(on_reject=lambda _: None))


OTHER_NAMES = ["Cliente;Ciudad;Saldo", "Ref;Nombre;PVP", "Código;Nombre;Precio", "nombre;código;pvp"]


@pytest.mark.parametrize("header", OTHER_NAMES)
@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.usefixtures("small_blocks")
def test_a_header_amid_the_rows_begins_another_table(tmp_path: Path, header: str, count: int) -> None:
    text = f"Código;Nombre;PVP\n{ROWS * count}{header}\nC1;Roma;10\nC2;Pisa;20\n"
    line = 3 * count + 2
    message = error_of(tmp_path, text)
    assert f"two tables: line {line} has names" in message
    assert f"If line {line} has the names: --header-row {line}. If it is a row: --header-row 1." in message
    with pytest.raises(UsageError, match="two tables"):
        list(table(tmp_path, text).batches(on_reject=lambda _: None))
    text = text.replace(header, "VARIOS;Artículo;1,00\nPORTES;;gratis").replace("Roma", "Saldo")
    assert rejected(table(tmp_path, text)) == []


def test_a_header_repeated_in_capitals_hides_no_other_table(tmp_path: Path) -> None:
    rows = f"A0;Clavo;1\nCÓDIGO;NOMBRE;PVP\n{ROWS}Cliente;Ciudad;Saldo\nC1;Roma;10\n"
    assert "line 7 has names" in error_of(tmp_path, f"Código;Nombre;PVP\n{rows}")


def test_names_with_digits_or_gaps_begin_another_table_after_a_blank_line(tmp_path: Path) -> None:
    for header in ("Ref;Nombre;Precio 2024", "Ref;;Precio"):
        assert "line 6 has names" in error_of(tmp_path, f"Código;Nombre;PVP\n{ROWS}\n{header}\nx;A3;4\n")


@pytest.mark.parametrize("count", [1, 100])
@pytest.mark.usefixtures("small_blocks")
def test_the_title_of_a_page_is_no_row(tmp_path: Path, count: int) -> None:
    rows = ROWS.replace(";T", ";rojo;T").replace(";A", ";rojo;A") * count
    page = "LISTADO;;;\nPágina: 2;;;\nCÓDIGO;COLOR;NOMBRE;PVP\n"
    text = f"Código;Color;Nombre;PVP\n{rows}{page}A4;azul;Clavo;1,00\nA5;;;\n"
    line = 3 * count + 2
    assert rejected(table(tmp_path, text)) == [(line, "rule"), (line + 1, "rule"), (line + 2, "repeated_header")]


def test_a_header_that_lacks_a_delimiter_does_not_shift_the_rows(tmp_path: Path) -> None:
    text = "DATETIME,Qty,Amount\n28/01/2018,00:00,2,\n29/01/2018,00:05,3,\n30/01/2018,10:00,4,\n"
    message = error_of(tmp_path, text)
    assert "line 1, the header, has 3 names, but the rows have 4 cells, the last empty" in message
    assert "--header-row 1" in message


@pytest.mark.parametrize(
    "first",
    ["A0;Clavo;0,10", "00038;Clavo;12,50", "2024-01-31;Ana;5", "ana@example.com;Ana;x"],
)
def test_12_a_row_of_data_is_not_the_header(tmp_path: Path, first: str) -> None:
    cells = first.split(";")
    rows = "".join(";".join([cell if n == 1 else f"{cell}" for n, cell in enumerate(cells)]) + "\n" for _ in range(3))
    text = f"{first}\n{rows}".replace("A0", "A1", 1)
    opened = table(tmp_path, text)
    assert opened.columns == ("column_1", "column_2", "column_3")
    assert opened.format.header_lines == ()
    assert [row.line for row in opened.rows()] == [1, 2, 3, 4]
    assert len(list(table(tmp_path, text, ReadOptions(header_row=0)).rows())) == 4


@pytest.mark.parametrize("first", ["8;Clavo;", "2019;2020;Zona", "Q1;Q2;Q3"])
def test_a_line_of_data_that_may_be_names_is_asked_about(tmp_path: Path, first: str) -> None:
    rows = "".join(first.replace("20", f"2{n}").replace("8", f"7{n}").replace("Q", "A") + "\n" for n in range(4))
    message = error_of(tmp_path, f"{first}\n{rows}")
    assert "line 1 looks like a row, not like column names" in message
    assert "If line 1 has the names: --header-row 1. If there are no names: --header-row 0." in message


TITLES = [
    "ACME SL;;Fecha:;02/01/2025\nB1234;;Página:;1\n;;;\n",
    "LISTADO;;;\nFecha:;02/01/2025;;\n;;;\n",
    "LISTADO;;;\nFecha:;02/01/2025;;\n",
    "Empresa:;ACME;;\nFecha:;02/01/2025;;\nAlmacén:;Central;;\nUsuario:;Ana;;\nSerie:;B;;\nTarifa:;7;;\n",
    "Informe de ventas;;Página:;1\n\n",
    "Almacén;Central;;\n;;;\n",
    "Desde:;01/01/2025;Hasta:;31/01/2025\nCliente:;Peña SL;Zona:;Norte\n;;;\n",
]


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("header", ["Código;Nombre;PVP;Color", "Código;Nombre;Color;Nota"])
def test_titles_above_the_header_are_no_table(tmp_path: Path, title: str, header: str) -> None:
    for text in (title + header, re.sub(";+$", "", title, flags=re.MULTILINE) + header):
        opened = table(tmp_path, f"{text}\nA1;Perno;1,50;rojo\nA2;Tuerca;2,50;azul\nA3;Clavo;3,50;\n")
        assert opened.columns == tuple(header.split(";"))
        assert len(opened.format.preamble) == sum(bool(line.strip(";")) for line in title.splitlines())
        assert len([row for row in opened.rows() if isinstance(row, Row)]) == 3


def test_a_title_right_above_the_names_is_asked_about_where_it_may_have_names(tmp_path: Path) -> None:
    text = "Almacén;Central;;\nCódigo;Nombre;PVP;Color\nA1;Perno;1,50;rojo\nA2;Tuerca;2,50;azul\nA3;Clavo;3,50;\n"
    message = error_of(tmp_path, text)
    assert "line 1 has 2 cells with text, line 2 a name for each column" in message
    assert "If line 1 has the names: --header-row 1. If line 2 has them: --header-row 2." in message


def test_names_with_colons_are_names(tmp_path: Path) -> None:
    for header in ("Código:;Nombre:;PVP:", "Código:;Nombre;PVP"):
        assert table(tmp_path, f"{header}\n{ROWS}").columns == tuple(header.split(";"))


def test_a_single_line_of_data_is_not_taken_for_a_header_without_rows(tmp_path: Path) -> None:
    message = error_of(tmp_path, "A001;Tornillo;12,50\n")
    assert "line 1 looks like a row" in message
    assert "--header-row 0" in message
    assert table(tmp_path, "Código;Nombre 2;PVP1;2024\n").format.header_lines == (1,)


def test_an_option_that_would_read_the_file_wrongly_is_not_proposed(tmp_path: Path) -> None:
    rows = "".join(f"C{n};a|b|c\n" for n in range(9))
    assert table(tmp_path, f"Código;Rutas\n{rows}").columns == ("Código", "Rutas")
    opened = "Cliente;Saldo;Zona\n1;5;N\n2;5;N\n\nCódigo;Nombre;PVP;Nota\n" + "A1;x;1,5;n\n" * 9
    message = error_of(tmp_path, opened)
    assert "--header-row 5" in message
    assert "--header-row 1" not in message  # of 11 rows 2 would fit


@pytest.mark.parametrize("header", ["Código;Descripción 1;PVP 2024", "code;name;2024", "id;Foto2;x"])
def test_12_names_with_digits_are_names(tmp_path: Path, header: str) -> None:
    assert table(tmp_path, header + "\n" + ROWS).columns == tuple(header.split(";"))


def test_12_a_ragged_file_is_not_one_column(tmp_path: Path) -> None:
    lines = ["a;b;c", "a;b", "a;b;c;d", "a;b;c;d;e", "a;b;c;d;e;f", "a;b;c;d;e;f;g", "x", "a;b;c;d;e;f;g;h"]
    message = error_of(tmp_path, "\n".join(lines) + "\n")
    assert "most lines contain a semicolon, but not as cells of equal number: 0 to 7 a line" in message
    assert "--delimiter semicolon" in message
    assert table(tmp_path, "\n".join(lines) + "\n", ReadOptions(delimiter="\t")).columns == ("a;b;c",)


def test_a_false_sep_line_is_no_delimiter(tmp_path: Path) -> None:
    text = f"sep=,\nCódigo;Nombre;PVP\n{ROWS}"
    for line in ("=,", "=;", "=|"):
        opened = table(tmp_path, text.replace("=,", line))
        assert opened.columns == ("Código", "Nombre", "PVP")
        assert len(list(opened.rows())) == 3
    assert table(tmp_path, text, ReadOptions(delimiter="comma", header_row=2)).columns == ("Código;Nombre;PVP",)
    twice = 'sep=;\n"A1;Perno"\n"A2;Tuerca"\n"A3;Clavo"\n'
    assert "most lines contain a semicolon" in error_of(tmp_path, twice)


def test_12_two_tables_beside_each_other_are_asked_about(tmp_path: Path) -> None:
    text = "Código;PVP;;Cliente;Saldo\nA1;1,50;;C1;10\nA2;2,50;;C2;20\n;;;C3;30\n"
    message = error_of(tmp_path, text)
    assert "two tables side by side: columns 1 to 2, and those from column 4 on" in message
    assert len(table(tmp_path, text, ReadOptions(header_row=1)).columns) == 5
    assert len(table(tmp_path, text.replace(";;;C3;30", "A3;2,70;;C3;30")).columns) == 5


def test_12_a_space_before_a_quote_rejects_the_line(tmp_path: Path) -> None:
    text = f'Código;Nombre;PVP\n{ROWS}{QUOTED} "A4"; "Perno"; "1,00"\nA5;Clavo; "2,00"\nA6;tubo 5" x;1,00\n'
    assert rejected(table(tmp_path, text)) == [(6, "quoting"), (7, "quoting")]


def test_12_lines_quoted_as_a_whole_are_asked_about(tmp_path: Path) -> None:
    text = f"Código;Nombre;PVP\n{ROWS}".replace("0,", "0.").replace("2,", "2.")
    quoted = "".join(f'"{line}"\n' for line in text.splitlines())
    message = error_of(tmp_path, quoted)
    assert "most lines contain a semicolon, but not as cells of equal number: 2 to 2 a line" in message
    assert len(table(tmp_path, quoted, ReadOptions(delimiter=";", header_row=1)).columns) == 1
    message = error_of(tmp_path, f"Cliente;Ciudad;Saldo\nC1;Roma;10\nC2;Bari;20\n\n{quoted}")
    assert "line 1, the header, has 3 names, but most rows have another number of cells, usually 1" in message


def test_12_rules_in_a_framed_table_are_no_rows(tmp_path: Path) -> None:
    text = "| id | name |\n|----|------|\n| 1 | Perno |\n| 2 | Tuerca |\n"
    assert rejected(table(tmp_path, text)) == [(2, "rule")]


def test_12_a_line_without_text_is_blank(tmp_path: Path) -> None:
    text = f"Código;Nombre;PVP\n{ROWS};;\n" + ";;\n" * 3 + "A4;Perno;1,00\n;;\n;;\nListado del 3 de mayo\n"
    opened = table(tmp_path, text)
    assert [row.line for row in opened.rows() if isinstance(row, Row)] == [2, 3, 4, 9]
    assert (rejected(opened), opened.format.footnotes) == ([], (12,))


def test_12_a_line_of_dashes_is_not_a_row(tmp_path: Path) -> None:
    text = f"Código;Nombre;PVP\n------;--------;---\n{ROWS}======;========;===\n-;-;-\n"
    assert rejected(table(tmp_path, text)) == [(2, "rule"), (6, "rule")]


def test_9_a_truncated_line_is_not_a_row_where_the_header_lacks_a_name(tmp_path: Path) -> None:
    lines = ["Código;Nombre;PVP;", "A1;Perno;rojo;1,50;", "A2;Tuerca;azul;2,00;", "A3;Clavo;verde;2,10;", "A4;Llave;"]
    assert "line 1, the header, has 3 names, but most rows have another number of cells, usually 5" in error_of(
        tmp_path, "\n".join(lines)
    )
    opened = table(tmp_path, "\n".join(lines), ReadOptions(header_row=1))
    assert rejected(opened) == [(2, "too_long"), (3, "too_long"), (4, "too_long"), (5, "too_short")]


def test_12_spaces_after_the_delimiter_belong_to_it_where_most_lines_have_them(tmp_path: Path) -> None:
    text = 'code, name, price\n"1", "Perno, inox", 1.50\n"2", "Tuerca", 2.50\n3, x, 3\n'
    opened = table(tmp_path, text)
    assert opened.format.is_padded
    assert opened.columns == ("code", "name", "price")
    rows = [row.cells for row in opened.rows() if isinstance(row, Row)]
    assert rows == [("1", "Perno, inox", "1.50"), ("2", "Tuerca", "2.50"), ("3", "x", "3")]
    assert not table(tmp_path, "a;b\n1; x\n2;y\n3;z\n").format.is_padded


@pytest.mark.parametrize(
    "total",
    ["TOTAL;;;3,55", "Total general:;;;12,85", ";Subtotal;;3,55", "Suma;;;", "Totales;;;1", "Subtotal rojo;;;",
     "Total azul;;;1.003,55 €", "Total azul y verde;;;7", "Sous-total;;;7", "Zwischensumme;;;7",
     "Soma;;;7", "TOTAL;3;4;1.234,50 €", "Subtotal;7;;12"],
)  # fmt: skip
def test_12_a_line_of_totals_is_not_a_row(tmp_path: Path, total: str) -> None:
    rows = ROWS.replace(";T", ";rojo;T").replace(";A", ";rojo;A")
    opened = table(tmp_path, f"Código;Color;Nombre;PVP\n{rows}{total}\nA4;azul;Clavo;1,00\n{total}\n")
    assert rejected(opened) == [(5, "totals"), (7, "totals")]


def test_16_the_reason_of_totals_names_how_a_row_of_that_name_is_kept(tmp_path: Path) -> None:
    text = "code;name;city;phone\n1;Ana;Vic;600\nTotal;;;\nTotal;Total SL;Reus;\n2;Eva;Olot;601\n"
    [row] = [row for row in table(tmp_path, text).rows() if isinstance(row, RejectedRow)]
    assert (row.line, row.code) == (3, "totals")
    assert row.reason.endswith('set in the mapping, under [rows]: totals = "skip" or "keep"')
    assert rejected(table(tmp_path, text, ReadOptions(totals="keep"))) == []


@pytest.mark.parametrize(
    "row", ["Total;;T1;;", "Subtotal;T1;;;", "Subtotal rojo;A5;;;9", "Total Gym;;;A1;", "Total;;x;;"]
)
def test_a_row_with_a_name_or_a_code_next_to_total_is_no_totals(tmp_path: Path, row: str) -> None:
    text = f"Marca;Nombre;Código;Color;PVP\nA;x;A1;rojo;1\n{row}\nB;x;A2;rojo;2\n"
    assert rejected(table(tmp_path, text)) == []


def test_12_a_name_with_total_in_it_is_a_row(tmp_path: Path) -> None:
    text = "Código;Nombre;PVP\nA1;Total Gas SL;12,50\nA2;Subtotal;1,00\n;Total Gas 3;\n"
    assert rejected(table(tmp_path, text)) == []


def test_a_second_row_of_names_is_not_a_row(tmp_path: Path) -> None:
    text = "CardCode,CardName,EmailAddress,ZipCode\nCardCode,CardName,E_Mail,ZipCode\nC1,Bar,a@b.com,01067\n"
    assert rejected(table(tmp_path, text)) == [(2, "repeated_header")]
    assert rejected(table(tmp_path, "Code,Name,Email\nCode,Bar,\nCode,Bar,a@b.com\n,Name,Email\n")) == []


# --- 14: what is wrong, in which line, what to type ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "place", "what_to_do"),
    [
        ('"Código"x;Nombre;PVP\n' + ROWS + QUOTED, "line 1", "--header-row 2"),
        ("2019;2020;Zona\n" * 4, "line 1", "--header-row 0"),
        ("Cliente;Saldo;Zona\nC1;5;N\n\nCódigo;Nombre;PVP;Nota\nA1;x;1,5;n\nA2;y;2,5;m\n", "lines 1 to 2", "--header"),
        ("Código;Nombre;PVP\n" + ROWS + QUOTED + 'A4;"Perno;1,00\n', "line 6", "--quote none"),
    ],
    ids=["broken header", "no header", "two tables", "open quote"],
)  # fmt: skip
def test_14_an_error_names_the_line_and_what_to_type(tmp_path: Path, text: str, place: str, what_to_do: str) -> None:
    with pytest.raises(UsageError) as error:
        list(table(tmp_path, text).rows())
    assert place in error.value.message
    assert what_to_do in error.value.hint
