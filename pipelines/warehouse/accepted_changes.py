"""What a person has accepted as a whole: lists that lost records, another source, codes of a file without zeros.

In: `.dlt/accepted.toml`, its tables `[[lists]]`, `[[sources]]` and `[[codes]]`. Out: whether a pull may publish what it
would hold back or refuse, and a plan send what it would hold. An entry is about the evidence at hand, such as a fall
from 900 records to 300, compared with one published version, or a file. Once a run has published, the entry of a list
or source is spent, and the next fall is another question. No run writes here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from orderbridge.pipelines.warehouse.answers.accepted import accepted_file
from orderbridge.pipelines.warehouse.raw.shrinking import plausible_loss
from orderbridge.sources.disk import disk_errors, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import DataSource
from orderbridge.sources.settings.ownership import check_private
from orderbridge.sources.settings.root import UNWRITABLE_HINT, read_toml

if TYPE_CHECKING:
    from orderbridge.pipelines.warehouse.raw.held_lists import HeldList

LISTS: Final = "lists"
SOURCES: Final = "sources"
CODES: Final = "codes"
_HINT: Final = "Remove the entry, then answer again; `orderbridge questions` lists what is asked."


class AcceptedFall(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `[[lists]]`: a list may lose records, from so many to so many.

    Attributes:
        list: its name.
        known, listed: the records that were known, and those of them that were still listed.
        compared_with: the run that read the known records; once another read is published, the entry is spent.
        who, when, why: accepted it.
    """

    list: str
    known: int
    listed: int
    compared_with: str
    who: str
    when: datetime
    why: str = ""

    def covers(self, held: HeldList) -> bool:
        """Whether a list that is held back lost no more than was accepted, but for what may be lost in any night."""
        if (held.resource, held.compared_with) != (self.list, self.compared_with):
            return False
        return self.listed - held.listed <= plausible_loss(self.listed)


class AcceptedSource(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `[[sources]]`: the warehouse may take the data of another source.

    Attributes:
        before, after: what differs: hosts, environment, organization.
        compared_with: the run that recorded the source before; once another is recorded, the entry is spent.
        who, when, why: accepted it.
    """

    before: dict[str, str]
    after: dict[str, str]
    compared_with: str
    who: str
    when: datetime
    why: str = ""

    def covers(self, held: DataSource, compared_with: str, source: DataSource) -> bool:
        """Whether all that differs between two sources was accepted."""
        changed = changed_parts(held, source)
        return compared_with == self.compared_with and changed.items() <= self.after.items()


class AcceptedCodes(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An entry of `[[codes]]`: the codes of a file are as they should be, although they seem to have lost zeros.

    Attributes:
        file: SHA-256 of the file; another export is another question.
        who, when, why: accepted it.
    """

    file: str
    who: str
    when: datetime
    why: str = ""


def changed_parts(held: DataSource, source: DataSource) -> dict[str, str]:
    """The parts of a source that differ from the one before, where both are known."""
    before = asdict(held)
    return {
        name: value
        for name, value in asdict(source).items()
        if value and before[name] and value != before[name]
    }


@dataclass(frozen=True, slots=True)
class AcceptedChanges:
    """The entries of the file, in their order."""

    falls: Sequence[AcceptedFall] = ()
    sources: Sequence[AcceptedSource] = ()
    codes: Sequence[AcceptedCodes] = ()

    @classmethod
    def read(cls) -> Self:
        """Reads the changes that were accepted in the project.

        Raises:
            UsageError: the file is not valid, or others can write to it; the message names the entry.
        """
        path = accepted_file()
        check_private(path)
        document = read_toml(path)
        falls = _entries(path, document, LISTS, AcceptedFall)
        sources = _entries(path, document, SOURCES, AcceptedSource)
        return cls(falls, sources, _entries(path, document, CODES, AcceptedCodes))

    def covers_fall(self, held: HeldList) -> bool:
        """Whether a person accepted that this list lost these records."""
        return any(one.covers(held) for one in self.falls)

    def covers_source(self, held: DataSource, compared_with: str, source: DataSource) -> bool:
        """Whether a person accepted that a warehouse with the data of one source takes those of another.

        `compared_with` is the run that recorded the source before.
        """
        return any(one.covers(held, compared_with, source) for one in self.sources)


_Entry = TypeVar("_Entry", AcceptedFall, AcceptedSource, AcceptedCodes)


def _entries(
    path: Path, document: Mapping[str, object], table: str, kind: type[_Entry]
) -> list[_Entry]:
    entries = document.get(table, [])
    if not isinstance(entries, list):
        raise UsageError(
            f"{path}: `{table}` is not a list of tables", f"Write each entry as [[{table}]]."
        )
    made: list[_Entry] = []
    for number, entry in enumerate(entries, 1):
        try:
            made.append(msgspec.convert(entry, kind))
        except msgspec.ValidationError as error:
            raise UsageError(f"{path}, entry {number} of [[{table}]]: {error}", _HINT) from None
    return made


def write_changes(added: AcceptedChanges, removed: AcceptedChanges) -> Path:
    """Adds and removes entries; comments and the other entries stay.

    Raises:
        UsageError: see `AcceptedChanges.read`; or the file cannot be written.
    """
    import tomlkit

    path = accepted_file()
    kept = AcceptedChanges.read()
    with disk_errors(path, UNWRITABLE_HINT):
        document = tomlkit.parse(path.read_text("utf-8")) if path.exists() else tomlkit.document()
        _change(document, LISTS, kept.falls, added.falls, removed.falls)
        _change(document, SOURCES, kept.sources, added.sources, removed.sources)
        _change(document, CODES, kept.codes, added.codes, removed.codes)
        path.parent.mkdir(mode=0o700, exist_ok=True)
        write_private(path, tomlkit.dumps(document).encode())
    return path


def _change(
    document: Any,  # noqa: ANN401 # of tomlkit
    table: str,
    kept: Sequence[_Entry],
    added: Iterable[_Entry],
    removed: Sequence[_Entry],
) -> None:
    """Changes the entries of one table of the document."""
    import tomlkit

    if not kept:  # an empty list could not take tables
        document.pop(table, None)
    tables = document.get(table) or tomlkit.aot()
    for position in reversed(range(len(kept))):
        if kept[position] in removed:
            del tables[position]
    for entry in added:
        values = msgspec.structs.asdict(entry)
        values["when"] = entry.when.astimezone(UTC)
        tables.append(tomlkit.item({name: value for name, value in values.items() if value != ""}))
    if len(tables):
        document[table] = tables
    else:
        document.pop(table, None)
