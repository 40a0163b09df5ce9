"""Whole ways through the desk, as a person goes them in a browser."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import pytest
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from orderbridge.pipelines.warehouse.lock import run_lock
from tests.pipelines.bridge import Bridge
from tests.pipelines.desk.browser import serving

if TYPE_CHECKING:  # imported before it is a plugin, its asserts would not be rewritten
    from tests.desk.person import Person

# not in conftest.py, which is read without selenium too
pytest_plugins = ("tests.desk.person",)
CUSTOMERS = (
    "Código;Nombre;Apellidos;Correo\r\n"
    + "".join(f"07{n:04d};Ana;Peña;ana{n}@example.com\r\n" for n in range(3))
    + "070100;Sin;Correo;\r\n070101;Mal;Correo;no es un correo\r\n"
)


def write(project: Bridge, text: str = CUSTOMERS, name: str = "clientes.csv") -> str:
    file = project.folder / name
    file.write_bytes(text.encode("cp1252"))
    return str(file)


def created(project: Bridge) -> list[str]:
    rows = project.platform.state.records("customers")
    return sorted(str(row["erpCode"]) for row in rows if str(row.get("erpCode")).startswith("07"))


def test_customers_with_two_wrong_cells_are_corrected_and_sent(
    project: Bridge, opened: Callable[..., Person]
) -> None:
    person = opened(project)
    person.is_accessible()
    person.drop(write(project), "customers", "Check the file")
    person.is_accessible()
    person.find("input[value=file]").click()
    person.press("Answer")
    assert "2 lines to correct" in person.text
    person.is_accessible()
    for name, value in (("cell:5:3", "sin@example.com"), ("cell:6:3", "mal@example.com")):
        cell = person.find(f"input[name='{name}']")
        cell.clear()
        cell.send_keys(value)
    person.press("Check the corrected lines")
    assert "Send 2 lines" in person.text
    person.is_accessible()
    person.press("Send 2 lines")
    assert "sent" in person.find("h1").text
    person.is_accessible()
    person.find(".crumb a:last-child").click()
    person.press("Send 3 lines")
    assert created(project) == ["070000", "070001", "070002", "070100", "070101"]
    person.go("/")
    assert "not finished" not in person.text
    person.is_accessible()


def test_production_is_confirmed_by_its_number(
    project: Bridge, opened: Callable[..., Person], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOURCES__LEGACY__ENVIRONMENT", "production")
    monkeypatch.setenv("SOURCES__PUBLIC_V1__API_KEY", project.platform.v1_live_key)
    person = opened(project)
    person.drop(write(project), "customers", "Check the file")
    person.find("input[value=file]").click()
    person.press("Answer")
    assert "production" in person.text
    person.is_accessible()
    person.find("input[name=number]").send_keys("9")
    person.press("Send 3 lines")
    assert "not the number" in person.find("[role=alert]:not([hidden])").text
    assert created(project) == []
    person.find("input[name=number]").send_keys("3")
    person.press("Send 3 lines")
    assert len(created(project)) == 3


def test_in_spanish_by_keyboard_alone(project: Bridge, opened: Callable[..., Person]) -> None:
    person = opened(project, "es")
    person.go("/import")
    person.is_accessible()
    radio = person.find("input[value=customers]")
    _tab_to(person, radio)
    radio.send_keys(Keys.SPACE)
    file = person.find(".upload input[type=file]")
    _tab_to(person, file)
    file.send_keys(write(project))
    button = person.find(".upload button")
    _tab_to(person, button)
    button.send_keys(Keys.ENTER)
    person.until(lambda driver: driver.find_elements(By.CSS_SELECTOR, "input[value=file]"))
    choice = person.find("input[value=mail]")
    _tab_to(person, choice)
    choice.send_keys(Keys.ARROW_DOWN)
    _type(person, Keys.TAB)
    _type(person, Keys.ENTER)
    person.until(lambda driver: driver.find_elements(By.ID, "send"))
    assert "Enviar 3 líneas" in person.text
    person.is_accessible()
    button = person.all("#send button")[-1]
    _tab_to(person, button)
    button.send_keys(Keys.ENTER)
    person.until(lambda _: "enviada" in person.find("h1").text)
    assert len(created(project)) == 3


def _type(person: Person, key: str) -> None:
    """Presses a key, wherever the focus is: sent to a field for files, it would be the name of one."""
    ActionChains(person.driver).send_keys(key).perform()


def _tab_to(person: Person, element: object) -> None:
    """Presses Tab until an element has the focus, which is visible there."""
    for _ in range(60):
        if person.driver.switch_to.active_element == element:
            ring = "return getComputedStyle(document.activeElement).outlineStyle"
            assert person.driver.execute_script(ring) != "none"
            return
        _type(person, Keys.TAB)
    raise AssertionError("it cannot be reached by Tab")


def test_without_scripts(project: Bridge, opened: Callable[..., Person]) -> None:
    person = opened(project, has_scripts=False)
    person.go("/import")
    person.find("input[value=customers]").click()
    person.find(".upload input[type=file]").send_keys(write(project))
    person.find(".upload button").click()
    _reload_until(person, "input[value=file]")
    person.find("input[value=file]").click()
    person.find("section.next button").click()
    _reload_until(person, "#send button")
    person.find("form[action$='/send'] button").click()
    _reload_until(person, "h1 .badge.sent")
    assert len(created(project)) == 3


def _reload_until(person: Person, selector: str) -> None:
    """Follows the link that shows the current state, until an element is there."""

    def is_there(_: object) -> bool:
        for link in person.all("#progress a"):
            link.click()
        return bool(person.all(selector))

    person.until(is_there)


@pytest.mark.parametrize(("zoom", "is_dark"), [(2, False), (1, True)])
def test_each_page_at_200_percent_and_in_the_dark(
    shop: Bridge, opened: Callable[..., Person], zoom: int, is_dark: bool
) -> None:
    person = opened(shop, "es", zoom=zoom, is_dark=is_dark)
    for path in ("/", "/import", "/questions", "/report", "/nothing"):
        person.go(path)
        person.is_accessible()


def test_articles_take_their_ids_from_a_second_file_and_an_unknown_outcome_is_ended(
    project: Bridge, opened: Callable[..., Person]
) -> None:
    person = opened(project)
    person.drop(write(project, "SKU;Precio\r\n00038;19,99\r\n", "art.csv"), "variants", "Check")
    assert "filled by no column" in person.text
    person.is_accessible()
    second = write(project, "productId;variantId;SKU\r\n1;1001;00038\r\n", "ids.csv")
    person.find("details[open] input[type=file]").send_keys(second)
    person.press("Add this file")
    person.is_accessible()
    person.find("input[value=yes]").click()
    person.press("Answer")
    assert "product 1, variant 1001" in person.text
    project.platform.set_faults({"lost_answer": 1.0})
    person.press("Send one")
    project.platform.set_faults({})
    assert "not finished" in person.find("h1").text
    person.is_accessible()
    person.go("/")
    assert "unknown outcome" in person.text
    person.is_accessible()
    person.find("section.next a.button").click()
    person.is_accessible()
    for answer in person.all("input[value=landed]"):
        answer.click()
    person.press("Answer")
    person.go("/")
    assert "unknown outcome" not in person.text


def test_a_match_is_decided_by_two_records_side_by_side(
    shop: Bridge, opened: Callable[..., Person]
) -> None:
    sql = "SELECT full_name, phone_digits FROM reconciled.customers ORDER BY 1 LIMIT 1"
    ((name, phone),) = shop.rows(sql)
    text = f"Codigo;Nombre;Correo;Telefono\r\n990001;{name};otro@example.com;{phone}\r\n"
    assert shop.command("reconcile", "--erp-customers", write(shop, text, "erp.csv")).code == 0
    person = opened(shop)
    person.go("/questions")
    person.driver.find_element(By.PARTIAL_LINK_TEXT, "the same").click()
    person.is_accessible()
    assert str(name) in person.find("table.pair").text
    person.find("input[value=different]").click()
    person.press("Answer")
    reviewed = (shop.folder / ".dlt" / "reviewed.csv").read_text()
    assert "code 990001 = " in reviewed
    assert ";reject;" in reviewed


def test_statuses_are_decided_in_their_lists(shop: Bridge, opened: Callable[..., Person]) -> None:
    person = opened(shop)
    person.go("/questions")
    person.driver.find_element(By.PARTIAL_LINK_TEXT, "status").click()
    person.is_accessible()
    for chosen in person.all("select option[value=sale]"):
        chosen.click()
    person.press("Answer")
    assert "Answered" in person.find("[role=status]").text
    answers = (shop.folder / ".dlt" / "answers.toml").read_text()
    assert "=sale" in answers
    assert "=open" not in answers


def test_a_run_is_shown_until_its_end(shop: Bridge, opened: Callable[..., Person]) -> None:
    person = opened(shop)
    person.press("Run now")
    assert "Done" in person.find("#progress").text
    person.is_accessible()


def test_a_tab_whose_desk_has_ended_says_how_it_is_opened_again(
    project: Bridge, chromium: Callable[..., Person]
) -> None:
    person = chromium()
    run = project.folder / "desk" / "run.events"
    run.parent.mkdir(mode=0o700)
    with run_lock(run, "run", ""), serving(project.folder) as browser:
        person.open(browser.opener.as_uri())
        notice = person.find("[data-alive]")
        assert not notice.is_displayed()
    # the page that shows a run finds out by itself
    person.until(lambda _: notice.is_displayed())
    assert "orderbridge desk" in notice.text

    with serving(project.folder) as browser:
        person.open(browser.opener.as_uri())
        person.go("/import")
        notice = person.find("[data-alive]")
        person.driver.execute_script("dispatchEvent(new Event('focus'))")
        assert not notice.is_displayed()
    person.driver.execute_script("dispatchEvent(new Event('focus'))")
    person.until(lambda _: notice.is_displayed())
