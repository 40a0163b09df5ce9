"""The page on what stands on top of the warehouse: its files and commands are run, and show what the page shows."""

from __future__ import annotations

import csv
import re
import shlex
from pathlib import Path

from tests.pipelines.bridge import Bridge
from tests.pipelines.import_file.test_transcript import pattern

PAGE = (Path(__file__).parents[2] / "docs/on-top.md").read_text("utf-8")
FILE = re.compile(r"^<!-- file (\S+) -->\n```\w*\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN = re.compile(
    r"^<!-- transcript(?:, ends with (\d))? -->\n```console\n\$ orderbridge (.*?)\n(.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
SETTINGS = {"WAREHOUSE__KEEP": "3"}


def change_the_platform(shop: Bridge) -> None:
    """What the page says that somebody did there."""
    state = shop.platform.state
    state.change("customers", state.ids("customers")[0], {"lastName": "Quispe Mamani"})
    state.change("orders", state.ids("orders")[1], {"status": "DELIVERED"})


def test_the_page_shows_what_its_commands_show(reconciled: Bridge) -> None:
    (reconciled.folder / ".dlt").mkdir(exist_ok=True)  # so that it is a project
    for name, text in FILE.findall(PAGE):
        file = reconciled.folder / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text, "utf-8")
    steps = SHOWN.findall(PAGE)
    assert len(steps) == 7
    for ends, line, shown in steps:
        if "--erp-variants" in line:
            change_the_platform(reconciled)
        done = reconciled.command(*shlex.split(line), **SETTINGS)
        assert done.code == int(ends or 0), done.said
        assert re.fullmatch(pattern(shown), done.out), f"{line}:\n{done.out}"
    (snapshot,) = (reconciled.folder / "snapshots").iterdir()
    with snapshot.open(encoding="utf-8-sig", newline="") as file:
        selected = {row["variantId"]: float(row["price"]) for row in csv.DictReader(file)}
    variants = reconciled.platform.state.variants.items()
    assert {variant: record.fields["price"] for (_, variant), record in variants} == {
        int(variant): price for variant, price in selected.items()
    }
