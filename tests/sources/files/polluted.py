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
    return places or [line.text.find(mark)]


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


def line_break_in_a_cell(document: Document) -> None:
    """The cells are not quoted, so that it tears the row in two."""
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    at = document.generator.randrange(len(cells))
    ends = ["28001 Madrid", "Roma", "12", "# 7"]
    if line is not document.lines[-1]:  # at the end, after a blank line, it is a footnote, and reported as one
        ends.append("\n1º B")
    halves = ("Calle Mayor 5", document.generator.choice(ends))
    torn = [*cells[:at], "\n".join(halves), *cells[at + 1 :]]
    line.text = document.delimiter.join(cell.replace('"', "") if cell is not torn[at] else cell for cell in torn)
    cells[at] = "torn"


def broken_last_row(document: Document) -> None:
    """What is not a footnote: a row with too few cells or another delimiter, after a blank line or not."""
    other = document.generator.choice([mark for mark in ";,\t|" if mark != document.delimiter])
    mark = document.generator.choice((other, other, document.delimiter))
    cells = ["A9998", "Perno inox", "rojo", "1.50", "Peña"][
        : document.generator.choice((1, 2, 3, 5 if mark == other else 4))
    ]
    document.lines += [Line("")] * document.generator.randrange(2) + [Line(mark.join(cells), is_broken=True)]


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
    if document.header_line.text.endswith(document.delimiter):
        return  # with a delimiter at the end of each line the name would fit
    document.header_line.text = joined([*COLUMNS, "Extra"], document)
    document.columns += ("Extra",)


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


def table_in_another_order(document: Document) -> None:
    """Rows of an export with the columns in another order were pasted at the end, with their header."""
    order = [1, 0, *range(2, len(COLUMNS))]
    rows = [[f"B{n}", "Perno", "rojo", "1", "x"] for n in range(document.generator.randint(1, 40))]
    if document.generator.random() < 0.5:
        document.lines.append(Line(document.generator.choice(("", document.delimiter * 4))))
    document.lines += [Line(joined([row[at] for at in order], document)) for row in [list(COLUMNS), *rows]]


def second_table_of_equal_length(document: Document) -> None:
    names = ["Cliente", "Ciudad", "Zona", "Saldo", "Agente"]
    rows = [[f"C{n}", "Roma", "Norte", f"{n}0", "Ana"] for n in range(len(document.rows))]
    document.lines += [Line(""), *(Line(joined(row, document)) for row in [names, *rows])]


def table_amid_the_rows(document: Document) -> None:
    """Another table of the same width, with its header, not separated."""
    names, row = ["Cliente", "Ciudad", "Zona", "Saldo", "Agente"], ["C1", "Roma", "Norte", "10", "Ana"]
    document.lines += [Line(joined(cells, document)) for cells in (names, row, row)]


def header_in_capitals(document: Document) -> None:
    header = document.header_line.text.upper()
    document.lines.insert(document.generator.randint(document.header + 2, len(document.lines)), Line(header))


def titles_of_pages(document: Document) -> None:
    """A title, the page and the header again, in lines with all delimiters."""
    header, marks = document.header_line.text, document.delimiter * (len(COLUMNS) - 1)
    at = document.generator.randint(document.header + 3, len(document.lines))
    document.lines[at:at] = [Line(f"LISTADO{marks}"), Line(f"Página: 2{marks}"), Line(header)]


def header_that_lacks_a_delimiter(document: Document) -> None:
    """The rows end in an empty cell, so that they could be read with the names shifted."""
    for line in document.lines:
        if line.row is not None:
            cells = document.rows[line.row]
            cells[-1] = ""
            line.text = joined(cells, document)
    names = [COLUMNS[0] + COLUMNS[1], *COLUMNS[2:]]
    document.header_line.text = joined(names, document)


def doubled_stray_quotes(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells, mark = document.rows[line.row], document.delimiter
    quote = document.generator.choice(('"', '""'))
    cells[1:] = [document.generator.choice(("two\nlines", "x")), "Pieza", "9", "x"]
    line.text = mark.join([cells[0], f'"{cells[1]}"', f"Pieza{quote}Rojo{mark} inox{quote}", "9"])


def one_cell_in_single_quotes(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    document.rows[line.row][1] = "'Classic'"
    line.text = joined(document.rows[line.row], document)


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


def sep_line(document: Document) -> None:
    """What Excel takes as the delimiter, in the first line."""
    document.prefix = f"sep={document.delimiter}{document.end}"


def false_sep_line(document: Document) -> None:
    document.prefix = f"sep={',' if document.delimiter != ',' else ';'}{document.end}"


def byte_order_mark_in_the_middle(document: Document) -> None:
    """Two files were joined."""
    header = document.header_line.text
    at = document.generator.randint(document.header + 2, len(document.lines))
    document.lines.insert(at, Line(f"\ufeff{header}"))


def byte_order_mark_before_a_row(document: Document) -> None:
    line = document.a_row()
    line.text = f"\ufeff{line.text}"


def tab_in_a_cell(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    cells[1] = cells[1].replace(" ", "\t")
    line.text = joined(cells, document) if document.delimiter != "\t" else document.delimiter.join(cells)
    if document.delimiter == "\t":
        cells[1] = "cut by the delimiter"


def curly_closing_quote(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    line.text = joined(cells[:1], document) + f'{document.delimiter}"{cells[1]}”' + document.delimiter
    line.text += joined(cells[2:], document)
    if document.encoding == "utf-8":
        cells[1] = "unknown"


def curly_quotes(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    cells[1] = f"“{cells[1]}”"
    line.text = joined(cells, document)


def apostrophe_before_digits(document: Document) -> None:
    """As a spreadsheet marks codes as texts; it is neither a quote nor dropped."""
    for line in document.lines:
        code = document.rows[line.row][0] if line.row is not None else ""
        if line.row is not None and code.startswith("A") and line.text.count(code) == 1:
            document.rows[line.row][0] = f"'{code[1:]}"
            line.text = line.text.replace(code, f"'{code[1:]}")


def utf_16_without_a_mark(document: Document) -> None:
    document.encoding = document.generator.choice(("utf-16-le", "utf-16-be"))


def narrow_totals(document: Document) -> None:
    document.lines.append(Line(f"Total{document.delimiter * 2}123"))


def page_breaks(document: Document) -> None:
    """A form feed, a page number and the header again, as in printed lists."""
    header = document.header_line.text
    at = document.generator.randint(document.header + 2, len(document.lines))
    feed = document.generator.choice(("\f", ""))
    document.lines[at:at] = [Line(""), Line(f"{feed}Página 2"), Line(""), Line(header)]


def table_beside(document: Document) -> None:
    """Another table at the right, after an empty column; as long, shorter or longer."""
    mark = document.delimiter
    if document.lines[-1].text.endswith(mark) or document.lines[document.header].text.startswith(
        f'"{COLUMNS[0]}{mark}'
    ):
        return  # of lines that are quoted as a whole
    rows = [line for line in document.lines if line.row is not None]
    count = document.generator.choice((3, len(rows), len(rows) + 3))
    for at, line in enumerate(rows):
        assert line.row is not None
        cells = ["", f"C{at}", f"{at}0"] if at < count else ["", "", ""]
        document.rows[line.row] += cells
        line.text += mark + mark.join(cells)
    if document.has_header:
        document.header_line.text += mark + mark.join(["", "Cliente", "Saldo"])
        document.columns += ("", "Cliente", "Saldo")
    for at in range(len(rows), count):
        document.lines.append(Line(mark * 6 + f"C{at}{mark}{at}0"))


def subtotals_by_group(document: Document) -> None:
    mark = document.delimiter
    for name in ("rojo", "azul"):
        at = document.generator.randint(document.header + 2, len(document.lines))
        document.lines.insert(at, Line(f"Subtotal {name}{mark * 3}1{document.generator.randint(10, 99)}{mark}"))


def thousands_that_are_the_delimiter(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    cells[3] = f"1{document.delimiter}234.50"
    line.text = document.delimiter.join(cells)


def date_cut_by_the_delimiter(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    cells[4] = document.delimiter.join(("12", "05", "2024"))
    line.text = document.delimiter.join(cells)


def rule_below_the_header(document: Document) -> None:
    """Dashes, as databases print them."""
    rule = document.delimiter.join("-" * len(name) for name in COLUMNS)
    document.lines.insert(document.header + 1, Line(rule))


def line_of_delimiters(document: Document) -> None:
    at = document.generator.randint(document.header + 1, len(document.lines))
    document.lines.insert(at, Line(document.delimiter * 4))


def comment_lines(document: Document) -> None:
    for _ in range(2):
        at = document.generator.randint(document.header + 1, len(document.lines))
        document.lines.insert(at, Line("# revisar"))


def lone_return_in_a_cell(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    line.text = document.delimiter.join([cells[0], cells[1].replace(" ", "\r"), *cells[2:4], "x"])


def quoted_lines(document: Document) -> None:
    """Each line was taken for one cell and quoted again."""
    document.quotes_all = True
    for line in document.lines:
        line.text = '"' + line.text.replace('"', '""') + '"'


def two_quoted_lines(document: Document) -> None:
    for _ in range(2):
        line = document.a_row()
        line.text = '"' + line.text.replace('"', '""') + '"'


def space_before_quotes(document: Document) -> None:
    line = document.a_row()
    assert line.row is not None
    cells = document.rows[line.row]
    line.text = document.delimiter.join(f' "{cell.replace(chr(34), chr(34) * 2)}"' for cell in cells)


def other_delimiter_in_some_rows(document: Document) -> None:
    other = "," if document.delimiter != "," else ";"
    for _ in range(3):
        line = document.a_row()
        assert line.row is not None
        line.text = other.join(document.rows[line.row])


def end_of_another_table(document: Document) -> None:
    """Rows of an export with a column more were pasted at the end."""
    more = max(len(document.columns) - 3, 3)
    document.lines += [Line(joined([f"B{n}", "Perno", "rojo", "1", *"xyzuvw"[:more]], document)) for n in range(3)]


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


Damage = Callable[[Document], None]
DAMAGES: tuple[Damage, ...] = (
    extra_delimiter, missing_delimiter, trailing_delimiter_everywhere, trailing_delimiter_in_some_rows, padding,
    stray_opening_quote, two_stray_quotes, text_after_a_quote, quote_inside_a_cell, backslash_escapes, blank_lines,
    broken_row, line_break_in_a_cell,
    broken_last_row, no_header, repeated_header, short_header, long_header, quoted_wrongly_header,
    header_of_another_dialect,
    title, metadata, footnote, totals, subtotals, truncated, mixed_line_ends, nul, padded_end, another_code_page,
    two_encodings, second_table, first_table, sep_line, false_sep_line, byte_order_mark_in_the_middle,
    byte_order_mark_before_a_row, tab_in_a_cell, curly_closing_quote, curly_quotes, utf_16_without_a_mark,
    narrow_totals, page_breaks, table_beside, subtotals_by_group, thousands_that_are_the_delimiter,
    date_cut_by_the_delimiter, rule_below_the_header, line_of_delimiters, comment_lines,
    lone_return_in_a_cell, quoted_lines, two_quoted_lines, space_before_quotes, other_delimiter_in_some_rows,
    end_of_another_table, apostrophe_before_digits, table_in_another_order, second_table_of_equal_length,
    table_amid_the_rows, header_in_capitals, titles_of_pages,
    header_that_lacks_a_delimiter, doubled_stray_quotes, one_cell_in_single_quotes,
)  # fmt: skip


def damaged(seed: int, count: int) -> tuple[Document, str]:
    """A file with so many damages, and their names."""
    chosen = random.Random(f"damage {seed}").sample(DAMAGES, count)
    return with_damages(seed, chosen), "+".join(damage.__name__ for damage in chosen)


def with_damages(seed: int, damages: Sequence[Damage]) -> Document:
    """The clean file of a seed with these damages, in this order."""
    document = clean(f"clean {seed}")
    for damage in damages:
        damage(document)
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
        for row in table.rows():
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
