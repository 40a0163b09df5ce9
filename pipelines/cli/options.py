"""Options that several commands share, as decorators."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

from pipelines.cli.process import STOP

F = TypeVar("F", bound=Callable[..., Any])


def log_option(function: F) -> F:
    """`--log`: the format of progress and errors on stderr. Passed to the command as `style`."""
    return click.option(
        "--log",
        "style",
        is_eager=True,
        callback=_use_style,
        type=click.Choice(["auto", "plain", "json"]),
        default="auto",
        show_default=True,
        help="Progress bars on a terminal and lines in a pipe (auto), always lines (plain), or JSON.",
    )(function)


def json_option(function: F) -> F:
    """`--json`: the result as JSON on stdout. Passed to the command as `as_json`."""
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=_use_json,
        help="Print JSON on stdout, and errors as JSON on stderr.",
    )(function)


def pull_options(function: F) -> F:
    """What `pull` and `run` share: the fields of `PullOptions` but `resources` and `command`."""
    for option in (
        click.option(
            "--tail/--whole",
            help="Read only the orders after the last read, if the platform proves able to continue there; whole "
            "again after sources.public_v1.whole_read_days. Default: --whole.",
        ),
        click.option(
            "--accept-new-source",
            is_flag=True,
            help="Publish into a warehouse that holds the data of another host, environment or organization.",
        ),
        click.option("--accept-shrink", is_flag=True, help="Publish a list that is much smaller than before."),
        click.option("--require-complete", is_flag=True, help="Publish nothing unless every list is complete."),
        click.option(
            "--sweeps",
            type=click.IntRange(1, 6),
            default=6,
            show_default=True,
            help="Maximum sweeps over a list paged by numbers. Two that agree prove it complete; one never does.",
        ),
    ):
        function = option(function)
    return function


lookup_option = click.option(
    "--lookup",
    "lookups",
    type=click.Path(path_type=Path),
    multiple=True,
    metavar="FILE",
    help="A lookup file that the mapping may read outside its own folder.",
)


def erp_options(function: F) -> F:
    """The ERP files that `reconcile` and `run` compare, the lookup files of their mappings, and where they match."""
    function = click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Scheduler of a Dask cluster that matches --erp-customers, such as tcp://10.0.0.5:8786. Requires "
        "orderbridge[dask].",
    )(lookup_option(function))
    for name, text in (
        ("--erp-variants-mapping", "Mapping for --erp-variants. Default: detected from the column names."),
        ("--erp-variants", "Variants exported from the ERP, compared with what was last confirmed."),
        ("--erp-mapping", "Mapping for --erp-customers. Default: detected from the column names."),
        ("--erp-customers", "Customers exported from the ERP (CSV or .xlsx), matched with the platform's."),
    ):
        function = click.option(name, type=click.Path(path_type=Path), metavar="FILE", help=text)(function)
    return function


def name_value_pairs(
    form: str,
) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    """A callback that parses a repeatable option of the form `NAME=VALUE`."""

    def parse(_: click.Context, __: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for text in values:
            name, separator, value = text.partition("=")
            if not separator:
                raise click.BadParameter(f"{text!r} is not {form}")
            pairs[name] = value
        return pairs

    return parse


def _use_style(_: click.Context, __: click.Parameter, style: str) -> str:
    STOP.as_json = style == "json"
    return style


def _use_json(_: click.Context, __: click.Parameter, as_json: bool) -> bool:
    STOP.as_json = STOP.as_json or as_json
    return as_json
