"""Notebooks executed and stripped: by the tests, by `make notebooks`, by `make format`.

In: a notebook and a warehouse. Out: the notebook with its outputs, the same as a page for a browser, or the notebook
without outputs. The kernel is this very Python, whatever kernels a person has installed, and neither reads nor writes
the home folder.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

import nbformat
from jupyter_client.kernelspec import KernelSpec, KernelSpecManager
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient

from orderbridge.pipelines.reporting.tables import render

CHECKOUT: Final = Path(__file__).parents[2]
FOLDER: Final = CHECKOUT / "notebooks"
NOTEBOOKS: Final = tuple(sorted(FOLDER.glob("*.ipynb")))
CELL_TIMEOUT_S: Final = 120
_PAGE: Final = """\
<!doctype html>
<meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>{title}</title>
<style>{style}
.output {{ overflow-x: auto; overflow-wrap: normal; }} .output pre {{ white-space: pre-wrap; }}
.prompt, .anchor-link {{ display: none; }} p code, .input pre {{ background: var(--tint); }}
.input pre {{ padding: .5rem .75rem; border-radius: 6px; overflow-x: auto; font-size: .78rem; line-height: 1.4; }}
table.dataframe {{ border: 0; margin: .5rem 0; width: max-content; }} table.dataframe td {{ max-width: 30rem; }}
table.dataframe tr > * {{ border-width: 0 0 1px; }} tbody th {{ font-weight: 400; }}
main table.dataframe tr > th {{ text-align: left; vertical-align: top; }}
</style>
<main>{body}</main>
"""


class ThisPython(KernelSpecManager):
    def get_kernel_spec(self, kernel_name: str) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def executed(path: Path, warehouse: Path, cwd: Path = FOLDER) -> Any:
    """The notebook with its outputs."""
    notebook = nbformat.read(path, 4)
    with TemporaryDirectory() as home, _environment(Path(home), warehouse):

        class Kernel(AsyncKernelManager):
            """Talks through sockets in a folder of its own, and not through ports."""

            def __init__(self, **options: Any) -> None:
                options |= {
                    "kernel_spec_manager": ThisPython(),
                    "transport": "ipc",
                    "ip": f"{home}/socket",
                }
                super().__init__(**options)

        client = NotebookClient(
            notebook,
            kernel_manager_class=Kernel,
            timeout=CELL_TIMEOUT_S,
            resources={"metadata": {"path": str(cwd)}},
        )
        client.execute(env=dict(os.environ))
    return notebook


def as_page(notebook: Any, title: str) -> str:
    """An executed notebook as HTML that needs no other file and loads nothing from elsewhere."""
    # half a second: every worker collects the tests of the notebooks
    from nbconvert import (
        HTMLExporter,
    )

    exporter = HTMLExporter(template_name="basic")  # type: ignore[no-untyped-call] # nbconvert is half typed
    body, _ = exporter.from_notebook_node(notebook)
    body = body.replace('.ipynb"', '.html"').replace('href="../docs/', 'href="../../docs/')
    return _PAGE.format(title=title, style=render("style.css"), body=body)


def stripped(path: Path) -> str:
    """The notebook's text without outputs, counts and what an editor leaves in metadata."""
    notebook = nbformat.read(path, 4)
    for number, cell in enumerate(notebook.cells, 1):
        cell.id = f"cell-{number:02}"
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs, cell.execution_count = [], None
    notebook.metadata = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    notebook.nbformat_minor = 5
    return str(nbformat.writes(notebook)).rstrip("\n") + "\n"


@contextmanager
def _environment(home: Path, warehouse: Path) -> Iterator[None]:
    """What the kernel gets: folders of its own in place of the user's, and the warehouse's path alone."""
    before = dict(os.environ)
    os.environ.update(
        {
            name: str(home / name.lower())
            for name in ("IPYTHONDIR", "JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR")
        },
        JUPYTER_RUNTIME_DIR=str(home / "runtime"),
        JUPYTER_PLATFORM_DIRS="1",
        WAREHOUSE__PATH=str(warehouse),
        PYTHONPATH="",
    )
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)
