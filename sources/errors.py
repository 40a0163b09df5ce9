"""Errors, grouped by what the caller does about them; each has the exit code of the command.

    BridgeError                 exit 1  a bug
    ├── UsageError              exit 2  settings, arguments, files: correct them, run again
    ├── AccessError             exit 3  authentication or scope: use another key, or grant the permission
    ├── PlatformError           exit 4  the platform: unreachable, rejecting, or breaking the contract
    │   ├── Unreachable                 no usable response after every retry: try again later
    │   │   └── RateLimited             a limit of the platform: what was read is kept for the next run
    │   ├── HttpRejected                a response outside 2xx that no retry would change
    │   └── ContractBroken              a response that the interface rules out
    ├── CoverageError           exit 7  coverage not complete although required, or older than allowed
    ├── LockedError             exit 8  another run holds the lock
    └── Stopped                 exit 130 interrupted: nothing is wrong, run again

AccessError and PlatformError are HttpErrors: they carry family, verb, host, path, status, code, requestId, and the
reason why a connection failed. No message contains a body, a row's values, a key or a password.
"""

from __future__ import annotations

import errno
import re
import traceback
from enum import IntEnum
from pathlib import Path
from typing import Any, ClassVar, Final, Literal, Self

from orderbridge.sources.command_line import complete

_REACHED: Final = 0.9
"""Share of the allowed address space from which an error is one of memory."""
ConnectionReason = Literal["dns", "refused", "timeout", "certificate", "tls", "proxy", "network"]


class ExitCode(IntEnum):
    """How a command ends, each with one line for users: `--help` and docs/reference/exit-codes.md list them."""

    meaning: str

    DONE = 0, "done, whole"
    BUG = 1, "internal error: a bug in orderbridge"
    USAGE = 2, "usage, settings or input file"
    ACCESS = 3, "authentication or scope"
    PLATFORM = 4, "the platform is unreachable, or its answer breaks the contract"
    REJECTED = 5, "done, with rejected rows"
    IN_DOUBT = 6, "the outcome of some requests is unknown: run the same command again later"
    COVERAGE = 7, "coverage incomplete, a list held back, or older than --max-age"
    LOCKED = 8, "another run holds the lock"
    FINDINGS = 9, "published, with findings of severity error that nobody has accepted"
    STOPPED = 130, "stopped by Ctrl-C, a signal or a closed pipe: run it again"

    def __new__(cls, number: int, meaning: str = "") -> Self:
        """Makes a member; later calls, with a number alone, find it."""
        code = int.__new__(cls, number)
        code._value_ = number
        code.meaning = meaning
        return code

    @property
    def label(self) -> str:
        """The number as documented; a stop has one for each signal."""
        return "129, 130, 141, 143" if self is ExitCode.STOPPED else str(int(self))


def causes(error: BaseException) -> list[BaseException]:
    """An error and those behind it, the last first."""
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error, or one behind it, is a lack of memory or of threads."""
    return any(
        isinstance(cause, MemoryError)
        or type(cause).__name__
        == "OutOfMemoryException"  # DuckDB's, which is not imported for this
        or getattr(cause, "errno", None) == errno.ENOMEM
        or str(cause) == "can't start new thread"
        for cause in causes(error)
    )


def memory_limit() -> int:
    """The bytes of address space that this process may use; 0 without a limit."""
    import resource  # which Windows has not

    limit = resource.getrlimit(resource.RLIMIT_AS)[0]
    return 0 if limit == resource.RLIM_INFINITY else limit


def is_limit_reached() -> bool:
    """Whether this process has, at some moment, used nearly all of the address space that it may use.

    Then libraries raise whatever they like, such as an ImportError.
    """
    limit = memory_limit()
    if not limit:
        return False
    try:
        status = Path("/proc/self/status").read_text("ascii", "replace")
    except OSError:
        return False
    peak = re.search(r"VmPeak:\s+(\d+) kB", status)
    return peak is not None and int(peak[1]) * 1024 > limit * _REACHED


class BridgeError(Exception):
    """The base of all errors of this project.

    Attributes:
        hint: what to do about it.
        facts: what a person may decide about it, for the note of a failed run; no values of rows but ids.
    """

    exit_code: ClassVar[ExitCode] = ExitCode.BUG

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = complete(hint)
        self.facts: dict[str, Any] = {}

    def __str__(self) -> str:
        return f"{self.message}\n  {self.hint}" if self.hint else self.message


class UsageError(BridgeError):
    """Settings, arguments or an input file that cannot be used."""

    exit_code = ExitCode.USAGE


class HttpError(BridgeError):
    """A request that failed. It has nothing of a body.

    Attributes:
        family, verb, host, path: of the request; no query.
        status: of the response, or None if there was none.
        code: the platform's own error code, if it has the form of a code.
        request_id: the platform's `requestId`, if given.
        reason: why no connection was made, or None.
    """

    def __init__(
        self,
        message: str,
        hint: str = "",
        *,
        family: str = "",
        verb: str = "",
        host: str = "",
        path: str = "",
        status: int | None = None,
        code: str = "",
        request_id: str = "",
        reason: ConnectionReason | None = None,
    ) -> None:
        where = f"{family} {verb} {path}".strip()
        facts = [f"status {status}"] if status is not None else []
        facts += [f"code {code}"] if code else []
        facts += [f"requestId {request_id}"] if request_id else []
        words = f"{where}: {message}" if where else message
        super().__init__(f"{words} ({', '.join(facts)})" if facts else words, hint)
        self.family = family
        self.verb = verb
        self.host = host
        self.path = path
        self.status = status
        self.code = code
        self.request_id = request_id
        self.reason = reason


class AccessError(HttpError):
    """Authentication failed (401), or the key lacks the permission (403)."""

    exit_code = ExitCode.ACCESS


class PlatformError(HttpError):
    """The platform does not behave as the interface describes."""

    exit_code = ExitCode.PLATFORM


class Unreachable(PlatformError):
    """No usable response after every retry."""


class RateLimited(Unreachable):
    """The platform answers no further request for now."""


class HttpRejected(PlatformError):
    """A response outside 2xx that no retry would change."""


class ContractBroken(PlatformError):
    """A response that the interface rules out."""


class CoverageError(BridgeError):
    """Coverage is not complete although required, or the warehouse is older than allowed."""

    exit_code = ExitCode.COVERAGE


class LockedError(BridgeError):
    """Another run holds the lock."""

    exit_code = ExitCode.LOCKED


class Stopped(BridgeError):
    """The work was interrupted by a person, or by its owner closing."""

    exit_code = ExitCode.STOPPED


def bug_report(error: BaseException) -> str:
    """A bug as exception types and code locations. The exceptions' own texts are left out: they can hold row values."""
    lines = [
        "internal error in orderbridge. Please report these lines; they contain none of your data:"
    ]
    cause: BaseException | None = error
    while cause is not None:
        lines.append(f"{type(cause).__module__}.{type(cause).__qualname__}")
        lines += [
            f"  {Path(f.filename).name}:{f.lineno} {f.name}"
            for f in traceback.extract_tb(cause.__traceback__)
        ]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(lines)
