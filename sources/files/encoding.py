"""Detects the encoding of a text file, and reads it.

In: a path, and the encoding if it is known. Out: `Text`. The order: byte order mark, UTF-16 by its NUL bytes, strict
UTF-8, cp1252 if the text is plausible in it. An error names files of other kinds: workbooks, archives, HTML.
"""

from __future__ import annotations

import codecs
from dataclasses import replace
from pathlib import Path
from typing import Final

from sources.errors import UsageError
from sources.files.encoding_candidates import describe_candidates
from sources.files.file_kinds import check_kind, unreadable
from sources.files.mixed_encoding import UTF8_SEQUENCE, find_mixture, line_of
from sources.files.plausibility import implausible_place
from sources.files.text import TAIL, Text, measure

GIVE_ENCODING: Final = "Give the encoding with --encoding NAME."

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, which is a prefix of it
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b")) + b"\x7f"


def read_text(path: Path, encoding: str | None) -> Text:
    """Detects the encoding and decodes the whole file, so that errors are found before the first row.

    Args:
        path: the file.
        encoding: a codec name; None detects it.

    Raises:
        UsageError: the file is empty, not text, not in this encoding, or has an excessively long line.
    """
    head = _head(path)
    if not head.strip(b"\0"):  # NULs: the file was never written to its end
        raise UsageError(f"{path.name} is empty", "Export it again.")
    bom, detected = next(((mark, name) for mark, name in _BOMS if head.startswith(mark)), (b"", None))
    if encoding is not None:
        name = _codec_name(encoding)
        family = name.removesuffix("-sig")
        if family in ("utf-8", "utf-16", "utf-32"):  # the byte order mark or the NULs give the byte order
            detected = detected if detected and detected.startswith(family) else _utf16_by_nuls(head) or family
            name = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(detected, detected)
            name = name if name.startswith(family) else family
        elif name != detected:
            bom = b""
        return _decoded(path, name, bom)
    if detected is None:
        check_kind(path, head)
        detected = _utf16_by_nuls(head)
    if detected is not None:
        return _decoded(path, detected, bom)
    _check_binary(path, head)
    try:
        return measure(path, "utf-8")
    except UnicodeDecodeError as error:
        other = error.start
    mixture = find_mixture(path, other)
    if mixture is not None and implausible_place(path, without=UTF8_SEQUENCE) is None:
        raise mixture
    return _as_cp1252(path)


def _as_cp1252(path: Path) -> Text:
    """The file in the usual encoding of Western Windows.

    Raises:
        UsageError: it does not read like Western text in it.
    """
    try:
        text = measure(path, "cp1252")
        if (place := implausible_place(path)) is None:
            return replace(text, is_assumed=True)
        problem = f"{path.name}: unknown encoding; line {line_of(path, place)} makes no sense in UTF-8 or cp1252"
    except UnicodeDecodeError as error:
        problem = f"{path.name}: invalid cp1252 at byte {error.start}, and invalid UTF-8"
    candidates = describe_candidates(path)
    how = "Export it as UTF-8, or give its encoding: --encoding NAME (in a mapping, under [file])"
    raise UsageError(problem, f"{how}; {candidates}" if candidates else f"{how}.")


def _decoded(path: Path, encoding: str, bom: bytes) -> Text:
    try:
        return measure(path, encoding, bom)
    except UnicodeDecodeError as error:
        raise UsageError(f"{path.name}: invalid {encoding} at byte {error.start}", GIVE_ENCODING) from None


def _head(path: Path) -> bytes:
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "Choose a file in it.")
    try:
        with path.open("rb") as file:
            return file.read(TAIL)
    except OSError as error:
        raise unreadable(path, error) from None


def _codec_name(encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding)
        "a;b\r\n".encode(encoding)
        codecs.getincrementaldecoder(encoding)
    except (LookupError, UnicodeError, TypeError, ValueError):
        raise UsageError(f"unknown text encoding {encoding!r}", "Examples: utf-8, cp1252, utf-16, cp850.") from None
    return codec.name


def _check_binary(path: Path, head: bytes) -> None:
    text = head.rstrip(b"\0\x1a")
    if len(text) - len(text.translate(None, _CONTROLS)) > max(0.05 * len(text), 8):
        raise UsageError(f"{path.name} is a binary file, not a CSV or .xlsx file", GIVE_ENCODING)


def _utf16_by_nuls(head: bytes) -> str | None:
    """UTF-16 without a byte order mark: every second byte of mostly Latin text is NUL."""
    head = head[: len(head) // 2 * 2]
    pairs = len(head) // 2
    if pairs < 2:
        return None
    even, odd = head[::2].count(0), head[1::2].count(0)
    if odd > 0.6 * pairs and even < 0.1 * pairs:
        return "utf-16-le"
    if even > 0.6 * pairs and odd < 0.1 * pairs:
        return "utf-16-be"
    return None
