"""What an import would do, or has done, as a page shows it.

In: what `import --json --values` printed. Out: dataclasses for the templates; every text of a code is looked up here.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, NamedTuple, cast
from urllib.parse import urlsplit

from orderbridge.pipelines.desk.link import Link
from orderbridge.pipelines.desk.texts import Texts
from orderbridge.pipelines.plan.outcomes import CONFLICTING_LINES
from orderbridge.pipelines.plan.wording import problems_in
from orderbridge.sources.kinds import KINDS
from orderbridge.sources.texts import recognised
from orderbridge.sources.urls import is_loopback

ROWS_MAX: Final = 200
CORRECTIONS_MAX: Final = 100
"""Rejected lines that can be corrected on a page; the others are in the workbook."""
_SENT: Final = ("create", "patch")
"""Outcomes of lines that would be sent."""
_CORRECTABLE: Final = ("rejected",)
_COMPARED: Final = ("exists_differs", "ambiguous")
"""Outcomes whose lines are in the table of differences."""
_ASKED: Final = ("in_doubt",)
"""Outcomes that the page asks about: their next step is not repeated for each line."""
_READ_AS: Final = ("plan_note.notation", "plan_note.currency")
"""Notes that say only how the numbers of a column are read."""
_NOT_NAMED: Final = "plan_note.columns"
_ARTICLE_CODES: Final = ("erpCode", "sku")
_TOTALS: Final = "totals"
"""The code of lines that look like totals."""
_DOCUMENTS: Final = "documents"
_MONEY: Final = ("price",)
"""Fields that are shown with two decimals, whole numbers too."""
_PART: Final = "; "
_FIELD_END: Final = re.compile("[;,] ")
"""What is between the fields of a reason."""
_JUMPS_SHOWN: Final = 5
_ON_THE_PAGE: Final = ("again", "wait", "correct", "compare", "answer", "answer_one", "answer_file")
"""Next steps for which the page has a button or a table."""

Document = Mapping[str, Any]
Cells = frozenset[tuple[str, str]]
"""The cells of a line, each with the name of its column."""


@dataclass(frozen=True, slots=True)
class Count:
    """So many lines have an outcome."""

    outcome: str
    words: str
    lines: int


@dataclass(frozen=True, slots=True)
class Value:
    """A field of a record: its value on the platform, and the one that is sent; `how`: why, in words."""

    field: str
    old: str
    new: str
    how: str


@dataclass(frozen=True, slots=True)
class Change:
    """What a line would do to a record; `about`: what a person knows it by."""

    line: int
    about: str
    record: str
    values: Sequence[Value]


@dataclass(frozen=True, slots=True)
class NewRecords:
    """Records that would be created: a row each, with the values of the fields that any of them has."""

    fields: Sequence[str]
    rows: Sequence[tuple[int, Sequence[str]]]


@dataclass(frozen=True, slots=True)
class Difference:
    """A field that differs on the platform and is not sent; `about`: what a person knows the customer by."""

    line: int
    about: str
    field: str
    file_value: str
    platform_value: str


@dataclass(frozen=True, slots=True)
class Reason:
    """Why lines are rejected, held or left out. `words` are of the first of them; `lines` counts all."""

    outcome: str
    outcome_words: str
    words: str
    lines: int
    rows: Sequence[tuple[int, str]]
    hidden: int


@dataclass(frozen=True, slots=True)
class Cell:
    """A cell to correct."""

    name: str
    text: str
    column: str
    is_wrong: bool


@dataclass(frozen=True, slots=True)
class SentBefore:
    """When a rejected line was sent corrected, and the page of the import that did it."""

    at: datetime
    href: str


@dataclass(frozen=True, slots=True)
class Settled:
    """Rejected lines for which nothing has to be done, by their cells.

    Attributes:
        sent: those that an earlier import has sent corrected.
        left_out: those that a person does not send.
    """

    sent: Mapping[Cells, SentBefore] = field(default_factory=dict)
    left_out: frozenset[Cells] = frozenset()


_NOTHING_SETTLED: Final = Settled()


@dataclass(frozen=True, slots=True)
class Correction:
    """A rejected line, to be corrected.

    Attributes:
        is_of_others: it is wrong only beside another line.
        is_totals: it looks like a line of totals.
        sent: an earlier import has sent it corrected; None: none has.
        is_left_out: a person does not send it.
    """

    line: int
    reason: str
    cells: Sequence[Cell]
    is_of_others: bool
    is_totals: bool
    sent: SentBefore | None
    is_left_out: bool

    @property
    def waits(self) -> bool:
        """Whether it has to be corrected. The others can be: a line of totals may be none."""
        return self.sent is None and not self.is_left_out and not self.is_totals


@dataclass(frozen=True, slots=True)
class Corrections:
    """The rejected lines that can be corrected on the page.

    Attributes:
        columns: of the file, which the cells of the rows follow.
        order: in which the page shows them.
        hidden: lines that are in the workbook alone.
    """

    columns: Sequence[str]
    rows: Sequence[Correction]
    order: Sequence[int]
    hidden: int

    @property
    def shown(self) -> int:
        """Lines of the page that have to be corrected."""
        return sum(row.waits for row in self.rows)

    @property
    def sent(self) -> int:
        """Lines of the page that an earlier import has sent corrected."""
        return sum(row.sent is not None for row in self.rows)

    @property
    def left_out(self) -> int:
        """Lines of the page that a person does not send."""
        return sum(row.is_left_out for row in self.rows)

    @property
    def waiting(self) -> int:
        """Lines that have to be corrected, here or in the workbook."""
        return self.shown + self.hidden


@dataclass(frozen=True, slots=True)
class Agreement:
    """What somebody agrees to.

    Attributes:
        operations: the number to type for production.
        planned: with those that have ended before.
        target: where they are sent, in words.
        lines: of the file that they are made of; 0 where that is not known.
        messages: mails that the platform would send to customers.
        passwords: how they get the passwords that are made: `mail`, `file`; empty: none are made.
        doubts: requests with an unknown outcome that may be sent again.
    """

    operations: int
    planned: int
    lines: int
    is_production: bool
    target: str
    messages: int
    passwords: str
    doubts: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanPage:
    """What an import would do, or has done.

    Attributes:
        read_as: how the numbers of columns are read, which is nothing to worry about.
        has_begun: some of its requests have ended before: the counts are of requests then, beside lines not sent.
        difference_count: of the differences, the first of which are shown; the others are in a file of `folder`.
        mailed: new customers whose password the platform was asked to mail.
        failing_columns: for which every line is rejected; empty: there are none.
        is_error_known: the error is about the file itself, and in the language of the page.
    """

    lines: int
    counts: Sequence[Count]
    has_begun: bool
    created: NewRecords
    changes: Sequence[Change]
    has_more_changes: bool
    differences: Sequence[Difference]
    difference_count: int
    folder: str
    reasons: Sequence[Reason]
    failing_columns: str
    suspicious: Sequence[str]
    notes: Sequence[str]
    read_as: Sequence[str]
    corrections: Corrections
    agreement: Agreement | None
    next: Sequence[Link]
    results: Sequence[Count]
    mailed: int
    verified: Sequence[Count]
    is_unverified: bool
    workbook: str
    error: Sequence[str]
    is_error_known: bool


def plan_page(
    document: Document,
    texts: Texts,
    corrected: Collection[int] = frozenset(),
    settled: Settled = _NOTHING_SETTLED,
    *,
    asks_columns: bool = False,
) -> PlanPage:
    """The page of what an import printed; `corrected`, `settled`: see `corrections_of`.

    Where the page `asks_columns`, no note says that they are not sent.
    """
    changes = _part(document, "changes")
    corrections = corrections_of(document, texts, corrected, settled)
    done = _lines_corrected_apart(document, corrected)
    done |= {row.line for row in corrections.rows if row.sent is not None}
    left_out = {row.line for row in corrections.rows if row.is_left_out}
    counts = _with_settled(_part(changes, "counts"), done, left_out)
    files = _part(document, "files")
    error = _part(document, "error")
    rows = _rows(changes, "changes")[:ROWS_MAX]
    differences = [_difference(one, texts) for one in _rows(changes, "differences")[:ROWS_MAX]]
    notes = [*map(str, _rows(changes, "notes"))]
    said_elsewhere = (*_READ_AS, _NOT_NAMED) if asks_columns else _READ_AS
    failing_columns = _failing_columns(document)
    is_corrected = bool(corrected or corrections.rows) and not corrections.waiting
    agreement = _agreement(document.get("agreement"), counts, texts)
    has_begun = agreement is not None and agreement.operations < agreement.planned
    return PlanPage(
        lines=changes.get("lines", 0),
        counts=_begun_counts(agreement, counts, texts) if has_begun else _counts(counts, texts),
        has_begun=has_begun,
        created=_new_records(rows, texts),
        changes=[*_changes(rows, texts)],
        has_more_changes=len(_rows(changes, "changes")) >= ROWS_MAX,
        differences=differences,
        difference_count=changes.get("difference_count") or len(differences),
        folder=str(document.get("folder") or ""),
        reasons=_reasons(_rows(changes, "reasons"), texts, done | left_out),
        failing_columns=failing_columns,
        suspicious=[*_suspicious(document, texts)],
        notes=[texts.known(note) for note in notes if _code(note) not in said_elsewhere],
        read_as=[texts.known(note) for note in notes if _code(note) in _READ_AS],
        corrections=corrections,
        agreement=agreement,
        next=_next_steps(document, texts, corrects=not (is_corrected or failing_columns)),
        results=_counts(_with_settled(_results(_part(document, "push")), done, left_out), texts),
        mailed=_part(document, "push").get("mailed", 0),
        verified=_counts(_part(_part(document, "verify"), "outcomes"), texts),
        is_unverified=_is_unverified(document),
        workbook=_path(files, "workbook"),
        error=[str(error[key]) for key in ("message", "hint") if error.get(key)],
        is_error_known=recognised(str(error.get("message")), ("file_error",)) is not None,
    )


def _is_unverified(document: Document) -> bool:
    """Whether what was sent can be read back from a list, and was not: a run had the lists, or they failed."""
    was_sent = document.get("state") == "sent" and bool(document.get("error"))
    is_listed = was_sent and KINDS[str(document["kind"])].operation.shown_in is not None
    return is_listed and document.get("verify") is None


def _code(note: str) -> str:
    """The code of a note of a plan; empty: it has none."""
    found = recognised(note, ("plan_note",))
    return found[0] if found is not None else ""


def _part(document: Document, name: str) -> Document:
    """An object of the document; empty where that step was not done."""
    return cast("Document", document.get(name) or {})


def _rows(document: Document, name: str) -> Sequence[Any]:
    """A list of the document, likewise."""
    return cast("Sequence[Any]", document.get(name) or ())


def _path(files: Document, name: str) -> str:
    return str(files.get(name) or "")


def rejected_cells(document: Document) -> dict[int, Mapping[str, str]]:
    """The cells of each rejected line, by column."""
    return {
        row["line"]: row["cells"]
        for reason in _rejections(document)
        for row in reason["rows"]
        if row.get("cells")
    }


def cells_key(cells: Mapping[str, str]) -> Cells:
    """What a line is known by in another file, whose columns may be in another order."""
    return frozenset(cells.items())


def _rejections(document: Document) -> list[Document]:
    """The reasons of lines that can be corrected."""
    reasons = _rows(_part(document, "changes"), "reasons")
    return [one for one in reasons if one["outcome"] in _CORRECTABLE]


def corrections_of(
    document: Document,
    texts: Texts,
    corrected: Collection[int] = frozenset(),
    settled: Settled = _NOTHING_SETTLED,
) -> Corrections:
    """The rejected lines with their cells, in the order of the file; last those for which nothing has to be done.

    Args:
        document: what an import printed.
        texts: of the page.
        corrected: lines that have a page of corrections; they are left out.
        settled: lines for which nothing has to be done.
    """
    columns = [str(one["name"]) for one in _rows(document, "columns")]
    columns_of = _columns_by_field(document)
    reasons = _rejections(document)
    found: dict[int, list[_Problem]] = {}
    further = 0
    for reason in reasons:
        wrong = _wrong_columns(reason, columns_of, columns)
        is_totals = reason["code"] == _TOTALS
        further += 0 if is_totals else reason["lines"] - len(reason["rows"])
        for row in reason["rows"]:
            if row.get("cells") and row["line"] not in corrected:
                is_of_others = reason["code"] == CONFLICTING_LINES
                problem = _Problem(
                    _row_words(reason, row, texts), wrong, is_of_others, is_totals, row["cells"]
                )
                found.setdefault(row["line"], []).append(problem)
    in_order = [
        _correction(line, problems, columns, settled) for line, problems in sorted(found.items())
    ]
    in_order.sort(key=lambda row: not row.waits)
    rows = in_order[:CORRECTIONS_MAX]
    hidden = sum(row.waits for row in in_order[CORRECTIONS_MAX:])
    is_sent = [bool(one["fields"]) for one in _rows(document, "columns")]
    return Corrections(columns, rows, _wrong_first(rows, is_sent), hidden + further)


def _wrong_columns(
    reason: Document, columns_of: Mapping[str, str], columns: Collection[str]
) -> set[str]:
    """The columns at fault; of what a second file fills, the column of the code by which it is found there."""
    wrong = {columns_of.get(path, "") for path in _FIELD_END.split(str(reason["field"] or ""))}
    if wrong.isdisjoint(columns):
        wrong = {str(reason["words"]).partition(": ")[0]}
    if wrong.isdisjoint(columns):
        wrong = {columns_of.get(code, "") for code in _ARTICLE_CODES}
    return wrong


class _Problem(NamedTuple):
    """Why a line is rejected: in words, the columns at fault, whether another line is, and the cells of the line."""

    words: str
    columns: set[str]
    is_of_others: bool
    is_totals: bool
    cells: Document


def _wrong_first(rows: Sequence[Correction], is_sent: Sequence[bool]) -> list[int]:
    """The columns as they are shown: with wrong cells, then others that are sent, then the rest."""
    columns = range(len(is_sent))
    is_wrong = [any(row.cells[at].is_wrong for row in rows) for at in columns]
    return sorted(columns, key=lambda at: (not is_wrong[at], not is_sent[at]))


def _columns_by_field(document: Document) -> dict[str, str]:
    return {
        str(path): str(column["name"])
        for column in _rows(document, "columns")
        for path in column["fields"]
    }


def _row_words(reason: Document, row: Document, texts: Texts) -> str:
    """Why a line is not sent: in the platform's words, or in those of the page."""
    if row.get("message"):
        return str(row["message"])
    if reason["outcome"] in _ASKED:
        return texts.known(str(row["words"]).partition(_PART)[0])  # the page asks what to do
    return _problem_words(reason["code"], row["words"], texts)


def _problem_words(code: object, words: object, texts: Texts) -> str:
    """The words of a problem by its code; of a line that only differs, part by part."""
    text = str(words)
    own = problems_in(texts, str(code), text)
    if own == text:
        own = _PART.join(texts.reworded(part, "reason", "note") for part in text.split(_PART))
    return texts.without_requests(own)


def _correction(
    line: int, problems: Sequence[_Problem], columns: Sequence[str], settled: Settled
) -> Correction:
    """A line with all its problems."""
    wrong = {name for problem in problems for name in problem.columns}
    cells = problems[0].cells
    key = cells_key(cells)
    sent = settled.sent.get(key)
    is_left_out = sent is None and key in settled.left_out
    is_settled = sent is not None or is_left_out
    return Correction(
        line=line,
        reason=" · ".join(dict.fromkeys(problem.words for problem in problems)),
        cells=[
            Cell(f"cell:{line}:{at}", cells.get(name, ""), name, name in wrong and not is_settled)
            for at, name in enumerate(columns)
        ],
        is_of_others=all(problem.is_of_others for problem in problems),
        is_totals=all(problem.is_totals for problem in problems),
        sent=sent,
        is_left_out=is_left_out,
    )


def _failing_columns(document: Document) -> str:
    """The columns for which every line of several is rejected."""
    changes = _part(document, "changes")
    lines = changes.get("lines", 0)
    columns_of = _columns_by_field(document)
    failing = [
        columns_of.get(str(reason["field"]), "")
        for reason in _rows(changes, "reasons")
        if reason["outcome"] == "rejected" and reason["lines"] == lines > 1
    ]
    return ", ".join(filter(None, failing))


def _counts(counts: Mapping[str, int], texts: Texts) -> list[Count]:
    return [
        Count(outcome, _outcome(outcome, texts, lines), lines)
        for outcome, lines in counts.items()
        if lines
    ]


def _begun_counts(
    agreement: Agreement | None, counts: Mapping[str, int], texts: Texts
) -> list[Count]:
    """The requests of a plan that was begun, and the lines of which none is sent."""
    if agreement is None:
        return []
    ended = agreement.planned - agreement.operations
    requests = {"ended": ended, "left": agreement.operations}
    unsent = {outcome: lines for outcome, lines in counts.items() if outcome not in _SENT}
    return _counts({**requests, **unsent}, texts)


def _outcome(outcome: str, texts: Texts, lines: int) -> str:
    """An outcome in words that follow the number of its lines."""
    return texts.or_own(f"outcome.{outcome}", outcome.replace("_", " "), count=lines)


def _results(push: Document) -> dict[str, int]:
    """The lines by outcome, of those by file and outcome: `confirmed.confirmed`, `unsent.exists_now`."""
    lines: Mapping[str, int] = push.get("lines") or {}
    return {name.rpartition(".")[2]: count for name, count in lines.items()}


def _changes(rows: Sequence[Document], texts: Texts) -> Iterator[Change]:
    """The changes of records, one for a line and a record: what may add up travels in a request of its own."""
    together: dict[tuple[int, str, str], list[Value]] = {}
    for one in rows:
        if one.get("record"):
            about = " · ".join(one.get("about") or ())
            values = together.setdefault((one["line"], about, one["record"]), [])
            values += [_value(value, texts) for value in one["values"]]
    for (line, about, record), values in together.items():
        yield Change(line, about, texts.record(record), values)


def _value(value: Document, texts: Texts) -> Value:
    old, new = value.get("old"), value.get("new")
    if value["field"] in _MONEY:
        old, new = (float(one) if isinstance(one, int) else one for one in (old, new))
    return Value(
        texts.field(str(value["field"])),
        _text(old, texts),
        _text(new, texts),
        texts.or_own(f"how.{value.get('how')}", ""),
    )


def _new_records(rows: Sequence[Document], texts: Texts) -> NewRecords:
    """The rows that are no changes of a record."""
    fields: dict[str, None] = {}
    records: list[tuple[int, dict[str, str]]] = []
    for one in rows:
        if not one.get("record"):
            values: dict[str, str] = {}
            for each in one["values"]:
                values |= _columns_of(str(each["field"]), each["new"], texts)
            fields |= dict.fromkeys(values)
            records.append((one["line"], values))
    return NewRecords(
        fields=[texts.field(name) for name in fields],
        rows=[(line, [values.get(name, "") for name in fields]) for line, values in records],
    )


def _columns_of(field: str, value: object, texts: Texts) -> dict[str, str]:
    """A value by the names of its columns: documents have one for each of their fields."""
    if field != _DOCUMENTS or not isinstance(value, list):
        return {field: _text(value, texts)}
    names = dict.fromkeys(name for document in value for name in document)
    return {
        f"{_DOCUMENTS}[0].{name}": _text([document.get(name) for document in value], texts)
        for name in names
    }


def _difference(one: Document, texts: Texts) -> Difference:
    return Difference(
        one["line"],
        " · ".join(one.get("about") or ()),
        texts.field(str(one["field"])),
        _text(one["file_value"], texts),
        _text(one["platform_value"], texts),
    )


def _lines_corrected_apart(document: Document, corrected: Collection[int]) -> set[int]:
    """The rejected lines that have a page of corrections."""
    return {
        row["line"]
        for reason in _rejections(document)
        for row in reason["rows"]
        if row["line"] in corrected
    }


def _with_settled(
    counts: Mapping[str, int], done: Collection[int], left_out: Collection[int]
) -> Mapping[str, int]:
    """The counts, in which lines corrected apart or left out are not rejected; none where nothing is counted."""
    if not counts:
        return counts
    rejected = counts.get("rejected", 0) - len(done) - len(left_out)
    return {**counts, "rejected": rejected, "corrected": len(done), "left_out": len(left_out)}


def _without(one: Document, done: Collection[int]) -> Document:
    """A reason without the lines that are done."""
    rows = [row for row in one["rows"] if row["line"] not in done]
    return {**one, "rows": rows, "lines": one["lines"] - (len(one["rows"]) - len(rows))}


def _reasons(found: Sequence[Document], texts: Texts, done: Collection[int]) -> list[Reason]:
    """The reasons of lines but for those that are done; those in the same words are one."""
    reasons: dict[tuple[str, str], Reason] = {}
    left = [_without(one, done) if one["outcome"] in _CORRECTABLE else one for one in found]
    for one in filter(itemgetter("lines"), left):
        reason = _reason(one, texts)
        key = (reason.outcome, reason.words)
        before = reasons.get(key)
        reasons[key] = reason if before is None else _joined(before, reason, texts)
    return [*reasons.values()]


def _joined(one: Reason, other: Reason, texts: Texts) -> Reason:
    lines = one.lines + other.lines
    rows = [*one.rows, *other.rows][:ROWS_MAX]
    hidden = lines - len(rows) if rows else 0
    words = _outcome(one.outcome, texts, lines)
    return replace(one, outcome_words=words, lines=lines, rows=rows, hidden=hidden)


def _reason(one: Document, texts: Texts) -> Reason:
    outcome = str(one["outcome"])
    shown = () if outcome in _COMPARED else one["rows"]
    rows = [(row["line"], _row_words(one, row, texts)) for row in shown]
    words = _problem_words(one["code"], one["words"], texts)
    if len({row["words"] for row in one["rows"]}) > 1:
        words = texts("plan.for_example", words=words)
    return Reason(
        outcome=outcome,
        outcome_words=_outcome(outcome, texts, one["lines"]),
        words=texts.or_own(f"plan.why.{outcome}", words),
        lines=one["lines"],
        rows=rows[:ROWS_MAX],
        hidden=max(0, one["lines"] - len(rows[:ROWS_MAX])) if shown else 0,
    )


def _suspicious(document: Document, texts: Texts) -> Iterator[str]:
    plan = _part(document, "plan")
    if jumps := _rows(plan, "price_jumps"):
        count = plan.get("price_jumps_in_all") or len(jumps)
        names = _names_by_line(document)
        shown_jumps = [_jump(one, names, texts) for one in jumps[:_JUMPS_SHOWN]]
        more = " …" if count > len(shown_jumps) else ""
        yield f"{texts('plan.jumps', count=count)}: {', '.join(shown_jumps)}{more}"
    for one in _rows(plan, "suspicious"):
        code = f"suspicious.{one['code']}"
        field = texts.field(str(one["field"]))
        words = texts.or_own(code, str(one["words"]), field=field)
        shown = texts.or_own(f"page.{code}", words, field=field)
        first = [*map(str, one["first"])]
        more = " …" if one["lines"] > len(first) else ""
        lines = texts("correct.lines", count=one["lines"], lines=f"{', '.join(first)}{more}")
        yield f"{shown}: {lines}"


def _names_by_line(document: Document) -> dict[int, str]:
    """What a person knows the record of a line by, of the changes that are shown."""
    changes = _rows(_part(document, "changes"), "changes")
    return {one["line"]: " · ".join(one.get("about") or ()) for one in changes}


def _jump(one: Document, names: Mapping[int, str], texts: Texts) -> str:
    """A price that changes very much, with its line and its article."""
    before = _text(float(one["before"]), texts)
    now = _text(float(one["now"]), texts)
    name = names.get(one["line"], "")
    about = f", {name}" if name else ""
    return texts("plan.jump", line=one["line"], about=about, before=before, now=now)


def _agreement(one: Document | None, counts: Mapping[str, int], texts: Texts) -> Agreement | None:
    if one is None:
        return None
    operations = one["operations"]
    planned = one.get("planned", operations)
    return Agreement(
        operations=operations,
        planned=planned,
        lines=_lines_to_send(counts) if operations == planned else 0,
        is_production=one["environment"] == "production",
        target=_target(str(one["host"]), str(one["environment"]), texts),
        messages=one.get("messages") or 0,
        passwords=one.get("passwords") or "",
        doubts=one.get("doubts") or 0,
    )


def _target(host: str, environment: str, texts: Texts) -> str:
    """Where a file is sent, in words: a sandbox on this machine is for trying."""
    address = urlsplit(host)
    if environment == "sandbox" and is_loopback(address.hostname or ""):
        return texts("send.to.here")
    return texts(f"send.to.{environment}", host=address.netloc)


def lines_to_confirm(document: Document) -> int:
    """Lines of an import that are sent once a person confirms it; none where it waits for nothing."""
    is_waiting = document.get("agreement") is not None
    return _lines_to_send(_part(_part(document, "changes"), "counts")) if is_waiting else 0


def _lines_to_send(counts: Mapping[str, int]) -> int:
    return sum(counts.get(outcome) or 0 for outcome in _SENT)


def _next_steps(document: Document, texts: Texts, *, corrects: bool) -> list[Link]:
    """What to do; `corrects`: correcting single lines is one of it."""
    steps = _rows(document, "next")
    return [_next(one, texts) for one in steps if corrects or one["action"] != "correct"]


def _next(one: Document, texts: Texts) -> Link:
    """What to do after an import; the command where the page has no button or table for it."""
    action = str(one.get("action"))
    return Link(
        texts.or_own(f"next.{action}", str(one.get("words", ""))),
        command="" if action in _ON_THE_PAGE else str(one.get("command") or ""),
    )


def _text(value: object, texts: Texts) -> str:
    """A value for people: that of a list or an object is its values."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return texts("answer.yes" if value else "answer.no")
    if isinstance(value, float):
        return texts.number(value, ",.2f" if round(value, 2) == value else ",")
    if isinstance(value, Mapping):
        return " · ".join(filter(None, (_text(one, texts) for one in value.values())))
    if isinstance(value, list):
        return "; ".join(filter(None, (_text(one, texts) for one in value)))
    return str(value)
