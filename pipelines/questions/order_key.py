"""Which field identifies an order: asked where most orders were quarantined since they lack the one that is used.

In: the last read of the orders, and their quarantined rows in the private file beside the warehouse. Out: the evidence
for `sources.public_v1.order_key`: the fields that each of these orders has, with another value in each.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import islice
from typing import Any, Final

import duckdb

from orderbridge.pipelines.pull.publishing import quarantine_file
from orderbridge.pipelines.warehouse.answers.accepted import SAFE_NAME
from orderbridge.pipelines.warehouse.sql import has_tables
from orderbridge.sources.contract import ORDER
from orderbridge.sources.settings import given_values, warehouse_path
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.sources.words import listed
from orderbridge.transforms.questions import Choice, Evidence

ORDER_KEY: Final = SETTINGS["sources.public_v1.order_key"]
_ROWS_MAX: Final = 2_000
_EXAMPLES: Final = 3
_LAST: Final = """
    SELECT run_id, rows, quarantined FROM ops.coverage WHERE resource = ? ORDER BY rowid DESC LIMIT 1"""

_REPEATABLE: Final = {
    "SELECT bool_and(try_cast(value AS TIMESTAMP) IS NOT NULL) FROM (SELECT unnest(?) AS value)": (
        "it is a time, and two orders can have the same"
    ),
    "SELECT bool_and(value IN (SELECT id FROM raw.customers)) FROM (SELECT unnest(?) AS value)": (
        "each is the id of a customer too, who can order again"
    ),
}
"""Values that a later order can have again, and what is said of them."""


def order_key_evidence(warehouse: duckdb.DuckDBPyConnection) -> list[Evidence]:
    """The evidence; none where the last read of the orders quarantined less than half of them for a missing key.

    Raises:
        UsageError: a settings file cannot be used.
    """
    if not has_tables(warehouse, "ops", "coverage"):
        return []
    last = warehouse.execute(_LAST, [ORDER.name]).fetchone()
    if last is None:
        return []
    run_id, read, quarantined = last
    if quarantined == 0 or quarantined * 2 < read:
        return []
    key, _ = given_values(ORDER_KEY.section).get("order_key", (ORDER_KEY.default, ""))
    rows = [*islice(_quarantined(run_id), _ROWS_MAX)]
    lacking = [row for row in rows if row.get(str(key)) is None]
    if len(lacking) * 2 < len(rows) or not lacking:
        return []
    choices = _choices(warehouse, lacking)
    lasting = [one.value for one in choices if one.is_possible]
    return [
        Evidence(
            ORDER_KEY.key,
            tuple(choices),
            lasting[0] if len(lasting) == 1 else None,
            reason=f"{quarantined} of {read} orders have no {key}, and are quarantined",
            is_only_proposed=True,
        )
    ]


def _choices(warehouse: duckdb.DuckDBPyConnection, lacking: list[dict[str, Any]]) -> list[Choice]:
    """The other fields that identify these orders; one whose values a later order can have is not possible."""
    fields = [name for name in lacking[0] if SAFE_NAME.fullmatch(name)]
    choices: list[Choice] = []
    for name in filter(partial(_identifies, lacking), fields):
        warning = _warning(warehouse, [row[name] for row in lacking])
        words = "; ".join(filter(None, (_words(lacking, name), warning)))
        choices.append(Choice(name, words, is_possible=not warning))
    return choices


def _quarantined(run_id: str) -> Iterator[dict[str, Any]]:
    """The orders that a run has quarantined, those that are JSON objects."""
    with suppress(OSError), quarantine_file(warehouse_path()).open("rb") as lines:
        for line in lines:
            with suppress(ValueError, KeyError, TypeError, RecursionError):
                record = json.loads(line)
                if (record["resource"], record["run_id"]) != (ORDER.name, run_id):
                    continue
                row = json.loads(record["row"])
                if isinstance(row, dict):
                    yield row


def _identifies(rows: list[dict[str, Any]], name: str) -> bool:
    """Whether each order has a text or a whole number in a field, and no two the same."""
    values = [row.get(name) for row in rows]
    is_key = all(isinstance(one, str | int) and not isinstance(one, bool) for one in values)
    return is_key and "" not in values and len(set(values)) == len(values)


def _warning(warehouse: duckdb.DuckDBPyConnection, values: list[str | int]) -> str:
    """Why a later order could have a value again, although none of these have; empty where nothing says so."""
    texts = [str(value) for value in values]
    for sql, warning in _REPEATABLE.items():
        (is_repeatable,) = warehouse.execute(sql, [texts]).fetchone() or (False,)
        if is_repeatable:
            return warning
    return ""


def _words(rows: list[dict[str, Any]], name: str) -> str:
    """What speaks for a field. A value that could be an e-mail address is no example."""
    words = f"each of {len(rows)} quarantined orders has its own value"
    examples = [str(row[name])[:40] for row in rows[:_EXAMPLES]]
    if any("@" in one or " " in one for one in examples):
        return words
    return f"{words}, such as {listed(examples)}"
