"""The quarantine file: the rows themselves that no raw table can hold, for the owner alone.

In: results of walks. Out: `<warehouse>.quarantine.jsonl`, mode 0600, a row of JSON each. The warehouse has only their
reasons and hashes, so that it can be shared. Rows of a list stay until a run has read it again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from sources.disk import replace_file
from sources.extract.result import ListResult


def quarantine_file(path: Path) -> Path:
    """The quarantine file of a warehouse."""
    return path.with_name(f"{path.name}.quarantine.jsonl")


@contextmanager
def staged_quarantine(path: Path, run_id: str, lists: Sequence[ListResult]) -> Iterator[None]:
    """Writes the file next to the old one, and replaces that where the block, which publishes the build, succeeds.

    Without quarantined rows the old file is removed instead. It keeps those of lists that this run did not read whole.

    Args:
        path: of the warehouse.
        run_id: of the run.
        lists: results of its walks.
    """
    file = quarantine_file(path)
    read = {walked.resource for walked in lists if walked.error is None and walked.is_whole}
    if not any(walked.quarantined for walked in lists) and not any(_kept(file, read)):
        yield
        file.unlink(missing_ok=True)
        return
    with replace_file(file, is_only_writer=True) as out:
        out.writelines(_kept(file, read))
        for walked in lists:
            for row in walked.quarantined:
                record = {
                    "run_id": run_id,
                    "resource": walked.resource,
                    "page": row.page,
                    "position": row.position,
                    "reason": row.reason,
                    "row_hash": row.row_hash,
                    "row": row.row.decode("utf-8", "replace"),
                }
                out.write(json.dumps(record, ensure_ascii=False).encode("utf-8", "replace") + b"\n")
        out.flush()  # a full disk must show before anything is published
        os.fsync(out.fileno())
        yield


def _kept(file: Path, read: Collection[str]) -> Iterator[bytes]:
    """The lines of the file about other lists than those that were read; none if it cannot be read."""
    with suppress(OSError), file.open("rb") as lines:
        for line in lines:
            with suppress(ValueError, KeyError, TypeError):
                if json.loads(line)["resource"] not in read:
                    yield line
