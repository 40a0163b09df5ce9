"""Primary keys and descriptions of columns, for copies of the warehouse in databases that show them.

In: names of tables. Out: facts of the interface (`sources.contract`) and of the warehouse's own columns (design §6).
"""

from __future__ import annotations

from typing import Final

from sources.contract import LISTS, Record
from sources.decode.table_schema import snake

OWN_COLUMNS: Final = {
    "_run_id": "run that last read the record",
    "_first_seen_at": "first read that had the record",
    "_last_seen_at": "last read that had the record",
    "_missing_since": "first complete read without the record; null where it is listed",
    "_extra": "fields that the interface does not name, as JSON",
}
_KEYS: Final = {
    ("reconciled", "customers"): ("customer_id",),
    ("reconciled", "promotions"): ("promotion_id",),
    ("reconciled", "price_lists"): ("price_list_id",),
    ("reconciled", "orders"): ("order_id",),
    ("ops", "runs"): ("run_id",),
    ("ops", "observations"): ("what", "value"),
}


def primary_keys(schema: str, table: str) -> tuple[str, ...]:
    """The columns of a table's primary key; none where rows have no key."""
    if schema == "raw" and table in LISTS:
        return ("id",)
    return _KEYS.get((schema, table), ())


def column_descriptions(schema: str, table: str) -> dict[str, str]:
    """Descriptions by column; none for tables and columns that have none."""
    operation = LISTS.get(table)
    if schema != "raw" or operation is None or operation.records is None:
        return {}
    return {**_fields(operation.records), **OWN_COLUMNS}


def _fields(record: Record) -> dict[str, str]:
    return {snake(field.name): field.meaning for field in record.fields if field.meaning and field.type != "array"}
