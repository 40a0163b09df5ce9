"""Plan: a file of the ERP's to a folder that says what will be sent, and why the rest will not (design §8).

In: a file, a mapping, and what is known of the platform. Out: the plan's folder, whole or not at all. The file is
walked once; inputs wait on disk, what they are found by in memory. Nothing is sent. The same input gives the same
bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Final, Literal, get_args

import msgspec
import pyarrow.compute as pc

from pipelines.imports import Inputs, open_inputs
from pipelines.mapping import Mapping, load, to_toml
from pipelines.plan import current_state
from pipelines.plan.decide import ByHash, ByLedger, ByWarehouse, Decider
from pipelines.plan.dedupe import partition
from pipelines.plan.folder import hidden_folder, plan_disk_errors, publish
from pipelines.plan.model import (
    LINES_FILE,
    MANIFEST_FILE,
    MAPPING_FILE,
    OPERATIONS_FILE,
    SUMMARY_FILE,
    LineOutcome,
    Manifest,
    PasswordSource,
    PlanFile,
    file_sha256,
    sent_as,
)
from pipelines.plan.outcomes import Outcomes, counted, firsts, reasons, skipped, write
from pipelines.plan.rejects import write_rejects
from pipelines.plan.requests import RequestOptions
from pipelines.plan.spool import InputSpool
from pipelines.plan.summary import Facts, summary
from sources import __version__
from sources.disk import create_private
from sources.errors import ExitCode, UsageError
from sources.kinds import KINDS, KindName, additive_fields, increment_fields
from sources.settings import LegacySettings, ledger_path, legacy_settings, warehouse_path

BATCH_SIZE: Final = 100
ID_CHARS, ID_SHOWN = 32, 12
_SPOOL: Final = ".spool"


@dataclass(frozen=True, slots=True)
class PlanOptions:
    """What a plan is asked for.

    Attributes:
        kind, file: what the file holds.
        mapping: None: it is proposed from the headers.
        out: the plan's folder; None: `plan-KIND-ID` in the current one.
        passwords: of new customers, where no column holds them: `mail` or `file`; None: as the mapping says.
        notify: whether new customers get a message.
        batch_size: operations of a batch.
    """

    kind: KindName
    file: Path
    mapping: Path | None = None
    out: Path | None = None
    save_mapping: Path | None = None
    passwords: Literal["mail", "file"] | None = None
    notify: bool = False
    batch_size: int = BATCH_SIZE


@dataclass(frozen=True, slots=True)
class PlanResult:
    """A plan that was made.

    Attributes:
        is_new: it was not there already.
        created_since: customers that pushes created after those that the plan knows of were read.
    """

    folder: Path
    manifest: Manifest
    facts: Facts
    is_new: bool
    created_since: int = 0

    @property
    def exit_code(self) -> int:
        """5 where rows were rejected."""
        return ExitCode.REJECTED if self.facts.reasons else 0


def make(wanted: PlanOptions, proposed: Callable[[list[str]], object] = list) -> PlanResult:
    """Makes a plan (design §5, `orderbridge plan`).

    Args:
        wanted: what is asked for.
        proposed: called with what the columns are read as, where no mapping was given.

    Raises:
        UsageError: settings, file or mapping cannot be used; it is not known what the platform has; another plan lies
            in the folder.
        BridgeError: the lines do not add up.
    """
    settings = legacy_settings()
    if KINDS[wanted.kind].has_login and settings.login_mode is None:
        raise UsageError(
            "it is not told how customers log in",
            "Set sources.legacy.login_mode (SOURCES__LEGACY__LOGIN_MODE) to `email` or `code`.",
        )
    inputs = _opened(wanted, settings)
    if wanted.save_mapping is not None:
        _save(inputs.mapping, wanted.save_mapping)
    if wanted.mapping is None:
        proposed(inputs.mapping.explain())
    passwords = _passwords(wanted, inputs) if KINDS[wanted.kind].has_login else None
    wishes = RequestOptions(wanted.batch_size, additive_fields(settings.semantics), passwords, wanted.notify)
    parent = (wanted.out or Path("plan")).absolute().parent
    with hidden_folder(parent) as folder:
        manifest, facts = _written(folder, wanted, settings, inputs, wishes)
        target = wanted.out or Path(f"plan-{wanted.kind}-{manifest.plan_id[:ID_SHOWN]}")
        is_new = publish(folder, target.absolute())
    since = (
        current_state.created_since(ledger_path(), settings.base_url, manifest.read) if manifest.read is not None else 0
    )
    return PlanResult(target, manifest, facts, is_new, since)


def _written(
    folder: Path, wanted: PlanOptions, settings: LegacySettings, inputs: Inputs, wishes: RequestOptions
) -> tuple[Manifest, Facts]:
    """All files of the plan, in a folder of its own."""
    host = settings.base_url
    rests_on = [PlanFile(path=str(path.resolve()), sha256=file_sha256(path)) for path in inputs.files]
    people = current_state.customers(warehouse_path(), host) if KINDS[wanted.kind].has_login else None
    decider = _decider(wanted, settings, people)
    outcomes = Outcomes()
    with InputSpool(folder / _SPOOL, wanted.kind) as spool:
        made = partition(inputs, spool, outcomes, decider, wishes, folder)
    in_full = to_toml(_in_full(inputs))
    with create_private(folder / MAPPING_FILE) as out:
        out.write(in_full.encode())
    unsent = outcomes.whole()
    write(folder, unsent, decider.differences)
    problems = unsent.filter(pc.equal(unsent["outcome"], "rejected")).select(["line", "field", "code", "words"])
    why = {line: tuple(told) for line, *told in zip(*problems.to_pydict().values(), strict=True)}
    write_rejects(folder, inputs.table, inputs.mapping.read_options, why, inputs.password_column, inputs.mapping)
    if any(file.sha256 != file_sha256(Path(file.path)) for file in rests_on):
        raise UsageError(f"{wanted.file.name}, or what its mapping names, changed while it was planned", "Plan again.")
    counts = counted(unsent)
    facts = Facts(
        inputs=made.inputs,
        reasons=reasons(unsent),
        skipped=skipped(unsent),
        firsts=firsts(unsent),
        jumps=decider.jumps if isinstance(decider, ByLedger) else (),
        jumps_in_all=decider.jumps_in_all if isinstance(decider, ByLedger) else 0,
        once=made.once,
        notes=inputs.notes,
        passwords=wishes.passwords,
    )
    manifest = Manifest(
        plan_id="",
        version=__version__,
        kind=wanted.kind,
        host=host,
        environment=settings.environment,
        login_mode=settings.login_mode if KINDS[wanted.kind].has_login else None,
        input=rests_on[0],
        mapping=rests_on[1] if wanted.mapping is not None else None,
        lookups=tuple(rests_on[2 if wanted.mapping is not None else 1 :]),
        format=asdict(inputs.table.format),
        mapping_toml=in_full,
        read=people.read if people is not None else None,
        lines=made.lines,
        outcomes={sent_as(wanted.kind): made.sent, **{name: counts.get(name, 0) for name in get_args(LineOutcome)}},
        operations=made.operations,
        operations_sha256=file_sha256(folder / OPERATIONS_FILE),
        lines_sha256=file_sha256(folder / LINES_FILE),
        messages=made.messages,
        password_column=inputs.password_column,
    )
    content = msgspec.json.encode([manifest, facts])
    plan_id = current_state.new_id(ledger_path(), content, ID_CHARS)
    manifest = msgspec.structs.replace(manifest, plan_id=plan_id)
    with create_private(folder / MANIFEST_FILE) as out:
        out.write(msgspec.json.format(msgspec.json.encode(manifest), indent=1) + b"\n")
    with create_private(folder / SUMMARY_FILE) as out:
        out.write(summary(manifest, facts, "PLAN").encode())
    return manifest, facts


def _opened(wanted: PlanOptions, settings: LegacySettings) -> Inputs:
    mapping = load(wanted.mapping, wanted.kind) if wanted.mapping is not None else None
    if mapping is not None and wanted.passwords is not None:
        mapping = mapping.with_passwords(wanted.passwords)
    return open_inputs(wanted.kind, wanted.file, mapping, login_mode=settings.login_mode, semantics=settings.semantics)


def _in_full(inputs: Inputs) -> Mapping:
    """The mapping with what the file proved, so that a part of the file, its rejects, is read as the whole was."""
    columns = dict(inputs.mapping.columns)
    for name, notation in inputs.notations.items():
        formats = replace(columns[name].formats, decimal=notation.decimal, thousands=notation.thousands)
        columns[name] = replace(columns[name], formats=formats)
    lookups = tuple(replace(lookup, file=str(lookup.path.resolve())) for lookup in inputs.mapping.lookups)
    return replace(inputs.mapping, columns=columns, lookups=lookups)


def _save(mapping: Mapping, path: Path) -> None:
    """Writes a mapping file that was not there."""
    with plan_disk_errors(path.absolute().parent):
        if path.exists():
            raise UsageError(f"{path} is there already", "Name another file with --save-mapping.")
        with create_private(path) as out:
            out.write(to_toml(mapping).encode())


def _decider(wanted: PlanOptions, settings: LegacySettings, people: current_state.Customers | None) -> Decider:
    if people is not None:
        return ByWarehouse(people)
    if KINDS[wanted.kind].is_update:
        confirmed = current_state.variants(ledger_path(), settings.base_url)
        return ByLedger(confirmed, increment_fields(settings.semantics))
    return ByHash(current_state.created(ledger_path(), settings.base_url, wanted.kind))


def _passwords(wanted: PlanOptions, inputs: Inputs) -> PasswordSource:
    """Where the push gets the passwords of new customers. Raises UsageError where nobody says."""
    if inputs.password_column is not None:
        if wanted.passwords is not None:
            raise UsageError(
                f"the column {inputs.password_column!r} holds the passwords, and --passwords would make others",
                "Leave --passwords out, or ignore the column in the mapping.",
            )
        return "input"
    make = wanted.passwords or inputs.mapping.generate_passwords
    if make is None:
        raise UsageError(
            "a new customer needs a password, and nothing says which",
            "One of: a column mapped to `password`; --passwords mail (made, and mailed by the platform); --passwords "
            "file (made, and kept in a file for you alone). Or `make` under [passwords] in the mapping.",
        )
    return "mailed" if make == "mail" else "stored"
