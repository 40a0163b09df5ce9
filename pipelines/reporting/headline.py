"""What happened in a run, in one line, and the one command for a person: how a notification and a mail begin.

In: the results of a run, or why it failed. Out: a `Headline`. The first thing that the exit code stands for is named.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Final, NamedTuple

from orderbridge.pipelines.pull.model import PullResult
from orderbridge.pipelines.pull.refused_keys import replace_key
from orderbridge.pipelines.reconcile.reconcile import ReconcileResult
from orderbridge.pipelines.warehouse.failure import describe_error
from orderbridge.sources.command_line import complete, ending_with_command
from orderbridge.sources.errors import (
    AccessError,
    BridgeError,
    CoverageError,
    ExitCode,
    HttpError,
    LockedError,
    Stopped,
    Unreachable,
    UsageError,
)
from orderbridge.sources.words import listed, number

_RUN: Final = "orderbridge run"
_CHECK: Final = "orderbridge check"
_QUESTIONS: Final = "orderbridge questions"
_REPORT: Final = "orderbridge report"
_NAMED_MAX: Final = 3
_AT_END: Final = re.compile(r": ((?:orderbridge|make) [^`\n]+)$", re.MULTILINE)
"""A command that a hint ends with, such as `then run it again: orderbridge run`."""


class Headline(NamedTuple):
    """How a run ended.

    Attributes:
        happened: what happened, in one line.
        todo: the command for a person, or what to do in words; empty where nothing is to be done.
    """

    happened: str
    todo: str = ""

    @property
    def lines(self) -> list[str]:
        """The first two lines of a text."""
        return [self.happened, f"next: {self.todo}"] if self.todo else [self.happened]

    @property
    def has_command(self) -> bool:
        """Whether what to do has a command, alone or at its end."""
        return bool(_AT_END.search(f": {self.todo}"))


def headline_of_run(pulled: PullResult, reconciled: ReconcileResult | None) -> Headline:
    """How a run ended that raised no error."""
    found = next(_headlines(pulled, reconciled))
    return found._replace(todo=complete(found.todo))


def _headlines(pulled: PullResult, reconciled: ReconcileResult | None) -> Iterator[Headline]:
    """What there is to say, in the order of the exit codes."""
    failed = {one.resource: one.error for one in pulled.lists if one.error is not None}
    if failed:
        worst = min(failed.values(), key=lambda error: error.exit_code)
        yield Headline(f"{_names(failed)} not read: {worst.message}", todo_about(worst))
    if pulled.ledger_error is not None:
        error = pulled.ledger_error
        yield Headline(f"published; the ledger was not read: {error.message}", todo_about(error))
    if pulled.held_back:
        reasons = "; ".join(pulled.held_back.values())
        question = f"{_QUESTIONS} list:{next(iter(pulled.held_back))}"
        yield Headline(f"{_names(pulled.held_back)} not published: {reasons}", question)
    if reconciled is not None and reconciled.exit_code == ExitCode.FINDINGS:
        named = reconciled.named[:_NAMED_MAX]
        further = len(reconciled.named) - len(named)
        shown = ", ".join([*named, *([f"{further} more rules"] if further else [])])
        has_errors = reconciled.severities["error"] > 0
        yield Headline(
            f"published, with findings that nobody has accepted: {shown}",
            _QUESTIONS if has_errors else _REPORT,
        )
    if quarantined := sum(len(one.quarantined) for one in pulled.lists):
        yield Headline(f"published, without {number(quarantined, 'row')} in quarantine", _REPORT)
    if reconciled is not None and reconciled.exit_code == ExitCode.REJECTED:
        yield Headline("published, without rejected lines of the ERP's file", _REPORT)
    if reconciled is not None and reconciled.new_questions:
        count = number(len(reconciled.new_questions), "new question")
        question = shlex.quote(reconciled.new_questions[0])
        yield Headline(f"published, with {count}", f"{_QUESTIONS} {question}")
    yield Headline("published" if pulled.published else ExitCode(pulled.exit_code).meaning)


def headline_of_error(error: Exception) -> Headline:
    """Why a run failed."""
    _, message, _ = describe_error(error)
    return Headline(message.partition("\n")[0], complete(todo_about(error)))


def todo_about(error: Exception) -> str:
    """The command that is next after an error; where none is, its hint."""
    if isinstance(error, AccessError):
        is_key = error.family == "legacy" or error.status != 403
        return _todo_of_hint(replace_key(error.family)) if is_key and error.family else _CHECK
    if isinstance(error, Unreachable | Stopped):
        return _RUN
    if isinstance(error, HttpError) and not _AT_END.search(error.hint):
        return _CHECK
    if isinstance(error, LockedError):
        return "orderbridge status"
    if isinstance(error, CoverageError):
        return _QUESTIONS
    if isinstance(error, UsageError):
        return _todo_of_hint(ending_with_command(error.hint))
    return _todo_of_hint(error.hint) if isinstance(error, BridgeError) else ""


def _todo_of_hint(hint: str) -> str:
    """The command at the end of a line of a hint; that of an answer shows its question first. Without one, the hint.

    Where something has to be done before (`Free space, then run it again: …`), it is the whole sentence.
    """
    found = _AT_END.search(hint)
    if found is None:
        return hint.partition("\n")[0]
    command: str = found[1]
    before = hint[: found.start()].rpartition("\n")[2].rpartition(". ")[2]
    if ", then" in before:
        return f"{before}: {command}"
    called, is_answer, rest = command.partition(" answer ")
    if not is_answer:
        return command
    return f"{called} questions {shlex.quote(shlex.split(rest)[0])}"


def _names(resources: Iterable[str]) -> str:
    return listed([name.replace("_", " ") for name in resources])
