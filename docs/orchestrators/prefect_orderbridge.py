"""Prefect: a run for each organization, tried again by exit code.

Needs Prefect 3. orderbridge stays in an environment of its own: the task calls its command.

    export ORDERBRIDGE=/srv/orderbridge/.venv/bin/orderbridge
    python prefect_orderbridge.py /srv/projects/shop /srv/projects/outlet
"""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from prefect import flow, task

COMMAND = os.environ.get("ORDERBRIDGE", "orderbridge")
DONE = (0, 5)  # whole; with rejected rows. 7 and 9 have published, and fail: a person should look
RETRY = (4, 8)  # the platform did not answer; another run holds the lock
WAIT_S = float(os.environ.get("ORDERBRIDGE_WAIT_S", "600"))


class Failed(Exception):
    """orderbridge ended with a code that somebody should know of."""

    def __init__(self, code: int, reason: str) -> None:
        super().__init__(f"orderbridge run ended with {code}: {reason}")
        self.code = code


def may_succeed_later(_task: Any, _run: Any, state: Any) -> bool:
    """Whether to try again: a setting, a key or a bug does not repair itself."""
    error = state.result(raise_on_failure=False)
    return isinstance(error, Failed) and error.code in RETRY


@task(
    retries=3,
    retry_delay_seconds=WAIT_S,
    retry_condition_fn=may_succeed_later,
    task_run_name="{project}",
)
def run(project: Path) -> int:
    """Pulls, reconciles and publishes; returns the exit code."""
    done = subprocess.run(
        [COMMAND, "--project", str(project), "run", "--log", "json"],
        cwd=project,
        stderr=subprocess.PIPE,
        text=True,
    )
    if done.returncode not in DONE:
        raise Failed(done.returncode, done.stderr.strip())
    return done.returncode


@flow
def nightly(projects: list[Path]) -> None:
    """All organizations, at the same time."""
    futures = run.map(projects)
    futures.result()


if __name__ == "__main__":
    nightly([Path(project) for project in sys.argv[1:]])
