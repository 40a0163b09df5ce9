"""The command `init`: asks for hosts and keys, writes the project's settings, and checks them."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from difflib import get_close_matches
from typing import TYPE_CHECKING, Final

import click

from orderbridge.pipelines.cli.check import check_briefly
from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, prepare_environment, start
from orderbridge.pipelines.cli.project_files import (
    ignore_private_files,
    project_folder,
    secrets_file,
    write_settings,
)
from orderbridge.pipelines.cli.terminal import escape, escape_lines, print_lines
from orderbridge.sources.contract import Family, records_of
from orderbridge.sources.errors import ExitCode, UsageError
from orderbridge.sources.settings import is_set, set_project, set_values
from orderbridge.sources.words import number

if TYPE_CHECKING:
    from orderbridge.sources.settings.setting import Setting

SANDBOX_PORT: Final = 8765
_KEY: Final = "sources.legacy.api_key"
_DESTINATION: Final = "warehouse.destination"
_API_PATH: Final = "/public/v1"


def _lists(family: Family) -> str:
    return ", ".join(record.name.replace("_", " ") for record in records_of(family))


FAMILIES: Final = {
    "sources.legacy": (
        f"Legacy API ({_lists('legacy')}; needed to plan and push)",
        ("base_url", "api_key", "environment", "login_mode"),
    ),
    "sources.public_v1": (f"V1 API ({_lists('public_v1')})", ("base_url", "api_key")),
}

MEANINGS: Final = ("timezone", "country")
"""Settings of `reconcile` that are asked when a project is set up."""


@declared("init")
@click.argument("changes", metavar="[SETTING[=VALUE]]…", nargs=-1)
@click.option(
    "--sandbox",
    is_flag=True,
    help=f"Ask nothing: use `orderbridge sandbox --port {SANDBOX_PORT}` on this machine.",
)
def command(changes: tuple[str, ...], sandbox: bool) -> int:
    """Set up a project, or change its settings: ask for hosts and keys, write the settings, check them.

    Asks for what is not set. A SETTING, such as sources.legacy.api_key, is set to its VALUE, or asked for without one.
    Writes .dlt/secrets.toml (mode 0600), and lines of .gitignore that keep private files out of git, in the current
    folder or that of --project. Every other line stays. Then checks as `orderbridge check` does.
    """
    from orderbridge.pipelines.cli.console import Reporter
    from orderbridge.sandbox.config import settings

    Reporter(STOP.style).attach()
    folder = project_folder()
    set_project(folder)
    path = secrets_file(folder)
    values: dict[str, object]
    if sandbox:
        values = {} if path.exists() else {**settings(f"http://127.0.0.1:{SANDBOX_PORT}")}
    else:
        values = dict(map(_changed, changes)) if changes else _ask_missing()
    if values:
        print_lines(f"wrote {write_settings(folder, values)} (mode 0600)", *_overridden(values))
        if _KEY in values:
            _confirm_key()
    else:
        print_lines(f"{path}: not changed. To change a setting, name it: orderbridge init SETTING")
    if sandbox and values:
        print_lines(
            f"Start the sandbox in another terminal: orderbridge sandbox --port {SANDBOX_PORT}"
        )
    if added := ignore_private_files(folder):
        print_lines(f"added {number(len(added), 'line')} to {folder / '.gitignore'}")
    with start(sends_keys=True) as reporter:
        code = check_briefly(reporter)
    if code == ExitCode.DONE and not changes:
        print_lines(
            "next: orderbridge import or run. Before you send stock or prices, find out what the platform does with "
            "them: orderbridge questions sources.legacy.stock_semantics"
        )
    return code


def _overridden(keys: Iterable[str]) -> Iterator[str]:
    """The settings among them that the environment has too, so that what was written does not count."""
    from orderbridge.sources.settings.loaders import given_values
    from orderbridge.sources.settings.setting import SETTINGS

    for key in keys:
        with suppress(UsageError):  # the check reports it
            _, origin = given_values(SETTINGS[key].section)[SETTINGS[key].name]
            if not origin.startswith(".dlt"):
                yield f"but {origin} is set too, and counts: change {key} there"


def _confirm_key() -> None:
    """Asks whose a new key is, where no known customer shows it; without a terminal the next push does."""
    if not sys.stdin.isatty():
        return
    from orderbridge.pipelines.ledger.lock import ledger_lock
    from orderbridge.pipelines.ledger.store import Ledger
    from orderbridge.pipelines.push.identity import key_digest
    from orderbridge.pipelines.questions.keys import is_key_open
    from orderbridge.sources.settings import ledger_path, legacy_settings

    if not is_key_open():
        return
    question = "No known customer shows whose key this is. Is it of the same organization as the key before?"
    if click.confirm(question, err=True):
        legacy, path = legacy_settings(), ledger_path()
        with ledger_lock(path), Ledger.open(path) as ledger:
            ledger.keep_key(legacy.base_url, key_digest(legacy, ledger))


def _changed(text: str) -> tuple[str, object]:
    """A setting and its new value; one without a value is asked for, and a secret always."""
    from orderbridge.sources.settings.setting import SETTINGS

    key, is_given, value = text.partition("=")
    if key not in SETTINGS:
        near = [name for name in SETTINGS if name.endswith(f".{key}")] or get_close_matches(
            key, SETTINGS, n=1
        )
        hint = f"Did you mean {' or '.join(near)}? " if near else ""
        raise UsageError(
            f"there is no setting {key!r}", f"{hint}docs/reference/settings.md lists all of them."
        )
    setting = SETTINGS[key]
    if is_given and setting.is_secret:
        raise UsageError(
            f"other users can see the value of {key} in the process list",
            f"Run `orderbridge init {key}` and type it there. If it is or has a key or token, have a new one made.",
        )
    given = _without_api_path(setting, value) if is_given else _ask(setting, is_optional=False)
    checked = _checked(setting, given)
    return key, checked if isinstance(checked, int | float) else given


def _checked(setting: Setting, value: str) -> object:
    """The typed value. Raises UsageError, also for a destination that dlt does not have."""
    checked = setting.checked(value)
    if setting.key == _DESTINATION and checked:
        from orderbridge.pipelines.warehouse.destination.names import dlt_destination

        prepare_environment()
        dlt_destination(str(checked), may_import=False)
    if setting.asks:
        from orderbridge.pipelines.questions.meanings import checked_answer

        checked_answer(setting, value)
    return checked


def _without_api_path(setting: Setting, value: str) -> str:
    """An address without the path of the v1 API, which documentation has behind it."""
    if setting.name != "base_url":
        return value
    return value.strip().rstrip("/").removesuffix(_API_PATH)


def _ask_missing() -> dict[str, object]:
    """Asks for the settings of each family that are not set, on stderr."""
    if lines := list(set_values()):
        click.echo(
            "\n".join(["These are set:", *(f"  {escape(line)}" for line in lines)]), err=True
        )
    values: dict[str, object] = {}
    for section in FAMILIES:
        values |= _ask_family(section)
    is_any_set = any(map(is_set, FAMILIES))
    if values or is_any_set:
        values |= _ask_meanings()
    if not values and not is_any_set:
        raise UsageError(
            "neither API was set up",
            "Run `orderbridge init` again, or try `orderbridge init --sandbox`.",
        )
    return values


def _ask_family(section: str) -> dict[str, object]:
    """Asks for the settings of one family that are not set. An empty address skips the family."""
    from orderbridge.sources.settings.loaders import given_values
    from orderbridge.sources.settings.setting import SETTINGS

    title, names = FAMILIES[section]
    given = given_values(section)
    missing = [SETTINGS[f"{section}.{name}"] for name in names if name not in given]
    if not missing:
        return {}
    skip = " Press Enter at the address to skip it." if missing[0].name == "base_url" else ""
    click.echo(f"\n{title}.{skip}", err=True)
    values: dict[str, object] = {}
    for setting in missing:
        answer = _ask(setting, is_optional=setting.name in ("base_url", "login_mode"))
        if answer:
            values[setting.key] = answer
        elif setting.name == "base_url":
            break
    return values


def _ask_meanings() -> dict[str, object]:
    """Asks what values mean, where it is not set. Each can be left out: `orderbridge questions` asks again."""
    from orderbridge.sources.settings.loaders import given_values
    from orderbridge.sources.settings.setting import SETTINGS

    given = given_values("reconcile")
    values: dict[str, object] = {}
    for name in MEANINGS:
        if name not in given:
            setting = SETTINGS[f"reconcile.{name}"]
            answer = _ask(setting, is_optional=True)
            if answer:
                values[setting.key] = answer
    return values


def _ask(setting: Setting, *, is_optional: bool) -> str:
    """Asks until the answer is valid; empty if it is optional and left out."""
    later = " (Enter: later)" if is_optional and setting.name != "base_url" else ""
    question = f"{setting.key}: {setting.help}{later}"
    while True:
        answer = _answer_to(question, setting, is_optional=is_optional)
        if not answer and is_optional:
            return ""
        answer = _without_api_path(setting, answer)
        try:
            _checked(setting, answer)
        except UsageError as error:
            click.echo(escape_lines(error), err=True)
        else:
            return answer


def _answer_to(question: str, setting: Setting, *, is_optional: bool) -> str:
    """What a person types, or the next line of the input; empty if it is optional and the input has ended."""
    try:
        # getpass would warn, or read the terminal
        if setting.is_secret and not sys.stdin.isatty():
            click.echo(f"{question}: ", nl=False, err=True)
            return input().strip()
        answer: str = click.prompt(
            question,
            default="" if is_optional else None,
            show_default=False,
            hide_input=setting.is_secret,
            err=True,
        )
    except (click.Abort, EOFError):
        if STOP.event.is_set() or sys.stdin.isatty():
            raise
        if is_optional:
            return ""
        raise UsageError(
            "init is interactive, but standard input has ended",
            "Run it in a terminal, use --sandbox, or set what `orderbridge check` reports as missing.",
        ) from None
    return answer
