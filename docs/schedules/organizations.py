"""A night of many organizations: runs orderbridge in each project of a folder, some at a time, and prints one summary.

    python organizations.py /srv/projects --at-once 4 --per-host 2

Each folder with a `.dlt` is a project: settings, warehouse and ledger of an organization. Its run is a process of its
own, which sees no settings of the environment, so that nothing is shared and one that fails stops no other. At most
`--at-once` run at the same time, and at most `--per-host` of those that read the same host. A run that ends with 4 (the
platform did not answer) or 8 (locked) is tried again after the others.

Output of a run: nightly.jsonl in its project. Printed: a line for each organization that needs attention, then totals.
Exit code: the highest of those that failed; 5, rows in quarantine, counts as done.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

OURS = ("SOURCES__", "WAREHOUSE__", "LEDGER__", "RECONCILE__", "NOTIFY__", "DLT_")
DONE, AGAIN = (0, 5), (4, 8)


def hosts(project: Path) -> set[str]:
    """The hosts that a project's settings name."""
    found: set[str] = set()
    for name in ("config.toml", "secrets.toml"):
        file = project / ".dlt" / name
        sources = tomllib.loads(file.read_text("utf-8")).get("sources", {}) if file.exists() else {}
        addresses = [section.get("base_url") for section in sources.values() if isinstance(section, dict)]
        found |= {urlsplit(address).netloc for address in addresses if isinstance(address, str)}
    return found


class Night:
    """Runs each project once, as many at a time as all and as their hosts bear."""

    def __init__(self, arguments: list[str], at_once: int, per_host: int) -> None:
        self.arguments, self.at_once, self.per_host = arguments, at_once, per_host
        self.busy: Counter[str] = Counter()
        self.turn = threading.Condition()
        self.codes: dict[Path, int] = {}
        self.reasons: dict[Path, str] = {}

    def run(self, projects: list[Path]) -> None:
        """One round."""
        self.waiting = list(projects)
        with ThreadPoolExecutor(self.at_once) as pool:
            for future in [pool.submit(self._next) for _ in projects]:
                future.result()

    def _next(self) -> None:
        with self.turn:
            while (project := next(filter(self._is_free, self.waiting), None)) is None:
                self.turn.wait()
            self.waiting.remove(project)
            self.busy.update(hosts(project))
        try:
            self.codes[project], self.reasons[project] = self._run(project)
        finally:
            with self.turn:
                self.busy.subtract(hosts(project))
                self.turn.notify_all()

    def _is_free(self, project: Path) -> bool:
        return all(self.busy[host] < self.per_host for host in hosts(project))

    def _run(self, project: Path) -> tuple[int, str]:
        environment = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        command = [os.environ.get("ORDERBRIDGE", "orderbridge"), "--project", str(project), *self.arguments]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
        with (project / "nightly.jsonl").open("a", encoding="utf-8") as log:
            log.write(done.stderr + done.stdout)
        return done.returncode, reason(done.stderr)


def reason(log: str) -> str:
    """The message of the last error in a log."""
    for line in reversed(log.splitlines()):
        try:
            entry = json.loads(line)
        except ValueError:
            continue
        if isinstance(entry, dict) and entry.get("event") == "error":
            return str(entry.get("message", "")).partition("\n")[0]
    return ""


def main() -> int:
    """Runs the night. Returns the exit code."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("folder", type=Path, help="with a project for each organization")
    parser.add_argument("--at-once", type=int, default=4, help="runs at the same time (default: 4)")
    parser.add_argument("--per-host", type=int, default=2, help="of them, for the same host (default: 2)")
    parser.add_argument("--tries", type=int, default=3, help="for a platform that does not answer (default: 3)")
    parser.add_argument("--wait-s", type=float, default=900, help="seconds between the tries (default: 900)")
    parser.add_argument("arguments", nargs="*", default=["run", "--log", "json"], help="of orderbridge, after --")
    options = parser.parse_args()
    os.umask(0o077)
    started = time.monotonic()
    night = Night(options.arguments, options.at_once, options.per_host)
    projects = left = sorted(path.parent for path in options.folder.glob("*/.dlt"))
    for attempt in range(options.tries):
        if attempt:
            time.sleep(options.wait_s)
        night.run(left)
        left = [project for project in left if night.codes[project] in AGAIN]
        if not left:
            break
    failed = {project: code for project, code in night.codes.items() if code not in DONE}
    for project, code in sorted(failed.items()):
        print(f"{project.name}: exit code {code}: {night.reasons[project] or 'see nightly.jsonl'}")
    totals = sorted(Counter(night.codes.values()).items())
    counts = ", ".join(f"{count} with exit code {code}" for code, count in totals)
    print(f"{len(projects)} organizations in {time.monotonic() - started:.0f} s: {counts}")
    return max(failed.values(), default=0)


if __name__ == "__main__":
    sys.exit(main())
