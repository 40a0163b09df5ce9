"""A stand-in platform: both API families on loopback, with faults and every reading of what is not shown."""

from orderbridge.sandbox.config import SandboxConfig, SandboxConfigError
from orderbridge.sandbox.server import Sandbox, serve

if not __name__.startswith("orderbridge."):
    raise ImportError(
        f"Import orderbridge.{__name__}, not {__name__}. After `git pull` in a checkout: make setup"
    )

__all__ = ["Sandbox", "SandboxConfig", "SandboxConfigError", "serve"]
