"""The commands that need no platform: demo, sandbox."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click

from pipelines.cli.process import STOP, end, started
from sources.errors import UsageError
from sources.gaps import GAPS


@click.command(epilog="Example: orderbridge demo")
@click.option(
    "--folder",
    type=click.Path(file_okay=False, path_type=Path),
    default=Path("demo"),
    show_default=True,
    help="Where all of the demo goes; it is made anew.",
)
def demo(folder: Path) -> None:
    """The whole bridge against the built-in sandbox: pull, plan, push, a crash in the middle, the resume, verify.

    No settings are needed, and nothing is touched outside its folder.
    """
    style = started("auto").style
    from pipelines.cli.demo import demo as show

    end(show(folder, style, STOP.event))


def _pairs(of: str) -> Callable[[click.Context, click.Parameter, tuple[str, ...]], dict[str, str]]:
    def parse(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, str]:
        pairs = {}
        for text in given:
            name, mark, value = text.partition("=")
            if not mark:
                raise click.BadParameter(f"{text!r} is not {of}")
            pairs[name] = value
        return pairs

    return parse


def _sandbox_help() -> str:
    from sandbox.faults import NAMES

    faults = "\n".join(f"  {name:<22} {what}" for name, what in NAMES.items())
    readings = "\n".join(f"  {gap.name:<22} {', '.join(gap.readings)}" for gap in GAPS)
    heading = "Readings of what the interface does not show (the first is the default):"
    return f"\b\nFaults:\n{faults}\n\n\b\n{heading}\n{readings}"


class _SandboxCommand(click.Command):
    """The faults and readings are listed when help is asked for, and only then imported."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        self.epilog = f"{_sandbox_help()}\n\nExample: orderbridge sandbox --customers 1000 --fault error_503=0.05"
        for paragraph in self.epilog.split("\n\n"):
            formatter.write_paragraph()
            formatter.write(paragraph.replace("\b\n", "") + "\n")


@click.command(cls=_SandboxCommand)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="0, the default: a free one.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same records and faults.")
@click.option("--customers", type=click.IntRange(min=0), default=650, show_default=True)
@click.option("--orders", type=click.IntRange(min=0), default=400, show_default=True)
@click.option("--promotions", type=click.IntRange(min=0), default=60, show_default=True)
@click.option("--price-lists", type=click.IntRange(min=0), default=12, show_default=True)
@click.option(
    "--records",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Serve your own: JSON arrays customers.json, promotions.json, price_lists.json, orders.json.",
)
@click.option("--fault", "faults", multiple=True, metavar="NAME=RATE", callback=_pairs("NAME=RATE"), help="Repeatable.")
@click.option(
    "--reading", "readings", multiple=True, metavar="NAME=VALUE", callback=_pairs("NAME=VALUE"), help="Repeatable."
)
@click.option("--latency-ms", type=click.FloatRange(min=0), default=0.0, help="Waits so long before each answer.")
@click.option("--login-mode", type=click.Choice(["email", "code"]), default="email", show_default=True)
def sandbox(faults: dict[str, str], readings: dict[str, str], **options: object) -> None:
    """Serve both families on loopback: a stand-in for the platform, with its errors and its gaps."""
    from sandbox import SandboxConfig, SandboxConfigError
    from sandbox.command import run as serve

    try:
        rates = {name: float(rate) for name, rate in faults.items()}
    except ValueError:
        raise UsageError("a fault's rate is a number from 0 to 1", "Example: --fault error_503=0.05") from None
    try:
        serve(SandboxConfig(faults=rates, readings=readings, **options))  # type: ignore[arg-type] # click checked them
    except SandboxConfigError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        raise UsageError(f"the sandbox cannot listen on port {options['port']}: {error.strerror}") from None
