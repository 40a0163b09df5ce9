"""The platform's list that an import is compared with: read again where its last read does not do.

In: a kind of input, and how old a read may be. Out: whether the list was read. Only customers can be read back.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from datetime import UTC, datetime
from urllib.parse import urlsplit

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.ops import last_reads
from orderbridge.sources.command_line import run_again
from orderbridge.sources.errors import CoverageError
from orderbridge.sources.kinds import KINDS, KindName
from orderbridge.sources.settings import ledger_path, legacy_settings, warehouse_path
from orderbridge.sources.texts import Texts
from orderbridge.sources.words import duration


def pull_list(
    kind: KindName,
    max_age_h: float,
    pull: Callable[[PullOptions], PullResult],
    on_reason: Callable[[str], object],
    texts: Texts,
) -> bool:
    """Pulls the list that shows a kind, if it has one and its last read does not do, and returns whether it did.

    `on_reason` is called with the reason before it is read.

    Raises:
        BridgeError: it could not be read, or was held back.
    """
    shown = KINDS[kind].operation.shown_in
    if shown is None or (reason := pull_reason(kind, shown.name, max_age_h, texts)) is None:
        return False
    on_reason(reason)
    result = pull(PullOptions((shown.name,)))
    for walked in result.lists:
        if walked.error is not None:
            raise walked.error
    if reason := result.held_back.get(shown.name):
        hint = (
            f"If that is right: orderbridge pull {shown.name} --accept-shrink; then {run_again()}"
        )
        raise CoverageError(f"the list of {shown.name} was held back: {reason}", hint)
    return True


def pull_reason(kind: KindName, name: str, max_age_h: float, texts: Texts) -> str | None:
    """Why a list has to be pulled: never read from this host, too long ago, or written since; None if not."""
    shown = texts(f"kinds.{kind}")
    host = legacy_settings().base_url
    path = warehouse_path()
    read = None
    if path.exists():
        with open_warehouse(path) as warehouse:
            read = last_reads(warehouse).get(name)
    if read is None or read.legacy_host != urlsplit(host).netloc:
        return texts("import.pull", kind=shown)
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        sent = ledger.sent_since(host, kind, read.started_at.timestamp())
    if sent:
        return texts("import.pull_sent", kind=shown, sent=texts(f"noun.{kind}", count=sent))
    age_h = (datetime.now(UTC) - read.ended_at).total_seconds() / 3600
    is_new = max_age_h == math.inf or 0 <= age_h <= max_age_h
    if is_new:
        return None
    return texts("import.pull_old", kind=shown, age=duration(age_h * 3600))
