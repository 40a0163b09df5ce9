"""What a process needs before dlt is imported: its project root, no telemetry, a data folder that is never made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from sources.settings import find_root, prepare_dlt

UNUSED: Final = "orderbridge-dlt-unused"


def prepare() -> None:
    """Points dlt at the project's settings.

    Each load names its own working folder, so that dlt has nothing to keep in its data folder: one that does not exist
    is named, lest it takes the home folder's or, for root, one below /var.
    """
    prepare_dlt(find_root(), Path(os.environ.get("TMPDIR") or "/tmp") / UNUSED)  # noqa: S108 # named, never made
