"""The examples for orchestrators run: each by its orchestrator, against sandboxes, with `orderbridge` as a command.

An orchestrator is looked for in this environment and in `.venv-dagster`, `.venv-airflow`, `.venv-prefect`, which
`make orchestrators` sets up; without it, its test is skipped.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from fnmatch import fnmatch
from importlib.util import find_spec
from itertools import chain
from pathlib import Path
from typing import Any

import duckdb
import pytest
import yaml

from orderbridge.pipelines.cli.project_files import write_settings
from orderbridge.sandbox import SandboxConfig, serve
from orderbridge.sandbox.config import settings
from orderbridge.sources.contract import LISTS

CHECKOUT = Path(__file__).parents[1]
EXAMPLES = CHECKOUT / "docs/orchestrators"
CUSTOMERS = {"outlet": 12, "shop": 25}


def python_with(package: str) -> str:
    own = CHECKOUT / f".venv-{package}/bin/python"
    if find_spec(package) is None and not own.exists():
        pytest.skip(f"{package} is not installed: make orchestrators")
    return sys.executable if find_spec(package) is not None else str(own)


def command(folder: Path, script: str) -> Path:
    file = folder / "orderbridge"
    file.write_text(f"#!/bin/sh\n{script}\n")
    file.chmod(0o755)
    return file


@pytest.fixture
def projects(tmp_path: Path) -> Iterator[Path]:
    """A folder for each organization, with settings for a platform of its own."""
    with ExitStack() as stack:
        for name, customers in CUSTOMERS.items():
            config = SandboxConfig(customers=customers, orders=10, promotions=4, price_lists=3)
            platform = stack.enter_context(serve(config))
            (tmp_path / "projects" / name).mkdir(parents=True)
            write_settings(tmp_path / "projects" / name, settings(platform.url))
        yield tmp_path / "projects"


def environment(tmp_path: Path, **more: str) -> dict[str, str]:
    run = f'PYTHONPATH={CHECKOUT}/src exec {sys.executable} -m orderbridge.pipelines.cli "$@"'
    return {
        "PATH": os.environ["PATH"],
        "HOME": str(tmp_path),
        "ORDERBRIDGE": str(command(tmp_path, run)),
        "ORDERBRIDGE_PROJECTS": str(tmp_path / "projects"),
        "ORDERBRIDGE_WAIT_S": "0",
        **more,
    }


def run(python: str, script: str, cwd: Path, env: dict[str, str]) -> list[Any]:
    done = subprocess.run(
        [python, "-c", script], cwd=cwd, env=env, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return [json.loads(line[2:]) for line in done.stdout.splitlines() if line.startswith(">>")]


LOAD = f"""
import importlib.util, json, sys
sys.dont_write_bytecode = True
def example(name):
    spec = importlib.util.spec_from_file_location(name, f"{EXAMPLES}/{{name}}.py")
    sys.modules[name] = module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
"""
DAGSTER = """
import dagster as dg
module = example("dagster_orderbridge")
print(">>" + json.dumps(sorted(module.organizations.get_partition_keys())))
for name in module.organizations.get_partition_keys():
    done = dg.materialize([module.warehouse], partition_key=name, raise_on_error=False)
    made = {"/".join(event.asset_key.path): {
        key: value.value for key, value in event.step_materialization_data.materialization.metadata.items()
    } for event in done.get_asset_materialization_events()}
    checks = {"/".join(one.asset_key.path): [one.passed, one.metadata["verdict"].value]
              for one in done.get_asset_check_evaluations()}
    print(">>" + json.dumps([done.success, made, checks]))
with dg.DagsterInstance.ephemeral() as instance:
    requests = module.every_night(dg.build_schedule_context(instance))
print(">>" + json.dumps([request.partition_key for request in requests]))
"""


def test_dagster_runs_each_organization_and_repeats_nothing_that_cannot_succeed(
    tmp_path: Path, projects: Path
) -> None:
    python = python_with("dagster")
    env = environment(tmp_path)
    text = (EXAMPLES / "dagster_orderbridge.py").read_text("utf-8")
    (tmp_path / "dagster_orderbridge.py").write_text(text.replace('    "promotions",\n', ""))
    older = LOAD.replace(str(EXAMPLES), str(tmp_path)) + DAGSTER
    names, *results, requested = run(python, older, tmp_path, env)
    lists = {f"raw/{one}" for one in LISTS if one != "promotions"}
    assert names == requested == sorted(CUSTOMERS)
    for name, (success, assets, checks) in zip(names, results, strict=True):
        assert success
        assert set(assets) == {*lists, "reconciled"}, (
            "a list that the copied example does not declare is left out"
        )
        assert assets["raw/customers"] == assets["raw/customers"] | {
            "rows": CUSTOMERS[name],
            "verdict": "complete",
        }
        assert checks == {one: [True, "complete"] for one in lists}
        with duckdb.connect(str(projects / name / "warehouse.duckdb"), read_only=True) as warehouse:
            assert warehouse.execute("SELECT count(*) FROM reconciled.customers").fetchall() == [
                (CUSTOMERS[name],)
            ]
    command(tmp_path, f'echo "$@" >>{tmp_path}/calls; exit 3')
    results = run(python, LOAD + DAGSTER, tmp_path, env)
    assert [result[0] for result in results[1:-1]] == [False, False], (
        "what cannot succeed is not repeated"
    )
    assert len((tmp_path / "calls").read_text().splitlines()) == 2


AIRFLOW = """
module = example("airflow_orderbridge")
for name in ("outlet", "shop"):
    dag = getattr(module, name)
    tasks = {task.task_id: sorted(task.upstream_task_ids) for task in dag.tasks}
    print(">>" + json.dumps([dag.dag_id, dag.max_active_tasks, tasks]))
for name in ("pull_customers", "pull_promotions", "reconcile"):
    task = module.shop.task_dict[name]
    task.python_callable(*task.op_args)
for code in range(10):
    module.COMMAND = f"./end-{code}"
    try:
        module.orderbridge("shop", "run")
        print(">>" + json.dumps("done"))
    except Exception as error:
        print(">>" + json.dumps(type(error).__name__))
"""


def test_airflow_has_a_task_for_each_list_and_repeats_only_what_may_succeed_later(
    tmp_path: Path, projects: Path
) -> None:
    python = python_with("airflow")
    env = environment(tmp_path, AIRFLOW_HOME=str(tmp_path / "airflow"))
    for code in range(10):
        command(projects / "shop", f"exit {code}").rename(projects / "shop" / f"end-{code}")
    lists = sorted(f"pull_{name}" for name in LISTS)
    tasks: dict[str, list[str]] = {**{name: [] for name in lists}, "reconcile": lists}
    found = run(python, LOAD + AIRFLOW, tmp_path, env)
    assert sorted(found[:2]) == [[f"orderbridge_{name}", 1, tasks] for name in sorted(CUSTOMERS)]
    fails, again = "AirflowFailException", "AirflowException"
    assert found[2:] == ["done", fails, fails, fails, again, "done", fails, fails, again, fails]
    with duckdb.connect(str(projects / "shop/warehouse.duckdb"), read_only=True) as warehouse:
        assert warehouse.execute("SELECT count(*) FROM reconciled.customers").fetchall() == [
            (CUSTOMERS["shop"],)
        ]


PREFECT = """
from pathlib import Path
from prefect.testing.utilities import prefect_test_harness
module = example("prefect_orderbridge")
with prefect_test_harness(server_startup_timeout=120):
    for name in ("late", "never"):
        folder = Path(name)
        folder.mkdir()
        try:
            module.nightly([folder])
            print(">>" + json.dumps("done"))
        except Exception as error:
            print(">>" + json.dumps(str(error)))
"""


def test_prefect_repeats_by_exit_code(tmp_path: Path) -> None:
    python = python_with("prefect")
    quiet = {"PREFECT_SERVER_ANALYTICS_ENABLED": "false", "DO_NOT_TRACK": "1"}
    env = environment(tmp_path, PREFECT_HOME=str(tmp_path / "prefect"), **quiet)
    failing = (
        "case $2 in never) echo no key >&2; exit 3;; esac; test -e again || { : >again; exit 4; }"
    )
    command(tmp_path, f"echo $2 >>../calls; {failing}")
    done, failed = run(python, LOAD + PREFECT, tmp_path, env)
    assert done == "done"
    assert failed == "orderbridge run ended with 3: no key"
    assert (tmp_path / "calls").read_text().split() == ["late", "late", "never"]


def test_containers_name_what_is_there() -> None:
    dockerfile = (EXAMPLES / "Dockerfile").read_text("utf-8")
    copies = [
        line.split()[1:-1] for line in dockerfile.splitlines() if re.match(r"COPY (?!--from)", line)
    ]
    for name in chain.from_iterable(copies):
        assert (CHECKOUT / name).exists(), name
    first, *allowed = [
        line
        for line in (CHECKOUT / ".dockerignore").read_text().split("\n")
        if line[:1] in ("*", "!")
    ]
    patterns = [line.removeprefix("!") for line in allowed if line.startswith("!")]
    assert first == "*"
    assert all(
        any(fnmatch(name, pattern) for pattern in patterns) for name in chain.from_iterable(copies)
    )
    assert all(
        any(fnmatch(name, pattern) for name in chain.from_iterable(copies)) for pattern in patterns
    )
    service = yaml.safe_load((EXAMPLES / "compose.yml").read_text("utf-8"))["services"][
        "orderbridge"
    ]
    assert (EXAMPLES / service["build"]["context"]).resolve() == CHECKOUT
    assert (CHECKOUT / service["build"]["dockerfile"]).exists()
    assert service["environment"]["DLT_PROJECT_DIR"] in service["volumes"][0].split(":"), (
        "not that of the env file"
    )


def test_the_desk_of_the_container_is_published_on_loopback_alone() -> None:
    services = yaml.safe_load((EXAMPLES / "compose.yml").read_text("utf-8"))["services"]
    ports = {name: of.get("ports", []) for name, of in services.items()}
    assert {name for name, of in ports.items() if of} == {"desk"}
    (host, port, inside) = ports["desk"][0].split(":")
    command = services["desk"]["command"]
    assert (host, port) == ("127.0.0.1", command[command.index("--port") + 1])
    forwarder = services["desk-port"]
    assert forwarder["network_mode"] == "service:desk"
    assert forwarder["command"].endswith(f" TCP:127.0.0.1:{port}")
    assert f"TCP-LISTEN:{inside}," in forwarder["command"]
