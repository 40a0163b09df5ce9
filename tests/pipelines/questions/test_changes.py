"""A list that lost records, and another source: asked with the evidence at hand, and accepted for nothing else."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

import duckdb
import pytest

from orderbridge.pipelines.warehouse.accepted_changes import AcceptedChanges
from orderbridge.sandbox import SandboxConfig, serve
from orderbridge.sources.errors import CoverageError, UsageError
from tests.pipelines.bridge import SMALL, Bridge, Done, settings

LIST = "list:customers"
MISSING = "SELECT count(*) FROM raw.customers WHERE _missing_since IS NOT NULL"


@pytest.fixture
def shop(published: Bridge, monkeypatch: pytest.MonkeyPatch) -> Bridge:
    """A published warehouse with a project folder of its own."""
    (published.folder / ".dlt").mkdir(exist_ok=True)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(published.folder))
    return published


def run(made: Bridge, line: str) -> Done:
    return made.command(*shlex.split(line), DLT_PROJECT_DIR=str(made.folder))


def remove(made: Bridge, count: int, name: str = "customers") -> None:
    for key in made.platform.state.ids(name)[:count]:
        made.platform.state.remove(name, key)


def proposed(text: str) -> str:
    """The arguments of the command after `to answer:`."""
    line = next(line for line in text.splitlines() if line.startswith("to answer: "))
    return line.removeprefix("to answer: orderbridge ")


def test_a_fall_is_accepted_for_the_evidence_at_hand_and_the_next_is_asked_again(
    shop: Bridge,
) -> None:
    remove(shop, 21)
    with pytest.raises(CoverageError) as error:
        shop.pull("customers")
    assert error.value.hint.endswith(f"To accept it: orderbridge answer {LIST} accept")
    listed = run(shop, "questions").out
    assert f"open          {LIST}  held back: 40 → 19 records" in listed
    shown = run(shop, f"questions {LIST}").out
    assert "40 → 19 records" in shown
    assert "21 of 40 known records are not in the list any more" in shown
    first, second = sorted(shop.rows("SELECT id FROM raw.customers ORDER BY id LIMIT 2"))
    assert f"such as {first[0]}, {second[0]}, " in shown
    done = run(shop, proposed(shown) + " --who ana --why 'old accounts'")
    assert (done.code, done.err) == (0, "")
    (entry,) = AcceptedChanges.read().falls
    assert (entry.known, entry.listed, entry.who, entry.why) == (40, 19, "ana", "old accounts")
    assert LIST not in run(shop, "questions").out
    remove(shop, 2)  # a night later: no more than what any night may lose
    assert shop.code("customers") == 0
    assert shop.one(MISSING) == 23
    with duckdb.connect(str(shop.path)) as warehouse:  # as if they had come back, to be lost again
        warehouse.execute("UPDATE raw.customers SET _missing_since = NULL")
    assert shop.code("customers") == 7, "the answer was about another fall"
    assert f"open          {LIST}  held back: 40 → 17 records" in run(shop, "questions").out


def test_a_list_that_lost_more_than_was_accepted_is_held_back_again(shop: Bridge) -> None:
    remove(shop, 21)
    assert shop.code() == 7
    assert run(shop, f"answer {LIST} accept").code == 0
    remove(shop, 10)
    assert shop.code() == 7
    assert f"open          {LIST}  held back: 40 → 9 records" in run(shop, "questions").out
    assert run(shop, f"answer {LIST} accept").code == 0
    assert shop.code() == 0
    assert shop.one(MISSING) == 31
    assert LIST not in run(shop, "questions").out


def test_another_source_is_accepted_as_it_is_and_no_other(shop: Bridge) -> None:
    with serve(SandboxConfig(**SMALL)) as other, serve(SandboxConfig(**SMALL)) as third:
        os.environ.update(settings(other, shop.path))
        moved = Bridge(other, shop.path)
        with pytest.raises(UsageError) as error:
            shop.pull()
        assert error.value.hint.endswith("orderbridge answer source accept")
        shown = run(moved, "questions source").out
        host = shop.platform.url.removeprefix("http://")
        assert f"legacy host: {host} → {other.url.removeprefix('http://')}" in shown
        assert "the warehouse holds " in shown
        assert "40 customers" in shown
        assert run(moved, proposed(shown)).code == 0
        os.environ.update(settings(third, shop.path))
        assert shop.code() == 2
        os.environ.update(settings(other, shop.path))
        assert shop.code() == 0
        os.environ.update(settings(shop.platform, shop.path))
        assert shop.code() == 2, "back again is another question"
        assert "open          source  " in run(shop, "questions").out


def test_another_source_is_asked_and_then_what_its_lists_lack(shop: Bridge) -> None:
    """The lists of the new source are held back as any other list that lost records."""
    with serve(SandboxConfig(**SMALL)) as other:
        state = other.state
        for name in ("customers", "orders"):
            for key in state.ids(name)[:25]:
                state.remove(name, key)
        other_settings = settings(other, shop.path)
        os.environ.update(other_settings)
        assert shop.code() == 2
        moved = Bridge(other, shop.path)
        assert run(moved, "answer source accept").code == 0
        assert shop.code() == 7
        asked = run(moved, "questions").out
        assert "list:customers" in asked
        assert "list:orders" in asked
        assert run(moved, "answer list:customers accept").code == 0
        assert run(moved, "answer list:orders accept").code == 0
        assert shop.code() == 0


@pytest.mark.parametrize(
    ("line", "words"),
    [
        (f"answer {LIST} yes", f"orderbridge answer {LIST} accept"),
        (f"answer {LIST} accept --until 2999-01-01", "no later fall"),
        (f"answer {LIST} --withdraw", f"{LIST} has no answer"),
        ("answer list:orders accept", "there is no question list:orders"),
        ("answer source accept", "there is no question source"),
    ],
)
def test_an_answer_that_accepts_nothing_at_hand_ends_with_2(
    shop: Bridge, line: str, words: str
) -> None:
    remove(shop, 21)
    assert shop.code() == 7
    done = run(shop, line)
    assert (done.code, words in done.err) == (2, True), done.err
    assert AcceptedChanges.read() == AcceptedChanges([], [], [])


def test_proposals_accept_no_fall_and_an_answer_can_be_withdrawn(shop: Bridge) -> None:
    remove(shop, 21)
    assert shop.code() == 7
    file = shop.folder / ".dlt/accepted.toml"
    file.write_text("# ours\n", "utf-8")
    file.chmod(0o600)
    assert run(shop, "answer --proposed").code == 0
    assert run(shop, f"answer {LIST} accept").code == 0
    assert run(shop, f"answer {LIST} --withdraw").code == 0
    assert file.read_text("utf-8").strip() == "# ours"
    assert shop.code() == 7


def test_a_pull_reads_an_answer_and_writes_none(shop: Bridge) -> None:
    remove(shop, 21)
    assert shop.code() == 7
    assert run(shop, f"answer {LIST} accept").code == 0
    folder = shop.folder / ".dlt"
    before = {path: path.read_bytes() for path in sorted(folder.iterdir()) if _is_answer(path)}
    assert shop.code() == 0
    assert {
        path: path.read_bytes() for path in sorted(folder.iterdir()) if _is_answer(path)
    } == before


def _is_answer(path: Path) -> bool:
    return path.suffix == ".toml"
