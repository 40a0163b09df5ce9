"""A mapping proposed from the names of columns and their first values.

In: the column names of a file, and some cells of each. Out: a mapping that a person can save and edit, the columns that
match no field, the fields that several columns match, and the columns that may fill a field without a proof. Values
veto a name (`Mail` with `yes` and `no`), decide what a name leaves open (`Artículo` with codes), and show companies in
a column for first names. Only a person says which addresses are the login, if no name does.
"""

from __future__ import annotations

from collections.abc import Mapping as Pairs
from collections.abc import Sequence
from dataclasses import replace
from typing import Final, Literal

from orderbridge.pipelines.mapping.column_names import (
    Strength,
    affixed_name,
    guesses_of,
    is_name,
    is_of_others,
    normalize,
    paths_of,
)
from orderbridge.pipelines.mapping.column_values import (
    are_companies,
    are_emails,
    are_image_urls,
    are_own_companies,
    are_wide_codes,
    casts_doubt,
    contradicts,
    proves,
    reads_as_names,
)
from orderbridge.pipelines.mapping.field_paths import resolve
from orderbridge.pipelines.mapping.model import MappedColumn, Mapping
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import SourceTable
from orderbridge.sources.kinds import KINDS

_SAMPLE_ROWS: Final = 500
_FISCAL_NAME: Final = "documents[0].fiscalName"
_IMAGE_URL: Final = "images[0].url"
_NUMBERS: Final = ("no", "nr")
"""The bare number of a row, as `No.` and `Nr.` are normalized: a code, a house number or a counter."""


def propose(
    columns: Sequence[str],
    kind: str,
    *,
    conflicts: Literal["error", "leave"] = "error",
    samples: Pairs[str, Sequence[str]] | None = None,
) -> Mapping:
    """A mapping by column names and `samples`: cells by column, as `sample` reads them.

    Columns that match no field are `unknown`. Those of which neither name nor values prove a field are `doubtful` too.
    If several columns match the same field, that is an error, or with `leave` all of them are unknown and the field
    `contested`.

    Raises:
        UsageError: several columns match the same field.
    """
    cells = {
        name: [cell for cell in (samples or {}).get(name, ()) if cell.strip()] for name in columns
    }
    claims = _Claims(kind, columns, cells, has_samples=samples is not None)
    contested = {path: tuple(names) for path, names in claims.found.items() if len(names) > 1}
    if conflicts == "error":
        _refuse({path: contested[path] for path in contested if path in claims.by_name}, kind)
    chosen = {names[0]: path for path, names in claims.found.items() if path not in contested}
    mapped = {name: MappedColumn(name, chosen[name]) for name in columns if name in chosen}
    unknown = tuple(name for name in columns if name not in mapped)
    doubtful = {name: path for name, path in claims.doubtful.items() if name in unknown}
    return Mapping(
        kind,
        mapped,
        unknown=unknown,
        contested=contested,
        doubtful=doubtful,
        guesses=claims.guesses,
    )


def _refuse(contested: Pairs[str, Sequence[str]], kind: str) -> None:
    """Raises UsageError for the fields that several columns match, if there are any."""
    if not contested:
        return
    problems = [
        f"{' and '.join(map(repr, names))} both match {path}" for path, names in contested.items()
    ]
    raise UsageError(
        "; ".join(problems),
        f"Choose one in a mapping file. To create one: orderbridge template {kind} --mapping --for FILE",
    )


def assume(proposed: Mapping, samples: Pairs[str, Sequence[str]]) -> Mapping:
    """The proposal with its doubtful columns that no value speaks against: for a figure, never for a write."""
    claimed = {column.field for column in proposed.columns.values()}
    assumed: dict[str, str] = {}
    for name, path in proposed.doubtful.items():
        if path not in claimed and not casts_doubt(path, samples[name]):
            assumed[name] = path
            claimed.add(path)
    columns = proposed.columns | {name: MappedColumn(name, path) for name, path in assumed.items()}
    unknown = tuple(name for name in proposed.unknown if name not in assumed)
    return replace(proposed, columns=columns, unknown=unknown)


def doubts(
    mapping: Mapping, columns: Sequence[str], samples: Pairs[str, Sequence[str]]
) -> dict[str, str]:
    """The columns of a mapping whose field neither name nor values prove, and no person has answered."""
    proposed = propose(columns, mapping.kind, conflicts="leave", samples=samples)
    found: dict[str, str] = {}
    for name, column in mapping.columns.items():
        field = column.field
        if field is None or column.answered or name not in columns:
            continue
        is_of_others_address = field == "email" and is_of_others(name)
        if is_of_others_address or proposed.doubtful.get(name) == field:
            found[name] = field
    return found


def contested_columns(
    mapping: Mapping, columns: Sequence[str], samples: Pairs[str, Sequence[str]]
) -> dict[str, str]:
    """The columns of a mapping, and their fields, that would not be proposed so, and no person has answered."""
    proposed = propose(columns, mapping.kind, conflicts="leave", samples=samples).columns
    return {
        name: column.field
        for name, column in mapping.columns.items()
        if column.field and not column.answered and not _has_field(proposed, name, column.field)
    }


def is_improbable(path: str, cells: Sequence[str]) -> bool:
    """Whether the values speak against a field that a name means: it is asked about, and not proposed."""
    return casts_doubt(path, cells) or reads_as_names(path, cells)


def _has_field(columns: Pairs[str, MappedColumn], name: str, field: str) -> bool:
    return name in columns and columns[name].field == field


def sample(table: SourceTable) -> dict[str, list[str]]:
    """The first cells of each column, without rejected rows. Raises UsageError if the file cannot be read."""
    batch = next(table.batches(_SAMPLE_ROWS, lambda _: None), None)
    return {name: batch[name].to_pylist() if batch is not None else [] for name in table.columns}


def is_empty(cells: Sequence[str]) -> bool:
    """Whether a column has no values among these cells."""
    return not any(map(str.strip, cells))


def sample_of_all(table: SourceTable) -> dict[str, list[str]]:
    """As `sample`, but of a column that is empty there its first values in later rows: it is empty in all rows here.

    Raises:
        UsageError: the file cannot be read.
    """
    samples = sample(table)
    empty = {name for name, cells in samples.items() if is_empty(cells)}
    for batch in table.batches(on_reject=lambda _: None) if empty else ():
        for name in sorted(empty):
            values = [cell for cell in batch[name].to_pylist() if cell.strip()]
            if values:
                samples[name] = values[:_SAMPLE_ROWS]
                empty.remove(name)
        if not empty:
            break
    return samples


class _Claims:
    """The fields that the columns of a file claim, the surest names first.

    Attributes:
        found: field path → the columns that claim it; several are contested.
        doubtful: column → the field that it may fill, which nothing proves.
        guesses: column → the field that it may fill by a part of its name: shown when it is asked about, no more.
        by_name: the fields that clear and weak names claim: several such columns are an error without a person.
    """

    def __init__(
        self,
        kind: str,
        columns: Sequence[str],
        cells: Pairs[str, Sequence[str]],
        *,
        has_samples: bool,
    ) -> None:
        self.kind = kind
        self.columns = columns
        self.cells = cells
        self.has_samples = has_samples
        self.found: dict[str, list[str]] = {}
        self.doubtful: dict[str, str] = {}
        self.guesses: dict[str, str] = {}
        self.by_name: set[str] = set()
        self._claim("clear", has_values=True)
        self._claim_unclear()
        self._claim("more", has_values=True)
        for strength in ("clear", "more"):
            self._claim(strength, has_values=False)
        for has_values in (True, False):
            self._claim("weak", has_values=has_values)
        self._check_neighbours()
        self._claim_affixed_names()
        if KINDS[kind].has_login:
            self._claim_by_values()
        self._guess()

    @property
    def taken(self) -> set[str]:
        """The columns that claim a field."""
        return {name for names in self.found.values() for name in names}

    def _claim(self, strength: Strength, *, has_values: bool) -> None:
        """Claims the fields that are not claimed yet for the columns with a name of this strength."""
        found: dict[str, list[str]] = {}
        taken = self.taken
        for name in self.columns:
            if bool(self.cells[name]) != has_values or name in taken:
                continue
            for path in paths_of(name, self.kind, strength):
                is_fitting = path == name or self._fits(name, path)
                if path not in self.found and is_fitting:
                    found.setdefault(path, []).append(name)
        self.found |= found
        if strength != "more":
            self.by_name |= set(found)

    def _fits(self, name: str, path: str) -> bool:
        """Whether the values do not speak against a field; those that make it doubtful are kept."""
        cells = self.cells[name]
        if contradicts(self.kind, path, cells):
            return False
        if self.has_samples and not cells and path.endswith(".url"):
            return False  # exports also have names of files there
        if is_improbable(path, cells):
            self.doubtful.setdefault(name, path)
            return False
        return True

    def _claim_unclear(self) -> None:
        """Claims what values prove for the columns whose name has several meanings."""
        found: dict[str, list[str]] = {}
        for name in self.columns:
            paths = paths_of(name, self.kind, "unclear")
            free = [path for path in paths if path not in self.found and not self._has_name(path)]
            proven = [path for path in free if self._is_proven(path, name)]
            if proven:
                found.setdefault(proven[0], []).append(name)
            elif paths:
                self.doubtful[name] = (free or paths)[0]
        self.found |= found

    def _has_name(self, path: str) -> bool:
        """Whether another column has a name of the field, which counts more than an unclear one."""
        return any(
            path in paths_of(name, self.kind, "more")
            and not contradicts(self.kind, path, self.cells[name])
            for name in self.columns
            if self.cells[name]
        )

    def _is_proven(self, path: str, name: str) -> bool:
        if normalize(name) in _NUMBERS:
            return name == self.columns[0] and are_wide_codes(self.cells[name])
        return proves(path, self.cells[name])

    def _check_neighbours(self) -> None:
        """Corrects claims that need another column."""
        names = self.found.get("lastName", [])
        if "firstName" not in self.found and names and paths_of(names[0], self.kind, "weak"):
            del self.found["lastName"]  # `Name` alone is that of a person or of a company
        names = self.found.get("productId", [])
        is_unclear = names and paths_of(names[0], self.kind, "unclear")
        if is_unclear and "variantId" not in self.found:
            del self.found["productId"]  # `Id producto` alone is that of the ERP or of the shop
            self.doubtful |= dict.fromkeys(names, "productId")

    def _claim_affixed_names(self) -> None:
        """Claims first and last names with an affix: `Nombre del cliente` alone may be that of a company."""
        found: dict[str, list[str]] = {}
        taken = self.taken
        for name in self.columns:
            path = affixed_name(name, self.kind)
            if path is not None and name not in taken and not are_companies(self.cells[name]):
                found.setdefault(path, []).append(name)
        if len(found) > 1 and self.found.keys().isdisjoint(found):
            self.found |= found

    def _claim_by_values(self) -> None:
        """Claims the names of companies, which values show; addresses that no name shows are asked about."""
        taken = self.taken
        free = [name for name in self.columns if name not in taken and not is_of_others(name)]
        if "email" not in self.found:
            addresses = [name for name in free if are_emails(self.cells[name])]
            if len(addresses) == 1:
                self.doubtful[addresses[0]] = "email"
        self._claim_company_names(free)

    def _claim_company_names(self, free: Sequence[str]) -> None:
        """Claims a fiscal name where the values of one column are companies: of `free`, or of that for first names."""
        has_last = "lastName" in self.found
        names = [] if has_last else self.found.get("firstName", [])
        companies = self._with_companies([*names, *free])
        if not {*names}.isdisjoint(companies):
            del self.found["firstName"]
        if len(companies) != 1 or _FISCAL_NAME in self.found:
            return
        (name,) = companies
        if is_name(name) and are_own_companies(self.cells[name]):
            self.found[_FISCAL_NAME] = companies
        else:
            self.doubtful.setdefault(name, _FISCAL_NAME)

    def _with_companies(self, columns: Sequence[str]) -> list[str]:
        """The columns whose values are companies, without those that repeat another one."""
        found: list[str] = []
        for name in columns:
            is_repeated = any(self.cells[name] == self.cells[other] for other in found)
            if not is_repeated and are_companies(self.cells[name]):
                found.append(name)
        return found

    def _guess(self) -> None:
        """Guesses free fields of columns that are asked about, by a part of the name, or addresses of pictures."""
        taken = self.taken | self.doubtful.keys()
        for name in self.columns:
            cells = self.cells[name]
            is_others = KINDS[self.kind].has_login and is_of_others(name)
            if name in taken or not cells or is_others:
                continue
            paths = guesses_of(name, self.kind)
            if are_image_urls(cells) and not isinstance(resolve(self.kind, _IMAGE_URL), str):
                paths.append(_IMAGE_URL)
            free = (path for path in paths if path not in self.found)
            path = next((path for path in free if self._may_fill(path, cells)), None)
            if path is not None:
                self.guesses[name] = path

    def _may_fill(self, path: str, cells: Sequence[str]) -> bool:
        """Whether no value speaks against a field."""
        return not contradicts(self.kind, path, cells) and not is_improbable(path, cells)
