"""Codes whose leading zeros a spreadsheet has taken: known codes of a file show it, and its new ones are held then.

In: the codes of a file, and those of the platform. Out: which new codes may have lost zeros. A create cannot be undone,
so that a person says first whether these codes are as they should be. The plan folder keeps what the file has shown:
its rejected rows alone, corrected, would show nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.plan.model import read_evidence
from orderbridge.pipelines.warehouse.accepted_changes import AcceptedChanges
from orderbridge.sources.settings import project_file

ZEROS_FILE: Final = ".zeros.json"
QUESTION: Final = "zeros:"
AS_WRITTEN: Final = "as_written"
CODE: Final = "zeros_lost"
_ID_LENGTH: Final = 12
_NUMBER: Final = "^[1-9][0-9]*$"
_WITH_ZEROS: Final = "^0+[1-9][0-9]*$"


class LostZeros(msgspec.Struct, frozen=True):
    """A field whose codes have lost their zeros.

    Attributes:
        file: SHA-256 of the file that showed it.
        field: that holds the codes.
        width: digits of the longest code that has lost some.
        written, known: an example: the code in the file, and on the platform.
    """

    file: str
    field: str
    width: int
    written: str
    known: str

    @classmethod
    def find(cls, file: str, field: str, codes: pa.Array, known: pa.Array) -> Self | None:
        """What the codes of a file show; None if nothing was lost.

        A spreadsheet takes the zeros of all codes of a column. Where codes without zeros are known as they are, the
        platform has both.
        """
        if len(_matching(codes, _WITH_ZEROS)):
            return None
        numbers = pc.unique(_matching(codes, _NUMBER))
        with_zeros = _matching(known, _WITH_ZEROS)
        is_lost = pc.is_in(pc.utf8_ltrim(with_zeros, "0"), value_set=numbers)
        lost = with_zeros.filter(is_lost)
        if not len(lost):
            return None
        width = pc.max(pc.utf8_length(lost)).as_py()
        as_known = numbers.filter(pc.is_in(numbers, value_set=known))
        if pc.any(pc.less(pc.utf8_length(as_known), width)).as_py():
            return None
        example = lost[0].as_py()
        return cls(file, field, width, example.lstrip("0"), example)

    @property
    def question(self) -> str:
        """The id of the question whether the codes of the file are as they should be."""
        return f"{QUESTION}{self.file[:_ID_LENGTH]}"

    def may_lack_zeros(self, codes: pa.Array) -> pa.Array:
        """Which of these codes are numbers with fewer digits."""
        is_number = pc.match_substring_regex(codes, _NUMBER)
        is_short = pc.less(pc.utf8_length(codes), self.width)
        return pc.fill_null(pc.and_(is_number, is_short), False)

    @property
    def reason(self) -> str:
        """Why lines are held."""
        return (
            f"{self.field}: known codes of this file lack the zeros that they have on the platform ({self.written} is "
            f"{self.known} there), so that this new one may lack them too"
        )

    @property
    def words(self) -> str:
        """Why lines are held, and what to do."""
        return (
            f"{self.reason}. Export the file with its codes as text. If they are right: "
            f"orderbridge answer {self.question} {AS_WRITTEN}, then import the file again"
        )


class KeptZeros(msgspec.Struct, frozen=True):
    """What a plan keeps: the path and SHA-256 of its input, how many of its lines are held, and why."""

    path: str
    sha256: str
    lines: int
    found: list[LostZeros]


def kept_zeros(folder: Path | None = None) -> Iterator[KeptZeros]:
    """What the plan in a folder has kept; without one, what all plans of the project have."""
    of_all = sorted(project_file("").glob(f"plan-*/{ZEROS_FILE}")) if folder is None else []
    for path in [folder / ZEROS_FILE] if folder is not None else of_all:
        if (kept := read_evidence(path, KeptZeros)) is not None:
            yield kept


def zeros_of_rejects(file: Path) -> list[LostZeros]:
    """What the files have shown whose rejected rows these may be: that of the plan beside it, or of any plan."""
    is_beside = (file.parent / ZEROS_FILE).exists()
    found = [one for kept in kept_zeros(file.parent if is_beside else None) for one in kept.found]
    answered = {one.file for one in AcceptedChanges.read().codes}
    return [one for one in dict.fromkeys(found) if one.file not in answered]


def _matching(codes: pa.Array, pattern: str) -> pa.Array:
    return codes.filter(pc.fill_null(pc.match_substring_regex(codes, pattern), False))
