"""From inputs to the lines of `operations.jsonl`, a whole column at a time.

In: tables of inputs to send, each field as JSON text, null if it is not sent. Out: text, one operation per line. No row
becomes a Python object, so that a file of millions of rows is planned in seconds.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports.json_columns import bytes_of, objects
from orderbridge.pipelines.plan.summary import PlanStatistics
from orderbridge.sources.kinds import NOTIFICATION, InputKind
from orderbridge.transforms.frames import Ints

_SILENT: Final = '{"send":false,"withCredentials":false}'
_NOTIFY: Final = '{"send":true,"withCredentials":false}'
_CREDENTIALS: Final = '{"send":true,"withCredentials":true}'


class _Requests:
    """One request for each input: its body as JSON text, null where the input needs none."""

    def __init__(self, body: pa.Array, *, is_repeatable: bool) -> None:
        self.body = body
        self.is_repeatable = is_repeatable
        self.is_needed: Ints = pc.is_valid(body).to_numpy(zero_copy_only=False).astype(np.int64)


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
        fields = {
            name: table[name].combine_chunks()
            for name in table.column_names
            if name not in ("lines", "path")
        }
        if self.kind.has_login:
            notification = self._notification(fields[NOTIFICATION])
            fields[NOTIFICATION] = notification
            self.messages += pc.sum(pc.match_substring(notification, '"send":true')).as_py() or 0
        path = table["path"].combine_chunks()
        tail = self._tail(table, fields, path)
        requests = self._bodies(fields)
        texts = [
            self._operations(request, ids, path, tail)
            for request, ids in zip(requests, self._ids(requests), strict=True)
        ]
        self.statistics.inputs += table.num_rows
        return bytes_of(pc.binary_join_element_wise(*texts, ""))

    def _bodies(self, fields: dict[str, pa.Array]) -> list[_Requests]:
        """The requests that an input can need: one, or another one with the additive fields of an update."""
        if not self.kind.is_update:
            return [_Requests(pc.coalesce(objects(fields), "{}"), is_repeatable=False)]
        added = {name: texts for name, texts in fields.items() if name in self.additive}
        others = {name: texts for name, texts in fields.items() if name not in added}
        requests = []
        if others:
            requests.append(_Requests(objects(others), is_repeatable=True))
        if added:
            requests.append(_Requests(objects(added), is_repeatable=False))
        return requests

    def _ids(self, requests: list[_Requests]) -> list[Ints]:
        """The number of each operation, input by input; counts them.

        Of an input without such a request the number is that of an earlier operation, and is not used.
        """
        of_input = np.sum([request.is_needed for request in requests], axis=0)
        ids = self.operations + np.cumsum(of_input) - of_input
        result = []
        for request in requests:
            ids = ids + request.is_needed
            result.append(ids)
            count = int(request.is_needed.sum())
            self.operations += count
            if not request.is_repeatable:
                self.statistics.not_repeatable += count
        return result

    def _operations(
        self, request: _Requests, ids: Ints, path: pa.Array, tail: list[pa.Array | str]
    ) -> pa.Array:
        """A line for each input, blank if it needs no such request."""
        number = pa.array(ids).cast(pa.string())
        batch = pa.array((ids - 1) // self.batch_size + 1).cast(pa.string())
        head = ['{"id":', number, ',"batch":', batch]
        target = [f',"method":"{self.kind.operation.verb}","path":"', path]
        body = ['","body":', request.body]
        repeatable = f',"repeatable":{"true" if request.is_repeatable else "false"}'
        password = ""
        if self.statistics.passwords is not None:
            password = f',"password":"{self.statistics.passwords}"'
        end = [repeatable, password, "}\n"]
        line = pc.binary_join_element_wise(*head, *target, *body, *tail, *end, "")
        return pc.coalesce(line, "")  # null if there is no body

    def _tail(
        self, table: pa.Table, fields: dict[str, pa.Array], path: pa.Array
    ) -> list[pa.Array | str]:
        """What each request of an input says of it: its lines, its target and, in a list, its keys."""
        numbers = table["lines"].combine_chunks().cast(pa.list_(pa.string()))
        target = path
        if not self.kind.is_update:
            first = pc.list_element(numbers, 0)
            target = pc.binary_join_element_wise(f"{self.kind.name}/", first, "")
        tail = [',"lines":[', pc.binary_join(numbers, ","), '],"target":"', target, '"']
        if self.kind.is_listed:
            tail += [',"keys":', objects({name: fields[name] for name in self.kind.list_keys})]
        return tail

    def _notification(self, given: pa.Array) -> pa.Array:
        """Off unless requested; a mailed password requires it."""
        if self.statistics.passwords == "mailed":
            return pa.array([_CREDENTIALS] * len(given), pa.string())
        return pc.coalesce(given, _NOTIFY if self.statistics.notify else _SILENT)
