"""Opens files, and recognizes those that are no tables by their first bytes, with how to turn each into one that is."""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from io import BufferedReader
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from orderbridge.sources.command_line import typed_with, typed_words
from orderbridge.sources.errors import UsageError

_TABLE: Final = "Export the table as CSV or .xlsx."
_SAVE_AS: Final = "Open it in a spreadsheet and save it as Excel workbook (.xlsx) or CSV."
_UNPACK: Final = "Unpack it and use the file inside."
_MAGIC: Final = (
    (
        (b"\x1f\x8b", b"BZh", b"\xfd7zXZ\0", b"(\xb5/\xfd", b"7z\xbc\xaf'\x1c"),
        "compressed",
        _UNPACK,
    ),
    ((b"%PDF", b"{\\rtf"), "a document (PDF or RTF)", _TABLE),
    ((b"PAR1", b"SQLite format 3\0"), "a database file (Parquet or SQLite)", _TABLE),
    ((b"\x89PNG", b"\xff\xd8\xff"), "an image", _TABLE),
)
_MARKUP: Final = (b"<!doctype html", b"<html", b"<table", b"<?xml", b"<meta", b"<head")
_ENCODED: Final = (
    (
        re.compile(rb"=[89A-F][0-9A-F]"),
        re.compile(rb"=(?![0-9A-F]{2}|\r?\n|$)"),
        "quoted-printable, as e-mails are",
    ),
    (
        re.compile(rb"(?m)^(?!.*://).*%[C-F][0-9A-F]"),
        re.compile(rb"%(?![0-9A-F]{2})"),
        "percent-encoded, as addresses of pages are",
    ),
)
"""How the accented letters of a text may be written in ASCII, and what such a text does not have."""
_ZIP: Final = b"PK\x03\x04"
_OLE: Final = b"\xd0\xcf\x11\xe0"
_OLE_BYTES: Final = 64 << 20
_HEAD_BYTES: Final = 64 << 10
_LOCK_NAMES: Final = ("~$", ".~lock.")
_IN_ZIP: Final = (
    ("xl/workbook.bin", "a binary Excel workbook (.xlsb)", _SAVE_AS),
    ("word/document.xml", "a Word document", _TABLE),
    (
        "Index/Document.iwa",
        "an Apple Numbers document",
        "In Numbers: File > Export To > Excel or CSV.",
    ),
)


class InputFile(NamedTuple):
    """A file that was opened once, for all that is detected; `head` are its first bytes."""

    path: Path
    file: BufferedReader
    head: bytes

    @property
    def name(self) -> str:
        """Its name in messages."""
        return self.path.name


@contextmanager
def open_file(path: Path) -> Iterator[InputFile]:
    """Opens a file.

    Raises:
        UsageError: it is a folder, a pipe or a device, or the system does not let us read it.
    """
    try:
        if path.is_dir():
            raise UsageError(f"{path} is a folder", "Choose a file in it.")
        if path.exists() and not path.is_file():
            raise UsageError(
                f"{path} is a pipe or a device, and a table is read more than once",
                "Save it as a file and name that.",
            )
        with path.open("rb") as file:
            yield InputFile(path, file, file.read(_HEAD_BYTES))
    except (
        OSError
    ) as error:  # also a name that is too long, a folder that may not be entered, a disk that fails
        hint = "Check the file name and permissions, and the disk or network drive."
        if isinstance(error, FileNotFoundError) and (
            near := get_close_matches(
                path.name, [one.name for one in path.parent.glob("*")], 1, 0.8
            )
        ):
            hint = f"Did you mean {near[0]}?"
            if str(path) in typed_words():
                hint = f"Did you mean: {typed_with(str(path), str(path.with_name(near[0])))}"
        raise UsageError(f"{path.name} cannot be read: {error.strerror}", hint) from None


def is_workbook(source: InputFile) -> bool:
    """Whether a file is an .xlsx, by its content."""
    return source.head.startswith(_ZIP) and "xl/workbook.xml" in _members(source.file)


def check_kind(source: InputFile) -> None:
    """Raises UsageError for a file of another kind, naming it and what to do."""
    if source.name.startswith(_LOCK_NAMES):
        raise UsageError(
            f"{source.name} is not a table: a spreadsheet program made it while the file is open there",
            f"Use the file itself: {_locked(source.name)}",
        )
    for letter, other, what in _ENCODED if source.head.isascii() else ():
        if letter.search(source.head) and not other.search(source.head):
            cure = "Decode it, or export the table again as UTF-8."
            raise UsageError(f"{source.name} is {what}", cure)
    kind = _kind(source.file, source.head)
    if kind is not None:
        raise UsageError(f"{source.name} is {kind[0]}, not a CSV or .xlsx file", kind[1])


def _locked(name: str) -> str:
    """The name of the file that a lock file is about."""
    return name.removeprefix("~$").removeprefix(".~lock.").removesuffix("#")


def _kind(file: BinaryIO, head: bytes) -> tuple[str, str] | None:
    if head.startswith(_OLE):
        return _ole_kind(file)
    if head.startswith(_ZIP):
        members = _members(file)
        if not members:
            return "a damaged workbook or zip archive", "Export it again, and copy it as a whole."
        if "mimetype" in members and "content.xml" in members:
            return "an OpenDocument spreadsheet (.ods)", _SAVE_AS
        return next(
            ((what, cure) for name, what, cure in _IN_ZIP if name in members),
            ("a zip archive", _UNPACK),
        )
    if head.lstrip()[:20].lower().startswith(_MARKUP):
        return "HTML or XML", _SAVE_AS
    return next(((what, cure) for magic, what, cure in _MAGIC if head.startswith(magic)), None)


def _ole_kind(file: BinaryIO) -> tuple[str, str]:
    """An old workbook, or a new one with a password, which is stored in the container of the old ones."""
    file.seek(0)
    if "EncryptedPackage".encode("utf-16-le") in file.read(_OLE_BYTES):
        cure = "Open it, remove the password (File > Info > Protect Workbook > Encrypt with Password), and save it."
        return "a workbook protected by a password", cure
    return "an old Excel workbook (.xls)", _SAVE_AS


def _members(file: BinaryIO) -> set[str]:
    """The names in a zip archive; none if it is damaged."""
    try:
        with zipfile.ZipFile(file) as archive:
            return set(archive.namelist())
    except (OSError, zipfile.BadZipFile):
        return set()
