"""Which rows of the lines of orders are products: others are parts of another row, or a discount, shipping or a note.

In: the values of the columns that say of what kind a row is, and of those that name the row which it is a part of. Out:
the kind of each value, and the question about them, a table. Parts count neither as pieces nor as an amount: their set
does. What is no product counts in what the lines of an order add up to, and as no product.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, get_args

from orderbridge.transforms.orders.names import LINE_KIND_NAMES
from orderbridge.transforms.questions import (
    Answer,
    Choice,
    Evidence,
    Question,
    question,
    table_of,
    table_text,
)
from orderbridge.transforms.values.texts import plain_words

LineKind = Literal["product", "part", "no_product"]
_KINDS: Final[dict[str, LineKind]] = {one: one for one in get_args(LineKind)}
LINE_KINDS: Final = "reconcile.order_line_kinds"
"""The question which rows are products: the key of its setting."""
ANY: Final = "*"
"""The value of a row of the table about all lines that have a value in a column, such as `parent_item_id: *`."""
_NO_PRODUCT: Final = frozenset(LINE_KIND_NAMES["no_product"])
_BESIDE: Final = frozenset(LINE_KIND_NAMES["beside"])


@dataclass(frozen=True, slots=True)
class KindRow:
    """Lines that have a value in a column.

    Attributes:
        name: as the table names it, `type: promotion`.
        lines: how many there are.
        proposal: their kind.
        notes: what else is known of them, in words; they are asked for then, also if products are proposed.
    """

    name: str
    lines: int
    proposal: LineKind
    notes: str = ""


def kind_of_value(column: str, value: str) -> LineKind:
    """The kind that a value proposes; a product where its words say nothing else."""
    if column in LINE_KIND_NAMES["flags"]:
        return "no_product" if value.casefold() == "true" else "product"
    words = {*plain_words(value).split()} - _BESIDE
    return "no_product" if words and words <= _NO_PRODUCT else "product"


def kinds_question(
    rows: Sequence[KindRow], answer: Answer | None, assumption: Answer | None
) -> Question | None:
    """The question of what kind the lines are; None where all are products, and nothing says otherwise.

    Args:
        rows: the values that are looked at.
        answer: in force.
        assumption: of earlier runs: it stays.
    """
    assumed = _folded(assumption)
    given = {} if answer is None or answer.is_assumption else _folded(answer)
    proposed = {row.name: assumed.get(row.name.casefold(), row.proposal) for row in rows}
    is_asked = any(
        row.notes or proposed[row.name] != "product" or row.name.casefold() in given for row in rows
    )
    if not is_asked:
        return None
    table = table_text(proposed)
    choices = tuple(_choice(row, proposed[row.name]) for row in rows)
    return question(Evidence(LINE_KINDS, choices, table, assumed_rows=table), answer)


def _choice(row: KindRow, kind: str) -> Choice:
    words = "1 line" if row.lines == 1 else f"{row.lines} lines"
    return Choice(table_text({row.name: kind}), "; ".join(filter(None, [words, row.notes])))


def kinds_in_force(asked: Question | None) -> dict[str, LineKind]:
    """The kind of each row of the table that is no product."""
    used = table_of(asked.value or "") if asked is not None else {}
    return {row: _KINDS[kind] for row, kind in used.items() if kind in ("part", "no_product")}


def _folded(answer: Answer | None) -> Mapping[str, str]:
    rows = {} if answer is None else table_of(answer.value)
    return {row.casefold(): kind for row, kind in rows.items()}
