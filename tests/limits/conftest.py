"""Fixtures of other folders that these tests use."""

from tests.pipelines.import_file.conftest import desk
from tests.pipelines.push.conftest import at

__all__ = ["at", "desk"]
