"""Errors, grouped by what the caller does about them; each carries the exit code of the command.

    BridgeError                 exit 1  something of ours
    ├── UsageError              exit 2  settings, arguments, files: mend them, run again
    ├── AccessError             exit 3  authentication or scope: another key, another permission
    ├── PlatformError           exit 4  the platform: unreachable, refusing, or breaking the contract
    │   ├── Unreachable                 nothing usable came, after every retry: try later
    │   ├── Refused                     an answer outside 2xx that no retry mends
    │   └── ContractBroken              an answer that the interface rules out
    ├── CoverageError           exit 7  coverage not complete where it was required, or older than asked
    ├── LockedError             exit 8  another run holds the lock
    └── Stopped                 exit 130 told to stop: nothing is wrong, run again

No message holds a body, a row's values, a key or a password: only verbs, paths, statuses, codes and counts.
"""

from __future__ import annotations

from enum import IntEnum
from typing import ClassVar, Final


class ExitCode(IntEnum):
    """How a command ends (design §5). `--help`, the README and the schedules list these members with their meanings."""

    DONE = 0
    BUG = 1
    USAGE = 2
    ACCESS = 3
    PLATFORM = 4
    REJECTED = 5
    IN_DOUBT = 6
    COVERAGE = 7
    LOCKED = 8
    STOPPED = 130

    @property
    def meaning(self) -> str:
        """One line, for users."""
        return _MEANINGS[self]

    @property
    def label(self) -> str:
        """The number as documented; a stop has one for each signal."""
        return "130, 143" if self is ExitCode.STOPPED else str(int(self))


_MEANINGS: Final = {
    ExitCode.DONE: "done, whole",
    ExitCode.BUG: "internal error: a bug in orderbridge",
    ExitCode.USAGE: "usage, settings or input file",
    ExitCode.ACCESS: "authentication or scope",
    ExitCode.PLATFORM: "the platform is unreachable, or its answer breaks the contract",
    ExitCode.REJECTED: "done, with rejected rows",
    ExitCode.IN_DOUBT: "outcomes in doubt remain: run the push again later",
    ExitCode.COVERAGE: "coverage incomplete, a list held back, or older than --max-age",
    ExitCode.LOCKED: "another run holds the lock",
    ExitCode.STOPPED: "stopped by Ctrl-C or a signal: run it again",
}


class BridgeError(Exception):
    """The base of all errors of this project. `hint` says what to do about it."""

    exit_code: ClassVar[ExitCode] = ExitCode.BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(BridgeError):
    """Settings, arguments or an input file that cannot be used."""

    exit_code = ExitCode.USAGE


class HttpError(BridgeError):
    """An error of one request. It carries what may be told of the answer, and nothing of its body.

    Attributes:
        family, verb, path: the request, without query and host.
        status: of the answer, or None where there was none.
        code: the platform's own error code, where its form is that of a code.
        request_id: the platform's `requestId`, where given.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        family: str = "",
        verb: str = "",
        path: str = "",
        status: int | None = None,
        code: str = "",
        request_id: str = "",
    ) -> None:
        where = f"{family} {verb} {path}".strip()
        facts = [f"status {status}"] if status is not None else []
        facts += [f"code {code}"] if code else []
        facts += [f"requestId {request_id}"] if request_id else []
        told = f"{where}: {message}" if where else message
        super().__init__(f"{told} ({', '.join(facts)})" if facts else told, hint)
        self.family, self.verb, self.path = family, verb, path
        self.status, self.code, self.request_id = status, code, request_id


class AccessError(HttpError):
    """Authentication failed (401) or the key may not do this (403)."""

    exit_code = ExitCode.ACCESS


class PlatformError(HttpError):
    """The platform could not be used as the interface says."""

    exit_code = ExitCode.PLATFORM


class Unreachable(PlatformError):
    """No usable answer after every retry."""


class HttpRejected(PlatformError):
    """An answer outside 2xx that no retry mends."""


class ContractBroken(PlatformError):
    """An answer that the interface rules out."""


class CoverageError(BridgeError):
    """Coverage is not complete where it was required, or the warehouse is older than asked."""

    exit_code = ExitCode.COVERAGE


class LockedError(BridgeError):
    """Another run holds the lock."""

    exit_code = ExitCode.LOCKED


class Stopped(BridgeError):
    """The work was told to stop, by a person or by its owner closing."""

    exit_code = ExitCode.STOPPED
