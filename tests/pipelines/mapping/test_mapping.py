"""Mapping files: read, refused with all that is wrong and where, written, proposed."""

from __future__ import annotations

import re
import textwrap
import tomllib
from importlib.resources import files
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from orderbridge.pipelines.mapping import (
    Formats,
    Lookup,
    MappedColumn,
    Mapping,
    load,
    propose,
    to_toml,
)
from orderbridge.pipelines.mapping.cells import WORDS, Reading, is_date_form
from orderbridge.pipelines.mapping.field_paths import all_paths, resolve
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files import ReadOptions
from orderbridge.sources.kinds import KINDS
from orderbridge.transforms.values.numbers import COMMA, POINT, Notation

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("mapping.md", "mapping-examples.md", "reference/mapping.md")
GUIDES = "".join((DOCS / name).read_text("utf-8") for name in PAGES)
FRAGMENTS = [
    textwrap.dedent(text)
    for text in re.findall(r"^ *```toml\n(.*?)^ *```$", GUIDES, re.MULTILINE | re.DOTALL)
]


def written(folder: Path, text: str) -> Path:
    path = folder / "mapping.toml"
    path.write_text(text, "utf-8")
    return path


def refused(folder: Path, text: str, kind: str | None = None) -> str:
    with pytest.raises(UsageError) as error:
        load(written(folder, text), kind)
    assert "mapping.toml" in error.value.message
    return str(error.value)


def test_all_that_a_mapping_can_say_is_written_and_read(tmp_path: Path) -> None:
    mapping = Mapping(
        kind="variants",
        columns={
            "Producto": MappedColumn("Producto", "productId"),
            "PVP": MappedColumn(
                "PVP", "price", (), Formats(decimal="."), "reject", None, change=True
            ),
            "Color": MappedColumn("Color", "attributes.Color"),
            "Foto": MappedColumn("Foto", "images[+].url"),
            "Código": MappedColumn(
                "Código", "erpCode", ("sku",), Formats(empty=("-",)), "omit", "x", trim=False
            ),
            "Exento": MappedColumn(
                "Exento", "priceIsTaxExempt", (), Formats(yes=("X",), no=("-",))
            ),
            'Zo"na = \\\u202e\x7f': MappedColumn('Zo"na = \\\u202e\x7f', None),
        },
        read_options=ReadOptions("cp1252", ";", header_row=3, short_rows="fill", totals="skip"),
        formats=Formats(",", ".", "€", "DD/MM/YYYY", ("S",), ("N",), ('\u2028"\\\n',)),
        constants={"jumpFactor": 2},
        group=("Producto",),
        lookups=(Lookup("ids.csv", tmp_path / "ids.csv", {"Código": "sku"}, {"variantId": "id"}),),
        fill_down=("Talla",),
        fill_within=("Producto",),
        skip_blank=("PVP",),
        path=tmp_path / "mapping.toml",
    )
    text = to_toml(mapping)
    assert all(line.isprintable() for line in text.splitlines())
    assert load(written(tmp_path, text)) == mapping
    assert to_toml(load(tmp_path / "mapping.toml")) == text


SKU_LOOKUP = '[[lookup]]\nfile = "ids.csv"\nmatch = { X = "c" }\ngive = { sku = "s" }\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('kind = "custmers"\n[columns]\n', "line 1: kind"),
        ("[columns]\n", "kind is missing"),
        ('C\n[columns]\nA = \n', "not valid TOML"),
        ('C\n[colums]\n[columns]\n', "line 2: unknown key colums (did you mean columns?)"),
        ('C\n[file]\nheader_rows = 2\n[columns]\n', "line 3: header_rows is gone: remove it, set header_row to"),
        ('C\n[columns]\nA = "emial"\n', "line 3: 'emial' is not a field of customers (did you mean email?)"),
        ('C\n[columns]\nA = "fiscalname"\n', "(did you mean documents[0].fiscalName?)"),
        ('C\n[columns]\nA = { feld = "email" }\n', "line 3: unknown key columns › A"),
        ('C\n[columns]\nA = { field = "email", ignore = true }\n', "line 3: 'A' needs either a field or ignore"),
        ('C\n[columns]\nA = "email"\nB = "email"\n', "line 4: email is filled twice: by column 'A'"),
        ('C\n[columns]\nA = "email"\n[constants]\nemail = "x"\n', "line 5: email is filled twice"),
        ('C\nignore = ["A"]\n[columns]\nA = "email"\n', "line 2: 'A' is ignored, but is also listed under"),
        ('C\n[columns]\nA = "documents[+].number"\n', "add a [group] table"),
        ('C\n[columns]\nA = { field = "email", blank = "clear" }\n', "cannot clear email"),
        ('V\n[columns]\nA = { field = "price", blank = "clear" }\n', "cannot clear price"),
        ('C\n[columns]\nA = { field = "email", blank = "reject", default = "x" }\n', "has both a default and"),
        ('C\n[columns]\nA = { field = "email", change = true }\n', "only price and stock can be changes"),
        ('V\n[columns]\nA = { field = "stock", change = true, default = 5 }\n', "default of changes can only be 0"),
        ('C\n[columns]\nA = { field = "email", decimal = "," }\n', "email is not a number"),
        ('C\n[columns]\nA = { field = "email", default = 5 }\n', "the default must be a text"),
        ('V\n[columns]\nA = { field = "price", default = nan }\n', "the default must be a number"),
        *(
            (f'V\n[columns]\n[constants]\nproductId = {value}\n', "productId: the constant must be an id as the")
            for value in ('"../x"', '"007"', "1.0", "true")
        ),
        ('S\n[columns]\n[constants]\ncategoryId = "a b"\n', "line 4: categoryId: the constant must be an id as the"),
        ('V\n[columns]\nA = { field = "variantId", default = "1,5" }\n', "'A': the default must be an id as the"),
        ('C\n[columns]\n[constants]\npriceListId = "1"\n', "line 4: priceListId: the constant must be"),
        ('V\n[columns]\n[constants]\njumpFactor = 1.5\n', "jumpFactor: the constant must be a whole number"),
        ('V\n[columns]\n[constants]\njumpFactor = true\n', "jumpFactor: the constant must be a whole number"),
        ('V\n[columns]\n[constants]\npriceIsTaxExempt = 1\n', "the constant must be true or false"),
        ('V\n[columns]\n[constants]\nprice = true\n', "price: the constant must be a number"),
        ('C\n[columns]\n[constants]\npassword = "hunter2"\n', "it cannot be a constant or a lookup"),
        ('C\n[columns]\nA = { field = "password", default = "x" }\n', "it cannot be a constant or a lookup"),
        ('C\n[columns]\nA = { field = "erpCode", also = ["password"] }\n', "a password column cannot fill other"),
        ('C\n[columns]\nA = "password"\n[passwords]\nmake = "mail"\n', "not both"),
        ('V\n[columns]\n[passwords]\nmake = "mail"\n', "variants have no passwords"),
        ('C\n[columns]\n[passwords]\nmake = "sms"\n', "line 4: passwords › make"),
        ('V\n[columns]\nA = "images[5].url"\n', "at most 5 items, [0] to [4]"),
        ('V\n[columns]\nA = "attributes."\n', "has no attribute name"),
        ('V\n[numbers]\ndecimal = ";"\n[columns]\n', 'decimal must be "," or "."'),
        ('V\n[numbers]\ndecimal = ","\nthousands = ","\n[columns]\n', "are the same mark"),
        ('V\n[numbers]\nthousands = "."\n[columns]\n', "thousands is set without decimal; set both"),
        ('V\n[booleans]\nyes = ["S"]\nno = ["s"]\n[columns]\n', "'s' is listed under both yes and no"),
        ('V\n[dates]\nformat = "DD/MM"\n[columns]\n', "line 3: a date format has DD, MM and YYYY"),
        ('V\n[rows]\nfill_within = ["A"]\n[columns]\n', "fill_within is set without fill_down"),
        ('V\n[columns]\n[[lookup]]\nfile = "a"\nmatch = {}\ngive = { productId = "a" }\n', "lookup"),
        ('C\n[columns]\nA = "password"\n[group]\nby = ["A"]\n', "a password column can be neither filled down nor"),
        ('V\n[columns]\nA = { field = "sku", send = "always", change = true }\n', "are sent always or when changed"),
        ('C\n[columns]\nA = { field = "email", send = "always" }\n', "are sent always or when changed"),
        ('V\nstrict = true\n[columns]\n"*" = "ignore"\n', 'it can only be "ignore", not strict'),
        ('V\n[columns]\nA = "images[+].url"\nB = "images[0].url"\n[group]\nby = ["C"]\n', "use one or the other"),
        *(
            (f'V\n[columns]\nX = "erpCode"\n{first}{SKU_LOOKUP}', f"sku is filled twice: by {what}")
            for first, what in (('[constants]\nsku = "X"\n', "a constant"), (SKU_LOOKUP, "lookup ids.csv"))
        ),
        # beyond all bounds
        (f"V\n[columns]\n[constants]\nproductId = {'9' * 5000}\n", "a number has too many digits"),
        ("kind = " + "[" * 100_000 + "]" * 100_000, "nested too deeply"),
        ("# " + "x" * (2 << 20), "larger than 1 MiB"),
    ],
    ids=lambda text: text[:40],
)  # fmt: skip
def test_a_mistake_is_reported_with_its_place_and_the_nearest_name(
    tmp_path: Path, text: str, words: str
) -> None:
    kinds = {"C": 'kind = "customers"', "V": 'kind = "variants"', "S": 'kind = "subcategories"'}
    assert words in refused(
        tmp_path,
        re.sub("^[CSV]$", lambda short: kinds[short[0]], text, count=1, flags=re.MULTILINE),
    )


def test_all_mistakes_are_reported_at_once_and_no_value_of_the_file(tmp_path: Path) -> None:
    text = 'C\n[columns]\n"Ñ" = "emial"\n\'b\' = "phon"\n[constants]\nphone = 5\npassword = "hunter2"\n'
    reported = refused(tmp_path, text.replace("C", 'kind = "customers"', 1))
    assert "4 mistakes" in reported
    assert [int(line) for line in re.findall(r"line (\d)", reported)] == [3, 4, 7, 6]
    assert "hunter2" not in reported


def test_a_file_of_another_kind_or_that_is_no_text_or_not_there_is_reported(tmp_path: Path) -> None:
    text = 'kind = "variants"\n[columns]\n'
    assert "is a mapping for variants, not customers" in refused(tmp_path, text, "customers")
    assert load(written(tmp_path, "[columns]\n"), "customers").kind == "customers"
    with pytest.raises(UsageError, match="cannot be read"):
        load(tmp_path / "none.toml")
    (tmp_path / "mapping.toml").write_bytes('kind = "customers" # Código'.encode("cp1252"))
    with pytest.raises(UsageError, match="not UTF-8"):
        load(tmp_path / "mapping.toml")
    text = '\ufeffkind = "customers"\r\n[columns]\r\n"Código" = "erpCode"\r\n'  # by an editor of Windows
    (tmp_path / "mapping.toml").write_bytes(text.encode())
    assert load(tmp_path / "mapping.toml").columns["Código"].field == "erpCode"


@pytest.mark.parametrize("text", FRAGMENTS, ids=lambda text: text.splitlines()[0])
def test_every_mapping_of_the_guides_loads(tmp_path: Path, text: str) -> None:
    keys = tomllib.loads(text)
    whole = text if "kind" in keys else f'kind = "variants"\n{text}'
    load(written(tmp_path, whole if "columns" in keys else f"{whole}\n[columns]\n"))


def test_every_field_that_has_column_names_is_one_of_its_kind() -> None:
    tables = tomllib.loads(
        files("orderbridge.pipelines.mapping").joinpath("column_names.toml").read_text("utf-8")
    )
    of_kinds = [{kind: tables[kind] for kind in KINDS}]
    of_kinds += [tables[strength] for strength in ("unclear", "more", "weak")]
    named = [(kind, path) for names in of_kinds for kind in names for path in names[kind]]
    assert named
    assert [(kind, path) for kind, path in named if isinstance(resolve(kind, path), str)] == []


LOOKUP = """kind = "variants"
[columns]
[[lookup]]
file = "{}"
match = {{ a = "b" }}
give = {{ productId = "c", variantId = "d" }}
"""


def test_a_lookup_stays_below_the_mapping_unless_the_command_line_names_it(tmp_path: Path) -> None:
    folder = tmp_path / "mappings"
    (folder / "sub").mkdir(parents=True)
    outside = tmp_path / "secret.csv"
    (folder / "link.csv").symlink_to(outside)
    for name in ("../secret.csv", str(outside), "sub/../../secret.csv", "link.csv"):
        message = refused(folder, LOOKUP.format(name))
        assert f"lookup {name} is outside of the mapping's folder" in message
        assert f"--lookup {outside}" in message
        allowed = folder / "sub" / "../../secret.csv"
        assert load(folder / "mapping.toml", None, [allowed]).lookups[0].path.resolve() == outside
    for name in ("ids.csv", "sub/ids.csv", "sub/../ids.csv"):
        assert load(written(folder, LOOKUP.format(name))).lookups[0].file == name


@pytest.mark.parametrize(
    "name", ["plan-1/passwords.csv", "plan-1/results/a.csv", ".dlt/a.csv", "passwords.csv"]
)
def test_a_lookup_reads_no_private_file_unless_the_command_line_names_it(
    tmp_path: Path, name: str
) -> None:
    file = tmp_path / name
    file.parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name.partition("/")[0] / "plan.json").touch() if name.startswith("plan") else None
    file.write_text("id,password\n1,x\n")
    path = written(tmp_path, LOOKUP.format(name))
    with pytest.raises(UsageError, match="is a private file of a plan or of the settings"):
        load(path)
    assert load(path, None, [file]).lookups[0].path == file


FISCAL, ADDRESS, NUMBER = (
    "documents[0].fiscalName",
    "documents[0].fiscalAddress",
    "documents[0].number",
)
COMPANIES = ["Cafés Luz S.L.", "Ana Ruiz", "Bodegas Mar SA", "Talleres Gil, S.L."]
EMAILS = ["ana@example.com", "info@example.org", "", "luz@example.net"]
TAX_IDS = ["B12345674", "00000000T", "A58818501", ""]
PHONES = ["+34 600 112 233", "934000902", "", "91 555 01 02"]
CODES = ["000901", "000902", "000903", "000904"]
SAMPLES = {
    "erpCode": CODES, "F": COMPANIES, "email": EMAILS, "phone": PHONES, "N": TAX_IDS, "priceListId": ["1"],
    "documents[0].email": EMAILS, **dict.fromkeys(("Cellular", "Default Address Phone"), PHONES),
    "Accepts Email Marketing": ["yes", "no"],
}  # fmt: skip
"""Cells of a column, by its field or its name."""
EXPORTS: dict[str, str] = {
    "spanish": "Código=erpCode, Razón social=F, Nombre=firstName, Apellidos=lastName, Teléfono=phone, Correo=email, "
        "Dirección fiscal=A, NIF=N, Tarifa=priceListId",
    "german": "Kundennummer=erpCode, Firma=F, Vorname=firstName, Name=lastName, Telefon=phone, E-Mail-Adresse=email, "
        "Anschrift=A, USt-IdNr.=N, Preisliste=priceListId",
    "SAP Business One": "CardCode=erpCode, CardName=F, GroupCode=, LicTradNum=N, Phone1=phone, Cellular=, "
        "E_Mail=email, Address=A, ListNum=priceListId, Balance=, CntctPrsn=",
    "Shopify": "Customer ID=erpCode, First Name=firstName, Last Name=lastName, Email=email, Accepts Email Marketing=, "
        "Default Address Company=F, Default Address Address1=A, Default Address Address2=, "
        "Default Address City=, Default Address Phone=, Phone=phone, Total Spent=, Note=, Tax Exempt=, Tags=",
    "WooCommerce": "customer_id=erpCode, user_login=loginCode, first_name=firstName, last_name=lastName, "
        "user_email=email, billing_company=F, billing_phone=phone, billing_first_name=, billing_address_1=A, "
        "billing_email=documents[0].email, billing_city=, orders=",
}  # fmt: skip
SHORT = {"F": FISCAL, "A": ADDRESS, "N": NUMBER}


def columns_of(export: str) -> dict[str, tuple[str, list[str]]]:
    """The field of each column, and its cells."""
    pairs = [one.split("=") for one in export.split(", ")]
    return {
        name: (SHORT.get(field, field), SAMPLES.get(field or name, ["Ana"]))
        for name, field in pairs
    }


OTHERS: dict[str, tuple[str, str]] = {
    "logins": ("customers", "SURNAME=lastName,E-Mail=email,login_code=loginCode,priceListId=priceListId,NIF 2="
               "documents[1].number,Address 1=documents[0].fiscalAddress,For taxes=documents[0].forTaxes"),
    "artículos": ("variants", "productId=productId,variantId=variantId,Código=erpCode,PVP=price,Existencias=stock,"
                  "Exento IVA=priceIsTaxExempt,Múltiplo=salesUnitFactor,Escalón=jumpFactor,Peso=weight,"
                  "Foto=images[0].url,Foto 2=images[1].url,Talla=attributes.Talla"),
    "short": ("customers", "Código=erpCode,Lista=priceListId"),
    "both": ("customers", "Tarifa=priceListId,Lista="),
    # what may mean another field: `Clave` is the customer's code in some ERPs; `Address 2` is no second document
    "doubtful": ("customers", "Clave=,Cliente=,Customer=,Dirección 2=,Address2=,Empresa 2=,"
                 "Correo fiscal 2=,Number=,Send="),
    "general": ("variants", "Name=,Value=,URL="),
    **{f"interface {kind}": (kind, ",".join(f"{path}={path}" for path in all_paths(kind))) for kind in KINDS},
}  # fmt: skip
CASES = {name: ("customers", columns_of(export)) for name, export in EXPORTS.items()} | {
    name: (kind, {one.split("=")[0]: (one.split("=")[1], []) for one in pairs.split(",")})
    for name, (kind, pairs) in OTHERS.items()
}


@pytest.mark.parametrize("name", CASES)
def test_the_columns_of_an_export_are_proposed_and_none_is_wrong(name: str) -> None:
    kind, export = CASES[name]
    samples = {one: cells for one, (_, cells) in export.items()}
    proposed = propose(
        list(export), kind, conflicts="leave", samples=samples if name in EXPORTS else None
    )
    found = {column: mapped.field for column, mapped in proposed.columns.items()}
    assert found == {column: field for column, (field, _) in export.items() if field}
    assert proposed.unknown == tuple(column for column, (field, _) in export.items() if not field)
    assert proposed.contested == {}


MAILS = ["ana@example.com", "eva@example.com", "luz@example.com"]
VALUES = {
    "Buzón": MAILS,
    "Vendedor": ["jefe@shop.example"] * 3,
    "Mail": ["sí", "no", "no"],
    "Código": ["1", "2", "3"],
}


@pytest.mark.parametrize(
    ("columns", "kind", "expected", "contested"),
    [
        (
            VALUES,
            "customers",
            {"Código": "erpCode"},
            {},
        ),
        (
            {"Correo": ["a@b.es"], "E-mail": ["c@d.es"]},
            "customers",
            {},
            {"email": ("Correo", "E-mail")},
        ),
        ({"Correo": ["a@b.es"], "E-mail": [""]}, "customers", {"Correo": "email"}, {}),
        (
            {"PVP": ["consultar", "-", "consultar"], "Stock": ["3"]},
            "variants",
            {"Stock": "stock"},
            {},
        ),
        ({"PVP": ["consultar", "-"]}, "variants", {"PVP": "price"}, {}),  # too few cells
        ({"Name": ["Ana Ruiz"], "Código": ["1"]}, "customers", {"Código": "erpCode"}, {}),
    ],
)
def test_values_veto_a_name_and_what_cancels_each_other_is_left_to_a_person(
    columns: dict[str, list[str]],
    kind: str,
    expected: dict[str, str],
    contested: dict[str, tuple[str, ...]],
) -> None:
    proposed = propose(list(columns), kind, conflicts="leave", samples=columns)
    assert {name: column.field for name, column in proposed.columns.items()} == expected
    assert proposed.contested == contested
    if contested:
        with pytest.raises(UsageError, match="'Correo' and 'E-mail' both match email"):
            propose(list(columns), kind)


def test_a_proposal_is_explained_and_saved_with_unknown_columns_left_to_name(
    tmp_path: Path,
) -> None:
    assert propose(["PVP", "Descripción"], "variants").explain() == [
        "PVP          → price",
        "Descripción  matches no field",
    ]
    proposed = propose(["Código", "Descripción del producto", "PVP", "a\u202eb\x7f"], "variants")
    text = to_toml(proposed)
    assert all(line.isprintable() for line in text.splitlines())
    assert '# "Descripción del producto" = ""' in text
    (tmp_path / "mapping.toml").write_text(text, "utf-8")
    assert load(tmp_path / "mapping.toml").columns == proposed.columns


VALUE_KINDS: Any = ["text", "secret", "id", "number_id", "integer", "number", "boolean", "date"]
POWERS = ["7,50123E+12", "7.50123E+12", "1E+15", "-1e+03", "1,00E-05"]
ERRORS = ["#N/A", "#REF!", "Err:502", "#N/A (2026-01-01)", "#¡REF!", "#VALUE!", "#DIV/0!", "########", "#NV", "#BEZUG!",
          "#NOM?", "#N/DISP", "#NAVN?", "#I/T", "#VÄRDEFEL!"]  # fmt: skip
TEXTS = ["00038", "Tunnbröd  med", "O'Neill", "1E5", "1E-5", "NULL", "None", "NaN", "+34600", "1.0", "Ⅻ", "#1", "# 5",
         "##", "#A1", "#NO", "#Hola!", "#1!", "'", "'s-Hertogenbosch", "00038'", "'90s", "5'11", "d'Ors"]  # fmt: skip
MARKED = ['="00038"', " '00038 ", "'+34 600-112 (3)", "'38.1", '=" "']


def read(reading: Reading, *cells: str) -> list[Any]:
    """A value, or the code in brackets."""
    values, codes = reading.read(pa.array(cells, pa.string()))
    assert set(codes.to_pylist()) <= {None, *WORDS}
    return [
        [code] if code else value
        for value, code in zip(values.to_pylist(), codes.to_pylist(), strict=True)
    ]


CELLS: list[tuple[Reading, list[str], list[Any]]] = [
    (Reading("text"), TEXTS, TEXTS),
    (Reading("text"), [f"  {text}\t" for text in TEXTS], TEXTS),
    (Reading("text", empty=("NULL", "-")), ["", "  ", "\u00a0", "NULL", " - ", "null"], [None] * 5 + ["null"]),
    *((Reading(kind), POWERS, [["damaged_code"]] * 5) for kind in ("text", "id", "number_id")),
    (Reading("text"), ERRORS, [["cell_error"]] * len(ERRORS)),
    (Reading("text"), ["Tunnbr\ufffdd"], [["damaged_text"]]),
    (Reading("text"), [r"\N", r"\N ", r"a\N", "N"], [["no_value"], ["no_value"], r"a\N", "N"]),
    (Reading("text", empty=(r"\N",)), [r"\N"], [None]),
    (Reading("secret"), [" 7,5E+12 ", "#N/A", "  ", *MARKED[:4]], [" 7,5E+12 ", "#N/A", None, *MARKED[:4]]),
    # the marks that keep a code a text in a spreadsheet
    (Reading("text"), MARKED, ["00038", "00038", "+34 600-112 (3)", "38.1", None]),
    (Reading("text", trim=False), ['=" 00038"', " é\u2028\t'", " \t"], [" 00038", " é\u2028\t'", None]),
    (Reading("number_id"), MARKED[:2], ["38", "38"]),
    (Reading("text"), ['="A"&"B"', '="5"""'], [["formula"]] * 2),
    # numbers without proof are read only where they need none
    (Reading("number"), ["12", "1.234", "x"], ["12", ["ambiguous_number"], ["not_a_number"]]),
    (Reading("number"), ["1 234", "1'234", "1,5 kg", "12 uds"], [["ambiguous_number"]] * 2 + [["not_a_number"]] * 2),
    (Reading("number", COMMA, "kg"), ["1,5 kg", "12kg", "3 g"], ["1.5", "12", ["not_a_number"]]),
    (Reading("number", unproven="mixed_numbers"), ["12", "1,5"], ["12", ["mixed_numbers"]]),
    (Reading("number", COMMA), ["19.367,25", "0,1234567890123456"], ["19367.25", ["too_many_digits"]]),
    (Reading("number", Notation(",", " ")), ["1 234,5", "1\u00a0234,5"], ["1234.5", "1234.5"]),
    (Reading("number", COMMA, "€"), ["1,50 €", "2,00", "3,00 $"], ["1.50", "2.00", ["currency"]]),
    (Reading("integer", COMMA), ["1.234", "39,00", "39,50", "1E3"], ["1234", "39", ["not_whole"], ["not_a_number"]]),
    (Reading("integer"), ["1.000", "2.5", "2,50", "1.2.3", "12"],
     [["ambiguous_number"], ["not_whole"], ["not_whole"], ["ambiguous_number"], "12"]),
    (Reading("integer", unproven="mixed_numbers"), ["39,00", "2.5"], [["mixed_numbers"]] * 2),
    *((Reading("number", notation), ["1·234", "-0·5", "1·2·3", "·5"], ["1.234", "-0.5", *[["not_a_number"]] * 2])
      for notation in (None, COMMA, POINT, Notation(",", " "))),
    (Reading("integer", COMMA), ["2·5"], [["not_whole"]]),
    (Reading("boolean"), ["S", "sí", "TRUE", "1", "no", "FALSO", "0", "x", "", "2"],
     [True] * 4 + [False] * 3 + [["not_yes_or_no"], None, ["not_yes_or_no"]]),
    (Reading("boolean"), ["Ja", "WAHR", "oui", "VRAI", "sì", "VERO", "Sim", "verdadeiro", "j"], [True] * 9),
    (Reading("boolean"), ["nein", "FALSCH", "non", "FAUX", "não", "nao"], [False] * 6),
    (Reading("boolean", yes=("X",), no=("-",)), ["x", "-", "S"], [True, False, ["not_yes_or_no"]]),
    (Reading("number_id"), ["1001", "007", "0", "1.001", "-1", "1e3", "１", "9" * 19],
     ["1001", "7", "0", *[["not_an_id"]] * 5]),
    (Reading("id"), ["A-1_b~", "007", "a.b", "..", ".", "a/b", "a b", "a?b", "a" * 129],
     ["A-1_b~", "007", "a.b", *[["not_an_id"]] * 6]),
    (Reading("date", date="DD/MM/YYYY"), ["31/01/2026", "31/02/2026", "1/1/2026", "2026-01-31", ""],
     ["2026-01-31", ["not_a_date"], ["not_a_date"], ["not_a_date"], None]),
    *((Reading(kind), [], []) for kind in VALUE_KINDS),
    *((Reading(kind), ["", " "], [None, None]) for kind in VALUE_KINDS),
]  # fmt: skip


@pytest.mark.parametrize(("reading", "cells", "values"), CELLS)
def test_a_cell_is_a_value_or_has_a_code(
    reading: Reading, cells: list[str], values: list[Any]
) -> None:
    assert read(reading, *cells) == values


def test_the_words_of_a_code_say_what_the_column_expects_and_no_value() -> None:
    assert all("{" not in Reading("date").words(code) for code in WORDS)
    assert "look like 1.234,5)" in Reading("number", COMMA).words("not_a_number")
    assert "DD/MM/YYYY" in Reading("date", date="DD/MM/YYYY").words("not_a_date")
    assert "(€, no sign)" in Reading("number", signs=("€", "")).words("currency")
    assert [is_date_form(form) for form in ("DD/MM/YYYY", "DD/MM", "DD/MM/YYYY hh")] == [
        True,
        False,
        False,
    ]
