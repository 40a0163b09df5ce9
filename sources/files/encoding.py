"""Detects the encoding of a text file, decodes and measures it in one streaming pass, and reads it in blocks of lines.

In: a file, and the encoding if it is known. Out: `Text`. The order: byte order mark, strict UTF-8, cp1252 if
the text is plausible in it. A file that mixes UTF-8 with another encoding is an error with a line of each; so is one in
an unknown encoding, with words of the file in the likely ones. Invalid bytes are never replaced.
"""

from __future__ import annotations

import codecs
import mmap
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.file_kinds import InputFile, check_kind
from orderbridge.sources.files.plausibility import implausible_place

MIB: Final = 1 << 20
MAX_LINE: Final = 8 * MIB
"""Characters of a line or a cell; a spreadsheet allows 32,767 per cell."""
CHUNK_BYTES: Final = 128 * 1024
CONTROLS: Final = re.compile("[\x80-\x84\x86-\x9f]")
"""Control characters that no text has: cp1252 was taken for ISO-8859-1. The one left out ends a line on mainframes."""
UTF8_CONTROLS: Final = re.compile(rb"\xc2[\x80-\x84\x86-\x9f]")
"""The same in UTF-8, where they are found ten times as fast."""
SIGNS: Final = {
    code: bytes([code]).decode("cp1252")
    for code in range(0x80, 0xA0)
    if code not in (0x81, 0x8D, 0x8F, 0x90, 0x9D)
}
"""Signs and letters of cp1252, by the control character that ISO-8859-1 has in their place."""
_PADDING: Final = re.compile("[\0\x1a]")
TAIL: Final = 64 * 1024
SAMPLE: Final = 256 * 1024
_LINE_ENDS: Final = re.compile(r"[\r\n]+")
GIVE_ENCODING: Final = "Give the encoding with --encoding NAME."

_BOMS: Final = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),  # before UTF-16, which is a prefix of it
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
_CONTROLS: Final = bytes(set(range(32)) - set(b"\t\n\v\f\r\x1a\x1b")) + b"\x7f"
_ASCII: Final = bytes(range(128))
UTF8_SEQUENCE: Final = re.compile(  # a single set for the first byte makes the search five times as fast
    rb"[\xc2-\xf4](?:(?<=[\xc2-\xdf])[\x80-\xbf]"
    rb"|(?<=\xe0)[\xa0-\xbf][\x80-\xbf]|(?<=\xed)[\x80-\x9f][\x80-\xbf]|(?<=[\xe1-\xec\xee\xef])[\x80-\xbf]{2}"
    rb"|(?<=\xf0)[\x90-\xbf][\x80-\xbf]{2}|(?<=\xf4)[\x80-\x8f][\x80-\xbf]{2}|(?<=[\xf1-\xf3])[\x80-\xbf]{3})"
)
_CLOSING: Final = rb"[\x85\x92\x94-\x97\x99\x9b\xa0\xae\xb7\xbb-\xbe]"  # … ’ ” • – — ™ › no-break space ® · » ¼ ½ ¾
_PLAUSIBLE: Final = re.compile(
    rb"(?:(?<![a-z\xdf-\xff])(?:[\xc4\xc5]%(s)s(?![A-Za-z])|[\xc6-\xde]%(s)s)"  # Ä and Å also begin Czech letters
    rb"|\xdf%(s)s|[\xe0-\xef]%(s)s{2}|[\xf0-\xf4]%(s)s{3})(?![\xc0-\xff])" % {b"s": _CLOSING}
)
CANDIDATES: Final = (
    "cp1252", "cp1250", "iso8859_2", "cp1251", "koi8_r", "iso8859_5", "cp866", "cp1253", "iso8859_7", "cp1254",
    "iso8859_9", "cp1257", "iso8859_13", "cp850", "cp437", "cp852", "cp857", "cp737", "cp775", "mac_roman",
    "mac_latin2", "mac_cyrillic", "mac_greek", "mac_turkish", "iso8859_15", "iso8859_16", "cp1255", "cp1256", "cp1258",
    "cp874", "cp932", "gb18030", "big5", "euc_kr", "koi8_u", "iso8859_3", "iso8859_4", "iso8859_10",
)  # fmt: skip
RARE: Final = ("iso8859_3", "iso8859_4", "iso8859_10", "iso8859_16")
"""Candidates that come last: they have the letters of others, and hardly a program writes them."""
WESTERN: Final = {"cp1252", "cp850", "mac_roman"}
"""Always shown: the most frequent encodings, of which the order of likely ones is often wrong."""
SHOWN: Final = 6
SAMPLE_LINES: Final = 100
SAMPLE_CHARS: Final = 60
_WORD: Final = re.compile(r"(?<![^\s;,|\"'])[^\W\d_]+(?:[–—•×’][^\W\d_]+)*(?![^\s;,|\"'])|[€¤]")
"""A word, also two with a sign between them, or a sign by which two code pages differ."""


@dataclass(frozen=True)
class Text:
    """A text file that was decoded once from end to end.

    Attributes:
        begin: the offset of the first byte after the byte order mark.
        chars: the number of characters, without NUL and Ctrl-Z padding at the end.
        lines: the number of lines, including a last one without a line end.
        line_ends: those of LF, CRLF and CR that occur.
        head: whole lines at the beginning, at least `SAMPLE` characters of a longer text; they are not read again.
        tail: the last characters.
        is_assumed: the encoding is plausible, not proven.
        has_signs: control characters are the signs that cp1252 has in their place.
    """

    path: Path
    encoding: str
    begin: int
    chars: int
    lines: int
    line_ends: tuple[str, ...]
    head: str
    tail: str
    is_assumed: bool = False
    has_signs: bool = False

    @property
    def ends_openly(self) -> bool:
        """Whether the last of several lines has no line end."""
        return bool(self.line_ends) and self.tail[-1] not in "\r\n"

    def blocks(self) -> Iterator[str]:
        """The text in blocks that end with a line end; only the last one may lack it."""
        rest = ""
        for text in self._chunks():
            rest += text
            if end := lines_end(rest):
                yield rest[:end]
                rest = rest[end:]
        if rest:
            yield rest

    def _chunks(self) -> Iterator[str]:
        """The text in parts of any size; the file is opened for what is after the head."""
        head = self.head[: self.chars]
        yield from (head[at : at + CHUNK_BYTES] for at in range(0, len(head), CHUNK_BYTES))
        if len(head) < self.chars:
            known = len(head)
            with self.path.open("rb") as file:
                for text in decoded(file, self.encoding, self.begin, self.chars):
                    yield text[known:].translate(SIGNS) if self.has_signs else text[known:]
                    known = max(known - len(text), 0)


def decoded(file: BinaryIO, encoding: str, begin: int, chars: int = sys.maxsize) -> Iterator[str]:
    """At most `chars` characters, in chunks. The `start` of a UnicodeDecodeError is the offset in the file."""
    decoder = codecs.getincrementaldecoder(encoding)()
    at = file.seek(begin)
    while chars:
        chunk = file.read(CHUNK_BYTES)
        pending = len(decoder.getstate()[0])
        try:
            text = decoder.decode(chunk, final=not chunk)[:chars]
        except UnicodeDecodeError as error:
            error.start += at - pending
            raise
        at += len(chunk)
        chars -= len(text)
        if text:
            yield text
        if not chunk:
            return


def measure(source: InputFile, encoding: str, bom: bytes = b"", most: int = sys.maxsize) -> Text:
    """Decodes the whole file, or its first `most` characters.

    Raises:
        UnicodeDecodeError: a byte is invalid in the encoding; its `start` is the offset in the file.
        UsageError: the file is empty, or has an excessively long line.
    """
    chars = feeds = returns = pairs = run = 0
    head = tail = last = ""
    padding = -1  # the position of trailing NULs and Ctrl-Zs
    for text in decoded(source.file, encoding, len(bom), most):
        body = len(text.rstrip("\0\x1a\r\n"))
        mark = _PADDING.search(text, body)
        padding = -1 if body else padding
        if padding < 0 and mark is not None:
            padding = chars + mark.start()
        own = count_line_ends(text)
        feeds += own.feeds
        returns += own.returns
        pairs += own.pairs + (last == "\r" and text[0] == "\n")
        head += text if len(head) < SAMPLE or not lines_end(head) else ""
        end = max(text.rfind("\n"), text.rfind("\r"))
        run = run + len(text) if end < 0 else len(text) - end - 1
        if run > MAX_LINE and padding < 0:
            raise UsageError(
                f"line {feeds + returns - pairs + 1} of {source.name} is longer than {MAX_LINE // MIB} million "
                "characters",
                "This is not a table with a row per line. Export it again as CSV or .xlsx.",
            )
        chars += len(text)
        last = text[-1]
        tail = (tail + text)[-TAIL:]
    if padding >= 0:
        return measure(source, encoding, bom, padding)
    if not chars:
        raise UsageError(f"{source.name} is empty", "Export it again.")
    ends = (("CRLF", pairs), ("LF", feeds - pairs), ("CR", returns - pairs))
    lines = feeds + returns - pairs + (last not in ("\r", "\n"))
    line_ends = tuple(name for name, count in ends if count)
    head = head if len(head) == chars else head[: lines_end(head)]
    return Text(source.path, encoding, len(bom), chars, lines, line_ends, head, tail)


class LineEnds(NamedTuple):
    """How many line feeds and carriage returns a text has, and how many pairs of both."""

    feeds: int
    returns: int
    pairs: int


def count_line_ends(text: str) -> LineEnds:
    """Counts; a text without returns, which is usual, in a third of the time."""
    feeds = text.count("\n")
    if "\r" not in text:
        return LineEnds(feeds, 0, 0)
    return LineEnds(feeds, text.count("\r"), text.count("\r\n"))


def lines_end(text: str) -> int:
    """Where the whole lines of a part of a text end: a CR at its end may be half of a CRLF."""
    return max(text.rfind("\n"), text.rfind("\r", 0, max(len(text) - 1, 0))) + 1


def read_text(source: InputFile, encoding: str | None) -> Text:
    """Detects the encoding, unless it is given, and decodes the whole file: errors are found before the first row.

    Raises:
        UsageError: the file is empty, not text, not in this encoding, or has an excessively long line.
    """
    if not source.head.strip(b"\0"):  # NULs: the file was never written to its end
        raise UsageError(f"{source.name} is empty", "Export it again.")
    bom, detected = _byte_order_marks(source.head)
    if encoding is not None:
        name = _codec_name(encoding)
        family = name.removesuffix("-sig")
        if family in ("utf-8", "utf-16", "utf-32"):  # the byte order mark gives the byte order
            own = detected if detected and detected.startswith(family) else family
            name = {"utf-16": "utf-16-le", "utf-32": "utf-32-le"}.get(own, own)
        elif name != detected:
            bom = b""
        detected = name
    try:
        if detected is not None:
            return _with_signs(measure(source, detected, bom))
        check_kind(source)
        _check_binary(source)
        return _with_signs(measure(source, "utf-8"))
    except UnicodeDecodeError as error:
        other = error.start
    if detected is not None:
        raise UsageError(f"{source.name}: invalid {detected} at byte {other}", GIVE_ENCODING)
    utf8 = find_utf8(source)
    if utf8 is not None and implausible_place(source.file, without=UTF8_SEQUENCE) is None:
        raise UsageError(
            f"{source.name} mixes two encodings: line {line_of(source, utf8)} is UTF-8 (byte {utf8}), line "
            f"{line_of(source, other)} is not (byte {other})",
            "Export it again in one encoding. If all of it is cp1252 and texts such as `Ã©` are right: --encoding "
            "cp1252",
        )
    try:
        text = measure(source, "cp1252")
        if (place := implausible_place(source.file)) is None:
            return replace(text, is_assumed=True)
        problem = f"{source.name}: unknown encoding; line {line_of(source, place)} makes no sense in UTF-8 or cp1252"
    except UnicodeDecodeError as error:
        problem = f"{source.name}: invalid cp1252 at byte {error.start}, and invalid UTF-8"
    candidates = describe_candidates(source.file)
    how = "Export it as UTF-8, or give its encoding: --encoding NAME (in a mapping, under [file])"
    raise UsageError(problem, f"{how}; {candidates}" if candidates else f"{how}.")


def _with_signs(text: Text) -> Text:
    """The text with quotes, dashes and so on for control characters: cp1252 was taken for ISO-8859-1.

    Only if cp1252 has a sign or letter for each of them, and all make sense where they stand.
    """
    if not CONTROLS.search(text.head):
        return text
    lines = [
        line for block in text.blocks() for line in _LINE_ENDS.split(block) if CONTROLS.search(line)
    ]
    repaired = "\n".join(lines).translate(SIGNS)
    data = BytesIO(repaired.encode("cp1252", "replace"))
    if CONTROLS.search(repaired) or implausible_place(data) is not None:
        return text
    return replace(
        text, head=text.head.translate(SIGNS), tail=text.tail.translate(SIGNS), has_signs=True
    )


def _byte_order_marks(head: bytes) -> tuple[bytes, str | None]:
    """The byte order marks at the beginning of a file, and the encoding of the first one.

    A program that adds a mark to a text that has one leaves two.
    """
    for mark, name in _BOMS:
        end = 0
        while head.startswith(mark, end):
            end += len(mark)
        if end:
            return head[:end], name
    return b"", None


def _codec_name(encoding: str) -> str:
    try:
        codec = codecs.lookup(encoding)
        "a;b\r\n".encode(encoding)
        codecs.getincrementaldecoder(encoding)
    except (LookupError, UnicodeError, TypeError, ValueError):
        raise UsageError(
            f"unknown text encoding {encoding!r}", "Examples: utf-8, cp1252, utf-16, cp850."
        ) from None
    return codec.name


def _check_binary(source: InputFile) -> None:
    text = source.head.rstrip(b"\0\x1a")
    if len(text) - len(text.translate(None, _CONTROLS)) > max(
        0.05 * len(text), min(len(text) / 4, 8)
    ):
        hint = "If it is a text, give its encoding, e.g. --encoding utf-16-le."
        raise UsageError(f"{source.name} is a binary file, not a CSV or .xlsx file", hint)


def find_utf8(source: InputFile) -> int | None:
    """The offset of a UTF-8 sequence that is implausible as cp1252; of the first one if most bytes are in sequences."""
    first = None
    plausible = 0
    data = mmap.mmap(source.file.fileno(), 0, access=mmap.ACCESS_READ)
    for match in UTF8_SEQUENCE.finditer(data):
        if not _PLAUSIBLE.match(data, match.start()):
            return match.start()
        first = match.start() if first is None else first
        plausible += len(match[0])
    high = sum(
        len(chunk.translate(None, _ASCII)) for chunk in iter(lambda: data.read(CHUNK_BYTES), b"")
    )
    return first if plausible > high - plausible else None


def line_of(source: InputFile, offset: int) -> int:
    """The 1-based line of a byte that ends no line."""
    return measure(source, "latin-1", most=offset + 1).lines


def describe_candidates(file: BinaryIO) -> str:
    """Likely encodings, best first, each with words of the file; encodings that read the same are listed together."""
    line, sample = _sample(file)
    if not sample:
        return ""
    by_words: dict[str, list[str]] = {}
    for name in dict.fromkeys([*_likely(sample), *CANDIDATES]):
        with suppress(UnicodeDecodeError):
            names = by_words.setdefault(_words(sample.decode(name)), [])
            names.append(name.replace("iso8859_", "iso8859-"))
    shown = [(words, names) for words, names in by_words.items() if words]
    shown = [item for at, item in enumerate(shown) if at < SHOWN or WESTERN.intersection(item[1])]
    lines = [f"{', '.join(names[:4])}: {words}" for words, names in shown]
    return "\n    ".join([f"from line {line} on it reads in", *lines])


def _sample(file: BinaryIO) -> tuple[int, bytes]:
    """The first lines with non-ASCII bytes, and the number of the first one."""
    file.seek(0)
    lines = ((number, line[:2048]) for number, line in enumerate(file, 1) if not line.isascii())
    found = list(islice(lines, SAMPLE_LINES))
    return found[0][0] if found else 0, b"".join(line for _, line in found)


def _likely(sample: bytes) -> list[str]:
    """Encodings in which a text looks like one of words of a language, best first."""
    from charset_normalizer import from_bytes  # only where a file is refused

    matches = from_bytes(sample, cp_isolation=[name for name in CANDIDATES if name not in RARE])
    return list(chain.from_iterable(match.could_be_from_charset for match in matches))


def _words(text: str) -> str:
    """Words with a non-ASCII letter, without numbers or codes, up to a limit."""
    found = (
        word
        for word in _WORD.findall(text)
        if not word.isascii() and (len(word) > 1 or word in "€¤")
    )
    words = list(dict.fromkeys(found))[:SAMPLE_CHARS]
    while len(shown := ", ".join(words)) > SAMPLE_CHARS:
        words.pop()
    return shown
