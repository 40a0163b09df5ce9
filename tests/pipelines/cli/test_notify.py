"""`orderbridge run --notify`: the summary reaches the webhook; a webhook that fails changes nothing but is reported."""

from __future__ import annotations

import json
import re
import signal
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest import mock

import pytest

from orderbridge.pipelines.cli.process import STOP
from orderbridge.pipelines.reporting import notification
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import NotifySettings, Secret
from tests.pipelines.bridge import LISTED, Bridge
from tests.sources.rawserver import RawServer, serving

TOKEN = "token-4711"


def answer(status: str) -> bytes:
    return f"HTTP/1.1 {status}\r\nLocation: http://127.0.0.1:1/elsewhere\r\nContent-Length: 2\r\n\r\nok".encode()


class Webhook:
    """A server on loopback that keeps what was posted to it."""

    def __init__(self, server: RawServer) -> None:
        self.server, self.url = server, f"{server.url}/services/T0/{TOKEN}?sig=a%2Fb"

    @property
    def posted(self) -> list[dict[str, Any]]:
        return [json.loads(request.partition(b"\r\n\r\n")[2]) for request in self.server.seen]


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    with serving(answer("200 OK")) as server:
        yield Webhook(server)


def test_the_summary_of_a_run_reaches_the_webhook(published: Bridge, webhook: Webhook) -> None:
    state, report = published.platform.state, published.folder / "report.html"
    state.change("orders", state.ids("orders")[0], {"giftWrap": True})
    done = published.command("run", "--notify", webhook.url, "--report", str(report))
    assert done.code == 0, done.err
    (reported,) = re.findall(r"Run (\S+) \(orderbridge run,", report.read_text("utf-8"))
    assert reported == published.one("SELECT arg_max(run_id, rowid) FROM ops.runs")
    (posted,) = webhook.posted
    (head, *_) = webhook.server.seen[0].split(b"\r\n\r\n")
    assert head.startswith(f"POST /services/T0/{TOKEN}?sig=a%2Fb HTTP/1.1\r\n".encode())
    assert (posted["exit_code"], posted["published"], posted["run_id"]) == (0, True, reported)
    by_list = {row["resource"]: row for row in posted["lists"]}
    assert by_list["orders"] == {
        "resource": "orders", "verdict": "complete", "rows": 30, "new": 0, "changed": 1, "missing": 0, "quarantined": 0,
        "problem": "", "published_rows": 30,
    }  # fmt: skip
    assert posted["schema_changes"] == ["orders: new field orders.gift_wrap"]
    assert "orders: 30 complete, 1 changed" in posted["text"]
    everything = json.dumps(posted) + done.said
    private = [
        str(row[name])
        for row in state.records("customers")
        for name in ("email", "phone")
        if row.get(name)
    ]
    keys = (published.platform.legacy_key, published.platform.v1_key)
    assert not [value for value in (*private, *keys) if value in everything]
    assert TOKEN not in done.said


def test_a_webhook_that_does_not_take_it_is_reported_without_its_token(
    published: Bridge, webhook: Webhook
) -> None:
    webhook.server.scripts = (answer("302 Found"),)
    refused = "the notification was not delivered: cannot connect to 127.0.0.1:1: "
    for url, words in (
        (webhook.url, "answered with status 302"),
        (f"http://127.0.0.1:1/{TOKEN}", refused),
    ):
        done = published.command("run", "--notify", url, SOURCES__LEGACY__PAGE_LIMIT="none")
        assert (done.code, words in done.err, TOKEN in done.said) == (2, True, False)
    assert len(webhook.posted) == 1


def test_an_import_by_a_schedule_is_notified_with_its_counts_or_its_reason(
    fresh: Bridge, webhook: Webhook
) -> None:
    file = fresh.folder / "clientes.csv"
    file.write_text("Código;Nombre;Correo\nN1;Ana;ana@example.test\nN2;Eva;\n", "utf-8")
    given = ("import", "customers", str(file), "--passwords", "file")
    more = {"NOTIFY__URL": webhook.url, "SOURCES__LEGACY__LOGIN_MODE": "email"}
    done = fresh.command(*given, "--yes", "--json", **more)
    reported, lines = json.loads(done.out), {"confirmed.confirmed": 1, "rejected.rejected": 1}
    assert (done.code, reported["exit_code"], reported["push"]["lines"]) == (5, 5, lines), done.said
    assert reported["verify"]["outcomes"]["same"] == 1
    file.write_text("Ana María;García;Calle Mayor\nEva;Pérez;Plaza\n", "utf-8")
    refused = fresh.command(*given[:3], **more)
    assert refused.code == 2
    shown = fresh.command(*given[:3], "--json", "--values", **more)  # on a page, which says why
    assert shown.code == 2
    push = SimpleNamespace(error=UsageError("no space left"), lines={("confirmed", "confirmed"): 1})
    ended: Any = SimpleNamespace(
        plan=SimpleNamespace(kind="customers"), exit_code=2, push=push, error=None
    )
    for code in (2, 129):
        notified = NotifySettings(url=Secret(webhook.url), on="problems")
        notification.notify_import(notified, ended, ["       1  confirmed"], code, "do this")
    notification.notify_import(notified, ended, [], 0)  # is no problem
    sent, failed, ended_early, hung_up = webhook.posted
    assert (hung_up["exit_code"], "customers: stopped by Ctrl-C" in hung_up["text"]) == (129, True)
    ending = "(exit code 2)\nnext: do this\n1  confirmed\nno space left"
    assert ended_early["text"].endswith(ending)
    assert (sent["exit_code"], sent["kind"]) == (5, "customers")
    assert sent["lines"] == lines
    assert sent["text"].startswith(
        "warehouse: orderbridge import customers: done, with rejected rows (exit code 5)\nnext: "
    )
    assert sent["text"].count("next:") == 1
    assert not [text for text in ("Ana", "Eva", "ana@") if text in json.dumps(sent)]
    assert failed["text"].startswith("warehouse: orderbridge import failed with exit code 2: ")
    assert ("García" in refused.err, "García" in json.dumps(failed, ensure_ascii=False)) == (
        True,
        False,
    )


def test_a_run_that_fails_or_is_stopped_is_notified_with_its_reason(
    fresh: Bridge, webhook: Webhook
) -> None:
    """No name in it calls a whole channel; one whose copy to the destination failed is published."""
    wrong = {
        "SOURCES__LEGACY__API_KEY": "wrong-key-4711",
        "SOURCES__PUBLIC_V1__API_KEY": "x_test_y",
    }
    done = fresh.command("run", "--notify", webhook.url, **wrong)
    again = "Free space, then run it again: orderbridge run"
    full = UsageError("no field <!channel>", f"Nothing is lost. {again}")
    for error in (KeyboardInterrupt(), full):
        with (
            mock.patch.object(STOP, "signal", signal.SIGTERM),
            pytest.raises(type(error)),
            notification.notify_failure(Secret(webhook.url), signal_code=STOP.exit_code),
        ):
            raise error
    missing = str(fresh.folder / "no such folder" / "other.duckdb")
    copy = {"WAREHOUSE__DESTINATION": "duckdb", "DESTINATION__DUCKDB__CREDENTIALS": missing}
    page = fresh.folder / "report.html"
    copied = fresh.command("run", "--report", str(page), NOTIFY__URL=webhook.url, **copy)
    with mock.patch(
        "orderbridge.pipelines.reporting.report.report", side_effect=UsageError("no space left")
    ):
        reported = fresh.command("run", "--report", str(page), NOTIFY__URL=webhook.url)
    failed, stopped, called, published, unreported = webhook.posted
    assert (reported.code, unreported["published"], unreported["message"]) == (
        2,
        True,
        "no space left",
    )
    assert (done.code, failed["exit_code"], failed["published"]) == (3, 3, False)
    assert failed["text"].startswith("warehouse: orderbridge run failed with exit code 3: "), (
        "the current folder"
    )
    assert (failed["message"] in done.err, "wrong-key" in json.dumps(failed)) == (True, False)
    assert called["text"].split("\n")[1:] == [f"next: {again}", "Nothing is lost."]
    todo = "next: Replace the key in SOURCES__LEGACY__API_KEY, then: orderbridge check"
    assert failed["text"].split("\n", 2)[1:] == [todo, failed["hint"]]
    assert (stopped["exit_code"], stopped["published"], stopped["message"]) == (
        143,
        False,
        "stopped by a signal",
    )
    assert called["text"].split("\n")[0].endswith(": no field (!channel)")
    assert stopped["text"].split("\n")[1] == "next: orderbridge run"
    assert (copied.code, published["exit_code"], published["published"]) == (4, 4, True)
    run = fresh.one("SELECT min(run_id) FROM ops.runs")
    assert run in page.read_text("utf-8"), "its report is written"
    assert (
        "run: the warehouse was published, but what follows failed with exit code 4"
        in published["text"]
    )
    assert "The DuckDB file is published." in published["hint"]
    assert fresh.one("SELECT count(*) FROM raw.customers") == 40


def test_an_unread_list_is_reported_with_its_reason_whatever_the_webhook_answers(
    published: Bridge, webhook: Webhook
) -> None:
    webhook.server.scripts = (answer("500 Error"),)
    more = {"NOTIFY__URL": webhook.url, "SOURCES__LEGACY__API_KEY": "wrong"}
    done = published.command("run", "--log", "json", **more)
    assert (done.code, "answered with status 500" in done.err) == (3, True), done.err
    assert json.loads(done.err.splitlines()[0])["event"] == "started"
    events = [json.loads(line) for line in done.said.splitlines()]
    (command,) = [one["message"] for one in events if one["event"] == "next"]
    assert command == "Replace the key in SOURCES__LEGACY__API_KEY, then: orderbridge check"
    (posted,) = webhook.posted
    organization = published.one("SELECT organization FROM ops.warehouse")
    assert posted["organization"] == organization
    why = "authentication failed (status 401, code UNAUTHORIZED)"
    happened, todo, run, *_ = posted["text"].split("\n")
    assert happened.startswith(f"{posted['project']} ({organization}): the run ended with 3: ")
    assert happened.endswith(f" not read: legacy GET /customers: {why}")
    assert todo == f"next: {command}"
    assert run.startswith("run 2")
    accepted = published.one("SELECT min(ended_at) FROM ops.runs")
    assert (
        f"customers: not read; 40 rows kept from before: legacy GET /customers: {why}\n"
        f"  A key was accepted until {accepted:%Y-%m-%d}" in posted["text"]
    )
    rows = {row["resource"]: (row["rows"], row["published_rows"]) for row in posted["lists"]}
    unread = {name for name, of in LISTS.items() if of.family == "legacy"}
    assert rows == {name: (0 if name in unread else count, count) for name, count in LISTED.items()}
    found = dict(
        re.findall(r"(\w+): the last read was not published: (.*)", published.command("status").out)
    )
    assert (set(found), found["customers"]) == (unread, f"legacy GET /customers: {why}")


def test_what_cannot_be_written_or_notified_ends_a_run_before_its_first_request(
    fresh: Bridge,
) -> None:
    note = fresh.folder / "note.txt"
    note.write_text("mine", "utf-8")
    for path, words in (
        (note, "exists and is not a report"),
        (note / "report.html", "there is no folder"),
    ):
        done = fresh.command("run", "--report", str(path))
        assert (done.code, words in done.err, note.read_text("utf-8")) == (2, True, "mine")
    done = fresh.command("run", "--notify", f"https://user:{TOKEN}@host/x")
    assert (done.code, "notify.url" in done.err, TOKEN in done.said) == (2, True, False)
    assert fresh.platform.state.requests == 0


def test_check_sends_a_test_message_where_it_is_asked_to(
    published: Bridge, webhook: Webhook
) -> None:
    done = published.command("check", "--notify", NOTIFY__URL=webhook.url)
    assert (done.code, "ok    test message: delivered" in done.out) == (0, True), done.said
    (posted,) = webhook.posted
    assert posted["text"].endswith(": this is a test message")
    with serving(answer("500 Oops")) as server:
        for url, words in ((None, "not set"), (Secret(f"{server.url}/{TOKEN}"), "status 500")):
            with pytest.raises(UsageError, match=words) as caught:
                notification.post_test(url)
            assert "orderbridge init notify.url" in caught.value.hint
            assert TOKEN not in str(caught.value)
