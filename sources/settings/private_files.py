"""Where the private files of a project are, and whether another user can write there.

In: the settings `warehouse.path`, `ledger.path` and `files.shared_folder`; paths of outputs. Out: paths in folders that
nobody else can write to, or a UsageError. Version 0.3 let more pass than this one: in a project that has a warehouse or
a ledger, what it let pass is a warning for one version, as long as nothing is sent to the platform.
"""

from __future__ import annotations

import glob
import os
from dataclasses import replace
from pathlib import Path
from typing import Final, NamedTuple

from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.loaders import (
    file_settings,
    given_values,
    load_section,
)
from orderbridge.sources.settings.ownership import (
    OtherWriter,
    check_owner,
    check_private,
    other_writers,
    warn,
)
from orderbridge.sources.settings.root import find_root, has_sections
from orderbridge.sources.settings.sections import LedgerSettings, WarehouseSettings
from orderbridge.sources.settings.setting import variable

_LEDGER: Final = "ledger.sqlite"
MAPPINGS: Final = "mappings"
_READ_SUFFIXES: Final = (".toml", ".csv")
"""Of the files in `.dlt` that commands read; dlt keeps things of its own there."""


class _Place(NamedTuple):
    """What is looked at.

    Attributes:
        shared: the folder whose writers are trusted; None: that of the environment, if set.
        was_checked: whether version 0.3 looked at it too.
    """

    path: Path
    shared: Path | None
    was_checked: bool = True


def own_path(path: Path, *, is_published: bool = False) -> Path:
    """The path of a private file, or what a link there points to, in a folder that nobody else can write to.

    Every command passes the paths of its warehouse, ledger, plan, report and outputs through here before it opens them.

    Args:
        path: of the file.
        is_published: whether it is a published warehouse, whichever project this is.

    Raises:
        UsageError: see `check_private`; or another user left a file there whose name contains that of the private
            file, such as a journal. The setting `files.shared_folder` makes an exception.
    """
    shared = file_settings().shared_folder
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    for file in dict.fromkeys((path.absolute(), target.absolute())):
        check_private(file.parent, shared, refuses=lambda: not is_published and is_new_project())
        for left in file.parent.glob(f"*{glob.escape(file.name)}*"):
            check_owner(left, shared)
    return target


def warehouse_settings() -> WarehouseSettings:
    """Where the tables go; the path of a link is that of its target. Raises UsageError, see `own_path`."""
    settings = load_section(WarehouseSettings)
    _check_old_place(settings.path, "warehouse")
    return replace(settings, path=own_path(settings.path))


def warehouse_path() -> Path:
    """The warehouse's file, absolute. Raises UsageError."""
    return warehouse_settings().path


def ledger_path() -> Path:
    """The ledger's file, absolute: next to the warehouse if it is not set. Raises UsageError."""
    path = load_section(LedgerSettings).path or warehouse_path().with_name(_LEDGER)
    _check_old_place(path, "ledger", "warehouse")
    return own_path(path)


def mappings_folder() -> Path:
    """The folder of the mappings that `import` keeps, next to the warehouse.

    Raises:
        UsageError: others can write to it, to a mapping in it or to what a link there points to. It is a warning where
            the project is not new, since version 0.3 did not look.
    """
    folder = warehouse_path().parent / MAPPINGS
    for place in _mapping_places():
        check_private(place.path, place.shared, refuses=is_new_project, was_checked=False)
    return folder


def _check_old_place(path: Path, *sections: str) -> None:
    """Finds a file where versions before 0.3 had it, for which a relative path was relative to the current folder.

    Args:
        path: where it is now.
        sections: the first that sets a path is where this one is from.

    Raises:
        UsageError: the project has none, and the current folder has: without the ledger, all would be sent again.
    """
    old = Path(os.path.relpath(path, find_root())).absolute()
    # another project's own
    is_elsewhere = not path.exists() and old.exists() and not has_sections(Path.cwd() / ".dlt")
    if not is_elsewhere:
        return
    given = next(
        (found["path"][0] for section in sections if "path" in (found := given_values(section))), ""
    )
    if not Path(str(given)).expanduser().is_absolute():
        raise UsageError(
            f"{path} does not exist, but {old} does: relative paths are relative to the project, no longer to the "
            "current folder",
            f"If it belongs to this project, move it to {path.parent}, with its neighbours: warehouse, ledger, hidden "
            f"files with their names, mappings. If it does not, set {variable(sections[0])}__PATH to {path}.",
        )


def is_new_project() -> bool:
    """Whether the project has neither a published warehouse nor a ledger: no night of an earlier version rests on it.

    Raises UsageError for a path that is not valid.
    """
    return not any(map(os.path.exists, _data_files()))


def _data_files() -> list[Path]:
    """Warehouse and ledger, as the settings name them, whoever can write to their folders."""
    warehouse = load_section(WarehouseSettings).path
    return [warehouse, load_section(LedgerSettings).path or warehouse.with_name(_LEDGER)]


def _settings_places() -> list[_Place]:
    """The settings. A file that others can write to cannot say that they may, so only the variable is an exception."""
    folder = find_root() / ".dlt"
    read = [path for path in sorted(folder.glob("*")) if path.suffix in _READ_SUFFIXES]
    return [_Place(path, None) for path in (folder, *read)]


def _data_places() -> list[_Place]:
    """The folders of warehouse and ledger, and of what links there point to."""
    shared = file_settings().shared_folder
    files = [path for file in _data_files() for path in (file, Path(os.path.realpath(file)))]
    return [_Place(folder, shared) for folder in dict.fromkeys(file.parent for file in files)]


def _mapping_places() -> list[_Place]:
    shared = file_settings().shared_folder
    folder = _data_files()[0].parent / MAPPINGS
    paths = (folder, *sorted(folder.glob("*")))
    return [_Place(path, shared, was_checked=False) for path in paths]


def other_writers_here() -> list[OtherWriter]:
    """Who else can write to the private files of the project, or replace them, where version 0.3 let it pass.

    This is the one list of what is looked at. A path is in it once. Raises UsageError for settings that are not valid.
    """
    found: dict[Path, OtherWriter] = {}
    for place in (*_data_places(), *_settings_places(), *_mapping_places()):
        for writer in other_writers(place.path, place.shared):
            known = found.get(writer.path)
            if known is None or (known.is_above and not writer.is_above):
                found[writer.path] = replace(writer, is_new=writer.is_new or not place.was_checked)
    return [writer for writer in found.values() if writer.is_new]


def check_project() -> None:
    """Checks, when a command begins, who can write to the project.

    Raises UsageError for the folders of a new project.
    """
    try:
        is_new = is_new_project()
        found = other_writers_here()
    except UsageError:  # of the section that has it, where that is read
        return
    if not is_new:
        for writer in found:
            warn(writer)
        return
    for place in (*_data_places(), *_settings_places()):
        check_private(place.path, place.shared, refuses=lambda: True)


def check_before_writes(*folders: Path) -> None:
    """Checks, before anything is sent to the platform, that nobody else can write to the folders of this project.

    Args:
        folders: others that are used, such as that of a plan.

    Raises:
        UsageError: somebody can. A folder above, or a mapping, is a warning for one version, as elsewhere.
    """
    shared = file_settings().shared_folder
    given = [_Place(folder, shared) for folder in folders]
    for place in (*_data_places(), *_settings_places(), *given):
        for writer in other_writers(place.path, place.shared):
            if not writer.is_above:
                raise writer.error
