"""What is known before anything is sent: customers from the published warehouse, variants and creates from the ledger.

In: the two files, and the host that is written to. Out: frames for `transforms.upserts`, and what the read was worth.
Knowledge of another host is none: it is refused, or passed over.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from pipelines.ledger.store import Ledger
from pipelines.plan.model import ReadState
from pipelines.warehouse.build import open_warehouse
from pipelines.warehouse.ops import last_reads
from sources.errors import UsageError
from transforms.frames import TEXT, frame, from_arrow
from transforms.upserts.decisions import KNOWN, KNOWN_DOCUMENTS

CONFIRMED: Final = {"key": TEXT, "field": TEXT, "value": TEXT}
_PULL: Final = "Read the platform's customers first: orderbridge pull customers"


@dataclass(frozen=True, slots=True)
class Customers:
    """The platform's customers: `KNOWN` and `KNOWN_DOCUMENTS` of those that are not missing, and how they were read."""

    rows: pd.DataFrame
    documents: pd.DataFrame
    read: ReadState


def customers(path: Path, host: str) -> Customers:
    """The customers of the published warehouse.

    Args:
        path: of the warehouse.
        host: base URL of the legacy family, which they must have been read from.

    Raises:
        UsageError: there is no warehouse, it holds no customers, or those of another host.
    """
    if not path.exists():
        raise UsageError(f"there is no warehouse at {path}, so nobody knows which customers are new", _PULL)
    with open_warehouse(path) as warehouse:
        last_read = last_reads(warehouse).get("customers")
        if last_read is None:
            raise UsageError(f"{path.name} holds no customers that were read from the platform", _PULL)
        if last_read.legacy_host != urlsplit(host).netloc:
            raise UsageError(
                f"the customers in {path.name} were read from {last_read.legacy_host}, and the settings say {host}",
                f"{_PULL}, with the same settings, into a warehouse of their own (WAREHOUSE__PATH).",
            )
        rows, documents = (
            from_arrow(warehouse.sql(sql).to_arrow_table())
            for sql in (
                f"SELECT {_listed(KNOWN)} FROM raw.customers WHERE _missing_since IS NULL ORDER BY id",
                f"SELECT {_listed(KNOWN_DOCUMENTS)} FROM raw.customers__documents ORDER BY customer_id, position",
            )
        )
    read = ReadState(
        run_id=last_read.run_id,
        at=last_read.ended_at.astimezone(UTC).isoformat(timespec="seconds"),
        verdict=last_read.verdict,
        rows=len(rows),
        refused=last_read.quarantined_rows,
    )
    return Customers(rows, documents, read)


def _listed(columns: dict[str, pa.DataType]) -> str:
    return ", ".join(f'"{name}"' for name in columns)


def variants(path: Path, host: str) -> pd.DataFrame:
    """The fields of variants as this host last confirmed them: `key` is the variant's path."""
    with Ledger.open(path, readonly=True) as ledger:
        table = ledger.confirmed(host)
    if not table.num_rows:
        return frame(CONFIRMED)
    key = pc.binary_join_element_wise("/products/", table["product_id"], "/variants/", table["variant_id"], "")
    return from_arrow(pa.table({"key": key, "field": table["field"], "value": table["value"]}).combine_chunks())


def new_id(path: Path, content: bytes, length: int) -> str:
    """The id of a plan: of its content; another one where that was pushed, and later plans have changed it since.

    Without that, a price that goes from 5 to 6 and back to 5 would be taken for the first plan, and not be sent.
    """
    with Ledger.open(path, readonly=True) as ledger:
        plan_id = hashlib.sha256(content).hexdigest()[:length]
        while ledger.overtaken(plan_id):
            plan_id = hashlib.sha256(plan_id.encode() + content).hexdigest()[:length]
    return plan_id


def created(path: Path, host: str, kind: str) -> set[str]:
    """Hashes (`pipelines.ledger.store.body_hash`) of the creates that this host confirmed."""
    with Ledger.open(path, readonly=True) as ledger:
        return ledger.created(host, kind)


def created_since(path: Path, host: str, read: ReadState) -> int:
    """How many customers of this host pushes have created since they were read: the plan takes them for new."""
    with Ledger.open(path, readonly=True) as ledger:
        return ledger.created_since(host, "customers", datetime.fromisoformat(read.at).timestamp())
