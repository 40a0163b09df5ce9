"""The command `plan`: what was planned, told on stdout; a mapping that was proposed, on stderr and in a file if asked.

In: what is asked for. Out: words for a person, or an object for machines, and the exit code.
"""

from __future__ import annotations

import json
import sys
from typing import Any

import msgspec

from pipelines.cli.console import Reporter
from pipelines.plan.make import PlanOptions, PlanResult, make
from pipelines.plan.summary import number, summary


def plan(wanted: PlanOptions, reporter: Reporter) -> int:
    """Makes a plan and tells what is in it. Returns 5 where rows were rejected, else 0. Raises what `make` raises."""

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
