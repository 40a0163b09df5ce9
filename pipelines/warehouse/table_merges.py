"""Tables of a build that are merged at the same time, and can be interrupted.

In: a build, and walked lists whose loaded rows are views in it. Out: their raw tables, each merged by `merge.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from threading import Event, Thread
from typing import Final

import duckdb

from pipelines.warehouse import merge
from sources.errors import Stopped
from sources.extract.result import ListResult

INTERRUPT_EVERY_S: Final = 0.02
_AT_ONCE_ROWS_MAX: Final = 500_000
"""Records in lists that are merged at the same time."""


class TableMerges:
    """The merges into one build.

    Attributes:
        build: open for writing.
        stop: once it is set, merges under way are interrupted, and no further one begins.
    """

    def __init__(self, build: duckdb.DuckDBPyConnection, stop: Event) -> None:
        self.build = build
        self.stop = stop

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the build. Raises Stopped once `stop` is set, also while it runs a statement."""
        with self.build.cursor() as cursor, _interrupted_by(self.stop, cursor):
            try:
                if self.stop.is_set():
                    raise Stopped("the merge was stopped")
                yield cursor
            except duckdb.InterruptException:
                if self.stop.is_set():
                    raise Stopped("the merge was stopped") from None
                raise

    def merge_all(self, lists: Sequence[ListResult], run_id: str) -> None:
        """Merges lists, all their tables at the same time: DuckDB writes one with little more than one core.

        Longer lists, for which it uses all cores, are merged table by table: together they need more memory. So are
        tables that ran out of it together, because their rows are wide: a merge can be repeated.
        """
        with self.cursor() as cursor:
            tables = [(walked, table) for walked in lists for table in merge.tables_of(cursor, walked)]
            if sum(walked.distinct for walked in lists) <= _AT_ONCE_ROWS_MAX:
                tables = self._merge_at_once(tables, run_id)
            for walked, table in tables:
                merge.merge_table(cursor, walked, table, run_id)

    def _merge_at_once(self, tables: Sequence[tuple[ListResult, str]], run_id: str) -> list[tuple[ListResult, str]]:
        """Merges tables, a thread each; returns those that ran out of memory.

        A child table takes over the same times from its list's own table, whether that is merged before or after it.
        """
        failed = []
        with ExitStack() as stack:
            cursors = [stack.enter_context(self.cursor()) for _ in tables]
            pool = stack.enter_context(ThreadPoolExecutor(max(len(tables), 1), "merge"))
            merges: list[Future[None]] = []
            try:
                for cursor, (walked, table) in zip(cursors, tables, strict=True):
                    merges.append(pool.submit(merge.merge_table, cursor, walked, table, run_id))
                for unit, merged in zip(tables, merges, strict=True):
                    try:
                        merged.result()
                    except duckdb.OutOfMemoryException:
                        failed.append(unit)
            except BaseException:
                while wait(merges, timeout=INTERRUPT_EVERY_S).not_done:
                    for cursor in cursors:
                        cursor.interrupt()
                raise
        return failed


@contextmanager
def _interrupted_by(stop: Event, cursor: duckdb.DuckDBPyConnection) -> Iterator[None]:
    """Interrupts each statement of a cursor from another thread once `stop` is set, until the block ends."""
    has_ended = Event()

    def watch() -> None:
        while not has_ended.wait(INTERRUPT_EVERY_S):
            if stop.is_set():
                cursor.interrupt()

    watcher = Thread(target=watch, name="watch", daemon=True)
    watcher.start()
    try:
        yield
    finally:
        has_ended.set()
        watcher.join()  # a cursor that is closed cannot be interrupted
