"""Validation of inputs by the fields of the contract.

In: a decoded body and a record. Out: every problem found, each with the kind that selects its error code.
Unknown fields are accepted: how the platform treats them is not shown.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from orderbridge.sources.contract import Field, Record

_INT64: Final = 2**63
_DATE: Final = re.compile(r"\d{4}-\d{2}-\d{2}")
_DECIMAL: Final = re.compile(r"-?\d+(\.\d+)?")


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem of an input: its kind, and a message with the path of the field."""

    kind: str
    message: str


def problems(record: Record, body: object, required: frozenset[str] = frozenset()) -> list[Problem]:
    """All problems of a decoded body; `required` adds to what the record requires."""
    if not isinstance(body, dict):
        return [Problem("type", "the body is not a JSON object")]
    return list(_of_fields(record.fields, body, "", required))


def _of_fields(
    fields: tuple[Field, ...],
    body: dict[str, Any],
    path: str,
    required: frozenset[str] = frozenset(),
) -> Iterator[Problem]:
    for field in fields:
        where = f"{path}{field.name}"
        if field.name in body:
            yield from _of_value(field, body[field.name], where)
        elif field.required or field.name in required:
            yield Problem("required", f"{where} is required")


def _of_value(field: Field, value: object, where: str) -> Iterator[Problem]:
    if wrong := _wrong_type(field.type, value):
        yield Problem("type", f"{where} must be {wrong}")
    elif isinstance(value, str) and len(value) < field.min_length:
        yield Problem("min_length", f"{where} must have at least {field.min_length} characters")
    elif isinstance(value, list):
        yield from _of_items(field, value, where)
    elif isinstance(value, dict):
        yield from _of_fields(field.fields, value, f"{where}.")
    elif isinstance(value, (int, float)) and not isinstance(value, bool):
        yield from _of_number(field, value, where)


def _of_items(field: Field, value: list[Any], where: str) -> Iterator[Problem]:
    if len(value) < field.min_items:
        yield Problem("min_items", f"{where} must have at least {field.min_items} items")
    if field.max_items is not None and len(value) > field.max_items:
        yield Problem("max_items", f"{where} must have at most {field.max_items} items")
    for position, item in enumerate(value):
        at = f"{where}[{position}]"
        if field.fields and not isinstance(item, dict):
            yield Problem("type", f"{at} must be an object")
        elif field.fields:
            yield from _of_fields(field.fields, item, f"{at}.")
        elif field.items and (wrong := _wrong_type(field.items, item)):
            yield Problem("type", f"{at} must be {wrong}")


def _of_number(field: Field, value: float, where: str) -> Iterator[Problem]:
    if field.minimum is not None and value < field.minimum:
        yield Problem("minimum", f"{where} must be at least {field.minimum}")
    if field.int64 and not -_INT64 <= value < _INT64:
        yield Problem("range", f"{where} must fit into 64 bits")
    if field.max_decimals is not None and value != round(value, field.max_decimals):
        yield Problem("decimals", f"{where} must have at most {field.max_decimals} decimals")


def _wrong_type(kind: str, value: object) -> str:
    """The expected type in words; empty if the value has it."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    is_text = isinstance(value, str)
    right, words = {
        "text": (is_text, "a string"),
        "integer": (number and isinstance(value, int), "an integer"),
        "number": (number, "a number"),
        "boolean": (isinstance(value, bool), "a boolean"),
        "object": (isinstance(value, dict), "an object"),
        "array": (isinstance(value, list), "an array"),
        "date": (is_text and bool(_DATE.fullmatch(str(value))), "a date, YYYY-MM-DD"),
        "decimal_text": (
            is_text and bool(_DECIMAL.fullmatch(str(value))),
            "a decimal written as text",
        ),
        "identifier": (is_text or number, "a string or a number"),
    }[kind]
    return "" if right else words
