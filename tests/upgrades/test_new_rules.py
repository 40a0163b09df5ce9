"""What only a new rule finds in a project of 0.3.0: its nights end as before until somebody changes something."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from orderbridge.transforms.rules import RULES, read_rules
from tests.upgrades.fixtures import unpacked
from tests.upgrades.releases import git, releases
from tests.upgrades.test_upgrades import run

RELEASE = "0.3.0-ad26ab6f"
FIRST_NIGHT = ("run", "--fail-on", "warning", "--verbose")
NIGHT = ("reconcile", "--fail-on", "warning")
"""A night in which the platform has nothing new."""
KNOWN = ("customers.erp_code_duplicate", "promotions.active_but_expired")
ANSWER = ("answer", "finding:orders.list_recovered", "warning", "--why", "an order in two tables")
CHECKS = {"broken.sql": "no query", "ids.sql": "SELECT customer_id FROM reconciled.customers"}


def accept_what_is_known(project: Path) -> None:
    """0.3.0 ended with 9 for these, and for what the last match found."""
    match_rules = [f"erp_customers.{rule}" for rule in ("match_doubtful", "customer_missing")]
    for rule in (*KNOWN, *match_rules):
        code, said = run(project, "accept", rule, "--why", "known")
        assert code == 0, said


def write_checks(project: Path, *names: str) -> None:
    """Files in the folder of the project's own checks."""
    folder = project / "checks"
    folder.mkdir(mode=0o700)
    for name in names:
        (folder / name).write_text(CHECKS[name], "utf-8")


def severities(said: str) -> dict[str, str]:
    """The severity of each rule that a run lists with --verbose."""
    rows = [line.split() for line in said.splitlines()]
    return {f"{row[1]}.{row[2]}": row[0] for row in rows if len(row) == 4 and row[3].isdigit()}


def test_a_warning_of_a_new_rule_ends_no_night_with_9_until_somebody_answers(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    with unpacked(RELEASE, project):
        accept_what_is_known(project)
        for night in (FIRST_NIGHT, NIGHT):
            code, said = run(project, *night)
            assert code == 0, said
            assert severities(said)["orders.list_recovered"] == "info"
            assert "orders.list_recovered finds more since 0.4" in said
        write_checks(project, "broken.sql")
        code, said = run(project, *NIGHT)
        assert (code, severities(said)["checks.cannot_run"]) == (9, "error"), "it found nothing"
        assert severities(said)["orders.list_recovered"] == "info"
        (project / "checks/broken.sql").unlink()
        code, said = run(project, *ANSWER)
        assert code == 0, said
        code, said = run(project, *NIGHT)
        assert code == 9, said
        assert severities(said)["orders.list_recovered"] == "warning"
        assert "since 0.4" not in said


def test_what_a_new_version_reads_of_orders_ends_no_night_with_9(tmp_path: Path) -> None:
    """0.3.0 had read the customers of these orders, and this version reads another one."""
    project = tmp_path / "project"
    with unpacked(RELEASE, project) as platform:
        accept_what_is_known(project)
        for order, value in zip(platform.lists["orders"], ("31/02/2024", "2024"), strict=False):
            order["customer"] = {"id": 999_999}
            order["createdAt"] = value
        for night in (FIRST_NIGHT, NIGHT):
            code, said = run(project, *night)
            assert code == 0, said
            found = severities(said)
            assert found["orders.customer_unknown"] == "info"
            assert found["orders.ordered_at_unreadable"] == "info"
        code, said = run(project, *ANSWER)
        code, said = run(project, *NIGHT)
        assert (code, severities(said)["orders.customer_unknown"]) == (9, "warning")


def test_files_in_checks_before_end_no_night_with_9_until_something_is_accepted(
    tmp_path: Path,
) -> None:
    project = tmp_path / "project"
    with unpacked(RELEASE, project):
        accept_what_is_known(project)
        write_checks(project, "broken.sql", "ids.sql")
        for command in (("run", "--verbose"), ("reconcile",)):
            code, said = run(project, *command)
            assert code == 0, said
            found = severities(said)
            assert found["checks.cannot_run"] == found["checks.check_ids"] == "info"
        accept_what_is_known(project)
        code, said = run(project, "reconcile")
        assert code == 9, said
        found = severities(said)
        assert found["checks.cannot_run"] == found["checks.check_ids"] == "error"


def test_a_line_of_the_erp_that_only_new_checks_reject_ends_no_night_with_5(tmp_path: Path) -> None:
    project = tmp_path / "project"
    night = ("reconcile", "--erp-customers", str(project / "erp.csv"))
    with unpacked(RELEASE, project):
        accept_what_is_known(project)
        with (project / "erp.csv").open("a", encoding="utf-8") as file:
            file.write('X-2,Taller "Sol",sol@erp.example\nX-3,Anillo",anillo@erp.example\n')
        for _ in range(2):
            code, said = run(project, *night)
            assert code == 0, said
            assert severities(said)["erp_customers.line_refused"] == "info"
            assert "erp_customers.line_refused finds more since 0.4" in said
        accept_what_is_known(project)
        code, said = run(project, *night)
        assert (code, severities(said)["erp_customers.line_refused"]) == (5, "error"), said


def test_each_rule_that_the_last_release_did_not_have_names_the_version_that_has_it() -> None:
    try:
        text = git("show", f"{releases()[0].commit}:transforms/rules.toml").decode()
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("a clone without the history")
    released = {(rule.entity, rule.name) for rule in read_rules(text)}
    new = [rule for rule in RULES if (rule.entity, rule.name) not in released]
    assert [f"{rule.entity}.{rule.name}" for rule in new if not rule.since] == []
