"""The command `orderbridge`: arguments in, exit codes out. Only this module tells errors."""

from __future__ import annotations

import os
import signal
import sys
import traceback
from pathlib import Path
from typing import Final

import click

from pipelines.cli.commands import COMMANDS
from pipelines.cli.process import STOP, Output, begin, end, say
from sources import __version__
from sources.errors import BridgeError

_KEPT: Final = "; nothing was published, what was fetched is kept for the next run"


def _versions(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    if not wanted or context.resilient_parsing:
        return
    from importlib.metadata import version

    parts = ", ".join(f"{name} {version(name)}" for name in ("dlt", "duckdb", "pyarrow", "pandas", "httpx"))
    click.echo(f"orderbridge {__version__} ({parts}, Python {sys.version.split()[0]})")
    context.exit()


@click.group(
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog="Exit codes: 0 done, whole · 1 a bug · 2 usage or settings · 3 access · 4 the platform · 5 rows refused · "
    "6 outcomes in doubt · 7 coverage not complete or too old · 8 another run holds the lock.",
)
@click.option("--version", is_flag=True, is_eager=True, expose_value=False, callback=_versions, help="Show versions.")
def orderbridge() -> None:
    """The bridge between an ordering platform and an ERP.

    Pulls customers, promotions, price lists and orders into one DuckDB file, whole or not at all; plans and sends what
    a file of the ERP's would change.

    \b
    Example, without any settings: orderbridge demo
    Then, with your own:           orderbridge check
                                   orderbridge pull
    """  # noqa: D301 # the mark of lines that stay is a control character: click knows no other
    os.umask(0o077)


for _command in COMMANDS:
    orderbridge.add_command(_command)


def _unexpected(error: BaseException) -> str:
    """A bug as types and places, without the exceptions' own texts: those can hold values of rows."""
    lines = ["orderbridge met an error of its own. Please report these lines; they hold no data of yours:"]
    cause: BaseException | None = error
    while cause is not None:
        lines.append(f"{type(cause).__module__}.{type(cause).__qualname__}")
        lines += [f"  {Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(cause.__traceback__)]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(lines)


def _invoke() -> int:
    """Runs the command. click's own `main` would end the process by itself on a closed pipe, and print on ctrl-C."""
    if "_ORDERBRIDGE_COMPLETE" in os.environ:
        orderbridge.main()  # the shell asks for completions
    with orderbridge.make_context("orderbridge", sys.argv[1:]) as context:
        orderbridge.invoke(context)
    sys.stdout.flush()
    return 2 if isinstance(sys.stdout, Output) and sys.stdout.refused is not None else 0  # it was all there is to do


def _stopped() -> int:
    code = 128 + (STOP.signal or signal.SIGINT)
    published = {"pull", "run"} & set(sys.argv[1:2])
    say(code, f"stopped{_KEPT if published else ''}")
    return code


def _last_words(error: Exception) -> int:
    """Tells an exception that nobody expected, and gives its exit code."""
    if STOP.signal:
        return _stopped()  # DuckDB makes a RuntimeError of what a signal raises while it is at work
    say(1, _unexpected(error))
    return 1


def main() -> None:
    """The entry point. Every way out has its exit code (design §5)."""
    begin()
    try:
        code = _invoke()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        code = 2
        if STOP.as_json:
            say(code, error.format_message())
        else:
            error.show()
    except (KeyboardInterrupt, click.Abort):
        code = _stopped()
    except BrokenPipeError:
        code = 128 + signal.SIGPIPE
    except BridgeError as error:
        code = error.exit_code
        say(code, str(error), "orderbridge: ")
    except Exception as error:  # the last resort: told as a bug, exit 1
        code = _last_words(error)
    end(code)
