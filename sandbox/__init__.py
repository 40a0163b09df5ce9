"""A stand-in platform: both API families on loopback, with faults and every reading of what is not shown."""

from sandbox.config import SandboxConfig, SandboxConfigError
from sandbox.server import Sandbox, serve

__all__ = ["Sandbox", "SandboxConfig", "SandboxConfigError", "serve"]
