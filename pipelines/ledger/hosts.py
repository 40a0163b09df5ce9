"""Whether the host of the settings is a platform that the ledger has under another name.

In: the ledger, and the host. Out: nothing, or a UsageError before anything is planned or sent: what the ledger lacks
under the new name would be sent again, values that add up included. The answer is kept in the ledger.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.settings import LegacySettings
from orderbridge.sources.words import listed, number

QUESTION: Final = "platform:"
SAME: Final = "same"
DIFFERENT: Final = "different"


def check_host(legacy: LegacySettings, ledger: Ledger) -> None:
    """Raises UsageError where somebody has to say first whether a new host is a platform under another name."""
    undecided = ledger.undecided_hosts(legacy.base_url, legacy.environment)
    for other, writes in undecided.items():  # the last one that was used, first
        command = f"orderbridge answer {question_about(other)}"
        raise UsageError(
            f"this ledger has {describe_writes(writes)} of {other}, and sources.legacy.base_url is "
            f"{legacy.base_url} now: is it the same platform?",
            f"Nothing was sent. If it is the same: {command} {SAME}\n  If it is another one: {command} {DIFFERENT}",
        )


def question_about(other: str) -> str:
    """The id of the question whether the host of the settings is the platform of another host."""
    return f"{QUESTION}{other.partition('://')[2]}"


def describe_writes(writes: Mapping[str, int]) -> str:
    """The confirmed writes of a host by kind, in words."""
    counts = [
        number(count, f"confirmed {kind.singular}", f"confirmed {kind.name}")
        for kind, count in ((KINDS[name], count) for name, count in writes.items())
    ]
    return listed(counts)
