"""Text from outside, made safe for a terminal, and what commands print on stdout.

In: names, headers, scopes and messages that may hold anything. Out: the same text without a character that a terminal
would act on: controls, ANSI escapes, bidirectional overrides. Everything that a command prints goes through here.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Literal

from orderbridge.sources.command_line import complete

Style = Literal["auto", "plain", "json"]
"""How a command shows what it does: by progress bars on a terminal and lines in a pipe, by lines, or by JSON."""


def escape(text: object, keep: str = "") -> str:
    """The text with each character that is not printable written as its Python escape.

    Characters in `keep` stay, such as the line breaks of a message that was composed here.
    """
    return "".join(
        char
        if char.isprintable() or char in keep
        else char.encode("unicode_escape").decode("ascii")
        for char in str(text)
    )


def escape_lines(text: object) -> str:
    """The escaped text with its line breaks, each further line indented, so that none can pose as a line of its own."""
    first, *rest = escape(text, keep="\n").split("\n")
    return "\n".join(
        [first, *(line if line.startswith("  ") or not line else f"  {line}" for line in rest)]
    )


def to_json(value: object) -> str:
    """JSON in which no character is one that a terminal acts on; in ASCII unless the output is UTF-8."""
    if (sys.stdout.encoding or "").casefold().replace("-", "") != "utf8":
        return json.dumps(value, default=_plain)
    text = json.dumps(value, default=_plain, ensure_ascii=False)
    return "".join(char if char.isprintable() else json.dumps(char)[1:-1] for char in text)


def _plain(value: object) -> str:
    return value.isoformat() if isinstance(value, datetime) else str(value)


def event_json(name: str, message: str, /, **facts: object) -> str:
    """An event as JSON, with its time."""
    at = datetime.now(UTC).isoformat(timespec="milliseconds")
    return to_json({"at": at, "event": name, "message": message, **facts})


def print_lines(*lines: object) -> None:
    """Prints lines on stdout, each escaped, with the project in its commands."""
    sys.stdout.write("".join(f"{escape(complete(str(line)))}\n" for line in lines))


def print_result(
    name: str, lines: Iterable[str], record: Mapping[str, object], style: Style
) -> None:
    """Prints a result on stdout: its lines; as JSON, an event whose message are its lines as text, with its facts."""
    if style == "json":
        message = escape_lines(complete("\n".join(line.strip() for line in lines)))
        sys.stdout.write(f"{event_json(name, message, **record)}\n")
    else:
        print_lines(*lines)
