"""What a process needs before dlt is imported: its project root, a data folder that is removed, no telemetry."""

from __future__ import annotations

import atexit
import shutil
import tempfile
from pathlib import Path

from sources.settings import find_root, prepare_dlt


def prepare() -> None:
    """Points dlt at the project's settings and at a private folder that lives as long as the process."""
    folder = Path(tempfile.mkdtemp(prefix="orderbridge-dlt-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    prepare_dlt(find_root(), folder)
