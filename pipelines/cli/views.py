"""The command `views`: makes the views for BI tools over the copy at the destination, or prints their SQL."""

from __future__ import annotations

import sys

from pipelines.cli.options import declared
from pipelines.cli.process import start
from pipelines.cli.terminal import print_lines


@declared("views")
def command(sql: bool) -> None:
    """Make the views of the schema bi over the copy at warehouse.destination.

    The warehouse itself has them after each run. Run it once after the first copy, and again after an upgrade.
    """
    start()
    from pipelines.warehouse.destination import create_views
    from pipelines.warehouse.views import statements
    from sources.settings import warehouse_settings

    settings = warehouse_settings()
    if sql:
        sys.stdout.write(";\n".join(statements(f"{settings.destination_dataset}_")) + ";\n")
    else:
        print_lines(f"made {create_views(settings)}")
