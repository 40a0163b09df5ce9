"""Plan: from a file of the ERP to a folder with what will be sent, and why the rest will not (docs/reference/plans.md).

In: a file, a mapping, and what is known about the platform. Out: the plan folder, whole or not at all. The file is read
once; its inputs stay in memory, as columns. Nothing is sent. The same input gives the same bytes.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from collections.abc import Mapping as Pairs
from dataclasses import asdict, dataclass, field
from functools import cache, partial
from pathlib import Path
from typing import Any, Final, Literal, get_args

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.imports import Inputs, open_inputs
from orderbridge.pipelines.ledger.hosts import check_host
from orderbridge.pipelines.ledger.model import State
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import Mapping, load, to_toml
from orderbridge.pipelines.plan import current_state
from orderbridge.pipelines.plan.alike import ALIKE_FILE, KeptPairs
from orderbridge.pipelines.plan.corrections import check_all_lines
from orderbridge.pipelines.plan.decide import CreateDecider, CustomerDecider, Decider, UpdateDecider
from orderbridge.pipelines.plan.dedupe import partition
from orderbridge.pipelines.plan.folder import has_plan, hidden_folder, publish_folder
from orderbridge.pipelines.plan.lookup_records import moved_lines
from orderbridge.pipelines.plan.lost_zeros import CODE as ZEROS_LOST
from orderbridge.pipelines.plan.lost_zeros import ZEROS_FILE, KeptZeros, zeros_of_rejects
from orderbridge.pipelines.plan.model import (
    LINES_FILE,
    MANIFEST_FILE,
    MAPPING_FILE,
    OPERATIONS_FILE,
    PASSWORD_SOURCES,
    SUMMARY_FILE,
    LineOutcome,
    Manifest,
    PasswordSource,
    Plan,
    PlanFile,
    file_sha256,
    sent_as,
)
from orderbridge.pipelines.plan.outcomes import (
    FIRST_LINES,
    Outcomes,
    lines_by_outcome,
    reasons,
    write_outcomes,
)
from orderbridge.pipelines.plan.pushed_columns import explain_columns, mapping_as_pushed
from orderbridge.pipelines.plan.rejects import RejectsWriter, check_codes
from orderbridge.pipelines.plan.replaced import confirmed_fields, replaced_sha256
from orderbridge.pipelines.plan.requests import RequestWriter
from orderbridge.pipelines.plan.row_checks import is_checked_as_before, note_of_unchecked
from orderbridge.pipelines.plan.summary import PlanStatistics, summary
from orderbridge.pipelines.plan.suspicious import SuspiciousValues
from orderbridge.pipelines.warehouse.accepted_changes import AcceptedChanges
from orderbridge.pipelines.warehouse.answers.reviews import read_reviews
from orderbridge.sources import __version__
from orderbridge.sources.command_line import run_again, typed_command
from orderbridge.sources.disk import create_private, file_version, first_free, usable_path
from orderbridge.sources.errors import ExitCode, UsageError
from orderbridge.sources.kinds import KINDS, KindName, additive_fields, increment_fields
from orderbridge.sources.settings import (
    LegacySettings,
    find_root,
    ledger_path,
    legacy_settings,
    own_path,
    project_file,
    reconcile_settings,
    warehouse_path,
)
from orderbridge.transforms.frames import from_arrow

BATCH_SIZE: Final = 100
_ID_LENGTH: Final = 32
_ID_SHOWN: Final = 12


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """Options of `orderbridge plan`.

    Attributes:
        mapping: mapping file; None proposes a mapping from the headers.
        out: the plan folder; None: `plan-KIND-ID` in the project.
        passwords: of new customers, if no column contains them; None: as the mapping says.
        passwords_if_new: a file without new customers needs no source of passwords.
        lookups: lookup files that the mapping may name outside its own folder.
        send_all: send every field of updates, also where it is as last confirmed.
        holds_damaged: nobody looks at the plan before it is sent: inputs whose texts lost letters are held.
        is_watched: a person is at the terminal, so that lines are checked by all rules (`row_checks`).
    """

    kind: KindName
    file: Path
    mapping: Path | None = None
    out: Path | None = None
    passwords: Literal["mail", "file"] | None = None
    passwords_if_new: bool = False
    notify: bool = False
    batch_size: int = BATCH_SIZE
    lookups: tuple[Path, ...] = ()
    send_all: bool = False
    holds_damaged: bool = False
    is_watched: bool = False


class NoPasswords(UsageError):
    """Nothing says where the passwords of new customers come from."""


@dataclass(slots=True)
class PlanResult:
    """A plan that was made.

    Attributes:
        is_new: whether the folder did not exist before.
        earlier_changes: that the plan's increments may repeat.
        pushed: number of its operations in each state, if it was pushed before.
    """

    folder: Path
    manifest: Manifest
    statistics: PlanStatistics
    is_new: bool
    inputs: Inputs
    earlier_changes: current_state.EarlierChanges | None = None
    pushed: Pairs[State, int] = field(default_factory=dict)

    @property
    def exit_code(self) -> ExitCode:
        """5 if rows were rejected."""
        return ExitCode.REJECTED if self.statistics.reasons else ExitCode.DONE


def check_login_mode(kind: KindName, settings: LegacySettings) -> None:
    """Raises UsageError if the kind needs to know how customers log in, and no setting says so."""
    if KINDS[kind].has_login and settings.login_mode is None:
        raise UsageError(
            "it is not known how customers log in",
            "Answer it: orderbridge answer sources.legacy.login_mode email\n"
            "  or:        orderbridge answer sources.legacy.login_mode code\n"
            "  What your customers have: orderbridge questions sources.legacy.login_mode",
        )


def make_plan(
    options: PlanOptions,
    on_proposal: Callable[[list[str]], object] = list,
    on_inputs: Callable[[Inputs], object] = id,
) -> PlanResult:
    """Makes a plan (`orderbridge plan`).

    If no mapping was given, `on_proposal` is called with a line per column of the proposed one; `on_inputs` is called
    before it is looked up what the platform has.

    Raises:
        UsageError: settings, file or mapping cannot be used; it is not known what the platform has; the folder contains
            another plan.
        BridgeError: the lines do not add up.
    """
    settings = legacy_settings()
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        # before they are read: a change in between is noticed
        versions = [(options.file, file_version(options.file))]
        mapping, others = _find_mapping(options, settings, ledger)
        versions += others
        inputs = _open(options, settings, mapping)
        if options.mapping is None:
            on_proposal(explain_columns(inputs.mapping, inputs.table))
        parent = own_path(usable_path((options.out or project_file("plan")).absolute())).parent
        on_inputs(inputs)
        warehouse = warehouse_path()
        with current_state.one_version(warehouse):
            organization = current_state.known_organization(warehouse, settings, ledger)
            ledger.check_newest()
            check_host(settings, ledger)
            maker = _PlanMaker(options, settings, inputs, ledger, organization)
        with hidden_folder(parent) as folder:
            manifest, statistics = maker.write(folder, versions)
            name = f"plan-{options.kind}-{manifest.plan_id[:_ID_SHOWN]}"
            target = options.out or first_free(
                project_file(""), name, partial(has_plan, folder=folder)
            )
            is_new = publish_folder(folder, target.absolute())
        result = PlanResult(
            target, manifest, statistics, is_new, inputs, pushed=ledger.counts(manifest.plan_id)
        )
        if increments := increment_fields(manifest.semantics):
            result.earlier_changes = current_state.earlier_changes(
                ledger, settings.base_url, Plan(target), increments
            )
    return result


def _find_mapping(
    options: PlanOptions, settings: LegacySettings, ledger: Ledger
) -> tuple[Mapping | None, list[tuple[Path, tuple[int, ...]]]]:
    """The mapping, and the files that it was read from with their versions; None: it is proposed.

    Without a mapping file it is that of the last pushed plan of such a file. Its lines are checked as those of that
    plan were, unless a person is there.
    """
    versions: list[tuple[Path, tuple[int, ...]]] = []
    mapping: Mapping | None
    if options.mapping is not None:
        versions.append((options.mapping, file_version(options.mapping)))
        given = load(options.mapping, options.kind, options.lookups)
        mapping = given.with_passwords(options.passwords)
        versions += [(lookup.path, file_version(lookup.path)) for lookup in mapping.lookups]
    else:
        mapping = mapping_as_pushed(ledger, settings.base_url, options.kind, options.file)
    if mapping is None or options.is_watched:
        return mapping, versions
    is_as_before = is_checked_as_before(
        ledger, settings.base_url, options.kind, options.file, mapping
    )
    return mapping.with_row_checks(all_checks=not is_as_before), versions


def _open(options: PlanOptions, settings: LegacySettings, mapping: Mapping | None) -> Inputs:
    """The inputs of the file. Raises UsageError."""
    login_mode, semantics = settings.login_mode, settings.semantics
    inputs = open_inputs(
        options.kind, options.file, mapping, login_mode=login_mode, semantics=semantics
    )
    if not inputs.mapping.read_options.checks_rows:
        unchecked = note_of_unchecked(options.kind, options.file, inputs.mapping)
        inputs.notes += [unchecked] if unchecked else []
    check_codes(inputs, options.file)
    check_all_lines(inputs, options.file)
    return inputs


class _PlanMaker:
    """Writes the files of a plan.

    Raises:
        UsageError: something that the plan needs is missing; all of it is named.
    """

    def __init__(
        self,
        options: PlanOptions,
        settings: LegacySettings,
        inputs: Inputs,
        ledger: Ledger,
        organization: str | None,
    ) -> None:
        self.options = options
        self.settings = settings
        self.inputs = inputs
        self.ledger = ledger
        self.organization = organization
        self.kind = KINDS[options.kind]
        self.confirmed = pa.table({})
        self.always: frozenset[str] | None = frozenset()
        self.increments = increment_fields(settings.semantics)
        self.statistics = PlanStatistics(notes=inputs.notes, notify=options.notify)
        self.customers: current_state.CurrentCustomers | None = None
        if self.kind.has_login:
            self._require_customer_settings()
        self.decider = self._decider()

    def _require_customer_settings(self) -> None:
        """What only customers need: a login mode, a source of passwords, the customers of the platform."""
        found: list[Any] = []
        missing: list[UsageError] = []
        for find in (
            lambda: check_login_mode(self.options.kind, self.settings),
            self._password_source,
            lambda: current_state.current_customers(warehouse_path(), self.settings.base_url),
        ):
            try:
                found.append(find())
            except UsageError as error:
                missing.append(error)
        if len(missing) > 1:
            hints = "\n".join(f"- {error.message}\n  {error.hint}" for error in missing)
            raise UsageError(f"{len(missing)} things are missing for this plan", f"\n{hints}")
        if missing:
            raise missing[0]
        _, self.statistics.passwords, self.customers = found

    def _password_source(self) -> PasswordSource | None:
        """The source of passwords; None where it is only needed if there are new customers. Raises UsageError."""
        try:
            return password_source(self.options, self.inputs)
        except NoPasswords:
            if not self.options.passwords_if_new:
                raise
            return None

    def _decider(self) -> Decider:
        settings = self.settings
        mapping = self.inputs.mapping
        is_sheet = self.options.file.suffix.casefold() == ".xlsx"
        dates = {one.name for one in self.kind.record.fields if one.type == "date"}
        country = reconcile_settings().country if self.kind.has_login else None
        suspicious = SuspiciousValues(self.increments, dates, is_sheet=is_sheet, country=country)
        common = suspicious, self.statistics
        if self.customers is not None:
            accepted = current_state.accepted_differences()
            table = self.inputs.table
            answered = {one.file for one in AcceptedChanges.read().codes}
            return CustomerDecider(
                *common,
                self.customers,
                country,
                accepted,
                partial(self.ledger.created_as, settings.base_url),
                file=None if table.sha256 in answered else table.sha256,
                lost_zeros=zeros_of_rejects(self.options.file) if table.is_excerpt else [],
                reviews=cache(read_reviews),
            )
        if self.kind.is_update:
            self.confirmed = confirmed_fields(self.ledger, settings.base_url)
            self.always = None if self.options.send_all else mapping.always_sent(settings.semantics)
            return UpdateDecider(
                *common, self.kind, from_arrow(self.confirmed), self.increments, self.always
            )
        return CreateDecider(
            *common, self.kind, partial(self.ledger.is_created, settings.base_url, self.kind.name)
        )

    def _keep_evidence(self, folder: Path, lines: pa.Table) -> None:
        """Writes why customers are held, for the rejected rows of the file, and for who answers."""
        decider = self.decider
        if not isinstance(decider, CustomerDecider):
            return
        path = os.path.realpath(self.options.file)
        sha256 = self.inputs.table.sha256
        kept: dict[str, msgspec.Struct] = {}
        if decider.lost_zeros:
            is_held = pc.equal(lines["code"], ZEROS_LOST)
            count = pc.sum(is_held).as_py() or 0
            kept[ZEROS_FILE] = KeptZeros(path, sha256, count, decider.lost_zeros)
        if decider.alike:
            kept[ALIKE_FILE] = KeptPairs(path, sha256, decider.alike)
        for name, evidence in kept.items():
            with create_private(folder / name) as out:
                out.write(msgspec.json.encode(evidence))

    def write(
        self, folder: Path, versions: list[tuple[Path, tuple[int, ...]]]
    ) -> tuple[Manifest, PlanStatistics]:
        """Writes all files of the plan into a folder of its own.

        `versions` are those of the input, the mapping and the lookups when they were opened.
        """
        options, inputs = self.options, self.inputs
        outcomes = Outcomes()
        writer = RequestWriter(
            self.kind, options.batch_size, additive_fields(self.settings.semantics), self.statistics
        )
        lines_read, lines_sent = partition(
            inputs,
            outcomes,
            self.decider,
            writer,
            folder,
            holds_damaged=options.holds_damaged,
            logs_in_by_address=self.kind.has_login and self.settings.login_mode == "email",
        )
        if self.kind.has_login and writer.operations and self.statistics.passwords is None:
            password_source(options, inputs)
        mapping_toml = to_toml(inputs.complete_mapping().with_passwords(options.passwords))
        with create_private(folder / MAPPING_FILE) as out:
            out.write(mapping_toml.encode())
        lines = outcomes.table()
        write_outcomes(
            folder, lines, self.decider.differences, inputs.table.format.delimiter or ","
        )
        self._keep_evidence(folder, lines)
        RejectsWriter(inputs.table, inputs.mapping, _problems(lines)).write(folder)
        files = self._input_files(versions)
        counts = {sent_as(options.kind): lines_sent, **self._count(lines)}
        manifest = self._manifest(folder, files, mapping_toml, lines_read, counts, writer)
        with create_private(folder / MANIFEST_FILE) as out:
            written = msgspec.json.encode(manifest.with_paths(_portable))
            out.write(msgspec.json.format(written, indent=1) + b"\n")
        with create_private(folder / SUMMARY_FILE) as out:
            out.write(summary(manifest, self.statistics, Path()).encode())
        return manifest, self.statistics

    def _input_files(self, versions: list[tuple[Path, tuple[int, ...]]]) -> list[PlanFile]:
        """The files that were read, with their hashes.

        Raises:
            UsageError: one of them was changed since it was opened.
        """
        hashes = [self.inputs.table.sha256, *(file_sha256(path) for path, _ in versions[1:])]
        files = [
            # `Path.resolve` raises for a loop of links
            PlanFile(path=os.path.realpath(path), sha256=sha256)
            for (path, _), sha256 in zip(versions, hashes, strict=True)
        ]
        if any(file_version(path) != version for path, version in versions):
            raise UsageError(
                f"{self.options.file.name}, or a file named by its mapping, was changed while it was planned",
                f"Nothing was sent. When the file is complete, {run_again()}",
            )
        return files

    def _count(self, lines: pa.Table) -> dict[str, int]:
        """Completes the statistics. Returns the number of lines by outcome, without those that are sent."""
        statistics = self.statistics
        statistics.reasons = reasons(lines, "rejected")
        statistics.skipped = reasons(lines, "skipped")
        for columns, moved in moved_lines(self.inputs):
            self.decider.suspicious.count(columns, "lookup_moved", moved)
        statistics.suspicious = self.decider.reasons()
        by_outcome = lines_by_outcome(lines)
        statistics.first_lines = {
            name: at.slice(0, FIRST_LINES).to_pylist() for name, at in by_outcome.items()
        }
        return {name: len(by_outcome.get(name, ())) for name in get_args(LineOutcome)}

    def _manifest(
        self,
        folder: Path,
        files: list[PlanFile],
        mapping_toml: str,
        lines_read: int,
        counts: dict[str, int],
        writer: RequestWriter,
    ) -> Manifest:
        """The manifest of the plan whose operations and lines are in this folder."""
        options, settings, inputs = self.options, self.settings, self.inputs
        statistics = self.statistics
        input_file, *others = files
        replaces = None
        if self.kind.is_update:
            replaces = replaced_sha256(self.confirmed, self.increments, folder)
        manifest = Manifest(
            plan_id="",  # follows from the rest
            version=__version__,
            kind=options.kind,
            host=settings.base_url,
            environment=settings.environment,
            login_mode=settings.login_mode if self.kind.has_login else None,
            semantics=settings.semantics if self.kind.is_update else {},
            input=input_file,
            mapping=others.pop(0) if options.mapping is not None else None,
            lookups=tuple(others),
            format=asdict(inputs.table.format),
            mapping_toml=mapping_toml,
            replaces=replaces,
            read=self.customers.read if self.customers is not None else None,
            lines=lines_read,
            outcomes=counts,
            operations=writer.operations,
            operations_sha256=file_sha256(folder / OPERATIONS_FILE),
            lines_sha256=file_sha256(folder / LINES_FILE),
            messages=writer.messages,
            suspicious=statistics.jump_count + sum(one.lines for one in statistics.suspicious),
            password_column=inputs.password_column,
            checks_rows=inputs.mapping.read_options.checks_rows,
        )
        # the organization is not in the id
        plan_id = self._plan_id(manifest)
        return msgspec.structs.replace(manifest, plan_id=plan_id, organization=self.organization)

    def _plan_id(self, manifest: Manifest) -> str:
        """The id of the plan, derived from its content (`current_state.new_plan_id`)."""
        paths = {path for column in self.inputs.mapping.columns.values() for path in column.paths}
        # values that are always sent are sent again by a plan made later, but never increments
        sends_again = self.always != frozenset() and paths.isdisjoint(self.increments)
        content = msgspec.json.encode([manifest, self.statistics])
        return current_state.new_plan_id(self.ledger, content, _ID_LENGTH, sends_again=sends_again)


def _problems(lines: pa.Table) -> dict[int, tuple[str, str, str]]:
    """Field, code and words of the rejected lines."""
    rejected = lines.filter(pc.equal(lines["outcome"], "rejected"))
    columns = (rejected[name].to_pylist() for name in ("line", "field", "code", "words"))
    return {line: (field, code, words) for line, field, code, words in zip(*columns, strict=True)}


def password_source(options: PlanOptions, inputs: Inputs) -> PasswordSource:
    """Where the push takes the passwords of new customers from.

    Raises:
        NoPasswords: that is not given.
        UsageError: it is given twice.
    """
    if inputs.password_column is not None:
        if options.passwords is not None:
            raise UsageError(
                f"--passwords would generate passwords, but the column {inputs.password_column!r} contains them",
                f"Ignore the column in the mapping, or omit --passwords: {typed_command(without='--passwords')}",
            )
        return "input"
    make = options.passwords or inputs.mapping.generate_passwords
    if make is None:
        raise NoPasswords(
            "a new customer needs a password, and no source is given",
            f"Generated, and mailed by the platform: {typed_command('--passwords', 'mail')}\n"
            f"  or generated, and stored in a file for you: {typed_command('--passwords', 'file')}\n"
            "  or map a column of the file to `password`.",
        )
    return PASSWORD_SOURCES[make]


def _portable(path: str) -> str:
    """A path relative to the project, if it is in it."""
    root = os.path.realpath(find_root())
    return os.path.relpath(path, root) if Path(path).is_relative_to(root) else path
