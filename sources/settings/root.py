"""The project's root: the folder whose `.dlt` holds the settings files.

In: the current folder, `DLT_PROJECT_DIR`. Out: the root, its settings files as documents, and a process in which dlt
reads its settings there and nowhere else. Settings name the hosts that get the keys, so files that others can write are
not read. No error quotes a file: it may hold a key.
"""

from __future__ import annotations

import os
import platform
import re
import shlex
import struct
import sys
import tomllib
from functools import cache, lru_cache
from pathlib import Path
from typing import Final

from orderbridge.sources.disk import unreadable
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.ownership import CHECKOUT, check_mode
from orderbridge.sources.settings.setting import SETTINGS

FILES: Final = ("secrets.toml", "config.toml")
UNWRITABLE_HINT: Final = (
    "Free space or make the folder .dlt writable, or answer on the machine whose project it is."
)
"""What to do where an answer cannot be written into `.dlt`."""
DEMO_MARK: Final = ".orderbridge-demo"
"""A file in the folder of `orderbridge demo`, which has no settings: its platform ended with the demo."""


def find_root() -> Path:
    """The project's root: where its settings, warehouse, ledger and plans are.

    `DLT_PROJECT_DIR` if set; otherwise the nearest folder with `.dlt`, from the current one upwards; otherwise the
    checkout that this package lies in; otherwise the current folder. The walk upwards ends at the home folder and at a
    mount point. `~/.dlt`, where dlt keeps things of its own, and that of the checkout count if they hold a section of
    ours.

    Raises:
        UsageError: `DLT_PROJECT_DIR` names no folder; the settings can be written by other users.
    """
    folder = _found_root()
    check_mode(folder / ".dlt")
    return folder


def set_project(folder: Path) -> Path:
    """Makes a folder the project's root, for this process and what it starts (`--project`). Raises UsageError."""
    os.environ["DLT_PROJECT_DIR"] = str(folder.absolute())
    return find_root()


def _found_root() -> Path:
    variable = os.environ.get("DLT_PROJECT_DIR")
    if variable:
        root = Path(variable).absolute()
        if not root.is_dir():
            raise UsageError(
                f"there is no folder {root}",
                "--project and DLT_PROJECT_DIR name the folder with `.dlt`. To make one: "
                f"mkdir {shlex.quote(str(root))}",
            )
        return root
    here = Path.cwd()
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 # Path.home() raises where there is none
    for folder in (here, *here.parents):
        if (folder / ".dlt").is_dir() and (folder != home or has_sections(folder / ".dlt")):
            return folder
        if folder == home or folder.is_mount():
            break
    return CHECKOUT if has_sections(CHECKOUT / ".dlt") else here


def in_project(path: Path) -> Path:
    """A path of a setting, absolute: a relative one is relative to the project's root. Raises UsageError."""
    return find_root() / path.expanduser()


def project_file(name: str) -> Path:
    """A path in the project's root, as a person in it would write it. Raises UsageError."""
    root = find_root()
    return Path(name) if root == Path.cwd() else root / name


def has_sections(folder: Path) -> bool:
    """Whether the settings files of a `.dlt` hold a section of ours. Raises UsageError."""
    paths = [path for name in FILES for path in key_paths(read_toml(folder / name))]
    return not {path.rpartition(".")[0] for path in paths}.isdisjoint(_sections())


@cache
def _sections() -> frozenset[str]:
    """The sections of our settings; made when it is first asked, after all of them are declared."""
    return frozenset(setting.section for setting in SETTINGS.values())


def read_toml(path: Path) -> dict[str, object]:
    """A TOML document; empty if there is no such file. A file is parsed again only after it changed.

    Raises:
        UsageError: it cannot be read, is not UTF-8 or not TOML, or is beyond what a parser handles.
    """
    try:
        status = path.stat()
        return _parsed(
            path, (status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
        )
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8", "Save it as UTF-8.") from None
    except OSError as error:
        raise unreadable(path, error) from None
    except tomllib.TOMLDecodeError as error:
        # the parser's message quotes the file
        line = re.search(r"at line (\d+)", str(error))
        where = f"line {line[1]}" if line else "last line"
        raise UsageError(
            f"{path}, {where}: not valid TOML",
            "Strings need quotes, and a name occurs once in its table.",
        ) from None
    except (ValueError, RecursionError):
        hint = "Remove that value."
        raise UsageError(
            f"{path}: a number is too long or values are nested too deeply", hint
        ) from None


@lru_cache(maxsize=8)
def _parsed(path: Path, version: tuple[int, ...]) -> dict[str, object]:
    """The document of this version of a file. Raises what the parser does."""
    document = tomllib.loads(path.read_text("utf-8"))
    # raises RecursionError for a document that nothing else could walk through either
    key_paths(document)
    return document


def key_paths(document: object, prefix: str = "") -> list[str]:
    """The dotted names of all values in a document."""
    if not isinstance(document, dict):
        return [prefix]
    return [
        path
        for name, value in document.items()
        for path in key_paths(value, f"{prefix}.{name}" if prefix else name)
    ]


def prepare_dlt(root: Path, data_dir: Path) -> None:
    """Points dlt at the project before it is imported; telemetry off, logging quiet, files for the user alone.

    `data_dir` is for dlt's own state, whose default is shared between projects. Raises UsageError if dlt is imported
    already and a settings file is not valid TOML.
    """
    os.umask(0o077)
    os.environ["DLT_PROJECT_DIR"] = str(root)
    os.environ["DLT_DATA_DIR"] = str(data_dir)
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    os.environ["RUNTIME__LOG_LEVEL"] = "CRITICAL"  # below it, dlt logs row values and responses
    if "dlt" in sys.modules:  # a notebook: dlt has read its settings already, from elsewhere
        for name in FILES:
            read_toml(root / ".dlt" / name)  # dlt's own error would quote the file
        load_dlt()


def import_dlt() -> None:
    """Imports dlt, and starts no program.

    dlt imports croniter, which asks `platform.architecture`. That starts the program `file` of the path, with all keys
    in its environment.
    """
    bits = f"{8 * struct.calcsize('P')}bit"
    asked = platform.architecture
    platform.architecture = lambda *_, **__: (bits, "")
    try:
        import dlt  # noqa: F401
    finally:
        platform.architecture = asked


def load_dlt() -> None:
    """Imports dlt so that it reads its settings in the project alone, if `prepare_dlt` named one.

    dlt's global folder is `~/.dlt`, or, for a user without a writable home, `<tmp>/dlt`, which anyone may create.
    """
    if "DLT_PROJECT_DIR" not in os.environ or "DLT_DATA_DIR" not in os.environ:
        return
    import_dlt()
    from dlt.common.configuration.container import Container
    from dlt.common.configuration.specs.pluggable_run_context import PluggableRunContext
    from dlt.common.runtime.run_context import RunContext

    class ProjectContext(RunContext):
        """dlt's run context, with the project's settings as the global ones."""

        def __init__(self, root: str) -> None:
            super().__init__(root)
            self.root = root  # not `run_dir`: that is what the environment names now

        @property
        def global_dir(self) -> str:
            return self.settings_dir

    root = os.environ["DLT_PROJECT_DIR"]
    container = Container()
    if PluggableRunContext not in container:
        container[PluggableRunContext] = PluggableRunContext(ProjectContext(root))
    else:
        plugged = container[PluggableRunContext]
        if getattr(plugged.context, "root", None) != root:
            plugged.reload(ProjectContext(root))
