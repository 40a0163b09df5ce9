"""The command `sandbox`: serves the stand-in platform on loopback."""

from __future__ import annotations

from pathlib import Path

import click

from pipelines.cli import project_files
from pipelines.cli.terminal import escape
from sources.errors import UsageError
from sources.gaps import GAPS


class _SandboxCommand(click.Command):
    """A command whose help lists faults and readings; they are imported only when help is shown."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """See click.Command."""
        from sandbox.faults import NAMES

        with formatter.section("Faults"):
            formatter.write_dl(list(NAMES.items()))
        with formatter.section("Readings of what the interface does not show (the first is the default)"):
            formatter.write_dl([(gap.name, ", ".join(gap.readings)) for gap in GAPS])
        super().format_epilog(context, formatter)


def _pairs(_: click.Context, option: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    """The values of a repeatable option of the form NAME=VALUE."""
    for text in values:
        if "=" not in text:
            raise click.BadParameter(f"{text!r} is not {option.metavar}")
    return dict(text.split("=", 1) for text in values)


@click.command(
    "sandbox", cls=_SandboxCommand, epilog="Example: orderbridge sandbox --customers 1000 --fault error_503=0.05"
)
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="Port to listen on. Default 0: any free port.")
@click.option("--seed", type=int, default=0, show_default=True, help="The same seed gives the same records and faults.")
@click.option("--customers", type=click.IntRange(min=0), default=650, show_default=True)
@click.option("--orders", type=click.IntRange(min=0), default=400, show_default=True)
@click.option("--promotions", type=click.IntRange(min=0), default=60, show_default=True)
@click.option("--price-lists", type=click.IntRange(min=0), default=12, show_default=True)
@click.option(
    "--records",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="Serve your own: JSON arrays in files named after the lists, such as customers.json.",
)
@click.option(
    "--fault",
    "faults",
    multiple=True,
    metavar="NAME=RATE",
    callback=_pairs,
    help="Share of requests that fail this way, 0 to 1. Repeatable.",
)
@click.option(
    "--reading",
    "readings",
    multiple=True,
    metavar="NAME=VALUE",
    callback=_pairs,
    help="How to behave where the interface is silent. Repeatable.",
)
@click.option("--latency-ms", type=click.FloatRange(min=0), default=0.0, help="Delay before each answer.")
@click.option("--login-mode", type=click.Choice(["email", "code"]), default="email", show_default=True)
@click.option(
    "--write-settings",
    is_flag=True,
    help="Write its address and keys to .dlt/secrets.toml, and the project's .gitignore.",
)
def command(faults: dict[str, str], readings: dict[str, str], write_settings: bool, **options: object) -> None:
    """Serve both interface families on loopback: a stand-in for the platform.

    Prints `ready http://127.0.0.1:PORT` and the settings to use; --write-settings saves them, but replaces no settings
    of yours.
    """
    from sandbox import SandboxConfig, SandboxConfigError
    from sandbox.server import run as serve

    try:
        rates = {name: float(rate) for name, rate in faults.items()}
    except ValueError:
        raise UsageError("the rate of a fault is a number from 0 to 1", "Example: --fault error_503=0.05") from None
    try:
        config = SandboxConfig(faults=rates, readings=readings, **options)  # type: ignore[arg-type] # checked by click
        serve(config, _write_settings if write_settings else None)
    except SandboxConfigError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        message = f"the sandbox cannot listen on port {options['port']}: {error.strerror}"
        raise UsageError(message, "Stop the program that uses it, or choose another one with --port.") from None


def _write_settings(values: dict[str, str]) -> None:
    """Saves the settings that the sandbox prints as the project's."""
    folder = project_files.project_folder()
    path = project_files.write_settings(folder, values, project_files.SANDBOX_MARK)
    project_files.ignore_private_files(folder)
    click.echo(f"wrote {escape(path)}; next, in another terminal in this folder: orderbridge run", err=True)
