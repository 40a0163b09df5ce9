"""The transcripts of the pages about imports are what a person sees who types their commands and answers."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path

import openpyxl
import pytest

from orderbridge.sandbox import SandboxConfig, serve
from tests.pipelines.bridge import start
from tests.pipelines.import_file.test_result import correct
from tests.pipelines.push.plans import settings

CHECKOUT = Path(__file__).parents[3]
BLOCK = re.compile(r"^<!-- transcript -->\n```console\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CODES = ["000901", "000902", "000903"]
CUSTOMERS = """\
Código;Razón social;Nombre;Apellidos;Teléfono;Correo;Dirección fiscal;NIF;Tarifa
000901;Cafés Serra S.L.;Nuria;Serra Puig;934 000 901;nuria.serra@example.com;Calle Mayor 1;B12345674;
000902;Ruiz y Gil SA;Iván;Ruiz Gil;934 000 902;ivan.ruiz@example.com;Gran Vía 2;A58818501;
000903;Bodegas Peña;Íñigo;Peña Ibáñez;934 000 903;;Plaza Nueva 3;B12345674;
"""
NEXT_DAY = """\
000904;;Ana;Mar;;ana.mar@example.com;;;
000905;;Luz;Sol;;luz.sol@example.com;;;
"""
ARTICLES = """\
Producto;Variante;Artículo;Descripción;PVP;Existencias;Exento IVA
1;1001;00038;Côte de Blaye;1.263,50;17;N
1;1002;00039;Chai;18,00;39;N
"""
SHOPIFY = """\
Customer ID,First Name,Last Name,Email,Accepts Email Marketing,Default Address Company,Default Address Address1,\
Default Address City,Phone,Total Spent,Note,Tags
'6940095561234,Zoë,Muñoz,zoe@example.net,yes,Zoë Muñoz Ltd,1 High Street,Leeds,'+44 113 496 0001,99.90,,b2b
'6940095561235,Óscar,Güell,oscar@example.net,no,,2 Low Street,York,'+44 113 496 0002,0.00,,
"""
SHEET: tuple[list[object], ...] = (
    ["Tarifa de noviembre"], [], ["Producto", "Variante", "Referencia", "PVP", "Stock"],
    [2, 1005, "00041", "1,50 €", 4], [2, 1006, "00042", "12,00 €", 9], ["Total", None, None, "13,50 €", 13],
)  # fmt: skip


def write_files(folder: Path) -> None:
    corrected = CUSTOMERS.replace(";;Plaza", ";inigo@example.com;Plaza") + NEXT_DAY
    with_zone = "".join(
        f"{line};{'Zona' if at == 0 else 'Norte'}\n"
        for at, line in enumerate(corrected.splitlines())
    )
    texts = {"clientes.csv": CUSTOMERS, "clientes-2.csv": with_zone, "articulos.csv": ARTICLES}
    texts["articulos-2.csv"] = ARTICLES.replace("1.263,50", "1.350,00")
    for name, text in texts.items():
        (folder / name).write_bytes(text.encode("cp1252"))
    (folder / "customers_export.csv").write_text(SHOPIFY, "utf-8")
    book = openpyxl.Workbook()
    for row in SHEET:
        book.active.append(row)
    book.save(folder / "tarifa.xlsx")


def commands(page: str) -> Iterator[tuple[list[str], str, str]]:
    """The arguments of each command, what is typed while it runs, and what is shown."""
    for block in BLOCK.findall((CHECKOUT / "docs" / page).read_text("utf-8")):
        for part in block.split("$ orderbridge ")[1:]:
            line, _, rest = part.partition("\n")
            typed = "".join(f"{answer}\n" for answer in re.findall("^> (.*)$", rest, re.MULTILINE))
            yield line.split(), typed, re.sub("\n> .*\n", " ", rest)


def at_a_terminal(name: str) -> None:
    """What the process types and reads there; all that it prints is in one stream."""
    os.dup2(os.open(name, os.O_RDWR), 0)
    os.dup2(1, 2)
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115 # for the process
    sys.stderr = open(2, "w", 1, encoding="utf-8", closefd=False)  # noqa: SIM115


def run(arguments: list[str], typed: str, folder: Path, env: Mapping[str, str]) -> str:
    """What a command prints, with a terminal as its input."""
    for pattern in [argument for argument in arguments if argument.endswith("result.xlsx")]:
        (file,) = folder.glob(pattern.replace("…", "*"))
        sheet = openpyxl.load_workbook(file).sheetnames[0]
        correct(file, "Correo", {"000903": "inigo@example.com"}, sheet)
        arguments[arguments.index(pattern)] = str(file)
    terminal, keyboard = os.openpty()
    os.write(terminal, typed.encode())
    sits = partial(at_a_terminal, os.ttyname(keyboard))
    with start(*arguments, "--log", "plain", env=env, cwd=folder, preexec_fn=sits) as process:
        shown, _ = process.communicate(300)
    os.close(terminal)
    os.close(keyboard)
    assert process.returncode in (0, 5), shown
    return shown


def pattern(shown: str) -> str:
    """A regular expression of a transcript: `…` on a line of its own is any lines, otherwise any text."""
    parts = re.split("(^…\n|…)", shown, flags=re.MULTILINE)
    return "".join({"…\n": r"(?:.*\n)*?", "…": ".*"}.get(part, re.escape(part)) for part in parts)


@pytest.mark.parametrize(
    ("page", "locale", "count", "questions", "codes", "prices"),
    [
        (
            "import-examples.md",
            "C",
            6,
            1,
            [*CODES, "000904", "000905", "6940095561234", "6940095561235"],
            {1001: 1350, 1005: 1.5},
        ),
        ("import.md", "en_GB.UTF-8", 2, 2, CODES, {}),
        ("importar.md", "es_ES.UTF-8", 2, 2, CODES, {}),
    ],
)
def test_the_transcripts_are_what_is_seen(
    tmp_path: Path,
    page: str,
    locale: str,
    count: int,
    questions: int,
    codes: list[str],
    prices: dict[int, float],
) -> None:
    write_files(tmp_path)
    (tmp_path / "home").mkdir()
    with serve(SandboxConfig(customers=8, orders=0, promotions=0, price_lists=2)) as platform:
        home = str(tmp_path / "home")
        env = settings(platform, tmp_path, PATH=os.environ["PATH"], HOME=home, LANG=locale)
        steps = list(commands(page))
        assert len(steps) == count
        for arguments, typed, shown in steps:
            given = list(arguments)
            assert len(typed.splitlines()) <= questions
            seen = run(arguments, typed, tmp_path, env)
            assert re.fullmatch(pattern(shown), seen), f"{given}:\n{seen}"
        assert {body["erpCode"] for body in platform.state.customer_inputs} == set(codes)
        sent = {
            variant: record.fields["price"]
            for (_, variant), record in platform.state.variants.items()
        }
        assert {variant: sent[variant] for variant in prices} == prices


def test_a_question_shows_fields_and_samples_and_says_what_enter_does(
    tmp_path: Path,
) -> None:
    names = ("corto", "largo", "ancho")
    rows = (f"1;{1001 + n};{n:05d};Tornillo {name};{n},50\n" for n, name in enumerate(names, 1))
    text = f"Id producto;Id variante;Referencia;Artículo;PVP\n{''.join(rows)}"
    (tmp_path / "articulos.csv").write_text(text, "utf-8")
    (tmp_path / "home").mkdir()
    with serve(SandboxConfig(customers=1, orders=0, promotions=0, price_lists=0)) as platform:
        home = str(tmp_path / "home")
        env = settings(platform, tmp_path, PATH=os.environ["PATH"], HOME=home, LANG="C")
        import_it = ["import", "variants", "articulos.csv", "--yes"]
        seen = run(import_it, "\ni\n", tmp_path, env)
        sent = platform.state.variants[1, 1002].fields
    (fields,) = re.findall("Free fields: ((?:.+\n  )*.+)", seen)
    assert {"erpCode", "stock"} <= set(re.split(r",\s+", fields))
    assert "i to ignore it" in seen
    assert "Enter alone asks again." in seen
    question = "  Artículo (Tornillo corto · Tornillo largo · Tornillo ancho):"
    assert seen.count(question) == 2, "it is asked again after Enter"
    assert (sent["sku"], sent.get("erpCode")) == ("00001", None)
