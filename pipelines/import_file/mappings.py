"""Mappings that remember: the one of a file is found again by the kind and the header, or proposed, asked and kept.

In: a file without a mapping of its own. Out: the path of its mapping, `mappings/KIND.toml` beside the warehouse (the
next ones `KIND-2.toml` …), which a person can edit. A column that the file has got since is no hindrance; one that the
mapping uses has to be there.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from operator import attrgetter
from pathlib import Path
from typing import Final, Literal, NamedTuple, cast

from orderbridge.pipelines.import_file.asking import (
    IGNORE,
    YES,
    FileQuestion,
    Interview,
)
from orderbridge.pipelines.import_file.lookup_proposal import (
    are_ids,
    propose_lookup,
    tables_beside,
)
from orderbridge.pipelines.import_file.marks import Marks, columns_of, with_marks
from orderbridge.pipelines.import_file.proposal import (
    PRICE_LIST,
    check_unchecked,
    propose_columns,
)
from orderbridge.pipelines.import_file.units import Units, with_units
from orderbridge.pipelines.imports.open import check_filled, open_input_table, own_columns
from orderbridge.pipelines.mapping import (
    MappedColumn,
    OutsideLookup,
    is_empty,
    is_improbable,
    load,
    sample,
    sample_of_all,
    to_toml,
)
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping.field_paths import paths_of_answer
from orderbridge.pipelines.plan.model import MANIFEST_FILE, MAPPING_FILE
from orderbridge.sources.disk import disk_errors, first_free, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import CellRules, ReadOptions, SourceTable
from orderbridge.sources.files.column_names import is_without_name
from orderbridge.sources.kinds import KINDS, PASSWORD, PASSWORD_NAME, KindName
from orderbridge.sources.settings import mappings_folder
from orderbridge.sources.words import listed

_SHARE: Final = 0.5
_MISSING: Final = 1 / 3
"""Share of a file's columns that a proposed mapping must name to be that of an earlier version of the file, and share
of the columns it uses that may be missing there: the plan then names them, since they may have been renamed."""
OnStep = Callable[[str, str], object]
_LINES_SHOWN: Final = 3
_NOTATIONS: Final = ("totals", "mark", "unit")
"""Topics of questions without whose answers a mapping is complete."""
DETECTED: Final = ReadOptions()
"""Nothing is given about how a file is read."""
_SAMPLES: Final = 12
"""Different cells of a column that are shown."""


def find_mapping(
    kind: KindName,
    file: Path,
    given: ReadOptions = DETECTED,
    lookups: Collection[Path] = (),
    on_step: OnStep = lambda *_: None,
) -> Path | None:
    """The mapping of a file: that of its plan for rejected rows, otherwise the one kept for such a header.

    Of several that read the file as `given` says, one that has all its columns, that a person gave, that names most of
    them, the newest.
    `on_step` gets the columns in which the file differs, if none is used.

    Raises:
        UsageError: a kept mapping is invalid, or others can write to it (`mappings_folder`).
    """
    if (file.parent / MANIFEST_FILE).exists() and (file.parent / MAPPING_FILE).exists():
        return file.parent / MAPPING_FILE
    fits: list[_Fit] = []
    unused: list[str] = []
    # one that does not exist is a link to what a person gave, and has removed
    for kept in filter(Path.exists, mappings_folder().glob(f"{kind}*.toml")):
        path = kept.resolve()
        try:
            mapping = load(path, kind, allowed_lookups(path, file, lookups))
        except OutsideLookup as error:
            if not is_kept(path):
                raise
            unused.append(f"not used: {error.message}")  # perhaps another file has the ids here
            continue
        fit = _fit_of(kept, mapping, file, given)
        if fit is not None and fit.is_enough:
            fits.append(fit)
        elif fit is not None:
            unused.append(f"{path} is not used: {file.name} has {fit.difference}")
    if unused and not fits:
        on_step("mapping", "\n  ".join(unused))
    return max(fits, key=attrgetter("rank")).path if fits else None


class _Fit(NamedTuple):
    """How a kept mapping fits the columns of a file.

    Attributes:
        is_given: a person gave it, and it names what it uses; a proposed one names every column.
        kept_at: nanoseconds.
        named: columns of the file that it names.
        others: the other ones.
        used: how many columns it uses.
        missing: those of them that the file does not have.
    """

    path: Path
    is_given: bool
    kept_at: int
    named: Set[str]
    others: Set[str]
    used: int
    missing: list[str]

    @property
    def is_enough(self) -> bool:
        """Whether it may be that of an earlier version of the file."""
        columns = len(self.named) + len(self.others)
        names_most = self.is_given or len(self.named) >= _SHARE * columns
        return names_most and len(self.missing) <= _MISSING * self.used

    @property
    def rank(self) -> tuple[bool, bool, int, int, Path]:
        """Larger for one that fits better."""
        has_all = not self.missing
        return has_all, self.is_given, len(self.named), self.kept_at, self.path

    @property
    def difference(self) -> str:
        """In which columns the file differs."""
        if self.missing:
            return f"no column {listed(self.missing)}"
        return f"others: {listed(sorted(self.others))}"


def _fit_of(kept: Path, mapping: ColumnMapping, file: Path, given: ReadOptions) -> _Fit | None:
    """How a kept mapping fits a file; None if it does not read the file, or in another way than what is given."""
    if not _reads_as(mapping.read_options, given):
        return None
    is_given = kept.is_symlink()
    try:
        columns = set(own_columns(open_input_table(file, mapping.read_options, mapping)))
        may_be = is_given or _may_be(file, mapping)
    except UsageError:  # its [file] is of another file
        return None
    if not may_be and given.encoding is None:
        return None
    used = mapping.used_columns
    named = columns & {*mapping.columns, *used}
    missing = [name for name in used if name not in columns]
    kept_at = kept.lstat().st_mtime_ns
    return _Fit(kept.resolve(), is_given, kept_at, named, columns - named, len(used), missing)


def _reads_as(kept: ReadOptions, given: ReadOptions) -> bool:
    """Whether a mapping reads a file with all that is given."""
    return all(
        getattr(given, name) in (None, getattr(kept, name))
        for name in ("encoding", "delimiter", "sheet")
    )


def _may_be(file: Path, mapping: ColumnMapping) -> bool:
    """Whether a file may have the encoding that a mapping names: what is valid UTF-8 has no other."""
    encoding = mapping.read_options.encoding
    if encoding is None:
        return True
    detected = replace(mapping.read_options, encoding=None)
    found = open_input_table(file, detected, mapping).format
    return found.is_encoding_assumed or found.encoding == encoding or file.read_bytes().isascii()


def new_mapping(
    kind: KindName,
    file: Path,
    passwords: Literal["mail", "file"] | None,
    interview: Interview,
    given: ReadOptions = DETECTED,
    lookups: Collection[Path] = (),
    kept: ColumnMapping | None = None,
) -> ColumnMapping | None:
    """A mapping proposed for a file and completed by a person; None if it is not complete and nobody has answered.

    `given` says how the file is read; `lookups` are files that may have ids which the file lacks, beside those in its
    folder; `kept` is the mapping of files before, see `with_kept_columns`.

    Raises:
        UsageError: the file cannot be read, or nothing fills an id that the platform requires.
    """
    table = open_input_table(file, given, None)
    samples = sample_of_all(table)
    proposed = propose_columns(own_columns(table), kind, samples).with_passwords(passwords)
    proposed = with_kept_columns(replace(proposed, read_options=given), kept)
    proposed = with_answers(proposed, interview.columns)
    proposed = _with_lookup(file, table, proposed, lookups, interview)
    if proposed.unknown:
        ids = _missing_ids(proposed)
        if not all(_may_hold(proposed, path, samples) for path in ids):
            check_filled(file, proposed, _filled(proposed), ids)
        answers = interview.ask(column_questions(proposed, samples))
        if len(answers) < len(proposed.unknown):
            check_filled(file, proposed, _filled(proposed), ids)
            check_unchecked(proposed, answers)
            return None
        proposed = with_answers(
            proposed, {name: answers[f"column/{name}"] for name in proposed.unknown}
        )
    elif not any(samples.values()):
        return None  # names alone: the next file may show more
    return _with_notations(table, proposed, interview)


def with_answers(mapping: ColumnMapping, answers: Mapping[str, str]) -> ColumnMapping:
    """The mapping with the fields that a person has given to columns, or `ignore`.

    A field that another column filled is that column's no more; where a column has passwords, none are made.
    """
    fields = {
        name: () if value == IGNORE else paths_of_answer(mapping.kind, value)
        for name, value in answers.items()
    }
    given = {path for paths in fields.values() for path in paths}
    makes_passwords = PASSWORD not in given
    return replace(
        mapping,
        columns=_answered_columns(mapping, fields, given),
        generate_passwords=mapping.generate_passwords if makes_passwords else None,
        unknown=tuple(name for name in mapping.unknown if name not in fields),
        contested=_open_contests(mapping, fields, given),
        doubtful={name: path for name, path in mapping.doubtful.items() if name not in fields},
        unchecked=tuple(name for name in mapping.unchecked if name not in fields),
        unfilled=tuple(name for name in mapping.unfilled if name not in fields),
    )


def _answered_columns(
    mapping: ColumnMapping, fields: Mapping[str, tuple[str, ...]], given: Set[str]
) -> dict[str, MappedColumn]:
    """The columns with the fields that were given to some, without these fields in others."""
    columns: dict[str, MappedColumn] = {}
    for name, column in mapping.columns.items():
        has_lost_field = name not in fields and not given.isdisjoint(column.paths)
        columns[name] = MappedColumn(name, None) if has_lost_field else column
    for name, paths in fields.items():
        before = columns.get(name)
        if before is None or before.paths != paths:
            is_unproven = before is not None or name in mapping.doubtful
            field, *also = paths or (None,)
            is_answered = field is not None and is_unproven
            columns[name] = MappedColumn(
                name, field, tuple(filter(None, also)), answered=is_answered
            )
    return columns


def _open_contests(
    mapping: ColumnMapping, answered: Collection[str], given: Set[str]
) -> dict[str, tuple[str, ...]]:
    """The fields that several columns match and no answer has filled, with those of them that have no answer."""
    return {
        path: tuple(name for name in names if name not in answered)
        for path, names in mapping.contested.items()
        if path not in given
    }


def with_kept_columns(proposed: ColumnMapping, kept: ColumnMapping | None) -> ColumnMapping:
    """A proposed mapping in which columns that match no field fill what they filled in files before.

    Nobody is asked about them again, unless a new column fills that.
    """
    if kept is None:
        return proposed
    new = [one for name, one in proposed.columns.items() if name not in kept.columns]
    filled = {path for column in new for path in column.paths}
    known = {
        name: kept.columns[name]
        for name in proposed.unknown
        if name in kept.columns and filled.isdisjoint(kept.columns[name].paths)
    }
    answers = {name: ",".join(column.paths) or IGNORE for name, column in known.items()}
    answered = with_answers(proposed, answers)
    return replace(answered, columns=answered.columns | known)


def with_filled_columns(table: SourceTable, kept: ColumnMapping) -> ColumnMapping:
    """A kept mapping with the price lists that had no values when it was kept, and have some now.

    Those that are not known from the platform are unknown.
    """
    if not kept.unfilled or PRICE_LIST in _filled(kept):
        return kept
    samples = sample_of_all(table)
    proposed = propose_columns(own_columns(table), kept.kind, samples)
    filled = [
        name
        for name in kept.unfilled
        if not is_without_name(name) and not is_empty(samples.get(name, ()))
    ]
    found = {name: proposed.columns[name] for name in filled if name in proposed.columns}
    unknown = tuple(name for name in proposed.unknown if name in filled)
    return replace(
        kept,
        columns=kept.columns | found,
        unknown=unknown,
        doubtful=dict.fromkeys(unknown, PRICE_LIST),
        unchecked=unknown,
        unfilled=tuple(name for name in kept.unfilled if name not in (*found, *unknown)),
    )


def with_asked_columns(
    table: SourceTable, mapping: ColumnMapping, interview: Interview
) -> ColumnMapping:
    """A kept mapping, once its unknown columns are answered. Raises UsageError where nobody has answered."""
    if not mapping.unknown:
        return mapping
    answers = interview.ask(column_questions(mapping, sample_of_all(table)))
    check_unchecked(mapping, answers)
    return with_answers(mapping, {name: answers[f"column/{name}"] for name in mapping.unknown})


def column_questions(
    proposed: ColumnMapping, samples: Mapping[str, Sequence[str]]
) -> list[FileQuestion]:
    """A question for each column that matches no field, those with a guess first."""
    contested = {name: path for path, names in proposed.contested.items() for name in names}
    guesses = proposed.guesses | proposed.doubtful | contested
    taken = frozenset(_filled(proposed))
    questions: list[FileQuestion] = []
    for name in sorted(proposed.unknown, key=lambda name: name not in guesses):
        path = guesses.get(name)
        is_free = path not in taken
        is_unchecked = name in proposed.unchecked
        is_probable = (
            path is not None and not is_unchecked and not is_improbable(path, samples[name])
        )
        question = FileQuestion(
            topic="column",
            about=name,
            values={"kind": proposed.kind, "column": name},
            samples=shown_cells(proposed.kind, name, samples[name]),
            guess=path if is_free and is_probable else None,
            may_be=path if is_free and not is_probable else None,
            taken=taken,
        )
        questions.append(question)
    return questions


def may_be_passwords(kind: str, name: str) -> bool:
    """Whether the cells of a column are not shown, by its name."""
    return KINDS[kind].has_login and PASSWORD_NAME.search(name) is not None


def shown_cells(kind: str, name: str, cells: Sequence[str]) -> tuple[str, ...]:
    """The first different cells of a column; none of one that may hold passwords."""
    if may_be_passwords(kind, name):
        return ()
    return tuple(dict.fromkeys(cell for cell in cells if cell.strip()))[:_SAMPLES]


def _with_notations(
    table: SourceTable, proposed: ColumnMapping, interview: Interview
) -> ColumnMapping:
    """The mapping with what the rows show about totals, marks and units, as far as a person confirms it."""
    used = table.with_cell_rules(dict.fromkeys(proposed.used_columns, CellRules()))
    totals: list[int] = []
    marks = {name: Marks() for name in columns_of(proposed, "boolean")}
    units = {name: Units() for name in columns_of(proposed, "number", "integer")}
    for batch in used.batches(
        on_reject=lambda row: totals.append(row.line) if row.code == "totals" else None
    ):
        for name, found in marks.items():
            found.add(batch[name])
        for name, numbers in units.items():
            numbers.add(batch[name])
    if totals and (answer := interview.ask_one(_totals_question(totals))) is not None:
        options = replace(proposed.read_options, totals=cast("Literal['skip', 'keep']", answer))
        proposed = replace(proposed, read_options=options)
    return with_units(with_marks(proposed, marks, interview), units, interview)


def with_later_notations(
    table: SourceTable, kept: ColumnMapping, interview: Interview
) -> ColumnMapping:
    """A kept mapping with what its import has asked about totals, marks and units, and nobody had answered then."""
    if not interview.has_asked(_NOTATIONS):
        return kept
    return _with_notations(table, kept, interview)


def _totals_question(lines: Sequence[int]) -> FileQuestion:
    shown = ", ".join(map(str, lines[:_LINES_SHOWN]))
    if len(lines) > _LINES_SHOWN:
        shown += " …"
    return FileQuestion(
        topic="totals",
        values={"lines": shown},
    )


def _filled(mapping: ColumnMapping) -> list[str]:
    """The fields that columns and lookups fill."""
    of_columns = [path for column in mapping.columns.values() for path in column.paths]
    return of_columns + [path for lookup in mapping.lookups for path in lookup.give]


def _missing_ids(mapping: ColumnMapping) -> list[str]:
    """The ids of the request's path that nothing fills."""
    filled = _filled(mapping)
    params = KINDS[mapping.kind].operation.params
    return [field.name for field in params if field.name not in filled]


def _may_hold(mapping: ColumnMapping, path: str, samples: Mapping[str, Sequence[str]]) -> bool:
    """Whether a column that matches no field may hold these ids."""
    return any(are_ids(mapping.kind, path, samples[name]) for name in mapping.unknown)


def _with_lookup(
    file: Path,
    table: SourceTable,
    proposed: ColumnMapping,
    lookups: Collection[Path],
    interview: Interview,
) -> ColumnMapping:
    """The mapping with a lookup for ids that the file lacks, if one fits and a person agrees.

    Raises:
        UsageError: one fits, and nobody can be asked.
    """
    missing = _missing_ids(proposed)
    if not missing:
        return proposed
    found = propose_lookup(table, proposed, missing, tables_beside(file), lookups)
    if found is None:
        return proposed
    answer = interview.ask_one(found.question)
    if answer is None and not any(_may_hold(proposed, path, sample(table)) for path in missing):
        raise UsageError(
            f"{file.name}: no column fills {', '.join(missing)}",
            f"{found.question.text} Import the file once in a terminal, where this is asked, or write [[lookup]] in a "
            "mapping (docs/mapping.md).",
        )
    return replace(proposed, lookups=(found.lookup,)) if answer == YES else proposed


def with_agreed_lookup(
    file: Path,
    table: SourceTable,
    proposed: ColumnMapping,
    lookups: Collection[Path],
    interview: Interview,
) -> ColumnMapping:
    """The mapping with the lookup to which a person has agreed; nothing is asked. Raises UsageError."""
    agreed = interview.begun.answers.get("lookup")
    if agreed is None or agreed.value != YES:
        return proposed
    return _with_lookup(file, table, proposed, lookups, interview)


def keep_mapping(mapping: ColumnMapping) -> Path:
    """Writes a mapping to the folder of mappings, under the first free name. Raises UsageError."""
    with _new_path(mapping.kind) as path:
        lookups = tuple(
            replace(lookup, file=os.path.relpath(lookup.path, path.parent.resolve()))
            for lookup in mapping.lookups
        )
        write_private(path, to_toml(replace(mapping, lookups=lookups)).encode())
    return path


def kept_mappings() -> list[Path]:
    """The mappings that imports have kept, without the links to those that a person gave."""
    return [path.resolve() for path in mappings_folder().glob("*.toml") if not path.is_symlink()]


def is_kept(path: Path) -> bool:
    """Whether a mapping is one that an import has kept, and no link to a person's own."""
    return path.parent == mappings_folder().resolve() and not path.is_symlink()


def allowed_lookups(mapping: Path, file: Path, lookups: Collection[Path]) -> tuple[Path, ...]:
    """The lookup files that a mapping may read outside its folder.

    They are those given, and for a kept mapping, whose lookup a person agreed to, those beside the input.
    """
    return (*lookups, *tables_beside(file)) if is_kept(mapping) else tuple(lookups)


def keep_given_mapping(kind: KindName, path: Path) -> None:
    """Links a mapping that a person gave from the folder of mappings, for the next file. Raises UsageError."""
    target = path.resolve()
    folder = mappings_folder().resolve()
    if target.parent == folder or (target.parent / MANIFEST_FILE).exists():
        return  # kept already, or that of a plan
    links = [
        link
        for link in folder.glob(f"{kind}*.toml")
        if link.is_symlink() and link.resolve() == target
    ]
    with _new_path(kind) as free:
        if links:
            os.utime(links[0], follow_symlinks=False)
        else:
            free.symlink_to(os.path.relpath(target, folder))


@contextmanager
def _new_path(kind: str) -> Iterator[Path]:
    """A free path in the folder of mappings. Raises UsageError."""
    folder = mappings_folder()
    hint = (
        "Free space or make the folder writable, or pass a mapping file of your own with --mapping."
    )
    with disk_errors(folder, hint):
        folder.mkdir(mode=0o700, exist_ok=True)
        yield first_free(folder, f"{kind}.toml")
