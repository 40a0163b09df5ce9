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
    "desk/test_imports.py", "desk/test_in_browser.py", "shops/test_shops.py", "questions/test_commands.py",
    "reconcile/test_reconcile.py", "test_campaigns.py", "questions/test_examples.py", "questions/test_first_nights.py",
    "reconcile/test_erp_customers.py", "unseen/test_unseen.py", "erp/test_match.py", "pull/test_lists_of_one.py",
    "upgrades/test_upgrades.py", "import_file/test_run.py", "warehouse/test_own_names.py", "desk/test_pages.py",
    "questions/test_proposed_commands.py", "questions/test_pages.py", "import_file/test_alike.py",
    "import_file/test_states.py", "test_schedules.py", "import_file/test_result.py", "upgrades/test_new_rules.py",
    "pipelines/test_states.py", "import_file/test_transcript.py", "reconcile/test_cluster.py", "test_order_fields.py",
    "test_crashes.py", "test_secrets.py", "warehouse/test_destination.py", "cli/test_second_user.py",
    "questions/test_changes.py", "questions/test_kinds.py", "reconcile/test_own_checks.py", "pull/test_pull.py",
    "import_file/test_lost_zeros.py", "warehouse/test_postgres.py", "warehouse/test_versions.py", "test_notebooks.py",
    "plan/test_make.py", "import_file/test_document.py", "warehouse/test_recent_rows.py", "test_whole_tables.py",
    "reconcile/test_order_lines.py", "test_tutorial.py", "cli/test_notify.py", "import_file/test_mappings.py",
    "limits/test_pipelines.py", "files/test_layout.py", "test_dlt_sources.py", "test_whole_views.py",
    "limits/test_warehouse.py", "reporting/test_report.py", "upgrades/test_folders.py", "pull/test_order_tail.py",
    "cli/test_files_written.py", "import_file/test_month.py", "cli/test_cli.py",
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
