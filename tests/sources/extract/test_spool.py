"""The spool gives back what it took, and nothing that is torn, old or another's."""

from __future__ import annotations

import hashlib
import json
import os
import time
from contextlib import closing
from pathlib import Path

import pytest

from sources.extract.spool import RESUME_WITHIN_S, SpoolFolder


@pytest.mark.parametrize("written_at_once", [None, 1, 21])
def test_round_trip_and_modes(tmp_path: Path, written_at_once: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    pwrite = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda file, data, offset: pwrite(file, data[:written_at_once], offset))
    folder = SpoolFolder(tmp_path / "s", {"list": "a"})
    spool = folder.sweep(1)
    places = []
    for label, body in (("page=1", b"one"), ("page=2", b"\x00" * 5000)):
        places.append(spool.offset)
        spool.write(label, body)
    assert [spool.at(place) for place in places] == [b"one", b"\x00" * 5000]
    spool.close()
    assert {path.stat().st_mode & 0o777 for path in (tmp_path / "s").iterdir()} == {0o600}
    assert (tmp_path / "s").stat().st_mode & 0o777 == 0o700
    with closing(SpoolFolder(tmp_path / "s", {"list": "a"}).sweep(1)) as again:
        assert [again.replay(f"page={n}") for n in (1, 2, 3)] == [b"one", b"\x00" * 5000, None]


@pytest.mark.parametrize("cut", [1, 10, 17, 22, 30])
def test_a_torn_frame_ends_the_replay_and_is_cut_off(tmp_path: Path, cut: int) -> None:
    spool = SpoolFolder(tmp_path / "s", {}).sweep(1)
    spool.write("page=1", b"first body")
    end = spool.offset
    spool.write("page=2", b"second body")
    spool.close()
    path = tmp_path / "s" / "sweep-1.pages"
    path.write_bytes(path.read_bytes()[:-cut] if cut < 30 else path.read_bytes()[:-4] + b"XXXX")
    with closing(SpoolFolder(tmp_path / "s", {}).sweep(1)) as again:
        assert again.replay("page=1") == b"first body"
        assert again.replay("page=2") is None
    assert path.stat().st_size == end


def test_another_request_ends_the_replay(tmp_path: Path) -> None:
    spool = SpoolFolder(tmp_path / "s", {}).sweep(1)
    spool.write("page=1", b"x")
    spool.close()
    with closing(SpoolFolder(tmp_path / "s", {}).sweep(1)) as again:
        assert again.replay("page=2") is None
        assert again.replay("page=1") is None


@pytest.mark.parametrize("change", ["identity", "age", "finished", "garbage"])
def test_what_is_not_this_walk_is_forgotten(tmp_path: Path, change: str) -> None:
    folder = SpoolFolder(tmp_path / "s", {"host": "a"})
    with closing(folder.sweep(1)) as spool:
        spool.write("page=1", b"x")
    note = tmp_path / "s" / "walk.json"
    if change == "age":
        stopped_at = time.time() - RESUME_WITHIN_S - 1
        os.utime(tmp_path / "s" / "sweep-1.pages", (stopped_at, stopped_at))
    elif change == "finished":
        folder.finish()
    elif change == "garbage":
        note.write_text("{")
    again = SpoolFolder(tmp_path / "s", {"host": "b" if change == "identity" else "a"})
    with closing(again.sweep(1)) as spool:
        assert spool.replay("page=1") is None


@pytest.mark.parametrize("change", [{"environment": "production"}, {"key": "live"}])
def test_a_spool_of_another_key_or_environment_is_not_resumed(tmp_path: Path, change: dict[str, str]) -> None:
    def folder(environment: str = "sandbox", key: str = "brand_test_abc") -> SpoolFolder:
        return SpoolFolder(tmp_path / "s", {"host": "a", "environment": environment}, key)

    with closing(folder().sweep(1)) as spool:
        spool.write("page=1", b"x")
    with closing(folder().sweep(1)) as spool:
        assert spool.replay("page=1") == b"x"
    with closing(folder(**change).sweep(1)) as spool:
        assert spool.replay("page=1") is None


def test_no_digest_of_a_key_can_be_compared(tmp_path: Path) -> None:
    notes = []
    for name in ("a", "b"):
        SpoolFolder(tmp_path / name, {}, "brand_live_secret")
        notes.append((tmp_path / name / "walk.json").read_text())
    digests = [json.loads(note)["key_digest"] for note in notes]
    assert digests[0] != digests[1]
    for algorithm in ("md5", "sha1", "sha256", "sha512", "blake2b"):
        assert hashlib.new(algorithm, b"brand_live_secret").hexdigest() not in "".join(notes)
    assert "secret" not in "".join(notes)
