"""Loaded rows are counted against the walked ones: a load that loses or doubles rows fails the run."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import dlt
import duckdb
import pyarrow.parquet as pq
import pytest

from orderbridge.pipelines.warehouse.raw.load import LOADED, attached, load
from orderbridge.sources.errors import BridgeError, UsageError
from orderbridge.sources.extract.result import ListResult, WalkOptions
from orderbridge.sources.extract.spool import SpoolFolder
from orderbridge.sources.extract.walk import walk
from tests.sources.platform import Platform


def walked(folder: Path) -> ListResult:
    """A complete walk over eleven customers."""
    platform: Any = Platform(list(range(1, 12)))
    spool = SpoolFolder(folder / "spool", {"list": "customers"})
    return walk("customers", platform, folder / "files", spool, WalkOptions(10))


def test_settings_of_others_and_a_folders_name_change_nothing(tmp_path: Path) -> None:
    """`_dlt_id` is random: with it, each run would count all rows as changed."""
    os.environ |= {
        "NORMALIZE__PARQUET_NORMALIZER__ADD_DLT_ID": "true", "DEV_MODE": "true", "DATASET_NAME": "other",
        "SCHEMA__JSON_NORMALIZER": "x",
    }  # fmt: skip
    result, folder = walked(tmp_path), tmp_path / "first_name=zz" / "org=acme" / "load"
    folder.parent.mkdir(parents=True)
    load([result], folder)
    with duckdb.connect() as build, attached(build, [result], folder):
        names = [name for name, *_ in build.execute(f"DESCRIBE {LOADED}.customers").fetchall()]
        values = build.execute(f"SELECT DISTINCT first_name FROM {LOADED}.customers").fetchall()
    ((path, _),) = result.files["customers"]
    assert names[0] == "id"
    assert not [name for name in names if "dlt" in name or name == "org"]
    assert {value for (value,) in values} == set(pq.read_table(path)["first_name"].to_pylist())


def lost_document(result: ListResult) -> None:
    ((path, _),) = result.files["customers__documents"]
    pq.write_table(pq.read_table(path).slice(1), path)


def doubled_customer(result: ListResult) -> None:
    ((path, rows),) = result.files["customers"]
    # as many rows, one of them twice
    pq.write_table(pq.read_table(path).take([0, *range(rows - 1)]), path)


@pytest.mark.parametrize(
    ("harm", "words"),
    [
        (lost_document, "customers__documents: 12 rows were walked"),
        (doubled_customer, "the totals do not balance"),
    ],
)
def test_loaded_rows_are_compared_with_walked(
    tmp_path: Path, harm: Callable[[ListResult], None], words: str
) -> None:
    result, folder = walked(tmp_path), tmp_path / "load"
    harm(result)
    load([result], folder)
    with (
        duckdb.connect() as build,
        pytest.raises(BridgeError, match=words),
        attached(build, [result], folder),
    ):
        pytest.fail("the totals were not compared")


def test_a_load_that_fails_has_no_value_of_a_row_in_its_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def rows(error: Exception) -> Iterator[object]:
        yield from ()
        raise error

    cases: tuple[tuple[Exception, type[Exception], str], ...] = (
        (
            ValueError("Zoë"),
            BridgeError,
            "^dlt could not load the rows: step extract, ResourceExtractionError",
        ),
        (
            OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "Zoë"),
            UsageError,
            "^no space left",
        ),
        (OSError(errno.EIO, os.strerror(errno.EIO)), UsageError, "^the disk .* Input/output error"),
        (RuntimeError("can't start new thread"), UsageError, "^not enough memory"),
    )
    for n, (error, expected, words) in enumerate(cases):
        failing = dlt.resource(rows, name="customers")(error)
        monkeypatch.setattr(
            "orderbridge.sources.resources.file_resources", mock.Mock(return_value=[failing])
        )
        with pytest.raises(expected, match=words) as caught:
            load([ListResult("customers")], tmp_path / f"load{n}")
        assert "Zoë" not in str(caught.value)
