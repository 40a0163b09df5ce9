"""Opens a file with its mapping, after checking one against the other.

In: a file, a mapping or none, and the relevant settings. Out: `Inputs`; or an error that lists all columns without a
field at once. No row is converted yet.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Iterator, Sequence
from collections.abc import Mapping as Pairs
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Final

from orderbridge.pipelines.imports.bodies import constant_body
from orderbridge.pipelines.imports.fields import Bindings, Source, field_sources
from orderbridge.pipelines.imports.inputs import Inputs
from orderbridge.pipelines.imports.lookups import LookupTable
from orderbridge.pipelines.mapping import Mapping, is_empty, propose, sample, sample_of_all
from orderbridge.pipelines.mapping.field_paths import all_paths, root_of, suggestion
from orderbridge.sources.disk import file_version
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions, SourceTable, open_table
from orderbridge.sources.files.column_names import is_without_name
from orderbridge.sources.files.formulas import UnescapedTable
from orderbridge.sources.inputs import paths, required, violations
from orderbridge.sources.kinds import KINDS, LOGIN_FIELDS, PASSWORD, LoginMode
from orderbridge.sources.texts import everywhere
from orderbridge.sources.words import listed, number

_READ_OPTION: Final = re.compile(r"--(?:encoding|delimiter|quote|escape|header-row|sheet)\b")
ERP_CODE: Final = "erpCode"
REJECT_COLUMNS: Final = ("line", "field", "code", "words")
"""The columns that a reject file has after those of the input; a name that was taken has a number."""
_REJECT_COLUMNS: Final = (
    REJECT_COLUMNS,
    *zip(*(everywhere(f"sheet.{name}") for name in REJECT_COLUMNS), strict=True),
)
"""The same in each language, as a workbook has them; workbooks of 0.3 have the names of a reject file."""


def open_inputs(
    kind: str,
    file: Path,
    mapping: Mapping | None = None,
    *,
    login_mode: LoginMode | None = None,
    semantics: Pairs[str, str] | None = None,
) -> Inputs:
    """Opens a file as inputs of a kind. Without a mapping, one is proposed from the names of the columns.

    `semantics` are those of additive fields: field → `unknown`, `set` or `increment`.

    Raises:
        UsageError: the file cannot be read, or does not fit the mapping.
    """
    if mapping is not None and mapping.kind != kind:
        raise UsageError(
            f"the mapping is for {mapping.kind}, not for {kind}", "Choose the mapping of this file."
        )
    meanings = semantics or {}
    table = open_input_table(file, mapping.read_options if mapping is not None else None, mapping)
    table.check_line_column()
    columns = own_columns(table, mapping)
    if mapping is None:
        mapping = propose(columns, kind, samples=sample(table))
    unmapped = _check_columns(file, columns, mapping)
    _check_semantics(mapping, meanings)
    of_columns = field_sources(mapping)
    sources = _sources_for_login(of_columns, login_mode) if KINDS[kind].has_login else of_columns
    notes = [
        *_notes_on_reading(table, of_columns, meanings),
        *_notes_on_columns(file, table, mapping, _without_empty(table, unmapped, mapping)),
    ]
    if len(sources) < len(of_columns):
        notes.append(
            "loginCode is not sent: customers log in by e-mail, and the platform ignores it"
        )
    _check_required(file, mapping, sources, login_mode)
    _check_values(mapping)
    return Inputs(
        file, table, Bindings(mapping, sources, open_lookups(mapping, sources), login_mode), notes
    )


def _without_empty(table: SourceTable, unmapped: Sequence[str], mapping: Mapping) -> Sequence[str]:
    """Columns that are not sent, but for those that need no note: they have no values, and no name or are known so."""
    may_be_empty = {*filter(is_without_name, unmapped), *mapping.unfilled}
    if not may_be_empty:
        return unmapped
    cells = sample_of_all(table)
    filled = {name for name in may_be_empty if not is_empty(cells.get(name, ()))}
    columns = [*unmapped, *mapping.unfilled]
    return [name for name in columns if name not in may_be_empty or name in filled]


def _sources_for_login(sources: list[Source], login_mode: LoginMode | None) -> list[Source]:
    """The sources of customers: where they log in by e-mail, no login code, and addresses that are checked."""
    if login_mode != "email":
        return sources
    return [
        _as_address(source) if source.path == LOGIN_FIELDS["email"] else source
        for source in sources
        if source.path != LOGIN_FIELDS["code"]
    ]


def _notes_on_reading(
    table: SourceTable, sources: Sequence[Source], semantics: Pairs[str, str]
) -> Iterator[str]:
    """What a person should know about how the file is read, and what is not sent again."""
    if table.format.is_encoding_assumed:
        yield (
            f"encoding: {table.format.encoding} (assumed); check the accented letters with orderbridge preview"
        )
    if semantics.get("stock") == "unknown" and any(source.path == "stock" for source in sources):
        yield (
            "a stock that is as last confirmed is not sent, though orders may have lowered it: ask the platform what "
            "it does with a stock; to say so: orderbridge questions sources.legacy.stock_semantics"
        )
    if table.format.may_be_cut_off:
        yield (
            f"line {table.format.lines}, the last one, has no line end: check that the file was not cut off there"
        )
    yield from layout_notes(table)


def _notes_on_columns(
    file: Path, table: SourceTable, mapping: Mapping, unmapped: Sequence[str]
) -> Iterator[str]:
    """Which columns are not sent, and why."""
    if mapping.doubtful:
        yield _doubts(file, mapping)
    if unmapped and not mapping.ignores_others:
        yield (
            f"columns that the mapping does not name are ignored: {listed(unmapped)}; to send one, name it and its "
            "field under [columns] of the mapping file "
            f"(orderbridge template {mapping.kind} --mapping lists the fields)"
        )
    if count_reject_columns(table.columns, mapping):
        yield "the columns line, field, code and words come from a reject file and are ignored"


def _as_address(source: Source) -> Source:
    """The source of the e-mail address that customers log in with: another text is rejected."""
    return replace(source, reading=replace(source.reading, is_address=True))


def layout_notes(table: SourceTable) -> Iterator[str]:
    """What may not be as a person sees it: names, columns, footnotes, signs, hidden rows, merged cells."""
    found = table.format
    if not found.header_lines:
        left_out = f"; {number(found.dropped_columns, 'empty column')} at the right left out"
        yield (
            f"no line has column names: the columns are numbered, {found.columns[0]} and so on, and the first line is "
            f"a row{left_out if found.dropped_columns else ''}"
        )
    if found.has_signs:
        yield "control characters are read as the signs that cp1252 has in their place, such as quotes and dashes"
    if found.footnotes:
        lines = listed(list(map(str, found.footnotes)))
        yield f"lines after the table are not read, as footnotes: {lines}; check that the file is whole"
    if found.hidden_rows:
        yield f"hidden rows of the sheet are read too: {found.hidden_rows:,}; delete those that must not be sent"
    if found.merged_cells:
        yield (
            f"groups of merged cells: {found.merged_cells:,}; only the first cell of each has the value. Unmerge and "
            "fill them, or set fill_down under [rows] in the mapping"
        )


def open_lookups(mapping: Mapping, sources: Sequence[Source]) -> list[LookupTable]:
    """Opens the lookup files of a mapping. Raises UsageError."""
    return [
        LookupTable(
            lookup,
            {source.column for source in sources if source.lookup == index and source.is_number},
        )
        for index, lookup in enumerate(mapping.lookups)
    ]


@lru_cache(maxsize=4)
def _opened(file: Path, options: ReadOptions, _: tuple[int, ...]) -> SourceTable:
    try:
        return open_table(file, options)
    except UsageError as error:
        option = _READ_OPTION.search(error.hint)
        if option is None:
            raise
        key = option[0].removeprefix("--").replace("-", "_")
        written = f"orderbridge preview {shlex.quote(str(file))} {option[0]} VALUE --csv clean.csv"
        where = f"(To import it: {written}, then import clean.csv; or set {key} under [file] in the mapping.)"
        if key == "sheet":
            where = f"(`import` has it too; or set {key} under [file] in the mapping.)"
        raise UsageError(error.message, f"{error.hint}\n  {where}") from None


def open_input_table(
    file: Path, options: ReadOptions | None = None, mapping: Mapping | None = None
) -> SourceTable:
    """Opens a file, once for each way to read it, as long as it is not written.

    In a reject file, cells that were escaped as formulas are restored.

    Raises:
        UsageError: the file cannot be read; the hint names an option of `preview` as a key of the mapping too.
    """
    options = options or ReadOptions()
    if mapping is not None:
        options = replace(
            options,
            keeps_headings=mapping.has_lines_of_groups,
            known_columns=tuple(mapping.used_columns),
        )
    table = _opened(file, options, file_version(file))
    added = count_reject_columns(table.columns, mapping)
    return UnescapedTable(table, added) if added else table


def count_reject_columns(columns: Sequence[str], mapping: Mapping | None = None) -> int:
    """How many columns at the end come from a reject file: 4 or 0. Columns that the mapping names do not count."""
    last = columns[-len(REJECT_COLUMNS) :]
    if len(columns) <= len(REJECT_COLUMNS) or (
        mapping is not None and set(last) <= mapping.columns.keys()
    ):
        return 0
    is_reject_file = any(_are_named(last, names) for names in _REJECT_COLUMNS)
    return len(REJECT_COLUMNS) if is_reject_file else 0


def _are_named(columns: Sequence[str], names: Sequence[str]) -> bool:
    """Whether columns have these names; a name that was taken has a number."""
    return all(
        column == name or (column.startswith(f"{name}_") and column[len(name) + 1 :].isdecimal())
        for name, column in zip(names, columns, strict=True)
    )


def own_columns(table: SourceTable, mapping: Mapping | None = None) -> tuple[str, ...]:
    """The columns of a file, without those that a reject file has after them."""
    return table.columns[: len(table.columns) - count_reject_columns(table.columns, mapping)]


def _check_columns(file: Path, columns: Sequence[str], mapping: Mapping) -> list[str]:
    """Every mapped column is in the file, and every column is mapped or ignored if the mapping is strict or proposed.

    Doubtful columns of a proposal are left out, but for the code of a create: a customer without it is not known
    again. Returns the columns that are neither mapped nor ignored by name.
    """
    missing = [name for name in mapping.used_columns if name not in columns]
    if missing:
        names = listed(missing, lambda name: f"{name!r}{suggestion(name, columns)}")
        raise UsageError(
            f"{file.name} has no column {names}, which the mapping {mapping.path} uses",
            f"Its columns: {listed(columns)}. Rename the header in the file, or the column in the mapping. One that "
            "`import` keeps can be made anew: orderbridge questions",
        )
    is_update = KINDS[mapping.kind].is_update
    left_out = {name for name, path in mapping.doubtful.items() if is_update or path != ERP_CODE}
    known = {*mapping.columns, *mapping.used_columns, *left_out, *mapping.unfilled}
    unmapped = [name for name in columns if name not in known]
    if unmapped and (mapping.strict or mapping.path is None):
        raise _unmapped_columns(file, unmapped, mapping)
    return unmapped


def _unmapped_columns(file: Path, unmapped: Sequence[str], mapping: Mapping) -> UsageError:
    """The error for columns that are neither mapped nor ignored, where each must be."""
    fields = all_paths(mapping.kind)
    names = listed(unmapped, lambda name: f"{name!r}{suggestion(name, fields)}")
    count = "1 column matches" if len(unmapped) == 1 else f"{len(unmapped):,} columns match"
    hint = (
        'Map each one to a field in the mapping, or ignore it by name: ignore = ["…"].'
        if mapping.path is not None
        else "To answer what `import` asks about each: orderbridge questions\n"
        "  Or map or ignore each in a mapping, and name it with --mapping (`run`: --erp-variants-mapping): "
        + _template(mapping.kind, file)
    )
    return UsageError(f"{file.name}: {count} no field of {mapping.kind}: {names}", hint)


def _doubts(file: Path, mapping: Mapping) -> str:
    """What is said of the doubtful columns of a proposal."""
    doubts = listed([f"{name} (perhaps {path})" for name, path in mapping.doubtful.items()])
    return (
        f"not sent, since neither name nor values prove the field: {doubts}; to decide, import the file in a terminal, "
        f"or create a mapping: {_template(mapping.kind, file)}"
    )


def _check_semantics(mapping: Mapping, semantics: Pairs[str, str]) -> None:
    """The settings and the mapping agree on whether numbers are changes or new values."""
    for name, column in mapping.columns.items():
        for path in column.paths:
            meaning = semantics.get(path)
            if meaning == "increment" and not column.change:
                raise UsageError(
                    f"the platform adds {path} to the present value (sources.legacy.{path}_semantics), but {name!r} is "
                    "not marked as changes",
                    f'If it holds changes, write in the mapping: "{name}" = {{ field = "{path}", change = true }}',
                )
            if meaning is not None and meaning != "increment" and column.change:
                key = f"sources.legacy.{path}_semantics"
                adds = (
                    f"answer {key} increment" if meaning == "unknown" else f"init {key}=increment"
                )
                raise UsageError(
                    f"{name!r} holds changes of {path}, but {key} is {meaning}",
                    f"If the platform adds: orderbridge {adds}. If not, map a column with the new {path}.",
                )
    for path in (*mapping.constants, *(path for lookup in mapping.lookups for path in lookup.give)):
        if semantics.get(path) == "increment":
            raise UsageError(
                f"{path} is a change and cannot be a constant or a lookup", "Map a column to it."
            )


def _check_required(
    file: Path, mapping: Mapping, sources: Sequence[Source], login_mode: LoginMode | None
) -> None:
    """Every required field is filled by something."""
    filled = {source.path for source in sources} | mapping.constants.keys()
    roots = set(map(root_of, filled))
    fields = KINDS[mapping.kind].record.fields
    names = required(mapping.kind, login_mode) | {field.name for field in fields if field.required}
    order = dict.fromkeys([*paths(mapping.kind), *(field.name for field in fields)])
    check_filled(
        file, mapping, roots, [name for name in order if name in names and name != PASSWORD]
    )


def check_filled(
    file: Path, mapping: Mapping, filled: Collection[str], names: Iterable[str]
) -> None:
    """Each of these fields is among the filled ones. Raises UsageError."""
    missing = [name for name in names if name not in filled]
    if missing:
        raise UsageError(
            f"{file.name}: no column fills {', '.join(missing)}, required for {mapping.kind}",
            f"{_doubts_about(missing, mapping)}{_how_to_fill(missing, file, mapping)}.",
        )


def _doubts_about(missing: Collection[str], mapping: Mapping) -> str:
    """The columns that may be of a missing field; empty if there are none."""
    doubts = [
        f"{name!r} may be {path}"
        for name, path in mapping.doubtful.items()
        if root_of(path) in missing
    ]
    return f"{', '.join(doubts)}: neither name nor values prove it. " if doubts else ""


def _how_to_fill(missing: Collection[str], file: Path, mapping: Mapping) -> str:
    """What to write into which mapping."""
    own = f"{file.stem}.toml"
    hint = (
        f"In the mapping {mapping.path or own}, map a column to it, or set a constant or a lookup "
        "(docs/reference/mapping.md)"
    )
    if mapping.path is None:
        template = _template(mapping.kind, file)
        hint = f"{template} writes one, which --mapping {shlex.quote(own)} uses. {hint}"
    column = next((column for column in mapping.columns.values() if ERP_CODE in column.paths), None)
    if LOGIN_FIELDS["code"] in missing and column is not None:
        also = ", ".join(f'"{path}"' for path in [*column.paths[1:], LOGIN_FIELDS["code"]])
        hint += f'; to log in with the ERP\'s code: "{column.name}" = {{ field = "{column.field}", also = [{also}] }}'
    return hint


def _template(kind: str, file: Path) -> str:
    return f"orderbridge template {kind} --mapping --for {shlex.quote(str(file))} > {shlex.quote(f'{file.stem}.toml')}"


def _check_values(mapping: Mapping) -> None:
    """The constants and the defaults are within their limits."""
    defaults = {
        path.replace("[+]", "[0]"): one.default
        for one in mapping.columns.values()
        for path in one.paths
        if one.default is not None
    }
    body = constant_body(mapping.kind, defaults | mapping.constants)
    for violation in violations(mapping.kind, [body], with_password=False):
        if violation.code != "required":
            name, table = (
                ("default of", "columns")
                if violation.field in defaults
                else ("constant", "constants")
            )
            raise UsageError(
                f"the {name} {violation.field} {violation.words}",
                f"Change it in the mapping, under [{table}].",
            )
