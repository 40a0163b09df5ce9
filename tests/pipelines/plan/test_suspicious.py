"""Values that are valid but rarely meant."""

from __future__ import annotations

from typing import Any

import msgspec
import pyarrow as pa
import pytest

from pipelines.plan.outcomes import Reason
from pipelines.plan.suspicious import SuspiciousValues

NONE: frozenset[str] = frozenset()


def found(name: str, *values: Any, increments: frozenset[str] = NONE, is_sheet: bool = False) -> list[Reason]:
    """The reasons for values of a field, on lines from 2 on."""
    texts = [None if value is None else msgspec.json.encode(value).decode() for value in values]
    lines = pa.array([[line] for line in range(2, 2 + len(texts))])
    collected = SuspiciousValues(increments, is_sheet=is_sheet)
    collected.add(pa.table({"lines": lines, "path": ["/p"] * len(texts), name: pa.array(texts, pa.string())}))
    return collected.reasons()


INVISIBLE = ["x\u200b", "\ufeffx", "x\u202ey", "x\x07", "x\x85", "x\u2066y", "x\x1f", "a\u00adb", "\\\x08"]
DAMAGED: list[tuple[str, str, list[Any], list[Any]]] = [
    ("firstName", "invisible", INVISIBLE, ["Año – «x»", "line\nline\ttab", "日本", "c:\\b\\f", "\u00a0"]),
    ("firstName", "mojibake", ["José".encode().decode("cp1252"), "EspaÃ±a", "Cittâ€™", "Nº Âº", "Mu├▒oz"],
     ["JOÃO", "Âge"]),
    ("firstName", "lost_letter", ["Mu?oz", "Ana Garc?a", "?lvarez"], ["Jos?", "Who? me", "http://x.es/a?b=1", "¿Qué?"]),
    ("firstName", "null_word", ["NULL", "\\N", "NaN", "n/a", "(null)"], ["Null", "Nan", "NULL 2", "N", "\\\\N"]),
    ("sku", "date", ["01-nov", "Nov-11", "1-Sep", "01/11/2026", "2026-11-01"], ["1-11", "11-22-33", "mar-a", "5-NOVA"]),
    ("email", "not_an_address", ["x", "a@b", "a@b.es, c@d.es", "mailto:a@b.es", "'a@b.es"], ["o'b@x.es", "ñ@ñ.es"]),
    ("phone", "no_digits", ["France", "–", "S/N"], ["+34 600", "France 12", "٠١"]),
    ("price", "not_positive", [0, -1.5], [0.01, None]),
    ("stock", "negative", [-2], [0, None]),
    ("documents", "document_number_missing",
     [[{"fiscalName": "Ana"}], [{"number": "", "fiscalName": "Ana"}], [{"number": " "}], [{"number": None}],
      [{"number": "N1"}, {"fiscalName": 'a"number":"N2'}]],
     [[{"number": "N1"}, {"number": "N2", "isDefault": True}], [{"number": 'N"1', "fiscalName": "a {b}"}], [], None]),
]  # fmt: skip


@pytest.mark.parametrize(("name", "code", "bad", "good"), DAMAGED, ids=[code for _, code, *_ in DAMAGED])
def test_texts_and_numbers_that_are_rarely_meant_are_pointed_out(
    name: str, code: str, bad: list[Any], good: list[Any]
) -> None:
    (reason,) = found(name, *bad, *good)
    assert (reason.field, reason.code, reason.lines) == (name, code, len(bad))
    assert reason.first == list(range(2, 2 + len(bad)))[:5]
    assert found(name, *good) == []


def test_an_increment_may_be_negative_and_a_price_of_a_sheet_has_few_decimals() -> None:
    assert found("stock", -2, increments=frozenset({"stock"})) == []
    assert found("price", 1.234) == []
    assert [(reason.code, reason.first) for reason in found("price", 1.23, 1.234, is_sheet=True)] == [("decimals", [3])]


def test_an_equal_increment_that_is_merged_may_be_meant() -> None:
    collected = SuspiciousValues(frozenset({"stock"}))
    collected.add_merged(pa.table({"lines": pa.array([[3], [4]]), "stock": ["3", None], "sku": ["1", "2"]}))
    assert [(reason.field, reason.code, reason.first) for reason in collected.reasons()] == [("stock", "merged", [3])]
