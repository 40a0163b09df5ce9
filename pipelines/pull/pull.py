"""Pull: walk the lists, load them through dlt, merge them into the raw tables, and publish the file as a whole.

In: settings and names of lists. Out: a published warehouse and a `PullResult`, or an error and the old file as it was.
A list whose walk fails keeps its old table, and the exit code shows it. Where every list fails, nothing is published.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
from contextlib import closing

from orderbridge.pipelines.pull.model import BuildStep, PullOptions, PullResult
from orderbridge.pipelines.pull.order_tail import OrderTail
from orderbridge.pipelines.pull.publishing import Publication, check_coverage
from orderbridge.pipelines.pull.refused_keys import hint_at_refused_keys
from orderbridge.pipelines.pull.targets import Targets, lists_without_settings, read_targets
from orderbridge.pipelines.pull.walking import KnownList, ListWalks, known_list
from orderbridge.pipelines.warehouse.accepted_changes import AcceptedChanges
from orderbridge.pipelines.warehouse.build import warehouse_errors
from orderbridge.pipelines.warehouse.raw.field_kinds import declared_kinds
from orderbridge.pipelines.warehouse.run import WarehouseRun
from orderbridge.pipelines.warehouse.source import check_source, read_source, source_run
from orderbridge.sources.command_line import typed_command
from orderbridge.sources.contract import LISTS, ORDER, UNDOCUMENTED
from orderbridge.sources.errors import BridgeError, Stopped, Unreachable, UsageError
from orderbridge.sources.extract.result import Progress, no_progress


def pull(
    options: PullOptions,
    progress: Progress = no_progress,
    stop: threading.Event | None = None,
    step: BuildStep | None = None,
) -> PullResult:
    """Pulls lists into the warehouse (`orderbridge pull`).

    Args:
        options: of the pull.
        progress: called after each page.
        stop: ends the walks once it is set.
        step: called with the build once the raw tables are in it; what it raises leaves the old file.

    Raises:
        UsageError, LockedError: before the first request, except for a warehouse that turns out to hold the data of
            another organization.
        AccessError, PlatformError: no list could be walked.
        CoverageError: `require_complete` is set, and a list is not complete. In every case the old file is unchanged.
    """
    run = WarehouseRun(options.command)
    stop = stop or threading.Event()
    result = PullResult(run.run_id, run.build.path)
    with run.preparation():
        names = tuple(dict.fromkeys([*options.resources, *options.refresh]))
        if not names:
            result.left_out = lists_without_settings(run.build.path)
            names = tuple(name for name in LISTS if name not in result.left_out)
        targets = read_targets(names)
        tail = _tail(options, names, targets)
        accepted = AcceptedChanges.read()
    with run.building() as build:
        known = _read_published(run, options, names, targets, tail, accepted)
        run.resumable = names
        try:
            walks = ListWalks(
                targets, build, options.sweeps, progress, stop, known, tail, options.refresh
            )
            with closing(
                Publication(run, options, targets, result, tail, stop, accepted)
            ) as publication:
                result.lists, organization = walks.run(names, publication.merge)
                hint_at_refused_keys(result.lists, build.path)
                check_coverage(result, options)
                with warehouse_errors(build.path.parent):
                    publication.publish(organization, step)
        except UsageError:
            run.resumable = ()  # the disk may be full: pages that were fetched must not keep it so
            raise
        except BridgeError as error:
            if result.lists and not isinstance(error, Stopped):
                run.resumable = _unreachable(result)
            raise
        run.resumable = _unreachable(result)
    return result


def _read_published(
    run: WarehouseRun,
    options: PullOptions,
    names: Sequence[str],
    targets: Targets,
    tail: OrderTail | None,
    accepted: AcceptedChanges,
) -> dict[str, KnownList]:
    """What is known of each list; and where lists can be continued.

    Read before the walks: while lists are read, another program may open the file for writing.

    Raises:
        UsageError: as `check_source` and `declared_kinds`.
    """
    path = run.build.path
    if not path.exists():
        return {
            name: KnownList(kinds=declared_kinds(name)) for name in names if name in UNDOCUMENTED
        }
    with run.build.published() as warehouse:
        held = read_source(warehouse)
        is_accepted = (
            options.accept_new_source
            or accepted.covers_source(held, source_run(warehouse), targets.source)
            or targets.is_renamed(held)
        )
        check_source(warehouse, held, targets.source, names if is_accepted else None)
        if tail is not None:
            tail.find_start(warehouse, run.started_at)
        folder = run.build.run_folder
        refresh = options.refresh
        return {
            name: known_list(warehouse, name, folder, is_refreshed=name in refresh)
            for name in names
        }


def _unreachable(result: PullResult) -> list[str]:
    """The lists to resume where their walks ended; the next run requests the others anew."""
    return [walked.resource for walked in result.lists if isinstance(walked.error, Unreachable)]


def _tail(options: PullOptions, names: Sequence[str], targets: Targets) -> OrderTail | None:
    """How the orders are read, if they are. Raises UsageError: a tail is wanted, and cannot be."""
    if options.tail and ORDER.name not in names:
        raise UsageError(
            "--tail reads orders, which are not among the lists",
            f"Add orders, and the settings of the v1 API, or leave --tail out: {typed_command(without='--tail')}",
        )
    if options.tail and options.require_complete:
        raise UsageError(
            "--tail excludes --require-complete: a tail is never complete",
            f"Leave one of them out: {typed_command(without='--require-complete')}",
        )
    if ORDER.name not in names or targets.public_v1 is None:
        return None
    return OrderTail(
        targets.public_v1, is_wanted=options.tail and ORDER.name not in options.refresh
    )
