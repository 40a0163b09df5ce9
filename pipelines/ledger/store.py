"""The ledger file: the state of every write, on disk before the write is sent (docs/exactly-once.md).

In: transactions of `pipelines.push.plan_ledger`. Out: what was confirmed and created, which plans are open, and the log
for the warehouse. An SQLite file (WAL, synchronous=FULL), readable by its owner only. It stores no request body, no
password and no personal data: records are identified by hashes. Values of variants are stored, because the platform
cannot be asked for them.
"""

from __future__ import annotations

import json
import os
import shlex
import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from functools import cache, lru_cache, partial
from pathlib import Path
from typing import Any, Final, Self, get_args

import pyarrow as pa

from orderbridge.pipelines.ledger.clock import (
    Anchor,
    ClockReading,
    LedgerClock,
    ReadClock,
    read_clock,
)
from orderbridge.pipelines.ledger.folders import locate
from orderbridge.pipelines.ledger.keys import key_hashes, salted
from orderbridge.pipelines.ledger.lock import writable_hint
from orderbridge.pipelines.ledger.mark import Mark
from orderbridge.pipelines.ledger.model import FINAL_STATES, OpenPlan, State, UpdatedField
from orderbridge.pipelines.ledger.schema import VERSION, create_tables, has_tables, ledger_version
from orderbridge.sources.disk import disk_errors, file_version, open_private, sync
from orderbridge.sources.errors import BridgeError, UsageError
from orderbridge.sources.settings import find_root

_AT: Final = pa.timestamp("us", "UTC")
LOG_SCHEMA: Final = pa.schema(
    {
        **dict.fromkeys(
            ("plan_id", "operation_id", "kind", "method", "path", "state"), pa.string()
        ),
        **{"status": pa.int32(), "attempts": pa.int32(), "updated_at": _AT},
    }
)
_CONFIRMED_SCHEMA: Final = pa.schema(
    {
        **dict.fromkeys(("path", "field", "value"), pa.string()),
        "confirmed_at": _AT,
        "plan_id": pa.string(),
    }
)
FIELDS: Final = """json_each('["' || replace(o.fields, ',', '","') || '"]')"""
"""The fields that an update `o` of `operations` sets, a row each."""
_BATCH_ROWS: Final = 65_536
_NOTHING: Final = ":memory:"
_REASONS: Final = {
    sqlite3.SQLITE_FULL: "no space left on the disk",
    sqlite3.SQLITE_BUSY: "another program has locked it",
    sqlite3.SQLITE_READONLY: "it is not writable",
    sqlite3.SQLITE_CANTOPEN: "it cannot be opened",
    sqlite3.SQLITE_IOERR_WRITE: "it cannot be written: the disk fails, or a limit on the size of files is reached "
    "(ulimit -f)",
}


HOW_TO_RESTORE: Final = (
    "Restore the newest ledger, together with its `-wal` file if there is one, or set LEDGER__PATH to it: otherwise "
    "requests may be sent again. If it is lost: orderbridge settle --accept-ledger"
)
HOW_TO_KEEP_BOTH: Final = "To use both all the same: orderbridge settle --accept-ledger"
_NOT_NEWEST: Final = {
    "older": "is an older copy of the ledger, or lacks the end of its log: something was sent since",
    "another": "is not the ledger that was used here",
}
_WRONG_ROWS: Final = (
    f"SELECT 1 FROM operations WHERE state NOT IN {get_args(State)} LIMIT 1",
    "SELECT 1 FROM operations WHERE plan NOT IN (SELECT plan FROM plans) LIMIT 1",
    "SELECT 1 FROM claims LEFT JOIN operations o USING (plan, id) WHERE o.id IS NULL LIMIT 1",
)
"""What no ledger has: a state that is none, and rows of what is not there. SQLite finds nothing wrong with them."""
_DAMAGE: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)


class LedgerError(BridgeError):
    """A change of state that is not allowed: a bug, or another program changed the ledger."""


class Ledger(AbstractContextManager["Ledger"]):
    """The open ledger, a context manager. Use `Ledger.open`."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, read: ReadClock = read_clock
    ) -> None:
        self.connection = connection
        self.path = path
        # in SQL, where the folder of a plan is now
        connection.create_function("located", 2, cache(partial(locate, find_root())))
        row = connection.execute("SELECT salt, wall, boot_id, uptime, time FROM ledger").fetchone()
        if row is None or not isinstance(row[0], bytes):
            raise damaged(path)
        self.salt, *stored = row
        anchor = Anchor(ClockReading(*stored[:3]), stored[3]) if stored[3] is not None else None
        self.clock = LedgerClock(read, anchor)
        self._mark = Mark(path, self.salt)
        self._is_marked = self._mark.compare(self._commits()) == "newest"
        self._names = self._read_names()

    @classmethod
    def open(cls, path: Path, *, readonly: bool = False, read: ReadClock = read_clock) -> Self:
        """Opens the ledger.

        A missing file is created; with `readonly` it reads as an empty ledger and is not created. One that is to be
        written is checked first, all of it.

        Raises:
            UsageError: not a ledger of this version, damaged, or a disk error.
        """
        with _sqlite_errors(path):
            if not readonly:
                os.close(open_private(path))  # SQLite creates its log with the mode of the ledger
            name = (
                f"{path.absolute().as_uri()}?mode={'ro' if readonly else 'rw'}"
                if path.exists()
                else _NOTHING
            )
            connection = sqlite3.connect(name, uri=True, isolation_level=None)
            try:
                connection.execute("PRAGMA busy_timeout = 10000")
                version = ledger_version(connection, path)
                _check_tables(connection, path, version)
                if not readonly:
                    _check_undamaged(path)
                    connection.execute("PRAGMA journal_mode = WAL")
                    connection.execute("PRAGMA synchronous = FULL")
                    create_tables(connection)
                    sync(path.parent)
                elif version == 0:  # none, or a push was killed while it created the ledger
                    connection.close()
                    connection = sqlite3.connect(_NOTHING, isolation_level=None)
                    create_tables(connection)
                elif version < VERSION:
                    cls.open(path).close()  # converts it
                return cls(connection, path, read)
            except BaseException:
                connection.close()
                raise

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Closes the file. Damage or a disk error that only a query has met is an error of the file, not a bug."""
        self.close()
        if isinstance(error, sqlite3.DatabaseError) and _is_damage(error):
            raise damaged(self.path) from error
        if isinstance(error, sqlite3.OperationalError) and not _is_query_wrong(error):
            raise _unusable(self.path, error) from error

    def check(self) -> None:
        """Raises UsageError for a ledger that is damaged, or not the newest. A large one takes seconds."""
        with _sqlite_errors(self.path):
            _check_undamaged(self.path)
        self.check_newest()

    def check_newest(self) -> None:
        """Raises UsageError for an older copy of a ledger, or another one than was used at its place."""
        with _sqlite_errors(self.path):
            found = self._mark.compare(self._commits())
        if found != "newest":
            raise UsageError(f"{self.path} {_NOT_NEWEST[found]}", HOW_TO_RESTORE)

    def check_home(self) -> None:
        """Keeps where the ledger is, for its copies: neither of two ledgers knows what the other one sends.

        One that was moved, or restored at its place, goes on there.

        Raises:
            UsageError: it is a copy, and the ledger that it was copied from is still where it was.
        """
        home = self.connection.execute("SELECT path, file FROM home").fetchone()
        own = self._place()
        if home == own:
            return
        if home is not None and home[1] not in ("", own[1]) and _file_id(Path(home[0])) == home[1]:
            raise UsageError(
                f"{self.path} is a copy of {home[0]}: what is sent with one, the other would send again",
                f"Push in the project of that one. If it is not used any more, move it away. {HOW_TO_KEEP_BOTH}",
            )
        self._keep_home()

    def _place(self) -> tuple[str, str]:
        """Where the ledger is now: its path, and the file that is there."""
        return str(self.path.absolute()), _file_id(self.path)

    def _keep_home(self) -> None:
        with self.transaction() as connection:
            connection.execute("DELETE FROM home")
            connection.execute("INSERT INTO home VALUES (?, ?)", self._place())

    def accept(self) -> None:
        """Takes this ledger for the newest, whatever was used at its place, and for no copy. Raises UsageError."""
        self._keep_home()
        self._is_marked = True
        with _sqlite_errors(self.path):
            self._mark.write(self._commits())

    def _commits(self) -> int:
        (commits,) = self.connection.execute("SELECT commits FROM ledger").fetchone()
        return int(commits)

    def close(self) -> None:
        """Closes the file."""
        self.connection.close()
        self._mark.close()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Commits the block as a whole, synced to disk, or rolls it back. Raises UsageError on disk errors."""
        connection = self.connection
        with _sqlite_errors(self.path):
            connection.execute("BEGIN IMMEDIATE")
            try:
                yield connection
                reading, now = self.clock.latest
                sql = (
                    "UPDATE ledger SET wall = ?, boot_id = ?, uptime = ?, time = ?, commits = commits + 1"
                    " RETURNING commits"
                )
                (commits,) = connection.execute(sql, [*reading, now]).fetchone()
                connection.execute("COMMIT")
            except BaseException:
                if connection.in_transaction:
                    connection.execute("ROLLBACK")
                raise
            if self._is_marked:
                self._mark.write(commits)

    def _read_names(self) -> dict[str, str]:
        if not self._has("hosts"):
            return {}
        rows = self.connection.execute("SELECT host, other FROM hosts WHERE is_same")
        return dict(rows.fetchall())

    def _has(self, table: str) -> bool:
        """Whether a table is there: a ledger of 0.3 that is opened for reading lacks those that came later."""
        sql = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
        return self.connection.execute(sql, [table]).fetchone() is not None

    def host_name(self, host: str) -> str:
        """The name under which this ledger has the platform of a host: another one where a person has said so."""
        return self._names.get(host, host)

    def names_of(self, host: str) -> set[str]:
        """All hosts that are one platform with this one, as a person has said, and the host itself."""
        name = self.host_name(host)
        return {host, name, *(one for one, other in self._names.items() if other == name)}

    def undecided_hosts(self, host: str, environment: str) -> dict[str, dict[str, int]]:
        """The hosts that may be the same platform as one that this ledger does not know.

        Returns:
            By host, the number of writes that may have arrived, by kind. Only hosts of the same environment, of which
            nobody has said whether they are the same platform.
        """
        is_known = self.connection.execute("SELECT 1 FROM plans WHERE host = ?", [host]).fetchone()
        if is_known is not None or host in self._names:
            return {}
        decided = "SELECT other FROM hosts WHERE host = :host" if self._has("hosts") else "''"
        rows = self.connection.execute(
            "SELECT p.host, p.kind, count(*) FROM operations o JOIN plans p USING (plan)"
            " WHERE p.environment = :environment AND o.state IN ('confirmed', 'in_flight', 'in_doubt', 'conflict')"
            f" AND p.host NOT IN ({decided}) GROUP BY p.host, p.kind ORDER BY max(p.plan) DESC",
            {"host": host, "environment": environment},
        )
        found: dict[str, dict[str, int]] = {}
        for other, kind, count in rows:
            found.setdefault(other, {})[kind] = count
        return found

    def keep_host(self, host: str, other: str, *, is_same: bool) -> None:
        """Keeps what a person has said: whether a host is the platform of another one."""
        with self.transaction() as connection:
            row = [host, other, int(is_same)]
            connection.execute("INSERT OR REPLACE INTO hosts VALUES (?, ?, ?)", row)
        self._names = self._read_names()

    def confirmed(self, host: str, *, has_unknown: bool = False) -> pa.Table:
        """The last confirmed value of each field that updates set.

        Fields whose last write is in flight or in doubt are left out: their value is unknown.

        Args:
            host: of the platform.
            has_unknown: fields are there, with an empty value, of which a write had an unknown outcome since.

        Returns:
            path, field, value (JSON text), confirmed_at (UTC), plan_id.
        """
        known = "" if has_unknown else " AND value <> ''"
        cursor = self.connection.execute(
            f"SELECT path, field, value, confirmed_at, plan_id FROM confirmed WHERE host = :host{known}"
            " AND (path, field)"
            f" NOT IN (SELECT o.path, f.value FROM operations o JOIN plans USING (plan), {FIELDS} f"
            " WHERE host = :host AND o.state = 'in_flight' AND o.fields <> '') ORDER BY path, field",
            {"host": self.host_name(host)},
        )
        tables = [_CONFIRMED_SCHEMA.empty_table()]
        while rows := cursor.fetchmany(_BATCH_ROWS):  # a ledger of years holds millions
            tables.append(_table(rows, _CONFIRMED_SCHEMA))
        return pa.concat_tables(tables)

    def doubtful(self, host: str) -> set[UpdatedField]:
        """Path and field of updates whose outcome is or was unknown.

        A later update may have confirmed such a field since.
        """
        rows = self.connection.execute(
            f"SELECT o.path, f.value FROM operations o JOIN plans USING (plan), {FIELDS} f"
            " WHERE host = :host AND o.fields <> '' AND (o.state = 'in_flight' OR o.doubt_at IS NOT NULL)"
            " UNION SELECT path, field FROM confirmed WHERE host = :host AND value = ''",
            {"host": self.host_name(host)},
        )
        return set(rows)

    def is_created(self, host: str, kind: str, key: bytes) -> bool:
        """Whether a create with this hash (`body_hash`, `record_hash`) was confirmed."""
        rows = self.connection.execute(
            "SELECT 1 FROM claims c JOIN operations o USING (plan, id) JOIN plans p USING (plan)"
            " WHERE c.host = ? AND c.key = ? AND p.kind = ? AND o.state = 'confirmed'",
            [self.host_name(host), salted(self.salt, key), kind],
        )
        return rows.fetchone() is not None

    def created_as(self, host: str, records: Iterable[Mapping[str, str]]) -> dict[int, str]:
        """The platform's ids of customers that were created with a key of these records, if they are known.

        Args:
            host: of the platform.
            records: the keys of each, by field; not read where no customer was created.

        Returns:
            The id by the position of the record; where several keys were created, that of the first.
        """
        if not self._has_created_customers():
            return {}
        name = self.host_name(host)
        found: dict[int, str] = {}
        for at, keys in enumerate(records):
            hashes = (one for field, text in keys.items() for one in key_hashes(name, field, text))
            ids = (self._created_with(name, one) for one in hashes)
            remote_id = next(filter(None, ids), None)
            if remote_id is not None:
                found[at] = remote_id
        return found

    def _has_created_customers(self) -> bool:
        rows = self.connection.execute(
            "SELECT 1 FROM plans JOIN operations o USING (plan) WHERE kind = 'customers'"
            " AND o.state = 'confirmed' AND o.remote_id IS NOT NULL LIMIT 1"
        )
        return rows.fetchone() is not None

    def _created_with(self, host: str, key: bytes) -> str | None:
        """The platform's id of the customer that was created with the hash of a key, if it is known."""
        row = self.connection.execute(
            "SELECT o.remote_id FROM claims c JOIN operations o USING (plan, id) JOIN plans p USING (plan)"
            " WHERE c.host = ? AND c.key = ? AND p.kind = 'customers' AND o.state = 'confirmed'"
            " AND o.remote_id IS NOT NULL",
            [host, salted(self.salt, key)],
        ).fetchone()
        return None if row is None else str(row[0])

    def forget_create(self, plan_id: str, operation: int) -> bool:
        """Forgets which record a confirmed create has made, so that it can be created again. False: there is none."""
        with self.transaction() as connection:
            cursor = connection.execute(
                "DELETE FROM claims WHERE id = :id AND plan IN (SELECT plan FROM plans JOIN operations USING (plan)"
                " WHERE plan_id LIKE :plan || '%' AND operations.id = :id AND state = 'confirmed')",
                {"id": operation, "plan": plan_id},
            )
            return cursor.rowcount > 0

    def held_creates(self, host: str) -> list[tuple[str, int, str]]:
        """The confirmed creates for which others are held back: plan, operation, and the folder of the last held."""
        rows = self.connection.execute(
            # CROSS: from the few operations that are held to their claims, never the other way round
            "SELECT made.plan_id, done.id, max(located(p.plan_id, p.folder)) FROM plans p"
            " CROSS JOIN operations o USING (plan)"
            " CROSS JOIN claims mine ON (mine.plan, mine.id) = (o.plan, o.id)"
            " JOIN claims other ON (other.host, other.key) = (mine.host, mine.key)"
            " JOIN operations done ON (done.plan, done.id) = (other.plan, other.id)"
            " JOIN plans made ON made.plan = done.plan"
            " WHERE p.host = ? AND mine.host = p.host"
            " AND o.state = 'abandoned' AND o.code = 'held' AND done.state = 'confirmed'"
            " GROUP BY made.plan_id, done.id ORDER BY made.plan, done.id",
            [self.host_name(host)],
        )
        return [(plan_id, int(number), folder) for plan_id, number, folder in rows]

    def is_known_key(self, host: str, digest: bytes) -> bool:
        """Whether an API key was used with a host, and belongs to the organization that this ledger is about."""
        sql = "SELECT 1 FROM keys WHERE host = ? AND digest = ?"
        row = [self.host_name(host), salted(self.salt, digest)]
        return self.connection.execute(sql, row).fetchone() is not None

    def other_keys_used_at(self, host: str, digest: bytes) -> list[float]:
        """When each other key of a host was last used, epoch seconds."""
        if not self._has("keys"):
            return []
        sql = "SELECT used_at FROM keys WHERE host = ? AND digest <> ?"
        rows = self.connection.execute(sql, [self.host_name(host), salted(self.salt, digest)])
        return [at for (at,) in rows]

    def keep_key(self, host: str, digest: bytes) -> None:
        """Keeps the digest of a key that is used now."""
        used_at = self.clock.wall_time(self.clock.now())
        with self.transaction() as connection:
            connection.execute(
                "INSERT OR REPLACE INTO keys VALUES (?, ?, ?)",
                [self.host_name(host), salted(self.salt, digest), used_at],
            )

    def pushes(self, plan_id: str) -> int | None:
        """How often pushes of a plan began and ended; None if it was not pushed with this ledger."""
        row = self.connection.execute(
            "SELECT pushes FROM plans WHERE plan_id = ?", [plan_id]
        ).fetchone()
        return None if row is None else int(row[0])

    def settle_s(self, plan_id: str) -> float | None:
        """The settle time of the last push of a plan that ended; None if it is not known."""
        if not self._has("settling"):
            return None
        sql = "SELECT settle_s FROM settling JOIN plans USING (plan) WHERE plan_id = ?"
        row = self.connection.execute(sql, [plan_id]).fetchone()
        return None if row is None else float(row[0])

    def pushed_plans(self, host: str, kind: str) -> list[tuple[str, str]]:
        """The id and folder of each plan of a host and kind with confirmed operations, the newest first."""
        rows = self.connection.execute(
            "SELECT plan_id, located(plan_id, folder) FROM plans p WHERE host = ? AND kind = ? AND EXISTS"
            " (SELECT 1 FROM operations o WHERE o.plan = p.plan AND o.state = 'confirmed') ORDER BY plan DESC",
            [self.host_name(host), kind],
        )
        return rows.fetchall()

    def killed_pushes(self, host: str, kind: str) -> dict[str, str]:
        """The folders of a host's plans, by id, whose last push was killed: while nobody pushes."""
        sql = (
            "SELECT plan_id, located(plan_id, folder) FROM plans"
            " WHERE host = ? AND kind = ? AND pushes % 2 = 1 ORDER BY plan"
        )
        return dict(self.connection.execute(sql, [host, kind]).fetchall())

    def counts(self, plan_id: str) -> dict[State, int]:
        """Number of a plan's operations in each state; empty if it was not pushed with this ledger."""
        sql = "SELECT state, count(*) FROM plans JOIN operations USING (plan) WHERE plan_id = ? GROUP BY state"
        return dict(self.connection.execute(sql, [plan_id]).fetchall())

    def superseded(self, plan_id: str) -> dict[int, str]:
        """Updates of which another plan has set a field since this one was recorded, or may have.

        They are confirmed, in doubt, given up or not sent yet.

        Returns:
            The folder of that plan, by operation.
        """
        rows = self.connection.execute(
            f"SELECT o.id, located(other.plan_id, other.folder) FROM plans p JOIN operations o USING (plan), {FIELDS} f"
            " JOIN confirmed c ON (c.host, c.path, c.field) = (p.host, o.path, f.value)"
            " JOIN plans other ON other.plan_id = c.plan_id WHERE p.plan_id = ? AND o.fields <> ''"
            " AND o.state IN ('confirmed', 'planned', 'in_doubt', 'abandoned')"
            " AND c.plan_id <> p.plan_id AND c.confirmed_in > p.recorded_in",
            [plan_id],
        )
        return dict(rows)

    def overtaken(self, plan_id: str) -> int:
        """Number of a plan's operations that were not sent, and that another plan has confirmed since.

        Of an update it is each of its fields, of a create its record.
        """
        (count,) = self.connection.execute(
            "SELECT count(*) FROM plans p JOIN operations o USING (plan) WHERE p.plan_id = ? AND o.state = 'planned'"
            f" AND iif(o.fields <> '', NOT EXISTS (SELECT 1 FROM {FIELDS} f LEFT JOIN confirmed c"
            " ON (c.host, c.path, c.field) = (p.host, o.path, f.value) AND c.value <> '' AND c.plan_id <> p.plan_id"
            " AND c.confirmed_in > p.recorded_in WHERE c.host IS NULL), EXISTS (SELECT 1 FROM claims mine"
            " JOIN claims other ON (other.host, other.key) = (mine.host, mine.key)"
            " JOIN operations made ON (made.plan, made.id) = (other.plan, other.id)"
            " WHERE (mine.plan, mine.id, mine.host) = (o.plan, o.id, p.host) AND made.state = 'confirmed'"
            " AND (made.plan > o.plan OR (made.plan < o.plan AND made.updated_at > p.opened_at))))",
            [plan_id],
        ).fetchone()
        return int(count)

    def sent_since(self, host: str, kind: str, at: float) -> int:
        """Number of requests of a kind confirmed after `at`, epoch seconds."""
        (count,) = self.connection.execute(
            "SELECT count(*) FROM operations o JOIN plans p USING (plan)"
            " WHERE p.host = ? AND p.kind = ? AND o.state = 'confirmed' AND o.updated_at > ?",
            [self.host_name(host), kind, at],
        ).fetchone()
        return int(count)

    def open_plans(self) -> list[OpenPlan]:
        """The plans with operations that are not final, oldest first."""
        rows = self.connection.execute(
            "SELECT plan_id, kind, host, environment, located(plan_id, folder), opened_at,"
            " json_group_object(state, count), max(doubt_at) FROM plans JOIN (SELECT plan, state, count(*) AS count,"
            " max(doubt_at) FILTER (WHERE state = 'in_doubt') AS doubt_at FROM operations"
            " GROUP BY plan, state) USING (plan) GROUP BY plan"
            f" HAVING sum(state NOT IN {FINAL_STATES}) > 0 ORDER BY plan"
        )
        return [
            OpenPlan(*[*plan, json.loads(states), doubt_at and self.clock.wall_time(doubt_at)])
            for *plan, states, doubt_at in rows
        ]

    def newest_plan(self, kind: str, host: str) -> tuple[str, str] | None:
        """The plan of a kind that was pushed last to a host, and its folder."""
        sql = (
            "SELECT plan_id, located(plan_id, folder) FROM plans WHERE kind = ? AND host = ?"
            " ORDER BY plan DESC LIMIT 1"
        )
        row: tuple[str, str] | None = self.connection.execute(sql, [kind, host]).fetchone()
        return row

    def log(self) -> pa.Table:
        """Every operation of every plan, in the columns of `ops.push_log`."""
        rows = self.connection.execute(
            "SELECT plan_id, id || '', kind, method, path, o.state, status, attempts, o.updated_at"
            " FROM operations o JOIN plans USING (plan) ORDER BY plan, id"
        ).fetchall()
        return _table(rows, LOG_SCHEMA)


def _table(rows: Sequence[tuple[Any, ...]], schema: pa.Schema) -> pa.Table:
    """Rows as a table; times are epoch seconds."""
    columns = list(zip(*rows, strict=True)) if rows else [()] * len(schema)
    arrays = [
        pa.array(
            [int(seconds * 1_000_000) for seconds in column]
            if pa.types.is_timestamp(kind)
            else column,
            kind,
        )
        for column, kind in zip(columns, schema.types, strict=True)
    ]
    return pa.Table.from_arrays(arrays, schema=schema)


def damaged(path: Path, *, is_database: bool = True) -> UsageError:
    """The error for a damaged ledger, with the way out."""
    name = shlex.quote(path.name)
    what = "is damaged" if is_database else "is not a ledger, or is damaged"
    return UsageError(
        f"{path} {what}: set LEDGER__PATH to the right file, or restore the newest backup",
        f"Move the damaged one away, in its folder: mkdir damaged && mv {name}* damaged/\n"
        f"  Then put the backup of {path.name} in its place, or without one what can be read of it: "
        "docs/operate.md#a-damaged-ledger has each step.",
    )


def _file_id(path: Path) -> str:
    """Device and inode of a file: two paths of one file have one. Empty if it cannot be looked at."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_dev}:{status.st_ino}"


def _check_tables(connection: sqlite3.Connection, path: Path, version: int) -> None:
    """Raises UsageError for a ledger of this version that lacks a table or a column."""
    if version == VERSION and not has_tables(connection):
        raise damaged(path)


def _check_undamaged(path: Path) -> None:
    """Raises UsageError for a file that the integrity check of SQLite refuses: a row lost in it would be sent again."""
    files = (path, path.with_name(f"{path.name}-wal"))
    if path.exists() and not _is_undamaged(path.absolute(), tuple(map(file_version, files))):
        raise damaged(path)


def _is_damage(error: sqlite3.DatabaseError) -> bool:
    """Whether an error shows that the file is damaged: a text that is not UTF-8 has no code."""
    code = getattr(error, "sqlite_errorcode", None)
    if code is None:
        return isinstance(error, sqlite3.OperationalError)
    return code & 0xFF in _DAMAGE


def _is_query_wrong(error: sqlite3.OperationalError) -> bool:
    """Whether SQLite blames the query: a table or column is not there, or it is a bug."""
    return error.sqlite_errorcode == sqlite3.SQLITE_ERROR


def _unusable(path: Path, error: sqlite3.OperationalError) -> UsageError:
    """The error for a ledger that SQLite or the disk does not read or write."""
    code = error.sqlite_errorcode
    other = f"SQLite error {error.sqlite_errorname}"
    reason = _REASONS.get(code) or _REASONS.get(code & 0xFF, other)
    return UsageError(f"{path}: {reason}", writable_hint())


@lru_cache(maxsize=2)
def _is_undamaged(path: Path, versions: tuple[tuple[int, ...], ...]) -> bool:
    """Whether SQLite finds nothing wrong, and each row belongs to another one: once for each version of the files."""
    with closing(sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True)) as connection:
        found = connection.execute("PRAGMA integrity_check(1)").fetchone()
        is_empty = connection.execute("PRAGMA user_version").fetchone() == (0,)
        if found != ("ok",):
            return False
        return is_empty or not any(connection.execute(sql).fetchone() for sql in _WRONG_ROWS)


@contextmanager
def _sqlite_errors(subject: Path) -> Iterator[None]:
    """Turns errors of SQLite and the disk into a UsageError without SQLite's own text, which may contain values."""
    try:
        with disk_errors(str(subject), writable_hint()):
            yield
    except sqlite3.OperationalError as error:
        if _is_damage(error) or _is_query_wrong(error):
            raise damaged(subject) from None  # or a table or column is not there
        raise _unusable(subject, error) from None
    except UnicodeDecodeError:  # of a text in the file
        raise damaged(subject) from None
    except sqlite3.DatabaseError as error:
        if not _is_damage(error):
            raise
        is_database = error.sqlite_errorcode != sqlite3.SQLITE_NOTADB
        raise damaged(subject, is_database=is_database) from None
