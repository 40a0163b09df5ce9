"""The settings files, `.dlt/secrets.toml` and `.dlt/config.toml`, as documents.

In: a path. Out: the document, or a UsageError that names file and line and never quotes the file, which may hold a key.
"""

from __future__ import annotations

import re
import tomllib
from functools import lru_cache
from pathlib import Path
from typing import Final

from sources.errors import UsageError

FILES: Final = ("secrets.toml", "config.toml")


def read_toml(path: Path) -> dict[str, object]:
    """A TOML document; empty if there is no such file. A file is parsed again only after it changed.

    Raises:
        UsageError: it cannot be read, is not UTF-8 or not TOML, or is beyond what a parser handles.
    """
    try:
        status = path.stat()
        return _parsed(path, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns))
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
        hint = "Remove that value."
        raise UsageError(f"{path}: a number is too long or values are nested too deeply", hint) from None


@lru_cache(maxsize=8)
def _parsed(path: Path, version: tuple[int, ...]) -> dict[str, object]:
    """The document of this version of a file. Raises what the parser does."""
    document = tomllib.loads(path.read_text("utf-8"))
    key_paths(document)  # raises RecursionError for a document that nothing else could walk through either
    return document


def key_paths(document: object, prefix: str = "") -> list[str]:
    """The dotted names of all values in a document."""
    if not isinstance(document, dict):
        return [prefix]
    return [
        path for name, value in document.items() for path in key_paths(value, f"{prefix}.{name}" if prefix else name)
    ]
