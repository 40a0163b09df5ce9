"""Response bodies on disk, compressed, so that a stopped walk can be resumed.

In: the label of each request and the body of its response, in order. Out: the same bodies, for a later walk that makes
the same requests. A frame that is incomplete (the process was killed while writing) or that belongs to another request
ends the replay, and the rest of the file is cut off. Files are readable by their owner only.

In the working folder of a user's pipeline, the pages of a list are locked while it is walked; where the walk fails or
is killed, the next run of the list goes on with them. The folder of a run is locked as long as it is used, and one
without a lock is removed by the next run.
"""

from __future__ import annotations

import errno
import hashlib
import hmac
import json
import math
import os
import shutil
import struct
import tempfile
import time
import weakref
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

import pyarrow as pa
from filelock import lock_descriptor

from orderbridge.sources.disk import PRIVATE_FOLDER, open_private, replace_file

RESUME_WITHIN_S: Final = 3600.0
"""A walk that stopped longer ago is not resumed: its pages are out of date."""
WALK_MAX_S: Final = 86_400.0
"""A walk that began longer ago is not resumed, even if it was resumed since."""
LIMITED_RESUME_WITHIN_S: Final = 36 * 3600.0
"""The same where a limit of the platform stopped the walk: it is resumed by the run of the next night."""
LIMITED_WALK_MAX_S: Final = 3 * 86_400.0
DIGEST_COST = 2**12
"""How slow it is to guess a key: `n` of scrypt. 10 ms of CPU a guess."""

_RUN: Final = "run-"
_HEADER: Final = struct.Struct("<4sIIII")
"""The header of a frame: magic, bytes of the label and of the packed body, crc32, bytes of the body."""
_MAGIC: Final = b"OBS2"
_CODEC: Final = pa.Codec("zstd", 1)
"""An eighth of the size: compressing takes less time than writing the rest would."""


class Spool:
    """The spool of one sweep: replays the frames on disk, then appends new ones.

    Attributes:
        offset: of the next frame to read or write, in bytes.
        replayed: frames replayed so far.
    """

    def __init__(self, path: Path) -> None:
        self.offset = 0
        self.replayed = 0
        self._replaying = True
        self._descriptor = open_private(path)

    def replay(self, label: str) -> bytes | None:
        """The body of the last response to this request; None from the first frame that is not its response."""
        if not self._replaying:
            return None
        frame = self._frame(self.offset)
        if frame is None or frame[0] != label:
            if os.fstat(self._descriptor).st_size > self.offset:
                # Only then: otherwise the file keeps the time of its last page.
                os.ftruncate(self._descriptor, self.offset)
            self._replaying = False
            return None
        body, self.offset = frame[1:]
        self.replayed += 1
        return body

    def _frame(self, offset: int) -> tuple[str, bytes, int] | None:
        """Label, body and end of the frame that starts at an offset; None if there is no complete one."""
        header = os.pread(self._descriptor, _HEADER.size, offset)
        if len(header) < _HEADER.size:
            return None
        magic, label_bytes, packed_bytes, crc, body_bytes = _HEADER.unpack(header)
        if magic != _MAGIC:
            return None
        payload = os.pread(self._descriptor, label_bytes + packed_bytes, offset + _HEADER.size)
        if len(payload) < label_bytes + packed_bytes or zlib.crc32(payload, body_bytes) != crc:
            return None
        body = _CODEC.decompress(payload[label_bytes:], body_bytes, asbytes=True)
        return payload[:label_bytes].decode(), body, offset + _HEADER.size + len(payload)

    def at(self, offset: int) -> bytes:
        """The body of the frame that starts at an offset. Raises OSError if it is damaged."""
        if (frame := self._frame(offset)) is None:
            raise OSError(errno.EIO, "a page that was written cannot be read")
        return frame[1]

    def write(self, label: str, body: bytes) -> None:
        """Appends a frame. Raises OSError if the disk is full: a walk cannot continue without its spool."""
        text = label.encode()
        packed = _CODEC.compress(body, asbytes=True)
        crc = zlib.crc32(packed, zlib.crc32(text, len(body)))
        left = memoryview(
            _HEADER.pack(_MAGIC, len(text), len(packed), crc, len(body)) + text + packed
        )
        while left:
            written = os.pwrite(self._descriptor, left, self.offset)
            self.offset += written
            left = left[written:]

    def close(self) -> None:
        """Closes the file and leaves it on disk."""
        os.close(self._descriptor)


class SpoolFolder:
    """The spools of one list: a file per sweep, and a `walk.json` that identifies the walk.

    Args:
        folder: created with mode 0700.
        identity: must be equal for a walk to be resumed: host, environment, list, page size, version.
        key: the API key, which must be equal too. Only a salted digest of both is written, and the salt only here.
        finished_after: a finished walk is resumed too if its last page arrived after this time (seconds since 1970).
    """

    def __init__(
        self,
        folder: Path,
        identity: Mapping[str, str | int],
        key: str = "",
        finished_after: float = math.inf,
    ) -> None:
        self.folder = folder
        self._identity = json.dumps([identity, key], sort_keys=True)
        self._walk: dict[str, Any] = {}
        if not self._is_resumable(finished_after):
            self.clear()

    @property
    def started_at(self) -> float:
        """When the walk that is resumed, or this one, began: no page is older. In seconds since 1970."""
        return float(self._walk["started_at"])

    def _is_resumable(self, finished_after: float) -> bool:
        now = time.time()
        try:
            self._walk = json.loads((self.folder / "walk.json").read_text())
            is_same = hmac.compare_digest(self._digest(self._walk["salt"]), self._walk["digest"])
            started_at = self._walk["started_at"]
            last_page_at = self.last_page_at() or started_at
            is_limited = self._walk.get("limited", False)
            walk_max_s = LIMITED_WALK_MAX_S if is_limited else WALK_MAX_S
            resume_within_s = LIMITED_RESUME_WITHIN_S if is_limited else RESUME_WITHIN_S
            is_fresh = (
                0 <= now - started_at < walk_max_s and 0 <= now - last_page_at < resume_within_s
            )
            is_usable = not self._walk["finished"] or last_page_at > finished_after
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return False
        return is_same and is_fresh and is_usable

    def _digest(self, salt: str) -> str:
        """A digest of identity and key, from which the key is slow to guess."""
        return hashlib.scrypt(
            self._identity.encode(), salt=bytes.fromhex(salt), n=DIGEST_COST, r=8, p=1
        ).hex()

    def last_page_at(self) -> float:
        """When the last page arrived, in seconds since 1970; 0 if none has."""
        return max((file.stat().st_mtime for file in self.folder.glob("*.pages")), default=0.0)

    def clear(self) -> None:
        """Removes the spools; the next walk starts from the first page."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)
        salt = os.urandom(16).hex()
        self._walk = {
            "salt": salt,
            "digest": self._digest(salt),
            "started_at": time.time(),
            "finished": False,
        }
        self._write()

    def stop_by_limit(self) -> None:
        """Marks the walk as stopped by a limit of the platform: a later one may go on with it for longer."""
        self._walk["limited"] = True
        self._write()

    def finish(self) -> None:
        """Marks the walk as finished: a later one starts from the first page, see `finished_after`."""
        self._walk["finished"] = True
        self._write()

    def _write(self) -> None:
        with replace_file(self.folder / "walk.json", is_durable=False) as file:
            file.write(json.dumps(self._walk).encode())

    def sweep(self, number: int) -> Spool:
        """The spool of a sweep, numbered from 1."""
        return Spool(self.folder / f"sweep-{number}.pages")


@contextmanager
def run_folder(parent: Path, name: str, run: object) -> Iterator[tuple[Path, Path]]:
    """Where one run of a user's pipeline walks a list; others wait until it has walked.

    Args:
        parent: holds the folders of all lists.
        name: of the list.
        run: with which the folder of its files is removed.

    Yields:
        The folder for its files, and that of its pages: those of a run that was killed or failed are there.
    """
    home = parent / name
    home.mkdir(PRIVATE_FOLDER, parents=True, exist_ok=True)
    lock = _locked(home / "lock", blocking=True)
    try:
        for left in home.glob(f"{_RUN}*"):
            if (unlocked := _locked(left / "lock")) is not None:  # else that run goes on
                _end(left, unlocked)
        folder = Path(tempfile.mkdtemp(prefix=_RUN, dir=home))
        weakref.finalize(run, _end, folder, _locked(folder / "lock"))
        yield folder, home / "spool"
    finally:
        if lock is not None:
            os.close(lock)


def _locked(path: Path, *, blocking: bool = False) -> int | None:
    """The descriptor of a lock; None if a run holds it, or has just removed its folder."""
    try:
        descriptor = open_private(path)
    except FileNotFoundError:
        return None
    if lock_descriptor(descriptor, blocking=blocking):
        return descriptor
    os.close(descriptor)
    return None


def _end(folder: Path, lock: int | None) -> None:
    """Removes a folder, and then ends its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    if lock is not None:
        os.close(lock)
