"""Records that the interface does not describe: types from the whole walk, names, child tables; both ways agree."""

from __future__ import annotations

import json
from dataclasses import replace
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest

from orderbridge.sources.contract import ORDER
from orderbridge.sources.decode.column_kinds import KeptKind
from orderbridge.sources.decode.rows import Decoded, Page
from orderbridge.sources.decode.stored_types import as_stored
from orderbridge.sources.decode.table_schema import DECIMAL, FIELD, NAME_MAX
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.errors import ContractBroken

MONEY = "decimal128(38, 9)"


def raw_page(*rows: str, number: int = 1) -> Page:
    return Page(number, f"[{','.join(rows)}]".encode())


def walk(pages: list[Page]) -> tuple[InferredSchema, list[Decoded]]:
    """Decodes pages one by one, then again under the final types, and checks that these were final."""
    shape = InferredSchema(ORDER)
    for page in pages:
        shape.decode([page])
    version = shape.version
    again = [shape.decode([page], is_known=True) for page in pages]
    assert shape.version == version, f"types that change once all pages were seen: {pages}"
    for page, decoded in zip(pages, again, strict=True):
        exact = shape.by_rows([page])
        for table in decoded.tables.values():
            table.validate(full=True)
        assert decoded.tables == exact.tables
        assert decoded.quarantined == exact.quarantined
    return shape, again


def column(name: str, *rows: str, table: str = "orders") -> tuple[str, list[object]]:
    """The type and values of a column over rows of one page each; checks all that `walk` does."""
    pages = [raw_page(row, number=n) for n, row in enumerate(rows, 1)]
    _, decoded = walk(pages)
    whole = pa.concat_tables([part.tables[table] for part in decoded])
    assert all(not part.quarantined for part in decoded)
    return str(whole.schema.field(name).type), whole[name].to_pylist()


def values(*written: str) -> tuple[str, list[object]]:
    return column("x", *(f'{{"id":1,"x":{value}}}' for value in written))


def test_passwords_in_an_order_are_masked() -> None:
    rows = [
        f'{{"id":{n},"customer":{{"password":{v}}}}}' for n, v in enumerate(('"a1"', '""', "null"))
    ]
    assert column("customer__password", *rows)[1] == ["***", "", None]
    assert column("passport", '{"id":1,"passport":"X1"}')[1] == ["X1"]
    odd = ('"a1"', '{"hash":"a1"}', "null", "false")
    rows = [f'{{"id":{n},"password":{v}}}' for n, v in enumerate(odd)]
    assert column("password", *rows)[1] == ['"***"', '"***"', None, "false"]
    assert column("passwords", '{"id":1,"passwords":["a1"]}')[1] == ['"***"']
    mixed = '{"id":1,"logins":["x",{"password":"a1"}]}'
    assert column("logins", mixed)[1] == ['["x",{"password":"***"}]']


@pytest.mark.parametrize(
    ("written", "kept"),
    [
        (["null"], ("string", [None])),
        (["1", "-9223372036854775808"], ("int64", [1, -(2**63)])),
        (["1.0", "2", "1e2"], (MONEY, ["1", "2", "100"])),
        (["1", '"-9007199254740993"'], ("int64", [1, -9007199254740993])),
        (["1", "1.50"], (MONEY, ["1", "1.5"])),
        (["12.600000000000001"], (MONEY, ["12.6"])),
        (["1e3", "9E+11", "-0.0", "1.5e-12"], (MONEY, ["1000", "900000000000", "0", "0"])),
        (["0.5", "1e38"], ("string", ["0.5", "1" + 38 * "0"])),
        (["1", "9223372036854775808"], (MONEY, ["1", "9223372036854775808"])),
        (["1", '"a"', "true"], ("string", ["1", "a", "true"])),
        (['"007"', '"1e5"'], ("string", ["007", "1e5"])),
        (["1", '"12.50"', "null"], (MONEY, ["1", "12.5", None])),
        (["1.5", '"0012"'], ("string", ["1.5", "0012"])),
        (["[]", "null"], ("string", [None, None])),
        (["[]", '["a","é"]', '["\\""]'], ("string", ["[]", '["a","é"]', '["\\""]'])),
        (['["a"]', '["a\\\\b"]'], ("string", ['["a"]', '["a\\\\b"]'])),
        (
            ["[-12.002, 1.50]", "[3, -0.0]", "[]", "null"],
            ("string", ["[-12.002,1.5]", "[3,0]", "[]", None]),
        ),
        (["[0.5]", "[0.12345678901234567]"], ("string", ["[0.5]", "[0.12345678901234567]"])),
        (["[1.50, null]"], ("string", ["[1.5,null]"])),
        (['[1, {"a": 2}]'], ("string", ['[1,{"a":2}]'])),
        (["[]", '["a"]', '"b"', "{}"], ("string", ["[]", '["a"]', '["b"]', "[]"])),
        (["[[1],[2]]"], ("string", ["[[1],[2]]"])),
        (['{"a": 1.50}', "2", '"b"', "null"], ("string", ['{"a":1.5}', "2", '"b"', None])),
        (['{"7":1,"8":2}', '{"9":3}'], ("string", ['{"7":1,"8":2}', '{"9":3}'])),
    ],
)
def test_a_field_has_the_narrowest_type_that_holds_most_values(
    written: list[str], kept: tuple[str, list[object]]
) -> None:
    for order in (range(len(written)), range(len(written))[::-1]):
        kind, found = values(*(written[n] for n in order))
        found = [
            f"{value.normalize():f}" if isinstance(value, Decimal) else value for value in found
        ]
        assert (kind, found) == (kept[0], [kept[1][n] for n in order])


@pytest.mark.parametrize(
    ("written", "kept", "exact"),
    [
        ("8.264462809917356", "8.26446281", "8.264462809917356"),
        ("0.1234567885", "0.123456789", "0.1234567885"),
        ("-0.1234567885", "-0.123456789", "-0.1234567885"),
        ('"8.264462809917356"', "8.26446281", "8.264462809917356"),
        ("0.12345678849999999999999", "0.123456788", "0.12345678849999999999999"),
        ("5.684341886080802e-14", "0", "0.00000000000005684341886080802"),
        ("-1E-7", "-0.0000001", None),
        ("1.50000000000000000000", "1.5", None),
        ("12345678901234567890123456789.1", "12345678901234567890123456789.1", None),
    ],
)
def test_a_number_with_many_decimals_is_rounded_and_exact_in_extra(
    written: str, kept: str, exact: str | None
) -> None:
    first = f'{{"id":1,"paid":{{"x":{written}}},"lines":[{{"x":{written}}},{{"x":2}}]}}'
    page = raw_page(first, '{"id":2,"paid":{"x":0.5}}')
    shape, (decoded,) = walk([page])
    assert shape._columnar([page]) is not None  # not row by row
    orders, lines = decoded.tables["orders"], decoded.tables["orders__lines"]
    assert str(orders["paid__x"].type) == MONEY
    assert orders["paid__x"].to_pylist() == [Decimal(kept), Decimal("0.5")]
    assert orders["_extra"].to_pylist() == [exact and f'{{"paid.x":{exact}}}', None]
    assert lines["_extra"].to_pylist() == [exact and f'{{"x":{exact}}}', None]


LINE = '{"sku":"A","quantity":2}'


@pytest.mark.parametrize(
    ("odd", "skus", "extra"),
    [
        ("{}", [], None),
        ('""', [], None),
        ("[null]", [], None),
        (f'{{"10":{{"sku":"B"}},"2":{LINE}}}', ["A", "B"], None),
        (LINE, ["A"], None),
        (f'[{LINE},"x"]', ["A"], '{"lines[2]":"x"}'),
        ('"none"', [], '{"lines":"none"}'),
        ('[{"sku":{"code":1},"quantity":"many"}]', [None], None),
    ],
)
def test_an_odd_list_costs_no_row_but_its_own(
    odd: str, skus: list[object], extra: str | None
) -> None:
    at = 99
    rows = [f'{{"id":{n},"lines":{odd if n == at else f"[{LINE},{LINE}]"}}}' for n in range(100)]
    _, decoded = walk([raw_page(*rows[n : n + 10], number=n // 10 + 1) for n in range(0, 100, 10)])
    lines = pa.concat_tables([part.tables["orders__lines"] for part in decoded])
    own = [line for line in lines.to_pylist() if line["order_id"] == str(at)]
    assert [line["sku"] for line in own] == skus
    assert lines.num_rows == 198 + len(skus)
    orders = pa.concat_tables([part.tables["orders"] for part in decoded])
    assert [text for text in orders["_extra"].to_pylist() if text] == [extra] * (extra is not None)
    if skus == [None]:
        assert own[0]["_extra"] == '{"quantity":"many","sku":{"code":1}}'


@pytest.mark.parametrize(
    ("others", "odd", "kept", "extra"),
    [
        *(('{"id":5}', odd, None, None) for odd in ("[]", '""', "false")),
        *(
            ('{"id":5}', odd, None, f'{{"x":{odd}}}')
            for odd in ('"guest"', '[{"id":7},{"id":8}]', '{"0":"x"}')
        ),
        ('{"id":5}', '[{"id":7}]', 7, None),
        ('{"id":5}', '{"id":"G"}', None, '{"x.id":"G"}'),
        *((others, "92e34", None, f'{{"x":92{"0" * 34}}}') for others in ("0.25", "true")),
        ("0.25", "0.30000000000000004", Decimal("0.3"), '{"x":0.30000000000000004}'),
        ("0.25", "false", None, '{"x":false}'),
        ("true", "false", False, None),
        *((others, "[null]", None, None) for others in ("0.25", "true")),
        *((others, '"n/a"', None, '{"x":"n/a"}') for others in ("0.25", "true")),
    ],
)
def test_an_odd_value_costs_no_row_and_no_column_but_its_own(
    others: str, odd: str, kept: object, extra: str | None
) -> None:
    rows = [f'{{"id":{n},"x":{odd if n == 50 else others}}}' for n in range(100)]
    _, decoded = walk([raw_page(*rows[n : n + 50], number=n // 50 + 1) for n in (0, 50)])
    orders = pa.concat_tables([part.tables["orders"] for part in decoded])
    found = orders["x__id" if others.startswith("{") else "x"]
    assert (found[50].as_py(), orders["_extra"][50].as_py()) == (kept, extra)
    assert (found.null_count, orders["_extra"].null_count) == (
        kept is None,
        100 - (extra is not None),
    )


def as_kept(schema: InferredSchema) -> dict[str, KeptKind]:
    """What a warehouse keeps of the kinds of a walk."""
    return {
        known.path: KeptKind(known.kind, known.values, None, known.objects)
        for known in schema.kinds()
    }


def test_two_odd_values_with_one_path_are_both_kept() -> None:
    kinds = {'["a.b"]': "bigint", '["a","b"]': "bigint", '["l"]': "table", '["l[2]"]': "bigint"}
    row = '{"id":1,"a.b":"x","a":{"b":"y"},"l":[{},"z"],"l[2]":"w","[\\"a\\",\\"b\\"]":"v"}'
    kept = {path: KeptKind(kind) for path, kind in kinds.items()}  # type: ignore[arg-type]
    schema = InferredSchema(ORDER, None, kept | {'["a"]': KeptKind("object")})
    for rows in ([row], [row.replace('"a.b":"x","a":{"b":"y"}', '"a":{"b":"y"},"a.b":"x"')]):
        (text,) = schema.by_rows([raw_page(*rows)]).tables["orders"]["_extra"].to_pylist()
        assert sorted(json.loads(text).values()) == ["v", "w", "x", "y", "z"]


def test_kinds_are_kept_whatever_later_walks_consist_of() -> None:
    row = '{"id":1,"total":5,"paid":true,"note":"x","customer":{"id":1},"lines":[{"sku":1}],"tags":["a"],"gone":1}'
    first = InferredSchema(ORDER)
    first.decode([raw_page(*[row] * 20)])
    kept = as_kept(first)
    later = InferredSchema(ORDER, None, kept)
    odd = '{"id":2,"total":"n/a","paid":2,"note":3,"customer":"x","lines":"x","tags":{"a":1}}'
    (decoded,) = [later.decode([raw_page(*[odd] * 30)])]
    assert later.schema_of() == first.schema_of()
    assert decoded.tables["orders"]["note"].to_pylist() == ["3"] * 30
    assert json.loads(decoded.tables["orders"]["_extra"][0].as_py()) == {
        "total": "n/a", "paid": 2, "customer": "x", "lines": "x", "tags": {"a": 1}
    }  # fmt: skip
    decoded = InferredSchema(ORDER, None, kept).decode(
        [raw_page('{"id":3,"total":5.5}', '{"id":4,"total":5}')]
    )
    assert decoded.tables["orders"]["total"].to_pylist() == [Decimal("5.5"), Decimal(5)]


def test_the_values_of_all_pages_decide_but_for_rows_that_are_put_aside() -> None:
    schema = InferredSchema(ORDER)
    assert schema.decode([Page(1, b"[]")]).tables["orders"].schema.names == [
        "id",
        "_extra",
        "_page",
        "_position",
    ]
    aside = '{"code":"x","b":2}'
    row = '{"id":1,"code":5,"lines":[{"sku":"A"}],"home":{"theCity":"B"}}'
    decoded = schema.decode([raw_page(*[row] * 15, aside, number=number) for number in (1, 2)])
    decided = {known.path: known.values for known in schema.kinds() if known.values}
    places = ('["code"]', '["lines"]', '["lines","sku"]', '["home"]', '["home","theCity"]')
    assert (decided, len(decoded.quarantined)) == (dict.fromkeys(places, 30), 2)
    assert decoded.tables["orders"].schema.names == [
        "id",
        "code",
        "home__the_city",
        "_extra",
        "_page",
        "_position",
    ]
    with pytest.raises(ContractBroken):
        schema.decode([Page(3, b'{"id":1}')])


@pytest.mark.parametrize(
    ("value", "later", "expected"),
    [
        ("5", '"A"', "string"), ("5", "1.5", MONEY), ("1.5", "5", MONEY), ('"A"', "1.5", "string"),
        ("5", '""', "int64"), ('""', "5", "int64"), ("null", "5", "int64"), ("true", "5", "string"),
        ('{"x":1}', '"A"', "string"), ('"A"', "", "string"),
    ],
)  # fmt: skip
def test_of_few_values_the_column_is_kept_and_never_becomes_narrower(
    value: str, later: str, expected: str
) -> None:
    schema = InferredSchema(ORDER)
    schema.decode([raw_page(*[f'{{"id":1,"code":{value}}}'] * 19)])
    schema = InferredSchema(ORDER, None, as_kept(schema))
    schema.decode([raw_page(*[f'{{"id":1,"code":{later}}}' if later else '{"id":1}'] * 19)])
    assert str(schema.schema_of()["orders"].field("code").type) == expected


def test_a_list_of_few_values_stays_one_while_some_have_several_items() -> None:
    kept = {'["x"]': KeptKind("table", 19), '["x","sku"]': KeptKind("text", 21)}
    for several, kind in ((1, "table"), (0, "object")):
        schema = InferredSchema(ORDER, None, kept)
        forms = mixed(plain=19, two=several)
        rows = [f'{{"id":{n},"x":{value}}}' for n, value in enumerate(forms)]
        schema.decode([raw_page(*rows)])
        assert schema.kinds()[0].kind == kind


def mixed(**counts: int) -> list[str]:
    """So many values of each form of a field."""
    forms = {
        "one": '[{"sku":"A"}]',
        "two": '[{"sku":"A"},{"sku":"B"}]',
        "plain": '{"sku":"A"}',
        "keyed": '{"1":{"sku":"A"}}',
        "none": "[]",
        "empty": "{}",
        "nulls": '{"sku":null}',
        "texts": '["a"]',
        "nested": '[[{"sku":"A"}]]',
        "text": '"a"',
    }
    return [forms[form] for form, count in counts.items() for _ in range(count)]


FORMS: list[tuple[dict[str, int], str]] = [
    ({"one": 96, "two": 4}, "table"),
    ({"one": 91, "two": 9}, "table"),
    ({"one": 99, "two": 1}, "table"),
    ({"one": 100}, "table"),
    ({"one": 30, "two": 1, "none": 60, "empty": 9}, "table"),
    ({"one": 99, "keyed": 1}, "table"),
    ({"one": 95, "two": 3, "text": 2}, "table"),
    ({"keyed": 100}, "json"),
    ({"one": 51, "plain": 49}, "table"),
    ({"one": 48, "two": 3, "plain": 49}, "table"),
    ({"one": 10, "plain": 1, "empty": 89}, "table"),
    ({"one": 10, "plain": 1, "nulls": 9, "empty": 80}, "table"),
    ({"nulls": 20, "empty": 80}, "object"),
    ({"one": 56, "two": 4, "plain": 40}, "table"),
    ({"one": 50, "plain": 50}, "object"),
    ({"one": 2, "plain": 97, "two": 1}, "object"),
    ({"plain": 90, "two": 10}, "table"),
    ({"plain": 91, "two": 9}, "object"),
    ({"texts": 100}, "list"),
    ({"texts": 20, "one": 80}, "table"),
    ({"texts": 40, "one": 60}, "json"),
    ({"nested": 100}, "list"),
]


@pytest.mark.parametrize(("counts", "kind"), FORMS)
def test_arrays_of_one_object_are_a_list_unless_plain_objects_outweigh_them(
    counts: dict[str, int], kind: str
) -> None:
    values = mixed(**counts)
    rows = [f'{{"id":{n},"x":{value}}}' for n, value in enumerate(values)]
    turned = rows[counts.get("one", 0) :] + rows[: counts.get("one", 0)]
    for ordered in (rows, rows[::-1], rows[1::2] + rows[::2], turned):
        pages = [raw_page(*ordered[at : at + 10], number=at) for at in range(0, 100, 10)]
        shape, _ = walk(pages)
        assert {one.path: one.kind for one in shape.kinds()}['["x"]'] == kind
        at_once = InferredSchema(ORDER)
        at_once.decode(pages)
        assert at_once.kinds()[0].kind == kind


def test_a_batch_whose_pages_make_a_list_an_object_is_decoded_anew() -> None:
    groups = [mixed(plain=50, two=6), mixed(one=10), mixed(one=10), mixed(plain=10)]
    rows = [[f'{{"id":1,"x":{value}}}' for value in values] for values in groups]
    first, *pages = (raw_page(*page, number=number) for number, page in enumerate(rows))
    schema = InferredSchema(ORDER)
    schema.decode([first])
    assert schema.kinds()[0].kind == "table"
    decoded = schema.decode(pages)
    assert schema.kinds()[0].kind == "object"
    assert decoded.tables["orders"]["x__sku"].to_pylist() == ["A"] * 30


def test_no_item_of_a_list_that_mostly_has_one_is_left_out() -> None:
    one, two = '[{"sku":"A","taxes":[{"rate":1.5}]}]', '[{"sku":"B"},{"sku":"C","taxes":[]}]'
    lists = [one] * 96 + [two] * 4
    rows = [f'{{"id":{n},"cart":{{"items":{items}}}}}' for n, items in enumerate(lists)]
    pages = [raw_page(*rows[at : at + 20], number=at) for at in range(0, 100, 20)]
    _, decoded = walk(pages)
    sizes = {
        name: sum(part.tables[name].num_rows for part in decoded) for name in decoded[0].tables
    }
    assert sizes == {"orders": 100, "orders__cart__items": 104, "orders__cart__items__taxes": 96}
    orders = pa.concat_tables([part.tables["orders"] for part in decoded])
    assert orders.column_names == ["id", "_extra", "_page", "_position"]
    assert orders["_extra"].null_count == 100


def as_version_0_3_kept(values: int = 100) -> dict[str, KeptKind]:
    """An object of which it is not known whether a plain one was ever there."""
    return {'["x"]': KeptKind("object", values), '["x","sku"]': KeptKind("text", values)}


@pytest.mark.parametrize(
    ("counts", "kind"),
    [
        ({"one": 96, "two": 4}, "table"),
        ({"one": 96, "two": 2, "keyed": 1, "empty": 1}, "table"),
        ({"one": 20, "empty": 80}, "table"),
        ({"one": 17, "two": 2, "empty": 81}, "object"),  # too few to change what is kept
        ({"one": 95, "two": 4, "plain": 1}, "object"),  # a wrapped object
        ({"plain": 100}, "object"),
        ({"text": 100}, "object"),
        ({"text": 70, "one": 30}, "object"),
        ({"texts": 100}, "object"),
        ({"empty": 100}, "object"),
    ],
)
def test_what_version_0_3_kept_as_an_object_is_a_list_unless_an_object_differs(
    counts: dict[str, int], kind: str
) -> None:
    rows = [f'{{"id":{n},"x":{value}}}' for n, value in enumerate(mixed(**counts))]
    for ordered in (rows, rows[::-1], rows[1::2] + rows[::2]):
        for size in (10, 50):
            schema = InferredSchema(ORDER, None, as_version_0_3_kept())
            for at in range(0, len(rows), size):
                schema.decode([raw_page(*ordered[at : at + size], number=at)])
            decided = {one.path: one.kind for one in schema.kinds()}
            assert decided == {'["x"]': kind, '["x","sku"]': "text"}
            assert ("orders__x" in schema.schema_of()) is (kind == "table")


@pytest.mark.parametrize(("kept", "lists"), [(100, 20), (24, 12), (20, 10)])
def test_as_many_lists_change_what_is_kept_as_decide_it_in_one_sweep(kept: int, lists: int) -> None:
    for count, kind in ((lists - 1, "object"), (lists, "table")):
        schema = InferredSchema(ORDER, None, as_version_0_3_kept(kept))
        rows = [f'{{"id":{n},"x":{value}}}' for n, value in enumerate(mixed(one=count))]
        schema.decode([raw_page(*rows)])
        assert schema.kinds()[0].kind == kind


def test_an_object_that_was_plain_once_or_is_declared_stays_one_when_arrays_come() -> None:
    plain = InferredSchema(ORDER, None, as_version_0_3_kept())
    plain.decode([raw_page('{"id":1,"x":{"sku":"A"}}', '{"id":2,"x":{"sku":null}}')])
    declared = {'["x"]': KeptKind("object"), '["x","sku"]': KeptKind("text")}
    for kept in (as_version_0_3_kept() | as_kept(plain), declared):
        kept = {path: known._replace(values=known.values and 100) for path, known in kept.items()}
        later = InferredSchema(ORDER, None, kept)
        later.decode([raw_page(*[f'{{"id":{n},"x":[{{"sku":"A"}}]}}' for n in range(40)])])
        assert later.kinds()[0].kind == "object"


def test_what_a_person_declared_decides_before_the_values() -> None:
    declared = {
        '["code"]': KeptKind("text"),
        '["number"]': KeptKind("bigint", None, "order_number"),
        '["lines"]': KeptKind("table", None, "orders__items"),
        '["total"]': KeptKind("decimal", 30, "amount"),
    }
    schema = InferredSchema(ORDER, {"orders": {'["number"]': "number"}}, declared)
    rows = ['{"id":1,"code":5,"number":1.5,"lines":{"sku":"A"},"total":5,"amount":"x"}'] * 30
    decoded = schema.decode([raw_page(*rows)])
    row, item = (decoded.tables[name].to_pylist()[0] for name in ("orders", "orders__items"))
    assert (row["code"], row["order_number"], row["_extra"]) == ("5", None, '{"number":1.5}')
    assert (row["amount"], row["amount_2"], item["sku"]) == (Decimal(5), "x", "A")
    schema = InferredSchema(ORDER, None, {'["total"]': KeptKind("decimal")})
    schema.decode([raw_page(*['{"id":1,"total":1.5}'] * 100)])
    assert schema.kinds() == [('["total"]', "decimal", 100, 0, 0)], (
        "values are counted all the same"
    )


def test_arrays_of_objects_are_child_tables() -> None:
    rows = (
        '{"id":7,"lines":[{"sku":"A","taxes":[{"rate":1},{"rate":2.5}]},{"sku":"B","taxes":[]}],"ship":{"parts":[{}]}}',
        '{"id":8,"lines":[]}',
        '{"id":9,"lines":[{"sku":"C","taxes":[{"rate":3}]}],"ship":{"parts":[{"w":1}]}}',
    )
    shape, (decoded,) = walk([raw_page(*rows, number=4)])
    clean = [raw_page(f'{{"id":{n},"ship":{{"parts":[{{"w":1}}]}}}}', number=n) for n in (1, 2)]
    assert shape._columnar(clean) is not None, "a clean batch is read at once"
    assert list(shape.schema_of()) == [
        "orders",
        "orders__lines",
        "orders__lines__taxes",
        "orders__ship__parts",
    ]
    lines = decoded.tables["orders__lines"].drop_columns(["_extra"]).to_pylist()
    assert lines[1] == {"order_id": "7", "position": 2, "sku": "B", "_page": 4, "_position": 1}
    taxes = decoded.tables["orders__lines__taxes"]
    assert taxes.drop_columns(["_extra", "_page"]).to_pylist() == [
        {"order_id": "7", "lines_position": 1, "position": 1, "rate": Decimal(1), "_position": 1},
        {
            "order_id": "7",
            "lines_position": 1,
            "position": 2,
            "rate": Decimal("2.5"),
            "_position": 1,
        },
        {"order_id": "9", "lines_position": 1, "position": 1, "rate": Decimal(3), "_position": 3},
    ]
    assert decoded.tables["orders__ship__parts"]["order_id"].to_pylist() == ["7", "9"]


def test_fields_keep_their_names_when_others_come_or_go() -> None:
    """Also those of child tables. A name is not given to another field even if its own is absent."""

    def names(earlier: dict[str, dict[str, str]], *rows: str) -> dict[str, dict[str, str]]:
        schema = InferredSchema(ORDER, earlier)
        schema.decode([raw_page(*rows)])
        found: dict[str, dict[str, str]] = {}
        for what, field in schema.observations():
            if what.endswith(FIELD):
                table, _, column = what.removesuffix(f": {FIELD}").rpartition(".")
                found.setdefault(table, {})[field] = column
        return found

    alone = names({}, '{"id":1,"Total":1,"Lines":[{"SKU":1}]}')
    both = names(
        alone, '{"id":1,"Total":1,"total":2,"Lines":[{"SKU":1,"sku":2}],"lines":[{"sku":3}]}'
    )
    assert both["orders"] == {'["id"]': "id", '["Total"]': "total", '["total"]': "total_2"}
    assert both[""] == {'["Lines"]': "orders__lines", '["lines"]': "orders__lines_2"}
    assert both["orders__lines"] == {'["SKU"]': "sku", '["sku"]': "sku_2"}
    later = names(both, '{"id":1,"total":2,"TOTAL":3,"lines":[{"sku":3}]}')
    assert later["orders"] == {'["id"]': "id", '["TOTAL"]': "total_3", '["total"]': "total_2"}
    assert later[""] == {'["lines"]': "orders__lines_2"}


def test_fields_whose_names_meet_or_are_those_of_our_own_columns_are_told_apart() -> None:
    pages = [
        raw_page('{"id":1,"firstName":"a"}'),
        raw_page('{"id":2,"first_name":"b","FirstName":"c"}', number=2),
    ]
    names = {
        "first_name": ("first_name",),
        "first_name_2": ("FirstName",),
        "first_name_3": ("firstName",),
    }
    for order in (pages, pages[::-1]):
        assert {column.name: column.keys for column in walk(order)[0]._table.columns} == {
            "id": ("id",),
            **names,
        }
    row = '{"id":1,"Id":2,"_page":3,"lines":[{"position":4,"order_id":5,"orderId":6}],"":7}'
    shape, (decoded,) = walk([raw_page(row)])
    assert {"id", "id_2", "_page_2", "field", "_extra", "_page"} <= set(
        shape.schema_of()["orders"].names
    )
    (line,) = decoded.tables["orders__lines"].to_pylist()
    assert (line["position"], line["position_2"], line["order_id"]) == (1, 4, "1")
    assert {line["order_id_2"], line["order_id_3"]} == {5, 6}


def test_the_key_is_canonical_text() -> None:
    keys = {"1": "1", "1.0": "1", "1e3": "1000", '"A"': "A", "1.5": "1.5", "1" * 23: "1" * 23}
    assert column("id", *(f'{{"id":{key}}}' for key in keys)) == ("string", [*keys.values()])


@pytest.mark.parametrize(
    ("row", "reported"),
    [
        ("{}", "id: expected an identifier, found nothing"),
        ('{"id":" \u00a0"}', "id: expected an identifier, found blank string"),
        ('{"id":true}', "id: expected identifier, found boolean"),
        ("7", "row: expected object, found number"),
        ('{"id":1,"a":1,"a":1}', "row: a field occurs twice in one object"),
        ('{"id":1,"j":{"b":1,"b":1}}', "row: a field occurs twice in one object"),
        ('{"id":1,"a":NaN}', "row: NaN or Infinity, which JSON does not allow"),
        ('{"id":1,"c":{"d":["\\u0000"]}}', "c.d[]: a NUL character"),
        ('{"id":1,"c":{"\\u0000":1}}', "c: a NUL character"),
        ('{"id":1,"a":"\\udfff"}', "row: a lone surrogate"),
    ],
)
def test_a_row_that_cannot_be_loaded_is_put_aside(row: str, reported: str) -> None:
    _, (decoded,) = walk([raw_page('{"id":"z","a":1.5}', row)])
    assert [aside.reason for aside in decoded.quarantined] == [reported]
    assert decoded.tables["orders"]["id"].to_pylist()[0] == "z"


MIXED = [
    [
        '{"id":1,"a":{"b":1},"é":[1,"x"]}',
        '{"id":2,"a":[{"b":2.5},{"b":"x"}],"a_b":1e300}',
        '{"id":null,"b":1}',
    ],
    [
        '{"id":"x","a":null,"q\\"":{"a_b":1,"aB":true},"aB":12345678.123456789}',
        '{"id":1.0,"position":{"A":[[],{}]}}',
    ],
    [],
    [
        '{"id":1.5,"a":[{"b":9007199254740993,"b2":[{"_page":-0.0}]}],"":"","b":[{"a":1}]}',
        "7",
        '{"id":3,"b":{"0":{}}}',
    ],
]


def test_types_and_values_do_not_hang_on_the_order_or_the_batches() -> None:
    pages = [raw_page(*rows, number=n) for n, rows in enumerate(MIXED, 1)]
    shape, parts = walk(pages)
    back = InferredSchema(ORDER)
    for page in reversed(pages):
        back.decode([page])
    assert back.schema_of() == shape.schema_of()
    assert sorted(back.kinds()) == sorted(shape.kinds())
    whole = back.decode(pages, is_known=True)
    for name, table in whole.tables.items():
        assert table == pa.concat_tables([part.tables[name] for part in parts])
    assert (whole.tables["orders"].num_rows, len(whole.quarantined)) == (6, 2)


@pytest.mark.parametrize(("count", "is_text"), [(200, False), (201, True)])
def test_an_object_with_more_than_200_fields_is_json_text(count: int, is_text: bool) -> None:
    wide = {f"k{n}": n for n in range(count)}
    row = json.dumps(
        {"id": 1, "wide": wide} | ({"a": wide, "b": wide, "c": wide, "last": 1} if is_text else {})
    )
    _, (decoded,) = walk([raw_page(row)])
    names = decoded.tables["orders"].schema.names
    assert ("wide" in names) is ("last" in names) is is_text


def test_a_record_with_too_many_fields_keeps_the_rest_in_extra() -> None:
    rows = [f'{{"id":{n},"field{n}":{{"a":{n}}}}}' for n in range(1, 701)]
    pages = [raw_page(*rows[at : at + 50], number=at // 50 + 1) for at in range(0, 700, 50)]
    schema = InferredSchema(ORDER)
    for page in pages:
        schema.decode([page])
    decoded = schema.decode(pages)
    table = decoded.tables["orders"]
    assert decoded.quarantined == []
    assert len(table.schema) <= 510
    assert (table.num_rows, table["_extra"][-1].as_py()) == (700, '{"field700":{"a":700}}')


def test_long_names_are_capped_in_the_same_way_each_time() -> None:
    names = [f"{'x' * 300}{end}" for end in "ab"]
    row = f'{{"id":1,"{names[0]}":1,"{names[1]}":2,"lines{names[0]}":[{{"taxes{names[1]}":[{{"rate":3}}]}}]}}'
    first, again = (
        walk(pages)[0].schema_of()
        for pages in ([raw_page(row)], [raw_page('{"id":2}'), raw_page(row)])
    )
    assert first == again
    assert (
        max(len(name) for table, schema in first.items() for name in (table, *schema.names))
        <= NAME_MAX
        == 100
    )
    assert (len(first), len(set(first["orders"].names))) == (3, 6)


def test_the_key_may_be_another_field() -> None:
    record = replace(ORDER, key="number")
    schema = InferredSchema(record)
    decoded = schema.decode([raw_page('{"number":"N1","id":7,"lines":[{"sku":"a"}]}', '{"id":8}')])
    assert decoded.tables["orders"].select(["id", "id_2"]).to_pylist() == [{"id": "N1", "id_2": 7}]
    assert decoded.tables["orders__lines"]["order_id"].to_pylist() == ["N1"]
    assert [row.reason for row in decoded.quarantined] == [
        "number: expected an identifier, found nothing"
    ]


STRING, WHOLE, NUMBER, BOOLEAN = pa.string(), pa.int64(), DECIMAL, pa.bool_()


@pytest.mark.parametrize(
    ("values", "own", "stored", "fitting", "others"),
    [
        ([1, None], WHOLE, "decimal", [Decimal(1), None], None),
        ([1, None], WHOLE, "text", ["1", None], None),
        ([Decimal("10.50"), Decimal(7)], NUMBER, "text", ["10.5", "7"], None),
        (["007", "7"], STRING, "bigint", [None, 7], ("v_text", ["007", None])),
        (["1.50", "1.0000000001"], STRING, "decimal", [Decimal("1.5"), None], ("v_text", [None, "1.0000000001"])),
        (["true", None], STRING, "bool", [None, None], ("v_text", ["true", None])),
        ([True], BOOLEAN, "bigint", [None], ("v_bool", [True])),
        ([5, 1], WHOLE, "bool", [None, None], ("v_bigint", [5, 1])),
        ([Decimal("1905.33"), Decimal("1e-9"), 0], NUMBER, "double", [1905.33, 1e-9, 0.0], None),
    ],
)  # fmt: skip
def test_values_are_in_the_stored_type_or_in_a_variant(
    values: list[Any],
    own: Any,
    stored: str | None,
    fitting: list[Any],
    others: tuple[str, list[Any]] | None,
) -> None:
    batch = pa.table({"x": pa.array(values, own), "y": pa.array(["as it was"] * len(values))})
    typed, variants = as_stored(batch, {"x": stored} if stored else {})
    expected = {"x": fitting, "y": ["as it was"] * len(values)} | (
        {f"x__{others[0]}": others[1]} if others else {}
    )
    assert typed.to_pydict() == expected
    assert variants == ([f"x__{others[0]}"] if others else [])
