"""Questions about the kinds of fields that the interface does not show: is it a list, an object, a number, a text?

In: what walks counted, and what is declared. Out: a question for each field whose values have two forms, and for any
other one that a person asks about. The answers are lines of `.dlt/orders.toml`; the next pull uses them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Final, get_args

import duckdb

from orderbridge.pipelines.questions.model import (
    AskedQuestion,
    Given,
    GivenAnswer,
    no_answer,
    refuse_limits,
)
from orderbridge.pipelines.warehouse.answers.accepted import SAFE_NAME
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.raw.field_kinds import (
    FieldKind,
    KnownField,
    declared_kinds,
    known_fields,
    write_declared,
)
from orderbridge.pipelines.warehouse.raw.schema_changes import field_names
from orderbridge.pipelines.warehouse.sql import has_tables, sql_name
from orderbridge.sources.contract import RECORDS, UNDOCUMENTED
from orderbridge.sources.decode.column_kinds import KeptKinds
from orderbridge.sources.decode.inferred_tables import CHILD_TABLES
from orderbridge.sources.decode.table_schema import parent_key
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import warehouse_path
from orderbridge.sources.words import number
from orderbridge.transforms.questions import Choice, State

_PREFIX: Final = "kind:"
_KINDS: Final = get_args(FieldKind)
_STRUCTURES: Final = ("table", "object", "list")
_SCALARS: Final = ("text", "decimal", "bigint", "boolean", "json")
_OF_TWO_FORMS: Final = ("table", "object")
_EXAMPLES: Final = 3
_MEANINGS: Final = {
    "table": "a row for each item, in a table of its own, and one for a single object",
    "object": "a column for each field of the object, and lists with several items stay in `_extra`",
    "list": "the list as JSON text, in one column",
    "json": "any value as JSON text, in one column",
    "text": "each value as it is written; leading zeros stay",
    "decimal": "numbers with decimals; other values stay in `_extra`",
    "bigint": "whole numbers; other values stay in `_extra`",
    "boolean": "true or false; other values stay in `_extra`",
}
_ODD: Final = """
    SELECT coalesce(subject, ''), min(detail) FROM reconciled.exceptions
    WHERE entity = ? AND rule IN ('odd_value', 'form_changed') GROUP BY 1"""


class Kinds:
    """Questions about kinds of fields. See `QuestionKind`."""

    def is_about(self, question: str) -> bool:
        """See `QuestionKind`."""
        return question.startswith(_PREFIX)

    def asked(self) -> list[AskedQuestion]:
        """See `QuestionKind`. Fields of which all values agree are there too, as proven."""
        if not warehouse_path().is_file():
            return []
        with open_warehouse() as warehouse:
            return [
                question for resource in UNDOCUMENTED for question in _of_list(warehouse, resource)
            ]

    def check(self, answers: Sequence[GivenAnswer], given: Given) -> None:
        """See `QuestionKind`."""
        refuse_limits(
            given,
            "kinds of fields",
            "A kind holds until it is withdrawn: orderbridge answer QUESTION --withdraw",
        )
        known = _known_fields()
        for one in answers:
            field = known.get(one.question)
            if field is None:
                raise UsageError(
                    f"there is no field {one.question.removeprefix(_PREFIX)}",
                    "The fields of orders, and their kinds: orderbridge schema orders",
                )
            resource, path = field
            if one.value is None and path not in declared_kinds(resource):
                raise no_answer(one.question)
            if one.value is not None and one.value not in _KINDS:
                raise UsageError(
                    f"{one.value} is no kind of a field; the kinds are {', '.join(_KINDS)}",
                    f"Show what was counted with: orderbridge questions '{one.question}'",
                )

    def write(self, answers: Sequence[GivenAnswer], given: Given) -> str:
        """See `QuestionKind`."""
        known = _known_fields()
        places: dict[str, None] = {}
        for one in answers:
            resource, path = known[one.question]
            words = [f"{given.by}, {given.at:%Y-%m-%d %H:%M} UTC", *one.why.split()]
            comment = " ".join(words)
            places[str(write_declared(resource, {path: one.value}, comment))] = None
        return ", ".join(places)


def _known_fields() -> dict[str, tuple[str, str]]:
    """The list and the path of each field that walks know, by the id of its question."""
    if not warehouse_path().is_file():
        return {}
    known: dict[str, tuple[str, str]] = {}
    with open_warehouse() as warehouse:
        for resource in UNDOCUMENTED:
            for field in known_fields(warehouse, resource):
                known[_id(resource, field)] = resource, field.path
    return known


def _id(resource: str, field: KnownField) -> str:
    return f"{_PREFIX}{resource}/{field.key}"


def _of_list(warehouse: duckdb.DuckDBPyConnection, resource: str) -> Iterator[AskedQuestion]:
    """The questions of a list. A name that could be a value, such as an e-mail address, is not shown."""
    declared = declared_kinds(resource)
    odd = _odd_values(warehouse, resource)
    for field in known_fields(warehouse, resource):
        if SAFE_NAME.fullmatch(field.key) and field.key != RECORDS[resource].key:
            yield _asked(warehouse, resource, field, declared, odd.get(field.place, ""))


def _odd_values(warehouse: duckdb.DuckDBPyConnection, resource: str) -> dict[str, str]:
    """The findings about values of another form, by place."""
    if not has_tables(warehouse, "reconciled", "exceptions"):
        return {}
    columns = {row[0] for row in warehouse.execute("DESCRIBE reconciled.exceptions").fetchall()}
    if "subject" not in columns:  # of version 0.3
        return {}
    rows = warehouse.execute(_ODD, [resource]).fetchall()
    return {place: detail.removeprefix(f"{place}: ") for place, detail in rows}


def _asked(
    warehouse: duckdb.DuckDBPyConnection,
    resource: str,
    field: KnownField,
    declared: KeptKinds,
    odd: str,
) -> AskedQuestion:
    is_mixed = field.kind in _OF_TWO_FORMS and bool(field.objects and field.arrays)
    kind = field.kind
    state: State = "assumed" if is_mixed else "proven"
    if field.path in declared:
        kind = declared[field.path].kind
        state = "answered"
    counted = {
        "table": f"{number(field.arrays, 'list')} counted in a read",
        "object": f"{number(field.objects, 'object')} counted in a read",
    }
    if not field.objects and not field.arrays:
        counted = {kind: f"{number(field.values, 'value')} counted in a read"}
    if is_mixed:
        counted["table"] += _examples(warehouse, resource, field)
    if odd:
        counted[kind] = f"{counted.get(kind, '')}, of another form: {odd}".removeprefix(", ")
    others = _STRUCTURES if kind in _STRUCTURES else _SCALARS
    choices = [
        Choice(one, "; ".join(filter(None, (counted.get(one), _MEANINGS[one])))) for one in others
    ]
    return AskedQuestion(
        id=_id(resource, field),
        text=_asks(resource, field.key)
        if is_mixed
        else f"How is {field.key} kept in the database?",
        state=state,
        value=kind,
        proposal=kind if is_mixed else None,
        choices=choices,
        holds_up=[f"raw.{field.place.partition(':')[0]} and its child tables"],
        is_confirmable=state == "assumed",
    )


def _asks(resource: str, field: str) -> str:
    """The question about a field of two forms, as a person can answer it who knows the shop."""
    one = resource.removesuffix("s").replace("_", " ")
    return f"Can one {one} have several {field}? Yes, or not sure: table, which loses nothing. Never: object."


def _examples(warehouse: duckdb.DuckDBPyConnection, resource: str, field: KnownField) -> str:
    """Records whose list has several items: the ones that the columns of an object could not hold."""
    table = field_names(warehouse, resource).get(CHILD_TABLES, {}).get(field.path)
    if table is None or not has_tables(warehouse, "raw", table):
        return ""
    child = f"raw.{sql_name(table)}"
    key = sql_name(parent_key(RECORDS[resource]))
    sql = f"""
        SELECT DISTINCT {key} FROM {child} WHERE position > (SELECT min(position) FROM {child}) LIMIT {_EXAMPLES}"""
    ids = sorted(str(record) for (record,) in warehouse.execute(sql).fetchall())
    return f", several items in {', '.join(ids)}" if ids else ""
