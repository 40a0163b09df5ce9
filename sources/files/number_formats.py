"""Number formats of a spreadsheet: what a cell shows, where that differs from the number it holds.

In: a format code such as `00000`, `"ART-"0000`, `0%`. Out: `NumberFormat`. A code typed as 00038 is stored as the
number 38 and the format `00000`; only the format shows that there were zeros.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from itertools import groupby
from typing import Final, Literal

import pyarrow as pa
import pyarrow.compute as pc

BUILTIN: Final[Mapping[str | None, str]] = {
    "9": "0%", "10": "0.00%", "11": "0.00E+00", "12": "# ?/?", "13": "# ??/??", "48": "##0.0E+0",
}  # fmt: skip
"""Built-in formats by id that change the digits; the others show the number, a date or a time."""
_TOKEN: Final = re.compile(
    r'"([^"]*)"|\\(.)|_.|\*.|\[\$[^\]]*\]|\[(?:[A-Za-z]+|Color ?\d+)\]|(\[[^\]]*\])|(General|.)',
    re.IGNORECASE | re.DOTALL,
)
_LITERALS: Final = "$-+/(): !^&'~{}<>="


@dataclass(frozen=True)
class NumberFormat:
    """What a format shows of a whole number that is not negative.

    Attributes:
        kind: `digits` shows the number itself, `padded` shows leading zeros or a fixed text, `percent` a percentage;
            `other` something else, e.g. a currency or a fraction.
        parts: of a padded format, texts and "" for each digit, from the left.
    """

    kind: Literal["digits", "padded", "percent", "other"]
    parts: tuple[str, ...] = ()

    def shown(self, digits: pa.Array) -> pa.Array:
        """Whole numbers, as texts of digits, as a padded format shows them."""
        places = left = self.parts.count("")
        digits = pc.utf8_lpad(digits, places, "0")
        shown: list[str | pa.Array] = []
        for is_text, parts in groupby(self.parts, bool):
            texts = list(parts)
            if is_text:
                shown += texts
            else:
                start = -left if left < places else 0  # surplus digits are shown at the first place
                left -= len(texts)
                shown.append(pc.utf8_slice_codeunits(digits, start, -left if left else None))
        return pc.binary_join_element_wise(*shown, "")


@cache
def number_format(code: str) -> NumberFormat:
    """What a format code means for numbers; dates and times are recognized by the reader of the cells."""
    tokens: list[tuple[str, str]] = []  # kind: text, 0, or the character itself
    for match in _TOKEN.finditer(code):
        text, escaped, condition, char = match.groups()
        if condition:
            return NumberFormat("other")
        if char == ";":
            break
        if text or escaped:
            tokens.append(("text", text or escaped))
        elif char and char in _LITERALS and not (char == "/" and "?" in code):
            tokens.append(("text", char))
        elif char:
            tokens.append((char.lower(), char))
    kinds = [kind for kind, _ in tokens]
    if "%" in kinds or any("%" in text for kind, text in tokens if kind == "text"):
        return NumberFormat("percent")
    shown = [(kind, text) for kind, text in tokens if not (kind == "text" and not text.strip())]
    names = [kind for kind, _ in shown]
    if set(names) <= {"general", "@"}:
        return NumberFormat("digits")
    whole = names[: names.index(".")] if "." in names else names
    if set(names) <= {"0", "#", "?", ".", ","} and whole.count("0") <= 1 and (not names or names[-1] != ","):
        return NumberFormat("digits")
    if set(kinds) <= {"0", "#", "text"} and "0" in kinds and "#" not in kinds[kinds.index("0") :]:
        if any(kind == "#" for kind in kinds) and "text" in kinds[kinds.index("#") : kinds.index("0")]:
            return NumberFormat("other")
        return NumberFormat("padded", tuple("" if kind == "0" else text for kind, text in tokens if kind != "#"))
    return NumberFormat("other")
