"""The entry point of the command `orderbridge`, also `python -m orderbridge.pipelines.cli`.

Ctrl-C ends the process at once while the command line is imported, which takes 0.1 s and would print a traceback.
"""

from __future__ import annotations

import signal


def main() -> None:
    """Runs the command. Every way out has its exit code."""
    # not if the parent ignores Ctrl-C
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if is_default:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    from orderbridge.pipelines.cli.main import main as run

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
