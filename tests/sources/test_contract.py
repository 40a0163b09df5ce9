"""A new field of the interface touches the contract and nothing else."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
SCRIPT = """
import tomllib
from pathlib import Path

loads = tomllib.loads


def with_fields(text):
    for field, added in (
        ('birthdate = { type = "date", json = "string", meaning = "YYYY-MM-DD" }',
         'loyaltyTier = { type = "text", meaning = "level of the customer" }\\n'
         'loyalSince = { type = "date", json = "string" }\\ntags = { type = "array", items = "text" }'),
        ('forTaxes = { type = "boolean" }', 'issuedOn = { type = "date", json = "string", meaning = "day of issue" }'),
        ('password = { type = "text", required = true, min_length = 1 }',
         'loyaltyTier = { type = "text", min_length = 3 }'),
    ):
        assert text.count(field) == 1
        text = text.replace(field, field + "\\n" + added)
    return loads(text)


tomllib.loads = with_fields
import sources.contract

tomllib.loads = loads

from pipelines.reconcile.reconcile import reconcile
from docs.dictionary import pages
from sandbox.validation import problems
from sources.contract import CUSTOMER_CREATE
from sources.inputs import paths
from sources.legacy import legacy
from tests.pipelines.bridge import bridge

with bridge(Path.cwd()) as made:
    first = made.platform.state.ids("customers")[0]
    documents = [{"number": "1", "issuedOn": "2021-03-04"}]
    changed = {"loyaltyTier": "gold", "loyalSince": "2020-02-29", "tags": ["a", "b"], "documents": documents}
    made.platform.state.change("customers", first, changed)
    made.pull("customers")
    print(made.rows("SELECT id = $1, loyalty_tier, loyal_since::TEXT, tags, _extra FROM raw.customers "
                    "WHERE loyalty_tier IS NOT NULL", first))
    print(made.rows("SELECT customer_id = $1, number, issued_on::TEXT, _extra FROM raw.customers__documents "
                    "WHERE issued_on IS NOT NULL", first))
    print(made.rows("SELECT count(*) FROM ops.observations WHERE value IN ('loyaltyTier', 'loyalSince', 'issuedOn')"))
    for column in made.rows("SELECT column_name, data_type, comment FROM duckdb_columns() "
                            "WHERE column_name IN ('loyalty_tier', 'loyal_since', 'issued_on')"):
        print(*column, sep=" | ")
    reconcile()
    print(made.one("SELECT document_count FROM reconciled.customers WHERE customer_id = $1", first))
print([problem.message for problem in problems(CUSTOMER_CREATE, {"password": "x", "loyaltyTier": "a"})])
print("loyaltyTier" in paths("customers"))
print(*[line for _, page in pages() for line in page.splitlines() if "loyalty_tier" in line])
columns = legacy("https://localhost", "none").customers.columns
print(columns["loyalty_tier"]["description"], columns["loyal_since"]["data_type"])
"""


def test_a_new_field_is_added_in_the_contract_alone(tmp_path: Path) -> None:
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
        "[(True, 'gold', '2020-02-29', '[\"a\",\"b\"]', None)]",
        "[(True, '1', '2021-03-04', None)]",
        "[(0,)]",
        "loyalty_tier | VARCHAR | level of the customer; loyaltyTier of GET /customers",
        "loyal_since | DATE | loyalSince of GET /customers",
        "issued_on | DATE | day of issue; documents[].issuedOn of GET /customers",
        "1",
        "['loyaltyTier must have at least 3 characters']",
        "True",
        "| `loyalty_tier`<br>VARCHAR | level of the customer<br>loyaltyTier of GET /customers |",
        "level of the customer date",
    ], done.stderr
