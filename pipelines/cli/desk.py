"""The command `desk`: serves the pages in the browser, and opens them."""

from __future__ import annotations

import sys
from pathlib import Path

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, start
from orderbridge.pipelines.cli.terminal import escape


@declared("desk")
def command(port: int, no_browser: bool, lang: str | None, launcher: Path | None) -> None:
    """Open the desk: pages in the browser to see the lists, answer questions and import files.

    Only this machine and this user can see them. Closing the browser or the desk never stops an import or a run
    that was started there. Without use, the desk ends after an hour.
    """
    start()
    from orderbridge.pipelines.desk.server import DeskOptions, serve
    from orderbridge.pipelines.desk.texts import LANGUAGES, language_of_locale
    from orderbridge.sources.settings import check_before_writes

    check_before_writes()
    language = next((one for one in LANGUAGES if one == lang), language_of_locale())
    if launcher is not None:
        from orderbridge.pipelines.desk.launcher import write_launcher

        write_launcher(launcher, language)
        _say(f"written: {launcher}; a double click opens the desk")
        return
    options = DeskOptions(
        port=port,
        opens_browser=not no_browser,
        language=language,
        shows_address=sys.stdout.isatty(),
    )
    with STOP.gently():
        serve(options, STOP.event, _say)


def _say(line: str) -> None:
    sys.stdout.write(f"{escape(line)}\n")
    sys.stdout.flush()
