"""What no file, page or line of ours may show: how Python and pandas write a missing value or a float."""

from __future__ import annotations

import re
from pathlib import Path

_LEFTOVERS = re.compile(r"\b(?:NaN|NaT|nan|None(?! of|[.:] ?))\b|<NA>|&lt;NA&gt;|(?<![\d.])\d+\.0(?![\d.])")


def leftovers(text: str) -> list[str]:
    """Missing values (`NaN`, `None`) and whole numbers as floats (`5000.0`), each with the text around it."""
    if "</" in text:
        text = re.sub(r"<style.*?</style>|<[^<>]+>", " ", text, flags=re.DOTALL)
    return [text[max(0, found.start() - 40) : found.end() + 20] for found in _LEFTOVERS.finditer(text)]


def leftovers_in(folder: Path) -> dict[str, list[str]]:
    """Those of every text file below a folder, by name; ERP exports may be cp1252."""
    texts = {
        path.name: path.read_bytes().decode("cp1252", "replace")
        for path in folder.rglob("*")
        if path.suffix in (".csv", ".json", ".jsonl", ".md", ".html", ".toml")
    }
    return {name: found for name, text in texts.items() if (found := leftovers(text))}
