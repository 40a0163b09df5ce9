"""Simulated time: what reads wait for passes at once."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime, timedelta
from unittest import mock

from orderbridge.sources.http.client import Client

MONOTONIC = (
    "orderbridge.sources.http.client.monotonic",
    "orderbridge.sources.http.waiting.monotonic",
    "orderbridge.sources.extract.fetch.monotonic",
)


class SimulatedClock:
    """Seconds that pass only while a read waits, or where a test adds some; for a single thread.

    Attributes:
        now: seconds since the beginning.
        waits: how long each wait was.
    """

    def __init__(self, started_at: datetime = datetime(2026, 3, 1, 12, tzinfo=UTC)) -> None:
        self.now = 0.0
        self.waits: list[float] = []
        self._started_at = started_at

    @property
    def time(self) -> datetime:
        return self._started_at + timedelta(seconds=self.now)

    def monotonic(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds
        if seconds:
            self.waits.append(seconds)

    @contextmanager
    def running(self) -> Iterator[None]:
        def sleep(client: Client, seconds: float) -> None:
            client._check_stop()
            self.wait(seconds)

        dates = mock.Mock(now=lambda zone: self.time)
        with ExitStack() as stack:
            stack.enter_context(mock.patch.object(Client, "_sleep", sleep))
            stack.enter_context(mock.patch("orderbridge.sources.http.client.datetime", dates))
            for name in MONOTONIC:
                stack.enter_context(mock.patch(name, self.monotonic))
            yield
