"""What the platform does with a stock or a price that is sent: the ledger has examples to look up there.

In: the ledger's last confirmed values of variants. Out: the evidence for `stock_semantics` and `price_semantics`. The
interface cannot read variants, so that nothing is ever proposed: a person looks at one on the platform, and knows it
by its code and name in the file.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.push.lookups import intact_plan
from orderbridge.pipelines.questions.writes import record_names
from orderbridge.sources.kinds import ADDED_FIELDS
from orderbridge.sources.settings import given_values, ledger_path
from orderbridge.sources.settings.setting import SETTINGS
from orderbridge.transforms.questions import Choice, Evidence

_BASE_URL: Final = SETTINGS["sources.legacy.base_url"]
_COUNT: Final = "SELECT count(*) FROM confirmed WHERE host = ? AND field = ? AND value <> ''"
_EXAMPLES: Final = """
    SELECT path, value, confirmed_at, plan_id FROM confirmed WHERE host = ? AND field = ? AND value <> ''
    ORDER BY confirmed_at DESC, path LIMIT 3"""

_OPERATIONS: Final = """
    SELECT located(plan_id, folder), id FROM plans JOIN operations USING (plan)
    WHERE plan_id = ? AND path = ?"""


def semantics_evidence() -> list[Evidence]:
    """The evidence about each field that the interface calls "added", of which the platform has confirmed values.

    Raises:
        UsageError: the ledger or a settings file cannot be used.
    """
    host = _host()
    if host is None:
        return []
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        return [*_evidence(ledger, ledger.host_name(host))]


def sent_articles(question: str) -> list[str]:
    """What people know the variants of the examples by, a line each; none where their file has changed.

    Raises:
        UsageError: the ledger or a settings file cannot be used.
    """
    host = _host()
    field = next(field for field in ADDED_FIELDS if semantics_key(field) == question)
    if host is None:
        return []
    paths: dict[tuple[str, str], dict[int, str]] = defaultdict(dict)
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        rows = ledger.connection.execute(_EXAMPLES, [ledger.host_name(host), field]).fetchall()
        for path, _, _, plan_id in rows:
            found = ledger.connection.execute(_OPERATIONS, [plan_id, path]).fetchone()
            if found is not None:
                folder, operation = found
                paths[plan_id, folder][operation] = path
    return [line for plan, own in paths.items() for line in _articles(*plan, own)]


def semantics_key(field: str) -> str:
    """The setting, and the question, of what the platform does with a field."""
    return f"{_BASE_URL.section}.{field}_semantics"


def _host() -> str | None:
    """The host that is sent to; None where none is set."""
    given = given_values(_BASE_URL.section).get("base_url")
    return None if given is None else str(_BASE_URL.checked(given[0]))


def _articles(plan_id: str, folder: str, paths: Mapping[int, str]) -> Iterator[str]:
    """What the file of a plan calls the records of these paths, by operation."""
    plan = intact_plan(plan_id, folder)
    if plan is None:
        return
    names = record_names(plan, [*plan.operations(paths.keys())])
    file = Path(plan.manifest.input.path).name
    for operation, path in paths.items():
        if about := names.get(operation):
            yield f"{path} is {' · '.join(about)} in {file}"


def _evidence(ledger: Ledger, host: str) -> Iterator[Evidence]:
    for field in ADDED_FIELDS:
        ((count,),) = ledger.connection.execute(_COUNT, [host, field]).fetchall()
        if not count:
            continue
        rows = ledger.connection.execute(_EXAMPLES, [host, field]).fetchall()
        sent = [f"{value} to {path} on {_time(at)}" for path, value, at, _ in rows]
        choices = (
            Choice("set", "; ".join(["the platform shows the number that was sent", *sent])),
            Choice(
                "increment", "it shows more than that: what was sent came on top of the one before"
            ),
        )
        key = semantics_key(field)
        yield Evidence(key, choices, reason=f"{count} variants have a confirmed {field}")


def _time(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%Y-%m-%d %H:%M} UTC"
