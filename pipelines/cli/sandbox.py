"""The command `sandbox`: serves the stand-in platform on loopback."""

from __future__ import annotations

import click

from orderbridge.pipelines.cli import project_files
from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.terminal import escape
from orderbridge.sources.command_line import complete, typed_command
from orderbridge.sources.errors import UsageError
from orderbridge.sources.gaps import GAPS


class _SandboxCommand(click.Command):
    """A command whose help lists faults and readings; they are imported only when help is shown."""

    def format_epilog(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """See click.Command."""
        from orderbridge.sandbox.faults import NAMES

        with formatter.section("Faults"):
            formatter.write_dl(list(NAMES.items()))
        with formatter.section(
            "Readings of what the interface does not show (the first is the default)"
        ):
            formatter.write_dl([(gap.name, ", ".join(gap.readings)) for gap in GAPS])
        super().format_epilog(context, formatter)


@declared("sandbox", cls=_SandboxCommand)
def command(
    faults: dict[str, str], readings: dict[str, str], write_settings: bool, **options: object
) -> None:
    """Serve a stand-in for the platform on this machine, for trials.

    Prints `ready http://127.0.0.1:PORT` and the settings to use.
    """
    from orderbridge.sandbox import SandboxConfig, SandboxConfigError
    from orderbridge.sandbox.server import run as serve

    try:
        rates = {name: float(rate) for name, rate in faults.items()}
    except ValueError:
        raise UsageError(
            "the rate of a fault is a number from 0 to 1",
            "Such as: orderbridge sandbox --fault error_503=0.05",
        ) from None
    try:
        config = SandboxConfig(faults=rates, readings=readings, **options)  # type: ignore[arg-type] # checked by click
        serve(config, _write_settings if write_settings else None)
    except SandboxConfigError as error:
        raise UsageError(str(error)) from None
    except OSError as error:
        message = f"the sandbox cannot listen on port {options['port']}: {error.strerror}"
        raise UsageError(
            message,
            f"Stop the program that uses it, or use any free port: {typed_command('--port', '0')}",
        ) from None


def _write_settings(values: dict[str, str]) -> None:
    """Saves the settings that the sandbox prints as the project's."""
    folder = project_files.project_folder()
    path = project_files.write_settings(folder, values, project_files.SANDBOX_MARK)
    project_files.ignore_private_files(folder)
    todo = complete("orderbridge run")
    click.echo(f"wrote {escape(path)}; next, in another terminal in this folder: {todo}", err=True)
