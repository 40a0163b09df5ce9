"""Writes the files that are generated: pages of this folder, and the settings files in `.dlt`.

In: the commands as click knows them, the settings, the rules, the tables of an empty warehouse, the contract and the
hints of the dlt sources. Run by `make docs`; a test compares the files with what this writes.
"""

from __future__ import annotations

import html
import re
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

import click
from dlt.extract import DltSource

from docs import dictionary
from orderbridge.pipelines.cli.main import orderbridge
from orderbridge.pipelines.reporting.tables import anchor
from orderbridge.pipelines.warehouse.bi.descriptions import table_description
from orderbridge.sources import contract
from orderbridge.sources.contract import LISTS
from orderbridge.sources.errors import ExitCode
from orderbridge.sources.legacy import legacy
from orderbridge.sources.public_v1 import public_v1
from orderbridge.sources.settings.sections import SECTIONS, settings_of
from orderbridge.sources.settings.setting import SETTINGS, Setting, shown
from orderbridge.transforms.erp.evidence import WEIGHTS, Weights
from orderbridge.transforms.rules import RULES, SEVERITIES

CHECKOUT = Path(__file__).parents[1]

_COMMANDS = """\
# Commands

`orderbridge --project DIR COMMAND` uses the settings, warehouse, ledger and plans in DIR; `orderbridge COMMAND --help`
shows the same as this page. The [exit codes](exit-codes.md) are the same for all commands.

Completion in a shell, as a line of `~/.bashrc` (`zsh_source` and `fish_source` likewise):

```
eval "$(_ORDERBRIDGE_COMPLETE=bash_source orderbridge)"
```
"""
_SETTINGS = """\
# Settings

Each setting can be in the environment, in `.dlt/secrets.toml` (for keys), in `.dlt/config.toml` (tracked by git) or in
`.dlt/answers.toml`, which `orderbridge answer` writes. The first that has it wins, in this order. `orderbridge init`
asks for those that are required, `orderbridge init KEY=VALUE` sets one, `orderbridge check` tests them.

The project is the folder that contains the `.dlt`:

1. the one that `--project DIR` before the command names, or else `DLT_PROJECT_DIR`
2. or the current folder, or the nearest one above it, up to the home folder or a mount point
3. or this checkout, if it has settings

Warehouse, ledger, plans and report are there too, and a relative path in a setting is relative to it. `~/.dlt`, which
dlt uses itself, counts only if it has one of these sections.

Secrets can be files of their own: `SOURCES__LEGACY__API_KEY_FILE=/run/secrets/legacy-key`, and so for each other
secret, or a credential of systemd that is named by the setting (`LoadCredential=sources.legacy.api_key:FILE`). They
count after the variable itself and before `.dlt/secrets.toml`.

Settings that another user owns or can write are refused. A misspelt name is an error that suggests the nearest one, and
a misspelt section is a warning. An address with `http://` is accepted for this machine alone. A key of one environment
with a host of the other is an error before anything is sent.

"""
_RULES = """\
# Rules of findings

`reconciled.exceptions` has a row for each finding: `entity` (the reconciled table), `entity_id`, `rule`, `severity` and
`detail`. Details contain ids, counts, field names and dates, and no personal data. `make docs` generates this page
from `transforms/rules.toml`. A rule has `since` if that version was the first to have it, or finds more by it
([what it does](upgrade.md#findings-of-new-rules)).

"""
_EVERY_LIST = """\
## Every list

`customers`, `promotions`, `price_lists` and `orders` have these rules. In a command, put the list in place of
`customers`."""
_EVERY_DATE = """\
## Dates

The name of a rule begins with that of the date, such as `created_at_form`."""
_ANY_DATE = {"field": "the date", "effect": "what rests on the date is unknown"}
_EXITS = """\
# Exit codes

They are the same for all commands. What an `import` means by them: [nightly imports](../nightly-import.md#how-it-ends).
*Examples* are `nightly.sh`, the systemd unit and the workflow of [the schedules](../schedules.md).

"""
_EXITS_AFTER = """
137 comes from the system: the run was killed, for lack of memory perhaps.

A run that was killed leaves the published warehouse as it was. Running again is always safe. If only the copy to the
destination failed (4), `nightly.sh` and `organizations.py` do not try again. The unit and the orchestrators do, and
read the platform again.
"""
_NEXT = {
    ExitCode.DONE: ("no message", "–"),
    ExitCode.BUG: ("fail", "report the lines that it printed: they contain no data"),
    ExitCode.USAGE: (
        "fail; nothing was sent",
        "do what the message says; it may also be a full disk, or another program that has the warehouse"
        " open for writing",
    ),
    ExitCode.ACCESS: (
        "fail, because more tries would fail alike; lists of the other API are published",
        "get another key or permission: `orderbridge init sources.legacy.api_key`",
    ),
    ExitCode.PLATFORM: (
        "try again after 15 minutes, three times in all, then fail",
        "look whether the platform is down; a list that failed stays as it was, the others are published",
    ),
    ExitCode.REJECTED: (
        "count it as done, with a message",
        "of a run: show `ops.quarantine` to the owner of the data; of an import: correct the lines",
    ),
    ExitCode.IN_DOUBT: (
        "fail; the next run of `import.sh` goes on",
        "[settle them](../in-doubt.md)",
    ),
    ExitCode.COVERAGE: (
        "fail; what could be published is published",
        "`orderbridge status`; where a smaller list is right, `orderbridge answer list:customers accept`"
        " (each list has its own question)",
    ),
    ExitCode.LOCKED: (
        "as for 4",
        "look at what holds the lock, such as a `pull orders --tail` or a push: the message names its process",
    ),
    ExitCode.FINDINGS: (
        "fail; everything is published",
        "`orderbridge report`, [rules](../rules.md); fix the cause, or [accept the finding](../findings.md);"
        " `--fail-on` changes the severity",
    ),
    ExitCode.STOPPED: ("fail", "run it again: a read goes on where it was stopped"),
}
"""What the examples of schedules do about each exit code, and what a person should do."""
_MARKS = "<!-- {0}: made by `make docs` -->\n", "<!-- end of {0} -->\n"

_CONFIG = """\
# Settings without secrets. Keys go into secrets.toml next to this file (see example.secrets.toml), which git ignores.
# Every setting has an environment variable too, which has precedence: sources.legacy.page_limit is
# SOURCES__LEGACY__PAGE_LIMIT. A relative path is relative to the folder that contains this one.
# Made by `make docs` from sources/settings/sections.py.

[runtime]
dlthub_telemetry = false
"""
_SECRETS = """\
# Copy to secrets.toml in this folder, add the keys, and make it readable for you alone:
#   cp .dlt/example.secrets.toml .dlt/secrets.toml && chmod 600 .dlt/secrets.toml
"""
_SOURCE = """\
# dlt source `{name}`

```python
import dlt

from orderbridge.sources.{name} import {name}

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
    return _COMMANDS + "".join(
        _command(name, command) for name, command in sorted(orderbridge.commands.items())
    )


def _command(name: str, command: click.Command) -> str:
    group = click.Context(orderbridge, **orderbridge.context_settings)
    context = click.Context(command, group, f"orderbridge {name}")
    usage = " ".join(["orderbridge", name, *command.collect_usage_pieces(context)])
    paragraphs = [
        " ".join(part.split()) for part in (command.help or "").replace("\b", "").split("\n\n")
    ]
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
        text += (
            "\n"
            + "\n".join(
                f"    {line.strip()}" for line in command.epilog.split("\n") if line.strip()
            )
            + "\n"
        )
    return text


def _cell(text: str) -> str:
    """A text in a cell of a table: a bar, and what looks like a tag, as entities."""
    return html.escape(" ".join(text.split()), quote=False).replace("|", "&#124;")


def rules_page() -> str:
    """The page: severities, the rules that several lists share, then those of each table."""
    catalogue = tomllib.loads((CHECKOUT / "transforms/rules.toml").read_text("utf-8"))
    of_lists = {name: list(catalogue["lists"]) for name in catalogue["every_list"]}
    of_dates = {name: list(catalogue["dates"]) for name in catalogue["every_date"]}
    lines = [f"- **{name}**: {meaning}." for name, meaning in SEVERITIES.items()]
    lines += ["", _EVERY_LIST]
    for name, texts in catalogue["every_list"].items():
        words = {
            key: text.format(record="a record", list="customers") for key, text in texts.items()
        }
        lines += _section(name, words, [(entity, name) for entity in of_lists[name]])
    lines += [
        "",
        _EVERY_DATE,
        "",
        "| table | begins with | date | without it |",
        "|---|---|---|---|",
    ]
    lines += [
        f"| `{entity}` | `{date['prefix']}_` | {date['field']} | {date['effect']} |"
        for entity, date in catalogue["dates"].items()
    ]
    shared = {(entity, name) for name, entities in of_lists.items() for entity in entities}
    for name, texts in catalogue["every_date"].items():
        words = {key: text.format(**_ANY_DATE) for key, text in texts.items()}
        rules = [
            (entity, f"{catalogue['dates'][entity]['prefix']}_{name}") for entity in of_dates[name]
        ]
        shared.update(rules)
        lines += _section(f"…_{name}", words, rules)
    entity = ""
    for rule in RULES:
        if (rule.entity, rule.name) in shared:
            continue
        if rule.entity != entity:
            entity = rule.entity
            lines += ["", f"## {entity}"]
        lines += _section(rule.name, asdict(rule), [(rule.entity, rule.name)])
    return _RULES + "\n".join(lines) + "\n"


def _section(name: str, texts: Mapping[str, str], rules: Sequence[tuple[str, str]]) -> list[str]:
    """A rule with the anchor of each table that has it."""
    anchors = "".join(f'<a id="{anchor(entity, rule)}"></a>' for entity, rule in rules)
    since = f", finds more since {texts['since']}" if texts.get("since") else ""
    return [
        "",
        f"### {anchors}`{name}` – {texts['severity']}{since}",
        "",
        texts["meaning"],
        "",
        f"- Why it matters: {texts['impact']}",
        f"- What to do: {texts['action']}",
    ]


def settings_table() -> str:
    """The table of all settings, in Markdown."""
    lines = ["| setting | environment variable | default | what it is |", "|---|---|---|---|"]
    for setting in SETTINGS.values():
        absent = "required" if setting.required else "–"
        default = f"`{shown(setting.default)}`" if setting.default is not None else absent
        lines.append(f"| `{setting.key}` | `{setting.variable}` | {default} | {setting.help} |")
    return "\n".join(lines) + "\n"


def config_toml() -> str:
    """Every setting that is not a secret, as a comment with its default or an example."""
    return _CONFIG + _sections("# ", is_secret=False)


def secrets_toml() -> str:
    """Every secret, with an example."""
    return _SECRETS + _sections("", is_secret=True)


def _sections(prefix: str, *, is_secret: bool) -> str:
    text = ""
    for section in SECTIONS:
        lines = [
            f"{prefix}{setting.name} = {_toml(setting)}".ljust(36)
            + f"  # {setting.help.replace('`', '')}\n"
            for setting in settings_of(section)
            if setting.is_secret == is_secret
        ]
        if lines:
            text += f"\n{prefix}[{section}]\n" + "".join(lines)
    return text


def _toml(setting: Setting) -> str:
    value = setting.default if setting.default is not None else setting.example
    return shown(value) if isinstance(value, int | float) else f'"{value}"'


def exit_codes_page() -> str:
    """Every exit code with its meaning, what schedules do about it, and what a person should do."""
    lines = ["| exit | means | the examples | a person should |", "|---|---|---|---|"]
    for code in ExitCode:
        schedules, person = _NEXT[code]
        lines.append(f"| {code.label} | {code.meaning} | {schedules} | {person} |")
    return _EXITS + "\n".join(lines) + "\n" + _EXITS_AFTER


def weights_table() -> str:
    """The weights of the match, in Markdown."""
    marks = [name for name in Weights._fields if name != "nothing"]
    rows = [
        [f"`{field}`", *(getattr(of, mark) or "" for mark in marks)]
        for field, of in WEIGHTS.items()
    ]
    head = [["field", *marks], ["---"] * (len(marks) + 1)]
    return "".join(f"| {' | '.join(map(str, row))} |\n" for row in [*head, *rows])


def with_table(page: str, name: str, table: str) -> str:
    """A page with its table of a name renewed. Raises ValueError if its marks are missing."""
    begin, end = (mark.format(name) for mark in _MARKS)
    before, rest = page.split(begin)
    _, after = rest.split(end)
    return before + begin + table + end + after


def reconciled_table() -> str:
    """The reconciled tables, in Markdown."""
    names = [table for schema, table in dictionary.tables() if schema == "reconciled"]
    rows = [f"| `{name}` | {_cell(table_description('reconciled', name))} |\n" for name in names]
    return "| table | holds |\n|---|---|\n" + "".join(rows)


def resources_table() -> str:
    """The resources of each dlt source, in Markdown."""
    text = "| source | resources |\n|---|---|\n"
    for make in (legacy, public_v1):
        source = make(base_url="https://localhost", api_key="none")
        names = ", ".join(f"`{name}`" for name in source.resources)
        text += f"| [`{source.name}`](sources/{source.name}.md) | {names} |\n"
    return text


def with_lists(example: str) -> str:
    """An example for an orchestrator with the names of the lists renewed."""
    names = "".join(f'    "{name}",\n' for name in LISTS)
    return re.sub(
        r"^LISTS = \(.*?\)$", f"LISTS = (\n{names})", example, flags=re.MULTILINE | re.DOTALL
    )


def source_page(make: Callable[..., DltSource], settings: str) -> str:
    """A dlt source: its resources, and the columns that are known before a run."""
    source = make(base_url="https://localhost", api_key="none")
    text = _SOURCE.format(name=source.name, settings=settings)
    tables = source.discover_schema().tables
    for name, resource in source.resources.items():
        operation = LISTS.get(name.partition("__")[0])
        endpoint = (
            f"{operation.verb} {operation.path}"
            if operation and name in LISTS
            else "in the rows of its list"
        )
        columns = tables.get(name, {}).get("columns", {})
        key = (
            ", ".join(
                f"`{column}`" for column, hints in columns.items() if hints.get("primary_key")
            )
            or "–"
        )
        parent = ", ".join(
            f"`{reference['columns'][0]}` → `{reference['referenced_table']}.{reference['referenced_columns'][0]}`"
            for reference in tables.get(name, {}).get("references") or []
        )
        text += (
            f"| `{name}` | {endpoint} | {key} | {resource.write_disposition} | {parent or '–'} |\n"
        )
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
    yield "docs/rules.md", rules_page()
    yield from dictionary.pages()
    yield "docs/images/tables.svg", dictionary.diagram()
    yield "docs/reference/commands.md", commands_page()
    yield "docs/reference/exit-codes.md", exit_codes_page()
    yield "docs/reference/settings.md", _SETTINGS + settings_table()
    yield (
        "docs/sources/legacy.md",
        source_page(legacy, "`sources.legacy.base_url`, `api_key`, `page_limit`"),
    )
    arguments = "`sources.public_v1.base_url`, `api_key`, `page_limit`, `order_key`"
    yield "docs/sources/public_v1.md", source_page(public_v1, arguments)
    tables = {
        "docs/matching.md": ("weights", weights_table()),
        "docs/sources.md": ("resources", resources_table()),
        "docs/warehouse.md": ("reconciled", reconciled_table()),
    }
    for path, (name, table) in tables.items():
        yield path, with_table((CHECKOUT / path).read_text("utf-8"), name, table)
    for name in ("airflow", "dagster"):
        example = f"docs/orchestrators/{name}_orderbridge.py"
        yield example, with_lists((CHECKOUT / example).read_text("utf-8"))
    yield ".dlt/config.toml", config_toml()
    yield ".dlt/example.secrets.toml", secrets_toml()


if __name__ == "__main__":
    if (imported := Path(contract.__file__).parents[3]) != CHECKOUT:
        sys.exit(
            f"The packages are those of {imported}, not of this checkout: set PYTHONPATH={CHECKOUT}/src"
        )
    for path, text in pages():
        (CHECKOUT / path).write_text(text, "utf-8")
