"""What a command refuses: it ends with 2, says why on stderr without a character that a terminal acts on, and writes
nothing."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from tests.pipelines.bridge import command
from tests.pipelines.cli.test_terminal import HOSTILE, is_safe

RULE = "customers.erp_code_duplicate"


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("nonsense", "No such command 'nonsense'"),
        ("pull coupons", "'coupons' is not one of 'customers', 'promotions', 'price_lists', 'orders'"),
        ("run customers", "unexpected extra argument"),
        ("pull --sweeps 0", "--sweeps"),
        ("pull --sweeps 7", "--sweeps"),
        ("push p --concurrency x", "--concurrency"),
        ("pull --refresh coupons__lines", "'coupons' is not one of customers"),
        ("status --max-age -1", "--max-age"),
        ("status --max-age nan", "not a number of hours"),
        ("settle a --landed 1-x", "'1-x' is not the number of an operation"),
        ("settle a --landed 1-9999999", "too long a range"),
        ("settle --landed 1", "an answer needs its plan"),
        ("sandbox --fault stall", "'stall' is not NAME=RATE"),
        ("sandbox --fault nonsense=1", "Use one of: rate_429"),
        ("sandbox --fault stall=2", "from 0 to 1"),
        ("sandbox --fault stall=x", "from 0 to 1"),
        ("sandbox --reading nonsense=1", "Use one of: "),
        ("sandbox --records nowhere", "nowhere"),
        ("--project none status", "there is no folder"),
        (f"--project {'x' * 300} status", f"{'x' * 300} cannot be used: File name too long"),
        ("status", "there is no warehouse at "),
        ("status", "Run `orderbridge run` first"),
        ("template variants --for file", "--for requires --mapping"),
        ("demo --folder .", "--folder NAME"),
        ("demo --folder file/demo", "file/demo cannot be created: Not a directory"),
        (f"accept {RULE} --why x --up-to 3 --severity info", "`up_to` cannot be combined"),
        ("accept orders.form_changed --why x --up-to 3", "`up_to` cannot be combined"),
        ("accept customers.no_rule --why x", "there is no rule 'customers.no_rule'"),
        ("accept match_doubtful --why x", "Did you mean erp_customers.match_doubtful?"),
        ("accept orders.form_chnaged --why x", "Did you mean orders.form_changed"),
        (f"accept {RULE}", "--why is missing"),
        (f"accept {RULE} --why ' '", "must not be empty"),
        (f"accept {RULE} --why x --until 2026-01-01", "--until 2026-01-01 is past"),
        (f"accept {RULE} --withdraw", "nothing of that is accepted"),
        ("accept --why x", "no RULE is named"),
        (f"preview none{HOSTILE}.csv", "none"),
        (f"pull orders{HOSTILE}", "orders"),
        (f"report --out no{HOSTILE}/where.html", "there is no folder"),
        (f"--project none{HOSTILE} status", "none"),
        (f"sandbox --fault {HOSTILE}", "NAME=RATE"),
        (HOSTILE, "No such command"),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(
    tmp_path: Path, nobody: dict[str, str], line: str, says: str
) -> None:
    (tmp_path / "file").touch()
    done = command(*shlex.split(line), env=nobody, cwd=tmp_path)
    assert (done.code, done.out) == (2, "")
    assert says.casefold() in done.err.casefold()
    assert is_safe(done.err)
    assert {path.name for path in tmp_path.rglob("*")} == {"file", "home", "tmp"}
