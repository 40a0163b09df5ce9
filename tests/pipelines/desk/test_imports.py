"""A file from the page to the platform: read, asked about, checked, corrected, confirmed, sent, and gone on with."""

from __future__ import annotations

import html
import io
import json
import os
import re
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from urllib.parse import unquote

import pytest

from orderbridge.pipelines.desk.imports import find_import, safe_name
from orderbridge.pipelines.desk.jobs import Job
from orderbridge.pipelines.desk.plans import plan_page
from orderbridge.pipelines.desk.texts import Texts
from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.warehouse.lock import run_lock
from orderbridge.sources.disk import write_private
from orderbridge.sources.settings import ledger_path
from tests.pipelines.bridge import Bridge
from tests.pipelines.desk.browser import (
    Browser,
    columns_of,
    drop,
    hidden,
    seen_at_its_end,
    serving,
)
from tests.pipelines.desk.forks import Forks, killed_at

CUSTOMERS = (
    "Código;Nombre;Apellidos;Correo\r\n"
    + "".join(f"07{n:04d};Ana;Peña;ana{n}@example.com\r\n" for n in range(5))
    + "070100;Sin;Correo;\r\n070101;Mal;Correo;no es un correo\r\n"
).encode("cp1252")
MARKUP = "<script>alert(1)</script>"


@pytest.fixture
def project(published: Bridge, monkeypatch: pytest.MonkeyPatch) -> Bridge:
    """A sandbox that was read, with its settings."""
    monkeypatch.setenv("DLT_PROJECT_DIR", str(published.folder))
    monkeypatch.setenv("SOURCES__LEGACY__LOGIN_MODE", "email")
    return published


@pytest.fixture
def desk(project: Bridge) -> Iterator[Browser]:
    with serving(project.folder) as browser:
        browser.enter()
        yield browser


def planned(browser: Browser, content: bytes = CUSTOMERS) -> tuple[str, str]:
    """A file of customers that waits for its confirmation: its path, and the page."""
    path = drop(browser, content)
    return path, with_passwords(browser, path)


def with_passwords(browser: Browser, path: str) -> str:
    """The page of an import that has new customers, after its question of their passwords was answered."""
    page = seen_at_its_end(browser, path)
    (question,) = set(re.findall(r'name="(answer:import:[^"]+/passwords)"', page))
    assert browser.post(f"{path}/answers", **{question: "file"}).status_code == 303
    return seen_at_its_end(browser, path)


def send(browser: Browser, path: str, page: str, **more: str) -> str:
    response = browser.post(f"{path}/send", shown=hidden(page, "shown"), **more)
    assert response.status_code == 303, response.text
    return seen_at_its_end(browser, path)


def job_of(path: str) -> Job:
    """The command of the import whose page has a path."""
    one = find_import(path.removeprefix("/import/"))
    assert one is not None
    return one.job


def created(project: Bridge) -> Counter[str]:
    """How often each code of the file is on the platform."""
    rows = project.platform.state.records("customers")
    codes = [str(row["erpCode"]) for row in rows if str(row.get("erpCode", "")).startswith("07")]
    return Counter(codes)


def test_a_file_is_read_checked_corrected_and_sent(desk: Browser, project: Bridge) -> None:
    path, page = planned(desk)
    assert "Send 5 lines" in page
    assert "2 lines to correct" in page
    assert created(project) == {}

    # one wrong cell is corrected, the other line stays as it is
    cells = dict(re.findall(r'<input name="(cell:[0-9:]+)" value="([^"]*)"', page))
    assert len(cells) == 8
    fixed = desk.post(f"{path}/correct", **{**cells, "cell:7:3": "sin@example.com"})
    assert fixed.status_code == 303, fixed.text
    correction = fixed.headers["location"].removeprefix(desk.base)
    assert correction == f"{path}.2"
    corrected = seen_at_its_end(desk, correction)
    assert "Send one line" in corrected
    assert "The other lines of clientes.csv" in corrected
    assert "5 of its lines are not sent yet" in corrected
    assert "One of its rejected lines is not corrected yet" in corrected
    assert '<td class="n">7</td>' in corrected, "the line of the person's own file"
    assert "In either order" in page
    assert re.search(">line 7</a>.*to be confirmed<", page_of_first := desk.get(path).text)
    assert set(re.findall(r'name="cell:([0-9]+):', page_of_first)) == {"8"}, "once"
    assert "What became of each line" not in page_of_first, "nothing was sent"

    # a corrected line that is wrong again can be corrected again
    wrong = desk.post(f"{path}/correct", **{**cells, "cell:8:3": "mal@example"})
    again = wrong.headers["location"].removeprefix(desk.base)
    page_again = seen_at_its_end(desk, again)
    ((cell, value),) = re.findall(r'<input name="(cell:[0-9:]+:3)" value="([^"]*)"', page_again)
    assert value == "mal@example"
    assert re.search(">line 8</a>.*One of its rejected lines is not corrected", desk.get(path).text)
    last = desk.post(f"{again}/correct", **{cell: "mal@example.com"})
    left = last.headers["location"].removeprefix(desk.base)
    assert "Send one line" in seen_at_its_end(desk, left)
    assert desk.post(f"{left}/remove").status_code == 303

    after = send(desk, correction, corrected)
    assert "5 of its lines are not sent yet" in after
    assert f'class="button" href="{desk.base}{path}#send"' in after
    page = desk.get(path).text
    assert page.count("Its corrected lines were sent") == 2, "beside the buttons to send and forget"
    assert "othing of it was sent" not in page
    assert "corrected lines: 7" in desk.get("/import").text
    page = send(desk, path, page)
    assert re.findall("<b>([0-9]+)</b> ([a-z ]+)", page)[:2] == [
        ("5", "confirmed"), ("2", "corrected apart"),
    ]  # fmt: skip
    assert "Why lines are not sent" not in page
    assert "clientes.csv</bdi>" in page
    assert ">sent<" in page
    assert "not sent yet" not in desk.get(correction).text
    page = desk.get(path).text
    assert re.search(">line 7</a>.*>sent<", page)
    assert 'name="cell:' not in page, "each is on a page of its own, and is not sent twice"
    assert created(project) == {f"07{n:04d}": 1 for n in range(5)} | {"070100": 1}
    assert "Imports that are not finished" not in desk.get("/").text
    workbook = desk.get(f"{path}/workbook")
    assert workbook.content.startswith(b"PK")
    assert "attachment" in workbook.headers["content-disposition"]

    # the same file again: what was sent corrected is not asked for once more
    again = drop(desk, CUSTOMERS)
    page = seen_at_its_end(desk, again)
    assert "One line to correct" in page
    assert re.search(f'<td class="n">7</td>.*{correction}">corrected and sent on ', page)
    assert not re.search('<td class="n">8</td>.*corrected and sent on ', page)
    fixed = desk.post(f"{again}/correct", **{"cell:8:3": "mal@example.com"})
    correction = fixed.headers["location"].removeprefix(desk.base)
    send(desk, correction, seen_at_its_end(desk, correction))
    page = seen_at_its_end(desk, drop(desk, CUSTOMERS))
    assert "2 lines that you have corrected and sent before" in page
    assert "What to do now" not in page


def test_a_correction_of_a_correction_counts_for_all_parts_of_its_file(desk: Browser) -> None:
    path, _ = planned(desk)
    wrong = {"cell:7:3": "sin@example.com", "cell:8:3": "mal@example"}
    fixed = desk.post(f"{path}/correct", **wrong)
    correction = fixed.headers["location"].removeprefix(desk.base)
    assert "Send one line" in seen_at_its_end(desk, correction)
    fixed = desk.post(f"{correction}/correct", **{"cell:8:3": "mal@example.com"})
    last = fixed.headers["location"].removeprefix(desk.base)
    page = seen_at_its_end(desk, last)
    assert "6 of its lines are not sent yet" in page, "5 of the file, and one corrected before"
    after = send(desk, last, page)
    assert "6 of its lines are not sent yet" in after
    for each in (path, correction):
        assert "Its corrected lines were sent" in desk.get(each).text, each
        assert "othing of it was sent" not in desk.get(each).text, each

    # a correction is forgotten, and what was corrected in it is known to be sent still
    assert desk.post(f"{correction}/remove").status_code == 303
    page = desk.get(path).text
    assert "Its corrected lines were sent" in page
    assert re.search(f'<td class="n">8</td>.*{last}">corrected and sent on ', page)
    assert "One line to correct" in page

    # so is the file itself
    assert desk.post(f"{path}/remove").status_code == 303
    page = seen_at_its_end(desk, drop(desk, CUSTOMERS))
    assert re.search(f'<td class="n">8</td>.*{last}">corrected and sent on ', page)
    assert "One line to correct" in page


def test_the_other_line_of_a_pair_goes_along_with_the_corrected_one(desk: Browser) -> None:
    pair = "Código;Nombre;Apellidos;Correo\r\n070001;Ana;Peña;ana@example.com\r\n"
    path = drop(desk, f"{pair}070001;Eva;Gil;eva@example.com\r\n070002;;;x\r\n".encode())
    assert "3 lines to correct" in seen_at_its_end(desk, path)
    fixed = desk.post(f"{path}/correct", **{"cell:3:0": "070003"})
    corrected = with_passwords(desk, fixed.headers["location"].removeprefix(desk.base))
    assert "Send 2 lines" in corrected
    assert "One of its rejected lines is not corrected yet" in corrected


def test_a_line_that_is_not_to_be_sent_is_left_out_until_it_is_taken_back(
    desk: Browser, project: Bridge
) -> None:
    path, page = planned(desk)
    assert page.count('type="checkbox"') == 2
    assert desk.post(f"{path}/correct", **{"leave:7": "yes"}).status_code == 303
    page = desk.get(path).text
    assert "One line to correct" in page
    assert re.search('<td class="n">7</td>.*stays out', page)
    assert re.search('name="leave:7"[^>]* checked', page)
    assert re.findall("<b>([0-9]+)</b> ([a-z, ]+)", page)[:3] == [
        ("5", "are created"), ("1", "rejected"), ("1", "left out by you"),
    ]  # fmt: skip
    assert "is required" not in page.partition("Why lines are not sent")[2]
    assert "No cell was changed" in desk.post(f"{path}/correct", **{"leave:7": "yes"}).text

    # it is left out of the same file next month, too
    other = drop(desk, CUSTOMERS + b"070009;Ana;Gil;ana9@example.com\r\n")
    page = seen_at_its_end(desk, other)
    assert "One line to correct" in page
    assert re.search('name="leave:7"[^>]* checked', page)

    # taken back there, and corrected; the other line is left out beside it
    cells = {"cell:7:3": "sin@example.com", "leave:8": "yes"}
    fixed = desk.post(f"{other}/correct", **cells)
    correction = fixed.headers["location"].removeprefix(desk.base)
    assert correction == f"{other}.2"
    send(desk, correction, seen_at_its_end(desk, correction))
    assert created(project) == {"070100": 1}
    page = desk.get(other).text
    assert "<h2>One line that you have left out</h2>" in page
    page = seen_at_its_end(desk, drop(desk, CUSTOMERS))
    assert re.search('<td class="n">7</td>.*corrected and sent on', page)
    assert re.search('name="leave:8"[^>]* checked', page)
    assert "One line to correct" not in page


def test_the_other_line_of_a_pair_is_sent_where_one_is_left_out(desk: Browser) -> None:
    pair = "Código;Nombre;Apellidos;Correo\r\n070001;Ana;Peña;ana@example.com\r\n"
    path = drop(desk, f"{pair}070001;Eva;Gil;eva@example.com\r\n".encode())
    assert "2 lines to correct" in seen_at_its_end(desk, path)
    fixed = desk.post(f"{path}/correct", **{"leave:3": "yes"})
    corrected = with_passwords(desk, fixed.headers["location"].removeprefix(desk.base))
    assert "Send one line" in corrected
    assert "ana@example.com" in corrected
    assert "eva@example.com" not in corrected
    assert "not corrected yet" not in corrected


def test_passwords_are_in_the_file_that_the_page_names_and_on_no_page(
    desk: Browser, project: Bridge
) -> None:
    path, page = planned(desk)
    page = send(desk, path, page)
    found = re.search(r"The folder of the file: <code>([^<]+)</code>", page)
    assert found is not None
    assert "5 customers · lines of the file that were right " in page
    assert "Each customer needs their own to log in" in page
    assert "Delete the file once all of them are handed out" in page
    assert f'data-copy="{found[1]}"' in page
    file = Path(found[1]) / "passwords.csv"
    assert file.stat().st_mode & 0o777 == 0o600
    passwords = [line.split(";")[-1].split(",")[-1] for line in file.read_text().splitlines()[1:]]
    assert len(passwords) == 5
    for shown in (
        page,
        desk.get("/").text,
        *(p.read_text() for p in desk.folder.glob("desk/*/*.*")),
    ):
        assert not [one for one in passwords if one in shown]

    # lines that are corrected have a file of their own, and each page names both
    fixed = desk.post(f"{path}/correct", **{"cell:7:3": "sin@example.com"})
    correction = fixed.headers["location"].removeprefix(desk.base)
    page = send(desk, correction, seen_at_its_end(desk, correction))
    for shown in (page, desk.get(path).text):
        assert "They are in 2 files passwords.csv" in shown
        assert re.search(f"5 customers · lines of the file that were right [^·]*{found[1]}<", shown)
        assert re.search("One customer · line 7 ", shown)
    file.unlink()
    assert "Delete the file once" in desk.get(path).text
    assert found[1] not in desk.get(path).text


def test_how_customers_get_their_passwords_is_shown_changed_and_kept(
    desk: Browser, project: Bridge
) -> None:
    other = drop(desk, CUSTOMERS.replace(b"\n07", b"\n09").replace(b"ana", b"eva"), "otros.csv")
    page_of_other = seen_at_its_end(desk, other)
    (question,) = set(re.findall(r'name="(answer:import:[^"]+/passwords)"', page_of_other))
    path, page = planned(desk)
    assert "kept in passwords.csv, which only you can open" in page
    assert "mails" not in re.sub("(?s)<details>.*?</details>", "", page)
    desk.post(f"{path}/answers", **{question: "mail"})
    page = seen_at_its_end(desk, path)
    assert "The platform mails their password to 5 new customers" in page
    desk.post(f"{path}/answers", **{question: "file"})
    page = seen_at_its_end(desk, path)
    assert "mails their password" not in page
    send(desk, path, page)
    assert len([*project.folder.glob("*/passwords.csv")]) == 1

    # the other file waited for the same answer, and its question has ended with the first one
    assert desk.post(f"{other}/answers", **{question: "mail"}).status_code == 303
    page = seen_at_its_end(desk, other)
    assert "mails their password to 5 new customers" in page
    assert "mails their password to 5 new customers" in send(desk, other, page)

    next_week = drop(desk, CUSTOMERS.replace(b"\n0700", b"\n0710").replace(b"ana", b"luz"))
    page = seen_at_its_end(desk, next_week)
    assert "Before it can go on" not in page, "nothing is asked again"
    assert "kept in passwords.csv" in page


def test_nothing_is_sent_to_production_before_its_number_is_typed(
    project: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCES__LEGACY__ENVIRONMENT", "production")
    monkeypatch.setenv("SOURCES__PUBLIC_V1__API_KEY", project.platform.v1_live_key)
    with serving(project.folder) as browser:
        browser.enter()
        path, page = planned(browser)
        assert "This is the production platform" in page
        for number in ("", "4", "50"):
            refused = browser.post(f"{path}/send", shown=hidden(page, "shown"), number=number)
            assert "not the number" in refused.text
        assert created(project) == {}
        send(browser, path, page, number="5")
    assert sum(created(project).values()) == 5


def test_a_confirmation_is_for_the_plan_that_was_seen(desk: Browser, project: Bridge) -> None:
    path, page = planned(desk)
    other = desk.post(f"{path}/send", shown="another plan 5")
    assert "not the one that you saw" in other.text
    shown = hidden(page, "shown")
    with ThreadPoolExecutor(2) as tabs:  # two that send at once
        sent = [tabs.submit(desk.post, f"{path}/send", shown=shown) for _ in range(2)]
    assert 303 in [one.result().status_code for one in sent]
    assert ">sent<" in seen_at_its_end(desk, path)
    again = desk.post(f"{path}/send", shown=shown)
    assert again.status_code == 422
    assert created(project) == {f"07{n:04d}": 1 for n in range(5)}


def test_an_import_waits_while_another_one_is_sent_and_can_still_be_forgotten(
    desk: Browser, project: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    path, page = planned(desk)
    own = "Código;Nombre;Apellidos;Correo;Contraseña\r\n080000;Ana;Peña;a@example.com;Clave-080000\r\n"
    other = drop(desk, own.encode(), "otros.csv")
    assert "Send one line" in seen_at_its_end(desk, other)
    columns = desk.get(f"{other}?step=columns").text
    assert ("they may be passwords" in columns, "Clave-080000" in columns) == (True, False)
    with ledger_lock(ledger_path()):
        assert "being sent from a terminal" in desk.get(path).text
        refused = desk.post(f"{path}/send", shown=hidden(page, "shown"))
        assert refused.status_code == 422
        assert "Nothing was sent. Something is being sent from a terminal" in refused.text
        assert "Until now nothing was sent" in refused.text

        # the other one has begun to send just after the desk has looked
        with monkeypatch.context() as late:
            late.setattr("orderbridge.pipelines.desk.import_routes.busy_now", lambda _: None)
            page = send(desk, path, page)
        assert ">to be confirmed<" in page
        assert "Nothing was sent: another file was being sent" in page
        assert "Forget this file" in page
    job = job_of(other)
    write_private(job.log.with_suffix(".words"), b'["import", "--confirm", "5"]')
    with run_lock(job.log, "import", ""):
        waits = desk.get(path).text
        assert f'<a href="{desk.base}{other}">otros.csv is being sent.</a>' in waits
        refused = desk.post(f"{path}/send", shown=hidden(page, "shown"))
        assert "Nothing was sent. otros.csv is being sent" in refused.text
        write_private(job.log.with_suffix(".words"), b'["import"]')
        assert "otros.csv is being checked" in desk.get(path).text
    job.log.touch()
    assert ">sent<" in send(desk, path, page)
    assert desk.post(f"{path}/check").status_code == 303
    assert "Forget this file" not in seen_at_its_end(desk, path), "sent before it was checked again"
    assert created(project) == {f"07{n:04d}": 1 for n in range(5)}
    locked = {"message": "another run holds the lock: process 1 (run)", "exit_code": 8}
    job.result.write_text(json.dumps({"state": "failed", "push": None, "error": locked}))
    page = desk.get(other).text
    assert "The file was not checked: another one was" in page
    assert "holds the lock" not in page
    goes_on = "Go on with otros.csv"
    assert goes_on in desk.get("/").text
    job.result.write_text(json.dumps({"state": "failed", "error": {**locked, "exit_code": 4}}))
    assert goes_on in desk.get("/").text, "the platform was away"
    job.result.write_text(json.dumps({"state": "failed", "error": {**locked, "exit_code": 2}}))
    assert goes_on not in desk.get("/").text, "the file would fail again"


def test_a_column_that_fits_no_field_is_asked_and_can_be_changed_later(desk: Browser) -> None:
    content = CUSTOMERS.replace(b"Correo\r\n", b"Xyz\r\n", 1)
    path = drop(desk, content)
    page = seen_at_its_end(desk, path)
    assert "One column needs an answer" in page
    columns = columns_of(page)
    (asked,) = [name for name in columns if name.endswith("/Xyz")]
    nonsense = desk.post(f"{path}/columns", **{**columns, asked: "firstName"})
    assert nonsense.status_code == 422  # two columns for one field
    assert desk.post(f"{path}/columns", **{**columns, asked: "email"}).status_code == 303
    assert "/passwords" in seen_at_its_end(desk, path)
    kept = columns_of(desk.get(f"{path}?step=columns").text)
    assert kept[asked] == "email"


def test_two_columns_for_one_field_are_marked_and_named_in_the_language_of_the_page(
    project: Bridge,
) -> None:
    content = "Código;Correo;Dirección;CP\r\n07001;a@example.com;Calle 1;28001\r\n"
    with serving(project.folder, language="es") as desk:
        desk.enter()
        path = drop(desk, content.encode("cp1252"))
        page = seen_at_its_end(desk, path)
        page = desk.get(path, params={"step": "columns"}).text
        field = "documents[0].fiscalAddress"
        names = [one for one in columns_of(page) if one.endswith(("Dirección", "CP"))]
        assert len(names) == 2
        refused = desk.post(f"{path}/columns", **dict.fromkeys(names, field))
        assert refused.status_code == 422
        assert "Dirección, CP no pueden rellenar el mismo campo, «dirección fiscal»" in refused.text
        assert "orderbridge answer" not in refused.text
        assert refused.text.count('<tr class="asked">') >= 2
        assert {columns_of(refused.text)[name] for name in names} == {field}


def test_the_code_of_the_erp_is_the_code_that_customers_log_in_with(
    desk: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCES__LEGACY__LOGIN_MODE", "code")
    path = drop(desk, CUSTOMERS)
    page = seen_at_its_end(desk, path)
    assert "choose both fields for its column" in page
    assert "<details id" not in page, "a second file has nothing to do with it"
    columns = columns_of(page)
    (code,) = [name for name in columns if name.endswith("digo")]
    assert desk.post(f"{path}/columns", **{**columns, code: "erpCode,loginCode"}).status_code == 303
    page = seen_at_its_end(desk, path)
    (question,) = set(re.findall(r'name="(answer:import:[^"]+/passwords)"', page))
    desk.post(f"{path}/answers", **{question: "file"})
    assert re.findall("Send [0-9]+ lines", seen_at_its_end(desk, path)) == ["Send 7 lines"]
    assert columns_of(desk.get(f"{path}?step=columns").text)[code] == "erpCode,loginCode"


def test_leaving_at_any_step_and_coming_back_goes_on_there(desk: Browser, project: Bridge) -> None:
    path = drop(desk, CUSTOMERS)
    seen_at_its_end(desk, path)
    home = desk.get("/").text
    assert "needs an answer" in home
    assert "Nothing is asked" in home, "it is asked on the page of the file"
    listed = desk.get("/questions").text
    assert f'<a href="{desk.base}{path}"><bdi>clientes.csv</bdi></a>' in listed
    assert "/question?id=import" not in listed
    assert f'href="{desk.base}{path}"' in home
    with serving(project.folder) as other:  # another desk, after this one
        other.enter()
        page = other.get(path).text
        assert "/passwords" in page


def test_a_file_of_which_nothing_was_sent_is_forgotten(desk: Browser) -> None:
    path = drop(desk, CUSTOMERS)
    seen_at_its_end(desk, path)
    asked = [
        *(desk.folder / "mappings").glob("*.json"),
        *(desk.folder / "mappings").glob(".*.json"),
    ]
    assert asked, "it has asked something"
    assert desk.post(f"{path}/remove").status_code == 303
    assert desk.get(path).status_code == 404
    assert [one for one in asked if one.exists()] == [], "nobody is asked about it any more"
    assert [file for file in (desk.folder / "desk").iterdir() if file.is_dir()] == []


def test_all_lines_that_a_page_knows_can_be_seen(desk: Browser) -> None:
    rows = "".join(f"07{n:04d};Ana;Peña;ana{n}@example.com\r\n" for n in range(60))
    _, page = planned(desk, f"Código;Nombre;Apellidos;Correo\r\n{rows}".encode())
    assert "<summary>10 more</summary>" in page
    assert page.count("<bdi>07") == 60
    assert "summary.md" not in page


def test_a_document_is_no_table(desk: Browser) -> None:
    refused = desk.post("/import", files={"file": ("lista.PDF", b"%PDF-1.7")}, kind="customers")
    assert refused.status_code == 422
    assert "lista.PDF is no table. Save it as Excel" in refused.text
    assert not (desk.folder / "desk").exists() or not [*(desk.folder / "desk").glob("customers-*")]


def test_a_file_of_customers_that_was_dropped_as_articles_goes_to_its_place(desk: Browser) -> None:
    path = drop(desk, CUSTOMERS, kind="variants")
    page = seen_at_its_end(desk, path)
    assert "look like those of a file for “Customers”" in page
    moved = desk.post(f"{path}/kind", kind="customers")
    assert desk.get(path).status_code == 404
    page = seen_at_its_end(desk, moved.headers["location"].removeprefix(desk.base))
    assert "/passwords" in page
    assert "look like" not in page


def test_what_was_sent_is_not_forgotten(desk: Browser) -> None:
    path, page = planned(desk)
    send(desk, path, page)
    assert desk.post(f"{path}/remove").status_code == 422
    assert desk.get(path).status_code == 200


def test_markup_in_cells_headers_and_rejects_is_text(desk: Browser) -> None:
    content = f"Código;Nombre {MARKUP};Correo\r\n070001;{MARKUP};{MARKUP}\r\n070002;Ana;\r\n"
    path = drop(desk, content.encode())
    page = seen_at_its_end(desk, path)
    assert MARKUP not in page
    assert "&lt;script&gt;" in page
    columns = {name: value or "ignore" for name, value in columns_of(page).items()}
    desk.post(f"{path}/columns", **columns)
    page = seen_at_its_end(desk, path)
    for question in set(re.findall(r'name="(answer:import:[^"]+/passwords)"', page)):
        desk.post(f"{path}/answers", **{question: "file"})
    page = seen_at_its_end(desk, path)
    assert "to correct" in page
    assert MARKUP not in page
    assert MARKUP not in desk.get(f"{path}/progress").text


def test_a_file_that_cannot_be_read_says_why_and_can_be_forgotten(desk: Browser) -> None:
    path = drop(desk, b"PK\x03\x04 no workbook", "clientes.xlsx")
    assert "This file cannot be imported" in seen_at_its_end(desk, path)
    page = desk.get(f"{path}?step=columns").text
    assert "This file cannot be read" in page
    assert "Forget this file" in page


def test_how_a_file_is_read_can_be_changed_and_is_kept(desk: Browser, project: Bridge) -> None:
    content = "Codigo;Nombre;Apellidos;Correo\n070000;Ana;Peña;a@example.com\n".encode("cp850")
    path = drop(desk, content)
    seen_at_its_end(desk, path)
    page = desk.get(f"{path}?step=columns").text
    assert "This file cannot be read" in page
    response = desk.post(f"{path}/reading", encoding="cp850", delimiter=";")
    assert response.headers["location"].endswith("?step=columns")
    seen_at_its_end(desk, path)
    page = desk.get(f"{path}?step=columns").text
    assert "<bdi>Peña</bdi>" in page
    assert '<option value="cp850" selected>MS-DOS (Western Europe)</option>' in page
    kept = "\n".join(file.read_text() for file in (project.folder / "mappings").glob("*.toml"))
    assert 'encoding = "cp850"' in kept

    # another file of such a header, which is UTF-8 beyond doubt, is not read so
    other = drop(desk, content.decode("cp850").encode())
    seen_at_its_end(desk, other)
    assert "<bdi>Peña</bdi>" in desk.get(f"{other}?step=columns").text


def test_a_file_that_lacks_a_column_of_the_ones_before_is_asked_about(
    desk: Browser, project: Bridge
) -> None:
    content = b"productId;variantId;price;stock\r\n1;1001;19,99;5\r\n"
    path = drop(desk, content, "articulos.csv", "variants")
    assert "<b>1</b>" in seen_at_its_end(desk, path)
    less = content.replace(b";stock", b"").replace(b";5", b"")
    path = drop(desk, less, "precios.csv", "variants")
    page = seen_at_its_end(desk, path)
    assert "precios.csv has no column stock, which earlier files had" in page
    assert "No: the file is wrong, and another one comes" in page
    (question,) = set(re.findall(r'name="(answer:import:[^"]+/gone)"', page))
    desk.post(f"{path}/answers", **{question: "yes"})
    page = seen_at_its_end(desk, path)
    assert 'name="shown"' in page
    assert "has no column" not in page


def test_a_file_of_other_columns_is_asked_one_thing(desk: Browser) -> None:
    content = b"productId;variantId;price;stock\r\n1;1001;19,99;5\r\n"
    path = drop(desk, content, "articulos.csv", "variants")
    assert "<b>1</b>" in seen_at_its_end(desk, path)
    path = drop(desk, content.replace(b"stock", b"Marca"), "otros.csv", "variants")
    page = seen_at_its_end(desk, path)
    assert "otros.csv has no column stock" in page
    assert "was not there before" not in page, "all columns may be read anew"


def test_a_column_that_was_not_there_before_is_asked_about_until_it_is_answered(
    desk: Browser, project: Bridge
) -> None:
    content = b"productId;variantId;price\r\n1;1001;19,99\r\n"
    first = drop(desk, content, "precios.csv", "variants")
    assert "was not there before" not in seen_at_its_end(desk, first)
    more = content.replace(b"price", b"price;Unidades").replace(b"99\r", b"99;7\r")
    path = drop(desk, more, "precios-2.csv", "variants")
    page = seen_at_its_end(desk, path)
    assert "This file has a column that was not there before: <b><bdi>Unidades</bdi></b>" in page
    assert page.count("Unidades") == 2, "no remark beside the question"  # its name and its form
    assert "Send one line" in page, "it can be sent without an answer"
    (question,) = set(re.findall(r'name="(column:import:[^"]+/Unidades)"', page))
    desk.post(f"{path}/columns", **{question: "stock"})
    page = seen_at_its_end(desk, path)
    assert re.search(r"<td>stock</td>.*<bdi>7</bdi>", page)
    assert "was not there before" not in page
    # another column is left out for good
    again = more.replace(b"Unidades", b"Unidades;Color").replace(b";7\r", b";7;rojo\r")
    path = drop(desk, again, "precios-3.csv", "variants")
    assert "not there before: <b><bdi>Color</bdi></b>" in seen_at_its_end(desk, path)
    columns = columns_of(desk.get(f"{path}?step=columns").text)
    assert next(iter(columns)).endswith("/Color"), "the first one"
    assert desk.post(f"{path}/columns", **columns).status_code == 303
    assert "was not there before" not in seen_at_its_end(desk, path)
    other = drop(desk, again.replace(b"rojo", b"azul"), "precios-4.csv", "variants")
    assert "was not there before" not in seen_at_its_end(desk, other)


def test_a_column_without_values_is_asked_once_it_has_some(desk: Browser, project: Bridge) -> None:
    header = "Código;Nombre;Apellidos;;Correo;Tarifa\r\n"
    empty = f"{header}070001;Ana;Peña;;ana@example.com;\r\n070002;Eva;Gil;;eva@example.com;\r\n"
    path, page = planned(desk, empty.encode("cp1252"))
    assert "Send 2 lines" in page
    assert "column_4" not in page
    assert "not in the files before" not in page
    columns = desk.get(f"{path}?step=columns").text
    chosen = {name.rpartition("/")[2]: field for name, field in columns_of(columns).items()}
    assert (chosen["Tarifa"], chosen["column_4"]) == ("ignore", "ignore")
    send(desk, path, page)

    filled = (
        f"{header}070003;Ana;Peña;;ana3@example.com;A7\r\n070004;Eva;Gil;;eva4@example.com;A8\r\n"
    )
    path = drop(desk, filled.encode("cp1252"))
    page = seen_at_its_end(desk, path)
    fields = columns_of(page)
    (asked,) = [name for name in fields if name.endswith("/Tarifa")]
    assert fields[asked] == "", "the codes of the ERP are no lists of the platform"
    assert len(created(project)) == 2, "nothing is sent before somebody has answered"
    answered = desk.post(f"{path}/columns", **{**fields, asked: "ignore"})
    assert answered.status_code == 303
    send(desk, path, seen_at_its_end(desk, path))
    assert len(created(project)) == 4
    sent = [one for one in project.platform.state.customer_inputs if "priceListId" in one]
    assert sent == []


def test_a_new_column_of_a_file_with_nothing_else_to_send_can_be_answered(
    desk: Browser, project: Bridge
) -> None:
    content = b"productId;variantId;sku\r\n1;1001;S19\r\n"
    first = drop(desk, content, "articulos.csv", "variants")
    send(desk, first, seen_at_its_end(desk, first))
    more = content.replace(b"sku", b"sku;Unidades").replace(b"S19\r", b"S19;7\r")
    path = drop(desk, more, "articulos-2.csv", "variants")
    page = seen_at_its_end(desk, path)
    assert "nothing to send" in page
    (question,) = set(re.findall(r'name="(column:import:[^"]+/Unidades)"', page))
    assert desk.post(f"{path}/columns", **{question: "stock"}).status_code == 303
    assert "Send one line" in seen_at_its_end(desk, path)


def test_a_unit_that_rejects_all_lines_is_asked_about(desk: Browser, project: Bridge) -> None:
    content = b"productId;variantId;Peso\r\n1;1001;1,5 kg\r\n1;1002;2 kg\r\n"
    path = drop(desk, content, "articulos.csv", "variants")
    page = seen_at_its_end(desk, path)
    assert "nothing to send" in page
    (question,) = set(re.findall(r'name="(answer:import:[^"]+/unit/Peso)"', page))
    assert desk.post(f"{path}/answers", **{question: "yes"}).status_code == 303
    assert "Send 2 lines" in seen_at_its_end(desk, path)


def test_a_second_file_has_the_ids(desk: Browser, project: Bridge) -> None:
    articles = "Artículo;Precio\r\n00038;19,99\r\n00039;7,50\r\n".encode()
    ids = b"productId;variantId;sku\r\n1;1001;00038\r\n1;1002;00039\r\n"
    path = drop(desk, articles, "articulos.csv", "variants")
    page = seen_at_its_end(desk, path)  # not an error: the page on which a second file is added
    assert "filled by no column" in page
    assert "orderbridge template" not in page
    assert re.search(r"<details id=.ids. open><summary>[^<]*</summary>\s*<p[^>]*>[^<]*ids", page)
    added = desk.post(f"{path}/lookup", files={"file": ("ids.csv", ids)})
    assert added.status_code == 303
    page = seen_at_its_end(desk, path)
    (question,) = set(re.findall(r'name="(answer:import:[^"]+/lookup)"', page))
    assert (
        "but ids.csv has them. Find each line there by its column “Artículo”, which is called “sku”"
        in page
    )

    # a wrong answer can be changed, and a wrong file taken away
    desk.post(f"{path}/answers", **{question: "no"})
    page = seen_at_its_end(desk, path)
    assert "You have answered that they are not taken from ids.csv" in page
    assert "Nothing was found" not in page
    assert question in page
    wrong = {"file": ("clientes.csv", CUSTOMERS)}
    assert desk.post(f"{path}/lookup", files=wrong).status_code == 303
    page = seen_at_its_end(desk, path)
    assert question in page
    assert "You have answered that" not in page, "asked again with another file"
    desk.post(f"{path}/answers", **{question: "no"})
    seen_at_its_end(desk, path)
    taken = desk.post(f"{path}/lookup/remove", file_name="clientes.csv")
    assert taken.status_code == 303, taken.text
    page = seen_at_its_end(desk, path)
    assert "clientes.csv" not in page
    assert f'name="{question}"' in page, "asked again"
    desk.post(f"{path}/answers", **{question: "yes"})
    page = seen_at_its_end(desk, path)
    assert "<b>2</b> are changed" in page
    assert "product 1, variant 1001" in page

    # the next file of this form, and its corrected lines, find their ids there too
    next_month = drop(desk, articles.replace(b"7,50", b"ocho"), "articulos.csv", "variants")
    page = seen_at_its_end(desk, next_month)
    assert "One line to correct" in page
    assert "to an earlier file" in desk.get(f"{next_month}?step=columns").text
    fixed = desk.post(f"{next_month}/correct", **{"cell:3:1": "8,00"})
    page = seen_at_its_end(desk, fixed.headers["location"].removeprefix(desk.base))
    assert "product 1, variant 1002" in page

    # a column whose numbers may be ids as well is asked about first
    taxed = "Código;Tarifa;IVA\r\n00038;19,99;4\r\n00039;7,50;10\r\n".encode()
    page = seen_at_its_end(desk, drop(desk, taxed, "tarifa.csv", "variants"))
    assert "ids.csv has them: you are asked about it in the next step" in page
    assert "Nothing was found" not in page


def test_a_column_that_a_person_left_out_stays_so_with_a_second_file(desk: Browser) -> None:
    articles = (
        "Artículo;Referencia;Precio;Xyz\r\nAzúcar rubia;A-38;19,99;a\r\nAceite;A-39;7,50;b\r\n"
    )
    ids = b"productId;variantId;sku\r\n1;1001;A-38\r\n1;1002;A-39\r\n"
    path = drop(desk, articles.encode(), "articulos.csv", "variants")
    page = seen_at_its_end(desk, path)
    columns = columns_of(page)
    (article,) = [name for name in columns if name.endswith("/Artículo")]
    (asked,) = [name for name in columns if name.endswith("/Xyz")]
    assert columns[article] not in ("", "ignore"), "it is proposed as something"
    assert _form_of(page, "/lookup") == _form_of(page, "/columns")

    chosen = {**columns, article: "ignore"}
    added = desk.post(f"{path}/lookup", files={"file": ("ids.csv", ids)}, **chosen)
    assert added.status_code == 303, added.text
    page = seen_at_its_end(desk, path)
    (question,) = set(re.findall(r'name="(answer:import:[^"]+/lookup)"', unquote(page)))
    desk.post(f"{path}/answers", **{question: "yes"})
    page = seen_at_its_end(desk, path)
    kept = columns_of(page)
    assert kept[article] == "ignore"
    assert kept[asked] == "", "what nobody has chosen is asked still"
    assert "filled by no column" not in page, "the second file fills the ids"
    desk.post(f"{path}/columns", **kept, rest="ignore")
    page = seen_at_its_end(desk, path)
    assert "<b>2</b> are changed" in page
    assert "A-38 · Azúcar rubia" in page, "the article is named"
    assert "<bdi>Azúcar rubia</bdi>" not in page, "its name is not sent"


def _form_of(page: str, action: str) -> int:
    """Where the form begins that has a button for an action."""
    return page.rindex("<form", 0, page.index(f'{action}"'))


def test_a_column_that_a_person_chose_stays_so_with_another_encoding_and_delimiter(
    desk: Browser,
) -> None:
    content = "Código;Nombre;Dirección;Correo\n070000;Ana;Peña 1;a@example.com\n".encode("cp850")
    path = drop(desk, content)
    seen_at_its_end(desk, path)

    def read_as(encoding: str, delimiter: str, chosen: dict[str, str]) -> dict[str, str]:
        read = desk.post(f"{path}/reading", encoding=encoding, delimiter=delimiter, **chosen)
        assert read.status_code == 303, read.text
        seen_at_its_end(desk, path)
        return columns_of(desk.get(path, params={"step": "columns"}).text)

    columns = read_as("cp1252", ";", {})
    (address,) = [name for name in columns if "/Direcci" in name]
    (name,) = [name for name in columns if name.endswith("/Nombre")]
    company = "documents[0].fiscalName"
    columns |= {address: "ignore", name: company}
    for reading in (("cp850", ";"), ("cp850", ""), ("cp1252", ";")):
        columns = read_as(*reading, columns)
        by_name = {name.rpartition("/")[2]: path for name, path in columns.items()}
        assert by_name["Nombre"] == company
        assert by_name.get("Dirección", by_name.get("Direcci¢n")) == "ignore"
    page = desk.get(path, params={"step": "columns"}).text
    assert "Direcci¢n" in page


def test_a_command_that_could_not_begin_says_why(
    desk: Browser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("SOURCES__LEGACY__BASE_URL")
    page = seen_at_its_end(desk, drop(desk, CUSTOMERS))
    assert "sources.legacy.base_url" in page
    assert "interrupted" not in page


def test_a_desk_that_is_killed_sends_nothing_twice_and_the_next_one_goes_on(
    project: Bridge,
) -> None:
    with serving(project.folder) as browser:
        browser.enter()
        path, page = planned(browser)
    command = [sys.executable, "-m", "orderbridge.pipelines.cli", "desk", "--no-browser"]
    killed = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert killed.stdout is not None
    killed.stdout.readline()
    (opener,) = (project.folder / "desk").glob("open-*.html")
    other = Browser(project.folder, int(opener.stem.rpartition("-")[2]), [], None)
    other.enter()
    assert other.post(f"{path}/send", shown=hidden(page, "shown")).status_code == 303
    killed.send_signal(signal.SIGKILL)
    killed.wait()
    killed.stdout.close()
    opener.unlink()
    other.client.close()

    with serving(project.folder) as browser:
        browser.enter()
        page = seen_at_its_end(browser, path)
        assert ">sent<" in page
    assert created(project) == {f"07{n:04d}": 1 for n in range(5)}


def test_an_import_that_is_killed_at_any_step_goes_on_and_sends_nothing_twice(
    desk: Browser, project: Bridge, forks: Forks
) -> None:
    steps = ["plan", "in_flight", "confirmed", "verify"]
    for number, step in enumerate(steps):
        codes = {f"07{number}{n:03d}": 1 for n in range(3)}
        lines = "".join(f"{code};Ana;Peña;a{code}@example.com;Clave-{code}\r\n" for code in codes)
        content = f"Código;Nombre;Apellidos;Correo;Contraseña\r\n{lines}".encode("cp1252")

        forks.before = partial(killed_at, step)
        path = drop(desk, content)
        page = seen_at_its_end(desk, path)
        if step != "plan":
            page = send(desk, path, page)
        assert "interrupted" in page, step
        home = desk.get("/").text
        assert f'href="{desk.base}{path}"' in home, step
        assert "orderbridge import" not in home, "no command where a page goes on"
        if step in ("in_flight", "confirmed"):
            main = re.search(r'class="next">.*?href="([^"]*)">([^<]*)<', home, re.S)
            assert main is not None
            assert main[1] == f"{desk.base}{path}", "not to questions, of which none is about it"

        forks.before = os.setsid
        assert desk.post(f"{path}/check").status_code == 303
        page = seen_at_its_end(desk, path)
        assert "Something has changed" not in page, step
        if 'name="shown"' in page:
            page = send(desk, path, page)
        assert ">sent<" in page, step
        assert {code: n for code, n in created(project).items() if code in codes} == codes, step


def test_of_a_plan_that_was_begun_the_page_counts_what_is_left() -> None:
    agreement = {"operations": 264, "planned": 300, "environment": "sandbox", "host": "shop"}
    counts = {"create": 300, "rejected": 2}
    document = {"changes": {"lines": 302, "counts": counts}, "agreement": agreement}
    begun = plan_page(document, Texts("es"))
    shown = [(one.lines, one.words) for one in begun.counts]
    assert shown == [
        *((36, "envíos ya terminados"), (264, "envíos por hacer"), (2, "rechazadas")),
    ], "300 lines are not created again"
    whole = plan_page({**document, "agreement": {**agreement, "operations": 300}}, Texts("es"))
    assert [one.words for one in whole.counts] == ["se crean", "rechazadas"]
    assert [one.agreement and one.agreement.lines for one in (begun, whole)] == [0, 300]


def test_an_import_that_was_begun_in_a_terminal_goes_on_in_the_desk(
    desk: Browser, project: Bridge
) -> None:
    file = project.folder / "de oficina.csv"
    file.write_bytes(CUSTOMERS)
    asked = project.command("import", "customers", str(file), SOURCES__LEGACY__LOGIN_MODE="email")
    assert "--passwords" in asked.err
    page = desk.get("/").text
    assert "begun in a terminal" in page
    assert f"orderbridge import customers &#39;{file}&#39;" in page
    response = desk.post("/import/begun", id=hidden(page, "id"))
    assert response.status_code == 303, response.text
    path = response.headers["location"].removeprefix(desk.base)
    assert "/passwords" in seen_at_its_end(desk, path)
    assert "begun in a terminal" not in desk.get("/").text
    assert desk.post("/import/begun", id="customers-0").status_code == 404


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("clientes.csv", "clientes.csv"),
        ("/etc/passwd", "passwd"),
        ("C:\\x\\y.xlsx", "y.xlsx"),
        ("..", "file"),
        ("--help.csv", "help.csv"),
        ("a\nb\x00c.csv", "abc.csv"),
        ("ñ" * 300 + ".csv", "ñ" * 60 + ".csv"),
        ("", "file"),
    ],
)
def test_the_name_of_a_file_is_made_safe(given: str, kept: str) -> None:
    assert safe_name(given) == kept


def test_the_workbook_of_corrections_has_texts_only(desk: Browser) -> None:
    import openpyxl

    from orderbridge.pipelines.desk.corrections import workbook_of

    content = workbook_of(["Código", "Nombre"], {2: ["007", "=1+1"]})
    sheet = openpyxl.load_workbook(io.BytesIO(content))["to correct"]
    header, row = sheet.iter_rows(values_only=True)
    assert header == ("Código", "Nombre")
    assert row == ("007", "'=1+1")
    assert {cell.data_type for cell in sheet[2]} == {"s"}


def test_what_the_platform_does_with_a_stock_is_asked_before_it_is_sent(project: Bridge) -> None:
    content = b"productId;variantId;stock\r\n1;1001;19\r\n"
    with serving(project.folder, language="es") as desk:
        desk.enter()
        path = drop(desk, content, "existencias.csv", "variants")
        page = seen_at_its_end(desk, path)
        assert page.index("¿Qué hace la plataforma con las existencias") < page.index("Enviar una")
        assert "¿Qué hace la plataforma con el precio" not in page
        assert not re.search(r"\b(set|increment|change)\b(?!\")", re.sub("<[^>]*>", "", page))
        key = "sources.legacy.stock_semantics"
        assert desk.post(f"{path}/answers", **{f"answer:{key}": "set"}).status_code == 303
        page = seen_at_its_end(desk, path)
        assert "¿Qué hace la plataforma" not in page
        assert "Enviar una línea" in page
        question = desk.get("/question", params={"id": key}).text
        assert "desde el próximo archivo" in question
        assert "Respondida: <b>" in question, "although no run has evidence about it"
        # where the platform adds, the file needs changes: the page offers to change the answer
        added = desk.post("/question", id=key, value="increment")
        assert added.status_code == 303
        desk.post(f"{path}/check")
        page = seen_at_its_end(desk, path)
        assert "is not marked as changes" in page
        assert 'value="increment" checked' in page
        desk.post(f"{path}/answers", **{f"answer:{key}": "set"})
        assert "Enviar una línea" in seen_at_its_end(desk, path)


def test_answers_in_two_places_of_a_page_are_sent_together(desk: Browser) -> None:
    rows = b"productId;variantId;sku;stock\r\n1;1001;A-1;19\r\n1;1002;A-2;20\r\nTOTAL;;;39\r\n"
    path = drop(desk, rows, "existencias.csv", "variants")
    page = seen_at_its_end(desk, path)
    ((form, questions),) = re.findall(r'<form [^>]*id="([a-z]+)"[^>]*>(.*?)</form>', page, re.S)
    (totals,) = set(re.findall(r'name="(answer:import:[^"]+/totals)"', questions))
    stock = "answer:sources.legacy.stock_semantics"
    fields = re.findall(f'<input[^>]*name="{stock}"[^>]*>', page)
    buttons = re.findall("<button[^>]*>Answer, and check", page)
    assert len(fields) == len(buttons) == 2
    assert all(f'form="{form}"' in one for one in (*fields, buttons[-1]))
    assert desk.post(f"{path}/answers", **{totals: "skip", stock: "set"}).status_code == 303
    page = seen_at_its_end(desk, path)
    assert "Send 2 lines" in page
    assert 'name="answer:' not in page


def test_an_unknown_outcome_is_shown_asked_and_ended(desk: Browser, project: Bridge) -> None:
    content = b"productId;variantId;price\r\n1;1001;19,99\r\n"
    path = drop(desk, content, "articulos.csv", "variants")
    page = seen_at_its_end(desk, path)
    project.platform.set_faults({"lost_answer": 1.0})
    page = send(desk, path, page)
    project.platform.set_faults({})
    assert ">not finished<" in page
    home = desk.get("/").text
    assert "one request with an unknown outcome" in home
    assert "Look up what became" in home
    job = job_of(path)
    with run_lock(job.log, "import", ""):
        home = desk.get("/").text
        assert "unknown outcome" not in home, "while it is sent, an answer can still come"
        assert "Look up what became" not in home
        assert ">running<" in home
    job.log.touch()
    listed = unquote(desk.get("/questions").text)
    (question,) = set(re.findall(r"write:[0-9a-f]+/[0-9]+", listed))
    shown = desk.get("/question", params={"id": question}).text
    assert "line 2 of articulos.csv" in shown
    assert not re.search("PATCH|POST ", home + listed + shown + page)
    assert "It took effect on the platform" in shown
    answered = desk.post("/question", id=question, value="landed")
    assert answered.status_code == 303, answered.text
    assert "unknown outcome" not in desk.get("/").text


def lost_article(desk: Browser, project: Bridge) -> tuple[str, list[str]]:
    """A file with an article whose two requests got no answer: the path of its import, and the questions."""
    content = b"Codigo;Articulo;productId;variantId;precio\r\nA-104;Pina en almibar;1;1001;2,30\r\n"
    path = drop(desk, content, "articulos.csv", "variants")
    columns = columns_of(seen_at_its_end(desk, path))
    desk.post(f"{path}/columns", **{name: field or "ignore" for name, field in columns.items()})
    page = seen_at_its_end(desk, path)
    project.platform.set_faults({"lost_answer": 1.0})
    page = send(desk, path, page)
    project.platform.set_faults({})
    return path, sorted(set(re.findall(r"write:[0-9a-f]+/[0-9]+", page)))


@pytest.mark.parametrize("answers_on_a_page", [True, False])
def test_what_became_of_a_request_is_asked_once_wherever_it_is_answered(
    project: Bridge, answers_on_a_page: bool
) -> None:
    with serving(project.folder, language="es") as desk:
        desk.enter()
        path, (code, price) = lost_article(desk, project)
        shown = "línea 2 de articulos.csv: A-104 · Pina en almibar, precio: 2,30"
        assert shown in desk.get(path).text
        page = desk.get("/question", params={"id": price}).text
        assert shown in page
        assert "no se puede retirar" in page
        if answers_on_a_page:
            assert desk.post("/question", id=price, value="landed").status_code == 303
            page = desk.get(path).text
            assert (f"answer:{code}" in page, f"answer:{price}" in page) == (True, False)
            assert desk.post("/question", id=code, value="landed").status_code == 303
        else:
            for question in (code, price):
                assert project.command("answer", question, "landed").code == 0
            page = desk.get(path).text
            assert f"answer:{price}" not in page
            assert "Ya se ha respondido" in page
            late = desk.post(f"{path}/answers", **{f"answer:{price}": "abandon"})
            assert "Ya se ha respondido" in late.text
            assert desk.post(f"{path}/check").status_code == 303
        page = seen_at_its_end(desk, path)
        assert ">enviada<" in page
        assert "write:" not in page
        listed = desk.get("/questions").text
        assert "Llegó a la plataforma" in listed[listed.index("Respondidas antes: ") :]
        page = desk.get("/question", params={"id": price}).text
        assert shown in page
        assert "Llegó a la plataforma" in page
        assert 'name="value"' not in page, "no other answer is possible"
        assert 'name="withdraw"' not in page


def test_an_import_of_which_nothing_was_left_to_send_says_so_and_can_be_forgotten(
    desk: Browser, project: Bridge
) -> None:
    path, page = planned(desk)
    cells = dict(re.findall(r'<input name="(cell:[0-9:]+)" value="([^"]*)"', page))
    send(desk, path, page)
    known = {"cell:7:0": "070000", "cell:7:1": "Ana", "cell:7:2": "Peña"}
    mail = {"cell:7:3": "ana0@example.com"}
    fixed = desk.post(f"{path}/correct", **{**cells, **known, **mail})
    correction = fixed.headers["location"].removeprefix(desk.base)
    page = seen_at_its_end(desk, correction)
    assert ">nothing to send<" in page
    assert ">sent<" not in re.sub(r"<h2>Corrected.*", "", page)
    assert "Imports that are not finished" not in desk.get("/").text
    assert desk.post(f"{correction}/remove").status_code == 303
    assert created(project) == {f"07{n:04d}": 1 for n in range(5)}


def test_a_file_that_fails_by_one_column_says_so_and_the_column_can_be_left_out(
    desk: Browser,
) -> None:
    lines = [f"07{n:04d};Ana;ana{n}@example.com;General" for n in range(3)]
    lines[2] = "070002;Ana;no es un correo;General"
    content = "\r\n".join(["Código;Nombre;Correo;Tarifa", *lines, ""])
    path, page = drop(desk, content.encode("cp1252")), ""
    page = seen_at_its_end(desk, path)
    (name,) = [one for one in columns_of(page) if one.endswith("Tarifa")]
    desk.post(f"{path}/columns", **{name: "priceListId"})
    page = seen_at_its_end(desk, path)
    assert ">nothing to send<" in page, "no password is needed, and none is asked for"
    assert "because of the same column: Tarifa" in page
    assert "Correct the rejected lines" not in page, "the column is to be changed, not the lines"
    assert "more are in the workbook" not in page, "lines are counted, not their reasons"
    both = re.search(r'<td class="n">4</td><td class="why">(.*?)</td>', page)
    assert both is not None
    assert "Correo" in both[1]
    assert "Tarifa" in both[1]
    heads = re.findall(r"<th><bdi>(.*?)</bdi></th>", page)
    assert heads[:2] == ["Correo", "Tarifa"], "those with wrong cells are seen without scrolling"

    columns = columns_of(desk.get(path, params={"step": "columns"}).text)
    changed = desk.post(f"{path}/columns", **{**columns, name: "ignore"})
    assert changed.status_code == 303, changed.text
    page = seen_at_its_end(desk, path)
    (question,) = set(re.findall(r'name="(answer:import:[^"]+/passwords)"', page))
    desk.post(f"{path}/answers", **{question: "file"})
    assert "Send 2 lines" in seen_at_its_end(desk, path)
    assert "begun in a terminal" not in desk.get("/").text


def test_a_tab_left_open_overnight_sends_nothing_twice_and_says_what_changed(
    desk: Browser, project: Bridge
) -> None:
    path, page = planned(desk)
    assert "Send 5 lines" in page

    # at night a script imports some of the lines, and the lists are read
    night = project.folder / "noche.csv"
    night.write_bytes(b"\r\n".join(CUSTOMERS.splitlines()[:4]))
    email = {"SOURCES__LEGACY__LOGIN_MODE": "email"}
    words = ["import", "customers", str(night), "--passwords", "file", "--yes"]
    sent = project.command(*words, **email)
    assert sent.code == 0, sent.err
    assert project.command("run", **email).code in (0, 9)

    asked = send(desk, path, page)
    assert "Something has changed since" in asked
    assert sum(created(project).values()) == 3
    assert "Send 2 lines" in asked
    assert "Until now nothing was sent" not in asked
    old = desk.post(f"{path}/send", shown=hidden(page, "shown"))  # a second tab of the evening
    assert "not the one that you saw" in old.text
    done = send(desk, path, asked)
    assert ">sent<" in done
    assert "Something has changed" not in done
    assert created(project) == {f"07{n:04d}": 1 for n in range(5)}


def test_a_night_that_changes_nothing_of_a_file_does_not_keep_it_from_being_sent(
    desk: Browser, project: Bridge
) -> None:
    path, page = planned(desk)
    assert project.command("run", SOURCES__LEGACY__LOGIN_MODE="email").code in (0, 9)
    assert ">sent<" in send(desk, path, page)
    assert created(project) == {f"07{n:04d}": 1 for n in range(5)}


def test_a_tab_of_an_ended_desk_says_how_to_open_it_again_and_sends_nothing(
    project: Bridge,
) -> None:
    with serving(project.folder) as evening:
        evening.enter()
        path, page = planned(evening)
        port = evening.client.base_url.port
    with serving(project.folder, port=port) as morning:
        morning.enter()
        morning.base, base = evening.base, morning.base
        refused = morning.post(f"{path}/send", shown=hidden(page, "shown"))
        assert refused.status_code == 403
        assert "orderbridge desk" in refused.text
        assert "a desk that has ended" in refused.text
        morning.base = base
        assert created(project) == {}
        assert "Send 5 lines" in morning.get(path).text, "it goes on where it was"


_MARKED = re.compile(
    r"<(bdi|code|style|script)\b.*?</\1>|<(\w+)[^>]* lang=.en.[^>]*>.*?</\2>", re.S
)
"""Values of files, commands, and what is marked as English."""
_ENGLISH = re.compile(
    r"\b(?:the|of|and|with|not|is|are|was|column|columns|line|lines|row|rows|file|request|requests|customer|customers|"
    r"sent|answer|order|orders|one|import)\b"
)


def english_in(page: str) -> list[str]:
    """The English words of a page with what is around them."""
    text = re.sub(r"<[^>]*>", " ", _MARKED.sub(" ", page))
    return [text[max(0, one.start() - 40) : one.end() + 40] for one in _ENGLISH.finditer(text)]


def test_no_page_of_a_spanish_desk_has_english_words(
    reconciled: Bridge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DLT_PROJECT_DIR", str(reconciled.folder))
    monkeypatch.setenv("SOURCES__LEGACY__LOGIN_MODE", "email")
    erp = reconciled.folder / "erp.csv"
    sql = "SELECT full_name, phone_digits FROM reconciled.customers ORDER BY 1 LIMIT 1"
    ((name, phone),) = reconciled.rows(sql)
    erp.write_text(f"Codigo;Nombre;Correo;Telefono\r\n990001;{name};otro@example.es;{phone}\r\n")
    assert reconciled.command("reconcile", "--erp-customers", str(erp)).code == 0
    with serving(reconciled.folder, language="es") as desk:
        desk.enter()
        pages: dict[str, str] = {}
        columns = CUSTOMERS.replace(b";Correo\r\n", b";Correo;Zona\r\n", 1)
        columns = re.sub(rb"(?<!Zona)\r\n", b";Norte\r\n", columns)
        path = drop(desk, columns)
        pages["columns"] = seen_at_its_end(desk, path)
        (zone,) = [one for one in columns_of(pages["columns"]) if one.endswith("Zona")]
        desk.post(f"{path}/columns", **{zone: "ignore"})
        pages["passwords"] = seen_at_its_end(desk, path)
        (question,) = set(re.findall(r'name="(answer:import:[^"]+/passwords)"', pages["passwords"]))
        desk.post(f"{path}/answers", **{question: "file"})
        pages["plan"] = seen_at_its_end(desk, path)
        pages["result"] = send(desk, path, pages["plan"])
        pages["again"] = desk.post(f"{path}/send", shown="x").text
        rows = [f"A-{n:03d};Tornillo M{n} de acero;1;{1001 + n};1,{n:02d}" for n in range(12)]
        articles = "\r\n".join(["Codigo;Articulo;productId;variantId;precio", *rows, ""]).encode()
        path = drop(desk, articles, "articulos.csv", "variants")
        pages["names"] = seen_at_its_end(desk, path)
        (names,) = [one for one in columns_of(pages["names"]) if one.endswith("Articulo")]
        desk.post(f"{path}/columns", **{names: "ignore"})
        pages["changes"] = seen_at_its_end(desk, path)
        assert "A-003 · Tornillo M3 de acero" in pages["changes"], "what the article is"
        reconciled.platform.set_faults({"lost_answer": 1.0})
        pages["unknown"] = send(desk, path, pages["changes"])
        reconciled.platform.set_faults({})
        assert pages["unknown"].count("no llegó respuesta") <= 13, "one reason, with its lines"
        for address in ("/", "/import", "/questions", "/report", "/report/page", "/nothing"):
            pages[address] = desk.get(address).text
        questions = set(re.findall(r'href="[^"]*(/question\?id=[^"]+)"', pages["/questions"]))
        assert any("match" in one for one in questions)
        assert any("write" in one for one in questions)
        pages |= {one: desk.get(html.unescape(one)).text for one in questions}
    assert {name: found for name, page in pages.items() if (found := english_in(page))} == {}
