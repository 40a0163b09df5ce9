"""Nights of 0.3 go on: new checks reject no line until a person imports such a file, or changes its mapping."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from orderbridge.pipelines.plan.make import PlanOptions, PlanResult, make_plan
from orderbridge.sources.errors import ExitCode
from tests.pipelines.push.plans import Place, altered, place

HEADER = "productId;variantId;SKU;Nota;Precio"
MAPPING = """\
kind = "variants"
ignore = ["Nota"]

[columns]
productId = "productId"
variantId = "variantId"
SKU = "sku"
Precio = { field = "price", decimal = "," }
"""
MONITOR = '1;1061;M-1;Monitor 42LCD";105,00'
CUT = "1;1070;S-70;Tuerca;18,5"


@pytest.fixture
def at(tmp_path: Path) -> Iterator[Place]:
    with place(tmp_path) as made:
        yield made


def planned(
    at: Place, night: int, *lines: str, is_watched: bool = False, given: str = MAPPING
) -> PlanResult:
    """A night's file with these lines after the others; the last one has no line end."""
    file = at.folder / "prices.csv"
    rows = [
        f"1;{1001 + n};S-{n};Tornillo {'ancho' * (n % 2)};{10 * night + n},00" for n in range(60)
    ]
    file.write_text("\n".join([HEADER, *rows, *lines]), "utf-8")
    mapping = at.folder / "prices.toml"
    mapping.write_text(given, "utf-8")
    return make_plan(PlanOptions("variants", file, mapping, is_watched=is_watched))


def pushed(at: Place, made: PlanResult) -> ExitCode:
    """The exit code of the plan, which its push has too."""
    assert at.code(made.folder) == made.exit_code
    return made.exit_code


def as_of_0_3(made: PlanResult) -> None:
    """Takes what 0.3 did not write out of a manifest."""
    altered(made.folder, checks_rows=False)


def test_nights_of_0_3_send_and_name_what_new_checks_reject_until_an_import(
    at: Place,
) -> None:
    first = planned(at, 1, "")
    as_of_0_3(first)
    assert pushed(at, first) == ExitCode.DONE
    second = planned(at, 2, MONITOR, "")
    assert pushed(at, second) == ExitCode.DONE
    assert "line 62: a cell ends with a quote that nothing opens" in second.statistics.notes[-1]
    third = planned(at, 3, CUT)
    assert pushed(at, third) == ExitCode.DONE
    assert "line 62: the last line of the file has no line end" in third.statistics.notes[-1]
    command = f"orderbridge import variants {at.folder / 'prices.csv'}"
    assert third.statistics.notes[-1].endswith(command)
    seen = planned(at, 4, MONITOR, CUT, is_watched=True)
    assert pushed(at, seen) == ExitCode.REJECTED
    assert pushed(at, planned(at, 5, MONITOR, "")) == ExitCode.REJECTED


def test_a_changed_mapping_and_a_new_project_have_all_checks(at: Place) -> None:
    new = planned(at, 1, MONITOR, "")
    assert new.exit_code == ExitCode.REJECTED
    as_of_0_3(new)
    assert pushed(at, new) == ExitCode.REJECTED
    assert planned(at, 2, MONITOR, "").exit_code == ExitCode.DONE
    changed = MAPPING.replace("SKU =", "# ours\nSKU =")
    assert planned(at, 3, MONITOR, "", given=changed).exit_code == ExitCode.REJECTED


def test_nights_without_such_lines_have_no_note(at: Place) -> None:
    first = planned(at, 1, "")
    as_of_0_3(first)
    assert pushed(at, first) == ExitCode.DONE
    again = planned(at, 2, "")
    assert not any("new checks" in note for note in again.statistics.notes)
