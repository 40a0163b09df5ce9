"""The part of the ledger that belongs to one plan: its operations and every change of their state.

In: operations and changes. Out: which operation is in which state, and what other plans do to the same records. A batch
of changes is committed as a whole or not at all; a change that the table of states does not allow raises.
"""

from __future__ import annotations

import json
import sqlite3
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from itertools import groupby
from operator import attrgetter
from typing import Any, Final, Self

from orderbridge.pipelines.ledger.keys import (
    body_hash,
    key_hashes,
    record_hash,
    salted,
    spelling_hashes,
    spelling_host,
)
from orderbridge.pipelines.ledger.model import (
    PREVIOUS_STATES,
    Claim,
    LedgerRow,
    State,
    StateChange,
    UnsettledGroup,
    UnsettledUpdate,
)
from orderbridge.pipelines.ledger.store import FIELDS, Ledger, LedgerError, damaged
from orderbridge.pipelines.plan.model import MANIFEST_FILE, Plan
from orderbridge.pipelines.push.next_steps import plan_again_command
from orderbridge.pipelines.push.outcome import is_refusal
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS

_CLAIMED: Final = """
    SELECT mine.id, p.plan_id, located(p.plan_id, p.folder), o.id, o.state,
        coalesce(o.doubt_at, o.sent_at, o.state_at) FROM claims mine
    JOIN claims other ON other.host = mine.host AND other.key = mine.key
    JOIN operations o ON o.plan = other.plan AND o.id = other.id JOIN plans p ON p.plan = other.plan
    WHERE mine.plan = :plan AND mine.host = p.host AND (
        (other.plan = :plan AND other.id < mine.id AND o.state <> 'rejected'
            AND NOT (o.state = 'abandoned' AND o.doubt_at IS NULL))
        OR (other.plan <> :plan AND (
            o.state IN ('in_flight', 'in_doubt', 'conflict')
            OR o.state = 'confirmed'
            OR (o.state = 'abandoned' AND o.doubt_at > iif(p.kind = 'customers', :since, :unlisted_since)))))
    ORDER BY mine.id, o.state = 'confirmed', p.folder"""
_UNSETTLED: Final = """
    SELECT p.plan_id, located(p.plan_id, p.folder), o.id, o.path, o.fields, o.state IN ('in_flight', 'in_doubt'),
        p.plan > ?, coalesce(o.doubt_at, o.sent_at, o.state_at)
    FROM operations o JOIN plans p USING (plan)
    WHERE p.host = ? AND o.fields <> '' AND (o.state IN ('in_flight', 'in_doubt') OR o.doubt_at > ?)"""

_REFUSED: Final = """
    SELECT o.id, o.status, o.fields, r.fields FROM operations o
    JOIN operations r ON r.path = o.path AND r.status = o.status AND r.state = 'rejected' AND r.state_at >= o.doubt_at
        AND (r.attempts > 1 OR r.code <> '')
    JOIN plans p ON p.plan = r.plan AND p.host = ?
    WHERE o.plan = ? AND o.state = 'in_doubt' AND o.fields <> ''
        AND (o.attempts = 1 OR o.doubt_at > o.sent_at)"""
_GONE: Final = """
    SELECT o.id, o.fields, r.status FROM operations o
    JOIN operations r ON r.path = o.path AND r.plan <> o.plan AND r.state = 'rejected' AND r.state_at >= o.doubt_at
        AND (r.attempts > 1 OR r.code <> '')
    JOIN plans p ON p.plan = r.plan AND p.host = ?
    WHERE o.plan = ? AND o.state = 'in_doubt' AND o.fields <> ''"""
_ANSWERED: Final = f"""
    SELECT p.plan_id, o.{", o.".join(LedgerRow._fields)} FROM operations o JOIN plans p USING (plan)
    WHERE o.doubt_at IS NOT NULL AND o.words IN (?, ?) ORDER BY o.plan, o.id"""  # of a type
_OF_DOUBT: Final = "state IN ('in_flight', 'in_doubt', 'conflict')"
"""As the index has it: other words would read all operations."""
_UNSETTLED_GROUPS: Final = f"""
    SELECT state, fields, min(coalesce(doubt_at, sent_at, 0)), max(coalesce(doubt_at, sent_at, 0)) FROM operations
    WHERE plan = ? AND {_OF_DOUBT} GROUP BY state, fields"""  # constants
GONE: Final = "given up: the platform has refused the record since"
REFUSED_SINCE: Final = "the platform has refused the record since, with the same status"
OVERWRITTEN: Final = "given up: another update has set these fields since"


class PlanLedger:
    """A recorded plan's part of a ledger, which nobody else uses."""

    def __init__(self, ledger: Ledger, plan_id: str) -> None:
        self.ledger = ledger
        self.plan_id = plan_id
        sql = "SELECT plan, host, located(plan_id, folder), kind FROM plans WHERE plan_id = ?"
        self._plan, self.host, self.folder, kind = ledger.connection.execute(
            sql, [plan_id]
        ).fetchone()
        self.kind = KINDS[kind]

    @classmethod
    def record(cls, ledger: Ledger, plan: Plan, at: float) -> Self:
        """Records a verified plan with its operations as `planned`, at a ledger time, unless it is recorded already.

        Raises:
            UsageError: the ledger has a different plan with this id: this one was changed since it was pushed.
        """
        manifest = plan.manifest
        folder = str(plan.folder)
        clock = ledger.clock
        host = ledger.host_name(manifest.host)
        with ledger.transaction() as connection:
            sql = "SELECT operations_sha256, host FROM plans WHERE plan_id = ?"
            recorded = connection.execute(sql, [manifest.plan_id]).fetchone()
            sha256, environment = manifest.operations_sha256, manifest.environment
            if recorded is None:
                cursor = connection.execute(
                    "INSERT INTO plans (plan_id, kind, host, environment, folder, operations_sha256, opened_at,"
                    " recorded_in) SELECT ?, ?, ?, ?, ?, ?, ?, commits FROM ledger",
                    [
                        manifest.plan_id,
                        manifest.kind,
                        host,
                        environment,
                        folder,
                        sha256,
                        clock.wall_time(at),
                    ],
                )
                _insert(ledger, int(cursor.lastrowid or 0), plan, at)
            elif recorded != (sha256, host):
                raise UsageError(
                    f"{plan.folder / MANIFEST_FILE} was changed after the plan was pushed: the ledger has another "
                    f"plan with the id {manifest.plan_id}",
                    f"Nothing was sent. Restore that file, or plan again into a new folder: {plan_again_command(plan)}",
                )
            connection.execute(
                "UPDATE plans SET folder = ? WHERE plan_id = ?", [folder, manifest.plan_id]
            )
            if sum(ledger.counts(manifest.plan_id).values()) != manifest.operations:
                raise damaged(ledger.path)  # it has lost some: none of them would be sent, or known
        return cls(ledger, manifest.plan_id)

    @classmethod
    def all_unsettled(cls, ledger: Ledger, host: str | None = None) -> list[Self]:
        """The plans with operations in flight, in doubt or in conflict, oldest first; of a host, if one is given."""
        name = None if host is None else ledger.host_name(host)
        rows = ledger.connection.execute(
            f"SELECT plan_id FROM plans WHERE host = coalesce(?, host) AND plan IN"
            f" (SELECT plan FROM operations WHERE {_OF_DOUBT}) ORDER BY plan",  # a constant
            [name],
        ).fetchall()
        return [cls(ledger, plan_id) for (plan_id,) in rows]

    @classmethod
    def named(cls, ledger: Ledger, name: str) -> Self | None:
        """The plan whose id begins so; None where it is not exactly one."""
        plans = ledger.connection.execute("SELECT plan_id FROM plans")
        found = [plan_id for (plan_id,) in plans if plan_id.startswith(name)]
        return cls(ledger, found[0]) if len(found) == 1 else None

    @staticmethod
    def answered(ledger: Ledger, arrived: str, given_up: str) -> dict[str, list[LedgerRow]]:
        """By plan, the operations whose outcome a person has reported, in one of these words."""
        found: dict[str, list[LedgerRow]] = defaultdict(list)
        for plan_id, *values in ledger.connection.execute(_ANSWERED, [arrived, given_up]):
            found[plan_id].append(_row(*values))
        return found

    def rows(self, *states: State) -> Iterator[LedgerRow]:
        """The operations in these states, or all of them, in the order of the plan."""
        where = f" AND state IN ({', '.join('?' * len(states))})" if states else ""
        sql = f"SELECT {', '.join(LedgerRow._fields)} FROM operations WHERE plan = ?{where} ORDER BY id"
        for values in self.ledger.connection.execute(sql, [self._plan, *states]):
            yield _row(*values)

    def unsettled_groups(self) -> list[UnsettledGroup]:
        """The operations in flight, in doubt or in conflict, by state and fields: there may be many."""
        rows = self.ledger.connection.execute(_UNSETTLED_GROUPS, [self._plan])
        return [UnsettledGroup(state, _split(fields), *times) for state, fields, *times in rows]

    def count_push(self, settle_s: float | None = None) -> int:
        """Counts the beginning or the end of a push, and returns their number.

        Args:
            settle_s: the settle time of a push that ends: what is shown of its unknown outcomes later goes by it.
        """
        with self.ledger.transaction() as connection:
            if settle_s is not None:
                settling = [self._plan, settle_s]
                connection.execute("INSERT OR REPLACE INTO settling VALUES (?, ?)", settling)
            sql = "UPDATE plans SET pushes = pushes + 1 WHERE plan = ? RETURNING pushes"
            return int(connection.execute(sql, [self._plan]).fetchone()[0])

    def now(self) -> float:
        """Ledger time."""
        return self.ledger.clock.now()

    def counts(self) -> dict[State, int]:
        """Number of operations in each state."""
        return self.ledger.counts(self.plan_id)

    def ids(self, *states: State) -> set[int]:
        """Ids of the operations in these states."""
        sql = f"SELECT id FROM operations WHERE plan = ? AND state IN ({', '.join('?' * len(states))})"
        return {number for (number,) in self.ledger.connection.execute(sql, [self._plan, *states])}

    def claimed(self, since: float, unlisted_since: float = 0.0) -> dict[int, list[Claim]]:
        """Operations whose record others have in flight, in doubt or confirmed: id → claims of the others.

        Args:
            since: ledger time; an abandoned customer counts if its doubt is younger.
            unlisted_since: an abandoned create of what has no list counts if its doubt is younger.
        """
        claims: dict[int, list[Claim]] = defaultdict(list)
        times = {"since": since, "unlisted_since": unlisted_since}
        for number, *claim in self.ledger.connection.execute(
            _CLAIMED, {"plan": self._plan, **times}
        ):
            claims[number].append(Claim(*claim))
        return claims

    def undecided_updates(self, paths: Collection[str]) -> list[LedgerRow]:
        """The updates of these records that are planned or in doubt."""
        return [row for row in self.rows("planned", "in_doubt") if row.path in paths]

    def keys(self, number: int) -> frozenset[bytes]:
        """The salted key hashes of an operation."""
        rows = self.ledger.connection.execute(
            "SELECT key FROM claims WHERE plan = ? AND id = ?", [self._plan, number]
        )
        return frozenset(key for (key,) in rows)

    def unsettled(self, since: float) -> list[UnsettledUpdate]:
        """Updates of this host, of any plan, that may still arrive: in doubt now, or after `since`."""
        rows = self.ledger.connection.execute(_UNSETTLED, [self._plan, self.host, since])
        return [
            UnsettledUpdate(
                plan_id,
                folder,
                number,
                path,
                frozenset(_split(fields)),
                bool(is_open),
                bool(is_later),
                at,
            )
            for plan_id, folder, number, path, fields, is_open, is_later, at in rows
        ]

    def overwritten(self) -> list[StateChange]:
        """The end of updates in doubt of which another one has set a field since: the doubt made its values unknown."""
        rows = self.ledger.connection.execute(
            f"SELECT DISTINCT o.id FROM operations o, {FIELDS} f JOIN confirmed c ON (c.host, c.path, c.field)"
            " = (?, o.path, f.value) WHERE o.plan = ? AND o.state = 'in_doubt' AND c.value <> '' ORDER BY o.id",
            [self.host, self._plan],
        )
        return [StateChange(number, "abandoned", words=OVERWRITTEN) for (number,) in rows]

    def refused(self, additive: Set[str]) -> list[StateChange]:
        """The end of updates in doubt that were sent once and refused, where the record was refused as well since.

        What may add to a value is never repeated, so that only another update of the record can show it: one of fields
        that can be, which was rejected with the same status: after a repeat, or with the platform's error body.
        """
        rows = self.ledger.connection.execute(_REFUSED, [self.host, self._plan]).fetchall()
        refused = {
            number: status
            for number, status, fields, other_fields in rows
            if is_refusal(status)
            and additive & set(_split(fields))
            and not additive & set(_split(other_fields))
        }
        return [
            StateChange(number, "rejected", status, words=REFUSED_SINCE, clear=True)
            for number, status in sorted(refused.items())
        ]

    def gone(self, additive: Set[str]) -> list[StateChange]:
        """The end of updates in doubt whose record another plan has found to be refused since.

        Whether one arrived makes no difference: its values stay unknown, and the next plan sends them. What may add to
        a value is not meant.
        """
        rows = self.ledger.connection.execute(_GONE, [self.host, self._plan]).fetchall()
        given_up = {
            number
            for number, fields, status in rows
            if is_refusal(status) and not additive & set(_split(fields))
        }
        return [StateChange(number, "abandoned", words=GONE) for number in sorted(given_up)]

    def ends(self, additive: Set[str]) -> list[StateChange]:
        """The end of each update in doubt that another one decides: `overwritten`, `refused`, `gone`."""
        found = [*self.overwritten(), *self.refused(additive), *self.gone(additive)]
        return [*{change.id: change for change in reversed(found)}.values()]

    def recover(self, deadline_s: float, now: float) -> int:
        """Puts the operations that a killed push left in flight in doubt, and returns their number.

        Args:
            deadline_s: seconds after the commit of an intent at which its request is over.
            now: ledger time; the sending process has ended, so nothing is sent after this.
        """
        changes = [
            StateChange(
                row.id,
                "in_doubt",
                words="the push was interrupted",
                doubt_at=min((row.sent_at or now) + deadline_s, now),
            )
            for row in self.rows("in_flight")
        ]
        self.commit(changes, now)
        return len(changes)

    def keep_ids(self, found: Mapping[int, str]) -> None:
        """Keeps the platform's ids of confirmed creates that have none. Raises UsageError: a disk error."""
        with self.ledger.transaction() as connection:
            connection.executemany(
                "UPDATE operations SET remote_id = ? WHERE plan = ? AND id = ? AND state = 'confirmed'"
                " AND remote_id IS NULL",
                [(remote_id, self._plan, number) for number, remote_id in found.items()],
            )

    def commit(self, changes: Sequence[StateChange], at: float) -> None:
        """Commits changes of state in order, all or none; `at` is now, in ledger time.

        Raises:
            LedgerError: a change that is not allowed. UsageError: a disk error. Nothing was committed.
        """
        if not changes:
            return
        with self.ledger.transaction() as connection:
            for to, group in groupby(changes, key=attrgetter("to")):
                self._apply(connection, to, list(group), at)

    def _apply(
        self, connection: sqlite3.Connection, to: State, changes: list[StateChange], at: float
    ) -> None:
        """Changes to one state."""
        allowed = ", ".join(f"'{state}'" for state in PREVIOUS_STATES[to])
        wall_at = self.ledger.clock.wall_time(at)
        is_attempt = to == "in_flight"
        more = {
            "wall_at": wall_at,
            "at": at,
            "attempt_at": at if is_attempt else None,
            "attempts": int(is_attempt),
        }
        cursor = connection.executemany(
            "UPDATE operations SET state = :to, status = :status, code = :code, request_id = :request_id,"
            " words = :words, updated_at = :wall_at, state_at = :at, attempts = attempts + :attempts,"
            " sent_at = coalesce(:attempt_at, :sent_at, sent_at), remote_id = coalesce(:remote_id, remote_id),"
            " doubt_at = CASE WHEN :clear THEN NULL ELSE coalesce(:doubt_at, doubt_at) END"
            f" WHERE plan = {self._plan} AND id = :id AND state IN ({allowed})",
            [change._asdict() | more for change in changes],
        )
        if cursor.rowcount != len(changes):
            raise LedgerError(
                f"plan {self.plan_id}: an operation cannot become {to} from its current state"
            )
        if to == "confirmed":
            self._store_values(connection, changes, wall_at)
        elif to == "in_doubt":
            connection.execute(
                # A doubt may be noticed long after it was sent: plans that were made since are newer than its values.
                "UPDATE confirmed SET value = '', plan_id = p.plan_id,"
                " confirmed_in = max(confirmed_in, p.recorded_in) FROM plans p"
                " WHERE p.plan = ? AND (confirmed.host, path, field) IN (SELECT ?, o.path, f.value"
                f" FROM operations o, {FIELDS} f WHERE o.plan = ? AND o.id IN (SELECT value FROM json_each(?)))",
                [self._plan, self.host, self._plan, json.dumps([one.id for one in changes])],
            )

    def _store_values(
        self, connection: sqlite3.Connection, changes: list[StateChange], at: float
    ) -> None:
        """The values that the platform has now, as far as they are known."""
        fields = [
            (self.host, *field, value)
            for change in changes
            for field, value in change.values.items()
        ]
        connection.executemany(
            "INSERT OR REPLACE INTO confirmed SELECT ?, ?, ?, ?, ?, ?, commits FROM ledger",
            [(*field, at, self.plan_id) for field in fields if field[-1] is not None],
        )
        unknown = [field[:-1] for field in fields if field[-1] is None]
        connection.executemany(
            "DELETE FROM confirmed WHERE host = ? AND path = ? AND field = ?", unknown
        )


def _insert(ledger: Ledger, number: int, plan: Plan, at: float) -> None:
    """Inserts the operations: of a body only the names of an update's fields, of a create hashes of its keys."""
    kind = KINDS[plan.kind]
    wall_at = ledger.clock.wall_time(at)
    host = ledger.host_name(plan.manifest.host)
    claims: list[tuple[str, bytes, int, int]] = []

    def operations() -> Iterator[tuple[object, ...]]:
        for op in plan.operations():
            keys = [key for name, value in op.keys.items() for key in key_hashes(host, name, value)]
            if not (kind.is_listed or kind.is_update):
                keys = [
                    body_hash(op.path, op.body),
                    record_hash(op.path, op.body, kind.unique_fields),
                ]
            claims.extend((host, salted(ledger.salt, key), number, op.id) for key in keys)
            spellings = [
                key for name, value in op.keys.items() for key in spelling_hashes(host, name, value)
            ]
            any_spelling = spelling_host(host)
            claims.extend(
                (any_spelling, salted(ledger.salt, key), number, op.id) for key in spellings
            )
            yield (
                number,
                op.id,
                op.method,
                op.path,
                ",".join(op.body) if kind.is_update else "",
                wall_at,
                at,
            )

    ledger.connection.executemany(
        "INSERT INTO operations (plan, id, method, path, fields, state, updated_at, state_at)"
        " VALUES (?, ?, ?, ?, ?, 'planned', ?, ?)",
        operations(),
    )
    ledger.connection.executemany("INSERT OR IGNORE INTO claims VALUES (?, ?, ?, ?)", claims)


def _row(number: int, method: str, path: str, fields: str, *rest: Any) -> LedgerRow:  # noqa: ANN401 # columns
    return LedgerRow(number, method, path, _split(fields), *rest)


def _split(joined: str) -> tuple[str, ...]:
    return tuple(joined.split(",")) if joined else ()
