"""Whose data a warehouse holds: a run from another host, environment or organization does not publish into it."""

from __future__ import annotations

import os
from unittest import mock

import duckdb
import pytest

from orderbridge.pipelines.pull import walking
from orderbridge.pipelines.warehouse.source import read_source
from orderbridge.sandbox import SandboxConfig, serve
from orderbridge.sources.contract import RECORDS
from orderbridge.sources.errors import Unreachable, UsageError
from orderbridge.sources.settings import DataSource
from tests.pipelines.bridge import SMALL, Bridge, settings


def recorded(made: Bridge) -> DataSource:
    with duckdb.connect(str(made.path), read_only=True) as connection:
        return read_source(connection)


def host(made: Bridge) -> str:
    return made.platform.url.removeprefix("http://")


def test_the_source_is_recorded_and_known_parts_stay_where_none_is_reported(
    fresh: Bridge, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr(walking, "WHOAMI_WAIT_S", 0.2)
        patch.setenv("SOURCES__PUBLIC_V1__BASE_URL", "http://127.0.0.1:9")  # nobody listens there
        assert fresh.code("customers") == 0
    assert (recorded(fresh), "whoami" in caplog.text) == (
        DataSource(host(fresh), None, "sandbox", None),
        False,
    )
    assert fresh.code("orders") == 0
    assert (known := recorded(fresh).organization)
    assert recorded(fresh) == DataSource(host(fresh), host(fresh), "sandbox", known)
    monkeypatch.setattr(walking, "read_whoami", mock.Mock(side_effect=Unreachable("no answer")))
    assert fresh.code("customers") == 0
    assert (
        f"did not report the organization of the key: the lists are published as those of {known}"
        in caplog.text
    )
    assert recorded(fresh).organization == known


def test_another_host_environment_or_organization_is_refused_unless_accepted(
    published: Bridge,
) -> None:
    state = published.platform.state
    for column, name in (("environment", "orders"), ("organization", "customers")):
        with duckdb.connect(str(published.path)) as connection:
            connection.execute(
                f"UPDATE ops.warehouse SET environment = 'sandbox'; UPDATE ops.warehouse SET {column} = 'production'"
            )
        before, requests = published.path.read_bytes(), state.requests
        with pytest.raises(UsageError, match=f"another source: {column} production, not "):
            published.pull(name)
        others = ", ".join(sorted({*RECORDS} - {name}))
        with pytest.raises(UsageError, match=f"{others} would stay that of the one before"):
            published.pull(name, accept_new_source=True)
        assert (state.requests == requests) == (column == "environment"), (
            "the settings have the environment"
        )
        assert published.path.read_bytes() == before
    with serve(SandboxConfig(**SMALL)) as other:
        os.environ.update(settings(other, published.path))
        with pytest.raises(UsageError, match="data of another source: legacy host") as error:
            published.pull()
        assert "--accept-new-source" in error.value.hint
        assert other.state.requests == 0
        assert published.code(accept_new_source=True, accept_shrink=True) == 0
        source = recorded(published)
        assert (source.legacy_host, source.organization != "production") == (
            other.url.removeprefix("http://"),
            True,
        )
