"""Which column of a raw table holds a field, by names and values: the evidence that a question about it rests on.

In: the columns of a raw table, the names that platforms give a field, and the answers in force. Out: for each field the
columns that fit it, with what their values are in counts and a few examples; and what contradicts an answer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from orderbridge.transforms.chance import Share
from orderbridge.transforms.orders.columns import SCALARS, ColumnFacts, Kind, RawColumns
from orderbridge.transforms.questions import Answer, Choice, is_broken

FILLED_SHARE_MIN: Final = 0.9
"""Share of the orders that must have a date and a status, and a value in any column that is kept."""
NOT_PROVEN: Final = "no column is certain by its name and values"
_DATE: Final = re.compile(r"\d{4}-?\d\d-?\d\d|\d{1,2}[/.-]\d{1,2}[/.-]\d{2,4}|1\d{9}(\d{3})?$")
"""Texts that are dates or times, in whatever form."""
_OFFERED_MAX: Final = 8
"""So many columns are offered where none has a known name."""


@dataclass(frozen=True, slots=True)
class FieldRule:
    """How a column is recognized as that of a field.

    Attributes:
        question: about the field: the key of its setting.
        names: that platforms give it, the preferred first.
        kind: what its values are.
        share_min: the least share of rows whose values must be so.
    """

    question: str
    names: Sequence[str]
    kind: Kind
    share_min: float


@dataclass(frozen=True, slots=True)
class ExaminedColumns:
    """The columns of a raw table that may hold its fields, with what their values are.

    Attributes:
        table: the columns.
        rules: by field.
        names: of the columns that may hold a field.
        facts: of the columns whose values were read.
        recent: by field, the rows since an answer that have a value in the column that it names, by run.
        fitting: by field, the columns with one of its names and values that fit, the preferred name first.
        evidence: by column, what its values are, in counts.
        examples: by column, a few of its values.
    """

    table: RawColumns
    rules: Mapping[str, FieldRule]
    names: Sequence[str]
    facts: dict[str, ColumnFacts]
    recent: Mapping[str, Sequence[Share]]
    fitting: dict[str, list[str]]
    evidence: dict[str, str]
    examples: dict[str, Sequence[str]]

    @classmethod
    def of(
        cls,
        table: RawColumns,
        rules: Mapping[str, FieldRule],
        answers: Mapping[str, Answer],
        also: Mapping[str, set[Kind]],
    ) -> ExaminedColumns:
        """Reads the columns that may hold a field, and those that answers name.

        Args:
            table: the columns.
            rules: by field.
            answers: in force, by the id of their question; also about fields without a rule.
            also: further columns to read, with the kinds that their values may be of.
        """
        names = [name for name in sorted(table.kinds) if _may_hold_field(table, name)]
        used: dict[str, Answer] = {}
        recent: dict[str, Sequence[Share]] = {}
        for name, rule in rules.items():
            answer = answers.get(rule.question)
            if answer is None or answer.value not in table.kinds:
                continue
            used[name] = answer
            if answer.at is not None:
                recent[name] = table.filled_by_run(answer.value, answer.at)
        facts = _read(table, _wanted(names, rules, used, also))
        made = cls(table, rules, names, facts, recent, {}, {}, {})
        made.examples.update({name: of_column.examples for name, of_column in facts.items()})
        for name in rules:
            made.fitting[name] = [column for column in made.named(name) if made.fits(name, column)]
        return made

    @property
    def rows(self) -> int:
        """The number of rows of listed orders."""
        return self.table.rows

    @property
    def kinds(self) -> Mapping[str, object]:
        """The type of each column."""
        return self.table.kinds

    def named(self, field: str) -> list[str]:
        """The columns with a name of a field, the preferred first."""
        return [name for name in self.rules[field].names if name in self.names]

    def fits(self, field: str, column: str) -> bool:
        """Whether enough values of a column that was read fit a field. Keeps the counts as its evidence."""
        rule = self.rules[field]
        count, self.evidence[column] = self.facts[column].fitting(rule.kind, self.rows)
        return bool(count) and count >= rule.share_min * self.rows

    def others(self, field: str, related: re.Pattern[str] | None = None) -> list[str]:
        """Columns without a name of a field that may hold it by their values, in the first part of the table.

        They are offered to people where no column has one of its names.

        Args:
            field: its name.
            related: what the names contain that come first. A text without such a name has to be a date, and words
                have to be repeated.
        """
        kind = self.rules[field].kind
        candidates = [one for one in self.names if one not in self.facts]
        facts = _read(self.table, {one: {kind} for one in candidates}, parts=1)
        found: list[str] = []
        for one, of_column in facts.items():
            rows = of_column.rows
            count, words = of_column.fitting(kind, rows)
            is_related = related is None or related.search(one) is not None
            is_like = _is_like(kind, of_column, is_related=is_related)
            if count and is_like and count >= self.rules[field].share_min * rows:
                self.evidence[one] = words
                self.examples[one] = of_column.examples
                found.append(one)
        if related is not None:
            found.sort(key=lambda one: related.search(one) is None)
        return found[:_OFFERED_MAX]

    def given(self, column: str) -> str:
        """In how many orders a column has a value, in words."""
        return f"{self.facts[column].given} of {self.rows} orders"

    def share(self, column: str) -> Share | None:
        """The rows that have a value in a column; None where it was not read."""
        return Share(self.facts[column].given, self.rows) if column in self.facts else None

    def is_filled(self, column: str) -> bool:
        """Whether enough of the rows have a value in a column that was read."""
        return self.facts[column].given >= FILLED_SHARE_MIN * self.rows

    def words(self, column: str, *notes: str) -> str:
        """What the values of a column are, in counts, further notes, and a few of the values."""
        examples = self.examples.get(column, ())
        shown = f"such as {', '.join(examples)}" if examples else ""
        return "; ".join(filter(None, [self.evidence.get(column, ""), *notes, shown]))

    def against(self, field: str, proposal: str | None, answer: Answer) -> tuple[str, bool]:
        """What contradicts the column that an answer names, and whether it can be used all the same."""
        column = answer.value
        if column not in self.kinds:
            return f"{column} is gone, {proposal or 'no column'} is used", False
        share = self.share(column)
        if share is None or field not in self.rules:
            return "", True
        recent = _broken_since(share, self.recent.get(field, ()))
        if recent is not None:
            words = f"{recent.hits} of {recent.rows} new orders have a value"
            return f"{column} is kept, but {words}", True
        if self.rows and is_broken(share, answer.share):
            return f"{column} is kept, but {self.given(column)} have a value", True
        return "", True

    def choices(
        self,
        field: str,
        listed: Sequence[str],
        proposal: str | None,
        answer: Answer | None,
        notes: Mapping[str, str] | None = None,
    ) -> Iterator[Choice]:
        """The columns that may hold a field, and the one that an answer names.

        Args:
            field: its name.
            listed: the columns, the most likely first.
            proposal: the column that is proposed.
            answer: in force.
            notes: what else is known of columns, in words.
        """
        values = [*listed]
        if answer is not None and answer.value not in values:
            values.append(answer.value)
        for value in values:
            against = ""
            is_possible = True
            if answer is not None and value == answer.value:
                against, is_possible = self.against(field, proposal, answer)
            note = (notes or {}).get(value, "")
            share = self.share(value) if field in self.rules else None
            yield Choice(value, self.words(value, note), share, against, is_possible)


def _may_hold_field(table: RawColumns, name: str) -> bool:
    """Whether a column has values of its own, and does not only name a row or keep the books."""
    return table.kinds[name] in SCALARS and name not in table.keys and not name.startswith("_")


def _is_like(kind: Kind, of_column: ColumnFacts, *, is_related: bool) -> bool:
    """Whether values of a kind may be those of a field whose names a column has none of."""
    if kind == "words":
        return 2 * len(of_column.words) <= of_column.rows
    return kind != "text" or is_related or all(map(_DATE.match, of_column.examples))


def _wanted(
    names: Sequence[str],
    rules: Mapping[str, FieldRule],
    used: Mapping[str, Answer],
    also: Mapping[str, set[Kind]],
) -> dict[str, set[Kind]]:
    """The columns to read, with the kinds that their values may be of."""
    wanted = {name: {*kinds} for name, kinds in also.items()}
    for field, rule in rules.items():
        columns = [name for name in rule.names if name in names]
        if field in used:
            columns.append(used[field].value)
        for name in columns:
            wanted.setdefault(name, set()).add(rule.kind)
    return wanted


def _read(
    table: RawColumns, wanted: Mapping[str, set[Kind]], parts: int | None = None
) -> dict[str, ColumnFacts]:
    """What the values of columns are, by their name; `parts` are so many of the first ones, None: all."""
    facts = {name: ColumnFacts(kinds) for name, kinds in wanted.items()}
    for part in islice(table.parts(facts), parts) if facts else ():
        listed = part[~part["is_missing"]]
        others = part[part["is_missing"]]
        for name, of_column in facts.items():
            of_column.add(listed[name], others[name])
    return facts


def _broken_since(of_all: Share, by_run: Sequence[Share]) -> Share | None:
    """The newest orders that no longer have a value, where the older ones have; None where there are none.

    They are those of the last run, or of the last two, four, eight … together: few orders a night prove nothing alone.

    Args:
        of_all: the orders that have a value, of all.
        by_run: of those since the answer, by the run that first saw them, the last first.
    """
    hits = rows = 0
    for number, of_run in enumerate(by_run, 1):
        hits += of_run.hits
        rows += of_run.rows
        is_looked_at = number & (number - 1) == 0
        older = Share(of_all.hits - hits, of_all.rows - rows)
        if is_looked_at and is_broken(Share(hits, rows), older):
            return Share(hits, rows)
    return None
