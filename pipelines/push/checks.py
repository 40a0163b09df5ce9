"""Before anything is sent: is this the plan that was made, and is this the platform that it was made for?

In: a plan's folder and the settings. Out: the plan and the settings, or a UsageError that says what is not as it was.
The environment is asked for three times: the setting beside the host, the prefix of public v1's key, and what that
family's `whoami` says of the key.
"""

from __future__ import annotations

import shlex
import threading
from pathlib import Path
from typing import Final

from pipelines.plan.model import Manifest, Plan, PlanFile, file_sha256
from pipelines.pull.check import told_environment
from sources.errors import UsageError
from sources.http.client import Client
from sources.kinds import KINDS
from sources.settings import (
    LegacySettings,
    PublicV1Settings,
    check_same_environment,
    is_set,
    legacy_settings,
    public_v1_settings,
)

_AGAIN: Final = "Make the plan again: orderbridge plan KIND FILE"


def checked(folder: Path) -> tuple[Plan, LegacySettings, PublicV1Settings | None]:
    """The plan and the settings of its host; public v1's where that family is set up.

    Raises:
        UsageError: the plan or a file that it rests on was changed, or it was made for another host, environment or
            way of logging in.
    """
    plan = Plan(folder)
    told = plan.manifest
    for what, file in (("input", told.input), ("mapping", told.mapping), *(("lookup", f) for f in told.lookups)):
        _check_file(what, file, f"Plan it again, into a new folder: {_command(told)}")
    legacy = legacy_settings()
    if legacy.base_url != told.host:
        raise UsageError(f"this plan was made for {told.host}, the settings name {legacy.base_url}", _AGAIN)
    if legacy.environment != told.environment:
        raise UsageError(
            f"this plan was made for {told.environment}, the settings say {legacy.environment}",
            f"{_AGAIN}, or put SOURCES__LEGACY__ENVIRONMENT right.",
        )
    if KINDS[told.kind].has_login and legacy.login_mode != told.login_mode:
        raise UsageError(
            f"this plan was made for customers who log in by {told.login_mode}, the settings say {legacy.login_mode}",
            f"{_AGAIN}, or put SOURCES__LEGACY__LOGIN_MODE right.",
        )
    public_v1 = public_v1_settings() if is_set("sources.public_v1") else None
    if public_v1 is not None:
        check_same_environment(legacy, public_v1)
    return plan, legacy, public_v1


def _command(told: Manifest) -> str:
    """Plans the same input anew."""
    mapping = f" --mapping {shlex.quote(told.mapping.path)}" if told.mapping is not None else ""
    return f"orderbridge plan {told.kind} {shlex.quote(told.input.path)}{mapping}"


def _check_file(what: str, file: PlanFile | None, again: str) -> None:
    if file is not None and file_sha256(Path(file.path)) != file.sha256:
        raise UsageError(f"the {what} {file.path} has changed since it was planned, or is gone", again)


def check_whoami(public_v1: PublicV1Settings, stop: threading.Event) -> str:
    """Asks the platform of which environment the key is. What it does not tell is not held against it.

    Returns:
        Where it told it: the names are not shown (design §9).

    Raises:
        UsageError: of another one. AccessError, PlatformError: it cannot be asked.
    """
    with Client.from_settings(public_v1, stop) as client:
        name, environment = told_environment(client)
    if environment and environment != public_v1.environment:
        raise UsageError(
            f"the platform says that the key of public v1 is of {environment}, its prefix says {public_v1.environment}",
            "Use the key of the environment that you mean.",
        )
    return f"environment: {name or 'not told'}"


def would(plan: Plan) -> str:
    """What a push of a plan would send."""
    told = plan.manifest
    what = "requests for variants" if told.kind == "variants" else told.kind  # a variant may need two
    words = f"{told.operations} {what} would be sent to {told.host} ({told.environment})"
    if told.messages:
        words += f", and the platform would send {told.messages} messages to customers"
    return words


def check_agreed(plan: Plan, confirm: int | None, agreed: bool) -> None:
    """Asks for the number of operations where the data is real, and for a yes elsewhere.

    Raises:
        UsageError: it was not given; the message says what would be sent.
    """
    told, words = plan.manifest, would(plan)
    if confirm is not None and confirm != told.operations:
        raise UsageError(f"--confirm {confirm} is not the number of operations: {words}", "Read summary.md once more.")
    if told.environment == "production" and confirm is None:
        raise UsageError(words, f"Confirm the number: orderbridge push {plan.folder} --confirm {told.operations}")
    if confirm is None and not agreed:
        raise UsageError(words, f"Say yes: orderbridge push {plan.folder} --yes")
