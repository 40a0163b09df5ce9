"""The command `orderbridge`: arguments in, exit codes out. The only module that prints errors."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator, Mapping
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Final

import click

from orderbridge.pipelines.cli.process import KEPT, STOP, exit_process, open_streams, print_error
from orderbridge.pipelines.cli.usage_errors import usage_error
from orderbridge.pipelines.warehouse.failure import describe_error, was_published
from orderbridge.sources import __version__
from orderbridge.sources.command_line import ending_with_command, keep_typed
from orderbridge.sources.disk import disk_errors
from orderbridge.sources.errors import BridgeError, ExitCode, UsageError, bug_report

COMMAND_GROUPS: Final = {
    "Every week": ("init", "run", "status", "import", "questions", "answer", "desk", "report"),
    "Steps of run and import": ("pull", "reconcile", "plan", "push", "verify"),
    "Files": ("preview", "template", "export"),
    "Trouble and trying": ("check", "settle", "diff", "demo", "sandbox"),
    "For other systems": ("views",),
    "Replaced by questions and answer, kept for one version": ("accept", "review", "schema"),
}
"""Headings of `orderbridge --help`, each with its commands. A command is in the module of its name."""
_MODULES: Final = {"import": "import_file"}
"""Modules of other names: Python reserves these."""
_IS_WINDOWS: Final = os.name == "nt"
_GC_THRESHOLD: Final = 20_000
"""Objects between two collections. With Python's 700, collections take a tenth of the CPU of a small pull: a million
objects of imported modules are searched again and again, and none of them is ever garbage."""


class _Commands(Mapping[str, click.Command]):
    """All commands by name. A module is imported when its command is looked up, so that a run imports one of them."""

    def __getitem__(self, name: str) -> click.Command:
        if name not in iter(self):
            raise KeyError(name)
        module = import_module(f"orderbridge.pipelines.cli.{_MODULES.get(name, name)}")
        command: click.Command = module.command
        return command

    def __iter__(self) -> Iterator[str]:
        return chain.from_iterable(COMMAND_GROUPS.values())

    def __len__(self) -> int:
        return sum(map(len, COMMAND_GROUPS.values()))


class _GroupedCommands(click.Group):
    """Lists the commands under the headings of COMMAND_GROUPS, in that order."""

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        for heading, names in COMMAND_GROUPS.items():
            with formatter.section(heading):
                formatter.write_dl([(name, _summary(self.commands[name])) for name in names])


def _summary(command: click.Command) -> str:
    """The first sentence of a command's help. click's own limit would cut it to one line."""
    return command.get_short_help_str(limit=200)


def _print_versions(context: click.Context, _: click.Parameter, value: bool) -> None:
    if not value or context.resilient_parsing:
        return
    from importlib.metadata import version

    parts = ", ".join(
        f"{name} {version(name)}" for name in ("dlt", "duckdb", "pyarrow", "pandas", "httpx")
    )
    click.echo(f"orderbridge {__version__} ({parts}, Python {sys.version.split()[0]})")
    context.exit()


@click.group(
    cls=_GroupedCommands,
    commands=_Commands(),
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="\b\nExit codes:\n"
    + "\n".join(f"  {code.label:<20}{code.meaning}" for code in ExitCode),
)
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=_print_versions,
    help="Show versions.",
)
@click.option(
    "--project",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Folder of settings (.dlt), warehouse, ledger and plans: one for each organization. Goes before the command.",
)
@click.pass_context
def orderbridge(context: click.Context, project: Path | None) -> None:
    """A bridge between an ordering platform and an ERP.

    Pulls the lists of the platform, such as customers and orders, into one DuckDB file, all or nothing. Plans what an
    ERP file would change on the platform, and sends that plan, each write exactly once.

    \b
    Try it without settings: orderbridge demo
    Then with your own:      orderbridge init
                             orderbridge run
    """  # noqa: D301 # \b is a control character that click requires to keep line breaks
    if _IS_WINDOWS:
        raise UsageError(
            "orderbridge does not run on Windows itself: it protects its files by POSIX owners and modes",
            "Run it in WSL 2 or in a container (docs/orchestrators/Dockerfile).",
        )
    with disk_errors("the current folder", "It was removed: change to one that exists."):
        Path.cwd()
    os.umask(0o077)
    # idle threads of NumPy's linear algebra, not used here, spin
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    import resource  # which Windows has not

    # no core file: the memory holds keys and passwords
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    STOP.style = "auto"
    STOP.note = KEPT if context.invoked_subcommand in ("pull", "run") else ""
    if project is not None:
        from orderbridge.sources.settings import set_project

        set_project(project)


def _invoke() -> int:
    """The command's exit code. click's own `main` would exit by itself on a closed pipe, and print on Ctrl-C."""
    if "_ORDERBRIDGE_COMPLETE" in os.environ:
        orderbridge.main()  # the shell asks for completions
    keep_typed(sys.argv[1:], orderbridge.commands)
    with orderbridge.make_context("orderbridge", sys.argv[1:]) as context:
        return orderbridge.invoke(context) or ExitCode.DONE


def _print_failure(code: int, message: str, hint: str) -> None:
    """Prints why a command failed, then what is next; a program that reads JSON has the command itself."""
    if STOP.style != "json" and code == ExitCode.USAGE:
        hint = ending_with_command(hint)
    print_error(code, f"{message}\n  {hint}" if hint else message, "orderbridge: ")


def _stopped(error: BaseException) -> int:
    code = STOP.exit_code(ExitCode.STOPPED)
    end = "; the warehouse was published before" if was_published(error) else STOP.note
    print_error(code, f"stopped{end}")
    return code


def main() -> None:
    """The entry point. Every way out has its exit code."""
    try:
        gc.set_threshold(_GC_THRESHOLD)
        open_streams()
        code = _invoke()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        code = ExitCode.USAGE
        print_error(code, str(usage_error(error)), "orderbridge: ")
    except (KeyboardInterrupt, click.Abort) as error:
        code = _stopped(error)
    except BrokenPipeError:
        code = 128 + signal.SIGPIPE
    except BridgeError as error:
        code = STOP.exit_code(error.exit_code)
        _print_failure(code, error.message, error.hint)
    except Exception as error:  # the last resort
        code, message, hint = describe_error(error)
        if STOP.signal:
            # DuckDB turns the exception of a signal into a RuntimeError while a query runs
            code = _stopped(error)
        elif code == ExitCode.BUG:
            print_error(code, bug_report(error))
        else:
            _print_failure(code, message, hint)
    exit_process(code)
