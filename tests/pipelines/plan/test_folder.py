from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from pipelines.plan.folder import HIDDEN, hidden_folder, publish_folder
from pipelines.plan.model import Plan, file_sha256
from sources.disk import create_private
from sources.errors import UsageError
from tests.pipelines.push.plans import customer, write_plan


def filled(folder: Path, text: str = "one") -> None:
    with create_private(folder / "plan.json") as out:
        out.write(text.encode())


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def test_a_plan_appears_whole_and_for_its_owner_alone(tmp_path: Path) -> None:
    with hidden_folder(tmp_path) as folder:
        filled(folder)
        assert not (tmp_path / "plan").exists()
        assert publish_folder(folder, tmp_path / "plan")
    assert names(tmp_path) == ["plan"]
    assert (tmp_path / "plan").stat().st_mode & 0o777 == 0o700
    assert (tmp_path / "plan" / "plan.json").stat().st_mode & 0o777 == 0o600


def test_a_plan_is_on_the_disk_before_it_has_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[tuple[str, bool]] = []
    target = tmp_path / "plan"
    monkeypatch.setattr("pipelines.plan.folder.sync", lambda path: synced.append((path.name, target.exists())))
    with hidden_folder(tmp_path) as folder:
        filled(folder)
        publish_folder(folder, target)
    assert synced == [("plan.json", False), (folder.name, False), (tmp_path.name, True)]


def test_nothing_is_left_of_a_plan_that_failed(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), hidden_folder(tmp_path) as folder:  # noqa: PT012 # fills, then fails
        filled(folder)
        raise ZeroDivisionError
    assert not names(tmp_path)


def test_the_very_same_plan_is_there_already(tmp_path: Path) -> None:
    for is_new in (True, False):
        with hidden_folder(tmp_path) as folder:
            filled(folder)
            assert publish_folder(folder, tmp_path / "plan") is is_new
        (tmp_path / "plan" / "results").mkdir(exist_ok=True)  # of a push
    assert names(tmp_path) == ["plan"]


@pytest.mark.parametrize("there", ["other", "file", "empty", "dangling"])
def test_what_lies_there_is_never_written_to(tmp_path: Path, there: str) -> None:
    target = tmp_path / "plan"
    if there == "file":
        target.write_text("mine")
    elif there == "dangling":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
        if there == "other":
            (target / "plan.json").write_text("two")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with hidden_folder(tmp_path) as folder:
        filled(folder)
        with pytest.raises(UsageError, match="exists already, with other content"):
            publish_folder(folder, target)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_a_parent_that_is_not_there_is_reported(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no plan can be written") as reported, hidden_folder(tmp_path / "no"):
        pass
    assert "--out" in reported.value.hint


def test_a_full_disk_is_reported_and_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No space left") as reported, hidden_folder(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    assert "Free space" in reported.value.hint
    assert not names(tmp_path)


def test_what_a_killed_plan_left_is_removed_and_what_a_living_one_writes_is_not(tmp_path: Path) -> None:
    script = (
        "import os, sys; from pathlib import Path\n"
        "from pipelines.plan.folder import *; from sources.disk import create_private\n"
        "with hidden_folder(Path(sys.argv[1])) as folder:\n"
        "    create_private(folder / 'plan.json').close()\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], cwd=Path(__file__).parents[3], check=False)
    (left,) = tmp_path.iterdir()
    assert left.name.startswith(HIDDEN)
    with hidden_folder(tmp_path) as one:
        filled(one)
        assert not left.exists()
        with hidden_folder(tmp_path):
            assert (one / "plan.json").exists()


def test_a_plan_is_looked_for_in_the_project_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_plan(tmp_path / "plan", "http://127.0.0.1:1", [customer(1)])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    assert Plan(Path("plan")).folder == tmp_path / "plan"
    with pytest.raises(UsageError, match=f"{tmp_path}/none is not a plan"):
        Plan(Path("none"))


def read_whole(folder: Path) -> None:
    plan = Plan(folder)
    list(plan.operations())
    list(plan.unsent_lines())


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plan.json", b'{"a":' * 20_000),
        ("plan.json", b'{"lines":' + b"9" * 5000 + b"}"),
        ("plan.json", b"\xff"),
        ("operations.jsonl", b"[" * 20_000),
        ("operations.jsonl", b"{}\n"),
        ("lines.csv", b"line\nx\n"),
        ("lines.csv", b"a,b,c,d,e,f\n" + b"9" * 5000 + b",b,,d,e,f\n"),
        ("lines.csv", b"\xff\n\xff\n"),
    ],
)
def test_a_plan_beyond_what_a_parser_handles_was_changed(tmp_path: Path, name: str, content: bytes) -> None:
    folder = write_plan(tmp_path / "plan", "http://127.0.0.1:1", [customer(1)])
    (folder / name).write_bytes(content)
    if name != "plan.json":  # whoever makes a plan can hash it too
        manifest = json.loads((folder / "plan.json").read_bytes())
        manifest[f"{name.partition('.')[0]}_sha256"] = file_sha256(folder / name)
        (folder / "plan.json").write_text(json.dumps(manifest))
    with pytest.raises(UsageError, match=f"{name} was changed") as caught:
        read_whole(folder)
    assert caught.value.exit_code == 2
