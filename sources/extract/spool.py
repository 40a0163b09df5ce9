"""Response bodies on disk, compressed, so that a stopped walk can be resumed.

In: the label of each request and the body of its response, in order. Out: the same bodies, for a later walk that makes
the same requests. A frame that is incomplete (the process was killed while writing) or that belongs to another request
ends the replay, and the rest of the file is cut off. Files are readable by their owner only.

In the working folder of a user's pipeline, the folder of a walk is locked as long as it is used. One without a lock is
that of a run that was killed or failed: the next run of its list goes on with its pages, and removes it; any run does
once its pages are out of date.
"""

from __future__ import annotations

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
from collections.abc import Mapping
from pathlib import Path
from typing import Final

import pyarrow as pa
from filelock import lock_descriptor

from sources.disk import open_private, replace_file

RESUME_WITHIN_S: Final = 3600.0
"""A walk that stopped longer ago is not resumed: its pages are out of date."""
WALK_MAX_S: Final = 86_400.0
"""A walk that began longer ago is not resumed, even if it was resumed since."""
DIGEST_COST = 2**12
"""How slow it is to guess a key: `n` of scrypt. 10 ms of CPU a guess."""

_HEADER: Final = struct.Struct("<4sIIII")  # magic, bytes of label and packed body, crc32, bytes of body
_MAGIC: Final = b"OBS2"
_CODEC: Final = pa.Codec("zstd", 1)  # an eighth of the size; compressing takes less time than writing the rest would


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
        frame = self._read_frame()
        if frame is None or frame[0] != label:
            if os.fstat(self._descriptor).st_size > self.offset:  # else the file keeps the time of its last page
                os.ftruncate(self._descriptor, self.offset)
            self._replaying = False
            return None
        body, self.offset = frame[1:]
        self.replayed += 1
        return body

    def _read_frame(self) -> tuple[str, bytes, int] | None:
        """Label, body and end of the next frame; None if there is no complete one."""
        header = os.pread(self._descriptor, _HEADER.size, self.offset)
        if len(header) < _HEADER.size:
            return None
        magic, label_bytes, packed_bytes, crc, body_bytes = _HEADER.unpack(header)
        if magic != _MAGIC:
            return None
        payload = os.pread(self._descriptor, label_bytes + packed_bytes, self.offset + _HEADER.size)
        if len(payload) < label_bytes + packed_bytes or zlib.crc32(payload, body_bytes) != crc:
            return None
        body = _CODEC.decompress(payload[label_bytes:], body_bytes, asbytes=True)
        return payload[:label_bytes].decode(), body, self.offset + _HEADER.size + len(payload)

    def at(self, offset: int) -> bytes:
        """The body of the frame that starts at an offset."""
        header = os.pread(self._descriptor, _HEADER.size, offset)
        _, label_bytes, packed_bytes, _, body_bytes = _HEADER.unpack(header)
        packed = os.pread(self._descriptor, packed_bytes, offset + _HEADER.size + label_bytes)
        body: bytes = _CODEC.decompress(packed, body_bytes, asbytes=True)
        return body

    def write(self, label: str, body: bytes) -> None:
        """Appends a frame. Raises OSError if the disk is full: a walk cannot continue without its spool."""
        text, packed = label.encode(), _CODEC.compress(body, asbytes=True)
        crc = zlib.crc32(packed, zlib.crc32(text, len(body)))
        left = memoryview(_HEADER.pack(_MAGIC, len(text), len(packed), crc, len(body)) + text + packed)
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
        key: the API key, which must be equal too. Only a salted digest of it is written, and the salt only here.
        finished_after: a finished walk is resumed too if its last page arrived after this time (seconds since 1970).

    Attributes:
        started_at: when the walk that is resumed, or this one, began: no page is older. In seconds since 1970.
    """

    def __init__(
        self,
        folder: Path,
        identity: Mapping[str, str | int],
        key: str = "",
        finished_after: float = math.inf,
    ) -> None:
        self.folder = folder
        self._identity = dict(identity)
        self._key = key
        self._secret: dict[str, str] = {}
        self.started_at = 0.0
        if not self._is_resumable(finished_after):
            self.clear()

    def _is_resumable(self, finished_after: float) -> bool:
        try:
            described = json.loads((self.folder / "walk.json").read_text())
            digest = _digest(self._key, bytes.fromhex(described.pop("salt")))
            is_same_key = hmac.compare_digest(digest, described.pop("key_digest"))
            self.started_at = described.pop("started_at")
            last_page_at = self.last_page_at() or self.started_at
            now = time.time()
            is_fresh = 0 <= now - self.started_at < WALK_MAX_S and 0 <= now - last_page_at < RESUME_WITHIN_S
            is_usable = not described.pop("finished", False) or last_page_at > finished_after
        except (OSError, ValueError, TypeError, KeyError, AttributeError):
            return False
        return is_same_key and is_fresh and is_usable and described == self._identity

    def last_page_at(self) -> float:
        """When the last page arrived, in seconds since 1970; 0 if none has."""
        return max((file.stat().st_mtime for file in self.folder.glob("*.pages")), default=0.0)

    def clear(self) -> None:
        """Removes the spools; the next walk starts from the first page."""
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(mode=0o700, parents=True)
        self.started_at = time.time()
        self._describe({})

    def finish(self) -> None:
        """Marks the walk as finished: a later one starts from the first page, see `finished_after`."""
        self._describe({"finished": True})

    def _describe(self, more: Mapping[str, bool]) -> None:
        if not self._secret:  # once per folder: the digest is slow by design
            salt = os.urandom(16)
            self._secret = {"salt": salt.hex(), "key_digest": _digest(self._key, salt)}
        described = {**self._identity, **self._secret, "started_at": self.started_at, **more}
        with replace_file(self.folder / "walk.json", is_durable=False) as file:
            file.write(json.dumps(described).encode())

    def sweep(self, number: int) -> Spool:
        """The spool of a sweep, numbered from 1."""
        return Spool(self.folder / f"sweep-{number}.pages")


def _digest(key: str, salt: bytes) -> str:
    """A digest that is slow to guess."""
    return hashlib.scrypt(key.encode(), salt=salt, n=DIGEST_COST, r=8, p=1).hex()


class RunFolder:
    """A folder for one walk over a list.

    Args:
        parent: holds the folders of all runs.
        name: of the list.

    Attributes:
        path: of the folder.
        spool: of the pages in it.
    """

    def __init__(self, parent: Path, name: str) -> None:
        parent.mkdir(parents=True, exist_ok=True)
        self.path = Path(tempfile.mkdtemp(prefix=f"{name}-", dir=parent))
        self.spool = self.path / "spool"
        self._end = weakref.finalize(self, _end, self.path, _create_lock(self.path))
        for other in (file.parent for file in parent.glob("*/lock") if file.parent != self.path):
            if (lock := _lock(other)) is None:
                continue
            is_same_list = other.name.rpartition("-")[0] == name
            if is_same_list and (other / "spool").exists() and not self.spool.exists():
                (other / "spool").rename(self.spool)
            changed = max((path.stat().st_mtime for path in other.rglob("*")), default=0.0)
            if is_same_list or time.time() - changed > RESUME_WITHIN_S:
                shutil.rmtree(other, ignore_errors=True)
            os.close(lock)

    def leave(self) -> None:
        """Leaves the folder to the next run: the walk failed."""
        if ended := self._end.detach():
            os.close(ended[2][1])


def _create_lock(folder: Path) -> int:
    """The descriptor of the lock of a new folder, which others see when it is held."""
    descriptor = open_private(folder / "new")
    lock_descriptor(descriptor, blocking=False)
    (folder / "new").rename(folder / "lock")
    return descriptor


def _lock(folder: Path) -> int | None:
    """The descriptor of another folder's lock; None if a run holds it, or has just removed the folder."""
    try:
        descriptor = os.open(folder / "lock", os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    if lock_descriptor(descriptor, blocking=False):
        return descriptor
    os.close(descriptor)
    return None


def _end(folder: Path, lock: int) -> None:
    """Removes a folder, and then ends its lock."""
    shutil.rmtree(folder, ignore_errors=True)
    os.close(lock)
