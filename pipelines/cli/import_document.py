"""What an import prints for a page or a script: one JSON object at its end, however it ends.

docs/reference/import-json.md has its keys.

In: an import, and its result or why it ended early. Out: the object. The keys are stable; a value is null where a step
was not done. Values of the file are in it only where they were asked for: the output of a night is kept in logs.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Final, Literal

from orderbridge.pipelines.cli import plan as plan_command
from orderbridge.pipelines.cli import push as push_command
from orderbridge.pipelines.cli import verify as verify_command
from orderbridge.pipelines.cli.process import STOP
from orderbridge.pipelines.cli.questions import record as question_record
from orderbridge.sources.command_line import program
from orderbridge.sources.errors import BridgeError, ExitCode

if TYPE_CHECKING:
    from orderbridge.pipelines.import_file.run import Import, ImportResult
    from orderbridge.pipelines.plan.model import Plan
    from orderbridge.pipelines.push.next_steps import Step

State = Literal["asking", "planned", "sent", "unfinished", "stopped", "failed"]
"""Questions have to be answered first; the plan waits for an agreement; it is at its end; the same command goes on; a
person stopped it; it failed before anything was sent."""
_ID_DIGITS: Final = 12
_LOGIN_MODE: Final = "sources.legacy.login_mode"


def record(run: Import, result: ImportResult, *, values: bool) -> dict[str, Any]:
    """The object of an import that has sent its plan; `values`: with those of the file."""
    error = result.push.error or result.error
    verification = result.verification
    ends = not result.push.actions.keys() - {"read"} and result.push.error is None
    state: State = "sent" if ends and not result.push.stopped else "unfinished"
    return {
        "kind": result.plan.kind,
        "folder": result.plan.folder,
        "plan": plan_command.record(result.made) if result.made is not None else None,
        "push": push_command.record(result.push),
        "file": result.file,
        "verify": verify_command.record(verification) if verification is not None else None,
        "exit_code": STOP.exit_code(result.exit_code),
        "state": state,
        "error": _error(error) if error is not None else None,
        "questions": [
            *_questions(run, values=values),
            *(question_record(one) for one in _questions_of_plan(result.plan)),
        ],
        **_file(run, values=values),
        "changes": _changes(run, result.plan, values=values),
        "agreement": None,
        "files": _files(run, result.plan),
        "next": [*map(_step, next_steps(result))],
    }


def next_steps(result: ImportResult) -> list[Step]:
    """What to do next: what the file asks comes first, as its answers may save a correction."""
    from orderbridge.pipelines.push.next_steps import Step

    asked = [Step("answer_file", f"{program()} questions")] if result.asks else []
    return [*asked, *push_command.next_steps(result.push, result.file)]


def ended_early(run: Import, error: BridgeError | None, *, values: bool) -> dict[str, Any]:
    """The object of an import that has sent nothing; `error` is None where a person stopped it."""
    made, plan = run.made, run.plan
    questions = [*_questions(run, values=values)]
    code = ExitCode.STOPPED if error is None else error.exit_code
    return {
        "kind": run.options.kind,
        "folder": plan.folder if plan is not None else None,
        "plan": plan_command.record(made) if made is not None else None,
        "push": None,
        "file": None,
        "verify": None,
        "exit_code": STOP.exit_code(code),
        "state": "stopped" if error is None else _state(run, questions),
        "error": _error(error) if error is not None else None,
        "questions": questions,
        **_file(run, values=values),
        "changes": _changes(run, plan, values=values) if plan is not None else None,
        "agreement": _agreement(plan) if plan is not None else None,
        "files": _files(run, plan) if plan is not None else None,
        "next": [*map(_step, _steps_before(plan if error is not None else None))],
    }


def _steps_before(plan: Plan | None) -> Iterator[Step]:
    """What to do where nothing was sent; what is asked, or wrong, says so itself."""
    from orderbridge.pipelines.push.checks import operations_left
    from orderbridge.pipelines.push.next_steps import agreeing_step

    if plan is not None:
        left, _ = operations_left(plan)
        yield agreeing_step(plan, left)


def _state(run: Import, questions: list[dict[str, Any]]) -> State:
    if run.plan is not None:
        return "planned"
    return "asking" if questions else "failed"


def _error(error: BridgeError) -> dict[str, Any]:
    return {"message": error.message, "hint": error.hint, "exit_code": error.exit_code}


def _questions(run: Import, *, values: bool) -> Iterator[dict[str, Any]]:
    """What nobody has answered before anything was sent: about the login, then about the file."""
    from orderbridge.pipelines.questions.imports import asked_of
    from orderbridge.pipelines.questions.questions import find_question
    from orderbridge.sources.kinds import KINDS
    from orderbridge.sources.settings import legacy_settings

    if KINDS[run.options.kind].has_login and legacy_settings().login_mode is None:
        yield question_record(find_question(_LOGIN_MODE))
    if run.interview is None:
        return
    for one in run.interview.open.values():
        asked = question_record(asked_of(run.interview.begun, one))
        asked |= {"topic": one.topic, "about": one.about, "values": one.values}
        if not values:
            asked |= {"examples": [], "values": {}}
            if one.topic == "mark":  # the mark is the text of a cell
                asked["text"] = f"What do the cells of {one.about} mean?"
        yield asked


def _questions_of_plan(plan: Plan) -> Iterator[Any]:
    """What a person has to answer before a plan that was sent is at its end."""
    from orderbridge.pipelines.plan.lost_zeros import kept_zeros
    from orderbridge.pipelines.questions.codes import Codes
    from orderbridge.pipelines.questions.writes import PREFIX, Writes

    name = f"{PREFIX}{plan.manifest.plan_id[:_ID_DIGITS]}"
    yield from (one for one in Writes().asked() if one.id.startswith(name))
    held = {lost.question for one in kept_zeros(plan.folder) for lost in one.found}
    yield from (one for one in Codes().asked() if one.id in held and one.state == "open")


def _file(run: Import, *, values: bool) -> dict[str, Any]:
    """How the file is read: its columns, and the fields that they can fill; null where it cannot be read."""
    from orderbridge.pipelines.import_file.reading import read_columns

    options = run.options
    nothing = {"import_id": None, "mapping": None, "columns": None, "fields": None}
    if run.interview is None and options.mapping is None:
        return nothing
    given = options.mapping if run.interview is None else None
    try:
        reading = read_columns(
            options.kind, options.file, options.read_options, options.lookups, given
        )
    except BridgeError:
        return nothing
    found = asdict(reading)
    if not values:
        for column in found["columns"]:
            column["samples"] = []
    return found


def _changes(run: Import, plan: Plan, *, values: bool) -> dict[str, Any]:
    """What the plan would change, or has changed; without values in numbers only, beside what `plan` has."""
    from orderbridge.pipelines.import_file.changes import (
        add_names,
        first_changes,
        lines_by_reason,
        named_differences,
    )
    from orderbridge.pipelines.push.checks import operations_left

    manifest = plan.manifest
    left, _ = operations_left(plan)
    found = {"lines": manifest.lines, "counts": manifest.outcomes, "left": left}
    if not values:
        unknown = ("changes", "differences", "difference_count", "reasons", "notes")
        return {**found, **dict.fromkeys(unknown)}
    changes, _ = first_changes(plan)
    inputs = run.made.inputs if run.made is not None else None
    add_names(plan, inputs, changes)
    differences, difference_count = named_differences(plan, inputs)
    return {
        **found,
        "changes": [*map(asdict, changes)],
        "differences": differences,
        "difference_count": difference_count,
        "reasons": [*map(asdict, lines_by_reason(plan, inputs))],
        "notes": list(run.made.statistics.notes) if run.made is not None else None,
    }


def _agreement(plan: Plan) -> dict[str, Any]:
    """What somebody has to agree to, and the options that do it."""
    from orderbridge.pipelines.push.checks import operations_left

    manifest = plan.manifest
    left, doubts = operations_left(plan)
    return {
        "operations": left,
        "planned": manifest.operations,
        "doubts": doubts,
        "messages": min(manifest.messages, left),
        "passwords": plan.made_passwords,
        "environment": manifest.environment,
        "host": manifest.host,
        "plan": plan.agreed_as,
        "arguments": ["--confirm", str(left), "--if-plan", plan.agreed_as],
    }


def _files(run: Import, plan: Plan) -> dict[str, Any]:
    from orderbridge.pipelines.plan.model import SUMMARY_FILE
    from orderbridge.pipelines.push.passwords import PASSWORDS_FILE

    passwords = plan.folder / PASSWORDS_FILE
    return {
        "workbook": run.workbook,
        "passwords": passwords if passwords.exists() else None,
        "summary": plan.folder / SUMMARY_FILE,
    }


def _step(step: Step) -> dict[str, Any]:
    return {
        "action": step.code.partition(".")[0],
        "words": step.words,
        "command": step.command or None,
        "values": dict(step.values),
    }
