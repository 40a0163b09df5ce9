"""The command that installs what orderbridge lacks, for the hints of errors.

In a checkout it is `make setup`, which keeps the choice: what pip installs there is lost when `make` replaces the
environment, as soon as the requirements change.
"""

from __future__ import annotations

import shlex
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Final

_CHECKOUT: Final = Path(__file__).resolve().parents[2]


def install_command(extra: str, requirement: str) -> str:
    """A complete command that installs an extra into the environment in which this runs.

    Args:
        extra: its name, as `make setup EXTRAS=…` takes it.
        requirement: what it consists of, for an environment that is not made by a checkout.
    """
    if (_CHECKOUT / f"requirements-{extra}.txt").is_file():
        return f"make -C {shlex.quote(str(_CHECKOUT))} setup EXTRAS={extra}"
    python = shlex.quote(sys.executable)
    if find_spec("pip") is None:  # as in the environments of uv
        return f"uv pip install --python {python} {shlex.quote(requirement)}"
    return f"{python} -m pip install {shlex.quote(requirement)}"
