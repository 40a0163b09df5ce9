"""Small projects of old versions, committed: the ledger as SQL, everything else compressed.

In: a project that a version made against a platform at a fixed address (hashes in the ledger contain it). Out: files in
`projects/`; and from them the project again, in another folder, with its platform. `python -m tests.upgrades --pack`
writes them anew.
"""

from __future__ import annotations

import json
import lzma
import sqlite3
import tarfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Final

from tests.upgrades.platform import Platform, serve

PROJECTS: Final = Path(__file__).parent / "projects"
ADDRESS: Final = ("127.84.71.3", 8471)
"""On loopback, where nothing else listens."""
COMMITTED: Final = {
    "0.2.0-e5cf1fa9": "plain",
    "0.2.0-4d4c37f8": "plain",
    "0.2.0-19099f73": "net",
    "0.3.0-ad26ab6f": "net",
}
"""The shop of each project. 4d4c37f8 is the first commit with version 4 of the ledger, which lacked a column."""
_FOLDER: Final = "/srv/shop"
"""Stands for the folder of the project in ledger and plans."""
_LEDGER: Final = "ledger.sqlite"
_PLATFORM: Final = "platform.json"
_LEFT_OUT: Final = (".ledger.sqlite.lock", _LEDGER)


def pack(project: Path, platform: Platform, name: str) -> None:
    """Writes a project and what its platform has as the fixture of this name."""
    target = PROJECTS / name
    target.mkdir(parents=True, exist_ok=True)
    with closing(sqlite3.connect(project / _LEDGER)) as ledger:
        (version,) = ledger.execute("PRAGMA user_version").fetchone()
        statements = [*ledger.iterdump(), f"PRAGMA user_version = {version};", ""]
    text = "\n".join(statements).replace(str(project), _FOLDER)
    (target / "ledger.sql").write_text(text, "utf-8")
    applied = [[*write, count] for write, count in platform.applied.items()]
    content = json.dumps({"lists": platform.lists, "applied": applied})
    (project / _PLATFORM).write_text(content, "utf-8")
    for manifest in project.glob("plan-*/plan.json"):
        manifest.write_text(manifest.read_text("utf-8").replace(str(project), _FOLDER), "utf-8")
    files = [path for path in sorted(project.rglob("*")) if path.is_file()]
    with (
        lzma.open(target / "project.tar.xz", "wb", preset=9 | lzma.PRESET_EXTREME) as compressed,
        tarfile.open(fileobj=compressed, mode="w") as archive,
    ):
        for path in files:
            if path.name not in _LEFT_OUT:
                archive.add(path, path.relative_to(project), filter=_anonymous)


def _anonymous(member: tarfile.TarInfo) -> tarfile.TarInfo:
    """A member without an owner."""
    member.uid = member.gid = 0
    member.uname = member.gname = ""
    return member


@contextmanager
def unpacked(name: str, project: Path) -> Iterator[Platform]:
    """A project in a new folder, and its platform while the block runs."""
    project.mkdir(mode=0o700)
    with tarfile.open(PROJECTS / name / "project.tar.xz") as archive:
        archive.extractall(project, filter="data")
    ledger_file(name, project / _LEDGER)
    for manifest in project.glob("plan-*/plan.json"):
        manifest.write_text(manifest.read_text("utf-8").replace(_FOLDER, str(project)), "utf-8")
    had = json.loads((project / _PLATFORM).read_text("utf-8"))
    with serve(had["lists"], ADDRESS) as platform:
        platform.applied = Counter({(path, body): count for path, body, count in had["applied"]})
        yield platform


def ledger_file(name: str, file: Path) -> None:
    """Makes the ledger of a fixture, with its plans beside it."""
    text = (PROJECTS / name / "ledger.sql").read_text("utf-8")
    file.touch(mode=0o600)
    with closing(sqlite3.connect(file)) as ledger:
        ledger.executescript(text.replace(_FOLDER, str(file.parent)))
