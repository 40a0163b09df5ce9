"""How a file is read, as a page shows it: each column with its field, the cells and what is made of them.

In: a file and its kind. Out: data; nothing is written, asked or sent. The mapping is the one that the import uses: that
which was kept for such a file, else the proposal with what a person has answered so far.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pyarrow as pa

from orderbridge.pipelines.import_file.asking import Interview, nobody
from orderbridge.pipelines.import_file.mappings import (
    DETECTED,
    allowed_lookups,
    column_questions,
    find_mapping,
    is_kept,
    shown_cells,
    with_agreed_lookup,
    with_answers,
    with_filled_columns,
    with_kept_columns,
)
from orderbridge.pipelines.import_file.proposal import propose_columns
from orderbridge.pipelines.imports.fields import IN_FILE, Bindings, Source, field_sources
from orderbridge.pipelines.imports.lines import LineBatch
from orderbridge.pipelines.imports.model import OtherCurrency
from orderbridge.pipelines.imports.notations import survey
from orderbridge.pipelines.imports.open import open_input_table, own_columns
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping import is_empty, load, sample_of_all
from orderbridge.pipelines.mapping.field_paths import all_paths, resolve, root_of
from orderbridge.sources.files import ReadOptions, SourceTable
from orderbridge.sources.inputs import required
from orderbridge.sources.kinds import KINDS, PASSWORD, KindName
from orderbridge.sources.settings import legacy_settings
from orderbridge.transforms.frames import TEXT

ColumnState = Literal["known", "answered", "asked", "ignored"]
"""Known by name and values, or from the mapping that was kept; answered by a person; asked; not sent."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleCell:
    """A cell, and what is made of it.

    Attributes:
        text: as it is in the file.
        value: that is sent, as text; None: the column is not sent, or the cell is wrong.
        code, problem: why it is wrong.
    """

    text: str
    value: str | None = None
    code: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadColumn:
    """A column of the file.

    Attributes:
        question: the id under which its field is answered.
        fields: that it fills.
        guess: the likeliest field, if it is asked.
        may_be: the field that its name means, and its cells speak against, if it is asked.
        is_unchecked: they speak against it because they are not among the values known from the platform.
        rivals: other columns that match the same field.
        is_new: it was not in the files before: the mapping that was kept does not name it.
        samples: its first different cells; none of a column of passwords.
    """

    name: str
    question: str
    state: ColumnState
    fields: Sequence[str] = ()
    guess: str | None = None
    may_be: str | None = None
    is_unchecked: bool = False
    rivals: Sequence[str] = ()
    is_new: bool = False
    samples: Sequence[SampleCell] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetField:
    """A field of the kind that a column can fill.

    Attributes:
        path: as it is answered.
        type: of its values.
        is_required: whether the platform requires it.
        meaning: what the interface says about it; may be empty.
        column: that fills it; None: none does.
    """

    path: str
    type: str
    is_required: bool
    meaning: str
    column: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class FileReading:
    """How a file is read.

    Attributes:
        import_id: the name of the import in the ids of its questions.
        mapping: that was kept for such a file; None: it is proposed.
    """

    import_id: str
    mapping: Path | None
    columns: Sequence[ReadColumn]
    fields: Sequence[TargetField]


def read_columns(
    kind: KindName,
    file: Path,
    given: ReadOptions = DETECTED,
    lookups: Collection[Path] = (),
    mapping_file: Path | None = None,
) -> FileReading:
    """How `orderbridge import` reads the columns of a file; `mapping_file` is that of `--mapping`.

    Raises:
        UsageError: the file or its mapping cannot be read.
    """
    path = mapping_file or find_mapping(kind, file, given, lookups)
    kept = None if path is None else load(path, kind, allowed_lookups(path, file, lookups))
    before = kept
    table = open_input_table(file, given if kept is None else kept.read_options, kept)
    interview = Interview.about(kind, file, given, lookups, own_columns(table), nobody)
    if kept is not None and mapping_file is None and interview.is_read_anew(kept):
        path = None
        kept = None
    sampled = sample_of_all(table)
    cells = {name: sampled[name] for name in own_columns(table)}
    if kept is not None and path is not None:
        filled = with_filled_columns(table, kept) if is_kept(path) else kept
        mapping = with_answers(filled, interview.columns)
    else:
        proposed = propose_columns(own_columns(table), kind, cells)
        mapping = with_answers(with_kept_columns(proposed, before), interview.columns)
        mapping = with_agreed_lookup(file, table, mapping, lookups, interview)
    return FileReading(
        import_id=interview.begun.id,
        mapping=path,
        columns=_columns(table, mapping, cells, interview, _new_columns(cells, mapping, path)),
        fields=_fields(mapping),
    )


def _new_columns(
    cells: Mapping[str, Sequence[str]], mapping: ColumnMapping, path: Path | None
) -> set[str]:
    """The columns with values that a mapping kept by an import does not name.

    Those that a person's own leaves out are known.
    """
    if path is None or not is_kept(path) or mapping.ignores_others:
        return set()
    filled = {name for name, texts in cells.items() if not is_empty(texts)}
    return filled - {*mapping.columns, *mapping.used_columns, *mapping.unknown}


def _columns(
    table: SourceTable,
    mapping: ColumnMapping,
    cells: Mapping[str, Sequence[str]],
    interview: Interview,
    new: Collection[str],
) -> list[ReadColumn]:
    asked = {one.about: one for one in column_questions(mapping, cells)}
    sources = _sources(table, mapping)
    return [
        ReadColumn(
            name=name,
            question=interview.begun.question(f"column/{name}"),
            state=_state(name, mapping, asked, interview),
            fields=mapping.columns[name].paths if name in mapping.columns else (),
            guess=asked[name].guess if name in asked else None,
            may_be=asked[name].may_be if name in asked else None,
            is_unchecked=name in mapping.unchecked,
            rivals=_rivals(name, mapping),
            is_new=name in new,
            samples=_samples(shown_cells(mapping.kind, name, cells[name]), sources.get(name)),
        )
        for name in own_columns(table)
    ]


def _state(
    name: str, mapping: ColumnMapping, asked: Collection[str], interview: Interview
) -> ColumnState:
    if name in asked:
        return "asked"
    column = mapping.columns.get(name)
    if column is None or column.field is None:
        return "ignored"
    return "answered" if column.answered or name in interview.columns else "known"


def _rivals(name: str, mapping: ColumnMapping) -> list[str]:
    contested = [names for names in mapping.contested.values() if name in names]
    return [other for names in contested for other in names if other != name]


def _sources(table: SourceTable, mapping: ColumnMapping) -> dict[str, Source]:
    """What is made of the cells of each column, with the notations that its first rows show."""
    present = {*own_columns(table)}
    columns = {name: one for name, one in mapping.columns.items() if name in present}
    own = replace(mapping, columns=columns, lookups=())
    bindings = Bindings(own, field_sources(own), [], legacy_settings().login_mode)
    batch = next(table.batches(on_reject=lambda row: None), None)
    if batch is not None:
        with suppress(OtherCurrency):  # which is a question of its own
            bindings, _ = survey([LineBatch(batch, [], [])], bindings)
    return {one.column: one for one in reversed(bindings.sources) if one.lookup == IN_FILE}


def _samples(texts: Sequence[str], source: Source | None) -> list[SampleCell]:
    if source is None:
        return [SampleCell(text=text) for text in texts]
    if source.path == PASSWORD:
        return []
    values, codes = source.reading.read(pa.array(texts, TEXT))
    return [
        SampleCell(
            text=text,
            value=None if code else _as_text(value),
            code=code or "",
            problem=source.reading.words(code) if code else "",
        )
        for text, value, code in zip(texts, values.to_pylist(), codes.to_pylist(), strict=True)
    ]


def _as_text(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)


def _fields(mapping: ColumnMapping) -> list[TargetField]:
    kind = KINDS[mapping.kind]
    filled = {path: name for name, one in mapping.columns.items() for path in one.paths}
    filled |= {path: name for one in mapping.lookups for path, name in one.give.items()}
    needed = {one.name for one in kind.record.fields if one.required}
    needed |= {*required(mapping.kind, legacy_settings().login_mode)}
    needed |= {one.name for one in kind.operation.params}
    roots = {root_of(path) for path in filled}
    fields = []
    for path in dict.fromkeys([*all_paths(mapping.kind), *filled]):
        root = root_of(path)
        is_required = path in needed or (root in needed and root not in roots)
        roots.add(root)  # the first field of an object that nothing fills stands for it
        target: Any = resolve(mapping.kind, path)
        fields.append(
            TargetField(
                path=path,
                type=target.field.type,
                is_required=is_required,
                meaning=target.field.meaning,
                column=filled.get(path),
            )
        )
    return fields
