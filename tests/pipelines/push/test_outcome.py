"""Responses with 2xx: what confirms a write and what leaves it in doubt."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.plan.model import PlannedOperation
from pipelines.push.outcome import classify
from sources.errors import HttpRejected
from sources.http.exchange import WriteOutcome
from tests.pipelines.push.plans import customer, patch, subcategory, warehouse

CREATE, UPDATE, PART = customer(1), patch(1, 7, sku="A"), subcategory(1)
JSON = {"content_type": "application/json"}
HTML = {"content_type": "text/html"}
OTHER = b'{"id":9,"erpCode":"C00002","email":"other@example.test"}'
ERROR = b'{"errors":[{"code":"X1","message":"no"}]}'

DOUBTFUL: dict[str, tuple[PlannedOperation, int, bytes, dict[str, Any]]] = {
    "a cut body": (UPDATE, 200, b"", {"is_broken": True, **JSON}),
    "a cut body of a create": (CREATE, 200, b"", {"is_broken": True, **JSON}),
    "a status other than the one that is shown": (warehouse(1), 200, b"", {}),
    "invalid UTF-8": (CREATE, 200, b'{"id":"\xff"}', JSON),
    "another customer's record": (CREATE, 200, OTHER, JSON),
    "another customer's record in data": (CREATE, 201, b'{"data":%b}' % OTHER, JSON),
    "another variant's record": (UPDATE, 200, b'{"id":8}', JSON),
    "a record with an id that is part of its own": (patch(1, 1003, sku="A"), 200, b'{"id":100}', JSON),
    "another subcategory's record": (PART, 200, b'{"id":3,"name":"Other"}', JSON),
    "the family's error body": (CREATE, 200, ERROR, JSON),
    "the other family's error body": (CREATE, 201, b'{"error":{"code":"x","message":"no"}}', JSON),
    "errors in another form": (UPDATE, 200, b'{"errors":["sku is taken"]}', JSON),
    "an error in another form": (CREATE, 201, b'{"error":"maintenance"}', JSON),
    "no success": (UPDATE, 200, b'{"success":false,"data":null}', JSON),
    "false": (UPDATE, 200, b"false", JSON),
    "another customer's record in a list": (CREATE, 201, b"[%b]" % OTHER, JSON),
    "another customer's record in data beside an id": (CREATE, 201, b'{"id":7,"data":%b}' % OTHER, JSON),
    "another customer's record in a wrapper": (CREATE, 201, b'{"success":true,"customer":%b}' % OTHER, JSON),
    "another customer's record in two wrappers": (CREATE, 200, b'{"result":{"customer":%b}}' % OTHER, JSON),
    "another customer's record beside a code": (CREATE, 200, b'{"code":200,"customer":%b}' % OTHER, JSON),
    "another customer's code with documents": (CREATE, 201, b'{"erpCode":"X","documents":[{"number":"1"}]}', JSON),
    "another customer's record after its own": (CREATE, 201, b'[{"erpCode":"C00001"},%b]' % OTHER, JSON),
    "another variant's record in a wrapper": (UPDATE, 200, b'{"variant":{"id":8}}', JSON),
    "an error in a list": (CREATE, 200, b"[%b]" % ERROR, JSON),
    "an error in a wrapper": (UPDATE, 200, b'{"response":{"error":"x"}}', JSON),
    "an error of one item": (CREATE, 200, b'{"results":[{"status":409}]}', JSON),
    "an error with capitals": (CREATE, 201, b'{"Errors":[{"Message":"no"}]}', JSON),
    "a failed item": (CREATE, 200, b'{"created":0,"failed":1}', JSON),
    "another customer's record beside no errors": (CREATE, 201, b'{"errors":[],"customer":%b}' % OTHER, JSON),
    "an error of a function": (CREATE, 200, b'{"errorMessage":"boom","errorType":"X"}', JSON),
    "an error status": (UPDATE, 200, b'{"statusCode":500,"message":"Internal error"}', JSON),
    "an error code with a message": (UPDATE, 200, b'{"code":422,"message":"invalid"}', JSON),
    "no success as text": (UPDATE, 200, b'{"success":"false"}', JSON),
    "a status that says so": (CREATE, 200, b'{"status":"error","message":"x"}', JSON),
    "no success as a number": (UPDATE, 200, b'{"ok":0}', JSON),
    "a bare text that says so": (CREATE, 201, b'"Error"', JSON),
    "a body nested too deeply": (CREATE, 201, b"[" * 990 + b"]" * 990, JSON),
    "an empty page": (UPDATE, 200, b"", HTML),
    "an empty page with blanks": (CREATE, 200, b" \n", HTML),
    "a page": (CREATE, 200, b"<html>", HTML),
    "another status": (CREATE, 202, b"", JSON),
}
CONFIRMING: dict[str, tuple[PlannedOperation, int, bytes, dict[str, Any]]] = {
    "201 with a cut body": (CREATE, 201, b"", {"is_broken": True}),
    "the status that is shown": (warehouse(1), 201, b"", {}),
    "204": (UPDATE, 204, b"", {}),
    "204 with a broken body": (UPDATE, 204, b"", {"is_broken": True}),
    "200 without a body": (UPDATE, 200, b"", {}),
    "200 with an empty JSON body": (CREATE, 200, b"", JSON),
    "its own record": (CREATE, 200, b'{"id":9,"erpCode":"C00001 ","email":"ANA1@example.test"}', JSON),
    "an id": (CREATE, 201, b'{"data":{"id":"9"}}', JSON),
    "success": (UPDATE, 200, b'{"success":true,"errors":[],"error":null}', JSON),
    "its own record in a list": (CREATE, 201, b'[{"id":9,"erpCode":"C00001"}]', JSON),
    "its own record in a wrapper": (CREATE, 201, b'{"code":201,"message":"ok","customer":{"id":9}}', JSON),
    "a bare text": (CREATE, 201, b'"created"', JSON),
    "null": (UPDATE, 200, b"null", JSON),
    "an empty list": (CREATE, 201, b'{"data":[]}', JSON),
    "documents of its own code": (CREATE, 201, b'{"erpCode":"C00001","documents":[{"email":"o@x.test"}]}', JSON),
    "documents of its own": (CREATE, 201, b'{"id":9,"documents":[{"email":"other@example.test"}]}', JSON),
    "its documents beside an id of another name": (
        CREATE,
        201,
        b'{"customerId":9,"documents":[{"id":77,"email":"other@example.test"}]}',
        JSON,
    ),
    "its images without its id": (UPDATE, 200, b'{"stock":3,"images":[{"id":55,"url":"u"}]}', JSON),
    "its price with the price list": (UPDATE, 200, b'{"price":3.5,"priceList":{"id":9}}', JSON),
    "a number alone": (CREATE, 201, b"450", JSON),
    "no error as text": (UPDATE, 200, b'{"errorCode":"0","errorMessage":"None"}', JSON),
    "a count in the record": (UPDATE, 200, b'{"id":7,"failedLogins":3}', JSON),
    "a status of the record": (UPDATE, 200, b'{"id":7,"status":"active","code":450}', JSON),
    "its own variant": (UPDATE, 200, b'{"id":"7","sku":"A"}', JSON),
    "its own code in other letters": (customer(1, erpCode="c1"), 201, b'{"id":7,"erpCode":"C1"}', JSON),
}


def outcome(status: int, body: bytes, more: dict[str, Any]) -> WriteOutcome:
    return WriteOutcome("answered", status, body, **more)


@pytest.mark.parametrize("name", DOUBTFUL)
def test_a_response_that_may_not_be_about_this_write_leaves_it_in_doubt(name: str) -> None:
    operation, status, body, more = DOUBTFUL[name]
    change = classify(operation, outcome(status, body, more), False, 100.0)
    assert (change.to, change.doubt_at) == ("in_doubt", 100.0)
    assert change.words.startswith(f"status {status}, but ")
    assert "Other" not in change.words


@pytest.mark.parametrize("name", CONFIRMING)
def test_a_response_of_the_platform_confirms(name: str) -> None:
    operation, status, body, more = CONFIRMING[name]
    assert classify(operation, outcome(status, body, more), False, 100.0).to == "confirmed"


@pytest.mark.parametrize(("id_text", "kept"), [('"Zq37w7-2930kR"', None), ('"1042"', "1042"), ("1042", "1042")])
def test_a_password_that_a_response_has_for_an_id_is_not_kept(id_text: str, kept: str | None) -> None:
    change = classify(customer(1), WriteOutcome("answered", 201, b'{"id":%b}' % id_text.encode()), False, 0.0)
    assert (change.to, change.remote_id) == ("confirmed", kept)


@pytest.mark.parametrize("id_text", ["true", "[7]", '{"value":7}', "7.5", "null", '"a b"', '""', f'"{65 * "7"}"'])
def test_an_id_that_is_neither_a_number_nor_a_short_text_is_not_kept(id_text: str) -> None:
    change = classify(PART, WriteOutcome("answered", 201, b'{"id":%b}' % id_text.encode()), False, 0.0)
    assert (change.to, change.remote_id) == ("confirmed", None)


NOT_HAPPENED: dict[str, WriteOutcome | None] = {
    "not started": None,
    "not sent": WriteOutcome("not_sent"),
    "no key": WriteOutcome("answered", 401),
    "no scope": WriteOutcome("answered", 403),
    "too many requests": WriteOutcome("answered", 429),
}


@pytest.mark.parametrize("name", NOT_HAPPENED)
@pytest.mark.parametrize(("is_doubted", "state"), [(False, "planned"), (True, "in_doubt")])
def test_an_attempt_that_did_not_happen_does_not_end_an_earlier_doubt(name: str, is_doubted: bool, state: str) -> None:
    change = classify(UPDATE, NOT_HAPPENED[name], is_doubted, 100.0)
    assert (change.to, change.doubt_at, change.clear) == (state, None, False)


@pytest.mark.parametrize(("is_doubted", "state"), [(False, "rejected"), (True, "in_doubt")])
def test_a_rejected_attempt_does_not_end_an_earlier_doubt(is_doubted: bool, state: str) -> None:
    error = HttpRejected("status 400", family="legacy", verb="PATCH", path=UPDATE.path, status=400)
    change = classify(UPDATE, WriteOutcome("answered", 400, error=error), is_doubted, 100.0)
    assert (change.to, change.doubt_at) == (state, None)


@pytest.mark.parametrize("is_doubted", [False, True])
def test_an_attempt_in_doubt_begins_a_doubt(is_doubted: bool) -> None:
    change = classify(UPDATE, WriteOutcome("in_doubt", 503), is_doubted, 100.0)
    assert (change.to, change.doubt_at) == ("in_doubt", 100.0)
