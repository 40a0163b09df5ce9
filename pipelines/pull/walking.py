"""The walks of a pull: all lists at once, a thread each; what was walked is merged while others are still under way.

In: the lists, clients' settings and a build's folders. Out: a result for each list, those without an error merged. A
list that fails does not end the others.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from secrets import token_hex
from typing import Any, Final, TypedDict

import duckdb
import pyarrow as pa

from orderbridge.pipelines.pull.order_tail import OrderTail
from orderbridge.pipelines.pull.targets import Targets, read_whoami
from orderbridge.pipelines.warehouse.build import Build, warehouse_errors
from orderbridge.pipelines.warehouse.ops import last_observed
from orderbridge.pipelines.warehouse.raw.field_kinds import kept_kinds
from orderbridge.pipelines.warehouse.raw.load import import_loader
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import has_tables
from orderbridge.sources import __version__
from orderbridge.sources.contract import LISTS, ORDER, RECORDS
from orderbridge.sources.decode.column_kinds import KeptKinds
from orderbridge.sources.decode.inferred_tables import FieldNames
from orderbridge.sources.errors import BridgeError, Stopped
from orderbridge.sources.extract.ids import IdHashes, hash_ids
from orderbridge.sources.extract.result import ListResult, Progress, WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.v1_pages import CursorPosition
from orderbridge.sources.extract.walk import walk
from orderbridge.sources.http.client import Client

Merge = Callable[[Sequence[ListResult], str | None], None]
"""Merges walked lists. In: the lists, and the organization that they belong to, None where it is not known."""
MERGED_EARLY_ROWS: Final = 50_000
"""Rows from which a list is merged while others are still walked: each load costs dlt a tenth of a second."""
WHOAMI_WAIT_S: Final = 5.0
"""How long walks wait for the answer to GET /whoami, all together: from the beginning of the pull."""
END_WAIT_S: Final = 2.0
"""How long a pull that fails waits for its walks to end; one that is resolving a host name cannot be interrupted."""
log = logging.getLogger("orderbridge.pull")


class KnownList(TypedDict, total=False):
    """What earlier reads of a list left for the next one, see `WalkOptions`."""

    names: FieldNames
    kinds: KeptKinds
    known_ids: IdHashes
    known_gap: int


def known_list(
    warehouse: duckdb.DuckDBPyConnection, name: str, folder: Path, *, is_refreshed: bool = False
) -> KnownList:
    """What a published warehouse has of a list; hashes of ids are written into the folder.

    Fields are known for an undocumented record, ids for a list that is read by a cursor or whose `total` is wrong. For
    a list that is refreshed, only names, declared kinds and ids are kept.
    """
    gap = None if is_refreshed else last_observed(warehouse, f"{name}_total_gap")
    known = KnownList(known_gap=int(gap or 0))
    if not RECORDS[name].fields:
        known["names"] = field_names(warehouse, name)
        known["kinds"] = kept_kinds(warehouse, name, is_refreshed=is_refreshed)
    if LISTS[name].paging == "cursor" or known["known_gap"]:
        ids = known["known_ids"] = IdHashes(folder / f"{name}.ids")
        if has_tables(warehouse, "raw", name):
            listed = warehouse.sql(f"SELECT id FROM raw.{name} WHERE _missing_since IS NULL")
            for batch in listed.to_arrow_reader():
                ids.append(hash_ids(pa.chunked_array([batch.column(0)])))
    return known


@dataclass(eq=False)
class ListWalks:
    """Walks the lists of one pull.

    Attributes:
        targets: settings of the families.
        build: whose folders hold spools, page files and the load.
        sweeps: the most sweeps over a list that is paged by numbers.
        progress: called after each page.
        stop: ends the walks once it is set; it is set where a walk or a load fails unexpectedly.
        known: what the published warehouse has of each list.
        tail: how the orders are read, where they may be read from where the last read ended.
        refreshed: lists of which no page of a stopped walk is used.
    """

    targets: Targets
    build: Build
    sweeps: int
    progress: Progress
    stop: threading.Event
    known: Mapping[str, KnownList] = field(default_factory=dict)
    tail: OrderTail | None = None
    refreshed: Collection[str] = ()

    def __post_init__(self) -> None:
        # A pull that failed in this process may still be decoding a batch: it must not write into this one's files.
        self._files = self.build.run_folder / f"files-{token_hex(4)}"

    def run(self, names: Sequence[str], merge: Merge) -> tuple[list[ListResult], str | None]:
        """Walks these lists, merges those that did not fail, and requests the organization that they belong to.

        Args:
            names: of the lists.
            merge: called in a thread of its own, one call at a time; it ends soon after `stop` is set.

        Returns:
            Results of the walks; the organization, None where it is not known.
        """
        families = dict.fromkeys(LISTS[name].family for name in names)
        if self.targets.whoami is not None:
            families["public_v1"] = None
        clients = {family: self.targets.client(family, self.stop) for family in families}
        pool = ThreadPoolExecutor(len(names) + 2, "walk")
        merger = ThreadPoolExecutor(1, "merge")
        imports = pool.submit(import_loader)
        whoami = pool.submit(_organization, clients.get("public_v1"))
        organization = partial(_result, whoami, time.monotonic() + WHOAMI_WAIT_S)

        def merge_loaded(lists: Sequence[ListResult]) -> None:
            imports.result()
            known = organization()
            if self.stop.is_set():  # while it waited; a load cannot be interrupted
                raise Stopped("the pull was stopped")
            with warehouse_errors(self.build.path.parent):
                merge(lists, known)

        walks: list[Future[ListResult]] = []
        try:
            walks += (
                pool.submit(self._walk, name, clients[LISTS[name].family], organization)
                for name in names
            )
            _merge_as_walked(walks, lambda lists: merger.submit(merge_loaded, lists))
            return [walk.result() for walk in walks], organization()
        except BaseException:
            self.stop.set()
            raise
        finally:
            for client in clients.values():  # ends requests that nobody waits for
                client.close()
            until = time.monotonic() + END_WAIT_S
            merger.shutdown(cancel_futures=True)
            wait(walks, timeout=until - time.monotonic())
            pool.shutdown(wait=not self.stop.is_set(), cancel_futures=True)

    def _walk(
        self, name: str, client: Client, organization: Callable[[], str | None]
    ) -> ListResult:
        read = partial(self._read, name, client)
        with warehouse_errors(self.build.path.parent):
            if self.tail is None or name != ORDER.name:
                return read(None)
            return self.tail.read(read, organization)

    def _read(self, name: str, client: Client, start: CursorPosition | None) -> ListResult:
        """Walks a list from its first page or from `start` on. What a killed run has read is not requested again."""
        settings = self.targets.settings(LISTS[name].family)
        identity: dict[str, str | int] = {
            "host": settings.base_url,
            "environment": settings.environment,
            "list": name,
            "limit": settings.page_limit,
            "version": __version__,
        }
        key_setting = RECORDS[name].key_setting
        key = str(getattr(settings, key_setting)) if key_setting else ""
        options = WalkOptions(
            settings.page_limit, self.sweeps, key=key, **self.known.get(name, KnownList())
        )
        place = name if start is None else f"{name}-tail"
        path = self.build.path
        published_at = path.stat().st_mtime if path.exists() else 0.0
        spool = SpoolFolder(
            self.build.spools / place, identity, settings.api_key.reveal(), published_at
        )
        if start is not None or name in self.refreshed:
            spool.clear()  # of a tail that was stopped: it may have started elsewhere
        return walk(name, client, self._files / place, spool, options, self.progress, start)


def _merge_as_walked(
    walks: Sequence[Future[ListResult]], start_merge: Callable[[list[ListResult]], Future[None]]
) -> None:
    """Waits for walks, and for the merges of those that did not fail. Raises the first error of any.

    A long list is merged as soon as it is walked, with the lists that wait; the others are when the last one is.
    """
    pending: set[Future[Any]] = set(walks)
    unmerged = list(walks)
    while pending:
        done, pending = wait(pending, timeout=0.2, return_when=FIRST_COMPLETED)
        for future in done:
            future.result()
        walked = [walk.result() for walk in unmerged if walk not in pending]
        lists = [result for result in walked if result.error is None]
        is_long = any(result.distinct >= MERGED_EARLY_ROWS for result in lists)
        if lists and (is_long or pending.isdisjoint(walks)):
            unmerged = [walk for walk in unmerged if walk in pending]
            pending.add(start_merge(lists))


def _result(organization: Future[str | None], until: float) -> str | None:
    """The organization; None where it is not known in time."""
    wait([organization], timeout=until - time.monotonic())
    return organization.result() if organization.done() else None


def _organization(client: Client | None) -> str | None:
    """The organization of a key; None where the platform does not report it. The lists show whether the key is good."""
    try:
        return read_whoami(client).organization or None if client is not None else None
    except BridgeError as error:
        log.debug("GET /whoami: %s", error)
        return None
