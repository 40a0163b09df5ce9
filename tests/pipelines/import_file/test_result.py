"""`result.xlsx` is opened, corrected and saved by a spreadsheet program, and imported as it is: no code changes."""

from __future__ import annotations

import re
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import openpyxl
import pytest
from openpyxl.worksheet.worksheet import Worksheet

from orderbridge.pipelines.cli.push import refresh_workbook
from orderbridge.pipelines.import_file import result as writing
from orderbridge.pipelines.import_file.mappings import keep_mapping
from orderbridge.pipelines.import_file.result import write_result
from orderbridge.pipelines.import_file.run import ImportResult
from orderbridge.pipelines.mapping import MappedColumn, Mapping
from orderbridge.pipelines.plan.rejects import CODES_FILE
from orderbridge.pipelines.push.model import PushOptions
from orderbridge.pipelines.push.resolutions import Answers
from orderbridge.pipelines.push.settle import settle
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.texts import Texts, english
from tests.pipelines.import_file.desk import Desk
from tests.pipelines.push.plans import outcomes
from tests.spreadsheet import spreadsheet_rows

HEADER = "Código;Nombre;Apellidos;Correo;Contraseña"
CORRECT = "to correct"


def cells(sheet: Worksheet) -> list[list[str]]:
    return [["" if cell.value is None else cell.value for cell in row] for row in sheet.iter_rows()]


def rows_of(made: ImportResult, name: str = CORRECT) -> list[list[str]]:
    """The cells of a sheet of the workbook, without its header."""
    return cells(workbook(made)[name])[1:]


def workbook(made: ImportResult) -> openpyxl.Workbook:
    assert made.file is not None
    return openpyxl.load_workbook(made.file)


def correct(file: Path | None, column: str, texts: dict[str, str], name: str = CORRECT) -> None:
    """Types texts into a column of the sheet of corrections, by the code in the first one, and saves the workbook."""
    assert file is not None
    book = openpyxl.load_workbook(file)
    sheet = book[name]
    at = cells(sheet)[0].index(column)
    for row in sheet.iter_rows(min_row=2):
        for cell in row:
            assert (cell.data_type, cell.number_format) in (("s", "@"), ("n", "@")), (
                "what is typed there is text"
            )
            assert cell.data_type == "s" or cell.value is None, "no number, no formula"
        row[at].value = texts.get(row[0].value, row[at].value)
    book.save(file)


def test_a_corrected_workbook_is_imported_as_it_is_and_keeps_every_code(desk: Desk) -> None:
    fields = dict(
        zip(HEADER.split(";"), ("erpCode", "firstName", "lastName", "email", None), strict=True)
    )
    columns = {name: MappedColumn(name, field) for name, field in fields.items()}
    keep_mapping(Mapping("customers", columns, generate_passwords="file"))
    rows = [
        "00001;Ana;Ruiz;ana@example.test;", "00002;=1+1;Gil;;", "00003;+34 600;Peña;;", "1E5;'Eva;_x0041_;;",
        "00005;Luz;Mar;luz@example.test;",
    ]  # fmt: skip
    first = desk.run(desk.write("\n".join([HEADER, *rows, ""])))
    assert (first.exit_code, first.file) == (5, first.plan.folder / "result.xlsx")
    assert workbook(first).sheetnames == [CORRECT, "all lines", "check"]
    assert workbook(first)["check"].sheet_state == "veryHidden"
    assert cells(workbook(first)["all lines"])[0][5:] == [
        "line",
        "status",
        "reason",
        "platform's words",
    ]
    assert [(row[0], row[5], row[6]) for row in rows_of(first, "all lines")] == [
        ("00001", "2", "confirmed"), ("00002", "3", "rejected"), ("00003", "4", "rejected"),
        ("1E5", "5", "rejected"), ("00005", "6", "confirmed"),
    ]  # fmt: skip
    all_cells = [cell for row in workbook(first)[CORRECT] for cell in row]
    filled = [cell.coordinate for cell in all_cells if cell.fill.fgColor.rgb == "FFFFF2CC"]
    assert filled == ["D2", "D3", "D4"], "the cell to correct, by the field that its column fills"
    correct(
        first.file,
        "Correo",
        {code: f"nuevo{n}@example.test" for n, code in enumerate(("00002", "00003", "1E5"))},
    )
    correct(first.file, "Código", {"00003": "00033"})
    assert desk.run(first.plan.folder / "result.xlsx").exit_code == 0
    names = ("erpCode", "firstName", "lastName")
    assert {tuple(body[name] for name in names) for body in desk.at.platform.state.customer_inputs} == {
        ("00001", "Ana", "Ruiz"), ("00005", "Luz", "Mar"), ("00002", "=1+1", "Gil"), ("00033", "+34 600", "Peña"),
        ("1E5", "'Eva", "_x0041_"),
    }  # fmt: skip


def test_a_reason_is_a_note_on_its_cell_and_a_sheet_fits_what_it_has(desk: Desk) -> None:
    text = "productId;variantId;sku;price;stock\n1;1001;00038;consultar;9\n1;1002;00039;uno;dos\n"
    text += f"1;1003;{'x' * 30};1;2\n"
    made = desk.run(desk.write(text, "articulos.csv"), "variants")
    sheet = workbook(made)[CORRECT]
    notes = {
        cell.coordinate: cell.comment.text
        for row in sheet.iter_rows()
        for cell in row
        if cell.comment is not None
    }
    assert list(notes) == ["D2", "D3", "E3"], "a note on each cell to correct"
    reasons = [row[-1] for row in rows_of(made)]
    assert notes["D2"] == reasons[0], "the reason is in its column too"
    assert "uno" in notes["D3"]
    assert "dos" in notes["E3"]
    assert "dos" not in notes["D3"], "each note has the reason of its cell"
    for name in (CORRECT, "all lines"):
        shown = workbook(made)[name]
        widths = [shown.column_dimensions[letter].width for letter in "ABC"]
        assert shown.auto_filter.ref == f"A1:{shown.dimensions.partition(':')[2]}", name
        assert (shown.page_setup.orientation, shown.page_setup.fitToHeight) == ("landscape", 0)
        assert shown.sheet_properties.pageSetUpPr.fitToPage, "one page wide, of any height"
        assert (shown.print_title_rows, shown.freeze_panes) == ("$1:$1", "A2")
        assert widths[2] > 30 if name == "all lines" else widths[2] < 20, "as wide as its cells"


def test_a_customer_with_other_values_has_both_in_its_row(desk: Desk) -> None:
    desk.at.platform.state.add(
        "customers", {"erpCode": "00001", "firstName": "Ana", "email": "ana@example.test"}
    )
    (row,) = rows_of(
        desk.run(desk.write("Código;Nombre;Correo\n00001;=Eva;ana@example.test\n")), "all lines"
    )
    assert row[3:6] == [
        "2",
        english()("status.exists_differs"),
        "first name Ana on the platform, '=Eva in the file",
    ]


def test_what_the_platform_rejected_is_to_correct_with_its_words(desk: Desk) -> None:
    desk.at.platform.set_faults({"echoed_key": 1.0})
    first = desk.run(
        desk.write("productId;variantId;sku\n1;1001;00038\n", "articulos.csv"), "variants"
    )
    assert (first.exit_code, first.push.states) == (5, {"rejected": 1})
    ((row,), (line,)) = rows_of(first), rows_of(first, "all lines")
    assert (row[:4], line[3:5]) == (["1", "1001", "00038", "2"], ["2", "rejected"])
    assert row[-1] == "; ".join(filter(None, line[5:]))
    desk.at.platform.set_faults({})
    correct(first.file, "sku", {"1": "00039"})
    assert desk.run(first.plan.folder / "result.xlsx", "variants").exit_code == 0
    assert desk.at.platform.state.variants[1, 1001].fields["sku"] == "00039"


def test_a_password_is_in_no_workbook_and_a_changed_one_is_kept(desk: Desk) -> None:
    text = "Código;Nombre;Correo;Contraseña\n00001;Ana;ana@example.test;hunter2-secret\n00002;Eva;;hunter3-secret\n"
    first = desk.run(desk.write(text), passwords=None)
    assert first.file is not None
    with zipfile.ZipFile(first.file) as archive:
        content = b"".join(map(archive.read, archive.namelist()))
    assert b"hunter" not in content
    assert b"the password must be filled in again" in content
    assert first.file.stat().st_mode & 0o077 == 0
    assert [path.name for path in first.plan.folder.glob(".orderbridge-writing-*")] == []
    for path in ("unchanged.csv", "results/confirmed.csv", "verify.csv"):  # as the input has it
        assert re.match(b"\xef\xbb\xbf[a-z]+;", (first.plan.folder / path).read_bytes()), path
    assert writing.write_result(first.plan) == first.file  # its own is replaced
    correct(first.file, "Nombre", {"00002": "Eva María"})
    edited = first.file.read_bytes()
    assert writing.write_result(first.plan) == first.plan.folder / "result-2.xlsx"
    assert first.file.read_bytes() == edited


def test_the_workbook_follows_answers_and_pushes(desk: Desk) -> None:
    text = "productId;variantId;sku;price\n1;1001;A;1\n1;1002;B;2\n1;1003;C;3\n"
    desk.at.platform.set_faults({"lost_answer": 1.0})
    first = desk.run(
        desk.write(text, "articulos.csv"), "variants", PushOptions(agreed=True, concurrency=1)
    )
    assert [row[5] for row in rows_of(first, "all lines")] == [english()("status.in_doubt")] * 3
    assert rows_of(first) == [], "what may have arrived is not to be corrected"
    desk.at.platform.set_faults({})
    doubts = [row.id for row in desk.at.rows(first.plan.folder) if row.state == "in_doubt"]
    settled = settle(
        str(first.plan.folder), Answers(landed=frozenset(doubts)), None, dependencies=desk.at.means
    )
    refresh_workbook(*settled.plans)
    assert [row[5] for row in rows_of(first, "all lines")] == ["confirmed"] * 3
    assert outcomes(first.plan.folder) == dict.fromkeys("234", "confirmed.confirmed")


def test_rows_of_another_width_are_not_repeated_nor_options_of_the_first_file(
    desk: Desk,
) -> None:
    text = "Listado;;\nproductId;variantId;sku\n1;1001;00038\n1;1002;00039;x;y\n1;;00040\n"
    columns = {name: MappedColumn(name, name) for name in ("productId", "variantId", "sku")}
    keep_mapping(
        Mapping("variants", columns, ReadOptions(header_row=2, delimiter=";", encoding="cp1252"))
    )
    first = desk.run(desk.write(text, "articulos.csv"), "variants")
    assert [row[:4] for row in rows_of(first)] == [["", "", "", "4"], ["1", "", "00040", "5"]]
    book = workbook(first)
    book[CORRECT]["B3"] = "1003"
    book.save(file := first.plan.folder / "result.xlsx")
    second = desk.run(file, "variants")
    assert (second.exit_code, second.push.states) == (5, {"confirmed": 1})
    (left,) = rows_of(second)
    assert left[:6] == ["", "", "", "2", "", "too_long"], (
        "a row that nobody filled in is rejected as it was"
    )
    assert left[6].endswith("; line 4 of the file: 1 / 1002 / 00039 / x / y")
    assert "00039" not in (second.plan.folder / "summary.md").read_text("utf-8")
    assert desk.at.platform.state.variants[1, 1003].fields["sku"] == "00040"


def test_a_cell_that_no_sheet_holds_is_left_out_and_so_are_lines_that_are_fine(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    text = f"productId;variantId;sku\n1;1001;a\n1;;{'x' * 41}\n1;;short\n1;2;3;wide\n"
    made = desk.run(desk.write(text, "articulos.csv"), "variants")

    def written(sheet: str = CORRECT) -> list[list[str]]:
        return cells(openpyxl.load_workbook(writing.write_result(made.plan))[sheet])

    monkeypatch.setattr(writing, "_CELL_MAX", 80)
    *_, wide = written()
    assert (wide[:3], wide[-1].endswith("; line 5 of the file: 1 | 2 | 3 | wide")) == (
        ["", "", ""],
        True,
    )
    monkeypatch.setattr(writing, "_CELL_MAX", 40)
    _, long, short, _ = written()
    assert (long[2], short[2]) == ("", "short"), "it is not cut"
    monkeypatch.setattr(writing, "LINES_MAX", 2)
    assert [row[3] for row in written("all lines")] == ["line", "3", "4", "5"]


def test_codes_changed_by_a_spreadsheet_in_rejects_are_named_without_the_export(
    desk: Desk,
) -> None:
    text = "productId;variantId;sku;price\n01;1001;00380;consultar\n1;1002;A7;consultar\n1;1003;00040;consultar\n"
    first = desk.run(desk.write(text, "articulos.csv"), "variants")
    rejects = first.plan.folder / "rejects.csv"
    assert b"00380" not in (first.plan.folder / CODES_FILE).read_bytes()
    desk.write("productId;variantId;sku;price\n1;1009;x;1\n", "articulos.csv")
    corrected = rejects.read_text("cp1252").replace("consultar", "5")
    for path in (rejects, desk.at.folder / "saved elsewhere.csv"):
        path.write_text(corrected.replace("00380", "380").replace("A7", "A8"), "cp1252")
        with pytest.raises(UsageError, match=r"lost their leading zeros: line 2: sku was 00380\n"):
            desk.run(path, "variants")
    meant = corrected.replace("A7", "A8").replace("00040", "41")
    rejects.write_text(meant.replace("01;1001", "1;1001"), "cp1252")  # an id is a number
    assert desk.run(rejects, "variants").exit_code == 0
    skus = [
        desk.at.platform.state.variants[1, number].fields["sku"] for number in (1001, 1002, 1003)
    ]
    assert skus == ["00380", "A8", "41"]


def test_what_was_typed_into_the_sheet_of_all_lines_is_named_and_nothing_is_sent(
    desk: Desk,
) -> None:
    odd = '"a\r\nb";" =1+1 ";_x000D_\x02;é@example.test'
    rows = f"00001;Ana;Ruiz;ana@example.test\n00002;{odd}\n00003;Luz;Mar;\n00004;Eva;Gil;\n"
    first = desk.run(desk.write(f"{HEADER.removesuffix(';Contraseña')}\n{rows}"))
    assert first.file is not None
    correct(first.file, "Correo", {"00003": "luz@example.test"})
    book = openpyxl.load_workbook(first.file)
    sheet = book["all lines"]
    sheet["C2"], sheet["D5"] = "Ruiz Gil", "eva@example.test"
    sheet["H3"] = "llamar"  # a note beside the row
    sheet.append(["00009", "Sol", "Paz", "sol@example.test"])
    book.save(typed := desk.at.folder / "corregido.xlsx")
    created = desk.at.codes()
    with pytest.raises(UsageError, match=r": line 2, line 6, row 6 of the sheet\n") as raised:
        desk.run(typed)
    assert "delete the sheet `all lines`" in raised.value.hint
    assert desk.at.codes() == created
    del book["all lines"]
    book.save(typed)
    assert desk.run(typed).push.states == {"confirmed": 1}
    sheet = (book := openpyxl.load_workbook(first.file))["all lines"]
    sheet.move_range("A2:Z2", rows=8)  # sorted
    book.save(typed)
    assert desk.run(typed).exit_code == 5, "the row that nobody corrected"


def test_texts_that_lost_letters_are_held_where_nobody_is_there(desk: Desk) -> None:
    names = ("Ana", "PeÃ±a", "Pe?a", "Peña", "¿Eva?")
    rows = "".join(f"{n:05d};{name};a{n}@example.test\n" for n, name in enumerate(names))
    file = desk.at.folder / "clientes.csv"
    file.write_text(f"Código;Nombre;Correo\n{rows}", "utf-8")
    first = desk.run(file, holds_damaged=True)
    assert (first.exit_code, first.push.lines["unsent", "held"]) == (5, 2)
    assert desk.at.codes() == ["00000", "00003", "00004"]
    assert [(row[0], row[4], row[5], row[6].partition(": ")[0]) for row in rows_of(first)] == [
        ("00001", "first name", "mojibake", "Nombre «PeÃ±a»"),
        ("00002", "first name", "lost_letter", "Nombre «Pe?a»"),
    ]
    correct(first.file, "Nombre", {"00001": "Peña"})
    assert first.file is not None
    second = desk.run(first.file, holds_damaged=True)
    assert (second.exit_code, second.push.states) == (5, {"confirmed": 1})
    assert desk.run(file, holds_damaged=True).push.lines["unsent", "held"] == 1, "once more"
    assert desk.run(file).exit_code == 0, "a person has seen them and agreed"
    assert sorted(desk.at.codes()) == [f"{n:05d}" for n in range(5)]


def test_texts_that_lost_letters_and_are_confirmed_are_sent_again_every_night(desk: Desk) -> None:
    (desk.at.folder / "m.toml").write_text(
        'kind = "variants"\n[columns]\nproductId = "productId"\nvariantId = "variantId"\nstock = "stock"\n'
        'name = { field = "attributes.Color", send = "always" }\nsku = { field = "sku", send = "always" }\n'
    )
    text = "productId;variantId;stock;name;sku\n1;1001;{};marr?n;Ro?o\n1;1002;5;{};x\n"
    options: dict[str, Any] = {"mapping": desk.at.folder / "m.toml", "holds_damaged": True}
    file = desk.write(text.format(3, "azul"), "articulos.csv")
    desk.run(file, "variants", mapping=options["mapping"])
    desk.write(text.format(4, "a?il"), "articulos.csv")
    again = desk.run(file, "variants", **options)
    assert (again.exit_code, again.push.lines["unsent", "held"]) == (5, 1), "the new text alone"
    assert again.push.states == {"confirmed": 2}


SPANISH = Texts("es")
TWO = "Código;Nombre;Correo\n00001;Ana;ana@example.test\n00002;Eva;\n00003;Luz;luz\n"


def in_spanish(desk: Desk) -> None:
    steps = replace(desk.steps(), language="es", texts=SPANISH)
    desk.steps = lambda: steps  # type: ignore[method-assign]


def test_a_workbook_in_spanish_is_corrected_and_imported_like_any_other(desk: Desk) -> None:
    in_spanish(desk)
    first = desk.run(desk.write(TWO))
    assert workbook(first).sheetnames == ["por corregir", "todas las líneas", "check"]
    header, missing, wrong = cells(workbook(first)["por corregir"])
    assert header == ["Código", "Nombre", "Correo", "línea", "campo", "código", "motivo"]
    assert workbook(first)["por corregir"].column_dimensions["F"].hidden, "codes are not for people"
    assert missing[3:] == ["3", "correo", "required", "Correo: es obligatorio y falta"]
    assert wrong[6].startswith("Correo «luz»: el correo no es válido")
    statuses = [row[4] for row in cells(workbook(first)["todas las líneas"])]
    assert statuses == ["estado", "confirmada", "rechazada", "rechazada"]
    (stored,) = spreadsheet_rows(first.plan.folder / "passwords.csv")
    assert [*stored] == [
        "operación", "línea", "código en el ERP", "correo", "código de acceso", "contraseña",
    ]  # fmt: skip
    assert (stored["línea"], stored["código en el ERP"]) == ("2", "00001")
    assert desk.said[0].splitlines()[0].startswith("mapping: las columnas se leen así")
    assert (
        (first.plan.folder / "rejects.csv")
        .read_text("cp1252")
        .splitlines()[1]
        .endswith("Correo: is required")
    )
    mails = {"00002": "eva@example.test", "00003": "luz@example.test"}
    correct(first.file, "Correo", mails, "por corregir")
    assert first.file is not None
    again = desk.run(first.file)
    assert (again.exit_code, again.push.states) == (0, {"confirmed": 2})
    assert sorted(desk.at.codes()) == ["00001", "00002", "00003"]
    stored_again = (again.plan.folder / "passwords.csv").read_text("utf-8-sig")
    assert stored_again.startswith("operación;línea;"), "as a Spanish spreadsheet splits it"


def test_what_was_typed_into_the_spanish_sheet_of_all_lines_is_named(desk: Desk) -> None:
    in_spanish(desk)
    first = desk.run(desk.write(TWO))
    correct(first.file, "Correo", {"00002": "eva@example.test"}, "todas las líneas")
    assert first.file is not None
    with pytest.raises(
        UsageError, match="`todas las líneas` were changed, and only `por corregir`"
    ):
        desk.run(first.file)


def test_a_sheet_of_a_person_is_not_taken_for_corrections(desk: Desk) -> None:
    book = openpyxl.Workbook()
    book.active.title = "por corregir"
    book.active.append(["nada"])
    sheet = book.create_sheet("Artículos")
    for row in (["productId", "variantId", "sku"], ["1", "1001", "00038"]):
        sheet.append(row)
    book.save(file := desk.at.folder / "articulos.xlsx")
    assert desk.run(file, "variants", sheet="Artículos").push.states == {"confirmed": 1}
    assert desk.run(file, "variants").push.states == {}


def test_a_workbook_that_is_written_again_keeps_its_language(desk: Desk) -> None:
    in_spanish(desk)
    first = desk.run(desk.write(TWO))
    assert write_result(first.plan) == first.file
    assert workbook(first).sheetnames[0] == "por corregir"
