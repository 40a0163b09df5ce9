"""The report: one HTML page about the published warehouse, for a mail or a share.

In: the published warehouse. Out: a file that needs nothing beside it, made of counts, ids and the names of promotions
and price lists, and of no personal data. The same warehouse gives the same bytes: all ages are those at the end of
the run that reconciled it.
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Final

from pipelines.reporting.facts import Facts, gather
from pipelines.reporting.page import START, page
from pipelines.warehouse.build import open_warehouse
from sources.errors import UsageError

MODE: Final = 0o600
"""Of a new report: it tells how the business goes, and who may read it is for its owner to say."""


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
    try:
        handle, name = tempfile.mkstemp(prefix=f".{target.name}.", dir=target.parent)
        temporary = Path(name)
        try:
            with open(handle, "wb") as file:  # noqa: PTH123 # a descriptor, not a path
                file.write(made)
                file.flush()
                os.fsync(file.fileno())
            temporary.chmod(mode)
            temporary.replace(target)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise UsageError(
            f"{target} cannot be written: {error.strerror or type(error).__name__}",
            "Name a file in a folder that is there and writable: orderbridge report --out FILE",
        ) from None
    return facts


def _look(target: Path) -> int:
    """The mode that the report gets. A slip of the pen must not cost a warehouse or a CSV. Raises UsageError."""
    if not target.exists():
        return MODE
    if target.is_file():
        try:
            with target.open("rb") as file:
                if file.read(len(START)) in (START.encode(), b""):
                    return target.stat().st_mode & 0o777
        except OSError as error:
            raise UsageError(f"{target} cannot be read: {error.strerror}", "Name another file.") from None
    raise UsageError(f"{target} is there and is no report", "Name another file: orderbridge report --out FILE")
