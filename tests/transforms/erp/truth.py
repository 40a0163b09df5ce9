"""An ERP and a platform that know the same people and firms, and whose customer each line really is.

Families share a mailbox, branches of a firm its document and name, and firms the address of their accountant. Codes are
given to another customer, addresses move to another firm, spreadsheets drop leading zeros, and typists err.
"""

from __future__ import annotations

import random
import unicodedata
from typing import Any, NamedTuple

from tests.transforms.erp.matching import customers, documents, erp, match
from tests.transforms.rows import values

FIRST = ("Ana", "Luis", "María", "José", "Íñigo", "Núria", "Zoë", "Björn", "Carmen", "Pedro", "Lucía",
    "Hugo", "Marta", "Juan Carlos", "Rosa", "Elena", "Pablo", "Sofía", "Andrés", "Julia", "Miguel")  # fmt: skip
LAST = ("García", "López", "Peña", "Ruiz", "Núñez", "Ágil", "Quispe", "Mamani", "Flores", "Rojas", "Díaz", "Castro",
    "Vargas", "Ramos", "Cruz", "Ortega", "Silva", "Méndez", "Torres", "Vega", "Soto", "Campos", "Reyes", "Ibarra",
    "Molina", "Navarro", "Salas", "Paredes", "Luna", "Cano")  # fmt: skip
TRADE = (
    "Aceros",
    "Textiles",
    "Bodega",
    "Ferretería",
    "Panadería",
    "Farmacia",
    "Librería",
    "Muebles",
    "Óptica",
    "Café",
)
PLACE = (
    "Norte",
    "Sur",
    "Andina",
    "Pacífico",
    "Central",
    "Lima",
    "Cusco",
    "Moderna",
    "Real",
    "Unión",
    "Nueva",
    "Sol",
)
LEGAL = ("S.A.C.", "S.R.L.", "SA", "E.I.R.L.", "")
Row = dict[str, Any]


class Truth(NamedTuple):
    """Lines, customers and documents as rows, and the customer of each line (by its number) that has one."""

    lines: list[Row]
    customers: list[Row]
    documents: list[Row]
    customer_of_line: dict[int, str]


class _World:
    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.codes = 0

    def digits(self, count: int) -> str:
        return "".join(self.chance.choice("0123456789") for _ in range(count))

    def code(self) -> str:
        self.codes += self.chance.randint(1, 9)
        return f"{self.codes:07d}"

    def customer(self, **known: Any) -> Row:
        name = known["last_name"].split()[0].lower()
        mailbox = self.chance.choice(("info", "ventas", name))
        mail = f"{mailbox}{self.digits(5)}@{self.chance.choice(('mail', 'shop'))}.pe"
        row = {
            "erp_code": self.code(),
            "login_code": f"u{self.digits(8)}",
            "email": mail,
            "phone": f"9{self.digits(8)}",
            "fiscal_address": f"Jr. {self.chance.choice(LAST)} {self.digits(3)}",
        }
        return row | known

    def family(self) -> list[Row]:
        mail, phone, parents = (
            f"casa{self.digits(6)}@mail.pe",
            f"9{self.digits(8)}",
            self.chance.sample(LAST, 2),
        )
        is_shared = self.chance.random() < 0.6
        people = []
        for first in self.chance.sample(FIRST, self.chance.choice((1, 1, 1, 2, 2, 3, 4))):
            shared = {"email": mail} if is_shared else {}
            if self.chance.random() < 0.5:
                shared["phone"] = phone
            last = (
                " ".join(parents)
                if self.chance.random() < 0.7
                else " ".join(self.chance.sample(LAST, 2))
            )
            number = self.digits(8)
            people.append(
                self.customer(first_name=first, last_name=last, document_number=number, **shared)
            )
        return people

    def firm(self, accountants: list[str]) -> list[Row]:
        name = f"{self.chance.choice(TRADE)} {self.chance.choice(PLACE)} {self.chance.choice(LAST)}"
        fiscal, number = f"{name} {self.chance.choice(LEGAL)}".strip(), f"20{self.digits(9)}"
        mail = f"ventas{self.digits(6)}@firma.pe"
        luck, branches = self.chance.random(), []
        for _ in range(self.chance.choice((1, 1, 1, 1, 2, 2, 3, 5))):
            known = {
                "first_name": self.chance.choice(FIRST),
                "last_name": " ".join(self.chance.sample(LAST, 2)),
            }
            if luck < 0.3:
                known["email"] = mail
            elif luck < 0.5:
                known["email"] = self.chance.choice(accountants)
            branches.append(self.customer(**known, document_number=number, fiscal_name=fiscal))
        return branches


def _typo(chance: random.Random, text: str) -> str:
    place = chance.randrange(len(text))
    return text[:place] + chance.choice("23456789abcdefgh") + text[place + 1 :]


def _otherwise(chance: random.Random, field: str, text: str) -> str:
    """The same value as another program or person writes it."""
    if field.endswith("name") and chance.random() < 0.3:
        plain = "".join(
            sign for sign in unicodedata.normalize("NFD", text) if not unicodedata.combining(sign)
        )
        return plain.upper() if chance.random() < 0.5 else plain
    if field in ("erp_code", "document_number") and chance.random() < 0.04:
        return text.lstrip("0") or text  # a spreadsheet
    if chance.random() < 0.02:
        return chance.choice(
            (f" {text}", f"{text}\u00a0", f"\u200b{text}", unicodedata.normalize("NFD", text))
        )
    if field == "document_number" and chance.random() < 0.1:
        return f"{text[:2]}-{text[2:]}"
    return text.upper() if field == "email" and chance.random() < 0.1 else text


_MISSING = {
    "erp_code": 0.25,
    "login_code": 0.3,
    "email": 0.15,
    "document_number": 0.1,
    "phone": 0.2,
}
_STAND_INS = {
    "erp_code": "0",
    "email": "sincorreo@mail.pe",
    "document_number": "00000000",
    "phone": "0",
}


def _side(chance: random.Random, person: Row) -> Row:
    row: Row = {}
    for field, value in person.items():
        luck = chance.random()
        if luck < _MISSING.get(field, 0.02):
            row[field] = _STAND_INS.get(field) if chance.random() < 0.2 else None
        elif luck > 0.985:
            row[field] = _typo(chance, value)
        elif field in ("phone", "fiscal_address", "email") and luck > 0.94:
            # an old one
            row[field] = f"{chance.randrange(10**6)}.{value}" if field == "email" else value[::-1]
        else:
            row[field] = _otherwise(chance, field, value)
    return row


def truth(seed: int, size: int = 20_000) -> Truth:
    """About so many customers of each side; 5 % are on one side only, and these have what is another's too."""
    world = _World(seed)
    chance = world.chance
    accountants = [f"estudio{n}@contadores.pe" for n in range(size // 100 + 1)]
    people: list[Row] = []
    while len(people) < size:
        people += world.family() if chance.random() < 0.5 else world.firm(accountants)
    sides = [chance.choices(("both", "erp", "platform"), (90, 5, 5))[0] for _ in people]
    gone = [person for person, side in zip(people, sides, strict=True) if side == "platform"]
    for person, side in zip(people, sides, strict=True):
        if side == "erp" and gone and chance.random() < 0.3:  # what a former customer had
            key = chance.choice(("erp_code", "email", "login_code"))
            person[key] = chance.choice(gone)[key]
    lines, customers, documents, of_line = list[Row](), list[Row](), list[Row](), dict[int, str]()
    order = list(range(len(people)))
    chance.shuffle(order)
    ids: dict[int, str] = {}
    for n in order:
        if sides[n] != "erp":
            row = _side(chance, people[n])
            customer_id = ids[n] = str(len(customers) + 1)
            paper = {
                "number": row.pop("document_number", None),
                "fiscal_name": row.pop("fiscal_name", None),
            }
            paper["fiscal_address"] = row.pop("fiscal_address", None)
            row["full_name"] = f"{row.get('first_name') or ''} {row.get('last_name') or ''}".strip()
            customers.append(row)
            if paper["number"]:
                documents.append({"customer_id": customer_id, "is_default": True, **paper})
    for n, (person, side) in enumerate(zip(people, sides, strict=True)):
        if side != "platform":
            if side == "both":
                of_line[len(lines) + 2] = ids[n]
            lines.append(_side(chance, person))
    return Truth(lines, customers, documents, of_line)


def accuracy(seed: int, size: int = 20_000) -> tuple[float, float]:
    known = truth(seed, size)
    result = match(erp(*known.lines), customers(*known.customers), documents(*known.documents))
    pairs = [
        row[:2]
        for row in values(result.customers, "line", "customer_id", "status")
        if row[2] == "matched"
    ]
    right = sum(known.customer_of_line.get(line) == customer for line, customer in pairs)
    return right / len(pairs), right / len(known.customer_of_line)
