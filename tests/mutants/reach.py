"""Which tests reach which lines of a few modules, and how long each takes: a run of pytest in a process of its own.

In: files of tests, those that matter most first, and the modules. Out: a JSON file. The first test that ends after the
given seconds is the last one. Seconds are those of CPU: a busy machine measures the same tests.

    python -m tests.mutants.reach OUTPUT SECONDS MODULES TESTS

MODULES and TESTS are paths, joined by spaces. What another process runs reaches nothing.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest
from coverage import Coverage


class Reach:
    """A plugin that measures each test.

    Attributes:
        seconds: of each test.
    """

    def __init__(self, modules: list[str], seconds_max: float) -> None:
        self.seconds: dict[str, float] = {}
        self._modules = modules
        self._until = _cpu_s() + seconds_max
        self._coverage = Coverage(data_file=None, include=modules)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        """Measures one test; its set-up too."""
        began = _cpu_s()
        self._coverage.start()
        self._coverage.switch_context(item.nodeid)
        try:
            return (yield)
        finally:
            self._coverage.stop()
            self.seconds[item.nodeid] = _cpu_s() - began
            if _cpu_s() > self._until:
                item.session.shouldstop = "the time for measuring is over"

    def lines(self) -> dict[str, dict[int, list[str]]]:
        """The tests that reach each line, by module."""
        data = self._coverage.get_data()
        return {module: data.contexts_by_lineno(module) for module in self._modules}


def _cpu_s() -> float:
    """The CPU time of this process and of those that it has waited for."""
    return sum(os.times()[:4])


def main(output: str, seconds_max: str, modules: str, tests: str) -> int:
    """Runs the tests and writes the file. Returns the exit code of pytest."""
    reach = Reach(modules.split(), float(seconds_max))
    code = pytest.main(["-q", "-n0", "-p", "no:cacheprovider", *tests.split()], [reach])
    Path(output).write_text(json.dumps({"seconds": reach.seconds, "lines": reach.lines()}))
    return 0 if reach.seconds and code == pytest.ExitCode.INTERRUPTED else int(code)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
