"""The ledger: what became of each write, on disk before it is sent (design §8).

In: the operations of plans, and each change of their state. Out: what was confirmed, created, is still open. An SQLite
file (WAL, synchronous=FULL) for its owner alone. It holds no body, no password and no personal data: what a record is
found by stands there as a hash. Values of variants are no personal data, and are kept: nothing else tells them.

    planned ──> in_flight | abandoned
    in_flight > confirmed | rejected | planned | in_doubt
    in_doubt ─> in_flight | confirmed | conflict | planned | abandoned
    conflict ─> confirmed | planned | abandoned

`planned` is said only of what surely did not happen. A change is committed as a whole or not at all; one that this
table does not show raises, and nothing of its batch is kept.
"""

from __future__ import annotations

import hashlib
import os
import re
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from types import TracebackType
from typing import Any, Final, Literal, Self

import msgspec
import pyarrow as pa

from sources.disk import open_private, sync
from sources.errors import BridgeError, UsageError

State = Literal["planned", "in_flight", "confirmed", "rejected", "in_doubt", "conflict", "abandoned"]

COMES_FROM: Final[Mapping[State, tuple[State, ...]]] = {
    "planned": ("in_flight", "in_doubt", "conflict"),
    "in_flight": ("planned", "in_doubt"),
    "confirmed": ("in_flight", "in_doubt", "conflict"),
    "rejected": ("in_flight",),
    "in_doubt": ("in_flight",),
    "conflict": ("in_doubt",),
    "abandoned": ("planned", "in_doubt", "conflict"),
}
ENDED: Final[tuple[State, ...]] = ("confirmed", "rejected", "abandoned")
LOG_COLUMNS: Final = (
    "plan_id", "operation_id", "kind", "method", "path", "state", "status", "attempts", "updated_at",
)  # fmt: skip
_LOG_TEXTS: Final = {0: "plan_id", 2: "kind", 3: "method", 4: "path", 5: "state"}
VERSION: Final = 1
_ROWS: Final = 65_536
SCHEMA: Final = (
    """CREATE TABLE plans (
        plan INTEGER PRIMARY KEY, plan_id TEXT NOT NULL UNIQUE, kind TEXT NOT NULL, host TEXT NOT NULL,
        environment TEXT NOT NULL, folder TEXT NOT NULL, operations_sha256 TEXT NOT NULL, opened_at REAL NOT NULL
    ) STRICT""",
    """CREATE TABLE operations (
        plan INTEGER NOT NULL REFERENCES plans, id INTEGER NOT NULL, method TEXT NOT NULL, path TEXT NOT NULL,
        fields TEXT NOT NULL, state TEXT NOT NULL, attempts INTEGER NOT NULL DEFAULT 0, status INTEGER,
        code TEXT NOT NULL DEFAULT '', request_id TEXT NOT NULL DEFAULT '', words TEXT NOT NULL DEFAULT '',
        remote_id TEXT, sent_at REAL, doubt_at REAL, updated_at REAL NOT NULL, PRIMARY KEY (plan, id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE INDEX doubtful ON operations (plan, id) WHERE doubt_at IS NOT NULL""",
    """CREATE INDEX unended ON operations (plan, state, id)
        WHERE state IN ('in_flight', 'in_doubt', 'conflict')""",
    """CREATE TABLE claims (
        host TEXT NOT NULL, key BLOB NOT NULL, plan INTEGER NOT NULL, id INTEGER NOT NULL,
        PRIMARY KEY (host, key, plan, id)
    ) STRICT, WITHOUT ROWID""",
    """CREATE INDEX claims_of_plan ON claims (plan, id)""",
    """CREATE TABLE confirmed (
        host TEXT NOT NULL, product_id TEXT NOT NULL, variant_id TEXT NOT NULL, field TEXT NOT NULL,
        value TEXT NOT NULL, confirmed_at REAL NOT NULL, plan_id TEXT NOT NULL,
        PRIMARY KEY (host, product_id, variant_id, field)
    ) STRICT, WITHOUT ROWID""",
)
_VARIANT: Final = re.compile(r"/products/([^/]+)/variants/([^/]+)")


class LedgerError(BridgeError):
    """A change of state that must not be: a bug, or a ledger that another program changed."""


@dataclass(frozen=True, slots=True)
class OpenPlan:
    """A plan with operations that have not ended. `doubt_at`: the latest of those in doubt."""

    plan_id: str
    kind: str
    host: str
    environment: str
    folder: str
    opened_at: float
    states: Mapping[State, int]
    doubt_at: float | None


def hashed(host: str, name: str, value: str) -> bytes:
    """What the ledger keeps of a key: two operations of one host with the same one are about the same record."""
    return hashlib.sha256("\0".join((host, name, identity(name, value))).encode()).digest()


def identity(name: str, value: str) -> str:
    """A key as it is compared: without the blanks around it, an e-mail whatever its case."""
    text = value.strip()
    return text.casefold() if name == "email" else text


def body_hash(path: str, body: Mapping[str, Any]) -> str:
    """What a create without keys is known by: its path and body, however its fields are ordered."""
    return hashlib.sha256(path.encode() + b"\0" + msgspec.json.encode(body, order="sorted")).hexdigest()


def variant_of(path: str) -> tuple[str, str] | None:
    """Product and variant id of a path of the variant update."""
    found = _VARIANT.fullmatch(path)
    return (found[1], found[2]) if found else None


class Ledger:
    """The ledger, opened; a context manager. Made by `Ledger.open`."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self.connection = connection

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False) -> Self:
        """Opens the ledger.

        Args:
            path: of the file; made where there is none.
            readonly: reads what is there; an absent file is an empty ledger, and is not made.

        Raises:
            UsageError: it is no ledger of this version, or the disk refuses.
        """
        with _told(path):
            if readonly and not path.exists():
                connection = sqlite3.connect(":memory:", isolation_level=None)
            elif readonly:
                connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True, isolation_level=None)
            else:
                path.parent.mkdir(parents=True, exist_ok=True)
                os.close(open_private(path, create=True))
                connection = sqlite3.connect(path, isolation_level=None)
            try:
                cls._prepare(connection, path, readonly)
            except BaseException:
                connection.close()
                raise
        return cls(connection)

    @staticmethod
    def _prepare(connection: sqlite3.Connection, path: Path, readonly: bool) -> None:
        connection.execute("PRAGMA busy_timeout = 10000")
        in_memory = readonly and not path.exists()
        if not readonly:
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = FULL")
        (version,) = connection.execute("PRAGMA user_version").fetchone()
        if version == 0 and (in_memory or not readonly):
            connection.execute("BEGIN IMMEDIATE")
            for statement in SCHEMA:
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {VERSION}")
            connection.execute("COMMIT")
            if not in_memory:
                sync(path.parent)
        elif version not in (0, VERSION):
            raise UsageError(f"{path} is a ledger of another version", "Use the orderbridge that wrote it.")
        elif version == 0:
            raise UsageError(f"{path} is no ledger", "Name another file in LEDGER__PATH.")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file."""
        self.connection.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """All of the block is committed, and on disk, or nothing of it. Raises UsageError where the disk refuses."""
        connection = self.connection
        with _told("the ledger"):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise

    def confirmed(self, host: str) -> pa.Table:
        """What the platform last confirmed of variants, a row per field.

        A field whose last write is in flight or in doubt is not among them: what stands there is unknown.

        Args:
            host: of the legacy family, as in a plan's manifest.

        Returns:
            product_id, variant_id, field, value (JSON text), confirmed_at (UTC), plan_id.
        """
        unknown = {
            (*variant, name)
            for path, fields in self.connection.execute(
                "SELECT o.path, o.fields FROM operations o JOIN plans USING (plan)"
                " WHERE host = ? AND o.state = 'in_flight' AND o.fields <> ''",
                [host],
            )
            if (variant := variant_of(path)) is not None
            for name in fields.split(",")
        }
        found = self.connection.execute(
            "SELECT product_id, variant_id, field, value, confirmed_at, plan_id FROM confirmed WHERE host = ?"
            " ORDER BY product_id, variant_id, field",
            [host],
        )
        parts = [_confirmed([])]
        while rows := found.fetchmany(_ROWS):  # a ledger of years holds millions
            parts.append(_confirmed([row for row in rows if row[:3] not in unknown] if unknown else rows))
        return pa.concat_tables(parts)

    def created(self, host: str, kind: str) -> set[str]:
        """Hashes (`body_hash`) of the subcategories or warehouses whose create was confirmed."""
        rows = self.connection.execute(
            "SELECT DISTINCT c.key FROM claims c JOIN operations o USING (plan, id) JOIN plans p USING (plan)"
            " WHERE p.host = ? AND p.kind = ? AND o.state = 'confirmed'",
            [host, kind],
        )
        return {key.hex() for (key,) in rows}

    def has(self, plan_id: str) -> bool:
        """Whether a plan was ever pushed from here."""
        return self.connection.execute("SELECT 1 FROM plans WHERE plan_id = ?", [plan_id]).fetchone() is not None

    def overtaken(self, plan_id: str) -> bool:
        """Whether another plan has confirmed a field anew that this one had confirmed."""
        sql = (
            "SELECT c.product_id, c.variant_id, c.field FROM confirmed c JOIN plans p ON p.host = c.host"
            " WHERE p.plan_id = ?1 AND c.plan_id <> ?1 AND c.confirmed_at > p.opened_at"
        )
        others = set(self.connection.execute(sql, [plan_id]))
        if not others:
            return False
        sql = (
            "SELECT path, fields FROM operations JOIN plans USING (plan)"
            " WHERE plan_id = ? AND state = 'confirmed' AND fields <> ''"
        )
        return any(
            (*variant, name) in others
            for path, fields in self.connection.execute(sql, [plan_id])
            if (variant := variant_of(path)) is not None
            for name in fields.split(",")
        )

    def created_since(self, host: str, kind: str, at: float) -> int:
        """How many creates of a kind were confirmed after `at`, epoch seconds."""
        ((count,),) = self.connection.execute(
            "SELECT count(*) FROM operations o JOIN plans p USING (plan)"
            " WHERE p.host = ? AND p.kind = ? AND o.state = 'confirmed' AND o.updated_at > ?",
            [host, kind, at],
        ).fetchall()
        return int(count)

    def open_plans(self) -> list[OpenPlan]:
        """The plans that were pushed and have operations that have not ended, the oldest first."""
        found: list[OpenPlan] = []
        rows = self.connection.execute(
            "SELECT plan_id, kind, host, environment, folder, opened_at, o.state, count(*),"
            " max(o.doubt_at) FILTER (WHERE o.state = 'in_doubt') FROM plans JOIN operations o USING (plan)"
            " GROUP BY plan, o.state ORDER BY opened_at, plan"
        ).fetchall()
        for plan_id, of_plan in groupby(rows, key=lambda row: row[0]):
            states = list(of_plan)
            counts: dict[State, int] = {row[6]: row[7] for row in states}
            if set(counts) <= set(ENDED):
                continue
            doubts = [row[8] for row in states if row[8] is not None]
            kind, host, environment, folder, opened_at = states[0][1:6]
            latest = max(doubts, default=None)
            found.append(OpenPlan(plan_id, kind, host, environment, folder, opened_at, counts, latest))
        return found

    def log(self) -> pa.Table:
        """Every operation of every plan, in the columns of `ops.push_log`."""
        rows = self.connection.execute(
            "SELECT plan_id, id, kind, method, path, o.state, status, attempts, o.updated_at"
            " FROM operations o JOIN plans USING (plan) ORDER BY plan, id"
        ).fetchall()
        columns = list(zip(*rows, strict=True)) if rows else [()] * 9
        texts = {name: pa.array(columns[place], pa.string()) for place, name in _LOG_TEXTS.items()}
        made = {
            **texts,
            "operation_id": pa.array([str(number) for number in columns[1]], pa.string()),
            "status": pa.array(columns[6], pa.int32()),
            "attempts": pa.array(columns[7], pa.int32()),
            "updated_at": _times(columns[8]),
        }
        return pa.table({name: made[name] for name in LOG_COLUMNS})


def _confirmed(rows: Sequence[tuple[Any, ...]]) -> pa.Table:
    """Rows of `confirmed` as a table."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * 6
    names = ("product_id", "variant_id", "field", "value", "confirmed_at", "plan_id")
    arrays = [
        _times(column) if name == "confirmed_at" else pa.array(column, pa.string())
        for name, column in zip(names, columns, strict=True)
    ]
    return pa.table(dict(zip(names, arrays, strict=True)))


def _times(seconds: Iterable[float]) -> pa.Array:
    return pa.array([int(value * 1_000_000) for value in seconds], pa.timestamp("us", "UTC"))


@contextmanager
def _told(place: object) -> Iterator[None]:
    """SQLite's errors in words. Its own texts are left out of what is told: they may hold values."""
    try:
        yield
    except sqlite3.OperationalError as error:
        hint = "Free space, or make the file and its folder writable; then run again."
        raise UsageError(f"{place}: {_reason(error)}", hint) from None
    except sqlite3.DatabaseError as error:
        if error.sqlite_errorcode not in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT):
            raise
        hint = "Name another file in LEDGER__PATH, or put back a copy of it."
        raise UsageError(f"{place} is no ledger, or is damaged", hint) from None
    except OSError as error:
        reason = error.strerror or type(error).__name__
        raise UsageError(f"{place}: {reason}", "Name a file in LEDGER__PATH that can be written.") from None


def _reason(error: sqlite3.OperationalError) -> str:
    reasons = {
        sqlite3.SQLITE_FULL: "no space left on the disk",
        sqlite3.SQLITE_BUSY: "another program holds it",
        sqlite3.SQLITE_READONLY: "it cannot be written",
        sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    }
    return reasons.get(error.sqlite_errorcode & 0xFF, f"SQLite could not work with it ({error.sqlite_errorname})")
