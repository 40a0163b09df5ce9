"""Files for people as a spreadsheet program opens them: by other code than the one that writes and reads them."""

from __future__ import annotations

import codecs
import csv
import io
from pathlib import Path


def spreadsheet_rows(path: Path) -> list[dict[str, str]]:
    """The rows of a CSV for people, by the names of its header; fails where a row has other cells than the header.

    Without a byte order mark, Excel would read it in the code page of the system.
    """
    content = path.read_bytes()
    assert content.startswith(codecs.BOM_UTF8), f"{path} has no byte order mark"
    text = content.decode("utf-8-sig")
    assert codecs.BOM_UTF8.decode() not in text
    delimiter = ";" if ";" in text.partition("\n")[0] else ","
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    return [dict(zip(header, row, strict=True)) for row in rows]
