"""The command `status`: prints lists, runs, the last failure and open plans, as text or JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.errors import ExitCode
from orderbridge.sources.words import VERDICTS, format_time, listed, number

if TYPE_CHECKING:
    from orderbridge.pipelines.ledger.model import OpenPlan
    from orderbridge.pipelines.reporting.plan_folders import PlanFolder
    from orderbridge.pipelines.reporting.status import Status
    from orderbridge.pipelines.warehouse.ops import LastRead

_REMOVE: Final = (
    "orderbridge status --json | jq -r '.removable_plans[].folder' | xargs -d '\\n' rm -r --"
)


@declared("status")
def command(max_age: float | None) -> int:
    """Show the last runs, the verdict and age of each list, the last failure and open plans."""
    start()
    from orderbridge.pipelines.reporting.status import read_status

    status = read_status(max_age)
    print_result("status", lines(status), status.as_dict(), STOP.style)
    return ExitCode.COVERAGE if status.too_old else ExitCode.DONE


def lines(status: Status) -> list[str]:
    """The status as text, one item a line."""
    from orderbridge.pipelines.warehouse.finding_history import in_words
    from orderbridge.pipelines.warehouse.marks import MARK

    shown = [*in_words(status.new_findings), f"warehouse {status.warehouse}"]
    marks = dict.fromkeys(status.too_old, f"  TOO OLD (limit {status.max_age_h or 0:g} h)")
    shown += [_list_line(one, status.at, marks) for one in status.lists]
    shown += [
        f"  {name}: the last read was not published: {reason}"
        for name, reason in status.problems.items()
    ]
    shown += [f"  {name:<12} never read whole{marks.get(name, '')}" for name in status.never_read]
    if status.questions:
        counts = ", ".join(f"{count} {state}" for state, count in status.questions.items())
        sign = f"{MARK} " if "assumed" in status.questions else ""
        shown.append(f"{sign}questions: {counts}; see orderbridge questions")
    shown += [f"  schema: {change.text}" for change in status.schema_changes]
    for run in status.runs:
        ended = format_time(run["ended_at"].replace(tzinfo=UTC).timestamp())
        shown.append(f"  {run['command']:<10} ended {ended}, exit {run['exit_code']}")
    if status.running:
        shown.append(f"a run is going on: {status.running}; what it has not published is not shown")
    if status.killed:
        shown.append(
            f"a run was killed: {status.killed}; the next one goes on with what it had read"
        )
    if status.failure:
        which = "an earlier" if status.killed else "the last"
        shown += _failure_lines(f"{which} run failed and published nothing", status.failure)
    if status.destination_failure:
        ended = (
            "has not ended"
            if status.destination_failure.get("exit_code") == ExitCode.STOPPED
            else "failed"
        )
        title = f"the warehouse was published, but its copy to the destination {ended}"
        shown += _failure_lines(title, status.destination_failure)
    if status.too_old and not status.lists:
        shown.append("nothing was ever pulled")
    for plan in status.open_plans:
        shown += _plan_lines(plan)
    return shown + _removable_lines(status.removable_plans)


def _removable_lines(plans: Sequence[PlanFolder]) -> list[str]:
    if not plans:
        return []
    from orderbridge.pipelines.reporting.plan_folders import KEPT

    size = sum(plan.bytes for plan in plans) / 1e6
    names = listed([Path(plan.folder).name for plan in plans])
    return [
        f"{number(len(plans), 'plan folder')} can go ({size:.1f} MB; "
        f"ended, and not changed for {KEPT.days} days): {names}",
        f"  {_REMOVE}",
    ]


def _failure_lines(title: str, note: dict[str, Any]) -> list[str]:
    texts = [text for text in (note.get("message"), note.get("hint")) if text]
    further = [f"  {line.removeprefix('  ')}" for text in texts for line in text.split("\n")]
    return [f"{title} ({note.get('failed_at', 'time unknown')}):", *further]


def _list_line(one: LastRead, at: datetime, marks: Mapping[str, str]) -> str:
    quarantined = f", {one.quarantined_rows} quarantined" if one.quarantined_rows else ""
    age = (
        ", tail ".join(f"{_age(hours)} old" for hours in one.ages_h(at))
        + quarantined
        + marks.get(one.resource, "")
    )
    return f"  {one.resource:<12} {one.rows:>10} rows  {VERDICTS[one.verdict]:<9} {age}"


def _age(hours: float) -> str:
    return f"{hours * 60:.0f} min" if -1 < hours < 1 else f"{hours:.1f} h"


def _plan_lines(plan: OpenPlan) -> list[str]:
    """What is left of a plan, in words, and its next steps."""
    from orderbridge.pipelines.ledger.model import STATES
    from orderbridge.pipelines.reporting.status import next_steps

    counts: Counter[str] = Counter()
    for state, count in sorted(plan.states.items()):
        counts[STATES[state]] += count
    left = ", ".join(f"{count} {words}" for words, count in counts.items())
    folder = Path(plan.folder)
    where = shlex.quote(plan.folder) if folder.is_dir() else f"{folder.name}, which is gone"
    title = f"  not finished: {plan.kind}, {where}: {left} (requests)"
    return [title, *(f"    {line}" for step in next_steps(plan) for line in step.lines)]
