"""The four inputs of the interface as pydantic models, made from the contract.

In: a kind of input. Out: its fields by path, and a model that holds a body to every type and limit of the contract.
Bodies are checked as they are sent: text is `str`, numbers are `Decimal`, integers `int`; nothing is converted, and a
field that the contract does not name is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Final, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, StringConstraints, TypeAdapter, ValidationError, create_model
from pydantic import Field as Limits

from sources import contract
from sources.contract import Field, Operation

LoginMode = Literal["email", "code"]
OPERATIONS: Final[Mapping[str, Operation]] = {
    "customers": contract.CREATE_CUSTOMER,
    "variants": contract.UPDATE_VARIANT,
    "subcategories": contract.CREATE_SUBCATEGORY,
    "warehouses": contract.CREATE_WAREHOUSE,
}
"""The writes of the interface by the kind of their input."""
PASSWORD: Final = "password"  # noqa: S105 # the name of the field
NUMBER_DIGITS: Final = 15
"""So many digits a double holds exactly; whoever reads the JSON may have nothing wider."""
INTEGER_MAX: Final = 2**53 - 1
INT64_MAX: Final = 2**63 - 1
ASKED_FOR: Final[Mapping[str, frozenset[str]]] = {"subcategories": frozenset({"name"})}
"""Required by policy where the interface does not show it (gap `subcategory_required`)."""
PAIR: Final = frozenset({"name", "value"})
"""The fields of an attribute; by policy it has both, where the interface shows no requirement."""
LOGIN_FIELDS: Final[Mapping[LoginMode, str]] = {"email": "email", "code": "loginCode"}
_INDEX: Final = re.compile(r"\[(?:\d+|\+)\]")
_CODES: Final = {
    "missing": "required",
    "string_too_short": "min_length",
    "too_short": "min_items",
    "too_long": "max_items",
    "greater_than_equal": "minimum",
    "less_than_equal": "maximum",
    "decimal_max_places": "too_many_decimals",
    "decimal_max_digits": "too_many_digits",
    "decimal_whole_digits": "too_many_digits",
    "finite_number": "not_a_number",
    "extra_forbidden": "unknown_field",
}


class Violation(NamedTuple):
    """A limit that a body breaks. `row`: its position among the bodies; `words` hold no value of it."""

    row: int
    field: str
    code: str
    words: str


def record(kind: str) -> contract.Record:
    """The record of a kind's body.

    Raises:
        KeyError: there is no such kind.
    """
    found = OPERATIONS[kind].input
    if found is None:
        raise KeyError(kind)
    return found


@cache
def paths(kind: str) -> dict[str, Field]:
    """Every field that holds a value, by its path: first those of the request's path, then those of the body.

    An item of an array is `[]`: `documents[].number`, `location.coordinates[]`.
    """
    return {field.name: field for field in OPERATIONS[kind].params} | dict(_leaves(record(kind).fields, ""))


@cache
def pairs(kind: str) -> frozenset[str]:
    """The arrays whose items are a name and a value: a mapping may write `attributes.Color`."""
    return frozenset(
        field.name
        for field in record(kind).fields
        if field.type == "array" and {inner.name for inner in field.fields} == PAIR
    )


def pattern(path: str) -> str:
    """A path without the positions in it, as `paths` has it: `images[1].url` is `images[].url`."""
    return _INDEX.sub("[]", path)


def required(kind: str, login_mode: LoginMode | None = None) -> frozenset[str]:
    """Paths of the fields that an input needs: always, by the login mode, or by policy."""
    of_mode = {LOGIN_FIELDS[login_mode]} if kind == "customers" and login_mode else set()
    by_contract = {path for path, field in paths(kind).items() if field.required}
    return frozenset(by_contract | of_mode | ASKED_FOR.get(kind, frozenset()))


@cache
def model(kind: str, login_mode: LoginMode | None = None, *, with_password: bool = True) -> type[BaseModel]:
    """The model of a kind's body: strict, and every limit of the contract.

    Args:
        kind: of the input.
        login_mode: of the customers: what they log in by is required; None requires neither.
        with_password: without, a customer has none: a plan's bodies.
    """
    needed = required(kind, login_mode)
    fields = [field for field in record(kind).fields if with_password or field.name != PASSWORD]
    return _model(f"{record(kind).name}_input", fields, needed)


def violations(
    kind: str, bodies: list[dict[str, Any]], login_mode: LoginMode | None = None, *, with_password: bool = True
) -> Iterator[Violation]:
    """Every limit that bodies break, in their order."""
    try:
        _adapter(kind, login_mode, with_password).validate_python(bodies)
    except ValidationError as error:
        for found in error.errors(include_url=False, include_input=False):
            row, *where = found["loc"]
            code = _CODES.get(found["type"], "type")
            yield Violation(int(row), _path(where), code, _words(code, found.get("ctx") or {}, found["type"]))


def fits(field: Field, values: Collection[Any]) -> bool:
    """Whether values of a field hold to its own limits, all of them."""
    try:
        _of_field(field).validate_python(list(values))
    except ValidationError:
        return False
    return True


@cache
def _of_field(field: Field) -> TypeAdapter[Any]:
    one: Any = _type("", field)
    return TypeAdapter(list[one])


@cache
def _adapter(kind: str, login_mode: LoginMode | None, with_password: bool) -> TypeAdapter[Any]:
    one: Any = model(kind, login_mode, with_password=with_password)
    return TypeAdapter(list[one])


def _leaves(fields: Iterable[Field], prefix: str) -> Iterator[tuple[str, Field]]:
    for field in fields:
        path = f"{prefix}{field.name}"
        if field.type == "object":
            yield from _leaves(field.fields, f"{path}.")
        elif field.type == "array" and field.fields:
            yield from _leaves(field.fields, f"{path}[].")
        elif field.type == "array":
            yield f"{path}[]", Field(field.name, field.items or "text")
        else:
            yield path, field


def _model(name: str, fields: Collection[Field], needed: frozenset[str] = frozenset()) -> type[BaseModel]:
    parts: dict[str, Any] = {}
    is_pair = {field.name for field in fields} == PAIR
    for field in fields:
        must = field.required or field.name in needed or is_pair
        parts[field.name] = (_type(name, field), ... if must else None)
    made: type[BaseModel] = create_model(name, __config__=ConfigDict(strict=True, extra="forbid"), **parts)
    return made


def _type(name: str, field: Field) -> Any:  # noqa: ANN401 # a type made from data
    if field.type == "object":
        return _model(f"{name}_{field.name}", field.fields)
    if field.type == "array":
        item: Any = _type(
            name, Field(field.name, "object" if field.fields else field.items or "text", fields=field.fields)
        )
        return Annotated[list[item], Limits(min_length=field.min_items, max_length=field.max_items)]
    if field.type == "boolean":
        return bool
    if field.type == "integer":
        top = INT64_MAX if field.int64 else INTEGER_MAX
        low = -top - (1 if field.int64 else 0)
        return Annotated[int, Limits(ge=low if field.minimum is None else field.minimum, le=top)]
    if field.type == "number":
        return Annotated[
            Decimal,
            Limits(ge=field.minimum, max_digits=NUMBER_DIGITS, decimal_places=field.max_decimals, allow_inf_nan=False),
        ]
    return Annotated[str, StringConstraints(min_length=field.min_length)]


def _path(where: Iterable[int | str]) -> str:
    path = ""
    for part in where:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path


def _words(code: str, limits: Mapping[str, Any], kind: str) -> str:
    count = next((value for value in limits.values() if isinstance(value, int)), "")
    words = {
        "required": "is required, and nothing is given",
        "min_length": f"has fewer than {count} characters",
        "min_items": f"has fewer than {count} items",
        "max_items": f"has more than {count} items",
        "minimum": f"is less than {count}",
        "maximum": f"is more than {count}",
        "too_many_decimals": f"has more than {count} decimals",
        "too_many_digits": f"has more than {count} digits",
        "not_a_number": "is no number",
        "unknown_field": "is no field of the interface",
        "type": f"is of another type ({kind})",
    }
    return words[code]
