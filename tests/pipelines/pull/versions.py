"""Two versions of a platform's data that a reader can tell apart, table by table."""

from __future__ import annotations

from tests.pipelines.bridge import Bridge

MARKED = {
    "customers": ("lastName", "last_name"),
    "promotions": ("name", "name"),
    "price_lists": ("name", "name"),
    "orders": ("currency", "currency"),
}
"""A field of each list that the second version changes, and its column."""


def version_sql(made: Bridge) -> str:
    """One row that reports which version the file holds, with a share of every table in it."""
    parts = []
    for name, (_, column) in MARKED.items():
        first = made.platform.state.ids(name)[0]
        parts.append(f"(SELECT count(*) FROM raw.{name})")
        parts.append(f"(SELECT {column}::VARCHAR FROM raw.{name} WHERE id = '{first}')")
        parts.append(f"(SELECT count(*) FROM raw.{name} WHERE _missing_since IS NOT NULL)")
    parts += [f"(SELECT count(*) FROM {table})" for table in ("raw.customers__documents", "raw.orders__lines")]
    parts += [f"(SELECT count(DISTINCT run_id) FROM ops.{table})" for table in ("runs", "coverage", "control_totals")]
    return f"SELECT {', '.join(parts)}"


def change_all(made: Bridge) -> None:
    """The records of the second version."""
    state = made.platform.state
    for name, (field, _) in MARKED.items():
        marker, *_, gone = state.ids(name)
        state.change(name, marker, {field: "Segunda"})
        state.remove(name, gone)
    state.add("customers", {"firstName": "Zoë", "documents": [{"number": "1"}, {"number": "2"}]})
