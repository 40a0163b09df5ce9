"""The next step of a write that has not ended: one table, for the terminal, `status`, results and notifications.

In: the state of an operation, and its plan. Out: what to do, with the complete command. It is the command of the person
who began the plan: an import goes on with `import`, a plan with `push`.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Final, Literal, NamedTuple, Self

from orderbridge.pipelines.ledger.model import State
from orderbridge.pipelines.plan.model import (
    MANIFEST_FILE,
    PASSWORD_SOURCES,
    Manifest,
    Plan,
    is_import,
)
from orderbridge.sources.command_line import program, typed_command
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.settings import mappings_folder
from orderbridge.sources.texts import Texts, english
from orderbridge.sources.words import format_time

Action = Literal["again", "wait", "resend", "plan_again", "answer", "read"]
"""What ends an operation: the same command again, at once or from a time on, or with --resend; a new plan of its file;
a person who looks on the platform; or what its own line in the results says."""
ACTIONS: Final[tuple[Action, ...]] = ("wait", "again", "resend", "plan_again", "answer")
"""Those with a command, in the order in which they are shown."""
_ID_DIGITS: Final = 12


def action_of(
    state: State, *, is_listed: bool, is_repeatable: bool, settles_at: float, now: float
) -> Action:
    """What ends an operation that has not ended.

    Args:
        state: of the operation.
        is_listed: it can be looked up in a list of the platform.
        is_repeatable: sending it twice has the same effect as sending it once.
        settles_at: when it can be looked up, ledger time.
        now: ledger time.
    """
    if state == "conflict":
        return "answer"
    if state != "in_doubt":
        return "again"
    if is_listed:
        return "wait" if settles_at > now else "again"
    return "again" if is_repeatable else "answer"


@dataclass(frozen=True, slots=True)
class NextSteps:
    """The words of each next step of a plan.

    Attributes:
        plan_id: its id.
        again: the command that goes on with it.
        plan_again: the command that compares its file anew with the platform.
        push: the command that pushes it, as it was planned.
        is_import: an import has made it, and makes the next one.
        is_lost: its folder is gone or was changed: nothing of it can be sent, it can only be looked up and answered.
    """

    plan_id: str
    again: str
    plan_again: str
    push: str
    is_import: bool = True
    is_lost: bool = False

    @classmethod
    def of(cls, plan: Plan) -> Self:
        """The next steps of a plan whose folder is there."""
        manifest = plan.manifest
        is_production = manifest.environment == "production"
        agreement = f"--confirm {manifest.operations}" if is_production else "--yes"
        push = f"{program()} push {shown_path(plan.folder)} {agreement}"
        plan_again = plan_again_command(plan)
        imports = is_import(plan.folder)
        is_as_it_was = imports and manifest.changed_file() is None
        again = plan_again if is_as_it_was else push
        return cls(manifest.plan_id, again, plan_again, push, is_import=imports)

    @classmethod
    def of_lost(cls, plan_id: str) -> Self:
        """The next steps of a plan whose folder is gone or was changed."""
        settle = f"{program()} settle"
        return cls(plan_id, settle, f"{program()} import KIND FILE", settle, is_lost=True)

    def step(self, action: Action, *, at: float = 0.0, operation: int | None = None) -> Step:
        """A next step.

        Args:
            action: which one; not `read`, which is what the result itself says.
            at: when it can be done, epoch seconds; for `wait`.
            operation: that it is about; None: all that need it.
        """
        if action == "wait":
            code = "look_up_from" if self.is_lost else "wait"
            return Step(code, self.again, {"time": format_time(at)})
        if action == "resend":
            return Step("resend", f"{self.again} --resend")
        if action == "plan_again":
            return Step("again" if self.is_import else "plan_again", self.plan_again)
        if action == "answer":
            return answer_step(self.plan_id, operation)
        return Step("look_up" if self.is_lost else "again", self.again)


class Step(NamedTuple):
    """What to do, and the command that does it.

    Attributes:
        code: what to do.
        command: that does it; empty where a person does it by hand.
        values: what its text is made of.
    """

    code: str
    command: str = ""
    values: Mapping[str, str] = MappingProxyType({})

    @property
    def words(self) -> str:
        """What to do, in English."""
        return self.words_in(english())

    def words_in(self, texts: Texts) -> str:
        """What to do."""
        return texts(f"step.{self.code}", **self.values)

    def __str__(self) -> str:
        return f"{self.words}: {self.command}" if self.command else self.words

    def lines_in(self, texts: Texts) -> list[str]:
        """For a terminal: the command can be copied."""
        line = texts("step.next", words=self.words_in(texts))
        return [f"{line}:", f"  {self.command}"] if self.command else [line]

    @property
    def lines(self) -> list[str]:
        """The same in English."""
        return self.lines_in(english())


def agreeing_step(plan: Plan, left: int) -> Step:
    """What sends a plan that waits for somebody to agree to it: the command that was typed, with the agreement."""
    if plan.manifest.environment == "production":
        return Step("send", typed_command("--confirm", str(left)))
    return Step("send", typed_command("--yes"))


def answer_step(plan_id: str, operation: int | None) -> Step:
    """What ends an operation that only a person can end, whether its plan is there or not. None: several."""
    if operation is None:
        return Step("answer", f"{program()} questions")
    question = f"write:{plan_id[:_ID_DIGITS]}/{operation}"
    return Step("answer_one", f"{program()} answer {question} landed")


def plan_again_command(plan: Plan) -> str:
    """The command that compares the input of a plan anew: `import` where an import has made it, otherwise `plan`."""
    manifest = plan.manifest
    file = Path(manifest.input.path)
    if is_import(plan.folder):
        return import_command(plan, file)
    words = [program(), "plan", manifest.kind, shown_path(file), *_mapping(manifest)]
    return " ".join([*words, *_passwords(plan), *_messages(plan)])


def import_command(plan: Plan, file: Path) -> str:
    """The command that imports a file as the input of a plan was.

    A mapping that imports keep is found by itself. So is that of a plan, with its passwords, for a file in its folder.
    """
    manifest = plan.manifest
    words = [program(), "import", manifest.kind, shown_path(file)]
    if (file.parent / MANIFEST_FILE).exists():
        return " ".join([*words, *_messages(plan)])
    if manifest.mapping is not None:
        folder = Path(manifest.mapping.path).parent
        if folder == mappings_folder().resolve():
            words += _lookups(manifest, but_in=folder)
        else:
            words += _mapping(manifest)
    return " ".join([*words, *_passwords(plan), *_messages(plan)])


def _mapping(manifest: Manifest) -> list[str]:
    """The options with the mapping of a plan, and the files that it names."""
    lookups = _lookups(manifest)
    if manifest.mapping is None:
        return lookups
    return [f"--mapping {shown_path(Path(manifest.mapping.path))}", *lookups]


def _lookups(manifest: Manifest, but_in: Path | None = None) -> list[str]:
    files = [Path(one.path) for one in manifest.lookups]
    return [f"--lookup {shown_path(file)}" for file in files if file.parent != but_in]


def _passwords(plan: Plan) -> list[str]:
    """The option with which the passwords of a plan are generated, if they are."""
    made = plan.made_passwords
    return [f"--passwords {made}"] if made is not None else []


def _messages(plan: Plan) -> list[str]:
    """The option with which each new customer gets a message, if each of a plan does; a mailed password is one."""
    first = next(plan.operations(), None)
    if first is None or plan.manifest.messages < plan.manifest.operations:
        return []
    is_of_password = first.password == PASSWORD_SOURCES["mail"]
    has_login = KINDS[plan.kind].has_login
    return ["--notify-customers"] if has_login and not is_of_password else []


def shown_path(path: Path) -> str:
    """A path as a person types it: relative to the current folder where it is below it; quoted for a shell."""
    path = path.absolute()
    with suppress(ValueError, OSError):  # elsewhere; or the current folder was removed
        path = path.relative_to(Path.cwd())
    return shlex.quote(str(path))
