"""What people decided about pairs of the match with the ERP, in a file of the project that later runs use.

In: `.dlt/reviewed.csv`, and files of pairs that a person has filled in. Out: for each pair whether it is one customer.
A pair is named by the ERP's code of its line, or a digest of its keys, and the id of its customer, in a form that no
spreadsheet takes for a number: `code 007 = 123`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal, NamedTuple, TextIO

from orderbridge.sources.disk import write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions, Row, open_table
from orderbridge.sources.files.formulas import CsvFile, neutralize
from orderbridge.sources.settings.ownership import check_private
from orderbridge.sources.settings.root import find_root

FILE: Final = "reviewed.csv"
Decision = Literal["accept", "reject"]
_DECISIONS: Final[Mapping[str, Decision]] = {
    **dict.fromkeys(("accept", "accepted", "a", "yes", "y", "sí", "si", "s", "1", "x"), "accept"),
    **dict.fromkeys(("reject", "rejected", "r", "no", "n", "0"), "reject"),
}
"""What people write. Nothing: not decided."""
SEPARATOR: Final = " = "
_OURS: Final = "\ufeffpair;".encode()
COLUMNS: Final = ("pair", "decision", "why")
"""What a person fills in, of a file of pairs."""


class Review(NamedTuple):
    """What was decided about a pair, and why; of a line of the file also by whom and when (UTC)."""

    pair: str
    decision: Decision
    who: str = ""
    when: str = ""
    why: str = ""


def reviews_file() -> Path:
    """The file of the project."""
    return find_root() / ".dlt" / FILE


def read_reviews() -> dict[str, Review]:
    """The reviews of the project, by pair.

    Raises:
        UsageError: the file is not valid, or others can write to it.
    """
    path = reviews_file()
    check_private(path)
    return _reviews(path, Review._fields) if path.exists() else {}


def decisions_in(path: Path) -> dict[str, tuple[Decision, str]]:
    """The decisions in a file of pairs that a person has filled in, and why; without those that are empty.

    Raises:
        UsageError: the file cannot be read, or a decision is not known.
    """
    return {pair: (one.decision, one.why) for pair, one in _reviews(path, COLUMNS).items()}


def _reviews(path: Path, names: Sequence[str]) -> dict[str, Review]:
    # nothing is guessed about a file of ours
    is_ours = path.is_file() and path.read_bytes().startswith(_OURS)
    table = open_table(
        path, ReadOptions("utf-8", ";", '"', "", 1, totals="keep") if is_ours else None
    )
    if missing := sorted(set(names) - set(table.columns)):
        raise UsageError(
            f"{path} has no column {', '.join(missing)}", "Keep the columns that `review` wrote."
        )
    reviews = {}
    for row in table.rows():
        if not isinstance(row, Row):
            raise UsageError(f"{path}, line {row.line}: {row.reason}", "Correct the line.")
        cells = dict(zip(table.columns, row.cells, strict=True))
        pair = cells["pair"]
        answer = cells["decision"].strip().lower()
        if SEPARATOR not in pair:
            raise UsageError(
                f"{path}, line {row.line}: {pair!r} is no pair", "Keep the column `pair` as it is."
            )
        if answer not in _DECISIONS and (answer or names == Review._fields):
            raise UsageError(
                f"{path}: {answer!r} is neither accept nor reject", "Correct the line."
            )
        if answer:
            rest = {name: cells[name] for name in names if name not in ("pair", "decision")}
            reviews[pair] = Review(pair, _DECISIONS[answer], **rest)
    return reviews


def write_reviews(
    decided: Mapping[str, tuple[Decision, str]], who: str, withdrawn: Collection[str] = ()
) -> None:
    """Adds decisions to the file of the project, in their order, and removes those of pairs that are withdrawn.

    The last decision about a pair counts. Raises OSError, UsageError.
    """
    when = datetime.now(UTC).isoformat(timespec="seconds")
    gone = {*decided, *withdrawn}
    reviews = {pair: one for pair, one in read_reviews().items() if pair not in gone}
    reviews |= {
        pair: Review(pair, answer, who, when, why) for pair, (answer, why) in decided.items()
    }
    text = io.StringIO()
    write_csv(text, Review._fields, (one._asdict() for one in reviews.values()))
    reviews_file().parent.mkdir(mode=0o700, exist_ok=True)
    write_private(reviews_file(), text.getvalue().encode())


def write_csv(out: TextIO, names: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> None:
    """A CSV that spreadsheets open with its columns and accents: UTF-8 with a mark, semicolons."""
    out.write("\ufeff")
    writer = csv.writer(CsvFile(out, "\r\n"), delimiter=";")
    writer.writerow(names)
    for row in rows:
        writer.writerow([neutralize(str(row.get(name) or "")) for name in names])
