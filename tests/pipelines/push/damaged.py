"""Ledgers that a disk has damaged, and what pushes with them send.

In: a seed. Out: what reached the platform before and after the damage. The platform is a client in this process, which
counts each write.
"""

from __future__ import annotations

import random
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

import msgspec

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.sources.errors import BridgeError
from orderbridge.sources.http.exchange import WriteOutcome
from tests.pipelines.push.plans import LOST, YES, Answering, Place, customer, listed, patch

PAGE: Final = 4096
_LOST: Final = "lost"
"""In the body of a write whose answer never comes."""


@dataclass
class Platform:
    """Takes every write, and lists its customers, of which one code is written in another way."""

    client: Answering = field(init=False)

    def __post_init__(self) -> None:
        self.client = Answering(self.answer, self.customers)

    def answer(self, place: int, path: str, body: bytes) -> WriteOutcome | None:
        return LOST if _LOST.encode() in body else None

    def customers(self) -> list[Mapping[str, Any]]:
        """Those that were created; a code that begins with R is unknown here."""
        made = [
            msgspec.json.decode(body) for path, body in self.client.sent if path == "/customers"
        ]
        return [
            {"id": str(number), **one}
            for number, one in enumerate(made, 1)
            if not one["erpCode"].startswith("R")
        ]

    def writes(self) -> Counter[str]:
        """How often each write arrived that may arrive once: creates, and updates that add."""
        return Counter(
            msgspec.json.decode(body)["erpCode"] if path == "/customers" else path
            for path, body in self.client.sent
            if path == "/customers" or b'"stock"' in body
        )


@dataclass(frozen=True, slots=True)
class Played:
    """What pushes with a damaged ledger did.

    Attributes:
        how: the seed, and how it was damaged.
        is_intact: SQLite finds nothing wrong with it.
        done: of each push its exit code, and how much it sent.
        again: what arrived more than once, and may not.
    """

    how: str
    is_intact: bool
    done: list[tuple[int, int]]
    again: dict[str, int]

    @property
    def is_refused(self) -> bool:
        """Whether no push began."""
        return {code for code, _ in self.done} == {2}

    @property
    def problems(self) -> list[str]:
        """What is wrong with them."""
        found = []
        if self.again:
            found.append(f"sent again: {self.again}")
        if not self.is_intact and any(sent for _, sent in self.done):
            found.append("sent with a ledger that the integrity check refuses")
        if any(sent for code, sent in self.done if code in (1, 2)):
            found.append("sent before it refused the ledger")
        if 1 in {code for code, _ in self.done}:
            found.append("an internal error")
        return [f"{self.how}: {problem}: {self.done}" for problem in found]


@dataclass
class Scene:
    """A project with confirmed, open, interrupted and lost work, whose files can be put back."""

    at: Place
    platform: Platform
    copies: Path
    plans: list[Path]
    before: list[tuple[str, bytes]]

    @classmethod
    def build(cls, at: Place, copies: Path) -> Scene:
        """Plays it. The ledger is that of a killed push: a part of it is in its `-wal` file."""
        platform = Platform()
        at.means = replace(
            at.means,
            client=lambda settings, stop: platform.client,
            read_customers=lambda keys: listed(platform.customers(), keys),
        )
        finished = at.plan(
            [customer(n, erpCode=f"R{n}", email=f"r{n}@x.test") for n in range(1, 9)]
        )
        at.push(finished)
        lost = at.plan([customer(n, firstName=_LOST) for n in range(11, 13)])
        at.push(lost)
        unsure = at.plan(
            [patch(n, n, repeatable=False, stock=5, sku=_LOST) for n in range(1, 4)]
            + [patch(n, n, sku=f"S{n}") for n in range(4, 9)]
        )
        at.push(unsure)
        older = copies / "older.sqlite"
        shutil.copy(at.ledger, older)
        again = at.plan(
            [customer(n, erpCode=f"R{n}", email=f"r{n}@x.test") for n in range(1, 9)]
            + [customer(n) for n in range(21, 25)]
        )
        stocks = at.plan(
            [patch(n, 20 + n, repeatable=False, stock=7, line=n + 1) for n in range(1, 13)]
        )

        def on_operation(ended: int, total: int) -> None:
            if ended >= 5 and not (copies / "project").exists():
                shutil.copytree(
                    at.folder, copies / "project", ignore=shutil.ignore_patterns("*.lock")
                )
                scene.before = [*platform.client.sent]

        scene = cls(at, platform, copies, [finished, lost, unsure, again, stocks], [])
        at.push(stocks, concurrency=1, on_operation=on_operation)
        return scene

    def restore(self) -> None:
        """Puts the files of the project back, and the platform."""
        for path in self.at.folder.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self.copies / "project", self.at.folder, dirs_exist_ok=True)
        self.platform.client.sent = [*self.before]

    def is_intact(self) -> bool:
        """Whether the integrity check of SQLite finds nothing wrong with a copy of the ledger."""
        copy = self.copies / "probe.sqlite"
        for suffix in ("", "-wal", "-shm"):
            part = copy.with_name(f"{copy.name}{suffix}")
            part.unlink(missing_ok=True)
            source = self.at.ledger.with_name(f"{self.at.ledger.name}{suffix}")
            if source.exists() and suffix != "-shm":
                shutil.copyfile(source, part)
        try:
            with closing(sqlite3.connect(copy)) as connection:
                return connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        except (sqlite3.Error, UnicodeDecodeError):
            return False

    def play(self, seed: int, how: Callable[[Scene, int], str]) -> Played:
        """Puts all back, damages the ledger, and pushes each plan."""
        self.restore()
        words = f"{seed}: {how(self, seed)}"
        is_intact = self.is_intact()
        done = self.push_all()
        again = {name: count for name, count in self.platform.writes().items() if count > 1}
        return Played(words, is_intact, done, again)

    def push_all(self) -> list[tuple[int, int]]:
        """Pushes each plan. Returns its exit code, that of a bug where it raised, and how much it sent."""
        done: list[tuple[int, int]] = []
        for plan in self.plans:
            before = len(self.platform.client.sent)
            try:
                code = int(self.at.code(plan, YES, concurrency=1))
            except BridgeError as error:
                code = int(error.exit_code)
            except Exception:  # as the command: an internal error
                code = 1
            done.append((code, len(self.platform.client.sent) - before))
        return done


def _damage_page(data: bytearray, rng: random.Random, scene: Scene) -> None:
    """Another page, or zeros, or the content of before, in the place of one."""
    pages = max(1, len(data) // PAGE)
    at, other = rng.randrange(pages) * PAGE, rng.randrange(pages) * PAGE
    older = (scene.copies / "older.sqlite").read_bytes()
    new = rng.choice((bytes(PAGE), bytes(data[other : other + PAGE]), older[at : at + PAGE]))
    data[at : at + len(new)] = new


def _damage_bytes(data: bytearray, rng: random.Random, scene: Scene) -> None:
    at = rng.randrange(len(data))
    length = rng.choice((1, 4, 16, 64, 512))
    data[at : at + length] = rng.randbytes(len(data[at : at + length]))


def _damage_bit(data: bytearray, rng: random.Random, scene: Scene) -> None:
    for _ in range(rng.choice((1, 8, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(data: bytearray, rng: random.Random, scene: Scene) -> None:
    del data[rng.randrange(len(data)) :]


def _swap(data: bytearray, rng: random.Random, scene: Scene) -> None:
    pages = max(1, len(data) // PAGE)
    one, other = (rng.randrange(pages) * PAGE for _ in range(2))
    first, second = bytes(data[one : one + PAGE]), bytes(data[other : other + PAGE])
    data[one : one + PAGE], data[other : other + PAGE] = second, first


ALTERATIONS: Final = (
    "DROP TABLE {table}",
    "ALTER TABLE {table} RENAME TO other",
    "ALTER TABLE {table} RENAME COLUMN {column} TO other",
    "ALTER TABLE {table} ADD COLUMN other",
    "DELETE FROM {table} WHERE drawn() % {number} = 0",
    "DELETE FROM {table}",
    "UPDATE {table} SET {column} = NULL WHERE drawn() % {number} = 0",
    "UPDATE {table} SET {column} = {column} || '?' WHERE drawn() % {number} = 0",
    "UPDATE {table} SET {column} = {column} + {number} WHERE drawn() % {number} = 0",
)
"""What another program may do to a table. SQLite finds nothing wrong with the database that it leaves."""
UNNOTICED: Final = ("DELETE FROM claims", "UPDATE claims")
"""Nothing shows that the hashes of a create are gone or others: an answer of a person deletes them too."""


def alter(scene: Scene, seed: int) -> str:
    """Alters a table, a column or rows of the ledger, and returns how; one that SQLite refuses changes nothing."""
    rng = random.Random(seed)
    statement = UNNOTICED[0]
    with closing(sqlite3.connect(scene.at.ledger, isolation_level=None)) as connection:
        connection.create_function("drawn", 0, lambda: rng.getrandbits(16))
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND name <> 'home' ORDER BY 1"
        ).fetchall()  # `home` has nothing of what was sent
        while statement.startswith(UNNOTICED):
            (table,) = rng.choice(tables)
            columns = connection.execute("SELECT name FROM pragma_table_info(?)", [table])
            (column,) = rng.choice(columns.fetchall())
            statement = rng.choice(ALTERATIONS).format(
                table=table, column=column, number=rng.randint(2, 5)
            )
        try:
            changed = connection.execute(statement).rowcount
        except sqlite3.Error as error:
            return f"{statement}: {error}"
    return f"{statement}: {changed}"


DAMAGES: Final[tuple[Callable[[bytearray, random.Random, Scene], None], ...]] = (
    _damage_page,
    _damage_bytes,
    _damage_bit,
    _cut,
    _swap,
)


def damage(scene: Scene, seed: int) -> str:
    """Damages the ledger, or its `-wal` file, and returns how."""
    rng = random.Random(seed)
    ledger = scene.at.ledger
    wal = ledger.with_name(f"{ledger.name}-wal")
    is_checkpointed = rng.random() < 0.7
    if is_checkpointed:  # everything is in the one file
        Ledger.open(ledger).close()
    path = ledger if is_checkpointed or rng.random() < 0.5 or not wal.exists() else wal
    data = bytearray(path.read_bytes())
    how = rng.choice(DAMAGES)
    before = bytes(data)
    how(data, rng, scene)
    path.write_bytes(data)
    same = " (no change)" if bytes(data) == before else ""
    return f"{how.__name__} of {path.name.removeprefix('ledger.')}{same}"
