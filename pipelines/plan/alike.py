"""New customers whose code a customer of the platform has in another spelling: perhaps it is the same one.

In: the keys of a create, and the customers that the platform has now. Out: whether it is one of them, as a person has
said in a review; a pair that nobody has reviewed holds the create back, since a create cannot be undone. Two different
e-mail addresses tell customers apart. Plan and push ask alike: the platform's list is another one by then.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import msgspec

from orderbridge.pipelines.ledger.keys import loose_code, search_key
from orderbridge.pipelines.plan.model import file_sha256, read_evidence
from orderbridge.pipelines.warehouse.answers.reviews import SEPARATOR, Review
from orderbridge.sources.settings import project_file

CODE: Final = "nearly_known"
ALIKE_FILE: Final = ".alike.json"
_CODES: Final = ("erpCode", "loginCode")
Customer = Mapping[str, Any]
"""Keys of a customer of the platform, with the interface's field names and `id`."""


class AlikePair(msgspec.Struct, frozen=True):
    """A create and a customer with its code in another spelling.

    Attributes:
        pair: as reviews name it.
        field: of the code.
        written, known: the code in the file, and on the platform.
        customer: the platform's id.
        line: the first line of the create; 0 where it is not known.
    """

    pair: str
    field: str
    written: str
    known: str
    customer: str
    line: int = 0

    @property
    def question(self) -> str:
        """The id of the question whether the two are one customer."""
        line_key, _, customer_id = self.pair.rpartition(SEPARATOR)
        return f"match:{line_key}/{customer_id}"

    @property
    def words(self) -> str:
        """Why the create is held, and what to do."""
        command = f"orderbridge answer {shlex.quote(self.question)}"
        return (
            f"{self.field} {self.written} may be the customer {self.customer}, whose code is {self.known} on the "
            f"platform. If it is the same: {command} same. If it is another one: {command} different"
        )


class Likeness(NamedTuple):
    """What is known about a create: the customer that it is, or the pair that somebody has to review first."""

    customer: str | None = None
    open: AlikePair | None = None


def likeness(
    keys: Mapping[str, str], alike: Iterable[Customer], reviews: Mapping[str, Review]
) -> Likeness:
    """Compares a create with the customers that have its code in another spelling."""
    unreviewed: list[AlikePair] = []
    for pair in alike_pairs(keys, alike):
        review = reviews.get(pair.pair)
        if review is None:
            unreviewed.append(pair)
        elif review.decision == "accept":
            return Likeness(customer=pair.customer)
    return Likeness(open=unreviewed[0] if unreviewed else None)


def alike_pairs(keys: Mapping[str, str], customers: Iterable[Customer]) -> Iterator[AlikePair]:
    """A create with each customer that has its code in another spelling and is not told apart by its address."""
    name_of_line = keys.get("erpCode") or keys.get("loginCode") or ""
    for customer in customers:
        if _are_told_apart(keys, customer):
            continue
        for field in _CODES:
            written, known = keys.get(field) or "", customer.get(field) or ""
            if loose_code(written) and loose_code(written) == loose_code(known):
                record_id = str(customer["id"])
                pair = f"code {name_of_line.strip()}{SEPARATOR}{record_id}"
                yield AlikePair(pair, field, written, known, record_id)
                break


def _are_told_apart(keys: Mapping[str, str], customer: Customer) -> bool:
    """Whether both have an e-mail address, and they differ."""
    addresses = [search_key("email", one.get("email") or "") for one in (keys, customer)]
    return all(addresses) and addresses[0] != addresses[1]


class KeptPairs(msgspec.Struct, frozen=True):
    """What a plan keeps: the path and SHA-256 of its input, and the pairs that hold lines of it back."""

    path: str
    sha256: str
    pairs: list[AlikePair]


def kept_pairs(folder: Path | None = None) -> list[KeptPairs]:
    """What the plan in a folder has kept; without one, what all plans of the project have whose file is as it was."""
    paths = sorted(project_file("").glob(f"plan-*/{ALIKE_FILE}"))
    if folder is not None:
        paths = [folder / ALIKE_FILE]
    found = [kept for path in paths if (kept := read_evidence(path, KeptPairs)) is not None]
    if folder is not None:
        return found
    return [one for one in found if file_sha256(Path(one.path)) == one.sha256]
