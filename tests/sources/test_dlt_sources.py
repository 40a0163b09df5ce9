"""The dlt sources in pipelines of users: run again and again, with steps, to several destinations."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any

import dlt
import duckdb
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
import yaml  # type: ignore[import-untyped]
from dlt.extract.exceptions import ResourceExtractionError
from dlt.pipeline.exceptions import PipelineStepFailed

import tests.fast_dlt  # noqa: F401 # makes dlt faster
from pipelines.examples import own_pipeline
from sandbox import Sandbox, SandboxConfig, serve
from sources import resources
from sources.contract import CUSTOMER
from sources.errors import Unreachable
from sources.extract import spool
from sources.extract.result import WalkOptions
from sources.extract.spool import RunFolder
from sources.http.client import Client
from sources.legacy import legacy
from sources.public_v1 import public_v1
from sources.settings import prepare_dlt
from tests.postgres import PASSWORD, connect, server
from tests.soak.pipeline_nights import FIRST, PipelineNights
from tests.sources.platform import Platform
from tests.sources.rawserver import serving

ROOT = Path(__file__).parents[2]
PAGE = 25
COUNTS = {"customers": 58, "promotions": 31, "price_lists": 5, "orders": 28}
"""Rows of each list: those of three pages, two pages, one page and two pages."""


@pytest.fixture
def platform(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sandbox]:
    monkeypatch.chdir(tmp_path)
    prepare_dlt(tmp_path, tmp_path / "dlt")
    sizes: dict[str, Any] = {**COUNTS}
    with serve(SandboxConfig(**sizes)) as sandbox:
        os.environ |= {
            "SOURCES__LEGACY__BASE_URL": sandbox.url,
            "SOURCES__LEGACY__API_KEY": sandbox.legacy_key,
            "SOURCES__LEGACY__PAGE_LIMIT": str(PAGE),
            "SOURCES__PUBLIC_V1__BASE_URL": sandbox.url,
            "SOURCES__PUBLIC_V1__API_KEY": sandbox.v1_key,
            "SOURCES__PUBLIC_V1__PAGE_LIMIT": str(PAGE),
        }
        yield sandbox


_open_files: list[duckdb.DuckDBPyConnection] = []


@pytest.fixture(autouse=True)
def _quick_runs(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(spool, "DIGEST_COST", 2)
    monkeypatch.setattr(resources, "STEP_ROWS", PAGE)
    yield
    while _open_files:
        _open_files.pop().close()


def pipeline(folder: Path, destination: Any = None) -> dlt.Pipeline:
    """A pipeline whose DuckDB file stays open in the test: to open it takes 20 ms, and dlt does so ten times a run."""
    folder.mkdir(exist_ok=True)
    file = str(folder / "shop.duckdb")
    target = destination or dlt.destinations.duckdb(file)
    if "duckdb" in target.destination_type:
        _open_files.append(duckdb.connect(file))
    return dlt.pipeline("shop", pipelines_dir=str(folder / "state"), destination=target, dataset_name="theirs")


def query(pipe: dlt.Pipeline, sql: str) -> list[tuple[Any, ...]]:
    with pipe.sql_client() as client:
        return [tuple(row) for row in client.execute_sql(sql) or []]


def counts(pipe: dlt.Pipeline, *tables: str) -> dict[str, int]:
    return dict(query(pipe, " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in tables)))


def children(platform: Sandbox) -> dict[str, int]:
    customers, orders = platform.state.records("customers"), platform.state.records("orders")
    return {
        "customers__documents": sum(len(record.get("documents") or []) for record in customers),
        "orders__lines": sum(len(record["lines"]) for record in orders),
    }


@pytest.mark.parametrize("disposition", [None, "merge"])
def test_one_source_object_runs_again_and_again(tmp_path: Path, platform: Sandbox, disposition: Any) -> None:
    expected = COUNTS | children(platform)
    pipe, sources = pipeline(tmp_path), [legacy(), public_v1()]
    for _ in range(3):
        for source in sources:
            pipe.run(source, write_disposition=disposition)
        assert counts(pipe, *expected) == expected


def test_each_run_reads_the_platform_anew(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), legacy()
    pipe.run(source)
    first = platform.state.records("customers")[0]
    platform.state.change("customers", str(first["id"]), {"documents": []})
    platform.state.add("customers", {"firstName": "Nueva", "documents": [{"number": "N1"}]})
    for disposition in ("replace", "merge"):
        pipe.run(source, write_disposition=disposition)
        assert counts(pipe, "customers", "customers__documents") == {
            "customers": COUNTS["customers"] + 1,
            "customers__documents": children(platform)["customers__documents"],
        }


def test_child_tables_that_no_order_has_any_more_are_emptied(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), public_v1()
    pipe.run(source)
    for order in platform.state.records("orders"):
        platform.state.change("orders", str(order["id"]), {"lines": []})
    pipe.run(source)
    assert counts(pipe, "orders", "orders__lines") == {"orders": COUNTS["orders"], "orders__lines": 0}


def test_a_source_can_be_iterated(platform: Sandbox) -> None:
    source = legacy().with_resources("promotions")
    for _ in range(2):
        assert sum(len(table) for table in source) == 31


def test_a_list_without_rows_has_its_columns(tmp_path: Path, platform: Sandbox) -> None:
    for key in platform.state.ids("promotions"):
        platform.state.remove("promotions", key)
    pipe = pipeline(tmp_path)
    pipe.run(legacy().with_resources("promotions"))
    assert query(pipe, "SELECT id, use_count FROM promotions") == []


def masked(table: pa.Table) -> pa.Table:
    return table.set_column(table.schema.get_field_index("email"), "email", pa.nulls(len(table), pa.string()))


def test_add_map_sees_every_row(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), legacy()
    for name in ("customers", "customers__documents"):
        source.resources[name].add_map(masked)
    for _ in range(2):
        pipe.run(source)
        rows = query(pipe, "SELECT count(*), count(email), count(first_name) FROM customers")
        assert rows == [(COUNTS["customers"], 0, COUNTS["customers"])]
        assert query(pipe, "SELECT count(email) FROM customers__documents") == [(0,)]


def test_a_filter_sees_every_row(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), legacy()
    ids = platform.state.ids("customers")[:7]
    source.customers.add_map(lambda table: table.filter(pc.is_in(table["id"], value_set=pa.array(ids))))
    source.promotions.add_filter(lambda table: False)
    pipe.run(source)
    assert query(pipe, "SELECT id FROM customers ORDER BY id") == sorted((key,) for key in ids)


def test_add_limit_counts_pages(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), legacy()
    source.customers.add_limit(1)
    for _ in range(2):
        pipe.run(source)
        assert counts(pipe, "customers", "promotions") == {"customers": PAGE, "promotions": 31}


def test_incremental_hints(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), legacy().with_resources("promotions")
    source.promotions.apply_hints(write_disposition="append", incremental=dlt.sources.incremental("use_count"))
    pipe.run(source)
    most = max(record["useCount"] for record in platform.state.records("promotions"))
    dates = {"startDate": "2024-01-01", "expirationDate": "2025-01-01"}
    platform.state.add("promotions", {"name": "x", "useCount": most + 1, "isActive": True, **dates})
    pipe.run(source)
    assert counts(pipe, "promotions") == {"promotions": 32}


def test_parallelized(tmp_path: Path, platform: Sandbox) -> None:
    expected = COUNTS | children(platform)
    pipe, sources = pipeline(tmp_path), [legacy(), public_v1()]
    for source in sources:
        for resource in source.resources.values():
            resource.parallelize()
    for _ in range(2):
        for source in sources:
            pipe.run(source)
        assert counts(pipe, *expected) == expected


@pytest.mark.parametrize(
    ("make", "name", "tables"),
    [
        (legacy, "customers", {"customers", "customers__documents"}),
        (public_v1, "orders", {"orders", "orders__lines", "orders__lines__taxes"}),
    ],
)
def test_a_selected_list_brings_its_child_tables(
    tmp_path: Path, platform: Sandbox, make: Callable[[], Any], name: str, tables: set[str]
) -> None:
    pipe = pipeline(tmp_path)
    pipe.run(make().with_resources(name).with_resources(name))
    assert {table for table in pipe.default_schema.tables if not table.startswith("_dlt")} == tables


def test_orders_are_identified_by_a_field_of_choice(tmp_path: Path, platform: Sandbox) -> None:
    name = next(name for name, value in platform.state.records("orders")[0].items() if name != "id" and value)
    for number, order in enumerate(platform.state.records("orders")):
        platform.state.change("orders", str(order["id"]), {name: f"N{number}"})
    pipe = pipeline(tmp_path)
    pipe.run(public_v1(order_key=name).with_resources("orders"))
    assert {key for (key,) in query(pipe, "SELECT id FROM orders")} == {f"N{n}" for n in range(COUNTS["orders"])}


def test_files_are_the_same_in_each_run(tmp_path: Path, platform: Sandbox) -> None:
    bucket = tmp_path / "bucket"
    pipe = pipeline(tmp_path, dlt.destinations.filesystem(bucket_url=bucket.as_uri()))
    source, expected = legacy(), COUNTS | children(platform)
    source.customers.add_map(masked)
    for _ in range(2):
        pipe.run(source, loader_file_format="parquet")
        for table in ("customers", "customers__documents", "promotions"):
            rows = pa.concat_tables([pq.read_table(file) for file in (bucket / "theirs" / table).rglob("*.parquet")])
            assert len(rows) == expected[table]
            assert table != "customers" or rows["email"].null_count == len(rows)


@pytest.fixture(scope="module")
def postgres_server() -> Iterator[int]:
    with server() as port:
        yield port


@pytest.fixture
def postgres(postgres_server: int, tmp_path: Path) -> str:
    """The address of a database of the test's own."""
    name = tmp_path.name.lower()
    with closing(connect(postgres_server)) as connection:
        connection.cursor().execute(f"CREATE DATABASE {name}")
    return f"postgresql://loader:{PASSWORD}@127.0.0.1:{postgres_server}/{name}"


@pytest.mark.parametrize("disposition", [None, "merge"])
def test_postgres_holds_the_same_rows_each_time(
    tmp_path: Path, platform: Sandbox, postgres: str, disposition: Any
) -> None:
    expected = COUNTS | children(platform)
    pipe, sources = pipeline(tmp_path, dlt.destinations.postgres(postgres)), [legacy(), public_v1()]
    sources[0].customers.add_map(masked)
    for _ in range(2):
        for source in sources:
            pipe.run(source, write_disposition=disposition)
        assert counts(pipe, *expected) == expected
        assert query(pipe, "SELECT count(email) FROM customers") == [(0,)]


def test_the_dlt_sources_use_the_proxy_and_the_limits_of_the_settings(platform: Sandbox) -> None:
    with serving(b"HTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n") as proxy:
        os.environ["SOURCES__HTTP__PROXY"] = proxy.url
        for source, first in ((legacy(), "customers"), (public_v1(), "price_lists")):
            seen = len(proxy.seen)
            with pytest.raises(ResourceExtractionError):
                list(source.with_resources(first))
            assert len(proxy.seen) > seen


def columns(table: Any) -> dict[str, tuple[Any, ...]]:
    facts = ("data_type", "precision", "scale", "primary_key", "description")
    return {name: tuple(column.get(fact) for fact in facts) for name, column in table["columns"].items()}


def test_columns_and_descriptions_are_known_before_a_run(tmp_path: Path, platform: Sandbox) -> None:
    source = legacy()
    before = {name: columns(source.discover_schema().tables[name]) for name in source.resources}
    assert before["customers"]["erp_code"] == ("text", None, None, None, "code used by the integrator's ERP")
    assert before["customers"]["birthdate"][0] == "date"
    assert before["customers__documents"]["customer_id"][-1] == "`id` in `customers`"
    prices = columns(public_v1().discover_schema().tables["price_lists"])
    assert prices["adjustment_value"] == ("decimal", 38, 9, None, "decimal written as text")
    assert columns(public_v1().discover_schema().tables["orders"])["id"] == ("text", None, None, True, None)
    assert not platform.state.log
    pipe = pipeline(tmp_path)
    pipe.run(source)
    assert {name: columns(pipe.default_schema.tables[name]) for name in source.resources} == before
    after = pipe.default_schema.tables["customers"]["columns"]
    assert [name for name, column in after.items() if not column.get("nullable")] == ["id"]


def test_an_exported_schema_has_keys_descriptions_and_relations(tmp_path: Path, platform: Sandbox) -> None:
    folder = tmp_path / "schemas"
    pipe = dlt.pipeline(
        "shop",
        pipelines_dir=str(tmp_path / "state"),
        destination=dlt.destinations.duckdb(str(tmp_path / "shop.duckdb")),
        export_schema_path=str(folder),
    )
    pipe.run(legacy())
    pipe.run(public_v1())
    tables = {
        name: table
        for file in folder.iterdir()
        for name, table in yaml.safe_load(file.read_text("utf-8"))["tables"].items()
        if not name.startswith("_dlt")
    }
    assert set(tables) == {*COUNTS, *children(platform), "orders__lines__taxes"}
    for name in COUNTS:
        assert tables[name]["columns"]["id"]["primary_key"] is True
        assert tables[name]["columns"]["_extra"]["data_type"] == "text"
    for child, parent, key in (
        ("customers__documents", "customers", "customer_id"),
        ("orders__lines", "orders", "order_id"),
        ("orders__lines__taxes", "orders", "order_id"),
    ):
        (reference,) = tables[child]["references"]
        assert (reference["referenced_table"], reference["columns"]) == (parent, [key])
        assert reference["referenced_columns"] == ["id"]
    assert tables["customers"]["columns"]["created_at"]["description"] == "format: not shown"


@pytest.mark.parametrize("name", ["load_all", "load_selected", "load_without_contacts", "load_sample"])
def test_each_function_of_the_example_loads(tmp_path: Path, platform: Sandbox, name: str) -> None:
    expected = {
        "load_all": COUNTS | children(platform),
        "load_selected": {name: (COUNTS | children(platform))[name] for name in ("price_lists", "customers")},
        "load_without_contacts": {
            "customers": sum(bool(c.get("erpCode")) for c in platform.state.records("customers"))
        },
        "load_sample": {"orders": PAGE},
    }[name]
    pipe = pipeline(tmp_path)
    for _ in range(2):
        getattr(own_pipeline, name)(pipe)
    assert counts(pipe, *expected) == expected
    if name == "load_without_contacts":
        assert query(pipe, "SELECT count(email) + count(phone) FROM customers") == [(0,)]
        assert query(pipe, "SELECT count(email) FROM customers__documents") == [(0,)]


def test_the_example_runs_as_a_script(tmp_path: Path, platform: Sandbox) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pipelines.examples.own_pipeline"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT), "HOME": str(tmp_path), "DLT_DATA_DIR": str(tmp_path / "dlt")},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2 load package(s) were loaded to destination duckdb" in done.stdout
    assert done.stderr == ""
    with duckdb.connect(str(tmp_path / "shop.duckdb")) as connection:
        assert connection.sql("SELECT count(*) FROM platform.customers__documents").fetchall() == [
            (children(platform)["customers__documents"],)
        ]


STEPS: dict[str, Callable[[Any], Any]] = {
    "plain": lambda customers: customers,
    "add_map": lambda customers: customers.add_map(masked),
    "add_filter": lambda customers: customers.add_filter(lambda table: len(table) > 0),
    "add_limit": lambda customers: customers.add_limit(1),
    "parallelized": lambda customers: customers.parallelize(),
}


@pytest.fixture
def destination(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    if request.param == "postgres":
        return dlt.destinations.postgres(request.getfixturevalue("postgres"))
    if request.param == "filesystem":
        return dlt.destinations.filesystem(bucket_url=(tmp_path / "bucket").as_uri())
    return dlt.destinations.duckdb(str(tmp_path / "shop.duckdb"))


def contents(pipe: dlt.Pipeline, bucket: Path, *tables: str) -> dict[str, list[str]]:
    """The rows of each table, without dlt's own columns, in a fixed order."""
    if bucket.exists():
        files = {table: (bucket / "theirs" / table).rglob("*.parquet") for table in tables}
        return {table: in_order(row for file in files[table] for row in rows_of(file)) for table in tables}
    with pipe.sql_client() as client:
        return {table: in_order(selected(client, table)) for table in tables}


def rows_of(file: Path) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pq.read_table(file).to_pylist()
    return rows


def selected(client: Any, table: str) -> list[dict[str, Any]]:
    with client.execute_query(f"SELECT * FROM {table}") as cursor:
        names = [column[0] for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]


def in_order(rows: Iterable[dict[str, Any]]) -> list[str]:
    return sorted(str(sorted((name, str(row[name])) for name in row if not name.startswith("_dlt"))) for row in rows)


@pytest.mark.parametrize("destination", ["duckdb", "filesystem", "postgres"], indirect=True)
@pytest.mark.parametrize("step", STEPS)
def test_shows_rows_are_equal_in_each_run(tmp_path: Path, platform: Sandbox, destination: Any, step: str) -> None:
    """dlt's filesystem destination appends under the disposition merge, so it runs with replace only."""
    is_files = "filesystem" in destination.destination_type
    options: Any = {"loader_file_format": "parquet"} if is_files else {}
    pipe, source = pipeline(tmp_path, destination), legacy()
    STEPS[step](source.customers)
    results = []
    dispositions: Any = ("replace", "replace") if is_files else ("replace", "merge", "merge", "replace")
    for disposition in dispositions:
        pipe.run(source, write_disposition=disposition, **options)
        results.append(contents(pipe, tmp_path / "bucket", "customers", "customers__documents", "promotions"))
    assert all(result == results[0] for result in results)
    expected = COUNTS | children(platform) | ({"customers": PAGE} if step == "add_limit" else {})
    assert {table: len(rows) for table, rows in results[0].items()} == {table: expected[table] for table in results[0]}


@pytest.mark.parametrize("nested", [False, True], ids=["arrow", "nested"])
@pytest.mark.parametrize("destination", ["duckdb", "postgres"], indirect=True)
def test_nights_of_drift_are_loaded_without_a_loss(
    tmp_path: Path, platform: Sandbox, destination: Any, nested: bool
) -> None:
    nights = PipelineNights(11 + nested, platform, pipeline(tmp_path, destination), nested=nested)
    assert list(nights.run(len(FIRST) + 2)) == []


@pytest.mark.parametrize("nested", [False, True], ids=["arrow", "nested"])
def test_the_schema_contract_of_the_source_counts(tmp_path: Path, platform: Sandbox, nested: bool) -> None:
    pipe, source = pipeline(tmp_path), public_v1(nested=nested).with_resources("orders")
    source.schema_contract = {"columns": "discard_value", "data_type": "freeze"}
    pipe.run(source)
    first = platform.state.ids("orders")[0]
    platform.state.change("orders", first, {"flag": 1})
    pipe.run(source)
    assert "flag" not in pipe.default_schema.tables["orders"]["columns"]
    platform.state.change("orders", first, {"number": 10.5})
    with pytest.raises(PipelineStepFailed, match="`data_types` are frozen"):
        pipe.run(source)
    pipe.abort_packages()
    source.schema_contract = {"data_type": "discard_value"}
    pipe.run(source)
    assert query(pipe, "SELECT count(*), count(number) FROM orders") == [(28, 27)]


@pytest.mark.parametrize("nested", [False, True], ids=["arrow", "nested"])
def test_numbers_of_orders_are_decimals_from_the_start_where_that_is_asked_for(
    tmp_path: Path, platform: Sandbox, nested: bool
) -> None:
    pipe, first = pipeline(tmp_path), platform.state.ids("orders")[0]
    for number in (1, Decimal("10.5")):
        platform.state.change("orders", first, {"number": float(number)})
        pipe.run(public_v1(decimals=True, nested=nested).with_resources("orders"))
        assert query(pipe, f"SELECT number FROM orders WHERE id = '{first}'") == [(number,)]
        assert "number__v_decimal" not in pipe.default_schema.tables["orders"]["columns"]


def test_a_walk_that_failed_goes_on_in_the_next_run_and_leaves_nothing(
    tmp_path: Path, platform: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "state" / "shop" / "orderbridge"
    pipe, read, pages = pipeline(tmp_path), Client.get, []

    def get(self: Client, *arguments: Any, **options: Any) -> Any:
        pages.append(arguments)
        if len(pages) == 2:
            raise Unreachable("the platform is down", "")
        return read(self, *arguments, **options)

    monkeypatch.setattr(Client, "get", get)
    with pytest.raises(PipelineStepFailed, match="the platform is down"):
        pipe.run(public_v1().with_resources("orders"))
    assert [path.name for path in folder.rglob("*.pages")] == ["sweep-1.pages"]
    source = public_v1().with_resources("orders")
    pipe.run(source)
    assert counts(pipe, "orders") == {"orders": COUNTS["orders"]}
    assert len(pages) == 3, "page 1 is not requested again"
    del source
    gc.collect()
    assert not list(folder.iterdir())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda source: source.customers.add_map(lambda row: {**row, "x": 1}), "Table' object is not a mapping"),
        (lambda source: source.customers.add_filter(lambda row: row["id"] > "1"), "not supported between instances"),
        (
            lambda source: source.customers.apply_hints(write_disposition={"disposition": "merge", "strategy": "scd2"}),
            "did not receive any data",
        ),
    ],
    ids=["map of rows", "filter of rows", "scd2"],
)
def test_what_does_not_work_raises(
    tmp_path: Path, platform: Sandbox, change: Callable[[Any], object], message: str
) -> None:
    source = legacy().with_resources("customers")
    change(source)
    with pytest.raises(PipelineStepFailed, match=message):
        pipeline(tmp_path).run(source)


def test_appended_lists_have_the_child_rows_of_the_last_walk(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), legacy().with_resources("customers")
    for run in (1, 2):
        pipe.run(source, write_disposition="append")
        assert counts(pipe, "customers", "customers__documents") == {
            "customers": COUNTS["customers"] * run,
            "customers__documents": children(platform)["customers__documents"],
        }


CHILDREN = [("customers", "customers__documents", "customer_id"), ("orders", "orders__lines", "order_id")]


def without_items(platform: Sandbox, name: str, field: str) -> tuple[str, str]:
    """Takes a record with items from the platform, and from another one its items. Returns their ids."""
    gone, bare = [str(record["id"]) for record in platform.state.records(name) if record.get(field)][:2]
    platform.state.remove(name, gone)
    platform.state.change(name, bare, {field: []})
    return gone, bare


@pytest.mark.parametrize("destination", ["duckdb", "postgres"], indirect=True)
def test_merging_keeps_the_child_rows_of_the_records_that_it_keeps(
    tmp_path: Path, platform: Sandbox, destination: Any
) -> None:
    pipe = pipeline(tmp_path, destination)
    sources = [legacy().with_resources("customers"), public_v1().with_resources("orders")]
    for disposition in ("replace", "merge"):
        for source in sources:
            pipe.run(source, write_disposition=disposition)
    before = contents(pipe, tmp_path / "bucket", *(child for _, child, _ in CHILDREN))
    ids = {name: without_items(platform, name, child.split("__")[1]) for name, child, _ in CHILDREN}
    for source in sources:
        pipe.run(source, write_disposition="merge")
    children_after = contents(pipe, tmp_path / "bucket", *before)
    for name, child, key in CHILDREN:
        gone, bare = ids[name]
        after = children_after[child]
        assert after == [row for row in before[child] if f"('{key}', '{bare}')" not in row]
        assert any(f"('{key}', '{gone}')" in row for row in after)
        assert query(pipe, f"SELECT count(*) FROM {child} WHERE _removed") == [(0,)]
    for source in sources:
        pipe.run(source, write_disposition="replace")
    assert counts(pipe, *children(platform)) == children(platform)


def test_nested_rows_become_nested_tables_of_dlt(tmp_path: Path, platform: Sandbox) -> None:
    platform.state.change("orders", platform.state.ids("orders")[0], {"extra": {"notes": [{"text": "2026-01-01"}]}})
    pipe, plain = pipeline(tmp_path), pipeline(tmp_path / "plain")
    for source, arrow in ((legacy(nested=True), legacy()), (public_v1(nested=True), public_v1())):
        pipe.run(source)
        plain.run(arrow)
    tables: dict[str, Any] = {name: table for schema in pipe.schemas.values() for name, table in schema.tables.items()}
    for child, parent in (
        ("customers__documents", "customers"),
        ("orders__lines", "orders"),
        ("orders__lines__taxes", "orders__lines"),
        ("orders__extra__notes", "orders"),
    ):
        assert tables[child]["parent"] == parent
        joined = f"SELECT count(*) FROM {child} c JOIN {parent} p ON c._dlt_parent_id = p._dlt_id"
        assert query(pipe, joined) == query(plain, f"SELECT count(*) FROM {child}") != [(0,)]
    for table in (*COUNTS, *children(platform)):
        names = [name for name, column in tables[table]["columns"].items() if not name.startswith("_dlt")]
        both = [sorted(map(str, query(pipe_, f"SELECT {', '.join(names)} FROM {table}"))) for pipe_ in (pipe, plain)]
        assert both[0] == both[1]
    ids = {name: without_items(platform, name, child.split("__")[1]) for name, child, _ in CHILDREN}
    for source in (legacy(nested=True), public_v1(nested=True)):
        pipe.run(source, write_disposition="merge")
    for name, child, key in CHILDREN:
        counted = [query(pipe, f"SELECT count(*) FROM {child} WHERE {key} = '{id_}'")[0][0] for id_ in ids[name]]
        assert counted[0] > 0
        assert counted[1] == 0


def test_rows_that_are_left_out_and_lists_that_are_not_proven_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    class Odd(Platform):
        def row(self, key: int) -> dict[str, Any]:
            return super().row(key) | ({"email": True} if key == 7 else {})

    client: Any = Odd(list(range(1, 31)))
    monkeypatch.setattr(Client, "with_http_settings", lambda *_: nullcontext(client))
    walker = resources.ListWalker(CUSTOMER, "http://localhost", "key", WalkOptions(10, sweeps=1))
    assert walker._walk(RunFolder(tmp_path, "customers")).distinct == 29
    warnings = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    assert [text.partition("; a single")[0] for text in warnings] == [
        "customers: rows that cannot be loaded and are left out: 1; email: expected string, found boolean "
        "(the first: page 1, position 7)",
        "customers may lack rows: sweep 1: 30 rows on 5 pages of 10, 29 distinct, ended by empty page, clean, "
        "1 rows quarantined",
    ]


def test_nested_rows_take_steps_on_rows(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), legacy(nested=True).with_resources("customers")
    source.customers.add_map(lambda row: row | {"email": None}).add_filter(lambda row: bool(row["documents"]))
    source.customers.apply_hints(write_disposition={"disposition": "merge", "strategy": "scd2"})
    pipe.run(source)
    expected = sum(bool(record.get("documents")) for record in platform.state.records("customers"))
    assert query(pipe, "SELECT count(*), count(_dlt_valid_from) FROM customers") == [(expected, expected)]


def test_dlt_does_not_load_arrow_tables_into_nested_tables(tmp_path: Path) -> None:
    """Why child tables reference their lists instead. If this fails, dlt can: docs/sources.md, Child tables."""

    def tables() -> Iterator[Any]:
        hints = dlt.mark.make_hints("lists__items", parent_table_name="lists")
        yield pa.table({"id": ["1"]})
        yield dlt.mark.with_hints(pa.table({"list_id": ["1"]}), hints, create_table_variant=True)

    with pytest.raises(PipelineStepFailed, match="'resource'"):
        pipeline(tmp_path).run(dlt.resource(tables, name="lists"))
