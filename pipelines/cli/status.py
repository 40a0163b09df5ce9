"""The command `status`: prints lists, runs, the last failure and open plans, as text or JSON."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, shown_texts, start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.errors import ExitCode
from orderbridge.sources.texts import Language, Texts, english
from orderbridge.sources.words import format_time, listed

if TYPE_CHECKING:
    from orderbridge.pipelines.ledger.model import OpenPlan
    from orderbridge.pipelines.reporting.plan_folders import PlanFolder
    from orderbridge.pipelines.reporting.status import Status
    from orderbridge.pipelines.warehouse.ops import LastRead

_REMOVE: Final = (
    "orderbridge status --json | jq -r '.removable_plans[].folder' | xargs -d '\\n' rm -r --"
)


@declared("status")
def command(max_age: float | None, lang: Language | None) -> int:
    """Show the last runs, the state and age of each list, the last failure and open plans."""
    start()
    from orderbridge.pipelines.reporting.status import read_status

    status = read_status(max_age)
    print_result("status", lines(status, shown_texts(lang)), status.as_dict(), STOP.style)
    return ExitCode.COVERAGE if status.too_old else ExitCode.DONE


def lines(status: Status, texts: Texts | None = None) -> list[str]:
    """The status as text, one item a line."""
    from orderbridge.pipelines.reporting.status import is_being_sent
    from orderbridge.pipelines.warehouse.bi.marks import MARK
    from orderbridge.pipelines.warehouse.finding_history import in_words

    texts = texts or english()
    shown = [*in_words(status.new_findings, texts), texts("shown.warehouse", file=status.warehouse)]
    shown += [_list_line(one, status, texts) for one in status.lists]
    for name, reason in status.problems.items():
        shown.append(f"  {texts('shown.not_published', list=name, reason=reason)}")
    for name in status.never_read:
        shown.append(f"  {name:<12} {texts('shown.never_whole')}{_mark(name, status, texts)}")
    if status.questions:
        counts = ", ".join(
            f"{count} {texts(f'question_state.{state}')}"
            for state, count in status.questions.items()
        )
        sign = f"{MARK} " if "assumed" in status.questions else ""
        shown.append(f"{sign}{texts('shown.questions', counts=counts)}")
    shown += [f"  {texts('shown.schema', text=change.text)}" for change in status.schema_changes]
    shown += _night_lines(status, texts)
    shown += _run_lines(status, texts)
    if status.too_old and not status.lists:
        shown.append(texts("shown.never_pulled"))
    for plan in status.open_plans:
        shown += _plan_lines(plan, texts, is_sent=is_being_sent(plan, status))
    return shown + _removable_lines(status.removable_plans, texts)


def _night_lines(status: Status, texts: Texts) -> list[str]:
    """The last runs, those that failed among them, the newest first."""
    nights: list[tuple[float, str]] = []
    for run in status.runs:
        ended_at = run["ended_at"].replace(tzinfo=UTC).timestamp()
        name = f"{run['command']:<13}"
        time = format_time(ended_at)
        line = texts("shown.run", command=name, time=time, code=run["exit_code"])
        nights.append((ended_at, f"  {line}"))
    for run in status.failed_runs:
        failed_at = datetime.fromisoformat(run["failed_at"]).timestamp()
        name = f"{run['command']:<13}"
        reason = str(run["message"]).partition("\n")[0]
        line = texts(
            "shown.run_failed",
            command=name,
            time=format_time(failed_at),
            code=run["exit_code"],
            reason=reason,
        )
        nights.append((failed_at, f"  {line}"))
    return [line for _, line in sorted(nights, key=lambda night: -night[0])]


def _run_lines(status: Status, texts: Texts) -> list[str]:
    """What is going on, and what was killed or has failed."""
    shown = []
    if status.running:
        shown.append(texts("shown.running", run=status.running))
    if status.killed:
        shown.append(texts("shown.killed", run=status.killed))
    if status.failure:
        code = "shown.failed_earlier" if status.killed else "shown.failed_last"
        shown += _failure_lines(texts(code), status.failure)
    if status.destination_failure:
        is_stopped = status.destination_failure.get("exit_code") == ExitCode.STOPPED
        code = "shown.copy_not_ended" if is_stopped else "shown.copy_failed"
        shown += _failure_lines(texts(code), status.destination_failure)
    return shown


def _removable_lines(plans: Sequence[PlanFolder], texts: Texts) -> list[str]:
    if not plans:
        return []
    from orderbridge.pipelines.reporting.plan_folders import KEPT

    size = sum(plan.bytes for plan in plans) / 1e6
    names = listed([Path(plan.folder).name for plan in plans])
    line = texts(
        "shown.removable", count=len(plans), size=f"{size:.1f}", days=KEPT.days, names=names
    )
    return [line, f"  {_REMOVE}"]


def _failure_lines(title: str, note: dict[str, Any]) -> list[str]:
    shown = [text for text in (note.get("message"), note.get("hint")) if text]
    further = [f"  {line.removeprefix('  ')}" for text in shown for line in text.split("\n")]
    try:
        at = format_time(datetime.fromisoformat(note["failed_at"]).timestamp())
    except (KeyError, TypeError, ValueError):  # a note of another version, or changed by hand
        at = "time unknown"
    return [f"{title} ({at}):", *further]


def _list_line(one: LastRead, status: Status, texts: Texts) -> str:
    codes = ("shown.old", "shown.tail")
    ages = [
        texts(code, age=_age(hours))
        for code, hours in zip(codes, one.ages_h(status.at), strict=False)
    ]
    if one.quarantined_rows:
        ages.append(texts("shown.quarantined", count=one.quarantined_rows))
    rows = texts("shown.list", rows=f"{one.rows:>10}")
    verdict = texts(f"list_verdict.{one.verdict}")
    mark = _mark(one.resource, status, texts)
    return f"  {one.resource:<12} {rows}  {verdict:<9} {', '.join(ages)}{mark}"


def _mark(name: str, status: Status, texts: Texts) -> str:
    """The mark of a list that was read too long ago."""
    if name not in status.too_old:
        return ""
    return f"  {texts('shown.too_old', hours=f'{status.max_age_h or 0:g}')}"


def _age(hours: float) -> str:
    return f"{hours * 60:.0f} min" if -1 < hours < 1 else f"{hours:.1f} h"


def _plan_lines(plan: OpenPlan, texts: Texts, *, is_sent: bool) -> list[str]:
    """What is left of a plan, in words, and its next steps; none while it `is_sent`."""
    from orderbridge.pipelines.reporting.status import next_steps

    counts: Counter[str] = Counter()
    for state, count in sorted(plan.states.items()):
        is_under_way = is_sent and state == "in_flight"
        counts[texts("shown.under_way" if is_under_way else f"requests.{state}")] += count
    left = ", ".join(f"{count} {words}" for words, count in counts.items())
    folder = Path(plan.folder)
    where = texts("shown.gone", folder=folder.name)
    if folder.is_dir():
        where = shlex.quote(plan.folder)
    kind = texts(f"kinds.{plan.kind}")
    code = "shown.being_sent" if is_sent else "shown.not_finished"
    title = texts(code, kind=kind, where=where, left=left)
    steps = [] if is_sent else next_steps(plan)
    further = [line for step in steps for line in step.lines_in(texts)]
    return [f"  {title}", *(f"    {line}" for line in further)]
