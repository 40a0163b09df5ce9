"""What is known about the platform when a plan is made: customers from the warehouse, the rest from the ledger.

In: the two files, and the host to write to. Out: frames for `transforms.upserts`, and how the customers were read. What
is known about another host is refused or ignored.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Iterator, Sequence, Set
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlsplit

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Plan, ReadState
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import Row, open_table
from orderbridge.sources.files.formulas import neutralize
from orderbridge.sources.settings import (
    DataSource,
    LegacySettings,
    find_root,
    is_set,
    legacy_settings,
    warehouse_path,
)
from orderbridge.transforms.frames import TEXT, Column, array, column, from_arrow
from orderbridge.transforms.upserts.decisions import CUSTOMER_KEYS, KNOWN, KNOWN_DOCUMENTS
from orderbridge.transforms.values.keys import canonical_id

if TYPE_CHECKING:
    import duckdb

    from orderbridge.pipelines.warehouse.ops import LastRead

log = logging.getLogger("orderbridge.plan")
ACCEPTED_FILE: Final = "accepted.csv"
_DIFFERENCE: Final = ("customer_id", "field", "file_value", "platform_value")
_NO_IDS: Final = pa.array([], TEXT)
_PULL: Final = "Pull the platform's {0} first: orderbridge pull {0}"


@dataclass(frozen=True, slots=True)
class CurrentCustomers:
    """The platform's customers that are not missing: `KNOWN`, `KNOWN_DOCUMENTS`, and how they were read.

    `missing` are the keys of those that are.
    """

    rows: pd.DataFrame
    missing: pd.DataFrame
    documents: pd.DataFrame
    read: ReadState
    price_lists: KnownPriceLists


@dataclass(frozen=True, slots=True)
class KnownPriceLists:
    """The ids of the active price lists, text, that those of new customers are compared with.

    `gap` says why they are not compared; empty if they are.
    """

    ids: pa.Array
    gap: str = ""

    def has_all(self, cells: Sequence[str]) -> bool:
        """Whether all cells that are not empty are among the ids."""
        named = array(canonical_id(column(pa.array(cells, TEXT)))).drop_null()
        are_listed: bool = pc.all(pc.is_in(named, value_set=self.ids), min_count=0).as_py()
        return are_listed


@contextmanager
def one_version(path: Path) -> Iterator[None]:
    """What the block reads of the published warehouse is of one version, which is opened once."""
    if not path.exists():
        yield
        return
    from orderbridge.pipelines.warehouse.build import kept_open

    with kept_open():
        yield


def current_customers(path: Path, host: str) -> CurrentCustomers:
    """The customers of the published warehouse, which must have been read from this host.

    Raises:
        UsageError: there is no warehouse, it has no customers, or those of another host.
    """
    # DuckDB, which takes time to import, is not needed without a warehouse
    from orderbridge.pipelines.warehouse.build import open_warehouse

    if not path.exists():
        raise UsageError(
            f"no warehouse at {path}: it is not known which customers exist",
            _PULL.format("customers"),
        )
    with open_warehouse(path) as warehouse:
        last_read = list_read(warehouse, path, host, "customers")
        customers, missing, documents = (
            from_arrow(warehouse.sql(sql).to_arrow_table())
            for sql in (
                f"SELECT {_columns(KNOWN)} FROM raw.customers WHERE _missing_since IS NULL ORDER BY id",
                f"SELECT {', '.join(CUSTOMER_KEYS.values())} FROM raw.customers WHERE _missing_since IS NOT NULL",
                f"SELECT {_columns(KNOWN_DOCUMENTS)} FROM raw.customers__documents ORDER BY customer_id, position",
            )
        )
        price_lists = _price_lists(warehouse, customers["price_list_id"])
    read = ReadState(
        run_id=last_read.run_id,
        at=last_read.ended_at.astimezone(UTC).isoformat(timespec="milliseconds"),
        verdict=last_read.verdict,
        rows=len(customers),
        refused=last_read.quarantined_rows,
    )
    return CurrentCustomers(customers, missing, documents, read, price_lists)


def _price_lists(
    warehouse: duckdb.DuckDBPyConnection, of_customers: Column[Any]
) -> KnownPriceLists:
    """The active price lists, if the interface's `priceListId` is one of their ids: those of known customers show it.

    The interface does not show whether both APIs number price lists in the same way.
    """
    from orderbridge.pipelines.warehouse.ops import last_reads
    from orderbridge.pipelines.warehouse.raw.coverage import coverage_gap

    if not is_set("sources.public_v1"):
        return KnownPriceLists(_NO_IDS, "sources.public_v1 is not set, whose API lists them")
    if gap := coverage_gap(warehouse, last_reads(warehouse), "price_lists"):
        return KnownPriceLists(_NO_IDS, f"{gap} (orderbridge pull price_lists)")
    listed = from_arrow(
        warehouse.sql(
            "SELECT id FROM raw.price_lists WHERE _missing_since IS NULL"
        ).to_arrow_table()
    )
    ids = array(canonical_id(listed["id"]))
    named = array(canonical_id(of_customers)).drop_null()
    if not pc.all(pc.is_in(named, value_set=ids)).as_py():
        return KnownPriceLists(
            _NO_IDS, "customers on the platform have other ones than those listed"
        )
    return KnownPriceLists(ids)


def known_price_lists() -> KnownPriceLists:
    """The active price lists in the published warehouse, if it is that of the platform in the settings."""
    from orderbridge.pipelines.warehouse.build import open_warehouse

    path = warehouse_path()
    if not path.exists():
        return KnownPriceLists(_NO_IDS, f"no warehouse at {path}")
    with open_warehouse(path) as warehouse:
        try:
            list_read(warehouse, path, legacy_settings().base_url, "customers")
        except UsageError as error:
            return KnownPriceLists(_NO_IDS, error.message)
        sql = "SELECT DISTINCT price_list_id FROM raw.customers WHERE _missing_since IS NULL"
        of_customers = from_arrow(warehouse.sql(sql).to_arrow_table())["price_list_id"]
        return _price_lists(warehouse, of_customers)


def list_read(warehouse: duckdb.DuckDBPyConnection, path: Path, host: str, name: str) -> LastRead:
    """The last read of a list in a warehouse. Raises UsageError if there is none from this host."""
    from orderbridge.pipelines.warehouse.ops import last_reads

    last_read = last_reads(warehouse).get(name)
    if last_read is None:
        raise UsageError(f"{path.name} has no {name} read from the platform", _PULL.format(name))
    if last_read.legacy_host != urlsplit(host).netloc:
        raise UsageError(
            f"the {name} in {path.name} were read from {last_read.legacy_host}, not from {host}",
            f"{_PULL.format(name)}, with the same settings, into a warehouse of their own (WAREHOUSE__PATH).",
        )
    return last_read


def accepted_differences() -> frozenset[tuple[str, ...]]:
    """The differences of customers that a person has accepted: rows of `differences.csv`, copied to the project.

    Returns:
        customer_id, field, file_value, platform_value; the values may be empty for any.

    Raises:
        UsageError: the file cannot be read, or lacks a column.
    """
    path = find_root() / ACCEPTED_FILE
    if not path.exists():
        return frozenset()
    hint = "Copy the header and rows of a plan's differences.csv into it, or remove it."
    try:
        table = open_table(path)
    except UsageError as error:
        raise UsageError(error.message, hint) from None
    if missing := [name for name in ("customer_id", "field") if name not in table.columns]:
        raise UsageError(f"{path} has no column {missing[0]}", hint)
    at = [table.columns.index(name) if name in table.columns else None for name in _DIFFERENCE]
    rows = [row.cells for row in table.rows() if isinstance(row, Row)]
    return frozenset(
        tuple(neutralize(cells[n]) if n is not None else "" for n in at) for cells in rows
    )


def known_organization(path: Path, settings: LegacySettings, ledger: Ledger) -> str | None:
    """The organization whose data the published warehouse holds; None if it is of another host, or not known.

    It is that of the public v1 key: the legacy family does not report one (interface, GET /whoami). A plan that is not
    compared with the warehouse is made without a usable one, too.

    Raises:
        UsageError: the ledger is older than its copy in the warehouse.
    """
    if not path.exists():
        return None
    from orderbridge.pipelines.ledger.push_log import missing_attempts, older_ledger
    from orderbridge.pipelines.warehouse.build import open_warehouse
    from orderbridge.pipelines.warehouse.source import read_source

    try:
        with open_warehouse(path) as warehouse:
            source = read_source(warehouse)
            missing = missing_attempts(warehouse, ledger)
    except UsageError as error:
        log.warning("%s; the plan does not name the organization that it is for", error.message)
        return None
    if missing:
        raise older_ledger(missing)
    is_same = not source.differences(
        DataSource(urlsplit(settings.base_url).netloc, environment=settings.environment)
    )
    return source.organization if is_same else None


def _columns(schema: dict[str, pa.DataType]) -> str:
    return ", ".join(f'"{name}"' for name in schema)


def new_plan_id(ledger: Ledger, content: bytes, length: int, *, sends_again: bool = False) -> str:
    """The id of a plan, derived from its content; a new one if that plan was superseded or nothing of it took effect.

    With `sends_again` also if it has ended: values that are always sent are sent again with each plan.
    Otherwise a price that goes from 5 to 6 and back to 5 would be taken for the first plan and not be sent, what a push
    withholds because a later plan was sent could not be planned again, and what the platform rejected once would never
    be sent again, although it may accept it by now.
    """
    plan_id = hashlib.sha256(content).hexdigest()[:length]
    left = "o.state NOT IN ('confirmed', 'rejected', 'abandoned')"
    if not sends_again:
        left = "o.state <> 'rejected' AND (o.state <> 'abandoned' OR o.doubt_at IS NOT NULL)"
    while (
        ledger.superseded(plan_id)
        or ledger.connection.execute(_OVER.format(left=left), [plan_id]).fetchone()
    ):
        plan_id = hashlib.sha256(plan_id.encode() + content).hexdigest()[:length]
    return plan_id


class EarlierChanges(NamedTuple):
    """Changes (values that the platform adds) that pushes may have sent already.

    Attributes:
        operations: number of operations of a plan whose variant an earlier push changed in the same field.
        folder: of the last such push.
        is_same_plan: it pushed this plan, so these operations are not sent again; False if others changed further ones.
    """

    operations: int
    folder: str
    is_same_plan: bool


def earlier_changes(
    ledger: Ledger, host: str, plan: Plan, increments: Set[str]
) -> EarlierChanges | None:
    """The last push that changed the increments of a plan's variants too; None if there is none."""
    changes = {
        op.path: increments & op.body.keys()
        for op in plan.operations()
        if increments & op.body.keys()
    }
    row = [ledger.host_name(host), json.dumps(list(changes))]
    rows = ledger.connection.execute(_UPDATES, row).fetchall()
    repeated = [row for row in rows if changes[row[0]] & set(row[1].split(","))]
    if not repeated:
        return None
    own = [row for row in repeated if row[3] == plan.manifest.plan_id]
    # this plan has not sent these
    others = [row for row in repeated if row[0] not in {row[0] for row in own}]
    changed = others or own
    return EarlierChanges(len({row[0] for row in changed}), changed[-1][2], not others)


_OVER: Final = """
    SELECT 1 FROM operations o JOIN plans USING (plan) WHERE plan_id = ? GROUP BY plan HAVING sum({left}) = 0"""
_UPDATES: Final = """
    SELECT o.path, o.fields, p.folder, p.plan_id FROM operations o JOIN plans p USING (plan)
    WHERE p.host = ? AND o.path IN (SELECT value FROM json_each(?))
        AND (o.state IN ('in_flight', 'in_doubt', 'confirmed') OR (o.state = 'abandoned' AND o.doubt_at IS NOT NULL))
    ORDER BY o.state_at"""
