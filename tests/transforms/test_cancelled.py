"""Which words and columns say that an order does not count."""

from __future__ import annotations

from typing import Any

import pandas as pd
import pyarrow as pa
import pytest

from transforms.cancelled import Cancellation, Witness, means_cancelled, related_columns
from transforms.frames import column


@pytest.mark.parametrize(
    ("kind", "word", "expected"),
    [
        *[("status", word, True) for word in ("CANCELLED", "annulée", "Storniert", "Rechazado", "refunded")],
        *[("status", word, True) for word in ("Cancelled - refund pending", "Reembolsado", "X-VOIDED")],
        *[("status", word, False) for word in ("CANCELLATION_REJECTED", "refund pending", "window-to-cancel", "avoid")],
        *[("status", word, False) for word in ("partially refunded", "No anulado", "uncancelled", "cancelrequested")],
        ("payment", "REJECTED", False), ("payment", "voided", True),
        ("flag", "true", True), ("flag", "Sí", True), ("flag", "1", True), ("flag", "false", False),
        ("time", "2026-01-31", True), ("time", "0000-00-00 00:00:00", False),
    ],
)  # fmt: skip
def test_words_of_what_was_requested_refused_or_done_in_part_do_not_cancel(
    kind: Witness, word: str, expected: bool
) -> None:
    assert means_cancelled(word, kind) is expected


def test_only_columns_named_after_a_cancellation_or_status_are_related() -> None:
    names = (
        "is_cancelled", "cancelled_at", "fecha_anulacion", "state", "financial_status", "status", "cancel_reason",
        "cancellation_requested_at", "customer__is_cancelled", "order__voided", "return_address", "updated_at",
    )  # fmt: skip
    assert related_columns(names, "status") == {
        "is_cancelled": "flag", "cancelled_at": "time", "fecha_anulacion": "time", "state": "status",
        "financial_status": "payment", "order__voided": "flag",
    }  # fmt: skip


def read(
    values: dict[str, list[str | None]], setting: tuple[str, ...] | None = None
) -> tuple[list[bool], dict[str, int]]:
    words = {name: {word for word in of if word is not None} for name, of in values.items()}
    found = Cancellation.of("status", words, setting)
    texts: dict[str, pd.Series[Any]] = {name: column(pa.array(values[name], pa.string())) for name in found.witnesses}
    is_cancelled, contrary = found.read(texts, "status", len(next(iter(values.values()))))
    return is_cancelled.tolist(), dict(contrary)


def test_any_column_cancels_and_those_that_contradict_it_are_counted() -> None:
    values: dict[str, list[str | None]] = {
        "status": ["CANCELLED", "paid", "paid", None],
        "cancelled_at": ["2026-01-01", "2026-01-01", None, None],
        "is_cancelled": ["true", "true", "false", "false"],
        "financial_status": ["paid", "paid", "paid", "refunded"],
        "state": ["open", "open", "closed", "open"],  # says it of no order, so it contradicts none
    }
    assert read(values) == ([True, True, False, True], {"status": 1})
    del values["is_cancelled"], values["cancelled_at"]
    assert read(values) == ([True, False, False, True], {})


def test_the_values_of_the_setting_alone_decide() -> None:
    values: dict[str, list[str | None]] = {
        "status": ["9", "CANCELLED", "5"],
        "is_cancelled": ["false", "true", "false"],
    }
    assert read(values, ("9",)) == ([True, False, False], {"is_cancelled": 2})
    found = Cancellation.of("status", {"status": {"x"}}, ("9",))
    assert not found.is_found({"x"})
