"""One plan's part of the ledger: its operations, recorded once, and every change of their state.

In: operations and changes. Out: what is in which state, what other operations stand in the way. A change is committed
as a whole or not at all; one that the ledger's table of states does not show raises, and nothing of its batch is kept.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from operator import attrgetter
from typing import Final, Self

from pipelines.ledger.store import COMES_FROM, Ledger, LedgerError, State, variant_of
from pipelines.plan.model import Plan


@dataclass(frozen=True, slots=True)
class Recorded:
    """An operation as the ledger keeps it.

    Attributes:
        id: in its plan.
        method, path: as they are sent.
        keys: hashes of what it creates is known by (`hashed`, `body_hash`): no two of a host are sent for one of them.
        fields: of a PATCH.
    """

    id: int
    method: str
    path: str
    keys: tuple[bytes, ...] = ()
    fields: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class StateChange:
    """A new state of an operation.

    Attributes:
        id: in its plan.
        to: the state.
        status, code, request_id, words: of the answer, as far as there was one.
        remote_id: that the platform gave what was created.
        doubt_at: from when on the outcome is in doubt, epoch seconds; for `in_doubt`. It stays when the operation is
            sent again and confirmed: the first attempt may still land.
        clear: the attempts before surely did not happen, and no doubt of them is left.
        values: of a confirmed PATCH: field → JSON text as it stands now, None where nobody knows. An operation in doubt
            unsettles what was confirmed of all its fields.
    """

    id: int
    to: State
    status: int | None = None
    code: str = ""
    request_id: str = ""
    words: str = ""
    remote_id: str | None = None
    doubt_at: float | None = None
    clear: bool = False
    values: Mapping[str, str | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class LedgerRow:
    """What the ledger knows of an operation. Times are epoch seconds."""

    id: int
    method: str
    path: str
    fields: tuple[str, ...]
    state: State
    attempts: int
    status: int | None
    code: str
    request_id: str
    words: str
    remote_id: str | None
    sent_at: float | None
    doubt_at: float | None
    updated_at: float


@dataclass(frozen=True, slots=True)
class UnsettledUpdate:
    """An operation of which an attempt may still land: it is in doubt (`open`), or once was."""

    plan_id: str
    id: int
    path: str
    fields: frozenset[str]
    open: bool
    doubt_at: float


_TAKEN: Final = """
    SELECT mine.id, min(p.plan_id) FROM claims mine
    JOIN claims other ON other.host = mine.host AND other.key = mine.key
    JOIN operations o ON o.plan = other.plan AND o.id = other.id JOIN plans p ON p.plan = other.plan
    WHERE mine.plan = ?1 AND (
        (other.plan = ?1 AND other.id < mine.id AND o.state <> 'rejected')
        OR (other.plan <> ?1 AND (
            o.state IN ('in_flight', 'in_doubt', 'conflict')
            OR (o.state = 'confirmed' AND (p.kind <> 'customers' OR o.updated_at > ?3))
            OR (o.state = 'abandoned' AND o.doubt_at > ?2))))
    GROUP BY mine.id"""
_UNQUIET: Final = """
    SELECT p.plan_id, o.id, o.path, o.fields, o.state IN ('in_flight', 'in_doubt'), coalesce(o.doubt_at, o.sent_at)
    FROM operations o JOIN plans p USING (plan)
    WHERE p.host = ? AND o.fields <> '' AND (o.state IN ('in_flight', 'in_doubt') OR o.doubt_at > ?)"""


class PlanLedger:
    """One plan's part of the ledger.

    Args:
        ledger: open for writing, and held by nobody else.
        plan_id: of a plan that was recorded.
    """

    def __init__(self, ledger: Ledger, plan_id: str) -> None:
        self.ledger, self.plan_id = ledger, plan_id
        row = ledger.connection.execute("SELECT plan, host FROM plans WHERE plan_id = ?", [plan_id]).fetchone()
        if row is None:
            raise LedgerError(f"the ledger has no plan {plan_id}")
        self._plan, self.host = int(row[0]), str(row[1])

    @classmethod
    def recorded(cls, ledger: Ledger, plan: Plan, rows: Iterable[Recorded], at: float) -> Self:
        """The plan's book, its operations recorded as `planned` where the ledger does not have them yet.

        Args:
            ledger: open for writing.
            plan: opened and checked.
            rows: its operations.
            at: now, epoch seconds.

        Raises:
            LedgerError: the ledger has another plan of this id.
        """
        told = plan.manifest
        with ledger.transaction() as connection:
            found = connection.execute(
                "SELECT operations_sha256, host FROM plans WHERE plan_id = ?", [told.plan_id]
            ).fetchone()
            if found is None:
                cursor = connection.execute(
                    "INSERT INTO plans (plan_id, kind, host, environment, folder, operations_sha256, opened_at)"
                    " VALUES (?, ?, ?, ?, ?, ?, ?)",
                    [
                        told.plan_id,
                        told.kind,
                        told.host,
                        told.environment,
                        str(plan.folder),
                        told.operations_sha256,
                        at,
                    ],
                )
                _insert(connection, int(cursor.lastrowid or 0), told.host, rows, at)
            elif found != (told.operations_sha256, told.host):
                raise LedgerError(f"the ledger has another plan of the id {told.plan_id}")
            else:
                connection.execute("UPDATE plans SET folder = ? WHERE plan_id = ?", [str(plan.folder), told.plan_id])
        return cls(ledger, told.plan_id)

    def rows(self, *states: State) -> Iterator[LedgerRow]:
        """The operations in these states, or all of them, in the plan's order."""
        where = f" AND state IN ({', '.join('?' * len(states))})" if states else ""
        cursor = self.ledger.connection.execute(
            "SELECT id, method, path, fields, state, attempts, status, code, request_id, words, remote_id, sent_at,"
            f" doubt_at, updated_at FROM operations WHERE plan = ?{where} ORDER BY id",
            [self._plan, *states],
        )
        for row in cursor:
            number, method, path, fields, *rest = row
            yield LedgerRow(number, method, path, _names(fields), *rest)

    def counts(self) -> dict[State, int]:
        """How many operations are in each state."""
        sql = "SELECT state, count(*) FROM operations WHERE plan = ? GROUP BY state"
        return dict(self.ledger.connection.execute(sql, [self._plan]).fetchall())

    def ids(self, *states: State) -> set[int]:
        """Ids of the operations in these states."""
        sql = f"SELECT id FROM operations WHERE plan = ? AND state IN ({', '.join('?' * len(states))})"
        return {number for (number,) in self.ledger.connection.execute(sql, [self._plan, *states])}

    def taken(self, since: float, listed_since: float) -> dict[int, str]:
        """Operations whose key another one has in flight, in doubt or confirmed: id → that one's plan.

        Args:
            since: epoch seconds; one that was given up counts where its doubt is younger.
            listed_since: a customer that was confirmed before is told by the list of customers: it may be gone again.
        """
        return dict(self.ledger.connection.execute(_TAKEN, [self._plan, since, listed_since]).fetchall())

    def overtaken(self) -> dict[tuple[str, str, str], str]:
        """Fields that other plans confirmed since this one was first pushed: product, variant, field → that plan."""
        rows = self.ledger.connection.execute(
            "SELECT c.product_id, c.variant_id, c.field, c.plan_id FROM confirmed c JOIN plans p ON p.host = c.host"
            " WHERE p.plan = ? AND c.plan_id <> p.plan_id AND c.confirmed_at > p.opened_at",
            [self._plan],
        )
        return {(product, variant, name): plan_id for product, variant, name, plan_id in rows}

    def unquiet(self, since: float) -> list[UnsettledUpdate]:
        """Variant updates of this host, of any plan, that may still land: in doubt, or so after `since`."""
        rows = self.ledger.connection.execute(_UNQUIET, [self.host, since])
        return [
            UnsettledUpdate(plan_id, number, path, frozenset(_names(fields)), bool(is_open), at)
            for plan_id, number, path, fields, is_open, at in rows
        ]

    def recover(self, deadline_s: float, now: float) -> int:
        """What a killed push left in flight is in doubt: from when its last byte can have left. Returns how many.

        Args:
            deadline_s: total seconds that a request was given.
            now: the process that sent is gone, so nothing of it leaves after this.
        """
        left = [
            StateChange(
                row.id, "in_doubt", words="the push was cut off", doubt_at=min((row.sent_at or now) + deadline_s, now)
            )
            for row in self.rows("in_flight")
        ]
        self.commit(left, now)
        return len(left)

    def commit(self, changes: Sequence[StateChange], at: float) -> None:
        """Commits changes of state, all or none.

        Args:
            changes: in order.
            at: now, epoch seconds.

        Raises:
            LedgerError: a change that is not allowed. UsageError: the disk refuses. Nothing was committed.
        """
        if not changes:
            return
        with self.ledger.transaction() as connection:
            for to, group in groupby(changes, key=attrgetter("to")):
                self._move(connection, to, list(group), at)

    def _move(self, connection: sqlite3.Connection, to: State, changes: list[StateChange], at: float) -> None:
        """Changes to one state."""
        allowed = ", ".join(f"'{state}'" for state in COMES_FROM[to])
        where = f"WHERE plan = {self._plan} AND id = ? AND state IN ({allowed})"
        if to == "in_flight":
            cursor = connection.executemany(
                "UPDATE operations SET state = 'in_flight', attempts = attempts + 1, sent_at = ?, updated_at = ?,"
                " status = NULL, code = '', request_id = '', words = '',"
                f" doubt_at = CASE WHEN ? THEN NULL ELSE doubt_at END {where}",
                [(at, at, change.clear, change.id) for change in changes],
            )
        else:
            cursor = connection.executemany(
                "UPDATE operations SET state = ?, status = ?, code = ?, request_id = ?, words = ?, updated_at = ?,"
                " remote_id = coalesce(?, remote_id),"
                f" doubt_at = CASE WHEN ? THEN NULL ELSE coalesce(?, doubt_at) END {where}",
                [
                    (to, c.status, c.code, c.request_id, c.words, at, c.remote_id, c.clear, c.doubt_at, c.id)
                    for c in changes
                ],
            )
        if cursor.rowcount != len(changes):
            raise LedgerError(f"plan {self.plan_id}: an operation may not become {to} from the state that it is in")
        if to == "confirmed":
            self._keep(connection, changes, at)
        elif to == "in_doubt":
            self._unsettle(connection, changes)

    def _keep(self, connection: sqlite3.Connection, changes: list[StateChange], at: float) -> None:
        """What stands now on the platform, as far as anybody knows."""
        known: list[tuple[object, ...]] = []
        unknown: list[tuple[str, ...]] = []
        for change in changes:
            if not change.values or (variant := self._variant(connection, change.id)[0]) is None:
                continue
            for name, value in change.values.items():
                if value is None:
                    unknown.append((self.host, *variant, name))
                else:
                    known.append((self.host, *variant, name, value, at, self.plan_id))
        connection.executemany("INSERT OR REPLACE INTO confirmed VALUES (?, ?, ?, ?, ?, ?, ?)", known)
        _forget(connection, unknown)

    def _unsettle(self, connection: sqlite3.Connection, changes: list[StateChange]) -> None:
        for change in changes:
            variant, fields = self._variant(connection, change.id)
            if variant is not None:
                _forget(connection, [(self.host, *variant, name) for name in fields])

    def _variant(
        self, connection: sqlite3.Connection, operation: int
    ) -> tuple[tuple[str, str] | None, tuple[str, ...]]:
        sql = "SELECT path, fields FROM operations WHERE plan = ? AND id = ?"
        path, fields = connection.execute(sql, [self._plan, operation]).fetchone()
        return variant_of(path), _names(fields)


def _insert(connection: sqlite3.Connection, plan: int, host: str, rows: Iterable[Recorded], at: float) -> None:
    claims: list[tuple[str, bytes, int, int]] = []

    def operations() -> Iterator[tuple[object, ...]]:
        for row in rows:
            claims.extend((host, key, plan, row.id) for key in row.keys)
            yield plan, row.id, row.method, row.path, ",".join(row.fields), at

    connection.executemany(
        "INSERT INTO operations (plan, id, method, path, fields, state, updated_at)"
        " VALUES (?, ?, ?, ?, ?, 'planned', ?)",
        operations(),
    )
    connection.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)", claims)


def _forget(connection: sqlite3.Connection, fields: list[tuple[str, ...]]) -> None:
    connection.executemany(
        "DELETE FROM confirmed WHERE host = ? AND product_id = ? AND variant_id = ? AND field = ?", fields
    )


def _names(joined: str) -> tuple[str, ...]:
    return tuple(joined.split(",")) if joined else ()
