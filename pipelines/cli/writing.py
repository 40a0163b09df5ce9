"""The commands of the reverse step: preview, template, plan, push, verify."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import click

from pipelines.cli.process import STOP, end, json_option, log_option, say, started
from sources.errors import BridgeError, UsageError
from sources.kinds import KINDS


@click.command(epilog="Example: orderbridge preview articulos.csv --csv clean.csv")
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
@json_option
def preview(file: Path, target: Path | None, rows: int, as_json: bool, **options: object) -> None:
    """Show how a CSV or .xlsx is read, and its first rows: encoding, dialect, header, what does not fit.

    Each cell is text as it stands in the file. A row that does not fit is told on stderr, and the exit code is 5.
    """
    STOP.listen()
    from pipelines.cli.preview import preview as show
    from pipelines.cli.preview import told

    said = told(**options)  # type: ignore[arg-type] # click checked them
    end(show(file, said, rows, target, as_json))


@click.command(epilog="Example: orderbridge template customers > clientes.csv")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
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
    from pipelines.cli.template import template as text

    sys.stdout.reconfigure(encoding="utf-8", newline="")  # type: ignore[union-attr] # a text file, whatever the terminal
    click.echo(text(kind, mapping=mapping, file=file), nl=False)


@click.command(epilog="Example: orderbridge plan customers clientes.csv --mapping clientes.toml --passwords mail")
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
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
@log_option
def plan(style: str, **wanted: Any) -> None:  # noqa: ANN401 # click checked them
    """Plan what a CSV or .xlsx would change on the platform, in a folder that a person can read; nothing is sent.

    KIND: customers, variants, subcategories or warehouses. Rows that cannot go are in rejects.csv with their reasons,
    and the exit code is 5: corrected, that file can be planned as it is.
    """
    with started(style) as reporter:
        from pipelines.cli.plan import plan as make
        from pipelines.plan.make import PlanOptions

        code = make(PlanOptions(**wanted), reporter)
    end(code)


@click.command(epilog="Example: orderbridge push plan-customers --yes; run again, it goes on where it was")
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
@log_option
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
    reporter = started(style)
    from pipelines.cli.push import Watching, tell
    from pipelines.ledger.push_log import publish
    from pipelines.push.model import PushOptions
    from pipelines.push.run import push as send

    asked = PushOptions(
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
        say(pushed.exit_code, str(pushed.error), "orderbridge: ")
    if not pushed.stopped:
        try:
            publish(pushed.plan.manifest.plan_id, pushed.observed)
        except BridgeError as error:  # what was sent stands in the ledger: the next run brings it in
            say(pushed.exit_code, f"ops.push_log is as it was, until the next pull: {error}", "orderbridge: ")
    end(128 + STOP.signal if pushed.stopped and STOP.signal else pushed.exit_code)


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


@click.command(epilog="Example: orderbridge pull customers && orderbridge verify plan-customers")
@click.argument("plan", type=click.Path(path_type=Path))
@log_option
def verify(plan: Path, style: str) -> None:
    """Compare what was sent with what was pulled since, field by field, for what can be read back."""
    started(style)
    from pipelines.cli.push import tell_verified
    from pipelines.push.verify import verify as compare

    made = compare(plan)
    tell_verified(made, style)
    end(made.exit_code)
