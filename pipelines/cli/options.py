"""Options that several commands share, as decorators."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from pipelines.cli.process import STOP
from pipelines.cli.terminal import Style
from sources.kinds import KINDS

F = TypeVar("F", bound=Callable[..., Any])
_RANGE_MAX: Final = 1_000_000


def path_option(*names: str, metavar: str = "FILE", **attributes: Any) -> Callable[[F], F]:  # noqa: ANN401 # click's
    """An option whose value is a path."""
    return click.option(*names, type=click.Path(path_type=Path), metavar=metavar, **attributes)


def kind_argument(function: F) -> F:
    """The argument KIND; `KIND.` in the help becomes `KIND: customers, variants …`."""
    *others, last = KINDS
    function.__doc__ = (function.__doc__ or "").replace("KIND.", f"KIND: {', '.join(others)} or {last}.", 1)
    return click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")(function)


def _together(*options: Callable[[F], F]) -> Callable[[F], F]:
    """Several options as one decorator; `--help` shows them in this order."""

    def decorate(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorate


def _numbers(_: click.Context, __: click.Parameter, texts: tuple[str, ...]) -> frozenset[int]:
    """Ids of operations in texts such as `17` and `17,20-24`."""
    numbers: set[int] = set()
    for part in ",".join(texts).split(",") if texts else ():
        match = re.fullmatch(r"\s*([0-9]+)(?:-([0-9]+))?\s*", part)
        if match is None:
            raise click.BadParameter(f"{part!r} is not the number of an operation, such as 17 or 20-24")
        first, last = int(match[1]), int(match[2] or match[1])
        if last - first > _RANGE_MAX:
            raise click.BadParameter(f"{part!r} is too long a range")
        numbers.update(range(first, last + 1))
    return frozenset(numbers)


def _answer_option(name: str, help: str) -> Callable[[F], F]:  # noqa: A002 # as click names it
    return click.option(name, multiple=True, metavar="IDS", callback=_numbers, help=help)


def _use_style(_: click.Context, __: click.Parameter, style: Style | bool) -> None:
    """Sets how the command prints: `--json` counts before `--log`."""
    if style is True or STOP.style == "json":
        STOP.style = "json"
    elif isinstance(style, str):
        STOP.style = style


log_option = click.option(
    "--log",
    is_eager=True,
    expose_value=False,
    callback=_use_style,
    type=click.Choice(["auto", "plain", "json"]),
    default="auto",
    show_default=True,
    help="Progress bars on a terminal and lines in a pipe (auto), always lines (plain), or JSON.",
)
json_option = click.option(
    "--json",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_use_style,
    help="Print JSON on stdout, and errors as JSON on stderr.",
)
# the fields of `Answers`, and the time after which they may be given
answer_options = _together(
    _answer_option(
        "--landed", "Operations in doubt, or abandoned creates, that took effect on the platform: 17,20-24."
    ),
    _answer_option("--not-landed", "Operations in doubt, or abandoned creates, that did not: they can be sent again."),
    _answer_option("--abandon", "Operations in doubt, or not sent, to give up: they are never sent."),
    click.option(
        "--settle",
        type=click.FloatRange(min=0),
        metavar="MINUTES",
        callback=lambda _, __, minutes: None if minutes is None else minutes * 60,
        help="How long a create whose answer was lost may still take effect. Default: 15; 0 for the built-in sandbox, "
        "which says that it settles at once. Less for an environment `sandbox` only, if you know that of it.",
    ),
)
lookup_option = path_option(
    "--lookup", "lookups", multiple=True, help="A lookup file that the mapping may read outside its own folder."
)
# fields of `PlanOptions`, of `plan` and `import`
plan_options = _together(
    click.option(
        "--passwords",
        type=click.Choice(["mail", "file"]),
        help="Generate passwords of new customers: mailed by the platform, or written to a file for you.",
    ),
    lookup_option,
    click.option(
        "--notify-customers", "notify", is_flag=True, help="Let the platform send a message to each new customer."
    ),
)
# the fields of `PullOptions` but `resources` and `command`
pull_options = _together(
    click.option(
        "--sweeps",
        type=click.IntRange(1, 6),
        default=6,
        show_default=True,
        help="Maximum sweeps over a list paged by numbers. Two that agree prove it complete; one never does.",
    ),
    click.option("--require-complete", is_flag=True, help="Publish nothing unless every list is complete."),
    click.option("--accept-shrink", is_flag=True, help="Publish a list that is much smaller than before."),
    click.option(
        "--accept-new-source",
        is_flag=True,
        help="Publish into a warehouse that holds the data of another host, environment or organization.",
    ),
    click.option(
        "--tail/--whole",
        help="Read only the orders after the last read, if the platform proves able to continue there; whole "
        "again after sources.public_v1.whole_read_days. Default: --whole.",
    ),
)
fail_on_option = click.option(
    "--fail-on",
    type=click.Choice(["error", "warning", "never"]),
    default="error",
    show_default=True,
    help="Least severity of a finding that nobody has accepted which ends the run with exit code 9. It publishes all "
    "the same.",
)
# the fields of `ErpFiles`
erp_options = _together(
    path_option(
        "--erp-customers",
        "customers",
        help="Customers exported from the ERP (CSV or .xlsx), matched with the platform's.",
    ),
    path_option(
        "--erp-mapping", "mapping", help="Mapping for --erp-customers. Default: detected from the column names."
    ),
    path_option(
        "--erp-result",
        "result",
        help="Write the match as a workbook (.xlsx) for the office: a row for each line and each customer that no line "
        "is. Replaces the last one.",
    ),
    path_option(
        "--erp-variants", "variants", help="Variants exported from the ERP, compared with what was last confirmed."
    ),
    path_option(
        "--erp-variants-mapping",
        "variants_mapping",
        help="Mapping for --erp-variants. Default: detected from the column names.",
    ),
    click.option(
        "--scheduler",
        metavar="ADDRESS",
        help="Scheduler of a Dask cluster that works on the parts of long lists, such as "
        "tcp://10.0.0.5:8786. Requires the extra `dask` of orderbridge.",
    ),
    lookup_option,
    click.option(
        "--forget-erp",
        "forget",
        is_flag=True,
        help="Without a file of the ERP, empty the tables of the last comparison. Default: they are kept.",
    ),
)
