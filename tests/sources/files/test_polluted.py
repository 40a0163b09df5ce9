"""Damaged CSV files are read equal or refused, never silently wrong: each damage alone, and many pairs.

Each damage changes other places of the text, so that any of them can be combined. The reader may refuse a damaged file,
or return each clean row either equal or rejected. A changed row, a row that is lost or read twice, a line of something
else that is read as a row, a column under another name, and a difference between the two readers are silent errors,
which `silent_errors` reports.
"""

from __future__ import annotations

import csv
import random
import re
from collections.abc import Callable, Collection
from itertools import combinations
from pathlib import Path

from orderbridge.sources.errors import UsageError
from tests.sources.files.reading import rows_of, table

HEADER = "Código;Nombre;Color;PVP;Nota\n"
CLEAN = f"""{HEADER}A0001;Tornillo inox;rojo;12.50;Peña
A0002;Tuerca zinc;azul;0.30;Clavo
A0003;Perno Llave;rojo;7.05;"Öse; Muelle"
A0004;Bañera Ácido;verde;999.00;Tuerca
A0005;Tubería;rojo;3.10;Júbilo
A0006;Arandela;azul;45.00;Bisagra
A0007;Clavo Perno;verde;0.99;Ácido zinc
A0008;Muelle;rojo;15.25;"two
lines ""x"" y"
A0009;Cañería Llave;azul;8.00;Perno
A0010;Bisagra;verde;61.70;Tornillo
A0011;Llave;rojo;5.55;Muelle inox
A0012;Ácido;azul;20.00;Cañería
A0013;Öse;verde;1.00;Arandela
A0014;Peña;rojo;33.30;Clavo
"""
Damage = Callable[[str], str]


def put(old: str, new: str) -> Damage:
    return lambda text: text.replace(old, new, 1)


def above(code: str, lines: str) -> Damage:
    return put(f"\nA{code:>04};", f"\n{lines}A{code:>04};")


def below(lines: str) -> Damage:
    return lambda text: text + lines


def over(lines: str) -> Damage:
    return lambda text: lines + text


DAMAGES: dict[str, Damage] = {
    "missing delimiter": put("0002;Tuerca", "0002 Tuerca"),
    "extra delimiter": put("Perno Llave;", "Perno;Llave;"),
    "broken row": put("Bañera Ácido;", "Bañera\n"),
    "two stray quotes": lambda text: text.replace("05;T", '05;"T').replace("45.00;B", '45.00;"B'),
    "doubled quote after a stray one": put("A0012;Ácido;", 'A0012"Ácido; 60""";'),
    "text after a quote": put("A0007;", '"A0007"x;'),
    "quote inside a cell": put("A0009;Cañería Llave;", 'A0009;5"Cañería; inox";'),
    "lone return in a cell": put("Tornillo inox;", "Tornillo\rinox;"),
    "space before quotes": put("A0010;Bisagra;verde", ' "A0010"; "Bisagra"; "verde"'),
    "backslash escapes": put("Muelle inox", '"a \\"b\\" c"'),
    "other delimiter in some rows": lambda text: re.sub(
        "A001[23].*", lambda row: row[0].replace(";", "^"), text
    ),
    "nul": put("Peña;rojo;3", "Pe\0ña;rojo;3"),
    "byte order mark before a row": put("A0011", "\ufeffA0011"),
    "short header": put(";Nota\n", "\n"),
    "quoted wrongly header": put("Código;", '"Código"x;'),
    "header that lacks a delimiter": lambda text: re.sub(";[^;]*\n(?=A|$)", ";\n", text).replace(
        "o;N", "oN", 1
    ),
    "sep line": over("sep=;\n"),
    "false sep line": over("sep=^\n"),
    "trailing delimiter everywhere": lambda text: re.sub("\n(?!lines)", ";\n", text),
    "mixed line ends": lambda text: re.sub("(?<=[0-9a-o])\n(?!lines)", "\r\n", text),
    "padded end": below("\x1a\0\0"),
    "blank lines": above("3", "\n  \n\n"),
    "totals": below("TOTAL;;;99;\n"),
    "subtotals": lambda text: above("10", "Subtotal azul;;;7;\n")(
        above("4", "Subtotal rojo;;;110;\n")(text)
    ),
    "titles of pages": above("6", f"LISTADO;;;;\nPágina: 2;;;;\n{HEADER}"),
    "rule below the header": above("1", "------;------;-----;---;----\n"),
    "repeated header": above("12", HEADER),
    "metadata": over("Empresa;ACME\nFecha;2024-05-01\n\n"),
    "title as wide as the table": over("Desde;01/05/2024;Hasta;31/05/2024;7\n"),
    "titles as wide as the table on each page": lambda text: above(
        "6", "Desde;01/05/2024;Hasta;31/05/2024;7\n"
    )(f"Desde;01/05/2024;Hasta;31/05/2024;7\n{text}"),
    "footnote": below("\nTotal registros: 14\n"),
    "second table": below("\nCliente;Ciudad;Saldo\n" + "C1;Roma;10\nC2;Pisa;20\n" * 2),
    "second table of equal length": below(
        "\nCliente;Ciudad;Zona;Saldo;Agente\n" + "C1;Roma;Norte;10;Ana\n" * 14
    ),
    "table amid the rows": below("Cliente;Ciudad;Zona;Saldo;Agente\nC1;Roma;Norte;10;Ana\n"),
    "table in another order": below("Nombre;Código;Color;PVP;Nota\n" + "Perno;B1;rojo;1;x\n" * 20),
    "apostrophe before a code": put("A0013", "'A0013"),
}
ALSO_RIGHT = {
    ("A0011", "Llave", "rojo", "5.55", 'a "b" c'),
    ("'A0013", "Öse", "verde", "1.00", "Arandela"),
}
"""Rows as some damages leave them."""
HARMLESS = (
    "title as wide as the table",
    *(
        "trailing delimiter everywhere",
        "metadata",
        "totals",
        "footnote",
        "subtotals",
        "sep line",
        "blank lines",
    ),
    *("repeated header", "titles of pages", "rule below the header", "mixed line ends"),
)
"""Damages that cost no row of the clean table."""


def silent_errors(names: Collection[str], folder: Path, variation: int) -> tuple[list[str], str]:
    """What is read wrongly without a word; and why the file is refused, or which of its clean rows are rejected.

    The `variation` decides delimiter, line ends and encoding.
    """
    dialect = random.Random(variation)
    mark, end = dialect.choice(";;,\t|"), dialect.choice(("\n", "\n", "\r\n", "\r"))
    encoding = dialect.choice(("utf-8", "utf-8", "utf-8-sig", "utf-16", "cp1252"))
    text = CLEAN
    for name in names:
        text = DAMAGES[name](text)
    text = text.replace("\ufeff", "ï»¿") if encoding == "cp1252" else text  # the bytes of the mark
    data = (text if "\r\n" in text else text.replace("\n", end)).replace(";", mark).encode(encoding)
    try:
        opened = table(folder, data)
        rows, rejects = rows_of(opened)
    except UsageError as error:
        return [], f"refused: {error}"
    _, *clean = map(
        tuple, csv.reader(CLEAN.replace(";", mark).splitlines(keepends=True), delimiter=mark)
    )
    accepted = [_plain(row.cells) for row in rows]
    known = [
        _plain((*row[:4], "") if "header that lacks a delimiter" in names else row) for row in clean
    ]
    errors = [f"not a row: {row}" for row in accepted if row not in known and row not in ALSO_RIGHT]
    if rows and _plain(opened.columns) != _plain(HEADER.split(";")):
        errors.append(f"the columns are {opened.columns}")
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    rejected = "\n".join(line for row in rejects for line in lines[row.line - 1 : row.last_line])
    for row in known:
        code = row[0][1:]
        count = sum(code in other[0] for other in accepted) + (code in rejected)
        errors += [f"{row[0]} is there {count} times"] if count != 1 else []
    return errors, rejected if any(row[0] in rejected for row in known) else ""


def _plain(cells: Collection[str]) -> tuple[str, ...]:
    """The cells without spaces around them, without empty ones at the end, and with line ends of one form."""
    texts = [cell.replace("\r\n", "\n").replace("\r", "\n").strip() for cell in cells]
    while texts and not texts[-1]:
        texts.pop()
    return tuple(texts)


def test_no_damage_is_silent(tmp_path: Path) -> None:
    pairs = random.Random(1).sample([*combinations(DAMAGES, 2)], 150)
    for variation, names in enumerate([*((name,) for name in DAMAGES for _ in range(4)), *pairs]):
        assert silent_errors(names, tmp_path, variation)[0] == [], (names, variation)


def test_what_costs_no_row_is_read_whole(tmp_path: Path) -> None:
    for variation, names in enumerate(combinations(HARMLESS, 2)):
        assert silent_errors(names, tmp_path, variation) == ([], ""), (names, variation)
