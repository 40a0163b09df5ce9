"""The notation and the currency of the numbers of a file, which no single line shows.

In: the lines of a file and the fields that they fill. Out: the fields with the notation of each column that states
none, and remarks for a person. If all columns state theirs, and the mapping names no currency, no line is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Final

import pyarrow as pa

from orderbridge.pipelines.imports.fields import IN_FILE, Bindings, Source
from orderbridge.pipelines.imports.groups import whole
from orderbridge.pipelines.imports.lines import LineBatch
from orderbridge.pipelines.imports.model import CurrencyChange, OtherCurrency
from orderbridge.pipelines.mapping.cells import filled
from orderbridge.transforms.values.numbers import (
    COMMA,
    POINT,
    ColumnEvidence,
    in_usual_signs,
    is_currency,
    without_currency,
)

_MIXED: Final = {
    None: "mixes decimal points and commas; numbers with a mark are rejected",
    COMMA: "decimal comma in most numbers; those that may have a decimal point are rejected",
    POINT: "decimal point in most numbers; those that may have a decimal comma are rejected",
}
"""What a person should know of a column with numbers in two notations, by that of most of them."""
_GROUPS: Final = {" ": ", spaces between thousands", "'": ", apostrophes between thousands"}


def survey(
    lines: Iterable[LineBatch], bindings: Bindings, *, is_excerpt: bool = False
) -> tuple[Bindings, list[str]]:
    """Detects notations. Returns the bindings with them, and remarks for a person.

    In an excerpt, single rows with another currency than the mapping's are rejected.

    Raises:
        OtherCurrency: a column has another currency than the one that the mapping names.
    """
    evidence = _collect(lines, bindings, is_excerpt=is_excerpt)
    if not is_excerpt:
        _check_currencies(bindings, evidence)
    sources = list(bindings.sources)
    notes: list[str] = []
    for index, shown in evidence.items():
        given = sources[index]
        source = _with_currency(given, shown)
        if source.reading.currency in shown.signs - {""}:
            notes.append(_currency_note(source, bindings, is_named=given.has_currency))
        if source.detects_notation:
            source, remarks = _with_notation(source, shown)
            notes += remarks
        sources[index] = source
    return replace(bindings, sources=sources), notes


def _collect(
    lines: Iterable[LineBatch], bindings: Bindings, *, is_excerpt: bool
) -> dict[int, ColumnEvidence]:
    """What the cells show of each column whose notation or currency is looked at, by the number of its source."""
    evidence: dict[int, ColumnEvidence] = {}
    in_file: dict[int, Source] = {}
    for index, source in enumerate(bindings.sources):
        if not source.detects_notation and (is_excerpt or not source.has_currency):
            continue
        evidence[index] = ColumnEvidence(whole=source.reading.kind == "integer")
        if source.lookup == IN_FILE:
            in_file[index] = source
        else:
            evidence[index].add(bindings.lookups[source.lookup].values[source.path])
    if not in_file:
        return evidence
    for batch in lines:
        for index, source in in_file.items():
            evidence[index].add(_numbers(source, batch.table))
    return evidence


def _numbers(source: Source, table: pa.Table) -> pa.Array:
    """The cells of a column, without a currency that only the mapping knows as one."""
    reading = source.reading
    texts = filled(whole(table, source.column), reading.empty)
    if reading.currency and not is_currency(reading.currency):
        return without_currency(in_usual_signs(texts), reading.currency)
    return texts


def _check_currencies(bindings: Bindings, evidence: Mapping[int, ColumnEvidence]) -> None:
    """The numbers of a column have the currency that the mapping names.

    Raises:
        OtherCurrency: all numbers with a currency have another one.
    """
    others: dict[str, CurrencyChange] = {}
    for index, shown in evidence.items():
        source = bindings.sources[index]
        signs = shown.signs - {""}
        if source.has_currency and len(signs) == 1 and source.reading.currency not in signs:
            others[source.column] = CurrencyChange(source.reading.currency, min(signs))
    if others:
        raise OtherCurrency(others, bindings.mapping.path)


def _with_currency(source: Source, shown: ColumnEvidence) -> Source:
    """The source with the currency that its cells show, unless it has one or they show none."""
    if source.reading.currency or not shown.signs - {""}:
        return source
    signs = tuple(sorted(shown.signs))
    return replace(source, reading=replace(source.reading, currency=shown.currency, signs=signs))


def _with_notation(source: Source, shown: ColumnEvidence) -> tuple[Source, list[str]]:
    """The source with the notation that its cells prove, and what a person should know of it."""
    column = source.column
    if shown.notation is not None:
        reading = replace(source.reading, notation=shown.notation)
        groups = _GROUPS.get(shown.notation.thousands, "")
        note = f"{column}: decimal {shown.proof}{groups} (detected from its numbers)"
        return replace(source, reading=reading), [note]
    if shown.proof == "both":
        usual = shown.usual_notation
        reading = replace(source.reading, unproven="mixed_numbers", usual=usual)
        note = f"{column}: {_MIXED[usual]}"
        return replace(source, reading=reading), [note]
    if shown.proof == "ambiguous":
        return source, [f"{column}: decimal mark unclear; numbers such as 1.234 are rejected"]
    return source, []


def _currency_note(source: Source, bindings: Bindings, *, is_named: bool) -> str:
    """The currency of a column, and where it is not in the mapping, how to notice another one later."""
    currency = source.reading.currency
    text = f"{source.column}: amounts in {currency}"
    path = bindings.mapping.path
    if is_named or path is None or source.lookup != IN_FILE:
        return text
    return f'{text}; to notice another currency later, set currency = "{currency}" for the column in {path.name}'
