"""The spool gives back what it took, and nothing that is torn, old or another's."""

from __future__ import annotations

import hashlib
import json
import os
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import pytest

from sources.extract.spool import SpoolFolder, run_folder


def kept(folder: SpoolFolder, *labels: str) -> list[bytes | None]:
    """The bodies that the spool of the first sweep still has for these requests."""
    with closing(folder.sweep(1)) as spool:
        return [spool.replay(label) for label in labels]


@pytest.mark.parametrize("written_at_once", [None, 1, 21])
def test_round_trip_and_modes(tmp_path: Path, written_at_once: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, offset: pwrite(file, data[:written_at_once], offset))
    spool = SpoolFolder(tmp_path / "s", {"list": "a"}).sweep(1)
    places = []
    for label, body in (("page=1", b"one"), ("page=2", b"\x00" * 5000)):
        places.append(spool.offset)
        spool.write(label, body)
    assert [spool.at(place) for place in places] == [b"one", b"\x00" * 5000]
    spool.close()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "s").iterdir()} == {0o600}
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    labels = [f"page={n}" for n in (1, 2, 3)]
    assert kept(SpoolFolder(tmp_path / "s", {"list": "a"}), *labels) == [b"one", b"\x00" * 5000, None]


@pytest.mark.parametrize("cut", [0, 1, 10, 17, 22, 30])
def test_a_torn_frame_ends_the_replay_and_is_cut_off(tmp_path: Path, cut: int) -> None:
    spool = SpoolFolder(tmp_path / "s", {}).sweep(1)
    spool.write("page=1", b"first body")
    end = spool.offset
    spool.write("page=2", b"second body")
    spool.close()
    path = tmp_path / "s" / "sweep-1.pages"
    data = path.read_bytes()
    broken = {0: data[:end] + b"OBS1" + data[end + 4 :], 30: data[:-4] + b"XXXX"}  # of an earlier version; changed
    path.write_bytes(broken.get(cut, data[:-cut]))
    assert kept(SpoolFolder(tmp_path / "s", {}), "page=1", "page=2") == [b"first body", None]
    assert path.stat().st_size == end


@pytest.mark.parametrize("change", ["", "label", "host", "environment", "key", "finished", "garbage"])
def test_only_the_same_walk_is_resumed(tmp_path: Path, change: str) -> None:
    def folder(host: str = "a", environment: str = "sandbox", key: str = "brand_test_abc") -> SpoolFolder:
        return SpoolFolder(tmp_path / "s", {"host": host, "environment": environment}, key)

    first = folder()
    with closing(first.sweep(1)) as spool:
        spool.write("page=1", b"x")
    if change == "finished":
        first.finish()
    elif change == "garbage":
        (tmp_path / "s" / "walk.json").write_text("{")
    again = folder(**({change: "other"} if change in ("host", "environment", "key") else {}))
    labels = ["page=2", "page=1"] if change == "label" else ["page=1"]
    assert kept(again, *labels) == ([b"x"] if not change else [None] * len(labels))


def test_no_digest_of_a_key_can_be_compared(tmp_path: Path) -> None:
    notes = []
    for name in ("a", "b"):
        SpoolFolder(tmp_path / name, {}, "brand_live_secret")
        notes.append((tmp_path / name / "walk.json").read_text())
    digests = [json.loads(note)["digest"] for note in notes]
    assert digests[0] != digests[1]
    for algorithm in ("md5", "sha1", "sha256", "sha512", "blake2b"):
        assert hashlib.new(algorithm, b"brand_live_secret").hexdigest() not in "".join(notes)
    assert "secret" not in "".join(notes)


@pytest.mark.parametrize(
    ("started_s", "stopped_s", "expected"),
    [
        *((age, age, age in (0, 3500)) for age in (0, 3500, 3700, 86_400, -60)),
        *((age, None, age in (0, 3500)) for age in (0, 3500, 3700, 86_400, -60)),
        *((80_000, 60, True), (80_000, 3700, False), (87_000, 60, False), (60, -60, False), (-60, 60, False)),
    ],
)
def test_a_walk_is_resumed_within_an_hour_of_its_last_page_and_a_day_of_its_first(
    tmp_path: Path, started_s: float, stopped_s: float | None, expected: bool
) -> None:
    folder = tmp_path / "spool"
    spools = SpoolFolder(folder, {"list": "customers"}, "key")
    if stopped_s is not None:  # else it stopped before its first page
        spools.sweep(1).close()
        os.utime(folder / "sweep-1.pages", (time.time() - stopped_s,) * 2)
    described = json.loads((folder / "walk.json").read_text())
    started_at = described["started_at"] - started_s
    (folder / "walk.json").write_text(json.dumps({**described, "started_at": started_at}))
    assert (SpoolFolder(folder, {"list": "customers"}, "key").started_at == started_at) is expected
    assert (json.loads((folder / "walk.json").read_text())["started_at"] == started_at) is expected
    assert stopped_s is None or (folder / "sweep-1.pages").exists() is expected


class Run:
    """With which the folder of its files is removed."""


def test_the_folder_of_a_run_is_private_and_removed_with_it(tmp_path: Path) -> None:
    run, later = Run(), Run()
    with run_folder(tmp_path / "new", "orders", run) as (folder, spool):
        SpoolFolder(spool, {})
    (folder / "rows.parquet").write_text("rows")
    assert folder.stat().st_mode & 0o077 == folder.parent.stat().st_mode & 0o077 == 0
    with run_folder(tmp_path / "new", "orders", later) as (other, its_spool):
        assert its_spool == spool
        assert (spool / "walk.json").exists()
    assert (folder / "rows.parquet").exists(), "that run goes on"
    del run
    assert (folder.exists(), other.exists()) == (False, True)


def test_the_next_run_of_a_list_has_the_pages_of_a_killed_one_and_removes_its_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr("weakref.finalize", lambda run, end, folder, lock: os.close(lock))
        with run_folder(tmp_path, "orders", Run()) as (folder, spool):
            spool.mkdir()
    (folder / "rows.parquet").write_text("rows")
    with run_folder(tmp_path, "customers", Run()) as (_, other):
        assert not other.exists()
    assert folder.exists()
    with run_folder(tmp_path, "orders", Run()) as (_, again):
        assert again.exists()
        assert not folder.exists()


def test_a_list_is_walked_by_one_run_at_a_time(tmp_path: Path) -> None:
    walking, most = [], []

    def come_and_go(name: str) -> None:
        for _ in range(10):
            with run_folder(tmp_path, name, Run()):
                walking.append(name)
                most.append(walking.count(name))
                walking.remove(name)

    with ThreadPoolExecutor(4) as pool:
        list(pool.map(come_and_go, "aabb"))
    assert set(most) == {1}
    assert not [*tmp_path.glob("*/run-*")]
