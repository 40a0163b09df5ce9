"""A mapping proposed from column names (the interface's own, and those of `column_names.toml`) and first values.

In: the column names of a file, and some cells of each. Out: a mapping that a person can save and edit, the columns that
match no field, and the fields that several columns match. Values veto a name (`Mail` with `yes` and `no`) and show what
a name does not (a column of different e-mail addresses, companies in a column for first names).
"""

from __future__ import annotations

import re
import tomllib
import unicodedata
from collections.abc import Mapping as Pairs
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Final, Literal

from orderbridge.pipelines.mapping.field_paths import all_paths, resolve
from orderbridge.pipelines.mapping.model import MappedColumn, Mapping
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import SourceTable
from orderbridge.sources.inputs import pairs
from orderbridge.sources.kinds import KINDS

_ATTRIBUTES: Final = (
    "color",
    "colour",
    "talla",
    "size",
    "tamaño",
    "material",
    "sabor",
    "flavour",
    "flavor",
)
"""Column names that become an attribute of the same name, for kinds that have attributes."""
_SAMPLE_ROWS: Final = 500
_EMAIL: Final = re.compile(r"[^@\s;,]+@[^@\s;,]+\.[^@\s;,.]+")
_COMPANY: Final = re.compile(
    r"\b(?:s\.?l\.?(?:u\.?)?|s\.?a\.?|s\.?r\.?l\.?|s\.?a\.?s\.?|s\.?p\.?a\.?|gmbh|ag|kg|lda\.?|ltda?\.?|inc\.?|llc)$",
    re.I,
)
_SHOWN_BY: Final = {
    "email": re.compile("@"),
    "phone": re.compile("[0-9].*[0-9].*[0-9]"),
    "url": re.compile("[./]"),
}
"""What at least one cell of a field contains, by the last part of its path."""
_DIGIT: Final = re.compile("[0-9]")
_ENOUGH: Final = 3
"""Cells that outweigh a name; fewer are rejected row by row if they are no values of the field."""
_SHARE: Final = 0.9
_COMPANIES: Final = 0.2
"""Share of cells that end with the legal form of a company, where the column is of companies; many have none."""


def propose(
    columns: Sequence[str],
    kind: str,
    *,
    conflicts: Literal["error", "leave"] = "error",
    samples: Pairs[str, Sequence[str]] | None = None,
) -> Mapping:
    """A mapping by column names and `samples`: cells by column, as `sample` reads them.

    Columns that match no field are `unknown`. A name of `[weak]` fills a field that no other column fills. If several
    columns match the same field, that is an error, or with `leave` all of them are unknown and the field `contested`.

    Raises:
        UsageError: several columns match the same field.
    """
    cells = {
        name: [cell for cell in (samples or {}).get(name, ()) if cell.strip()] for name in columns
    }
    claims: dict[str, list[str]] = {}
    for is_weak in (False, True):
        found: dict[str, list[str]] = {}
        for name in columns:
            path = _path(name, kind, is_weak=is_weak)
            is_vetoed = path is not None and path != name and _contradicts(kind, path, cells[name])
            if path is not None and path not in claims and not is_vetoed:
                found.setdefault(path, []).append(name)
        claims |= found
    if (
        "firstName" not in claims
        and "lastName" in claims
        and claims["lastName"][0] in _weak_names(kind, columns)
    ):
        del claims["lastName"]  # `Name` alone is that of a person or of a company
    if samples is not None:
        _look_at_values(claims, columns, cells, kind)
    contested = {
        path: names
        for path, all_names in claims.items()
        if len(names := _with_values(all_names, cells)) > 1
    }
    if contested and conflicts == "error":
        raise UsageError(
            "; ".join(
                f"{' and '.join(map(repr, names))} both match {path}"
                for path, names in contested.items()
            ),
            f"Choose one in a mapping file. To create one: orderbridge template {kind} --mapping --for FILE",
        )
    chosen = {
        _with_values(names, cells)[0]: path
        for path, names in claims.items()
        if path not in contested
    }
    mapped = {name: MappedColumn(name, chosen[name]) for name in columns if name in chosen}
    unknown = tuple(name for name in columns if name not in mapped)
    return Mapping(
        kind,
        mapped,
        unknown=unknown,
        contested={path: tuple(names) for path, names in contested.items()},
    )


def sample(table: SourceTable) -> dict[str, list[str]]:
    """The first cells of each column, without rejected rows. Raises UsageError if the file cannot be read."""
    batch = next(table.batches(_SAMPLE_ROWS, lambda _: None), None)
    return {name: batch[name].to_pylist() if batch is not None else [] for name in table.columns}


def normalize(header: str) -> str:
    """A column name without case, accents, punctuation and spaces; letters of other scripts stay."""
    letters = unicodedata.normalize("NFKD", header).casefold()
    return re.sub(r"[\W_]", "", letters)


def _with_values(names: Sequence[str], cells: Pairs[str, Sequence[str]]) -> Sequence[str]:
    """The columns that are not empty; all of them if none has a value."""
    return [name for name in names if cells[name]] or names


def _contradicts(kind: str, path: str, cells: Sequence[str]) -> bool:
    """Whether no cell looks like a value of the field."""
    field = resolve(kind, path)
    shown = _SHOWN_BY.get(path.rpartition(".")[2])
    if shown is None and not isinstance(field, str) and field.field.type in ("number", "integer"):
        shown = _DIGIT
    return shown is not None and len(cells) >= _ENOUGH and not any(map(shown.search, cells))


def _look_at_values(
    claims: dict[str, list[str]],
    columns: Sequence[str],
    cells: Pairs[str, Sequence[str]],
    kind: str,
) -> None:
    """Corrects what names claim for customers by what the cells show."""
    if not KINDS[kind].has_login:
        return
    taken = {name for names in claims.values() for name in names}
    if "email" not in claims:  # one of a salesman or a branch repeats
        found = [name for name in columns if name not in taken and _is_email_column(cells[name])]
        if len(found) == 1:
            claims["email"] = found
    names = set(claims.get("firstName", ())) if "lastName" not in claims else set()
    companies = [
        name for name in columns if name not in taken - names and _is_of_companies(cells[name])
    ]
    if names & {*companies}:
        del claims["firstName"]
    if len(companies) == 1:
        claims.setdefault("documents[0].fiscalName", companies)


def _is_of_companies(cells: Sequence[str]) -> bool:
    return sum(_COMPANY.search(cell.strip()) is not None for cell in cells) > _COMPANIES * len(
        cells
    )


def _is_email_column(cells: Sequence[str]) -> bool:
    emails = [cell for cell in cells if _EMAIL.fullmatch(cell.strip())]
    return (
        bool(cells)
        and len(emails) >= _SHARE * len(cells)
        and len(set(emails)) >= _SHARE * len(emails)
    )


def _weak_names(kind: str, columns: Sequence[str]) -> set[str]:
    return {name for name in columns if normalize(name) in _known(kind, is_weak=True)}


def _path(header: str, kind: str, *, is_weak: bool) -> str | None:
    known, name = _known(kind, is_weak=is_weak), normalize(header)
    if is_weak:
        return known.get(name)
    if not isinstance(resolve(kind, header), str):
        return header
    if name in known:
        return known[name]
    if any(name == normalize(word) for word in _ATTRIBUTES):
        return next((f"{array}.{header.strip()}" for array in pairs(kind)), None)
    numbered = re.fullmatch(r"(\D+?)([1-9])", name)
    if numbered and "[0]" in known.get(numbered[1], ""):
        path = known[numbered[1]].replace("[0]", f"[{int(numbered[2]) - 1}]")
        # `Address 2` is the second line of an address, not the address of a second document
        is_line = (
            numbered[2] != "1" and path.startswith("documents") and not path.endswith(".number")
        )
        return None if is_line or isinstance(resolve(kind, path), str) else path
    return None


@cache
def _known(kind: str, *, is_weak: bool) -> dict[str, str]:
    """Field paths by normalized column name; of each array, the first item.

    A field inside another is also known by its own name if that is compound: `Name`, `Value`, `URL` or `Number` alone
    are mostly of something else.
    """
    tables = tomllib.loads(
        files("orderbridge.pipelines.mapping").joinpath("column_names.toml").read_text("utf-8")
    )
    common = (tables["weak"] if is_weak else tables).get(kind, {})
    first = {path.removesuffix("[0]"): path for path in all_paths(kind)}
    known = {
        normalize(word): first.get(path, path)
        for path, words in common.items()
        for word in words.split(",")
    }
    for name, path in reversed(first.items()) if not is_weak else ():
        known[normalize(name.replace("[0]", ""))] = path
        own = name.rpartition(".")[2]
        if own != own.lower():
            known.setdefault(normalize(own), path)
    return known
