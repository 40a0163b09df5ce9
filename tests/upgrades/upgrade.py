"""An upgrade of a project of an older version by today's code, and what is wrong afterwards.

In: a project that `old_project` made and its platform. Out: a line for each thing that is wrong: a figure that is gone,
an operation of the ledger that changed, a write that was sent twice or never, a command that ended otherwise.
"""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import closing
from pathlib import Path
from typing import Final, NamedTuple

from tests.upgrades.figures import lost_figures, read_figures, wrong_orders
from tests.upgrades.old_project import (
    HAS_RESULT,
    NIGHT,
    NIGHTLY,
    PLANS,
    PUSH,
    Run,
    write_nightly,
)
from tests.upgrades.platform import Platform

_OPERATIONS: Final = """
    SELECT plan_id, kind, host, folder, o.id, method, path, fields, state, attempts, status, code, words, remote_id,
        sent_at, doubt_at
    FROM operations o JOIN plans USING (plan) ORDER BY plan_id, o.id"""
_STATES: Final = "SELECT folder, id, state FROM operations JOIN plans USING (plan)"
_CLAIMS: Final = "SELECT host, hex(key), plan, id FROM claims"
_PATH_OF_IDS: Final = "'/products/' || product_id || '/variants/' || variant_id"
"""Of a confirmed value in ledgers up to version 4, which had values of variants alone."""


class Rows(NamedTuple):
    """What a ledger of any version must keep."""

    operations: set[tuple[object, ...]]
    claims: set[tuple[object, ...]]
    values: set[tuple[object, ...]]


def read_ledger(file: Path) -> Rows:
    """Reads a ledger of any version as it is: nothing converts it."""
    with closing(sqlite3.connect(f"{file.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        columns = {name for _, name, *_ in connection.execute("PRAGMA table_info(confirmed)")}
        path = "path" if "path" in columns else _PATH_OF_IDS
        values = connection.execute(f"SELECT host, {path}, field, value, plan_id FROM confirmed")
        return Rows(
            set(connection.execute(_OPERATIONS)), set(connection.execute(_CLAIMS)), set(values)
        )


class Write(NamedTuple):
    """An operation of a plan, and its state.

    Attributes:
        name: its path and what names its record: the fields of an update, else the ERP's code or the name.
        state: None if it is not in the ledger.
    """

    plan: str
    name: str
    is_update: bool
    is_repeatable: bool
    state: str | None


def writes_of(project: Path) -> Iterator[Write]:
    """The operations of all plans with their states."""
    ledger = project / "ledger.sqlite"
    with closing(sqlite3.connect(f"{ledger.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        states = {
            (Path(folder).name, number): state
            for folder, number, state in connection.execute(_STATES)
        }
    for plan in PLANS:
        for line in (project / plan / "operations.jsonl").read_text("utf-8").splitlines():
            operation = json.loads(line)
            yield Write(
                plan,
                _name(operation["path"], operation["body"]),
                operation["method"] == "PATCH",
                operation["repeatable"],
                states.get((plan, operation["id"])),
            )


def _name(path: str, body: dict[str, object]) -> str:
    what = body.get("erpCode") or body.get("name") or " ".join(sorted(body))
    return f"{path} {what}"


def _applied(platform: Platform) -> Counter[str]:
    """How often each write was applied, by its name."""
    applied: Counter[str] = Counter()
    for (path, body), count in platform.applied.items():
        applied[_name(path, json.loads(body))] += count
    return applied


def upgrade(
    project: Path, run: Run, platform: Platform, plans: Collection[str] = tuple(PLANS)
) -> list[str]:
    """Upgrades a project, and goes on with these of its plans. Returns what is wrong."""
    ledger, warehouse = project / "ledger.sqlite", project / "warehouse.duckdb"
    figures, rows = read_figures(warehouse), read_ledger(ledger)
    wrong = _wrong_ends(project, run, ("status",), NIGHT, ("status",))
    figures_now = read_figures(warehouse)
    wrong += [f"figure {line}" for line in lost_figures(figures, figures_now)]
    if orders := wrong_orders(figures_now, platform.lists["orders"]):
        wrong.append(f"{len(orders)} orders are not as the platform has them, such as {orders[0]}")
    rows_now = read_ledger(ledger)
    for what, before, now in zip(Rows._fields, rows, rows_now, strict=True):
        if missing := before - now:
            wrong.append(f"ledger: {len(missing)} {what} changed, such as {min(missing, key=str)}")
    wrong += _wrong_pushes(project, run, platform, plans)
    wrong += _wrong_plans(project, run, platform)
    return wrong + _wrong_nights(project, run, platform)


def _wrong_ends(project: Path, run: Run, *commands: tuple[str, ...]) -> list[str]:
    wrong: list[str] = []
    for arguments in commands:
        code, printed = run(project, *arguments)
        if code not in HAS_RESULT:
            wrong.append(f"{' '.join(arguments)} ended with {code}: {printed.strip()}")
    return wrong


def _wrong_pushes(project: Path, run: Run, platform: Platform, plans: Collection[str]) -> list[str]:
    """Goes on with plans: what was left is sent once, and nothing else."""
    before, applied = list(writes_of(project)), _applied(platform)
    pushes = [(*PUSH, plan) for plan in plans]
    wrong = _wrong_ends(project, run, *pushes)
    sent = _applied(platform) - applied
    for write in before:
        expected = _expected(write, applied[write.name]) if write.plan in plans else 0
        if sent[write.name] != expected:
            wrong.append(
                f"{write.plan}: {write.name} was {write.state}, applied {applied[write.name]} times,"
                f" and then {sent[write.name]} times instead of {expected}"
            )
    for write in writes_of(project):
        if write.state in ("planned", "in_flight", None):
            wrong.append(f"{write.plan}: {write.name} is still {write.state}")
    return wrong


def _expected(write: Write, applied: int) -> int:
    """How often a push that goes on has to apply a write."""
    if write.state == "planned":
        return 1
    if write.state not in ("in_flight", "in_doubt"):
        return 0
    if write.is_update:
        return int(write.is_repeatable)
    return int(not applied)


def _wrong_plans(project: Path, run: Run, platform: Platform) -> list[str]:
    """Plans the same files again: nothing that was applied, or may have been, is sent again.

    A subcategory whose other fields changed is the one that was created.
    """
    before, applied = list(writes_of(project)), _applied(platform)
    wrong: list[str] = []
    described = "categoryId,name,description\n7,Quesos,curados\n7,Panes,de masa madre\n"
    (project / "categories.csv").write_text(described, "utf-8")
    for kind, file in PLANS.values():
        again = f"again-{file.removesuffix('.csv')}"
        plan = ("plan", kind, file, "--out", again)
        wrong += _wrong_ends(project, run, plan, ("push", again, "--yes"))
    sent = _applied(platform) - applied
    final = ("confirmed", "conflict", "in_doubt")
    wrong += [
        f"{write.name} was {write.state}, and was sent by another plan of its file"
        for write in before
        if write.state in final and sent[write.name]
    ]
    return wrong


def _wrong_nights(project: Path, run: Run, platform: Platform) -> list[str]:
    """Plans the nightly files without a mapping, for two nights: each column is sent as the version sent it."""
    files = [file for file in NIGHTLY if (project / file).exists()]
    wrong: list[str] = []
    for night in (2, 3):
        expected = write_nightly(project, night)
        for file in files:
            before = platform.applied.copy()
            plan = f"plan-{night}-{Path(file).stem}"
            for command in (
                ("plan", NIGHTLY[file][0], file, "--out", plan),
                ("push", plan, "--yes"),
            ):
                code, printed = run(project, *command)
                if code != 0:
                    wrong.append(f"{' '.join(command)} ended with {code}: {printed.strip()}")
            sent = [_sent(body) for _, body in (platform.applied - before).elements()]
            if sorted(sent, key=str) != sorted(expected[file], key=str):
                wrong.append(f"night {night}, {file}: sent {sent} instead of {expected[file]}")
    return wrong


def _sent(body: str) -> dict[str, object]:
    """What columns have sent: a body without its password and messages."""
    fields: dict[str, object] = json.loads(body)
    return {name: fields[name] for name in fields if name not in ("password", "notification")}
