"""The command that a person typed, complete, so that a message that says to run it again can be copied.

In: the arguments of the process, kept once by the command line. Out: the command as text. What only says how a command
prints is left out, and so is the address of a webhook, which is a secret. Where no command was typed, as in a notebook,
it is "the same command".
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterator, Sequence
from typing import Final

PROGRAM: Final = "orderbridge"
_PROJECT: Final = "--project"
_LEFT_OUT: Final = ("--json", "--values", "--log", "--notify")
_WITH_VALUE: Final = (
    "--log",
    "--notify",
    "--confirm",
    "--passwords",
    "--out",
    "--report",
    "--port",
    "--csv",
    "--max-age",
    "--rate",
    "--settle",
    "--until",
    "--who",
)
"""Options with a value, of those that are left out or replaced here."""
_COMMAND: Final = re.compile(rf"\b(?:{PROGRAM}|git|kill|make|mkdir|mv) [\w-]")
"""A command in a hint."""
_typed: list[str] = []
_commands: list[str] = []


def keep_typed(arguments: Sequence[str], commands: Collection[str] = ()) -> None:
    """Keeps the arguments of this process, and the names of all commands; the entry point calls it."""
    _typed[:] = arguments
    _commands[:] = commands


def typed_words() -> Sequence[str]:
    """The arguments of this process, as they were typed."""
    return tuple(_typed)


def program() -> str:
    """The program as it was called, with the folder of its project if that was given."""
    for at, word in enumerate(_typed):
        name, _, value = word.partition("=")
        if name == _PROJECT:
            return shlex.join([PROGRAM, *_typed[at : at + 1 + (not value)]])
        if not word.startswith("-"):
            break  # the command: what follows is its own
    return PROGRAM


def complete(text: str) -> str:
    """A text for a person, in which each command has the folder of the project that was typed, if one was."""
    called = program()
    if called == PROGRAM or not _commands:
        return text
    names = "|".join(map(re.escape, _commands))
    return re.sub(rf"\b{PROGRAM} (?=(?:{names})\b)", lambda _: f"{called} ", text)


def typed_command(*added: str, without: str = "") -> str:
    """The command that was typed.

    Args:
        added: an option that it has to have, with its value, in place of the one that it had.
        without: an option that it must not have.
    """
    if not _typed:
        return " ".join(["the same command", *(["with", *added] if added else [])])
    words = [*_without(_typed, (*_LEFT_OUT, *added[:1], without))]
    end = words.index("--") if "--" in words else len(words)
    return shlex.join([PROGRAM, *words[:end], *added, *words[end:]])


def run_again() -> str:
    """Says to run the command that was typed once more; inside a sentence."""
    return f"run it again: {typed_command()}" if _typed else "run the same command again"


def typed_with(wrong: str, right: str) -> str:
    """The command that was typed, with a word in place of a wrong one; of an option the value stays."""
    words = []
    for word in _without(_typed, _LEFT_OUT):
        name, equals, value = word.partition("=")
        is_option = wrong.startswith("-") and name == wrong
        if is_option:
            words.append(f"{right}{equals}{value}")
        else:
            words.append(right if word == wrong else word)
    return shlex.join([PROGRAM, *words])


def ending_with_command(hint: str) -> str:
    """A hint, which ends with the command that was typed where it has none of its own."""
    if not _typed or _COMMAND.search(hint):
        return hint
    if not hint.endswith("."):
        return f"{hint}\n  Then {run_again()}" if hint else f"Correct it, then {run_again()}"
    return f"{hint.removesuffix('.')}, then {run_again()}"


def _without(words: Sequence[str], options: Collection[str]) -> Iterator[str]:
    """The words without these options and their values."""
    is_value = False
    for word in words:
        name, _, value = word.partition("=")
        if is_value:
            is_value = False
        elif name in options and name:
            is_value = name in _WITH_VALUE and not value
        else:
            yield word
