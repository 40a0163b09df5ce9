"""Check: settings, permissions, keys and one page of each list, before a first pull.

In: the settings. Out: a line for each thing looked at, with the mend where something is wrong, and an exit code.
Nothing is written but what a test of the folder needs.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Protocol

from pipelines.pull.pull import Targets, targets
from pipelines.warehouse.build import Build, open_warehouse, warehouse_errors
from sources.contract import LISTS, WHOAMI, Operation
from sources.errors import AccessError, BridgeError, UsageError
from sources.extract.paginators import LegacyPages, OnePage, Paginator, V1Cursor
from sources.http.client import Client
from sources.http.retries import BrokenBody
from sources.settings import (
    find_root,
    legacy_settings,
    permission_warnings,
    public_v1_settings,
    reconcile_settings,
    warehouse_path,
)

ENVIRONMENTS = {"live": "production", "production": "production", "sandbox": "sandbox", "test": "sandbox"}


class Say(Protocol):
    """How a line is told: a name for machines, words for people, facts."""

    def __call__(self, name: str, words: str, **facts: object) -> None:
        """Tells one line."""


def check(say: Say, stop: threading.Event) -> int:
    """Looks at everything, and does not stop at the first fault. Returns the exit code of the gravest."""
    worst = 0

    def attempt(what: str, look: Callable[[], str]) -> bool:
        nonlocal worst
        try:
            say("check", f"ok    {what}: {look()}", what=what, ok=True)
        except BridgeError as error:
            worst = min(worst, error.exit_code) if worst else error.exit_code
            say("check", f"wrong {what}: {error}", what=what, ok=False, exit_code=error.exit_code)
            return False
        return True

    root = find_root()
    say("check", f"      settings are read from the environment and from {root / '.dlt'}")
    for warning in permission_warnings(root):
        say("check", f"mind  {warning}", ok=False)
    attempt("warehouse", _warehouse)
    attempt("settings of reconcile", _reconcile)
    has_legacy = attempt("settings of the legacy family", lambda: legacy_settings().base_url)
    has_v1 = attempt("settings of public v1", lambda: public_v1_settings().base_url)
    usable = [op for op in LISTS.values() if (has_legacy if op.family == "legacy" else has_v1)]
    if has_legacy and has_v1 and not attempt("one environment", _environment):
        return worst
    found = targets([op.records.name for op in usable if op.records]) if usable else Targets(None, None)
    if has_v1:
        with found.client("public_v1", stop) as client:
            attempt("key of public v1 (whoami)", lambda: _whoami(client, found))
    for operation in usable:
        name = operation.records.name if operation.records else operation.name
        with found.client(operation.family, stop) as client:
            attempt(f"first page of {name}", lambda op=operation, c=client: _first_page(op, c, found))  # type: ignore[misc]
    return worst


def _environment() -> str:
    resources = list(LISTS)
    found = targets(resources)
    return found.legacy.environment if found.legacy else ""


def _warehouse() -> str:
    path = warehouse_path()
    with warehouse_errors(path.parent):
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    if not path.exists():
        return f"{path} (not there yet; the folder can be written)"
    Build(path).look()
    open_warehouse(path).close()
    return str(path)


def _reconcile() -> str:
    told = {name: value for name, value in asdict(reconcile_settings()).items() if value}
    return ", ".join(f"{name} {value}" for name, value in told.items()) or "none: what they would say is proposed"


def _first_page(operation: Operation, client: Client, found: Targets) -> str:
    limit = found.page_limit(operation.family)
    paginator: Paginator = (
        LegacyPages(limit)
        if operation.paging == "pages"
        else V1Cursor(limit)
        if operation.paging == "cursor"
        else OnePage()
    )
    request = paginator.ask()
    if request is None:
        raise BridgeError(f"{operation.name}: nothing to ask")
    body, answer = client.get(operation.path, request.params, check=paginator.parse)
    return f"{body.count} rows in {answer.elapsed_s * 1000:.0f} ms"


def _whoami(client: Client, found: Targets) -> str:
    """What the key says of itself. The names of its fields are not shown: they are read by meaning."""
    told, _ = client.get(WHOAMI.path, check=_object)
    _, environment = _environment_in(told)
    expected = found.public_v1.environment if found.public_v1 else ""
    if environment and environment != expected:
        raise UsageError(
            f"the platform says that this key is of {environment}, its prefix says {expected}",
            "Use the key of the environment that you mean.",
        )
    scopes = _scopes_in(told)
    said = f"environment {environment or 'not told'}, scopes {', '.join(scopes) if scopes else 'not told'}"
    needed = {op.scope for op in LISTS.values() if op.scope and op.family == "public_v1"}
    lacking = sorted(needed - set(scopes)) if scopes else []
    if lacking:
        raise AccessError(f"{said}; lacking: {', '.join(lacking)}", "Ask for a key with these scopes.")
    return said


def told_environment(client: Client) -> tuple[str, str]:
    """The member of whoami that tells the key's environment, and `production` or `sandbox`; both may be empty."""
    return _environment_in(client.get(WHOAMI.path, check=_object)[0])


def _object(body: bytes) -> dict[str, object]:
    try:
        told = json.loads(body)
    except ValueError as error:
        raise BrokenBody(type(error).__name__) from None
    if not isinstance(told, dict):
        raise BrokenBody("no object")
    return told


def _members(told: Mapping[str, object]) -> list[tuple[str, object]]:
    """All members of an object and of the objects in it, named with all that they lie in."""
    found: list[tuple[str, object]] = []
    for name, value in told.items():
        found.append((name.lower(), value))
        if isinstance(value, dict):
            found += [(f"{name.lower()}.{inner}", member) for inner, member in _members(value)]
    return found


def _environment_in(told: Mapping[str, object]) -> tuple[str, str]:
    for name, value in _members(told):
        if "env" in name and isinstance(value, str) and value.lower() in ENVIRONMENTS:
            return name, ENVIRONMENTS[value.lower()]
    return "", ""


def _scopes_in(told: Mapping[str, object]) -> list[str]:
    for name, value in _members(told):
        if "scope" in name or "permission" in name:
            if isinstance(value, str):
                return value.replace(",", " ").split()
            if isinstance(value, list):
                names = [item.get("name") if isinstance(item, dict) else item for item in value]
                if names and all(isinstance(item, str) for item in names):
                    return [str(name) for name in names]
    return []
