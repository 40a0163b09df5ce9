"""The command `views`: makes the views for BI tools over the copy at the destination, or prints their SQL."""

from __future__ import annotations

import sys

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import start
from orderbridge.pipelines.cli.terminal import print_lines


@declared("views")
def command(sql: bool) -> None:
    """Make the views of the schema bi over the copy at warehouse.destination.

    The warehouse itself has them after each run. Run this once after the first copy, and again after an upgrade.
    """
    start()
    from orderbridge.pipelines.warehouse.bi.views import statements
    from orderbridge.pipelines.warehouse.destination.copy import create_views
    from orderbridge.sources.settings import warehouse_settings

    settings = warehouse_settings()
    if sql:
        sys.stdout.write(";\n".join(statements(f"{settings.destination_dataset}_")) + ";\n")
    else:
        print_lines(f"made {create_views(settings)}")
