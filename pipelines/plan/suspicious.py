"""Values that are valid but rarely meant: pointed out in the summary before anything is sent.

In: tables of inputs to send, a JSON text per field; what a decider finds; the patterns of `suspicious.toml`. Out:
for each kind of suspicious value its number and first lines.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Set
from functools import cache
from importlib.resources import files
from typing import Final, get_args

import msgspec
import pyarrow as pa
import pyarrow.compute as pc

from orderbridge.pipelines.mapping.cells import ADDRESS, IMPOSSIBLE_ADDRESS
from orderbridge.pipelines.plan.outcomes import FIRST_LINES, Reason, first_of
from orderbridge.sources.texts import english
from orderbridge.transforms.values.tax_numbers import Problem, tax_number_problem

_Check = Callable[[pa.Array], pa.Array]


class _Document(msgspec.Struct):
    """Of a JSON text, what is checked."""

    number: str | None = None


@cache
def _patterns() -> dict[str, str]:
    """The pattern of each code that texts of any field can have."""
    return tomllib.loads(
        files("orderbridge.pipelines.plan").joinpath("suspicious.toml").read_text("utf-8")
    )


def pattern_of(code: str) -> str:
    """The pattern of a code, for JSON texts of any field."""
    return _patterns()[code]


def _numbers(texts: pa.Array) -> pa.Array:
    return pc.if_else(pc.equal(texts, "null"), pa.scalar(None, pa.string()), texts).cast(
        pa.float64()
    )


def _lacks_number(texts: pa.Array) -> pa.Array:
    """Whether fewer numbers than documents are in a JSON text."""
    numbers = pc.count_substring_regex(texts, r'"number":"[^"]*[^"\s]')
    without_texts = pc.replace_substring_regex(texts, r'"(?:[^"\\]|\\.)*"', "")
    return pc.less(numbers, pc.count_substring_regex(without_texts, r"[\[,]\{"))


def _is_no_address(texts: pa.Array) -> pa.Array:
    is_address = pc.match_substring_regex(texts, f'^"{ADDRESS}"$')
    return pc.or_(pc.invert(is_address), pc.match_substring_regex(texts, IMPOSSIBLE_ADDRESS))


def _is_mistyped(texts: pa.Array) -> pa.Array:
    """Whether the domain of an address is a known one with a typing error, or ends as none does."""
    return pc.match_substring_regex(texts, _MISTYPED, ignore_case=True)


_MISTYPED: Final = (
    r"""@[^@]*\.(?:con|cmo|ocm|comm|coom|cpm|vom|xom)"$"""
    r"""|@(?:gmial|gmai|gamil|gnail|gmal|hotmial|hotmai|hotnail|hormail|outlok|outloo|yaho)\."""
    r"""|@(?:gmail|hotmail|outlook|yahoo|icloud)\.(?:co|cm|om)"$"""
)
_FEW_DIGITS: Final = r'^"(?:[^\pN"]*\pN){1,5}[^\pN"]*"$'
"""A phone with fewer digits than those of any customer have."""
_FISCAL_NAME: Final = r'"fiscalName":"[^"]*[^"\s]'
_CHECKS: Final[Mapping[str, tuple[tuple[str, _Check], ...]]] = {
    "price": (("not_positive", lambda texts: pc.less_equal(_numbers(texts), 0.0)),),
    "stock": (("negative", lambda texts: pc.less(_numbers(texts), 0.0)),),
    "email": (("not_an_address", _is_no_address), ("address_mistyped", _is_mistyped)),
    "phone": (
        ("no_digits", lambda texts: pc.match_substring_regex(texts, r'^"[^\pN"]+"$')),
        ("few_digits", lambda texts: pc.match_substring_regex(texts, _FEW_DIGITS)),
    ),
    "documents": (("document_number_missing", _lacks_number),),
}
"""Codes and checks by field."""


class SuspiciousValues:
    """Collects suspicious values.

    Args:
        increments: fields whose values are increments, which may be negative.
        dates: fields that are dates, whose texts were checked when they were read.
        is_sheet: the file is a workbook, whose cells show fewer digits than they have.
        country: of tax numbers without a prefix of their own.
    """

    def __init__(
        self,
        increments: frozenset[str] = frozenset(),
        dates: Set[str] = frozenset(),
        *,
        is_sheet: bool = False,
        country: str | None = None,
    ) -> None:
        self._increments = increments
        self._dates = dates
        self._is_sheet = is_sheet
        self._country = country
        self._reasons: dict[tuple[str, str], Reason] = {}

    def add(self, table: pa.Table) -> None:
        """Checks a table of inputs to send: `lines`, `path`, and a column per field."""
        lines = pa.array(first_of(table["lines"].combine_chunks()))
        is_zero = pc.match_substring_regex(table["path"].combine_chunks(), "/0(/|$)")
        self.count("", "zero_id", lines.filter(is_zero))
        patterns = _patterns()
        for name in table.drop_columns(["lines", "path"]).column_names:
            texts = table[name].combine_chunks()
            if texts.null_count == len(texts):
                continue
            is_hit = pc.fill_null(
                pc.match_substring_regex(texts, "|".join(patterns.values())), False
            )
            for code, pattern in (
                patterns.items() if name not in self._dates and pc.any(is_hit).as_py() else ()
            ):
                hits = pc.match_substring_regex(texts.filter(is_hit), pattern)
                self.count(name, code, lines.filter(is_hit).filter(hits))
            if name == "price" and self._is_sheet:
                self.count(
                    name, "decimals", lines.filter(pc.match_substring_regex(texts, r"\.[0-9]{3}"))
                )
            if name not in self._increments:
                for code, check in _CHECKS.get(name, ()):
                    self.count(name, code, lines.filter(check(texts)))
            if name == "documents":
                codes = self._tax_number_problems(texts)
                for code in get_args(Problem):
                    self.count(name, code, lines.filter(pc.equal(codes, code)))
        if {"firstName", "lastName", "documents"}.issubset(table.column_names):
            self._add_nameless(table, lines)

    def _tax_number_problems(self, texts: pa.Array) -> pa.Array:
        """What is wrong with the first wrong tax number of each JSON text of documents; null for nothing."""
        rows: list[str | None] = []
        for text in texts.to_pylist():
            documents = [] if text is None else msgspec.json.decode(text, type=list[_Document])
            numbers = (one.number for one in documents if one.number is not None)
            problems = (tax_number_problem(number, self._country) for number in numbers)
            rows.append(next(filter(None, problems), None))
        return pa.array(rows, pa.string())

    def _add_nameless(self, table: pa.Table, lines: pa.Array) -> None:
        """New customers without a first and a last name, and those of them without a fiscal name too."""
        names = (table[name].combine_chunks() for name in ("firstName", "lastName"))
        is_nameless = pc.and_(*map(pc.is_null, names))
        documents = pc.fill_null(table["documents"].combine_chunks(), "")
        has_fiscal_name = pc.match_substring_regex(documents, _FISCAL_NAME)
        self.count("", "nameless", lines.filter(pc.and_not(is_nameless, has_fiscal_name)))
        self.count("", "only_fiscal_name", lines.filter(pc.and_(is_nameless, has_fiscal_name)))

    def add_merged(self, table: pa.Table) -> None:
        """Checks inputs that equal an earlier one and are merged with it: each of their increments may be meant."""
        lines = pa.array(first_of(table["lines"].combine_chunks()))
        for name in sorted(self._increments.intersection(table.column_names)):
            self.count(name, "merged", lines.filter(pc.is_valid(table[name].combine_chunks())))

    def count(self, field: str, code: str, lines: pa.Array) -> None:
        """Adds lines with a suspicious value, in a field or as a whole."""
        if len(lines):
            words = english()(f"suspicious.{code}", field=field)
            known = self._reasons.get((field, code), Reason(field, code, words, 0, []))
            first = [*known.first, *lines.slice(0, FIRST_LINES).to_pylist()][:FIRST_LINES]
            self._reasons[field, code] = known._replace(lines=known.lines + len(lines), first=first)

    def reasons(self) -> list[Reason]:
        """The kinds of suspicious values, the most frequent first."""
        return sorted(self._reasons.values(), key=lambda reason: -reason.lines)
