"""`orderbridge review`: doubtful pairs go out as a file or are asked about, and decisions stay in the project."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import click
import duckdb
import pytest
from click.testing import CliRunner

from pipelines.cli.review import _ask
from pipelines.warehouse.reviews import doubtful_pairs, read_reviews, review_frame, write_reviews
from sources.errors import UsageError
from tests.pipelines.bridge import Done, command

PAIRS = """
    CREATE SCHEMA reconciled;
    CREATE TABLE reconciled.customers AS SELECT
        unnest(['1', '2', '3', '123456789012345678']) AS customer_id, 'Núria' AS full_name, NULL AS default_fiscal_name;
    CREATE TABLE reconciled.erp_customers AS SELECT unnest([2, 3, 4, 5]) AS line, '=NURIA()' AS name;
    CREATE TABLE reconciled.erp_pairs AS FROM (VALUES
        (2, '1', 'matched', 'erp_code', 20, 'code 7'), (3, '2', 'matched', 'email', 7, 'code 007'),
        (4, '123456789012345678', 'possible', 'email', 4, 'keys ab'), (5, '3', 'matched', 'reviewed', 1, 'code 9')
    ) AS t (line, customer_id, status, matched_by, weight, line_key),
    (SELECT 'email' AS agreeing, 'x' AS differences)"""
LISTED = ["keys ab = 123456789012345678", "code 007 = 2"]


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / ".dlt").mkdir(mode=0o700)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    with duckdb.connect(str(tmp_path / "warehouse.duckdb")) as warehouse:
        warehouse.execute(PAIRS)
    return tmp_path


def review(project: Path, *arguments: str) -> Done:
    return command("review", *arguments, env={"DLT_PROJECT_DIR": str(project)}, cwd=project)


@pytest.mark.parametrize(("delimiter", "encoding"), [(";", "utf-8-sig"), (",", "cp1252"), ("\t", "utf-16")])
def test_a_file_of_pairs_comes_back_from_a_spreadsheet_with_decisions(
    project: Path, delimiter: str, encoding: str
) -> None:
    written = review(project).out
    assert written.startswith("\ufeffpair;decision;why;")
    names, *rows = csv.reader(written[1:].splitlines(), delimiter=";")
    assert [row[0] for row in rows] == LISTED, "the most doubtful first, without those that are certain or decided"
    assert "'=NURIA()" in rows[0], "a spreadsheet runs no cell"
    rows[0][1:3], rows[1][1] = ["Sí", "llamé"], "reject"
    filled = project / "pairs.csv"
    with filled.open("w", encoding=encoding, newline="") as file:
        csv.writer(file, delimiter=delimiter).writerows([names, *rows])
    done = review(project, "pairs.csv", "--who", "ana", "--why", "by phone")
    assert done.out == "2 pairs decided; the next run with the ERP's file uses them\n", done.err
    kept = read_reviews()
    assert [(one.pair, one.decision, one.who, one.why) for one in kept.values()] == [
        (LISTED[0], "accept", "ana", "llamé"),
        (LISTED[1], "reject", "ana", "by phone"),
    ]
    assert review_frame(kept.values()).to_dict("records") == [
        {"line_key": "keys ab", "customer_id": "123456789012345678", "is_accepted": True},
        {"line_key": "code 007", "customer_id": "2", "is_accepted": False},
    ]


def test_a_decision_takes_the_place_of_an_earlier_one_and_the_file_is_private(project: Path) -> None:
    write_reviews({"code 7 = 1": ("accept", 'one, two, "three", four,\nfive')}, "ana")
    assert [one.why for one in read_reviews().values()] == ['one, two, "three", four,\nfive']
    write_reviews({"code 7 = 1": ("reject", "another branch"), "code 8 = 2": ("accept", "")}, "eva")
    assert [(one.pair, one.decision, one.who) for one in read_reviews().values()] == [
        ("code 7 = 1", "reject", "eva"),
        ("code 8 = 2", "accept", "eva"),
    ]
    assert (project / ".dlt/reviewed.csv").stat().st_mode & 0o777 == 0o600


def test_on_a_terminal_each_pair_is_asked_about(project: Path) -> None:
    with duckdb.connect(str(project / "warehouse.duckdb")) as warehouse:
        pairs = doubtful_pairs(warehouse, below=100)
    decided: list[Any] = []
    result = CliRunner().invoke(
        click.Command("ask", callback=lambda: decided.append(_ask(pairs))), input="no\n\nquit\n"
    )
    assert (result.exit_code, decided) == (0, [{LISTED[0]: "reject"}])
    assert "1 of 3: line 4 (possible, weight 4)" in result.output


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("pair;decision;why\ncode 7 = 1;maybe;\n", "'maybe' is neither accept nor reject"),
        ("pair;decision\ncode 7 = 1;accept\n", "no column why"),
        ("pair;decision;why\n7;accept;\n", "'7' is no pair"),
    ],
)
def test_a_file_that_is_not_understood_changes_nothing(project: Path, content: str, words: str) -> None:
    (project / "pairs.csv").write_text(content, "utf-8")
    done = review(project, "pairs.csv")
    assert done.code == 2
    assert words in done.err
    assert read_reviews() == {}
    (project / ".dlt/reviewed.csv").write_text(content.replace("why", "who;when;why"), "utf-8")
    with pytest.raises(UsageError):
        read_reviews()
