"""The command `settle`: ends doubts about writes without sending anything, and prints what remains."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from itertools import groupby
from operator import attrgetter
from typing import Any, Final

import click

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import LOG, STOP, start
from orderbridge.pipelines.cli.push import refresh_workbook
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.errors import UsageError
from orderbridge.sources.words import number

_SETTLED: Final = {
    "abandoned": "given up",
    "confirmed": "confirmed",
    "conflict": "several customers on the platform may be it: see below",
    "planned": "did not happen",
    "rejected": "rejected by the platform, and absent from its list",
}


def _as_answer(plan: str, answers: Mapping[str, Any]) -> str:
    """The first of the answers as the command that replaces this one."""
    from orderbridge.pipelines.questions.model import answer_command

    name = next(name for name in ("landed", "not_landed", "abandon") if answers.get(name))
    numbers = ",".join(map(str, sorted(answers[name])))
    return answer_command(f"write:{plan}/{numbers}", name)


@declared("settle")
@click.argument("plan", required=False)
def command(
    plan: str | None,
    settle: float | None,
    accept_ledger: bool,
    **answers: Any,  # noqa: ANN401 # checked by click
) -> int:
    """Look up requests whose outcome is unknown; nothing is sent.

    Customers are looked up in the platform's list, also those of plans whose folder or input is gone. PLAN is the
    folder of a plan, or its id as printed by this command. If outcomes remain unknown, the exit code is 6, and each is
    printed with the `orderbridge answer` command for it.
    """
    reporter = start(sends_keys=True)
    if plan is not None and any(answers.values()):
        LOG.warning("from the next version on: %s", _as_answer(plan, answers))
    from orderbridge.pipelines.ledger.push_log import publish_push_log
    from orderbridge.pipelines.push.model import PushHooks
    from orderbridge.pipelines.push.resolutions import Answers
    from orderbridge.pipelines.push.settle import accept_ledger as take_for_newest
    from orderbridge.pipelines.push.settle import settle as settle_doubts

    if plan is None and any(answers.values()):
        raise UsageError(
            "an answer needs its plan",
            "`orderbridge settle` lists the plans with unknown outcomes.",
        )

    hooks = PushHooks(stop=STOP.event, on_page=reporter.progress)
    with reporter:
        result = settle_doubts(plan, Answers(**answers), settle, hooks)
    lines = [
        f"{count:>8}  {_SETTLED[state]}" for state, count in sorted(result.settled.items()) if count
    ]
    for (plan_id, kind, folder), of_plan in groupby(
        result.left, attrgetter("plan_id", "kind", "folder")
    ):
        lines.append(f"plan {plan_id[:12]}, {kind}, {shlex.quote(folder)}:")
        for advice, (doubt, *others) in groupby(of_plan, attrgetter("advice")):
            more = f" and {number(len(others), 'other')}" if others else ""
            lines.append(
                f"  operation {doubt.operation}, {doubt.path}{', '.join(('', *doubt.fields))}{more}: {advice}"
            )
    lines.append(f"{number(len(result.left), 'request')} with unknown outcome")
    if accept_ledger:
        take_for_newest()
        lines.append(
            "the ledger is accepted: what its copy in the warehouse has besides is replaced"
        )
    left = [doubt._asdict() for doubt in result.left]
    print_result(
        "settle",
        lines,
        {"settled": result.settled, "in_doubt": left, "exit_code": result.exit_code},
        reporter.style,
    )
    for settled in result.plans:
        refresh_workbook(settled)
    publish_push_log(observed=result.observed, accept_older=accept_ledger)
    return result.exit_code
