"""No push begins with a ledger that is damaged, or older than what was pushed with it."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import pytest

from orderbridge.pipelines.ledger.schema import VERSION
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.sources.errors import UsageError
from tests.pipelines.push.damaged import PAGE, Scene, alter, damage
from tests.pipelines.push.plans import Place, customer, patch

DOCS = Path(__file__).parents[3] / "docs"
SEEDS = range(40)
ALTERED = (2, 5, 17, 24, 32, 36, 46, 56, 65, 71)
"""Seeds that drop, rename or empty a table, rename a column, and delete some of its rows."""


@pytest.fixture
def scene(at: Place, tmp_path_factory: pytest.TempPathFactory) -> Scene:
    return Scene.build(at, tmp_path_factory.mktemp("copies"))


def test_a_push_with_a_damaged_ledger_sends_nothing_twice_or_before_it_ends(
    scene: Scene,
) -> None:
    played = [scene.play(seed, damage) for seed in SEEDS]
    assert [problem for one in played for problem in one.problems] == []
    assert sum(one.is_refused for one in played) > len(SEEDS) / 2
    assert any(one.is_intact and not one.is_refused for one in played)


def test_a_push_with_an_altered_ledger_sends_nothing_twice_or_before_it_ends(
    scene: Scene,
) -> None:
    played = [scene.play(seed, alter) for seed in ALTERED]
    assert [problem for one in played for problem in one.problems] == []
    assert all(one.is_intact and one.is_refused for one in played), played


def damage_index(path: Path) -> None:
    """An index that lacks the rows of the table: only a check of all pages notices it."""
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA writable_schema = ON")
        connection.execute(
            "UPDATE sqlite_master SET rootpage = (SELECT rootpage FROM sqlite_master"
            " WHERE name = 'doubtful') WHERE name = 'claims_of_plan'"
        )
        connection.commit()


def test_a_damaged_ledger_ends_each_command_before_a_request_with_the_way_out(at: Place) -> None:
    assert at.code(at.plan([customer(1)])) == 0
    plan = at.plan([customer(2)])
    damage_index(at.ledger)
    before = at.platform.state.requests
    (at.folder / "in.csv").write_text("productId,variantId,sku\n1,2,S1\n", "utf-8")
    for arguments in (
        ["push", str(plan), "--yes"],
        ["import", "variants", "in.csv", "--yes"],
        ["settle"],
    ):
        done = at.command(*arguments)
        assert (done.code, done.out) == (2, ""), (arguments, done.err)
        assert "mkdir damaged && mv ledger.sqlite* damaged/" in done.err
        assert "docs/operate.md#a-damaged-ledger" in done.err
    assert at.platform.state.requests == before
    assert "is damaged" in at.command("check").out


def test_damage_that_only_a_query_meets_is_an_error_of_the_file(at: Place) -> None:
    assert at.code(at.plan([patch(1, 1)])) == 0
    damage = sqlite3.DatabaseError("database disk image is malformed")
    damage.sqlite_errorcode = sqlite3.SQLITE_CORRUPT
    with pytest.raises(UsageError, match="is damaged"), Ledger.open(at.ledger, readonly=True):
        raise damage


def test_a_ledger_of_a_backup_plans_and_sends_nothing_until_somebody_takes_it(at: Place) -> None:
    prices = at.folder / "prices.csv"
    prices.write_text("productId,variantId,sku\n1,2,10\n", "utf-8")
    at.command("import", "variants", "prices.csv", "--yes")
    backup = shutil.copy(at.ledger, at.folder / "backup.sqlite")
    prices.write_text("productId,variantId,sku\n1,2,12\n", "utf-8")
    assert at.command("import", "variants", "prices.csv", "--yes").code == 0
    prices.write_text("productId,variantId,sku\n1,2,10\n", "utf-8")
    shutil.copy(backup, at.ledger)
    for plan in (["import", "variants", "prices.csv", "--yes"], ["plan", "variants", "prices.csv"]):
        done = at.command(*plan)
        assert done.code == 2, done.out
        assert "an older copy of the ledger" in done.err
    other = at.plan([patch(1, 5)])
    with pytest.raises(UsageError, match="older copy"):
        at.push(other)
    assert at.variant(2)["sku"] == "12"
    assert at.command("settle", "--accept-ledger").code == 0
    assert at.code(other) == 0


def test_a_copy_of_the_ledger_of_another_project_sends_nothing(at: Place, tmp_path: Path) -> None:
    assert at.code(at.plan([patch(1, 1)])) == 0
    other = tmp_path / "other.sqlite"
    other.touch()
    status = other.stat()
    with closing(sqlite3.connect(at.ledger)) as ledger, ledger:
        ledger.execute(
            "UPDATE home SET path = ?, file = ?", [str(other), f"{status.st_dev}:{status.st_ino}"]
        )
    plan = at.plan([patch(1, 2)])
    with pytest.raises(UsageError, match="is a copy of"):
        at.push(plan)
    assert at.command("settle", "--accept-ledger").code == 0
    assert at.code(plan) == 0


def test_a_ledger_that_is_gone_is_noticed(at: Place) -> None:
    assert at.code(at.plan([patch(1, 1)])) == 0
    at.ledger.unlink()
    with pytest.raises(UsageError, match="is not the ledger that was used here"):
        at.push(at.plan([patch(1, 2)]))


def test_a_state_that_is_none_is_damage(at: Place) -> None:
    assert at.code(at.plan([customer(1)])) == 0
    with closing(sqlite3.connect(at.ledger)) as connection, connection:
        connection.execute("UPDATE operations SET state = 'con?irmed'")
    with pytest.raises(UsageError, match="is damaged"):
        at.push(at.plan([customer(1)]))


def test_a_plan_of_which_the_ledger_has_lost_an_operation_is_damage(at: Place) -> None:
    plan = at.plan([patch(1, 1), patch(2, 2)])
    assert at.code(plan) == 0
    with closing(sqlite3.connect(at.ledger)) as connection, connection:
        connection.execute("DELETE FROM operations WHERE id = 2")
    before = at.platform.state.requests
    with pytest.raises(UsageError, match="is damaged"):
        at.push(plan)
    assert at.platform.state.requests == before


@pytest.mark.skipif(shutil.which("sqlite3") is None, reason="the page needs the program sqlite3")
def test_what_can_be_read_of_a_damaged_ledger_is_used_as_the_page_says(at: Place) -> None:
    assert at.code(at.plan([customer(1), customer(2)])) == 0
    with closing(sqlite3.connect(at.ledger)) as connection:
        sql = "SELECT rootpage FROM sqlite_master WHERE name = 'claims_of_plan'"
        ((page,),) = connection.execute(sql).fetchall()
    data = bytearray(at.ledger.read_bytes())
    data[(page - 1) * PAGE : page * PAGE] = b"\xff" * PAGE
    at.ledger.write_bytes(data)
    with closing(sqlite3.connect(at.ledger)) as connection, connection:
        lost = "SELECT plan, 'x', 'variants', 'h', 'sandbox', 'f', 's', 1.0, 0, 0 FROM (SELECT 99 AS plan)"
        connection.execute(f"INSERT INTO plans {lost}")
        connection.execute(
            "INSERT INTO operations (plan, id, method, path, fields, state, updated_at)"
            " VALUES (99, 1, 'PATCH', '/p', 'sku', 'confirmed', 1.0)"
        )
        connection.execute("DELETE FROM plans WHERE plan = 99")
    lines = (DOCS / "operate.md").read_text("utf-8").splitlines()
    for start in ("mkdir damaged", "sqlite3 damaged/", "(sqlite3 damaged/", "chmod 600 ledger"):
        (line,) = [line.strip() for line in lines if line.strip().startswith(start)]
        assert f"user_version = {VERSION};" in line or "user_version" not in line
        subprocess.run(["/bin/sh", "-c", line], cwd=at.folder, check=True)
    for number in at.platform.state.ids("customers"):
        respelt = {"erpCode": f"x{number}", "email": f"x{number}@x.test"}
        at.platform.state.change("customers", number, respelt)
    plan = at.plan([customer(1), customer(3)])
    with pytest.raises(UsageError, match="an older copy of the ledger"):
        at.push(plan)
    assert at.command("settle", "--accept-ledger").code == 0
    assert at.code(plan) == 5
    assert at.codes() == ["C00001", "C00002", "C00003"]
