"""Writes the files that are generated: pages of this folder, README's table, the settings files in `.dlt`.

In: the commands as click knows them, the settings, the rules, the tables of an empty warehouse, the contract and the
hints of the dlt sources. Run by `make docs`; a test compares the files with what this writes.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from pathlib import Path

import click
from dlt.extract import DltSource

from pipelines.cli.main import orderbridge
from pipelines.reporting import dictionary_page, rules_page
from sources.contract import LISTS
from sources.legacy import legacy
from sources.public_v1 import public_v1
from sources.settings import documents

CHECKOUT = Path(__file__).parents[1]

_COMMANDS = """\
# Commands

`orderbridge --project DIR COMMAND` uses the settings in `DIR/.dlt`; `orderbridge COMMAND --help` shows the same as this
page. The [exit codes](../schedules.md#exit-codes) are the same for all commands.
"""
_SETTINGS = """\
# Settings

Each setting can be in `.dlt/secrets.toml`, in `.dlt/config.toml` or in the environment, which has precedence. A
relative path is relative to the current folder. `orderbridge init` writes the files, `orderbridge check` tests them.

"""
_SOURCE = """\
# dlt source `{name}`

```python
import dlt

from sources.{name} import {name}

pipeline = dlt.pipeline("shop", destination="duckdb", dataset_name="platform")
pipeline.run({name}())
```

Settings: {settings}. Arguments of the same names have precedence.
[Using the sources](../sources.md) explains steps, dispositions and destinations.

| resource | endpoint | primary key | write disposition | belongs to |
|---|---|---|---|---|
"""
_ORDERS = """
## `orders__children`

Yields a table for each array of objects in an order, such as `orders__lines` and `orders__lines__taxes`, with
`order_id` and the position of each item. The fields of an order are not shown by the interface: the columns of `orders`
and of these tables, and their types, are those of all values of the walk.
"""


def commands_page() -> str:
    """Every command with its usage, options and example."""
    return _COMMANDS + "".join(_command(name, command) for name, command in sorted(orderbridge.commands.items()))


def _command(name: str, command: click.Command) -> str:
    group = click.Context(orderbridge, **orderbridge.context_settings)
    context = click.Context(command, group, f"orderbridge {name}")
    usage = " ".join(["orderbridge", name, *command.collect_usage_pieces(context)])
    paragraphs = [" ".join(part.split()) for part in (command.help or "").replace("\b", "").split("\n\n")]
    text = f"\n## `{name}`\n\n" + "\n\n".join(paragraphs) + f"\n\n    {usage}\n"
    rows = [
        record
        for parameter in command.get_params(context)
        if isinstance(parameter, click.Option) and (record := parameter.get_help_record(context))
    ]
    if rows:
        text += "\n| option | meaning |\n|---|---|\n" + "".join(
            f"| <code>{_cell(option)}</code> | {_cell(meaning)} |\n" for option, meaning in rows
        )
    if command.epilog:
        text += "\n" + "\n".join(f"    {line.strip()}" for line in command.epilog.split("\n") if line.strip()) + "\n"
    return text


def _cell(text: str) -> str:
    """A text in a cell of a table: a bar, and what looks like a tag, as entities."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")


def source_page(make: Callable[..., DltSource], settings: str) -> str:
    """A dlt source: its resources, and the columns that are known before a run."""
    source = make(base_url="https://localhost", api_key="none")
    text = _SOURCE.format(name=source.name, settings=settings)
    tables = source.discover_schema().tables
    for name, resource in source.resources.items():
        operation = LISTS.get(name.partition("__")[0])
        endpoint = f"{operation.verb} {operation.path}" if operation and name in LISTS else "in the rows of its list"
        columns = tables.get(name, {}).get("columns", {})
        key = ", ".join(f"`{column}`" for column, hints in columns.items() if hints.get("primary_key")) or "–"
        parent = ", ".join(
            f"`{reference['columns'][0]}` → `{reference['referenced_table']}.{reference['referenced_columns'][0]}`"
            for reference in tables.get(name, {}).get("references") or []
        )
        text += f"| `{name}` | {endpoint} | {key} | {resource.write_disposition} | {parent or '–'} |\n"
    for name in source.resources:
        rows = [
            f"| `{column}` | {hints.get('data_type')} | {_cell(hints.get('description') or '')} |\n"
            for column, hints in tables.get(name, {}).get("columns", {}).items()
        ]
        if rows:
            text += f"\n## `{name}`\n\n| column | type | meaning |\n|---|---|---|\n" + "".join(rows)
    return text + (_ORDERS if "orders" in source.resources else "")


def pages() -> Iterator[tuple[str, str]]:
    """The path of each generated file in the checkout, and its text."""
    yield "docs/rules.md", rules_page.markdown()
    yield "docs/data-dictionary.md", dictionary_page.markdown()
    yield "docs/images/tables.svg", dictionary_page.diagram()
    yield "docs/reference/commands.md", commands_page()
    yield "docs/reference/settings.md", _SETTINGS + documents.readme_table()
    yield "docs/sources/legacy.md", source_page(legacy, "`sources.legacy.base_url`, `api_key`, `page_limit`")
    arguments = "`sources.public_v1.base_url`, `api_key`, `page_limit`, `order_key`"
    yield "docs/sources/public_v1.md", source_page(public_v1, arguments)
    yield "README.md", documents.with_table((CHECKOUT / "README.md").read_text("utf-8"))
    yield ".dlt/config.toml", documents.config_toml()
    yield ".dlt/example.secrets.toml", documents.secrets_toml()


if __name__ == "__main__":
    for path, text in pages():
        (CHECKOUT / path).write_text(text, "utf-8")
