"""The platform's customers, read now: what is there of those that a push asks about.

In: keys, the client. Out: the records that have one of these keys, and whether the list is proven complete. A row that
the walk refused is a customer too: it is read for its keys alone. Nothing of an earlier walk is used, and nothing of
this one is left.
"""

from __future__ import annotations

import json
import shutil
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from pipelines.ledger.store import identity
from sources import __version__
from sources.contract import CUSTOMER
from sources.decode.rows import Number, RowRefused, canonical, parse
from sources.decode.table_schema import snake
from sources.extract.result import ListResult, Progress, WalkOptions, no_progress
from sources.extract.spool import SpoolFolder
from sources.extract.table_files import read_batches
from sources.extract.walk import walk
from sources.http.client import Client

KEYS: Final = ("erpCode", "email", "loginCode")
Key = tuple[str, str]
"""Name of a key field, and its value as it is compared (`identity`)."""
_UNREADABLE: Final = ("password", "notification")


@dataclass(frozen=True, slots=True)
class Listing:
    """What a walk found of the keys that were asked for.

    Attributes:
        whole: proven: each row of the list came, refused or not.
        verdict: of the walk.
        found: records (fields of the interface, JSON names) by key.
        refused: keys that a refused row has: somebody has them, and nothing else of the record is known.
        untold: refused rows that do not surely tell their keys: they may be anybody's.
    """

    whole: bool
    verdict: str
    found: Mapping[Key, list[dict[str, Any]]] = field(default_factory=dict)
    refused: Set[Key] = frozenset()
    untold: int = 0

    @property
    def complete(self) -> bool:
        """Proven: what is not here is not there. A refused row that tells its keys leaves no doubt about others."""
        return self.whole and not self.untold

    def by(self, keys: Mapping[str, str]) -> list[dict[str, Any]]:
        """The records that have any of these keys, each once."""
        records = (record for key in keys_of(keys) for record in self.found.get(key, ()))
        return list({record["id"]: record for record in records}.values())


def keys_of(keys: Mapping[str, str]) -> list[Key]:
    """An operation's keys as they are compared; blank ones are none."""
    return [(name, value) for name in KEYS if (value := identity(name, keys.get(name, "")))]


def read(
    client: Client,
    folder: Path,
    keys: Set[Key],
    page_limit: int,
    progress: Progress = no_progress,
    observed: set[tuple[str, str]] | None = None,
) -> Listing:
    """Walks the customers (interface, GET /customers) from the first page to the end, now.

    Args:
        client: of the legacy family.
        folder: to work in; made and removed.
        keys: what is asked for.
        page_limit: items to ask for per page.
        progress: called after each page.
        observed: (what, value) of what the interface does not show (design §9), added to, also where the walk fails.

    Raises:
        AccessError, PlatformError: the list could not be read. Stopped: told to stop.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        spool = SpoolFolder(folder / "spool", {"list": CUSTOMER.name, "version": __version__})
        walked = walk(CUSTOMER.name, client, folder / "files", spool, WalkOptions(page_limit), progress)
        if observed is not None:
            observed.update(walked.observations)
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
    refused = {row.row_hash: _told(row.row) for row in walked.quarantined}
    told = {key for keys_told, _ in refused.values() for key in keys_told}
    untold = sum(not is_sure for _, is_sure in refused.values())
    return Listing(_is_whole(walked), walked.verdict, found, told & keys, untold)


def _is_whole(walked: ListResult) -> bool:
    """Whether two sweeps found the same, refused rows too, without a doubt: then only those keep it from `complete`."""
    return (
        len(walked.sweeps) > 1 and len(walked.used_sweeps) == 1 and all(sweep.is_clean for sweep in walked.sweeps[-2:])
    )


def _told(row: bytes) -> tuple[set[Key], bool]:
    """The keys in a refused row, and whether they are surely all that it has.

    They are where the row is one JSON object, each of the three is a text, null or absent, and not all are missing:
    what hides all of them hides who it is. A number is a key, and no sure one: `7` may be a `007` that lost its zeros.
    """
    try:
        named = [(name, value) for name, value in parse(row).items() if name in KEYS and value is not None]
        is_sure = all(type(value) is str and "\0" not in value for _, value in named)
    except RowRefused:
        named, is_sure = list(_loosely(row)), False
    texts = [(name, canonical(value) if isinstance(value, Number) else value) for name, value in named]
    told = {(name, identity(name, text)) for name, text in texts if isinstance(text, str) and text.strip()}
    return told, is_sure and bool(told)


def _loosely(row: bytes) -> Iterator[tuple[str, object]]:
    """The key fields of what is no proper JSON, as far as Python reads it: NaN, a field that comes twice."""
    try:
        told = json.loads(row.decode("utf-8", "replace"), object_pairs_hook=tuple, parse_int=Number, parse_float=Number)
    except (ValueError, RecursionError):
        return
    if isinstance(told, tuple):
        yield from (pair for pair in told if pair[0] in KEYS)


def _records(files: Iterable[tuple[Path, int]], keys: Set[Key]) -> dict[str, dict[str, Any]]:
    """The rows that have one of the keys, by id, with the interface's own names."""
    records: dict[str, dict[str, Any]] = {}
    names = {snake(f.name): f.name for f in CUSTOMER.fields if f.type != "array"}
    for table in read_batches(files):
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
    for table in read_batches(files):
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
