"""`make notebooks`: notebooks executed into notebooks/executed/, each also as a page for a browser.

`strip`, of `make format`: outputs taken out. The warehouse is that of the settings; where there is none, the demo's,
which is made where there is none either.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import nbformat

from orderbridge.pipelines.cli.process import prepare_environment
from orderbridge.sources.settings import warehouse_path
from tests.notebooks.execute import CHECKOUT, FOLDER, NOTEBOOKS, as_page, executed, stripped

OUT = FOLDER / "executed"


def main(arguments: list[str]) -> None:
    if arguments == ["strip"]:
        for path in NOTEBOOKS:
            path.write_text(stripped(path), "utf-8")
        return
    warehouse = _warehouse()
    os.umask(0o077)  # outputs may hold what SHOW_PERSONAL shows
    OUT.mkdir(exist_ok=True)
    for path in NOTEBOOKS:
        notebook = executed(path, warehouse)
        nbformat.write(notebook, OUT / path.name)
        page = (OUT / path.name).with_suffix(".html")
        page.write_text(as_page(notebook, path.stem), "utf-8")
        sys.stdout.write(f"{page.relative_to(CHECKOUT)}\n")
    sys.stdout.write(f"of {warehouse}\n")


def _warehouse() -> Path:
    prepare_environment()
    reported = warehouse_path()
    if reported.is_file() or "WAREHOUSE__PATH" in os.environ:
        return reported
    demo = CHECKOUT / "demo" / "warehouse.duckdb"
    if not demo.is_file():
        subprocess.run(
            [
                sys.executable,
                "-m",
                "orderbridge.pipelines.cli",
                "demo",
                "--folder",
                str(demo.parent),
            ],
            check=True,
        )
    return demo


if __name__ == "__main__":
    main(sys.argv[1:])
