"""An import without a terminal gives a page all that it shows and asks, and goes on once it is answered."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from tests.pipelines.bridge import Done, command
from tests.pipelines.import_file.desk import Desk
from tests.pipelines.import_file.test_mappings import ARTICLES

CUSTOMERS = (
    "Código;Nombre;Correo;Móvil 2;Zona;Clave\n"
    "00001;Ana;ana1@example.test;600 000 001;Norte;secreta1\n"
    "00002;Eva;eva2@example.test;600 000 002;Sur;secreta2\n"
    "00003;Luz;luz3.example.test;600 000 003;Sur;secreta3\n"
)
IGNORED = {"column__Zona": "ignore", "column__Clave": "ignore"}


def call(desk: Desk, *arguments: str, **more: str) -> Done:
    return command(*arguments, env={**os.environ, **more}, cwd=desk.at.folder)


def document(done: Done) -> dict[str, Any]:
    """The one object on stdout."""
    (line,) = done.out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def events(done: Done) -> list[dict[str, Any]]:
    return [json.loads(line) for line in done.err.splitlines()]


def answer(desk: Desk, **answers: str) -> Done:
    """Answers by the names of columns, as a page does."""
    (asked,) = (desk.at.folder / "mappings").glob("*.asked.json")
    name = asked.name.removesuffix(".asked.json")
    entries = [
        {"question": f"import:{name}/{key.replace('__', '/')}", "answer": value}
        for key, value in answers.items()
    ]
    file = desk.at.folder / "answers.json"
    file.write_text(json.dumps(entries), "utf-8")
    return call(desk, "answer", "--from", str(file))


def test_a_page_answers_what_an_import_asks_and_sends_what_it_has_shown(desk: Desk) -> None:
    desk.write(CUSTOMERS)
    arguments = ("import", "customers", "clientes.csv", "--json", "--values")
    first = call(desk, *arguments, "--passwords", "file")
    asked = document(first)
    assert (first.code, asked["state"], asked["exit_code"]) == (2, "asking", 2)
    assert {one["about"]: one["topic"] for one in asked["questions"]} == dict.fromkeys(
        ("Móvil 2", "Zona", "Clave"), "column"
    )
    columns = {one["name"]: one for one in asked["columns"]}
    assert (columns["Correo"]["state"], columns["Correo"]["fields"]) == ("known", ["email"])
    assert columns["Zona"]["state"] == "asked"
    assert [one["text"] for one in columns["Zona"]["samples"]] == ["Norte", "Sur"]
    free = {one["path"] for one in asked["fields"] if one["column"] is None}
    assert "phone" in free
    assert desk.at.codes() == []
    assert answer(desk, **{"column__Móvil 2": "phone", **IGNORED}).code == 0
    planned = document(call(desk, *arguments, "--passwords", "file"))
    assert (planned["state"], planned["questions"]) == ("planned", [])
    (new, _) = planned["changes"]["changes"]
    values = {one["field"]: one["new"] for one in new["values"]}
    assert (new["line"], new["record"], values["phone"]) == (2, "", "600 000 001")
    (reason,) = planned["changes"]["reasons"]
    assert (reason["outcome"], reason["code"], reason["lines"]) == ("rejected", "not_an_address", 1)
    (row,) = reason["rows"]
    assert (row["line"], row["cells"]["Correo"]) == (4, "luz3.example.test")
    assert planned["agreement"]["operations"] == 2
    assert Path(planned["files"]["workbook"]).name == "result.xlsx"
    sent = call(desk, *arguments, *planned["agreement"]["arguments"])
    assert sent.code == 5
    result = document(sent)
    assert (result["state"], result["folder"]) == ("sent", planned["folder"])
    assert [one["action"] for one in result["next"]] == ["correct"]
    assert sorted(desk.at.codes()) == ["00001", "00002"]
    assert list((desk.at.folder / "mappings").iterdir()) == [
        desk.at.folder / "mappings/customers.toml"
    ], "nothing is left to answer"
    assert "secreta" not in first.out + first.err + sent.out


def test_without_values_the_output_is_for_a_log(desk: Desk) -> None:
    desk.write(CUSTOMERS)
    arguments = ("import", "customers", "clientes.csv", "--passwords", "file", "--json")
    first = call(desk, *arguments)
    assert answer(desk, **{"column__Móvil 2": "phone", **IGNORED}).code == 0
    planned, sent = call(desk, *arguments), call(desk, *arguments, "--yes")
    assert document(planned)["changes"]["left"] == 2
    for done in (first, planned, sent):
        assert not any(
            cell in done.said for cell in ("Norte", "ana1", "600 000", "luz3", "secreta")
        )


def test_articles_are_named_by_the_column_of_their_names(desk: Desk) -> None:
    header = "productId;variantId;SKU;Notas;Descripción;PVP\n"
    rows = "1;1001;A-1;por la mañana;Empanada;12,50\n1;1002;A-2;por la tarde;Croissant;0,95\n"
    (desk.at.folder / "articulos.csv").write_text(header + rows, "utf-8")
    arguments = ("import", "variants", "articulos.csv", "--json", "--values")
    call(desk, *arguments)
    ignored = {"column__Notas": "ignore", "column__Descripción": "ignore"}
    assert answer(desk, **ignored).code == 0
    planned = document(call(desk, *arguments))
    about = {one["line"]: one["about"] for one in planned["changes"]["changes"]}
    assert about == {2: ["A-1", "Empanada"], 3: ["A-2", "Croissant"]}


def test_the_password_is_asked_for_as_data(desk: Desk) -> None:
    desk.write()
    arguments = ("import", "customers", "clientes.csv", "--json")
    asked = document(call(desk, *arguments))
    (question,) = asked["questions"]
    assert (asked["state"], question["topic"]) == ("asking", "passwords")
    wrong = answer(desk, passwords="carta")
    assert "carta is not an answer to import:customers-" in wrong.err
    assert answer(desk, passwords="file").code == 0
    planned = document(call(desk, *arguments))
    assert (planned["state"], planned["agreement"]["passwords"]) == ("planned", "file")

    # it can be answered otherwise, and what was shown before is then not sent
    assert answer(desk, passwords="mail").code == 0
    changed = document(call(desk, *arguments, *planned["agreement"]["arguments"]))
    assert (changed["state"], changed["push"]) == ("planned", None)
    assert (changed["agreement"]["passwords"], changed["agreement"]["messages"]) == ("mail", 6)
    sent = document(call(desk, *arguments, *changed["agreement"]["arguments"]))
    assert (sent["state"], sent["files"]["passwords"]) == ("sent", None)

    # the next file of this form is not asked again, as after an answer in a terminal
    desk.write("Código;Nombre;Correo\n11111;Luz;luz@example.test\n")
    again = document(call(desk, *arguments))
    assert (again["questions"], again["agreement"]["passwords"]) == ([], "mail")


def test_the_phases_of_an_import_are_events(desk: Desk) -> None:
    desk.write()
    done = call(
        desk, "import", "customers", "clientes.csv", "--passwords", "file", "--json", "--yes"
    )
    shown = events(done)
    phases = [one["phase"] for one in shown if one["event"] == "phase"]
    assert [one for one in phases if one not in ("merge", "publish")] == [
        *("read", "plan", "pull", "plan", "push", "pull", "verify"),
    ]
    assert all("phase" in one for one in shown)
    assert document(done)["state"] == "sent"


def test_two_columns_never_fill_one_field_by_an_answer(desk: Desk) -> None:
    desk.write(CUSTOMERS)
    call(desk, "import", "customers", "clientes.csv", "--json", "--passwords", "file")
    both = answer(desk, **{"column__Móvil 2": "phone", "column__Zona": "phone"})
    assert "Móvil 2 and Zona would both fill phone" in both.err
    known = answer(desk, column__Zona="email")
    assert "Correo and Zona would both fill email" in known.err
    unknown = answer(desk, column__Zona="mail")
    assert "mail is not a field of customers (did you mean email?)" in unknown.err


def test_a_column_that_is_known_can_be_answered_otherwise_until_it_is_sent(desk: Desk) -> None:
    desk.write(CUSTOMERS)
    arguments = ("import", "customers", "clientes.csv", "--json", "--values", "--passwords", "file")
    call(desk, *arguments)
    answer(desk, **{"column__Móvil 2": "phone", **IGNORED})
    call(desk, *arguments)
    assert answer(desk, **{"column__Nombre": "lastName", "column__Zona": "firstName"}).code == 0
    planned = document(call(desk, *arguments))
    values = {one["field"]: one["new"] for one in planned["changes"]["changes"][0]["values"]}
    assert (values["lastName"], values["firstName"]) == ("Ana", "Norte")


def test_a_run_that_agreed_before_asks_nothing_and_keeps_nothing(desk: Desk) -> None:
    file = desk.write(ARTICLES, "articulos.csv")
    done = call(desk, "import", "variants", str(file), "--json", "--yes")
    found = document(done)
    assert (done.code, found["state"]) == (0, "sent")
    assert [one["about"] for one in found["questions"]] == []
    assert not (desk.at.folder / "mappings").exists()


@pytest.mark.parametrize("text", ["", "\x00\x01"])
def test_a_file_that_cannot_be_read_is_an_object_too(desk: Desk, text: str) -> None:
    desk.write(text)
    done = call(desk, "import", "customers", "clientes.csv", "--passwords", "file", "--json")
    found = document(done)
    assert (done.code, found["state"], found["plan"]) == (2, "failed", None)
    assert found["error"]["message"]


def test_without_a_terminal_a_locale_changes_nothing_and_lang_the_texts(desk: Desk) -> None:
    desk.write()
    arguments = ("import", "customers", "clientes.csv", "--passwords", "file", "--yes")
    night = call(desk, *arguments, LANG="es_ES.UTF-8")
    assert "6  confirmed" in night.out
    assert call(desk, "status", LANG="es_ES.UTF-8").out.startswith("warehouse ")
    asked = call(desk, *arguments, "--lang", "es")
    assert "6  omitidas: ya están igual en la plataforma" in asked.out
    assert call(desk, "status", "--lang", "es").out.startswith("base de datos ")
    assert json.loads(call(desk, "status", "--lang", "es", "--json").out)["message"].startswith(
        "warehouse "
    )
