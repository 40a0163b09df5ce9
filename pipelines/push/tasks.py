"""What the send loop takes and returns: tasks, the operations to send, and the result of a round."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from pipelines.plan.model import PlannedOperation
from sources.errors import BridgeError
from sources.http.responses import WriteOutcome


class SendTask(NamedTuple):
    """One operation to send.

    Attributes:
        is_repeatable: sending it twice has the same effect as sending it once.
        is_doubted: an earlier attempt may have happened.
        clear: it was in doubt, and certainly did not happen.
    """

    operation: PlannedOperation
    is_repeatable: bool
    is_doubted: bool = False
    clear: bool = False


class CompletedTask(NamedTuple):
    """A task that a worker is done with.

    Attributes:
        outcome: None if the request was not started.
        is_expired: it was not started, because its intent is too old.
        can_continue: False if the response means that the push must end.
        error: an exception to raise in the loop.
    """

    task: SendTask
    outcome: WriteOutcome | None
    can_continue: bool = True
    is_expired: bool = False
    error: BaseException | None = None


@dataclass(slots=True)
class SendResult:
    """Result of a round of sending.

    Attributes:
        in_doubt: number of operations that are in doubt now.
        withheld: operations that were not sent, with the reason.
        error: that ended the round early.
        broke: whether too many doubts in a row ended it.
        observed: (what, value) of responses that the ledger does not record because they concern all operations.
    """

    in_doubt: int = 0
    withheld: dict[int, str] = field(default_factory=dict)
    error: BridgeError | None = None
    broke: bool = False
    observed: set[tuple[str, str]] = field(default_factory=set)
