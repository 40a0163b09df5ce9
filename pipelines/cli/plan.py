"""The command `plan`: what was planned, told on stdout; a mapping that was proposed, on stderr and in a file if asked.

In: what is asked for. Out: words for a person, or an object for machines, and the exit code.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pipelines.cli.options import log_option
from pipelines.cli.process import exit_process, start
from sources.kinds import KINDS

if TYPE_CHECKING:
    from pipelines.cli.console import Reporter
    from pipelines.plan.make import PlanOptions, PlanResult


def plan(wanted: PlanOptions, reporter: Reporter) -> int:
    """Makes a plan and tells what is in it. Returns 5 where rows were rejected, else 0. Raises what `make` raises."""
    from pipelines.plan.make import make
    from pipelines.plan.summary import number, summary

    def proposed(lines: list[str]) -> None:
        kept = (
            [] if wanted.save_mapping is None else [f"That is kept in {wanted.save_mapping}: the next time --mapping."]
        )
        words = "\n".join(["No mapping was given; the headers are read as:", *(f"  {line}" for line in lines), *kept])
        reporter.event("proposed", words, columns=lines)

    made = make(wanted, proposed)
    if made.created_since:
        words = (
            f"Since the platform's customers were read, pushes have created {number(made.created_since, 'customer')}: "
            "what of them is in this file is planned as new, and will not be sent.\n"
            "Pull, then plan again: orderbridge pull customers"
        )
        reporter.event("created_since", words, count=made.created_since)
    if reporter.style == "json":
        sys.stdout.write(json.dumps(_facts(made)) + "\n")
        return made.exit_code
    sys.stdout.write(summary(made.manifest, made.facts, str(made.folder)))
    sys.stdout.write(f"\nThe plan is in {made.folder}{'' if made.is_new else ', where it was already'}.\n")
    return made.exit_code


def _facts(made: PlanResult) -> dict[str, Any]:
    import msgspec

    manifest: dict[str, Any] = msgspec.to_builtins(made.manifest)
    names = ("plan_id", "kind", "host", "environment", "lines", "outcomes", "operations", "messages", "read")
    return {
        "folder": str(made.folder.absolute()),
        "is_new": made.is_new,
        **{name: manifest[name] for name in names},
        "rejected": [reason._asdict() for reason in made.facts.reasons],
        "price_jumps": [jump._asdict() for jump in made.facts.jumps],
        "price_jumps_in_all": made.facts.jumps_in_all,
        "exit_code": made.exit_code,
    }


@click.command(
    "plan", epilog="Example: orderbridge plan customers clientes.csv --mapping clientes.toml --passwords mail"
)
@click.argument("kind", type=click.Choice(list(KINDS)), metavar="KIND")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--mapping",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Which column is which field. Default: detected from the column names.",
)
@click.option(
    "--save-mapping", type=click.Path(path_type=Path), metavar="FILE", help="Write the detected mapping, to edit it."
)
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="DIR", help="Folder of the plan. Default: plan-KIND-ID."
)
@click.option(
    "--passwords",
    type=click.Choice(["mail", "file"]),
    help="Generate passwords of new customers: mailed by the platform, or written to a file for you.",
)
@click.option("--notify", is_flag=True, help="Let the platform send a message to each new customer.")
@click.option("--batch-size", type=click.IntRange(min=1), default=100, show_default=True, metavar="N")
@log_option
def command(style: str, **options: Any) -> None:  # noqa: ANN401 # checked by click
    """Plan what a CSV or .xlsx would change on the platform; sends nothing.

    KIND: customers, variants, subcategories or warehouses. The plan is a folder that you can read. Rejected rows are in
    its rejects.csv with their reasons, and the exit code is 5: correct that file and plan it.
    """
    with start(style) as reporter:
        from pipelines.plan.make import PlanOptions

        code = plan(PlanOptions(**options), reporter)
    exit_process(code)
