"""The platform's customers, read now: what is there of those that a push asks about.

In: keys, the client. Out: the records that have one of these keys, and whether the list is proven complete. Nothing of
an earlier walk is used, and nothing of this one is left.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.ledger import identity
from sources import __version__
from sources.client import Client
from sources.contract import CUSTOMER
from sources.pagefiles import batches
from sources.spool import SpoolFolder
from sources.tables import snake
from sources.walk import Options, Progress, walk

KEYS: Final = ("erpCode", "email", "loginCode")
Key = tuple[str, str]
"""Name of a key field, and its value as it is compared (`identity`)."""
_UNREADABLE: Final = ("password", "notification")


@dataclass(frozen=True, slots=True)
class Listing:
    """What a walk found of the keys that were asked for.

    Attributes:
        complete: proven: what is not here is not there.
        verdict: of the walk.
        found: records (fields of the interface, JSON names) by key.
    """

    complete: bool
    verdict: str
    found: Mapping[Key, list[dict[str, Any]]] = field(default_factory=dict)

    def by(self, keys: Mapping[str, str]) -> list[dict[str, Any]]:
        """The records that have any of these keys, each once."""
        records = (record for key in keys_of(keys) for record in self.found.get(key, ()))
        return list({record["id"]: record for record in records}.values())


def keys_of(keys: Mapping[str, str]) -> list[Key]:
    """An operation's keys as they are compared; blank ones are none."""
    return [(name, value) for name in KEYS if (value := identity(name, keys.get(name, "")))]


def read(client: Client, folder: Path, keys: Set[Key], page_limit: int, progress: Progress) -> Listing:
    """Walks the customers (interface, GET /customers) from the first page to the end, now.

    Args:
        client: of the legacy family.
        folder: to work in; made and removed.
        keys: what is asked for.
        page_limit: items to ask for per page.
        progress: called after each page.

    Raises:
        AccessError, PlatformError: the list could not be read. Stopped: told to stop.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        spool = SpoolFolder(folder / "spool", {"list": CUSTOMER.name, "version": __version__})
        walked = walk(CUSTOMER.name, client, folder / "files", spool, Options(page_limit), progress)
        if walked.error is not None:
            raise walked.error
        records = _records(walked.files[CUSTOMER.name], keys)
        _add_documents(records, walked.files.get("customers__documents", []))
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    found: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for record in records.values():
        for name in KEYS:
            if record.get(name) and (key := (name, identity(name, record[name]))) in keys:
                found[key].append(record)
    return Listing(walked.verdict == "complete", walked.verdict, found)


def _records(files: Iterable[tuple[Path, int]], keys: Set[Key]) -> dict[str, dict[str, Any]]:
    """The rows that have one of the keys, by id, with the interface's own names."""
    records: dict[str, dict[str, Any]] = {}
    names = {snake(f.name): f.name for f in CUSTOMER.fields if f.type != "array"}
    for table in batches(files):
        places: set[int] = set()
        for name in KEYS:
            values = table[snake(name)].to_pylist()
            places |= {n for n, value in enumerate(values) if value and (name, identity(name, value)) in keys}
        for row in table.take(pa.array(sorted(places), pa.int64())).to_pylist():
            records[row["id"]] = {told: row[column] for column, told in names.items()} | {"documents": []}
    return records


def _add_documents(records: Mapping[str, dict[str, Any]], files: Iterable[tuple[Path, int]]) -> None:
    wanted = pa.array(records, pa.string())
    names = {snake(f.name): f.name for f in CUSTOMER.field("documents").fields}
    for table in batches(files):
        rows = table.filter(pc.is_in(table["customer_id"], value_set=wanted)).sort_by("position")
        for row in rows.to_pylist():
            document = {told: row[column] for column, told in names.items()}
            records[row["customer_id"]]["documents"].append(document)


def differing(sent: Mapping[str, Any], found: Mapping[str, Any]) -> list[str]:
    """The fields of a create that the record on the platform has otherwise; those that cannot be read are passed over.

    Texts are the same without the blanks around them, an e-mail whatever its case, numbers by their value.

    Args:
        sent: the body of the create.
        found: the record, from `Listing` or the warehouse.
    """
    readable = {f.name for f in CUSTOMER.fields}
    return [
        name
        for name, value in sent.items()
        if name in readable and name not in _UNREADABLE and not _same(name, value, found.get(name))
    ]


def _same(name: str, sent: object, found: object) -> bool:
    if sent is None or sent == "":
        return found in (None, "")
    if isinstance(sent, Mapping):
        return isinstance(found, Mapping) and all(
            _same(inner, value, found.get(inner)) for inner, value in sent.items()
        )
    if isinstance(sent, list):
        listed = found if isinstance(found, list) else []
        return len(listed) == len(sent) and all(map(_same, [name] * len(sent), sent, listed))
    if isinstance(sent, bool) or found is None:
        return bool(sent == found)
    return identity(name, _text(sent)) == identity(name, _text(found))


def _text(value: object) -> str:
    """A number and the text that a list makes of it are one: 7 and 7.0 and "7"."""
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return value if isinstance(value, str) else json.dumps(value)
