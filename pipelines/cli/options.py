"""Makes functions the commands that `options.toml` declares: names, help, values and defaults of their options."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from orderbridge.pipelines.cli.process import STOP
from orderbridge.pipelines.cli.terminal import Style
from orderbridge.pipelines.ledger.numbers import operation_numbers
from orderbridge.sources.errors import UsageError
from orderbridge.sources.kinds import KINDS

F = TypeVar("F", bound=Callable[..., Any])
_MINUTES_MAX: Final = 525_600
"""A year. Times that many minutes from now are dates still."""
_DECLARED: Final = tomllib.loads(
    resources.files("orderbridge.pipelines.cli").joinpath("options.toml").read_text("utf-8")
)


def declared(
    name: str, cls: type[click.Command] = click.Command
) -> Callable[[Callable[..., Any]], click.Command]:
    """Makes a function the command of this name, with its options in the order of `--help`."""
    about = _DECLARED["commands"][name]
    keys = [
        key
        for listed in about.get("options", ())
        for key in _DECLARED["groups"].get(listed, [listed])
    ]

    def decorate(function: Callable[..., Any]) -> click.Command:
        for key in reversed(keys):
            function = _option(
                key, _DECLARED["options"].get(f"{name} {key}") or _DECLARED["options"][key]
            )(function)
        return click.command(name, cls, epilog=about["epilog"])(function)

    return decorate


def _option(key: str, given: Mapping[str, Any]) -> Callable[[F], F]:
    attributes = {"show_default": given.get("default", "") != "", **given}
    names = [key, *filter(None, [attributes.pop("name", "")])]
    least, most = attributes.pop("range", None) or (attributes.pop("at_least", None), None)
    if least is not None:
        is_float = attributes.get("type") == "float"
        attributes["type"] = (click.FloatRange if is_float else click.IntRange)(least, most)
        # click's own name, "float range", is in its message about a value that is none
        attributes["type"].name = "number" if is_float else "integer"
    elif "choices" in attributes:
        attributes["type"] = click.Choice(attributes.pop("choices"))
    elif "type" in attributes:
        attributes["type"] = _TYPES[attributes["type"]]
    if "check" in attributes:
        attributes["callback"] = _CHECKS[attributes.pop("check")]
    return click.option(*names, **attributes)


def kind_argument(function: F) -> F:
    """The argument KIND; `KIND.` in the help becomes `KIND: customers, variants …`."""
    *others, last = KINDS
    function.__doc__ = (function.__doc__ or "").replace(
        "KIND.", f"KIND: {', '.join(others)} or {last}.", 1
    )
    return click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")(function)


def _numbers(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> frozenset[int]:
    """Ids of operations in texts such as `17` and `17,20-24`."""
    try:
        return frozenset(operation_numbers(",".join(texts)) if texts else ())
    except UsageError as error:
        raise click.BadParameter(str(error)) from None


def _pairs(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """The values of a repeatable option of the form NAME=VALUE."""
    for text in values:
        if "=" not in text:
            raise click.BadParameter(f"{text!r} is not {option.metavar}")
    return dict(text.split("=", 1) for text in values)


def _seconds(_: click.Context, __: click.Parameter, minutes: float | None) -> float | None:
    if minutes is None:
        return None
    if not minutes <= _MINUTES_MAX:  # nor if it is `nan`, which a range lets through
        raise click.BadParameter(f"{minutes:g} is not a number of minutes up to {_MINUTES_MAX:,}")
    return minutes * 60


def _use_style(_: click.Context, __: click.Parameter, style: Style | bool) -> None:
    """Sets how the command prints: `--json` counts before `--log`."""
    if style is True or STOP.style == "json":
        STOP.style = "json"
    elif isinstance(style, str):
        STOP.style = style


_TYPES: Final[Mapping[str, Any]] = {
    "path": click.Path(path_type=Path),
    "folder": click.Path(file_okay=False, path_type=Path),
    "existing folder": click.Path(exists=True, file_okay=False, path_type=Path),
    "int": int,
    "float": float,
    "day": click.DateTime(["%Y-%m-%d"]),
}
_CHECKS: Final = {"numbers": _numbers, "pairs": _pairs, "minutes": _seconds, "style": _use_style}
