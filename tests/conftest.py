"""Each test has the environment, the file mode mask and the current folder to itself, whatever it calls."""

from __future__ import annotations

import gc
import os
import shutil
import signal
import sys
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path

import pytest
from hypothesis import settings

from tests.sources.rawserver import without_backoff

if "PYTEST_XDIST_WORKER" in os.environ:
    sys.dont_write_bytecode = (
        False  # compiling all tests takes each worker ten seconds; mutants run without workers
    )

MEMORY = Path("/dev/shm")
if (
    os.access(MEMORY, os.W_OK)
    and shutil.disk_usage(MEMORY).free > 2**30
    and not os.statvfs(MEMORY).f_flag
    & os.ST_NOEXEC  # as in containers; tests run programs that they write
):
    # there a fsync takes no time; pytest keeps the folders of failed tests only
    os.environ.setdefault("PYTEST_DEBUG_TEMPROOT", str(MEMORY))

# `nohup` ignores it, for the commands too that tests start
signal.signal(signal.SIGHUP, signal.SIG_DFL)

gc.disable()  # until all is imported and collected: nothing of that can be freed

settings.register_profile("test", max_examples=20, deadline=None)
# pytest --hypothesis-profile=soak
settings.register_profile("soak", max_examples=1000, deadline=None)
settings.load_profile("test")

LONGEST_FIRST = (
    "desk/test_imports.py",
    "desk/test_in_browser.py", "shops/test_shops.py", "reconcile/test_reconcile.py", "upgrades/test_upgrades.py",
    "questions/test_examples.py", "upgrades/test_new_rules.py", "questions/test_first_nights.py",
    "import_file/test_run.py", "unseen/test_unseen.py", "import_file/test_states.py", "reporting/test_report.py",
    "warehouse/test_own_names.py", "plan/test_make.py", "warehouse/test_postgres.py", "upgrades/test_folders.py",
    "questions/test_changes.py", "import_file/test_result.py", "import_file/test_transcript.py",
    "import_file/test_alike.py", "reconcile/test_own_checks.py", "warehouse/test_destination.py", "test_tutorial.py",
    "test_dlt_sources.py", "cli/test_second_user.py", "cli/test_files_written.py", "import_file/test_month.py",
    "test_campaigns.py", "pull/test_pull.py", "cli/test_cli.py", "pull/test_new_list.py", "test_notebooks.py",
    "erp/test_match.py", "test_crashes.py", "test_schedules.py",
)  # fmt: skip
"""Files that take long: begun at the end, one of them would keep a worker busy while the others wait."""
OURS = ("SOURCES__", "WAREHOUSE__", "LEDGER__", "FILES__", "DLT_", "RUNTIME__", "DESTINATION__")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest files first: pytest-xdist gives the next file to a worker that has nothing left to do."""
    if "PYTEST_XDIST_WORKER" in os.environ:
        items.sort(key=lambda item: rank(item.path))


def pytest_collection_finish() -> None:
    """What was imported and collected stays until the end: the garbage collector need not visit it again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """With `NO_SKIPS` in the environment, where all that a test needs is said to be there, a skipped test fails."""
    report = yield
    if report.skipped and os.environ.get("NO_SKIPS"):
        report.outcome = "failed"
    return report


def pytest_unconfigure() -> None:
    gc.unfreeze()


@cache
def rank(path: Path) -> int:
    return next(
        (n for n, end in enumerate(LONGEST_FIRST) if path.as_posix().endswith(end)),
        len(LONGEST_FIRST),
    )


@pytest.fixture(autouse=True)
def _own_environment() -> Iterator[None]:
    environment, folder, mask = dict(os.environ), os.getcwd(), os.umask(0o022)  # noqa: PTH109 # mirrors chdir
    for name in environment:
        if name.startswith(OURS):
            del os.environ[name]
    yield
    os.umask(mask)
    os.chdir(folder)
    for name in set(os.environ) - set(environment):
        del os.environ[name]
    os.environ.update(environment)


@pytest.fixture(autouse=True)
def _no_waits() -> Iterator[None]:
    with without_backoff():
        yield
