"""The settings files, `.dlt/secrets.toml` and `.dlt/config.toml`, as documents.

In: a path. Out: the document, or a UsageError that names file and line and never quotes the file, which may hold a key.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from sources.errors import UsageError

FILES: Final = ("secrets.toml", "config.toml")


def read_toml(path: Path) -> dict[str, object]:
    """A TOML document; empty if there is no such file. Raises UsageError."""
    try:
        document = tomllib.loads(path.read_text("utf-8"))
        key_paths(document)  # raises RecursionError for a document that nothing else could walk through either
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8", "Save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        # the parser's message quotes the file
        line = re.search(r"at line (\d+)", str(error))
        where = f"line {line[1]}" if line else "last line"
        raise UsageError(
            f"{path}, {where}: not valid TOML", "Strings need quotes, and a name occurs once in its table."
        ) from None
    except (ValueError, RecursionError):
        raise unreadable(path) from None
    return document


def unreadable(path: Path) -> UsageError:
    """The error for a document that is beyond what a parser handles."""
    return UsageError(f"{path}: a number is too long or values are nested too deeply", "Remove that value.")


def key_paths(document: object, prefix: str = "") -> list[str]:
    """The dotted names of all values in a document."""
    if not isinstance(document, dict):
        return [prefix]
    return [
        path for name, value in document.items() for path in key_paths(value, f"{prefix}.{name}" if prefix else name)
    ]
