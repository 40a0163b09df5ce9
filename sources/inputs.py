"""The inputs of the writes as pydantic models, built from the contract, and their fields by path.

In: the records of `sources.contract`. Out: a model for each input with every limit that the interface shows, and the
paths by which a mapping names its fields: `erpCode`, `documents[].fiscalName`, `location.divisions.level1`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Strict, create_model
from pydantic import Field as Limits

from sources.contract import (
    CREATE_CUSTOMER,
    CREATE_SUBCATEGORY,
    CREATE_WAREHOUSE,
    UPDATE_VARIANT,
    Field,
    Operation,
    Record,
)

WRITES: Final[dict[str, Operation]] = {
    "customers": CREATE_CUSTOMER,
    "variants": UPDATE_VARIANT,
    "subcategories": CREATE_SUBCATEGORY,
    "warehouses": CREATE_WAREHOUSE,
}
"""The writes of the interface, by the kind of what is written."""

INT64: Final = 2**63
_PARAMETER: Final = re.compile(r"\{(\w+)\}")


@cache
def record_of(kind: str) -> Record:
    """The input of a kind. Raises KeyError where there is none of that name."""
    record = WRITES[kind].input
    if record is None:
        raise KeyError(kind)
    return record


@cache
def model(kind: str) -> type[BaseModel]:
    """The model of a kind's input: strict types, every limit, no other field. What is absent is no null."""
    record = record_of(kind)
    return _model(record.name, record.fields)


def parameters(kind: str) -> tuple[str, ...]:
    """The path parameters of a kind's write, in their order in the path."""
    return tuple(_PARAMETER.findall(WRITES[kind].path))


def is_number(parameter: str) -> bool:
    """Whether a path parameter must be an integer (interface, PATCH of a variant)."""
    return parameter in ("productId", "variantId")


@cache
def paths(kind: str) -> dict[str, Field]:
    """Each field of a kind's input that holds a value, by its path; `[]` stands for a place in a list.

    An array of `name` and `value` can also be written by name: `attributes.Color`. See `by_name`.
    """
    return dict(_paths(record_of(kind).fields, ""))


@cache
def by_name(kind: str) -> frozenset[str]:
    """The arrays whose items are a name and a value."""
    return frozenset(
        field.name
        for field in record_of(kind).fields
        if field.type == "array" and {inner.name for inner in field.fields} == {"name", "value"}
    )


def _paths(fields: tuple[Field, ...], before: str) -> list[tuple[str, Field]]:
    found: list[tuple[str, Field]] = []
    for field in fields:
        here = f"{before}{field.name}"
        if field.type == "object":
            found += _paths(field.fields, f"{here}.")
        elif field.type == "array" and field.fields:
            found += _paths(field.fields, f"{here}[].")
        elif field.type == "array" and field.items:
            found.append((f"{here}[]", Field(field.name, field.items)))
        else:
            found.append((here, field))
    return found


def _model(name: str, fields: tuple[Field, ...]) -> type[BaseModel]:
    members: dict[str, Any] = {}
    for field in fields:
        kind = _type(name, field)
        # a default that no value can be tells an absent field; it is never part of what is sent
        members[field.name] = (kind, ...) if field.required else (kind, None)
    title = "".join(part.title() for part in name.split("_"))
    made: type[BaseModel] = create_model(title, __config__=ConfigDict(extra="forbid", frozen=True), **members)
    return made


def _type(name: str, field: Field) -> Any:  # noqa: ANN401 annotations are of no common type
    if field.type == "object":
        return _model(f"{name}_{field.name}", field.fields)
    if field.type == "array":
        items = _model(f"{name}_{field.name}", field.fields) if field.fields else _SCALARS[field.items or "text"]
        return Annotated[list[items], Limits(min_length=field.min_items, max_length=field.max_items)]  # type: ignore[valid-type] # made of the contract
    limits: list[Any] = []
    if field.min_length:
        limits.append(Limits(min_length=field.min_length))
    if field.minimum is not None:
        limits.append(Limits(ge=field.minimum))
    if field.max_decimals is not None:
        limits.append(AfterValidator(_Decimals(field.max_decimals)))
    kind = _SCALARS[field.type]
    for limit in limits:
        kind = Annotated[kind, limit]
    return kind


class _Decimals:
    """At most so many decimals, counted in the number as it is written."""

    def __init__(self, most: int) -> None:
        self._most = most

    def __call__(self, value: float) -> float:
        exponent = Decimal(repr(value)).normalize().as_tuple().exponent
        if isinstance(exponent, int) and -exponent > self._most:
            raise ValueError(f"has more than {self._most} decimals")
        return value


_SCALARS: Final[dict[str, Any]] = {
    "text": Annotated[str, Strict()],
    "integer": Annotated[int, Strict(), Limits(ge=-INT64, lt=INT64)],
    "number": Annotated[float, Strict(), Limits(allow_inf_nan=False)],
    "boolean": Annotated[bool, Strict()],
}
