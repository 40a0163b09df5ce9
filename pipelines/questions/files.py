"""Many answers in one file: a spreadsheet, JSON, or the `answers.toml` of another project.

In: a file that a person has filled in. Out: the answers in it, in their order; questions without one are left out.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

import msgspec

from orderbridge.pipelines.questions.model import GivenAnswer
from orderbridge.pipelines.questions.pairs import question_of
from orderbridge.pipelines.warehouse.answers.reviews import decisions_in
from orderbridge.sources.disk import disk_errors
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions, Row, open_table
from orderbridge.sources.settings import read_answers

STDIN: Final = Path("-")
_OURS: Final = "\ufeffquestion;".encode()
_OUR_PAIRS: Final = "\ufeffpair;".encode()
_PAIRS: Final = "pair"
_NEEDED: Final = ("question", "answer")
_HINT: Final = "A file for a spreadsheet is written by: orderbridge questions --csv questions.csv"


def answers_in(path: Path, why: str = "") -> list[GivenAnswer]:
    """The answers in a file.

    Args:
        path: `-` is JSON from stdin, which other users cannot see, as they see arguments.
        why: the reason of those that have none of their own.

    Raises:
        UsageError: the file cannot be read, or an entry is not valid.
    """
    if path.suffix.casefold() == ".toml":
        with disk_errors(f"{path} cannot be read", "Name another file."):
            path.stat()
        stored = read_answers(path=path).answers
        return [
            GivenAnswer(question=key, value=str(one.value), why=one.why or why)
            for key, one in stored.items()
        ]
    answers: list[GivenAnswer] = []
    for entry in _entries(path):
        value = entry["answer"].strip()
        if value:
            reason = entry.get("why", "").strip() or why
            answers.append(GivenAnswer(question=entry["question"], value=value, why=reason))
    repeated = {one.question for one in answers}
    if len(repeated) < len(answers):
        names = [one.question for one in answers]
        twice = next(name for name in names if names.count(name) > 1)
        raise UsageError(f"{path}: {twice} is answered twice", "Keep one answer to each question.")
    return answers


def _entries(path: Path) -> Iterator[Mapping[str, str]]:
    if path == STDIN:
        return _json_entries(sys.stdin.buffer.read(), "stdin")
    if path.suffix.casefold() == ".json":
        with disk_errors(f"{path} cannot be read", "Name another file."):
            text = path.read_bytes()
        return _json_entries(text, str(path))
    return _table_entries(path)


def _json_entries(text: bytes, path: str) -> Iterator[Mapping[str, str]]:
    """The entries of a JSON array of objects, or of what `orderbridge questions --json` prints."""
    try:
        document: Any = msgspec.json.decode(text)
    except msgspec.DecodeError as error:
        raise UsageError(f"{path}: not valid JSON: {error}", _HINT) from None
    if isinstance(document, dict):
        document = document.get("questions", [document])
    if not isinstance(document, list):
        raise UsageError(f"{path}: not an array of objects", _HINT)
    for number, entry in enumerate(document, 1):
        fields = entry if isinstance(entry, dict) else {}
        question = fields.get("question", fields.get("id"))
        answer = fields.get("answer", "")
        if not isinstance(question, str) or not isinstance(answer, str):
            raise UsageError(
                f"{path}, entry {number}: `question` and `answer` are texts", "Correct the entry."
            )
        yield {"question": question, "answer": answer, "why": str(fields.get("why") or "")}


def _table_entries(path: Path) -> Iterator[Mapping[str, str]]:
    """The rows of a CSV or workbook with the columns `question` and `answer`, or of pairs that `review` has written."""
    is_ours = path.is_file() and path.read_bytes().startswith((_OURS, _OUR_PAIRS))
    options = ReadOptions("utf-8", ";", '"', "", 1, totals="keep") if is_ours else None
    table = open_table(path, options)
    if _PAIRS in table.columns:
        for pair, (decision, why) in decisions_in(path).items():
            answer = "same" if decision == "accept" else "different"
            yield {"question": question_of(pair), "answer": answer, "why": why}
        return
    missing = [name for name in _NEEDED if name not in table.columns]
    if missing:
        raise UsageError(f"{path} has no column {', '.join(missing)}", _HINT)
    for row in table.rows():
        if not isinstance(row, Row):
            raise UsageError(f"{path}, line {row.line}: {row.reason}", "Correct the line.")
        yield dict(zip(table.columns, row.cells, strict=True))
