"""The limits of `sources`: pages, walks, schemas, files, requests and secrets of one below, at and one above each."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import openpyxl
import pyarrow as pa
import pytest

from orderbridge.sources import contract, disk, inputs, words
from orderbridge.sources.contract import ORDER
from orderbridge.sources.decode import json_numbers, rows, schema_inference, table_schema
from orderbridge.sources.decode.column_kinds import KeptKind, path_text
from orderbridge.sources.decode.json_numbers import Number
from orderbridge.sources.decode.schema_inference import InferredNode, NodeBudget
from orderbridge.sources.decode.undocumented import InferredSchema
from orderbridge.sources.errors import ContractBroken, UsageError
from orderbridge.sources.extract import pages, result, spool, v1_pages, walk
from orderbridge.sources.extract.ids import IdHashes, hash_ids
from orderbridge.sources.extract.legacy_pages import LegacyPages
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.files import column_names, open_table, sheet_xml
from orderbridge.sources.files import model as file_model
from orderbridge.sources.http import client, exchange, failures, masking, retries, waiting
from orderbridge.sources.http.client import Client
from orderbridge.sources.http.failures import Failure, UnacceptableBody
from orderbridge.sources.http.masking import Masker
from orderbridge.sources.settings import loaders, ownership, public_v1_settings, secret_files
from tests.limits.border import BELOW, FROM, UP_TO, limit, refused_unless
from tests.sources.decode.test_undocumented import raw_page, values
from tests.sources.extract.test_paginators import data, feed, v1
from tests.sources.platform import Orders, Platform, rejected, walked

# rows and schemas


@limit(json_numbers, "DIGITS_MAX", UP_TO)
def test_a_number_has_so_many_digits_in_its_plain_form(n: int, holds: bool) -> None:
    for text in ("7" * n, f"1e{n - 1}", f"1e-{n - 1}", f"1.{'7' * (n // 2 - 1)}"):
        is_short = len(text) < n - 10 and "e" not in text
        assert (json_numbers.exact(Number(text)) is not None) is (holds or is_short)


@limit(rows, "DEPTH_MAX", UP_TO)
def test_a_row_is_nested_so_deeply(n: int, holds: bool) -> None:
    text = b'{"a":%b%b}' % (b"[" * (n - 1), b"]" * (n - 1))
    if holds:
        rows.parse(text)
        return
    with pytest.raises(rows.InvalidRow, match="nested"):
        rows.parse(text)


def columns_of(*written: str) -> dict[str, list[str]]:
    """The columns of the tables that rows with these values of `x` become."""
    shape = InferredSchema(ORDER)
    page = raw_page(*(f'{{"id":{n},"x":{value}}}' for n, value in enumerate(written)))
    shape.decode([page])
    decoded = shape.decode([page], is_known=True)
    return {name: table.column_names for name, table in decoded.tables.items()}


@limit(schema_inference, "FIELDS_MAX", UP_TO, to=5)
def test_an_object_of_so_many_fields_becomes_columns(n: int, holds: bool) -> None:
    made = columns_of(json.dumps({f"f{number}": number for number in range(n)}))
    assert ("x__f0" in made["orders"]) is holds


@limit(schema_inference, "NODES_MAX", UP_TO)
def test_a_record_of_so_many_fields_has_a_column_for_each(n: int, holds: bool) -> None:
    shape = InferredSchema(ORDER)
    page = raw_page(json.dumps({"id": 1, **{f"f{number}": 1 for number in range(n)}}))
    shape.decode([page])
    (table,) = shape.decode([page], is_known=True).tables.values()
    assert (f"f{n - 1}" in table.column_names) is holds


@limit(schema_inference, "BULK", FROM, of=20)
def test_so_large_a_share_of_objects_makes_columns(n: int, holds: bool) -> None:
    made = columns_of(*['{"a":1}'] * n, *['"t"'] * (20 - n))
    assert ("x__a" in made["orders"]) is holds


@limit(schema_inference, "ODD_MAX", UP_TO, of=40)
def test_a_column_of_numbers_has_so_many_texts(n: int, holds: bool) -> None:
    assert values(*["7"] * (40 - n), *['"a"'] * n)[0] == ("int64" if holds else "string")
    assert values(*["true"] * (40 - n), *['"a"'] * n)[0] == ("bool" if holds else "string")
    assert values(*["7"] * n, *['"7"'] * (40 - n))[0] == ("string" if holds else "int64")
    large = "1" + "0" * 38
    kinds = values(*["7"] * (40 - n), *[large] * n)[0]
    assert (kinds == "string") is not holds


@limit(schema_inference, "LIST_SHARE", FROM, of=20)
def test_so_large_a_share_of_lists_of_several_makes_a_table(n: int, holds: bool) -> None:
    several = '[{"a":1},{"a":2}]'
    made = columns_of(*[several] * n, *['{"a":1}'] * (20 - n))
    assert ("orders__x" in made) is holds


@limit(schema_inference, "KEPT_VALUES_MIN", FROM)
def test_a_kind_that_so_many_values_decided_is_kept(n: int, holds: bool) -> None:
    node = InferredNode()
    node.keep({path_text(["x"]): KeptKind("bigint", n)}, NodeBudget())
    assert (node.fields["x"].kept, node.fields["x"].least) == (
        ("bigint", "empty") if holds else (None, "bigint")
    )


@limit(table_schema, "NAME_MAX", UP_TO)
def test_a_name_of_so_many_characters_stays(n: int, holds: bool) -> None:
    assert (table_schema.shorten("a" * n) == "a" * n) is holds
    assert len(table_schema.shorten("a" * n)) <= table_schema.NAME_MAX


# pages and walks


@limit(pages, "ROWS_MAX", UP_TO, to=5)
def test_a_page_has_so_many_rows(n: int, holds: bool) -> None:
    body = data(*range(n))
    if holds:
        assert len(LegacyPages(10).parse(body).ids) == n
        return
    with pytest.raises(ContractBroken, match=f"has {n} rows, more than 5"):
        LegacyPages(10).parse(body)


@limit(pages, "VALUES_MAX", UP_TO, to=50)
def test_a_page_has_so_many_values(n: int, holds: bool) -> None:
    body = data(*range(n + 1))
    assert body.count(b",") == n
    if holds:
        assert len(LegacyPages(10).parse(body).ids) == n + 1
        return
    with pytest.raises(ContractBroken, match="more than 50 values"):
        LegacyPages(10).parse(body)


@limit(result, "SWEEPS_MAX", UP_TO)
def test_a_list_that_moves_is_read_so_often(tmp_path: Path, n: int, holds: bool) -> None:
    found = walked(Platform([*range(1, 31)], pagination=True, total_moves=True), tmp_path)
    assert (len(found.sweeps) >= n) is holds


@limit(walk, "CURSOR_SWEEPS_MAX", UP_TO)
def test_a_list_with_a_cursor_is_read_so_often(tmp_path: Path, n: int, holds: bool) -> None:
    """An id that is known is absent each time."""
    orders = Orders.of([{"id": number} for number in range(1, 6)])
    known = IdHashes(tmp_path / "known.ids")
    known.append(hash_ids(pa.chunked_array([["1", "999"]])))
    found = walked(orders, tmp_path, "orders", known_ids=known)
    assert (len(found.sweeps) >= n) is holds


class ExpiringCursor(Orders):
    """Rejects its own cursor so many times."""

    most = 0
    expired = 0

    def get(self, path: str, params: Mapping[str, Any], **more: Any) -> Any:
        if "startingAfter" in params and self.expired < self.most:
            self.expired += 1
            raise rejected(400)
        return super().get(path, params, **more)


@limit(walk, "RESTARTS_MAX", UP_TO)
def test_a_walk_begins_again_so_often(tmp_path: Path, n: int, holds: bool) -> None:
    rows_of_list = [{"id": number} for number in range(1, 6)]
    orders = ExpiringCursor(lambda reading, request: rows_of_list, size=3)
    orders.most = n
    found = walked(orders, tmp_path, "orders")
    assert (found.distinct, found.verdict) == ((5, "complete") if holds else (0, "incomplete"))


def is_resumed(folder: Path, begun_s: float, page_s: float, *, is_limited: bool = False) -> bool:
    """Whether a walk that began, and had its last page, so many seconds ago is gone on with."""
    now = 1_800_000_000.0
    clock = "orderbridge.sources.extract.spool.time.time"
    with mock.patch(clock, return_value=now - begun_s):
        stopped = SpoolFolder(folder, {"list": "orders"})
    sweep = stopped.sweep(1)
    sweep.write("page 1", b"{}")
    sweep.close()
    os.utime(folder / "sweep-1.pages", (now - page_s, now - page_s))
    if is_limited:
        stopped.stop_by_limit()
    with mock.patch(clock, return_value=now):
        SpoolFolder(folder, {"list": "orders"})
    return (folder / "sweep-1.pages").exists()


@limit(spool, "RESUME_WITHIN_S", BELOW)
def test_a_walk_is_resumed_until_its_pages_are_so_old(tmp_path: Path, n: int, holds: bool) -> None:
    assert is_resumed(tmp_path / "s", n + 7, n) is holds


@limit(spool, "WALK_MAX_S", BELOW)
def test_a_walk_is_resumed_until_it_began_so_long_ago(tmp_path: Path, n: int, holds: bool) -> None:
    assert is_resumed(tmp_path / "s", n, 7) is holds


@limit(spool, "LIMITED_RESUME_WITHIN_S", BELOW)
def test_a_limited_walk_is_resumed_for_longer(tmp_path: Path, n: int, holds: bool) -> None:
    assert is_resumed(tmp_path / "s", n + 7, n, is_limited=True) is holds


@limit(spool, "LIMITED_WALK_MAX_S", BELOW)
def test_a_limited_walk_is_resumed_for_days(tmp_path: Path, n: int, holds: bool) -> None:
    assert is_resumed(tmp_path / "s", n, 7, is_limited=True) is holds


@limit(v1_pages, "CURSOR_LENGTH_MAX", UP_TO)
def test_a_cursor_of_so_many_characters_is_saved(n: int, holds: bool) -> None:
    assert v1_pages._can_be_saved("c" * n) is holds


@limit(v1_pages, "EMPTY_PAGES_MAX", BELOW)
def test_so_many_pages_in_a_row_may_be_empty(n: int, holds: bool) -> None:
    empty = [v1(0, cursor=f"c{number}") for number in range(n)]
    with refused_unless(holds, ContractBroken):
        feed(v1_pages.V1Cursor(10), *empty, v1(1, more=False, cursor=None))


# files


@limit(column_names, "MAX_ACRONYM", UP_TO)
def test_an_acronym_has_so_many_letters(n: int, holds: bool) -> None:
    assert column_names.is_one_name(f"{'ABCDEF'[:n]} interno") is holds


@limit(sheet_xml, "MAX_ROWS", UP_TO)
def test_a_sheet_has_so_many_rows(n: int, holds: bool) -> None:
    sheet = sheet_xml.WorkbookXml.__new__(sheet_xml.WorkbookXml)
    sheet._name = "x.xlsx"
    places = np.array([*range(n - 20_000, n + 1)], np.int32)
    ones = np.ones(len(places), np.int32)
    with refused_unless(holds, UsageError):
        sheet._check_places("s", places, ones)


@limit(sheet_xml, "MAX_CELLS", UP_TO, to=40)
def test_a_sheet_has_so_many_cells(tmp_path: Path, n: int, holds: bool) -> None:
    book = openpyxl.Workbook()
    for number in range(n):
        book.active.append([f"name {number}"])
    book.save(tmp_path / "in.xlsx")
    with refused_unless(holds, UsageError, "cells"):
        open_table(tmp_path / "in.xlsx")


# requests and secrets


@limit(exchange, "GZIP_MEMBERS_MAX", UP_TO)
def test_a_body_has_so_many_parts(n: int, holds: bool) -> None:
    body = gzip.compress(b"x") * n
    with refused_unless(holds, UnacceptableBody):
        assert exchange.decompress(body, "gzip", 10_000) == b"x" * n


@limit(failures, "MESSAGE_MAX", UP_TO)
def test_so_many_characters_of_the_platforms_words_are_kept(n: int, holds: bool) -> None:
    words_of = failures.platform_message(b"x" * n)
    assert (words_of == "x" * n) is holds
    assert len(words_of) <= failures.MESSAGE_MAX


@limit(client, "_KEY_MIN", FROM)
def test_a_key_of_so_many_characters_is_masked_in_pages(n: int, holds: bool) -> None:
    key = "k7" * n
    reader = Client("legacy", "http://127.0.0.1:1", key[:n])
    with suppress(AttributeError):
        body = reader._without_key(b'{"a":"%b"}' % key[:n].encode())
    reader.close()
    assert (key[:n].encode() not in body) is holds


@limit(masking, "PART_MIN", FROM)
def test_a_part_of_a_secret_of_so_many_characters_is_masked(n: int, holds: bool) -> None:
    secret = "q7Zx9Kw2Lm4Pt6Rv8Bn3"
    for part in (secret[5 : 5 + n], secret[::-1][:n]):
        assert (part not in Masker([secret]).mask(f"saw -{part}- here")) is holds
    short = secret[:n]
    assert (short not in Masker([short]).mask(f"x{short}y")) is holds


@limit(masking, "_RANDOM_MIN", FROM)
def test_words_of_a_key_are_left_where_so_much_is_random_beside_them(n: int, holds: bool) -> None:
    assert bool(masking._harmless_words("production-" + "7" * (n - 1))) is holds


@limit(retries, "EPOCH_FROM_S", FROM)
def test_a_retry_after_that_is_so_large_is_a_time(n: int, holds: bool) -> None:
    now = datetime.fromtimestamp(n - 53, UTC)
    assert retries.retry_after_s(str(n), now) == (53 if holds else n)


@limit(waiting, "GAP_MAX_S", UP_TO)
def test_reads_are_no_further_apart(n: int, holds: bool) -> None:
    """One answer, a refusal, and the next answer n seconds after the first."""
    now = 100.0
    with mock.patch.object(waiting, "monotonic", side_effect=lambda: now):
        pace = waiting.ReadPace()
        pace.turn_s()
        pace.answered(now)
        now += 0.5
        pace.refused(0.0)
        now = 100.0 + n
        pace.answered(now)
        pace.turn_s()
        gap_s = pace.turn_s()
    assert (gap_s == n) is holds
    assert gap_s <= waiting.GAP_MAX_S


def notices() -> waiting.WaitNotices:
    return waiting.WaitNotices("legacy")


@limit(waiting, "SHOWN_FROM_S", FROM)
def test_a_wait_of_so_many_seconds_is_logged(n: int, holds: bool) -> None:
    for spent_s in (0.0, n / 2):
        with mock.patch.object(waiting, "monotonic", return_value=100.0):
            shown = notices().waits(Failure(503, "busy"), n - spent_s, spent_s, 600.0)
        assert shown is holds


@limit(waiting, "SHOWN_EVERY_S", FROM)
def test_a_wait_is_logged_again_after_so_long(n: int, holds: bool) -> None:
    now = 107.0
    with mock.patch.object(waiting, "monotonic", side_effect=lambda: now):
        shown = notices()
        assert shown._is_due(503)
        now += n
        assert shown._is_due(503) is holds
        assert shown._is_due(429)


@limit(inputs, "INTEGER_MAX", UP_TO)
def test_a_whole_number_that_is_sent_is_no_larger(n: int, holds: bool) -> None:
    for stock, is_allowed in ((n, holds), (-n, holds)):
        body = {"productId": "1", "variantId": "2", "stock": stock}
        found = [one.field for one in inputs.violations("variants", [body])]
        assert ("stock" not in found) is is_allowed


# settings, names, files of the project


@limit(contract, "PUBLIC_V1_LIMIT_MIN", FROM)
def test_a_page_limit_of_v1_is_at_least_so_large(n: int, holds: bool) -> None:
    check_page_limit(n, holds)


@limit(contract, "PUBLIC_V1_LIMIT_MAX", UP_TO)
def test_a_page_limit_of_v1_is_at_most_so_large(n: int, holds: bool) -> None:
    check_page_limit(n, holds)


def check_page_limit(n: int, holds: bool) -> None:
    os.environ["SOURCES__PUBLIC_V1__BASE_URL"] = "http://127.0.0.1:1"
    os.environ["SOURCES__PUBLIC_V1__API_KEY"] = "ob_test_0123456789abcdef"
    os.environ["SOURCES__PUBLIC_V1__PAGE_LIMIT"] = str(n)
    with refused_unless(holds, UsageError, "page_limit"):
        assert public_v1_settings().page_limit == n


@limit(loaders, "_PASSWORD_MIN", FROM)
def test_a_password_of_a_proxy_of_so_many_characters_is_a_secret(n: int, holds: bool) -> None:
    password = "zq7pw9rt"[:n]
    os.environ["SOURCES__HTTP__PROXY"] = f"http://ana:{password}@127.0.0.1:1"
    assert (password in loaders.known_secrets()) is holds


@limit(ownership, "_LINKS_MAX", BELOW)
def test_so_many_links_are_followed(tmp_path: Path, n: int, holds: bool) -> None:
    target = tmp_path / "end" / "file"
    target.parent.mkdir()
    target.touch()
    for number in range(n):
        link = tmp_path / f"link-{number}"
        link.symlink_to(target)
        target = link
    try:
        places = [*ownership._way_to(target)]
    except UsageError:
        places = []
    assert (tmp_path / "end" in places) is holds


@limit(secret_files, "_BYTES_MAX", UP_TO)
def test_a_file_of_a_secret_has_so_many_bytes(tmp_path: Path, n: int, holds: bool) -> None:
    (tmp_path / "key").write_text("k" * n)
    (tmp_path / "key").chmod(0o600)
    with refused_unless(holds, UsageError, "too large"):
        secret_files._content(tmp_path / "key", mock.Mock())


@limit(words, "MAX_LISTED", UP_TO)
def test_so_many_names_are_listed(n: int, holds: bool) -> None:
    text = words.listed([f"c{number}" for number in range(n)])
    assert ("more" not in text) is holds
    assert len(text.split(", ")) == min(n, words.MAX_LISTED)


@limit(disk, "_ABANDONED_S", BELOW)
def test_what_a_killed_command_left_stays_for_so_long(tmp_path: Path, n: int, holds: bool) -> None:
    left = tmp_path / ".report.html.abc.partial"
    left.touch()
    os.utime(left, (1_000_000.0, 1_000_000.0))
    with mock.patch("orderbridge.sources.disk.time.time", return_value=1_000_000.0 + n):
        disk._remove_abandoned(tmp_path, "*.partial", disk._ABANDONED_S)
    assert left.exists() is holds


@limit(file_model, "MAX_COLUMNS", UP_TO)
def test_a_file_has_so_many_columns(tmp_path: Path, n: int, holds: bool) -> None:
    path = tmp_path / "in.csv"
    names = ";".join(f"c{number}" for number in range(n))
    path.write_text(f"{names}\n" + ";".join(["1"] * n) + "\n")
    with refused_unless(holds, UsageError, "columns"):
        assert len(open_table(path).columns) == n
