"""Files with their mapping as inputs, one by one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest

from pipelines.imports import Inputs, ReadyInputs, RejectedInput, open_inputs
from pipelines.imports.json_columns import as_json
from pipelines.mapping import load
from sources.errors import UsageError
from sources.kinds import KINDS

_decode = msgspec.json.Decoder(float_hook=Decimal).decode
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


@dataclass(frozen=True)
class Ready:
    """A ready input: its lines, the parameters of the path, and the body."""

    lines: tuple[int, ...]
    path: dict[str, str]
    body: dict[str, Any]


def items_of(inputs: Inputs) -> list[Any]:
    """The inputs in the order of their lines."""
    items: list[Any] = []
    params = {field.name for field in KINDS[inputs.kind].operation.params}
    for item in inputs:
        if not isinstance(item, ReadyInputs):
            items.append(item)
            continue
        columns = {name: texts.to_pylist() for name, texts in as_json(inputs.kind, item.columns).items()}
        for at, lines in enumerate(item.lines.to_pylist()):
            given = {name: texts[at] for name, texts in columns.items() if texts[at] is not None}
            body = {name: _decode(text) for name, text in given.items() if name not in params}
            items.append(Ready(tuple(lines), {name: given[name] for name in given if name in params}, body))
    return sorted(items, key=lambda item: item.lines[0])


def read(*args: Any, **kwargs: Any) -> list[Any]:
    """The inputs in the order of their lines: the same when they are read again."""
    inputs = opened(*args, **kwargs)
    items = items_of(inputs)
    assert items_of(inputs) == items, "another walk gives the same"
    return items


def outcomes(items: Sequence[Any]) -> list[Any]:
    """Of each input its body, its problems as `line column field code`, or why it is skipped."""
    return [
        item.body
        if isinstance(item, Ready)
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
