"""Which checks the lines of a file go through: all of this version, or those of 0.3 where nights go on from it.

In: the ledger, the plan folders that it names, and the file of tonight. Out: whether the last plan that was pushed of
such a file, with the same mapping, was checked as 0.3 did. So it is until somebody changes the mapping, or pushes the
plan of an import that a person has looked at. The lines that other nights reject are named in the plan.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from orderbridge.pipelines.imports.open import open_input_table, own_columns
from orderbridge.pipelines.ledger.store import Ledger
from orderbridge.pipelines.mapping import Mapping
from orderbridge.pipelines.plan.model import file_sha256
from orderbridge.pipelines.plan.pushed_plans import pushed_plans
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import RejectedRow
from orderbridge.sources.kinds import KindName
from orderbridge.sources.words import number

_SHOWN: Final = 3
"""Lines that the plan names, each with its reason."""


def is_checked_as_before(
    ledger: Ledger, host: str, kind: KindName, file: Path, mapping: Mapping | None
) -> bool:
    """Whether the lines of a file are checked as 0.3 did, since such a plan was the last one pushed of its columns.

    Raises:
        UsageError: the file cannot be read.
    """
    options = mapping.read_options if mapping is not None else None
    columns = set(own_columns(open_input_table(file, options, mapping), mapping))
    path = mapping.path if mapping is not None else None
    for _, planned in pushed_plans(ledger, host, kind):
        if columns == set(planned.format.columns):
            before = planned.mapping.sha256 if planned.mapping is not None else None
            now = file_sha256(path) if path is not None else None
            return not planned.checks_rows and before == now
    return False


def note_of_unchecked(kind: KindName, file: Path, mapping: Mapping) -> str:
    """Names the lines that all checks would reject, and how they are rejected from now on; empty if there are none."""
    known = {row.line for row in _rejected(file, mapping)}
    checked = _rejected(file, mapping.with_row_checks(all_checks=True))
    found = [row for row in checked if row.line not in known]
    if not found:
        return ""
    shown = "; ".join(f"line {row.line}: {row.reason}" for row in found[:_SHOWN])
    more = f"; and {number(len(found) - _SHOWN, 'other line')}" if len(found) > _SHOWN else ""
    return (
        f"{number(len(found), 'line')} read as rows, as in the plans before, which new checks would reject: "
        f"{shown}{more}. To use these checks from now on, import such a file in a terminal: "
        f"orderbridge import {kind} {shlex.quote(str(file))}"
    )


def _rejected(file: Path, mapping: Mapping) -> Iterator[RejectedRow]:
    """The lines that are no rows, up to where a file cannot be read further."""
    with suppress(UsageError):
        for part in open_input_table(file, mapping.read_options, mapping).parts():
            if isinstance(part, RejectedRow):
                yield part
