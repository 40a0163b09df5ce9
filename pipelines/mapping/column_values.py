"""What the values of a column show of its field, where its name may mean several things or nothing.

In: the first cells of a column that are not empty, as the file has them. Out: whether they prove a field, or speak
against it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from orderbridge.pipelines.mapping.cells import ADDRESS
from orderbridge.pipelines.mapping.field_paths import resolve

_EMAIL: Final = re.compile(ADDRESS)
_COMPANY: Final = re.compile(
    r"\b(?:s\.?l\.?(?:u\.?)?|s\.?a\.?|s\.?r\.?l\.?|s\.?a\.?s\.?|s\.?p\.?a\.?|s\.?n\.?c\.?|s\.?c\.?p\.?|gmbh|ohg|ag|kg|"
    r"e\.?k\.?|lda\.?|ltda?\.?|limited|plc|inc\.?|llc)$",
    re.I,
)
_SHOWN_BY: Final = {
    "email": re.compile("@"),
    "phone": re.compile("[0-9].*[0-9].*[0-9]"),
    "url": re.compile(r"://|^//|^[\w-]+(?:\.[\w-]+)+/"),
}
"""What at least one cell of a field contains, by the last part of its path."""
_DIGIT: Final = re.compile("[0-9]")
_ID: Final = re.compile('(?:="|\')?[0-9]+"?')
"""An id of digits, also as a spreadsheet keeps it a text."""
_CODE: Final = re.compile(r"(?=.*[0-9])(?:=\"|')?[\w./-]{1,16}\"?")
_NO_CODE: Final = re.compile(
    r"[A-Z]{2}[0-9]{2}[A-Z0-9]{11,30}"  # an IBAN
    r"|[0-9]{4}-[0-9]{2}-[0-9]{2}|[0-9]{1,2}([./-])[0-9]{1,2}\1(?:[0-9]{2}){1,2}"
)
"""What has the form of a code, and is an account of a bank or a date."""
_LOGIN: Final = re.compile(r"[\w.-]{2,40}")
_TAX_ID: Final = re.compile(r"(?=(?:.*[0-9]){5})[A-Z0-9]{6,18}", re.I)
_YEAR: Final = re.compile(r"(?<![0-9])(?:19|20)[0-9]{2}[/-]")
"""What is in the number of an invoice, and in no tax number."""
_SEPARATORS: Final = re.compile(r"[\s./-]")
_NAME: Final = re.compile(r"[^\W\d_]{2,}.*\s.*[^\W\d_]{2,}")
"""Two words."""
_LONG_WORD: Final = re.compile(r"[^\W\d_]{5,}")
"""In codes that are written with spaces, words are shorter."""
_PRICE: Final = re.compile(r"(?:[^\d\W]{1,3}|[^\w])?\s?[0-9][0-9.,' ]*[.,][0-9]{1,4}\s?\D{0,4}")
_WHOLE_PRICE: Final = re.compile("[0-9]{3,}")
_IMAGE: Final = re.compile(r"\.(?:jpe?g|png|gif|webp)\b", re.I)
_ENOUGH: Final = 3
"""Cells that outweigh a name; fewer are rejected row by row if they are no values of the field."""
_SHARE: Final = 0.9
_REPEATED: Final = 0.5
"""Share of different cells in a column about the row's own record, where several rows may be of one."""
_COMPANIES: Final = 0.2
"""Share of cells that end with the legal form of a company, where the column is of companies; many have none."""
_MOST: Final = 0.5
_CODES: Final = ("erpCode", "sku", "loginCode")
_WIDTH: Final = 4
"""Least width of codes in a column that is called `No.`: house numbers and counters are shorter, or differ in width."""


def proves(path: str, cells: Sequence[str]) -> bool:
    """Whether the values show that a column with an unclear name fills this field."""
    proof = _PROOFS.get(path)
    texts = [cell.strip() for cell in cells]
    return bool(texts) and proof is not None and proof(texts)


def are_wide_codes(cells: Sequence[str]) -> bool:
    """Whether the cells are different codes of one width, which proves a column that is called `No.`."""
    texts = [cell.strip() for cell in cells]
    widths = set(map(len, texts))
    return _are_own_codes(texts) and len(widths) == 1 and min(widths) >= _WIDTH


def are_image_urls(cells: Sequence[str]) -> bool:
    """Whether the cells are addresses of pictures."""
    texts = [cell.strip() for cell in cells]
    return _are_urls(texts) and _all_match(_IMAGE.search, texts)


def contradicts(kind: str, path: str, cells: Sequence[str]) -> bool:
    """Whether no cell looks like a value of the field."""
    field = resolve(kind, path)
    shown = _SHOWN_BY.get(path.rpartition(".")[2])
    if shown is None and not isinstance(field, str) and field.field.type in ("number", "integer"):
        shown = _DIGIT
    return shown is not None and len(cells) >= _ENOUGH and not any(map(shown.search, cells))


def casts_doubt(path: str, cells: Sequence[str]) -> bool:
    """Whether the values make a clear name doubtful: names in a column of codes, a name for the id of a price list."""
    texts = [cell.strip() for cell in cells if cell.strip()]
    if path == "priceListId":
        return bool(texts) and not any(map(_ID.fullmatch, texts))
    if len(texts) < _ENOUGH:
        return False
    if path in _CODES:
        return _share(_NAME.search, texts) >= _SHARE and not _share(_DIGIT.search, texts)
    return path == "documents[0].number" and not any(map(_DIGIT.search, texts))


def reads_as_names(path: str, cells: Sequence[str]) -> bool:
    """Whether a column for codes has names of articles: `Tornillo M8 x 40`. Not proven, as a code may have words."""
    has_enough = sum(bool(cell.strip()) for cell in cells) >= _ENOUGH
    return path in _CODES and has_enough and are_phrases(cells)


def are_phrases(cells: Sequence[str]) -> bool:
    """Whether most cells have several words, as names of articles have."""
    texts = [cell.strip() for cell in cells if cell.strip()]
    return bool(texts) and _share(_is_phrase, texts) > _MOST


def _is_phrase(text: str) -> bool:
    return len(text.split()) > 1 and _LONG_WORD.search(text) is not None


def are_emails(cells: Sequence[str]) -> bool:
    """Whether the cells are e-mail addresses, and almost all different: one of a salesman or a branch repeats."""
    texts = [cell.strip() for cell in cells]
    return _all_match(_EMAIL.fullmatch, texts) and _are_different(texts, _SHARE)


def are_companies(cells: Sequence[str]) -> bool:
    """Whether the cells are names of companies."""
    texts = [cell.strip() for cell in cells]
    return bool(texts) and _share(_COMPANY.search, texts) > _COMPANIES


def are_own_companies(cells: Sequence[str]) -> bool:
    """Whether the cells are names of companies, and almost all different, as those of the rows' own records are."""
    return are_companies(cells) and _are_different(cells, _SHARE)


def _share(test: Callable[[str], object], texts: Sequence[str]) -> float:
    return sum(bool(test(text)) for text in texts) / len(texts)


def _all_match(test: Callable[[str], object], texts: Sequence[str]) -> bool:
    """Whether almost all do; there may be none."""
    return bool(texts) and _share(test, texts) >= _SHARE


def _are_different(texts: Sequence[str], share: float) -> bool:
    return len(set(texts)) >= share * len(texts)


def _are_codes(texts: Sequence[str]) -> bool:
    return _all_match(_CODE.fullmatch, texts) and not any(map(_NO_CODE.fullmatch, texts))


def _are_own_codes(texts: Sequence[str]) -> bool:
    return _are_codes(texts) and _are_different(texts, _SHARE)


def _are_logins(texts: Sequence[str]) -> bool:
    return _all_match(_LOGIN.fullmatch, texts) and _are_different(texts, _SHARE)


def _are_tax_ids(texts: Sequence[str]) -> bool:
    if any(map(_YEAR.search, texts)):
        return False
    bare = [_SEPARATORS.sub("", text) for text in texts]
    return _all_match(_TAX_ID.fullmatch, bare) and _are_different(bare, _REPEATED)


def _are_ids(texts: Sequence[str]) -> bool:
    return all(map(_ID.fullmatch, texts))


def _are_own_ids(texts: Sequence[str]) -> bool:
    return _are_ids(texts) and _are_different(texts, _REPEATED)


def _are_prices(texts: Sequence[str]) -> bool:
    """Numbers with a fraction, or of three digits and more: `1` may be the number of a price list."""
    if _all_match(_WHOLE_PRICE.fullmatch, texts):
        return True
    is_fraction = any(map(_PRICE.fullmatch, texts))
    return is_fraction and _all_match(_DIGIT.match, [text.lstrip("€$£ ") for text in texts])


def _are_mostly_own_companies(texts: Sequence[str]) -> bool:
    return are_companies(texts) and _are_different(texts, _REPEATED)


def _are_urls(texts: Sequence[str]) -> bool:
    return _all_match(_SHOWN_BY["url"].search, texts)


def _are_words(texts: Sequence[str]) -> bool:
    return _all_match(re.compile(r"[^\W\d_]{3,}").search, texts)


_PROOFS: Final[dict[str, Callable[[Sequence[str]], bool]]] = {
    "erpCode": _are_own_codes,
    "loginCode": _are_logins,
    "documents[0].number": _are_tax_ids,
    "documents[0].fiscalName": _are_mostly_own_companies,
    "productId": _are_ids,
    "variantId": _are_own_ids,
    "price": _are_prices,
    "categoryId": _are_codes,
    "name": _are_words,
}
"""What proves a field, for those that a name of [unclear] may mean."""
