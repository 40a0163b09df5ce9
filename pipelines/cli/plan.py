"""The command `plan`: makes a plan and prints its summary; a proposed mapping is printed on stderr.

In: options. Out: text for a person or JSON for machines, and the exit code.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from orderbridge.pipelines.cli.options import declared, kind_argument
from orderbridge.pipelines.cli.process import start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.texts import Texts, english
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.pipelines.plan.make import PlanOptions, PlanResult


def plan(options: PlanOptions, reporter: Reporter) -> int:
    """Makes a plan and prints its summary. Returns the exit code. Raises what `make_plan` raises."""
    from orderbridge.pipelines.plan.make import make_plan

    def on_proposal(columns: list[str]) -> None:
        lines = [
            "No mapping was given; the columns are read as:",
            *(f"  {column}" for column in columns),
        ]
        reporter.event("proposed", "\n".join(lines), columns=columns)

    result = make_plan(options, on_proposal)
    print_warnings(result, reporter)
    print_result("plan", summary_lines(result, result.folder), record(result), reporter.style)
    return result.exit_code


def print_warnings(result: PlanResult, reporter: Reporter) -> None:
    """Prints on stderr what pushes since or before mean for a plan."""
    if earlier := result.earlier_changes:
        changes = number(earlier.operations, "change")
        text = (
            f"This plan was pushed before, in {earlier.folder}: {changes} will not be sent again.\n"
            "If they are to be added once more, plan a copy of the file that has another name."
            if earlier.is_same_plan
            else f"Earlier pushes changed the same fields of {number(earlier.operations, 'variant')}, the last one "
            f"{earlier.folder}.\nIf this file repeats changes of those pushes, they will be added twice."
        )
        reporter.event("earlier_changes", text, **earlier._asdict())


def summary_lines(
    result: PlanResult,
    folder: Path | None = None,
    texts: Texts | None = None,
    *,
    is_sent_at_once: bool = False,
) -> list[str]:
    """The summary of a plan, with the commands to run next if `folder` is given, and where it is.

    `is_sent_at_once`: what the result of the push will show is left out.
    """
    from orderbridge.pipelines.plan.model import DIFFERENCES_FILE
    from orderbridge.pipelines.plan.summary import summary

    texts = texts or english()
    manifest, statistics = result.manifest, result.statistics
    text = summary(
        manifest,
        statistics,
        folder,
        result.pushed,
        is_file=False,
        is_sent_at_once=is_sent_at_once,
        texts=texts,
    )
    lines = [*_of_terminal(text)]
    if is_sent_at_once:
        return [line.removeprefix("- ") for line in lines]
    has_differences = (
        any(map(result.manifest.outcomes.get, ("exists_differs", "ambiguous")))
        and result.manifest.read
    )
    if has_differences:
        lines.append(texts("summary.differences", file=result.folder / DIFFERENCES_FILE))
    code = "summary.folder" if result.is_new else "summary.folder_existed"
    return [*lines, texts(code, folder=result.folder)]


def _of_terminal(text: str) -> Iterator[str]:
    """The lines of a page in Markdown as a terminal shows them: no signs of headings, and nothing between them."""
    for line in text.split("\n"):
        if line.startswith("## "):
            yield f"{line.removeprefix('## ')}:"
        elif line.strip():
            yield line.replace("**", "")


def record(result: PlanResult) -> dict[str, Any]:
    """A plan for JSON."""
    import msgspec

    manifest: dict[str, Any] = msgspec.to_builtins(result.manifest)
    names = (
        "plan_id",
        "kind",
        "host",
        "environment",
        "lines",
        "outcomes",
        "operations",
        "messages",
        "read",
    )
    return {
        "folder": result.folder.absolute(),
        "is_new": result.is_new,
        "pushed": result.pushed,
        **{name: manifest[name] for name in names},
        "organization": result.manifest.organization,
        "rejected": [reason._asdict() for reason in result.statistics.reasons],
        "price_jumps": result.statistics.jumps,
        "price_jumps_in_all": result.statistics.jump_count,
        "suspicious": [reason._asdict() for reason in result.statistics.suspicious],
        "exit_code": result.exit_code,
    }


@declared("plan")
@kind_argument
@click.argument("file", type=click.Path(path_type=Path))
def command(**options: Any) -> int:  # noqa: ANN401 # checked by click
    """Plan what a CSV or .xlsx would change on the platform; sends nothing.

    KIND. The plan is a folder that you can read. Rejected rows are in
    its rejects.csv with their reasons, and the exit code is 5: correct that file and plan it again.
    """
    with start() as reporter:
        from orderbridge.pipelines.plan.make import PlanOptions

        return plan(PlanOptions(**options), reporter)
