"""Check: settings, permissions, keys and one page of each list, before a first pull.

In: the settings. Out: `CheckResult`s, one for each thing checked, with the fix for what is wrong. Nothing is written
except a temporary file that proves the folder writable.
"""

from __future__ import annotations

import json
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass

from pipelines.pull.pull import Targets, targets
from pipelines.warehouse.build import Build, open_warehouse, warehouse_errors
from sources.contract import LISTS, WHOAMI, Operation
from sources.errors import AccessError, BridgeError, ExitCode, UsageError
from sources.extract.walk import paginator_for
from sources.http.client import Client
from sources.http.failures import BrokenBody
from sources.settings import (
    effective_settings,
    find_root,
    legacy_settings,
    permission_warnings,
    public_v1_settings,
    reconcile_settings,
    warehouse_path,
)

ENVIRONMENTS = {"live": "production", "production": "production", "sandbox": "sandbox", "test": "sandbox"}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that was checked.

    Attributes:
        what: its name; empty for a remark.
        message: what was found; where it is wrong, also how to fix it.
        exit_code: `DONE` where nothing is wrong.
        is_warning: nothing fails because of it, but it should be fixed.
    """

    what: str
    message: str
    exit_code: ExitCode = ExitCode.DONE
    is_warning: bool = False


def check(stop: threading.Event) -> Iterator[CheckResult]:
    """Checks everything, and does not stop at the first problem."""
    root = find_root()
    yield CheckResult("", f"settings are read from the environment and from {root / '.dlt'}")
    for effective in effective_settings(root):
        if effective.origin != "default":
            yield CheckResult("", f"{effective.setting.key} = {effective.text} ({effective.origin})")
    for warning in permission_warnings(root):
        yield CheckResult("", warning, is_warning=True)
    yield _attempt("warehouse", _warehouse)
    yield _attempt("settings of reconcile", _reconcile)
    yield (legacy := _attempt("settings of the legacy family", lambda: legacy_settings().base_url))
    yield (public_v1 := _attempt("settings of public v1", lambda: public_v1_settings().base_url))
    usable = {"legacy": legacy.exit_code == ExitCode.DONE, "public_v1": public_v1.exit_code == ExitCode.DONE}
    if all(usable.values()):
        yield (same := _attempt("one environment", _environment))
        if same.exit_code != ExitCode.DONE:
            return
    operations = [operation for operation in LISTS.values() if usable[operation.family]]
    found = targets([op.records.name for op in operations if op.records]) if operations else Targets(None, None)
    if usable["public_v1"]:
        with found.client("public_v1", stop) as client:
            yield _attempt("key of public v1 (whoami)", lambda: _whoami(client, found))
    for operation in operations:
        name = operation.records.name if operation.records else operation.name
        with found.client(operation.family, stop) as client:
            yield _attempt(f"first page of {name}", lambda op=operation, c=client: _first_page(op, c, found))  # type: ignore[misc]


def gravest(results: Iterable[CheckResult]) -> ExitCode:
    """The exit code of the gravest problem, `DONE` where there is none."""
    return min((result.exit_code for result in results if result.exit_code), default=ExitCode.DONE)


def _attempt(what: str, action: Callable[[], str]) -> CheckResult:
    try:
        return CheckResult(what, action())
    except BridgeError as error:
        return CheckResult(what, str(error), error.exit_code)


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
    values = {name: value for name, value in asdict(reconcile_settings()).items() if value}
    return ", ".join(f"{name} {value}" for name, value in values.items()) or "not set; detected automatically"


def _first_page(operation: Operation, client: Client, found: Targets) -> str:
    paginator = paginator_for(operation, found.page_limit(operation.family))
    request = paginator.next_request()
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
