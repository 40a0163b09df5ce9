"""What the platform does with a stock or a price that is sent: the ledger has examples to look up there.

In: the ledger's last confirmed values of variants. Out: the evidence for `stock_semantics` and `price_semantics`. The
interface cannot read variants, so that nothing is ever proposed: a person looks at one on the platform.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Final

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.sources.kinds import ADDED_FIELDS
from orderbridge.sources.settings import given_values, ledger_path
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.transforms.questions import Choice, Evidence

_BASE_URL: Final = SETTINGS["sources.legacy.base_url"]
_COUNT: Final = "SELECT count(*) FROM confirmed WHERE host = ? AND field = ? AND value <> ''"
_EXAMPLES: Final = """
    SELECT path, value, confirmed_at FROM confirmed WHERE host = ? AND field = ? AND value <> ''
    ORDER BY confirmed_at DESC, path LIMIT 3"""


def semantics_evidence() -> list[Evidence]:
    """The evidence about each field that the interface calls "added", of which the platform has confirmed values.

    Raises:
        UsageError: the ledger or a settings file cannot be used.
    """
    given = given_values(_BASE_URL.section).get("base_url")
    if given is None:
        return []
    host = str(_BASE_URL.checked(given[0]))
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        return [*_evidence(ledger, ledger.host_name(host))]


def _evidence(ledger: Ledger, host: str) -> Iterator[Evidence]:
    for field in ADDED_FIELDS:
        ((count,),) = ledger.connection.execute(_COUNT, [host, field]).fetchall()
        if not count:
            continue
        rows = ledger.connection.execute(_EXAMPLES, [host, field]).fetchall()
        sent = [f"{value} to {path} on {_time(at)}" for path, value, at in rows]
        choices = (
            Choice("set", "; ".join(["the platform shows the number that was sent", *sent])),
            Choice(
                "increment", "it shows more than that: what was sent came on top of the one before"
            ),
        )
        key = f"{_BASE_URL.section}.{field}_semantics"
        yield Evidence(key, choices, reason=f"{count} variants have a confirmed {field}")


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
