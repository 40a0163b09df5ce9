"""Mutants of the lines that commits changed, each judged by the tests that reach its line.

In: commits, and tests (default: those of the commits, those in the folders of the changed modules, and others that
import one of them). Out: `ChangeMutant`s. Which tests reach a line is measured for two minutes (see `reach.py`). The
quickest of them that together take half a minute must notice a mutant; a command in another process reaches nothing.
"""

from __future__ import annotations

import ast
import json
import random
import re
import subprocess
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

from tests.mutants.operators import Edit, edits
from tests.mutants.planting import CHECKOUT, PatchError

_PACKAGES: Final = ("sources", "transforms", "pipelines")
_SUFFIXES: Final = (".py", ".sql", ".toml")
_MEASURE_S: Final = 120
"""Seconds of CPU for which each job measures."""
_TESTS_S: Final = 30.0
"""Tests of a line that together take longer are not run, the slowest of them."""
_START_S: Final = 120.0
"""A run of tests may take so long besides, and ten times as long as they took without a bug."""


@dataclass(frozen=True, slots=True)
class Reached:
    """What the tests reach.

    Attributes:
        lines: the tests that reach each line, by module.
        seconds: what each test takes.
    """

    lines: dict[str, dict[int, set[str]]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ChangeMutant:
    """An edit of a changed line, and the tests that reach it."""

    file: str
    edit: Edit
    arguments: Sequence[str]
    timeout_s: float

    @property
    def name(self) -> str:
        """See `Bug`."""
        return f"{self.file}:{self.edit.line}: {self.edit.words}"

    def patched(self, checkout: Path) -> str:
        """See `Bug`."""
        return self.edit.text


def change_mutants(revision: str, tests: Sequence[str], most: int, jobs: int) -> list[ChangeMutant]:
    """The mutants of the lines that a commit, or the commits of a range, changed and that are still there.

    Args:
        revision: as `git rev-list` takes it; one commit is that commit alone.
        tests: folders or files of tests.
        most: a random choice of so many; the same for the same commits.
        jobs: processes that run tests.

    Raises:
        PatchError: git does not know the commits, or the tests fail without any bug.
    """
    changed = dict(_changed_lines(revision))
    made = [
        (file, edit)
        for file, lines in changed.items()
        for edit in edits(
            (CHECKOUT / file).read_text("utf-8"), lines, is_python=file.endswith(".py")
        )
    ]
    if len(made) > most:
        made = sorted(random.Random(revision).sample(made, most), key=lambda one: one[0])
    if not made:
        return []
    readers = {file: _readers(file) for file, _ in made}
    modules = sorted({module for of_file in readers.values() for module in of_file})
    reached = _reached(modules, tests or _test_files(revision, modules), jobs)
    print(f"measured {len(reached.seconds)} tests", flush=True)
    return [
        _mutant(file, edit, _tests_of(file, edit, readers[file], reached), reached)
        for file, edit in made
    ]


def _mutant(file: str, edit: Edit, tests: Set[str], reached: Reached) -> ChangeMutant:
    """The mutant with the quickest tests of its line."""
    chosen: list[str] = []
    seconds = 0.0
    for test in sorted(tests, key=lambda test: (reached.seconds[test], test)):
        seconds += reached.seconds[test]
        if chosen and seconds > _TESTS_S:
            break
        chosen.append(test)
    return ChangeMutant(file, edit, chosen, _START_S + 10 * seconds)


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PatchError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def _one(revision: str) -> Sequence[str]:
    return () if ".." in revision else ("--no-walk",)


def _listed(revision: str) -> Sequence[str]:
    """The files that the commits changed."""
    listed = _git("log", *_one(revision), "--name-only", "--format=", revision)
    return sorted({*listed.split("\n")})


def _changed_lines(revision: str) -> Iterator[tuple[str, Set[int]]]:
    """The lines of each file whose last change is in the commits, and that are committed."""
    commits = {*_git("rev-list", *_one(revision), revision).split()}
    for file in _listed(revision):
        is_ours = file.startswith(tuple(f"{name}/" for name in _PACKAGES))
        if not is_ours or not file.endswith(_SUFFIXES) or not (CHECKOUT / file).is_file():
            continue
        blamed = _git("blame", "-l", "-s", "--root", file).splitlines()
        lines = {n for n, line in enumerate(blamed, start=1) if line.split()[0] in commits}
        if lines:
            yield file, lines


def _readers(file: str) -> Sequence[str]:
    """The modules whose tests judge a file: itself, or those that name a file of SQL or data."""
    if file.endswith(".py"):
        return [file]
    named = Path(file).name
    folder = CHECKOUT / Path(file).parts[0]
    return [
        module.relative_to(CHECKOUT).as_posix()
        for module in sorted(folder.rglob("*.py"))
        if named in module.read_text("utf-8")
    ]


def _test_files(revision: str, modules: Sequence[str]) -> list[str]:
    """The files of tests of the commits, then those in the folder of a module, then others that import one."""
    of_commits = set(_listed(revision))
    near = tuple(_mirror(module) for module in modules)
    imports = re.compile("|".join(_import(module) for module in modules))
    ranked: dict[str, tuple[bool, ...]] = {}
    for path in sorted((CHECKOUT / "tests").rglob("test_*.py")):
        file = path.relative_to(CHECKOUT).as_posix()
        is_importer = imports.search(path.read_text("utf-8")) is not None
        kinds = (file in of_commits, file.startswith(near), is_importer)
        if any(kinds):
            ranked[file] = kinds
    return sorted(ranked, key=lambda file: ranked[file], reverse=True)


def _import(module: str) -> str:
    """A regular expression of the statements that import a module."""
    *parents, name = Path(module).with_suffix("").parts
    package = re.escape(".".join(("orderbridge", *parents)))
    return rf"from {package}(\.{name} import| import [^\n]*\b{name}\b)"


def _mirror(module: str) -> str:
    """The folder of tests that mirrors the folder of a module, or the nearest above it."""
    folder = Path("tests", module).parent
    while not (CHECKOUT / folder).is_dir():
        folder = folder.parent
    return f"{folder.as_posix()}/"


def _tests_of(file: str, edit: Edit, readers: Sequence[str], reached: Reached) -> set[str]:
    """The tests that reach the statement of an edit; for a file of SQL or data, any line of its readers."""
    if file not in readers:
        lines = [tests for reader in readers for tests in reached.lines[reader].values()]
        return set().union(*lines)
    of_file = reached.lines[file]
    statements = {edit.statement, *_uses((CHECKOUT / file).read_text("utf-8"), edit.statement)}
    return set().union(*(of_file.get(line, ()) for line in statements))


def _reached(modules: Sequence[str], tests: Sequence[str], jobs: int) -> Reached:
    """Runs the tests, and says which of them reached which lines of the modules."""
    together = Reached({module: defaultdict(set) for module in modules})
    shares = [share for n in range(jobs) if (share := tests[n::jobs])]
    with ThreadPoolExecutor(jobs) as pool:
        for measured in pool.map(partial(_measured, modules), shares):
            together.seconds.update(measured["seconds"])
            for module in modules:
                for line, reaching in measured["lines"][str(CHECKOUT / module)].items():
                    together.lines[module][int(line)].update(filter(None, reaching))
    return together


def _measured(modules: Iterable[str], tests: Iterable[str]) -> Mapping[str, Mapping[str, Any]]:
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        output = Path(folder) / "reached.json"
        paths = " ".join(str(CHECKOUT / module) for module in modules)
        command = [sys.executable, "-m", "tests.mutants.reach", str(output), str(_MEASURE_S)]
        done = subprocess.run(
            [*command, paths, " ".join(tests)],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PatchError(
                f"the tests fail without a bug:\n{done.stdout[-2000:]}{done.stderr[-500:]}"
            )
        measured: Mapping[str, Mapping[str, Any]] = json.loads(output.read_text("utf-8"))
        return measured


def _uses(text: str, statement: int) -> Iterator[int]:
    """The first lines of the statements within functions that use what a module's statement defines."""
    tree = ast.parse(text)
    defined = {
        target.id
        for node in tree.body
        if node.lineno == statement
        for target in ast.walk(node)
        if isinstance(target, ast.Name) and isinstance(target.ctx, ast.Store)
    }
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for one in ast.walk(function):
            if isinstance(one, ast.stmt) and any(
                isinstance(name, ast.Name) and name.id in defined for name in ast.walk(one)
            ):
                yield one.lineno
