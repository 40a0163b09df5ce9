"""What the platform says: settings, the contract, the client, the walks and the dlt sources."""

from importlib.metadata import PackageNotFoundError, version
from typing import Final

try:
    __version__: Final = version("orderbridge")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0"
