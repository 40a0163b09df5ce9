"""Airflow: a task for each list, then reconcile, every night; one DAG for each organization.

Needs Airflow 3. orderbridge stays in an environment of its own: the tasks call its command. Set on the workers:

    ORDERBRIDGE=/srv/orderbridge/.venv/bin/orderbridge
    ORDERBRIDGE_PROJECTS=/srv/projects               # a folder for each organization, with its .dlt
"""

import os
import subprocess
from datetime import datetime, timedelta
from pathlib import Path

from airflow.sdk import DAG, chain, dag, task
from airflow.sdk.exceptions import AirflowException, AirflowFailException

COMMAND = os.environ.get("ORDERBRIDGE", "orderbridge")
PROJECTS = Path(os.environ.get("ORDERBRIDGE_PROJECTS", "."))
LISTS = (
    "customers",
    "promotions",
    "price_lists",
    "orders",
)
DONE = (0, 5)  # whole; with rejected rows. 7 and 9 have published, and fail: a person should look
RETRY = (4, 8)  # the platform did not answer; another run holds the lock


def orderbridge(organization: str, *arguments: str) -> None:
    """Runs the command in the folder of an organization; only what may succeed later is tried again."""
    folder = PROJECTS / organization
    code = subprocess.run(
        [COMMAND, "--project", str(folder), *arguments, "--log", "json"], cwd=folder
    ).returncode
    if code in RETRY:
        raise AirflowException(f"orderbridge {arguments[0]} ended with {code}")
    if code not in DONE:
        raise AirflowFailException(f"orderbridge {arguments[0]} ended with {code}")


def bridge(organization: str) -> DAG:
    """The DAG of an organization. One task at a time: each run of orderbridge locks the warehouse."""

    @dag(
        dag_id=f"orderbridge_{organization}",
        schedule="15 3 * * *",
        start_date=datetime(2026, 1, 1),
        catchup=False,
        max_active_runs=1,
        max_active_tasks=1,
        default_args={"retries": 3, "retry_delay": timedelta(minutes=10)},
    )
    def nightly() -> None:
        pulls = [
            task(task_id=f"pull_{name}")(orderbridge)(organization, "pull", name) for name in LISTS
        ]
        chain(
            pulls,
            task(task_id="reconcile", trigger_rule="all_done")(orderbridge)(
                organization, "reconcile"
            ),
        )

    return nightly()


for settings in sorted(PROJECTS.glob("*/.dlt")):
    globals()[settings.parent.name] = bridge(settings.parent.name)
