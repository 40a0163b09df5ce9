"""Ledgers that a disk has damaged, and what pushes with them send.

In: a seed. Out: what reached the platform before and after the damage. The platform is a client in this process, which
counts each write.
"""

from __future__ import annotations

import random
import shutil
from collections import Counter
from collections.abc import Callable, Mapping
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
