"""Files with their mapping as inputs, read in both ways: one by one, and clean lines as columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from pipelines.imports import CleanBatch, Inputs, ReadyInput, RejectedInput, open_inputs
from pipelines.imports.json_columns import json_text
from pipelines.mapping import load
from sources.errors import UsageError

VARIANT = '[columns]\nproductId = "productId"\nvariantId = "variantId"\n'


def opened(
    folder: Path, text: str | bytes, mapping: str | None = None, kind: str = "variants", **settings: Any
) -> Inputs:
    file = folder / "file.csv"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    path = folder / "mapping.toml"
    if mapping is not None:
        path.write_text(f'kind = "{kind}"\n{mapping}', "utf-8")
    return open_inputs(kind, file, load(path) if mapping is not None else None, **settings)


def as_texts(inputs: Inputs, *, in_columns: bool) -> tuple[dict[int, dict[str, str]], dict[int, Any]]:
    """What is ready by line, each field as JSON; and the others."""
    ready: dict[int, dict[str, str]] = {}
    others: dict[int, Any] = {}
    for item in inputs.in_columns() if in_columns else inputs:
        if isinstance(item, CleanBatch):
            names = list(item.columns)
            for line, *texts in zip(item.lines.to_pylist(), *(item.columns[n].to_pylist() for n in names), strict=True):
                ready[line] = {name: text for name, text in zip(names, texts, strict=True) if text is not None}
        elif isinstance(item, ReadyInput):
            ready[item.lines[0]] = {**{name: json_text(value) for name, value in item.body.items()}, **item.path}
        else:
            others[item.lines[0]] = item
    return ready, others


def read(*args: Any, **kwargs: Any) -> list[Any]:
    """The inputs in the order of their lines: the same when they are read again, and as columns."""
    inputs = opened(*args, **kwargs)
    items = list(inputs)
    assert list(inputs) == items, "another walk gives the same"
    assert as_texts(inputs, in_columns=True) == as_texts(inputs, in_columns=False)
    assert [item.lines[0] for item in items] == sorted(item.lines[0] for item in items)
    return items


def outcomes(items: Sequence[Any]) -> list[Any]:
    """Of each input its body, its problems as `line column field code`, or why it is skipped."""
    return [
        item.body
        if isinstance(item, ReadyInput)
        else [f"{p.line} {p.column or '-'} {p.field or '-'} {p.code}" for p in item.problems]
        if isinstance(item, RejectedInput)
        else item.reason
        for item in items
    ]


def results(*args: Any, **kwargs: Any) -> list[Any]:
    return outcomes(read(*args, **kwargs))


def refused(*args: Any, **kwargs: Any) -> str:
    with pytest.raises(UsageError) as error:
        opened(*args, **kwargs)
    return str(error.value)
