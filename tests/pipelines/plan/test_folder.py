from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from orderbridge.pipelines.plan.folder import HIDDEN, hidden_folder, publish_folder
from orderbridge.pipelines.plan.model import Plan, file_sha256
from orderbridge.sources.disk import create_private
from orderbridge.sources.errors import UsageError
from tests.pipelines.push.plans import altered, customer, write_plan


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def publish(parent: Path, fault: BaseException | None = None) -> bool:
    """Whether a plan of one file is new."""
    with hidden_folder(parent) as folder:
        create_private(folder / "plan.json").close()
        assert not (parent / "plan" / "plan.json").exists() or names(folder) == ["plan.json"]
        if fault is not None:
            raise fault
        return publish_folder(folder, parent / "plan")


def test_a_plan_appears_once_whole_synced_and_for_its_owner_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced: list[tuple[str, bool]] = []
    target = tmp_path / "plan"
    monkeypatch.setattr(
        "orderbridge.pipelines.plan.folder.sync",
        lambda path: synced.append((path.name, target.exists())),
    )
    assert publish(tmp_path)
    *files, folder, parent = synced
    assert sorted(files) == [(".gitignore", False), ("plan.json", False)]
    assert (folder[0].startswith(HIDDEN), folder[1], parent) == (True, False, (tmp_path.name, True))
    assert [path.stat().st_mode & 0o777 for path in (target, target / "plan.json")] == [
        0o700,
        0o600,
    ]
    (target / "results").mkdir()  # of a push
    assert not publish(tmp_path), "the very same plan is there already"
    assert names(tmp_path) == ["plan"]


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (ZeroDivisionError("own"), "own"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left.*\n.*Free space"),
    ],
)
def test_nothing_is_left_of_a_plan_that_failed(
    tmp_path: Path, fault: BaseException, words: str
) -> None:
    with pytest.raises((ZeroDivisionError, UsageError), match=words):
        publish(tmp_path, fault)
    assert not names(tmp_path)
    with pytest.raises(UsageError, match=r"no plan can be written(.|\n)*--out"):
        publish(tmp_path / "no")


@pytest.mark.parametrize("there", ["other", "empty", "dangling"])
def test_what_lies_there_is_never_written_to(tmp_path: Path, there: str) -> None:
    target = tmp_path / "plan"
    if there == "dangling":
        target.symlink_to(tmp_path / "nowhere")
    else:
        target.mkdir()
        if there == "other":
            (target / "plan.json").write_text("two")
    before = sorted(path.name for path in tmp_path.rglob("*"))
    with pytest.raises(UsageError, match=r"exists already, with other content\n.* not exist yet"):
        publish(tmp_path)
    assert sorted(path.name for path in tmp_path.rglob("*")) == before


def test_what_a_killed_plan_left_is_removed_and_what_a_living_one_writes_is_not(
    tmp_path: Path,
) -> None:
    (left := tmp_path / f"{HIDDEN}killed").mkdir()
    create_private(left / "plan.json").close()
    with hidden_folder(tmp_path) as one:
        create_private(one / "plan.json").close()
        assert not left.exists()
        with hidden_folder(tmp_path):
            assert (one / "plan.json").exists()


def test_a_plan_of_version_0_1_is_for_version_0_2(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "plan", "http://127.0.0.1:1", [customer(1)])
    altered(folder, mapping_toml="", told="kind = 'customers'")
    with pytest.raises(UsageError, match=r"made by orderbridge 0\.1\n .*orderbridge 0\.2"):
        Plan(folder)


def test_a_plan_is_looked_for_in_the_project_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_plan(tmp_path / "plan", "http://127.0.0.1:1", [customer(1)])
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)
    monkeypatch.setenv("DLT_PROJECT_DIR", str(tmp_path))
    assert Plan(Path("plan")).folder == tmp_path / "plan"
    with pytest.raises(UsageError, match=f"{tmp_path}/none is not a plan"):
        Plan(Path("none"))


@pytest.mark.parametrize("delimiter", [7, [";"], ";;", "\n"])
def test_a_plan_whose_results_could_not_be_written_is_refused_before_the_push(
    tmp_path: Path, delimiter: object
) -> None:
    folder = write_plan(tmp_path / "plan", "http://127.0.0.1:1", [customer(1)])
    altered(folder, format={"delimiter": delimiter})
    with pytest.raises(UsageError, match=r"plan\.json was changed"):
        Plan(folder)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("plan.json", b'{"a":' * 20_000),
        ("operations.jsonl", b"[" * 20_000),
        ("lines.csv", b"a,b,c,d,e,f\n" + b"9" * 5000 + b",b,,d,e,f\n"),
        ("lines.csv", b"\xff\n\xff\n"),
    ],
)
def test_a_plan_beyond_what_a_parser_handles_was_changed(
    tmp_path: Path, name: str, content: bytes
) -> None:
    folder = write_plan(tmp_path / "plan", "http://127.0.0.1:1", [customer(1)])
    (folder / name).write_bytes(content)
    if name != "plan.json":  # whoever makes a plan can hash it too
        altered(folder, **{f"{name.partition('.')[0]}_sha256": file_sha256(folder / name)})
    with pytest.raises(UsageError, match=f"{name} was changed") as caught:  # noqa: PT012 # opened and read
        plan = Plan(folder)
        list(plan.operations())
        list(plan.unsent_lines())
    assert caught.value.exit_code == 2
