"""The report: one HTML page about the published warehouse, for a mail or a share.

In: the published warehouse. Out: a file that needs nothing beside it, made of counts, ids and the names of promotions
and price lists, and of no personal data. The same warehouse gives the same bytes: all ages are those at the end of
the run that reconciled it.
"""

from __future__ import annotations

from pathlib import Path

from pipelines.reporting.facts import Facts, gather
from pipelines.reporting.page import START, page
from pipelines.warehouse.build import open_warehouse
from sources.disk import PRIVATE_FILE, disk_errors, replace_file
from sources.errors import UsageError


def report(out: Path) -> Facts:
    """Writes the report; what it tells.

    Args:
        out: the file, which appears whole or not at all. One that is there keeps its mode; a link stays one.

    Raises:
        UsageError: there is no warehouse, or none that was reconciled; `out` cannot be written, or is no report.
    """
    target = out.resolve() if out.is_symlink() else out.absolute()
    mode = _look(target)
    with open_warehouse() as warehouse:
        facts = gather(warehouse)
    made = page(facts).encode()
    hint = "Name a file in a folder that exists and is writable: orderbridge report --out FILE"
    with disk_errors(f"{target} cannot be written", hint), replace_file(target, mode) as file:
        file.write(made)
    return facts


def _look(target: Path) -> int:
    """The mode that the report gets. A slip of the pen must not cost a warehouse or a CSV. Raises UsageError."""
    if not target.exists():
        return PRIVATE_FILE
    if target.is_file():
        try:
            with target.open("rb") as file:
                if file.read(len(START)) in (START.encode(), b""):
                    return target.stat().st_mode & 0o777
        except OSError as error:
            raise UsageError(f"{target} cannot be read: {error.strerror}", "Name another file.") from None
    raise UsageError(f"{target} is there and is no report", "Name another file: orderbridge report --out FILE")
