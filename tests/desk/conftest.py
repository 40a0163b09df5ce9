"""The desk's tests in a browser are collected where there are Chromium's driver and what `make desk-tests` installs."""

from __future__ import annotations

import shutil
from importlib.util import find_spec

collect_ignore = (
    [] if find_spec("selenium") and shutil.which("chromedriver") else ["test_in_browser.py"]
)
