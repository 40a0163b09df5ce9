"""Decided inputs to the lines of `operations.jsonl`, whole columns at a time.

In: tables of inputs that are to be sent, each field as JSON text, null where it does not go. Out: text, an operation a
line. No row is a Python object here, so that a file of millions of rows is planned in seconds.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.plan.model import PasswordSource
from sources.kinds import KindName
from transforms.upserts.decisions import KEYS
from transforms.upserts.json_columns import bytes_of, objects

SILENT: Final = '{"send":false,"withCredentials":false}'
NOTIFY: Final = '{"send":true,"withCredentials":false}'
CREDENTIALS: Final = '{"send":true,"withCredentials":true}'


@dataclass(frozen=True, slots=True)
class RequestOptions:
    """How operations are made.

    Attributes:
        batch_size: operations of a batch.
        once: fields that travel in a PATCH of their own, which is never repeated.
        passwords: of customers: where the push gets them.
        notify: whether a new customer gets a message where the file does not say.
    """

    batch_size: int
    once: frozenset[str] = frozenset()
    passwords: PasswordSource | None = None
    notify: bool = False


@dataclass(frozen=True, slots=True)
class Requests:
    """Operations as text, and how many there are; `once`: not repeatable; `messages`: to customers."""

    text: bytes = b""
    count: int = 0
    once: int = 0
    messages: int = 0


def requests(table: pa.Table, kind: KindName, before: int, wishes: RequestOptions) -> Requests:
    """The operations of a table of inputs, in its order.

    Args:
        table: `lines`, `path`, and a column for each field of the body, in order.
        kind: of input.
        before: how many operations the plan has already.
        wishes: how they are made.
    """
    if not table.num_rows:
        return Requests()
    fields = {name: table[name].combine_chunks() for name in table.column_names if name not in ("lines", "path")}
    messages = 0
    if kind == "customers":
        fields["notification"] = _notification(fields["notification"], wishes)
        messages = pc.sum(pc.match_substring(fields["notification"], '"send":true')).as_py() or 0
    if kind == "variants":
        bodies = [
            (objects({name: texts for name, texts in fields.items() if name not in wishes.once}), True),
            (objects({name: texts for name, texts in fields.items() if name in wishes.once}), False),
        ]
    else:
        bodies = [(pc.coalesce(objects(fields), "{}"), False)]
    are = [pc.is_valid(body).to_numpy(zero_copy_only=False).astype(np.int64) for body, _ in bodies]
    counts = np.sum(are, axis=0)
    ids = before + np.cumsum(counts) - counts
    texts = []
    once = 0
    for (body, is_repeatable), is_there in zip(bodies, are, strict=True):
        ids = ids + is_there
        once += 0 if is_repeatable else int(is_there.sum())
        texts.append(_lines(table, kind, body, ids, fields, is_repeatable, wishes))
    text = pc.binary_join_element_wise(*(pc.coalesce(lines, "") for lines in texts), "")
    return Requests(bytes_of(text), int(counts.sum()), once, messages)


def _lines(
    table: pa.Table,
    kind: KindName,
    body: pa.Array,
    ids: npt.NDArray[np.int64],
    fields: Mapping[str, pa.Array],
    is_repeatable: bool,
    wishes: RequestOptions,
) -> pa.Array:
    """A line each, null where there is no body."""
    path = table["path"].combine_chunks()
    lines = table["lines"].combine_chunks()
    numbers = pc.binary_join(lines.cast(pa.list_(pa.string())), ",")
    if kind == "variants":  # `variants/17/1003`
        target = pc.replace_substring_regex(path, "^/products/([^/]*)/variants/", r"variants/\1/")
    else:
        target = pc.binary_join_element_wise(f"{kind}/", pc.list_element(lines, 0).cast(pa.string()), "")
    method = "PATCH" if kind == "variants" else "POST"
    end = f',"repeatable":{"true" if is_repeatable else "false"}'
    if kind == "customers" and wishes.passwords is not None:
        end += f',"password":"{wishes.passwords}"'
    keys: tuple[Any, ...] = ()
    if kind == "customers":
        keys = (',"keys":', objects({name: fields[name] for name in KEYS}))
    return pc.binary_join_element_wise(
        '{"id":',
        pa.array(ids).cast(pa.string()),
        ',"batch":',
        pa.array((ids - 1) // wishes.batch_size + 1).cast(pa.string()),
        f',"method":"{method}","path":"',
        path,
        '","body":',
        body,
        ',"lines":[',
        numbers,
        '],"target":"',
        target,
        '"',
        *keys,
        end + "}\n",
        "",
    )


def _notification(told: pa.Array, wishes: RequestOptions) -> pa.Array:
    """Off unless asked for; a password that is mailed needs the mail."""
    if wishes.passwords == "mailed":
        return pa.array([CREDENTIALS] * len(told), pa.string())
    return pc.coalesce(told, NOTIFY if wishes.notify else SILENT)
