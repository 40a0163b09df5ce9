"""A file of the ERP compared with the platform, from the command line to the published tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import duckdb
import pytest
import xlsxwriter

from orderbridge.pipelines.imports import RejectedInput, open_inputs
from orderbridge.pipelines.mapping import load
from orderbridge.pipelines.pull.model import PullOptions
from orderbridge.pipelines.pull.pull import pull
from orderbridge.pipelines.reconcile.erp import match
from orderbridge.pipelines.reconcile.erp.files import ErpCustomers, ErpFiles, read_erp_customers
from orderbridge.pipelines.reconcile.reconcile import Reconciling, reconcile
from orderbridge.pipelines.reporting import erp_result
from orderbridge.pipelines.reporting.erp_result import COLUMNS
from orderbridge.sources.errors import BridgeError, UsageError
from orderbridge.sources.files import Row, open_table
from orderbridge.transforms.erp.match import match_part
from tests.pipelines.bridge import Bridge, Done, bridge, pulled
from tests.transforms.rows import values

HEADER = "Código;Razón social;Nombre;Apellidos;Teléfono;Correo;Dirección fiscal;NIF;Lista de precios;Zona"
# As an ERP writes it, and what the platform says of the same customers: equal, equal but for how it is written,
# different, and on one side only.
LINES = (
    "00012;Ultramarinos Peña S.L.;José;Peña;91 555 01 02;jose@pena.example.com;C/ Mayor 1, 28001 Madrid;00000012X;1;N",
    "00013;Café Ágil;Inés;Ágil;+34 915550103;INES@AGIL.example.com;C/ Luna  2, Madrid;11.111.111-H;;S",
    "00014;Bodega Núñez;Íñigo;Núñez;915550104;;Av. Sol 3, Ávila;22222222J;2;S",
    "00015;Colmado Ñandú;Ana;Ñandú;915550105;ana@nandu.example.com;Pl. Mar 4, Cádiz;33333333P;3;S",
    "A-7;Panadería Güell;Núria;Güell;;nuria@guell.example.com;;44444444A;;E",
    "A-8;Sólo en el ERP;Eva;Sola;;eva@sola.example.com;;55555555K;;E",
    "A-9;Repetida;Rosa;Dos;;rosa@dos.example.com;;66666666Q;;E",
    "A-9;Repetida, sucursal;Rosa;Dos;;rosa@dos.example.com;;66666666Q;;E",
)


def document(number: str, name: str, address: str | None = None, **more: Any) -> dict[str, Any]:
    return {
        "number": number,
        "fiscalName": name,
        "fiscalAddress": address,
        "isDefault": True,
        "forTaxes": True,
        **more,
    }


PLATFORM: dict[str, dict[str, Any]] = {
    "equal": {
        "erpCode": "00012", "firstName": "José", "lastName": "Peña", "phone": "91 555 01 02", "priceListId": 1,
        "email": "jose@pena.example.com",
        "documents": [document("00000012X", "Ultramarinos Peña S.L.", "C/ Mayor 1, 28001 Madrid")],
    },
    "written otherwise": {
        "erpCode": " 00013", "firstName": "Inés ", "lastName": "Ágil", "phone": "0034 91 555 01 03", "priceListId": 4,
        "email": "ines@agil.example.com",
        "documents": [document("11111111h", "Café  Ágil", "C/ Luna 2, Madrid")],
    },
    "different": {
        "erpCode": "00014", "firstName": "Íñigo", "lastName": "Nuñez", "phone": "915550199", "priceListId": 3,
        "email": "inigo@nunez.example.com",
        "documents": [document("22222222J", "Bodega Núñez", None)],
    },
    "without its code": {
        "firstName": "Ana", "lastName": "Ñandú", "phone": "915550105", "priceListId": 3,
        "email": "ana@nandu.example.com",
        "documents": [document("33333333P", "Colmado Ñandú", "Pl. Mar 4, Cádiz")],
    },
    "by its second document": {
        "erpCode": "A-007", "firstName": "Núria", "lastName": "Güell",
        "documents": [document("X", "Otra"), document("44444444-A", "Panadería Güell", isDefault=False)],
    },
    "only there": {"erpCode": "B-1", "firstName": "Sol", "email": "sol@example.com", "documents": []},
    "its line is there twice": {"erpCode": "A-9", "firstName": "Rosa", "lastName": "Dos", "documents": []},
}  # fmt: skip
FUNNEL = [
    ("matched", "erp_code", 3), ("matched", "email", 1), ("matched", "document_number", 1),
    ("ambiguous", "erp_code", 3), ("only_in_erp", None, 1), ("only_in_platform", None, 1),
]  # fmt: skip
DIFFERENCES = [
    ("different", "last_name", "Núñez", "Nuñez"), ("different", "phone", "915550104", "915550199"),
    ("different", "price_list_id", "2", "3"), ("different", "fiscal_address", "Av. Sol 3, Ávila", None),
    ("without its code", "erp_code", "00015", None), ("by its second document", "erp_code", "A-7", "A-007"),
    ("by its second document", "email", "nuria@guell.example.com", None),
]  # fmt: skip
GROUPED = """
kind = "customers"
group.by = ["Código"]
[columns]
"Código" = "erpCode"
Nombre = "firstName"
Correo = "email"
NIF = "documents[+].number"
"""


def add_customers(made: Bridge) -> None:
    for fields in PLATFORM.values():
        made.platform.state.add("customers", fields)


class Shop:
    """A platform with these customers, and the ERP's file."""

    def __init__(self, made: Bridge) -> None:
        self.made = made
        self.names = dict(zip(made.platform.state.ids("customers"), PLATFORM, strict=True))
        self.file = made.folder.parent / "clientes.csv"
        self.write(*LINES)

    def write(self, *lines: str, header: str = HEADER) -> None:
        self.file.write_bytes("\r\n".join([header, *lines, ""]).encode("cp1252"))

    def differences(self) -> list[tuple[str, ...]]:
        sql = """SELECT d.platform_id, d.field, d.erp_value, d.platform_value
            FROM reconciled.erp_differences d JOIN reconciled.erp_customers c ON c.customer_id = d.platform_id
            ORDER BY c.line, d.rowid"""
        return [(self.names[key], *rest) for key, *rest in self.made.rows(sql)]


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    with pulled(tmp_path, before=add_customers, customers=0, orders=0) as made:
        yield Shop(made)


def test_the_funnel_and_differences_are_as_made_by_hand_and_kept_without_a_file(
    shop: Shop,
) -> None:
    def state() -> list[Any]:
        tables = [
            f"reconciled.{name}" for name in ("erp_customers", "erp_pairs", "erp_differences")
        ]
        found = "(SELECT * FROM reconciled.exceptions WHERE entity = 'erp_customers' OR rule = 'erp_ambiguous')"
        return [shop.made.rows(f"FROM {table} ORDER BY ALL") for table in (*tables, found)]

    shop.write(*LINES, LINES[0])
    done = shop.made.command("reconcile", "--erp-customers", str(shop.file))
    assert done.code == 9, done.err  # a code occurs twice in the file
    rows = shop.made.rows(
        "SELECT status, matched_by, count(*) FROM reconciled.erp_customers GROUP BY ALL"
    )
    assert sorted(map(str, rows)) == sorted(map(str, FUNNEL))
    assert shop.differences() == DIFFERENCES
    sql = (
        "SELECT line, customer_id, members FROM reconciled.erp_customers WHERE members IS NOT NULL"
    )
    twice = next(key for key, name in shop.names.items() if name == "its line is there twice")
    assert shop.made.rows(sql) == [(8, None, twice), (9, None, twice)]
    assert (
        "5 matched (3 by erp code, 1 by email, 1 by document number), 2 lines and 1 customer ambiguous"
        in done.out
    )
    assert "columns of the file not used: Zona" in done.out
    assert "until reconcile.country" in done.out  # a phone differs
    found = shop.made.rows(
        "SELECT DISTINCT rule FROM reconciled.exceptions WHERE entity = 'erp_customers'"
    )
    assert {rule for (rule,) in found} == {
        "erp_code_duplicate", "email_duplicate", "document_number_duplicate", "match_ambiguous", "erp_code_contradicts",
        "line_repeated",
    }  # fmt: skip
    totals = (
        "SELECT measure, value FROM ops.control_totals WHERE entity = 'reconciled.erp_customers'"
    )
    assert dict(shop.made.rows(totals)) == {
        "erp_read": 9, "erp_repeated": 1, "matched": 5, "only_in_erp": 1, "ambiguous_in_erp": 2, "platform": 7,
        "only_in_platform": 1, "ambiguous_in_platform": 1, "refused": 0, "skipped": 0,
    }  # fmt: skip
    kept = state()
    assert all(kept)
    assert reconcile().match is None
    assert state() == kept
    reconcile(ErpFiles(forget=True))
    assert state() == [[], [], [], []]


def test_the_office_gets_the_match_as_a_workbook(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop.write(*LINES, f"A-10;{';' * 9}more", "A-11;=1+1;Eva;;;;;;;")
    out = shop.made.folder.parent / "comparison.xlsx"
    done = shop.made.command(
        "reconcile", "--erp-customers", str(shop.file), "--erp-result", str(out)
    )
    assert done.code == 9, done.said
    for says in ("1 line rejected and not compared: 10", "differences: ", f"comparison: {out}"):
        assert says in done.out
    assert out.stat().st_mode & 0o777 == 0o600
    refused = shop.made.rows(
        "SELECT entity_id, detail FROM reconciled.exceptions WHERE rule = 'line_refused'"
    )
    assert [(line, detail.partition(":")[0]) for line, detail in refused] == [("10", "too_long")]
    rows = [
        dict(zip(COLUMNS, row.cells, strict=True))
        for row in open_table(out).rows()
        if isinstance(row, Row)
    ]
    found = [
        (row["status"], row["line"], shop.names.get(row["customer_id"], row["customer_id"]))
        for row in rows
    ]
    assert found == [
        ("rejected", "10", ""),
        ("only in the ERP", "7", ""), ("only in the ERP", "11", ""),
        ("ambiguous", "8", ""), ("ambiguous", "9", ""), ("ambiguous", "", "its line is there twice"),
        ("matched", "4", "different"), ("matched", "5", "without its code"), ("matched", "6", "by its second document"),
        ("matched", "2", "equal"), ("matched", "3", "written otherwise"),
        ("only on the platform", "", "only there"),
    ]  # fmt: skip
    by_line = {row["line"]: row for row in rows}
    assert by_line["10"]["reason"] == "11 cells, but the header has 10"
    assert (by_line["10"]["rejected row"], by_line["8"]["rejected row"]) == ("A-10 | more", "")
    assert (by_line["8"]["may be"], by_line["8"]["name"]) in {
        (key, "Repetida") for key in shop.names
    }
    assert (by_line["11"]["name"], by_line["7"]["matched_by"]) == ("'=1+1", "")
    assert by_line["5"]["differences"] == "erp_code: 00015 in the ERP, – on the platform"
    assert by_line["4"]["differences"].count(" in the ERP") == 4

    monkeypatch.setattr(erp_result, "ROWS_MAX", len(rows) - 1)
    done = shop.made.command(
        "reconcile", "--erp-customers", str(shop.file), "--erp-result", str(out)
    )
    assert (done.code, "a sheet does not hold so many rows" in done.err) == (2, True)
    before, other = shop.made.path.read_bytes(), out.with_name("other.xlsx")
    xlsxwriter.Workbook(other).close()
    for arguments, says in (
        (("run", "--erp-result", str(out)), "--erp-result requires --erp-customers"),
        (
            ("reconcile", "--erp-customers", str(shop.file), "--erp-result", str(other)),
            "exists and is not a result",
        ),
        (
            ("run", "--erp-customers", str(shop.file), "--erp-result", str(shop.file)),
            "not the name of an .xlsx",
        ),
    ):
        done = shop.made.command(*arguments)
        assert (done.code, says in done.err, shop.made.path.read_bytes() == before) == (
            2,
            True,
            True,
        )
    for lost in (slice(1, None), slice(None, -1)):  # a line, a customer

        def lossy(*rows: Any, lost: slice = lost) -> Any:
            part = match_part(*rows)
            return replace(part, customers=part.customers[lost])

        monkeypatch.setattr(match, "match_part", lossy)
        with pytest.raises(BridgeError, match="the totals do not balance"):
            reconcile(ErpFiles(shop.file))
        assert shop.made.path.read_bytes() == before


def test_a_run_matches_what_it_has_just_pulled(tmp_path: Path) -> None:
    with bridge(tmp_path, customers=0, orders=0) as made:
        add_customers(made)
        shop = Shop(made)
        with pytest.raises(UsageError, match=r"nowhere\.csv"):
            pull(
                PullOptions(command="run"),
                step=Reconciling(ErpFiles(shop.file.with_name("nowhere.csv"))),
            )
        assert made.platform.state.requests == 0
        assert not made.path.exists()
        shop.write(LINES[0], "00099;short;;;;;", *LINES[1:])
        result = made.folder.parent / "comparison.xlsx"
        arguments = (
            "--log",
            "json",
            "--erp-customers",
            str(shop.file),
            "--erp-result",
            str(result),
        )
        done = shop.made.command("run", *arguments)
        assert done.code == 9, done.err  # a line is rejected, and a code occurs twice in the file
        reported = json.loads(done.out.splitlines()[1])["erp"]
        assert ([tuple(row) for row in reported["statuses"]], reported["refused"]) == (FUNNEL, [3])
        assert made.one("SELECT exit_code FROM ops.runs") == 9
        assert shop.differences() == DIFFERENCES
        # phones without a country code are compared in the country of the settings
        shop.write("00013;915 550 103 ext. 4", "00014;34-91 555 01 98", header="Código;Teléfono")
        before = result.read_bytes()
        assert made.command("reconcile", *arguments, RECONCILE__COUNTRY="ES").code == 0
        assert [row[2:] for row in shop.differences()] == [("34-91 555 01 98", "915550199")]
        assert result.read_bytes() != before, "a result is replaced"


def test_a_prefix_of_codes_is_asked_after_each_match_until_it_is_answered(shop: Shop) -> None:
    """Three lines are matched by their address, and have the customer's code with a prefix; the fourth has it alone."""
    made, file = shop.made, ErpFiles(customers=shop.file)
    lines = ["C-00012;jose@pena.example.com", "C-00013;ines@agil.example.com"]
    lines += ["C-00014;inigo@nunez.example.com", "B-1;", "C-000001;"]
    made.platform.state.add("customers", {"erpCode": "000001"})
    made.pull("customers")
    shop.write(*lines, header="Código;Correo")

    def asked() -> list[dict[str, Any]]:
        printed = made.command("questions", "--json").out
        return [one for one in json.loads(printed)["questions"] if "erp_code" in one["id"]]

    def matched() -> list[tuple[Any, ...]]:
        sql = "SELECT erp_code, matched_by FROM reconciled.erp_customers WHERE status = 'matched'"
        return made.rows(f"{sql} ORDER BY line")

    by_mail = [(line.partition(";")[0], "email") for line in lines[:3]]
    for _ in range(2):
        reconcile(file)
        assert matched() == [*by_mail, ("B-1", "erp_code")]
        (question,) = asked()
        assert (question["id"], question["state"]) == ("reconcile.erp_code_prefix", "open")
        assert question["proposal"] == "C-"
    answered = made.command("answer", "reconcile.erp_code_prefix", "as_written")
    assert answered.code == 0, answered.err
    reconcile(file)
    assert (len(matched()), asked()) == (4, [])
    assert made.command("answer", "reconcile.erp_code_prefix", "C-").code == 0
    reconcile(file)
    assert matched() == [(line.partition(";")[0], "erp_code") for line in lines]
    assert (shop.differences(), asked()) == ([], [])


def test_rules_of_the_match_are_new_in_the_first_run_that_has_the_file(shop: Shop) -> None:
    """An address of two lines was a warning before; that a line is ambiguous is new."""
    made, file = shop.made, ErpFiles(customers=shop.file)
    shop.write("00012;jose@pena.example.com", "7;jose@pena.example.com", header="Código;Correo")
    assert "match_ambiguous" not in {rule for _, rule, *_ in reconcile(file).findings}
    with duckdb.connect(made.path) as warehouse:
        warehouse.execute("DELETE FROM ops.rules")
    reconcile()
    count = "SELECT count(*) FROM ops.rules WHERE rule = 'erp_customers.match_ambiguous'"
    assert made.one(count) == 0
    shop.write("00012;ines@agil.example.com", "7;ines@agil.example.com", header="Código;Correo")
    result = reconcile(file)
    assert "erp_customers.match_ambiguous" in {one.name for one in result.new_rules}
    severities = {rule: severity for _, rule, severity, _ in result.findings}
    assert severities["match_ambiguous"] == "info"
    assert severities["email_duplicate"] == "warning", "the match before had found one too"


def read(
    folder: Path, *lines: str, header: str, mapping: str = "", lookup: str = ""
) -> ErpCustomers:
    """The contents of a file, with a mapping `clientes.toml`, and a lookup file `otro.csv`."""
    file, beside, other = (folder / name for name in ("clientes.csv", "clientes.toml", "otro.csv"))
    file.write_text("\n".join([header, *lines, ""]), "utf-8")
    beside.write_text(mapping, "utf-8")
    other.write_text(lookup, "utf-8")
    found = read_erp_customers(ErpFiles(file, beside if mapping else None))
    assert found is not None
    return found


def cells(found: ErpCustomers, *names: str) -> list[list[Any]]:
    return [[one or None for one in row] for row in values(found.rows, "_line", *names)]


def test_a_file_whose_columns_do_not_fit_is_refused(tmp_path: Path) -> None:
    for header, mapping, words in (
        ("Nombre;Ciudad", "", "no column is a code"), ("Código;Cód.", "", "both match erpCode"),
        ("Código;Correo", GROUPED, "has no column NIF, Nombre, which the mapping names"),
    ):  # fmt: skip
        with pytest.raises(UsageError, match=words):
            read(tmp_path, "a;b", header=header, mapping=mapping)
    with pytest.raises(UsageError, match="--erp-mapping requires --erp-customers"):
        read_erp_customers(ErpFiles(mapping=tmp_path / "clientes.toml"))


def codes(erp: ErpCustomers) -> dict[int, str]:
    """Of the lines that are left out; each has a reason in words, too."""
    assert all(text.partition(": ")[2] for text in erp.refused.values())
    return {line: text.partition(": ")[0] for line, text in erp.refused.items()}


def lookup(match: str, give: str) -> str:
    return f'[[lookup]]\nfile = "otro.csv"\nmatch = {{ {match} }}\ngive = {{ {give} }}\n'


def test_the_mapping_prepares_lines_as_for_a_plan(tmp_path: Path) -> None:
    """Filled from above, skipped, completed by a default and a lookup file; without an answer there, refused."""
    lines = ("A;C-1;Norte;2", "A;C-2;;NULL", "C;C-3;;", ";;Otra;", "B;C-4;Sur; ", "B;C-5;")
    mapping = """kind = "customers"
        rows = { fill_down = ["Zona"], skip_blank = ["Código"], empty = ["NULL"] }
        columns = { "Código" = "erpCode", Zona = "firstName", Tarifa = { field = "priceListId", default = 1 } }
        """ + lookup('Cuenta = "cuenta"', 'email = "correo"')
    answers = "cuenta;correo\nA;ana@example.com\nB;eva@example.com\n"
    found = read(
        tmp_path, *lines, header="Cuenta;Código;Zona;Tarifa", mapping=mapping, lookup=answers
    )
    assert cells(found, "erp_code", "first_name", "price_list_id", "email") == [
        [2, "C-1", "Norte", "2", "ana@example.com"],
        [3, "C-2", "Norte", "1", "ana@example.com"],
        [6, "C-4", "Sur", "1", "eva@example.com"],
    ]
    assert (codes(found), found.skipped) == ({4: "lookup_not_found", 7: "too_short"}, 1)
    assert (found.columns["email"], found.unread) == ("correo of otro.csv", ())


def test_the_lines_of_a_group_are_one_customer(tmp_path: Path) -> None:
    lines = "C-1;Ana;;;|C-1;;a@x.es;9;|C-2;Eva;b@x.es;;|;Sol;c@x.es;1;|;P;|;Luz;d@x.es;2;Luz|C-3;Inés;;3;|C-3;;;4;Otra"
    mapping = f'{GROUPED}"Razón" = {{ field = "documents[+].fiscalName", default = "?" }}\n'
    found = read(
        tmp_path, *lines.split("|"), header="Código;Nombre;Correo;NIF;Razón", mapping=mapping
    )
    assert cells(found, "erp_code", "first_name", "email", "document_number", "fiscal_name") == [
        [2, "C-1", "Ana", "a@x.es", "9", "?"],  # its first line has no document
        [4, "C-2", "Eva", "b@x.es", None, None],
        [5, None, "Sol", "c@x.es", "1", "?"],
        [7, None, "Luz", "d@x.es", "2", "Luz"],
        [8, "C-3", "Inés", None, "3", "?"],  # both of its first document
    ]
    assert (found.skipped, found.unread, codes(found)) == (2, (), {6: "too_short"})


def test_a_group_of_which_a_plan_rejects_a_line_is_not_compared(tmp_path: Path) -> None:
    """Not in part either: as if the customer had fewer documents, or the first of two e-mail addresses."""
    lines = (
        "C-1;Ana;a@x.es;1;N", "C-1;;;2;X",  # no answer in the lookup file
        "C-2;Eva;b@x.es;1;N", "C-2;;", "C-3;Sol;c@x.es;;N",  # a line that does not fit: of C-2, of C-3 or of both
        "C-4;Luz;l@x.es;;N", "C-4;;m@x.es;;N",
        "C-5;Pía;d@x.es;1;N", "C-6;Inés;e@x.es;;N", "C-5;;;2;N",
        "C-7;Ada;f@x.es;1;N", "C-7;;;2;N",
    )  # fmt: skip
    header, mapping = (
        "Código;Nombre;Correo;NIF;Zona",
        GROUPED + lookup('Zona = "zona"', 'priceListId = "tarifa"'),
    )
    found = read(tmp_path, *lines, header=header, mapping=mapping, lookup="zona;tarifa\nN;1\n")
    assert cells(found, "erp_code") == [[10, "C-6"], [12, "C-7"]]
    assert codes(found) == {
        2: "lookup_not_found", 3: "lookup_not_found", 4: "group_torn", 5: "too_short", 6: "group_torn",
        7: "lines_differ", 8: "lines_differ", 9: "group_apart", 11: "group_apart",
    }  # fmt: skip
    assert (len(found.rows) + len(found.refused) + found.skipped, found.skipped) == (len(lines), 1)
    columns = load(tmp_path / "clientes.toml", "customers")
    planned = open_inputs("customers", tmp_path / "clientes.csv", columns, login_mode="email")
    rejected = [line for item in planned if isinstance(item, RejectedInput) for line in item.lines]
    assert sorted(rejected) == sorted(found.refused)


def test_variants_are_held_against_what_a_push_confirmed(shop: Shop) -> None:
    """Their ids are in a file outside the mapping's folder, which the command allows."""
    folder = shop.made.folder.parent
    file, mapping, ids, plan = (
        folder / name for name in ("files/a.csv", "files/m.toml", "ids/ids.csv", "plan")
    )
    for path in (file, ids):
        path.parent.mkdir()
    ids.write_text("code,product,variant\nA,1,10\nB,1,11\n", "utf-8")
    mapping.write_text(
        'kind = "variants"\ncolumns = { sku = "sku", erpCode = "erpCode", weight = "weight" }\n'
        '[[lookup]]\nfile = "../ids/ids.csv"\nmatch = { code = "code" }\n'
        'give = { productId = "product", variantId = "variant" }\n'
    )

    def compared(*lines: str) -> tuple[Done, list[tuple[Any, ...]]]:
        file.write_text("\n".join(["code,erpCode,sku,weight", *lines, ""]), "utf-8")
        done = shop.made.command("reconcile", *options, "--lookup", str(ids))
        return done, shop.made.rows(
            "SELECT line, erp_code, status FROM reconciled.erp_variants ORDER BY line"
        )

    options = ("--erp-variants", str(file), "--erp-variants-mapping", str(mapping))
    done, rows = compared("A,00038,A,1.5")
    assert (done.code, rows) == (0, [(2, "00038", "never_sent")])
    refused = shop.made.command("reconcile", *options)
    assert (refused.code, f"--lookup {ids}" in refused.err) == (2, True)
    assert reconcile().variants is None
    assert shop.made.one("SELECT count(*) FROM reconciled.erp_variants") == 1, (
        "the last comparison is kept"
    )
    arguments = (
        "variants",
        str(file),
        "--mapping",
        str(mapping),
        "--lookup",
        str(ids),
        "--out",
        str(plan),
    )
    assert shop.made.command("plan", *arguments).code == 0
    assert shop.made.command("push", str(plan), "--yes").code == 0
    done, rows = compared(
        "A,00038,A,1.50", "B,00039,B,2", "A,00038,Z,1.5", "X,00040,C,1", "B,00039,B,heavy", "F-1"
    )
    assert (done.code, rows) == (
        5,
        [(2, "00038", "same"), (3, "00039", "never_sent"), (4, "00038", "differs")],
    )
    assert "lines rejected and not compared: 5, 6, 7" in done.out
    assert "detected" not in done.err, "the notation of numbers is no reason to warn each night"
    reconcile(ErpFiles(forget=True))
    assert shop.made.rows("FROM reconciled.erp_variants") == []
