"""The quarantine file: the rows themselves that no raw table can hold, for the owner alone.

In: results of walks. Out: `<warehouse>.quarantine.jsonl`, mode 0600, a row of JSON each. The warehouse has only their
reasons and hashes, so that it can be shared.
"""

from __future__ import annotations

import io
import json
from collections.abc import Sequence
from pathlib import Path

from sources.disk import replace_file
from sources.extract.result import ListResult


def quarantine_file(path: Path) -> Path:
    """The quarantine file of a warehouse."""
    return path.with_name(f"{path.name}.quarantine.jsonl")


def write_quarantine(path: Path, run_id: str, lists: Sequence[ListResult]) -> None:
    """Replaces the file by the quarantined rows of this run; removes it where there are none.

    Args:
        path: of the warehouse.
        run_id: of the run.
        lists: results of its walks.
    """
    file = quarantine_file(path)
    if not any(result.quarantined for result in lists):
        file.unlink(missing_ok=True)
        return
    with replace_file(file, is_only_writer=True) as raw, io.TextIOWrapper(raw, "utf-8") as out:
        for result in lists:
            for row in result.quarantined:
                record = {
                    "run_id": run_id,
                    "resource": result.resource,
                    "page": row.page,
                    "position": row.position,
                    "reason": row.reason,
                    "row_hash": row.row_hash,
                    "row": row.row.decode("utf-8", "replace"),
                }
                out.write(json.dumps(record, ensure_ascii=False) + "\n")
