"""Dagster: an asset for each list, with its verdict as an asset check; a partition for each organization.

Needs dagster 1.12 or newer. orderbridge stays in an environment of its own: the assets call its command.

    export ORDERBRIDGE=/srv/orderbridge/.venv/bin/orderbridge
    export ORDERBRIDGE_PROJECTS=/srv/projects        # a folder for each organization, with its .dlt
    dagster dev -f dagster_orderbridge.py
"""

import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import dagster as dg

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

organizations = dg.StaticPartitionsDefinition(
    sorted(path.parent.name for path in PROJECTS.glob("*/.dlt"))
)


def orderbridge(organization: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Runs the command in the folder of an organization."""
    folder = PROJECTS / organization
    return subprocess.run(
        [COMMAND, "--project", str(folder), *arguments], cwd=folder, capture_output=True, text=True
    )


@dg.multi_asset(
    specs=[
        *(
            dg.AssetSpec(dg.AssetKey(["raw", name]), group_name="orderbridge", kinds={"duckdb"})
            for name in LISTS
        ),
        dg.AssetSpec(
            dg.AssetKey(["reconciled"]),
            deps=[dg.AssetKey(["raw", name]) for name in LISTS],
            group_name="orderbridge",
            kinds={"duckdb"},
        ),
    ],
    check_specs=[dg.AssetCheckSpec("complete", asset=dg.AssetKey(["raw", name])) for name in LISTS],
    partitions_def=organizations,
)
def warehouse(
    context: dg.AssetExecutionContext,
) -> Iterator[dg.MaterializeResult | dg.AssetCheckResult]:
    """Pulls every list, reconciles, and publishes once."""
    done = orderbridge(context.partition_key, "run", "--log", "json")
    context.log.info(done.stdout)
    if done.returncode in RETRY:
        raise dg.RetryRequested(max_retries=3, seconds_to_wait=600) from RuntimeError(done.stderr)
    if done.returncode not in DONE:
        raise dg.Failure(
            f"orderbridge run ended with {done.returncode}: {done.stderr}", allow_retries=False
        )
    status = json.loads(orderbridge(context.partition_key, "status", "--json").stdout)
    for one in status["lists"]:
        if one["resource"] not in LISTS:
            continue  # of a newer version: add it to have it as an asset
        key = dg.AssetKey(["raw", one["resource"]])
        facts = {
            name: one[name] for name in ("verdict", "rows", "quarantined", "run_id", "ended_at")
        }
        yield dg.MaterializeResult(asset_key=key, metadata=facts)
        yield dg.AssetCheckResult(
            asset_key=key,
            check_name="complete",
            passed=one["verdict"] == "complete",
            severity=dg.AssetCheckSeverity.WARN,
            metadata={"verdict": one["verdict"]},
        )
    yield dg.MaterializeResult(
        asset_key=dg.AssetKey(["reconciled"]), metadata={"exit_code": done.returncode}
    )


nightly = dg.define_asset_job(
    "nightly", selection=dg.AssetSelection.assets(warehouse), partitions_def=organizations
)


@dg.schedule(job=nightly, cron_schedule="15 3 * * *")
def every_night() -> list[dg.RunRequest]:
    """A run for each organization."""
    return [dg.RunRequest(partition_key=name) for name in organizations.get_partition_keys()]


defs = dg.Definitions(assets=[warehouse], jobs=[nightly], schedules=[every_night])
