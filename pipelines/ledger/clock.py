"""Ledger time: seconds that advance only as far as time has certainly passed, whatever is done to the wall clock.

In: readings of the wall clock and of the machine's uptime, and the last one stored. Out: a time for waits. Setting the
wall clock forward does not advance it beyond the uptime that passed; after a reboot it advances by the uptime at most.
Ledger time equals wall time as long as the clock is not set and the machine is not restarted.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple
from uuid import uuid4

_BOOT_ID: Final = Path("/proc/sys/kernel/random/boot_id")
_MACOS_BOOT_ID: Final = b"kern.bootsessionuuid"
_UPTIME: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
"""The clock that counts while a machine is asleep; on macOS `CLOCK_MONOTONIC` does, and `time.monotonic` does not."""
_TOLERANCE_S: Final = 1.0
"""Difference between the clocks that is drift or adjustment, not a clock that was set."""


class ClockReading(NamedTuple):
    """Both clocks of a machine: `wall` in epoch seconds, `uptime` in seconds since the boot `boot_id`."""

    wall: float
    boot_id: str
    uptime: float


class Anchor(NamedTuple):
    """A reading and the ledger time at that moment."""

    reading: ClockReading
    time: float


ReadClock = Callable[[], ClockReading]


def _system_value(name: bytes) -> str:
    """A text that `sysctl` shows; empty where the system has none, as Linux."""
    try:
        sysctlbyname = ctypes.CDLL(None).sysctlbyname
    except AttributeError:
        return ""
    text = ctypes.create_string_buffer(64)
    size = ctypes.c_size_t(len(text))
    failed = sysctlbyname(name, text, ctypes.byref(size), None, ctypes.c_size_t(0))
    return "" if failed else text.value.decode("ascii", "replace")


def _boot_id() -> str:
    """The id that the system gave this boot; empty if it gives none."""
    try:
        return _BOOT_ID.read_text("ascii").strip()
    except (OSError, ValueError):
        return _system_value(_MACOS_BOOT_ID)


@cache
def _boot() -> tuple[str, float]:
    """The id of this boot, and what to subtract from the uptime. Unknown: each process counts from its own start."""
    boot_id = _boot_id()
    return (boot_id, 0.0) if boot_id else (uuid4().hex, time.clock_gettime(_UPTIME))


def read_clock() -> ClockReading:
    """Reads the clocks of this machine. The uptime includes time asleep."""
    boot_id, start = _boot()
    return ClockReading(time.time(), boot_id, time.clock_gettime(_UPTIME) - start)


def elapsed_s(before: ClockReading, after: ClockReading) -> float:
    """Seconds that have certainly passed between two readings: the lesser of both clocks.

    After a reboot only the uptime since then is certain.
    """
    wall = after.wall - before.wall
    if before.boot_id != after.boot_id:
        return max(0.0, min(wall, after.uptime))
    uptime = after.uptime - before.uptime
    return wall if abs(wall - uptime) < _TOLERANCE_S else max(0.0, min(wall, uptime))


class LedgerClock:
    """The time of a ledger. Used by one thread.

    Args:
        read: reads the clocks.
        anchor: the last one in the ledger; None for a new ledger, whose time starts as wall time.

    Attributes:
        latest: the reading of the last `now`, to store in the ledger.
    """

    def __init__(self, read: ReadClock, anchor: Anchor | None = None) -> None:
        self._read = read
        if anchor is None:
            reading = read()
            anchor = Anchor(reading, reading.wall)
        self._anchor = self.latest = anchor

    def now(self) -> float:
        """Ledger time now; it never goes back."""
        reading = self._read()
        now = max(self.latest.time, self._anchor.time + elapsed_s(self._anchor.reading, reading))
        self.latest = Anchor(reading, now)
        return now

    def wall_time(self, at: float) -> float:
        """Wall time, for people and records, of a ledger time."""
        offset, drift = (
            anchor.reading.wall - anchor.time for anchor in (self._anchor, self.latest)
        )
        return at + (offset if abs(offset - drift) < _TOLERANCE_S else drift)
