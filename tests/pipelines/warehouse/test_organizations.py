"""Two organizations in two projects on one machine and one Postgres, pulled at the same time: nothing mixes."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

import duckdb

from sandbox import SandboxConfig, serve
from tests.pipelines.bridge import start
from tests.pipelines.warehouse.test_postgres import Database, database, port

__all__ = ["database", "port"]  # fixtures
CUSTOMERS = {"outlet": 21, "shop": 34}


def test_two_organizations_pulled_at_once_do_not_mix(tmp_path: Path, database: Database) -> None:
    for name in ("WAREHOUSE__DESTINATION", "DESTINATION__POSTGRES__CREDENTIALS"):
        del os.environ[name]
    env = {"PATH": os.environ["PATH"], "HOME": str(tmp_path), "TMPDIR": str(tmp_path)}
    with ExitStack() as stack:
        platforms = {}
        for seed, (name, customers) in enumerate(CUSTOMERS.items()):
            config = SandboxConfig(customers=customers, orders=10, promotions=4, price_lists=3, seed=seed)
            platform = platforms[name] = stack.enter_context(serve(config))
            settings = tmp_path / name / ".dlt/secrets.toml"
            settings.parent.mkdir(parents=True)
            settings.write_text(
                f'[sources.legacy]\nbase_url = "{platform.url}"\napi_key = "{platform.legacy_key}"\n'
                f'environment = "sandbox"\n[sources.public_v1]\nbase_url = "{platform.url}"\n'
                f'api_key = "{platform.v1_key}"\n[warehouse]\npath = "{tmp_path / name}/warehouse.duckdb"\n'
                f'destination = "postgres"\ndestination_dataset = "{name}"\n'
                f'[destination.postgres]\ncredentials = "{database.url}"\n'
            )
            settings.chmod(0o600)
        for _ in range(2):
            runs = [start("--project", str(tmp_path / name), "run", env=env, cwd=tmp_path) for name in CUSTOMERS]
            ends = [run.communicate(timeout=300) for run in runs]
            assert [run.returncode for run in runs] == [0, 0], ends
        for name, customers in CUSTOMERS.items():
            ids = {(key,) for key in platforms[name].state.ids("customers")}
            assert len(ids) == customers
            with duckdb.connect(str(tmp_path / name / "warehouse.duckdb"), read_only=True) as warehouse:
                for schema in ("raw", "reconciled"):
                    key = "id" if schema == "raw" else "customer_id"
                    assert set(warehouse.execute(f"SELECT {key} FROM {schema}.customers").fetchall()) == ids
                    assert set(database.rows(f"SELECT {key} FROM {name}_{schema}.customers")) == ids
                emails = warehouse.execute("SELECT email FROM raw.customers ORDER BY id").fetchall()
                assert database.rows(f"SELECT email FROM {name}_raw.customers ORDER BY id") == emails
                hosts = warehouse.execute("SELECT DISTINCT legacy_host FROM ops.runs").fetchall()
                assert hosts == [(platforms[name].url.removeprefix("http://"),)]
    assert sorted(path.name for path in tmp_path.iterdir() if path.name in CUSTOMERS) == sorted(CUSTOMERS)
    for name in CUSTOMERS:
        assert sorted(path.name for path in (tmp_path / name).iterdir()) == [
            ".dlt", ".warehouse.duckdb.copied", "warehouse.duckdb",
        ]  # fmt: skip
