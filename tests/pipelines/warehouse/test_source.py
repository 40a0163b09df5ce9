"""Whose data a warehouse holds: a run from another host, environment or organization does not publish into it."""

from __future__ import annotations

import os
from unittest import mock

import duckdb
import pytest

from pipelines.pull import walking
from pipelines.pull.targets import read_targets
from pipelines.warehouse.source import DataSource, read_source
from sandbox import SandboxConfig, serve
from sources.errors import Unreachable, UsageError
from tests.pipelines.bridge import SMALL, Bridge, command, settings


def recorded(made: Bridge) -> DataSource:
    with duckdb.connect(str(made.path), read_only=True) as connection:
        return read_source(connection)


def test_nothing_is_known_of_a_file_that_no_run_has_written() -> None:
    with duckdb.connect() as connection:
        assert read_source(connection) == DataSource()


def host(made: Bridge) -> str:
    return made.platform.url.removeprefix("http://")


def test_the_source_is_recorded_and_known_parts_stay(fresh: Bridge, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.delenv("SOURCES__PUBLIC_V1__BASE_URL")
        patch.delenv("SOURCES__PUBLIC_V1__API_KEY")
        assert fresh.code("customers") == 0
    assert recorded(fresh) == DataSource(host(fresh), None, "sandbox", None)
    assert fresh.code("orders") == 0
    assert recorded(fresh) == DataSource(host(fresh), host(fresh), "sandbox", recorded(fresh).organization)
    assert recorded(fresh).organization
    assert fresh.code("customers") == 0
    assert recorded(fresh).organization
    assert fresh.one("SELECT count(*) FROM ops.warehouse") == 1


def test_another_host_is_refused_before_the_first_request_unless_accepted(published: Bridge) -> None:
    before = published.path.read_bytes()
    with serve(SandboxConfig(**SMALL)) as other:
        os.environ.update(settings(other, published.path))
        with pytest.raises(UsageError, match="data of another source: legacy host") as error:
            published.pull()
        assert error.value.exit_code == 2
        assert "--accept-new-source" in error.value.hint
        assert other.state.requests == 0
        assert published.path.read_bytes() == before
        done = command("run", env={**published.environment(), **settings(other, published.path)}, cwd=published.folder)
        assert (done.code, "--accept-new-source" in done.err) == (2, True)
        arguments = ("run", "--accept-new-source", "--accept-shrink")
        done = command(
            *arguments, env={**published.environment(), **settings(other, published.path)}, cwd=published.folder
        )
        assert done.code == 0, done.err
        assert published.one("SELECT legacy_host FROM ops.warehouse") == other.url.removeprefix("http://")
        assert published.code("price_lists") == 0


@pytest.mark.parametrize("column", ["environment", "organization"])
def test_another_environment_or_organization_is_refused(published: Bridge, column: str) -> None:
    with duckdb.connect(str(published.path)) as connection:
        connection.execute(f"UPDATE ops.warehouse SET {column} = 'production'")
    before = published.path.read_bytes()
    with pytest.raises(UsageError, match=f"another source: {column} production, not "):
        published.pull("orders")
    assert published.path.read_bytes() == before
    requests = published.platform.state.requests
    with pytest.raises(
        UsageError, match="customers, price_lists, promotions would stay that of the one before"
    ) as left:
        published.pull("orders", accept_new_source=True)
    assert "Pull all lists in one run" in left.value.hint
    is_known_before = published.platform.state.requests == requests
    assert is_known_before == (column == "environment"), "the settings have the environment"
    assert published.path.read_bytes() == before
    assert published.code(accept_new_source=True) == 0
    assert published.code("orders") == 0


def test_a_pull_of_legacy_lists_notices_another_organization_where_a_v1_key_is_configured(published: Bridge) -> None:
    with duckdb.connect(str(published.path)) as connection:
        connection.execute("UPDATE ops.warehouse SET organization = 'first'")
    before = published.path.read_bytes()
    with pytest.raises(UsageError, match="another source: organization first, not "):
        published.pull("customers")
    assert published.path.read_bytes() == before


@pytest.mark.parametrize(
    ("name", "value"), [("API_KEY", None), ("API_KEY", "key_live_1"), ("BASE_URL", "ftp://x"), ("BASE_URL", None)]
)
def test_a_pull_of_legacy_lists_needs_no_public_v1_settings(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch, name: str, value: str | None
) -> None:
    assert read_targets(["customers"]).whoami is not None
    if value is None:
        monkeypatch.delenv(f"SOURCES__PUBLIC_V1__{name}")
    else:
        monkeypatch.setenv(f"SOURCES__PUBLIC_V1__{name}", value)
    targets = read_targets(["customers"])
    assert (targets.whoami, targets.source) == (None, DataSource(host(fresh), None, "sandbox"))


def test_a_warehouse_of_version_0_1_knows_its_hosts_from_its_runs(published: Bridge) -> None:
    with duckdb.connect(str(published.path)) as connection:
        connection.execute("DROP TABLE ops.warehouse; UPDATE ops.runs SET legacy_host = 'other.example'")
    with pytest.raises(UsageError, match=r"legacy host other\.example, not "):
        published.pull()


def test_a_platform_that_does_not_tell_the_organization_is_read(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    fresh.pull("customers", "orders")
    with duckdb.connect(str(fresh.path)) as connection:
        connection.execute("UPDATE ops.warehouse SET organization = NULL")
    with monkeypatch.context() as patch:
        patch.setattr(walking, "WHOAMI_WAIT_S", 0.2)
        patch.setenv("SOURCES__PUBLIC_V1__BASE_URL", "http://127.0.0.1:9")  # nobody listens there
        assert fresh.code("customers") == 0
        assert recorded(fresh).organization is None
        assert "whoami" not in caplog.text
        patch.undo()
        assert fresh.code("orders") == 0
        assert (known := recorded(fresh).organization)
        patch.setattr(walking, "read_whoami", mock.Mock(side_effect=Unreachable("no answer")))
        assert fresh.code("customers") == 0
    assert f"did not report the organization of the key: the lists are published as those of {known}" in caplog.text
