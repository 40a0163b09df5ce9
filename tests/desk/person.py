"""Chromium without a window, and a desk that it opens as a person's browser does: by the file that leads to it."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from axe_selenium_python import Axe
from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.support.ui import WebDriverWait

from tests.pipelines.bridge import Bridge, bridge, pulled
from tests.pipelines.desk.browser import serving

PATIENCE_S = 120
_ARGUMENTS = ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage")


class Person:
    """Who sits in front of the desk."""

    def __init__(self, driver: webdriver.Chrome) -> None:
        self.driver = driver
        self.base = ""

    def open(self, opener: str) -> None:
        """Opens the file, and waits until it has led to the first page."""
        self.driver.get(opener)
        self.until(lambda driver: driver.current_url.startswith("http://127.0.0.1"))
        self.until(lambda driver: "/enter/" not in driver.current_url)
        self.base = self.driver.current_url.rstrip("/")

    def go(self, path: str) -> None:
        self.driver.get(f"{self.base}{path}")

    def until(self, condition: Callable[[webdriver.Chrome], Any]) -> Any:
        """Waits until a condition holds; an element of a page that is being replaced has no answer yet."""
        ignored = (StaleElementReferenceException,)
        return WebDriverWait(self.driver, PATIENCE_S, ignored_exceptions=ignored).until(condition)

    def find(self, selector: str) -> Any:
        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def all(self, selector: str) -> list[Any]:
        return [*self.driver.find_elements(By.CSS_SELECTOR, selector)]

    def press(self, words: str) -> None:
        """Presses the button with these words, and waits for the next page and the end of what runs there."""
        before = self.find("html")
        self.driver.find_element(By.XPATH, f"//button[contains(., '{words}')]").click()
        self.until(lambda _: self.find("html") != before)
        self.until(lambda driver: not driver.find_elements(By.CSS_SELECTOR, "[data-refresh]"))

    def drop(self, file: str, kind: str, words: str) -> None:
        """Chooses a file and its kind."""
        self.go("/import")
        self.find(f"input[value={kind}]").click()
        self.find(".upload input[type=file]").send_keys(file)
        self.press(words)

    @property
    def text(self) -> str:
        return str(self.find("main").text)

    def is_accessible(self) -> None:
        """axe finds nothing wrong with the page, and nothing is wider than the window."""
        axe = Axe(self.driver)
        axe.inject()
        found = axe.run({"exclude": [["iframe"]]})["violations"]
        assert not found, axe.report(found)
        wide = "return document.documentElement.scrollWidth - document.documentElement.clientWidth"
        assert self.driver.execute_script(wide) <= 1


@pytest.fixture
def chromium() -> Iterator[Callable[..., Person]]:
    """Starts browsers. `zoom` is that of the page; `has_scripts` False: it runs none."""
    started: list[webdriver.Chrome] = []

    def start(*, zoom: float = 1, has_scripts: bool = True, is_dark: bool = False) -> Person:
        options = webdriver.ChromeOptions()
        options.binary_location = shutil.which("chromium") or ""
        size = f"--window-size={1280 / zoom:.0f},{900 / zoom:.0f}"
        for argument in (*_ARGUMENTS, size, f"--force-device-scale-factor={zoom}"):
            options.add_argument(argument)
        if is_dark:
            options.add_argument("--blink-settings=preferredColorScheme=0")
        if not has_scripts:
            blocked = {"profile.managed_default_content_settings.javascript": 2}
            options.add_experimental_option("prefs", blocked)
        driver = webdriver.Chrome(options, Service(shutil.which("chromedriver")))
        started.append(driver)
        return Person(driver)

    yield start
    for driver in started:
        driver.quit()


@pytest.fixture
def project(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    """A sandbox that nothing was read of."""
    with bridge(tmp_path) as made:
        monkeypatch.setenv("DLT_PROJECT_DIR", str(made.folder))
        monkeypatch.setenv("SOURCES__LEGACY__LOGIN_MODE", "email")
        yield made


@pytest.fixture
def shop(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[Bridge]:
    """A sandbox that was read and reconciled."""
    from orderbridge.pipelines.reconcile.reconcile import reconcile

    with pulled(tmp_path, reconcile) as made:
        monkeypatch.setenv("DLT_PROJECT_DIR", str(made.folder))
        yield made


@pytest.fixture
def opened(chromium: Callable[..., Person]) -> Iterator[Callable[..., Person]]:
    """Opens a desk of a project in a browser."""
    ends: list[Any] = []

    def open_desk(project: Bridge, language: str = "en", **options: Any) -> Person:
        desk = serving(project.folder, language=language)
        browser = desk.__enter__()
        ends.append(desk)
        person = chromium(**options)
        person.open(browser.opener.as_uri())
        return person

    yield open_desk
    for desk in ends:
        desk.__exit__(None, None, None)
