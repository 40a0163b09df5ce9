"""A planted bug: what it breaks, where, and the tests that must fail.

The catalogues are the text files of this folder. An entry is its name, the file and the arguments of pytest on one
line, then whole lines of the file, before (`-`) and after (`+`):

    * an-ambiguous-number-is-guessed @ transforms/numbers.py: tests/transforms/test_numbers.py
    -            return "ambiguous"
    +            return "comma"
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


class PatchError(Exception):
    """A patch cannot be applied, or its tests cannot be judged: the catalogue is wrong, not the product."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A patch that breaks one promise.

    Attributes:
        name: what is wrong once it is applied, in a few words joined by hyphens.
        file: the patched file, from the root of the checkout.
        tests: arguments of pytest that select the tests, at least one of which must fail.
        before: lines that occur exactly once in the file.
        after: what replaces them; empty: nothing.
    """

    name: str
    file: str
    tests: str
    before: str
    after: str

    def patched(self, checkout: Path) -> str:
        """The text of the file with the bug in it.

        Raises:
            PatchError: the lines are not in the file exactly once, or the result is not Python.
        """
        try:
            text = f"\n{(checkout / self.file).read_text('utf-8')}"
        except FileNotFoundError:
            raise PatchError(f"{self.name}: there is no {self.file}: name the file that has the code now") from None
        count = text.count(f"\n{self.before}")
        if count != 1:
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
        before, after = ("".join(f"{line[1:]}\n" for line in lines if line[:1] == sign) for sign in "-+")
        if not (colon and before) or any(line[:1] not in ("-", "+") for line in lines):
            raise PatchError(f"{catalogue.name}: {name} is not a name, a place and lines")
        yield Mutant(name, file, tests, before, after)
