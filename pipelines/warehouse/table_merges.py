"""Tables of a build that are merged at the same time, and can be interrupted.

In: a build, and walked lists whose loaded rows are views in it. Out: their raw tables, each merged by `merge.py`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import ExitStack, contextmanager
from threading import Event, Lock
from typing import Final

import duckdb

from pipelines.warehouse import merge
from sources.errors import Stopped
from sources.extract.result import ListResult

INTERRUPT_EVERY_S: Final = 0.02
_AT_ONCE_ROWS_MAX: Final = 500_000
"""Records in lists that are merged at the same time."""


class TableMerges:
    """The merges into one build, on cursors that other threads can interrupt.

    Attributes:
        build: open for writing.
        stop: once it is set, no further merge begins.
    """

    def __init__(self, build: duckdb.DuckDBPyConnection, stop: Event) -> None:
        self.build = build
        self.stop = stop
        self._cursors: set[duckdb.DuckDBPyConnection] = set()
        self._changing = Lock()

    @contextmanager
    def cursor(self) -> Iterator[duckdb.DuckDBPyConnection]:
        """A connection to the build, which `interrupt` reaches. Raises Stopped once `stop` is set."""
        with self.build.cursor() as cursor:
            with self._changing:
                self._cursors.add(cursor)
            try:
                if self.stop.is_set():
                    raise Stopped("the merge was stopped")
                yield cursor
            finally:
                with self._changing:  # a cursor that is closed cannot be interrupted
                    self._cursors.remove(cursor)

    def interrupt(self) -> None:
        """Interrupts one statement of each merge of other threads."""
        with self._changing:
            for cursor in self._cursors:
                cursor.interrupt()

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
