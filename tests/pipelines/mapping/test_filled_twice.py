"""A field has one source: a column, a constant or a lookup; two of them are a mistake, whatever they are."""

from __future__ import annotations

from itertools import combinations_with_replacement
from pathlib import Path

import pytest

from pipelines.mapping import load
from sources.errors import UsageError

PARTS = {
    "column": ('"{number}" = "sku"\n', ""),
    "constant": ("", '[constants]\nsku = "X"\n'),
    "lookup": ("", '[[lookup]]\nfile = "ids{number}.csv"\nmatch = {{ "Código" = "code" }}\ngive = {{ sku = "sku" }}\n'),
}
"""What stands under [columns], and what follows it."""
PAIRS = [pair for pair in combinations_with_replacement(PARTS, 2) if pair != ("constant", "constant")]


@pytest.mark.parametrize("pair", PAIRS, ids=" and ".join)
def test_a_field_that_is_filled_twice_is_a_mistake(tmp_path: Path, pair: tuple[str, str]) -> None:
    columns, rest = zip(
        *(tuple(part.format(number=n) for part in PARTS[name]) for n, name in enumerate(pair)), strict=True
    )
    path = tmp_path / "mapping.toml"
    path.write_text(f'kind = "variants"\n[columns]\n"Código" = "erpCode"\n{"".join(columns)}{"".join(rest)}', "utf-8")
    with pytest.raises(UsageError, match="sku is filled twice: by ") as error:
        load(path, "variants")
    words = {"column": "column '", "constant": "a constant", "lookup": "lookup ids"}
    assert all(words[name] in str(error.value) for name in pair)
