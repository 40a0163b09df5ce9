"""`orderbridge run --notify`: the summary reaches the webhook; a webhook that fails changes nothing but is reported."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.bridge import Bridge, Done, command


class Webhook:
    """A server on loopback that keeps what was posted to it, and answers with a status."""

    def __init__(self) -> None:
        self.posted: list[dict[str, Any]] = []
        self.status, self.headers = 200, dict[str, str]()
        webhook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                webhook.posted.append({"path": self.path, "type": self.headers["Content-Type"], **json.loads(body)})
                self.send_response(webhook.status)
                for name, value in webhook.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", "2")
                self.end_headers()
                self.wfile.write(b"ok")

            def log_message(self, *_: object) -> None:
                pass

        self.server = HTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/services/T0/token-4711?sig=a%2Fb"


@pytest.fixture
def webhook() -> Iterator[Webhook]:
    served = Webhook()
    thread = threading.Thread(target=served.server.serve_forever)
    thread.start()
    yield served
    served.server.shutdown()
    thread.join()
    served.server.server_close()


def run(bridge: Bridge, *arguments: str, **more: str) -> Done:
    return command("run", *arguments, env=bridge.environment(**more), cwd=bridge.folder.parent)


def test_the_summary_of_a_run_reaches_the_webhook(fresh: Bridge, webhook: Webhook) -> None:
    assert run(fresh).code == 0
    assert webhook.posted == []
    fresh.platform.state.change("orders", fresh.platform.state.ids("orders")[0], {"giftWrap": True})
    report = fresh.folder / "report.html"
    done = run(fresh, "--notify", webhook.url, "--report", str(report))
    assert done.code == 0, done.err
    assert posted_run(report) == fresh.one("SELECT max(run_id) FROM ops.runs")
    (posted,) = webhook.posted
    assert (posted["path"], posted["type"]) == ("/services/T0/token-4711?sig=a%2Fb", "application/json")
    assert (posted["exit_code"], posted["published"]) == (0, True)
    by_list = {row["resource"]: row for row in posted["lists"]}
    assert by_list["orders"] == {
        "resource": "orders", "verdict": "complete", "rows": 30, "new": 0, "changed": 1, "missing": 0, "quarantined": 0
    }  # fmt: skip
    assert posted["schema_changes"] == ["orders: new field orders.gift_wrap"]
    assert posted["run_id"] in done.out
    assert "orders: 30 complete, 1 changed" in posted["text"]
    assert posted["text"].endswith("orders: new field orders.gift_wrap")
    everything = json.dumps(posted) + done.said
    customers = fresh.platform.state.records("customers")
    private = [str(row[name]) for row in customers for name in ("email", "phone", "lastName") if row.get(name)]
    assert not [value for value in (*private, fresh.platform.legacy_key, fresh.platform.v1_key) if value in everything]
    assert "token-4711" not in done.said


def posted_run(report: Path) -> str:
    """The run that a report is about."""
    (run_id,) = re.findall(r"Run (\S+) \(orderbridge run,", report.read_text("utf-8"))
    return str(run_id)


def test_a_report_that_cannot_be_written_ends_a_run_before_its_first_request(fresh: Bridge) -> None:
    note = fresh.folder / "note.txt"
    note.write_text("mine", "utf-8")
    done = run(fresh, "--report", str(note))
    assert (done.code, note.read_text("utf-8"), fresh.platform.state.requests) == (2, "mine", 0)
    assert "exists and is not a report" in done.err


def test_a_webhook_that_fails_is_reported_and_changes_no_exit_code(fresh: Bridge, webhook: Webhook) -> None:
    webhook.status = 500
    done = run(fresh, NOTIFY__URL=webhook.url)
    assert done.code == 0
    assert "the notification was not delivered: 127.0.0.1" in done.err
    assert "answered with status 500" in done.err
    webhook.status, webhook.headers = 302, {"Location": "http://127.0.0.1:1/elsewhere"}
    assert "answered with status 302" in run(fresh, NOTIFY__URL=webhook.url).err
    assert len(webhook.posted) == 2
    done = run(fresh, "--notify", "http://127.0.0.1:1/token-4711")
    assert done.code == 0
    assert "the notification was not delivered: cannot connect to 127.0.0.1:1: connection refused" in done.err
    assert "token-4711" not in done.said


def test_a_run_that_fails_is_notified_with_its_reason(fresh: Bridge, webhook: Webhook) -> None:
    done = run(
        fresh,
        "--notify",
        webhook.url,
        SOURCES__LEGACY__API_KEY="wrong-key-4711",
        SOURCES__PUBLIC_V1__API_KEY="x_test_y",
    )
    assert done.code == 3
    (posted,) = webhook.posted
    assert (posted["exit_code"], posted["published"]) == (3, False)
    assert posted["text"].startswith("orderbridge run failed with exit code 3: ")
    assert posted["message"] in done.err
    assert "wrong-key" not in json.dumps(posted)


def test_a_run_whose_copy_to_the_destination_failed_is_notified_as_published(
    fresh: Bridge, webhook: Webhook, tmp_path: Path
) -> None:
    missing = str(tmp_path / "no such folder" / "other.duckdb")
    done = run(
        fresh, NOTIFY__URL=webhook.url, WAREHOUSE__DESTINATION="duckdb", DESTINATION__DUCKDB__CREDENTIALS=missing
    )
    assert done.code == 4
    assert fresh.one("SELECT count(*) FROM raw.customers") == 40
    (posted,) = webhook.posted
    assert (posted["exit_code"], posted["published"]) == (4, True)
    expected = "orderbridge run: the warehouse was published, but its copy to the destination failed with exit code 4: "
    assert posted["text"].startswith(expected)
    assert "The DuckDB file is published." in posted["hint"]


def test_the_help_recommends_the_setting_for_a_url_with_a_token(tmp_path: Path) -> None:
    text = " ".join(command("run", "--help", env={}, cwd=tmp_path).out.split())
    assert "in the process list: set one with a token as NOTIFY__URL or in .dlt/secrets.toml." in text


@pytest.mark.parametrize(
    "url", ["http://hooks.example.com/x", "hooks", "https://user:token-4711@host/x", "ftp://a/b", ""]
)
def test_a_webhook_that_cannot_be_used_ends_the_run_before_its_first_request(fresh: Bridge, url: str) -> None:
    done = run(fresh, "--notify", url)
    assert done.code == 2
    assert "notify.url" in done.err
    assert "token-4711" not in done.said
    assert fresh.platform.state.requests == 0
