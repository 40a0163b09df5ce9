"""The spool: page bytes on disk as they come, so that a stopped walk goes on where it was.

In: the label of a request and the body that answered it, in order. Out: the same bodies, to a later walk that asks
the same. A frame that is torn (the process was killed amid a write) or that answers another request ends the replay;
what follows it is cut off. Files are for the owner alone and are removed with their walk.
"""

from __future__ import annotations

import json
import os
import shutil
import struct
import time
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from sources.disk import open_private, replace_file

RESUME_WITHIN_S: Final = 3600.0
"""A spool older than this is not gone on with: its first pages would say what no longer is."""

_HEADER: Final = struct.Struct("<4sIII")  # magic, label bytes, body bytes, crc32 of both
_MAGIC: Final = b"OBS1"


class Spool:
    """The spool of one sweep: replays what is there, then takes what comes.

    Attributes:
        offset: where the next frame is read or written.
        replayed: frames that were replayed.
    """

    def __init__(self, path: Path) -> None:
        self.offset = 0
        self.replayed = 0
        self._replaying = True
        self._descriptor = open_private(path, create=True)

    def replay(self, label: str) -> bytes | None:
        """The body that answered this request last time; None once the spool has no more to say."""
        if not self._replaying:
            return None
        found = self._read_frame()
        if found is None or found[0] != label:
            os.ftruncate(self._descriptor, self.offset)
            self._replaying = False
            return None
        self.offset += _HEADER.size + len(label.encode()) + len(found[1])
        self.replayed += 1
        return found[1]

    def _read_frame(self) -> tuple[str, bytes] | None:
        header = os.pread(self._descriptor, _HEADER.size, self.offset)
        if len(header) < _HEADER.size:
            return None
        magic, label_bytes, body_bytes, crc = _HEADER.unpack(header)
        if magic != _MAGIC:
            return None
        payload = os.pread(self._descriptor, label_bytes + body_bytes, self.offset + _HEADER.size)
        if len(payload) < label_bytes + body_bytes or zlib.crc32(payload) != crc:
            return None
        return payload[:label_bytes].decode(), payload[label_bytes:]

    def at(self, offset: int) -> bytes:
        """The body of the frame that starts there (see `offset`)."""
        _, label_bytes, body_bytes, _ = _HEADER.unpack(os.pread(self._descriptor, _HEADER.size, offset))
        return os.pread(self._descriptor, body_bytes, offset + _HEADER.size + label_bytes)

    def write(self, label: str, body: bytes) -> None:
        """Appends one frame. Raises OSError where the disk is full: the walk cannot go on without its spool."""
        text = label.encode()
        crc = zlib.crc32(body, zlib.crc32(text))
        left = [memoryview(part) for part in (_HEADER.pack(_MAGIC, len(text), len(body), crc), text, body)]
        while left:
            written = os.pwritev(self._descriptor, left, self.offset)
            self.offset += written
            while left and written >= len(left[0]):
                written -= len(left.pop(0))
            if left:
                left[0] = left[0][written:]

    def close(self) -> None:
        """Closes the file; it stays on disk."""
        os.close(self._descriptor)


class SpoolFolder:
    """The spools of one list: a file a sweep, and a `walk.json` that says which walk they belong to.

    Args:
        folder: made when first needed, mode 0700.
        identity: what must be the same for a walk to go on: host, path, page size, version. It holds no key.
    """

    def __init__(self, folder: Path, identity: Mapping[str, str | int]) -> None:
        self.folder = folder
        self._identity = dict(identity)
        if not self._belongs():
            self.clear()

    def _belongs(self) -> bool:
        try:
            kept = json.loads((self.folder / "walk.json").read_text())
        except (OSError, ValueError):
            return False
        fresh: bool = 0 <= time.time() - kept.pop("started_at", 0.0) < RESUME_WITHIN_S
        return fresh and kept == self._identity  # a finished walk says so, and is not gone on with

    def clear(self) -> None:
        """Forgets what was spooled, and begins anew."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)
        self._describe({})

    def finish(self) -> None:
        """Says that the walk came to its end: what is spooled serves this run, and a later one starts afresh."""
        self._describe({"finished": True})

    def _describe(self, more: Mapping[str, bool]) -> None:
        described = {**self._identity, "started_at": time.time(), **more}
        with replace_file(self.folder / "walk.json", is_durable=False) as file:
            file.write(json.dumps(described).encode())

    def sweep(self, number: int) -> Spool:
        """The spool of a sweep, counted from 1."""
        return Spool(self.folder / f"sweep-{number}.pages")
