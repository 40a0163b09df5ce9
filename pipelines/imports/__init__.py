"""Import: a file and its mapping become checked inputs of the interface, rejected inputs and skipped lines.

In: a file that `sources.files` reads, and a mapping. Out: a stream in the file's order, the same on every iteration.
No body contains a password, and no reject reason contains a cell's value.
"""

from __future__ import annotations

from orderbridge.pipelines.imports.inputs import Inputs
from orderbridge.pipelines.imports.model import (
    OtherCurrency,
    Problem,
    ReadyInputs,
    RejectedInput,
    SkippedLine,
)
from orderbridge.pipelines.imports.open import open_inputs

__all__ = [
    "Inputs",
    "OtherCurrency",
    "Problem",
    "ReadyInputs",
    "RejectedInput",
    "SkippedLine",
    "open_inputs",
]
