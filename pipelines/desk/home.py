"""What the first page shows: lists, nights, what is new, what waits for a person; each with the one thing to do next.

In: what `status` and `questions` show, and the commands that the desk has started. Out: dataclasses for the template.
"""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from orderbridge.pipelines.desk.folder import has_settings, run_job
from orderbridge.pipelines.desk.imports import (
    BegunRow,
    DeskImport,
    ImportRow,
    asked_elsewhere,
    begun_rows,
    import_of_plan,
    import_rows,
)
from orderbridge.pipelines.desk.link import Link
from orderbridge.pipelines.desk.progress import Progress, progress_of
from orderbridge.pipelines.desk.questions import QuestionRow, question_rows
from orderbridge.pipelines.desk.texts import Texts
from orderbridge.pipelines.ledger.model import OpenPlan
from orderbridge.pipelines.push.next_steps import Step
from orderbridge.pipelines.questions.questions import asked_questions
from orderbridge.pipelines.reporting.status import Status, is_being_sent, next_steps, read_status
from orderbridge.pipelines.warehouse.finding_history import NewFindings
from orderbridge.pipelines.warehouse.ops import LastRead
from orderbridge.sources.errors import ExitCode, UsageError
from orderbridge.sources.settings import DEMO_MARK, find_root
from orderbridge.transforms.rules import find_rule

_OLD_H: Final = 36.0
"""Hours after which the age of a list is marked: more than a night was missed."""
_NEWS_S: Final = 900.0
"""Seconds for which the first page says that a run has ended."""
_SHOWN: Final = 5
_PUBLISHED: Final = (ExitCode.DONE, ExitCode.REJECTED, ExitCode.FINDINGS, ExitCode.COVERAGE)
_ANSWERS: Final = ("answer", "answer_one")
"""Steps that are answers to questions."""
_ON_ITS_PAGE: Final = {"again": "", "send": "", "resend": "", "plan_again": "", "wait": "next.wait"}
"""Steps that an import of the desk takes on its page, with the text of those that are more than going on."""
_UNKNOWN: Final = ("in_flight", "in_doubt", "conflict")


@dataclass(frozen=True, slots=True, kw_only=True)
class ListRow:
    """A list of the platform as it was read last.

    Attributes:
        verdict: its code, for the style; `words` are for people.
        problem: why its last read was not published.
    """

    name: str
    rows: int | None
    verdict: str
    words: str
    age: str = ""
    is_old: bool = False
    quarantined: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NightRow:
    """A run that has ended, or failed.

    Attributes:
        is_good: it published.
        has_remarks: it published, and somebody has to look at something.
        detail: what a failed run reported, in English.
    """

    at: datetime | str
    command: str
    result: str
    is_good: bool
    has_remarks: bool = False
    detail: Sequence[str] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class UnknownRow:
    """Requests of a plan whose outcome is not known, or that were not sent, and the steps that end them.

    `name`: the file that was imported here; of other plans, the folder.
    """

    kind: str
    name: str
    count: int
    is_unknown: bool
    steps: Sequence[Link]


@dataclass(frozen=True, slots=True)
class NewsRow:
    """What the last run was the first to find, in English: its meaning, the detail of the first; or how many."""

    text: str
    detail: str = ""
    count: str = ""


@dataclass(slots=True, kw_only=True)
class Home:
    """The first page.

    Attributes:
        project: its folder.
        is_demo: the folder is that of a demo, whose platform has ended.
        next: the one thing to do; None: nothing.
        running: the run that holds the lock, in the words of `status`; empty for none.
        error: why the state cannot be shown.
    """

    project: str
    has_settings: bool = True
    is_demo: bool = False
    next: Link | None = None
    lists: Sequence[ListRow] = ()
    nights: Sequence[NightRow] = ()
    news: Sequence[NewsRow] = ()
    questions: Sequence[QuestionRow] = ()
    question_count: int = 0
    imports: Sequence[ImportRow] = ()
    begun: Sequence[BegunRow] = ()
    unknown: Sequence[UnknownRow] = ()
    progress: Progress = field(default_factory=Progress)
    running: str = ""
    error: str = ""
    is_empty: bool = False

    @property
    def typed_folder(self) -> str:
        """The folder in which the command is typed: that of the project, of a demo the one that it is in."""
        return shlex.quote(str(Path(self.project).parent) if self.is_demo else self.project)


def home(texts: Texts) -> Home:
    """The first page of the project. Raises UsageError: settings cannot be read."""
    root = find_root()
    page = Home(project=str(root))
    page.has_settings = has_settings()
    if not page.has_settings:
        page.is_demo = (root / DEMO_MARK).exists()
        command = f"demo --folder {shlex.quote(root.name)} --desk" if page.is_demo else "init"
        page.next = Link(texts("home.next.init"), command=f"orderbridge {command}")
        if _is_new():
            return page
    page.progress = _progress(texts)
    page.imports = [row for row in import_rows(texts) if not row.is_done]
    page.begun = begun_rows(texts)
    asked = asked_questions()
    asked_here = asked_elsewhere(asked)
    try:
        status = read_status(asked=asked)
    except UsageError as error:
        page.is_empty = True
        page.error = "" if _is_new() else str(error)
    else:
        _add_status(page, status, texts)
    page.questions = question_rows(asked_here[:_SHOWN], texts)
    page.question_count = len(asked_here)
    page.next = page.next or _next(page, texts)
    return page


def _progress(texts: Texts) -> Progress:
    """How far the run of the desk is, or how it ended. One that ended long ago is among the last runs alone."""
    progress = progress_of(run_job(), texts)
    is_news = progress.is_running or time.time() - run_job().written_at < _NEWS_S
    return progress if is_news else Progress()


def _is_new() -> bool:
    """Whether nothing was ever pulled: that is no error."""
    from orderbridge.sources.settings import warehouse_path

    return not warehouse_path().exists()


def _add_status(page: Home, status: Status, texts: Texts) -> None:
    page.is_empty = not status.lists
    page.lists = [_list_row(one, status, texts) for one in status.lists]
    page.lists += [
        ListRow(
            name=texts.or_own(f"list.{name}", name),
            rows=None,
            verdict="incomplete",
            words=texts("verdict.never"),
            problem=status.problems.get(name, ""),
        )
        for name in status.never_read
    ]
    page.nights = nights(status, texts)
    page.news = [_news(one, texts) for one in status.new_findings]
    page.news += [NewsRow(one.text) for one in status.schema_changes]
    page.unknown = [_unknown_row(plan, texts) for plan in _not_being_sent(status)]
    page.running = status.running


def _news(one: NewFindings, texts: Texts) -> NewsRow:
    rule = find_rule(f"{one.entity}.{one.rule}")
    text = one.rule if rule is None else rule.meaning
    count = "" if one.detail else texts("home.news.count", count=one.findings)
    return NewsRow(text, one.detail, count)


def _list_row(one: LastRead, status: Status, texts: Texts) -> ListRow:
    hours = min(one.ages_h(status.at))
    return ListRow(
        name=texts.or_own(f"list.{one.resource}", one.resource),
        rows=one.rows,
        verdict=one.verdict,
        words=texts(f"verdict.{one.verdict}"),
        age=age(hours, texts),
        is_old=hours > _OLD_H,
        quarantined=one.quarantined_rows,
        problem=status.problems.get(one.resource, ""),
    )


def age(hours: float, texts: Texts) -> str:
    """An age in the unit that a person would use."""
    minutes = round(hours * 60)
    if minutes < 1:
        return texts("age.now")
    if minutes < 60:
        return texts("age.minutes", count=minutes)
    if hours < 48:
        return texts("age.hours", count=round(hours))
    return texts("age.days", count=round(hours / 24))


def nights(status: Status, texts: Texts) -> list[NightRow]:
    """The last runs: first what is still so, then those that published and those that failed, the newest first."""
    rows: list[NightRow] = []
    if status.killed:
        rows.append(
            NightRow(
                at="",
                command=status.killed,
                result=texts("night.killed"),
                is_good=False,
                detail=[texts("night.killed.hint")],
            )
        )
    for note in filter(None, (status.failure, status.destination_failure)):
        detail = [str(text) for text in (note.get("message"), note.get("hint")) if text]
        rows.append(
            NightRow(
                at=_time(note.get("failed_at")),
                command=_command(str(note.get("command", "")), texts),
                result=texts("night.copy_failed" if note.get("published") else "night.failed"),
                is_good=False,
                detail=detail,
            )
        )
    past: list[tuple[datetime, NightRow]] = []
    for failed in status.failed_runs:
        at = datetime.fromisoformat(failed["failed_at"])
        row = NightRow(
            at=at,
            command=_command(str(failed["command"]), texts),
            result=texts("night.failed"),
            is_good=False,
            detail=[str(failed["message"])],
        )
        past.append((at, row))
    for run in status.runs:
        code = run["exit_code"]
        at = run["ended_at"].replace(tzinfo=UTC)
        row = NightRow(
            at=at,
            command=_command(str(run["command"]), texts),
            result=texts.or_own(f"exit.{code}", texts("exit.other", code=code)),
            is_good=code in _PUBLISHED,
            has_remarks=code != ExitCode.DONE,
        )
        past.append((at, row))
    past.sort(key=lambda night: night[0], reverse=True)
    return [*rows, *(row for _, row in past)]


def _command(name: str, texts: Texts) -> str:
    """What a command did, in words."""
    is_import = name.endswith("(import)")
    return texts.or_own("command.import" if is_import else f"command.{name}", name)


def _time(text: object) -> datetime | str:
    try:
        return datetime.fromisoformat(str(text))
    except ValueError:
        return ""


def _not_being_sent(status: Status) -> Iterator[OpenPlan]:
    """The plans that no command sends now: of one that is sent, a request without an answer is not unknown."""
    for plan in status.open_plans:
        own = import_of_plan(Path(plan.folder))
        is_sent = own.is_sending if own is not None else is_being_sent(plan, status)
        if not is_sent:
            yield plan


def _unknown_row(plan: OpenPlan, texts: Texts) -> UnknownRow:
    is_unknown = not plan.states.keys().isdisjoint(_UNKNOWN)
    count = sum(
        number for state, number in plan.states.items() if not is_unknown or state in _UNKNOWN
    )
    own = import_of_plan(Path(plan.folder))
    steps = [_step(step, own, texts) for step in next_steps(plan)]
    return UnknownRow(
        kind=texts(f"kind.{plan.kind}"),
        name=own.title if own is not None else Path(plan.folder).name,
        count=count,
        is_unknown=is_unknown,
        steps=[*dict.fromkeys(steps)],
    )


def _step(step: Step, own: DeskImport | None, texts: Texts) -> Link:
    """What ends requests: a question of the desk, the page of the import, else a command."""
    text = step.words_in(texts)
    words = text[:1].upper() + text[1:]
    if step.code in _ANSWERS:
        return Link(words, href="/questions")
    if own is not None and step.code in _ON_ITS_PAGE:
        go_on = texts("home.next.import", file=own.title)
        return Link(texts.or_own(_ON_ITS_PAGE[step.code], go_on), href=f"/import/{own.name}")
    return Link(words, command=step.command)


def _next(page: Home, texts: Texts) -> Link | None:
    """The one thing to do: what waits longest for a person, before what can be done at any time.

    Nothing while a run is going on.
    """
    if page.progress.is_running or page.running:
        return None
    unknown = next((row for row in page.unknown if row.is_unknown and row.steps), None)
    if unknown is not None:
        step = unknown.steps[0]
        return replace(step, text=texts("home.next.unknown")) if step.href else step
    if page.nights and not page.nights[0].is_good:
        return Link(texts("home.next.failed"))
    waiting = next((row for row in page.imports if row.waits), None)
    if waiting is not None:
        return Link(texts("home.next.import", file=waiting.file), href=waiting.href)
    if page.question_count:
        return Link(texts("home.next.questions", count=page.question_count), href="/questions")
    return Link(texts("home.next.run")) if page.is_empty else None
