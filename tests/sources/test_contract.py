"""A new field of the interface touches the contract and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = '''
import importlib.util, sys, types
from pathlib import Path

spec = importlib.util.find_spec("sources.contract")
module = types.ModuleType("sources.contract")
text = Path(spec.origin).read_text("utf-8")
for field in (
    """        Field("birthdate", "date", "string", meaning="YYYY-MM-DD"),\\n""",
    """        Field("password", "text", required=True, min_length=1),\\n""",
):
    assert text.count(field) == 1
    text = text.replace(field, field + """        Field("loyaltyTier", "text", min_length=3),\\n""")
sys.modules["sources.contract"] = module
exec(compile(text, spec.origin, "exec"), module.__dict__)

from sandbox.validation import problems
from sources.contract import CUSTOMER_CREATE
from sources.inputs import paths
from tests.pipelines.bridge import bridge

with bridge(Path.cwd()) as made:
    first = made.platform.state.ids("customers")[0]
    made.platform.state.change("customers", first, {"loyaltyTier": "gold"})
    made.pull("customers")
    print(made.rows("SELECT id = $1, loyalty_tier, _extra FROM raw.customers WHERE loyalty_tier IS NOT NULL", first))
    print(made.rows("SELECT count(*) FROM ops.observations WHERE value = 'loyaltyTier'"))
print([problem.message for problem in problems(CUSTOMER_CREATE, {"password": "x", "loyaltyTier": "a"})])
print("loyaltyTier" in paths("customers"))
'''


def test_issue_10_3_a_new_field_is_added_in_the_contract_alone(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": "", "HOME": str(tmp_path), "DLT_DATA_DIR": str(tmp_path / "dlt")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.stdout.splitlines() == [
        "[(True, 'gold', None)]",
        "[(0,)]",
        "['loyaltyTier must have at least 3 characters']",
        "True",
    ], done.stderr
