"""The demo: the bridge against the built-in sandbox, with no settings and nothing outside its own folder.

In: a folder. Out: a warehouse in it, pulled twice with changes in between, and what happened, told on stdout.
"""

from __future__ import annotations

import os
import shutil
import threading
from pathlib import Path
from typing import Final

import click

from pipelines.console import Reporter
from pipelines.pull import Pulled, Wanted, pull
from pipelines.reconcile import Reconciling
from sources.errors import UsageError

MARK: Final = ".orderbridge-demo"


def demo(folder: Path, reporter: Reporter, stop: threading.Event) -> int:
    """Starts the sandbox, pulls, changes some records in it, pulls again. Returns the exit code of the worse pull.

    Raises:
        UsageError: the folder holds something that no demo made.
    """
    from sandbox import SandboxConfig, serve

    _fresh(folder)
    warehouse = folder.absolute() / "warehouse.duckdb"
    with serve(SandboxConfig(seed=7)) as platform:
        os.environ |= {
            "SOURCES__LEGACY__BASE_URL": platform.url,
            "SOURCES__LEGACY__API_KEY": platform.legacy_key,
            "SOURCES__LEGACY__ENVIRONMENT": "sandbox",
            "SOURCES__PUBLIC_V1__BASE_URL": platform.url,
            "SOURCES__PUBLIC_V1__API_KEY": platform.v1_key,
            "WAREHOUSE__PATH": str(warehouse),
        }
        click.echo(f"A stand-in for the platform listens on {platform.url}. First pull:\n")
        first = pull(Wanted(command="demo"), reporter.progress, stop, Reconciling())
        reporter.pulled(first)
        state = platform.state
        customers = [str(row["id"]) for row in state.records("customers")]
        state.change("customers", customers[0], {"lastName": "Ñandú-García"})
        state.change("customers", customers[1], {"phone": "+51 1 555 0100"})
        state.remove("customers", customers[2])
        state.add("customers", {"firstName": "Zoë", "lastName": "Nueva", "email": "zoe@example.com", "documents": []})
        orders = [str(row["id"]) for row in state.records("orders")]
        state.remove("orders", orders[0])
        click.echo(
            "\nOn the platform, two customers were changed, one added, one removed, and an order removed.\n"
            "Second pull:\n"
        )
        reconciling = Reconciling()
        second = pull(Wanted(command="demo"), reporter.progress, stop, reconciling)
        reporter.pulled(second)
        if reconciling.made is not None:
            reporter.reconciled(reconciling.made)
    _where_to_look(folder, warehouse, second)
    return max(first.exit_code, second.exit_code)


def _fresh(folder: Path) -> None:
    if folder.exists() and any(folder.iterdir()) and not (folder / MARK).exists():
        raise UsageError(
            f"{folder} holds something that no demo made", "Name another folder: orderbridge demo --folder NAME"
        )
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    (folder / MARK).touch()


def _where_to_look(folder: Path, warehouse: Path, pulled: Pulled) -> None:
    click.echo(
        "\nLook at it:\n\n"
        f"  python -c \"import duckdb; print(duckdb.connect('{folder / warehouse.name}', read_only=True)"
        ".sql('FROM ops.coverage'))\"\n\n"
        "Tables: reconciled.customers, .promotions, .price_lists, .orders and .exceptions (what does not fit);\n"
        "raw.customers, raw.customers__documents, raw.promotions, raw.price_lists, raw.orders and its lines;\n"
        "ops.runs, ops.coverage, ops.observations and what was refused. What is missing now is marked, not deleted:\n\n"
        "  SELECT id, _missing_since FROM raw.customers WHERE _missing_since IS NOT NULL"
    )
