"""Import: a file of the ERP goes to the platform in one run, made of the steps that are commands of their own.

In: a file, options, and the steps that show their progress. Out: `ImportResult`. Each step keeps what it did on disk,
so that a run that was stopped anywhere is continued by the next one: a plan of the same file with operations that are
not final is pushed on, otherwise the file is planned anew, compared with what the platform has by then.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, Literal
from urllib.parse import urlsplit

from orderbridge.pipelines.import_file.examples import examples
from orderbridge.pipelines.import_file.mappings import (
    AskColumns,
    AskTotals,
    OnStep,
    Person,
    allowed_lookups,
    find_mapping,
    is_kept,
    keep_given_mapping,
    keep_mapping,
    new_mapping,
)
from orderbridge.pipelines.import_file.marks import AskYes
from orderbridge.pipelines.import_file.result import mark_import, write_result
from orderbridge.pipelines.imports import Inputs, OtherCurrency, open_inputs
from orderbridge.pipelines.ledger.push_log import publish_push_log
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import Mapping, load
from orderbridge.pipelines.plan.lookup_records import keep_records
from orderbridge.pipelines.plan.make import (
    PASSWORD_SOURCES,
    PlanOptions,
    PlanResult,
    check_login_mode,
    make_plan,
    password_source,
)
from orderbridge.pipelines.plan.model import Plan
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.push.checks import changes_since, describe_plan, operations_left
from orderbridge.pipelines.push.lookups import intact_plan
from orderbridge.pipelines.push.model import PushOptions, PushResult
from orderbridge.pipelines.push.verify import VerifyResult, verify
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.ops import last_reads
from orderbridge.sources.errors import BridgeError, CoverageError, ExitCode, UsageError
from orderbridge.sources.kinds import KINDS, KindName
from orderbridge.sources.settings import ledger_path, legacy_settings, warehouse_path
from orderbridge.sources.words import duration, number

Passwords = Literal["mail", "file"]
MAX_AGE_H: Final = 1.0
"""Hours for which customers that were read decide what is new. The push looks each one up again before it creates."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(PlanOptions):
    """Options of `orderbridge import`, beside those of the plan.

    Attributes:
        sheet: of a workbook whose columns are read for the first time.
        max_age_h: pull the customers if they were read longer ago, in hours.
        push: how to send; `agreed` sends to a sandbox without asking, and `confirm` is the number of operations up to
            which nobody is asked.
    """

    sheet: str = ""
    max_age_h: float = MAX_AGE_H
    push: PushOptions = field(default_factory=PushOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSteps:
    """How the steps are run and shown.

    Attributes:
        pull, push: the functions of these names, with their progress.
        agree: asks a person, given what would be sent and examples of it; False where there is nobody to ask.
        on_plan: called with a new plan.
        on_step: called with the name of a step and what it does.
        ask_columns: asks a person for the columns that match no field.
        ask_totals: asks a person what lines of totals are.
        ask_yes: asks a person whether something about the file is so.
        ask_passwords: asks a person how new customers get a password; None if nobody can be asked.
    """

    pull: Callable[[PullOptions], PullResult]
    push: Callable[[Path, PushOptions], PushResult]
    agree: Callable[[Plan, Sequence[str]], bool]
    on_plan: Callable[[PlanResult], object] = lambda made: None
    on_step: OnStep = lambda step, text: None
    ask_columns: AskColumns = lambda proposed, samples: None
    ask_totals: AskTotals = lambda lines: None
    ask_yes: AskYes = lambda question: None
    ask_passwords: Callable[[], Passwords | None] = lambda: None


@dataclass(slots=True)
class ImportResult:
    """What an import did.

    Attributes:
        made: the plan, if this run made it; None if it continued one.
        file: the workbook with the result of each line.
        error: why nothing could be verified, or no workbook written, after the push.
    """

    plan: Plan
    push: PushResult
    made: PlanResult | None = None
    verification: VerifyResult | None = None
    file: Path | None = None
    error: BridgeError | None = None

    @property
    def exit_code(self) -> int:
        """That of an error or a stop; 6 with doubts; otherwise that of the verification, then of the push."""
        if self.push.stopped or self.push.error is not None:
            return self.push.exit_code
        if self.error is not None:
            return self.error.exit_code
        codes = [
            self.push.exit_code,
            *([self.verification.exit_code] if self.verification is not None else []),
        ]
        return ExitCode.IN_DOUBT if ExitCode.IN_DOUBT in codes else max(codes)


def import_file(options: ImportOptions, steps: ImportSteps) -> ImportResult:
    """Takes a file to the platform (`orderbridge import`).

    Raises:
        UsageError: settings, file or mapping cannot be used, or nobody agreed; the plan, if there is one, is kept.
        BridgeError: a step failed before anything was sent.
    """
    check_login_mode(options.kind, legacy_settings())
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        ledger.check()
    given, made = options.mapping, None
    options = _with_mapping(options, steps)
    plan = _unfinished_plan(options)
    if plan is not None:
        _check_passwords(plan, options.passwords)
        steps.on_step(
            "resume", f"an earlier import of this file has not ended: going on with {plan.folder}"
        )
    else:

        def pull(inputs: Inputs) -> None:  # once the file is known to have all that is needed
            if KINDS[options.kind].has_login:
                password_source(options, inputs)
                _pull_list(options.kind, options.max_age_h, steps)

        try:
            made = make_plan(options, on_inputs=pull)
        except OtherCurrency as error:
            options = _with_currency(options, error, steps)
            made = make_plan(options, on_inputs=pull)
        steps.on_plan(made)
        if given is not None:
            keep_given_mapping(options.kind, given)
        plan = Plan(made.folder)
    push_options = _agreed(plan, options.push, steps)
    mark_import(plan)
    result = ImportResult(plan, steps.push(plan.folder, push_options), made)
    if result.push.stopped or result.push.error is not None:
        return result
    try:
        try:
            if made is not None:
                keep_records(made.inputs)
            result.file = write_result(plan, made.inputs if made is not None else None)
        except UsageError as error:
            result.error = error
        # what somebody else created is not in the list that was read before
        max_age_h = 0.0 if result.push.lines["unsent", "exists_now"] else math.inf
        if _pull_list(options.kind, max_age_h, steps):
            # once more if that went on with a walk that began before the last of them was sent
            _pull_list(options.kind, math.inf, steps)
        else:
            publish_push_log(plan.manifest.plan_id, result.push.observed)
        result.verification = verify(plan.folder)
    except BridgeError as error:  # what was sent is in the ledger: the next import verifies it
        result.error = error
    except KeyboardInterrupt:  # the result of the push is shown all the same
        result.push.stopped = True
    return result


def _with_mapping(options: ImportOptions, steps: ImportSteps) -> ImportOptions:
    """The options with the mapping that was kept for such a file, or a new one, which is kept.

    Without one, where nobody can be asked, the plan reports what is missing.
    """
    if options.mapping is not None:
        if options.sheet:
            raise UsageError(
                "--sheet does not count with --mapping", "Set sheet under [file] in the mapping."
            )
        return options
    with suppress(UsageError), Ledger.open(ledger_path(), readonly=True) as ledger:
        manifest = Plan(
            options.file.parent
        ).manifest  # of the plan whose rejected rows are corrected
        if (
            ledger.pushes(manifest.plan_id) is not None
        ):  # that of somebody else could name any file of this machine
            options = replace(
                options, lookups=(*options.lookups, *(Path(file.path) for file in manifest.lookups))
            )
    path = find_mapping(options.kind, options.file, options.sheet, options.lookups, steps.on_step)
    if path is not None:
        lookups = allowed_lookups(path, options.file, options.lookups)
        kept = load(path, options.kind, lookups)
        sheet = f", of the sheet {kept.read_options.sheet}" if kept.read_options.sheet else ""
        steps.on_step("mapping", f"the columns are read as in {path}{sheet}")
        passwords = _passwords(options, kept, steps)
        return replace(options, mapping=path, lookups=lookups, passwords=passwords)
    kind, file, settings = options.kind, options.file, legacy_settings()
    person = Person(steps.ask_columns, steps.ask_totals, steps.ask_yes)
    mapping = new_mapping(kind, file, options.passwords, person, options.sheet, options.lookups)
    if mapping is None:
        return options
    # a mapping that does not do would be found again, and nobody asked
    inputs = open_inputs(
        kind, file, mapping, login_mode=settings.login_mode, semantics=settings.semantics
    )
    options = replace(options, passwords=_passwords(options, mapping, steps))
    mapping = inputs.with_currencies(mapping).with_passwords(options.passwords)
    path = keep_mapping(mapping)
    lines = [
        f"the columns are read as follows, the next time too; to change that, edit {path}",
        *mapping.explain(),
    ]
    steps.on_step("mapping", "\n  ".join(lines))
    return replace(options, mapping=path, lookups=allowed_lookups(path, file, options.lookups))


def _with_currency(
    options: ImportOptions, error: OtherCurrency, steps: ImportSteps
) -> ImportOptions:
    """The options with a kept mapping that has the other currency, if a person says that it is right.

    Raises:
        OtherCurrency: nobody says so, or the mapping is a person's own.
    """
    path = options.mapping
    if path is None or not is_kept(path):
        raise error
    mapping = load(path, options.kind, options.lookups)
    columns = dict(mapping.columns)
    for name, change in error.columns.items():
        question = (
            f"{name}: amounts in {change.found}, before in {change.named}. "
            f"Are the platform's amounts in {change.found}?"
        )
        if not steps.ask_yes(question):
            raise error
        formats = replace(columns[name].formats, currency=change.found)
        columns[name] = replace(columns[name], formats=formats)
    return replace(options, mapping=keep_mapping(replace(mapping, columns=columns)))


def _passwords(options: ImportOptions, mapping: Mapping, steps: ImportSteps) -> Passwords | None:
    """How new customers get a password: as given, or asked for where neither the file nor its mapping says so."""
    is_given = options.passwords or mapping.generate_passwords or mapping.password_column
    if is_given or not KINDS[options.kind].has_login:
        return options.passwords
    return steps.ask_passwords()


def _unfinished_plan(options: ImportOptions) -> Plan | None:
    """The last plan of this file, mapping and settings, as they are, that was pushed and has operations left."""
    settings = legacy_settings()
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        target = (options.kind, ledger.host_name(settings.base_url))
        begun = [one for one in reversed(ledger.open_plans()) if (one.kind, one.host) == target]
    given = [
        os.path.realpath(path) if path is not None else None
        for path in (options.file, options.mapping)
    ]
    for one in begun:
        plan = intact_plan(one.plan_id, one.folder)
        if plan is not None and changes_since(plan.manifest, settings) is None:
            files = (plan.manifest.input, plan.manifest.mapping)
            if [file.path if file is not None else None for file in files] == given:
                return plan
    return None


def _check_passwords(plan: Plan, passwords: Passwords | None) -> None:
    """A plan that was begun keeps its source of passwords. Raises UsageError if another one is given."""
    first = next(plan.operations(), None)
    source = first.password if first is not None else None
    if passwords is not None and source is not None and source != PASSWORD_SOURCES[passwords]:
        begun = next((name for name, other in PASSWORD_SOURCES.items() if other == source), None)
        raise UsageError(
            f"the import of this file was begun with {f'--passwords {begun}' if begun else 'passwords of the file'}",
            f"Run it so to go on: {plan.folder} has what was sent. Another choice counts from the next file.",
        )


def _pull_list(kind: KindName, max_age_h: float, steps: ImportSteps) -> bool:
    """Pulls the list that shows a kind, if it has one and its last read does not do, and returns whether it did.

    Raises:
        BridgeError: it could not be read, or was held back.
    """
    shown = KINDS[kind].operation.shown_in
    if shown is None or (reason := _pull_reason(kind, shown.name, max_age_h)) is None:
        return False
    steps.on_step("pull", reason)
    result = steps.pull(PullOptions((shown.name,)))
    for walked in result.lists:
        if walked.error is not None:
            raise walked.error
    if reason := result.held_back.get(shown.name):
        hint = f"If that is right: orderbridge pull {shown.name} --accept-shrink; then run the same command again."
        raise CoverageError(f"the list of {shown.name} was held back: {reason}", hint)
    return True


def _pull_reason(kind: KindName, name: str, max_age_h: float) -> str | None:
    """Why a list has to be pulled: never read from this host, too long ago, or written since; None if not."""
    host, path = legacy_settings().base_url, warehouse_path()
    read = None
    if path.exists():
        with open_warehouse(path) as warehouse:
            read = last_reads(warehouse).get(name)
    if read is None or read.legacy_host != urlsplit(host).netloc:
        return f"pulling the platform's {name}"
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        sent = ledger.sent_since(host, kind, read.started_at.timestamp())
    if sent:
        return f"pulling the {name}: {number(sent, KINDS[kind].singular)} sent after they were read"
    age_h = (datetime.now(UTC) - read.ended_at).total_seconds() / 3600
    is_new = max_age_h == math.inf or 0 <= age_h <= max_age_h
    return None if is_new else f"pulling the {name}, read {duration(age_h * 3600)} ago"


def _agreed(plan: Plan, options: PushOptions, steps: ImportSteps) -> PushOptions:
    """The options of the push, once somebody has agreed to what it sends; a plan without operations needs nobody.

    Raises:
        UsageError: nobody did, or the plan has more operations left than `confirm`.
    """
    manifest, (left, _) = plan.manifest, operations_left(plan)
    if options.confirm is not None and left > options.confirm:
        hint = f"Nothing was sent. Read {plan.folder / 'summary.md'}, then run the same command with a higher number."
        raise UsageError(f"{describe_plan(plan)}, more than --confirm {options.confirm}", hint)
    is_given = options.confirm is not None or (options.agreed and manifest.environment == "sandbox")
    if not is_given and manifest.operations and not steps.agree(plan, examples(plan)):
        option = f"--confirm {left}" if manifest.environment == "production" else "--yes"
        hint = f"To send it, run the same command with {option}. {plan.folder} has it, and may be removed."
        raise UsageError(describe_plan(plan), hint)
    return replace(options, agreed=True, confirm=manifest.operations)
