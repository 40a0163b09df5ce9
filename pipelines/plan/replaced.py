"""What a plan of variants replaces: the values last confirmed of the fields that its updates set, as one hash.

In: the ledger, and `operations.jsonl`. Out: a hash for the manifest. A push computes it again: if it differs, another
push has changed these fields since the plan was made, and the plan would undo that.
"""

from __future__ import annotations

import hashlib
from collections.abc import Set
from pathlib import Path
from typing import Any, Final

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import OPERATIONS_FILE


class _Update(msgspec.Struct):
    path: str
    body: dict[str, Any]


_UPDATE: Final = msgspec.json.Decoder(_Update)


def confirmed_fields(ledger: Ledger, host: str) -> pa.Table:
    """The fields that updates set, as last confirmed by a host: key (the path), field, value (JSON text).

    The value is empty where a write had an unknown outcome since: it is like no other, and a plan would undo it.
    """
    table = ledger.confirmed(host, has_unknown=True)
    return pa.table(
        {"key": table["path"], "field": table["field"], "value": table["value"]}
    ).combine_chunks()


def replaced_sha256(confirmed: pa.Table, increments: Set[str], folder: Path) -> str:
    """Hash of the `confirmed_fields` that the updates in a plan folder replace; an increment replaces none."""
    if not confirmed.num_rows:
        return hashlib.sha256().hexdigest()
    with (folder / OPERATIONS_FILE).open("rb") as lines:
        updates = map(_UPDATE.decode, lines)
        targets = pa.array(
            (
                f"{update.path} {name}"
                for update in updates
                for name in update.body.keys() - increments
            ),
            pa.string(),
        )
    fields = pc.binary_join_element_wise(confirmed["key"], confirmed["field"], " ")
    texts = pc.binary_join_element_wise(fields, confirmed["value"], " ").filter(
        pc.is_in(fields, value_set=targets)
    )
    return hashlib.sha256("\n".join(texts.to_pylist()).encode()).hexdigest()
