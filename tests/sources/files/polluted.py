"""A generator of damaged CSV files with the clean table: one damage each, or several.

Every damage is a function that changes the lines of a file. The reader may raise an error, or return each clean row
either equal on its own line or rejected with that line. A changed row, a row that is lost or read twice, a line of
something else that is read as a row, a column under another name, and a difference between reading by rows and by
batches are silent errors, which `silent_errors` reports.
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


@dataclass
class Line:
    """A line of the file, or several of a quoted cell; `row` is the index of the clean row on it.

    `is_broken`: a row that nobody can read right, so that it must be rejected.
    """

    text: str
    row: int | None = None
    end: str = ""
    is_broken: bool = False


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
    prefix: str = ""
    columns: tuple[str, ...] = COLUMNS
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

    def a_row_and_its_cells(self) -> tuple[Line, list[str]]:
        line = self.a_row()
        return line, self.cells_of(line)

    def cells_of(self, line: Line) -> list[str]:
        assert line.row is not None
        return self.rows[line.row]

    def rows_lines(self) -> list[Line]:
        return [line for line in self.lines if line.row is not None]

    def insert(self, *texts: str, after: int = 2) -> int:
        """Inserts lines, at the earliest so many lines below the header."""
        at = self.generator.randint(self.header + after, len(self.lines))
        self.lines[at:at] = map(Line, texts)
        return at

    def prepend(self, *texts: str) -> None:
        self.lines[:0] = map(Line, texts)
        self.header += len(texts)

    def append(self, *rows: str | list[str]) -> None:
        """Appends lines, or rows as CSV."""
        self.lines += [Line(row if isinstance(row, str) else joined(row, self)) for row in rows]

    def written(self) -> bytes:
        text = "".join(line.text.replace("\n", self.end) + (line.end or self.end) for line in self.lines)
        if self.encoding.startswith("utf"):
            return (self.prefix + text).encode(self.encoding) + self.suffix
        parts = (part.encode(self.encoding, "replace") for part in (self.prefix + text).split("\ufeff"))
        return codecs.BOM_UTF8.join(parts) + self.suffix

    def numbered(self) -> Iterator[tuple[int, Line]]:
        """The lines with their 1-based numbers."""
        number = 1 + self.prefix.count(self.end)
        for line in self.lines:
            yield number, line
            number += line.text.count("\n") + line.text.count("\r") + 1

    def line_numbers(self) -> dict[int, int]:
        """The 1-based line of each clean row that is still in the file."""
        return {line.row: number for number, line in self.numbered() if line.row is not None}


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
    mark, all_quoted = document.delimiter, document.quotes_all
    return mark.join(_quoted(cell) if all_quoted or mark in cell or {*'"\n'} & {*cell} else cell for cell in cells)


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _places(line: Line, mark: str) -> list[int]:
    """Positions of delimiters outside of quotes."""
    places, inside = [], False
    for at, char in enumerate(line.text):
        inside ^= char == '"'
        if char == mark and not inside:
            places.append(at)
    return places or [line.text.find(mark)]


Damage = Callable[[Document], object]


def _set(changed: object, **values: object) -> object:
    vars(changed).update(values)
    return changed


def extra_delimiter(document: Document) -> None:
    line = document.a_row()
    at = document.generator.choice([*_places(line, document.delimiter), len(line.text)])
    line.text = line.text[:at] + document.delimiter + line.text[at:]


def _cut(document: Document, between: str) -> Line:
    """A delimiter of a row becomes another text."""
    line = document.a_row()
    at = document.generator.choice(_places(line, document.delimiter))
    line.text = line.text[:at] + between + line.text[at + 1 :]
    return line


def trailing_delimiter_everywhere(document: Document) -> None:
    for line in document.lines:
        line.text += document.delimiter


def padding(document: Document) -> None:
    for line in document.lines:
        for at in reversed(_places(line, document.delimiter)):
            line.text = f"{line.text[: at + 1]} {line.text[at + 1 :]}"


def backslash_escapes(document: Document) -> None:
    line, cells = document.a_row_and_its_cells()
    line.text = joined(cells[:4], document) + f'{document.delimiter}"a \\"b\\" c"'
    cells[4] = 'a "b" c'


def blank_lines(document: Document) -> None:
    for _ in range(3):
        at = document.generator.randint(1, len(document.lines))
        document.lines.insert(at, Line(document.generator.choice(["", "  "])))


def line_break_in_a_cell(document: Document) -> None:
    """The cells are not quoted, so that it tears the row in two."""
    line, cells = document.a_row_and_its_cells()
    at = document.generator.randrange(len(cells))
    ends = ["28001 Madrid", "Roma", "12", "# 7"]
    if line is not document.lines[-1]:  # at the end, after a blank line, it is a footnote, and reported as one
        ends.append("\n1º B")
    torn = f"Calle Mayor 5\n{document.generator.choice(ends)}"
    plain = [cell.replace('"', "") for cell in cells]
    line.text = document.delimiter.join([*plain[:at], torn, *plain[at + 1 :]])
    cells[at] = "torn"


def broken_last_row(document: Document) -> None:
    """What is not a footnote: a row with too few cells or another delimiter, after a blank line or not."""
    other = document.generator.choice([mark for mark in ";,\t|" if mark != document.delimiter])
    mark = document.generator.choice((other, other, document.delimiter))
    count = document.generator.choice((1, 2, 3, 5 if mark == other else 4))
    cells = ["A9998", "Perno inox", "rojo", "1.50", "Peña"][:count]
    document.lines += [Line("")] * document.generator.randrange(2) + [Line(mark.join(cells), is_broken=True)]


def no_header(document: Document) -> None:
    if document.has_header:
        del document.lines[document.header]
        document.has_header = False


def long_header(document: Document) -> None:
    if document.header_line.text.endswith(document.delimiter):
        return  # with a delimiter at the end of each line the name would fit
    document.header_line.text = joined([*COLUMNS, "Extra"], document)
    document.columns += ("Extra",)


def header_that_lacks_a_delimiter(document: Document) -> None:
    """The rows end in an empty cell, so that they could be read with the names shifted."""
    for line in document.rows_lines():
        cells = document.cells_of(line)
        cells[-1] = ""
        line.text = joined(cells, document)
    document.header_line.text = joined([COLUMNS[0] + COLUMNS[1], *COLUMNS[2:]], document)


def first_table(document: Document) -> None:
    rows = [["Cliente", "Ciudad", "Saldo"], *([f"C{n}", "Roma", f"{n}0"] for n in range(4))]
    document.prepend(*map(document.delimiter.join, rows), "")


def table_in_another_order(document: Document) -> None:
    """Rows of an export with the columns in another order were pasted at the end, with their header."""
    order = [1, 0, *range(2, len(COLUMNS))]
    rows = [[f"B{n}", "Perno", "rojo", "1", "x"] for n in range(document.generator.randint(1, 40))]
    if document.generator.random() < 0.5:
        document.append(document.generator.choice(("", document.delimiter * 4)))
    document.append(*([row[at] for at in order] for row in [list(COLUMNS), *rows]))


OTHER_NAMES = ["Cliente", "Ciudad", "Zona", "Saldo", "Agente"]


def second_table(document: Document) -> None:
    width = document.generator.choice((2, 3, 5, 6))
    names = ["Cliente", "Ciudad", "Saldo", "Zona", "Agente", "Ruta"]
    rows = [names, *([f"C{n}", "Roma", f"{n}0", "Norte", "Ana", "R"] for n in range(4))]
    document.append("", *(document.delimiter.join(row[:width]) for row in rows))


def table_beside(document: Document) -> None:
    """Another table at the right, after an empty column; as long, shorter or longer."""
    mark = document.delimiter
    if document.lines[-1].text.endswith(mark) or document.lines[document.header].text.startswith(
        f'"{COLUMNS[0]}{mark}'
    ):
        return  # of lines that are quoted as a whole
    rows = document.rows_lines()
    count = document.generator.choice((3, len(rows), len(rows) + 3))
    for at, line in enumerate(rows):
        cells = ["", f"C{at}", f"{at}0"] if at < count else ["", "", ""]
        document.cells_of(line).extend(cells)
        line.text += mark + mark.join(cells)
    if document.has_header:
        document.header_line.text += mark + mark.join(["", "Cliente", "Saldo"])
        document.columns += ("", "Cliente", "Saldo")
    document.append(*(mark * 6 + f"C{at}{mark}{at}0" for at in range(len(rows), count)))


def page_breaks(document: Document) -> None:
    """A form feed, a page number and the header again, as in printed lists."""
    at = document.generator.randint(document.header + 2, len(document.lines))
    feed = document.generator.choice(("\f", ""))
    document.lines[at:at] = map(Line, ("", f"{feed}Página 2", "", document.header_line.text))


def _row(document: Document, write: Callable[[list[str], str], str]) -> None:
    """The text of a row is another one, made of its cells, which may change, and the delimiter."""
    line, cells = document.a_row_and_its_cells()
    line.text = write(cells, document.delimiter)


def _changed(cells: list[str], at: int, cell: str) -> list[str]:
    cells[at:] = [cell, *cells[at + 1 :]]
    return cells


def _other(document: Document) -> str:
    """Another delimiter."""
    return "," if document.delimiter != "," else ";"


def _stray_quotes_in_pairs(document: Document) -> None:
    line, cells = document.a_row_and_its_cells()
    mark, quote = document.delimiter, document.generator.choice(('"', '""'))
    cells[1:] = [document.generator.choice(("two\nlines", "x")), "Pieza", "9", "x"]
    line.text = mark.join([cells[0], f'"{cells[1]}"', f"Pieza{quote}Rojo{mark} inox{quote}", "9"])


def _written_anew(document: Document, at: int, write: Callable[[str], str]) -> None:
    """A cell of a row is another one, and written as CSV."""
    line, cells = document.a_row_and_its_cells()
    cells[at] = write(cells[at])
    line.text = joined(cells, document)


def subtotals_by_group(document: Document) -> None:
    mark = document.delimiter
    for name in ("rojo", "azul"):
        at = document.generator.randint(document.header + 2, len(document.lines))
        document.lines.insert(at, Line(f"Subtotal {name}{mark * 3}1{document.generator.randint(10, 99)}{mark}"))


def truncated(document: Document) -> None:
    line = document.lines[-1]
    if line.row is None or line.row in document.touched:
        return
    document.touched.add(line.row)
    line.text = line.text[: _places(line, document.delimiter)[:3][-1]]


def mixed_line_ends(document: Document) -> None:
    for line in document.lines[1::3] if document.end != "\r" else ():
        line.end = document.generator.choice(("\n", "\r\n"))


def nul(document: Document) -> None:
    line = document.a_row()
    line.text = line.text[:1] + "\0" + line.text[1:]


def padded_end(document: Document) -> None:
    encoding = "utf-16-le" if document.encoding == "utf-16" else document.encoding
    document.suffix = ("\x1a" + "\0" * document.generator.randint(0, 9)).encode(encoding)


def byte_order_mark_before_a_row(document: Document) -> None:
    line = document.a_row()
    line.text = f"\ufeff{line.text}"


def tab_in_a_cell(document: Document) -> None:
    line, cells = document.a_row_and_its_cells()
    cells[1] = cells[1].replace(" ", "\t")
    line.text = joined(cells, document) if document.delimiter != "\t" else document.delimiter.join(cells)
    if document.delimiter == "\t":
        cells[1] = "cut by the delimiter"


def curly_closing_quote(document: Document) -> None:
    line, cells = document.a_row_and_its_cells()
    mark = document.delimiter
    line.text = mark.join([joined(cells[:1], document), f'"{cells[1]}”', joined(cells[2:], document)])
    if document.encoding == "utf-8":
        cells[1] = "unknown"


def apostrophe_before_digits(document: Document) -> None:
    """As a spreadsheet marks codes as texts; it is neither a quote nor dropped."""
    for line in document.rows_lines():
        cells = document.cells_of(line)
        code = cells[0]
        if code.startswith("A") and line.text.count(code) == 1:
            cells[0] = f"'{code[1:]}"
            line.text = line.text.replace(code, cells[0])


def quoted_lines(document: Document) -> None:
    """Each line was taken for one cell and quoted again."""
    document.quotes_all = True
    for line in document.lines:
        line.text = _quoted(line.text)


def other_delimiter_in_some_rows(document: Document) -> None:
    for _ in range(3):
        line, cells = document.a_row_and_its_cells()
        line.text = ("," if document.delimiter != "," else ";").join(cells)


def two_encodings(document: Document) -> None:
    if document.encoding in ("utf-8", "cp1252"):
        line = document.delimiter.join(["A9999", "Peña", "x", "1", "ñ"])
        document.suffix = line.encode("cp1252" if document.encoding == "utf-8" else "utf-8")


DAMAGES: dict[str, Damage] = {
    "missing_delimiter": lambda d: _cut(d, " "),
    "broken_row": lambda d: _cut(d, "\n"),
    "stray_opening_quote": lambda d: _cut(d, f'{d.delimiter}"'),
    "two_stray_quotes": lambda d: [_cut(d, f'{d.delimiter}"') for _ in range(2)],
    "doubled_stray_quotes": _stray_quotes_in_pairs,
    "trailing_delimiter_in_some_rows": lambda d: [
        _set(line, text=line.text + d.delimiter) for line in (d.a_row(), d.a_row(), d.a_row())],
    "text_after_a_quote": lambda d: _row(
        d, lambda cells, _: f'"{cells[0]}"x' + joined(["", *cells[1:]], d).removeprefix('""')),
    "quote_inside_a_cell": lambda d: _row(
        d, lambda cells, mark: mark.join([cells[0], f'5"Perno{mark} inox"', *cells[3:4], "x"])),
    "lone_return_in_a_cell": lambda d: _row(
        d, lambda cells, mark: mark.join([cells[0], cells[1].replace(" ", "\r"), *cells[2:4], "x"])),
    "space_before_quotes": lambda d: _row(d, lambda cells, mark: mark.join(f" {_quoted(cell)}" for cell in cells)),
    "thousands_that_are_the_delimiter": lambda d: _row(
        d, lambda cells, mark: mark.join(_changed(cells, 3, f"1{mark}234.50"))),
    "date_cut_by_the_delimiter": lambda d: _row(
        d, lambda cells, mark: mark.join(_changed(cells, 4, mark.join(("12", "05", "2024"))))),
    "two_quoted_lines": lambda d: [_set(line, text=_quoted(line.text)) for line in (d.a_row(), d.a_row())],
    "short_header": lambda d: _set(d.header_line, text=joined(list(COLUMNS[:-1]), d)),
    "quoted_wrongly_header": lambda d: _set(
        d.header_line, text=f'"{COLUMNS[0]}"x{d.delimiter}' + joined(list(COLUMNS[1:]), d)),
    "header_of_another_dialect": lambda d: _set(d.header_line, text=_other(d).join(COLUMNS)),
    "sep_line": lambda d: _set(d, prefix=f"sep={d.delimiter}{d.end}"),
    "false_sep_line": lambda d: _set(d, prefix=f"sep={_other(d)}{d.end}"),
    "another_code_page": lambda d: _set(d, encoding=d.generator.choice(("cp850", "mac-roman", "cp437"))),
    "totals": lambda d: d.append(
        d.generator.choice(["TOTAL", "Suma", "Total general:"]) + d.delimiter * 3 + "99" + d.delimiter),
    "subtotals": lambda d: d.insert(f"{d.delimiter}Subtotal{d.delimiter * 2}12{d.delimiter}"),
    "second_table_of_equal_length": lambda d: d.append(
        "", OTHER_NAMES, *([f"C{n}", "Roma", "Norte", f"{n}0", "Ana"] for n in range(len(d.rows)))),
    "end_of_another_table": lambda d: d.append(  # with a column more
        *([f"B{n}", "Perno", "rojo", "1", *"xyzuvw"[: max(len(d.columns) - 3, 3)]] for n in range(3))),
    "titles_of_pages": lambda d: d.insert(
        *(f"{words}{d.delimiter * 4}" for words in ("LISTADO", "Página: 2")), d.header_line.text, after=3),
    "rule_below_the_header": lambda d: d.lines.insert(
        d.header + 1, Line(d.delimiter.join("-" * len(name) for name in COLUMNS))),
    "comment_lines": lambda d: [d.insert("# revisar", after=1) for _ in range(2)],
    "repeated_header": lambda d: d.insert(d.header_line.text),
    "header_in_capitals": lambda d: d.insert(d.header_line.text.upper()),
    "byte_order_mark_in_the_middle": lambda d: d.insert(f"\ufeff{d.header_line.text}"),
    "title": lambda d: d.prepend("Listado de precios", ""),
    "metadata": lambda d: d.prepend(f"Empresa{d.delimiter}ACME", f"Fecha{d.delimiter}2024-05-01", ""),
    "table_amid_the_rows": lambda d: d.append(OTHER_NAMES, *[["C1", "Roma", "Norte", "10", "Ana"]] * 2),
    "one_cell_in_single_quotes": lambda d: _written_anew(d, 1, lambda _: "'Classic'"),
    "curly_quotes": lambda d: _written_anew(d, 1, lambda cell: f"“{cell}”"),
    "footnote": lambda d: d.append("", f"Total registros: {len(d.rows)}"),
    "narrow_totals": lambda d: d.append(f"Total{d.delimiter * 2}123"),
    "line_of_delimiters": lambda d: d.insert(d.delimiter * 4, after=1),
    **{damage.__name__: damage for damage in (
        extra_delimiter, trailing_delimiter_everywhere, padding, backslash_escapes, blank_lines, line_break_in_a_cell,
        broken_last_row, no_header, long_header, header_that_lacks_a_delimiter, first_table, table_in_another_order,
        second_table, table_beside, page_breaks, subtotals_by_group, truncated, mixed_line_ends, nul, padded_end,
        byte_order_mark_before_a_row, tab_in_a_cell, curly_closing_quote, apostrophe_before_digits, quoted_lines,
        other_delimiter_in_some_rows, two_encodings,
    )},
}  # fmt: skip


def damaged(seed: int, count: int) -> tuple[Document, str]:
    """A file with so many damages, and their names."""
    chosen = random.Random(f"damage {seed}").sample(list(DAMAGES), count)
    return with_damages(seed, chosen), "+".join(chosen)


def with_damages(seed: object, damages: Sequence[str]) -> Document:
    """The clean file of a seed with these damages, in this order."""
    document = clean(f"clean {seed}")
    for name in damages:
        DAMAGES[name](document)
    return document


def silent_errors(document: Document, folder: Path) -> tuple[list[str], bool]:
    """What was read wrongly without a word; and whether the file was refused as a whole."""
    path = folder / "in.csv"
    path.write_bytes(document.written())
    accepted: dict[int, tuple[str, ...]] = {}
    rejected: set[int] = set()
    errors = []
    try:
        table = open_table(path)
        for row in exact_rows(table):
            if isinstance(row, RejectedRow):
                rejected |= set(range(row.line, row.last_line + 1))
                continue
            if row.line in accepted:
                errors.append(f"line {row.line} is read twice")
            accepted[row.line] = row.cells
        batches = list(table.batches(on_reject=lambda _: None))
    except UsageError:
        return [], True
    left_out = {*table.format.footnotes, *table.format.preamble}
    in_batches = [tuple(row.values()) for batch in batches for row in batch.to_pylist()]
    if in_batches != [(*cells, line) for line, cells in accepted.items()]:
        errors.append("the rows in batches are others")
    columns = tuple("" if name in table.format.renamed else name for name in table.columns)
    if document.has_header and accepted and not _is_equal(columns, [*document.columns]):
        errors.append(f"the columns are {columns}")
    rows_by_line = {number: document.rows[row] for row, number in document.line_numbers().items()}
    touched = {number for row, number in document.line_numbers().items() if row in document.touched}
    for number, cells in rows_by_line.items():
        found = accepted.pop(number, None)
        if found is None and number not in rejected and not (number in left_out and number in touched):
            errors.append(f"line {number} is lost")
        elif found is not None and not _is_equal(found, _as_read(cells, document)):
            errors.append(f"line {number} was changed: {cells} → {found}")
    errors += [
        f"line {number} is left out without a word"
        for number, line in document.numbered()
        if line.is_broken and number not in rejected
    ]
    errors += [f"line {number} is not a row: {cells}" for number, cells in accepted.items()]
    return errors, False


def _as_read(cells: list[str], document: Document) -> list[str]:
    """The cells with the file's line ends; without a header, empty ones at the end of each row are no column."""
    texts = [cell.replace("\n", document.end).strip() for cell in cells]
    while not document.has_header and texts and not texts[-1]:
        texts.pop()
    return texts


def _is_equal(found: tuple[str, ...], cells: list[str]) -> bool:
    """Equal but for spaces around cells, and for empty cells of a column that only the header has."""
    return [cell.strip() for cell in found[: len(cells)]] == cells and not any(found[len(cells) :])
