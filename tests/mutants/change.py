"""Mutants of the lines that commits changed, each judged by the tests that reach its line.

In: commits, and the folders of tests (default: those that mirror the changed files). Out: `ChangeMutant`s. Which tests
reach a line is measured by coverage.py in one run of these tests; one that runs its command in another process reaches
nothing.
"""

from __future__ import annotations

import ast
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final

from tests.mutants.operators import Edit, edits
from tests.mutants.planting import CHECKOUT, PatchError

_PACKAGES: Final = ("sources", "transforms", "pipelines")
_SUFFIXES: Final = (".py", ".sql", ".toml")
_TESTS_MAX: Final = 60
"""More tests of a line are not run: the first that fails ends a run, and a line that 60 tests pass has survived."""
Reached = Mapping[int, Sequence[str]]
"""The tests that reach each line of a file, as coverage.py names them."""
_CONFIG: Final = "[run]\ndynamic_context = test_function\nsource =\n    {source}\n"


@dataclass(frozen=True, slots=True)
class ChangeMutant:
    """An edit of a changed line, and the tests that reach it."""

    file: str
    edit: Edit
    arguments: Sequence[str]

    @property
    def name(self) -> str:
        """See `Bug`."""
        return f"{self.file}:{self.edit.line}: {self.edit.words}"

    def patched(self, checkout: Path) -> str:
        """See `Bug`."""
        return self.edit.text


def change_mutants(revision: str, tests: Sequence[str], most: int) -> list[ChangeMutant]:
    """The mutants of the lines that a commit, or the commits of a range, changed and that are still there.

    Args:
        revision: as `git rev-list` takes it; one commit is that commit alone.
        tests: folders or files of tests.
        most: a random choice of so many; the same for the same commits.

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
    chosen = [*tests] or sorted({_mirror(file) for file, _ in made})
    if not made:
        return []
    modules = {file for file, _ in made if file.endswith(".py")}
    reached = _reached(modules, chosen)
    return [ChangeMutant(file, edit, _tests_of(file, edit, reached, chosen)) for file, edit in made]


def _git(*arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=False
    )
    if done.returncode:
        raise PatchError(f"git {arguments[0]}: {done.stderr.strip()}")
    return done.stdout


def _changed_lines(revision: str) -> Iterator[tuple[str, Set[int]]]:
    """The lines of each file whose last change is in the commits, and that are committed."""
    one = [] if ".." in revision else ["--no-walk"]
    commits = {*_git("rev-list", *one, revision).split()}
    listed = _git("log", *one, "--name-only", "--format=", revision)
    for file in sorted({*listed.split("\n")}):
        is_ours = file.startswith(tuple(f"{name}/" for name in _PACKAGES))
        if not is_ours or not file.endswith(_SUFFIXES) or not (CHECKOUT / file).is_file():
            continue
        blamed = _git("blame", "-l", "-s", "--root", file).splitlines()
        lines = {n for n, line in enumerate(blamed, start=1) if line.split()[0] in commits}
        if lines:
            yield file, lines


def _mirror(file: str) -> str:
    """The folder of tests that mirrors the folder of a file, or the nearest above it."""
    folder = Path("tests", file).parent
    while not (CHECKOUT / folder).is_dir():
        folder = folder.parent
    return folder.as_posix()


def _tests_of(
    file: str, edit: Edit, reached: Mapping[str, Reached], tests: Sequence[str]
) -> Sequence[str]:
    """The arguments of pytest for an edit: the tests that reach its statement, or all where none is known to."""
    if file not in reached:
        return tests
    lines = {edit.statement, *_uses((CHECKOUT / file).read_text("utf-8"), edit.statement)}
    contexts = {context for line in lines for context in reached[file].get(line, ()) if context}
    return [*islice(map(_test_of, sorted(contexts)), _TESTS_MAX)] or tests


def _reached(files: Set[str], tests: Sequence[str]) -> dict[str, Reached]:
    """Runs the tests, and says which of them reached which lines of the files."""
    from coverage import CoverageData

    with tempfile.TemporaryDirectory(prefix="mutants-") as folder:
        config = Path(folder) / "coverage.ini"
        data = Path(folder) / "coverage"
        source = "\n    ".join(str(CHECKOUT / name) for name in _PACKAGES)
        config.write_text(_CONFIG.format(source=source), "utf-8")
        coverage = ["coverage", "run", f"--rcfile={config}", f"--data-file={data}"]
        pytest = ["pytest", "-q", "-n0", "-p", "no:cacheprovider", *tests]
        done = subprocess.run(
            [sys.executable, "-m", *coverage, "-m", *pytest],
            cwd=CHECKOUT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode:
            raise PatchError(
                f"the tests fail without a bug:\n{done.stdout[-2000:]}{done.stderr[-500:]}"
            )
        covered = CoverageData(str(data))
        covered.read()
        return {file: covered.contexts_by_lineno(str(CHECKOUT / file)) for file in files}


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


def _test_of(context: str) -> str:
    """`tests.transforms.test_keys.test_x` as pytest names it."""
    parts = context.split(".")
    for end in range(len(parts), 0, -1):
        path = Path(*parts[:end]).with_suffix(".py")
        if (CHECKOUT / path).is_file():
            return "::".join([path.as_posix(), *parts[end:]])
    raise PatchError(f"there is no test {context}")
