"""A pull compared with others on the same work: so many customers with documents, and as many orders with lines.

A sandbox serves them, and each contender pulls both lists from it in a process of its own:

    requests   all pages fetched over bare sockets, in the order that the protocol forces; nothing is parsed
    floor      the least that has to be done: bare sockets, pyarrow, Arrow into DuckDB
    pull       orderbridge pull customers orders --sweeps 1
    certified  orderbridge pull customers orders: swept until two sweeps agree

Then the files are compared, table by table: a contender whose rows are not those of the floor, or not as many as the
sandbox has, fails the run.
"""

from __future__ import annotations

import shutil
import tempfile
from math import ceil
from pathlib import Path
from typing import Any

from tests.bench.measure import Cost, Failed, Series, called, line_of, measured_rounds, run, serving

REFERENCES = {"requests": "", "floor": "requests", "pull": "floor", "certified": "pull"}
PAGE = 100
READY_LINES = 7
_COLUMNS = {
    "customers": "id first_name last_name phone email login_code price_list_id erp_code birthdate::DATE",
    "customers__documents": "customer_id number fiscal_name fiscal_address email is_default for_taxes",
    "orders": "id number status currency total::DOUBLE customer__id customer__erp_code shipping__method notes",
    "orders__lines": "order_id position sku name quantity::DOUBLE unit_price::DOUBLE discount__name "
    "discount__rate::DOUBLE",
}


def measured(rows: int, rounds: int, latency_ms: int = 0) -> list[Series]:
    """All contenders on one work. Raises Failed where one fails or has other rows."""
    sizes = ("--customers", str(rows), "--orders", str(rows), "--latency-ms", str(latency_ms))
    with tempfile.TemporaryDirectory(prefix="orderbridge-bench-") as temporary:
        base = Path(temporary)
        _, known = called("pull.known", rows, folder=base)
        with serving("orderbridge.pipelines.cli", "sandbox", *sizes, folder=base) as platform:
            ready = [line_of(platform).partition("=") for _ in range(READY_LINES)]
            settings = {name: value for name, _, value in ready[1:]}
            floor: dict[str, Any] = {}

            def one(name: str) -> Cost:
                folder = base / name
                folder.mkdir()
                file = str(folder / "shop.duckdb")
                own = settings | {"WAREHOUSE__PATH": file}
                if name == "requests":
                    cost, found = called(
                        "floor.requests", known["window"], folder=folder, settings=own
                    )
                    wanted: Any = 2 * ceil(rows / PAGE)
                else:
                    if name == "floor":
                        cost, _ = called("floor.floor", file, folder=folder, settings=own)
                    else:
                        sweeps = ("--sweeps", "1") if name == "pull" else ()
                        command = (
                            "orderbridge.pipelines.cli",
                            "pull",
                            "customers",
                            "orders",
                            *sweeps,
                        )
                        cost, _ = run(*command, folder=folder, settings=own)
                    _, found = called("pull.found", file, folder=folder)
                    floor.update(found if name == "floor" else {})
                    wanted = {
                        table: [count, floor[table][1]] for table, count in known["counts"].items()
                    }
                if found != wanted:
                    raise Failed(f"{name}: came to {found}, expected {wanted}")
                shutil.rmtree(folder)
                return cost

            references = REFERENCES | ({"pull": "requests"} if latency_ms else {})
            return measured_rounds(
                f"pull, {latency_ms} ms" if latency_ms else "pull", rows, rounds, one, references
            )


def known(rows: str) -> dict[str, Any]:
    """Counts children where the records are made, and how many pages a pull has in flight."""
    from orderbridge.sandbox.config import SandboxConfig
    from orderbridge.sandbox.records import generators
    from orderbridge.sources.extract.result import WINDOW

    numbers = range(int(rows))
    generate = generators(SandboxConfig(customers=len(numbers), orders=len(numbers)))
    documents = sum(record.count(b'"isDefault":') for record in map(generate["customers"], numbers))
    lines = sum(record.count(b'"unitPrice":') for record in map(generate["orders"], numbers))
    counts = {"customers": len(numbers), "customers__documents": documents, "orders": len(numbers)}
    return {"window": WINDOW, "counts": {**counts, "orders__lines": lines}}


def found(file: str) -> dict[str, Any]:
    """Rows and checksum of each table; a sum, so that the order of the rows does not matter."""
    import duckdb

    found = {}
    with duckdb.connect(file, read_only=True) as connection:
        connection.execute("SET TimeZone = 'UTC'")
        is_raw = connection.execute(
            "SELECT 1 FROM duckdb_schemas() WHERE schema_name = 'raw'"
        ).fetchone()
        for table, names in _COLUMNS.items():
            values = [
                *names.split(),
                *(["epoch_ms(created_at::TIMESTAMPTZ)"] if "__" not in table else []),
            ]
            texts = ", ".join(f"coalesce(({value})::VARCHAR, '∅')" for value in values)
            sql = f"SELECT count(*), sum(hash(concat_ws('|', {texts})))::VARCHAR FROM "
            found[table] = connection.execute(
                f"{sql}{'raw' if is_raw else 'main'}.{table}"
            ).fetchone()
    return found
