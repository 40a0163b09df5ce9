"""Which tables a database has."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest

from orderbridge.pipelines.warehouse.sql import has_tables


def test_a_file_of_the_current_folder_is_no_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("ops.coverage").write_text("run_id\n1\n")
    with duckdb.connect() as connection:
        connection.execute("CREATE SCHEMA ops; CREATE TABLE ops.runs (run_id VARCHAR)")
        assert not has_tables(connection, "ops", "runs", "coverage")
        connection.execute("CREATE TABLE ops.coverage (run_id VARCHAR)")
        assert has_tables(connection, "ops", "runs", "coverage")
