"""The `Mapping` value, shared by the TOML reader and writer, the proposal and the import.

A field path names the target of a column: `price`, `documents[0].number` (the first document), `images[+].url` (one
image per line of a group), `attributes.Color` (the attribute named Color).
"""

from __future__ import annotations

from collections.abc import Mapping as Pairs
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

from orderbridge.pipelines.mapping.field_paths import root_of
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.kinds import KINDS, PASSWORD, Semantics

Scalar = str | int | float | bool
Blank = Literal["omit", "clear", "reject"]
GeneratePasswords = Literal["mail", "file"]
Send = Literal["always", "changed"]


@dataclass(frozen=True, slots=True)
class Formats:
    """How the text of cells is parsed. None in a column: as in the file; None in the file: detected per column.

    Attributes:
        decimal: the decimal mark.
        thousands: the mark between groups of three digits; "" for none.
        currency: the sign or code before or after the numbers.
        date: a form made of `YYYY`, `MM`, `DD` and separators.
        yes, no: words for true and false, case-insensitive.
        empty: texts that count as an empty cell, e.g. `NULL`.
    """

    decimal: str | None = None
    thousands: str | None = None
    currency: str | None = None
    date: str | None = None
    yes: tuple[str, ...] | None = None
    no: tuple[str, ...] | None = None
    empty: tuple[str, ...] | None = None

    def over(self, defaults: Formats) -> Formats:
        """These formats, completed from the file's defaults. Marks and boolean words are taken in pairs."""
        values: dict[str, Any] = {}
        for names in (
            ("decimal", "thousands"),
            ("currency",),
            ("date",),
            ("yes", "no"),
            ("empty",),
        ):
            own = {name: getattr(self, name) for name in names}
            is_given = any(value is not None for value in own.values())
            values |= own if is_given else {name: getattr(defaults, name) for name in names}
        return Formats(**values)


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of the file and the field that it fills.

    Attributes:
        field: a field path; None for an ignored column.
        also: further field paths that get the same value.
        blank: what an empty cell does: leave the field out, clear it (send an empty text, where the interface allows
            one), or reject the row.
        change: the numbers are changes, not new values (for fields with `increment` semantics).
        trim: whether surrounding spaces are removed. Passwords are never trimmed.
        send: of an update: whether the value is sent with every plan, or when it differs from what was last confirmed;
            None: always for a stock that is set, else when changed.
        answered: a person has said that this is the field, whatever name and values show.
    """

    name: str
    field: str | None
    also: tuple[str, ...] = ()
    formats: Formats = Formats()
    blank: Blank = "omit"
    default: Scalar | None = None
    change: bool = False
    trim: bool = True
    send: Send | None = None
    answered: bool = False

    @property
    def paths(self) -> tuple[str, ...]:
        """The field paths that it fills."""
        return (self.field, *self.also) if self.field else ()


@dataclass(frozen=True, slots=True)
class Lookup:
    """Fields whose values come from another file.

    Attributes:
        file: the file as written in the mapping.
        path: the file's resolved location.
        match: column of the input → column of the lookup file; all pairs must be equal.
        give: field path → column of the lookup file.
    """

    file: str
    path: Path
    match: dict[str, str]
    give: dict[str, str]


@dataclass(frozen=True, slots=True)
class Mapping:
    """How the rows of a file become inputs of one kind.

    Attributes:
        columns: mapped and ignored columns by name, in the mapping's order.
        formats: the file's default formats.
        constants: field path → value for every input.
        generate_passwords: passwords are generated, and mailed by the platform or written to a file.
        group: columns whose equal values make consecutive lines one input.
        fill_down: columns whose empty cells take the value above.
        fill_within: fill down only while these columns do not change.
        skip_blank: skip a line in which all of these columns are empty.
        strict: a column of the file that is neither mapped nor ignored is an error.
        ignores_others: such columns are ignored without a word.
        path: the mapping file; None for a proposal.
        unknown: of a proposal, the columns that match no field.
        contested: of a proposal, the fields that several columns match, with those columns.
        doubtful: of a proposal, the columns of which neither name nor values prove the field, with the likeliest one.
        guesses: of a proposal, other unknown columns, with a field that a part of the name suggests.
        unchecked: of a proposal, the doubtful columns whose values are not among those known from the platform.
        unfilled: columns without values, which may be price lists once they have some: then a question is asked.
    """

    kind: str
    columns: dict[str, MappedColumn]
    read_options: ReadOptions = field(default_factory=ReadOptions)
    formats: Formats = field(default_factory=Formats)
    constants: dict[str, Scalar] = field(default_factory=dict)
    generate_passwords: GeneratePasswords | None = None
    group: tuple[str, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    fill_down: tuple[str, ...] = ()
    fill_within: tuple[str, ...] = ()
    skip_blank: tuple[str, ...] = ()
    strict: bool = False
    ignores_others: bool = False
    path: Path | None = None
    unknown: tuple[str, ...] = ()
    contested: dict[str, tuple[str, ...]] = field(default_factory=dict)
    doubtful: dict[str, str] = field(default_factory=dict)
    guesses: dict[str, str] = field(default_factory=dict)
    unchecked: tuple[str, ...] = ()
    unfilled: tuple[str, ...] = ()

    @property
    def used_columns(self) -> list[str]:
        """Every column that the file must have, those that are mapped first."""
        names = [name for name, column in self.columns.items() if column.field is not None]
        names += [*self.group, *self.fill_down, *self.fill_within, *self.skip_blank]
        return list(
            dict.fromkeys([*names, *(name for lookup in self.lookups for name in lookup.match)])
        )

    @property
    def has_lines_of_groups(self) -> bool:
        """Whether a line with a few cells is one that others are filled from, that belongs to others, or is skipped."""
        return bool(self.group or self.fill_down or self.fill_within or self.skip_blank)

    @property
    def password_column(self) -> str | None:
        """The column with the passwords."""
        return next(
            (name for name, column in self.columns.items() if PASSWORD in column.paths), None
        )

    def with_passwords(self, generate: GeneratePasswords | None) -> Mapping:
        """A copy with this choice of generated passwords; None leaves it, and kinds without a login have none."""
        has_login = KINDS[self.kind].has_login
        return (
            replace(self, generate_passwords=generate or self.generate_passwords)
            if has_login
            else self
        )

    def with_row_checks(self, *, all_checks: bool) -> Mapping:
        """A copy that checks lines by all rules, or as version 0.3 did."""
        return replace(self, read_options=replace(self.read_options, checks_rows=all_checks))

    def always_sent(self, semantics: Pairs[str, Semantics]) -> frozenset[str]:
        """The fields of updates that are sent although they are as last confirmed: orders change a stock since."""
        given = {path: None for lookup in self.lookups for path in lookup.give} | dict.fromkeys(
            self.constants
        )
        paths = given | {
            path: column.send for column in self.columns.values() for path in column.paths
        }
        names = {root_of(path): send for path, send in paths.items()}
        return frozenset(
            name
            for name, send in names.items()
            if send == "always"
            or (send is None and name == "stock" and semantics.get(name) == "set")
        )

    def explain(self, ignored: str = "ignored") -> list[str]:
        """One line per column and lookup, aligned: the columns and the fields that they fill."""
        targets = self._targets(ignored)
        width = max(map(len, targets), default=0)
        return [f"{name:<{width}}  {target}" for name, target in targets.items()]

    def explain_briefly(self, ignored: str) -> str:
        """The same as one line."""
        return ", ".join(f"{name} {target}" for name, target in self._targets(ignored).items())

    def _targets(self, ignored: str) -> dict[str, str]:
        """What each column and lookup fills."""
        targets = {
            name: f"→ {', '.join(column.paths)}" if column.field else ignored
            for name, column in self.columns.items()
        } | dict.fromkeys(self.unknown, "matches no field")
        targets |= {name: f"may be {path}: not proven" for name, path in self.doubtful.items()}
        return targets | {
            f"{', '.join(lookup.match)} in {lookup.path.name}": f"→ {', '.join(lookup.give)}"
            for lookup in self.lookups
        }
