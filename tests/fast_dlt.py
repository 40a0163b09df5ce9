"""dlt with caches: much of the CPU of a small load is spent on questions about types that have not changed.

dlt resolves its settings at each step of a load, and inspects the type of every field. Cached is what depends on types
alone; settings are read each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from typing import Any

import dlt
import dlt.destinations.impl.filesystem.filesystem
import dlt.load
import dlt.normalize
from dlt.common import typing as types
from dlt.common.configuration.specs import base_configuration as specs

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


@cache
def number_of_fields(kind: type[specs.BaseConfiguration]) -> int:
    return sum(map(specs.is_valid_configspec_field, kind.__dataclass_fields__.values()))


answers = {question: remembering(question) for question in QUESTIONS}
for module in [
    module for name, module in sys.modules.items() if name.partition(".")[0] == dlt.__name__
]:
    for name, value in list(vars(module).items()):
        if callable(value) and getattr(value, "__hash__", None) and value in answers:
            setattr(module, name, answers[value])
specs.BaseConfiguration.__len__ = lambda config: number_of_fields(type(config))  # type: ignore[method-assign]
