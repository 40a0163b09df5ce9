"""Checks before anything is sent: the plan is unchanged, and the settings are those that it was made for.

In: a plan folder and the settings. Out: the plan and the settings, or a UsageError that names what differs. The
environment is verified in three places: the setting for the host, the prefix of public v1's key, and the `whoami`
response for that key.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from pathlib import Path

from orderbridge.pipelines.ledger.model import FINAL_STATES
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.plan.model import Manifest, Plan
from orderbridge.pipelines.plan.replaced import confirmed_fields, replaced_sha256
from orderbridge.pipelines.pull.targets import read_whoami
from orderbridge.pipelines.push.model import PushOptions
from orderbridge.pipelines.push.next_steps import NextSteps, plan_again_command
from orderbridge.sources.errors import UsageError
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.masking import masked
from orderbridge.sources.kinds import KINDS, increment_fields
from orderbridge.sources.settings import (
    LegacySettings,
    PublicV1Settings,
    check_same_environment,
    is_set,
    ledger_path,
    legacy_settings,
    public_v1_settings,
)
from orderbridge.sources.texts import Texts, english


def open_plan(folder: Path) -> tuple[Plan, LegacySettings, PublicV1Settings | None]:
    """Opens a plan with the settings of its host, and those of public v1 if that family is set up.

    Raises:
        UsageError: the plan was changed, or made for another host or environment.
    """
    plan = Plan(folder)
    legacy = legacy_settings()
    differences = _differences(plan.manifest, legacy)
    if not differences.keys().isdisjoint(("base_url", "environment")):
        raise _other_settings(plan, differences)
    public_v1 = public_v1_settings() if is_set("sources.public_v1") else None
    if public_v1 is not None:
        check_same_environment(legacy, public_v1)
    return plan, legacy, public_v1


def changes_since(plan: Plan, legacy: LegacySettings) -> UsageError | None:
    """What was changed since the plan was made, so that it says nothing about today: a file, or a setting.

    It keeps what was never sent from being sent. What is in doubt is settled and answered whatever was changed.
    """
    if (changed := _changed_file(plan)) is not None:
        return changed
    differences = _differences(plan.manifest, legacy)
    return _other_settings(plan, differences) if differences else None


def _changed_file(plan: Plan) -> UsageError | None:
    """The first file that the plan depends on and that was changed since, or is missing."""
    changed = plan.manifest.changed_file()
    if changed is None:
        return None
    name, path = changed
    message = f"the {name} {path} was changed after the plan was made, or is missing"
    return UsageError(message, f"Plan it again, into a new folder: {plan_again_command(plan)}")


def _other_settings(plan: Plan, differences: Mapping[str, str]) -> UsageError:
    return UsageError(
        f"the plan was made for other settings: {'; '.join(differences.values())}",
        f"Change the settings back, or plan again into a new folder: {plan_again_command(plan)}",
    )


def _differences(manifest: Manifest, legacy: LegacySettings) -> dict[str, str]:
    """Each setting that differs from the plan's, of the target or how its values are meant: name → words."""
    kind = KINDS[manifest.kind]
    planned = {"base_url": manifest.host, "environment": manifest.environment}
    if kind.has_login:
        planned["login_mode"] = manifest.login_mode or "not set"
    for name in legacy.semantics if kind.is_update else ():
        if name in {field.name for field in kind.record.fields}:
            planned[f"{name}_semantics"] = manifest.semantics.get(name, "unknown")
    now = {name: getattr(legacy, name) or "not set" for name in planned}
    if is_same_platform(manifest.host, legacy.base_url):
        planned["base_url"] = legacy.base_url
    return {
        name: f"sources.legacy.{name} was {was}, now {now[name]}"
        for name, was in planned.items()
        if was != now[name]
    }


def is_same_platform(host: str, other: str) -> bool:
    """Whether two hosts are one, or names of one platform, as a person has said."""
    if host == other:
        return True
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        return ledger.host_name(host) == ledger.host_name(other)


def host_now(manifest: Manifest) -> str:
    """The name of the plan's platform: that of the settings, if a person has said that it is the same one."""
    if not is_set("sources.legacy"):
        return manifest.host
    host = legacy_settings().base_url
    return host if is_same_platform(manifest.host, host) else manifest.host


def check_whoami(plan: Plan, public_v1: PublicV1Settings, stop: threading.Event) -> str:
    """Asks the platform for environment and organization of the key, and accepts a response without them.

    Returns the name of the member that contains it, as an observation: the names are not shown.

    Raises:
        UsageError: another environment, or another organization than the plan's.
        AccessError, PlatformError: the request failed.
    """
    with Client.from_settings(public_v1, stop) as client:
        whoami = read_whoami(client)
    whoami.check_environment(public_v1.environment)
    planned = masked(plan.manifest.organization)
    if planned and whoami.organization and whoami.organization != planned:
        raise UsageError(
            f"the plan was made for the organization {planned}, "
            f"the key of public v1 is of {whoami.organization}",
            f"Use the settings of that organization, or pull and plan again: {plan_again_command(plan)}",
        )
    return f"environment: {whoami.environment_field or 'not reported'}"


def operations_left(plan: Plan) -> tuple[int, int]:
    """How many operations of a plan are not final, and how many of these are in doubt. Raises UsageError."""
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        counts = ledger.counts(plan.manifest.plan_id) or {"planned": plan.manifest.operations}
    left = sum(count for state, count in counts.items() if state not in FINAL_STATES)
    return left, left - counts.get("planned", 0)


def describe_plan(plan: Plan, texts: Texts | None = None) -> str:
    """What a push of the plan would send, and what it would not: of one that was begun, what is left."""
    texts = texts or english()
    manifest = plan.manifest
    count = manifest.operations
    left, doubts = operations_left(plan)
    what = texts(f"noun.{plan.kind}", count=count)
    if KINDS[plan.kind].is_update:  # a variant may need two requests
        requests = texts("noun.requests", count=count)
        what = texts("agree.requests", requests=requests, kind=texts(f"kinds.{plan.kind}"))
    if left != count:
        what = texts("agree.part", left=left, what=what)
    code = "agree.still" if left != count or doubts else "agree.would"
    target = f"{host_now(manifest)} ({manifest.environment})"
    text = texts(code, count=count, what=what, target=target)
    if doubts:
        text += texts("agree.doubts", count=doubts)
    if manifest.messages:
        messages = texts("noun.messages", count=min(manifest.messages, left))
        text += texts("agree.messages", messages=messages)
    return "; ".join(filter(None, (text, _rest(manifest, texts))))


def _rest(manifest: Manifest, texts: Texts) -> str:
    """What is not sent, and what has to be looked at, in numbers."""
    counts = {
        "agree.rejected": manifest.outcomes.get("rejected", 0),
        "agree.held": manifest.outcomes.get("held", 0),
        "noun.suspicious": manifest.suspicious,
    }
    return ", ".join(texts(code, count=count) for code, count in counts.items() if count)


def needs_agreement(plan: Plan, options: PushOptions) -> bool:
    """Whether a push may send something: not of a plan that has ended, unless an answer sends it again."""
    left, _ = operations_left(plan)
    return bool(left or options.not_landed)


def check_agreement(plan: Plan, options: PushOptions) -> None:
    """Requires the number of operations for production, and an agreement elsewhere, unless nothing is left to send.

    Raises UsageError without it.
    """
    manifest = plan.manifest
    confirm = options.confirm
    text = describe_plan(plan)
    if confirm is not None and confirm != manifest.operations:
        raise UsageError(
            f"--confirm {confirm} is not the number of operations: {text}",
            f"Read summary.md again. To send it: {NextSteps.of(plan).push}",
        )
    if confirm is not None or not needs_agreement(plan, options):
        return
    if manifest.environment == "production":
        raise UsageError(text, f"To send it, confirm the number: {NextSteps.of(plan).push}")
    if not options.agreed:
        raise UsageError(text, f"To send it: {NextSteps.of(plan).push}")


def check_current(plan: Plan, ledger: Ledger) -> None:
    """Raises UsageError for a plan, not pushed before, whose fields another push has changed since it was made."""
    manifest = plan.manifest
    if manifest.replaces is None or ledger.pushes(manifest.plan_id) is not None:
        return
    confirmed = confirmed_fields(ledger, manifest.host)
    increments = increment_fields(manifest.semantics)
    if manifest.replaces != replaced_sha256(confirmed, increments, plan.folder):
        raise UsageError(
            "another push has changed fields that this plan changes, after it was made",
            f"Nothing was sent. Plan again into a new folder, and compare: {plan_again_command(plan)}",
        )
