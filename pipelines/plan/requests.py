"""From inputs to the lines of `operations.jsonl`, a whole column at a time.

In: tables of inputs to send, each field as JSON text, null if it is not sent. Out: text, one operation per line. No row
becomes a Python object, so that a file of millions of rows is planned in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.json_columns import bytes_of, objects
from orderbridge.pipelines.plan.summary import PlanStatistics
from orderbridge.sources.kinds import NOTIFICATION, InputKind

_SILENT: Final = '{"send":false,"withCredentials":false}'
_NOTIFY: Final = '{"send":true,"withCredentials":false}'
_CREDENTIALS: Final = '{"send":true,"withCredentials":true}'


@dataclass(slots=True)
class RequestWriter:
    """Makes the operations of a plan, table by table, and counts them.

    Attributes:
        batch_size: operations per batch.
        additive: fields sent in a PATCH of their own, which is never repeated.
        statistics: of the plan, with the source of passwords, and whether a new customer gets a message if the file has
            no column for it.
        operations, messages: their number, and that of messages to customers.
    """

    kind: InputKind
    batch_size: int
    additive: frozenset[str]
    statistics: PlanStatistics
    operations: int = 0
    messages: int = 0

    def write(self, table: pa.Table) -> bytes:
        """The operations of a table of inputs, in its order, as text.

        The table has `lines`, `path`, and a column for each field of the body, in order.
        """
        if not table.num_rows:
            return b""
        kind = self.kind
        fields = {
            name: table[name].combine_chunks()
            for name in table.column_names
            if name not in ("lines", "path")
        }
        if kind.has_login:
            fields[NOTIFICATION] = self._notification(fields[NOTIFICATION])
            self.messages += (
                pc.sum(pc.match_substring(fields[NOTIFICATION], '"send":true')).as_py() or 0
            )
        if kind.is_update:
            added = {name: texts for name, texts in fields.items() if name in self.additive}
            others = {name: texts for name, texts in fields.items() if name not in added}
            bodies = [(objects(part), part is others) for part in (others, added) if part]
        else:
            bodies = [(pc.coalesce(objects(fields), "{}"), False)]
        path, numbers = (
            table["path"].combine_chunks(),
            table["lines"].combine_chunks().cast(pa.list_(pa.string())),
        )
        target, keys = path, tuple[Any, ...]()
        if not kind.is_update:
            target = pc.binary_join_element_wise(f"{kind.name}/", pc.list_element(numbers, 0), "")
        if kind.is_listed:
            keys = (',"keys":', objects({name: fields[name] for name in kind.list_keys}))
        verb, lines = kind.operation.verb, pc.binary_join(numbers, ",")
        password = (
            f',"password":"{self.statistics.passwords}"'
            if self.statistics.passwords is not None
            else ""
        )
        has_body = [
            pc.is_valid(body).to_numpy(zero_copy_only=False).astype(np.int64) for body, _ in bodies
        ]
        bodies_of_input = np.sum(has_body, axis=0)
        ids = self.operations + np.cumsum(bodies_of_input) - bodies_of_input
        texts = []
        for (body, is_repeatable), has in zip(bodies, has_body, strict=True):
            ids = ids + has
            self.operations += int(has.sum())
            self.statistics.not_repeatable += 0 if is_repeatable else int(has.sum())
            number, batch = (
                pa.array(n).cast(pa.string()) for n in (ids, (ids - 1) // self.batch_size + 1)
            )
            head = (
                '{"id":',
                number,
                ',"batch":',
                batch,
                f',"method":"{verb}","path":"',
                path,
                '","body":',
                body,
            )
            repeatable = f',"repeatable":{"true" if is_repeatable else "false"}'
            tail = (
                ',"lines":[',
                lines,
                '],"target":"',
                target,
                '"',
                *keys,
                repeatable,
                password,
                "}\n",
            )
            texts.append(
                pc.coalesce(pc.binary_join_element_wise(*head, *tail, ""), "")
            )  # null if there is no body
        self.statistics.inputs += table.num_rows
        return bytes_of(pc.binary_join_element_wise(*texts, ""))

    def _notification(self, given: pa.Array) -> pa.Array:
        """Off unless requested; a mailed password requires it."""
        if self.statistics.passwords == "mailed":
            return pa.array([_CREDENTIALS] * len(given), pa.string())
        return pc.coalesce(given, _NOTIFY if self.statistics.notify else _SILENT)
