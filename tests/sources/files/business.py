"""A generator of clean exports of business software in three languages, with the rows that they hold.

Titles, dates and blank lines above the header; units below it; notes and totals after the rows; inches, quotes and
addresses of several lines in cells. Nothing is damaged, so a careful person expects each row to be read.
"""

from __future__ import annotations

import csv
import io
import random
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from sources.errors import UsageError
from sources.files import RejectedRow, open_table

LANGUAGES: Final = {
    language: [line.strip().split("|") for line in lines.strip().split("\n")]
    for language, lines in {
        "es": """
            Código|Descripción|Familia|Precio|Stock|Dirección|Observaciones
            Tornillo|Tubería de cobre|Llave inglesa|Cañería|Señal|Pintura, blanca|Lámpara
            Madrid|A Coruña|Málaga|Logroño
            Fecha:|Empresa:|Almacén:
            Precios sin IVA|Precios válidos hasta fin de mes, salvo error|Fin del listado|Fuente: almacén central
            Calle Mayor|LISTADO DE ARTÍCULOS|Total""",
        "de": """
            Artikelnummer|Bezeichnung|Warengruppe|Preis|Bestand|Anschrift|Bemerkung
            Schraube|Kupferrohr|Schlüssel|Dübel, groß|Maßband|Größenschild|Leuchte
            München|Köln|Göttingen|Düsseldorf
            Datum:|Firma:|Lager:
            Preise ohne MwSt.|Alle Angaben ohne Gewähr, Irrtum vorbehalten|Ende der Liste|Quelle: Zentrallager
            Hauptstraße|ARTIKELLISTE|Gesamtsumme""",
        "en": """
            Item|Description|Category|Price|Stock|Address|Remarks
            Screw|Copper pipe|Wrench|Wall plug|Label|Paint, white|Lamp
            London|New York|Leeds|St. Ives
            Date:|Company:|Warehouse:
            Prices exclude VAT|Prices valid until the end of the month, errors excepted|End of list|Source: stock
            Main Street|LIST OF ARTICLES|Grand total""",
    }.items()
}
"""Names of columns, articles, places, labels above a table, notes below it; a street, a title, a total."""
SIZES: Final = ('1/2"', '5" x 3"', '27" monitor', '3/4"x1/2"', "Ø 12 mm", "12' x 8'", 'type "A"')


@dataclass(frozen=True)
class Export:
    """A file: its bytes, column names and rows, by their line."""

    content: bytes
    columns: tuple[str, ...]
    rows: dict[int, tuple[str, ...]]


def export(seed: int) -> Export:
    generator = random.Random(f"business {seed}")
    language = generator.choice(tuple(LANGUAGES))
    names, articles, cities, labels, notes, (street, title, total_word) = LANGUAGES[language]
    decimal = "." if language == "en" else ","
    delimiter = generator.choice(";;;\t|,") if decimal == "," else generator.choice(",,;\t")
    width = generator.randint(4, len(names))
    is_contacts = generator.random() < 0.3
    columns = tuple((names[0], "E-mail", "Name 1", "Tel. 2", "ZIP", *names[5:]) if is_contacts else names)[:width]
    end = generator.choice(("\r\n", "\r\n", "\n"))
    out = io.StringIO()
    quoting: Literal[0, 1] = csv.QUOTE_ALL if generator.random() < 0.15 else csv.QUOTE_MINIMAL
    writer = csv.writer(out, delimiter=delimiter, lineterminator=end, quoting=quoting)
    is_padded = generator.random() < 0.5  # saved by a spreadsheet: each line has all cells

    def write(*cells: str) -> None:
        writer.writerow([*cells, *[""] * (width - len(cells))] if is_padded else cells)

    def blank() -> None:
        if is_padded:
            write("")
        else:
            out.write(end)

    if generator.random() < 0.35:
        write(title)
        for label in generator.sample(labels, generator.randrange(len(labels) + 1)):
            value = "02/01/2025" if label == labels[0] else generator.choice(cities)
            write(*generator.choice(((label, value), (label, value), (f"{label} {value}",), (label, "", value))))
        if generator.random() < 0.7:
            blank()
    write(*columns)
    if not is_contacts and generator.random() < 0.08:
        write("", "", "", "€", *(["kg"] if width > 4 else []))
    rows = {}
    total = 0
    for number in range(generator.randint(3, 60)):
        cents = generator.randint(1, 99_999)
        total += cents
        address = f"{street} {generator.randint(1, 99)}"
        if generator.random() < 0.3:
            address += f"\n{generator.randint(1000, 99999)} {generator.choice(cities)}"
        name = generator.choice(articles)
        if generator.random() < 0.2:
            name += " " + generator.choice(SIZES)
        if number and number % 17 == 0 and generator.random() < 0.2:
            blank()
        code, last = f"{generator.choice('ABC')}{number:04}", ("", "", generator.choice(notes), "x")
        price = f"{cents // 100}{decimal}{cents % 100:02}"
        cells = [name, generator.choice(articles[:3]), price, str(generator.randint(0, 500))]
        if is_contacts:
            email = f"{generator.choice('abcdefg')}{number}@example.com"
            cells = [
                generator.choice((email, email, "")),
                generator.choice(("Ana Gil", "O'Brien & Sons", "Müller GmbH", "Peña, SL", "d’Artagnan")),
                generator.choice(("+34 600 112 233", "089/123 45-6", "", "0041 44 123 45 67")),
                f"{generator.randint(0, 99999):05}",
            ]
        rows[out.getvalue().count("\n") + 1] = row = (code, *cells, address, generator.choice(last))[:width]
        write(*row)
    if not is_contacts and generator.random() < 0.2:
        if generator.random() < 0.3:
            blank()
        write(total_word, "", "", f"{total // 100}{decimal}{total % 100:02}")
    if generator.random() < 0.25:
        blank()
        for note in generator.sample(notes, generator.randint(1, 2)):
            write(note)
    encoding = generator.choice(("utf-8", "utf-8-sig", "cp1252", "cp1252", "utf-16"))
    text = out.getvalue().removesuffix(end if generator.random() < 0.1 else "")
    return Export(text.encode(encoding, "replace"), columns, rows)


def judged(found: Export, folder: Path) -> tuple[list[str], str]:
    """What is read wrongly without a word, and why the file is refused or the first row of it is rejected."""
    path = folder / "in.csv"
    path.write_bytes(found.content)
    try:
        table = open_table(path)
        rows = list(table.rows())
    except UsageError as error:
        return [], f"refused: {error}"
    read = {row.line: row.cells for row in rows if not isinstance(row, RejectedRow)}
    errors = [] if table.columns == found.columns else [f"the columns are {table.columns}"]
    errors += [f"line {line} is not a row: {cells}" for line, cells in read.items() if line not in found.rows]
    rejected = [row for row in rows if isinstance(row, RejectedRow) and row.line in found.rows]
    lines = {row.line for row in rejected}
    for line, cells in found.rows.items():
        if line not in lines and read.get(line) != cells:
            errors.append(f"line {line} was changed: {cells} → {read.get(line)}")
    return errors, f"line {rejected[0].line} is rejected: {rejected[0].reason}" if rejected else ""
