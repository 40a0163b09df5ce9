"""The one rule for whose folder it is: settings and private files lie where nobody else can write.

In: a folder or file. Out: who else may write to it or swap it, or a UsageError that says what to do. Who can write to a
folder can plant what SQLite, DuckDB and the commands open next to their files: journals, locks, links. Who can write to
a folder above can put another one in its place. So both are checked before anything is opened, and what is opened there
needs no check of its own.
"""

from __future__ import annotations

import logging
import os
import shlex
import stat
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Final

from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings.permissions import Entry, group_entries, has_name_of_user

CHECKOUT: Final = Path(__file__).absolute().parents[4]
SHARED_FOLDER: Final = "FILES__SHARED_FOLDER"
LOG: Final = logging.getLogger("orderbridge.folders")
_EXCEPTION: Final = f"If all who can write there are trusted, or it shows no owners: set {SHARED_FOLDER} to the folder."
_CAN_REPLACE: Final = ", who can replace what is in it"
_LINKS_MAX: Final = 40
"""Links that a path may lead through, as in Linux."""


@dataclass(frozen=True, slots=True)
class OtherWriter:
    """A folder or file that another user can write to, or owns; two about the same path are equal.

    Attributes:
        path: of it.
        words: what is wrong, with the mode or the entries that let others write.
        fix: a sentence with the complete command.
        is_above: it is a folder above the one that was checked, or a link on the way there.
        is_new: version 0.3 let it pass.
    """

    path: Path
    words: str = field(compare=False)
    fix: str = field(compare=False)
    is_above: bool = field(compare=False)
    is_new: bool = field(compare=False)

    @property
    def error(self) -> UsageError:
        """Says what to do."""
        return UsageError(self.words, f"{self.fix}\n  {_EXCEPTION}")

    @property
    def warning(self) -> str:
        """One line."""
        trust = f"{SHARED_FOLDER}={shlex.quote(str(self.path))}"
        return (
            f"{self.words}. The next version refuses this. {self.fix} "
            f"(or, if all who can write there are trusted, set {trust})"
        )


def check_private(
    path: Path,
    shared: Path | None = None,
    *,
    refuses: Callable[[], bool] = lambda: False,
    was_checked: bool = True,
) -> None:
    """Checks that nobody but this user and root owns a folder or file, or can write to it, nor to the folders above it.

    A sticky bit is enough above: others can create files there, but not replace those of this user. The user's
    private group is the user. What belongs to the checkout may belong to the owner of its code. One that does not exist
    is fine.

    Args:
        path: links on the way, and what they point to, are checked as well.
        shared: the folder in which others may write; None: that of the environment, if set.
        refuses: whether what version 0.3 let pass is an error; otherwise it is a warning, once in a process.
        was_checked: whether version 0.3 checked this path.

    Raises:
        UsageError: an owner is neither this user nor root, or others have write permission.
    """
    for found in other_writers(path, shared):
        if (was_checked and not found.is_new) or refuses():
            raise found.error
        warn(found)


def check_mode(path: Path) -> None:
    """Checks a path itself as version 0.3 did, without warnings. Raises UsageError."""
    path = path.absolute()
    if not _is_excepted(path, None):
        for found in _findings(path, path, _trusted(path)):
            if not found.is_new:
                raise found.error


@cache
def warn(found: OtherWriter) -> None:
    """Logs a warning, once about a path in a process."""
    LOG.warning("%s", found.warning)


def check_owner(path: Path, shared: Path | None = None) -> None:
    """Checks the owner of a file alone, in a folder that was checked. Raises UsageError."""
    if _is_excepted(path, shared):
        return
    owner = _other_owner(_facts(path), _trusted(path))
    if owner is not None:
        raise _owned_by(owner, path, path).error


def other_writers(path: Path, shared: Path | None = None) -> Iterator[OtherWriter]:
    """Who else can write to a folder or file, or put another one in its place: itself first, then the folders above.

    Args: see `check_private`.
    """
    path = path.absolute()
    trusted = _trusted(path)
    for place in _way_to(path):
        if not _is_excepted(place, shared):
            yield from _findings(place, path, trusted)


def _findings(place: Path, path: Path, trusted: set[int]) -> Iterator[OtherWriter]:
    """What is wrong with a place on the way to a path."""
    if place != path:
        trusted = trusted | {_system_owner()}
    facts = _facts(place)
    owner = _other_owner(facts, trusted)
    if owner is not None:
        yield _owned_by(owner, place, path)
    if facts and not stat.S_ISLNK(facts[-1].st_mode):
        with suppress(OSError):
            yield from _written_by_others(place, path, trusted, facts[-1])


def _way_to(path: Path) -> Iterator[Path]:
    """A path, the folders above it, and the same of what links on the way point to."""
    seen = set[Path]()
    waiting = [path]
    for _ in range(_LINKS_MAX):
        if not waiting:
            return
        start = waiting.pop(0)
        for place in (start, *start.parents):
            if place in seen:
                break
            seen.add(place)
            yield place
            with suppress(OSError):
                waiting.append(place.parent / place.readlink())


def _trusted(path: Path) -> set[int]:
    """The users who may own a path."""
    is_in_checkout = path.parts[: len(CHECKOUT.parts)] == CHECKOUT.parts
    return {0, os.geteuid(), *([_code_owner()] if is_in_checkout else [])}


@cache
def _system_owner() -> int:
    """The owner of the root folder, who is root also in a namespace of users that shows root as another number."""
    return Path("/").stat().st_uid


@cache
def _code_owner() -> int:
    return Path(__file__).stat().st_uid


def _facts(place: Path) -> list[os.stat_result]:
    """The status of a place, and of what it points to where it is a link; none of what does not exist."""
    facts: list[os.stat_result] = []
    with suppress(OSError):
        facts.append(place.lstat())
        if stat.S_ISLNK(facts[0].st_mode):
            facts.append(place.stat())
    return facts


def _other_owner(facts: Sequence[os.stat_result], trusted: set[int]) -> int | None:
    """An owner of a link, or of what it points to, who is not trusted."""
    return next((one.st_uid for one in facts if one.st_uid not in trusted), None)


def _owned_by(owner: int, place: Path, path: Path) -> OtherWriter:
    """The finding about an owner."""
    is_above = place != path
    words = f"{place} belongs to another user (uid {owner})"
    if is_above:
        words += _CAN_REPLACE
    fix = "Use a folder of your own" if is_above else "Use a copy of it, or a folder of your own"
    return OtherWriter(place, words, fix, is_above, is_above)


def _written_by_others(
    place: Path, path: Path, trusted: Collection[int], facts: os.stat_result
) -> Iterator[OtherWriter]:
    """The finding about permissions to write, if there is one. Raises OSError."""
    mode = stat.S_IMODE(facts.st_mode)
    is_above = place != path
    if is_above and mode & stat.S_ISVTX:
        return
    is_for_all = bool(mode & stat.S_IWOTH)
    entries = group_entries(place, facts, trusted)
    if not is_for_all and not entries:
        return
    details = ", ".join([f"mode {mode:04o}", *(entry.words for entry in entries)])
    words = f"{place} can be written by other users ({details})"
    if is_above:
        words += _CAN_REPLACE
    was_refused = is_for_all or not has_name_of_user(facts.st_gid, {facts.st_uid, os.geteuid()})
    fix = _command(place, facts, is_above, entries)
    yield OtherWriter(place, words, fix, is_above, is_above or not was_refused)


def _command(place: Path, facts: os.stat_result, is_above: bool, entries: Sequence[Entry]) -> str:
    """What to do where others can write: for a folder above, they may go on to use it.

    A folder with a sticky bit, such as /tmp, is meant for all who use it.
    """
    if not is_above and facts.st_mode & stat.S_ISVTX:
        return "Use a folder of your own"
    narrowed = ",".join(entry.narrowed for entry in entries if entry.narrowed)
    if is_above:
        command = "chmod +t"
    elif narrowed and not facts.st_mode & stat.S_IWOTH:
        command = f"setfacl -m {shlex.quote(narrowed)}"
    else:
        command = "chmod go-w"
    sudo = "" if os.geteuid() in (0, facts.st_uid) else "sudo "
    run = f"un: {sudo}{command} {shlex.quote(str(place))}"
    return f"R{run}" if is_above else f"Use a folder of your own, or r{run}"


def _is_excepted(path: Path, shared: Path | None) -> bool:
    folder = str(shared or os.environ.get(SHARED_FOLDER, ""))
    return folder != "" and Path(os.path.realpath(path)).is_relative_to(os.path.realpath(folder))
