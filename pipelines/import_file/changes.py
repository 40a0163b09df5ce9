"""What a plan would change, as data: new values beside the old ones, and the lines that are not sent, by reason.

In: a plan, its input and the ledger. Out: the first of each, for a page or a script; the rest is in the plan's folder.
Values of the file are in it, but no password.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from dataclasses import field as made_by
from itertools import islice
from typing import Any, Final, Literal

from orderbridge.pipelines.import_file.result import LineOutcome, line_outcomes
from orderbridge.pipelines.imports import Inputs
from orderbridge.pipelines.ledger.model import FINAL_STATES
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import Mapping as ColumnMapping
from orderbridge.pipelines.mapping import are_phrases, normalize
from orderbridge.pipelines.plan.model import DIFFERENCES_FILE, Plan, PlannedOperation
from orderbridge.pipelines.plan.outcomes import DIFFERENCE_SCHEMA, SEPARATOR
from orderbridge.pipelines.plan.rejects import RejectsWriter
from orderbridge.pipelines.plan.replaced import confirmed_fields
from orderbridge.pipelines.push.passwords import inputs_of
from orderbridge.pipelines.push.plan_ledger import PlanLedger
from orderbridge.sources.files.formulas import people_rows
from orderbridge.sources.kinds import KINDS, NOTIFICATION, PASSWORD_NAME, increment_fields
from orderbridge.sources.settings import ledger_path
from orderbridge.sources.texts import Texts, english

FIRST: Final = 200
"""So many changes, and lines of each reason, are data; the others are in the files of the plan."""
_CODES: Final = frozenset(("erpCode", "sku"))
"""Fields that people know articles by."""
_ARTICLE_NAMES: Final = frozenset(
    map(
        normalize,
        (
            *("Descripción", "Nombre", "Denominación", "Artículo", "Producto"),
            *("Descrição", "Description", "Name", "Title"),
        ),
    )
)
"""Names of columns that have the names of articles, normalized."""
_CUSTOMER_NAMES: Final = (
    "erpCode",
    "loginCode",
    "firstName",
    "lastName",
    "documents[0].fiscalName",
)
"""Fields that people know customers by."""
NEEDS_NOTHING: Final = ("confirmed", "unchanged", "exists_same", "merged", "not_sent")
"""Outcomes without a reason that somebody has to read."""

How = Literal["new", "changed", "again", "added", "last_sent"]
"""A value that nothing is known of, or that replaces another one, or is sent again as it is, or is added to what the
platform has, or replaces the last one that was sent, which orders may have lowered since."""


@dataclass(frozen=True, slots=True)
class ValueChange:
    """A field that is sent; `old` is null where nothing is known of it."""

    field: str
    new: Any
    old: Any
    how: How


@dataclass(frozen=True, slots=True)
class PlannedChange:
    """A request: the first of its lines, the record that it updates (empty: a new one), and its values.

    `about`: what a person knows that record by: its codes in the file, and its name, where a column has one.
    """

    line: int | None
    record: str
    values: list[ValueChange]
    about: list[str] = made_by(default_factory=list)


@dataclass(slots=True)
class LinesByReason:
    """The lines with one reason.

    Attributes:
        outcome: of the lines, by code: `rejected`, `held`, `exists_differs` …
        field, code, words: the reason; `words` are those of the first line.
        lines: the number of all.
        rows: the first of them: `line`, `words`, the platform's `message`, and `cells` by column where they can be
            corrected.
    """

    outcome: str
    field: str
    code: str
    words: str
    lines: int = 0
    rows: list[dict[str, Any]] = made_by(default_factory=list)


def first_changes(plan: Plan, count: int = FIRST) -> tuple[list[PlannedChange], int]:
    """The first operations of a plan that are left, with the values that they replace, and how many are left."""
    before: dict[tuple[str, str], Any] = {}
    with Ledger.open(ledger_path(), readonly=True) as ledger:
        is_begun = ledger.pushes(plan.manifest.plan_id) is not None
        final = PlanLedger(ledger, plan.manifest.plan_id).ids(*FINAL_STATES) if is_begun else set()
        operations = list(islice((one for one in plan.operations() if one.id not in final), count))
        if KINDS[plan.kind].is_update:
            rows = confirmed_fields(ledger, plan.manifest.host).to_pylist()
            paths = {operation.path for operation in operations}
            before = {
                (row["key"], row["field"]): json.loads(row["value"])
                for row in rows
                if row["key"] in paths
            }
    increments = increment_fields(plan.manifest.semantics)
    changes = [_change(operation, before, increments) for operation in operations]
    return changes, plan.manifest.operations - len(final)


def add_names(plan: Plan, inputs: Inputs | None, changes: Sequence[PlannedChange]) -> None:
    """Adds what people know the records by that are updated. `inputs` as in `lines_by_reason`."""
    lines = {change.line for change in changes if change.record and change.line is not None}
    if not lines:
        return
    inputs = inputs or inputs_of(plan)
    rows = _cells_of(inputs, lines)
    columns = _naming_columns(inputs.mapping, rows)
    for change in changes:
        cells = rows.get(change.line or 0, {})
        change.about.extend(_texts(columns, cells))


def _texts(columns: Sequence[str], cells: Mapping[str, str]) -> list[str]:
    """The texts of these columns, each once."""
    texts = [cells[name].strip() for name in columns if name in cells]
    return [*dict.fromkeys(filter(None, texts))]


def _naming_columns(mapping: ColumnMapping, rows: Mapping[int, Mapping[str, str]]) -> list[str]:
    """The columns of codes, of the file or of a lookup, and one of names that is not sent, by header or cells."""
    codes = [name for lookup in mapping.lookups for name in lookup.match]
    codes += [name for name, one in mapping.columns.items() if not _CODES.isdisjoint(one.paths)]
    sent = {name for name, one in mapping.columns.items() if one.paths}
    free = [name for name in next(iter(rows.values()), {}) if name not in {*sent, *codes}]
    by_header = [name for name in free if normalize(name) in _ARTICLE_NAMES]
    by_cells = [name for name in free if are_phrases([row.get(name, "") for row in rows.values()])]
    return [*dict.fromkeys(codes), *[*by_header, *by_cells][:1]]


def _change(
    operation: PlannedOperation, before: Mapping[tuple[str, str], Any], increments: frozenset[str]
) -> PlannedChange:
    values = [
        _value(name, value, before.get((operation.path, name)), is_added=name in increments)
        for name, value in operation.body.items()
        if name != NOTIFICATION
    ]
    record = operation.path.strip("/") if operation.method == "PATCH" else ""
    return PlannedChange(operation.lines[0] if operation.lines else None, record, values)


def _value(name: str, new: object, old: object, *, is_added: bool) -> ValueChange:
    if is_added:
        return ValueChange(name, new, None, "added")
    if old is None:
        return ValueChange(name, new, None, "new")
    if old == new:
        return ValueChange(name, new, old, "again")
    return ValueChange(name, new, old, "last_sent" if name == "stock" else "changed")


def first_differences(plan: Plan, count: int = FIRST) -> list[dict[str, str]]:
    """The first values of records that exist with other ones, which a person has to change: `differences.csv`."""
    return [*islice(_differences(plan), count)]


def _differences(plan: Plan) -> Iterator[dict[str, str]]:
    return people_rows(plan.folder / DIFFERENCES_FILE, DIFFERENCE_SCHEMA.names)


def named_differences(plan: Plan, inputs: Inputs | None) -> tuple[list[dict[str, Any]], int]:
    """The first differences, with what a person knows each customer by (`about`), and how many there are.

    `inputs` as in `lines_by_reason`.
    """
    rows = first_differences(plan)
    if not rows:
        return [], 0
    count = sum(1 for _ in _differences(plan))
    inputs = inputs or inputs_of(plan)
    cells = _cells_of(inputs, {int(row["line"]) for row in rows})
    columns = [
        name
        for path in _CUSTOMER_NAMES
        for name, one in inputs.mapping.columns.items()
        if path in one.paths
    ]
    named = [{**row, "about": _texts(columns, cells.get(int(row["line"]), {}))} for row in rows]
    return named, count


def lines_by_reason(
    plan: Plan, inputs: Inputs | None = None, texts: Texts | None = None
) -> list[LinesByReason]:
    """The lines that are not sent or that were rejected, by reason, the most frequent first.

    `inputs` are those that the plan was made of; None: they are opened. `texts` None: in English.
    """
    found: dict[tuple[str, str, str, str], LinesByReason] = {}
    correctable: dict[int, list[dict[str, Any]]] = {}
    for line, one in sorted(line_outcomes(plan, texts or english())):
        if one.outcome in NEEDS_NOTHING:
            continue
        for field_path, code, words in _problems(one):
            key = (one.outcome, field_path, code, "" if code else words)
            reason = found.setdefault(key, LinesByReason(one.outcome, field_path, code, words))
            reason.lines += 1
            if len(reason.rows) < FIRST:
                row = {"line": line, "words": words, "message": one.message}
                reason.rows.append(row)
                if one.is_to_correct:
                    correctable.setdefault(line, []).append(row)
    _add_cells(plan, inputs, correctable)
    return sorted(found.values(), key=lambda reason: -reason.lines)


def _problems(one: LineOutcome) -> Iterator[tuple[str, str, str]]:
    """Each problem of a line: field, code, words."""
    parts = [text.split(SEPARATOR) for text in (one.field, one.code, one.words)]
    if len({*map(len, parts)}) > 1:
        yield one.field, one.code, one.words
        return
    yield from zip(*parts, strict=True)


def _add_cells(plan: Plan, inputs: Inputs | None, rows: Mapping[int, list[dict[str, Any]]]) -> None:
    """Adds the cells of the lines that a person can correct; a row of another width has none."""
    if not rows:
        return
    hidden = KINDS[plan.kind].has_login
    for line, cells in _cells_of(inputs or inputs_of(plan), rows).items():
        shown = {
            name: "" if hidden and PASSWORD_NAME.search(name) else cell
            for name, cell in cells.items()
        }
        for row in rows[line]:
            row["cells"] = shown


def _cells_of(inputs: Inputs, lines: Collection[int]) -> dict[int, dict[str, str]]:
    """The cells of lines by column, but of a row of another width. The file is read until all are found."""
    writer = RejectsWriter(inputs.table, inputs.mapping, dict.fromkeys(lines, ("", "", "")))
    found: dict[int, dict[str, str]] = {}
    for line, cells, _ in writer.rows():
        if len(cells) == len(writer.columns):
            found[line] = dict(zip(writer.columns, cells, strict=True))
        if len(found) == len(lines):
            break
    return found
