"""A generator of damaged CSV files with the clean table: one damage each, or several.

Every damage is a function that changes the lines of a file. The reader may raise an error, or return each clean row
either equal on its own line or rejected with that line. A changed row, a row that is lost or read twice, a line of
something else that is read as a row, a column under another name, and a difference between the two readers are silent
errors, which `silent_errors` reports.
"""

from __future__ import annotations

import codecs
import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from sources.errors import UsageError
from sources.files import RejectedRow, open_table
from tests.sources.files.reading import exact_rows

WORDS = (
    "Tornillo", "Tuerca", "Arandela", "Perno", "Peña", "Clavo", "Bisagra", "Cañería", "Llave", "Muelle", "Ácido",
    "Tubería", "Bañera", "Júbilo", "Öse",
)  # fmt: skip
COLUMNS = ("Código", "Nombre", "Color", "PVP", "Nota")
OTHER_TABLE = [["Cliente", "Ciudad", "Zona", "Saldo", "Agente"], *[["C1", "Roma", "Norte", "10", "Ana"]] * 2]


@dataclass
class Line:
    """A line of the file, or several of a quoted cell; `cells` are those of the clean row on it."""

    text: str
    cells: list[str] = field(default_factory=list)
    end: str = ""
    is_touched: bool = False


@dataclass
class Document:
    """A file before it is written; `lines` have the header at `header`."""

    generator: random.Random
    delimiter: str
    quotes_all: bool
    lines: list[Line] = field(default_factory=list)
    header: int = 0
    has_header: bool = True
    encoding: str = "utf-8"
    end: str = "\n"
    suffix: bytes = b""
    prefix: str = ""

    @property
    def header_line(self) -> Line:
        """The line of the header; without one, a line that is in no file."""
        return self.lines[self.header] if self.has_header else Line("")

    @property
    def rows(self) -> list[Line]:
        return [line for line in self.lines if line.cells]

    def a_row(self) -> Line:
        """A line with a row that no other damage has changed."""
        line = self.generator.choice([line for line in self.rows if not line.is_touched])
        line.is_touched = True
        return line

    def insert(self, *texts: str, after: int = 2) -> int:
        """Inserts lines, at the earliest so many lines below the header."""
        at = self.generator.randint(self.header + after, len(self.lines))
        self.lines[at:at] = map(Line, texts)
        return at

    def prepend(self, *texts: str) -> None:
        self.lines[:0] = map(Line, texts)
        self.header += len(texts)

    def append(self, *rows: str | list[str]) -> None:
        self.lines += [Line(row if isinstance(row, str) else self.joined(row)) for row in rows]

    def joined(self, cells: Sequence[str]) -> str:
        special = {self.delimiter, '"', "\n"}
        return self.delimiter.join(quoted(cell) if self.quotes_all or special & {*cell} else cell for cell in cells)

    def written(self) -> bytes:
        text = self.prefix + "".join(line.text.replace("\n", self.end) + (line.end or self.end) for line in self.lines)
        if self.encoding.startswith("utf"):
            return text.encode(self.encoding) + self.suffix
        return (
            codecs.BOM_UTF8.join(part.encode(self.encoding, "replace") for part in text.split("\ufeff")) + self.suffix
        )

    def numbered(self) -> Iterator[tuple[int, Line]]:
        number = 1 + self.prefix.count(self.end)
        for line in self.lines:
            yield number, line
            number += line.text.count("\n") + line.text.count("\r") + 1


def quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def clean(seed: str) -> Document:
    generator = random.Random(seed)
    document = Document(generator, generator.choice(";;,\t|"), generator.random() < 0.3)
    mark, rows = document.delimiter, []
    for number in range(generator.randint(12, 40)):
        note = " ".join(generator.sample(WORDS, generator.randint(1, 3)))
        if generator.random() < 0.2:
            note = f"{note}{mark} {generator.choice(WORDS)}"
        if generator.random() < 0.1:
            note += f'\n{generator.choice(WORDS)} "x"'
        price = f"{generator.randint(0, 999)}{',' if mark == ';' else '.'}{generator.randint(0, 99):02}"
        color = generator.choice(("rojo", "azul", "verde"))
        rows.append([f"A{number:04}", " ".join(generator.sample(WORDS, 2)), color, price, note])
    document.end = generator.choice(("\n", "\n", "\r\n", "\r"))
    document.encoding = generator.choice(("utf-8", "utf-8", "utf-8-sig", "cp1252", "utf-16"))
    document.append([*COLUMNS])
    document.lines += [Line(document.joined(row), row) for row in rows]
    return document


def _places(line: Line, mark: str) -> list[int]:
    places = [at for at, char in enumerate(line.text) if char == mark and line.text.count('"', 0, at) % 2 == 0]
    return places or [line.text.find(mark)]


Damage = Callable[[Document], object]


def _set(changed: object, **values: object) -> object:
    vars(changed).update(values)
    return changed


def _cut(d: Document, between: str) -> Line:
    line = d.a_row()
    at = d.generator.choice(_places(line, d.delimiter))
    line.text = line.text[:at] + between + line.text[at + 1 :]
    return line


def _row(d: Document, write: Callable[[list[str], str], str]) -> Line:
    """The text of a row is another one, made of its cells, which may change, and the delimiter."""
    line = d.a_row()
    line.text = write(line.cells, d.delimiter)
    return line


def _changed(cells: list[str], at: int, cell: str) -> list[str]:
    cells[at:] = [cell, *cells[at + 1 :]]
    return cells


def _other(d: Document) -> str:
    return "," if d.delimiter != "," else ";"


def extra_delimiter(d: Document) -> None:
    line = d.a_row()
    at = d.generator.choice([*_places(line, d.delimiter), len(line.text)])
    line.text = line.text[:at] + d.delimiter + line.text[at:]


def trailing_delimiter_everywhere(d: Document) -> None:
    for line in d.lines:
        line.text += d.delimiter


def blank_lines(d: Document) -> None:
    for _ in range(3):
        at = d.generator.randint(1, len(d.lines))
        d.lines.insert(at, Line(d.generator.choice(["", "  "])))


def no_header(d: Document) -> None:
    if d.has_header:
        del d.lines[d.header]
        d.has_header = False


def header_that_lacks_a_delimiter(d: Document) -> None:
    """The rows end in an empty cell, so that they could be read with the names shifted."""
    for line in d.rows:
        line.text = d.joined(_changed(line.cells, len(line.cells) - 1, ""))
    d.header_line.text = d.joined([COLUMNS[0] + COLUMNS[1], *COLUMNS[2:]])


def table_in_another_order(d: Document) -> None:
    """Rows of an export with the columns in another order were pasted at the end, with their header."""
    rows = [[f"B{n}", "Perno", "rojo", "1", "x"] for n in range(d.generator.randint(1, 40))]
    if d.generator.random() < 0.5:
        d.append(d.generator.choice(("", d.delimiter * 4)))
    d.append(*([second, first, *rest] for first, second, *rest in [[*COLUMNS], *rows]))


def second_table(d: Document) -> None:
    width = d.generator.choice((2, 3, 5, 6))
    names = ["Cliente", "Ciudad", "Saldo", "Zona", "Agente", "Ruta"]
    rows = [names, *([f"C{n}", "Roma", f"{n}0", "Norte", "Ana", "R"] for n in range(4))]
    d.append("", *(d.delimiter.join(row[:width]) for row in rows))


def _stray_quotes_in_pairs(d: Document) -> None:
    line, quote = d.a_row(), d.generator.choice(('"', '""'))
    line.cells[1:] = [d.generator.choice(("two\nlines", "x")), "Pieza", "9", "x"]
    cells = (line.cells[0], f'"{line.cells[1]}"', f"Pieza{quote}Rojo{d.delimiter} inox{quote}", "9")
    line.text = d.delimiter.join(cells)


def subtotals_by_group(d: Document) -> None:
    for name in ("rojo", "azul"):
        at = d.generator.randint(d.header + 2, len(d.lines))
        d.lines.insert(at, Line(f"Subtotal {name}{d.delimiter * 3}1{d.generator.randint(10, 99)}{d.delimiter}"))


def mixed_line_ends(d: Document) -> None:
    for line in d.lines[1::3] if d.end != "\r" else ():
        line.end = d.generator.choice(("\n", "\r\n"))


def padded_end(d: Document) -> None:
    encoding = "utf-16-le" if d.encoding == "utf-16" else d.encoding
    d.suffix = ("\x1a" + "\0" * d.generator.randint(0, 9)).encode(encoding)


def apostrophe_before_digits(d: Document) -> None:
    """As a spreadsheet marks codes as texts; it is neither a quote nor dropped."""
    for line in d.rows:
        code = line.cells[0]
        if code.startswith("A") and line.text.count(code) == 1:
            line.cells[0] = f"'{code[1:]}"
            line.text = line.text.replace(code, line.cells[0])


def quoted_lines(d: Document) -> None:
    """Each line was taken for one cell and quoted again."""
    d.quotes_all = True
    for line in d.lines:
        line.text = quoted(line.text)


DAMAGES: dict[str, Damage] = {
    "missing_delimiter": lambda d: _cut(d, " "),
    "broken_row": lambda d: _cut(d, "\n"),
    "two_stray_quotes": lambda d: [_cut(d, f'{d.delimiter}"') for _ in range(2)],
    "doubled_stray_quotes": _stray_quotes_in_pairs,
    "text_after_a_quote": lambda d: _row(
        d, lambda cells, _: f'"{cells[0]}"x' + d.joined(["", *cells[1:]]).removeprefix('""')),
    "quote_inside_a_cell": lambda d: _row(
        d, lambda cells, mark: mark.join([cells[0], f'5"Perno{mark} inox"', *cells[3:4], "x"])),
    "lone_return_in_a_cell": lambda d: _row(
        d, lambda cells, mark: mark.join([cells[0], cells[1].replace(" ", "\r"), *cells[2:4], "x"])),
    "space_before_quotes": lambda d: _row(d, lambda cells, mark: mark.join(f" {quoted(cell)}" for cell in cells)),
    "backslash_escapes": lambda d: _row(
        d, lambda cells, mark: f'{d.joined(cells[:4])}{mark}"a \\"b\\" c"' if _changed(cells, 4, 'a "b" c') else ""),
    "other_delimiter_in_some_rows": lambda d: [_row(d, lambda cells, _: _other(d).join(cells)) for _ in range(3)],
    "nul": lambda d: _set(line := d.a_row(), text=f"{line.text[:1]}\0{line.text[1:]}"),
    "byte_order_mark_before_a_row": lambda d: _set(line := d.a_row(), text=f"\ufeff{line.text}"),
    "short_header": lambda d: _set(d.header_line, text=d.joined(COLUMNS[:-1])),
    "quoted_wrongly_header": lambda d: _set(
        d.header_line, text=f'"{COLUMNS[0]}"x{d.delimiter}' + d.joined(COLUMNS[1:])),
    "sep_line": lambda d: _set(d, prefix=f"sep={d.delimiter}{d.end}"),
    "false_sep_line": lambda d: _set(d, prefix=f"sep={_other(d)}{d.end}"),
    "totals": lambda d: d.append(
        d.generator.choice(["TOTAL", "Suma", "Total general:"]) + d.delimiter * 3 + "99" + d.delimiter),
    "second_table_of_equal_length": lambda d: d.append("", OTHER_TABLE[0], *[OTHER_TABLE[1]] * len(d.rows)),
    "table_amid_the_rows": lambda d: d.append(*OTHER_TABLE),
    "titles_of_pages": lambda d: d.insert(
        *(f"{words}{d.delimiter * 4}" for words in ("LISTADO", "Página: 2")), d.header_line.text, after=3),
    "rule_below_the_header": lambda d: d.lines.insert(
        d.header + 1, Line(d.delimiter.join("-" * len(name) for name in COLUMNS))),
    "repeated_header": lambda d: d.insert(d.header_line.text),
    "metadata": lambda d: d.prepend(f"Empresa{d.delimiter}ACME", f"Fecha{d.delimiter}2024-05-01", ""),
    "footnote": lambda d: d.append("", f"Total registros: {len(d.rows)}"),
    **{damage.__name__: damage for damage in (
        extra_delimiter, trailing_delimiter_everywhere, blank_lines, no_header, header_that_lacks_a_delimiter,
        table_in_another_order, second_table, subtotals_by_group, mixed_line_ends, padded_end,
        apostrophe_before_digits, quoted_lines,
    )},
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
        batches = [
            tuple(row.values()) for batch in table.batches(on_reject=lambda _: None) for row in batch.to_pylist()
        ]
    except UsageError as error:
        return [], f"refused: {error}"
    accepted = {row.line: row.cells for row in found if not isinstance(row, RejectedRow)}
    rejects = [row for row in found if isinstance(row, RejectedRow)]
    rejected = {line for row in rejects for line in range(row.line, row.last_line + 1)}
    left_out = {*table.format.footnotes, *table.format.preamble}
    errors = ["a line is read twice"] if len(accepted) + len(rejects) < len(found) else []
    if batches != [(*cells, line) for line, cells in accepted.items()]:
        errors.append("the rows in batches are others")
    columns = tuple("" if name in table.format.renamed else name for name in table.columns)
    if document.has_header and accepted and not _is_equal(columns, [*COLUMNS]):
        errors.append(f"the columns are {columns}")
    for number, line in document.numbered():
        read = accepted.pop(number, None) if line.cells else None
        is_known = number in rejected or (line.is_touched and number in left_out)
        if line.cells and read is None and not is_known:
            errors.append(f"line {number} is lost")
        elif read is not None and not _is_equal(read, _as_read(line.cells, document)):
            errors.append(f"line {number} was changed: {line.cells} → {read}")
    errors += [f"line {number} is not a row: {cells}" for number, cells in accepted.items()]
    clean_lines = {number for number, line in document.numbered() if line.cells}
    return errors, ", ".join(f"line {row.line}: {row.reason}" for row in rejects if row.line in clean_lines)


def _as_read(cells: list[str], document: Document) -> list[str]:
    """The cells with the file's line ends; without a header, empty ones at the end of each row are no column."""
    texts = [cell.replace("\n", document.end).strip() for cell in cells]
    while not document.has_header and texts and not texts[-1]:
        texts.pop()
    return texts


def _is_equal(found: tuple[str, ...], cells: list[str]) -> bool:
    """Equal but for spaces around cells, and for empty cells of a column that only the header has."""
    return [cell.strip() for cell in found[: len(cells)]] == cells and not any(found[len(cells) :])
