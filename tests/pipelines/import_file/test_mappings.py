"""A mapping is asked for once, kept, and found again for the file of the next day."""

from __future__ import annotations

import errno
import shutil
from collections.abc import Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal
from unittest import mock

import click
import openpyxl
import pytest

from orderbridge.pipelines.cli import import_file as command
from orderbridge.pipelines.cli.console import Reporter
from orderbridge.pipelines.cli.import_document import next_steps, record
from orderbridge.pipelines.import_file.asking import (
    BegunImport,
    FileQuestion,
    Interview,
    begun_imports,
    nobody,
)
from orderbridge.pipelines.import_file.mappings import (
    DETECTED,
    column_questions,
    find_mapping,
    keep_mapping,
    new_mapping,
)
from orderbridge.pipelines.import_file.run import Import, ImportOptions, import_file
from orderbridge.pipelines.imports.open import open_input_table
from orderbridge.pipelines.mapping import MappedColumn, Mapping, load, propose, sample
from orderbridge.pipelines.plan.model import MANIFEST_FILE, MAPPING_FILE
from orderbridge.pipelines.push.model import PushOptions
from orderbridge.pipelines.questions.columns import Columns
from orderbridge.pipelines.questions.imports import asked_of
from orderbridge.pipelines.questions.model import Given, GivenAnswer
from orderbridge.pipelines.questions.questions import answer_questions
from orderbridge.sources.errors import UsageError
from tests.pipelines.import_file.desk import VARIANTS, Desk
from tests.pipelines.import_file.test_result import correct
from tests.pipelines.push.plans import YES

HEADER = "Código;Nombre;Correo;Zona;Agente"
ROWS = "00001;Ana;ana@example.test;Norte;7\n00002;Eva;eva@example.test;Sur;8\n"


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("WAREHOUSE__PATH", str(tmp_path / "warehouse.duckdb"))
    return tmp_path


def write(folder: Path, header: str = HEADER, rows: str = ROWS, name: str = "clientes.csv") -> Path:
    file = folder / name
    file.write_text(f"{header}\n{rows}", "utf-8")
    return file


def asked(folder: Path, answers: dict[str, str | None] | None) -> Mapping | None:
    """The mapping of a file after these answers; None: nobody is there."""
    given = {f"column/{name}": field or "ignore" for name, field in (answers or {}).items()}
    file = write(folder)
    interview = Interview.about("customers", file, DETECTED, (), HEADER.split(";"), lambda _: given)
    return new_mapping("customers", file, "file" if answers else None, interview)


def test_what_was_answered_is_kept_and_found_again(folder: Path) -> None:
    assert asked(folder, None) is None
    mapping = asked(folder, {"Zona": "documents[0].fiscalName", "Agente": None})
    assert mapping is not None
    path = keep_mapping(mapping)
    assert path == folder / "mappings/customers.toml"
    assert path.stat().st_mode & 0o077 == 0
    kept = load(path, "customers")
    assert {name: column.field for name, column in kept.columns.items()} == {
        "Código": "erpCode", "Nombre": "firstName", "Correo": "email", "Zona": "documents[0].fiscalName", "Agente": None
    }  # fmt: skip
    assert kept.generate_passwords == "file"
    assert find_mapping("customers", write(folder, name="clientes-26.csv")) == path
    assert find_mapping("variants", write(folder)) is None
    assert keep_mapping(mapping) == folder / "mappings/customers-2.toml"


PEOPLE = "Código;Nombre;Apellidos;Zona"
WORDS = "GARCIA;Ana;Gil;Norte\nRUIZ;Eva;Sanz;Zona\n"


@pytest.mark.parametrize("above", ["", "Desde;01/01/2025;Hasta;31/01/2025\n"])
def test_the_columns_of_a_kept_mapping_show_which_line_has_the_names(
    folder: Path, above: str
) -> None:
    file = write(folder, above + PEOPLE, WORDS)
    with pytest.raises(UsageError, match="has the names: --header-row"):
        open_input_table(file)
    fields = ("erpCode", "firstName", "lastName", None)
    columns = dict(zip(PEOPLE.split(";"), fields, strict=True))
    mapping = Mapping("customers", {name: MappedColumn(name, columns[name]) for name in columns})
    path = keep_mapping(mapping)
    assert find_mapping("customers", file) == path
    table = open_input_table(file, None, load(path, "customers"))
    assert (table.columns, len([*table.rows()])) == (tuple(columns), 2)


def test_a_mapping_that_a_person_gives_is_taken_the_next_time_too(desk: Desk) -> None:
    desk.run(desk.write(VARIANTS, "articulos.csv"), "variants")
    (desk.at.folder / "own").mkdir()
    own = desk.at.folder / "own" / "articulos.toml"
    columns = {
        "productId": "productId",
        "variantId": "variantId",
        "price": "price",
        "sku": "erpCode",
    }
    own.write_text(
        'kind = "variants"\n[columns]\n'
        + "".join(f'{name} = "{columns[name]}"\n' for name in columns)
    )
    for code in ("00010", "00011"):
        desk.run(
            desk.write(VARIANTS.replace("00038", code), "articulos.csv"), "variants", mapping=own
        )
    result = desk.run(desk.write(VARIANTS.replace("00038", "00012"), "articulos.csv"), "variants")
    assert desk.at.platform.state.variants[1, 1001].fields["erpCode"] == "00012"
    assert result.plan.manifest.mapping is not None
    assert result.plan.manifest.mapping.path == str(own)
    kept = sorted(path.name for path in (desk.at.folder / "mappings").iterdir())
    assert kept == ["variants-2.toml", "variants.toml"]
    own.unlink()
    file = desk.write(VARIANTS, "articulos.csv")
    assert find_mapping("variants", file) == desk.at.folder / "mappings/variants.toml"


LOOKUP = """kind = "variants"
[columns]
"Código" = "erpCode"
Precio = "price"
[[lookup]]
file = "../ids.csv"
match = { "Código" = "code" }
give = { productId = "product", variantId = "variant" }
"""


def test_a_mapping_with_a_lookup_serves_its_corrections_and_the_next_file(desk: Desk) -> None:
    own, ids = desk.at.folder / "own/a.toml", desk.at.folder / "ids.csv"
    own.parent.mkdir()
    own.write_text(LOOKUP, "utf-8")
    ids.write_text("code;product;variant\nA1;1;1001\nA2;1;1002\n")
    text = "Código;Precio;Familia;Marca;Peso;Zona\nA1;5;x;x;x;x\nA2;?;x;x;x;x\n"
    first = desk.run(desk.write(text, "a.csv"), "variants", mapping=own, lookups=(ids,))
    correct(first.file, "Precio", {"A2": "6"})
    assert first.file is not None
    foreign = shutil.copytree(first.plan.folder, desk.at.folder / "foreign") / MANIFEST_FILE
    foreign.write_text(foreign.read_text().replace(first.plan.manifest.plan_id, "0" * 32))
    with pytest.raises(
        UsageError, match=f"allow it: --lookup {ids}"
    ):  # of a plan that was not pushed here
        desk.run(foreign.with_name(first.file.name), "variants")
    assert desk.run(first.file, "variants").push.states.keys() == {"confirmed"}
    next_file = desk.write(text.replace("?", "7"), "a-2.csv")
    assert desk.run(next_file, "variants", lookups=(ids,)).push.states.keys() == {"confirmed"}
    assert desk.said[-1] == f"mapping: the columns are read as in {own}"
    with pytest.raises(UsageError):
        desk.run(desk.write("SKU;Peso;Tarifa\n1;2;3\n", "b.csv"), "variants", lookups=(ids,))
    assert desk.said[-1] == f"mapping: {own} is not used: b.csv has no column Código, Precio"


@pytest.mark.parametrize(
    ("header", "is_found"),
    [
        (HEADER, True),
        (HEADER + ";Riesgo", True),  # a column that the ERP adds
        (HEADER.replace(";Agente", ""), True),  # an ignored one that it no longer has
        (
            HEADER.replace("Correo", "Buzón"),
            True,
        ),  # a used one has another name: reported, and not proposed anew
        ("Código;Descripción;PVP;Existencias;Peso", False),
        ("Código;Zona;Nombre completo;Buzón", False),  # another export that has some columns of it
        (HEADER + ";A;B;C;D;E;F", False),  # another one that has all, and more others
    ],
)
def test_a_mapping_is_found_by_the_header_alone(folder: Path, header: str, is_found: bool) -> None:
    mapping = asked(folder, {"Zona": None, "Agente": None})
    assert mapping is not None
    path = keep_mapping(mapping)
    rows = ";".join(["x"] * (header.count(";") + 1)) + "\n"
    said: list[str] = []
    found = find_mapping(
        "customers", write(folder, header, rows), on_step=lambda _, text: said.append(text)
    )
    assert (found, len(said)) == ((path, 0) if is_found else (None, 1))


def test_day_two_needs_no_question_and_a_new_column_is_a_remark(desk: Desk) -> None:
    text = (
        VARIANTS.replace("sku", "sku;Notas").replace("00038", "00038;x").replace("00039", "00039;y")
    )
    with pytest.raises(UsageError, match="1 column matches no field of variants: 'Notas'"):
        desk.run(desk.write(text, "articulos.csv"), "variants")
    desk.columns = {"Notas": None}
    assert desk.run(desk.write(text, "articulos.csv"), "variants").exit_code == 0
    desk.columns = None
    changed = (
        text.replace("19,99", "21,50").replace("Notas", "Notas;Color").replace(";x", ";x;rojo")
    )
    result = desk.run(desk.write(changed.replace(";y", ";y;azul"), "articulos-2.csv"), "variants")
    assert (result.exit_code, result.push.states) == (0, {"confirmed": 1})
    assert result.made is not None
    assert any(
        "does not name are ignored: Color; to send" in note for note in result.made.statistics.notes
    )
    assert (
        find_mapping("variants", result.plan.folder / "rejects.csv")
        == result.plan.folder / MAPPING_FILE
    )


def test_the_person_answers_with_a_field_ignore_or_ignore_all_the_rest(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    file = write(
        folder, "Código;Correo;E-mail;Zona;Agente;Ruta;Riesgo", "1;a@b.es;c@d.es;Norte;7;2;0\n"
    )
    table = open_input_table(file, None, None)
    samples = sample(table)
    proposed = propose(table.columns, "customers", conflicts="leave", samples=samples)
    questions = column_questions(proposed, samples)
    assert command.steps(Reporter("plain")).ask(questions) == {}, "nobody is there"
    typed = ["", "mail", "y", "y", "email", "i", "fiscalName", "documents[0].fiscalName", "i", "a"]
    monkeypatch.setattr("sys.stdin", mock.Mock(isatty=lambda: True))
    monkeypatch.setattr(click.termui, "visible_prompt_func", lambda _: typed.pop(0))
    ignored = dict.fromkeys(("E-mail", "Agente", "Ruta", "Riesgo"), "ignore")
    answers = command.steps(Reporter("plain")).ask(questions)
    fields = {"Correo": "email", "Zona": "documents[0].fiscalName", **ignored}
    assert answers == {f"column/{name}": field for name, field in fields.items()}
    shown = capsys.readouterr().err
    assert shown.startswith("6 columns of the file need an answer: Correo, E-mail, Zona, ")
    assert "y for the guess, i to ignore it, or a to ignore it and all that follow.\n" in shown
    assert "Enter alone asks again.\nFree fields: password, firstName, lastName, email, " in shown
    assert "mail is not a field of customers (did you mean email?)" in shown
    assert "  y is not a field of customers" in shown, "E-mail is no guess once Correo is the email"
    assert "fiscalName is not a field of customers (did you mean documents[0].fiscalName?)" in shown
    assert "email is filled by another column" in shown


ARTICLES = "Id producto;Id variante;Referencia;Artículo;PVP\n" + "".join(
    f"1;{1000 + n};{n:05d};Tornillo hexagonal {name};{n},50\n"
    for n, name in enumerate(("corto", "largo", "ancho"), 1)
)


def test_without_a_person_an_unproven_column_is_not_sent_and_stops_nothing(
    desk: Desk,
) -> None:
    result = desk.run(desk.write(ARTICLES, "articulos.csv"), "variants")
    sent = desk.at.platform.state.variants[1, 1001].fields
    assert (result.exit_code, sent["sku"], sent["price"]) == (0, "00001", 1.5)
    assert sent.get("erpCode") != "Tornillo hexagonal corto"
    assert result.made is not None
    (note,) = [note for note in result.made.statistics.notes if "Artículo" in note]
    assert note.startswith(
        "not sent, since neither name nor values prove the field: Artículo (perhaps erpCode)"
    )
    assert not (desk.at.folder / "mappings").exists(), "nobody has answered"
    desk.columns = {"Artículo": None}
    assert desk.run(desk.write(ARTICLES.replace(",50", ",75"), "b.csv"), "variants").exit_code == 0
    assert load(desk.at.folder / "mappings/variants.toml").columns["Artículo"].field is None


KEPT = """# of the ERP
kind = "variants"
[columns]
"Id producto" = "productId"
"Id variante" = "variantId"
Referencia = "sku"
"Artículo" = "erpCode"
PVP = { field = "price", decimal = "," }  # with tax
"""


def keep(desk: Desk, text: str = KEPT, name: str = "variants.toml") -> Path:
    path = desk.at.folder / "mappings" / name
    path.parent.mkdir(exist_ok=True)
    path.write_text(text, "utf-8")
    return path


@pytest.mark.parametrize(
    ("answer", "line"),
    [
        ("erpCode", '"Artículo" = { field = "erpCode", answered = true }'),
        ("ignore", '"Artículo" = { ignore = true }'),
    ],
)
def test_a_mapping_that_was_kept_before_stops_nothing_and_is_asked_about_once(
    desk: Desk, answer: str, line: str
) -> None:
    path = keep(desk)
    for price in (",50", ",75"):
        file = desk.write(ARTICLES.replace(",50", price), "articulos.csv")
        result = desk.run(file, "variants")
    fields = desk.at.platform.state.variants[1, 1001].fields
    assert (result.exit_code, fields["erpCode"]) == (0, "Tornillo hexagonal corto")
    (question,) = Columns().asked()
    assert (question.id, question.state, question.value) == (
        "column:variants/Artículo",
        "open",
        "erpCode",
    )
    assert question.choices[0].evidence.startswith("such as Tornillo hexagonal corto, ")
    given = Given(by="ana", at=datetime.now(UTC))
    with pytest.raises(UsageError, match="sku is not an answer"):
        answer_questions([GivenAnswer(question=question.id, value="sku")], given)
    answered = answer_questions([GivenAnswer(question=question.id, value=answer)], given)
    assert answered.places == [str(path)]
    assert path.read_text("utf-8") == KEPT.replace('"Artículo" = "erpCode"', line)
    assert Columns().asked() == []
    assert desk.run(desk.write(ARTICLES, "articulos.csv"), "variants").exit_code == 0


def test_a_kept_login_of_somebody_else_is_asked_about_and_a_proven_one_is_not(desk: Desk) -> None:
    columns = '[columns]\n"Código" = "erpCode"\nNombre = "firstName"\n'
    keep(desk, f'kind = "customers"\n{columns}"Correo del contador" = "email"\n', "customers.toml")
    rows = "1;Ana;c1@example.test\n2;Eva;c2@example.test\n3;Luz;c3@example.test\n"
    desk.run(desk.write(f"Código;Nombre;Correo del contador\n{rows}"))
    assert [one.id for one in Columns().asked()] == ["column:customers/Correo del contador"]


def test_what_a_person_has_answered_is_not_asked_again(desk: Desk) -> None:
    desk.columns = {"Artículo": "erpCode"}
    assert desk.run(desk.write(ARTICLES, "articulos.csv"), "variants").exit_code == 0
    kept = load(desk.at.folder / "mappings/variants.toml").columns["Artículo"]
    assert (kept.field, kept.answered, Columns().asked()) == ("erpCode", True, [])


def test_without_a_person_the_only_addresses_are_no_login_if_nothing_says_so(desk: Desk) -> None:
    text = "Código;Nombre;Sales rep e-mail\n1;Ana;rep1@example.test\n2;Eva;rep2@example.test\n"
    for file in (text, text.replace("Sales rep e-mail", "Buzón")):
        with pytest.raises(UsageError, match=r"no column fills email|matches no field") as error:
            desk.run(desk.write(file), "customers")
        assert ("'Buzón' may be email" in error.value.hint) == ("Buzón" in file)
    assert "push" not in desk.done


@pytest.mark.parametrize(("answer", "code"), [(None, 5), ("skip", 0)])
def test_lines_of_totals_are_asked_for_once_and_an_ignored_column_rejects_nothing(
    desk: Desk, answer: Literal["skip"] | None, code: int
) -> None:
    book = openpyxl.Workbook()
    for row in (
        ["productId", "variantId", "sku", "price", "Notas"], [1, 1001, "00038", "1,50 €", "#N/A"],
        [1, 1002, "00039", "12,00 €", "x"], ["Total", None, None, "13,50 €", None],
    ):  # fmt: skip
        book.active.append(row)
    book.active["E2"].data_type = "e"
    book.save(file := desk.at.folder / "articulos.xlsx")
    desk.columns, desk.totals = {"Notas": None}, answer
    assert desk.run(file, "variants").exit_code == code
    assert [desk.at.platform.state.variants[1, n].fields["price"] for n in (1001, 1002)] == [
        1.5,
        12,
    ]
    desk.columns = desk.totals = None
    assert (desk.run(file, "variants").exit_code, desk.asked_totals) == (code, [[4]])
    book.active["D3"] = "?"
    book.save(file)
    rejects = (
        (desk.run(file, "variants").plan.folder / "rejects.csv").read_text("utf-8-sig").splitlines()
    )
    assert [line.split(",")[1] for line in rejects[1:]] == [
        "1002",
        *([""] if answer is None else []),
    ]


def test_what_is_answered_after_the_columns_were_kept_counts_too(desk: Desk) -> None:
    rows = "1;1001;1,50;1,5 kg;x\n1;1002;2,50;;\nTotal;;4,00;;\n"
    file = desk.write(f"productId;variantId;price;Peso;Exento IVA\n{rows}", "articulos.csv")
    options = ImportOptions(kind="variants", file=file)
    on_a_page = replace(desk.steps(), ask=nobody)
    with pytest.raises(UsageError, match="would be sent"):
        import_file(options, on_a_page)
    (begun,) = begun_imports()
    answers = {"totals": "skip", "mark/Exento IVA": "yes", "unit/Peso": "yes"}
    assert {one.key for one in begun.questions} == set(answers)
    for key, value in answers.items():
        given = [GivenAnswer(question=begun.question(key), value=value)]
        answer_questions(given, Given(by="ana", at=datetime.now(UTC)))
        with pytest.raises(UsageError, match="would be sent"):
            import_file(options, on_a_page)
    result = import_file(replace(options, push=YES), on_a_page)
    assert (result.exit_code, result.push.lines["rejected", "rejected"]) == (0, 0)
    sent = [desk.at.platform.state.variants[1, n].fields for n in (1001, 1002)]
    assert [one["priceIsTaxExempt"] for one in sent] == [True, False]
    assert sent[0]["weight"] == 1.5
    assert [*begun_imports()] == [], "nothing is asked any more"


def test_what_rejects_all_lines_stays_a_question(desk: Desk) -> None:
    text = "productId;variantId;sku;Peso;Exento IVA\n1;1001;A1;1,5 kg;x\n1;1002;A2;2 kg;\n"
    options = ImportOptions(kind="variants", file=desk.write(text, "articulos.csv"), push=YES)
    on_a_page = replace(desk.steps(), ask=nobody)
    for _ in range(2):
        run = Import(options, on_a_page)
        rejected = run.run()
        assert (rejected.exit_code, rejected.push.sent) == (5, 0)
        (begun,) = begun_imports()
        assert ({one.key for one in begun.questions}, begun.has_ended) == (
            {"mark/Exento IVA", "unit/Peso"},
            False,
        )
        assert {one["id"] for one in record(run, rejected, values=True)["questions"]} == {
            begun.question(one.key) for one in begun.questions
        }
        step = next_steps(rejected)[0]
        assert (step.code, step.command) == ("answer_file", "orderbridge questions")
    for key, value in (("mark/Exento IVA", "no"), ("unit/Peso", "yes")):
        given = [GivenAnswer(question=begun.question(key), value=value)]
        answer_questions(given, Given(by="ana", at=datetime.now(UTC)))
    run = Import(options, on_a_page)
    sent = run.run()
    assert (sent.exit_code, sent.push.lines["confirmed", "confirmed"]) == (5, 1)
    assert desk.at.platform.state.variants[1, 1002].fields["weight"] == 2
    assert record(run, sent, values=True)["questions"] == []
    assert [*begun_imports()] == [], "nothing is asked any more"


def test_a_full_disk_leaves_no_part_of_a_mapping(folder: Path) -> None:
    full = mock.patch("os.fsync", side_effect=OSError(errno.ENOSPC, "no space"))
    with full, pytest.raises(UsageError, match="Free space"):
        keep_mapping(propose(["Código"], "customers"))
    assert list((folder / "mappings").iterdir()) == []


def test_a_sheet_is_chosen_once_and_another_one_has_a_mapping_of_its_own(desk: Desk) -> None:
    book = openpyxl.Workbook()
    for at, name in enumerate(("Julio", "Agosto")):
        sheet = book.create_sheet(name, at)
        sheet.append(["productId", "variantId", "sku"])
        sheet.append([1, 1001 + at, "00038"])
    book.save(file := desk.at.folder / "articulos.xlsx")
    with pytest.raises(UsageError, match="Choose one: --sheet"):
        desk.run(file, "variants")
    for name, number in (("Julio", 1001), ("Agosto", 1002)):
        assert desk.run(file, "variants", sheet=name).push.states == {"confirmed": 1}
        assert desk.at.platform.state.variants[1, number].fields["sku"] == "00038"
        assert desk.run(file, "variants").push.states == {}
        assert desk.said[-1].endswith(f", of the sheet {name}")
    kept = desk.at.folder / "mappings/variants-2.toml"
    with pytest.raises(UsageError, match="--sheet does not count with --mapping"):
        desk.run(file, "variants", sheet="Julio", mapping=kept)


def test_a_file_that_lacks_what_is_required_has_no_mapping_and_asks_nothing_in_vain(
    desk: Desk,
) -> None:
    articles, steps = desk.write("sku;Zona\nA1;N\n", "a.csv"), desk.steps()
    asking = replace(steps, ask=lambda _: pytest.fail("asked"))
    desk.steps = lambda: asking  # type: ignore[method-assign]
    with pytest.raises(UsageError, match="no column fills productId, variantId") as raised:
        desk.run(articles, "variants")
    assert "orderbridge template variants --mapping --for" in raised.value.hint
    desk.columns = {"Zona": None}

    def ask(questions: Sequence[FileQuestion]) -> dict[str, str]:
        assert {one.topic for one in questions} == {"column"}
        return desk.ask(questions)

    desk.steps = lambda: replace(steps, ask=ask)  # type: ignore[method-assign]
    for _ in range(2):
        with pytest.raises(UsageError, match="no column fills email"):
            desk.run(desk.write("Código;Nombre;Zona\n1;Ana;Norte\n"), passwords=None)
    assert not (desk.at.folder / "mappings").exists()


def test_ids_under_other_names_are_asked_for_like_any_column(desk: Desk) -> None:
    file = desk.write("Cód. Prod.;Cód. Var.;PVP\n1;1001;5,50\n1;1002;6,75\n", "articulos.csv")
    with pytest.raises(UsageError, match="no column fills productId, variantId"):
        desk.run(file, "variants")  # nobody is there
    desk.columns = {"Cód. Prod.": "productId", "Cód. Var.": "variantId"}
    assert desk.run(file, "variants").push.states == {"confirmed": 2}
    assert desk.at.platform.state.variants[1, 1001].fields["price"] == 5.5
    desk.columns = None
    assert desk.run(file, "variants").exit_code == 0, "it is asked once"
    desk.yes = True  # its columns are read anew
    weights = desk.write("Cód. Prod.;Cód. Var.;Peso\n1;1001;2\n1;1002;3\n", "pesos.csv")
    assert desk.run(weights, "variants").push.states == {"confirmed": 2}, "only the price is gone"


IDS = "Ref.;product_id;variant_id\n00038;1;1001\n00039;1;1002\n00040;1;1003\n"


@pytest.mark.parametrize("is_given", [False, True])
def test_a_file_with_the_ids_is_proposed_as_a_lookup_and_kept(desk: Desk, is_given: bool) -> None:
    (desk.at.folder / "other").mkdir()
    ids = desk.write(IDS, "other/ids.csv" if is_given else "ids.csv")
    lookups = (ids,) if is_given else ()
    desk.write("Ref.;product_id;variant_id\n1;1;1001\n2;1;1002\n", "other codes.csv")
    desk.write("Ref.;Zona\n00038;N\n00039;S\n", "no ids.csv")
    file = desk.write("SKU;PVP\n00038;5,50\n00039;6,75\n", "articulos.csv")
    for answer, hint in (
        (None, "Import the file once in a terminal"),
        (False, "orderbridge template"),
    ):
        desk.yes = answer
        with pytest.raises(UsageError, match="no column fills productId, variantId") as raised:
            desk.run(file, "variants", lookups=lookups)
        assert hint in raised.value.hint
    desk.yes = True
    assert desk.run(file, "variants", lookups=lookups).push.states == {"confirmed": 4}
    assert desk.asked_yes[-1].endswith(
        f"{ids} has them (productId = product_id, variantId = variant_id): find them by SKU = Ref.? "
        "2 of 2 lines have a row there."
    )
    assert desk.at.platform.state.variants[1, 1002].fields["price"] == 6.75
    desk.yes = None
    next_file = desk.write("SKU;PVP\n00038;5,60\n00040;7\n", "articulos-2.csv")
    assert desk.run(next_file, "variants", lookups=lookups).push.states["confirmed"] >= 2
    assert desk.at.platform.state.variants[1, 1003].fields["price"] == 7
    ids.write_text(IDS.replace("1;1001", "1;1004"))
    made = desk.run(next_file, "variants", lookups=lookups).made
    assert made is not None
    assert [(one.code, one.first) for one in made.statistics.suspicious] == [
        ("moved", [2]),
        ("lookup_moved", [2]),
    ]
    elsewhere = desk.write(next_file.read_text("cp1252"), "other/articulos-3.csv")
    (desk.at.folder / "other/ids.csv").unlink(missing_ok=True)
    (desk.at.folder / "other/codes.csv").write_text(IDS)
    with pytest.raises(UsageError, match="no column fills productId, variantId"):
        desk.run(elsewhere, "variants")
    assert "allow it: --lookup" in desk.said[-1]
    assert "other/codes.csv has them" in desk.asked_yes[-1]
    plain = desk.write("productId;variantId;PVP;EAN;Peso\n1;1001;5;1;2\n", "other/plain.csv")
    desk.columns = {"EAN": None}
    assert desk.run(plain, "variants").exit_code == 0, "no other file is in the way"


def test_a_mark_and_empty_cells_are_yes_and_no_only_if_a_person_says_so(desk: Desk) -> None:
    rows = "1;1001;x\n1;1002;\n1;1003;X\n"
    file = desk.write(f"productId;variantId;Exento IVA\n{rows}", "articulos.csv")
    variants = desk.at.platform.state.variants
    assert desk.run(file, "variants").push.lines["rejected", "rejected"] == 2, "nobody is there"
    assert [question.partition(":")[0] for question in desk.asked_yes] == [
        "Exento IVA has x in 2 lines, and is empty in 1"
    ]
    (desk.at.folder / "mappings/variants.toml").unlink()
    desk.yes = True
    assert desk.run(file, "variants").exit_code == 0
    assert [variants[1, n].fields["priceIsTaxExempt"] for n in (1001, 1002, 1003)] == [
        True, False, True,
    ]  # fmt: skip
    (desk.at.folder / "mappings/variants.toml").unlink()
    desk.asked_yes.clear()
    desk.run(
        desk.write(f"productId;variantId;Exento IVA\n{rows}1;1004;quizás\n", "a.csv"), "variants"
    )
    assert desk.asked_yes == [], "the whole column is so, or it is not"


def test_another_currency_than_the_one_that_is_remembered_is_a_question(desk: Desk) -> None:
    header, variants = "productId;variantId;PVP\n", desk.at.platform.state.variants
    desk.run(desk.write(f"{header}1;1001;5,50 €\n", "a.csv"), "variants")
    in_dollars = desk.write(f"{header}1;1001;$ 6,50\n1;1002;7,5\n", "a-2.csv")
    for answer in (None, False):
        desk.yes = answer
        with pytest.raises(UsageError, match=r"^PVP: amounts in \$, and the mapping names €\n"):
            desk.run(in_dollars, "variants")
    assert variants[1, 1001].fields["price"] == 5.5
    assert (
        desk.asked_yes == ["PVP: amounts in $, before in €. Are the platform's amounts in $?"] * 2
    )
    mixed = desk.write(f"{header}1;1001;6,50 €\n1;1002;$ 7,5\n", "a-3.csv")
    assert desk.run(mixed, "variants").push.lines["rejected", "rejected"] == 1
    desk.yes = True
    assert desk.run(in_dollars, "variants").exit_code == 0
    assert variants[1, 1001].fields["price"] == 6.5
    desk.yes = None
    assert desk.run(desk.write(f"{header}1;1001;$ 8,50\n", "a-4.csv"), "variants").exit_code == 0


def test_a_mapping_without_a_currency_goes_on_and_a_remark_says_how_to_notice(
    desk: Desk,
) -> None:
    columns = {name: MappedColumn(name, name) for name in ("productId", "variantId", "price")}
    path = keep_mapping(Mapping("variants", columns))  # as 0.3.0 kept them
    for price in ("5,50 €", "$ 6,50"):
        file = desk.write(f"productId;variantId;price\n1;1001;{price}\n", "a.csv")
        made = desk.run(file, "variants").made
        assert made is not None
        sign = price.strip("56,0 ")
        (note,) = [one for one in made.statistics.notes if one.startswith("price: amounts")]
        assert note == (
            f"price: amounts in {sign}; to notice another currency later, set "
            f'currency = "{sign}" for the column in {path.name}'
        )


def test_a_unit_is_ignored_if_the_whole_column_has_it_and_a_person_agrees(
    desk: Desk,
) -> None:
    rows = "1;1001;1,5 kg;12 uds\n1;1002;2,25 kg;3 uds\n"
    file = desk.write(f"productId;variantId;Peso;Existencias\n{rows}", "a.csv")
    assert desk.run(file, "variants").push.lines["rejected", "rejected"] == 2, "nobody is there"
    assert desk.asked_yes == [
        "Peso: all numbers have kg. Are the platform's values of weight in kg?",
        "Existencias: all numbers have uds. Are the platform's values of stock in uds?",
    ]
    (kept := desk.at.folder / "mappings/variants.toml").unlink()
    desk.yes = True
    assert desk.run(file, "variants").exit_code == 0
    sent = [desk.at.platform.state.variants[1, n].fields for n in (1001, 1002)]
    assert [(one["weight"], one["stock"]) for one in sent] == [(1.5, 12), (2.25, 3)]
    kept.unlink()
    desk.asked_yes.clear()
    desk.run(
        desk.write(f"productId;variantId;Peso;Existencias\n{rows}1;1003;3 g;4\n", "b.csv"),
        "variants",
    )
    assert desk.asked_yes == []


def test_a_code_that_its_lookup_leads_elsewhere_since_the_last_import_is_named_once(
    desk: Desk,
) -> None:
    ids = desk.write("ean;product_id;variant_id\nE1;1;1001\nE2;1;1002\nE3;1;1003\n", "ids.csv")
    desk.columns, desk.yes = {"Barras": None}, True
    file = desk.write("Barras;PVP\nE2;5\nE1;6\n", "articulos.csv")

    def named() -> list[tuple[str, str, list[int]]]:
        made = desk.run(file, "variants", push=PushOptions() if desk.answer is False else YES).made
        assert made is not None
        return [(one.field, one.code, one.first) for one in made.statistics.suspicious]

    assert named() == [], "nothing was before"
    ids.write_text("ean;product_id;variant_id\nE1;1;1002\nE2;1;1002\nE3;1;1004\nE4;1;1001\n")
    file.write_text("Barras;PVP\nE1;6\nE4;7\n")
    desk.answer = False
    with pytest.raises(UsageError):
        named()
    desk.answer = None
    assert named() == [("Barras", "lookup_moved", [2])], "nobody agreed before"
    assert named() == []
    records = desk.at.folder / ".lookup-records.json"
    assert b"E1" not in records.read_bytes()
    assert records.stat().st_mode & 0o077 == 0
    records.write_text("{")
    assert named() == [], "a damaged one is no hindrance"


def test_no_customer_is_created_without_a_column_that_nobody_was_asked_about(desk: Desk) -> None:
    rows = "".join(f"{n};Ana {n};ana{n}@example.test\n" for n in range(1, 5))
    with pytest.raises(UsageError, match="matches no field of customers: 'Nº'"):
        desk.run(desk.write(f"Nº;Nombre;Correo\n{rows}"))
    assert desk.at.codes() == []
    assert "push" not in desk.done


def test_names_of_articles_are_asked_about_and_not_proposed_as_the_code() -> None:
    columns = {
        "Código": ["Tornillo M8 x 40", "Arandela plana 10 mm", "Martillo de bola"],
        "Artículo": ["A-0017", "A-0018", "B-2001"],
    }
    proposed = propose(list(columns), "variants", conflicts="leave", samples=columns)
    asked = {one.about: one for one in column_questions(proposed, columns)}
    assert (asked["Artículo"].guess, asked["Artículo"].may_be) == ("erpCode", None)
    assert (asked["Código"].guess, asked["Código"].may_be) == (None, "erpCode")
    begun = BegunImport(kind="variants", file="articulos.csv", columns=tuple(columns))
    question = asked_of(begun, asked["Código"])
    assert question.proposal is None
    assert [choice.value for choice in question.choices] == ["erpCode", "ignore"]


def test_a_field_that_another_column_fills_is_not_proposed() -> None:
    columns = {"Código": ["A-0017", "A-0018", "B-2001"], "Artículo": ["Tuerca", "Taco", "Clavo"]}
    proposed = propose(list(columns), "variants", conflicts="leave", samples=columns)
    (asked,) = column_questions(proposed, columns)
    assert (asked.about, asked.guess, asked.may_be) == ("Artículo", None, None)
