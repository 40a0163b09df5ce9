"""A file and its mapping to inputs of the interface: ready ones, rejected ones with their reasons, skipped lines.

In: a file that the intake reads, and which column is which field. Out: a stream in the file's order, the same at each
walk. No body holds a password, and no reason holds what a cell says.
"""

from __future__ import annotations

from pipelines.imports.columns import Clean
from pipelines.imports.model import Problem, ReadyInput, RejectedInput, SkippedLine
from pipelines.imports.opening import open_inputs
from pipelines.imports.walk import Inputs

__all__ = ["Clean", "Inputs", "Problem", "ReadyInput", "RejectedInput", "SkippedLine", "open_inputs"]
