"""The commands of `orderbridge`, by what they are for."""

from __future__ import annotations

from typing import Final

import click

from pipelines.commands.reading import check, pull, reconcile, report, run, status
from pipelines.commands.trying import demo, sandbox
from pipelines.commands.writing import plan, preview, push, template, verify

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
