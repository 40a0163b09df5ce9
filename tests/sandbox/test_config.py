"""Configurations that cannot be, one's own records, and the command."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest

from sandbox import SandboxConfig, SandboxConfigError
from sandbox.faults import NAMES
from tests.sandbox.talk import V1, talking

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("config", "words"),
    [
        pytest.param({"faults": {"no_such": 0.5}}, "Use one of: rate_429", id="fault"),
        pytest.param({"faults": {"eror_503": 0.5}}, r"Did you mean error_503\?", id="fault-misspelt"),
        pytest.param({"faults": {"error_500": 1.5}}, "from 0 to 1", id="rate"),
        pytest.param({"faults": {"error_500": float("nan")}}, "from 0 to 1", id="rate-nan"),
        pytest.param({"readings": {"no_such": "x"}}, "Use one of: adjustment_types", id="reading"),
        pytest.param({"readings": {"created_status": "204"}}, "Use one of: 201, 200", id="reading-value"),
        pytest.param({"records": Path("/no/such/folder")}, "is not a folder", id="folder"),
        pytest.param({"login_mode": "phone"}, "`email` or `code`", id="login-mode"),
        pytest.param({"customers": -1}, "from 0 on", id="amount"),
        pytest.param({"latency_ms": float("nan")}, "from 0 on", id="latency-nan"),
        pytest.param({"stall_s": float("inf")}, "from 0 on", id="stall-infinite"),
        pytest.param({"rate_per_s": 0}, "1 or more", id="rate-limit"),
        pytest.param({"port": 70000}, "65535", id="port"),
    ],
)
def test_invalid_configurations_are_errors(config: dict[str, Any], words: str) -> None:
    with pytest.raises(SandboxConfigError, match=words):
        SandboxConfig(**config)


def test_every_fault_can_be_asked_for() -> None:
    assert SandboxConfig(faults=dict.fromkeys(NAMES, 0.5)).faults.keys() == NAMES.keys()


def test_no_records_at_all() -> None:
    with talking(customers=0, orders=0, promotions=0, price_lists=0) as (_, client):
        assert client.get("/customers").json() == {"data": []}
        pagination = client.get("/promotions").json()["pagination"]
        assert pagination == {"page": 1, "pages": 0, "total": 0, "hasPrevPage": False, "hasNextPage": False}
        assert client.get(f"{V1}/orders").json() == {"data": [], "hasMore": False, "nextCursor": None}
        assert client.get(f"{V1}/prices/lists").json() == {"priceLists": []}


def test_own_records_keep_their_bytes(tmp_path: Path) -> None:
    row = '{ "id": 1.0, "total": 12.50, "big": 12345678901234567890.10, "name": "\\u00e1" }'
    (tmp_path / "customers.json").write_text(f"[ {row} ,\n {row.replace('1.0', '2', 1)}\n]")
    (tmp_path / "orders.json").write_text('[{"id":"a","n":1e3}]')
    with talking(records=tmp_path, promotions=2) as (sandbox, client):
        assert row in client.get("/customers?limit=1").text
        assert sandbox.state.ids("customers") == ["1", "2"]
        assert '{"id":"a","n":1e3}' in client.get(f"{V1}/orders").text
        assert len(client.get("/promotions").json()["data"]) == 2
        assert client.post("/customers", json={"password": "x", "email": "a@example.com"}).status_code == 201
        assert len(set(sandbox.state.ids("customers"))) == 3


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[1]", '[{"id":1},', '[{"id":null}]', '[{"id":{}}]'],
    ids=["empty", "object", "number", "cut", "null-id", "object-id"],
)
def test_own_records_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "orders.json").write_text(text)
    with pytest.raises(SandboxConfigError, match=r"orders\.json"), talking(records=tmp_path):
        pass


def test_own_records_without_an_id_are_served(tmp_path: Path) -> None:
    rows = '[{"number":7},{"number":8}]'
    (tmp_path / "orders.json").write_text(rows)
    with talking(records=tmp_path) as (_, client):
        assert client.get(f"{V1}/orders").json()["data"] == [{"number": 7}, {"number": 8}]


def test_a_taken_port() -> None:
    with (
        talking() as (sandbox, _),
        pytest.raises(OSError, match="in use"),
        talking(port=int(sandbox.url.rpartition(":")[2])),
    ):
        pass


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command(number: signal.Signals) -> None:
    code = "from sandbox import SandboxConfig; from sandbox.server import run; run(SandboxConfig(customers=3))"
    with subprocess.Popen(
        [sys.executable, "-W", "error", "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout
        assert process.stderr
        try:
            ready, *rest = [process.stdout.readline().strip() for _ in range(7)]
            url = ready.removeprefix("ready ")
            settings = dict(line.split("=", 1) for line in rest)
            assert settings["SOURCES__LEGACY__BASE_URL"] == settings["SOURCES__PUBLIC_V1__BASE_URL"] == url
            assert settings["SOURCES__LEGACY__ENVIRONMENT"] == "sandbox"
            assert settings["SOURCES__LEGACY__LOGIN_MODE"] == "email"
            headers = {"api-key": settings["SOURCES__LEGACY__API_KEY"]}
            assert len(httpx.get(f"{url}/customers", headers=headers).json()["data"]) == 3
            bearer = {"Authorization": f"Bearer {settings['SOURCES__PUBLIC_V1__API_KEY']}"}
            assert httpx.get(f"{url}{V1}/whoami", headers=bearer).status_code == 200
            process.send_signal(number)
            assert process.wait(10) == 0
            assert process.stdout.read() == ""
            assert process.stderr.read() == ""
        finally:
            process.kill()
