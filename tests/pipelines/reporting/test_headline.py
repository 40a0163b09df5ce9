"""The first two lines of a notification or a mail: what happened, and the one command; and which runs are a problem."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from orderbridge.pipelines.pull.model import PullResult
from orderbridge.pipelines.reporting import notification
from orderbridge.pipelines.reporting.headline import headline_of_run, todo_about
from orderbridge.sources.errors import (
    AccessError,
    BridgeError,
    ContractBroken,
    LockedError,
    Unreachable,
    UsageError,
)
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.settings import NotifySettings, Secret

SETTINGS = NotifySettings(url=Secret("https://hooks.example/T"), on="problems")


def pulled(*errors: tuple[str, BridgeError], **more: Any) -> PullResult:
    lists = [ListResult("customers"), *(ListResult(name, error=error) for name, error in errors)]
    return PullResult("run", Path("nowhere"), lists, published=True, **more)


def reconciled(code: int, named: list[str] | None = None, **more: Any) -> Any:
    severities = Counter({"error": len(named or ())})
    nothing: dict[str, Any] = {"new_questions": [], "left_revenue": []}
    return SimpleNamespace(
        exit_code=code, named=named or [], severities=severities, **nothing | more
    )


def test_a_run_begins_with_what_its_exit_code_stands_for_and_the_command_for_it() -> None:
    gone = Unreachable("no answer", "Try again later.", family="public_v1", verb="GET", path="/o")
    refused = AccessError("refused", family="legacy", verb="GET", path="/p", status=401)
    held = {"orders": "9 of 12 are gone"}
    found = reconciled(9, ["8 error customers.login_missing"])
    for result, said, happened, todo in (
        (pulled(("orders", gone), ("promotions", refused)), found,
         "orders, promotions not read: legacy GET /p: refused (status 401)",
         "orderbridge init sources.legacy.api_key"),
        (pulled(("orders", gone), held_back=held), None,
         "orders not read: public_v1 GET /o: no answer", "orderbridge run"),
        (pulled(ledger_error=UsageError("it is older", "Restore it.")), found,
         "published; the ledger was not read: it is older", "Restore it."),
        (pulled(held_back=held), found,
         "orders not published: 9 of 12 are gone", "orderbridge questions list:orders"),
        (pulled(), found,
         "published, with findings that nobody has accepted: 8 error customers.login_missing",
         "orderbridge questions"),
        (pulled(), reconciled(0, new_questions=["reconcile.order_total"]),
         "published, with 1 new question", "orderbridge questions reconcile.order_total"),
        (pulled(), reconciled(0), "published", ""),
    ):  # fmt: skip
        assert headline_of_run(result, said) == (happened, todo)


def test_an_error_without_a_command_of_its_own_has_its_hint() -> None:
    scope = AccessError("no scope", family="public_v1", status=403)
    errors = (scope, ContractBroken("broken"), LockedError("held"), UsageError("x", "Set it.\n…"))
    assert [*map(todo_about, errors)] == [
        "orderbridge check",
        "orderbridge check",
        "orderbridge status",
        "Set it.",
    ]


@pytest.mark.parametrize(
    ("hint", "todo"),
    [
        ("It is lost. Stop it, then run it again: orderbridge run", "Stop it, then run it again: orderbridge run"),
        ("Nothing is lost. Run it again: orderbridge run", "orderbridge run"),
        ("It moved, or answer: orderbridge answer source accept", "orderbridge questions source"),
        ("Answer it: orderbridge --project a answer 'x y' b", "orderbridge --project a questions 'x y'"),
        ("It stays until `orderbridge reconcile`.", "It stays until `orderbridge reconcile`."),
    ],
)  # fmt: skip
def test_the_command_at_the_end_of_a_hint_is_next_with_what_comes_before_it(
    hint: str, todo: str
) -> None:
    assert todo_about(UsageError("x", hint)) == todo


@pytest.mark.parametrize(
    ("said", "is_posted"),
    [
        (reconciled(0), False),
        (reconciled(0, new_questions=["reconcile.order_total"]), True),
        (reconciled(0, left_revenue=["2 orders leave the revenue"]), True),
    ],
)
def test_with_problems_alone_good_runs_post_only_news_for_a_person(
    said: Any, is_posted: bool
) -> None:
    with mock.patch.object(notification, "_post") as post:
        notification.notify_result(SETTINGS, pulled(), said)
        assert post.called == is_posted
        notification.notify_result(SETTINGS, pulled(step_code=9), said)
        assert post.called, "its exit code is not 0"
