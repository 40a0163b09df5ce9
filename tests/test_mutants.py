"""The small changes that `make mutants CHANGE=REVISION` plants."""

from __future__ import annotations

import pytest

from tests.mutants.operators import edits


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("x = a and b or c\n", {"x = (c)", "x = (a and b)", "x = (b) or c", "x = (a) or c"}),
        ("x = len(a) < 7\n", {"x = len(a) <= 7", "x = len(a) < 8"}),
        ("x = a is not b\n", {"x = a is b"}),
        ("x = min(é)[0]\n", {"x = max(é)[0]", "x = min(é)[-1]"}),
        ("x = AGE_S + s\n", {"x = AGE_S", "x = s"}),
        ("x = [y for y in z if y]\n", {"x = [y for y in z if True]"}),
        ("x: Final[0] = y.head()\n", {"x: Final[0] = y.tail()"}),
        ("f(y)\n", {"pass"}),
        ('"""min of what is < 7"""\n', set()),
        (
            'x = "SELECT DISTINCT a FROM b WHERE c AND d <= 3 ORDER BY a"\n',
            {
                'x = "SELECT a FROM b WHERE c AND d <= 3 ORDER BY a"',
                'x = "SELECT DISTINCT a FROM b WHERE c ORDER BY a"',
                'x = "SELECT DISTINCT a FROM b WHERE c AND d < 3 ORDER BY a"',
            },
        ),
        ('x = "DISTINCT, not of a query"\n', set()),
    ],
)
def test_a_line_is_changed_in_each_way_that_is_a_likely_bug(text: str, changed: set[str]) -> None:
    assert {edit.text.rstrip() for edit in edits(text, {1}, is_python=True)} == changed


def test_a_condition_is_made_true_and_false_and_other_lines_stay() -> None:
    text = "if a:\n    b = c or d\n    e()\n"
    made = {edit.text for edit in edits(text, {1, 3}, is_python=True)}
    assert made == {
        "if True:\n    b = c or d\n    e()\n",
        "if False:\n    b = c or d\n    e()\n",
        "if a:\n    b = c or d\n    pass\n",
    }
