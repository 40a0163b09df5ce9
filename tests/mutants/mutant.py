"""A planted bug: what it breaks, where, and the tests that must fail."""

from __future__ import annotations

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
        before: a snippet that occurs exactly once in the file.
        after: what replaces it.
        tests: arguments of pytest that select the tests, at least one of which must fail.
    """

    name: str
    file: str
    before: str
    after: str
    tests: str

    def patched(self, checkout: Path) -> str:
        """The text of the file with the bug in it.

        Raises:
            PatchError: the snippet is not in the file exactly once, or the result is not Python.
        """
        try:
            text = (checkout / self.file).read_text("utf-8")
        except FileNotFoundError:
            raise PatchError(f"{self.name}: there is no {self.file}: name the file that has the code now") from None
        count = text.count(self.before)
        if count != 1:
            words = f"{self.name}: {self.file} contains the snippet {count} times: adapt the patch to the code"
            raise PatchError(f"{words}\n{self.before}")
        patched = text.replace(self.before, self.after)
        try:
            if self.file.endswith(".py"):
                compile(patched, self.file, "exec")
        except SyntaxError as error:
            raise PatchError(f"{self.name}: the patch is not Python: {error}") from None
        return patched
