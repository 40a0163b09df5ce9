"""dlt with caches: much of the CPU of a small load is spent on questions about types that have not changed.

dlt resolves its settings at each step of a load. For every field it inspects the type, and it computes a destination's
capabilities 25 times. Cached is what depends on types or one destination object alone; settings are read each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from copy import copy
from functools import cache, wraps
from typing import Any

import dlt
import dlt.destinations.impl.filesystem.filesystem
import dlt.load
import dlt.normalize
from dlt.common import typing as types
from dlt.common import validation
from dlt.common.configuration.specs import base_configuration as specs
from dlt.common.destination.reference import Destination

QUESTIONS: tuple[Callable[..., Any], ...] = (
    types.extract_inner_type, types.is_literal_type, types.is_optional_type, types.is_union_type,
    types.is_generic_alias, types.is_subclass, types.get_all_types_of_class_in_union,
    specs.extract_inner_hint, specs.is_base_configuration_inner_hint, specs.is_context_inner_hint,
    specs.is_hint_not_resolvable, specs.is_secret_hint, specs.is_valid_hint,
)  # fmt: skip


def remembering(question: Callable[..., Any]) -> Callable[..., Any]:
    remembered = cache(question)

    @wraps(question)
    def answer(*arguments: Any, **more: Any) -> Any:
        try:
            return remembered(*arguments, **more)
        except TypeError:  # a type that has no hash
            return question(*arguments, **more)

    return answer


compute_capabilities: Callable[..., Any] = Destination.capabilities
get_type_hints: Callable[..., dict[str, Any]] = vars(validation)["get_type_hints"]
resolvable_fields: Any = specs.BaseConfiguration.get_resolvable_fields
hints: dict[type, dict[str, Any]] = {}
fields: dict[type, dict[str, Any]] = {}


def capabilities(destination: Any, config: Any = None, naming: Any = None) -> Any:
    """The capabilities of a destination by its own parameters, computed once; dlt changes the copy that it gets."""
    if config is not None:
        return compute_capabilities(destination, config, naming)
    computed = vars(destination).setdefault("computed_capabilities", {})
    if type(naming) not in computed:
        computed[type(naming)] = compute_capabilities(destination, None, naming)
    return copy(computed[type(naming)])


def hints_of(kind: type, globalns: dict[str, Any]) -> dict[str, Any]:
    if kind not in hints:
        hints[kind] = get_type_hints(kind, globalns=globalns)
    return hints[kind]


def fields_of(kind: type[specs.BaseConfiguration]) -> dict[str, Any]:
    if kind not in fields:
        fields[kind] = resolvable_fields.__func__(kind)
    return dict(fields[kind])


@cache
def number_of_fields(kind: type[specs.BaseConfiguration]) -> int:
    return sum(map(specs.is_valid_configspec_field, kind.__dataclass_fields__.values()))


answers = {question: remembering(question) for question in QUESTIONS}
for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == dlt.__name__]:
    for name, value in list(vars(module).items()):
        if callable(value) and getattr(value, "__hash__", None) and value in answers:
            setattr(module, name, answers[value])
setattr(validation, "get_type_hints", hints_of)  # noqa: B010 # dlt exports it to nobody
Destination.capabilities = capabilities  # type: ignore[method-assign, assignment]
specs.BaseConfiguration.get_resolvable_fields = classmethod(fields_of)  # type: ignore[method-assign, assignment]
specs.BaseConfiguration.__len__ = lambda config: number_of_fields(type(config))  # type: ignore[method-assign]
