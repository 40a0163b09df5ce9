"""What the first page and the questions show, and what their forms start."""

from __future__ import annotations

import json
import os
import re
import string
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import get_args
from unittest import mock

import duckdb
import pytest

from orderbridge.pipelines.desk import imports, jobs
from orderbridge.pipelines.desk.home import Home, NightRow, nights
from orderbridge.pipelines.desk.jobs import Done, Job
from orderbridge.pipelines.desk.pages import Pages
from orderbridge.pipelines.desk.plans import (
    Difference,
    SentBefore,
    Settled,
    cells_key,
    corrections_of,
    plan_page,
)
from orderbridge.pipelines.desk.progress import Progress, progress_of
from orderbridge.pipelines.desk.questions import (
    ChoiceRow,
    Pair,
    QuestionPage,
    question_page,
    question_rows,
)
from orderbridge.pipelines.desk.settled import confirmed_lines
from orderbridge.pipelines.desk.texts import (
    COMPARED,
    LANGUAGES,
    Texts,
    catalogue,
    language_of_locale,
)
from orderbridge.pipelines.mapping.cells import Reading
from orderbridge.pipelines.mapping.field_paths import all_paths
from orderbridge.pipelines.push.results import FILE_OF, RESULT_COLUMNS
from orderbridge.pipelines.questions.model import AskedQuestion
from orderbridge.pipelines.reporting.status import Status
from orderbridge.pipelines.warehouse import failure
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import UsageError
from orderbridge.sources.extract.result import Verdict
from orderbridge.sources.files import open_table
from orderbridge.sources.files.row_shape import _TOTALS_REASON
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.settings import DEMO_MARK, warehouse_path
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.sources.texts import catalogue as command_texts
from orderbridge.transforms.erp.compare import COMPARISONS
from orderbridge.transforms.erp.evidence import WEIGHTS
from orderbridge.transforms.questions import Choice, State
from tests.pipelines.bridge import Bridge
from tests.pipelines.desk.browser import Browser, serving

MARKUP = "<script>alert(1)</script>"
ESCAPED = "&lt;script&gt;alert(1)&lt;/script&gt;"
DESK = Path(failure.__file__).parents[1] / "desk"
_COUNTS = """
import time
print('{"event": "progress", "activity": "customers", "done": 3}', flush=True)
time.sleep(30)
"""
_SHOWS_SESSION = """
import json, os
print(json.dumps({"sid": os.getsid(0), "pid": os.getpid(), "exit_code": 0}))
"""
CODE = re.compile(r'(?:\bt|texts|_texts|or_own)\(\s*f?"([a-z_.{}]+)"')


def test_a_project_without_settings_says_which_command_comes_first(desk: Browser) -> None:
    page = desk.get("/").text
    assert "orderbridge init" in page
    assert "never into a page" in page
    assert "Run now" not in page

    (desk.folder / DEMO_MARK).touch()
    page = desk.get("/").text
    assert f"cd {desk.folder.parent}<br>orderbridge demo --folder {desk.folder.name} --desk" in page
    assert "orderbridge init" not in page


def test_the_first_page_has_each_list_with_its_verdict_and_age(shop_desk: Browser) -> None:
    page = shop_desk.get("/").text
    row = re.search(r'<th scope="row">Customers</th>.*?</tr>', page, re.DOTALL)
    assert row is not None
    assert ">40<" in row[0]
    assert "complete" in row[0]
    assert re.search("just now|min ago", row[0])
    assert "Run now" in page


def test_a_failed_night_comes_first_and_its_message_is_text(shop_desk: Browser) -> None:
    note = {
        "command": "run",
        "failed_at": "2026-11-30T03:15:00+00:00",
        "message": f"the platform says {MARKUP}",
    }
    failure.failure_file(warehouse_path()).write_text(json.dumps(note))
    page = shop_desk.get("/").text
    nights = page[page.index("Last runs") :]
    assert nights.index(ESCAPED) < nights.index("done")
    assert MARKUP not in page
    assert "The last run failed" in page


def test_run_now_starts_a_run_that_is_shown_until_its_end(shop_desk: Browser) -> None:
    assert shop_desk.post("/run").status_code == 303
    seen = shop_desk.get("/run/progress").text
    assert "data-refresh" in seen
    assert shop_desk.post("/run").status_code == 303  # a second press starts nothing
    deadline = time.monotonic() + 600
    while "data-refresh" in seen and time.monotonic() < deadline:
        time.sleep(0.2)
        seen = shop_desk.get("/run/progress").text
    assert "Done. What it reported" in seen
    assert "published" in seen


def test_a_command_goes_on_when_its_desk_ends_and_another_desk_shows_it(project: Path) -> None:
    (project / "desk").mkdir(mode=0o700)
    job = Job.of(project / "desk", "run")
    program_text = _locked(job) + _COUNTS
    program = os.spawnl(os.P_NOWAIT, sys.executable, sys.executable, "-c", program_text)
    try:
        deadline = time.monotonic() + 120
        while not job.events() and time.monotonic() < deadline:
            time.sleep(0.05)
        with serving(project) as browser:
            browser.enter()
            assert "data-refresh" in browser.get("/run/progress").text
            assert "Customers" in browser.get("/run/progress").text
        assert job.is_running
    finally:
        os.kill(program, 9)
        os.waitpid(program, 0)
    progress = progress_of(job, Texts("en"))
    assert progress.is_lost
    assert not progress.is_running


def _event(phase: str, **facts: object) -> dict[str, object]:
    return {"event": "progress", "phase": phase, **facts}


BEFORE_SENDING = [
    _event("pull", activity="customers", done=100, total=488),
    _event("pull", activity="customers", done=490, total=488),  # somebody created two meanwhile
    _event("pull", activity="customers", done=100, total=488),  # the second time
]
WHILE_SENDING = [
    *BEFORE_SENDING,
    _event("push", activity="sending", done=60, total=80),
    _event("push", activity="sending", done=60, total=90),  # some are sent again
]
AFTER_SENDING: list[dict[str, object]] = [
    *WHILE_SENDING,
    _event("push", activity="sending", done=90, total=90),
    _event("pull", activity="customers", done=3, total=570),
    {"event": "progress", "phase": "publish", "message": "publishing"},
]
FAR: list[tuple[list[dict[str, object]], str, list[tuple[str, int, int]]]] = [
    (BEFORE_SENDING, "Leyendo de la plataforma", [("Clientes", 490, 490)]),
    (WHILE_SENDING, "Enviando", [("Clientes", 490, 490), ("Envíos", 60, 80)]),
    (AFTER_SENDING, "Leyendo de nuevo lo enviado", [("Envíos", 90, 90), ("Clientes", 3, 570)]),
]


@pytest.mark.parametrize(("events", "phase", "bars"), FAR)
def test_what_is_shown_of_a_command_never_goes_back(
    tmp_path: Path,
    events: list[dict[str, object]],
    phase: str,
    bars: list[tuple[str, int, int]],
) -> None:
    job = Job.of(tmp_path, "import")
    job.log.write_text("".join(f"{json.dumps(event)}\n" for event in events))
    progress = progress_of(job, Texts("es"))
    assert progress.phase == phase
    assert [(bar.activity, bar.done, bar.total) for bar in progress.bars] == bars
    assert progress.line == "", "a step of the command is in English"


def _locked(job: Job) -> str:
    """A program that holds the lock of its log and writes there, as a command of the desk does."""
    return (
        "import os, fcntl\n"
        f"log = os.open({str(job.log)!r}, os.O_RDWR | os.O_CREAT, 0o600)\n"
        "fcntl.flock(log, fcntl.LOCK_EX); os.dup2(log, 1)\n"
    )


def test_a_command_is_in_a_session_of_its_own_and_has_its_own_output(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project / "desk"
    folder.mkdir(mode=0o700)
    monkeypatch.setattr(
        "orderbridge.pipelines.desk.jobs.command_line",
        lambda words: [sys.executable, "-c", _SHOWS_SESSION],
    )
    job = Job.of(folder, "x")
    assert job.start([])
    deadline = time.monotonic() + 120
    while job.is_running and time.monotonic() < deadline:
        time.sleep(0.02)
    (result,) = job.results()
    assert result["sid"] == result["pid"]
    assert result["sid"] != os.getsid(0)
    assert {path.stat().st_mode & 0o777 for path in folder.iterdir()} == {0o600}


def _noting(
    command_line: Callable[[Sequence[str]], list[str]], started: list[list[str]]
) -> Callable[[Sequence[str]], list[str]]:
    def noted(words: Sequence[str]) -> list[str]:
        started.append(command_line(words))
        return started[-1]

    return noted


def test_an_answer_is_seen_at_once_but_not_in_the_process_list(
    shop_desk: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = "reconcile.timezone"
    assert question in shop_desk.get("/questions").text
    started: list[list[str]] = []
    monkeypatch.setattr(jobs, "command_line", _noting(jobs.command_line, started))
    response = shop_desk.post("/question", id=question, other="America/Lima", why="the shop")
    assert len(started) == 1
    assert not [word for word in started[0] if "America/Lima" in word or "the shop" in word]
    assert response.status_code == 303, response.text
    answers = (shop_desk.folder / ".dlt" / "answers.toml").read_text()
    assert "America/Lima" in answers
    assert "the shop" in answers
    page = shop_desk.get(response.headers["location"].removeprefix(shop_desk.base)).text
    assert "Answered before: 1" in page
    notice = re.search(r'<p class="notice good" role="status">(.*?)</p>', page)
    assert notice is not None
    assert "Which time zone do you work in?" in notice[1]
    assert question not in notice[1]
    assert shop_desk.post("/question", id=question, withdraw="1").status_code == 303
    assert "America/Lima" not in (shop_desk.folder / ".dlt" / "answers.toml").read_text()


def test_a_page_is_shown_while_an_answer_is_written(
    shop_desk: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, goes_on = threading.Event(), threading.Event()

    def slow(words: Sequence[str], text: str = "") -> Done:
        begun.set()
        assert goes_on.wait(120)
        return Done(0)

    monkeypatch.setattr("orderbridge.pipelines.desk.routes.run_short", slow)
    with ThreadPoolExecutor(1) as other_tab:
        answered = other_tab.submit(
            shop_desk.post, "/question", id="reconcile.timezone", other="America/Lima"
        )
        assert begun.wait(120)
        assert "Customers" in shop_desk.get("/").text
        assert not answered.done()
        goes_on.set()
        assert answered.result().status_code == 303


def test_a_page_starts_one_database_for_all_that_it_reads(
    shop_desk: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    from orderbridge.pipelines.warehouse import build

    opened: list[duckdb.DuckDBPyConnection] = []
    real = build.connect

    def counted(file: Path, *, read_only: bool) -> duckdb.DuckDBPyConnection:
        is_shared = any(not is_closed(one) for one in opened)
        opened.append(real(file, read_only=read_only))
        starts.append(not is_shared)
        return opened[-1]

    starts: list[bool] = []
    monkeypatch.setattr(build, "connect", counted)
    shop_desk.get("/")
    assert sum(starts) == 1


def is_closed(connection: duckdb.DuckDBPyConnection) -> bool:
    try:
        connection.execute("SELECT 1")
    except duckdb.ConnectionException:
        return True
    return False


def test_an_answer_that_is_not_possible_says_why_and_changes_nothing(shop_desk: Browser) -> None:
    response = shop_desk.post("/question", id="reconcile.timezone", other=f"--withdraw {MARKUP}")
    assert response.status_code == 422
    assert 'role="alert"' in response.text
    assert MARKUP not in response.text
    assert f'value="--withdraw {ESCAPED}"' in response.text, "it need not be typed again"
    assert not (shop_desk.folder / ".dlt" / "answers.toml").exists()
    nothing = shop_desk.post("/question", id="reconcile.timezone")
    assert "Choose or type an answer first" in nothing.text


def test_the_zones_of_this_machine_and_of_the_country_are_choices(
    shop_desk: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "America/Lima")
    monkeypatch.setenv("RECONCILE__COUNTRY", "ES")
    page = shop_desk.get("/question", params={"id": "reconcile.timezone"}).text
    zones = re.findall(r'type="radio" name="value" value="([^"]+)"', page)
    assert zones == ["UTC", "America/Lima", "Europe/Madrid", "Africa/Ceuta", "Atlantic/Canary"]
    monkeypatch.setenv("TZ", "Etc/UTC")
    page = shop_desk.get("/question", params={"id": "reconcile.timezone"}).text
    assert "Etc/UTC" not in page, "it is UTC under another name"


def test_a_zone_is_known_by_its_city_and_refused_in_the_language_of_the_page(
    reconciled: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(reconciled.folder))
    with serving(reconciled.folder, language="es") as desk:
        desk.enter()
        refused = desk.post("/question", id="reconcile.timezone", other="Marte")
        assert refused.status_code == 422
        assert "«Marte» no es una zona horaria" in refused.text
        assert "RECONCILE__TIMEZONE" not in refused.text
        assert 'value="Marte"' in refused.text
        country = desk.post("/question", id="reconcile.timezone", other="espana")
        assert "«espana» es un país" in country.text
        assert 'name="value" value="Atlantic/Canary"' in country.text
        given = desk.post("/question", id="reconcile.timezone", other="madrid")
        assert given.status_code == 303, given.text
    assert '"Europe/Madrid"' in (reconciled.folder / ".dlt" / "answers.toml").read_text()


def test_a_question_that_is_not_there_is_an_error_page(shop_desk: Browser) -> None:
    response = shop_desk.get("/question", params={"id": MARKUP})
    assert response.status_code == 422
    assert MARKUP not in response.text


def test_each_status_of_a_table_gets_a_class_and_all_are_one_answer(shop_desk: Browser) -> None:
    question = "reconcile.order_statuses"
    page = shop_desk.get("/question", params={"id": question}).text
    statuses = re.findall(r'<select name="(value:[^"]+)"', page)
    assert len(statuses) > 2
    fields = dict.fromkeys(statuses, "sale")
    fields[statuses[0]] = ""
    response = shop_desk.post("/question", id=question, **fields)
    assert response.status_code == 303, response.text
    answers = (shop_desk.folder / ".dlt" / "answers.toml").read_text()
    assert answers.count("=sale") == len(statuses) - 1


def test_the_answer_for_one_value_of_a_table_is_taken_back(shop_desk: Browser) -> None:
    question = "reconcile.order_statuses"
    assert "words of the platform: " in shop_desk.get("/questions").text
    page = shop_desk.get("/question", params={"id": question}).text
    assert "confirms what is chosen here" in page
    first, second, *_ = re.findall(r'<select name="(value:[^"]+)"', page)
    shop_desk.post("/question", id=question, **{first: "test", second: "test"})
    page = shop_desk.get("/question", params={"id": question}).text
    assert page.count('<option value="withdraw">') == 2
    names = [name.removeprefix("value:") for name in (first, second)]
    assert f"Answered: <b>{names[0]}: a test, {names[1]}: a test</b>" in page
    shop_desk.post("/question", id=question, **{first: "withdraw", second: "test"})
    page = shop_desk.get("/question", params={"id": question}).text
    assert page.count('<option value="withdraw">') == 1
    assert page.count('<option value="test" selected>') == 1
    shop_desk.post("/question", id=question, **{second: "withdraw"})
    assert question not in (shop_desk.folder / ".dlt" / "answers.toml").read_text()


def test_an_answer_is_on_its_page_with_its_reason_and_can_be_taken_back(
    shop_desk: Browser,
) -> None:
    question = "reconcile.country"
    assert shop_desk.post("/question", id=question, other="PT", why="in Porto").status_code == 303
    page = shop_desk.get("/question", params={"id": question}).text
    assert "Answered: <b>PT</b>" in page
    assert "Why: <bdi>in Porto</bdi>" in page
    assert 'name="value" value="PT" checked' in page
    assert 'name="why" value="in Porto"' in page
    taken_back = shop_desk.post("/question", id=question, withdraw="1")
    listed = shop_desk.get(taken_back.headers["location"].removeprefix(shop_desk.base)).text
    assert "Withdrawn: " in listed
    assert "Answered: " not in listed


def test_a_status_that_is_not_known_is_a_row_without_a_class() -> None:
    asked = AskedQuestion(
        id="reconcile.order_statuses",
        text="what?",
        state="open",
        value="paid=sale",
        choices=[Choice("7"), Choice("a=b, c"), Choice("paid=sale")],
    )
    rows = question_page(asked, Texts("en")).table
    assert [(row.value, row.chosen) for row in rows] == [
        ("7", ""),
        ("a=b, c", ""),
        ("paid", "sale"),
    ]


def test_names_of_customers_are_text_on_a_match() -> None:
    pages = Pages(Texts("en"))
    pages.globals |= {"base": "", "form_token": ""}
    asked = AskedQuestion(
        id="match:a/1",
        text="the same?",
        state="open",
        choices=[Choice(MARKUP, MARKUP)],
        examples=[MARKUP],
    )
    pair = Pair(
        1, MARKUP, f"\N{RIGHT-TO-LEFT OVERRIDE}{MARKUP}", MARKUP, [MARKUP], [(MARKUP, MARKUP)]
    )
    page = QuestionPage(
        question=asked,
        text=MARKUP,
        language="",
        state_words="open",
        choices=[ChoiceRow(MARKUP, MARKUP, [MARKUP])],
        pair=pair,
    )
    body = bytes(pages.page("question", page=page, error="", typed="").body).decode()
    assert MARKUP not in body
    assert "\N{RIGHT-TO-LEFT OVERRIDE}" not in body
    assert body.count(ESCAPED) >= 6


def test_the_report_is_shown_with_its_own_policy(shop_desk: Browser) -> None:
    response = shop_desk.get("/report/page")
    assert response.status_code == 200
    assert "<title>Sales and data of " in response.text
    assert response.headers["content-security-policy"].startswith("default-src 'none'")
    assert "script-src" not in response.headers["content-security-policy"]
    page = shop_desk.get("/report").text
    assert f'href="{shop_desk.base}/report/file"' in page
    assert "orderbridge report" not in page
    file = shop_desk.get("/report/file")
    as_of = re.search(r"As of [0-9-]{10} [0-9:]{5}", response.text)
    assert as_of is not None
    assert f"{as_of[0]}," in response.text, "by the clock of the other pages"
    assert re.search(r"As of [0-9-]{10} [0-9:]{5} UTC,", file.text), "it is sent to others"
    assert file.headers["content-disposition"] == 'attachment; filename="report.html"'
    assert file.headers["cache-control"] == "no-store"


def test_spanish_pages_are_spanish(project: Path) -> None:
    with serving(project, language="es") as browser:
        browser.enter()
        page = browser.get("/").text
        assert '<html lang="es">' in page
        assert "Este proyecto aún no está configurado" in page


def test_the_report_of_a_spanish_desk_is_spanish(
    reconciled: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(reconciled.folder))
    with serving(reconciled.folder, language="es") as browser:
        browser.enter()
        assert "<h1>Ventas y datos de " in browser.get("/report/page").text


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (
            "PATCH /products/1/variants/7 (price, stock): no answer came",
            "producto 1, variante 7 (precio, existencias): no llegó respuesta",
        ),
        (
            "PATCH /products/1/variants/7: the connection broke off, or what arrived is not HTTP",
            "producto 1, variante 7: la conexión se cortó, o lo que llegó no es HTTP",
        ),
        (
            "legacy POST /customers: rejected (status 502)",
            "un cliente nuevo: rejected (status 502)",
        ),
        ("PATCHWORK /customers: no", "PATCHWORK /customers: no"),
    ],
)
def test_a_request_is_shown_as_the_record_that_it_is_about(words: str, shown: str) -> None:
    assert Texts("es").known(words) == shown


def test_where_nothing_was_reconciled_the_report_says_how_it_is_made(project: Path) -> None:
    with serving(project) as browser:
        browser.enter()
        page = browser.get("/report").text
        assert "There is no report yet" in page
        assert "<iframe" not in page


def test_files_that_are_open_and_numbers_without_a_sign_are_named_in_spanish(
    tmp_path: Path,
) -> None:
    texts = Texts("es")
    (lock := tmp_path / "~$clientes.xlsx").write_bytes(b"\x05Marta")
    with pytest.raises(UsageError) as error:
        open_table(lock)
    assert texts.known(error.value.message).startswith("~$clientes.xlsx no es una tabla: ")
    assert texts.known(error.value.hint) == "Use el archivo mismo: clientes.xlsx"
    for signs, shown in ((("", "€"), "(sin signo, €)"), (("€", ""), "(€, sin signo)")):
        words = Reading("number", signs=signs).words("currency")
        assert shown in texts.reworded(words, "reject")


def test_thousands_are_separated_within_texts_too() -> None:
    assert Texts("en")("send.go", count=98_000) == "Send 98,000 requests"
    assert Texts("es")("send.go", count=1) == "Hacer un envío"


@pytest.mark.parametrize(
    ("variables", "language"),
    [({"LC_ALL": "es_PE.UTF-8", "LANG": "en_US"}, "es"), ({"LANG": "de_DE"}, "en"), ({}, "en")],
)
def test_the_language_is_that_of_the_locale(
    variables: dict[str, str], language: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    assert language_of_locale() == language


def test_a_question_is_asked_in_the_language_of_the_page_where_its_words_are_known() -> None:
    known = AskedQuestion(id="reconcile.timezone", text="Which time zone?", state="open")
    other = AskedQuestion(id="finding:x", text="A finding.", state="open")
    first, second = question_rows([known, other], Texts("es"))
    assert first.text.startswith("¿En qué zona horaria")
    assert (first.language, second.text, second.language) == ("", "A finding.", "en")
    assert question_rows([known], Texts("en"))[0].text == "Which time zone?"


def test_what_a_good_run_printed_in_english_is_not_on_a_page_of_another_language() -> None:
    good = Progress(was_started=True, is_good=True, summary=["findings: 459 info"])
    bad = Progress(was_started=True, summary=["findings: 459 info"])
    pages = Pages(Texts("es"))
    pages.globals |= {"base": "", "form_token": ""}
    shown = [pages.page("progress", progress=one, url="/run/progress").body for one in (good, bad)]
    assert b"Terminado. Lo nuevo" in shown[0]
    assert [b"459 info" in one for one in shown] == [False, True]


@pytest.mark.parametrize(
    ("kept", "shown"),
    [
        ("1,234 orders, 0.5 EUR; 7654321.5 PEN, used now", "1.234 pedidos, 0,5 EUR; 7.654.321,5 PEN"),
        ("9.4 to /products/4/variants/8 on 2026-11-30 21:17 UTC",
         "9,40 al producto 4, variante 8, el 30/11/2026 21:17 UTC"),
        ("these orders sum to 54,126.85, their lines to 1,050.00",
         "estos pedidos suman 54.126,85, y sus líneas, 1.050,00"),
        ("  10:00 on 2026-11-30, if utc", "  las 10:00 del 30/11/2026, si es utc"),
        ("order 1,234 is written as 2026-11-30, without a zone. Answer with the zone of your office.",
         "el pedido 1,234 pone 2026-11-30, sin zona. Responda con la zona de su oficina."),
    ],
)  # fmt: skip
def test_numbers_and_dates_are_in_the_notation_of_the_language(kept: str, shown: str) -> None:
    assert Texts("es").known(kept) == shown


def test_customers_that_differ_there_are_one_reason_in_words_of_the_page() -> None:
    words = "phone 961 on the platform, 96 99 in the file; lastName Gil on the platform, Gal in the file"
    of_line = {"outcome": "exists_differs", "field": "", "code": "exists_differs", "lines": 1}
    reasons = [
        {**of_line, "words": words, "rows": [{"line": line, "words": words, "message": ""}]}
        for line in (2, 3)
    ]
    difference = {
        "line": 2, "about": ["C1", "Bar"], "field": "phone", "file_value": "96 99", "platform_value": "",
    }  # fmt: skip
    suspicious = [
        {"field": "phone", "code": "few_digits", "words": "?", "lines": 7, "first": [4, 9]}
    ]
    notes = [
        "price lists 1, 2 were not checked: price_lists: never read (orderbridge pull price_lists)",
        "PVP: decimal comma (detected from its numbers)",
        "encoding: cp1252 (assumed); check the accented letters with orderbridge preview",
    ]
    plan = plan_page(
        {
            "changes": {"reasons": reasons, "notes": notes, "differences": [difference]},
            "plan": {"suspicious": suspicious},
        },
        Texts("es"),
    )
    (reason,) = plan.reasons
    assert (reason.lines, reason.words) == (
        2,
        "la plataforma tiene otros valores: se cambian allí, a mano",
    )
    assert (reason.rows, reason.hidden) == ([], 0)
    assert [*plan.differences] == [Difference(2, "C1 · Bar", "teléfono", "96 99", "")]
    assert [*plan.suspicious] == ["teléfono tiene menos de seis cifras: líneas 4, 9 …"]
    unread, encoding = plan.notes
    assert "Leer las listas ahora" in unread
    assert "se ha leído como Windows (Europa occidental)." in encoding
    assert plan.read_as == ["PVP: decimales con coma (visto en sus números)"]


@pytest.mark.parametrize(
    ("kind", "verify", "error", "is_unverified"),
    [
        ("customers", None, {"message": "another run holds the lock"}, True),
        ("customers", {"outcomes": {"same": 2}}, {"message": "no workbook"}, False),
        ("customers", {"outcomes": {"same": 2}}, None, False),
        ("variants", None, {"message": "another run holds the lock"}, False),
    ],
)
def test_what_was_sent_and_not_read_back_is_said(
    kind: str,
    verify: dict[str, object] | None,
    error: dict[str, str] | None,
    is_unverified: bool,
) -> None:
    document = {"kind": kind, "state": "sent", "verify": verify, "error": error}
    assert plan_page(document, Texts("es")).is_unverified is is_unverified


def test_each_field_of_a_document_has_a_column_of_its_own() -> None:
    documents = [{"number": "B1", "fiscalName": "Bar"}, {"number": "B2", "isDefault": True}]
    values = [{"field": "firstName", "new": "Ana"}, {"field": "documents", "new": documents}]
    created = [{"line": 2, "record": "", "values": values}]
    table = plan_page({"changes": {"changes": created}}, Texts("es")).created
    assert dict(zip(table.fields, table.rows[0][1], strict=True)) == {
        "nombre": "Ana",
        "NIF, RUC": "B1; B2",
        "razón social": "Bar",
        "documento predeterminado: sí o no": "Sí",
    }


@pytest.mark.parametrize(
    ("host", "environment", "words"),
    [
        ("http://127.0.0.1:8711", "sandbox", "A la tienda de pruebas de este ordenador"),
        (
            "https://api.shop.test",
            "sandbox",
            "Al entorno de pruebas de la plataforma, api.shop.test",
        ),
        ("https://api.shop.test/v2", "production", "A la tienda real, api.shop.test."),
        ("http://127.0.0.1:8711", "production", "A la tienda real, 127.0.0.1:8711."),
    ],
)
def test_where_a_file_is_sent_is_said_in_words(host: str, environment: str, words: str) -> None:
    agreement = {"host": host, "environment": environment, "operations": 1}
    shown = plan_page({"agreement": agreement}, Texts("es")).agreement
    assert shown is not None
    assert shown.target.startswith(words)


def test_a_line_that_repeats_a_sent_one_counts_as_sent(tmp_path: Path) -> None:
    outcomes = {2: "confirmed", 3: "merged", 4: "unchanged", 5: "exists_same"}
    rows = [f"{line},{outcome}" + "," * 7 for line, outcome in outcomes.items()]
    (tmp_path / "results").mkdir()
    text = "\n".join([",".join(RESULT_COLUMNS), *rows])
    (tmp_path / "results" / "confirmed.csv").write_text(text, "utf-8")
    assert confirmed_lines(tmp_path) == {2, 3}
    (tmp_path / "results" / "confirmed.csv").write_text("line\nx", "utf-8")
    assert confirmed_lines(tmp_path) == set()
    assert confirmed_lines(tmp_path / "gone") == set()


def test_prices_that_jump_are_looked_at_first() -> None:
    jumps = [{"before": "12.5", "now": "1250", "power": 2, "line": 3}] * 7
    plan = {"price_jumps": jumps, "price_jumps_in_all": 7, "suspicious": []}
    (shown,) = plan_page({"plan": plan}, Texts("es")).suspicious
    assert shown.startswith(
        "7 precios cambian mucho: quizá la coma está mal puesta: línea 3 (12,50 → "
    )
    assert shown.count("1.250,00") == 5
    assert shown.endswith(" …")

    record = {"record": "/products/1/variants/2", "values": []}
    change = {**record, "line": 3, "about": ["A-1", "Barra de pan"]}
    plan = {**plan, "price_jumps": jumps[:1], "price_jumps_in_all": 1}
    document = {"plan": plan, "changes": {"changes": [change]}}
    (shown,) = plan_page(document, Texts("es")).suspicious
    assert shown.endswith("línea 3, A-1 · Barra de pan (12,50 → 1.250,00)")


def test_lines_of_one_article_are_corrected_at_its_code() -> None:
    words = "line 6 has the same productId, variantId, but another PVP"
    cells = {"Código": "A-1", "PVP": "5"}
    row = {"line": 2, "words": words, "message": "", "cells": cells}
    reason = {"outcome": "rejected", "field": "productId, variantId", "code": "conflicting_lines"}
    columns = [("Código", ["erpCode"]), ("PVP", ["price"])]
    document = {
        "columns": [{"name": name, "fields": fields} for name, fields in columns],
        "changes": {"reasons": [{**reason, "words": words, "lines": 1, "rows": [row]}]},
    }
    (line,) = corrections_of(document, Texts("es")).rows
    assert line.reason == "comparte el artículo con la línea 6, que tiene otros datos en: PVP"
    assert [cell.is_wrong for cell in line.cells] == [True, False]


def test_lines_that_wait_come_before_those_that_were_sent_corrected() -> None:
    rows = [{"line": n, "words": "", "cells": {"Correo": f"{n}@"}} for n in range(2, 104)]
    reason = {"outcome": "rejected", "code": "", "field": "email", "words": "", "lines": 102}
    document = {
        "columns": [{"name": "Correo", "fields": ["email"]}],
        "changes": {"reasons": [{**reason, "rows": rows}]},
    }
    sent = {
        cells_key({"Correo": f"{n}@"}): SentBefore(datetime(2026, 12, 1, tzinfo=UTC), "/import/x")
        for n in (2, 3, 4)
    }
    found = corrections_of(document, Texts("es"), settled=Settled(sent))
    assert [one.line for one in found.rows] == [*range(5, 104), 2]
    assert (found.shown, found.hidden) == (99, 0)
    assert corrections_of(document, Texts("es")).hidden == 2


def test_a_line_of_totals_does_not_count_as_one_to_correct_but_can_be() -> None:
    reason = {"outcome": "rejected", "field": "", "words": "", "lines": 1}
    rows = {
        "totals": {"line": 2, "words": _TOTALS_REASON, "cells": {"Nombre": "TOTAL GENERAL"}},
        "required": {"line": 3, "words": "", "cells": {"Nombre": ""}},
    }
    reasons = [{**reason, "code": code, "rows": [row]} for code, row in rows.items()]
    reasons[0]["lines"] = 500  # of which the document has the first ones
    columns = [{"name": "Nombre", "fields": ["firstName"]}]
    found = corrections_of({"columns": columns, "changes": {"reasons": reasons}}, Texts("es"))
    assert [one.line for one in found.rows] == [3, 2]
    assert (found.waiting, found.sent) == (1, 0)
    assert "no hay que hacer nada" in found.rows[1].reason
    only = {"columns": columns, "changes": {"reasons": reasons[:1]}}
    step = {"action": "correct", "words": ""}
    assert plan_page({**only, "next": [step]}, Texts("es")).next == []


def test_what_is_not_shown_of_the_differences_is_said() -> None:
    one = {"line": 2, "about": [], "field": "phone", "file_value": "96", "platform_value": ""}
    changes = {"differences": [one] * 200, "difference_count": 1234}
    plan = plan_page({"changes": changes, "folder": "/shop/plan-1"}, Texts("es"))
    assert (len(plan.differences), plan.difference_count, plan.folder) == (
        200,
        1234,
        "/shop/plan-1",
    )


def test_lines_corrected_apart_are_no_results_of_a_file_that_was_not_sent() -> None:
    rows = [{"line": n, "words": "", "cells": {"Correo": f"{n}@"}} for n in (6, 7)]
    reason = {"outcome": "rejected", "code": "", "field": "email", "words": "", "lines": 2}
    changes = {"counts": {"create": 3, "rejected": 2}, "reasons": [{**reason, "rows": rows}]}
    suspicious = [{"field": "phone", "code": "few_digits", "words": "?", "lines": 1, "first": [4]}]
    document = {
        "columns": [{"name": "Correo", "fields": ["email"]}],
        "changes": changes,
        "plan": {"suspicious": suspicious},
    }
    page = plan_page(document, Texts("es"), {6, 7})
    assert page.results == []
    assert [(one.outcome, one.lines) for one in page.counts] == [("create", 3), ("corrected", 2)]

    # lines that an earlier import has sent are not rejected either
    at = datetime(2026, 12, 1, tzinfo=UTC)
    sent = {cells_key({"Correo": "6@"}): SentBefore(at, "/import/x")}
    page = plan_page(document, Texts("es"), settled=Settled(sent))
    assert [(one.outcome, one.lines) for one in page.counts] == [
        ("create", 3), ("rejected", 1), ("corrected", 1),
    ]  # fmt: skip
    assert [one.lines for one in page.reasons] == [1]


def test_the_heading_of_lines_with_different_reasons_is_an_example() -> None:
    reason = {"outcome": "rejected", "field": "email", "code": "required", "words": "line 6"}
    rows = [{"line": line, "words": f"line {line}", "message": ""} for line in (6, 9)]
    plan = plan_page({"changes": {"reasons": [{**reason, "lines": 2, "rows": rows}]}}, Texts("es"))
    assert [one.words for one in plan.reasons] == ["por ejemplo: line 6"]


def test_the_cells_to_correct_come_first_and_columns_that_are_not_sent_last() -> None:
    columns = [("Nota", []), ("Nombre", ["firstName"]), ("Correo", ["email"])]
    cells = {name: "x" for name, _ in columns}
    words = "Correo: is required"
    row = {"line": 2, "words": words, "message": "", "cells": cells}
    reason = {"outcome": "rejected", "field": "email", "code": "required", "words": words}
    document = {
        "columns": [{"name": name, "fields": fields} for name, fields in columns],
        "changes": {"reasons": [{**reason, "lines": 1, "rows": [row]}]},
    }
    shown = corrections_of(document, Texts("en"))
    assert [shown.columns[at] for at in shown.order] == ["Correo", "Nombre", "Nota"]


def test_times_are_by_the_clock_of_the_project(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECONCILE__TIMEZONE", "America/Lima")
    pages = Pages(Texts("es"))
    pages.globals |= {"base": "", "form_token": ""}
    at = datetime(2026, 12, 1, 3, 17, tzinfo=UTC)
    words = "7 to /products/4/variants/8 on 2026-12-01 03:17 UTC"
    row = NightRow(at=at, command="", result="", is_good=True)
    page = str(pages.page("home", view=Home(project="", nights=[row], is_empty=True)).body, "utf-8")
    assert "30/11/2026 22:17" in page
    assert pages.texts.known(words).endswith("el 30/11/2026 22:17")


def test_values_of_a_plan_are_in_the_notation_of_the_language() -> None:
    values = [{"field": "price", "new": new, "old": None, "how": ""} for new in (1234.5, 0.125, 7)]
    change = {"line": 2, "record": "products/1/variants/2", "about": [], "values": values}
    plan = plan_page({"changes": {"changes": [change]}}, Texts("es"))
    assert [value.new for value in plan.changes[0].values] == ["1.234,50", "0,125", "7,00"]


def test_reasons_for_an_answer_are_in_the_language_of_the_page_or_marked_english() -> None:
    pages = Pages(Texts("es"))
    pages.globals |= {"base": "", "form_token": ""}
    asked = AskedQuestion(
        id="reconcile.order_statuses",
        text="what?",
        state="open",
        reason="something that nobody has `translated`; the column is empty",
        choices=[Choice("7", "26 orders, 54126.85 PEN, used now")],
        otherwise="where it is not fine. Give each customer a unique login code on the platform.",
    )
    page = question_page(asked, pages.texts)
    body = bytes(pages.page("question", page=page, error="", typed="").body).decode()
    assert (
        '<span lang="en">something that nobody has <code>translated</code></span>; la columna'
        in body
    )
    assert "26 pedidos, 54.126,85 PEN" in body
    assert "<p>Si no está bien: Dé a cada cliente un código" in body
    assert body.count('lang="en"') == 1


def test_each_text_is_used_and_each_used_text_is_there_in_both_languages() -> None:
    used: set[str] = set()
    sources = [*DESK.glob("*.py"), *DESK.glob("templates/*.j2")]
    everything = "\n".join(path.read_text() for path in sources)
    used.update(re.findall(r'["\']([a-z0-9_]+(?:\.[a-z0-9_]+)+)["\']', everything))
    begun = set(re.findall(r'["\']([a-z_.]+\.)(?:\{|["\'] ~)', everything))
    for code, texts in catalogue().items():
        assert set(texts) == set(LANGUAGES), code
        fields = [
            {name for _, name, _, _ in string.Formatter().parse(texts[one]) if name}
            for one in LANGUAGES
        ]
        assert fields[0] == fields[1], code
        assert code.removesuffix(".one") in used or code.startswith(tuple(begun)), (
            f"{code} is not used"
        )
    plain = {
        code for code in CODE.findall(everything) if "{" not in code and not code.endswith(".")
    }
    assert plain - set(catalogue()) == set()


def test_codes_that_are_made_of_what_the_program_knows_have_their_texts() -> None:
    held_up = [name for setting in SETTINGS.values() for name in setting.holds_up]
    fields = [path for kind in KINDS for path in all_paths(kind)]
    made = {
        *(f"import.state.{one}" for one in get_args(imports.State)),
        *(f"kind.{kind}" for kind in KINDS),
        *(f"kind.{kind}.what" for kind in KINDS),
        *(f"verdict.{one}" for one in get_args(Verdict)),
        *(f"state.{one}" for one in get_args(State)),
        *(f"outcome.{one}" for one in FILE_OF),
        *(f"list.{name}" for name in LISTS),
        *(f"class.{one}" for setting in SETTINGS.values() for one in setting.classes),
        *(f"figures.{'.'.join(name.split('.')[:2])}" for name in held_up if name.startswith("bi.")),
        *(f"field.{path}" for path in fields),
        *(f"field.{COMPARED.get(name, name)}" for name in (*COMPARISONS, *WEIGHTS)),
    }
    assert made - {*catalogue(), *command_texts()} == set()


def test_a_bug_is_a_page_and_its_place_is_in_the_terminal(
    desk: Browser, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        "orderbridge.pipelines.desk.routes.home", mock.Mock(side_effect=KeyError("Ana"))
    )
    response = desk.get("/")
    assert response.status_code == 500
    assert "internal error in orderbridge: KeyError" in response.text
    assert response.headers["content-security-policy"].startswith("default-src 'self'")
    shown = capsys.readouterr().err
    assert "routes.py" in shown
    assert "Ana" not in response.text + shown


def test_nights_are_in_the_order_in_which_they_ended() -> None:
    """A run that began before another one failed, and ended after it, is the last one."""
    ends = {minutes: datetime(2026, 3, 2, 4, minutes, tzinfo=UTC) for minutes in (7, 31, 53)}
    runs = [
        {
            "command": "run", "exit_code": 0, "started_at": ends[7] + timedelta(minutes=began),
            "ended_at": ends[ended].replace(tzinfo=None),
        }
        for began, ended in ((11, 53), (-17, 7))
    ]  # fmt: skip
    failed = {"command": "pull", "exit_code": 4, "message": "", "failed_at": ends[31].isoformat()}
    rows = nights(Status("w.duckdb", runs=runs, failed_runs=[failed]), Texts("en"))
    assert [row.at for row in rows] == [ends[53], ends[31], ends[7]]


def test_a_plan_of_a_file_in_the_root_of_the_disk_is_of_no_import_here(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text('{"input": {"path": "/clientes.csv"}}', "ascii")
    assert imports.import_of_plan(tmp_path) is None
