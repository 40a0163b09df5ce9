"""The rows of a table, a view or a SELECT as a file: .xlsx for people, CSV and Parquet for programs.

In: the published warehouse, opened so that a query reaches nothing else. Out: one private file. Columns that may hold
personal data are left out unless they are asked for: of the undocumented fields of an order nobody knows what they are.
The result of a SELECT that is to be sent to the platform is kept as a CSV file, named by its hash.
"""

from __future__ import annotations

import difflib
import hashlib
import io
import math
import re
from collections.abc import Callable, Iterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple

import duckdb
import pyarrow as pa
import pyarrow.parquet as pq

from orderbridge.pipelines.import_file.result import ROWS_MAX, new_workbook
from orderbridge.pipelines.reporting.outputs import output_target
from orderbridge.pipelines.warehouse.bi.descriptions import DESCRIBED_SCHEMAS, may_be_personal
from orderbridge.pipelines.warehouse.build import open_warehouse
from orderbridge.pipelines.warehouse.sql import failure_words, is_one_select, sql_name
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.disk import disk_errors, replace_file, working_folder, write_private
from orderbridge.sources.errors import UsageError
from orderbridge.sources.files.formulas import csv_lines, neutralize, neutralize_column
from orderbridge.sources.settings import own_path, project_file

_SHOWN: Final = "shown"
"""Catalog of the views without personal columns: a query looks for its tables there."""
_BATCH_ROWS: Final = 10_000
_TEXT_MAX: Final = 32_767
"""Characters that a cell of a sheet holds."""
SNAPSHOTS: Final = "snapshots"
"""The folder of results that were imported, in the project."""
_DIGEST_SHOWN: Final = 12
_DIGITS_MAX: Final = 15
"""Digits of a number that a spreadsheet keeps: an id with more of them is written as text."""
_NAME: Final = re.compile(r"[A-Za-z_]\w*(\.\w+)?")
_NESTED: Final = ("STRUCT", "MAP", "UNION", "JSON")
_HINT: Final = "Name a file in a folder of yours that exists: --out orders.xlsx"
_COLUMNS: Final = """
    SELECT schema_name, table_name, column_name, data_type FROM duckdb_columns()
    WHERE database_name = current_database() AND list_contains($1, schema_name)
    ORDER BY schema_name, table_name, column_index"""


class Export(NamedTuple):
    """What was written.

    Attributes:
        file: the path.
        rows: how many, without the header.
        left_out: columns of a table that may hold personal data; those of a SELECT are not known.
    """

    file: Path
    rows: int
    left_out: list[str]


def export(what: str, out: Path, *, has_personal: bool = False, overwrite: bool = False) -> Export:
    """Writes the rows of a table or view such as `bi.orders`, or of a SELECT.

    Args:
        what: the table with its schema, or one statement of SQL that reads.
        out: the file; its ending decides: .xlsx, .csv or .parquet.
        has_personal: whether columns that may hold personal data are there.
        overwrite: whether an existing file is replaced.

    Raises:
        UsageError: no such table, a statement that fails or is not a SELECT, or a file that cannot be written.
    """
    write = _WRITERS.get(out.suffix.casefold())
    if write is None:
        endings = ", ".join(_WRITERS)
        as_workbook = typed_command("--out", str(out.with_suffix(".xlsx")))
        raise UsageError(
            f"{out.name} does not end with one of {endings}", f"Such as: {as_workbook}"
        )
    hint = (
        "Name another file, in a folder of yours that exists.\n"
        f"  To replace one: {typed_command('--overwrite')}"
    )
    target = output_target(out, "to be replaced", hint, lambda _: overwrite)
    with open_warehouse() as warehouse:
        tables = _tables(warehouse)
        left_out = _left_out(what, tables)
        if not has_personal:
            _hide_personal(warehouse, tables)
        query = _query(warehouse, what, tables, has_personal=has_personal)
        with (
            disk_errors(f"{target} cannot be written", _HINT),
            replace_file(target) as file,
        ):
            try:
                rows = write(query, file)
            except duckdb.Error as error:
                raise _failed(error, has_personal=True) from None
    return Export(target, rows, [] if has_personal else left_out)


def snapshot(statement: Path) -> Export:
    """Writes the result of a SELECT as a file to import: the same result is the same file, and goes on with its import.

    Args:
        statement: a file with one statement of SQL that reads; its columns have the names of fields. The cells are as
            they are there: an import sends them.

    Raises:
        UsageError: the file cannot be read, its statement fails or is not a SELECT, or the disk cannot be written.
    """
    try:
        sql = statement.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is not UTF-8"
        raise UsageError(
            f"{statement} cannot be read: {reason}", "Name a file with a SELECT."
        ) from None
    content = io.BytesIO()
    with open_warehouse() as warehouse:
        query = _query(warehouse, sql, _tables(warehouse), has_personal=True)
        try:
            rows = _write_csv(query.order("ALL"), content, clean=lambda texts: texts)
        except duckdb.Error as error:
            raise _failed(error, has_personal=True) from None
    digest = hashlib.sha256(content.getvalue()).hexdigest()[:_DIGEST_SHOWN]
    folder = own_path(project_file(SNAPSHOTS))
    with disk_errors(folder, "Free space, then run the same command again."):
        folder.mkdir(mode=0o700, exist_ok=True)
        target = own_path(folder / f"{statement.stem}-{digest}.csv")
        if not target.exists():
            write_private(target, content.getvalue())
    return Export(target, rows, [])


Tables = dict[str, dict[str, str]]
"""Names and types of the columns of each table and view, by its name with schema."""


def _tables(warehouse: duckdb.DuckDBPyConnection) -> Tables:
    tables: Tables = {}
    for schema, table, column, kind in warehouse.execute(
        _COLUMNS, [list(DESCRIBED_SCHEMAS)]
    ).fetchall():
        tables.setdefault(f"{schema}.{table}", {})[column] = kind
    return tables


def _personal(table: str, columns: dict[str, str]) -> list[str]:
    schema, _, name = table.partition(".")
    return [
        column for column, kind in columns.items() if may_be_personal(schema, name, column, kind)
    ]


def _left_out(what: str, tables: Tables) -> list[str]:
    return _personal(what, tables[what]) if what in tables else []


def _hide_personal(warehouse: duckdb.DuckDBPyConnection, tables: Tables) -> None:
    """Puts a view without personal columns in the place of each table, where a query looks for its names."""
    ((catalog,),) = warehouse.execute("SELECT current_database()").fetchall()
    warehouse.execute(f"ATTACH ':memory:' AS {_SHOWN} (READ_WRITE)")
    for schema in DESCRIBED_SCHEMAS:
        warehouse.execute(f"CREATE SCHEMA {sql_name(_SHOWN, schema)}")
    for table, columns in tables.items():
        hidden = set(_personal(table, columns))
        shown = [sql_name(column) for column in columns if column not in hidden]
        if shown:
            name = table.split(".")
            warehouse.execute(
                f"CREATE VIEW {sql_name(_SHOWN, *name)} AS "
                f"SELECT {', '.join(shown)} FROM {sql_name(catalog, *name)}"
            )
    warehouse.execute(f"USE {_SHOWN}")


def _query(
    warehouse: duckdb.DuckDBPyConnection, what: str, tables: Tables, *, has_personal: bool
) -> duckdb.DuckDBPyRelation:
    """The relation of a table or of a SELECT. Raises UsageError."""
    if _NAME.fullmatch(what) and what not in tables:
        near = difflib.get_close_matches(what, tables, n=3, cutoff=0.5)
        near = [name for name in tables if name.endswith(f".{what}")] or near
        hint = "docs/warehouse.md lists them."
        if near:
            command = typed_command().replace(what, near[0], 1)
            hint = f"Did you mean {' or '.join(near)}? Such as: {command}"
        raise UsageError(f"there is no table {what} in the warehouse", hint)
    sql = f"FROM {sql_name(*what.split('.'))}" if what in tables else what
    try:
        if not is_one_select(warehouse, sql):
            raise UsageError("one SELECT is expected", 'Such as "SELECT * FROM bi.orders"')
        return warehouse.sql(sql)
    except duckdb.Error as error:
        raise _failed(error, has_personal=has_personal) from None


def _failed(error: duckdb.Error, *, has_personal: bool) -> UsageError:
    hint = "docs/data-dictionary.md has tables and columns."
    if isinstance(error, duckdb.BinderException | duckdb.CatalogException) and not has_personal:
        hint = f"If that column may hold personal data: --personal. {hint}"
    return UsageError(f"the query failed: {failure_words(error)}", hint)


def _as_texts(
    query: duckdb.DuckDBPyRelation, is_text: Callable[[str], bool]
) -> duckdb.DuckDBPyRelation:
    """The same rows, with lists and objects as JSON, and with the columns of these types as text."""
    columns = []
    for name, kind in zip(query.columns, map(str, query.types), strict=True):
        column = sql_name(name)
        if kind.startswith(_NESTED) or kind.endswith("]"):
            columns.append(f"CAST(to_json({column}) AS VARCHAR) AS {column}")
        elif is_text(kind):
            columns.append(f"CAST({column} AS VARCHAR) AS {column}")
        else:
            columns.append(column)
    return query.project(", ".join(columns))


def _write_csv(
    query: duckdb.DuckDBPyRelation,
    file: BinaryIO,
    clean: Callable[[pa.Array], pa.Array] = neutralize_column,
) -> int:
    texts = _as_texts(query, lambda kind: kind != "VARCHAR")
    header = [pa.chunked_array([clean(pa.array([name]))]) for name in query.columns]
    file.write(csv_lines(header).encode())
    rows = 0
    for batch in texts.to_arrow_reader(_BATCH_ROWS):
        cells = [pa.chunked_array([clean(column.fill_null(""))]) for column in batch.columns]
        file.write(csv_lines(cells).encode())
        rows += batch.num_rows
    return rows


def _write_parquet(query: duckdb.DuckDBPyRelation, file: BinaryIO) -> int:
    reader = query.to_arrow_reader(_BATCH_ROWS)
    rows = 0
    with pq.ParquetWriter(file, reader.schema, compression="zstd") as writer:
        for batch in reader:
            writer.write_batch(batch)
            rows += batch.num_rows
    return rows


def _write_xlsx(query: duckdb.DuckDBPyRelation, file: BinaryIO) -> int:
    with (
        working_folder(Path(str(file.name)).parent) as folder,
        new_workbook(file, folder) as workbook,
    ):
        sheet = workbook.add_worksheet("rows")
        sheet.freeze_panes(1, 0)
        head = workbook.add_format({"bold": True})
        days = workbook.add_format({"num_format": "yyyy-mm-dd"})
        times = workbook.add_format({"num_format": "yyyy-mm-dd hh:mm:ss"})
        for column, name in enumerate(query.columns):
            sheet.write_string(0, column, neutralize(name), head)
        at = 0
        for at, row in enumerate(_rows(_as_texts(query, lambda kind: kind.startswith("TIME "))), 1):
            if at > ROWS_MAX:
                raise UsageError("a sheet does not hold so many rows", "Export .csv or .parquet.")
            for column, value in enumerate(row):
                _write_cell(sheet, at, column, value, days, times)
        if query.columns:
            sheet.autofilter(0, 0, at, len(query.columns) - 1)
    return at


def _rows(query: duckdb.DuckDBPyRelation) -> Iterator[tuple[object, ...]]:
    while part := query.fetchmany(_BATCH_ROWS):
        yield from part


def _write_cell(sheet: Any, at: int, column: int, value: object, days: Any, times: Any) -> None:  # noqa: ANN401 # untyped
    if value is None:
        return
    if isinstance(value, bool):
        sheet.write_boolean(at, column, value)
    elif isinstance(value, datetime):
        instant = value.astimezone(UTC).replace(tzinfo=None) if value.tzinfo else value
        sheet.write_datetime(at, column, instant, times)
    elif isinstance(value, date):
        sheet.write_datetime(at, column, value, days)
    elif _is_exact_number(value):
        sheet.write_number(at, column, value)
    else:
        text = neutralize(str(value))
        if len(text) > _TEXT_MAX:
            raise UsageError("a sheet does not hold so long a text", "Export .csv or .parquet.")
        sheet.write_string(at, column, text)


def _is_exact_number(value: object) -> bool:
    """Whether a spreadsheet shows the number as it is: it keeps 15 digits, and knows no infinity."""
    if isinstance(value, float):
        return math.isfinite(value)
    if isinstance(value, int | Decimal):
        return len(f"{abs(value):f}".rstrip("0").replace(".", "").lstrip("0")) <= _DIGITS_MAX
    return False


_WRITERS: Final[dict[str, Callable[[duckdb.DuckDBPyRelation, BinaryIO], int]]] = {
    ".xlsx": _write_xlsx,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
