"""Workbooks as the XML of their rows, zipped."""

from __future__ import annotations

import zipfile
from pathlib import Path

MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
STYLES = "".join(f'<xf numFmtId="{number}"/>' for number in (0, 14, 22, 21, 46, 9))
"""By the number of the style: none, a date, a date with a time, a time, a duration, a percentage."""


def text(ref: str, words: str) -> str:
    return f'<c r="{ref}" t="inlineStr"><is><t xml:space="preserve">{words}</t></is></c>'


def cell(ref: str, value: str | float) -> str:
    if isinstance(value, str) and value.startswith("#"):
        return f'<c r="{ref}" t="e"><v>{value}</v></c>'
    return text(ref, value) if isinstance(value, str) else f'<c r="{ref}"><v>{value}</v></c>'


def sheet(*rows: tuple[int, str]) -> str:
    return "".join(f'<row r="{number}">{cells}</row>' for number, cells in rows)


def of_texts(lines: str) -> str:
    """The rows of a sheet of texts, and of error values such as #REF!, written as CSV."""
    rows = ((number, line.split(";")) for number, line in enumerate(lines.splitlines(), 1))
    return sheet(
        *((number, "".join(cell(f"{'ABCDEF'[at]}{number}", word) for at, word in enumerate(words) if word))
          for number, words in rows)
    )  # fmt: skip


def workbook(
    folder: Path,
    *sheets: tuple[str, str],
    name: str = "in.xlsx",
    hidden: tuple[str, ...] = (),
    styles: str = f"<cellXfs>{STYLES}</cellXfs>",
) -> Path:
    path = folder / name
    numbers = range(1, len(sheets) + 1)
    links = "".join(
        f'<Relationship Id="r{n}" Type="{OFFICE}/worksheet" Target="worksheets/s{n}.xml"/>'
        for n in numbers
    )
    links += f'<Relationship Id="r99" Type="{OFFICE}/styles" Target="styles.xml"/>'
    tags = "".join(
        f'<sheet name="{title}" sheetId="{n}" r:id="r{n}" state="{"hidden" if title in hidden else "visible"}"/>'
        for n, (title, _) in zip(numbers, sheets, strict=True)
    )
    office = f'<Relationship Id="r1" Type="{OFFICE}/officeDocument" Target="xl/workbook.xml"/>'
    parts = {
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{office}</Relationships>',
        "[Content_Types].xml": f'<Types xmlns="{PACKAGE}/content-types"></Types>',
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}/relationships">{links}</Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}"><sheets>{tags}</sheets></workbook>',
        "xl/styles.xml": f'<styleSheet xmlns="{MAIN}">{styles}</styleSheet>',
    }
    parts |= {
        f"xl/worksheets/s{n}.xml": f'<worksheet xmlns="{MAIN}"><sheetData>{rows}</sheetData></worksheet>'
        for n, (_, rows) in zip(numbers, sheets, strict=True)
    }
    return zipped(path, parts)


def zipped(path: Path, parts: dict[str, str]) -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, part in parts.items():
            archive.writestr(name, part)
    return path
