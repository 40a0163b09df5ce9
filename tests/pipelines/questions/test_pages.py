"""Pages that the interface does not describe fail a list until a person has answered what they mean."""

from __future__ import annotations

import shlex

import pytest

from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.reconcile import Reconciling
from orderbridge.sources.settings import read_answers
from tests.pipelines.bridge import Bridge, Done

CURSOR = "sources.http.cursor_after_end"
ARRAY = "sources.http.empty_array"


@pytest.fixture
def shop(fresh: Bridge, monkeypatch: pytest.MonkeyPatch) -> Bridge:
    (fresh.folder / ".dlt").mkdir()
    monkeypatch.setenv("DLT_PROJECT_DIR", str(fresh.folder))
    return fresh


def read_all() -> PullResult:
    return pull(PullOptions(("customers", "orders"), command="run"), step=Reconciling())


def failed(result: PullResult) -> dict[str, str]:
    """The hints of the lists that failed."""
    return {one.resource: one.error.hint for one in result.lists if one.error is not None}


def run(made: Bridge, line: str) -> Done:
    return made.command(*shlex.split(line), DLT_PROJECT_DIR=str(made.folder))


@pytest.mark.parametrize(
    ("fault", "key", "value", "resource", "seen"),
    [
        ("cursor_at_end", CURSOR, "end", "orders", "on a page with 10 rows of at most 20, after 20 rows"),
        ("more_unannounced", CURSOR, "more", "orders", "on a page with 20 rows of at most 20, after 0 rows"),
        ("empty_array", ARRAY, "empty_page", "customers", "after other pages, after 40 rows"),
    ],
)  # fmt: skip
def test_a_list_fails_until_its_page_is_answered_and_is_complete_from_the_next_run(
    shop: Bridge, fault: str, key: str, value: str, resource: str, seen: str
) -> None:
    shop.platform.set_faults({fault: 1})
    first = read_all()
    assert (first.exit_code, [*failed(first)]) == (4, [resource])
    assert f"orderbridge answer {key} " in failed(first)[resource]
    assert f"open          {key} " in run(shop, "questions").out
    shown = run(shop, f"questions {key}").out
    assert f"{resource}: {seen}" in shown, shown
    prefix = "to answer: orderbridge "
    commands = [line.removeprefix(prefix) for line in shown.splitlines() if prefix in line]
    assert len(commands) == 2
    (command,) = [line for line in commands if line.endswith(f" {value}")]
    assert run(shop, command).code == 0
    second = read_all()
    assert (second.exit_code, failed(second)) == (0, {})
    assert {one.resource: one.verdict for one in second.lists}[resource] == "complete"
    assert shop.one("SELECT count(*) FROM raw.orders") == 30
    assert shop.one("SELECT count(*) FROM raw.customers") == 40
    assert key not in run(shop, "questions").out


def test_what_the_list_had_before_is_part_of_the_evidence(shop: Bridge) -> None:
    assert read_all().exit_code == 0
    assert key_is_not_asked(shop)
    shop.platform.set_faults({"cursor_at_end": 1})
    assert read_all().exit_code == 4
    assert "; the list had 30 records when it was last read" in run(shop, f"questions {CURSOR}").out
    assert run(shop, "answer --proposed").code == 0
    assert CURSOR not in read_answers().answers, "nothing is proposed"
    shop.platform.set_faults({})
    assert read_all().exit_code == 0
    assert key_is_not_asked(shop)


def key_is_not_asked(made: Bridge) -> bool:
    listed = run(made, "questions").out
    return CURSOR not in listed and ARRAY not in listed


def test_a_broken_response_stays_one_where_a_person_says_so(shop: Bridge) -> None:
    shop.platform.set_faults({"empty_array": 1})
    assert run(shop, f"answer {ARRAY} broken").code == 0
    result = read_all()
    assert (result.exit_code, [*failed(result)]) == (4, ["customers"])
    assert ARRAY not in failed(result)["customers"]
