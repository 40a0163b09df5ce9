"""What the platform says: settings, the contract, the client, the walks and the dlt sources."""

from importlib.metadata import PackageNotFoundError, version

try:
    __version__ = version("orderbridge")
except PackageNotFoundError:  # a checkout that is not installed
    __version__ = "0"
