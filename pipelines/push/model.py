"""Options, hooks, dependencies and result of a push."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Container, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from orderbridge.pipelines.ledger.clock import ReadClock, read_clock
from orderbridge.pipelines.ledger.model import State
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.push import passwords
from orderbridge.pipelines.push.eligibility import ENDS
from orderbridge.pipelines.push.listing import (
    CustomerListing,
    Key,
    ReadCustomers,
    read_customers,
    walk_folder,
)
from orderbridge.pipelines.push.next_steps import Action
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.sources.disk import disk_errors
from orderbridge.sources.errors import BridgeError, ExitCode, Stopped
from orderbridge.sources.extract.result import Progress, no_progress
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.retries import RetryPolicy
from orderbridge.sources.settings import LegacySettings
from orderbridge.sources.texts import Language

GRACE_S: Final = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class PushOptions(Answers):
    """Options of `orderbridge push`; see its `--help`.

    `language` is that of the header of `passwords.csv`.
    `settle_s` None: `rules.SETTLE_S`, or none where the platform says that it settles at once.
    """

    confirm: int | None = None
    agreed: bool = False
    rate: float | None = None
    concurrency: int | None = None
    settle_s: float | None = None
    resend: bool = False
    wait: bool = False
    accept_unproven: bool = False
    language: Language = "en"


@dataclass(frozen=True, slots=True, kw_only=True)
class PushHooks:
    """How the caller follows and stops a push.

    Attributes:
        stop: once set, no further operation is started.
        on_operation: called as operations end, with how many ended in this push and how many it has to send.
        on_page: called after each page when the customers are read.
        defer_signals: context in which signals only set `stop`.
    """

    stop: threading.Event = field(default_factory=threading.Event)
    on_operation: Callable[[int, int], None] = lambda done, total: None
    on_page: Progress = no_progress
    defer_signals: Callable[[], AbstractContextManager[None]] = nullcontext


@dataclass(frozen=True, slots=True, kw_only=True)
class PushDependencies:
    """What a push works with; tests replace parts of it.

    Attributes:
        read_customers: reads the platform's customers; None reads them with the client.
        policy: how setbacks are waited for.
        deadline_s: total seconds allowed for a request; None: `sources.http.timeout_s`.
        grace_s: seconds allowed for requests in flight after a stop.
    """

    client: Callable[[LegacySettings, threading.Event], Client] = Client.from_settings
    read_passwords: passwords.ReadPasswords = passwords.read_from_input
    read_customers: ReadCustomers | None = None
    read_clock: ReadClock = read_clock
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    deadline_s: float | None = None
    grace_s: float = GRACE_S

    def list_reader(
        self,
        client: Client,
        legacy: LegacySettings,
        on_page: Progress,
        observed: set[tuple[str, str]],
    ) -> ReadCustomers:
        """Reads the platform's customers; with the client, see `listing.read_customers`."""

        def read(keys: Container[Key]) -> CustomerListing:
            folder = walk_folder()
            hint = (
                "The list of customers is read into a folder next to the ledger: free space there."
            )
            with disk_errors(folder, hint):
                return read_customers(client, folder, keys, legacy.page_limit, on_page, observed)

        return self.read_customers or read


@dataclass(slots=True)
class PushResult:
    """Result of a push.

    Attributes:
        lines: of the input, by results file and outcome.
        states: operations by state.
        sent: how many operations this push ended; those of earlier ones are in `states` too.
        actions: what ends lines that have not ended, and from when on (epoch seconds).
        earlier_passwords: files with those of customers that a killed push of another plan has created.
        settles_at: when the next doubt can be looked up, epoch seconds.
        error: that ended it early.
        broke: whether it ended because of too many doubts in a row.
        stopped: whether a person stopped it.
        observed: (what, value) of gaps in the interface that the ledger does not record.
    """

    plan: Plan
    lines: Counter[tuple[str, str]] = field(default_factory=Counter)
    states: dict[State, int] = field(default_factory=dict)
    sent: int = 0
    actions: Mapping[Action, float] = field(default_factory=dict)
    earlier_passwords: Sequence[Path] = ()
    settles_at: float | None = None
    error: BridgeError | None = None
    broke: bool = False
    stopped: bool = False
    observed: set[tuple[str, str]] = field(default_factory=set)

    @property
    def exit_code(self) -> ExitCode:
        """The most severe of: stopped, an error, doubts, lines rejected, withheld or abandoned."""
        if self.stopped:
            return Stopped.exit_code
        if self.error is not None:
            return self.error.exit_code
        if self.states.get("in_doubt") or self.states.get("conflict"):
            return ExitCode.IN_DOUBT
        withheld = sum(self.lines["unsent", outcome] for outcome in ("blocked", "not_sent", *ENDS))
        failed = sum(
            n
            for (file, outcome), n in self.lines.items()
            if file == "rejected" or outcome == "abandoned"
        )
        return ExitCode.REJECTED if failed or withheld else ExitCode.DONE
