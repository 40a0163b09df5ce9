"""Pairs of an id and a name are read as the id, with the name in a column beside it."""

from __future__ import annotations

import pytest

from orderbridge.pipelines.reconcile.orders.name_pairs import split_pairs
from orderbridge.transforms.frames import TEXT, frame
from tests.pipelines.reconcile.in_parts import build_of

AS_TEXT = '[3,"a \\"b\\", c"]'


@pytest.mark.parametrize(
    ("texts", "names"),
    [
        (['[24,"Desk"]', "false", None, AS_TEXT], ["Desk", None, None, 'a "b", c']),
        (['[24,"Desk"]', "24"], None),
        (['[24,"Desk",1]', '[24,"Desk"]'], None),
        (["false", None], None),
        (['[24,"Desk"],["x"]'], None),
    ],
)
def test_a_column_of_pairs_alone_is_split(
    texts: list[str | None], names: list[str | None] | None
) -> None:
    rows = frame(
        {"id": TEXT, "of": TEXT}, [{"id": f"{n}", "of": text} for n, text in enumerate(texts)]
    )
    with build_of(raw__orders=rows) as tables:
        table = split_pairs(tables, "raw.orders", "orders_with_names")
        if names is None:
            assert table == "raw.orders"
            return
        made = tables.build.execute(f"SELECT of, of__name FROM {table} ORDER BY id").fetchall()
        ids = ["24", None, None, "3"]
        assert made == [*zip(ids, names, strict=True)]
        kept = tables.build.execute("SELECT of FROM raw.orders ORDER BY id").fetchall()
        assert [text for (text,) in kept] == texts
