"""Keys that the platform accepted before and refuses now: revoked, expired, or replaced on the platform alone.

In: the walks of a pull, and the warehouse that is published. Out: the hint of the errors of such a key says until when
a key was accepted, and the command that replaces it. Whether it was the same key is not kept anywhere.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import Final

import duckdb

from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.sql import has_tables
from orderbridge.sources.command_line import complete
from orderbridge.sources.contract import LISTS, Family
from orderbridge.sources.errors import AccessError
from orderbridge.sources.extract.result import ListResult
from orderbridge.sources.settings import given_values
from orderbridge.sources.words import format_time

_NOT_THE_KEY: Final = "UNAUTHENTICATED"
"""The code of a request whose key did not arrive: a proxy removed it."""
_LAST_READ: Final = """
    SELECT max(c.ended_at) FROM ops.coverage c JOIN ops.runs r USING (run_id)
    WHERE list_contains($lists, c.resource) AND c.ended_by <> 'error' AND r.{family}_host = $host"""


def hint_at_refused_keys(lists: Sequence[ListResult], published: Path) -> None:
    """Adds to the errors of a refused key until when the host accepted one, and the command that replaces it."""
    refused = _refused(lists)
    if not refused or not published.exists():
        return
    with open_warehouse(published) as warehouse:
        for family, errors in refused.items():
            until = _accepted_until(warehouse, family, errors[0].host)
            if until is None:
                continue
            shown = format_time(until.timestamp())
            hint = f"A key was accepted until {shown}. {replace_key(family)}"
            for error in errors:
                error.hint = hint


def replace_key(family: str) -> str:
    """What to do about a key that is not accepted, with the command: `init` changes the project's own file alone."""
    origin = given_values(f"sources.{family}").get("api_key", ("", ""))[1]
    if origin and origin != ".dlt/secrets.toml":
        return complete(f"Replace the key in {origin}, then: orderbridge check")
    return complete(f"Replace it: orderbridge init sources.{family}.api_key")


def _refused(lists: Sequence[ListResult]) -> dict[Family, list[AccessError]]:
    """The errors of families of which every list was refused: a key that lacks a permission reads others."""
    refused: dict[Family, list[AccessError]] = {}
    for walked in lists:
        if isinstance(walked.error, AccessError) and walked.error.code != _NOT_THE_KEY:
            refused.setdefault(LISTS[walked.resource].family, []).append(walked.error)
    for walked in lists:
        if not isinstance(walked.error, AccessError):
            refused.pop(LISTS[walked.resource].family, None)
    return refused


def _accepted_until(
    warehouse: duckdb.DuckDBPyConnection, family: Family, host: str
) -> datetime | None:
    """When the last read of a list of this host ended; None where nothing shows it."""
    if not has_tables(warehouse, "ops", "coverage", "runs"):
        return None
    names = [name for name, one in LISTS.items() if one.family == family]
    query = _LAST_READ.format(family=family)
    at: datetime | None
    ((at,),) = warehouse.execute(query, {"lists": names, "host": host}).fetchall()
    return at
