"""The report: one HTML page about the published warehouse, for a mail or a shared folder.

In: the published warehouse. Out: a file that needs no other file, with counts, ids and the names of promotions and
price lists, and no personal data. The same warehouse gives the same bytes: every age is the age at the end of the run
that reconciled it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from pipelines.reporting.page import START, page
from pipelines.reporting.report_data import ReportData, read_report_data
from pipelines.warehouse.build import open_warehouse
from sources.disk import PRIVATE_FILE, disk_errors, replace_file
from sources.errors import UsageError

OUT_HINT: Final = "Name a file in an existing, writable folder: orderbridge report --out FILE"


def report(out: Path) -> ReportData:
    """Writes the report and returns what it shows.

    Args:
        out: the file, written whole or not at all. A new file can be read by its owner only: business figures are for
            the owner to share. An existing report keeps its mode; a link stays a link.

    Raises:
        UsageError: there is no reconciled warehouse; `out` cannot be written, or is not a report.
    """
    target = out.resolve() if out.is_symlink() else out.absolute()
    mode = _mode(target)
    with open_warehouse() as warehouse:
        data = read_report_data(warehouse)
    content = page(data).encode()
    with disk_errors(f"{target} cannot be written", OUT_HINT), replace_file(target, mode) as file:
        file.write(content)
    return data


def _mode(target: Path) -> int:
    """The mode of the new file. Raises UsageError for a file that is not a report: a typo must not cost a warehouse."""
    if not target.exists():
        return PRIVATE_FILE
    if target.is_file():
        with disk_errors(f"{target} cannot be read", OUT_HINT), target.open("rb") as file:
            if file.read(len(START)) in (START.encode(), b""):
                return target.stat().st_mode & 0o777
    raise UsageError(f"{target} exists and is not a report", "Name another file: orderbridge report --out FILE")
