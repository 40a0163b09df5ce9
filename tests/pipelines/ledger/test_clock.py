"""Ledger time: a clock that is set, and a machine that restarts, never make it pass sooner."""

from __future__ import annotations

from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from pipelines.ledger.clock import Anchor, ClockReading, LedgerClock, elapsed_s, read_clock
from pipelines.ledger.store import Ledger

START = ClockReading(1_000_000.0, "boot", 5_000.0)


class Machine:
    """A machine whose clock can be set and which can restart."""

    def __init__(self) -> None:
        self.wall, self.boot, self.uptime, self.real = 1_000_000.0, 1, 5_000.0, 0.0

    def read(self) -> ClockReading:
        return ClockReading(self.wall, f"boot {self.boot}", self.uptime)

    def pass_time(self, seconds: float) -> None:
        self.wall, self.uptime, self.real = self.wall + seconds, self.uptime + seconds, self.real + seconds

    def restart(self) -> None:
        self.boot, self.uptime = self.boot + 1, 0.0


def test_after_a_restart_the_uptime_counts() -> None:
    assert elapsed_s(START, ClockReading(1_500_000.0, "other", 300.0)) == 300.0
    assert elapsed_s(START, ClockReading(1_000_100.0, "other", 300.0)) == 100.0
    assert elapsed_s(START, ClockReading(900_000.0, "other", 300.0)) == 0.0


def test_people_are_reported_the_wall_time_of_a_clock_that_was_set() -> None:
    machine = Machine()
    clock = LedgerClock(machine.read)
    machine.wall += 3600.0
    assert clock.wall_time(clock.now() + 900.0) == machine.wall + 900.0


def test_the_time_goes_on_in_the_file(tmp_path: Path) -> None:
    machine = Machine()
    path = tmp_path / "ledger.sqlite"
    with Ledger.open(path, read=machine.read) as ledger:
        machine.pass_time(100.0)
        ledger.clock.now()
        with ledger.transaction():
            pass
    machine.restart()
    machine.wall += 1_000_000.0
    machine.pass_time(20.0)
    with Ledger.open(path, read=machine.read) as ledger:
        assert ledger.clock.now() == 1_000_120.0


@given(
    steps=st.lists(
        st.one_of(
            st.tuples(st.just("pass"), st.floats(0.0, 2000.0)),
            st.tuples(st.just("set"), st.floats(-1e6, 1e6)),
            st.tuples(st.just("restart"), st.just(0.0)),
            st.tuples(st.just("read"), st.just(0.0)),
        ),
        max_size=30,
    )
)
def test_it_never_passes_faster_than_time_and_never_goes_back(steps: list[tuple[str, float]]) -> None:
    machine = Machine()
    clock = LedgerClock(machine.read)
    began = before = clock.now()
    sets = 0
    for step, amount in steps:
        if step == "pass":
            machine.pass_time(amount)
        elif step == "set":
            machine.wall += amount
            sets += 1
        elif step == "restart":
            machine.restart()
        now = clock.now()
        assert now >= before
        assert now - began <= machine.real + 1.0 * (sets + 1)
        before = now


def test_the_clocks_of_this_machine_advance() -> None:
    first, second = read_clock(), read_clock()
    assert first.boot_id == second.boot_id
    assert second.uptime >= first.uptime > 0
    assert LedgerClock(read_clock, Anchor(first, first.wall)).now() >= first.wall
