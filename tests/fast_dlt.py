"""dlt with caches: half of the CPU of a small load is spent on settings and schemas that have not changed.

dlt resolves its settings at each step of a load. For every field it inspects the type and looks for environment
variables under several names; it computes a destination's capabilities 25 times. Cached is what depends on types,
names or one destination object alone. Environment variables are read each time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from copy import copy
from functools import cache, wraps
from pathlib import Path
from typing import Any

import dlt
import dlt.destinations.impl.filesystem.filesystem
import dlt.load
import dlt.normalize
from dlt.common import typing as types
from dlt.common import validation
from dlt.common.configuration import resolve
from dlt.common.configuration.exceptions import LookupTrace
from dlt.common.configuration.providers.environ import EnvironProvider
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


Lookup = tuple[Any, list[LookupTrace]]
resolve_provider_value: Callable[..., Lookup] = resolve.resolve_single_provider_value
compute_capabilities: Callable[..., Any] = Destination.capabilities
get_type_hints: Callable[..., dict[str, Any]] = vars(validation)["get_type_hints"]
ENVIRONMENT = EnvironProvider().name
"""Of the provider itself, and of the one that a pull puts in its place."""
NO_SECRET_FILES = not Path("/run/secrets").is_dir()


@cache
def environment_names(
    key: str, pipeline: str | None, section: str | None, explicit: tuple[str, ...], embedded: tuple[str, ...]
) -> tuple[tuple[Any, ...], tuple[LookupTrace, ...]]:
    """The encoded names of variables that may hold a field, and dlt's record that none of them is set."""
    paths = resolve._build_section_lookup_paths(explicit, embedded, section or "", True)
    names = tuple(EnvironProvider.get_key_name(key, pipeline or "", *path) for path in paths)
    record = zip(paths, names, strict=True)
    traces = tuple(LookupTrace(ENVIRONMENT, list(path), name, None, "") for path, name in record)
    return tuple(map(vars(os.environ)["encodekey"], names)), traces


def look_up(
    provider: Any,
    key: str,
    hint: Any,
    pipeline: str | None = None,
    section: str | None = None,
    explicit: tuple[str, ...] = (),
    embedded: tuple[str, ...] = (),
) -> Lookup:
    """`resolve_single_provider_value`, which is called only where one of the environment variables is set."""
    if provider.name == ENVIRONMENT and NO_SECRET_FILES:
        names, traces = environment_names(key, pipeline, section, explicit, embedded)
        if vars(os.environ)["_data"].keys().isdisjoint(names):
            return None, list(traces)
    return resolve_provider_value(provider, key, hint, pipeline, section, explicit, embedded)


def capabilities(destination: Any, config: Any = None, naming: Any = None) -> Any:
    """The capabilities of a destination by its own parameters, computed once; dlt changes the copy that it gets."""
    if config is not None:
        return compute_capabilities(destination, config, naming)
    computed = vars(destination).setdefault("computed_capabilities", {})
    if type(naming) not in computed:
        computed[type(naming)] = compute_capabilities(destination, None, naming)
    return copy(computed[type(naming)])


hints: dict[type, dict[str, Any]] = {}
fields: dict[type, dict[str, Any]] = {}


def hints_of(kind: type, globalns: dict[str, Any]) -> dict[str, Any]:
    if kind not in hints:
        hints[kind] = get_type_hints(kind, globalns=globalns)
    return hints[kind]


def fields_of(kind: type[specs.BaseConfiguration]) -> dict[str, Any]:
    if kind not in fields:
        fields[kind] = resolvable_fields.__func__(kind)
    return dict(fields[kind])


def remember() -> None:
    """Puts the faster functions in the place of dlt's, in every module of it that is imported."""
    answers = {question: remembering(question) for question in QUESTIONS}
    for module in [module for name, module in sys.modules.items() if name.partition(".")[0] == dlt.__name__]:
        for name, value in list(vars(module).items()):
            if callable(value) and getattr(value, "__hash__", None) and value in answers:
                setattr(module, name, answers[value])


@cache
def number_of_fields(kind: type[specs.BaseConfiguration]) -> int:
    return sum(map(specs.is_valid_configspec_field, kind.__dataclass_fields__.values()))


def length(config: specs.BaseConfiguration) -> int:
    return number_of_fields(type(config))


resolvable_fields: Any = specs.BaseConfiguration.get_resolvable_fields
REPLACEMENTS: tuple[tuple[Any, str, Any], ...] = (
    (resolve, "resolve_single_provider_value", look_up),
    (validation, "get_type_hints", hints_of),
    (Destination, "capabilities", capabilities),
    (specs.BaseConfiguration, "get_resolvable_fields", classmethod(fields_of)),
    (specs.BaseConfiguration, "__len__", length),
)
remember()
for place, name, faster in REPLACEMENTS:
    setattr(place, name, faster)
