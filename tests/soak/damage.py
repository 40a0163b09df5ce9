"""Damaged files of a project: ledger, warehouse, plan folders, notes. No command ends with the exit code of a bug.

A seed makes a project, and damages some of its files, one after the other. Commands that read a damaged file run in
another process, which is started anew once one has ended it. The judge: the exit code is one that means something else
than a bug, and no signal of the system ended the process.
"""

from __future__ import annotations

import gc
import json
import os
import random
import re
import shutil
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from pathlib import Path
from typing import Any, Final
from unittest import mock

from orderbridge.sources.errors import ExitCode
from tests.pipelines.bridge import FORKS, Bridge, bridge, command
from tests.soak.walks import Outcome, folder_in_memory

PAGE: Final = 4096
SECONDS: Final = 120
FILES: Final = 20
"""Damaged files of a seed."""
COMMANDS_OF_FILE: Final = 3
NO_BUG: Final = frozenset(map(int, ExitCode)) - {ExitCode.BUG, ExitCode.STOPPED}
HISTORY: Final = (
    "init --sandbox",
    "run",
    "schema orders --write",
    "accept orders.values_gone --why agreed",
    "answer reconcile.order_total total",
    "import customers c.csv --yes --passwords file",
    "import variants v.csv --yes",
    "report",
    "plan variants v.csv --out plan-open",
    "run",
)
"""The commands that make the project."""
WAREHOUSE: Final = (
    "status",
    "report",
    "questions",
    "export bi.orders --out o.csv",
    "reconcile",
    "views",
    "diff",
    "check",
    "plan variants v.csv --out p",
)
LEDGER: Final = (
    "status",
    "questions",
    "push PLAN --yes",
    "settle PLAN",
    "pull price_lists",
    "check",
    "plan variants v.csv --out p",
)
PLAN: Final = ("status", "push PLAN --yes", "settle PLAN", "verify PLAN", "questions")
SETTINGS: Final = ("status", "questions", "reconcile", "import variants v.csv --yes")
INPUT: Final = ("plan variants v.csv --out p", "import variants v.csv --yes", "preview c.csv")
READERS: Final[tuple[tuple[str, tuple[str, ...]], ...]] = (
    ("warehouse.duckdb", WAREHOUSE),
    ("ledger.sqlite", LEDGER),
    ("warehouse-versions/*", ("diff", "diff", "run")),
    (".ledger.sqlite.mark", LEDGER),
    ("plan-*/*", PLAN),
    ("plan-*/plan.json", PLAN),
    ("plan-*/operations.jsonl", PLAN),
    ("plan-*/.*", PLAN),
    ("plan-*/results/*", PLAN),
    ("warehouse.duckdb.*", ("status", "pull price_lists", "questions")),
    (".dlt/*.toml", SETTINGS),
    ("mappings/*", SETTINGS),
    ("*.csv", INPUT),
)
"""Files of a project, and commands that read them. PLAN is the folder of a plan."""
WORDS: Final = (b"", b"7", b"null", b"-1", b"true", b"x" * 50, b"99999999999999999999")
VALUES: Final[tuple[Any, ...]] = (
    None,
    7,
    -1,
    1.5,
    "x",
    "",
    [],
    {},
    True,
    [[]],
    10**30,
    "2026-13-45T99:00:00",
)


def _a_page(data: bytearray, rng: random.Random) -> None:
    """Zeros, or another page, in the place of one."""
    pages = max(1, len(data) // PAGE)
    at, other = (rng.randrange(pages) * PAGE for _ in range(2))
    data[at : at + PAGE] = rng.choice((bytes(PAGE), bytes(data[other : other + PAGE])))


def _bytes(data: bytearray, rng: random.Random) -> None:
    at = rng.randrange(len(data))
    length = rng.choice((1, 4, 16, 64, 512))
    data[at : at + length] = rng.randbytes(len(data[at : at + length]))


def _bits(data: bytearray, rng: random.Random) -> None:
    for _ in range(rng.choice((1, 8, 64))):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)


def _cut(data: bytearray, rng: random.Random) -> None:
    del data[rng.randrange(len(data)) :]


def _zeros(data: bytearray, rng: random.Random) -> None:
    """As a file system leaves a file whose blocks were not written."""
    start = rng.choice((0, 0, len(data) // 2))
    data[start:] = bytes(len(data) - start)


def _magic(data: bytearray, rng: random.Random) -> None:
    """The file begins as one of another program or version does."""
    start = rng.choice((b"SQLite format 3\0", b"PK\3\4", b"\x89PNG\r\n", b"DUCK", bytes(16)))
    at = rng.choice((0, 8))
    data[at : at + len(start)] = start


def _a_word(data: bytearray, rng: random.Random) -> None:
    """A word or number of a text becomes another one, or nothing."""
    words = list(re.finditer(rb"[\w.:+-]+", bytes(data)))
    if words:
        one = rng.choice(words)
        data[one.start() : one.end()] = rng.choice(WORDS)


def _a_value(data: bytearray, rng: random.Random) -> None:
    """A value of a JSON document, or of a line of one, is gone or has another type."""
    lines = bytes(data).split(b"\n")
    number = rng.randrange(len(lines))
    is_document = lines[0].strip() == b"{"
    try:
        document = json.loads(bytes(data) if is_document else lines[number])
    except ValueError:
        _a_word(data, rng)
        return
    if places := list(_places(document)):
        holder, key = rng.choice(places)
        if isinstance(holder, dict) and rng.random() < 0.3:
            del holder[key]
        else:
            holder[key] = rng.choice(VALUES)
    new = json.dumps(document).encode()
    data[:] = new if is_document else b"\n".join([*lines[:number], new, *lines[number + 1 :]])


def _places(value: Any) -> Iterator[tuple[Any, Any]]:
    """Each container of a JSON value with each of its keys."""
    inner: Any = ()
    if isinstance(value, dict):
        inner = value.items()
    elif isinstance(value, list):
        inner = enumerate(value)
    for key, one in inner:
        yield value, key
        yield from _places(one)


OF_PAGES: Final = (_a_page, _bytes, _bits, _cut, _zeros, _magic)
OF_TEXTS: Final = (_bytes, _bits, _cut, _a_word, _a_value, _a_value)
SWAPPED: Final = 0.1
"""Share of files that are not damaged but another file of the project."""


class Process:
    """Runs commands one after the other in a process, which is another one once a command has ended it."""

    def __init__(self) -> None:
        self._process: ForkServerProcess | None = None
        self._pipe: Connection | None = None

    def run(self, arguments: tuple[str, ...], env: dict[str, str], folder: Path) -> tuple[int, str]:
        """The exit code of a command, negative for a signal, and all that it said."""
        if self._process is None or self._pipe is None:
            self._pipe, far = FORKS.Pipe()
            self._process = FORKS.Process(target=_serve, args=(far,), daemon=True)
            self._process.start()
            far.close()
        self._pipe.send((arguments, env, folder))
        try:
            if self._pipe.poll(SECONDS):
                answer: tuple[int, str] = self._pipe.recv()
                return answer
            said = f"no end in {SECONDS} s"
        except EOFError:
            said = "the process ended"
        ended = self._process
        self.close()
        return ended.exitcode or 0, said

    def close(self) -> None:
        """Ends the process."""
        if self._process is not None and self._pipe is not None:
            self._pipe.close()
            self._process.kill()
            self._process.join()
        self._process = None


def _serve(pipe: Connection) -> None:
    """Runs commands until the other end is closed."""
    warnings.resetwarnings()
    warnings.simplefilter("error")
    while True:
        try:
            arguments, env, folder = pipe.recv()
        except EOFError:
            return
        done = command(*arguments, env=env, cwd=folder)
        gc.collect()  # an error keeps what was open
        pipe.send((done.code, done.said))


@dataclass
class Project:
    """A project with a warehouse, a ledger, plans that are done and one that is not."""

    made: Bridge
    kept: Path
    process: Process

    @classmethod
    def build(cls, made: Bridge, kept: Path, process: Process) -> Project:
        folder = made.folder
        customers = [f"E{n};e{n}@example.test;Ana;N{n}\n" for n in range(6)]
        variants = [f"{n};{n};S{n};{n}\n" for n in range(1, 8)]
        (folder / "c.csv").write_text("erpCode;email;firstName;lastName\n" + "".join(customers))
        (folder / "v.csv").write_text("productId;variantId;sku;stock\n" + "".join(variants))
        project = cls(made, kept, process)
        for line in HISTORY:
            code, said = project.command(line)
            if code != ExitCode.DONE:
                raise RuntimeError(
                    f"the project is not made: {line} ended with {code}: {said[-300:]}"
                )
        note = {"message": "m", "hint": "h", "exit_code": 4, "failed_at": "2026-03-02"}
        (folder / "warehouse.duckdb.failed.json").write_text(json.dumps(note))
        shutil.copytree(folder, kept)
        return project

    def command(self, line: str) -> tuple[int, str]:
        """Runs a command. Returns its exit code, and all that it said."""
        env = self.made.environment(SOURCES__LEGACY__LOGIN_MODE="email", WAREHOUSE__KEEP="1")
        return self.process.run(tuple(line.split()), env, self.made.folder)

    def restore(self) -> None:
        """Puts the files back."""
        for path in self.made.folder.iterdir():
            if path.is_dir():
                shutil.rmtree(path)
            else:
                path.unlink()
        shutil.copytree(self.kept, self.made.folder, dirs_exist_ok=True, symlinks=True)


def _kind(said: str, code: int) -> str:
    """Which bug it is: the exception, and the last lines of ours."""
    where = re.findall(r"^ +(\w+\.py:\d+ .*)$", said, re.MULTILINE)
    names = re.findall(r"^ *([\w.]+\.[A-Z]\w+)$", said, re.MULTILINE)
    ours = [one for one in where if not one.startswith(("core.py", "main.py"))]
    return f"exit {code}: {names[-1] if names else said[-300:]} {ours[-4:]}"


def damaged(project: Project, number: int) -> Iterator[str]:
    """The problems of one damaged file."""
    rng = random.Random(number)
    pattern, commands = READERS[number % len(READERS)]
    project.restore()
    found = sorted(project.made.folder.glob(pattern))
    files = [path for path in found if path.is_file() and path.stat().st_size]
    if not files:
        return
    file = rng.choice(files)
    how = _damage(file, project.made.folder, rng)
    plans = sorted(path.name for path in project.made.folder.glob("plan-*"))
    plan = file.parent.name if file.parent.name in plans else rng.choice(plans)
    for line in rng.sample(commands, COMMANDS_OF_FILE):
        code, said = project.command(line.replace("PLAN", plan))
        if code not in NO_BUG:
            yield f"{number}: {file.name} {how}: {line}: {_kind(said, code)}"


def _damage(file: Path, folder: Path, rng: random.Random) -> str:
    """Damages a file, or puts another one in its place. Returns how."""
    if rng.random() < SWAPPED:
        others = sorted(path for path in folder.rglob("*") if path.is_file() and path != file)
        other = rng.choice(others)
        shutil.copyfile(other, file)
        return f"is {other.name}"
    how: Callable[[bytearray, random.Random], None]
    how = rng.choice(OF_PAGES if file.suffix in (".duckdb", ".sqlite", ".xlsx") else OF_TEXTS)
    data = bytearray(file.read_bytes())
    how(data, rng)
    file.write_bytes(data)
    return how.__name__.strip("_")


def damage_seed(seed: int, files: int = FILES) -> Outcome:
    """One project, of which some files are damaged, one after the other."""
    process = Process()
    with (
        mock.patch.dict(os.environ),
        folder_in_memory() as folder,
        bridge(folder, customers=30, orders=30) as made,
    ):
        try:
            project = Project.build(made, folder / "kept", process)
            numbers = range(seed * files, (seed + 1) * files)
            problems = [problem for number in numbers for problem in damaged(project, number)]
        finally:
            process.close()
    return Outcome({"files": files, "bugs": len(problems)}, problems)
