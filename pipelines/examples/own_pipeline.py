"""The platform's lists in a DuckDB file of your own, loaded by dlt alone.

Try it against the sandbox: `orderbridge sandbox --write-settings` in one terminal, and in another, in the same folder,
`python -m orderbridge.pipelines.examples.own_pipeline`. Keys and hosts come from `.dlt/secrets.toml` or the
environment.
"""

from __future__ import annotations

import dlt
import pyarrow as pa
import pyarrow.compute as pc
from dlt.common.pipeline import LoadInfo

from orderbridge.sources.legacy import legacy
from orderbridge.sources.public_v1 import public_v1


def load_all(pipeline: dlt.Pipeline) -> LoadInfo:
    """Loads every list with its child tables; each run replaces them."""
    return pipeline.run([legacy(), public_v1()])


def load_selected(pipeline: dlt.Pipeline) -> LoadInfo:
    """Loads price lists, and customers with their documents."""
    pipeline.run(public_v1().with_resources("price_lists"))
    return pipeline.run(legacy().with_resources("customers"))


def load_without_contacts(pipeline: dlt.Pipeline) -> LoadInfo:
    """Merges customers with an ERP code, without e-mail and phone. Steps take and return Arrow tables."""
    source = legacy().with_resources("customers")
    source.customers.add_map(without_contacts)
    source.customers.add_map(lambda table: table.filter(pc.is_valid(table["erp_code"])))
    source.customers.apply_hints(
        write_disposition="merge", columns={"erp_code": {"description": "code in our ERP"}}
    )
    source.customers__documents.add_map(without_contacts)
    return pipeline.run(source)


def load_sample(pipeline: dlt.Pipeline) -> LoadInfo:
    """Loads ten orders, to look at their fields. The list is still walked to its end."""
    source = public_v1().with_resources("orders")
    source.orders.add_map(lambda table: table.slice(0, 10)).add_limit(1)
    return pipeline.run(source)


def without_contacts(table: pa.Table) -> pa.Table:
    """The same columns, with nulls in e-mail and phone."""
    for name in {"email", "phone"} & set(table.column_names):
        table = table.set_column(
            table.schema.get_field_index(name), name, pa.nulls(len(table), pa.string())
        )
    return table


if __name__ == "__main__":
    file = dlt.destinations.duckdb("shop.duckdb")
    # of this folder alone: dlt's own folder knows a pipeline by its name, and the file that it wrote first
    shop = dlt.pipeline(
        "shop", pipelines_dir=".dlt/pipelines", destination=file, dataset_name="platform"
    )
    print(load_all(shop))  # noqa: T201 # a script
