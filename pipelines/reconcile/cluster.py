"""A Dask cluster that tasks run on: connected, checked, and its errors put in words.

In: the address of a scheduler. Out: a function that maps tasks over the workers, as `map` does here: a few ahead of the
one whose result is needed. Arguments and results are files of the run's folder, which the workers share. Scheduling,
retries after a worker died and TLS (`tls://` addresses) are Dask's.
"""

from __future__ import annotations

import asyncio
import logging
import pickle
import warnings
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from uuid import uuid4

from orderbridge.pipelines.reconcile.parts import Mapper
from orderbridge.pipelines.warehouse.extras import install_command
from orderbridge.sources.command_line import run_again
from orderbridge.sources.disk import create_private
from orderbridge.sources.errors import UsageError

if TYPE_CHECKING:
    from distributed import Client, Future

CONNECT_TIMEOUT_S: Final = 5
WORKERS_WAIT_S: Final = 600
"""After each of these times without a result the cluster must have a worker: Dask waits for one without a limit."""
_PACKAGES: Final = ("orderbridge", "pyarrow", "duckdb")
"""Besides those that Dask compares itself: Python, Dask, pandas, numpy and what carries its messages."""
_UNTOUCHED: Final = "The published warehouse is untouched."


@dataclass(frozen=True, slots=True)
class Cluster:
    """A cluster by the address of its scheduler, such as `tcp://10.0.0.5:8786`."""

    address: str

    def check(self) -> None:
        """Connects once, before a run begins. Raises UsageError: see `connected`."""
        with self.connected():
            pass

    @contextmanager
    def connected(self) -> Iterator[Client]:
        """A client of the cluster.

        Raises:
            UsageError: the extra is not installed, the scheduler cannot be reached, it has no workers, or the versions
                of packages differ.
        """
        try:
            from distributed import Client, Security
            from distributed.comm.core import connect
        except ModuleNotFoundError:
            raise UsageError(
                "--scheduler requires Dask, which is not installed",
                f"Install it: {install_command('dask', 'distributed')}",
            ) from None
        # what fails is reported by an error
        logging.getLogger("distributed").setLevel(logging.CRITICAL)
        with warnings.catch_warnings(record=True) as mismatches:
            warnings.simplefilter("always")
            try:  # a client that never connected could not be closed
                security = Security().get_connection_args("client")
                asyncio.run(connect(self.address, CONNECT_TIMEOUT_S, **security)).abort()
            except (
                OSError,
                ValueError,
                TypeError,
            ) as error:  # no answer; malformed address; TLS without certificates
                raise UsageError(
                    f"no Dask scheduler answers at {self.address}: {error}",
                    "Name the address that `dask scheduler` prints, such as --scheduler tcp://10.0.0.5:8786.",
                ) from None
            with Client(self.address, timeout=CONNECT_TIMEOUT_S, set_as_default=False) as client:
                client.get_versions(check=True, packages=_PACKAGES)
                if mismatches:
                    raise UsageError(
                        f"the cluster has other versions: {mismatches[-1].message}",
                        "Install the same orderbridge and requirements on this machine, the scheduler and all workers.",
                    )
                self._check_workers(client)
                yield client

    def _check_workers(self, client: Client) -> None:
        if not client.nthreads():
            raise UsageError(
                f"the scheduler at {self.address} has no workers",
                "Start some: dask worker ADDRESS",
            )

    @contextmanager
    def mapper(self, folder: Path) -> Iterator[Mapper]:
        """Maps tasks over the workers; all of them have to see the folder.

        Raises:
            UsageError: see `connected`; a worker does not see the folder or has too little memory; the connection is
                lost.
        """
        from distributed import KilledWorker
        from distributed.comm.core import CommClosedError

        with self.connected() as client:
            blind = [
                worker for worker, is_folder in client.run(folder.is_dir).items() if not is_folder
            ]
            if blind:
                raise UsageError(
                    f"{', '.join(blind)}: worker does not see {folder.parent}",
                    "The warehouse must be in a folder that all workers share, under the same path.",
                )

            ahead = 2 * sum(client.nthreads().values())

            def map_tasks(task: Callable[[Any], Any], arguments: Iterable[Any]) -> Iterator[Any]:
                pending: deque[tuple[Path, Future[Path]]] = deque()
                for argument in arguments:
                    path = _written(folder, argument)
                    pending.append((path, client.submit(_run_task, task, path, pure=False)))
                    if len(pending) > ahead:
                        yield self._result(client, *pending.popleft())
                while pending:
                    yield self._result(client, *pending.popleft())

            try:
                yield map_tasks
            except (KilledWorker, MemoryError):
                raise UsageError(
                    "workers of the cluster died repeatedly, mostly because their memory did not suffice",
                    f"{_UNTOUCHED} Give each worker more memory (dask worker --memory-limit), then {run_again()}",
                ) from None
            except (CommClosedError, CancelledError, TimeoutError) as error:
                raise UsageError(
                    f"the connection to the scheduler at {self.address} is lost ({type(error).__name__})",
                    f"{_UNTOUCHED} Check the cluster, then {run_again()}",
                ) from None

    def _result(self, client: Client, path: Path, future: Future[Path]) -> Any:  # noqa: ANN401 any result
        made: Path | None = None
        while made is None:
            try:
                made = future.result(WORKERS_WAIT_S)
            except TimeoutError:
                if future.done():
                    raise
                self._check_workers(client)
        result = _read(made)
        for file in (path, made):
            file.unlink()
        return result


def _written(folder: Path, value: object) -> Path:
    """A new file with the value: what tasks take and give is too large for the scheduler."""
    path = folder / f"{uuid4().hex}.task"
    with create_private(path) as file:
        pickle.dump(value, file, pickle.HIGHEST_PROTOCOL)
    return path


def _run_task(task: Callable[[Any], Any], path: Path) -> Path:
    """On a worker: the file with the result of a task for the argument in a file; a cluster may run it twice."""
    return _written(path.parent, task(_read(path)))


def _read(path: Path) -> Any:  # noqa: ANN401 any value
    return pickle.loads(path.read_bytes())  # noqa: S301 of this run's private folder
