"""What was sent against what the platform has: the fields of a create that differ from a record read back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from pipelines.ledger.keys import comparable
from sources.contract import CUSTOMER


def differing_fields(body: Mapping[str, Any], record: Mapping[str, Any], country: str | None = None) -> list[str]:
    """The fields of a create that differ on the platform; fields that cannot be read back are not compared.

    Texts are equal regardless of surrounding whitespace, e-mails regardless of the case of ASCII letters, numbers by
    value, phone numbers as in `transforms.phones`. The record is in the interface's field names.
    """
    readable = {f.name for f in CUSTOMER.fields}
    return [
        name
        for name, value in body.items()
        if name in readable
        and not _is_equal(name, value, record.get(name))
        and not (name == "phone" and _is_same_phone(value, record.get(name), country))
    ]


def _is_same_phone(sent: object, actual: object, country: str | None) -> bool:
    """Whether the platform only writes the number in another way, such as without blanks or with `00` for `+`."""
    if not isinstance(sent, str) or not isinstance(actual, str):
        return False
    import pandas as pd  # not needed by a push of variants

    from transforms.frames import TEXT
    from transforms.phones import same_phone

    left, right = (pd.Series([text], dtype=pd.ArrowDtype(TEXT)) for text in (sent, actual))
    return bool(same_phone(left, right, country)[0])


def _is_equal(name: str, sent: object, actual: object) -> bool:
    if sent is None or sent == "":
        return actual in (None, "")
    if isinstance(sent, Mapping):
        return isinstance(actual, Mapping) and all(
            _is_equal(inner, value, actual.get(inner)) for inner, value in sent.items()
        )
    if isinstance(sent, list):
        items = actual if isinstance(actual, list) else []
        return len(items) == len(sent) and all(map(_is_equal, [name] * len(sent), sent, items))
    if isinstance(sent, bool) or actual is None:
        return bool(sent == actual)
    return comparable(name, _text(sent)) == comparable(name, _text(actual))


def _text(value: object) -> str:
    """A number and its text in the list are equal: 7, 7.0 and "7"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)
