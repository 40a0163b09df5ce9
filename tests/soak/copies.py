"""The copy of a warehouse in Postgres, as it is after each night: equal by table and by value.

In: the warehouse of a campaign. Out: what differs. The copy sends what changed since the night before.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from orderbridge.pipelines.cli.process import prepare_environment
from orderbridge.pipelines.warehouse.destination.copy import copy_to_destination
from orderbridge.sources.settings import load_dlt
from tests.pipelines.warehouse.destinations import Postgres, Rows, contents_of
from tests.postgres import server


class NightlyCopy:
    """A copy of each night.

    Args:
        folder: for the published warehouse and the notes of its copies.
        destination: of the copies.
    """

    def __init__(self, folder: Path, destination: Postgres) -> None:
        self.path = folder / "warehouse.duckdb"
        self.destination = destination
        folder.mkdir(mode=0o700)

    def differences(self, warehouse: duckdb.DuckDBPyConnection, file: Path) -> Iterator[str]:
        """Copies the warehouse, and compares the copy with it.

        Args:
            warehouse: open for writing.
            file: where it lies.
        """
        warehouse.execute("CHECKPOINT")
        shutil.copyfile(file, self.path)
        copy_to_destination(self.path, self.destination.settings)
        copied = self.destination.contents()
        expected = contents_of(lambda sql: warehouse.execute(sql).fetchall(), "")
        for table in sorted(expected.keys() | copied.keys()):
            if copied.get(table) != expected.get(table):
                yield f"the copy of {table} differs: {_first(expected.get(table), copied.get(table))}"


def _first(expected: Rows | None, copied: Rows | None) -> str:
    """The first row that differs, of both."""
    if expected is None or copied is None or len(expected) != len(copied):
        sizes = [len(rows) if rows is not None else "no table" for rows in (expected, copied)]
        return f"{sizes[0]} and {sizes[1]} in the copy"
    one, other = next(pair for pair in zip(expected, copied, strict=True) if pair[0] != pair[1])
    return str(
        {name: (one.get(name), other.get(name)) for name in one if one.get(name) != other.get(name)}
    )


@contextmanager
def nightly_copy(folder: Path) -> Iterator[NightlyCopy]:
    """A copy in a Postgres server of its own. Raises pytest's `Skipped` where none can be started."""
    with server() as port:
        destination = Postgres(folder, "postgres")
        destination.port = port
        os.environ["DLT_PROJECT_DIR"] = str(folder)
        prepare_environment()
        load_dlt()
        destination.start()
        yield NightlyCopy(folder / "published", destination)
