"""New codes of a file whose known codes have lost their zeros are held, and no others are."""

from __future__ import annotations

import pytest

from orderbridge.pipelines.import_file.run import ImportResult
from orderbridge.pipelines.questions.codes import Codes
from tests.pipelines.bridge import command
from tests.pipelines.import_file.desk import Desk
from tests.pipelines.push.plans import outcomes

HEADER = "Código;Nombre;Correo\n"


def known(desk: Desk, *codes: str) -> None:
    """From now on the platform has customers with these codes, and no others have one."""
    for number in desk.at.platform.state.ids("customers"):
        desk.at.platform.state.change("customers", number, {"erpCode": None, "loginCode": None})
    for code in codes:
        fields = {"erpCode": code, "firstName": "Ana", "email": f"c{int(code)}@x.test"}
        desk.at.platform.state.add("customers", fields)


def line(code: str, *, email: str = "") -> str:
    return f"{code};Ana;{email or f'new{code}@x.test'}\n"


def imported(desk: Desk, *lines: str, name: str = "clientes.csv") -> ImportResult:
    return desk.run(desk.write(HEADER + "".join(lines), name), "customers")


def test_new_codes_are_held_where_the_known_codes_of_the_file_lost_their_zeros(
    desk: Desk,
) -> None:
    known(desk, "00001", "00002", "00003")
    lines = [line("1", email="c1@x.test"), line("2"), line("8"), line("A8"), line("12345")]
    made = imported(desk, *lines)
    assert made.exit_code == 5
    assert desk.at.codes() == ["A8", "12345"], "a spreadsheet changes no other codes"
    held = {place for place, outcome in outcomes(made.plan.folder).items() if "held" in outcome}
    assert held == {"3", "4"}
    (asked,) = Codes().asked()
    assert "1 is 00001 there" in asked.reason
    answered = command(
        "answer", asked.id, "as_written", env=desk.at.environment(), cwd=desk.at.folder
    )
    assert answered.code == 0, answered.err
    imported(desk, *lines)
    assert desk.at.codes() == ["A8", "12345", "2", "8"]
    assert imported(desk, line("1"), line("9"), name="otro.csv").exit_code == 5
    assert "9" not in desk.at.codes(), "another export is another question"


@pytest.mark.parametrize("is_moved", [False, True])
def test_rejected_rows_of_such_a_file_are_held_too_when_they_were_corrected(
    desk: Desk, *, is_moved: bool
) -> None:
    known(desk, "00001", "00002")
    made = imported(desk, line("1", email="c1@x.test"), line("9", email="no address"))
    rejects = made.plan.folder / "rejects.csv"
    text = rejects.read_text("cp1252").replace("no address", "c9@x.test")
    path = desk.at.folder / "saved elsewhere.csv" if is_moved else rejects
    path.write_text(text, "cp1252")
    assert desk.run(path, "customers").exit_code == 5
    assert desk.at.codes() == []
    (asked,) = Codes().asked()
    command("answer", asked.id, "as_written", env=desk.at.environment(), cwd=desk.at.folder)
    desk.run(path, "customers")
    assert desk.at.codes() == ["9"]


@pytest.mark.parametrize(
    ("codes", "lines"),
    [
        (("00001", "00002"), ("00001", "8")),
        (("00001", "7"), ("1", "7", "8")),
        (("1", "2"), ("1", "8")),
        (("00001", "00002"), ("8", "9")),
    ],
)
def test_codes_are_created_where_nothing_shows_that_zeros_were_lost(
    desk: Desk, codes: tuple[str, ...], lines: tuple[str, ...]
) -> None:
    known(desk, *codes)
    imported(desk, *(line(code, email=f"c{int(code)}@x.test") for code in lines))
    assert "8" in desk.at.codes()
