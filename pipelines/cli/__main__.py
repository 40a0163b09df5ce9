"""The entry point of the command `orderbridge`, also `python -m pipelines.cli`.

It imports nothing but `signal` and `os` before Ctrl-C is handled: importing the commands takes 0.2 s, in which Python
would print a traceback.
"""

from __future__ import annotations

import os
import signal


def _stop(number: int, frame: object) -> None:
    try:
        os.write(2, b"stopped\n")
    finally:
        os._exit(128 + number)  # nothing is open yet


def main() -> None:
    """Runs the command. Every way out has its exit code."""
    is_default = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not if the parent ignores Ctrl-C
    if is_default:
        signal.signal(signal.SIGINT, _stop)
    from pipelines.cli.main import main as run

    if is_default:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    run()


if __name__ == "__main__":
    main()
