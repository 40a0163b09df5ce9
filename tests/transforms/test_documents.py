"""The order of documents: the same for each order of the rows."""

from __future__ import annotations

from itertools import permutations

import pandas as pd

from transforms.documents import sort_documents
from transforms.frames import BIGINT, TEXT, typed

COLUMNS = {"owner": BIGINT, "position": BIGINT, "number": TEXT}


def test_documents_with_one_position_are_in_the_order_of_their_values() -> None:
    rows = [(0, 1, "c"), (1, 1, "b"), (1, 1, "d"), (1, 1, "e"), (1, None, "a"), (2, 1, "f")]
    for order in permutations(rows):
        found = sort_documents(typed(pd.DataFrame(order, columns=list(COLUMNS)), COLUMNS))
        assert found["number"].tolist() == ["c", "b", "d", "e", "a", "f"]
        assert found.index.tolist() == list(range(len(rows)))
