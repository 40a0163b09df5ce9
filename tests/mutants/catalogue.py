"""The catalogue of planted bugs: the text files of this folder.

An entry is its name, the file and the arguments of pytest on one line, then whole lines of the file, before (`-`) and
after (`+`):

    * an-ambiguous-number-is-guessed @ transforms/values/numbers.py: tests/transforms/test_numbers.py
    -            return "ambiguous"
    +            return "comma"
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.mutants.planting import PatchError


@dataclass(frozen=True, slots=True)
class Mutant:
    """A patch that breaks one promise: `before` are lines that the file has exactly once, `after` replaces them."""

    name: str
    file: str
    tests: str
    before: str
    after: str

    @property
    def timeout_s(self) -> float:
        """See `Bug`."""
        return 600.0

    @property
    def arguments(self) -> list[str]:
        """See `Bug`."""
        files, has_expression, expression = self.tests.partition(" -k ")
        return [*files.split(), *(["-k", expression] if has_expression else [])]

    def patched(self, checkout: Path) -> str:
        """The text of the file with the bug in it. Raises PatchError: the lines are not in it exactly once."""
        try:
            text = f"\n{(checkout / self.file).read_text('utf-8')}"
        except FileNotFoundError:
            raise PatchError(
                f"{self.name}: there is no {self.file}: name the file that has the code now"
            ) from None
        if (count := text.count(f"\n{self.before}")) != 1:
            words = f"{self.name}: {self.file} contains the lines {count} times: adapt the patch to the code"
            raise PatchError(f"{words}\n{self.before}")
        patched = text.replace(f"\n{self.before}", f"\n{self.after}").removeprefix("\n")
        try:
            if self.file.endswith(".py"):
                compile(patched, self.file, "exec")
        except SyntaxError as error:
            raise PatchError(f"{self.name}: the patch is not Python: {error}") from None
        return patched


def read_mutants(catalogue: Path) -> Iterator[Mutant]:
    """The entries of a file, in their order. Raises PatchError: one is not in the form that the module shows."""
    for entry in catalogue.read_text("utf-8").split("\n* ")[1:]:
        head, *lines = entry.rstrip("\n").split("\n")
        name, _, place = head.partition(" @ ")
        file, colon, tests = place.partition(": ")
        before, after = (
            "".join(f"{line[1:]}\n" for line in lines if line[:1] == sign) for sign in "-+"
        )
        if not (colon and before) or any(line[:1] not in ("-", "+") for line in lines):
            raise PatchError(f"{catalogue.name}: {name} is not a name, a place and lines")
        yield Mutant(name, file, tests, before, after)
