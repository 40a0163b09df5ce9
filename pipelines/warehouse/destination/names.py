"""Which destination a setting names: one of dlt's own, by its name or by that of a section of settings with its type.

In: `warehouse.destination`. Out: a destination of dlt's, or a UsageError. dlt itself would import any module that a
setting names. Version 0.3 let it: in a project that has a warehouse or a ledger, that is a warning for one version.
"""

from __future__ import annotations

import logging
from functools import cache
from typing import TYPE_CHECKING, Any, Final

from orderbridge.sources.errors import UsageError
from orderbridge.sources.settings import is_new_project

if TYPE_CHECKING:
    from dlt.common.destination.reference import Destination

LOG: Final = logging.getLogger("orderbridge.destination")
_PREFIX: Final = "dlt.destinations."
_IMPORTING: Final = ("destination",)
"""Destinations of dlt's that import what a setting names."""


def dlt_destination(setting: str, *, may_import: bool) -> Destination[Any, Any]:
    """The destination that a setting names.

    Args:
        setting: the name.
        may_import: a module that it names is imported in a project that is not new, with one line in the log.

    Raises:
        UsageError: it is no name of dlt's.
    """
    import dlt

    name = setting.removeprefix(_PREFIX)
    kind = str(dlt.config.get(f"destination.{name}.destination_type") or name)
    kind = kind.removeprefix(_PREFIX)
    known = sorted(set(dlt.destinations.__all__).difference(_IMPORTING))
    if kind in known:
        own: Destination[Any, Any] = getattr(dlt.destinations, kind)(
            destination_name=name if name != kind else None
        )
        return own
    problem = f"WAREHOUSE__DESTINATION: dlt has no destination {kind!r}"
    fix = f"It has {', '.join(known)}. To change it: orderbridge init warehouse.destination"
    is_allowed = may_import and not is_new_project()
    imported = _imported(setting) if is_allowed else None
    if imported is None:
        raise UsageError(problem, fix)
    warn(f"{problem}: its module is imported. The next version refuses this. {fix}")
    return imported


@cache
def warn(words: str) -> None:
    """Logs a warning, once in a process."""
    LOG.warning("%s", words)


def _imported(setting: str) -> Destination[Any, Any] | None:
    """What version 0.3 used: whatever dlt finds under this name; None where it finds nothing."""
    from dlt.common.destination.exceptions import UnknownDestinationModule
    from dlt.common.destination.reference import Destination

    try:
        return Destination.from_reference(setting)
    except UnknownDestinationModule:
        return None
