"""Errors of the command line itself, such as a missing argument, with the command that is next.

In: what click reports. Out: an error like all others: what is wrong, then the corrected command where one is evident,
else how the command is used and its help.
"""

from __future__ import annotations

from collections.abc import Collection
from difflib import get_close_matches

import click

from orderbridge.sources.command_line import PROGRAM, typed_with, typed_words
from orderbridge.sources.errors import UsageError


def usage_error(error: click.ClickException) -> UsageError:
    """The error for a person."""
    context = error.ctx if isinstance(error, click.UsageError) else None
    if isinstance(error, click.NoSuchOption) and error.option_name == "--project":
        command = context.info_name if context is not None else "…"
        hint = f"Write it there: {PROGRAM} --project DIR {command}"
        return UsageError("--project goes before the command", hint)
    wrong, right = _correction(error)
    if right:
        message = " ".join(error.message.split())
        return UsageError(message, f"Did you mean: {typed_with(wrong, right)}")
    message = " ".join(error.format_message().split())
    if context is None:
        return UsageError(message, f"All commands: {PROGRAM} --help")
    usage = " ".join(context.get_usage().split())
    return UsageError(message, f"{usage}\n  Options and an example: {context.command_path} --help")


def _correction(error: click.ClickException) -> tuple[str, str]:
    """A wrong word and the one that is meant; empty where that is not evident."""
    if isinstance(error, click.NoSuchOption):
        return error.option_name, _near(error.option_name, error.possibilities or ())
    if isinstance(error, click.NoSuchCommand):
        return error.command_name, _near(error.command_name, error.possibilities or ())
    if isinstance(error, click.BadParameter) and error.param is not None:
        kind = error.param.type
        if isinstance(kind, click.Choice):
            for word in typed_words():
                if f"{word!r} " in error.message:
                    return word, _near(word, [str(one) for one in kind.choices])
    return "", ""


def _near(word: str, known: Collection[str]) -> str:
    return next(iter(get_close_matches(word, known, n=1, cutoff=0.7)), "")
