"""The dlt sources in pipelines of users: run again and again, with steps, to several destinations."""

from __future__ import annotations

import ast
import gc
import os
import re
import runpy
from collections.abc import Iterator
from contextlib import nullcontext
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import dlt
import duckdb
import pytest
from dlt.extract.exceptions import ResourceExtractionError
from dlt.pipeline.exceptions import PipelineStepFailed

import tests.fast_dlt  # noqa: F401 # makes dlt faster
from orderbridge.pipelines.examples import own_pipeline
from orderbridge.sandbox import Sandbox, SandboxConfig, serve
from orderbridge.sources import resources
from orderbridge.sources.contract import CUSTOMER
from orderbridge.sources.decode.schema_inference import InferredNode
from orderbridge.sources.errors import Unreachable
from orderbridge.sources.extract import spool
from orderbridge.sources.extract.result import WalkOptions
from orderbridge.sources.http.client import Client
from orderbridge.sources.legacy import legacy
from orderbridge.sources.public_v1 import public_v1
from orderbridge.sources.settings import prepare_dlt
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
    yield
    while _open_files:
        _open_files.pop().close()


def pipeline(folder: Path) -> dlt.Pipeline:
    """A pipeline whose DuckDB file stays open in the test: to open it takes 20 ms, and dlt does so ten times a run."""
    file = str(folder / "shop.duckdb")
    _open_files.append(duckdb.connect(file))
    target = dlt.destinations.duckdb(file)
    return dlt.pipeline(
        "shop", pipelines_dir=str(folder / "state"), destination=target, dataset_name="theirs"
    )


def query(pipe: dlt.Pipeline, sql: str) -> list[tuple[Any, ...]]:
    with pipe.sql_client() as client:
        return [tuple(row) for row in client.execute_sql(sql) or []]


def counts(pipe: dlt.Pipeline, *tables: str) -> dict[str, int]:
    return dict(
        query(
            pipe, " UNION ALL ".join(f"SELECT '{table}', count(*) FROM {table}" for table in tables)
        )
    )


def children(platform: Sandbox) -> dict[str, int]:
    customers, orders = platform.state.records("customers"), platform.state.records("orders")
    return {
        "customers__documents": sum(len(record.get("documents") or []) for record in customers),
        "orders__lines": sum(len(record["lines"]) for record in orders),
    }


def test_each_run_reads_the_platform_anew(tmp_path: Path, platform: Sandbox) -> None:
    pipe, sources = pipeline(tmp_path), [legacy(), public_v1()]
    with mock.patch("dlt.extract.extractors.logger.warning") as warned:
        own_pipeline.load_all(pipe)
    assert warned.call_args_list == []
    assert counts(pipe, *COUNTS, *children(platform)) == COUNTS | children(platform)
    first = platform.state.records("customers")[0]
    platform.state.change("customers", str(first["id"]), {"documents": []})
    platform.state.add("customers", {"firstName": "Nueva", "documents": [{"number": "N1"}]})
    for order in platform.state.records("orders"):
        platform.state.change("orders", str(order["id"]), {"lines": []})
    for key in platform.state.ids("promotions"):
        platform.state.remove("promotions", key)
    expected = children(platform) | {
        "customers": COUNTS["customers"] + 1,
        "promotions": 0,
        "orders": COUNTS["orders"],
    }
    for disposition in ("replace", "append"):
        for source in sources:
            pipe.run(source, write_disposition=disposition)
        if disposition == "append":  # child tables are those of the last walk
            expected |= {name: expected[name] * 2 for name in ("customers", "orders")}
        assert counts(pipe, *expected) == expected


def test_orders_have_the_key_and_the_decimals_that_are_asked_for(
    tmp_path: Path, platform: Sandbox
) -> None:
    pipe, ids = pipeline(tmp_path), platform.state.ids("orders")
    for number, key in enumerate(ids):
        platform.state.change("orders", key, {"code": f"N{number}", "number": 1})
    for sent in (1, 10.5):
        platform.state.change("orders", ids[0], {"number": sent})
        pipe.run(public_v1(order_key="code", decimals=True).with_resources("orders"))
        numbers = dict(query(pipe, "SELECT id, number FROM orders"))
        assert numbers == {f"N{n}": Decimal(str(1 if n else sent)) for n in range(COUNTS["orders"])}
        assert "number__v_decimal" not in pipe.default_schema.tables["orders"]["columns"]


@pytest.mark.parametrize("decimals", [False, True])
def test_numbers_in_floating_point_are_decimals_unless_version_0_3_made_them_text(
    tmp_path: Path, platform: Sandbox, decimals: bool
) -> None:
    pipe = pipeline(tmp_path)
    ids = platform.state.ids("orders")
    for n, key in enumerate(ids):
        platform.state.change("orders", key, {"total": n / 1.21, "lines": [{"price": n / 7}]})
    with pipe.managed_state() as state:
        of_orders = {"kinds": {'["total"]': ["text", 100]}, "names": {}}
        state["sources"] = {"public_v1": {"orders": of_orders}}
    pipe.run(public_v1(decimals=decimals).with_resources("orders"))
    texts = {text for (text,) in query(pipe, "SELECT total FROM orders")}
    assert texts == {f"{n / 1.21}".removesuffix(".0") for n in range(len(ids))}
    pipe.run(public_v1(decimals=decimals).with_resources("orders"), refresh="drop_sources")
    for table, column, divisor in (("orders", "total", 1.21), ("orders__lines", "price", 7)):
        exact = f"coalesce(_extra->>'{column}', {column}::VARCHAR)::DOUBLE"
        numbers = query(pipe, f"SELECT {column}, {exact} FROM {table} ORDER BY 1")
        every = [n / divisor for n in range(len(ids))]
        assert numbers == [(Decimal(str(one)).quantize(Decimal("1e-9")), one) for one in every]


def test_a_list_that_0_3_kept_as_an_object_has_a_child_table_from_the_next_run(
    tmp_path: Path, platform: Sandbox, caplog: pytest.LogCaptureFixture
) -> None:
    pipe = pipeline(tmp_path)
    for n, key in enumerate(platform.state.ids("orders")):
        items = [{"sku": "A"}, {"sku": "B"}][: 1 + (n < 2)]
        platform.state.change("orders", key, {"items": items})
    with pipe.managed_state() as state:
        kinds = {'["items"]': ["object", 100], '["items","sku"]': ["text", 100]}
        state["sources"] = {"public_v1": {"orders": {"kinds": kinds, "names": {}}}}
    for _ in range(2):
        pipe.run(public_v1().with_resources("orders"))
        assert counts(pipe, "orders__items") == {"orders__items": COUNTS["orders"] + 2}
    said = [message for message in caplog.messages if '["items"]' in message]
    assert said == [
        'orders: the field ["items"] is a list: its items are in a child table now, its columns get no values'
    ]


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
    return {
        name: tuple(column.get(fact) for fact in facts) for name, column in table["columns"].items()
    }


def test_columns_and_descriptions_are_known_before_a_run_and_relations_after_it(
    tmp_path: Path, platform: Sandbox
) -> None:
    source, pipe = legacy(), pipeline(tmp_path)
    before = {name: columns(source.discover_schema().tables[name]) for name in source.resources}
    assert before["customers"]["erp_code"] == (
        "text",
        None,
        None,
        None,
        "code used by the integrator's ERP",
    )
    assert before["customers__documents"]["customer_id"][-1] == "`id` in `customers`"
    v1 = public_v1().discover_schema().tables
    assert columns(v1["price_lists"])["adjustment_value"] == (
        "decimal",
        38,
        9,
        None,
        "decimal written as text",
    )
    assert columns(v1["orders"])["id"] == ("text", None, None, True, None)
    assert not platform.state.log
    for each in (source, public_v1()):
        pipe.run(each)
    tables: dict[str, Any] = {
        name: table for schema in pipe.schemas.values() for name, table in schema.tables.items()
    }
    assert {name: columns(tables[name]) for name in source.resources} == before
    assert [
        name
        for name, column in tables["customers"]["columns"].items()
        if not column.get("nullable")
    ] == ["id"]
    for child, parent in (("customers__documents", "customer"), ("orders__lines__taxes", "order")):
        (reference,) = tables[child]["references"]
        found = (
            reference["referenced_table"],
            reference["columns"],
            reference["referenced_columns"],
        )
        assert found == (f"{parent}s", [f"{parent}_id"], ["id"])


def test_each_function_of_the_example_loads(tmp_path: Path, platform: Sandbox) -> None:
    pipe, whole = pipeline(tmp_path), COUNTS | children(platform)
    own_pipeline.load_without_contacts(pipe)
    coded = sum(bool(one.get("erpCode")) for one in platform.state.records("customers"))
    assert query(pipe, "SELECT count(*), count(email) + count(phone) FROM customers") == [
        (coded, 0)
    ]
    own_pipeline.load_selected(pipe)
    own_pipeline.load_sample(pipe)
    expected = {
        name: whole[name] for name in ("price_lists", "customers", "customers__documents")
    } | {"orders": 10}
    assert counts(pipe, *expected) == expected


def rows_of(pipe: dlt.Pipeline, table: str) -> list[str]:
    """The rows of a table, without dlt's own columns, in a fixed order."""
    with pipe.sql_client() as client, client.execute_query(f"SELECT * FROM {table}") as cursor:
        names = [column[0] for column in cursor.description or ()]
        rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    return sorted(
        str(sorted((name, str(row[name])) for name in row if not name.startswith("_dlt")))
        for row in rows
    )


@pytest.mark.xfail(
    duckdb.__version__.startswith("2."), reason="dlt 1.31 calls what DuckDB 2 no longer has"
)
@pytest.mark.filterwarnings("ignore:fetch_arrow_table:DeprecationWarning")  # of DuckDB, for dlt
def test_the_dataset_of_a_pipeline_is_read_as_frame_arrow_table_and_ibis(
    tmp_path: Path, platform: Sandbox
) -> None:
    pipe = pipeline(tmp_path)
    pipe.run(legacy().with_resources("promotions"))
    dataset = pipe.dataset()
    expected = sorted(str(row["id"]) for row in platform.state.records("promotions"))
    frame = dataset["promotions"].df()
    table = dataset["promotions"].select("id").arrow()
    promotions = dataset.ibis().table("promotions")
    assert frame is not None
    assert table is not None
    assert sorted(frame["id"]) == expected
    assert sorted(table["id"].to_pylist()) == expected
    assert sorted(promotions.id.to_pyarrow().to_pylist()) == expected
    assert sorted(dataset["promotions"].to_ibis().id.execute()) == expected


def test_rows_take_scd2(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), legacy().with_resources("customers")
    source.customers.add_map(lambda table: table.to_pylist())
    source.customers.apply_hints(write_disposition={"disposition": "merge", "strategy": "scd2"})
    for name in ("a", "b"):
        platform.state.change("customers", platform.state.ids("customers")[0], {"firstName": name})
        pipe.run(source)
    assert query(pipe, "SELECT count(*), count(_dlt_valid_to) FROM customers") == [
        (COUNTS["customers"] + 1, 1)
    ]


def test_no_private_attribute_of_a_library_is_read() -> None:
    documented, found = (
        {"_asdict", "_replace", "_fields", "_exit", "_value_"},
        set[tuple[str, str]](),
    )
    rooms = ("sources", "pipelines", "transforms", "sandbox")
    for path in (file for room in rooms for file in ROOT.glob(f"{room}/**/*.py")):
        text = path.read_text("utf-8")
        own = documented | set(
            re.findall(r"(?:def |self\.|cls\.|^ +)(_[a-z]\w*)", text, re.MULTILINE)
        )
        # else it need not be parsed
        if not own.issuperset(re.findall(r"(?<!self)(?<!cls)\.(_[a-z]\w*)", text)):
            read = {
                node.attr for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Attribute)
            } - own
            found |= {(path.name, name) for name in read if re.match("_[a-z]", name)}
    assert found == set()


def test_odd_values_are_loaded_without_a_loss_and_columns_keep_types_and_names(
    tmp_path: Path, platform: Sandbox
) -> None:
    """A value is in the column of its field, in a variant of it, or in `_extra`."""
    pipe, ids = pipeline(tmp_path), sorted(platform.state.ids("orders"))
    keyed = {"0": {"sku": "B"}, "2": {"sku": "C"}}
    nights: list[dict[int, dict[str, Any]]] = [
        {
            n: {"amount": 5, "flag": True, "note": "x", "Extra": "1", "lines": [{"sku": "A"}]}
            for n in range(28)
        },
        {
            0: {"amount": 10.5, "flag": 5, "lines": {}},
            1: {"amount": "007", "flag": "maybe", "lines": keyed},
            2: {"note": {"a": 1}, "Extra": None, "extra": "2", "lines": ""},
        },
        {n: {"amount": 7.5, "flag": "no", "lines": {"sku": "D"}} for n in range(28)},
    ]
    types: dict[str, Any] = {}
    for night, changes in enumerate(nights):
        for place, change in changes.items():
            platform.state.change("orders", ids[place], change)
        pipe.run(public_v1().with_resources("orders"))
        found = pipe.default_schema.tables["orders"]["columns"]
        now = {name: column["data_type"] for name, column in found.items() if "data_type" in column}
        assert types.items() <= now.items()
        types = now
        if night == 1:
            sql = "SELECT amount, amount__v_decimal, flag, note, extra, extra_2, _extra FROM orders ORDER BY id LIMIT 3"
            assert query(pipe, sql) == [
                (None, Decimal("10.5"), None, "x", "1", None, '{"flag":5}'),
                (None, None, None, "x", "1", None, '{"amount":"007","flag":"maybe"}'),
                (5, None, True, None, None, "2", '{"note":{"a":1}}'),
            ]
            lines = query(
                pipe, "SELECT order_id, sku FROM orders__lines ORDER BY order_id, position LIMIT 3"
            )
            assert lines == [(ids[1], "B"), (ids[1], "C"), (ids[3], "A")]
    last = "SELECT DISTINCT amount, amount__v_decimal, sku FROM orders JOIN orders__lines ON order_id = id"
    assert query(pipe, last) == [(None, Decimal("7.5"), "D")]


def test_a_child_table_that_no_record_has_any_more_is_emptied(
    tmp_path: Path, platform: Sandbox, monkeypatch: pytest.MonkeyPatch
) -> None:
    pipe = pipeline(tmp_path)
    # as in a pipeline of version 0.2, whose state has no kinds
    with monkeypatch.context() as patched:
        patched.setattr(InferredNode, "known_kinds", lambda _: iter(()))
        pipe.run(public_v1().with_resources("orders"))
    for key in platform.state.ids("orders"):
        platform.state.change("orders", key, {"lines": [{"sku": "A"}]})
    pipe.run(public_v1().with_resources("orders"), write_disposition="merge")
    assert counts(pipe, "orders__lines", "orders__lines__taxes") == {
        "orders__lines": 28,
        "orders__lines__taxes": 0,
    }


def test_the_schema_contract_of_the_source_counts(tmp_path: Path, platform: Sandbox) -> None:
    pipe, source = pipeline(tmp_path), public_v1().with_resources("orders")
    source.schema_contract = {"columns": "discard_value", "data_type": "freeze"}
    pipe.run(source)
    first = platform.state.ids("orders")[0]
    platform.state.change("orders", first, {"flag": 1})
    pipe.run(source)
    assert "flag" not in pipe.default_schema.tables["orders"]["columns"]
    platform.state.change("orders", first, {"number": 10.5})
    with pytest.raises(PipelineStepFailed, match="`data_types` are frozen"):
        pipe.run(source)


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
    source = public_v1().with_resources("orders")
    with pytest.raises(PipelineStepFailed, match="the platform is down"):
        pipe.run(source)
    assert [path.name for path in folder.rglob("*.pages")] == ["sweep-1.pages"]
    pipe.run(source)
    assert counts(pipe, "orders") == {"orders": COUNTS["orders"]}
    assert len(pages) == 3, "page 1 is not requested again"
    del source
    gc.collect()
    assert [path.name for path in folder.rglob("*") if path.is_file()] == ["lock"]


CHILDREN = [
    ("customers", "customers__documents", "customer_id"),
    ("orders", "orders__lines", "order_id"),
]


def without_items(platform: Sandbox, name: str, field: str) -> tuple[str, str]:
    """Takes a record with items from the platform, and from another one its items. Returns their ids."""
    gone, bare = [
        str(record["id"]) for record in platform.state.records(name) if record.get(field)
    ][:2]
    platform.state.remove(name, gone)
    platform.state.change(name, bare, {field: []})
    return gone, bare


def test_merging_keeps_the_child_rows_of_the_records_that_it_keeps(
    tmp_path: Path, platform: Sandbox
) -> None:
    pipe = pipeline(tmp_path)
    sources = [legacy().with_resources("customers"), public_v1().with_resources("orders")]
    for disposition in ("replace", "merge"):
        for source in sources:
            pipe.run(source, write_disposition=disposition)
    before = {child: rows_of(pipe, child) for _, child, _ in CHILDREN}
    ids = {name: without_items(platform, name, child.split("__")[1]) for name, child, _ in CHILDREN}
    for source in sources:
        pipe.run(source, write_disposition="merge")
    for name, child, key in CHILDREN:
        gone, bare = ids[name]
        after = rows_of(pipe, child)
        assert after == [row for row in before[child] if f"('{key}', '{bare}')" not in row]
        assert any(f"('{key}', '{gone}')" in row for row in after)
        assert query(pipe, f"SELECT count(*) FROM {child} WHERE _removed") == [(0,)]


def test_rows_that_are_left_out_and_lists_that_are_not_proven_are_logged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    client: Any = Platform(list(range(1, 31)), row=lambda key: {"email": True} if key == 7 else {})
    monkeypatch.setattr(resources, "Client", lambda *_, **__: nullcontext(client))
    walker = resources.ListWalker(CUSTOMER, "http://localhost", "key", WalkOptions(10, sweeps=1))
    assert walker._walk(tmp_path / "files", tmp_path / "spool").distinct == 29
    left_out, unproven = [
        record.getMessage() for record in caplog.records if record.levelname == "WARNING"
    ]
    assert left_out.startswith(
        "customers: rows that cannot be loaded and are left out: 1; email: expected string"
    )
    assert unproven.startswith(
        "customers may lack rows: pass 1: 30 rows on 5 pages of 10, 29 distinct"
    )


def test_the_pipeline_of_the_readme_runs_as_it_stands(tmp_path: Path, platform: Sandbox) -> None:
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text("utf-8"), re.DOTALL)
    (script,) = (block for block in blocks if "dlt.pipeline(" in block)
    (tmp_path / "own.py").write_text(script, "utf-8")
    pipe = runpy.run_path(str(tmp_path / "own.py"))["pipeline"]
    for name in ("customers", "promotions", "price_lists"):
        assert query(pipe, f"SELECT count(*) FROM {name}") == [(COUNTS[name],)]
