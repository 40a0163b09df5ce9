"""The inputs of the interface as pydantic models, generated from the contract.

In: a kind of input (`sources.kinds`). Out: its fields by path, and a model that checks a body against every type and
limit of the contract. Bodies are checked in the form in which they are sent: text is `str`, numbers are `Decimal`,
integers are `int`. Nothing is converted, and unknown fields are violations.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator
from datetime import date
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Final, NamedTuple

from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    StringConstraints,
    TypeAdapter,
    ValidationError,
    create_model,
)
from pydantic import Field as Limits

from orderbridge.sources.contract import INT64_MAX, Field
from orderbridge.sources.kinds import KINDS, LOGIN_FIELDS, PASSWORD, LoginMode

NUMBER_DIGITS: Final = 15
"""Digits that a double holds exactly; the reader of the JSON may have no wider type."""
INTEGER_MAX: Final = 2**53 - 1
PAIR: Final = frozenset({"name", "value"})
"""The fields of an attribute."""
ITEM_VALUES: Final = frozenset({"value", "url"})
"""The field without which an attribute, or an image, is left out."""
ITEM_FIELDS: Final = PAIR | ITEM_VALUES
"""Fields of items that are required by policy; the interface does not show whether they are."""
_INDEX: Final = re.compile(r"\[(?:\d+|\+)\]")
_LIMITS: Final = {
    "missing": ("required", "is required"),
    "string_too_short": ("min_length", "has fewer than {limit} characters"),
    "too_short": ("min_items", "has fewer than {limit} items"),
    "too_long": ("max_items", "has more than {limit} items"),
    "greater_than_equal": ("minimum", "is less than {limit}"),
    "less_than_equal": ("maximum", "is more than {limit}"),
    "decimal_max_places": ("too_many_decimals", "has more than {limit} decimals"),
    "decimal_max_digits": ("too_many_digits", "has more than {limit} digits"),
    "decimal_whole_digits": ("too_many_digits", "has more than {limit} digits"),
    "finite_number": ("not_a_number", "is not a number"),
    "string_pattern_mismatch": ("not_a_date", "is not a date YYYY-MM-DD"),
    "value_error": ("not_a_date", "is not a day of the calendar"),
    "extra_forbidden": ("unknown_field", "is not a field of the interface"),
}
"""Code and words of a violation by pydantic's type of error; all others are of a wrong type."""


class Violation(NamedTuple):
    """A limit that a body breaks.

    Attributes:
        row: position among the bodies.
        field: path of the field.
        code: stable, for machines.
        words: for people; they contain no value.
    """

    row: int
    field: str
    code: str
    words: str


@cache
def paths(kind: str) -> dict[str, Field]:
    """Every field with a value, by path: first the parameters of the request's path, then the fields of the body.

    Items of an array are written `[]`: `documents[].number`, `location.coordinates[]`.
    """
    return {field.name: field for field in KINDS[kind].operation.params} | dict(
        _leaves(KINDS[kind].record.fields, "")
    )


@cache
def pairs(kind: str) -> frozenset[str]:
    """Arrays whose items are name and value, so that a mapping may write `attributes.Color`."""
    return frozenset(
        field.name
        for field in KINDS[kind].record.fields
        if field.type == "array" and {inner.name for inner in field.fields} == PAIR
    )


def pattern(path: str) -> str:
    """A path with its positions removed, as in `paths`: `images[1].url` becomes `images[].url`."""
    return _INDEX.sub("[]", path)


def required(kind: str, login_mode: LoginMode | None = None) -> frozenset[str]:
    """Paths of the required fields: by the contract, by the login mode, or by policy."""
    by_mode = {LOGIN_FIELDS[login_mode]} if KINDS[kind].has_login and login_mode else set()
    by_contract = {path for path, field in paths(kind).items() if field.required}
    return frozenset(by_contract | by_mode | KINDS[kind].required_by_policy)


@cache
def model(
    kind: str, login_mode: LoginMode | None = None, *, with_password: bool = True
) -> type[BaseModel]:
    """The strict model of a kind's body; those of a plan are without a password.

    The field of the login mode is required; None requires none.
    """
    needed = required(kind, login_mode)
    fields = [
        field for field in KINDS[kind].record.fields if with_password or field.name != PASSWORD
    ]
    return _model(f"{KINDS[kind].record.name}_input", fields, needed)


def violations(
    kind: str,
    bodies: list[dict[str, Any]],
    login_mode: LoginMode | None = None,
    *,
    with_password: bool = True,
) -> Iterator[Violation]:
    """Every limit broken by the bodies, in their order."""
    try:
        _adapter(kind, login_mode, with_password).validate_python(bodies)
    except ValidationError as error:
        for detail in error.errors(include_url=False, include_input=False):
            row, *location = detail["loc"]
            code, words = _LIMITS.get(
                detail["type"], ("type", f"has the wrong type ({detail['type']})")
            )
            context = (detail.get("ctx") or {}).values()
            limit = next((value for value in context if isinstance(value, int | Decimal)), "")
            yield Violation(int(row), _path(location), code, words.format(limit=limit))


def fits(field: Field, values: Collection[Any]) -> bool:
    """Whether all values are within the limits of the field."""
    try:
        _field_adapter(field).validate_python(list(values))
    except ValidationError:
        return False
    return True


@cache
def _field_adapter(field: Field) -> TypeAdapter[Any]:
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


def _model(
    name: str, fields: Collection[Field], needed: frozenset[str] = frozenset()
) -> type[BaseModel]:
    parts: dict[str, Any] = {}
    for field in fields:
        is_required = field.required or field.name in needed
        parts[field.name] = (_type(name, field), ... if is_required else None)
    created: type[BaseModel] = create_model(
        name, __config__=ConfigDict(strict=True, extra="forbid"), **parts
    )
    return created


def _type(name: str, field: Field) -> Any:  # noqa: ANN401 # a type made from data
    if field.type == "object":
        return _model(f"{name}_{field.name}", field.fields, ITEM_FIELDS)
    if field.type == "array":
        item: Any = _type(
            name,
            Field(
                field.name, "object" if field.fields else field.items or "text", fields=field.fields
            ),
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
            Limits(
                ge=field.minimum,
                max_digits=NUMBER_DIGITS,
                decimal_places=field.max_decimals,
                allow_inf_nan=False,
            ),
        ]
    if field.type == "date":
        return Annotated[
            str, StringConstraints(pattern=r"^\d{4}-\d\d-\d\d$"), AfterValidator(date.fromisoformat)
        ]
    return Annotated[str, StringConstraints(min_length=field.min_length)]


def _path(location: Iterable[int | str]) -> str:
    path = ""
    for part in location:
        path += f"[{part}]" if isinstance(part, int) else f".{part}" if path else part
    return path
