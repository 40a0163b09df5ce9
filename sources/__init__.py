"""Settings, the interface as data, the HTTP client, list walks, readers of files, and the dlt sources.

Importing it turns dlt's telemetry off, unless the environment turns it on.
"""

import os
from importlib.metadata import PackageNotFoundError, version

if not __name__.startswith("orderbridge."):
    raise ImportError(
        f"Import orderbridge.{__name__}, not {__name__}. After `git pull` in a checkout: make setup"
    )

try:
    __version__ = version("orderbridge")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0"

os.environ.setdefault("RUNTIME__DLTHUB_TELEMETRY", "false")
