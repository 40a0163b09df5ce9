"""The settings as documents, made from the table: README's section, `.dlt/config.toml`, `.dlt/example.secrets.toml`.

In: the table of settings. Out: the texts, which `make docs` writes into the checkout; a test compares them.
"""

from __future__ import annotations

from typing import Final

from sources.settings.sections import SECTIONS, SETTINGS, settings_of
from sources.settings.setting import Setting, shown

MARKS: Final = ("<!-- settings: made by `make docs` -->\n", "<!-- end of settings -->\n")

_CONFIG_HEAD: Final = """\
# Settings without secrets. Keys go into secrets.toml next to this file (see example.secrets.toml), which git ignores.
# Every setting has an environment variable too, which has precedence: sources.legacy.page_limit is
# SOURCES__LEGACY__PAGE_LIMIT. A relative path is relative to the folder that a command is started in.
# Made by `make docs` from sources/settings/sections.py.

[runtime]
dlthub_telemetry = false
"""
_SECRETS_HEAD: Final = """\
# Copy to secrets.toml in this folder, put the keys in, and let nobody else read it:
#   cp .dlt/example.secrets.toml .dlt/secrets.toml && chmod 600 .dlt/secrets.toml
"""


def readme_table() -> str:
    """The table of all settings, in Markdown."""
    lines = ["| setting | environment variable | default | what it is |", "|---|---|---|---|"]
    for setting in SETTINGS.values():
        absent = "required" if setting.required else "–"
        default = f"`{shown(setting.default)}`" if setting.default is not None else absent
        lines.append(f"| `{setting.key}` | `{setting.variable}` | {default} | {setting.help} |")
    return "\n".join(lines) + "\n"


def config_toml() -> str:
    """Every setting that is not a secret, as a comment with its default or an example."""
    return _CONFIG_HEAD + _sections("# ", is_secret=False)


def secrets_toml() -> str:
    """Every secret, with an example."""
    return _SECRETS_HEAD + _sections("", is_secret=True)


def _sections(prefix: str, *, is_secret: bool) -> str:
    text = ""
    for section in SECTIONS:
        lines = [
            f"{prefix}{setting.name} = {_toml(setting)}".ljust(36) + f"  # {setting.help.replace('`', '')}\n"
            for setting in settings_of(section)
            if setting.is_secret == is_secret
        ]
        if lines:
            text += f"\n{prefix}[{section}]\n" + "".join(lines)
    return text


def _toml(setting: Setting) -> str:
    value = setting.default if setting.default is not None else setting.example
    return shown(value) if isinstance(value, int | float) else f'"{value}"'


def with_table(readme: str) -> str:
    """README with its table of settings renewed. Raises ValueError if its marks are missing."""
    before, rest = readme.split(MARKS[0])
    _, after = rest.split(MARKS[1])
    return before + MARKS[0] + readme_table() + MARKS[1] + after
