"""A file's bytes to text: which encoding, where the text ends, and the text in blocks of whole lines.

In: a path. Out: `Text`, which knows encoding, length and line ends from one streaming pass over the whole file, and
hands out blocks that end where a line ends. Bytes that are no text are an error with their offset, never a sign in
place of a character.
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from sources.errors import UsageError
from sources.files.mixed_encoding import refuse_mixture

MIB: Final = 1 << 20
MAX_LINE: Final = 8 * MIB
"""Characters of a line, and of a cell; the longest that a sheet can hold are 32,767."""
CHUNK_BYTES: Final = 512 * 1024
TAIL: Final = 64 * 1024
UNTOLD: Final = "Say what the file is with --encoding NAME."

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, whose mark it begins with
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_KINDS: Final = (
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)", "Save it as .xlsx or as CSV."),
    (b"PK\x03\x04", "a zip archive", "Unpack it and give the file inside."),
    (b"\x1f\x8b", "compressed (gzip)", "Unpack it first: gunzip FILE."),
    (b"BZh", "compressed (bzip2)", "Unpack it first: bunzip2 FILE."),
    (b"\xfd7zXZ\0", "compressed (xz)", "Unpack it first: unxz FILE."),
    (b"(\xb5/\xfd", "compressed (zstd)", "Unpack it first: unzstd FILE."),
    (b"7z\xbc\xaf'\x1c", "a 7z archive", "Unpack it and give the file inside."),
    (b"%PDF", "a PDF", "Export the table as CSV or .xlsx."),
    (b"{\\rtf", "an RTF document", "Export the table as CSV or .xlsx."),
    (b"PAR1", "a Parquet file", "Export the table as CSV or .xlsx."),
    (b"SQLite format 3\0", "an SQLite database", "Export the table as CSV or .xlsx."),
    (b"\x89PNG", "an image", "Give the table as CSV or .xlsx."),
    (b"\xff\xd8\xff", "an image", "Give the table as CSV or .xlsx."),
)
_MARKUP: Final = (b"<!doctype html", b"<html", b"<table", b"<?xml", b"<meta", b"<head")
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b")) + b"\x7f"


@dataclass(frozen=True)
class Text:
    """A file of text, read once from end to end.

    Attributes:
        begin: the byte after the byte order mark.
        chars: how many there are up to the end of the text; NUL and Ctrl-Z that pad it, and footnotes, come after.
        lines: how many of them there are, the last one without a line end too.
        nuls: how many of the characters are NUL.
        line_ends: of LF, CRLF and CR, those that occur.
        tail: the last characters of the text.
    """

    path: Path
    encoding: str
    has_bom: bool
    begin: int
    chars: int
    lines: int
    nuls: int
    line_ends: tuple[str, ...]
    tail: str

    def blocks(self) -> Iterator[str]:
        """The text in blocks that end with a line end; only the last may lack one.

        Raises:
            UsageError: a line is longer than `MAX_LINE`.
        """
        held: list[str] = []
        left = self.chars
        for chunk in _decoded(self.path, self.encoding, self.begin):
            text = chunk[:left]
            left -= len(text)
            # a CR at the very end may be half of a CRLF, so it stays with what follows
            cut = max(text.rfind("\n"), text.rfind("\r", 0, max(len(text) - 1, 0))) + 1
            if cut:
                yield "".join([*held, text[:cut]])
                held = []
            if cut < len(text):
                held.append(text[cut:])
            if not left:
                break
        if held:
            yield "".join(held)


def read_text(path: Path, told: str | None) -> Text:
    """Finds the encoding and reads the file through, so that what is wrong with it is known before the first row.

    Raises:
        UsageError: nothing in it, not text, not in this encoding, or a line beyond all measure.
    """
    head = _head(path)
    if not head:
        raise UsageError(f"{path.name} is empty", "Nothing was exported into it.")
    bom, name = next(((mark, name) for mark, name in _BOMS if head.startswith(mark)), (b"", None))
    if told is not None:
        wanted = _known(told)
        if wanted.replace("-sig", "") in ("utf-8", "utf-16", "utf-32"):  # the mark, or the NULs, say which order
            family = wanted.replace("-sig", "")
            name = name if name and name.startswith(family) else _by_nuls(head) or family
            name = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(name, name)
            if not name.startswith(family):
                name = family
        elif name != wanted:
            bom, name = b"", wanted
        return _measured(path, name, bom)
    if name is None:
        _refuse_other_kinds(path, head)
        name = _by_nuls(head)
    if name is not None:
        return _measured(path, name, bom)
    _refuse_binary(path, head)
    try:
        return _measured(path, "utf-8", b"", strict=True)
    except UnicodeDecodeError as error:
        refuse_mixture(path, error.start)
    return _measured(path, "cp1252", b"")


def _head(path: Path) -> bytes:
    if path.is_dir():
        raise UsageError(f"{path} is a folder", "Name one file in it.")
    try:
        with path.open("rb") as file:
            return file.read(TAIL)
    except OSError as error:
        raise UsageError(f"{path.name} cannot be read: {error.strerror}", "Look at its name and permissions.") from None


def _known(told: str) -> str:
    try:
        codec = codecs.lookup(told)
        "a;b\r\n".encode(told)
        codecs.getincrementaldecoder(told)
    except (LookupError, UnicodeError, TypeError, ValueError):
        raise UsageError(f"{told!r} is no encoding of text", "Examples: utf-8, cp1252, utf-16, cp850.") from None
    return codec.name


def _refuse_other_kinds(path: Path, head: bytes) -> None:
    for magic, what, cure in _KINDS:
        if head.startswith(magic):
            raise UsageError(f"{path.name} is {what}, not a table as text", cure)
    if head.lstrip()[:20].lower().startswith(_MARKUP):
        cure = "Open it in a spreadsheet and save it as .xlsx or CSV."
        raise UsageError(f"{path.name} holds HTML or XML, not a table as text", cure)


def _refuse_binary(path: Path, head: bytes) -> None:
    text = head.rstrip(b"\0\x1a")
    if len(text) - len(text.translate(None, _CONTROLS)) > max(0.05 * len(text), 8):
        raise UsageError(f"{path.name} is a binary file, not a table as text", UNTOLD)


def _by_nuls(head: bytes) -> str | None:
    """UTF-16 without a mark: where most characters are Latin, every second byte is NUL."""
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


def _decoded(path: Path, encoding: str, begin: int) -> Iterator[str]:
    """The text in chunks. An error of decoding carries the offset in the file as its `start`."""
    decoder = codecs.getincrementaldecoder(encoding)()
    with path.open("rb") as file:
        file.seek(begin)
        at = begin
        while True:
            chunk = file.read(CHUNK_BYTES)
            pending = len(decoder.getstate()[0])
            try:
                text = decoder.decode(chunk, final=not chunk)
            except UnicodeDecodeError as error:
                error.start += at - pending
                raise
            at += len(chunk)
            if text:
                yield text
            if not chunk:
                return


def _measured(path: Path, encoding: str, bom: bytes, *, strict: bool = False) -> Text:
    chars = feeds = returns = pairs = nuls = run = 0
    tail = ""
    last = ""
    padding = -1  # where the NULs and Ctrl-Zs begin that nothing but they and line ends follows
    try:
        for text in _decoded(path, encoding, len(bom)):
            body = text.rstrip("\0\x1a\r\n")
            rest = text[len(body) :]
            first = min((at for at in (rest.find("\0"), rest.find("\x1a")) if at >= 0), default=-1)
            if body:
                padding = -1
            if padding < 0 and first >= 0:
                padding = chars + len(body) + first
            feeds += text.count("\n")
            returns += text.count("\r")
            pairs += text.count("\r\n") + (last == "\r" and text[0] == "\n")
            nuls += text.count("\0")
            end = max(text.rfind("\n"), text.rfind("\r"))
            run = run + len(text) if end < 0 else len(text) - end - 1
            if run > MAX_LINE and padding < 0:
                raise UsageError(
                    f"line {feeds + returns - pairs + 1} of {path.name} is longer than {MAX_LINE // MIB} million "
                    "characters",
                    "This is no table of lines. Look at how the file was made.",
                )
            chars += len(text)
            last = text[-1]
            tail = (tail + text)[-TAIL:]
    except UnicodeDecodeError as error:
        if strict:
            raise
        wrong = f"byte {error.start} of {path.name} is nothing in {encoding}"
        raise UsageError(wrong, UNTOLD) from None
    except OSError as error:
        raise UsageError(f"{path.name} cannot be read: {error.strerror}", "Look at the disk.") from None
    if padding >= 0:  # what is cut holds no cell: recount what it held
        cut_nuls, cut_lines = _after(path, encoding, len(bom), padding)
        nuls -= cut_nuls
        feeds -= cut_lines
        tail = tail[: max(len(tail) - (chars - padding), 0)]
        chars, last = padding, tail[-1:]
    if not chars:
        raise UsageError(f"{path.name} is empty", "Nothing was exported into it.")
    ends = (("CRLF", pairs), ("LF", feeds - pairs), ("CR", returns - pairs))
    lines = feeds + returns - pairs + (last not in ("\r", "\n"))
    found = tuple(name for name, count in ends if count)
    return Text(path, encoding, bool(bom), len(bom), chars, lines, nuls, found, tail)


def _after(path: Path, encoding: str, begin: int, chars: int) -> tuple[int, int]:
    """NULs and line ends after so many characters; a CRLF that two chunks share counts once."""
    at = nuls = lines = 0
    last = ""
    for text in _decoded(path, encoding, begin):
        rest = text[max(chars - at, 0) :]
        at += len(text)
        if not rest:
            continue
        nuls += rest.count("\0")
        lines += rest.count("\n") + rest.count("\r") - rest.count("\r\n") - (last == "\r" and rest[0] == "\n")
        last = rest[-1]
    return nuls, lines
