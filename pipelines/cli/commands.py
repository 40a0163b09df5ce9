"""The commands of `orderbridge`, by what they are for."""

from __future__ import annotations

from typing import Final

import click

from pipelines.cli.reading import check, pull, reconcile, report, run, status
from pipelines.cli.trying import demo, sandbox
from pipelines.cli.writing import plan, preview, push, template, verify

COMMANDS: Final[tuple[click.Command, ...]] = (
    check,
    demo,
    plan,
    preview,
    pull,
    push,
    reconcile,
    report,
    run,
    sandbox,
    status,
    template,
    verify,
)
