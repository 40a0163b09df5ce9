"""What a mapping is: which column of a file is which field, and how its texts are read.

In: nothing. Out: values that the TOML reader, the proposal and the inputs share. A path that ends in a position names
one item of an array (`images[1].url`, the second), `[+]` one item a line of a group, `attributes.Color` the attribute
of that name.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Literal

from sources.files import ReadOptions

Scalar = str | int | float | bool
Blank = Literal["omit", "clear", "reject"]
Make = Literal["mail", "file"]


@dataclass(frozen=True, slots=True)
class Formats:
    """How texts are read; None is "as for the file", and there "to be proven by the column".

    Attributes:
        decimal: the decimal mark. thousands: the mark between groups of three digits; "" is none.
        date: of `YYYY`, `MM`, `DD` and what stands between them.
        yes, no: words of a boolean, in any case.
        empty: texts that mean nothing, as they stand, e.g. `NULL`.
    """

    decimal: str | None = None
    thousands: str | None = None
    date: str | None = None
    yes: tuple[str, ...] | None = None
    no: tuple[str, ...] | None = None
    empty: tuple[str, ...] | None = None

    def over(self, file: Formats) -> Formats:
        """These formats, and those of the file where these say nothing."""
        numbers = self if self.decimal is not None or self.thousands is not None else file
        booleans = self if self.yes is not None or self.no is not None else file
        return Formats(
            numbers.decimal,
            numbers.thousands,
            self.date if self.date is not None else file.date,
            booleans.yes,
            booleans.no,
            self.empty if self.empty is not None else file.empty,
        )


@dataclass(frozen=True, slots=True)
class MappedColumn:
    """A column of the file.

    Attributes:
        name: its header.
        field: the path of the field; None where it is ignored.
        also: further fields that get the same.
        formats: where they differ from the file's.
        blank: what an empty cell does: the field is left out, cleared (an empty text or list, where the interface
            allows one), or the row is rejected.
        default: what stands for an empty cell.
        change: the numbers are changes and not new values, as `increment` semantics want.
        trim: blanks around a text are cut; never those of a password.
    """

    name: str
    field: str | None
    also: tuple[str, ...] = ()
    formats: Formats = Formats()
    blank: Blank = "omit"
    default: Scalar | None = None
    change: bool = False
    trim: bool = True


@dataclass(frozen=True, slots=True)
class Lookup:
    """Fields whose values stand in another file.

    Attributes:
        file: as the mapping names it. path: where it is.
        match: column of the input → column of that file; all must be equal.
        give: field → column of that file.
    """

    file: str
    path: Path
    match: dict[str, str]
    give: dict[str, str]


@dataclass(frozen=True, slots=True)
class Mapping:
    """How a file becomes inputs of a kind.

    Attributes:
        kind: of the inputs.
        columns: by their headers, in the mapping's order.
        told: what the intake is told of the file.
        formats: of the file.
        constants: field → value, for every input.
        make: passwords are made, and mailed by the platform or kept in a file.
        group: columns whose equal cells make several lines one input.
        lookups: other files.
        fill_down: columns whose empty cells take the cell above; fill_within: only as long as these columns stay equal.
        skip_blank: a line in which all of these are empty is no input.
        path: of the mapping file; None where it was proposed.
        unknown: of a proposal: columns that fit no field.
    """

    kind: str
    columns: dict[str, MappedColumn]
    told: ReadOptions = field(default_factory=ReadOptions)
    formats: Formats = field(default_factory=Formats)
    constants: dict[str, Scalar] = field(default_factory=dict)
    make: Make | None = None
    group: tuple[str, ...] = ()
    lookups: tuple[Lookup, ...] = ()
    fill_down: tuple[str, ...] = ()
    fill_within: tuple[str, ...] = ()
    skip_blank: tuple[str, ...] = ()
    path: Path | None = None
    unknown: tuple[str, ...] = ()

    def with_passwords(self, make: Make) -> Mapping:
        """The same with passwords that are made."""
        return replace(self, make=make)

    def explain(self) -> list[str]:
        """A line for each column, as a person reads it: what it is taken for."""
        taken = {
            name: f"→ {', '.join((column.field, *column.also))}" if column.field else "ignored"
            for name, column in self.columns.items()
        } | dict.fromkeys(self.unknown, "fits no field")
        width = max(map(len, taken), default=0)
        return [f"{name:<{width}}  {words}" for name, words in taken.items()]
