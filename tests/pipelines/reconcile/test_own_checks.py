"""Checks of the project: a SELECT of wrong rows makes findings like any other, and harms nothing but itself."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderbridge.pipelines.reconcile import own_checks
from orderbridge.sources.errors import ExitCode
from tests.pipelines.bridge import Bridge

FOUND = "SELECT entity_id, severity, detail FROM reconciled.exceptions WHERE rule = ? ORDER BY 1"


def write(shop: Bridge, name: str, text: str) -> Path:
    folder = shop.folder / "checks"
    folder.mkdir(exist_ok=True)
    (shop.folder / ".dlt").mkdir(exist_ok=True)  # so that it is a project
    file = folder / f"{name}.sql"
    file.write_text(text, "utf-8")
    return file


def test_a_check_fails_at_night_is_accepted_and_the_next_night_is_quiet(published: Bridge) -> None:
    write(
        published,
        "every_order",
        "-- Every order\n-- entity: orders\nSELECT order_id FROM bi.orders ORDER BY 1\n",
    )
    night = published.command("run")
    assert night.code == ExitCode.FINDINGS
    assert "orders.check_every_order" in night.said
    expected = published.rows("SELECT order_id FROM bi.orders ORDER BY 1")
    assert len(expected) > 1
    found = published.rows(FOUND, "check_every_order")
    assert found == [(one, "error", "Every order") for (one,) in expected]
    asked = published.command("questions")
    assert "finding:orders.check_every_order" in asked.out
    assert published.command("report").code == ExitCode.DONE
    answered = published.command("answer", "finding:orders.check_every_order", "accept")
    assert answered.code == ExitCode.DONE, answered.said
    assert published.command("reconcile").code == ExitCode.DONE
    (published.folder / "checks/every_order.sql").unlink()
    assert published.command("reconcile").code == ExitCode.DONE  # what was accepted may be gone


BROKEN = {
    "SELECT order_id FROM bi.orders WHERE totl > 1": "Binder Error",
    "SELECT * FROM orders": "Catalog Error",
    "SELECT email::INT FROM raw.customers": "ConversionException; its message is not shown",
    "SELECT * FROM read_text('/etc/hostname')": "PermissionException",
    "DELETE FROM raw.orders": "not one SELECT",
    "SELECT 1; SELECT 2": "not one SELECT",
    "-- severity: bad\nSELECT 1": "its severity is none of",
    "SELECT list(range) FROM range(1000000000)": "OutOfMemoryException",
}
ENDLESS = {"SELECT count(*) FROM range(100000000) a, range(100000000) b": "more than 1 seconds"}


@pytest.mark.parametrize(("checks", "seconds"), [(BROKEN, 60), (ENDLESS, 1)])
def test_checks_that_cannot_run_are_findings_and_all_else_is_published(
    published: Bridge, monkeypatch: pytest.MonkeyPatch, checks: dict[str, str], seconds: int
) -> None:
    monkeypatch.setattr(own_checks, "SECONDS_MAX", seconds)
    monkeypatch.setitem(own_checks._CONFIG, "memory_limit", "100MB")
    for n, sql in enumerate(checks):
        write(published, f"broken{n}", sql)
    write(published, "fine", "-- severity: info\nSELECT id FROM raw.customers LIMIT 2")
    assert published.command("reconcile").code == ExitCode.FINDINGS
    found = published.rows(FOUND.replace("ORDER BY 1", "ORDER BY detail"), "cannot_run")
    assert [row[:2] for row in found] == [(None, "error")] * len(checks)
    for n, ((*_, detail), words) in enumerate(zip(found, checks.values(), strict=True)):
        assert detail.startswith(f"checks/broken{n}.sql: ")
        assert words in detail
        assert "@" not in detail
    assert len(published.rows(FOUND, "check_fine")) == 2
    assert published.one("SELECT count(*) FROM raw.orders") > 0


def test_of_a_check_with_very_many_rows_the_first_are_listed_and_it_is_said(
    published: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_checks, "ROWS_MAX", 3)
    write(published, "many", "SELECT range FROM range(5)")
    published.command("reconcile")
    found = published.rows(FOUND, "check_many")
    assert [row[0] for row in found] == ["0", "1", "2", None]
    assert "more than 3 rows" in found[-1][2]


def test_checks_that_others_can_write_are_refused(published: Bridge) -> None:
    file = write(published, "mine", "SELECT 1")
    file.chmod(0o666)
    done = published.command("reconcile")
    assert done.code == ExitCode.USAGE
    assert "checks/mine.sql" in done.said
