"""A generator of damaged CSV files with the clean table beside: one damage each, or a pair.

Every damage is a function that changes the lines of a file. The reader may raise an error, or return each clean row
either equal on its own line or rejected with that line. A changed row, a row that is lost, or a line of something else
that is read as a row is a silent error, which `silent_errors` reports.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from sources.errors import UsageError
from sources.files import RejectedRow, open_table

WORDS = (
    "Tornillo", "Tuerca", "Arandela", "Perno", "Peña", "Clavo", "Bisagra", "Cañería", "Llave", "Muelle", "Ácido",
    "Tubería", "Bañera", "Júbilo", "Öse",
)  # fmt: skip
COLUMNS = ("Código", "Nombre", "Color", "PVP", "Nota")


@dataclass
class Line:
    """A line of the file, or several of a quoted cell; `row` is the index of the clean row on it."""

    text: str
    row: int | None = None
    end: str = ""


@dataclass
class Document:
    """A file before it is written. `rows` are the clean rows; `lines` have the header at `header`."""

    generator: random.Random
    delimiter: str
    rows: list[list[str]]
    lines: list[Line]
    quotes_all: bool
    header: int = 0
    has_header: bool = True
    encoding: str = "utf-8"
    end: str = "\n"
    suffix: bytes = b""
    touched: set[int] = field(default_factory=set)

    @property
    def header_line(self) -> Line:
        """The line of the header; without one, a line that is in no file."""
        return self.lines[self.header] if self.has_header else Line("")

    def a_row(self) -> Line:
        """A line with a row that no other damage has changed."""
        free = [line for line in self.lines if line.row is not None and line.row not in self.touched]
        line = self.generator.choice(free)
        assert line.row is not None
        self.touched.add(line.row)
        return line

    def written(self) -> bytes:
        text = "".join(line.text.replace("\n", self.end) + (line.end or self.end) for line in self.lines)
        return text.encode(self.encoding, "replace") + self.suffix

    def line_numbers(self) -> dict[int, int]:
        """The 1-based line of each clean row that is still in the file."""
        numbers, number = {}, 1
        for line in self.lines:
            if line.row is not None:
                numbers[line.row] = number
            number += line.text.count("\n") + 1
        return numbers


def clean(seed: str) -> Document:
    """An undamaged file."""
    generator = random.Random(seed)
    delimiter = generator.choice(";;,\t|")
    quotes_all = generator.random() < 0.3
    rows = []
    for number in range(generator.randint(12, 40)):
        note = " ".join(generator.sample(WORDS, generator.randint(1, 3)))
        if generator.random() < 0.2:
            note = f"{note}{delimiter} {generator.choice(WORDS)}"
        if generator.random() < 0.1:
            note += f'\n{generator.choice(WORDS)} "x"'
        price = f"{generator.randint(0, 999)}{',' if delimiter == ';' else '.'}{generator.randint(0, 99):02}"
        color = generator.choice(("rojo", "azul", "verde"))
        rows.append([f"A{number:04}", " ".join(generator.sample(WORDS, 2)), color, price, note])
    document = Document(generator, delimiter, rows, [], quotes_all)
    document.end = generator.choice(("\n", "\n", "\r\n", "\r"))
    document.encoding = generator.choice(("utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16"))
    document.lines = [
        Line(joined(list(COLUMNS), document)),
        *(Line(joined(row, document), at) for at, row in enumerate(rows)),
    ]
    return document


def joined(cells: list[str], document: Document) -> str:
    """Cells as a line of CSV."""
    mark = document.delimiter
    texts = []
    for cell in cells:
        needs = document.quotes_all or mark in cell or '"' in cell or "\n" in cell
        texts.append('"' + cell.replace('"', '""') + '"' if needs else cell)
    return mark.join(texts)


def _places(line: Line, mark: str) -> list[int]:
    """Positions of delimiters outside of quotes."""
    places, inside = [], False
    for at, char in enumerate(line.text):
        inside ^= char == '"'
        if char == mark and not inside:
            places.append(at)
    return places


# --- damages ---------------------------------------------------------------------------------------------------------


def extra_delimiter(document: Document) -> None:
    line = document.a_row()
    at = document.generator.choice([*_places(line, document.delimiter), len(line.text)])
    line.text = line.text[:at] + document.delimiter + line.text[at:]


def missing_delimiter(document: Document) -> None:
    line = document.a_row()
    at = document.generator.choice(_places(line, document.delimiter))
    line.text = line.text[:at] + " " + line.text[at + 1 :]


def trailing_delimiter_everywhere(document: Document) -> None:
    for line in document.lines:
        line.text += document.delimiter


def trailing_delimiter_in_some_rows(document: Document) -> None:
    for _ in range(3):
        document.a_row().text += document.delimiter


def padding(document: Document) -> None:
    for line in document.lines:
        for at in reversed(_places(line, document.delimiter)):
            line.text = f"{line.text[: at + 1]} {line.text[at + 1 :]}"


def stray_opening_quote(document: Document) -> None:
    line = document.a_row()
    at = document.generator.choice(_places(line, document.delimiter))
    line.text = f'{line.text[: at + 1]}"{line.text[at + 1 :]}'


def two_stray_quotes(document: Document) -> None:
    for _ in range(2):
        stray_opening_quote(document)


def text_after_a_quote(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    line.text = f'"{cells[0]}"x' + joined(["", *cells[1:]], document).removeprefix('""')


def quote_inside_a_cell(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    mark = document.delimiter
    line.text = mark.join([cells[0], f'5"Perno{mark} inox"', *cells[3:4], "x"])


def backslash_escapes(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    line.text = joined(cells[:4], document) + f'{document.delimiter}"a \\"b\\" c"'
    cells[4] = 'a "b" c'


def blank_lines(document: Document) -> None:
    for _ in range(3):
        at = document.generator.randint(1, len(document.lines))
        document.lines.insert(at, Line(document.generator.choice(["", "  "])))


def broken_row(document: Document) -> None:
    line = document.a_row()
    at = document.generator.choice(_places(line, document.delimiter))
    line.text = line.text[:at] + "\n" + line.text[at + 1 :]


def no_header(document: Document) -> None:
    if document.has_header:
        del document.lines[document.header]
        document.has_header = False


def repeated_header(document: Document) -> None:
    header = document.header_line.text
    document.lines.insert(document.generator.randint(document.header + 2, len(document.lines)), Line(header))


def short_header(document: Document) -> None:
    line = document.header_line
    line.text = joined(list(COLUMNS[:-1]), document)


def long_header(document: Document) -> None:
    line = document.header_line
    line.text = joined([*COLUMNS, "Extra"], document)


def quoted_wrongly_header(document: Document) -> None:
    line = document.header_line
    line.text = f'"{COLUMNS[0]}"x{document.delimiter}' + joined(list(COLUMNS[1:]), document)


def header_of_another_dialect(document: Document) -> None:
    other = "," if document.delimiter != "," else ";"
    document.header_line.text = other.join(COLUMNS)


def title(document: Document) -> None:
    document.lines[:0] = [Line("Listado de precios"), Line("")]
    document.header += 2


def metadata(document: Document) -> None:
    mark = document.delimiter
    document.lines[:0] = [Line(f"Empresa{mark}ACME"), Line(f"Fecha{mark}2024-05-01"), Line("")]
    document.header += 3


def footnote(document: Document) -> None:
    document.lines += [Line(""), Line(f"Total registros: {len(document.rows)}")]


def totals(document: Document) -> None:
    mark = document.delimiter
    document.lines.append(Line(document.generator.choice(["TOTAL", "Suma", "Total general:"]) + mark * 3 + "99" + mark))


def subtotals(document: Document) -> None:
    mark = document.delimiter
    at = document.generator.randint(document.header + 2, len(document.lines))
    document.lines.insert(at, Line(f"{mark}Subtotal{mark}{mark}12{mark}"))


def truncated(document: Document) -> None:
    line = document.lines[-1]
    if line.row is None or line.row in document.touched:
        return
    document.touched.add(line.row)
    line.text = line.text[: _places(line, document.delimiter)[2]]


def mixed_line_ends(document: Document) -> None:
    for line in document.lines[1::3] if document.end != "\r" else ():
        line.end = document.generator.choice(("\n", "\r\n"))


def nul(document: Document) -> None:
    line = document.a_row()
    line.text = line.text[:1] + "\0" + line.text[1:]


def padded_end(document: Document) -> None:
    document.suffix = ("\x1a" + "\0" * document.generator.randint(0, 9)).encode(
        document.encoding.replace("utf-16", "utf-16-le")
    )


def another_code_page(document: Document) -> None:
    document.encoding = document.generator.choice(("cp850", "mac-roman", "cp437"))


def two_encodings(document: Document) -> None:
    if document.encoding in ("utf-8", "cp1252"):
        line = document.delimiter.join(["A9999", "Peña", "x", "1", "ñ"])
        document.suffix = line.encode("cp1252" if document.encoding == "utf-8" else "utf-8")


def second_table(document: Document) -> None:
    mark = document.delimiter
    width = document.generator.choice((2, 3, 5, 6))
    names = ["Cliente", "Ciudad", "Saldo", "Zona", "Agente", "Ruta"][:width]
    rows = [mark.join([f"C{n}", "Roma", f"{n}0", "Norte", "Ana", "R"][:width]) for n in range(4)]
    document.lines += [Line(""), Line(mark.join(names)), *map(Line, rows)]


def first_table(document: Document) -> None:
    mark = document.delimiter
    rows = [mark.join([f"C{n}", "Roma", f"{n}0"]) for n in range(4)]
    document.lines[:0] = [Line(mark.join(["Cliente", "Ciudad", "Saldo"])), *map(Line, rows), Line("")]
    document.header += 6


DAMAGES: tuple[Callable[[Document], None], ...] = (
    extra_delimiter, missing_delimiter, trailing_delimiter_everywhere, trailing_delimiter_in_some_rows, padding,
    stray_opening_quote, two_stray_quotes, text_after_a_quote, quote_inside_a_cell, backslash_escapes, blank_lines,
    broken_row, no_header, repeated_header, short_header, long_header, quoted_wrongly_header, header_of_another_dialect,
    title, metadata, footnote, totals, subtotals, truncated, mixed_line_ends, nul, padded_end, another_code_page,
    two_encodings, second_table, first_table,
)  # fmt: skip


def damaged(seed: int, count: int) -> tuple[Document, str]:
    """A file with so many damages, and their names."""
    document = clean(f"clean {seed}")
    chosen = random.Random(f"damage {seed}").sample(DAMAGES, count)
    for damage in chosen:
        damage(document)
    return document, "+".join(damage.__name__ for damage in chosen)


def silent_errors(document: Document, folder: Path) -> tuple[list[str], bool]:
    """What was read wrongly without a word; and whether the file was refused as a whole."""
    path = folder / "in.csv"
    path.write_bytes(document.written())
    accepted: dict[int, tuple[str, ...]] = {}
    rejected: set[int] = set()
    try:
        table = open_table(path)
        for row in table.rows():
            if isinstance(row, RejectedRow):
                rejected |= set(range(row.line, row.last_line + 1))
            else:
                accepted[row.line] = row.cells
    except UsageError:
        return [], True
    left_out = {*table.format.footnotes, *table.format.preamble}
    errors = []
    rows_by_line = {number: document.rows[row] for row, number in document.line_numbers().items()}
    touched = {number for row, number in document.line_numbers().items() if row in document.touched}
    for number, cells in rows_by_line.items():
        found = accepted.pop(number, None)
        if found is None and number not in rejected and not (number in left_out and number in touched):
            errors.append(f"line {number} is lost")
        elif found is not None and not _is_equal(found, [_as_read(cell, document) for cell in cells]):
            errors.append(f"line {number} was changed: {cells} → {found}")
    errors += [f"line {number} is not a row: {cells}" for number, cells in accepted.items()]
    return errors, False


def _as_read(cell: str, document: Document) -> str:
    return cell.replace("\n", document.end).strip()


def _is_equal(found: tuple[str, ...], cells: list[str]) -> bool:
    """Equal but for spaces around cells, and for empty cells of a column that only the header has."""
    return [cell.strip() for cell in found[: len(cells)]] == cells and not any(found[len(cells) :])
