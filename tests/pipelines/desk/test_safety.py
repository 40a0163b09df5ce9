"""Who can see the desk, and who cannot: attacks on a real server, on loopback."""

from __future__ import annotations

import socket
import stat
import threading
import webbrowser
from pathlib import Path

import httpx
import pytest

from orderbridge.pipelines.desk import server
from orderbridge.pipelines.desk.server import DeskOptions, serve
from orderbridge.pipelines.desk.session import TOKEN_LIFETIME_S, Session
from orderbridge.pipelines.desk.texts import Texts
from tests.pipelines.desk.browser import Browser, serving

MARKUP = '<script>alert("x")</script>&amp;'


def test_only_loopback_is_listened_on(closed: Browser) -> None:
    port = closed.client.base_url.port
    assert port is not None
    with pytest.raises(OSError, match="refused"):
        socket.create_connection(("127.0.0.2", port), timeout=5)


def test_the_address_is_in_a_file_of_this_user_alone_that_ends_with_the_desk(
    project: Path,
) -> None:
    with serving(project) as browser:
        opener = browser.opener
        assert stat.S_IMODE(opener.stat().st_mode) == 0o600
        assert stat.S_IMODE(opener.parent.stat().st_mode) == 0o700
    assert not opener.exists()


def test_the_browser_gets_a_file_and_never_the_token(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[str] = []
    tokens: list[str] = []

    def open_browser(url: str) -> bool:
        opened.append(url)
        tokens.append(
            Browser(project, 1, [], threading.current_thread()).address.rpartition("/")[2]
        )
        return True

    monkeypatch.setattr(webbrowser, "open", open_browser)
    stop = threading.Event()
    stop.set()
    lines: list[str] = []
    serve(DeskOptions(), stop, lines.append)
    assert opened[0].startswith("file://")
    assert tokens[0] not in "".join([*opened, *lines])


def test_no_process_shows_the_token_in_its_command_line(closed: Browser) -> None:
    token = closed.address.rpartition("/")[2].encode()
    for process in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            assert token not in process.read_bytes()
        except OSError:
            continue


def test_the_address_is_printed_on_a_terminal_only(project: Path) -> None:
    with serving(project) as browser:
        assert browser.address not in browser.lines[0]
        assert str(browser.opener) in browser.lines[0]
    with serving(project, shows_address=True) as browser:
        assert browser.address in browser.lines[0]


def test_a_second_use_of_the_address_ends_the_desk(closed: Browser) -> None:
    address = closed.address
    closed.enter()
    response = httpx.get(address, trust_env=False)
    assert response.status_code == 403
    assert "used before" in response.text
    assert closed.thread is not None
    closed.thread.join(10)
    assert not closed.thread.is_alive()
    assert "a second time" in closed.lines[-1]


def test_a_wrong_token_neither_enters_nor_ends_the_desk(closed: Browser) -> None:
    response = closed.client.get("/enter/wrong")
    assert response.status_code == 403
    assert "set-cookie" not in response.headers
    assert closed.client.head(closed.address).status_code == 403  # a preview uses nothing up
    closed.enter()
    assert closed.get("/").status_code == 200


def test_the_address_ends_after_ten_minutes() -> None:
    now = 0.0
    session = Session(1, clock=lambda: now)
    token = session.address.rpartition("/")[2]
    now = TOKEN_LIFETIME_S + 1
    assert session.enter(token) == "expired"
    assert not session.is_cookie(session.cookie)


def test_the_cookie_is_for_the_pages_of_this_desk_and_for_no_script(closed: Browser) -> None:
    response = closed.enter()
    cookie = response.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "samesite=strict" in cookie.lower()
    assert f"Path={closed.base}" in cookie  # not sent to what listens on another port
    assert cookie.startswith(f"orderbridge-{closed.client.base_url.port}-")


@pytest.mark.parametrize(
    "path", ["/", "/import", "/questions", "/run/progress", "/static/desk.css"]
)
def test_without_the_cookie_nothing_is_shown(desk: Browser, path: str) -> None:
    address = desk.client.base_url.join(f"{desk.base}{path}")
    response = httpx.get(address, trust_env=False)
    assert response.status_code == 403
    assert desk.form_token not in response.text


def test_the_cookie_of_another_desk_opens_nothing(desk: Browser, tmp_path: Path) -> None:
    other = Session(desk.client.base_url.port or 0)
    with httpx.Client(base_url=desk.client.base_url, trust_env=False) as client:
        client.cookies.set(other.cookie_name, other.cookie)
        assert client.get(f"{desk.base}/").status_code == 403
        (own,) = desk.client.cookies.jar
        client.cookies.set(own.name, other.cookie)
        assert client.get(f"{desk.base}/").status_code == 403


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "169.254.1.1:80", ""])
def test_a_foreign_host_is_refused_although_it_leads_here(desk: Browser, host: str) -> None:
    response = desk.get("/", headers={"Host": host})
    assert response.status_code == 400
    assert desk.form_token not in response.text


def test_another_port_of_this_machine_is_a_host_too(desk: Browser) -> None:
    assert desk.get("/", headers={"Host": "localhost:8080"}).status_code == 200


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "http://127.0.0.1:1", "Sec-Fetch-Site": "same-site"},
        {"Origin": "null", "Sec-Fetch-Site": "cross-site"},
    ],
)
def test_a_form_of_another_page_is_refused(desk: Browser, headers: dict[str, str]) -> None:
    response = desk.post("/run", headers=headers)
    assert response.status_code == 403
    assert not (desk.folder / "desk" / "run.events").exists()


@pytest.mark.parametrize("token", ["", "wrong"])
def test_a_form_without_its_token_is_refused(desk: Browser, token: str) -> None:
    desk.form_token = token
    assert desk.post("/run").status_code == 403
    file = {"file": ("a.csv", b"a;b\n1;2\n")}
    assert desk.post("/import", files=file, kind="customers").status_code == 403
    assert [path.name for path in (desk.folder / "desk").iterdir() if path.is_dir()] == []


def test_no_other_method_is_answered(desk: Browser) -> None:
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE"):
        assert desk.client.request(method, f"{desk.base}/").status_code == 405


def test_each_response_forbids_foreign_content_caches_and_referrers(desk: Browser) -> None:
    foreign = desk.get("/", headers={"Host": "evil.example"})
    for response in (desk.get("/"), desk.get("/nothing"), foreign, desk.client.get("/enter/wrong")):
        assert response.headers["content-security-policy"].startswith("default-src 'self';")
        assert "unsafe" not in response.headers["content-security-policy"]
        assert response.headers["cache-control"] == "no-store"
        assert response.headers["referrer-policy"] == "no-referrer"
        assert response.headers["x-content-type-options"] == "nosniff"


def test_no_page_needs_what_its_policy_forbids(shop_desk: Browser) -> None:
    for path in ("/", "/import", "/questions", "/report"):
        page = shop_desk.get(path).text
        assert " style=" not in page
        assert "<style" not in page
        assert " onclick=" not in page
        assert page.count("<script") == 1
        assert 'src="http' not in page


def test_an_upload_beyond_the_bound_is_refused_and_leaves_nothing(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "UPLOAD_BYTES_MAX", 100_000)
    with serving(project) as browser:
        browser.enter()
        file = {"file": ("a.csv", b"a" * 1_000_000)}
        try:
            response = browser.post("/import", files=file, kind="customers")
        except httpx.WriteError:  # the server does not wait for the rest
            pass
        else:
            assert response.status_code == 413
        assert [path for path in (project / "desk").iterdir() if path.is_dir()] == []
        assert browser.get("/").status_code == 200


def test_an_upload_is_private_and_its_name_is_no_path(desk: Browser) -> None:
    file = {"file": ("../../.dlt/..\\secrets.csv", b"a;b\n1;2\n")}
    response = desk.post("/import", files=file, kind="customers")
    assert response.status_code == 303
    (kept,) = (desk.folder / "desk").glob("*/file/*")
    assert kept.name == "secrets.csv"
    assert kept.read_bytes() == b"a;b\n1;2\n"
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600
    assert stat.S_IMODE(kept.parent.stat().st_mode) == 0o700


def test_markup_in_the_name_of_a_file_is_text(desk: Browser) -> None:
    name = "<script>alert(1)<.csv"
    desk.post("/import", files={"file": (name, b"a;b\n1;2\n")}, kind="customers")
    page = desk.get("/import").text
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;.csv" in page


@pytest.mark.parametrize(
    "name", ["customers-20260101-000000", "%2e%2e", "..%2f..", "customers-x", "a/b"]
)
def test_no_name_of_an_import_leads_elsewhere(desk: Browser, name: str) -> None:
    (desk.folder / "desk" / "customers-x" / "file").mkdir(parents=True)
    (desk.folder / "desk" / "customers-x" / "file" / "a.csv").write_text("a")
    assert desk.get(f"/import/{name}").status_code == 404


def test_an_idle_desk_ends_but_never_while_its_command_runs(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 0.0
    session = Session(1, clock=lambda: now)
    busy = [True, True, False]
    asked: list[bool] = []

    def is_busy() -> bool:
        asked.append(busy[len(asked)])
        return asked[-1]

    monkeypatch.setattr(server, "is_busy", is_busy)
    monkeypatch.setattr(server, "_POLL_S", 0.0)
    now = server.IDLE_S + 1
    assert "an hour" in Texts("en")(server._wait(session, threading.Event()))
    assert asked == busy
