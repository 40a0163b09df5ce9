"""An import is the steps that exist, in their order, and whatever stops it, the next one goes on."""

from __future__ import annotations

import errno
import os
import shutil
import time
import zipfile
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from orderbridge.pipelines.cli.push import lines_of
from orderbridge.pipelines.cli.status import lines as lines_of_status
from orderbridge.pipelines.import_file import lists, run
from orderbridge.pipelines.import_file.asking import nobody
from orderbridge.pipelines.import_file.examples import examples
from orderbridge.pipelines.import_file.mappings import keep_mapping
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import MappedColumn, Mapping
from orderbridge.pipelines.plan.model import DIFFERENCES_FILE, Plan
from orderbridge.pipelines.plan.outcomes import DIFFERENCE_SCHEMA
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.push import results
from orderbridge.pipelines.push.model import PushOptions, PushResult
from orderbridge.pipelines.push.next_steps import NextSteps
from orderbridge.pipelines.push.passwords import PASSWORDS_FILE
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.pipelines.push.results import count_push
from orderbridge.pipelines.questions.semantics import semantics_key, sent_articles
from orderbridge.pipelines.reporting.status import read_status
from orderbridge.sandbox.state import State
from orderbridge.sources.errors import Unreachable, UsageError
from orderbridge.sources.settings import ledger_path
from orderbridge.sources.texts import english
from tests.pipelines.import_file.desk import CUSTOMERS, VARIANTS, Desk
from tests.pipelines.push.plans import outcomes, patch, place
from tests.spreadsheet import spreadsheet_rows

CODES = [f"{n:05d}" for n in range(1, 7)]


def test_a_file_goes_to_the_platform_and_is_verified_in_one_run(desk: Desk) -> None:
    assert lists.pull_reason("customers", "customers", 1.0, english())
    result = desk.run(desk.write())
    assert (result.exit_code, desk.at.codes()) == (0, CODES)
    assert desk.done == ["pull", "plan", "push", "pull"]
    assert result.verification is not None
    assert result.verification.outcomes["same"] == 6
    assert (result.plan.folder / PASSWORDS_FILE).exists()
    steps = replace(desk.steps(), ask=lambda _: pytest.fail("asked again"))
    desk.steps = lambda: steps  # type: ignore[method-assign]
    again = desk.run(desk.at.folder / "clientes.csv", passwords=None)
    assert (again.exit_code, again.push.states, desk.at.codes()) == (0, {}, CODES)
    assert desk.done[4:] == ["plan", "push"]  # what was read after the push is recent
    (desk.at.folder / "mappings/customers.toml").unlink()  # which says how they get their passwords
    other = desk.run(desk.at.folder / "clientes.csv", passwords=None)
    assert (other.exit_code, other.push.states) == (0, {}), "without new customers, nobody is asked"
    for age_h, clock_h, is_pulled in ((0.0, 0.0, True), (1.0, 0.0, False), (1.0, -2.0, True)):
        now = datetime.now(UTC) + timedelta(hours=clock_h)  # they were read by a clock ahead
        with mock.patch.object(
            lists, "datetime", mock.Mock(wraps=datetime, now=lambda _, now=now: now)
        ):
            assert bool(lists.pull_reason("customers", "customers", age_h, english())) is is_pulled


def test_what_a_file_and_its_mapping_lack_is_said_before_the_first_request(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = keep_mapping(Mapping("customers", {"Correo": MappedColumn("Correo", "email")}))
    with pytest.raises(UsageError, match="needs a password"):
        desk.run(file := desk.write("Correo\na@example.test\n"), passwords=None)
    assert desk.done == ["pull"], "whether there are new customers has to be known"
    desk.done.clear()
    monkeypatch.setenv("SOURCES__LEGACY__LOGIN_MODE", "code")
    for mapping in (None, kept):
        with pytest.raises(UsageError, match="no column fills loginCode"):
            desk.run(file, mapping=mapping)
    monkeypatch.delenv("SOURCES__LEGACY__LOGIN_MODE")
    kept.unlink()
    desk.said.clear()
    with pytest.raises(UsageError, match="how customers log in"):
        desk.run(desk.write())
    assert (desk.done, desk.said) == ([], [])


def test_a_pull_that_resumes_a_walk_is_followed_by_one_that_sees_what_was_sent(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    reasons = iter(["never read", "created since", "created since"])
    monkeypatch.setattr(lists, "pull_reason", lambda *_: next(reasons))
    steps = desk.steps()

    def pull(options: PullOptions) -> PullResult:
        desk.done.append("pull")
        return PullResult("", desk.at.folder) if "push" in desk.done else steps.pull(options)

    desk.steps = lambda: replace(steps, pull=pull)  # type: ignore[method-assign]
    desk.run(desk.write())
    assert desk.done == ["pull", "pull", "plan", "push", "pull", "pull"]


def test_a_run_that_was_stopped_is_continued_by_the_same_command(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCES__LEGACY__ENVIRONMENT", "production")
    file = desk.write()
    desk.stop_after = 2
    stopped = desk.run(file, push=PushOptions(confirm=6))
    stopped.push.lines["rejected", "rejected"] = 1
    assert lines_of(stopped.push)[-3:] == [
        "stopped",
        "next: run it again:",
        "  orderbridge import customers clientes.csv --passwords file",
    ]
    assert not any("rejected.csv" in line for line in lines_of(stopped.push)), "first it goes on"
    assert stopped.exit_code == 130
    assert 2 <= len(desk.at.codes()) < 6
    desk.stop_after = None
    desk.done.clear()
    left, of_all = (
        len(CODES) - len(desk.at.codes()),
        f"of {len(CODES)} customers would still be sent",
    )
    for confirm in (None, left - 1):
        hint = f"--confirm {left}"
        with pytest.raises(UsageError, match=f"^{left} {of_all}(.|\n)*{hint}"):
            desk.run(file, push=PushOptions(confirm=confirm))
    assert [line.partition(":")[0] for line in desk.asked[0]] == [
        f"line {8 - n}" for n in range(left, 0, -1)
    ]
    desk.done.clear()
    result = desk.run(file, push=PushOptions(confirm=left))
    assert (result.exit_code, desk.at.codes()) == (0, CODES)
    assert (result.plan.folder, desk.done) == (stopped.plan.folder, ["push", "pull"])


def test_doubts_are_settled_by_the_same_command(desk: Desk) -> None:
    file = desk.write()
    desk.at.platform.set_faults({"lost_answer": 1.0})
    first = desk.run(file)
    assert first.exit_code == 6
    assert replace(first, verification=mock.Mock(exit_code=7)).exit_code == 6, (
        "a doubt is not hidden"
    )
    with pytest.raises(
        UsageError, match=r"^6 customers would still be sent to .*, 6 of them with unknown outcome"
    ):
        desk.run(file, push=PushOptions())
    desk.at.platform.set_faults({})
    with pytest.raises(UsageError, match="was begun with --passwords file"):
        desk.run(file, passwords="mail")
    result = desk.run(file)
    assert (result.exit_code, sorted(desk.at.codes()), result.plan.folder) == (
        0,
        CODES,
        first.plan.folder,
    )
    assert result.verification is not None
    assert result.verification.outcomes["same"] == 6


def test_a_customer_that_somebody_else_created_meanwhile_ends_and_is_planned_anew(
    desk: Desk,
) -> None:
    file, steps = desk.write(), desk.steps()
    other = {"erpCode": "00004", "firstName": "Ana", "email": "ana4@example.test"}

    def push(folder: Path, options: PushOptions) -> PushResult:
        desk.at.platform.state.add("customers", other)
        return steps.push(folder, options)

    with mock.patch.object(desk, "steps", return_value=replace(steps, push=push)):
        first = desk.run(file)
    assert (first.exit_code, first.push.lines["unsent", "exists_now"]) == (5, 1)
    assert outcomes(first.plan.folder)["5"] == "unsent.exists_now"
    again = desk.run(file)
    assert again.plan.folder != first.plan.folder
    assert (again.exit_code, again.push.lines) == (0, {("confirmed", "exists_same"): 6})
    assert sorted(desk.at.codes()) == [code for code in CODES if code != "00004"]


@pytest.mark.parametrize("body", ["empty", "record"])
def test_a_code_that_the_platform_writes_otherwise_is_the_same_customer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str
) -> None:
    monkeypatch.chdir(tmp_path)
    with place(tmp_path, login_mode="code", readings={"created_body": body}) as at:
        monkeypatch.setenv("SOURCES__LEGACY__LOGIN_MODE", "code")
        import_respelt(Desk(at), monkeypatch)


def import_respelt(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    """Imports codes that the platform stores in lower case and without zeros, twice.

    Ids that no create returned are known from the verification.
    """
    codes = [f"0000{letter}-{n}" for n, letter in enumerate("ABCDE", 1)]
    text = "erpCode;loginCode;firstName\n" + "".join(f"{code};{code};Ana\n" for code in codes)
    file, state, create = desk.write(text), desk.at.platform.state, State.create

    def respell(self: State, operation: Any, ids: Any, body: dict[str, Any]) -> Any:
        code = body["erpCode"].lower().lstrip("0")
        return create(self, operation, ids, {**body, "erpCode": code, "loginCode": code})

    monkeypatch.setattr(State, "create", respell)
    first = desk.run(file)
    assert first.verification is not None
    assert first.verification.outcomes["same"] == 5
    assert first.verification.spelling == {"erpCode": 5, "loginCode": 5}
    assert first.exit_code == 0
    again = desk.run(file, max_age_h=0.0)
    assert (again.exit_code, again.push.lines) == (0, {("confirmed", "exists_same"): 5})
    assert len(state.customer_inputs) == 5


def test_a_plan_overtaken_by_another_or_by_a_setting_is_not_resumed_for_ever(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = (
        desk.write(VARIANTS.replace("00038", sku), f"{sku}.csv") for sku in ("00040", "00041")
    )
    desk.stop_after = 0
    stopped = desk.run(first, "variants")
    desk.stop_after = None
    desk.run(second, "variants")
    overtaken, anew = desk.run(first, "variants"), desk.run(first, "variants")
    assert overtaken.plan.folder == stopped.plan.folder
    assert overtaken.push.lines["unsent", "superseded"] == 2
    assert (anew.exit_code, anew.plan.folder != stopped.plan.folder) == (0, True)
    assert desk.at.platform.state.variants[1, 1001].fields["sku"] == "00040"
    desk.stop_after = 0
    stopped = desk.run(desk.write(VARIANTS.replace("7,50", "8,50")), "variants")
    desk.stop_after = None
    monkeypatch.setenv("SOURCES__LEGACY__PRICE_SEMANTICS", "set")
    anew = desk.run(desk.at.folder / "clientes.csv", "variants")
    assert (anew.exit_code, anew.plan.folder != stopped.plan.folder) == (0, True)


def test_status_names_plan_folders_that_can_go(desk: Desk) -> None:
    folders = {}
    for product, name in enumerate(("old", "recent", "open", "passwords"), 1):
        rows = f"{product};1;{name}\n{product};2;{name}\n"
        file = desk.write(f"productId;variantId;sku\n{rows}", f"{name}.csv")
        if name == "open":
            desk.stop_after = 1
            desk.at.platform.set_faults({"lost_answer": 1.0})
        folders[name] = desk.run(file, "variants").plan.folder
        desk.stop_after = None
        desk.at.platform.set_faults({})
    (folders["passwords"] / PASSWORDS_FILE).write_text("secret")
    a_month_ago = time.time() - 31 * 86400
    for path in (path for name, path in folders.items() if name != "recent"):
        for file in (*path.rglob("*"), path):
            os.utime(file, (a_month_ago, a_month_ago))
    (left,) = read_status().removable_plans
    assert (left.folder, left.bytes > 1000) == (str(folders["old"]), True)
    shown = lines_of_status(read_status())
    assert shown[-2].startswith(
        "1 plan folder can go (0.0 MB; ended, and not changed for 30 days): plan-"
    )
    assert desk.run(desk.at.folder / "open.csv", "variants").exit_code == 0
    assert read_status().removable_plans == [left], "also where nothing else is shown"
    (folders["old"] / "result.xlsx").touch()
    with pytest.raises(UsageError, match="no warehouse"):
        read_status()  # somebody corrects it


def test_a_changed_file_is_planned_anew(desk: Desk) -> None:
    desk.stop_after = 1
    stopped = desk.run(desk.write(VARIANTS, "articulos.csv"), "variants")
    desk.stop_after = None
    result = desk.run(desk.write(VARIANTS.replace("7,50", "8,50"), "articulos.csv"), "variants")
    assert result.plan.folder != stopped.plan.folder
    assert (result.exit_code, desk.at.platform.state.variants[1, 1002].fields["price"]) == (0, 8.5)


def test_a_failure_after_the_push_hides_no_result_and_the_next_run_verifies(
    desk: Desk,
) -> None:
    file, steps = desk.write(), desk.steps()

    def pull(options: PullOptions) -> PullResult:
        if desk.done[-1:] == ["push"] and "failed" not in desk.done:
            desk.done.append("failed")
            raise Unreachable("no answer")
        return steps.pull(options)

    desk.steps = lambda: replace(steps, pull=pull)  # type: ignore[method-assign]
    failed, whole = desk.run(file), desk.run(file)
    assert (failed.exit_code, failed.push.lines) == (4, {("confirmed", "confirmed"): 6})
    assert failed.file is not None
    assert (str(failed.error), whole.exit_code, desk.at.codes()) == ("no answer", 0, CODES)
    assert (whole.plan.folder, whole.made) == (failed.plan.folder, None), "it goes on"
    with mock.patch.object(run, "verify", side_effect=KeyboardInterrupt):
        stopped = desk.run(file)
    assert (stopped.error, stopped.exit_code) == (None, 130)
    assert lines_of(stopped.push)[-2:] == [
        "next: run it again:",
        f"  {NextSteps.of(stopped.plan).again}",
    ]
    assert desk.run(file).plan.folder == stopped.plan.folder, "it goes on"


def test_a_workbook_that_the_disk_does_not_take_hides_nothing_of_the_push(desk: Desk) -> None:
    refused = OSError(errno.EIO, os.strerror(errno.EIO))
    with mock.patch.object(zipfile.ZipFile, "write", side_effect=refused):
        failed = desk.run(desk.write())
    assert (failed.exit_code, failed.push.lines) == (2, {("confirmed", "confirmed"): 6})
    assert str(failed.error).startswith(f"{failed.plan.folder}: Input/output error")
    assert failed.verification is not None


def test_a_person_sees_examples_and_decides(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCES__LEGACY__STOCK_SEMANTICS", "set")
    ask, text = (
        PushOptions(settle_s=0.0),
        VARIANTS.replace("sku", "sku;stock").replace("38\n", "38;5\n"),
    )
    text = text.replace("39\n", "39;7\n")
    desk.answer = True
    result = desk.run(desk.write(text, "articulos.csv"), "variants", ask)
    assert (result.exit_code, desk.done) == (0, ["plan", "push"])
    first, second = (f"line {n}: products/1/variants/100{n - 1}" for n in (2, 3))
    assert desk.asked[0] == [
        f"{first}: sku 00038, stock 5", f"{first}: price 19.99", f"{second}: sku 00039, stock 7", f"{second}: price 7.5"
    ]  # fmt: skip
    names = [f"/products/1/variants/100{n} is 0003{n + 7} in articulos.csv" for n in (1, 2)]
    assert sorted(sent_articles(semantics_key("price"))) == names
    desk.answer = None
    desk.write(text.replace("19,99", "21,50").replace("38;5", "38;9"), "articulos.csv")
    with pytest.raises(UsageError, match="would be sent"):
        desk.run(result.plan.folder.parent / "articulos.csv", "variants", ask)
    assert desk.asked[1] == [
        f"{first}: stock 9 (last sent: 5)", f"{first}: price 19.99 → 21.5", f"{second}: stock 7, sent again"
    ]  # fmt: skip
    assert sent_articles(semantics_key("price")) == [], "the file has other lines now"


def test_the_question_whether_to_send_has_the_counts_of_what_is_not_sent(desk: Desk) -> None:
    desk.answer = None
    text = "Código;Nombre;Correo;Teléfono\n00001;Ana;a@x.test;n/a\n00002;Eva;;\n00003;Luz;;\n"
    text = text.replace("Luz;;", "Pe?a;c@x.test;")
    with pytest.raises(UsageError) as asked:
        desk.run(desk.write(text), push=PushOptions(), holds_damaged=True)
    assert asked.value.message.endswith("; 1 line rejected, 1 line held, 2 suspicious values")


def test_an_impossible_address_is_rejected_and_a_wrong_tax_number_holds_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE__COUNTRY", "ES")
    known = {"erpCode": "00003", "email": "luz..c@x.test", "firstName": "Luz"}
    desk.at.platform.state.add("customers", known)
    text = "Código;Nombre;Correo;NIF\n00001;Ana;ana@x.test;B58378432\n00002;Eva;eva@-x.test;\n"
    result = desk.run(desk.write(f"{text}00003;Luz;luz..c@x.test;\n"), holds_damaged=True)
    assert result.plan.manifest.suspicious == 1
    assert dict(result.push.lines) == {
        ("confirmed", "confirmed"): 1,
        ("rejected", "rejected"): 1,
        ("confirmed", "exists_same"): 1,
    }
    rejects = (result.plan.folder / "rejects.csv").read_text("cp1252")
    assert "Correo «eva@-x.test»: not a valid e-mail address" in rejects


def test_the_passwords_of_a_run_that_was_killed_are_named_by_the_next_one(desk: Desk) -> None:
    counted: list[Path] = []

    def killed_at_the_end(folder: Path, ledger: PlanLedger, *settle_s: float) -> None:
        counted.append(folder)
        if len(counted) > 1:
            raise SystemExit
        count_push(folder, ledger, *settle_s)

    file = desk.write()
    with mock.patch.object(results, "count_push", killed_at_the_end), pytest.raises(SystemExit):
        desk.run(file)
    (killed,) = desk.at.folder.glob(f"plan-customers-*/{PASSWORDS_FILE}")
    desk.write("Código;Nombre;Correo\n00009;Eva;e@example.test\n")
    next_one = desk.run(desk.at.folder / "clientes.csv")
    assert [*next_one.push.earlier_passwords] == [killed]
    line = f"generated passwords of a run before, which was killed: {killed}"
    assert line in lines_of(next_one.push)
    passwords = spreadsheet_rows(killed)
    assert sorted(row["erpCode"] for row in passwords) == sorted({*desk.at.codes()} - {"00009"})
    killed.unlink()
    assert desk.run(desk.at.folder / "clientes.csv").push.earlier_passwords == []


@pytest.mark.parametrize("step", ["keep_records", "write_result", "verify"])
def test_an_import_that_was_killed_once_all_was_sent_ends_the_next_time(
    desk: Desk, step: str
) -> None:
    file = desk.write(f"{CUSTOMERS}00007;Eva;\n")
    desk.ask = nobody  # type: ignore[method-assign,assignment]
    with pytest.raises(UsageError, match="1 line rejected"):  # a workbook shows it
        desk.run(file, push=PushOptions())
    with mock.patch.object(run, step, side_effect=SystemExit), pytest.raises(SystemExit):
        desk.run(file)
    again = desk.run(file, push=PushOptions())
    assert (again.made, again.push.sent) == (None, 0)
    assert again.push.lines["confirmed", "confirmed"] == len(desk.at.codes())
    assert again.verification is not None
    assert again.verification.outcomes["same"] == len(desk.at.codes())
    assert again.file == again.plan.folder / "result.xlsx"
    assert desk.run(file, push=PushOptions()).plan.folder != again.plan.folder, "it has ended"


def test_a_stock_is_sent_again_after_a_killed_run_whose_plan_was_deleted(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCES__LEGACY__STOCK_SEMANTICS", "set")
    file = desk.write("productId;variantId;stock\n1;1001;5\n", "articulos.csv")
    assert desk.run(file, "variants").exit_code == 0
    killed = mock.patch("orderbridge.pipelines.push.send.SendLoop._receive", side_effect=SystemExit)
    with killed, pytest.raises(SystemExit):
        desk.run(file, "variants")
    plans = desk.at.folder.glob("plan-variants-*")
    shutil.rmtree(max(plans, key=lambda path: path.stat().st_mtime_ns))
    for _ in range(2):
        done = desk.run(file, "variants")
        assert (done.exit_code, done.push.lines) == (0, {("confirmed", "confirmed"): 1})


def test_a_change_is_shown_with_its_sign(desk: Desk) -> None:
    changes = (patch(number, number, stock=stock) for number, stock in ((1, 5), (2, -5)))
    plan = desk.at.plan([*changes], semantics={"stock": "increment"})
    (plan / DIFFERENCES_FILE).write_text(";".join(DIFFERENCE_SCHEMA.names), "utf-8")
    assert [line.rpartition(": ")[2] for line in examples(Plan(plan), english())] == [
        "stock +5",
        "stock -5",
    ]


@pytest.mark.parametrize(
    ("environment", "options", "is_sent"),
    [
        ("sandbox", {"agreed": True}, True),
        ("sandbox", {}, False),
        ("sandbox", {"confirm": 4}, True),
        ("production", {"agreed": True}, False),
        ("production", {"confirm": 3}, False),
        ("production", {"confirm": 1_000}, True),
    ],
)
def test_nothing_is_sent_that_nobody_agreed_to(
    desk: Desk,
    monkeypatch: pytest.MonkeyPatch,
    environment: str,
    options: dict[str, Any],
    is_sent: bool,
) -> None:
    monkeypatch.setenv("SOURCES__LEGACY__ENVIRONMENT", environment)
    file, push = desk.write(VARIANTS, "articulos.csv"), PushOptions(**options)
    if is_sent:
        assert desk.run(file, "variants", push).exit_code == 0
    else:
        with pytest.raises(UsageError, match="4 requests for variants would be sent") as refused:
            desk.run(file, "variants", push)
        assert "orderbridge push" not in str(refused.value), "import goes on by itself"
        assert str(next(desk.at.folder.glob("plan-variants-*"))) in refused.value.hint
    assert desk.done == ["plan", *(["push"] if is_sent else [])]


@pytest.mark.parametrize("is_same", [True, False])
def test_a_person_says_in_the_import_whether_a_new_host_is_the_same_platform(
    desk: Desk, monkeypatch: pytest.MonkeyPatch, is_same: bool
) -> None:
    file = desk.write(VARIANTS)
    assert desk.run(file, "variants").exit_code == 0
    monkeypatch.setenv(
        "SOURCES__LEGACY__BASE_URL", desk.at.platform.url.replace("127.0.0.1", "localhost")
    )
    with pytest.raises(UsageError, match="is it the same platform"):
        desk.run(file, "variants")  # nobody can be asked
    desk.yes = is_same
    result = desk.run(file, "variants")
    assert (result.exit_code, result.plan.manifest.operations > 0) == (0, not is_same)
    desk.yes = None
    assert desk.run(file, "variants").exit_code == 0
    assert len(desk.asked_yes) == 2, "once answered, it is not asked again"


def test_an_import_that_was_stopped_goes_on_under_another_name_of_the_platform(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = desk.write(VARIANTS)
    desk.stop_after = 1
    stopped = desk.run(file, "variants")
    desk.stop_after = None
    monkeypatch.setenv(
        "SOURCES__LEGACY__BASE_URL", desk.at.platform.url.replace("127.0.0.1", "localhost")
    )
    desk.yes = True
    ended = desk.run(file, "variants")
    assert (ended.exit_code, ended.plan.folder) == (0, stopped.plan.folder)
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        assert ledger.open_plans() == []
