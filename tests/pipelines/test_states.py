"""What each command says about a record of each list, whatever became of it: one table.

The worlds are in `states.py` and `unlisted.py`, with what each state means. The words follow docs/completeness.md and
docs/exactly-once.md: a record is gone only where a complete list shows it; what was refused did not happen; what has an
unknown outcome may have happened; and a record that this program has made is known however it is spelled.
"""

from __future__ import annotations

import pytest

from tests.pipelines import states, unlisted
from tests.pipelines.states import Said

COMMANDS = ("plan", "push", "settle", "verify", "reconcile", "report")
ALL = "all"
TABLE: dict[tuple[str, str], dict[str, str]] = {
    ("customers", "plan"): {
        "exists_differs": "listed renamed older odd",
        "exists_same": "known moved",
        "send, was_there": "deleted gone",
        "send": "refused lost",
    },
    ("customers", "push"): {
        "exists_now": "listed known renamed odd",
        "held": "moved deleted",
        "confirmed": "gone refused lost older",
    },
    ("customers", "push, a second before"): {
        "exists_now": "listed known renamed moved deleted odd",
        "confirmed": "gone refused older",
        "blocked": "lost",
    },
    ("customers", "push, list not proven"): {
        "exists_now": "listed known renamed odd",
        "held": "moved deleted",
        "blocked": "gone refused lost older",
    },
    ("customers", "settle"): {
        "conflict, answer": "listed renamed",
        "confirmed": "known",
        "in_doubt, again": "moved deleted gone lost older",
        "rejected": "refused",
        "in_doubt, answer": "odd",
    },
    ("customers", "settle, a second before"): {
        "in_doubt, wait": ALL,
    },
    ("customers", "settle, list not proven"): {
        "conflict, answer": "listed renamed odd",
        "confirmed": "known",
        "in_doubt, again": "moved deleted gone refused lost older",
    },
    ("customers", "verify"): {
        "differs firstName": "listed",
        "same": "known",
        "differs erpCode": "renamed",
        "differs erpCode email": "moved",
        "missing": "deleted gone older odd",
        "unsettled": "refused lost",
    },
    ("customers", "reconcile"): {
        "listed": "listed known older odd",
        "listed, changed": "renamed moved",
        "missing, missing": "deleted gone",
        "-": "refused lost",
    },
    ("customers", "reconcile: ERP"): {
        "matched, erp_code, match_doubtful": "listed older odd",
        "matched, erp_code": "known",
        "matched, email, erp_code_contradicts": "renamed",
        "only_in_erp": "moved refused lost",
        "only_in_erp, customer_missing": "deleted gone",
    },
    ("customers", "reconcile: what they ordered"): {
        "2 orders": "listed known renamed moved older odd",
        "1 orders": "deleted gone",
        "-": "refused lost",
    },
    ("customers", "reconcile: orders"): {
        "listed, matched": "listed known renamed moved deleted gone older odd",
        "listed, unknown, customer_unknown": "refused lost",
    },
    ("customers", "reconcile: ERP, third read"): {
        "matched, erp_code, match_doubtful": "listed older odd",
        "matched, erp_code": "known",
        "matched, email, erp_code_contradicts": "renamed",
        "only_in_erp": "moved refused lost",
        "only_in_erp, customer_missing": "deleted gone",
    },
    ("customers", "reconcile: orders, third read"): {
        "listed, matched": "listed known renamed moved deleted gone older odd",
        "listed, unknown": "refused lost",
    },
    ("customers", "report"): {
        "1 of its list": "listed known renamed moved older odd",
        "0 of its list": "deleted gone refused lost",
    },
    ("promotions", "reconcile"): {
        "listed, running": "listed known moved older odd",
        "listed, running, changed": "renamed",
        "missing, running, missing": "deleted gone",
        "-": "refused lost",
    },
    ("promotions", "report"): {
        "shown": "listed known renamed moved older odd",
        "not shown": "deleted gone refused lost",
    },
    ("price_lists", "plan"): {
        "send": "listed known renamed moved",
        "send, not_listed": "deleted gone refused lost",
        "send, not checked": "older odd",
    },
    ("price_lists", "plan, third read"): {
        "send, not checked": ALL,
    },
    ("price_lists", "reconcile"): {
        "listed, root": "listed known moved older odd",
        "listed, root, changed": "renamed",
        "missing, root, missing": "deleted gone",
        "-": "refused lost",
    },
    ("price_lists", "reconcile: sources"): {
        "listed, linked": "listed known renamed moved older odd",
        "listed, orphan, source_not_listed": "deleted gone refused lost",
    },
    ("price_lists", "reconcile: customers"): {
        "-": "listed known renamed moved deleted gone refused lost",
        "matched": "older odd",
    },
    ("price_lists", "reconcile: sources, third read"): {
        "listed, linked": "listed known renamed moved older odd",
        "listed, unknown": "deleted gone refused lost",
    },
    ("price_lists", "reconcile: customers, third read"): {
        "matched": "listed known renamed moved older odd",
        "unknown": "deleted gone refused lost",
    },
    ("price_lists", "report"): {
        "shown": "listed known renamed moved older odd",
        "not shown": "deleted gone refused lost",
    },
    ("orders", "reconcile"): {
        "listed, matched": "listed known renamed moved older odd",
        "missing, matched": "deleted gone",
        "listed, unknown, customer_unknown": "refused lost",
    },
    ("orders", "reconcile: before"): {
        "listed, matched": "listed known renamed older odd",
        "missing, matched": "moved deleted gone",
        "listed, unknown, customer_unknown": "refused lost",
    },
    ("orders", "report"): {
        "counted": "listed known renamed moved refused lost older odd",
        "not counted": "deleted gone",
    },
    ("variants", "plan"): {
        "unchanged": "known",
        "send": "renamed gone refused lost again overtaken vanished",
        "send, moved": "moved",
    },
    ("variants", "push"): {
        "superseded": "known renamed moved gone again overtaken",
        "confirmed": "refused vanished",
        "blocked": "lost",
    },
    ("variants", "settle"): {
        "confirmed": "known renamed moved gone",
        "rejected": "refused vanished",
        "in_doubt, answer": "lost",
        "in_doubt, again": "again",
        "abandoned": "overtaken",
    },
    ("variants", "verify"): {
        "2 in doubt, 4 unreadable, 5 unsettled": ALL,
    },
    ("variants", "reconcile"): {
        "same, A": "known",
        "differs, B; other: sku": "renamed overtaken",
        "never_sent, never sent: sku": "moved refused",
        "differs, in doubt: sku": "gone again",
        "differs, in doubt: stock": "lost",
        "never_sent, never sent: stock": "vanished",
    },
    ("sites", "plan"): {
        "unchanged": "known",
        "exists_differs": "renamed",
        "send": "refused lost given_up",
    },
    ("sites", "push"): {
        "exists_now": "known renamed",
        "confirmed": "refused",
        "blocked": "lost given_up",
    },
    ("sites", "push --accept-unproven"): {
        "exists_now": "known renamed",
        "confirmed": "refused given_up",
        "blocked": "lost",
    },
    ("sites", "settle"): {
        "confirmed": "known renamed",
        "rejected": "refused",
        "in_doubt, answer": "lost",
        "abandoned": "given_up",
    },
    ("sites", "verify"): {
        "1 in doubt, 2 unreadable, 3 unsettled": ALL,
    },
}
"""By list and command: what it says, and of which states."""
NONE = {
    ("promotions", "plan push settle verify"): "no write makes or names a promotion",
    ("price_lists", "push settle verify"): "their id is sent as it was planned",
    ("orders", "plan push settle verify"): "no write makes or names an order",
    ("variants", "report"): "it counts the rows of reconcile by their status",
    ("sites", "reconcile report"): "neither has a table of them",
}
"""The pairs that there are not, and why."""


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Said]:
    return {
        **states.said(tmp_path_factory.mktemp("listed")),
        **unlisted.said(tmp_path_factory.mktemp("unlisted")),
    }


@pytest.mark.parametrize(("name", "command"), TABLE)
def test_what_a_command_says_about_a_record_follows_from_what_became_of_it(
    said: dict[tuple[str, str], Said], name: str, command: str
) -> None:
    expected = {
        state: words for words, those in TABLE[name, command].items() for state in those.split()
    }
    for kind in ("warehouses", "subcategories") if name == "sites" else (name,):
        found = said[kind, command]
        if ALL in expected:
            assert {*found.values()} == {expected[ALL]}
        else:
            assert found == expected


def test_each_list_and_command_has_a_row_or_a_reason_why_it_has_none() -> None:
    rows = {(name, command.split()[0].strip(":,")) for name, command in TABLE}
    rows |= {(name, one) for name, commands in NONE for one in commands.split()}
    assert rows == {(name, command) for name, _ in TABLE for command in COMMANDS}
