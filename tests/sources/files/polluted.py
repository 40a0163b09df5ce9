"""A generator of damaged CSV files with the clean table: one damage each, or several.

Every damage is a function that changes the lines of a file. The reader may raise an error, or return each clean row
either equal on its own line or rejected with that line. A changed row, a row that is lost or read twice, a line of
something else that is read as a row, a column under another name, and a difference between the two readers are silent
errors, which `silent_errors` reports.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sources.errors import UsageError
from sources.files import RejectedRow, open_table
from tests.sources.files.reading import exact_rows

WORDS = ("Tornillo", "Tuerca", "Arandela", "Perno", "Peña", "Clavo", "Bisagra", "Cañería", "Llave", "Ácido", "Öse")
COLUMNS = ["Código", "Nombre", "Color", "PVP", "Nota"]
OTHER_TABLE = ["Cliente", "Ciudad", "Zona", "Saldo", "Agente"], ["C1", "Roma", "Norte", "10", "Ana"]


@dataclass
class Line:
    """A line of the file, or several of a quoted cell; `cells` are those of the clean row on it."""

    text: str
    cells: list[str] = field(default_factory=list)
    is_touched: bool = False


@dataclass
class Document:
    """A file before it is written; its lines end in turn with one of `ends`."""

    generator: random.Random
    mark: str
    ends: tuple[str, ...]
    encoding: str
    header: Line
    lines: list[Line]
    suffix: str = ""

    def row(self) -> Line:
        """A line with a row that no other damage has changed."""
        line = self.generator.choice([line for line in self.lines if line.cells and not line.is_touched])
        line.is_touched = True
        return line

    def insert(self, *texts: str, at: int | None = None) -> int:
        """Inserts lines, somewhere below the first row, or at a distance from the header."""
        first = self.lines.index(self.header)
        place = self.generator.randint(first + 2, len(self.lines)) if at is None else first + at
        self.lines[place:place] = map(Line, texts)
        return place

    def append(self, *rows: Sequence[str]) -> None:
        self.lines += [Line(joined(row, self.mark)) for row in rows]

    def written(self) -> bytes:
        text = "".join(line.text + self.ends[n % len(self.ends)] for n, line in enumerate(self.lines))
        return (text + self.suffix).encode(self.encoding, "replace")

    def numbered(self) -> Iterator[tuple[int, Line]]:
        number = 1
        for line in self.lines:
            yield number, line
            number += line.text.count("\n") + line.text.count("\r") + 1


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def joined(cells: Sequence[str], mark: str) -> str:
    return mark.join(quoted(cell) if {mark, '"', "\n"} & {*cell} else cell for cell in cells)


def clean(seed: str) -> Document:
    generator = random.Random(seed)
    mark, rows = generator.choice(";;,\t|"), []
    for number in range(generator.randint(12, 40)):
        name, note = (" ".join(generator.sample(WORDS, 2)) for _ in range(2))
        note += generator.choice(("", "", "", f"{mark} {name}", f'\n{name} "x"'))
        price = f"{generator.randint(0, 999)}{',' if mark == ';' else '.'}{generator.randint(0, 99):02}"
        rows.append([f"A{number:04}", name, generator.choice(("rojo", "azul", "verde")), price, note])
    end = generator.choice(("\n", "\n", "\r\n", "\r"))
    encoding = generator.choice(("utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16"))
    header = Line(joined(COLUMNS, mark))
    return Document(
        generator, mark, (end,), encoding, header, [header, *(Line(joined(row, mark), row) for row in rows)]
    )


def _places(line: Line, mark: str) -> list[int]:
    places = [at for at, char in enumerate(line.text) if char == mark and line.text.count('"', 0, at) % 2 == 0]
    return places or [line.text.find(mark)]


def _cut(d: Document, between: str) -> Line:
    """Writes something else in place of a delimiter."""
    line = d.row()
    at = d.generator.choice(_places(line, d.mark))
    line.text = line.text[:at] + between + line.text[at + 1 :]
    return line


def _row(d: Document, write: Callable[[list[str]], str], **cells: str) -> Line:
    """The text of a row is another one, made of its cells, of which some change first: `c4="x"`."""
    line = d.row()
    for name, cell in cells.items():
        line.cells[int(name[1:])] = cell
    line.text = write(line.cells)
    return line


def _header(d: Document, text: str) -> None:
    d.header.text = text


def _every_line(d: Document, write: Callable[[str], str]) -> None:
    for line in d.lines:
        line.text = write(line.text)


def _other(d: Document) -> str:
    return "," if d.mark != "," else ";"


def header_that_lacks_a_delimiter(d: Document) -> None:
    """The rows end in an empty cell, so that they could be read with the names shifted."""
    for line in d.lines:
        if line.cells:
            line.cells[-1] = ""
            line.text = joined(line.cells, d.mark)
    _header(d, joined([COLUMNS[0] + COLUMNS[1], *COLUMNS[2:]], d.mark))


def table_in_another_order(d: Document) -> None:
    """Rows of an export with the columns in another order were pasted at the end, with their header."""
    rows = [[f"B{n}", "Perno", "rojo", "1", "x"] for n in range(d.generator.randint(1, 40))]
    d.append(*d.generator.choice(([], [""], [[""] * 5])))
    d.append(*([second, first, *rest] for first, second, *rest in [COLUMNS, *rows]))


def second_table(d: Document) -> None:
    width = d.generator.choice((2, 3, 5, 6))
    names = ["Cliente", "Ciudad", "Saldo", "Zona", "Agente", "Ruta"]
    rows = [names, *([f"C{n}", "Roma", f"{n}0", "Norte", "Ana", "R"] for n in range(4))]
    d.append("", *(row[:width] for row in rows))


def apostrophe_before_digits(d: Document) -> None:
    """As a spreadsheet marks codes as texts; it is neither a quote nor dropped."""
    for line in d.lines:
        if line.cells and line.text.count(code := line.cells[0]) == 1:
            line.cells[0] = f"'{code[1:]}"
            line.text = line.text.replace(code, line.cells[0])


DAMAGES: dict[str, Callable[[Document], object]] = {
    "missing_delimiter": lambda d: _cut(d, " "),
    "extra_delimiter": lambda d: _cut(d, d.mark * 2),
    "broken_row": lambda d: _cut(d, "\n"),
    "two_stray_quotes": lambda d: [_cut(d, f'{d.mark}"') for _ in range(2)],
    "doubled_stray_quotes": lambda d: _row(
        d, lambda cells: f'{cells[0]}{d.mark}"two\nlines"{d.mark}Pieza""Rojo{d.mark} inox""{d.mark}9', c1="unknown"),
    "text_after_a_quote": lambda d: _row(d, lambda cells: f'"{cells[0]}"x{d.mark}' + joined(cells[1:], d.mark)),
    "quote_inside_a_cell": lambda d: _row(
        d, lambda cells: d.mark.join([cells[0], f'5"Perno{d.mark} inox"', *cells[3:4], "x"])),
    "lone_return_in_a_cell": lambda d: _row(
        d, lambda cells: d.mark.join([cells[0], cells[1].replace(" ", "\r"), *cells[2:4], "x"])),
    "space_before_quotes": lambda d: _row(d, lambda cells: d.mark.join(f" {quoted(cell)}" for cell in cells)),
    "backslash_escapes": lambda d: _row(
        d, lambda cells: f'{joined(cells[:4], d.mark)}{d.mark}"a \\"b\\" c"', c4='a "b" c'),
    "other_delimiter_in_some_rows": lambda d: [_row(d, lambda cells: _other(d).join(cells)) for _ in range(3)],
    "nul": lambda d: _row(d, lambda cells: "A\0" + joined(cells, d.mark)),
    "byte_order_mark_before_a_row": lambda d: _row(
        d, lambda cells: ("ï»¿" if d.encoding == "cp1252" else "\ufeff") + joined(cells, d.mark)),
    "short_header": lambda d: _header(d, joined(COLUMNS[:-1], d.mark)),
    "quoted_wrongly_header": lambda d: _header(d, f'"{COLUMNS[0]}"x{d.mark}' + joined(COLUMNS[1:], d.mark)),
    "header_that_lacks_a_delimiter": header_that_lacks_a_delimiter,
    "sep_line": lambda d: d.lines.insert(0, Line(f"sep={d.mark}")),
    "false_sep_line": lambda d: d.lines.insert(0, Line(f"sep={_other(d)}")),
    "trailing_delimiter_everywhere": lambda d: _every_line(d, lambda text: text + d.mark),
    "mixed_line_ends": lambda d: setattr(d, "ends", ("\r\n", "\n")),
    "padded_end": lambda d: setattr(d, "suffix", "\x1a\0\0"),
    "blank_lines": lambda d: [d.insert(d.generator.choice(("", "  "))) for _ in range(3)],
    "totals": lambda d: d.append([d.generator.choice(["TOTAL", "Suma", "Total general:"]), "", "", "99", ""]),
    "subtotals_by_group": lambda d: [d.insert(f"Subtotal {name}{d.mark * 3}110{d.mark}") for name in ("rojo", "azul")],
    "titles_of_pages": lambda d: d.insert(f"LISTADO{d.mark * 4}", f"Página: 2{d.mark * 4}", d.header.text),
    "rule_below_the_header": lambda d: d.insert(d.mark.join("-" * len(name) for name in COLUMNS), at=1),
    "repeated_header": lambda d: d.insert(d.header.text),
    "metadata": lambda d: d.insert(f"Empresa{d.mark}ACME", f"Fecha{d.mark}2024-05-01", "", at=0),
    "footnote": lambda d: d.append("", [f"Total registros: {len(d.lines)}"]),
    "second_table": second_table,
    "second_table_of_equal_length": lambda d: d.append("", OTHER_TABLE[0], *[OTHER_TABLE[1]] * len(d.lines)),
    "table_amid_the_rows": lambda d: d.append(*OTHER_TABLE),
    "table_in_another_order": table_in_another_order,
    "apostrophe_before_digits": apostrophe_before_digits,
}  # fmt: skip


HARMLESS = (
    "metadata", "footnote", "totals", "subtotals_by_group", "sep_line", "blank_lines", "repeated_header",
    "titles_of_pages", "rule_below_the_header", "trailing_delimiter_everywhere", "mixed_line_ends",
)  # fmt: skip
"""Damages that cost no row of the clean table."""


def damaged(seed: int, count: int) -> tuple[Document, str]:
    chosen = random.Random(f"damage {seed}").sample(list(DAMAGES), count)
    return with_damages(seed, chosen), "+".join(chosen)


def with_damages(seed: object, damages: Sequence[str]) -> Document:
    """The clean file of a seed with these damages, in this order."""
    document = clean(f"clean {seed}")
    for name in damages:
        DAMAGES[name](document)
    return document


def silent_errors(document: Document, folder: Path) -> tuple[list[str], str]:
    """What was read wrongly without a word; and why the file is refused, or which of its clean rows are rejected."""
    path = folder / "in.csv"
    path.write_bytes(document.written())
    try:
        table = open_table(path)
        found = exact_rows(table)
        parts = [part.to_pylist() for part in table.batches(on_reject=lambda _: None)]
    except UsageError as error:
        return [], f"refused: {error}"
    accepted = {row.line: row.cells for row in found if not isinstance(row, RejectedRow)}
    rejects = [row for row in found if isinstance(row, RejectedRow)]
    rejected = {line for row in rejects for line in range(row.line, row.last_line + 1)}
    left_out = {*table.format.footnotes, *table.format.preamble}
    errors = ["a line is read twice"] if len(accepted) + len(rejects) < len(found) else []
    if [tuple(row.values()) for part in parts for row in part] != [(*row, line) for line, row in accepted.items()]:
        errors.append("the rows in batches are others")
    columns = tuple("" if name in table.format.renamed else name for name in table.columns)
    if accepted and not _is_equal(columns, COLUMNS):
        errors.append(f"the columns are {columns}")
    for number, line in document.numbered():
        read = accepted.pop(number, None) if line.cells else None
        is_known = number in rejected or (line.is_touched and number in left_out)
        if line.cells and read is None and not is_known:
            errors.append(f"line {number} is lost")
        elif read is not None and not _is_equal(read, line.cells):
            errors.append(f"line {number} was changed: {line.cells} → {read}")
    errors += [f"line {number} is not a row: {cells}" for number, cells in accepted.items()]
    clean_lines = {number for number, line in document.numbered() if line.cells}
    return errors, ", ".join(f"line {row.line}: {row.reason}" for row in rejects if row.line in clean_lines)


def _is_equal(found: tuple[str, ...], cells: list[str]) -> bool:
    """Equal but for spaces around cells, and for empty cells of a column that only the header has."""
    texts = [cell.strip() for cell in found]
    return texts[: len(cells)] == [cell.strip() for cell in cells] and not any(texts[len(cells) :])
