"""Check: settings, permissions, keys and one page of each list, before a first pull.

In: the settings. Out: `CheckResult`s, one for each thing checked, with the fix for what is wrong. Nothing is written
except a temporary file that proves the folder writable.
"""

from __future__ import annotations

import glob
import shlex
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from orderbridge.pipelines.ledger.hosts import check_host
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.pull.refused_keys import replace_key
from orderbridge.pipelines.pull.targets import (
    Targets,
    lists_without_settings,
    read_targets,
    read_whoami,
)
from orderbridge.pipelines.warehouse.build import Build, warehouse_errors
from orderbridge.pipelines.warehouse.destination.copy import connect_destination, tls_warnings
from orderbridge.sources.contract import LISTS, Family, Operation, records_of
from orderbridge.sources.errors import (
    AccessError,
    BridgeError,
    ExitCode,
    HttpError,
    Unreachable,
    UsageError,
)
from orderbridge.sources.extract.walk import paginator_for
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.retries import ONCE, PERSON_WAITS
from orderbridge.sources.settings import (
    LegacySettings,
    PublicV1Settings,
    file_settings,
    find_root,
    http_settings,
    key_routes,
    ledger_path,
    legacy_settings,
    notify_settings,
    other_writers_here,
    paths_of_secrets,
    public_v1_settings,
    reconcile_settings,
    set_values,
    warehouse_path,
    warehouse_settings,
)

_FAMILIES: Final[Mapping[Family, str]] = {"legacy": "the legacy API", "public_v1": "the v1 API"}
_LOGIN_MODE: Final = "orderbridge questions sources.legacy.login_mode"
_SETTINGS: Final[Mapping[Family, Callable[[], LegacySettings | PublicV1Settings]]] = {
    "legacy": legacy_settings,
    "public_v1": public_v1_settings,
}


@dataclass(frozen=True, slots=True)
class CheckResult:
    """One thing that was checked.

    Attributes:
        what: its name; empty for a remark.
        message: what was found; where it is wrong, also how to fix it.
        exit_code: `DONE` where nothing is wrong.
        is_warning: nothing fails because of it, but it should be fixed.
        is_temporary: the platform says that it cannot answer now: nothing is to be fixed here.
    """

    what: str
    message: str
    exit_code: ExitCode = ExitCode.DONE
    is_warning: bool = False
    is_temporary: bool = False

    @property
    def is_ok(self) -> bool:
        """Whether it is neither a problem nor a warning."""
        return not self.is_warning and self.exit_code == ExitCode.DONE


def check(stop: threading.Event, *, lists_settings: bool = True) -> Iterator[CheckResult]:
    """Checks everything, and does not stop at the first problem. `lists_settings`: with what is set, and where."""
    root = find_root()
    if lists_settings:
        yield from _settings(root)
    yield from _remarks(root)
    yield from _other_writers()
    yield from _files()
    yield check_one("settings of reconcile", _reconcile)
    http = check_one("settings of http", http_settings, "valid")
    yield http
    yield check_one("settings of notify", notify_settings, "valid")
    urls: dict[Family, str] = {}
    yield from _family_settings(urls)
    if http.exit_code == ExitCode.DONE:
        yield from _platform(urls, stop)


def _settings(root: Path) -> Iterator[CheckResult]:
    """What is set, and where."""
    yield CheckResult("", f"settings are read from the environment and from {root / '.dlt'}")
    for line in set_values():
        yield CheckResult("", line)


def _remarks(root: Path) -> Iterator[CheckResult]:
    """Where the keys go; who can read the files."""
    for route in key_routes():
        yield CheckResult("", route.words)
    for warning in permission_warnings(root):
        yield _warning(warning)


def permission_warnings(root: Path) -> Iterator[str]:
    """The warnings for every private file that exists; a group may read the warehouse, as analysts do.

    Args:
        root: of the project, with `.dlt` in it.
    """
    paths = {*(root / ".dlt").glob("secrets.toml*"), *root.glob("plan-*"), *paths_of_secrets()}
    warehouse = None
    with suppress(BridgeError):  # reported as that of a setting
        warehouse = warehouse_path()
        for file in (warehouse, ledger_path()):
            paths.update(file.parent.glob(f"*{glob.escape(file.name)}*"))
    for path in sorted(paths):
        allowed = 0o750 if path == warehouse else 0o700
        fix = "go-w,o-rwx" if path == warehouse else "go-rwx"
        with suppress(FileNotFoundError):
            mode = stat.S_IMODE(path.stat().st_mode)
            if mode & 0o077 & ~allowed:
                command = f"chmod {fix} {shlex.quote(str(path))}"
                yield f"{path} can be read by other users (mode {mode:04o}). Run: {command}"


def _files() -> Iterator[CheckResult]:
    """The warehouse, the ledger and the copy elsewhere."""
    settings = check_one("settings of warehouse", warehouse_settings, "valid")
    yield settings
    if settings.exit_code != ExitCode.DONE:
        return
    warehouse = check_one("warehouse", _warehouse)
    yield warehouse
    if warehouse.exit_code == ExitCode.DONE:
        yield from _free_space(warehouse_path())
    yield check_one("ledger", _ledger)
    if warehouse_settings().destination:
        yield check_one("destination", lambda: connect_destination(warehouse_settings()))
        with suppress(BridgeError):  # reported as that of the destination
            for warning in tls_warnings(warehouse_settings()):
                yield _warning(warning)


def _free_space(warehouse: Path) -> Iterator[CheckResult]:
    if not warehouse.exists():
        return
    free = shutil.disk_usage(warehouse.parent).free / 1e6
    size = warehouse.stat().st_size / 1e6
    if free < size:
        yield _warning(
            f"{free:,.0f} MB are free next to the warehouse of {size:,.0f} MB: a run needs that much again"
        )


def _family_settings(urls: dict[Family, str]) -> Iterator[CheckResult]:
    """The settings of each API; the address of each that is valid is put into `urls`."""
    left_out: Sequence[str] = ()
    with suppress(BridgeError):  # reported as that of the settings, or of the warehouse
        left_out = lists_without_settings(warehouse_path())
    for family, load in _SETTINGS.items():
        what = f"settings of {_FAMILIES[family]}"
        lists = [name for name in left_out if LISTS[name].family == family]
        if lists:
            yield CheckResult(what, f"not set: {', '.join(lists)} are not read")
            continue
        result = check_one(what, partial(_base_url, load))
        yield result
        if result.exit_code != ExitCode.DONE:
            continue
        urls[family] = result.message
        if family == "legacy" and legacy_settings().login_mode is None:
            words = "login_mode: not set; customers cannot be imported. Next:"
            yield CheckResult("", f"{words} {_LOGIN_MODE}")


def _platform(urls: Mapping[Family, str], stop: threading.Event) -> Iterator[CheckResult]:
    """The hosts and keys of the APIs with valid settings, and a page of each list."""
    if len(urls) == len(_FAMILIES):
        same = check_one("one environment", lambda: read_targets(tuple(LISTS)).environment)
        yield same
        if same.exit_code != ExitCode.DONE:
            return
    names = [name for name, operation in LISTS.items() if operation.family in urls]
    targets = read_targets(tuple(names))
    for family, url in urls.items():
        host = check_one(f"host of {_FAMILIES[family]}", partial(_host, family, url, targets, stop))
        yield host
        if host.exit_code == ExitCode.DONE:
            yield from _lists(family, targets, stop)


def _lists(family: Family, targets: Targets, stop: threading.Event) -> Iterator[CheckResult]:
    with targets.client(family, stop, PERSON_WAITS) as client:
        if family == "public_v1":
            whoami = partial(_whoami, client, targets)
            yield check_one(f"key of {_FAMILIES[family]} (whoami)", whoami)
        for record in records_of(family):
            action = partial(_first_page, LISTS[record.name], client, targets)
            yield check_one(f"first page of {record.name}", action)


def _other_writers() -> Iterator[CheckResult]:
    """Who else can write to the files of the project, where it is no error of a command."""
    yield check_one("settings of files", _shared_folder)
    with suppress(BridgeError):  # reported as that of a setting
        for writer in other_writers_here():
            message = f"{writer.words}\n  {writer.fix}"
            yield CheckResult("folders", message, ExitCode.USAGE)


def _shared_folder() -> str:
    """The folder whose writers are trusted. Raises UsageError where that is every user of the machine."""
    folder = file_settings().shared_folder
    if folder is None:
        return "valid"
    target = folder.resolve()
    is_for_all = target.stat().st_mode & stat.S_ISVTX and target.stat().st_mode & stat.S_IWOTH
    if is_for_all or target == target.parent:
        raise UsageError(
            f"files.shared_folder is {folder}: whatever other users put there is trusted",
            "Name the folder of your team, or the mount that shows no owners, and no other.",
        )
    return f"everyone who can write to {folder} is trusted"


def worst_exit_code(results: Iterable[CheckResult]) -> ExitCode:
    """The exit code of the worst problem, `DONE` where there is none."""
    return min((result.exit_code for result in results if result.exit_code), default=ExitCode.DONE)


def _warning(words: str) -> CheckResult:
    return CheckResult("", words, is_warning=True)


def check_one(what: str, action: Callable[[], object], message: str = "") -> CheckResult:
    """Checks one thing. `message`: what was found; empty: what the action returns."""
    try:
        found = action()
        return CheckResult(what, message or str(found))
    except BridgeError as error:
        if isinstance(error, AccessError) and error.family and error.status == 401:
            error.hint = f"{error.hint} {replace_key(error.family)}".strip()
        is_temporary = isinstance(error, Unreachable) and error.status is not None
        return CheckResult(what, str(error), error.exit_code, is_temporary=is_temporary)


def _base_url(load: Callable[[], LegacySettings | PublicV1Settings]) -> str:
    return load().base_url


def _warehouse() -> str:
    path = warehouse_path()
    with warehouse_errors(path.parent), tempfile.TemporaryFile(dir=path.parent):
        pass
    if not path.exists():
        return f"{path} (does not exist yet; its folder is writable)"
    build = Build(path)
    build.check()
    with build.published():
        return f"{path} ({shutil.disk_usage(path.parent).free / 1e6:,.0f} MB are free next to it)"


def _ledger() -> str:
    path = ledger_path()
    if not path.parent.is_dir():
        raise UsageError(
            f"{path.parent} is not a folder", "Set LEDGER__PATH to a file in a folder that exists."
        )
    legacy = None
    with suppress(UsageError):  # reported as that of the settings
        legacy = legacy_settings()
    with Ledger.open(path, readonly=True) as ledger:
        ledger.check()
        if legacy is not None:
            check_host(legacy, ledger)
    return str(path) if path.exists() else f"{path} (does not exist yet)"


def _reconcile() -> str:
    return f"time zone {reconcile_settings().timezone or 'UTC (reconcile.timezone)'}"


def _host(family: Family, url: str, targets: Targets, stop: threading.Event) -> str:
    """The address of a family, where any response comes: it is asked once."""
    with targets.client(family, stop, ONCE) as client:
        try:
            client.get(LISTS[records_of(family)[0].name].path, check=bytes)
        except HttpError as error:
            if error.reason is not None:
                raise
    return url


def _first_page(operation: Operation, client: Client, targets: Targets) -> str:
    paginator = paginator_for(operation, targets.settings(operation.family).page_limit)
    request = paginator.next_request()
    if request is None:
        raise BridgeError(f"{operation.name}: no first request")
    body, answer = client.get(operation.path, request.params, check=paginator.parse)
    return f"{body.count} rows in {answer.elapsed_s * 1000:.0f} ms"


def _whoami(client: Client, targets: Targets) -> str:
    whoami = read_whoami(client)
    whoami.check_environment(targets.environment)
    scopes = ", ".join(whoami.scopes) or "not reported"
    summary = f"environment {whoami.environment or 'not reported'}, scopes {scopes}"
    required = {op.scope for op in LISTS.values() if op.scope and op.family == "public_v1"}
    if whoami.scopes and (missing := sorted(required.difference(whoami.scopes))):
        raise AccessError(
            f"{summary}; missing: {', '.join(missing)}", "Ask for a key with these scopes."
        )
    return summary
