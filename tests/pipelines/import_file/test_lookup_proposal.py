"""A file with ids is proposed as a lookup only if it names one record for almost every line."""

from __future__ import annotations

from pathlib import Path

import pytest

from orderbridge.pipelines.import_file.lookup_proposal import propose_lookup, tables_beside
from orderbridge.pipelines.imports.open import open_input_table
from orderbridge.pipelines.mapping import propose, sample

LINES = "SKU;Familia;PVP\n" + "".join(f"A{n:02d};F{n % 3};{n},5\n" for n in range(20))
IDS = "code;Familia;product_id;variant_id\n"


def row(n: int, code: str = "", variant: str = "") -> str:
    return f"{code or f'A{n:02d}'};F{n % 3};7;{variant or n + 100}\n"


def proposed(
    folder: Path, ids: str, name: str = "ids.csv", *, is_given: bool = False
) -> dict[str, str] | None:
    """The columns by which the ids would be found; None: no lookup is proposed."""
    file = folder / "articulos.csv"
    file.write_text(LINES, "utf-8")
    (folder / name).write_text(ids, "utf-8")
    table = open_input_table(file)
    mapping = propose(table.columns, "variants", conflicts="leave", samples=sample(table))
    given = [folder / name] if is_given else []
    made = propose_lookup(table, mapping, ["productId", "variantId"], tables_beside(file), given)
    return made.lookup.match if made is not None else None


WHOLE = "".join(map(row, range(20)))


@pytest.mark.parametrize(
    ("ids", "match"),
    [
        (WHOLE, {"SKU": "code"}),
        (WHOLE + WHOLE, {"SKU": "code"}),  # the same once more
        ("".join(map(row, range(18))), {"SKU": "code"}),
        ("".join(map(row, range(17))), None),  # too few lines
        (WHOLE + "".join(row(n, variant="999") for n in range(5)), None),  # several records
        (WHOLE.replace(";7;", ";P-7;"), None),  # other ids
    ],
)
def test_a_lookup_has_one_record_for_almost_every_line(
    tmp_path: Path, ids: str, match: dict[str, str] | None
) -> None:
    assert proposed(tmp_path, IDS + ids) == match


@pytest.mark.parametrize(("found", "match"), [(10, {"SKU": "code"}), (9, None)])
def test_a_lookup_that_a_person_gives_may_lack_up_to_half_of_the_lines(
    tmp_path: Path, found: int, match: dict[str, str] | None
) -> None:
    assert proposed(tmp_path, IDS + "".join(map(row, range(found))), is_given=True) == match


def test_the_column_of_the_same_name_is_taken_where_several_find_all_lines(tmp_path: Path) -> None:
    rows = "".join(f"A{n:02d};A{n:02d};7;{n + 100}\n" for n in range(20))
    assert proposed(tmp_path, "code;sku;product_id;variant_id\n" + rows) == {"SKU": "sku"}


def test_private_files_and_links_to_other_folders_are_not_looked_at(tmp_path: Path) -> None:
    (folder := tmp_path / "exports").mkdir()
    assert proposed(folder, IDS + WHOLE, "passwords.csv") is None
    (tmp_path / "ids.csv").write_text(IDS + WHOLE)
    (folder / "ids.csv").symlink_to(tmp_path / "ids.csv")
    assert tables_beside(folder / "articulos.csv") == []
