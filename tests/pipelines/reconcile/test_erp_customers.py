"""A file of the ERP compared with the platform, from the command line to the published tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipelines.imports import RejectedInput, open_inputs
from pipelines.mapping import load
from pipelines.pull.model import PullOptions
from pipelines.pull.pull import pull
from pipelines.reconcile import match
from pipelines.reconcile.erp_files import ErpFiles, read_erp_customers
from pipelines.reconcile.erp_variants import read_erp_variants
from pipelines.reconcile.reconcile import Reconciling, reconcile
from sources.errors import BridgeError, UsageError
from tests.pipelines.bridge import Bridge, bridge, command, pulled
from tests.pipelines.push.plans import patch, place
from transforms.erp.match import match_part
from transforms.erp.variants import variants

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
    return {"number": number, "fiscalName": name, "fiscalAddress": address, "isDefault": True, "forTaxes": True, **more}


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
    ("matched", "erp_code", 3),
    ("matched", "email", 1),
    ("matched", "document_number", 1),
    ("ambiguous", "erp_code", 3),
    ("only_in_erp", None, 1),
    ("only_in_platform", None, 1),
]
DIFFERENCES = [
    ("different", "last_name", "Núñez", "Nuñez"),
    ("different", "phone", "915550104", "915550199"),
    ("different", "price_list_id", "2", "3"),
    ("different", "fiscal_address", "Av. Sol 3, Ávila", None),
    ("without its code", "erp_code", "00015", None),
    ("by its second document", "erp_code", "A-7", "A-007"),
    ("by its second document", "email", "nuria@guell.example.com", None),
]


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
    """After a first pull."""
    with pulled(tmp_path, before=add_customers, customers=0, orders=0) as made:
        yield Shop(made)


@pytest.fixture
def new_shop(tmp_path: Path) -> Iterator[Shop]:
    """Before it."""
    with bridge(tmp_path, customers=0, orders=0) as made:
        add_customers(made)
        yield Shop(made)


def test_the_funnel_and_every_difference_are_those_made_by_hand(shop: Shop) -> None:
    done = command(
        "reconcile", "--erp-customers", str(shop.file), env=shop.made.environment(), cwd=shop.made.folder
    )  # fmt: skip
    assert done.code == 9, done.err  # a code occurs twice in the file
    rows = shop.made.rows("SELECT status, matched_by, count(*) FROM reconciled.erp_customers GROUP BY ALL")
    assert sorted(map(str, rows)) == sorted(map(str, FUNNEL))
    assert shop.differences() == DIFFERENCES
    sql = "SELECT line, customer_id, members FROM reconciled.erp_customers WHERE members IS NOT NULL"
    twice = next(key for key, name in shop.names.items() if name == "its line is there twice")
    assert shop.made.rows(sql) == [(8, None, twice), (9, None, twice)]
    counts = "5 matched (3 by erp code, 1 by email, 1 by document number), 2 lines and 1 customer ambiguous, "
    assert f"{counts}1 only in the ERP, 1 only on" in done.out
    assert "columns of the file not used: Zona" in done.out
    rules = {
        rule for (rule,) in shop.made.rows("SELECT rule FROM reconciled.exceptions WHERE entity = 'erp_customers'")
    }
    assert rules == {
        "erp_code_duplicate", "email_duplicate", "document_number_duplicate", "match_ambiguous", "erp_code_contradicts"
    }  # fmt: skip


def test_the_totals_of_both_sides_are_kept(shop: Shop) -> None:
    shop.write(*LINES, LINES[0])
    reported = reconcile(ErpFiles(shop.file))
    totals = dict(
        shop.made.rows("SELECT measure, value FROM ops.control_totals WHERE entity = 'reconciled.erp_customers'")
    )
    assert totals == {
        "erp_read": 9, "erp_repeated": 1, "matched": 5, "only_in_erp": 1, "ambiguous_in_erp": 2, "platform": 7,
        "only_in_platform": 1, "ambiguous_in_platform": 1, "refused": 0, "skipped": 0,
    }  # fmt: skip
    assert reported.match is not None
    assert reported.match.statuses == FUNNEL
    assert reported.match.repeated == 1
    assert (reported.match.ambiguous_lines, reported.match.ambiguous_customers) == (2, 1)


@pytest.mark.parametrize("lost", ["lines", "customers"])
def test_a_row_that_would_be_lost_on_either_side_fails_the_run(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:

    def lossy(erp: Any, customers: Any, *others: Any) -> Any:
        return match_part(*((erp.iloc[1:], customers) if lost == "lines" else (erp, customers[1:])), *others)

    before = shop.made.path.read_bytes()
    monkeypatch.setattr(match, "match_part", lossy)
    with pytest.raises(BridgeError, match="the totals do not balance"):
        reconcile(ErpFiles(shop.file))
    assert shop.made.path.read_bytes() == before


def test_lines_that_do_not_fit_are_reported_and_the_exit_code_says_so(shop: Shop) -> None:
    shop.write(*LINES[:2], "00014;too short", LINES[3])
    done = command("reconcile", "--erp-customers", str(shop.file), env=shop.made.environment(), cwd=shop.made.folder)
    assert done.code == 5
    assert "1 line rejected and not compared: 4" in done.out
    found = shop.made.rows("SELECT entity_id, detail FROM reconciled.exceptions WHERE rule = 'line_refused'")
    assert found == [("4", "too_short")]
    assert shop.made.one("SELECT exit_code FROM ops.runs WHERE command = 'reconcile'") == 5


def test_a_run_matches_what_it_has_just_pulled(new_shop: Shop) -> None:
    new_shop.write(LINES[0], "00099;short;;;;;", *LINES[1:])
    done = command(
        "run", "--log", "json", "--erp-customers", str(new_shop.file),
        env=new_shop.made.environment(), cwd=new_shop.made.folder,
    )  # fmt: skip
    assert done.code == 9, done.err  # a line is rejected, and a code occurs twice in the file
    reported = json.loads(done.out.splitlines()[1])
    assert [tuple(row) for row in reported["erp"]["statuses"]] == FUNNEL
    assert reported["erp"]["refused"] == [3]
    assert new_shop.made.one("SELECT exit_code FROM ops.runs") == 9
    assert new_shop.differences() == DIFFERENCES


def test_without_a_file_the_last_match_is_kept_with_its_findings_until_it_is_to_be_forgotten(shop: Shop) -> None:
    def state() -> list[Any]:
        tables = [f"reconciled.{name}" for name in ("erp_customers", "erp_pairs", "erp_differences")]
        found = "(SELECT * FROM reconciled.exceptions WHERE entity = 'erp_customers' OR rule = 'erp_ambiguous')"
        return [shop.made.rows(f"FROM {table} ORDER BY ALL") for table in (*tables, found)]

    reconcile(ErpFiles(shop.file))
    kept = state()
    assert all(kept)
    assert reconcile().match is None
    assert state() == kept
    assert reconcile(ErpFiles(forget=True)).match is None
    assert state() == [[], [], [], []]


def test_a_file_that_cannot_be_used_ends_a_run_before_its_first_request(new_shop: Shop) -> None:
    with pytest.raises(UsageError, match=r"nowhere\.csv"):
        pull(PullOptions(command="run"), step=Reconciling(ErpFiles(new_shop.file.with_name("nowhere.csv"))))
    assert new_shop.made.platform.state.requests == 0
    assert not new_shop.made.path.exists()


@pytest.mark.parametrize(
    ("header", "match"),
    [
        ("Nombre;Ciudad", "no column is a code"),
        ("Código;Cód.", "both match erpCode"),
    ],
)
def test_a_file_whose_columns_tell_no_key_is_refused(new_shop: Shop, header: str, match: str) -> None:
    new_shop.write("a;b", header=header)
    with pytest.raises(UsageError, match=match):
        read_erp_customers(ErpFiles(new_shop.file))


def test_headers_are_known_in_english_and_spanish_however_they_are_written(new_shop: Shop) -> None:
    new_shop.write("1;2;3;4", header="erpCode;E-MAIL;razón_social;Tax ID")
    read = read_erp_customers(ErpFiles(new_shop.file))
    assert read is not None
    assert list(read.columns) == ["erp_code", "email", "fiscal_name", "document_number"]


def test_a_mapping_file_says_which_column_is_which_and_what_means_nothing(new_shop: Shop) -> None:
    mapping = new_shop.file.with_name("clientes.toml")
    mapping.write_text(MAPPING, "utf-8")
    new_shop.write("A-9;NULL;Rosa;NULL", "B-1;sol@example.com;Sol;91", header="Código;Nombre;Correo;Tel")
    read = read_erp_customers(ErpFiles(new_shop.file, mapping))
    assert read is not None
    assert read.columns == {"erp_code": "Código", "email": "Nombre", "first_name": "Correo", "phone": "Tel"}
    assert read.rows["email"].tolist() == [pd.NA, "sol@example.com"]
    assert read.rows["phone"].tolist() == [pd.NA, "91"]
    new_shop.write("A-9;Rosa", header="Código;Correo")
    with pytest.raises(UsageError, match="has no column Nombre, Tel, which the mapping names"):
        read_erp_customers(ErpFiles(new_shop.file, mapping))
    with pytest.raises(UsageError, match="--erp-mapping requires --erp-customers"):
        read_erp_customers(ErpFiles(mapping=mapping))


def test_the_mapping_prepares_lines_as_for_a_plan(new_shop: Shop) -> None:
    """Filled from above, skipped, completed by a default and a lookup file; without an answer there, refused."""
    mapping = new_shop.file.with_name("clientes.toml")
    mapping.write_text(PREPARED, "utf-8")
    mapping.with_name("correos.csv").write_text("cuenta;correo\nA;ana@example.com\nB;eva@example.com\n", "utf-8")
    lines = ("A;C-1;Norte;2", "A;C-2;;", "C;C-3;;", ";;Otra;", "B;C-4;Sur;1", "B;C-5;")
    new_shop.write(*lines, header="Cuenta;Código;Zona;Tarifa")
    read = read_erp_customers(ErpFiles(new_shop.file, mapping))
    assert read is not None
    rows = read.rows[["_line", "erp_code", "first_name", "price_list_id", "email"]]
    assert rows.to_numpy().tolist() == [
        [2, "C-1", "Norte", "2", "ana@example.com"],
        [3, "C-2", "Norte", "1", "ana@example.com"],
        [6, "C-4", "Sur", "1", "eva@example.com"],
    ]
    assert (read.refused, read.skipped) == ({4: "lookup_not_found", 7: "too_short"}, 1)
    assert (read.columns["email"], read.unread) == ("correo of correos.csv", ())


def test_a_last_line_that_was_cut_off_is_rejected(new_shop: Shop) -> None:
    new_shop.write("C-1;Ana;a@x.es", "C-2", header="Código;Nombre;Correo")
    read = read_erp_customers(ErpFiles(new_shop.file))
    assert read is not None
    assert read.rows["erp_code"].tolist() == ["C-1"]
    assert read.refused == {3: "too_short"}


def test_a_note_after_the_table_is_reported(new_shop: Shop, caplog: pytest.LogCaptureFixture) -> None:
    new_shop.write("C-1;Ana;a@x.es", "", "Listado completo", header="Código;Nombre;Correo")
    read = read_erp_customers(ErpFiles(new_shop.file))
    assert read is not None
    assert read.rows["erp_code"].tolist() == ["C-1"]
    (record,) = caplog.records
    words = "lines after the table are not read, as footnotes: 4; check that the file is whole"
    assert record.getMessage() == f"{new_shop.file.name}: {words}"
    assert open_inputs("customers", new_shop.file, login_mode="email").notes[-1] == words


def test_the_lines_of_a_group_are_one_customer(new_shop: Shop) -> None:
    mapping = new_shop.file.with_name("clientes.toml")
    mapping.write_text(GROUPED, "utf-8")
    lines = "C-1;Ana;;|C-1;;a@x.es;9|C-2;Eva;b@x.es;|;Sol;c@x.es;1|;Luz;d@x.es;2|C-3;Inés;;3|C-3;;;4"
    new_shop.write(*lines.split("|"), header="Código;Nombre;Correo;NIF")
    read = read_erp_customers(ErpFiles(new_shop.file, mapping))
    assert read is not None
    rows = read.rows[["_line", "erp_code", "first_name", "email", "document_number"]].astype(object)
    assert rows.where(rows.notna() & (rows != ""), None).to_numpy().tolist() == [
        [2, "C-1", "Ana", "a@x.es", "9"],  # its first line has no document
        [4, "C-2", "Eva", "b@x.es", None],
        [5, None, "Sol", "c@x.es", "1"],
        [6, None, "Luz", "d@x.es", "2"],
        [7, "C-3", "Inés", None, "3"],
    ]
    assert (read.skipped, read.unread) == (2, ())
    assert list(map(str, read.rows.dtypes)) == ["string[pyarrow]"] * 4 + ["int64[pyarrow]"]


def test_a_group_of_which_a_plan_rejects_a_line_is_not_compared(new_shop: Shop) -> None:
    """Not in part either: as if the customer had fewer documents, or the first of two e-mail addresses."""
    mapping = new_shop.file.with_name("clientes.toml")
    mapping.write_text(GROUPED + LOOKED_UP, "utf-8")
    mapping.with_name("tarifas.csv").write_text("zona;tarifa\nN;1\n", "utf-8")
    lines = (
        "C-1;Ana;a@x.es;1;N", "C-1;;;2;X",  # no answer in the lookup file
        "C-2;Eva;b@x.es;1;N", "C-2;;", "C-3;Sol;c@x.es;;N",  # a line that does not fit: of C-2, of C-3 or of both
        "C-4;Luz;l@x.es;;N", "C-4;;m@x.es;;N",
        "C-5;Pía;d@x.es;1;N", "C-6;Inés;e@x.es;;N", "C-5;;;2;N",
        "C-7;Ada;f@x.es;1;N", "C-7;;;2;N",
    )  # fmt: skip
    new_shop.write(*lines, header="Código;Nombre;Correo;NIF;Zona")
    read = read_erp_customers(ErpFiles(new_shop.file, mapping))
    assert read is not None
    assert read.rows["erp_code"].tolist() == ["C-6", "C-7"]
    assert read.refused == {
        2: "lookup_not_found", 3: "lookup_not_found", 4: "group_torn", 5: "too_short", 6: "group_torn",
        7: "lines_differ", 8: "lines_differ", 9: "group_apart", 11: "group_apart",
    }  # fmt: skip
    assert (len(read.rows) + len(read.refused) + read.skipped, read.skipped) == (len(lines), 1)
    planned = open_inputs("customers", new_shop.file, load(mapping, "customers"), login_mode="email")
    rejected = [line for item in planned if isinstance(item, RejectedInput) for line in item.lines]
    assert sorted(rejected) == sorted(read.refused)


def test_values_of_a_group_are_compared_as_a_plan_reads_them(new_shop: Shop) -> None:
    """Equal numbers and empty texts do not differ; spaces do not end a group; defaults alone are no document."""
    mapping = new_shop.file.with_name("clientes.toml")
    fields = 'Tarifa = "priceListId"\nFiscal = { field = "documents[+].fiscalName", default = "F" }\n[group]'
    mapping.write_text(
        GROUPED.replace('"email"', '{ field = "email", empty = ["NULL"] }').replace("[group]", fields), "utf-8"
    )
    lines = ("C-1;Ana; NULL;1;1;", "C-1 ;;a@x.es;2;01;", "C-2;Eva;b@x.es;;;", "C-3;Sol;c@x.es;3;;", "C-3;Eva;;;;")
    new_shop.write(*lines, header="Código;Nombre;Correo;NIF;Tarifa;Fiscal")
    read = read_erp_customers(ErpFiles(new_shop.file, mapping))
    assert read is not None
    rows = read.rows[["_line", "erp_code", "email", "document_number", "price_list_id", "fiscal_name"]].astype(object)
    assert rows.where(rows.notna() & (rows != ""), None).to_numpy().tolist() == [
        [2, "C-1", "a@x.es", "1", "1", "F"],
        [4, "C-2", "b@x.es", None, None, None],
    ]
    assert (read.refused, read.skipped) == ({5: "lines_differ", 6: "lines_differ"}, 1)


LOOKED_UP = """
[[lookup]]
file = "tarifas.csv"
match = { Zona = "zona" }
give = { priceListId = "tarifa" }
"""
GROUPED = """
kind = "customers"
[columns]
"Código" = "erpCode"
Nombre = "firstName"
Correo = "email"
NIF = "documents[+].number"
[group]
by = ["Código"]
"""
PREPARED = """
kind = "customers"
[rows]
fill_down = ["Zona"]
skip_blank = ["Código"]
[columns]
"Código" = "erpCode"
Zona = "firstName"
Tarifa = { field = "priceListId", default = 1 }
[[lookup]]
file = "correos.csv"
match = { Cuenta = "cuenta" }
give = { email = "correo" }
"""
MAPPING = """
kind = "customers"
[rows]
empty = ["NULL"]
[columns]
"Código" = "erpCode"
Nombre = "email"
Correo = "firstName"
Tel = "phone"
"""


def test_the_history_of_customers_is_published_with_the_tables(shop: Shop) -> None:
    reconcile()
    key = next(iter(shop.names))
    shop.made.platform.state.change("customers", key, {"phone": "1"})
    shop.made.pull("customers")
    reconcile()
    reconcile()
    sql = (
        "SELECT version, phone, is_current, ended_by FROM reconciled.customer_history WHERE customer_id = $1 ORDER BY 1"
    )
    assert shop.made.rows(sql, key) == [(1, "91 555 01 02", False, "changed"), (2, "1", True, None)]
    began, ended = shop.made.rows("SELECT valid_from, valid_to FROM reconciled.customer_history WHERE NOT is_current")[
        0
    ]
    first, second = shop.made.rows("SELECT DISTINCT ended_at FROM ops.coverage WHERE resource = 'customers' ORDER BY 1")
    assert began >= first[0]
    assert ended >= second[0] > began


def test_phones_without_a_country_code_are_compared_in_the_country_of_the_settings(
    new_shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    new_shop.write("00013;+34 915550103", "00014;34-91 555 01 99", header="Código;Teléfono")
    new_shop.made.platform.state.change("customers", next(iter(new_shop.names)), {"erpCode": "x"})
    second = list(new_shop.names)[1]
    new_shop.made.platform.state.change("customers", second, {"phone": "915 550 103 ext. 4"})
    new_shop.made.pull("customers")
    reconcile(ErpFiles(new_shop.file))
    phones = [row[2:] for row in new_shop.differences()]
    assert phones == [("+34 915550103", "915 550 103 ext. 4"), ("34-91 555 01 99", "915550199")]
    monkeypatch.setenv("RECONCILE__COUNTRY", "ES")
    reconcile(ErpFiles(new_shop.file))
    assert [row[2:] for row in new_shop.differences()] == [("34-91 555 01 99", "915550199")]


def test_without_a_file_of_variants_their_table_is_there_and_empty(shop: Shop) -> None:
    assert reconcile(ErpFiles(forget=True)).variants is None
    assert shop.made.rows("FROM reconciled.erp_variants") == []


def test_variants_are_held_against_what_a_push_confirmed(shop: Shop) -> None:
    env, home = shop.made.environment(), shop.made.folder
    file = home.parent / "articulos.csv"

    def compared(*lines: str) -> tuple[int, list[tuple[Any, ...]]]:
        file.write_text("\n".join(["productId,variantId,erpCode,sku,weight", *lines, ""]), "utf-8")
        done = command("reconcile", "--erp-variants", str(file), env=env, cwd=home)
        sql = "SELECT line, erp_code, status, split_part(evidence, '; ', 2) FROM reconciled.erp_variants ORDER BY line"
        return done.code, shop.made.rows(sql)

    assert compared("1,10,00038,A,1.5") == (0, [(2, "00038", "never_sent", "")])
    assert reconcile().variants is None
    assert shop.made.one("SELECT count(*) FROM reconciled.erp_variants") == 1, "the last comparison is kept"
    assert command("plan", "variants", str(file), "--out", str(home.parent / "plan"), env=env, cwd=home).code == 0
    assert command("push", str(home.parent / "plan"), "--yes", env=env, cwd=home).code == 0
    assert compared("1,10,00038,A,1.50", "1,11,00039,B,2", "1,x,00040,C,heavy") == (
        5,
        [(2, "00038", "same", ""), (3, "00039", "never_sent", "")],
    )
    assert compared("1,10,00038,Z,1.50") == (0, [(2, "00038", "differs", "other: sku")])
    with file.open("a", encoding="utf-8") as lines:
        lines.write("F-1\n")  # perhaps a line that was cut off
    done = command("reconcile", "--erp-variants", str(file), env=env, cwd=home)
    assert (done.code, "lines rejected and not compared: 2, 3" in done.out) == (5, True)
    assert "detected" not in done.err, "the notation of numbers is no reason to warn each night"


def test_a_variant_whose_answer_was_lost_is_in_doubt_and_not_never_sent(tmp_path: Path) -> None:
    with place(tmp_path) as made:
        file = made.folder / "articulos.csv"
        file.write_text("productId,variantId,sku,weight\n1,1,A,2\n1,2,B,3\n", "utf-8")

        def compared() -> list[tuple[str, ...]]:
            erp = read_erp_variants(ErpFiles(variants=file))
            assert erp is not None
            rows = variants(erp.rows, erp.confirmed)
            words = [text.partition("in plan ")[2].partition("; ")[2] or text for text in rows["evidence"]]
            return list(zip(rows["status"], words, strict=True))

        made.push(made.plan([patch(1, 1, sku="A", weight=2)], "variants"))
        made.platform.set_faults({"lost_answer": 1.0})
        plan = made.plan([patch(1, 1, weight=2), patch(2, 2, sku="B", weight=3)], "variants")
        assert made.push(plan).exit_code == 6
        assert compared() == [("differs", "in doubt: weight"), ("differs", "in doubt: sku, weight")]
        made.platform.set_faults({})
        assert made.push(plan).exit_code == 0
        assert [status for status, _ in compared()] == ["same", "same"]


def test_a_lookup_outside_the_mappings_folder_is_read_where_the_command_allows_it(shop: Shop) -> None:
    """Issue 12: `reconcile` reads a mapping with the same lookups as `plan`; the summary of a plan names them."""
    env, home = shop.made.environment(), shop.made.folder
    for name in ("files", "ids"):
        (home.parent / name).mkdir()
    file, mapping, ids = (home.parent / name for name in ("files/articulos.csv", "files/m.toml", "ids/ids.csv"))
    file.write_text("code,sku\nA,X\n", "utf-8")
    ids.write_text("code,product,variant\nA,1,10\n", "utf-8")
    mapping.write_text(
        'kind = "variants"\n[columns]\nsku = "sku"\n[[lookup]]\nfile = "../ids/ids.csv"\n'
        'match = { code = "code" }\ngive = { productId = "product", variantId = "variant" }\n'
    )
    options = ("--erp-variants", str(file), "--erp-variants-mapping", str(mapping))
    done = command("reconcile", *options, env=env, cwd=home)
    assert (done.code, f"--lookup {ids}" in done.err) == (2, True)
    assert command("reconcile", *options, "--lookup", str(ids), env=env, cwd=home).code == 0
    assert shop.made.rows("SELECT line, status FROM reconciled.erp_variants") == [(2, "never_sent")]
    plan = home.parent / "plan"
    arguments = ("variants", str(file), "--mapping", str(mapping), "--lookup", str(ids), "--out", str(plan))
    assert command("plan", *arguments, env=env, cwd=home).code == 0
    assert "Values were looked up in ids.csv." in (plan / "summary.md").read_text("utf-8")
