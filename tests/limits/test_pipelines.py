"""The limits of imports, questions, reconciled tables, reports and the desk."""

from __future__ import annotations

import json
import os
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any
from unittest import mock

import click
import duckdb
import openpyxl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from orderbridge.pipelines.cli import options, settle
from orderbridge.pipelines.desk import home, server, session
from orderbridge.pipelines.desk import imports as desk_imports
from orderbridge.pipelines.desk import questions as desk_questions
from orderbridge.pipelines.desk.progress import Progress
from orderbridge.pipelines.desk.texts import Texts
from orderbridge.pipelines.import_file import lookup_proposal, mappings, other_kind, result, run
from orderbridge.pipelines.import_file.lists import pull_reason
from orderbridge.pipelines.import_file.mappings import find_mapping, keep_mapping
from orderbridge.pipelines.ledger import numbers
from orderbridge.pipelines.mapping import MappedColumn, Mapping, column_values, load, read
from orderbridge.pipelines.pull import order_tail, targets
from orderbridge.pipelines.questions import pairs, writes
from orderbridge.pipelines.reconcile import odd_values, own_checks
from orderbridge.pipelines.reconcile.orders import line_kinds, statuses
from orderbridge.pipelines.reconcile.orders.lines import RawLines
from orderbridge.pipelines.reporting import charts, export, plan_folders, report, status, tables
from orderbridge.pipelines.reporting.plan_folders import removable_plans
from orderbridge.pipelines.reporting.texts import report_texts
from orderbridge.pipelines.warehouse import ops
from orderbridge.pipelines.warehouse.answers.accepted import Accepted
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.ops import last_reads
from orderbridge.pipelines.warehouse.raw.recent_rows import RecentRows
from orderbridge.sources.errors import UsageError
from orderbridge.sources.texts import english
from orderbridge.transforms.frames import BIGINT, TEXT, frame
from orderbridge.transforms.values.keys import BOOKKEEPING
from tests.limits.border import ABOVE, BELOW, FROM, UP_TO, limit, refused_unless
from tests.pipelines.import_file.desk import Desk
from tests.pipelines.import_file.test_lookup_proposal import IDS, proposed
from tests.pipelines.import_file.test_lookup_proposal import row as id_row
from tests.pipelines.push.plans import Place, customer
from tests.pipelines.reconcile.in_parts import build_of
from tests.transforms.rows import values

# mappings and files


@limit(other_kind, "_COLUMNS_MIN", FROM)
def test_so_many_columns_of_another_kind_are_noticed(n: int, holds: bool) -> None:
    columns = ["Nombre", "Apellidos", "Correo"][:n]
    assert other_kind.likelier_kind(columns, "variants") == ("customers" if holds else None)


@limit(lookup_proposal, "_SHARE", FROM, of=20)
def test_a_lookup_finds_nearly_all_lines(tmp_path: Path, n: int, holds: bool) -> None:
    made = proposed(tmp_path, IDS + "".join(map(id_row, range(n))))
    assert (made is not None) is holds


@limit(lookup_proposal, "_GIVEN_SHARE", FROM, of=20)
def test_a_lookup_that_is_given_finds_half_of_the_lines(
    tmp_path: Path, n: int, holds: bool
) -> None:
    made = proposed(tmp_path, IDS + "".join(map(id_row, range(n))), is_given=True)
    assert (made is not None) is holds


@limit(lookup_proposal, "_BYTES_MAX", UP_TO, to=2000)
def test_a_lookup_is_looked_for_in_a_file_of_so_many_bytes(
    tmp_path: Path, n: int, holds: bool
) -> None:
    text = IDS + "".join(map(id_row, range(20)))
    assert (proposed(tmp_path, text + "\n" * (n - len(text))) is not None) is holds


@limit(lookup_proposal, "_FILES_MAX", UP_TO, to=3)
def test_a_lookup_is_looked_for_in_so_many_files(tmp_path: Path, n: int, holds: bool) -> None:
    """The file that fits is the n-th, from the newest."""
    for number in range(n - 1):
        (tmp_path / f"other-{number}.csv").write_text("a;b\n1;2\n")
    (tmp_path / "ids.csv").write_text("")
    with mock.patch("tests.pipelines.import_file.test_lookup_proposal.tables_beside") as beside:
        beside.side_effect = lambda file: [
            *sorted(tmp_path.glob("other-*.csv")),
            tmp_path / "ids.csv",
        ]
        made = proposed(tmp_path, IDS + "".join(map(id_row, range(20))))
    assert (made is not None) is holds


@limit(mappings, "_SHARE", FROM, of=12)
def test_a_mapping_names_so_large_a_share_of_the_columns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, n: int, holds: bool
) -> None:
    monkeypatch.setenv("WAREHOUSE__PATH", str(tmp_path / "warehouse.duckdb"))
    fields = ["erpCode", "firstName", "lastName", "email", "phone", "loginCode", "notes"]
    names = [f"c{number}" for number in range(n)]
    columns = {
        name: MappedColumn(name, fields[number] if number < 2 else None)
        for number, name in enumerate(names)
    }
    kept = keep_mapping(Mapping("customers", columns))
    header = [*names, *(f"other{number}" for number in range(12 - n))]
    file = tmp_path / "in.csv"
    file.write_text(";".join(header) + "\n" + ";".join(["x"] * 12) + "\n")
    assert find_mapping("customers", file) == (kept if holds else None)


@limit(column_values, "_SHARE", FROM, of=20)
def test_nearly_all_cells_are_of_the_form(n: int, holds: bool) -> None:
    cells = [f"a{number}@example.test" for number in range(n)] + ["?"] * (20 - n)
    assert column_values._all_match(column_values._EMAIL.fullmatch, cells) is holds
    different = [f"a{number}@example.test" for number in range(n)]
    names = ["Ana Ruiz"] * n + ["?"] * (20 - n)
    assert column_values.casts_doubt("erpCode", names) is holds
    same = [different[0]] * (20 - n)
    assert column_values.are_emails([*different, *same]) is holds


@limit(read, "MAX_BYTES", UP_TO)
def test_a_mapping_file_has_so_many_bytes(tmp_path: Path, n: int, holds: bool) -> None:
    text = 'kind = "customers"\n[columns]\n"Code" = "erpCode"\n'
    (tmp_path / "m.toml").write_text(text + "#" * (n - len(text)))
    with refused_unless(holds, UsageError, "larger than"):
        load(tmp_path / "m.toml")


@limit(result, "_CELL_MAX", UP_TO)
def test_a_cell_of_a_workbook_has_so_many_characters(n: int, holds: bool) -> None:
    own, note = result._own_cells(2, ["x" * n], 1, "", english())
    assert own == (["x" * n] if holds else [""])
    assert bool(note) is not holds


@limit(result, "_NOTE_MAX", UP_TO)
def test_a_note_has_so_many_characters(n: int, holds: bool) -> None:
    assert (result._note_text("x" * n) == "x" * n) is holds


@limit(result, "LINES_MAX", UP_TO, to=5)
def test_of_a_file_of_so_many_lines_confirmed_ones_have_a_row(
    desk: Desk,
    n: int,
    holds: bool,
) -> None:
    lines = "".join(f"{number:05d};Ana;ana{number}@example.test\n" for number in range(1, n + 1))
    made = desk.run(desk.write(f"Código;Nombre;Correo\n{lines}"))
    assert made.file is not None
    book = openpyxl.load_workbook(made.file)
    sheets = [sheet for sheet in book if sheet.title == "all lines"]
    assert [sheet.max_row for sheet in sheets] == ([n + 1] if holds else [1])


@limit(result, "ROWS_MAX", UP_TO, to=5)
def test_a_sheet_has_so_many_lines(desk: Desk, n: int, holds: bool) -> None:
    lines = "".join(f"{number:05d};Ana;ana{number}@example.test\n" for number in range(1, n + 1))
    made = desk.run(desk.write(f"Código;Nombre;Correo\n{lines}"))
    assert made.file is not None
    sheet = openpyxl.load_workbook(made.file)["all lines"]
    assert (sheet.max_row == n + 1) is holds
    assert sheet.max_row == min(n, 5) + 1


@limit(run, "MAX_AGE_H", UP_TO, of=3600)
def test_customers_that_were_read_so_long_ago_are_not_read_again(
    at: Place,
    n: int,
    holds: bool,
) -> None:
    at.pull("customers")
    with duckdb.connect(str(at.folder / "warehouse.duckdb")) as warehouse:
        warehouse.execute("UPDATE ops.coverage SET started_at = ended_at - INTERVAL 47 SECOND")
    with open_warehouse() as warehouse:
        ended_at = last_reads(warehouse)["customers"].ended_at
    clock = mock.Mock(now=lambda zone: ended_at + timedelta(seconds=n))
    with mock.patch("orderbridge.pipelines.import_file.lists.datetime", clock):
        reason = pull_reason("customers", "customers", run.MAX_AGE_H, english())
    assert (reason is None) is holds


# plans, pulls, questions


@limit(options, "_MINUTES_MAX", UP_TO)
def test_requests_settle_within_a_year(n: int, holds: bool) -> None:
    context = click.Context(settle.command)
    option = next(one for one in settle.command.params if one.name == "settle")
    with refused_unless(holds, click.BadParameter, "525,600"):
        assert option.process_value(context, str(n)) == n * 60


@limit(plan_folders, "KEPT", FROM)
def test_a_plan_folder_can_go_after_so_long(at: Place, n: int, holds: bool) -> None:
    """It is as old as the last file that was changed in it, wherever that is; the oldest folder is the first."""
    changed = datetime(2026, 3, 2, 4, tzinfo=UTC)
    folders = [at.plan([customer(1)], name=name) for name in ("plan-1", "plan-2")]
    for folder, later_s in zip(folders, (0, -101), strict=True):
        (folder / "results").mkdir()
        for name in ("confirmed.csv", "in_doubt.csv", "unsent.csv"):
            (folder / "results" / name).touch()
        paths = (*folder.iterdir(), *(folder / "results").iterdir(), folder)
        for path in paths:
            newest = path.name == "in_doubt.csv"
            at_s = changed.timestamp() + later_s - (0 if newest else 13)
            os.utime(path, (at_s, at_s))
    found = removable_plans(set(), changed + timedelta(seconds=n))
    assert [one.folder for one in found] == [str(folders[1]), *[str(folders[0])] * holds]


@limit(status, "_CLOCK_SKEW_H", UP_TO, of=3600)
def test_a_read_may_lie_in_the_future_by_so_much(n: int, holds: bool) -> None:
    assert status._is_older([-n / 3600], 24.0) is not holds
    assert status._is_older([24.0], 24.0) is False
    assert status._is_older([24.0 + n / 3600], 24.0)


@limit(order_tail, "STEPS_MIN", FROM)
def test_so_many_steps_show_a_sequence(tmp_path: Path, n: int, holds: bool) -> None:
    days = [f"2026-03-{day:02d}" for day in range(1, n + 2)]
    for texts, name in ((days, "ascending"), (days[::-1], "descending")):
        pq.write_table(pa.table({"at": texts}), tmp_path / "orders.parquet")
        with duckdb.connect() as build:
            found = order_tail._sequence(build, tmp_path / "orders.parquet", "at", "VARCHAR")
        assert found == (name if holds else None)


@limit(targets, "_DEPTH_MAX", UP_TO)
def test_fields_are_looked_for_so_deeply(n: int, holds: bool) -> None:
    payload: dict[str, object] = {"environment": "live"}
    for _ in range(n):
        payload = {"data": payload}
    assert (dict(targets._fields(payload)).get("data." * n + "environment") == "live") is holds


@limit(pairs, "_GROUP_MIN", FROM)
def test_so_many_pairs_are_asked_about_together(n: int, holds: bool) -> None:
    rows = [
        {"pair": str(number), "status": "suggested", "matched_by": "name, phone"}
        for number in range(n)
    ]
    assert bool(pairs._grouped(rows, set())) is holds


@limit(numbers, "_RANGE_MAX", UP_TO, to=7)
def test_a_range_of_operations_is_so_long(n: int, holds: bool) -> None:
    with refused_unless(holds, UsageError):
        assert numbers.operation_numbers(f"5-{5 + n}") == set(range(5, 6 + n))


@limit(writes, "_SINGLE_MAX", UP_TO)
def test_so_many_unknown_outcomes_are_a_question_each(n: int, holds: bool) -> None:
    plan = mock.Mock(plan_id="0123456789abcdef", folder="plan-1")
    plan.rows.return_value = [mock.MagicMock(id=number) for number in range(1, n + 1)]
    with mock.patch.object(writes, "_words", return_value="lost"):
        assert (len(writes._of_plan(plan)) == n) is holds


# reconciled tables


def odd_rules(fields: dict[str, int], listed: int) -> list[tuple[str, str]]:
    """Rule and detail of fields that have so many odd values in a list of orders."""
    with duckdb.connect() as build:
        ops.create_missing(build)
        build.execute(
            "CREATE SCHEMA raw; CREATE TABLE raw.orders (id VARCHAR, _extra VARCHAR, _missing_since TIMESTAMPTZ)"
        )
        most = max(fields.values())
        extras = [
            [json.dumps({name: "x" for name, count in fields.items() if at < count})]
            for at in range(most)
        ]
        rows = [*extras, *[["{}"]] * (listed - most)]
        build.executemany("INSERT INTO raw.orders (_extra) VALUES ($1)", rows)
        at = datetime(2026, 5, 1, tzinfo=UTC)
        found = odd_values.odd_values(RecentRows(build, "orders", "run", at), Accepted([], at))
        return [row for one in found for row in values(one, "rule", "detail")]


@limit(odd_values, "CHANGED_MIN", FROM)
def test_so_many_odd_values_are_a_change(n: int, holds: bool) -> None:
    ((rule, _),) = odd_rules({"total": n}, 40)
    assert rule == ("form_changed" if holds else "odd_value")


@limit(odd_values, "CHANGED_SHARE", FROM, of=200)
def test_so_large_a_share_of_odd_values_is_a_change(n: int, holds: bool) -> None:
    ((rule, _),) = odd_rules({"total": n}, 200)
    assert rule == ("form_changed" if holds else "odd_value")


@limit(odd_values, "_FIELDS_MAX", UP_TO)
def test_so_many_fields_with_odd_values_are_named(n: int, holds: bool) -> None:
    found = odd_rules({f"field {number:02}": 1 for number in range(n)}, 40)
    assert (found[-1][1].endswith("more fields")) is not holds
    assert len([detail for _, detail in found if ": field " in detail]) == min(n, 20)


@limit(line_kinds, "_SHARE_MIN", FROM, of=20)
def test_nearly_all_lines_with_a_parent_name_a_line_of_their_order(n: int, holds: bool) -> None:
    """Of each order the first line is a set, and the second one, of the same amount, a part of it or of another."""
    in_order = [f"{order}-1" if order < n else "elsewhere" for order in range(20)]
    assert line_kinds_of(in_order, [7.0] * 20) == (["part"] if holds else [])
    whole = [f"{order}-1" for order in range(20)]
    of_own = [7.0 if order < n else 3.0 for order in range(20)]
    assert line_kinds_of(whole, of_own) == ["part" if holds else "product"]


def line_kinds_of(parents: list[str], amounts: list[float]) -> list[str]:
    """The proposed kinds of the second lines of orders, of these parents and amounts; the first ones are sets of 7."""
    rows = []
    for order, (parent, amount) in enumerate(zip(parents, amounts, strict=True)):
        for line, named, own in ((1, None, 7.0), (2, parent, amount)):
            rows.append(
                {
                    "order_id": f"o{order}", "position": line, "line_id": f"{order}-{line}",
                    "parent_id": named, "line_total": own,
                }
            )  # fmt: skip
    schema = dict.fromkeys(("order_id", "line_id", "parent_id"), TEXT)
    schema |= {"position": BIGINT, "line_total": pa.float64(), **BOOKKEEPING}
    with build_of(None, raw__orders__lines=frame(schema, rows)) as build:
        found = line_kinds.kind_rows(RawLines.of(build, "orders__lines"), [])
    return [one.proposal for one in found]


@limit(statuses, "_VALUES_MAX", UP_TO, to=4)
def test_so_many_statuses_are_listed_and_undecided_ones_first(n: int, holds: bool) -> None:
    names = [f"state {number}" for number in range(n)]
    schema = {"status": TEXT, "row_count": BIGINT}
    rows = [{"status": name, "row_count": n - at} for at, name in enumerate(names)]
    orders: Any = mock.Mock(distinct=mock.Mock(return_value=frame(schema, rows)))
    listed, _ = statuses._values(orders, "status", ["STATE 0"])
    assert (len(listed) == n) is holds
    assert (listed[0] == "state 0") is holds


# checks of the project, reports, the desk


@limit(own_checks, "ROWS_MAX", UP_TO, to=5)
def test_so_many_rows_of_a_check_are_findings(tmp_path: Path, n: int, holds: bool) -> None:
    with duckdb.connect() as build:
        sql = f"SELECT range FROM range({n})"
        check = own_checks.OwnCheck("c", sql, "Wrong", "checks", "error")
        ids = own_checks._wrong_ids(build, check, tmp_path)
    found = own_checks._rows(check, ids)
    assert len(found) == min(n, 6)
    is_cut = bool(found["detail"].str.contains("more than 5 rows").any())
    assert is_cut is not holds


@limit(charts, "MAX_DAYS", UP_TO)
def test_a_chart_of_so_many_days_is_by_day(n: int, holds: bool) -> None:
    assert periods(timedelta(days=n - 1)) == (n if holds else 3)


def periods(length: timedelta) -> int:
    first = date(2026, 1, 1)
    values = {first: Decimal(1), first + length: Decimal(2)}
    made = charts.time_chart(mock.Mock(), str, values, None, str)
    return made.periods


@limit(charts, "MAX_MONTHS", UP_TO)
def test_a_chart_of_so_many_months_is_by_month(n: int, holds: bool) -> None:
    last = date(2020 + (n - 1) // 12, (n - 1) % 12 + 1, 1)
    assert (periods_between(date(2020, 1, 1), last) == n) is holds


def periods_between(first: date, last: date) -> int:
    values = {first: Decimal(1), last: Decimal(2)}
    return charts.time_chart(mock.Mock(), str, values, None, str).periods


@limit(tables, "MAX_LABEL", UP_TO)
def test_a_label_has_so_many_characters(n: int, holds: bool) -> None:
    assert (tables.label("x" * n) == "x" * n) is holds
    assert len(tables.label("x" * n)) <= tables.MAX_LABEL


@limit(tables, "MAX_ROWS", UP_TO)
def test_a_table_has_so_many_rows(n: int, holds: bool) -> None:
    rows = [{"a": number} for number in range(n)]
    made = tables.build_table(mock.Mock(side_effect=str), rows, {"A": "a"})
    assert (made.hidden_rows, len(made.rows)) == ((0, n) if holds else (1, n - 1))


@limit(export, "_DIGITS_MAX", UP_TO)
def test_a_number_of_so_many_digits_is_a_number_in_a_workbook(n: int, holds: bool) -> None:
    for number in (int("7" * n), -int("7" * n), Decimal("7" * (n - 2) + ".77")):
        assert export._is_exact_number(number) is holds
    assert export._is_exact_number(Decimal("7" + "0" * n))


@limit(export, "_TEXT_MAX", UP_TO)
def test_a_text_of_so_many_characters_is_exported(tmp_path: Path, n: int, holds: bool) -> None:
    with duckdb.connect() as connection, (tmp_path / "x.xlsx").open("wb") as file:
        rows = connection.sql(f"SELECT repeat('x', {n}) AS a")
        try:
            export._write_xlsx(rows, file)
        except UsageError:
            assert not holds
            return
    sheet = openpyxl.load_workbook(tmp_path / "x.xlsx").active
    assert sheet.cell(2, 1).value == "x" * n
    assert holds


@limit(home, "_OLD_H", ABOVE)
def test_a_list_that_was_read_so_long_ago_is_marked(n: int, holds: bool) -> None:
    read_at: Any = mock.Mock(ages_h=mock.Mock(return_value=[n, n + 7]))
    texts = mock.MagicMock()
    with mock.patch.object(home, "age", return_value=""):
        assert home._list_row(read_at, mock.MagicMock(), texts).is_old is holds


@limit(home, "_NEWS_S", BELOW)
def test_the_first_page_says_for_so_long_that_a_run_has_ended(n: int, holds: bool) -> None:
    ended = Progress(was_started=True, is_good=True)
    with (
        mock.patch.object(home, "run_job", return_value=mock.Mock(written_at=1_013.0)),
        mock.patch.object(home, "progress_of", return_value=ended),
        mock.patch("time.time", return_value=1_013.0 + n),
    ):
        assert home._progress(Texts("en")) == (ended if holds else Progress())


@pytest.mark.parametrize(
    ("seconds", "of_desk", "of_report"),
    [
        (-7, "just now", "0 min"), (29, "just now", "0 min"), (31, "1 min ago", "0 min"),
        (59 * 60 + 29, "59 min ago", "59 min"), (59 * 60 + 31, "an hour ago", "59 min"),
        (2 * 3600 - 1, "2 hours ago", "119 min"), (2 * 3600, "2 hours ago", "2 h"),
        (48 * 3600 - 1, "48 hours ago", "47 h"), (48 * 3600, "2 days ago", "2 days"),
        (61 * 3600, "3 days ago", "2 days"),
    ],
)  # fmt: skip
def test_an_age_is_in_the_unit_that_a_person_would_use(
    seconds: int, of_desk: str, of_report: str
) -> None:
    assert home.age(seconds / 3600, Texts("en")) == of_desk
    assert report._age(timedelta(seconds=seconds), report_texts()) == of_report


@limit(session, "TOKEN_LIFETIME_S", UP_TO)
def test_the_address_of_a_desk_works_for_so_long(n: int, holds: bool) -> None:
    """However a page is asked for meanwhile; the desk is in use from when it is entered."""
    now = 1_009.0
    opened = session.Session(8080, lambda: now)
    now += 13
    opened.touch()
    now += n - 13
    token = opened.address.rpartition("/")[2]
    assert opened.enter(token) == ("entered" if holds else "expired")
    assert opened.touched_at == (now if holds else 1_022.0)


@limit(server, "IDLE_S", UP_TO)
def test_a_desk_without_use_ends_after_so_long(n: int, holds: bool) -> None:
    now = 1_009.0
    opened = session.Session(8080, lambda: now)
    now = 1_013.0
    opened.touch()
    now += n
    stop = mock.Mock(wait=mock.Mock(side_effect=[False, True]))
    with mock.patch.object(server, "is_busy", return_value=False):
        why = server._wait(opened, stop)
    assert why == ("serve.ended" if holds else "serve.idle")


@limit(desk_imports, "_NAME_MAX", UP_TO)
def test_the_name_of_a_file_has_so_many_bytes(n: int, holds: bool) -> None:
    assert (desk_imports.safe_name("x" * n + ".csv") == "x" * n + ".csv") is holds


@limit(desk_questions, "SHOWN_MAX", UP_TO)
def test_so_many_questions_of_a_kind_are_listed(n: int, holds: bool) -> None:
    rows: list[Any] = [mock.Mock(kind="write") for _ in range(n)]
    (group,) = desk_questions.question_groups(rows)
    assert (len(group.rows) == n) is holds
    assert len(group.rows) + group.hidden == n
