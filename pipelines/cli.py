"""The command `orderbridge`: arguments in, exit codes out. Only this module prints errors and ends the process."""

from __future__ import annotations

import json
import logging
import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import click

from sources import __version__
from sources.contract import GAPS, LISTS
from sources.errors import BridgeError, UsageError

if TYPE_CHECKING:
    from pipelines.console import Reporter
    from pipelines.erp import ErpFiles

_KEPT: Final = "; nothing was published, what was fetched is kept for the next run"
RESOURCES: Final = tuple(LISTS)
F = TypeVar("F", bound=Callable[..., Any])


class _Stop:
    """Ctrl-C and SIGTERM: the first one asks the walks to stop and unwinds; what is on disk stays whole.

    Attributes:
        event: set once the process is to end.
        signal: which one came.
        as_json: whether last words are for machines.
    """

    def __init__(self) -> None:
        self.event = threading.Event()
        self.signal = 0
        self.as_json = False
        self._is_gentle = False

    def listen(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._stop)

    def _stop(self, number: int, frame: object) -> None:
        if self.signal:
            return  # it is stopping: another one must not break off what clears up
        self.signal = number
        self.event.set()
        if not self._is_gentle:
            raise KeyboardInterrupt

    @contextmanager
    def gently(self) -> Iterator[None]:
        """Inside the block a signal sets the event, and breaks in nowhere."""
        self._is_gentle = True
        try:
            yield
        finally:
            self._is_gentle = False


STOP = _Stop()


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


def _remember(_: click.Context, __: click.Parameter, style: str) -> str:
    STOP.as_json = style == "json"
    return style


def _log_option(function: F) -> F:
    return click.option(
        "--log",
        "style",
        is_eager=True,
        callback=_remember,
        type=click.Choice(["auto", "plain", "json"]),
        default="auto",
        show_default=True,
        help="Bars on a terminal and lines in a pipe, always lines, or JSON for machines.",
    )(function)


def _remember_json(_: click.Context, __: click.Parameter, as_json: bool) -> bool:
    STOP.as_json = STOP.as_json or as_json
    return as_json


def _json_option(function: F) -> F:
    return click.option(
        "--json",
        "as_json",
        is_flag=True,
        is_eager=True,
        callback=_remember_json,
        help="JSON on stdout; an error as JSON on stderr.",
    )(function)


def _pull_options(function: F) -> F:
    for option in (
        click.option("--accept-shrink", is_flag=True, help="Take a list that is much smaller than it was."),
        click.option("--require-complete", is_flag=True, help="Publish nothing unless every list is proven complete."),
        click.option(
            "--sweeps",
            type=click.IntRange(1, 6),
            default=6,
            show_default=True,
            help="At most so many sweeps over a list paged by numbers; two that agree are enough, one proves nothing.",
        ),
    ):
        function = option(function)
    return function


def _erp_options(function: F) -> F:
    for option in (
        click.option(
            "--erp-variants-mapping",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The same for the variants' columns.",
        ),
        click.option(
            "--erp-variants",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The ERP's variants: which are as the platform last confirmed them, by the ledger.",
        ),
        click.option(
            "--erp-mapping",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="Which of the customers' columns are which fields; read by their names where it is not told.",
        ),
        click.option(
            "--erp-customers",
            type=click.Path(path_type=Path),
            metavar="FILE",
            help="The ERP's customers, CSV or .xlsx: who is who, and in what both sides differ.",
        ),
    ):
        function = option(function)
    return function


def _started(style: str) -> Reporter:
    """The settings' root, dlt made quiet, logging to stderr: what every command that works begins with."""
    from pipelines.console import Reporter
    from pipelines.environment import prepare

    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stderr)
    prepare()
    STOP.listen()
    return Reporter(style)  # type: ignore[arg-type]


@orderbridge.command(epilog="Example: orderbridge pull customers orders --require-complete")
@click.argument("resource", nargs=-1, type=click.Choice(RESOURCES), metavar="[RESOURCE]...")
@_pull_options
@_log_option
def pull(resource: tuple[str, ...], sweeps: int, require_complete: bool, accept_shrink: bool, style: str) -> None:
    """Walk the lists to their ends and publish the raw tables.

    RESOURCE: customers, promotions, price_lists, orders; all of them where none is named. A list whose walk fails
    keeps its old table and the exit code says so; where every list fails, nothing is published.
    """
    _pull("pull", resource, sweeps, require_complete, accept_shrink, style)


@orderbridge.command(
    epilog="Example, in a crontab: 15 3 * * * cd /srv/orderbridge && .venv/bin/orderbridge run --log json"
)
@_pull_options
@_erp_options
@_log_option
def run(
    sweeps: int,
    require_complete: bool,
    accept_shrink: bool,
    erp_customers: Path | None,
    erp_mapping: Path | None,
    erp_variants: Path | None,
    erp_variants_mapping: Path | None,
    style: str,
) -> None:
    """What a scheduler calls: pull every list, reconcile, publish once."""
    from pipelines.erp import ErpFiles

    files = ErpFiles(erp_customers, erp_mapping, erp_variants, erp_variants_mapping)
    _pull("run", (), sweeps, require_complete, accept_shrink, style, files)


@orderbridge.command(epilog="Example: orderbridge reconcile --erp-customers clientes.csv")
@_erp_options
@_log_option
def reconcile(
    erp_customers: Path | None,
    erp_mapping: Path | None,
    erp_variants: Path | None,
    erp_variants_mapping: Path | None,
    style: str,
) -> None:
    """Build the reconciled tables from the published raw ones: what they mean, and what does not fit.

    With --erp-customers, the ERP's customers are matched with the platform's: by the ERP's code, else by the login
    code, the e-mail address, the number of a document. A line that does not fit its file is told, and the exit code is
    5.
    """
    with _started(style) as reporter:
        from pipelines.erp import ErpFiles
        from pipelines.reconcile import reconcile as reconcile_tables

        made = reconcile_tables(ErpFiles(erp_customers, erp_mapping, erp_variants, erp_variants_mapping))
    reporter.reconciled(made)
    _end(made.exit_code)


def _pull(
    command: str,
    resource: tuple[str, ...],
    sweeps: int,
    require_complete: bool,
    accept_shrink: bool,
    style: str,
    files: ErpFiles | None = None,
) -> None:
    with _started(style) as reporter:
        from pipelines.pull import Wanted
        from pipelines.pull import pull as pull_lists
        from pipelines.reconcile import Reconciling

        wanted = Wanted(tuple(dict.fromkeys(resource)), sweeps, require_complete, accept_shrink, command)
        reconciling = Reconciling(files) if command == "run" else None
        pulled = pull_lists(wanted, reporter.progress, STOP.event, reconciling)
    reporter.pulled(pulled)
    if reconciling is not None and reconciling.made is not None:
        reporter.reconciled(reconciling.made)
    _end(pulled.exit_code)


@orderbridge.command(epilog="Example: orderbridge template customers > clientes.csv")
@click.argument("kind", type=click.Choice(["customers", "variants", "subcategories", "warehouses"]), metavar="KIND")
@click.option("--mapping", is_flag=True, help="A mapping file with its keys explained, in place of the CSV.")
@click.option(
    "--for",
    "file",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="With --mapping: begun from the columns of this CSV or .xlsx.",
)
def template(kind: str, mapping: bool, file: Path | None) -> None:
    """Print an empty CSV with every column of KIND: customers, variants, subcategories, warehouses.

    With --mapping, print a mapping file instead: which column is which field. What fits no field stands in it as a
    comment, to be named or ignored.
    """
    from pipelines.template import template as text

    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr] # a text file, whatever the terminal
    click.echo(text(kind, mapping=mapping, file=file), nl=False)


@orderbridge.command(epilog="Example: orderbridge plan customers clientes.csv --mapping clientes.toml --passwords mail")
@click.argument("kind", type=click.Choice(["customers", "variants", "subcategories", "warehouses"]), metavar="KIND")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--mapping", type=click.Path(path_type=Path), metavar="FILE", help="Which column is what; else proposed.")
@click.option("--save-mapping", type=click.Path(path_type=Path), metavar="FILE", help="Keep it, to look at or to mend.")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="The plan's folder; else plan-KIND-ID.")
@click.option(
    "--passwords",
    type=click.Choice(["mail", "file"]),
    help="Made for new customers, and mailed by the platform, or kept in a file for you.",
)
@click.option("--notify", is_flag=True, help="The platform sends a message to each new customer.")
@click.option("--batch-size", type=click.IntRange(min=1), default=100, show_default=True, metavar="N")
@_log_option
def plan(style: str, **wanted: Any) -> None:  # noqa: ANN401 # click checked them
    """Plan what a CSV or .xlsx would change on the platform, in a folder that a person can read; nothing is sent.

    KIND: customers, variants, subcategories or warehouses. Rows that cannot go are in rejects.csv with their reasons,
    and the exit code is 5: corrected, that file can be planned as it is.
    """
    with _started(style) as reporter:
        from pipelines.plan.command import plan as make
        from pipelines.plan.make import Wanted

        code = make(Wanted(**wanted), reporter)
    _end(code)


@orderbridge.command(epilog="Example: orderbridge push plan-customers --yes; run again, it goes on where it was")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--confirm", type=click.IntRange(min=0), metavar="N", help="Production: the number of operations.")
@click.option("--yes", is_flag=True, help="Elsewhere: send without a question.")
@click.option("--rate", type=click.FloatRange(min=0, min_open=True), metavar="N", help="Requests a second at most.")
@click.option("--concurrency", type=click.IntRange(1, 16), metavar="N", help="At once; creates 1, updates 4.")
@click.option(
    "--settle",
    type=click.FloatRange(min=0),
    default=15,
    show_default=True,
    metavar="MINUTES",
    help="Until when a create whose answer was lost may still land; less is for a sandbox only.",
)
@click.option("--resend", is_flag=True, help="Production: send a create again that is not there after that time.")
@click.option("--wait", is_flag=True, help="Wait until what is in doubt can be looked for, and go on.")
@click.option("--accept-unproven", is_flag=True, help="Create though the list of customers is not proven complete.")
@click.option("--landed", type=int, multiple=True, metavar="ID", help="An operation in doubt that is on the platform.")
@click.option("--not-landed", type=int, multiple=True, metavar="ID", help="One that is not there: it is sent again.")
@click.option("--abandon", type=int, multiple=True, metavar="ID", help="One that nobody will ask about any more.")
@_log_option
def push(
    plan: Path,
    confirm: int | None,
    yes: bool,
    settle: float,
    landed: tuple[int, ...],
    not_landed: tuple[int, ...],
    abandon: tuple[int, ...],
    style: str,
    **how: Any,  # noqa: ANN401 # the others go on as they are
) -> None:
    """Send what a plan says, each write as often as it should be; again: go on where it was.

    What became of each line stands in the plan's folder, under results. Outcomes in doubt make the exit code 6: run the
    same command again after the time that it names.
    """
    reporter = _started(style)
    from pipelines.push.asked import Asked
    from pipelines.push.report import Watching, tell
    from pipelines.push.run import push as send
    from pipelines.push_log import publish

    asked = Asked(
        confirm=confirm,
        agreed=yes or (confirm is None and _agreed(plan)),
        settle_s=settle * 60,
        landed=frozenset(landed),
        not_landed=frozenset(not_landed),
        abandon=frozenset(abandon),
        **how,
    )
    with Watching(reporter) as watching:
        pushed = send(plan, asked, STOP.event, watching.sent, watching.page, STOP.gently)
    tell(pushed, style)
    if pushed.error is not None:
        _say(pushed.exit_code, str(pushed.error), "orderbridge: ")
    if not pushed.stopped:
        publish()
    _end(128 + STOP.signal if pushed.stopped and STOP.signal else pushed.exit_code)


def _agreed(folder: Path) -> bool:
    """Asks on a terminal whether a plan for a sandbox is to be sent."""
    if not sys.stdin.isatty():
        return False
    from pipelines.plan.model import Plan
    from pipelines.push.checks import would

    plan = Plan(folder)
    if plan.manifest.environment != "sandbox":
        return False
    if not click.confirm(f"{would(plan)}. Send?", err=True):
        raise UsageError("nothing was sent", "Run the same command again when it is to be sent.")
    return True


@orderbridge.command(epilog="Example: orderbridge pull customers && orderbridge verify plan-customers")
@click.argument("plan", type=click.Path(path_type=Path))
@_log_option
def verify(plan: Path, style: str) -> None:
    """Compare what was sent with what was pulled since, field by field, for what can be read back."""
    _started(style)
    from pipelines.push.report import tell_verified
    from pipelines.verify import verify as compare

    made = compare(plan)
    tell_verified(made, style)
    _end(made.exit_code)


@orderbridge.command(epilog="Example: orderbridge check")
@_log_option
def check(style: str) -> None:
    """Look at settings, permissions, keys and one page of each list; say what is wrong and how to mend it."""
    with _started(style) as reporter:
        from pipelines.check import check as check_all

        code = check_all(reporter.event, STOP.event)
    _end(code)


@orderbridge.command(epilog="Example, for a monitor: orderbridge status --max-age 26 --json")
@click.option(
    "--max-age", type=click.FloatRange(min=0), metavar="HOURS", help="Exit 7 where a list is older than this."
)
@_json_option
def status(max_age: float | None, as_json: bool) -> None:
    """Show the last runs, the verdict and age of each list, and the failure since, if there is one."""
    _started("plain")
    from pipelines.status import status as show

    _end(show(max_age, as_json))


@orderbridge.command(epilog="Example: orderbridge report --out bridge.html")
@click.option(
    "--out",
    type=click.Path(path_type=Path),
    default=Path("report.html"),
    show_default=True,
    help="The file; a report that is there is replaced.",
)
def report(out: Path) -> None:
    """Write one HTML page about the published warehouse, for a mail or a share; it holds no personal data.

    Coverage, findings with what to do about each, the comparison with the ERP, price lists, promotions, orders. A new
    file can be read by you alone (mode 0600); one that is replaced keeps its mode.
    """
    _started("plain")
    from pipelines.report import report as write

    told = write(out)
    click.echo(f"wrote {out}: as of run {told.run['run_id']}, {sum(row['findings'] for row in told.findings)} findings")


@orderbridge.command(epilog="Example: orderbridge preview articulos.csv --csv clean.csv")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--csv", "target", type=click.Path(path_type=Path), metavar="OUT", help="The whole as clean UTF-8 CSV.")
@click.option("--rows", type=click.IntRange(min=0), default=10, show_default=True, help="So many rows are shown.")
@click.option("--encoding", help="utf-8, cp1252, utf-16, cp850 …; found where it is not told, as all that follows.")
@click.option("--delimiter", help="A character, or comma, semicolon, tab, pipe, spaces, 'runs of two spaces'.")
@click.option("--quote", help="A character, or double, single, none.")
@click.option("--escape", help="How a quote stands within quotes: doubled, or after a backslash.")
@click.option("--header-row", type=click.IntRange(min=0), metavar="N", help="The header's line; 0: there is none.")
@click.option("--header-rows", type=click.IntRange(1, 5), metavar="N", help="Over how many rows the header runs.")
@click.option("--fill-short", is_flag=True, help="Take a row that ends early, its last cells as empty.")
@click.option("--sheet", metavar="NAME", help="Of a workbook: its name, or its number from 1.")
@_json_option
def preview(file: Path, target: Path | None, rows: int, as_json: bool, **options: object) -> None:
    """Show how a CSV or .xlsx is read, and its first rows: encoding, dialect, header, what does not fit.

    Each cell is text as it stands in the file. A row that does not fit is told on stderr, and the exit code is 5.
    """
    STOP.listen()
    from pipelines.intake.preview import preview as show
    from pipelines.intake.preview import told

    said = told(**options)  # type: ignore[arg-type] # click checked them
    _end(show(file, said, rows, target, as_json))


@orderbridge.command(epilog="Example: orderbridge demo")
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
    style = _started("auto").style
    from pipelines.demo import demo as show

    _end(show(folder, style, STOP.event))


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


@orderbridge.command(cls=_SandboxCommand)
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
    from sources.errors import UsageError

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


def _end(code: int) -> None:
    """Ends the process now: a fetch that still waits for an answer must not hold it up."""
    sys.stdout.flush()
    sys.stderr.flush()
    if code or STOP.event.is_set():
        os._exit(code)


def _unexpected(error: BaseException) -> str:
    """A bug as types and places, without the exceptions' own texts: those can hold values of rows."""
    lines = ["orderbridge met an error of its own. Please report these lines; they hold no data of yours:"]
    cause: BaseException | None = error
    while cause is not None:
        lines.append(f"{type(cause).__module__}.{type(cause).__qualname__}")
        lines += [f"  {Path(f.filename).name}:{f.lineno} {f.name}" for f in traceback.extract_tb(cause.__traceback__)]
        cause = cause.__cause__ or (None if cause.__suppress_context__ else cause.__context__)
    return "\n".join(lines)


def _say(code: int, words: str, prefix: str = "") -> None:
    """The last words of a command that did not end well: for a person, or an object for machines."""
    if STOP.as_json:
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        words = json.dumps({"at": at, "event": "error", "message": words, "exit_code": code})
        prefix = ""
    sys.stderr.write(f"{prefix}{words}\n")


def _invoke() -> int:
    """Runs the command. click's own `main` would end the process by itself on a closed pipe, and print on ctrl-C."""
    if "_ORDERBRIDGE_COMPLETE" in os.environ:
        orderbridge.main()  # the shell asks for completions
    with orderbridge.make_context("orderbridge", sys.argv[1:]) as context:
        orderbridge.invoke(context)
    return 0


def main() -> None:
    """The entry point. Every way out has its exit code (design §5)."""
    try:
        code = _invoke()
    except click.exceptions.Exit as error:
        code = error.exit_code
    except click.ClickException as error:
        code = 2
        if STOP.as_json:
            _say(code, error.format_message())
        else:
            error.show()
    except (KeyboardInterrupt, click.Abort):
        code = 128 + (STOP.signal or signal.SIGINT)
        published = {"pull", "run"} & set(sys.argv[1:2])
        _say(code, f"stopped{_KEPT if published else ''}")
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 128 + signal.SIGPIPE
    except BridgeError as error:
        code = error.exit_code
        _say(code, str(error), "orderbridge: ")
    except Exception as error:  # the last resort: told as a bug, exit 1
        code = 1
        _say(code, _unexpected(error))
    STOP.event.set()
    _end(code)
    sys.exit(code)


if __name__ == "__main__":
    main()
