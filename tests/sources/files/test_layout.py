"""Which lines are header, rows, titles and notes; files with two possible readings are errors that name both."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions, encoding
from tests.sources.files.reading import check, described, error_of, rows_of, table

QUOTED = '"Z1";"x; y";"9,00"\n'
NAMES = "Código;Nombre;PVP\n"
ROWS = "A1;Tornillo;12,50\nA2;Tuerca;0,30\nA3;Arandela;0,05\n"
COLORS = "Código;Color;Nombre;PVP\n" + ROWS.replace(";T", ";rojo;T").replace(";A", ";rojo;A")
STOCK = "Código;Nombre;PVP;Stock\nA1;Perno;1,50;3\nA2;Tuerca;2,50;4\nA3;Clavo;1,00;5\n"
WORDS = "ANA;GIL;ROMA\nEVA;RUIZ;PISA\nLEO;SANZ;BARI\n"
PEOPLE = "code;name;email;city\n1;Ana;a@b.com;Roma\n2;Leo;l@b.com;Vic\n"
MANY = "".join(f"A{n};Tornillo;{n},50\n" for n in range(300))


def options(text: str) -> ReadOptions | None:
    if not text:
        return None
    pairs = (part.split("=", 1) for part in text.split())
    given = {name: int(value) if value.isdecimal() else value for name, value in pairs}
    return ReadOptions(**given)  # type: ignore[arg-type]


HEADERS: list[tuple[str, str, dict[str, Any]]] = [
    (NAMES, "", {"columns": "Código,Nombre,PVP", "rows": []}),
    ("a;;a;a;a_2\n1;2;3;4;5\n", "", {"columns": "a,column_2,a_3,a_4,a_2", "rows": [2]}),
    ("a;b;\n1;2;\n3;4;\n", "", {"columns": "a,b", "cells": [("1", "2"), ("3", "4")]}),
    ('x\n"a;b",c\n1;2,3\n', "delimiter=, quote=none header_row=2", {"columns": '"a;b",c', "preamble": (1,)}),
    (f"Persona;;;;;Domicilio;;;;\n{';'.join('klmnopqrst')}\n{';'.join('abcdefghij')}\n", "", {"preamble": (1,)}),
    *((above + NAMES + ROWS, "", {"columns": "Código,Nombre,PVP", "rows": [n + above.count("\n") for n in (2, 3, 4)]})
      for above in ("Fecha;2024-05-01\n", "Listado de precios\n", "Empresa:;ACME\n", "Listado\nFecha;01/05/2024\n")),
    # names of groups, above names that the rows prove
    (f"Artículo;Artículo;Venta;Venta\n{STOCK}", "", {"columns": "Código,Nombre,PVP,Stock", "preamble": (1,)}),
    (f"Listado;;;\nArtículo;Artículo;Venta;Venta\n{STOCK}", "",
     {"columns": "Código,Nombre,PVP,Stock", "preamble": (1, 2)}),
    ("Código;Nota;Nota;PVP\nTornillo;largo;zinc;1,50\nTuerca;corta;inox;2,50\n", "", {"header": (1,), "rows": [2, 3]}),
    ("Código;Nota;Nota;PVP\nTornillo;largo;zinc;gratis\nTuerca;corta;inox;2,50\n", "", {"header": (1,)}),
    *((f"{header}\n{ROWS}", "", {"columns": header.replace(";", ","), "header": (1,)})
      for header in ("Código:;Nombre:;PVP:", "Código:;Nombre;PVP", "Código;Descripción 1;PVP 2024", "id;Foto2;x")),
    (f"Código;Rutas\n{('A1;a|b|c' + chr(10)) * 9}\n", "", {"columns": "Código,Rutas"}),
    (";;a;;\n;;1;;\n;;2;;\n", "delimiter=;", {"error": "no line looks like column names … --header-row 0"}),
    (f"{';'.join(map(str, range(20_000)))}\n1\n", "delimiter=; header_row=1", {"error": "20000 columns; the limit is"}),
    # a header that cannot be read is not replaced by the first row, nor is that proposed
    *((f"{header}\n{rows}{QUOTED}", "", {"error": f"{words} … Fix line 1, or remove it if it is a title."})
      for rows in (ROWS, WORDS)
      for header, words in (
          ('"Código"x;Nombre;PVP', "line 1 looks like the header, but has misplaced quotes"),
          ("Código;Nombre;PVP;;Nota", "line 1 looks like the header, but has 5 cells where the rows have 3"),
          ("Código;PVP 2", "line 1 looks like the header, but has 2 cells where the rows have 3"),
          ("Código,Nombre,PVP", "line 1 looks like the header, but has 1 cell where the rows have 3"),
      )),
    (f"x;y\n{ROWS}", "header_row=2 delimiter=;", {"rows": [3, 4], "preamble": (1,)}),
    ("code;name;city;note\n1;x;y\n2;x;y\n3;x;y\n", "", {"error": "line 1 looks like the header, but has 4 cells"}),
    # not titles above names of texts, nor names that alone end with a delimiter
    *((f"{above}Nombre;Color;Talla;Forma;Marca{end}\n" + "Perno;rojo;;largo;ACME\nClavo;azul;grande;;Gym\n" * 2, "",
       {"columns": "Nombre,Color,Talla,Forma,Marca", "rejected": "", "rows": [*range(2 + lines, 6 + lines)]})
      for above, lines in (("", 0), ("Lista;ACME\n", 1), ('"Lista: pernos; clavos; tuercas; rojos; azules"\n', 1))
      for end in ("", ";", ";;")),
    ("DATETIME,Qty,Amount\n28/01/2018,00:00,2,\n29/01/2018,00:05,3,\n30/01/2018,10:00,4,\n", "",
     {"error": "line 1, the header, has 3 names, but most rows have 4 cells … --header-row 1"}),
    ('Código;"Nom"bre;PVP\n' + ROWS, "quote=none", {"error": "line 1, the header, has a quote that does not enclose"}),
    # names of groups, or a title of several cells, above names that the rows prove; otherwise it is asked
    *((f"{above}\nCódigo;Nombre;Compra;Venta\n" + "1;a;2;3\n" * 3, "", {"header": (2,), "preamble": (1,)})
      for above in ("Artículo;;Precios;", ";;Precios;", "Almacén;Central;;")),
    ("Almacén;Central;;\nNombre;Apellido;Ciudad;Color\nAna;Gil;Roma;rojo\nEva;Ruiz;Pisa;azul\n", "",
     {"error": "line 1 has 2 cells with text, line 2 a name for each column … has the names: --header-row 1. If"}),
    # a title as wide as the table
    *((f"{above}\nCódigo;Nombre;PVP;Color\nA1;Perno;1,50;rojo\nA2;Tuerca;2,50;azul\n", "",
       {"columns": "Código,Nombre,PVP,Color", "preamble": (1,), "rows": [3, 4]})
      for above in ("Desde;01/01/2025;Hasta;31/01/2025", "Fecha;19/08/2020;Lista;7", "Página;1;de;12,5")),
    ("19/08/2020;Lista de precios\nNombre;Precio\nPerno;1,50\nTuerca;2,50\n", "",
     {"columns": "Nombre,Precio", "preamble": (1,)}),
    ("19/08/2020;Clientes\nNombre;Ciudad\nAna;Roma\nEva;Pisa\n", "",
     {"error": "line 1 has dates or numbers, line 2 a name for each column … --header-row 1. If line 2 has"}),
    ("Zona;2024;2025\nNombre;Enero;Febrero\nAna;1;2\nEva;3;4\n", "",
     {"error": "line 1 has dates or numbers, line 2 a name for each column"}),
    ("Musei;2011;2010\nRoma;sì;no\nPisa;no;sì\n", "", {"header": (1,), "rows": [2, 3]}),
    # a row of words amid rows without a header is no header
    ("5;Ana;x\nGil;Eva;y\n7;Leo;z\n8;Sol;w\n", "", {"error": "line 1 looks like a row"}),
    # names that are not all words
    *((f"{header}\nRoma;5;6\nPisa;7;8\n", "", {"header": (1,), "rows": [2, 3]})
      for header in ("Musei;2011;2010", "Musei;2010;2011")),
    ("Perno;2001\nTuerca;150\nClavo;30\n", "", {"error": "line 1 looks like a row"}),
    *((f"{first}1;{first}2\nA0;B0\nA1;B1\n", "", {"header": (1,), "rows": [2, 3]})
      for first in ("Field", "column_", "Campo ")),
    ('="Código";="Nombre"\n="001";="x"\n="002";="y"\n', "", {"columns": "Código,Nombre", "rows": [2, 3]}),
    # the names of R, which has none for the column of names
    ('"","Overall"\n"n","418"\n"Age","53.02 (14.1)"\n"Sex","200 (47.8)"\n', "",
     {"columns": "column_1,Overall", "rows": [2, 3, 4]}),
    ('"","Male","Female"\n"n","418","21"\n"Mode","car","bus"\n"Age","53","51"\n', "",
     {"columns": "column_1,Male,Female", "rows": [2, 3, 4]}),
    ("Nombre;;;;\nA1;Perno;1;2;3\nA2;Tuerca;2;3;4\nA3;Clavo;2;3;4\n", "",
     {"error": "line 1 has 1 cell with text, and line 2 looks like a row … or remove it if it is a title. If line 1"}),
    # a delimiter ends the rows, and no name may be two that lost the one between them
    ("Código;Nombre;PVP\nA1;Perno;1,50;\nA2;Tuerca;2,50;\nA3;Clavo;2,50;\n", "",
     {"columns": "Código,Nombre,PVP", "rows": [2, 3, 4]}),
    *((f"{header};Color;PVP\nA1;Perno;rojo;\nA2;Tuerca;azul;\nA3;Clavo;azul;\n", "",
       {"error": "the header, has 3 names, but most rows have 4 cells"})
      for header in ("CódigoNombre", "codigonombre", "CODIGONOMBRE", "Código Nombre")),
    ("Código;;Nombre;PVP\nA1;Perno;1,50;\nA2;Tuerca;2,50;\n", "",
     {"error": "line 1, the header, has no name for column 2, which has cells, and one for the last column"}),
    # nor is a title as wide as the table the header, where that is damaged or missing
    *((f"Desde;01/01/2025;Hasta;7\n{header}\nA1;Perno;M8;rojo\nA2;Tuerca;M9;azul\n" + 'A3;"x; y";M9;azul\n', "",
       {"error": error})
      for header, error in (
          ("Código;Nombre;Talla", "line 1 has dates or numbers, and line 2 other cells or quotes … Fix line 2"),
          ('"Código"x;Nombre;Talla;Color', "line 1 has dates or numbers, and line 2 other cells or quotes"),
          ("A0;Clavo;M7;rojo", "line 1 has dates or numbers above texts"),
      )),
    *((f"Nombre;01/01/2025;02/01/2025\nAna;{one}\nEva;{other}\n", "", {"header": (1,), "rows": [2, 3]})
      for one, other in (("1;2", "3;4"), ("sí;no", "no;no"))),
    ("Código^Nombre^Neto^Bruto\n;;kg;kg\nA1;Perno;1;2\nA2;Tuerca;3;4\n", "", {"error": "line 3 looks like a row"}),
    # several lines with misplaced quotes are no titles
    ('"Código"x;"Nombre"\n' + '"A1"x;"Perno"\n' * 3 + "\nCliente;Ciudad\nC1;Roma\nC2;Pisa\n" * 2, "",
     {"error": "looks like the header, but has misplaced quotes"}),
    # no rows follow a header
    *((f"Nombre\nAna\nEva\nLeo\n{last}\n", "", {"columns": "Nombre", "rows": [2, 3, 4, 5]})
      for last in ("García, Luis", "Calle 3;4", "x|")),
    ("Nombre\nAna\nLuis;x\n", "", {"error": "only line 3 has 2 cells, and no rows follow it … If there is one column"}),
    ("Nombre\nAna\nEva\nLeo\nGil\nSol\nBea\nGarcía, Luis\nPérez, Ana\n", "", {"columns": "Nombre"}),
    (f"Listado\nde artículos\n{NAMES}", "", {"header": (3,), "rows": []}),
    # nor is a row of words, where one of them is in a row below it
    *((f"{line}\nEva;Ruiz;Pisa\nLeo;Sanz;Roma\n", "", {"error": "line 1 may be a row, not column names"})
      for line in ("Ana;Gil;Roma", "Leo;Gil;Bari")),
    ("Nombre;Apellido;Ciudad\nEva;Ruiz;Pisa\nNombre;Apellido;Ciudad\n", "", {"rejected": "3 repeated_header"}),
    ("Código;Nombre;PVP\nA1;Nombre;1,50\nA2;Perno;2,50\n", "", {"header": (1,), "rejected": ""}),
    # what stands before or after each line is no part of a name
    *((f"{start}Código;Nombre;PVP{end}\n{start}A1;Perno;1,50{end}\n{start}A2;Clavo;2,50{end}\n", "",
       {"error": "line 1, the header, begins or ends with what is no name"})
      for start, end in (("+", ""), ("> ", ""), ("\x1b[32m", ""), ("ï»¿", ""), ("", ",,,"))),
    *((f"Código;{name};PVP\nA1;28001;1,50\nA2;08002;2,50\n", "",
       {"error": "has a number, date or address in place of a name … --header-row 1"} if is_asked else {"header": (1,)})
      for name, is_asked in (("28003", True), ("2025", False), ("CP", False))),
    ("     1 Código;PVP\n     2 A1;1,50\n     3 A2;2,50\n", "", {"error": "begins or ends with what is no name"}),
    ("1: Código;PVP\n2: A1;1,50\n3: A2;2,50\n", "", {"error": "begins or ends with what is no name"}),
    ("1 Código;PVP\n3 A1;1,50\n2 A2;2,50\n", "", {"header": (1,)}),
    # columns of a fixed width
    ("Código    Nombre\nA1        Perno\nA2        Tuerca\n", "", {"error": "most lines have several spaces in a row"}),
    # a row of data is not the header
    *((f"{first}\n{first.replace('A0', 'A1')}\n" * 2, "", {"header": (), "rows": [1, 2, 3, 4]})
      for first in ("A0;Clavo;0,10", "00038;Clavo;12,50", "2024-01-31;Ana;5", "ana@example.com;Ana;x")),
    *((f"{first}\n" + f"{rest}\n" * 4, "", {"error": "line 1 looks like a row, not like column names … has the names: "
       "--header-row 1. If there are no names: --header-row 0."})
      for first, rest in (("8;Clavo;", "7;Clavo;"), ("2019;2020;Zona", "21;22;Zona"), ("Q1;Q2;Q3", "A1;A2;A3"))),
    ("A00;7;PVP\nA01;7;1,50\nA02;8;2,50\nA03;9;3,50\n", "", {"error": "line 1 looks like a row"}),
]  # fmt: skip


TITLES = [
    "ACME SL;;Fecha:;02/01/2025\nB1234;;Página:;1\n;;;\n",
    "LISTADO;;;\nFecha:;02/01/2025;;\n",
    "Empresa:;ACME;;\nFecha:;02/01/2025;;\nAlmacén:;Central;;\nUsuario:;Ana;;\nSerie:;B;;\nTarifa:;7;;\n",
    "Desde:;01/01/2025;Hasta:;31/01/2025\nCliente:;Peña SL;Zona:;Norte\n;;;\n",
]


@pytest.mark.parametrize("title", TITLES)
@pytest.mark.parametrize("header", ["Código;Nombre;PVP;Color", "Código;Nombre;Color;Nota"])
def test_titles_above_the_header_are_no_table(tmp_path: Path, title: str, header: str) -> None:
    for text in (title + header, re.sub(";+$", "", title, flags=re.MULTILINE) + header):
        rows = "A1;Perno;1,50;rojo\nA2;Tuerca;2,50;azul\nA3;Clavo;3,50;\n"
        found = described(table(tmp_path, f"{text}\n{rows}"))
        assert found["columns"] == header.replace(";", ",")
        assert len(found["preamble"]) == sum(bool(line.strip(";")) for line in title.splitlines())
        assert len(found["rows"]) == 3


@pytest.mark.parametrize(
    ("text", "proposed"),
    [
        *(
            (f"{header}\n{rows}{QUOTED}", [])
            for rows in (ROWS, WORDS)
            for header in ('"Código"x;Nombre;PVP', "Código;Nombre;PVP;;Nota", "Código;PVP 2")
        ),
        ("Nombre;;;;\nA1;Perno;1;2;3\nA2;Tuerca;2;3;4\nA3;Clavo;2;3;4\n", ["1"]),
    ],
)
def test_no_row_is_proposed_as_the_line_of_the_names(
    tmp_path: Path, text: str, proposed: list[str]
) -> None:
    assert re.findall(r"--header-row (\d+)", error_of(tmp_path, text)) == proposed


@pytest.mark.parametrize(
    ("text", "known", "columns"),
    [
        # a header without a doubt
        (f"Desde;01/05/2024;Hasta\n{NAMES}{WORDS}", "Código;PVP", "Código;Nombre;PVP"),
        (f"{NAMES}ANA;Nombre;ROMA\n{WORDS}", "PVP;Código", "Código;Nombre;PVP"),
        ("Código;;Código;PVP\nA;B;C;D\n", "Código_2;column_2", "Código;column_2;Código_2;PVP"),
        # one with fewer cells than the table is not it, nor is one name, which may be a cell
        (f"Código;PVP\nx;1\n\n{NAMES}{ROWS}", "Código;PVP", "Código;Nombre;PVP"),
        (f"x;Código;5\n{NAMES}{ROWS}", "Código", "x;Código;5"),
    ],
)
def test_a_line_with_all_known_columns_is_the_header(
    tmp_path: Path, text: str, known: str, columns: str
) -> None:
    options = ReadOptions(known_columns=tuple(known.split(";")))
    assert table(tmp_path, text, options).columns == tuple(columns.split(";"))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("Código;;Nombre;PVP\nA1;Tornillo;12,50;\nA2;Tuerca;0,30;\n", "no name for column 2"),
        (f"Código;PVP\n{ROWS}", "line 1 looks like the header, but has 2 cells"),
    ],
)
def test_known_columns_that_are_shifted_are_refused(
    tmp_path: Path, text: str, problem: str
) -> None:
    assert problem in error_of(tmp_path, text, ReadOptions(known_columns=("Código", "PVP")))


OTHER = "Cliente;Ciudad;Saldo\nC1;Roma;10\nC2;Pisa;20\n"
TABLES: list[tuple[str, str, dict[str, Any]]] = [
    ("Tienda;Ciudad;Ventas\n" + "1;Madrid;1\n" * 100 + "\nCódigo;Nombre;Color;PVP;Nota\n" + "1;a;b;1,5;c\n" * 200, "",
     {"error": "two tables: lines 1 to 101 have 3 cells, and another one begins on line 103 … If it is that of line 1: "
      "--header-row 1. If it is that of line 103: --header-row 103."}),
    ("Empresa;ACME\nFecha;2024-05-01\nAlmacén;Central\nUsuario;ana\n\n" + NAMES + ROWS, "", {"preamble": (1, 2, 3, 4)}),
    ("Empresa;ACME\nFecha;2024-05-01\nAlmacén;Central\nUsuario;ana\nSerie;B\n\n" + NAMES + ROWS, "",
     {"error": "two tables"}),
    # an option that would read the file wrongly is not proposed: of 11 rows 2 would fit with that of line 1
    ("Cliente;Saldo;Zona\n1;5;N\n2;5;N\n\nCódigo;Nombre;PVP;Nota\n" + "A1;x;1,5;n\n" * 9, "",
     {"error": "or choose one. If it is that of line 5: --header-row 5."}),
    *((f"{NAMES}{ROWS}\n{second}", "", {"error": "two tables: line 6 has names where the rows have numbers"})
      for second in (OTHER, "Cliente;Ciudad\nAna;Roma 1\nEva;Pisa 2\n", "Ref;Nombre;Precio 2024\nx;A3;4\n",
                     "Ref;;Precio\nx;A3;4\n")),
    (f"{NAMES}{ROWS}\n{OTHER}", "header_row=1", {"rows": [2, 3, 4, 6, 7, 8]}),
    *((f"{NAMES}{rows}{blank}Nombre;Código;PVP\nTornillo;A1;1,50\n", "",
       {"error": f"two tables: line {rows.count(chr(10)) + 2 + bool(blank)} has names"})
      for rows in (ROWS, MANY) for blank in ("", "\n", ";;\n")),
    *((f"{NAMES}{rows}{header}\nC1;Roma;10\nC2;Pisa;20\n", "",
       {"error": "two tables: line {0} has names … If line {0} has the names: --header-row {0}. If it is a row: "
        "--header-row 1.".format(rows.count("\n") + 2)})
      for rows in (ROWS, MANY)
      for header in ("Cliente;Ciudad;Saldo", "Ref;Nombre;PVP", "Código;Nombre;Precio", "nombre;código;pvp")),
    # a line with broken quotes is no blank line: the rows after it show the types too
    (NAMES + '"A1";"x";"ask"\n"A2";"y";"ask"\n"A3";"z"x;"5"\n' + "".join(f"A{n};n;{n}\n" for n in range(4, 30)) + OTHER,
     "", {"error": "two tables: line 31 has names"}),
    (f"{NAMES}{ROWS}VARIOS;Artículo;1,00\nPORTES;;gratis\nC1;Saldo;10\n", "", {"rejected": ""}),
    ("Código;PVP;;Cliente;Saldo\nA1;1,50;;C1;10\nA2;2,50;;C2;20\n;;;C3;30\n", "",
     {"error": "two tables side by side: columns 1 to 2, and those from column 4 on … --header-row 1"}),
    ("Código;PVP;;Cliente;Saldo\nA1;1,50;;C1;10\nA2;2,50;;C2;20\nA3;1;;C3;30\n", "", {"rows": [2, 3, 4]}),
    (OTHER * 2 + "Ref;Nombre;PVP;Nota\n" + "A1;x;1,5;n\n" * 9, "",
     {"error": "two tables: lines 1 to 6 have 3 cells, and another one begins on line 7"}),
    # one column, or many that are not of equal number
    ("a;b;c\na;b\na;b;c;d\na;b;c;d;e\na;b;c;d;e;f\na;b;c;d;e;f;g\nx\na;b;c;d;e;f;g;h\n", "",
     {"error": "most lines contain a semicolon, but not as cells of equal number: 0 to 7 … --delimiter semicolon"}),
    ("".join(f'"{line}"\n' for line in (NAMES + ROWS).splitlines()), "",
     {"error": "most lines contain a semicolon, but not as cells of equal number: 2 to 2 a line"}),
    *(("".join(f'"{line}"\n' for line in f"{NAMES}{ROWS}".replace(";", mark).replace("Nombre", name).splitlines()), "",
       {"error": "without quotes around whole lines. If there is one column: --delimiter"})
      for mark in ";," for name in ("Nombre", '""Nombre""')),
    ("code,name,price\nA0,Perno,12\n" + "A1,Perno,12,50\n" * 4, "",
     {"error": "lines 1 to 2 have 3 cells, and line 3, which is a row, has 4 … Fix the lines with too few"}),
    ("8;x\n7;b\n7;b;c;d\n7;b;c;d;e\n7;b;c;d;e;f\nx\n", "",
     {"error": "as cells of equal number: 0 to 5 a line … If a semicolon separates the cells: --delimiter semicolon."}),
    (OTHER + "\n" + "".join(f'"{line}"\n' for line in (NAMES + ROWS).splitlines()), "",
     {"error": "line 1, the header, has 3 names, but most rows have 1 cell"}),
]  # fmt: skip


LINES: list[tuple[str, str, dict[str, Any]]] = [
    (f"Listado\nFecha;2024-05-01\n\n{NAMES}{ROWS}\nTotal registros: 3\n", "",
     {"preamble": (1, 2), "header": (4,), "footnotes": (9,), "rows": [5, 6, 7]}),
    ('a;b\n\n1;2\n   \n"x\ny";4\n5;6\n', "", {"rows": [3, 5, 7], "rejected": ""}),
    ("a;b;c\n1;2;3\n1;2;3;4\n1;2\n1;2;3;;\n1;2;3\n", "", {"rejected": "3 too_long, 4 too_short, 5 too_long"}),
    ("a;b;c\n1;2;3\n1;2\n", "short_rows=fill", {"cells": [("1", "2", "3"), ("1", "2", "")]}),
    (f"{NAMES}{ROWS}A4;x".replace("\n", ";\n"), "", {"rejected": "5 too_short"}),
    ((NAMES + ROWS).replace("\n", ";\n") + "A4;Clavo 1,00;\n", "", {"rejected": "5 too_short"}),
    (f"{NAMES}{ROWS}12;Tornillo; inox;12,50\n".replace("\n", ";\n"), "", {"rejected": "5 too_long"}),
    ("a;b;a\nA1;x;1,50;7;8\n", "", {"header": (1,), "rejected": "2 too_long"}),  # or no row would be left
    # what is cut off or torn
    (f"{PEOPLE}Gil\n3;Eva;e@b.com;Roma\n4;Ada;a@b.com;Vic\n", "", {"rejected": "3 torn, 4 too_short, 5 torn"}),
    (f"{NAMES}{ROWS}Gil", "", {"rejected": "4 torn, 5 too_short"}),
    *((f"{PEOPLE}{last}\n", "", {"rejected": f"{torn}{4 + last.startswith(chr(10))} too_short", "footnotes": ()})
      for last, torn in (("\n3;Eva;e@b.com", ""), *((last, "3 torn, ") for last in (
          "4,Eva,e@b.com,Roma", "\n4,Eva,e@b.com,Roma", "3", "\n3", "28001 Madrid", "x|y", "\nx1;y", "\n0041",
          "\n12 345")))),
    *((f"{PEOPLE}{last}\n", "", {"rows": [2, 3], "rejected": "", "footnotes": lines})
      for last, lines in (("\nPrecios sin IVA, salvo error", (5,)), ("Total: 1.234,50", (4,)), ("Fin", (4,)),
                          *((text, (4,)) for text in ("Anzahl Datensätze: 2", "2 registos", "Numero di record: 2",
                                                      "Nombre d'enregistrements : 2")),

                          ("\nListado;;;", (5,)), ("\nNota\nVálido hasta mayo", (5, 6)), ("\n;;;\nNota", (6,)))),
    ("code;name\nA1;Ana\nA2;Eva\n\nLeo;\n", "", {"rows": [2, 3, 5], "footnotes": ()}),
    ('a;b\n1;2\n3;"x\n\nTotal"\n', "", {"cells": [("1", "2"), ("3", "x\n\nTotal")]}),
    ("name;size;qty;price\nPerno;x;1;5,00\nSous-total;190.0\nClavo;y;2;6,00\n", "", {"rejected": "3 too_short"}),
    # amounts alone, words of totals beside texts, and headings or labels, where all other rows begin with codes
    *((f"{STOCK}{line}\nA4;azul;1,00;7\n", "", {"rejected": f"5 {code}"})
      for line, code in ((";;5,00;12", "totals"), (";;5,00;", "totals"), ("Total;Tornillos;5,00;12", "totals"),
                         ("Tornillos;Total;5,00;12", "totals"), ("Total Tornillos;ACME;;12", "totals"),
                         ("Promedio;;;12", "totals"),
                         ("Familia;Tornillos;;", "rule"), (";Tornillos;;", "rule"), ("Fecha;01/02/2025;;", "rule"))),
    *((f"{STOCK}{line}\nA4;azul;1,00;7\n", "", {"rejected": ""})
      for line in ("A5;;;", ";Perno;5,00;12", "VARIOS;Perno;5,00;12", "VARIOS;;5,00;12", "A5;Total;5,00;12",
                   "Total Gas;Perno;gratis;")),
    # and where they begin with texts
    *((f"Nombre;Color;PVP;Stock\n{line}\nPerno;rojo;1,50;3\nTuerca;azul;2,50;4\nClavo;azul;1,00;5\n", "",
       {"rejected": f"2 {code}" if code else ""})
      for line, code in ((";;5,00;12", "totals"), ("Familia:;Tornillos;;", "rule"), ("Color;azul;;", "rule"),
                         ("Familia: Tornillos;;;", "rule"), ("Perno;;;", ""), ("Perno;azul;;", ""), ("Perno;;;5", ""))),
    ("Ciudad;Hombres;Mujeres\nRoma;1;2\n;3;4\nPisa;5;6\n;7;8\nBari;9;1\n", "", {"rejected": ""}),
    # a delimiter is missing, and another one too many
    *((STOCK + "".join(f"B{n};Perno;{n},50;9\n" for n in range(rows)) + f"{line}\n", "", {"rejected": rejected})
      for rows in (12, 300)
      for line, rejected in (("C1 Perno;1,50;3;", f"{rows + 5} shifted"), ("Perno;C1;1,50;3", f"{rows + 5} shifted"),
                             ("C1;3008;1,50;3", ""), ("C1;Perno;;3", ""))),
    *(("Nr;Preis;Datum\n" + "".join(f"A{n};{n},50;0{n % 9 + 1}.05.2025\n" for n in range(20)) + f"{line}\n", "",
       {"rejected": rejected})
      for line, rejected in (("B1;05.05.2025;", "22 shifted"), ("B1;7,50;05.05.2025", ""),
                             ("B1;1.250.000;5.5.2025", ""), (";999,50;1234", "22 totals"))),
    # what is no row
    *((f"code;name;kind;price;stock\n{units}\nA1;x;y;1;2\n;kg;x;3;4\n;;;€;5\nkg;m;;;\n", "", {"rejected": "2 rule"})
      for units in (";;;€/kg;m3/s", ";;;€;kg", ";;;(EUR);[kg]", ";;;EUR;Stück")),
    *((f"{COLORS}{total}\nA4;azul;Clavo;1,00\n{total}\n", "", {"rejected": "5 totals, 7 totals"})
      for total in ("TOTAL;;;3,55", "Total general:;;;12,85", ";Subtotal;;3,55", "Suma;;;", "Totales;;;1",
                    "Subtotal rojo;;;", "Total azul;;;1.003,55 €", "Total azul y verde;;;7", "Sous-total;;;7",
                    "Zwischensumme;;;7", "Soma;;;7", "TOTAL;3;4;1.234,50 €", "TOTAL;;;13806.55 EUR", "Subtotal;7;;12")),
    *((f"Código;Nombre;PVP\nA1;Perno;1,50\nA2;Tuerca;2,50\n{total}\nA4;Clavo;1,00\n", "", {"rejected": "4 totals"})
      for total in ("Somma;;9", "Summe;;", "Soma;3;9", "Sous-total Écrou;;9", "Insgesamt Rohr;;9",
                    "Subtotale Viti;;9")),
    *((f"Nombre;Alto;Peso\nPerno;1,50;2\nTuerca;2,50;3\n{row}\nClavo;1,00;4\n", "", {"rejected": rejected})
      for row, rejected in (("Suma;12;3", ""), ("Summe Rohr;;9", ""), ("Gesamtsumme;12;3", "4 totals"))),
    ("code;name;city;phone\n1;Ana;Vic;600\nTotal;Total SL;Reus;\n2;Eva;Olot;601\n", "", {"rejected": ""}),
    ("code;name;city;phone\n1;Ana;Vic;600\nTotal;;;\n2;Eva;Olot;601\n", "totals=keep", {"rejected": ""}),
    *((f"Marca;Nombre;Código;Color;PVP\nA;x;A1;rojo;1\n{row}\nB;x;A2;rojo;2\n", "", {"rejected": ""})
      for row in ("Total;;T1;;", "Subtotal;T1;;;", "Subtotal rojo;A5;;;9", "Total Gym;;;A1;", "Total;;x;;")),
    (f"{NAMES}A1;Total Gas SL;12,50\nA2;Subtotal;1,00\n;Total Gas 3;\n", "", {"rejected": ""}),
    ("CardCode,CardName,EmailAddress,ZipCode\nCardCode,CardName,E_Mail,ZipCode\nC1,Bar,a@b.com,01067\n", "",
     {"rejected": "2 repeated_header"}),
    ("Code,Name,Email\nCode,Bar,\nCode,Bar,a@b.com\n,Name,Email\n", "", {"rejected": ""}),
    # a second line of names, but not a row of words that has a number or a code
    *((f"Código;Nombre;PVP;Alta\n{line}\n" + "A01;Perno;1,50;01/02/2025\n" * rows, "", {"rejected": rejected})
      for line, rejected in (("FLD_CODE;FLD_NAME;FLD_PRICE;FLD_DATE", "2 repeated_header"),
                             ("(1);comercial;de venta;(1)", "2 repeated_header"),
                             (";comercial;;de alta", "2 repeated_header"), (";comercial;1,50;de alta", ""),
                             *((row, "") for row in ("VARIOS;Perno;gratis;01/02/2025", "VARIOS;Perno;1,50;nunca",
                                                     "VARIOS;;gratis;nunca")))
      for rows in (3, 300)),
    *((f"{title}\n{COLORS}{title}\n{COLORS}", "", {"rejected": "6 repeated_header, 7 repeated_header"})
      for title in ("Desde;01/01/2025;Hasta;31/01/2025", ";Fecha:;;31/01/2025", ";;Datos;")),
    *((f"{header}\n{row}\n{header}\n{row}\n", "", {"rejected": "3 repeated_header"})
      for header, row in (('"","Nombre","Ciudad"', '"r1","Ana","Roma"'), (";Nombre;Ciudad", "r1;Ana;Roma"),
                          ('="Código";="Nombre"', '="001";="Ana"'))),
    (f"{NAMES}------;--------;---\n{ROWS}======;========;===\n-;-;-\n", "", {"rejected": "2 rule, 6 rule"}),
    ("------------\n|code |PVP |\n------------\n|A1   |1,50|\n|A2   |2,50|\n------------\n", "",
     {"rejected": "3 rule, 6 rule"}),
    (" id | name \n----+------\n  1 | Ana\n  2 | Eva\n(2 rows)\n", "", {"rejected": "2 rule", "footnotes": (5,)}),
    ("Campaign,Clicks,Impr.\nBrand,1,2\nTotal: Account,1,2\nTotal Gas SL,1,2\n", "", {"rejected": "3 totals"}),
    ("code;name;price\nA1;x;1\nTOTALES: 2;;3\n", "", {"rejected": "3 totals"}),
    ("code;name;price\nA1;x;1\n\f\nA2;y;2\n", "", {"rows": [2, 4], "rejected": ""}),
    ("| id | name |\n|----|------|\n| 1 | Perno |\n| 2 | Tuerca |\n", "", {"rejected": "2 rule"}),
    (f"{NAMES}{ROWS}{';;' + chr(10)}{';;' + chr(10)}A4;Perno;1,00\n;;\n;;\nListado del 3 de mayo\n", "",
     {"rows": [2, 3, 4, 7], "rejected": "", "footnotes": (10,)}),
    *((f"{COLORS}{rows}LISTADO;;;\nPágina: 2;;;\nCÓDIGO;COLOR;NOMBRE;PVP\nA4;azul;Clavo;1,00\nA5;;;\n", "",
       {"rejected": ", ".join(f"{rows.count(chr(10)) + 5 + at} {code}" for at, code in
                              enumerate(("rule", "rule", "repeated_header")))})
      for rows in ("", "A9;rojo;Tuerca;1,50\n" * 300)),
]  # fmt: skip


@pytest.mark.parametrize(("text", "given", "expected"), [*HEADERS, *TABLES, *LINES])
def test_lines_are_header_or_rows_or_rejected_or_reported_or_asked_about(
    tmp_path: Path, text: str, given: str, expected: dict[str, Any]
) -> None:
    check(tmp_path, text, options(given), **expected)


_FURTHER = ";".join(f"Zusatzinformation - Art {n}" for n in range(1, 21))
_BLANK = ";".join(['""'] * 20)
BOOKINGS = f"""\
"EXTF";700;21;"Buchungsstapel";9;20240130140440439;;"RE";"";"";29098;55003;20240101;4
Umsatz (ohne Soll/Haben-Kz);WKZ Umsatz;Kurs;Konto;Belegdatum;Belegfeld 1;Belegfeld 2;Buchungstext;{_FURTHER};KOST1
""" + "".join(
    f'{n},50;"EUR";;{1200 + n};{n}01;"RE-{n}";"";"Text, {n} 5""";{_BLANK};7\n' for n in range(1, 4)
)


@pytest.mark.parametrize("given", [None, ReadOptions(header_row=2)])
def test_names_with_digits_below_a_line_of_another_width_are_the_header(
    tmp_path: Path, given: ReadOptions | None
) -> None:
    found = described(table(tmp_path, BOOKINGS.encode("cp1252"), given))
    assert (found["header"], found["preamble"], found["rows"]) == ((2,), (1,), [3, 4, 5])
    assert found["cells"][1][7] == 'Text, 2 5"'


@pytest.mark.parametrize("rows", range(4))
def test_a_line_about_the_file_may_be_wider_than_its_table(tmp_path: Path, rows: int) -> None:
    first = (
        '"EXTF";700;20;"Kontenbeschriftungen";3;20240130140440439;;"RE";"";"";29098;55003;20240101'
    )
    text = f"{first}\nKonto;Kontobeschriftung;SprachId\n" + '1200;"Bank";"de-DE"\n' * rows
    wide = "Empresa;ACME SL;Usuario;ana;Fecha;01/02/2025;Filtro;todos;Orden;código;Hoja;1\n"
    for data in (text, f"{wide}{NAMES}{ROWS}" if rows else text):
        found = described(table(tmp_path, data))
        assert (found["header"], found["preamble"]) == ((2,), (1,))
        assert len(found["rows"]) == (rows if data is text else 3)


@pytest.mark.parametrize(
    "above",
    [
        'Lista "especial, 3, 4, 5, 6\n"de, 2, 3, 4\n',
        "a,b,c,d\n" * 9,
        '"Lista\nde precios"\n',
        "\n'x\n",
    ],
)
def test_the_dialect_is_that_of_the_lines_from_the_given_header_on(
    tmp_path: Path, above: str
) -> None:
    line = above.count("\n") + 1
    rows = "A1;Perno\nA2;Tuerca, 5\nA3;Clavo\n"
    opened = table(tmp_path, f"{above}Código;Nombre\n{rows}", ReadOptions(header_row=line))
    assert (opened.columns, opened.format.delimiter) == (("Código", "Nombre"), ";")
    assert [row.line for row in rows_of(opened)[0]] == [line + 1, line + 2, line + 3]


@pytest.mark.parametrize(
    ("usual", "last", "rejected"),
    [
        ("42", "7", ""),
        ("42", "100", ""),
        ("600123123", "+34600123123", ""),
        ("", "Plaza 1", ""),
        ("EUR", "", ""),
        ("8410000000017", "84100", "62 torn"),
        ("2026-11-30", "2026-1", "62 torn"),
        ("EUR", "E", "62 torn"),
    ],
)
def test_the_last_cell_is_cut_off_only_if_it_is_the_beginning_of_the_others(
    tmp_path: Path, usual: str, last: str, rejected: str
) -> None:
    rows = [f"A{n:02};Perno {n * n};{usual}" for n in range(60)]
    text = "\n".join(["Código;Nombre;Dato", *rows, f"A99;Clavo;{last}"])
    check(tmp_path, text, rejected=rejected)


def test_a_code_that_begins_with_a_word_of_totals_is_no_total(tmp_path: Path) -> None:
    rows = [f"SKU-{n};7;{n};10" for n in range(60)]
    text = "\n".join(["sku;a;b;c", *rows, "TOTAL-5W30;7;90;10", "SOMA-1;7;91;1", ""])
    check(tmp_path, text, rejected="")
    check(tmp_path, f"{text}Total 62;7;91;631\n", rejected="64 totals")


def test_no_error_and_no_reason_holds_a_value(tmp_path: Path) -> None:
    text = 'a;b\n1;2\nSECRET;x;SECRET\n"SECRET"SECRET;1\nSECRET\nSECRET;\0SECRET\n3;4\n'
    _, rejected = rows_of(table(tmp_path, text, ReadOptions(quote='"')))
    assert [row.code for row in rejected] == ["too_long", "quoting", "too_short", "nul"]
    assert "SECRET" not in repr(rejected)
    for data, words in (
        (text, "line 3: 3 cells, but the header has 2"),
        ("_line;b\n1;2\n", "a column is named _line"),
    ):
        with pytest.raises(UsageError, match=words):
            list(table(tmp_path, data).batches())


def test_a_blank_line_at_the_end_of_a_block_ends_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"{NAMES}{ROWS}\nRef;;Precio\nx;A3;4\n"
    for size in range(60, 90):
        monkeypatch.setattr(encoding, "CHUNK_BYTES", size)
        assert "two tables: line 6 has names" in error_of(tmp_path, text)


@pytest.mark.parametrize(
    ("last", "count", "rejected", "is_noted"),
    [
        ("A99;Clavo;12", 60, "62 torn", False),
        ("A99;Clavo;12.5", 60, "62 torn", False),
        ("A99;Clavo;", 60, "", True),
        ("A99;Cla", 60, "62 too_short", False),
        ("A99;Clavo;1250.75", 60, "", False),
        ('A99;Clavo;"12.5"', 60, "", False),
        ("A99;Clavo;12\n", 60, "", False),
        ("A99;Clavo;12", 20, "", True),
        ("A99;12.50;Cla", 60, "", True),
        ("\nTotal registros: 60", 60, "", False),
    ],
)
def test_a_last_line_without_an_end_is_rejected_if_cut_and_noted_if_it_may_be(
    tmp_path: Path, last: str, count: int, rejected: str, is_noted: bool
) -> None:
    lines = [f"A{n:02};Perno {n * n};{n * 7}.50" for n in range(count)]
    if last.endswith("Cla") and ".50;" in last:
        lines = [f"A{n:02};{n * 7}.50;Perno {n * n}" for n in range(count)]
    text = "\n".join(["Código;Nombre;PVP", *lines, last])
    check(tmp_path, text, rejected=rejected)
    assert table(tmp_path, text).format.may_be_cut_off is is_noted
