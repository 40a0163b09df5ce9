"""The platform's customers, read now, for the keys that a push looks up; and how a record differs from what was sent.

In: keys, the client. Out: the records with one of these keys, and whether the list is proven complete. A row in
quarantine is a customer too: its keys are read. Nothing of an earlier walk is used, and no file is left.
"""

from __future__ import annotations

import json
import re
import shutil
from collections import defaultdict
from collections.abc import Callable, Container, Iterable, Iterator, Mapping, Set
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.ledger.keys import comparable, loose_code, search_key
from orderbridge.sources import __version__
from orderbridge.sources.contract import CUSTOMER, Record
from orderbridge.sources.decode.json_numbers import Number, canonical
from orderbridge.sources.decode.rows import InvalidRow, parse
from orderbridge.sources.decode.table_schema import snake
from orderbridge.sources.extract.result import Progress, WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.table_files import read_batches
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.http.client import Client
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.settings import ledger_path

LIST_KEYS: Final = KINDS["customers"].list_keys
ANY_SPELLING: Final = ", any spelling"
"""After the name of a key: its value is compared as `loose_code` has it."""
Key = tuple[str, str]
"""Name of a key field and its search key."""


@dataclass(frozen=True, slots=True)
class CustomerListing:
    """What a walk found for the keys.

    Attributes:
        is_whole: proven: every row was read, including those in quarantine.
        verdict: of the walk.
        records: by key, in the interface's field names.
        quarantined_keys: keys of rows in quarantine: such a customer exists, nothing else about it is known.
        unidentified: rows whose keys are not certain, in quarantine or with a number as a code, such as 7 for `007`:
            they may be any customer.
    """

    is_whole: bool
    verdict: str
    records: Mapping[Key, list[dict[str, Any]]] = field(default_factory=dict)
    quarantined_keys: Set[Key] = frozenset()
    unidentified: int = 0

    @property
    def proves_absence(self) -> bool:
        """Whether what is not found does not exist."""
        return self.is_whole and not self.unidentified

    def find(self, keys: Iterable[Key]) -> list[dict[str, Any]]:
        """The records with any of these keys, each once."""
        matches = (record for key in keys for record in self.records.get(key, ()))
        return list({record["id"]: record for record in matches}.values())


ReadCustomers = Callable[[Container[Key]], CustomerListing]
"""Reads the platform's customers now, for these keys."""


def search_keys(keys: Mapping[str, str]) -> list[Key]:
    """The search keys of an operation; blank ones are left out."""
    return [(name, value) for name in LIST_KEYS if (value := search_key(name, keys.get(name, "")))]


def any_spelling(keys: Iterable[Key]) -> list[Key]:
    """Keys by which customers are found although the platform writes a code in another way."""
    return [
        (f"{name}{ANY_SPELLING}", loose)
        for name, value in keys
        if name != "email" and (loose := loose_code(value))
    ]


def _row_keys(name: str, value: str) -> list[Key]:
    """The keys by which a row is found, given the value of a key field."""
    key = (name, search_key(name, value))
    return [key, *any_spelling([key])]


def walk_folder() -> Path:
    """Where the list of customers is read to, next to the ledger."""
    return ledger_path().with_name(f".{ledger_path().name}.walk")


def read_customers(
    client: Client,
    folder: Path,
    keys: Container[Key],
    page_limit: int,
    progress: Progress,
    observed: set[tuple[str, str]],
) -> CustomerListing:
    """Walks the list of customers (interface, GET /customers) from the first page to the end, and looks for the keys.

    The folder to work in is created and removed. `observed` gets (what, value) of gaps in the interface, even if the
    walk fails.

    Raises:
        AccessError, PlatformError: the list could not be read. Stopped: a person stopped it.
    """
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700, parents=True)
    try:
        spool = SpoolFolder(folder / "spool", {"list": CUSTOMER.name, "version": __version__})
        result = walk(
            CUSTOMER.name, client, folder / "files", spool, WalkOptions(page_limit), progress
        )
        observed.update(result.observations)
        if result.error is not None:
            raise result.error
        matches = matching_rows(read_batches(result.files[CUSTOMER.name]), keys)
        add_documents(matches, read_batches(result.files.get("customers__documents", [])))
        is_numeric = (
            f'"({"|".join(LIST_KEYS)})":'  # `_extra` has the original of what became a text
        )
        extras = (table["_extra"] for table in read_batches(result.files[CUSTOMER.name]))
        numbers = [pc.sum(pc.match_substring_regex(extra, is_numeric)).as_py() for extra in extras]
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    records = records_by_key(matches.values(), keys)
    quarantined = list({row.row_hash: keys_in_row(row.row) for row in result.quarantined}.values())
    quarantined_keys = {key for found, _ in quarantined for key in found if key in keys}
    unidentified = sum(not is_certain for _, is_certain in quarantined) + sum(filter(None, numbers))
    return CustomerListing(
        result.is_agreed, result.verdict, records, quarantined_keys, unidentified
    )


def keys_in_row(row: bytes) -> tuple[set[Key], bool]:
    """Reads the keys in a quarantined row.

    Returns:
        The keys, as far as they can be read, numbers included; whether the row certainly has no others: it is one JSON
        object, each key is a text, null or absent, and at least one is present.
    """
    try:
        members = [
            (name, value)
            for name, value in parse(row).items()
            if name in LIST_KEYS and value is not None
        ]
        is_certain = all(type(value) is str and "\0" not in value for _, value in members)
    except InvalidRow:
        members = list(_lenient_members(row))
        is_certain = False
    texts = [
        (name, canonical(value) if isinstance(value, Number) else value) for name, value in members
    ]
    keys = {
        (name, search_key(name, text))
        for name, text in texts
        if isinstance(text, str) and text.strip()
    }
    return keys, is_certain and bool(keys)


def _lenient_members(row: bytes) -> Iterator[tuple[str, object]]:
    """The key fields of invalid JSON as far as Python reads it: NaN, a field that occurs twice."""
    try:
        pairs = json.loads(
            row.decode("utf-8", "replace"),
            object_pairs_hook=tuple,
            parse_int=Number,
            parse_float=Number,
        )
    except (ValueError, RecursionError):
        return
    if isinstance(pairs, tuple):
        yield from (pair for pair in pairs if pair[0] in LIST_KEYS)


def matching_rows(
    tables: Iterable[pa.Table],
    keys: Container[Key],
    ids: Set[str] = frozenset(),
    record: Record = CUSTOMER,
) -> dict[str, dict[str, Any]]:
    """Records with one of the ids, or keys of customers, by id, in the interface's field names, without documents."""
    matches: dict[str, dict[str, Any]] = {}
    key = snake(record.key)
    columns = {snake(f.name): f.name for f in record.fields if not f.fields}
    for table in tables:
        places = _places_with_ids(table[key], ids) if ids else set()
        if record is CUSTOMER:
            for name in LIST_KEYS:
                places |= _places_with_keys(table[snake(name)], name, keys)
        for row in table.take(pa.array(sorted(places), pa.int64())).to_pylist():
            fields = {name: row[column] for column, name in columns.items()}
            matches[row[key]] = {**fields, "documents": []}
    return matches


def _places_with_ids(column: pa.ChunkedArray, ids: Set[str]) -> set[int]:
    return {place for place, value in enumerate(column.to_pylist()) if value in ids}


def _places_with_keys(column: pa.ChunkedArray, name: str, keys: Container[Key]) -> set[int]:
    """The rows with one of the keys, in any spelling, in the column of one key field."""
    return {
        place
        for place, value in enumerate(column.to_pylist())
        if value and any(one in keys for one in _row_keys(name, value))
    }


def add_documents(records: Mapping[str, dict[str, Any]], tables: Iterable[pa.Table]) -> None:
    """Adds their documents to customers."""
    ids = pa.array(records, pa.string())
    columns = {snake(f.name): f.name for f in CUSTOMER.field("documents").fields}
    for table in tables:
        rows = table.filter(pc.is_in(table["customer_id"], value_set=ids)).sort_by("position")
        for row in rows.to_pylist():
            document = {name: row[column] for column, name in columns.items()}
            records[row["customer_id"]]["documents"].append(document)


def records_by_key(
    records: Iterable[dict[str, Any]], keys: Container[Key]
) -> dict[Key, list[dict[str, Any]]]:
    """The customers with each of the keys."""
    by_key: dict[Key, list[dict[str, Any]]] = defaultdict(list)
    for record in records:
        for name in LIST_KEYS:
            for key in _row_keys(name, record.get(name) or ""):
                if key in keys:
                    by_key[key].append(record)
    return by_key


def differing_fields(
    body: Mapping[str, Any], record: Mapping[str, Any], country: str | None = None
) -> list[str]:
    """The fields of a write that differ on the platform; fields that cannot be read back are not compared.

    Texts are equal regardless of surrounding whitespace, e-mails regardless of the case of ASCII letters, numbers by
    value, a day and a time on it, phones as in `transforms.values.phones`. The record has each field that its list
    shows.
    """
    return [
        name
        for name, value in body.items()
        if name in record
        and not _is_equal(name, value, record[name])
        and not (name == "phone" and _is_same_phone(value, record[name], country))
    ]


def _is_same_phone(sent: object, actual: object, country: str | None) -> bool:
    """Whether the platform only writes the number in another way, such as without blanks or with `00` for `+`."""
    if not isinstance(sent, str) or not isinstance(actual, str):
        return False
    import pandas as pd  # not needed by a push of variants

    from orderbridge.transforms.frames import TEXT
    from orderbridge.transforms.values.phones import same_phone

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
        # of values: JSON text in its column
        found = json.loads(actual) if isinstance(actual, str) else actual
        items = found if isinstance(found, list) else []
        return len(items) == len(sent) and all(map(_is_equal, [name] * len(sent), sent, items))
    if isinstance(sent, bool) or actual is None:
        return bool(sent == actual)
    left, right = comparable(name, _text(sent)), comparable(name, _text(actual))
    return left == right or (
        left == right[:10] and re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:.*", right) is not None
    )


def _text(value: object) -> str:
    """A number and its text in the list are equal: 7, 7.0 and "7"; a date and its text are."""
    is_number = isinstance(value, int | float | Decimal) and not isinstance(value, bool)
    return f"{Decimal(str(value)).normalize():f}" if is_number else str(value)
