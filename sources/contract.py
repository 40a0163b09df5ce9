"""The interface as data: every field, type and limit, written once, in `contract.toml`.

In: that file. Out: operations, and records of fields, from which the dlt sources take their columns, the sandbox its
validation, the push its input models; there is no behaviour. What the interface does not show is in `sources.gaps`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, Final, Literal

Family = Literal["legacy", "public_v1"]
Verb = Literal["GET", "POST", "PATCH"]
INT64_MAX: Final = 2**63 - 1
FieldType = Literal[
    "identifier", "text", "integer", "number", "boolean", "date", "decimal_text", "object", "array"
]


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a record or an input.

    Attributes:
        name: the JSON name.
        type: `identifier` is a number or string that identifies something (kept as text); `decimal_text` is a decimal
            in a string; `date` is YYYY-MM-DD; the others are JSON types.
        json: the JSON type in the interface, where `type` is more specific (an identifier, a date).
        required: False also where it is conditional, or not shown.
        fields: of an object, or of the objects in an array.
        items: the type of an array's items, if they are not objects.
        min_length: of a text. min_items, max_items: of an array. minimum, max_decimals: of a number.
        int64: whether the interface declares an integer as int64.
        meaning: the description in the interface.
    """

    name: str
    type: FieldType
    json: Literal["", "string", "number", "integer"] = ""
    required: bool = False
    fields: tuple[Field, ...] = ()
    items: FieldType | None = None
    min_length: int = 0
    min_items: int = 0
    max_items: int | None = None
    minimum: int | None = None
    max_decimals: int | None = None
    int64: bool = False
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Record:
    """A named set of fields.

    Attributes:
        fields: none where the interface does not show them: names and types then come from the walk.
        key: the field that identifies a record.
        key_setting: the setting of the family that names another one.
        refers_to: the list whose records it names.
    """

    name: str
    fields: tuple[Field, ...]
    key: str = ""
    key_setting: str = ""
    refers_to: str = ""

    def field(self, name: str) -> Field:
        """The field with this JSON name. Raises KeyError if there is none."""
        return {field.name: field for field in self.fields}[name]


@dataclass(frozen=True, slots=True)
class Operation:
    """An operation of the interface: verb, path under the family's base, parameters, query and input.

    Attributes:
        paging: of a list. What proves it complete follows from that (docs/completeness.md).
        records: what a list holds.
        rows_field: the member of a response of a list that has its rows.
        error_code: JSON type of `code` in the legacy family's `errors` array; empty if the shape is not shown.
        created_status: the status of a create, where it is shown.
    """

    name: str
    family: Family
    verb: Verb
    path: str
    query: tuple[str, ...] = ()
    params: tuple[Field, ...] = ()
    input: Record | None = None
    paging: Literal["none", "pages", "cursor"] = "none"
    records: Record | None = None
    rows_field: str = "data"
    scope: str = ""
    error_code: Literal["", "integer", "string"] = ""
    created_status: int | None = None

    @property
    def shown_in(self) -> Record | None:
        """The records of the list that shows a write: at its path without a last id; None if there is no such list."""
        at = self.family, re.sub(r"/\{\w+\}$", "", self.path)
        return next((one.records for one in LISTS.values() if (one.family, one.path) == at), None)


@cache
def path_pattern(path: str) -> re.Pattern[str]:
    """What fits the path of an operation with ids in the place of its parameters."""
    return re.compile(re.sub(r"\{\w+\}", "[^/]+", path))


PUBLIC_V1_PREFIX: Final = "/public/v1"
PUBLIC_V1_LIMIT_MIN: Final = 1
PUBLIC_V1_LIMIT_MAX: Final = 100
PUBLIC_V1_LIMIT_DEFAULT: Final = 20
PUBLIC_V1_PREFIXES: Final = {"_live_": "production", "_test_": "sandbox"}
PUBLIC_V1_AUTH_CODES: Final = ("UNAUTHENTICATED", "INVALID_API_KEY", "KEY_EXPIRED")


def _read(
    tables: dict[str, dict[str, dict[str, Any]]],
) -> tuple[dict[str, Record], tuple[Operation, ...]]:
    """The records and operations of `contract.toml`."""
    records: dict[str, Record] = {}

    def fields(given: Mapping[str, dict[str, Any]]) -> tuple[Field, ...]:
        below = {
            name: records[about["fields"]].fields
            for name, about in given.items()
            if "fields" in about
        }
        return tuple(
            Field(**{**about, "name": name, "fields": below.get(name, ())})
            for name, about in given.items()
        )

    for name, about in tables["records"].items():
        records[name] = Record(**{**about, "name": name, "fields": fields(about.get("fields", {}))})
    operations = []
    for name, about in tables["operations"].items():
        named = {part: records[about[part]] for part in ("input", "records") if part in about}
        own = {
            "name": name,
            "query": tuple(about.get("query", ())),
            "params": fields(about.get("params", {})),
        }
        operations.append(Operation(**(about | own | named)))
    return records, tuple(operations)


_RECORDS, OPERATIONS = _read(
    tomllib.loads(files(__package__).joinpath("contract.toml").read_text("utf-8"))
)
LISTS: Final = {op.records.name: op for op in OPERATIONS if op.records is not None}
"""The operations that list what a pull walks, by resource name, in display order."""
RECORDS: Final = {name: _RECORDS[name] for name in LISTS}
"""Their records."""
UNDOCUMENTED: Final = tuple(name for name, record in RECORDS.items() if not record.fields)
"""The lists of records whose fields are not shown."""
CUSTOMER: Final = RECORDS["customers"]
ORDER: Final = RECORDS["orders"]


def operation_named(name: str) -> Operation:
    """The operation of this name."""
    return next(one for one in OPERATIONS if one.name == name)


def records_of(family: Family) -> list[Record]:
    """The records of a family's lists."""
    return [record for name, record in RECORDS.items() if LISTS[name].family == family]
