"""The command `init`: asks for hosts and keys, writes the project's settings, and checks them."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final

import click

from pipelines.cli.check import run_checks
from pipelines.cli.process import STOP, start
from pipelines.cli.project_files import ignore_private_files, project_folder, secrets_file, write_settings
from pipelines.cli.terminal import escape, escape_lines
from sources.contract import Family, records_of
from sources.errors import ExitCode, UsageError
from sources.words import number

if TYPE_CHECKING:
    from sources.settings.setting import Setting

SANDBOX_PORT: Final = 8765


def _lists(family: Family) -> str:
    return ", ".join(record.name.replace("_", " ") for record in records_of(family))


FAMILIES: Final = {
    "sources.legacy": (
        f"Legacy family ({_lists('legacy')}; needed to plan and push)",
        ("base_url", "api_key", "environment", "login_mode"),
    ),
    "sources.public_v1": (f"Public v1 family ({_lists('public_v1')})", ("base_url", "api_key")),
}


@click.command("init", epilog="Example: orderbridge init --sandbox")
@click.option(
    "--sandbox",
    is_flag=True,
    help=f"Ask nothing: use `orderbridge sandbox --port {SANDBOX_PORT}` on this machine.",
)
def command(sandbox: bool) -> int:
    """Set up a project: ask for hosts and keys, write the settings, check them.

    Writes .dlt/secrets.toml (mode 0600) and the lines of .gitignore that keep private files out of git, in the current
    folder or that of --project. Existing settings are kept. Ends with `orderbridge check`.
    """
    folder = project_folder()
    path = secrets_file(folder)
    if path.exists():
        click.echo(
            f"{escape(path)} exists: not changed. To change a setting, edit its line there, or add it to its section"
        )
    else:
        from sandbox.config import settings

        values = settings(f"http://127.0.0.1:{SANDBOX_PORT}") if sandbox else _ask()
        click.echo(f"wrote {escape(write_settings(folder, values))} (mode 0600)")
        if sandbox:
            click.echo(f"Start the sandbox in another terminal: orderbridge sandbox --port {SANDBOX_PORT}")
    if added := ignore_private_files(folder):
        click.echo(f"added {number(len(added), 'line')} to {escape(folder / '.gitignore')}")
    with start() as reporter:
        code = run_checks(reporter)
    if code == ExitCode.DONE:
        click.echo("Next: orderbridge import or run. For stock and prices, set sources.legacy.stock_semantics first.")
    return code


def _ask() -> dict[str, str]:
    """Asks for the settings of each family, on stderr. An empty address skips the family."""
    from sources.settings.setting import SETTINGS

    values: dict[str, str] = {}
    for section, (title, names) in FAMILIES.items():
        click.echo(f"\n{title}. Press Enter at the address to skip it.", err=True)
        for name in names:
            setting = SETTINGS[f"{section}.{name}"]
            answer = _ask_setting(setting, is_optional=name in ("base_url", "login_mode"))
            if answer:
                values[setting.key] = answer
            elif name == "base_url":
                break
    if not values:
        raise UsageError("no family was set up", "Run `orderbridge init` again, or try `orderbridge init --sandbox`.")
    return values


def _ask_setting(setting: Setting, *, is_optional: bool) -> str:
    """Asks until the answer is valid; empty if it is optional and left out."""
    while True:
        try:
            answer: str = click.prompt(
                f"{setting.key}: {setting.help}",
                default="" if is_optional else None,
                show_default=False,
                hide_input=setting.is_secret,
                err=True,
            )
        except click.Abort:
            if STOP.event.is_set() or sys.stdin.isatty():
                raise
            raise UsageError(
                "init is interactive, but standard input has ended",
                "Run it in a terminal, use --sandbox, or set what `orderbridge check` reports as missing.",
            ) from None
        if not answer:
            return ""
        try:
            setting.checked(answer)
        except UsageError as error:
            click.echo(escape_lines(error), err=True)
        else:
            return answer
