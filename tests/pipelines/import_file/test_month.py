"""A month of an office: what a person types on four Mondays and sees, as recorded in month.txt, and what it leaves.

Columns come and go, rejected lines are corrected in the workbook, an answer is lost, a week is missed, somebody types
a customer by hand, and on the platform a customer and half of the variants are deleted: it answers with a page of its
own then.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import pytest

from orderbridge.sandbox.messages import Call, SandboxResponse
from tests.pipelines.bridge import Done, command
from tests.pipelines.import_file.test_result import correct
from tests.pipelines.import_file.test_transcript import pattern
from tests.pipelines.push.plans import Place, place

TRANSCRIPT: Final = Path(__file__).with_name("month.txt")
CUSTOMERS: Final = {
    "000101": ("Nuria", "Serra Puig", "nuria@example.com", "934 000 101"),
    "000102": ("Iván", "Ruiz Gil", "ivan@example.com", "934 000 102"),
    "000103": ("Íñigo", "Peña Ibáñez", "", "934 000 103"),
    "000104": ("Ana", "Mar", "ana@example.com", "934 000 104"),
}
SECOND: Final = {"000105": ("Luz", "Sol", "luz@example.com", "934 000 105")}
THIRD: Final = {
    "000106": ("Pau", "Riera", "pau@example.com", "934 000 106"),
    "000107": ("Eva", "Cid", "eva@example.com", "934 000 107"),
}
FOURTH: Final = {"000108": ("Joan", "Vila", "joan@example.com", "934 000 108")}
BY_HAND: Final = "000107"
LOST: Final = "000101"
VARIANTS: Final = range(1001, 1009)
DELETED: Final = range(1005, 1009)
GONE: Final = SandboxResponse(404, b"<html>gone</html>", ((b"content-type", b"text/html"),))


@dataclass
class Office:
    """The folder of an office, its ERP, and the platform."""

    at: Place
    customers: dict[str, tuple[str, str, str, str]] = field(default_factory=dict)
    prices: dict[int, float] = field(default_factory=dict)

    def write_customers(self, *more: str, missing: str = "") -> None:
        """The export of customers; with columns that the ERP has added, without one that it has dropped."""
        names = ["Código", "Nombre", "Apellidos", "Correo", "Teléfono", *more]
        lines = [names]
        lines += [[code, *values, *more] for code, values in self.customers.items()]
        kept = [at for at, name in enumerate(names) if name != missing]
        text = "".join(";".join(line[at] for at in kept) + "\r\n" for line in lines)
        (self.at.folder / "clientes.csv").write_text(text, "cp1252", newline="")

    def write_variants(self, prices: dict[int, float], stock: int) -> None:
        """The export of articles."""
        self.prices |= prices
        lines = ["Producto;Variante;Artículo;PVP;Existencias"]
        for variant, price in self.prices.items():
            shown = f"{price:.2f}".replace(".", ",")
            lines.append(f"1;{variant};A{variant};{shown};{stock}")
        text = "".join(f"{line}\r\n" for line in lines)
        (self.at.folder / "articulos.csv").write_text(text, "cp1252", newline="")

    def command(self, *arguments: str) -> Done:
        """A command with the settings of the office, which knows what the platform does with a stock."""
        env = {**self.at.environment(), "SOURCES__LEGACY__STOCK_SEMANTICS": "set"}
        return command(*arguments, env=env, cwd=self.at.folder)

    def run(self, line: str) -> str:
        """What a command shows; the folder of a plan is found where the line has `…`."""
        arguments = line.split()[1:]
        for place_of, argument in enumerate(arguments):
            if "…" in argument:
                found = self.at.folder.glob(argument.replace("…", "*"))
                newest = max(found, key=lambda path: path.stat().st_mtime_ns)
                arguments[place_of] = str(newest.relative_to(self.at.folder))
        done = self.command(*arguments)
        return f"{done.err}{done.out}exit {done.code}\n"


def first_monday(office: Office) -> None:
    office.customers |= CUSTOMERS
    office.write_customers()
    office.write_variants({variant: 10.0 + variant % 10 for variant in VARIANTS}, 5)


def corrections(office: Office) -> None:
    (workbook,) = office.at.folder.glob("plan-customers-*/result.xlsx")
    office.customers["000103"] = ("Íñigo", "Peña Ibáñez", "inigo@example.com", "934 000 103")
    correct(workbook, "Correo", {"000103": "inigo@example.com"})


def second_monday(office: Office) -> None:
    office.customers |= SECOND
    office.write_customers("Zona", "Riesgo")
    office.write_variants({1001: 21.5, 1006: 22.5}, 7)


def third_monday(office: Office) -> None:
    """After a week without anybody: a customer was typed by hand, and the ERP has dropped a column."""
    office.customers |= THIRD
    names = ("erpCode", "firstName", "lastName", "email", "phone")
    typed = dict(zip(names, (BY_HAND, *THIRD[BY_HAND]), strict=True))
    office.at.platform.state.add("customers", typed)
    office.write_customers("Zona", missing="Teléfono")


def with_the_column(office: Office) -> None:
    office.write_customers()
    office.at.platform.set_faults({"lost_answer": 1.0})


def an_hour_later(office: Office) -> None:
    office.at.platform.set_faults({})


def fourth_monday(office: Office) -> None:
    office.customers |= FOURTH
    office.write_customers("Riesgo")
    office.write_variants({1002: 31.0, 1007: 32.0}, 9)
    state = office.at.platform.state
    (gone,) = (one["id"] for one in state.records("customers") if one["erpCode"] == LOST)
    state.remove("customers", gone)
    update = state.update

    def update_what_is_there(operation: Any, ids: Any, body: Any) -> None:
        if ids.get("variantId") in DELETED:
            raise KeyError("deleted")
        update(operation, ids, body)

    state.update = update_what_is_there  # type: ignore[method-assign]


EVENTS: Final[dict[str, Callable[[Office], None]]] = {
    "Monday: the first export": first_monday,
    "The rejected line is corrected in the workbook": corrections,
    "Monday: two columns more": second_monday,
    "Monday, after a week without anybody: a column has gone": third_monday,
    "The column is put back, and answers are lost": with_the_column,
    "An hour later": an_hour_later,
    "Monday: a customer and half of the variants are deleted on the platform": fourth_monday,
    "The same files twice more": lambda office: None,
}


def chapters() -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Each heading of the transcript, with its commands and what they show."""
    for part in TRANSCRIPT.read_text("utf-8").split("\n# ")[1:]:
        heading, _, rest = part.partition("\n")
        commands = []
        for block in re.split(r"^\$ ", rest, flags=re.MULTILINE)[1:]:
            line, _, shown = block.partition("\n")
            commands.append((line, shown.rstrip("\n") + "\n"))
        yield heading, commands


def test_a_month_of_an_office_leaves_each_record_once_and_nothing_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Call, "error", lambda *_: GONE)
    with place(tmp_path) as at:
        before = at.platform.state.ids("customers")
        office = Office(at)
        told = list(chapters())
        assert [heading for heading, _ in told] == list(EVENTS)
        for heading, commands in told:
            EVENTS[heading](office)
            for line, shown in commands:
                seen = office.run(line)
                assert re.fullmatch(pattern(shown), seen), f"{heading}\n$ {line}\n{seen}"
        records = at.platform.state.records("customers")[len(before) :]
        assert sorted(record["erpCode"] for record in records) == sorted(
            {*office.customers} - {LOST}
        )
        created = [body["erpCode"] for body in at.platform.state.customer_inputs]
        assert sorted(created) == sorted({*office.customers} - {BY_HAND}), "each was created once"
        for (_, variant), record in at.platform.state.variants.items():
            sent_prices = {1001: 2, 1002: 2, 1006: 2}.get(variant, 1)
            assert record.counts["price"] == sent_prices, "a price may add up: each was sent once"
            if variant not in DELETED:
                assert record.fields["price"] == office.prices[variant]
                assert record.fields["stock"] == 9
        status = json.loads(office.command("status", "--json").out)
        assert status["open_plans"] == []
        questions = json.loads(office.command("questions", "--json").out)
        of_writes = [
            one["id"].partition(":")[0]
            for one in questions["questions"]
            if one["id"].startswith(("write:", "create:"))
        ]
        assert of_writes == ["create"], "nothing is open but what is held"
