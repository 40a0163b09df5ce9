"""What a contender put into its file: rows and a checksum for each table, printed as JSON, in a process of its own.

The contenders name and type things alike or nearly so; what differs is brought to one text before it is hashed.
"""

from __future__ import annotations

import json
import sys

import duckdb

SCHEMAS = {"floor": "main", "pull": "raw", "certified": "raw", "tuned": "bench"}
_CREATED = "epoch_ms({}created_at::TIMESTAMPTZ)"
_KEYS = {"customers__documents": ("customers", "customer_id"), "orders__lines": ("orders", "order_id")}
_TEXTS = {
    "customers": "id first_name last_name phone email login_code price_list_id erp_code birthdate",
    "customers__documents": "number fiscal_name fiscal_address email is_default for_taxes",
    "orders": "id number status currency total customer__id customer__erp_code shipping__method notes",
    "orders__lines": "position sku name unit_price discount__name discount__rate",
}


def main(contender: str, file: str) -> None:
    """Looks at each table."""
    with duckdb.connect(file, read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        found = {table: list(look(connection, SCHEMAS[contender], table)) for table in _TEXTS}
    print(json.dumps(found))


def look(connection: duckdb.DuckDBPyConnection, schema: str, table: str) -> tuple[int, str]:
    """(rows, checksum) of a table; a sum, so that the order of the rows does not matter."""
    described = connection.execute(f'DESCRIBE "{schema}"."{table}"').fetchall()
    columns = {str(row[0]) for row in described}
    values = [f"c.{name}" for name in _TEXTS[table].split()]
    source = f'"{schema}"."{table}" c'
    if "created_at" in columns:
        values.append(_CREATED.format("c."))
    if table in _KEYS:
        parent, key = _KEYS[table]
        if "_dlt_parent_id" in columns:  # dlt keeps the parent's row in place of its key
            source += f' JOIN "{schema}"."{parent}" p ON p._dlt_id = c._dlt_parent_id'
            values.append("p.id")
        else:
            values.append(f"c.{key}")
    if table == "orders__lines":
        # dlt puts a number with a fraction, met after whole ones, into another column
        kinds = sorted(name for name in columns if name == "quantity" or name.startswith("quantity__v_"))
        values.append(f"coalesce({', '.join(f'c.{name}::DOUBLE' for name in kinds)})")
    reported = ", ".join(f"coalesce({value}::VARCHAR, '∅')" for value in values)
    row = connection.execute(f"SELECT count(*), sum(hash(concat_ws('|', {reported}))) FROM {source}").fetchone()
    if row is None:
        raise RuntimeError("a count without a row")
    return int(row[0]), str(row[1])


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2])
