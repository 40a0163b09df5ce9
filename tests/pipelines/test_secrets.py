"""Secrets are planted wherever they could come from, and looked for wherever they could get to.

By design, refused rows lie whole in `*.quarantine.jsonl`, and pages in the spool of a walk that can be gone on with,
both for the owner alone. Keys lie nowhere.
"""

from __future__ import annotations

import base64
import json
import logging
import stat
import time
from itertools import cycle
from pathlib import Path
from urllib.parse import quote

import duckdb
import pytest

from orderbridge.sandbox import app
from orderbridge.sandbox.app import PLANTED_KEY, PLANTED_PASSWORD
from orderbridge.sandbox.config import LEGACY_KEY, V1_KEY
from orderbridge.sandbox.faults import FAULTS, Draw, FaultPlan
from orderbridge.sandbox.messages import SandboxResponse, encoded
from orderbridge.sandbox.public_v1 import PublicV1
from orderbridge.sources.extract.spool import Spool
from tests.pipelines.bridge import Bridge, bridge, command, start, wait_for
from tests.sources.rawserver import serving, without_backoff

KEYS = (LEGACY_KEY, V1_KEY, PLANTED_KEY, PLANTED_PASSWORD)
PERSON = "Planted-Apellido-Privado"
HIDDEN = "planted_hidden_4711"
"""Stands in answers of a platform that says what it should not, as a part of the key, too."""
ECHOED = f"brand_test_{HIDDEN}"
CURSORS = ["expired_cursor", "repeated_cursor", "null_cursor"]
ENDING = ["error_with_password", "redirect", "echoed_key", "expired_key", *CURSORS]
"""Faults that are not tried again: they end a list."""
RETRIED = [
    f.name
    for f in FAULTS
    if f.kind == "disruption" and f.reach != "write" and f.name not in ("stall", "drip", *ENDING)
]
ALTERED = [f.name for f in FAULTS if f.kind == "alteration"]
FEW = {"customers": 12, "orders": 8, "promotions": 4, "price_lists": 3}
QUARANTINE, SPOOL = ".quarantine.jsonl", "spool"


def written(secret: str) -> set[bytes]:
    """The forms in which a secret would be found."""
    return {
        form.encode()
        for form in (secret, quote(secret, safe=""), json.dumps(secret)[1:-1], secret.upper())
    }


def reported_in(path: Path) -> bytes:
    """The bytes of a file; of a database its rows too, and of a spool its bodies: both are packed."""
    data = path.read_bytes()
    if path.parent.parent.name == SPOOL and data:
        spool = Spool(path)
        while (frame := spool._frame(spool.offset)) is not None:
            _, body, spool.offset = frame
            data += body
        spool.close()
    if (
        path.suffix != ".duckdb"
        or data[8:12] != b"DUCK"
        or path.with_name(path.name + ".wal").exists()
    ):
        return data
    with duckdb.connect(str(path), read_only=True) as connection:
        tables = connection.execute(
            "SELECT schema_name, table_name FROM duckdb_tables()"
        ).fetchall()
        for schema, table in tables:
            rows = connection.execute(f'SELECT t::VARCHAR FROM "{schema}"."{table}" t').fetchall()
            data += "\n".join(text for (text,) in rows).encode()
    return data


def leaks(folder: Path, *secrets: str, but: tuple[str, ...] = ()) -> list[str]:
    """Files below a folder that hold one of the secrets, in their bytes or their names; `but` those of such names."""
    found = []
    for path in folder.rglob("*"):
        where = str(path.relative_to(folder))
        if any(part in where for part in but):
            continue
        data = where.encode() + (reported_in(path) if path.is_file() else b"")
        found += [
            f"{secret} in {where}"
            for secret in secrets
            if any(form in data for form in written(secret))
        ]
    return found


def heard(text: str, *secrets: str) -> list[str]:
    """The secrets that a text holds."""
    return [secret for secret in secrets if any(form in text.encode() for form in written(secret))]


@pytest.fixture
def listening(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.DEBUG)
    return caplog


def plant_person(made: Bridge) -> None:
    """Rows that are quarantined, however their types drift, with personal data in the wrong field and next to it."""
    state = made.platform.state
    state.change(
        "customers", state.ids("customers")[2], {"birthdate": [PERSON], "lastName": f"{PERSON} II"}
    )
    state.change(
        "price_lists",
        state.ids("price_lists")[1],
        {"adjustmentValue": [PERSON], "name": f"{PERSON} III"},
    )


@pytest.mark.parametrize(
    "faults",
    [RETRIED[::2], RETRIED[1::2], ENDING[:2], *([fault] for fault in ENDING[2:]), ALTERED],
    ids="+".join,
)
def test_no_fault_brings_a_secret_out(
    tmp_path: Path, faults: list[str], listening: pytest.LogCaptureFixture
) -> None:
    shares = {fault: min(0.99, 1 / (len(faults) - n)) for n, fault in enumerate(faults)}
    rates = dict.fromkeys(faults, 1.0) if faults is ALTERED else shares
    with without_backoff(), bridge(tmp_path, page_limit=2, faults=rates, **FEW) as made:
        plant_person(made)
        done = made.command("pull", *(["orders"] if faults[0] in CURSORS else []), "--log", "json")
        seen = set("+".join(entry.fault for entry in made.platform.state.log).split("+"))
        assert (done.code == 1, seen - {""}) == (False, set(faults)), done.said
        assert heard(done.said + listening.text, *KEYS, PERSON) == []
        assert leaks(tmp_path, *KEYS) == []
        assert leaks(tmp_path, PERSON, but=(QUARANTINE, SPOOL)) == []
        if faults is ALTERED:
            kept = made.folder / f"{made.path.name}{QUARANTINE}"
            assert (stat.S_IMODE(kept.stat().st_mode), heard(kept.read_text("utf-8"), PERSON)) == (
                0o600,
                [PERSON],
            )


@pytest.mark.parametrize("fault", ["drip", ""], ids=["walk", "load"])
def test_a_killed_run_leaves_pages_to_their_owner_and_keys_to_nobody(
    tmp_path: Path, fault: str
) -> None:
    with bridge(tmp_path, page_limit=5, latency_ms=20 if fault else 0, drip_s=0.05) as made:
        plant_person(made)
        state = made.platform.state
        with start("run", "--log", "json", env=made.environment(), cwd=made.folder) as process:
            wait_for(lambda: len(state.log) > 8)
            if fault:
                made.platform.set_faults({fault: 1.0})
                wait_for(lambda: state.requests > len(state.log) or process.poll() is not None)
            time.sleep(0.1 if fault else 0.4)
            process.kill()
            out, err = process.communicate(timeout=300)
        assert heard(out + err, *KEYS, PERSON) == []
        assert leaks(tmp_path, *KEYS) == []
        assert leaks(tmp_path, PERSON, but=(QUARANTINE, SPOOL)) == []
        if fault:
            assert process.returncode == -9
            assert leaks(made.folder / f".build-{made.path.name}", PERSON)
        for path in made.folder.rglob("*"):
            assert stat.S_IMODE(path.stat().st_mode) == (0o700 if path.is_dir() else 0o600), path


@pytest.mark.parametrize(
    ("name", "value", "code", "cure"),
    [
        ("LEGACY__API_KEY", HIDDEN, 3, "authentication failed"),
        ("PUBLIC_V1__API_KEY", f"brand_test_{HIDDEN}", 3, "authentication failed"),
        (
            "LEGACY__BASE_URL",
            f"https://user:{HIDDEN}@platform.example",
            2,
            "sources.legacy.base_url",
        ),
        ("PUBLIC_V1__BASE_URL", f"https://{HIDDEN}.example/public/v1", 2, "Remove /public/v1"),
        ("LEGACY__API_KEY", f"{HIDDEN}\r\nX-Other: {HIDDEN}", 2, "sources.legacy.api_key"),
        ("PUBLIC_V1__API_KEY", f"prefix_{HIDDEN}", 2, "no prefix"),
        ("PUBLIC_V1__API_KEY", f"brand_live_{HIDDEN}", 2, "different environments"),
        ("LEGACY__ENVIRONMENT", HIDDEN, 2, "sandbox, production"),
        ("LEGACY__PAGE_LIMIT", HIDDEN, 2, "of at least 1"),
        ("LEGACY__API_KYE", HIDDEN, 2, "Did you mean `SOURCES__LEGACY__API_KEY`?"),
    ],
)
def test_a_wrong_key_or_setting_is_named_and_not_shown(
    tmp_path: Path, name: str, value: str, code: int, cure: str, listening: pytest.LogCaptureFixture
) -> None:
    with bridge(tmp_path) as made:
        wrong = {f"SOURCES__{name}": value}
        lists = ["orders" if name.startswith("PUBLIC") else "customers"] if code == 3 else []
        done, checked = made.command("pull", *lists, **wrong), made.command("check", **wrong)
        assert (done.code, cure in done.said, cure in checked.said) == (code, True, True), (
            done.said + checked.said
        )
        assert code == 3 or f"SOURCES__{name}" in done.err
        assert heard(done.said + checked.said + listening.text, HIDDEN) == []
        assert leaks(tmp_path, HIDDEN) == []


def test_settings_in_a_file_that_is_no_toml_are_not_shown(tmp_path: Path) -> None:
    (tmp_path / ".dlt").mkdir()
    (tmp_path / ".dlt/secrets.toml").write_text(f"[sources.legacy]\napi_key = {HIDDEN}\n")
    for arguments in (("pull",), ("check", "--log", "json")):
        done = command("--project", str(tmp_path), *arguments, env={}, cwd=tmp_path)
        assert (done.code, "secrets.toml, line 2" in done.err, heard(done.said, HIDDEN)) == (
            2,
            True,
            [],
        )
    assert leaks(tmp_path, HIDDEN, but=("secrets.toml",)) == []


def response(status: int, body: bytes, **headers: str) -> bytes:
    lines = {"Content_Type": "application/json", **headers, "Content_Length": str(len(body))}
    head = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in lines.items())
    return f"HTTP/1.1 {status} Reason\r\n{head}\r\n".encode() + body


def _error(code: str) -> bytes:
    reported = {"code": code, "message": code, "requestId": code, "details": [code]}
    return json.dumps({"error": reported, "errors": [reported]}).encode()


HTML = f"<html><title>{HIDDEN}</title></html>".encode()
NO_LIST = json.dumps({"data": HIDDEN, "hasMore": HIDDEN, "nextCursor": HIDDEN}).encode()
NO_TOTAL = json.dumps(
    {"data": [], "pagination": {"total": HIDDEN, "hasNextPage": HIDDEN}, "hasMore": HIDDEN}
).encode()
ANSWERS: dict[str, tuple[int, bytes, dict[str, str]]] = {
    "the key in a 401": (401, _error(ECHOED), {}),
    "the key in a 429": (429, _error(ECHOED), {"Retry_After": HIDDEN}),
    "text for an error": (400, HIDDEN.encode(), {"Content_Type": "text/plain"}),
    "a key in Location": (302, b"", {"Location": f"http://platform.example/?key={ECHOED}"}),
    "JSON cut short": (200, b'{"data":[{"id":1,"firstName":"' + HIDDEN.encode(), {}),
    "an HTML page": (200, HTML, {"Content_Type": "text/html"}),
    "data that is no list": (200, NO_LIST, {}),
    "a total that is none": (200, NO_TOTAL, {}),
    "an encoding that is none": (200, b"{}", {"Content_Encoding": HIDDEN}),
    "gzip that is none": (200, HIDDEN.encode(), {"Content_Encoding": "gzip"}),
}


@pytest.mark.parametrize("answer", ANSWERS)
def test_no_answer_brings_a_secret_out(
    tmp_path: Path, answer: str, listening: pytest.LogCaptureFixture
) -> None:
    status, body, headers = ANSWERS[answer]
    code = 3 if status == 401 else 4
    with (
        without_backoff(),
        bridge(tmp_path) as made,
        serving(response(status, body, **headers)) as server,
    ):
        wrong = {f"SOURCES__{family}__BASE_URL": server.url for family in ("LEGACY", "PUBLIC_V1")}
        wrong |= {f"SOURCES__{family}__API_KEY": ECHOED for family in ("LEGACY", "PUBLIC_V1")}
        done, checked = made.command("pull", **wrong), made.command("check", **wrong)
        assert (done.code, checked.code) == (code, code), done.said + checked.said
        assert heard(done.said + checked.said + listening.text, HIDDEN) == []
        assert leaks(tmp_path, HIDDEN) == []


SHAPES: list[object] = [
    {"id": {"a": HIDDEN}}, {"id": [HIDDEN]}, {"firstName": HIDDEN}, HIDDEN, [HIDDEN],
    {"id": 2, "documents": HIDDEN, "name": {"first": HIDDEN}, "priceListId": {"a": HIDDEN}, "useCount": HIDDEN},
]  # fmt: skip


@pytest.mark.parametrize(
    "rows", [json.dumps(SHAPES)[1:-1].encode(), f'{{"id":1,{HIDDEN}}}'.encode()]
)
def test_rows_of_another_shape_are_kept_for_their_owner_alone(
    tmp_path: Path, rows: bytes, listening: pytest.LogCaptureFixture
) -> None:
    body = b'{"data":[%s],"pagination":{"total":1,"hasNextPage":false},"hasMore":false}' % rows
    with without_backoff(), bridge(tmp_path) as made, serving(response(200, body)) as server:
        done = made.command("pull", "customers", "promotions", SOURCES__LEGACY__BASE_URL=server.url)
        assert done.code in (4, 5, 7), done.said
        assert heard(done.said + listening.text, HIDDEN) == []
        others = leaks(tmp_path, HIDDEN, but=(QUARANTINE, SPOOL))
        assert [path for path in others if not path.endswith(made.path.name)] == []
        if made.path.exists():
            assert (
                heard(
                    str(made.dicts("FROM ops.coverage") + made.dicts("FROM ops.quarantine")), HIDDEN
                )
                == []
            )


ECHOES = (
    str,
    lambda key: key[4:],
    lambda key: key[::-1],
    lambda key: "".join(f"%{ord(char):02x}" for char in key),
    lambda key: base64.b64encode(f"Bearer {key}".encode()).decode(),
    lambda key: "".join(f"\\u{ord(char):04x}" for char in key),
    lambda key: json.dumps({"key": key}),
)


def test_what_a_platform_echoes_of_a_key_is_masked_in_every_place(
    tmp_path: Path, listening: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As organization and scope it gets into the warehouse, plans and report; as an error into messages and results."""
    shown = [echo(key) for key in (V1_KEY, LEGACY_KEY) for echo in ECHOES]
    words, codes = " and ".join(shown), cycle(shown)

    def whoami(*_: object) -> SandboxResponse:
        reported = {"org": words, "environment": "sandbox", "scopes": ["prices:read", *shown]}
        return SandboxResponse(200, encoded(reported))

    def echoed(family: str) -> SandboxResponse:
        error = {"code": next(codes), "message": f"no {words}", "requestId": next(codes)}
        return SandboxResponse(400, encoded({"error": error, "errors": [error]}))

    monkeypatch.setattr(PublicV1, "_whoami", whoami)
    monkeypatch.setattr(app, "_echoed_key", echoed)
    with without_backoff(), bridge(tmp_path, page_limit=5, **FEW) as made:
        state, rows = made.platform.state, made.folder / "erp.csv"
        state.change("customers", state.ids("customers")[0], {"firstName": f"of {LEGACY_KEY}"})
        rows.write_text("erpCode,email,firstName\nN1,n@example.test,Ana\n")
        plan = ("plan", "customers", str(rows), "--json", "--out", "plan-n", "--passwords", "file")
        steps = (("run", "--log", "json"), ("check",), plan, ("report",))
        login = {"SOURCES__LEGACY__LOGIN_MODE": "email"}
        said = [made.command(*step, **login) for step in steps]
        assert [done.code for done in said] == [0, 0, 0, 0], said[2].said
        made.platform.set_faults({"echoed_key": 1.0})
        said += [made.command("pull"), made.command("check")]
        monkeypatch.setattr(
            FaultPlan, "draw", lambda _, call: Draw("echoed_key" if call.body else "")
        )
        said += [
            made.command("push", "plan-n", "--yes", **login),
            made.command("run"),
            made.command("status"),
        ]
        assert [done.code for done in said[4:]] == [4, 4, 5, 0, 0], said[6].said
        assert "***" in str(made.dicts("FROM ops.warehouse"))
        assert "***" in made.one(
            "SELECT max(first_name) FROM raw.customers WHERE first_name LIKE 'of %'"
        )
        assert "***" in (made.folder / "plan-n/plan.json").read_text()
        assert "***" in (made.folder / "plan-n/results/rejected.csv").read_text()
        assert heard("".join(done.said for done in said) + listening.text, *shown) == []
        assert leaks(tmp_path, *shown) == []
        with duckdb.connect(str(made.path)) as connection:  # as version 0.3.0 stored it
            connection.execute("UPDATE ops.warehouse SET organization = ?", [words])
        assert made.command("run").code == 0
