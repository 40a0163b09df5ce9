from __future__ import annotations

from tests.transforms.upserts.test_decisions import texts
from transforms.frames import TEXT, frame
from transforms.upserts.confirmed import changed_fields, price_jumps

CONFIRMED = {"key": TEXT, "field": TEXT, "value": TEXT}


def test_only_fields_that_differ_from_the_last_confirmed_are_asked_for() -> None:
    confirmed = frame(
        CONFIRMED,
        [
            {"key": "1/1", "field": "price", "value": "18.0"},
            {"key": "1/1", "field": "sku", "value": '"00038"'},
            {"key": "2/2", "field": "price", "value": "18"},
            {"key": "2/2", "field": "sku", "value": '"38"'},
        ],
    )
    inputs = texts(key=["1/1", "2/2", "3/3"], price=["18", "18.5", None], sku=['"00038"', '"00038"', '"x"'])
    made = changed_fields(inputs, confirmed)
    assert made["price"].tolist() == [False, True, False]
    assert made["sku"].tolist() == [False, True, True]


def test_small_numbers_in_a_list_are_equal_in_every_notation() -> None:
    value = '[{"url":"u","order":5e-7}]'
    confirmed = frame(CONFIRMED, [{"key": key, "field": "images", "value": value} for key in ("1/1", "2/2", "3/3")])
    images = ['[{"url":"u","order":0.0000005}]', '[{"url":"u","order":5E-7}]', '[{"url":"u","order":0.0000006}]']
    made = changed_fields(texts(key=["1/1", "2/2", "3/3"], images=list(images)), confirmed)
    assert made["images"].tolist() == [False, False, True]


def test_whole_numbers_beyond_a_double_are_reported_apart() -> None:
    confirmed = frame(CONFIRMED, [{"key": "1/1", "field": "order", "value": "9007199254740993"}])
    assert changed_fields(texts(key=["1/1"], order=["9007199254740992"]), confirmed)["order"].tolist() == [True]


def test_a_price_with_its_point_slipped_is_noticed_up_and_down() -> None:
    before = ["19.90", "19.90", "19.90", "19.90", "0", "1990"]
    now = ["1990", "1.99", "21.50", "19900.5", "5", "19.9"]
    confirmed = frame(
        CONFIRMED, [{"key": str(at), "field": "price", "value": value} for at, value in enumerate(before)]
    )
    made = price_jumps(texts(key=[str(at) for at in range(6)], price=list(now)), confirmed)
    assert [tuple(row) for row in made[["row", "power"]].itertuples(index=False)] == [(0, 2), (1, -1), (3, 3), (5, -2)]
    assert made["before"].tolist()[0] == "19.90"


def test_nothing_confirmed_means_everything_is_asked_for() -> None:
    made = changed_fields(texts(key=["1/1"], price=["1"]), frame(CONFIRMED))
    assert made["price"].tolist() == [True]
    assert price_jumps(texts(key=["1/1"], price=["1"]), frame(CONFIRMED)).empty
