"""dlt, whose questions about types of settings are answered from memory.

dlt resolves its settings anew at each step of a load, and asks of every field what kind of type it has, some hundred
thousand times in a pull with a copy: a third of the CPU of such a test. The answers depend on the type alone.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache, wraps
from inspect import signature
from typing import Any

import dlt
import dlt.destinations.impl.filesystem.filesystem
import dlt.load
import dlt.normalize
from dlt.common import typing as types
from dlt.common.configuration.specs import base_configuration as specs
from dlt.common.destination import utils

QUESTIONS: tuple[Callable[..., Any], ...] = (
    types.extract_inner_type, types.is_literal_type, types.is_optional_type, types.is_union_type,
    specs.extract_inner_hint, specs.is_base_configuration_inner_hint, specs.is_context_inner_hint,
    specs.is_hint_not_resolvable, specs.is_secret_hint, specs.is_valid_hint,
)  # fmt: skip
RESOLVING: tuple[Callable[..., Any], ...] = (utils.prepare_load_table, utils.resolve_merge_strategy)


def remembering(question: Callable[..., Any]) -> Callable[..., Any]:
    remembered = cache(question)

    @wraps(question)
    def answer(*arguments: Any, **more: Any) -> Any:
        try:
            return remembered(*arguments, **more)
        except TypeError:  # a type that has no hash
            return question(*arguments, **more)

    return answer


def resolving_what_is_missing(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function without a look for settings where each of its arguments is passed."""
    undecorated = function.__wrapped__  # type: ignore[attr-defined]
    parameters = len(signature(undecorated).parameters)

    @wraps(function)
    def called(*arguments: Any, **more: Any) -> Any:
        return (undecorated if len(arguments) + len(more) == parameters else function)(*arguments, **more)

    return called


def remember() -> None:
    """Puts the faster functions in the place of dlt's, in every module of it that is imported."""
    answers = {question: remembering(question) for question in QUESTIONS}
    answers |= {function: resolving_what_is_missing(function) for function in RESOLVING}
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == dlt.__name__]:
        for name, value in list(vars(module).items()):
            if callable(value) and getattr(value, "__hash__", None) and value in answers:
                setattr(module, name, answers[value])


@cache
def number_of_fields(kind: type[specs.BaseConfiguration]) -> int:
    return sum(map(specs.is_valid_configspec_field, kind.__dataclass_fields__.values()))


remember()
specs.BaseConfiguration.__len__ = lambda self: number_of_fields(type(self))  # type: ignore[method-assign]
