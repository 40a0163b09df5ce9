"""The constants that are limits, and the decorator of a test that runs one below, at and one above one of them."""

from __future__ import annotations

import ast
import functools
import importlib
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest import mock

import pytest

import orderbridge

PACKAGES = ("sources", "transforms", "pipelines", "sandbox")
LIMIT = re.compile(r"(.*_)?(MAX|MIN|SHARE|FROM|WITHIN|AGE|MARGIN|KEPT|FACTOR|JUMP|S|H)(_.*)?")
"""Names of constants that are limits."""
UP_TO = (True, True, False)
BELOW = (True, False, False)
FROM = (False, True, True)
ABOVE = (False, False, True)
"""Where what a test looks at is so: one below the limit, at it, one above."""
TESTED: dict[str, str] = {}
"""The constants that have such a test, and its name."""

Limit = int | float | timedelta


def limit(
    module: ModuleType,
    name: str,
    where: tuple[bool, bool, bool],
    *,
    of: int = 1,
    to: int | None = None,
) -> Callable[[Callable[..., None]], Any]:
    """Runs a test with one less than a constant, the constant and one more, as `n`; `holds` is what `where` says.

    Args:
        module: that defines the constant.
        name: its name.
        where: `UP_TO`, `BELOW`, `FROM` or `ABOVE`.
        of: of so many rows a share is a number.
        to: what the constant is during the test, where so many as it really is would take long.
    """

    def decorate(function: Callable[..., None]) -> Any:
        value = getattr(module, name) if to is None else to
        TESTED[name_of(module, name)] = function.__name__

        @functools.wraps(function)
        def run(*args: Any, **values: Any) -> None:
            with mock.patch.object(module, name, value):
                function(*args, **values)

        number = value.total_seconds() if isinstance(value, timedelta) else value * of
        whole = round(number)
        assert abs(number - whole) < 1e-6, f"{name} of {of} is {number}, which no row shows"
        cases = [
            pytest.param(whole + step, holds, id=f"{which} {name}")
            for step, which, holds in zip((-1, 0, 1), ("below", "at", "above"), where, strict=True)
        ]
        return pytest.mark.parametrize(("n", "holds"), cases)(run)

    return decorate


@contextmanager
def refused_unless(holds: bool, error: type[Exception], words: str = "") -> Iterator[None]:
    """What must raise an error with these words, unless something holds."""
    if holds:
        yield
        return
    with pytest.raises(error, match=words or None):
        yield


def name_of(module: ModuleType, name: str) -> str:
    """The path of a constant, without that of the distribution."""
    return f"{module.__name__.removeprefix('orderbridge.')}.{name}"


def constants() -> Iterator[str]:
    """Each number or time that a module defines under the name of a limit."""
    root = Path(orderbridge.__file__).parent
    for package in PACKAGES:
        for path in sorted((root / package).rglob("*.py")):
            names = [name for name in _assigned(path) if LIMIT.fullmatch(name)]
            if not names:
                continue
            parts = path.relative_to(root).with_suffix("").parts
            module = importlib.import_module(
                ".".join(("orderbridge", *parts)).removesuffix(".__init__")
            )
            for name in names:
                value = getattr(module, name)
                if isinstance(value, Limit) and not isinstance(value, bool):
                    yield name_of(module, name)


def _assigned(path: Path) -> Iterator[str]:
    for statement in ast.parse(path.read_text()).body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)]):
                yield name
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield name
