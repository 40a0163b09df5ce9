"""Import: a file of the ERP goes to the platform in one run, made of the steps that are commands of their own.

In: a file, options, and the steps that show their progress. Out: `ImportResult`. Each step keeps what it did on disk,
so that a run that was stopped anywhere is continued by the next one: a plan of the same file with operations that are
not final is pushed on, otherwise the file is planned anew, compared with what the platform has by then.
"""

from __future__ import annotations

import math
import os
import shlex
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Literal, cast

from orderbridge.pipelines.import_file.asking import YES, Ask, FileQuestion, Interview, nobody
from orderbridge.pipelines.import_file.examples import examples
from orderbridge.pipelines.import_file.lists import pull_list
from orderbridge.pipelines.import_file.mappings import (
    OnStep,
    allowed_lookups,
    find_mapping,
    is_kept,
    keep_given_mapping,
    keep_mapping,
    new_mapping,
    with_answers,
    with_asked_columns,
    with_filled_columns,
    with_later_notations,
)
from orderbridge.pipelines.import_file.other_kind import likelier_kind
from orderbridge.pipelines.import_file.result import (
    mark_begun,
    mark_ended,
    was_cut_off,
    write_result,
)
from orderbridge.pipelines.imports import Inputs, OtherCurrency, open_inputs
from orderbridge.pipelines.imports.open import open_input_table, own_columns
from orderbridge.pipelines.ledger.lock import ledger_lock
from orderbridge.pipelines.ledger.push_log import publish_push_log
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import Mapping, load
from orderbridge.pipelines.plan.lookup_records import keep_records
from orderbridge.pipelines.plan.make import (
    NoPasswords,
    PlanOptions,
    PlanResult,
    check_login_mode,
    make_plan,
    password_source,
)
from orderbridge.pipelines.plan.model import PASSWORD_SOURCES, Plan
from orderbridge.pipelines.pull.model import PullOptions, PullResult
from orderbridge.pipelines.push.checks import changes_since, describe_plan, operations_left
from orderbridge.pipelines.push.lookups import intact_plan
from orderbridge.pipelines.push.model import PushOptions, PushResult
from orderbridge.pipelines.push.next_steps import agreeing_step
from orderbridge.pipelines.push.verify import VerifyResult, verify
from orderbridge.sources.command_line import PROGRAM, typed_command
from orderbridge.sources.errors import BridgeError, ExitCode, UsageError
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.settings import check_before_writes, ledger_path, legacy_settings
from orderbridge.sources.texts import Language, Texts, english

Passwords = Literal["mail", "file"]
Phase = Literal["read", "pull", "plan", "push", "verify"]
"""What an import is doing, in this order; a list is pulled again before the verification."""
MAX_AGE_H: Final = 1.0
"""Hours for which customers that were read decide what is new. The push looks each one up again before it creates."""
_PASSWORDS: Final = FileQuestion(topic="passwords")


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportOptions(PlanOptions):
    """Options of `orderbridge import`, beside those of the plan.

    Attributes:
        sheet, encoding, delimiter: of a file whose columns are read for the first time.
        max_age_h: pull the customers if they were read longer ago, in hours.
        if_plan: the plan that somebody has agreed to, by its operations (`Plan.agreed_as`); empty: any.
        push: how to send; `agreed` sends to a sandbox without asking, and `confirm` is the number of operations up to
            which nobody is asked.
    """

    sheet: str = ""
    encoding: str = ""
    delimiter: str = ""
    passwords_if_new: bool = True
    max_age_h: float = MAX_AGE_H
    if_plan: str = ""
    push: PushOptions = field(default_factory=PushOptions)

    @property
    def read_options(self) -> ReadOptions:
        """What is given about how the file is read."""
        return ReadOptions.given(self.sheet, self.encoding, self.delimiter)


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSteps:
    """How the steps are run and shown.

    Attributes:
        pull, push: the functions of these names, with their progress.
        agree: asks a person, given what would be sent and examples of it; False where there is nobody to ask.
        on_phase: called when a phase of the import begins.
        on_plan: called with a new plan.
        on_step: called with the name of a step and what it does.
        ask: asks a person about the file.
        texts: in which the steps are worded.
        language: of the workbook; None: that of the last one of the plan, or English.
    """

    pull: Callable[[PullOptions], PullResult]
    push: Callable[[Path, PushOptions], PushResult]
    agree: Callable[[Plan, Sequence[str]], bool]
    on_phase: Callable[[Phase], object] = lambda phase: None
    on_plan: Callable[[PlanResult], object] = lambda made: None
    on_step: OnStep = lambda step, text: None
    ask: Ask = nobody
    texts: Texts = field(default_factory=english)
    language: Language | None = None


@dataclass(slots=True)
class ImportResult:
    """What an import did.

    Attributes:
        made: the plan, if this run made it; None if it continued one.
        file: the workbook with the result of each line.
        error: why nothing could be verified, or no workbook written, after the push.
        asks: the file has open questions, which reject its lines: nothing was sent.
    """

    plan: Plan
    push: PushResult
    made: PlanResult | None = None
    verification: VerifyResult | None = None
    file: Path | None = None
    error: BridgeError | None = None
    asks: bool = False

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
    """Takes a file to the platform (`orderbridge import`). See `Import.run`."""
    return Import(options, steps).run()


@dataclass(slots=True)
class Import:
    """One run of an import, and how far it came, which a person or a page is shown however it ends.

    Attributes:
        options: with the mapping, once it is known.
        interview: what was asked about the file; None: nothing can be.
        plan: that is sent; None: there is none yet.
        made: the plan, if this run made it.
        sent: what the push did; None: nobody has agreed to it yet.
        workbook: with the result of each line, or with the lines to correct of a plan that waits for an agreement.
        new_mapping: that this run has kept; None: there was one.
    """

    options: ImportOptions
    steps: ImportSteps
    interview: Interview | None = None
    plan: Plan | None = None
    made: PlanResult | None = None
    sent: PushResult | None = None
    workbook: Path | None = None
    new_mapping: Path | None = None

    def run(self) -> ImportResult:
        """Takes the file to the platform.

        Raises:
            UsageError: settings, file or mapping cannot be used, others can write to the project, or nobody agreed; the
                plan, if there is one, is kept, and so are the questions that are open.
            BridgeError: a step failed before anything was sent.
        """
        self.steps.on_phase("read")
        check_before_writes()
        check_login_mode(self.options.kind, legacy_settings())
        with Ledger.open(ledger_path(), readonly=True) as ledger:
            ledger.check()
        self._ask_about_platform()
        try:
            given = self.options.mapping
            self._choose_mapping()
            self.plan = self._unfinished_plan() or self._new_plan(given)
            _check_agreed_plan(self.plan, self.options.if_plan)
            push_options = replace(
                _agreed(self.plan, self.options.push, self.steps),
                language=self.steps.language or "en",
            )
        except BridgeError:
            if self.steps.ask is nobody:
                self._keep_for_later()
            raise
        mark_begun(self.plan)
        self.steps.on_phase("push")
        self.sent = self.steps.push(self.plan.folder, push_options)
        result = ImportResult(self.plan, self.sent, self.made)
        if self.interview is not None:
            has_requests = bool(self.plan.manifest.operations)
            self.interview.end(is_sent=has_requests or self.steps.ask is not nobody)
            result.asks = bool(self.interview.open)
        if not self.sent.stopped and self.sent.error is None:
            self._verify(result)
        return result

    def _ask_about_platform(self) -> None:
        """Asks whether a new host is a platform that the ledger has; where nobody can be asked, the plan reports it."""
        legacy, path = legacy_settings(), ledger_path()
        with Ledger.open(path, readonly=True) as ledger:
            undecided = ledger.undecided_hosts(legacy.base_url, legacy.environment)
        for other in undecided:
            values = {"other": other, "host": legacy.base_url}
            question = FileQuestion(topic="platform", about=other, values=values)
            answer = self.steps.ask([question]).get(question.key)
            if answer is None:
                return
            with ledger_lock(path), Ledger.open(path) as ledger:
                ledger.keep_host(legacy.base_url, other, is_same=answer == YES)
            if answer == YES:
                return

    def _keep_for_later(self) -> None:
        """Keeps what was asked, and the lines to correct, where nobody could be asked. Raises UsageError."""
        if self.interview is not None:
            self.interview.keep()
        if self.made is None:
            return
        outcomes = self.made.manifest.outcomes
        if outcomes.get("rejected") or outcomes.get("held"):
            plan = Plan(self.made.folder)
            self.workbook = write_result(plan, self.made.inputs, self.steps.language)

    def _choose_mapping(self) -> None:
        """Finds the mapping that was kept for such a file, or makes and keeps a new one.

        Without one, where nobody can be asked, the plan reports what is missing.
        """
        options = self.options
        if options.mapping is not None:
            for name in ("sheet", "encoding", "delimiter"):
                if getattr(options, name):
                    raise UsageError(
                        f"--{name} does not count with --mapping",
                        f"Set {name} under [file] in the mapping, then: {typed_command(without=f'--{name}')}",
                    )
            return
        self.options = options = _with_known_lookups(options)
        path = find_mapping(
            options.kind, options.file, options.read_options, options.lookups, self.steps.on_step
        )
        kept = self._columns_before(path) if path is not None else None
        if path is None or kept is not None:
            self._make_mapping(kept)
        else:
            self._use_mapping(path)

    def _columns_before(self, path: Path) -> Mapping | None:
        """The mapping that an import has kept, where a person says that the columns are read anew."""
        if not is_kept(path):
            return None
        options = self.options
        kept = load(path, options.kind, allowed_lookups(path, options.file, options.lookups))
        return kept if self._interview(kept.read_options, kept).is_read_anew(kept) else None

    def _interview(self, read_options: ReadOptions, mapping: Mapping | None) -> Interview:
        """The questions about the file. Raises UsageError if it cannot be read."""
        options = self.options
        columns = own_columns(open_input_table(options.file, read_options, mapping))
        interview = Interview.about(
            options.kind,
            options.file,
            options.read_options,
            options.lookups,
            columns,
            self.steps.ask,
        )
        if self.interview is not None:
            interview.open |= self.interview.open
        self.interview = interview
        return interview

    def _use_mapping(self, path: Path) -> None:
        """Takes a mapping that was kept, with the columns that a person has answered since."""
        options = self.options
        lookups = allowed_lookups(path, options.file, options.lookups)
        kept = load(path, options.kind, lookups)
        interview = self._interview(kept.read_options, kept)
        answered = kept
        if is_kept(path):
            table = open_input_table(options.file, kept.read_options, kept)
            answered = with_answers(with_filled_columns(table, kept), interview.columns)
            answered = with_asked_columns(table, answered, interview)
            answered = with_later_notations(table, answered, interview)
        passwords = self._known_passwords(answered, interview)
        if is_kept(path) and options.passwords is None:
            answered = answered.with_passwords(passwords)
        if answered != kept:
            path = keep_mapping(answered)
            kept = load(path, options.kind, lookups)
        sheet, texts = kept.read_options.sheet, self.steps.texts
        text = texts("import.mapping", file=path)
        if sheet:
            text = texts("import.mapping_sheet", file=path, sheet=sheet)
        self.steps.on_step("mapping", text)
        self.options = replace(options, mapping=path, lookups=lookups, passwords=passwords)

    def _note_other_kind(self, columns: Sequence[str]) -> None:
        """Shows the command for the kind that the columns look like, where it is not the chosen one."""
        other = likelier_kind(columns, self.options.kind)
        if other is not None:
            texts = self.steps.texts
            command = shlex.join([PROGRAM, "import", other, str(self.options.file)])
            text = texts("import.other_kind", kind=texts(f"kinds.{other}"), command=command)
            self.steps.on_step("mapping", text)

    def _make_mapping(self, kept: Mapping | None = None) -> None:
        """Makes a mapping for a file of other columns than before, and keeps it if it is complete."""
        options = self.options
        settings = legacy_settings()
        kind, file = options.kind, options.file
        interview = self._interview(options.read_options, None)
        self._note_other_kind(interview.begun.columns)
        mapping = new_mapping(
            kind, file, options.passwords, interview, options.read_options, options.lookups, kept
        )
        if mapping is None:
            return
        # a mapping that does not do would be found again, and nobody asked
        inputs = open_inputs(
            kind, file, mapping, login_mode=settings.login_mode, semantics=settings.semantics
        )
        options = replace(options, passwords=self._known_passwords(mapping, interview))
        mapping = inputs.with_currencies(mapping).with_passwords(options.passwords)
        path = self.new_mapping = keep_mapping(mapping)
        texts = self.steps.texts
        ignored = texts("import.ignored")
        is_watched = self.steps.ask is not nobody
        columns = mapping.explain(ignored) if is_watched else [mapping.explain_briefly(ignored)]
        lines = [texts("import.new_mapping", file=path), *columns]
        self.steps.on_step("mapping", "\n  ".join(lines))
        lookups = allowed_lookups(path, file, options.lookups)
        self.options = replace(options, mapping=path, lookups=lookups)

    def _known_passwords(self, mapping: Mapping, interview: Interview) -> Passwords | None:
        """How new customers get a password: as given or answered; None: as the file or its mapping says, if they do."""
        given = self.options.passwords
        if given or mapping.password_column or not interview.is_answered(_PASSWORDS):
            return given
        return cast("Passwords | None", interview.ask_one(_PASSWORDS))

    def _ask_passwords(self, error: NoPasswords) -> None:
        """Asks how the new customers get a password, and keeps the answer for later files.

        Raises:
            NoPasswords: nobody has answered.
        """
        options, path = self.options, self.options.mapping
        if path is None:
            raise error
        mapping = load(path, options.kind, options.lookups)
        interview = self.interview or self._interview(mapping.read_options, mapping)
        answer = cast("Passwords | None", interview.ask_one(_PASSWORDS))
        if answer is None:
            raise error
        if is_kept(path):
            answered = keep_mapping(mapping.with_passwords(answer))
            if path == self.new_mapping:
                path.unlink()  # nothing was planned with it
            path = answered
        self.options = replace(options, mapping=path, passwords=answer)

    def _unfinished_plan(self) -> Plan | None:
        """The plan that an earlier import of the file has begun. Raises UsageError: with other passwords."""
        plan = _unfinished_plan(self.options)
        if plan is None:
            return None
        _check_passwords(plan, self.options.passwords)
        self.steps.on_step("resume", self.steps.texts("import.resume", folder=plan.folder))
        return plan

    def _new_plan(self, given: Path | None) -> Plan:
        """Makes a plan of the file. `given` is the mapping that a person has given."""
        self.steps.on_phase("plan")
        try:
            made = self._make_plan()
        except NoPasswords as error:
            self._ask_passwords(error)
            made = self._make_plan()
        self.made = made
        self.steps.on_plan(made)
        if given is not None:
            keep_given_mapping(self.options.kind, given)
        return Plan(made.folder)

    def _make_plan(self) -> PlanResult:
        try:
            return make_plan(self.options, on_inputs=self._pull_first)
        except OtherCurrency as error:
            self._accept_currency(error)
            return make_plan(self.options, on_inputs=self._pull_first)

    def _pull_first(self, inputs: Inputs) -> None:
        """Pulls the list that the file is compared with, once the file is known to have all that is needed."""
        if KINDS[self.options.kind].has_login:
            if self.options.passwords is not None:
                password_source(self.options, inputs)
            self._pull(self.options.max_age_h)
            self.steps.on_phase("plan")

    def _pull(self, max_age_h: float) -> bool:
        def on_reason(reason: str) -> None:
            self.steps.on_phase("pull")
            self.steps.on_step("pull", reason)

        return pull_list(self.options.kind, max_age_h, self.steps.pull, on_reason, self.steps.texts)

    def _accept_currency(self, error: OtherCurrency) -> None:
        """Takes a kept mapping with the other currency, if a person says that it is right.

        Raises:
            OtherCurrency: nobody says so, or the mapping is a person's own.
        """
        options = self.options
        if options.mapping is None or not is_kept(options.mapping) or self.interview is None:
            raise error
        mapping = load(options.mapping, options.kind, options.lookups)
        columns = dict(mapping.columns)
        for name, change in error.columns.items():
            values = {"column": name, "found": change.found, "before": change.named}
            question = FileQuestion(topic="currency", about=name, values=values)
            if self.interview.ask_one(question) != YES:
                raise error
            formats = replace(columns[name].formats, currency=change.found)
            columns[name] = replace(columns[name], formats=formats)
        self.options = replace(options, mapping=keep_mapping(replace(mapping, columns=columns)))

    def _verify(self, result: ImportResult) -> None:
        """Writes the result of each line, reads back what was sent, and compares it."""
        try:
            self._write_result(result)
            self._read_back(result)
            if result.file is not None:
                mark_ended(result.plan)
        except BridgeError as error:  # what was sent is in the ledger: the next import verifies it
            result.error = error
        except KeyboardInterrupt:  # the result of the push is shown all the same
            result.push.stopped = True

    def _write_result(self, result: ImportResult) -> None:
        """Writes the workbook. An error hides nothing of what was sent."""
        inputs = self.made.inputs if self.made is not None else None
        try:
            if inputs is not None:
                keep_records(inputs)
            result.file = self.workbook = write_result(
                result.plan, inputs, self.steps.language, has_ended=False
            )
        except UsageError as error:
            result.error = error

    def _read_back(self, result: ImportResult) -> None:
        """Reads the list of what was sent, and compares it."""
        # what somebody else created is not in the list that was read before
        max_age_h = 0.0 if result.push.lines["unsent", "exists_now"] else math.inf
        if self._pull(max_age_h):
            # once more if that went on with a walk that began before the last of them was sent
            self._pull(math.inf)
        else:
            publish_push_log(result.plan.manifest.plan_id, result.push.observed)
        self.steps.on_phase("verify")
        result.verification = verify(result.plan.folder)


def _with_known_lookups(options: ImportOptions) -> ImportOptions:
    """The options with the lookup files of the plan whose rejected rows are corrected, if that was pushed from here.

    The plan of somebody else could name any file of this machine.
    """
    with suppress(UsageError), Ledger.open(ledger_path(), readonly=True) as ledger:
        manifest = Plan(options.file.parent).manifest
        if ledger.pushes(manifest.plan_id) is not None:
            known = [Path(file.path) for file in manifest.lookups]
            return replace(options, lookups=(*options.lookups, *known))
    return options


def _unfinished_plan(options: ImportOptions) -> Plan | None:
    """The last plan of this file, mapping and settings, as they are, that was pushed and has not ended.

    It has operations left; or it is the newest one, and what it sent was not read back.
    """
    settings = legacy_settings()
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        target = (options.kind, ledger.host_name(settings.base_url))
        begun = [
            (one.plan_id, one.folder)
            for one in reversed(ledger.open_plans())
            if (one.kind, one.host) == target
        ]
        newest = ledger.newest_plan(*target)
    if newest is not None and was_cut_off(Path(newest[1])):
        begun.append(newest)
    given = [
        os.path.realpath(path) if path is not None else None
        for path in (options.file, options.mapping)
    ]
    for plan_id, folder in begun:
        plan = intact_plan(plan_id, folder)
        if plan is not None and changes_since(plan, settings) is None:
            files = (plan.manifest.input, plan.manifest.mapping)
            if [file.path if file is not None else None for file in files] == given:
                return plan
    return None


def _check_passwords(plan: Plan, passwords: Passwords | None) -> None:
    """A plan that was begun keeps its source of passwords. Raises UsageError if another one is given."""
    first = next(plan.operations(), None)
    source = first.password if first is not None else None
    if passwords is not None and source is not None and source != PASSWORD_SOURCES[passwords]:
        begun = plan.made_passwords
        begun_with = ("--passwords", begun) if begun is not None else ()
        command = typed_command(*begun_with, without="--passwords")
        raise UsageError(
            f"the import of this file was begun with {f'--passwords {begun}' if begun else 'passwords of the file'}",
            f"{plan.folder} has what was sent. To go on: {command}",
        )


def _check_agreed_plan(plan: Plan, agreed_as: str) -> None:
    """Raises UsageError if the file would send something else now than what somebody has agreed to."""
    if agreed_as and plan.manifest.operations and plan.agreed_as != agreed_as:
        left, _ = operations_left(plan)
        message = f"{describe_plan(plan)}, which is not what was agreed to"
        raise UsageError(message, str(agreeing_step(plan, left)))


def _agreed(plan: Plan, options: PushOptions, steps: ImportSteps) -> PushOptions:
    """The options of the push, once somebody has agreed to what it sends; where nothing is left, that needs nobody.

    Raises:
        UsageError: nobody did, or the plan has more operations left than `confirm`.
    """
    manifest = plan.manifest
    left, doubts = operations_left(plan)
    if options.confirm is not None and left > options.confirm:
        command = typed_command("--confirm", str(left))
        hint = f"Nothing was sent. Read {plan.folder / 'summary.md'}, then: {command}"
        raise UsageError(f"{describe_plan(plan)}, more than --confirm {options.confirm}", hint)
    is_given = options.confirm is not None or (options.agreed and manifest.environment == "sandbox")
    if not is_given and left and not steps.agree(plan, examples(plan, steps.texts)):
        has_begun = doubts or left < manifest.operations
        removable = "" if has_begun else f"\n  {plan.folder} has it, and may be removed."
        raise UsageError(describe_plan(plan), f"{agreeing_step(plan, left)}{removable}")
    return replace(options, agreed=True, confirm=manifest.operations)
