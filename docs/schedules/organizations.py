"""A night of many organizations: runs orderbridge in each project of a folder, some at a time, and prints one summary.

    python organizations.py /srv/projects --at-once 4 --per-host 2
    python organizations.py /srv/projects --quiet -- pull orders --tail --log json

Each folder with a `.dlt` is a project: settings, warehouse and ledger of an organization. Its run is a process of its
own in that folder, which sees none of the environment but PATH, HOME, the locale, the time zone and TMPDIR, so that
nothing is shared and one that fails stops no other. At most `--at-once` run at the same time, and at most `--per-host`
of those that read the same host. A run that ends with 4 (the platform did not answer) or 8 (locked) is tried again
after the others, unless only its copy to the destination failed. A signal is passed on to the runs, and no further one
is started.

Output of a run: nightly.jsonl in its project, or nightly.log of a command without JSON. Printed: a line for each
organization that needs attention, then totals. Exit code: the highest of those that failed; 5, rows in quarantine,
counts as done; 2 without a project; 128 and the number of the signal that stopped the night.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

RUN = ["run", "--log", "json", "--report", "report.html"]
PASSED_ON = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR")
DONE, AGAIN, USAGE = (0, 5), (4, 8), 2


def hosts(project: Path) -> set[str]:
    """The hosts that a project's settings name; none where they cannot be read: orderbridge says what is wrong."""
    found: set[str] = set()
    for name in ("config.toml", "secrets.toml"):
        try:
            sources = tomllib.loads((project / ".dlt" / name).read_text("utf-8"))["sources"]
            found |= {
                urlsplit(section["base_url"]).netloc
                for section in sources.values()
                if "base_url" in section
            }
        except (OSError, ValueError, LookupError, AttributeError, TypeError):
            continue
    return found


class Night:
    """Runs each project once, as many at a time as all and as their hosts bear."""

    def __init__(self, program: str, arguments: list[str], at_once: int, per_host: int) -> None:
        self.command, self.arguments, self.at_once, self.per_host = (
            program,
            arguments,
            at_once,
            per_host,
        )
        self.busy: Counter[str] = Counter()
        self.turn = threading.Condition()
        self.codes: dict[Path, int] = {}
        self.reasons: dict[Path, str] = {}
        self.copies_failed: set[Path] = set()
        self.children: set[subprocess.Popen[bytes]] = set()
        self.signal = 0

    def run(self, projects: list[Path]) -> None:
        """One round."""
        self.waiting = [(project, hosts(project)) for project in projects]
        with ThreadPoolExecutor(self.at_once) as pool:
            futures = [pool.submit(self._next) for _ in projects]
            while wait(
                futures, 0.5
            ).not_done:  # the main thread has to run to handle a signal that another one got
                pass
        for future in futures:
            future.result()

    def stop(self, number: int, _: object) -> None:
        """Passes a signal on as SIGTERM; no further run is started."""
        with self.turn:
            self.signal = number
            for child in [*self.children]:  # one that ends meanwhile is taken out
                child.terminate()
            self.turn.notify_all()

    def _next(self) -> None:
        with self.turn:
            while (
                not self.signal
                and (turn := next(filter(self._is_free, self.waiting), None)) is None
            ):
                self.turn.wait()
            if self.signal:
                return
            self.waiting.remove(turn)
            project, named = turn
            self.busy.update(named)
        try:
            self.codes[project], self.reasons[project] = self._run(project)
        except OSError as error:
            self.codes[project], self.reasons[project] = USAGE, str(error)
        finally:
            with self.turn:
                self.busy.subtract(named)
                self.turn.notify_all()

    def _is_free(self, turn: tuple[Path, set[str]]) -> bool:
        return all(self.busy[host] < self.per_host for host in turn[1])

    def _run(self, project: Path) -> tuple[int, str]:
        environment = {
            name: value
            for name, value in os.environ.items()
            if name in PASSED_ON or name.startswith("LC_")
        }
        command = [self.command, "--project", str(project), *self.arguments]
        file = project / (
            "nightly.jsonl"
            if {"json", "--json", "--log=json"} & {*self.arguments}
            else "nightly.log"
        )
        with file.open("ab") as log:
            start = log.tell()
            with self.turn:
                child = subprocess.Popen(
                    command,
                    cwd=project,
                    env=environment,
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                )
                self.children.add(child)
                if self.signal:
                    child.terminate()
            code = child.wait()
            self.children.discard(child)
            if code == AGAIN[0]:
                asked = [*command[:3], "status", "--json"]
                status = subprocess.run(
                    asked, check=False, cwd=project, env=environment, capture_output=True
                )
                if only_copy_failed(status.stdout.decode("utf-8", "replace")):
                    self.copies_failed.add(project)
        said = file.read_bytes()[start:].decode("utf-8", "replace")
        silent = (
            f"see {file.name}"
            if said.strip()
            else f"nothing was written to {file.name}: is the disk full?"
        )
        why = (
            reason(said)
            or f"{silent} ({shutil.disk_usage(project).free >> 20} MB are free in {project})"
        )
        lost = re.findall(r"the notification was not delivered[^\"\n]*", said)[-1:]
        return code if code >= 0 else 128 - code, "; ".join(
            [*([why] if code not in DONE else []), *lost]
        )


def only_copy_failed(said: str) -> bool:
    """Whether the status says that the copy to the destination failed, and the run did not."""
    status = next(_events(said), {})
    return bool(status.get("destination_failure")) and status.get("failure", "") is None


def reason(said: str) -> str:
    """Why a run needs attention: its error; else lists not published or too old; else findings, the worst alone."""
    events = {event.get("event"): event for event in _events(said)}
    if "error" in events:
        return str(events["error"].get("message", "")).replace("\n ", "")
    lists, status = events.get("pull", {}).get("lists", []), events.get("status", {})
    same: dict[str, list[str]] = {}
    for row in lists:
        same.setdefault(row["problem"].replace("\n ", ""), []).append(row["resource"])
    reasons = [f"{', '.join(names)}: {problem}" for problem, names in same.items() if problem]
    if status.get("too_old"):
        reasons = [f"not read within {status['max_age_h']:g} h: {', '.join(status['too_old'])}"]
        if failure := status["failure"]:
            reasons.append(f"the last run failed: {failure['message']}".replace("\n ", ""))
        reasons += [
            f"{name}: {problem}".replace("\n ", "") for name, problem in status["problems"].items()
        ]
    found = events.get("reconcile", {}).get("findings", [])
    severest = [one for one in found if one["severity"] == "error"] or found
    return "; ".join(
        reasons
        or [f"{one['count']} {one['severity']} {one['entity']}.{one['rule']}" for one in severest]
    )


def _events(said: str) -> Iterator[dict[str, Any]]:
    for line in said.splitlines():
        try:
            event = json.loads(line)
        except ValueError:
            continue
        if isinstance(event, dict):
            yield event


def main() -> int:
    """Runs the night. Returns the exit code."""
    parser = argparse.ArgumentParser(
        description=(__doc__ or "").partition("\n")[0],
        epilog=f"After --: the command, instead of {' '.join(RUN)}",
    )
    parser.add_argument("folder", type=Path, help="with a project for each organization")
    parser.add_argument("--at-once", type=int, default=4, help="runs at the same time (default: 4)")
    parser.add_argument(
        "--per-host", type=int, default=2, help="of them, for the same host (default: 2)"
    )
    parser.add_argument(
        "--tries", type=int, default=3, help="for a platform that does not answer (default: 3)"
    )
    parser.add_argument(
        "--wait-s", type=float, default=900, help="seconds between the tries (default: 900)"
    )
    parser.add_argument("--quiet", action="store_true", help="print nothing where all is well")
    own, arguments = sys.argv[1:], []
    if "--" in own:  # argparse takes what follows only right after the folder
        own, arguments = own[: own.index("--")], own[own.index("--") + 1 :]
    options = parser.parse_args(own)
    os.umask(0o077)
    started = time.monotonic()
    projects = left = sorted(path.parent.absolute() for path in options.folder.glob("*/.dlt"))
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    program = os.environ.get("ORDERBRIDGE") or shutil.which("orderbridge", path=places)
    if not projects or program is None:
        missing = f"there is no project (a folder with .dlt) in {options.folder}"
        print(
            missing if not projects else "orderbridge is not next to this Python, nor on the PATH",
            file=sys.stderr,
        )
        return USAGE
    night = Night(program, arguments or RUN, options.at_once, options.per_host)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, night.stop)
    for attempt in range(options.tries):
        if attempt:
            with night.turn:
                night.turn.wait_for(lambda: night.signal, options.wait_s)
        night.run(left)
        left = [
            one for one in left if night.codes.get(one) in AGAIN and one not in night.copies_failed
        ]
        if not left or night.signal:
            break
    failed = {project: code for project, code in night.codes.items() if code not in DONE}
    attention = [project for project in sorted(night.codes) if night.reasons[project]]
    for project in attention:
        print(f"{project.name}: exit code {night.codes[project]}: {night.reasons[project]}")
    if attention or night.signal or not options.quiet:
        totals = [
            f"{count} with exit code {code}"
            for code, count in sorted(Counter(night.codes.values()).items())
        ]
        waiting = [project.name for project in projects if project not in night.codes]
        totals += [f"{len(waiting)} not started ({', '.join(waiting)})"] if waiting else []
        print(
            f"{len(projects)} organizations in {time.monotonic() - started:.0f} s: {', '.join(totals)}"
        )
    return 128 + night.signal if night.signal else max(failed.values(), default=0)


if __name__ == "__main__":
    sys.exit(main())
