"""Where settings come from: the project's root, and dlt's own resolution from there.

In: the environment, `.dlt/secrets.toml` and `.dlt/config.toml` of the root. Out: raw values by key, with misspelt keys
and unreadable files refused. dlt looks for `.dlt` in the current folder only and takes seconds to import, so the root
is found here, told to dlt before its import, and dlt itself is imported when a value is first asked for.
"""

from __future__ import annotations

import os
import re
import stat
import sys
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from sources.errors import UsageError

KEYS: Final[Mapping[str, tuple[str, ...]]] = {
    "sources.legacy": (
        "base_url",
        "api_key",
        "environment",
        "page_limit",
        "login_mode",
        "stock_semantics",
        "price_semantics",
    ),
    "sources.public_v1": ("base_url", "api_key", "page_limit", "order_key"),
    "sources.http": ("timeout_s", "read_timeout_s", "ca_file", "proxy"),
    "warehouse": ("path", "destination", "destination_dataset"),
    "ledger": ("path",),
    "reconcile": ("order_customer_id", "order_ordered_at", "order_total", "date_order", "timezone", "country"),
}
"""Every setting, by its section."""

SECRET_KEYS: Final = frozenset({"sources.legacy.api_key", "sources.public_v1.api_key"})
FILES: Final = ("secrets.toml", "config.toml")


def variable(key: str) -> str:
    """The environment variable of a key: `sources.legacy.api_key` is `SOURCES__LEGACY__API_KEY`."""
    return key.replace(".", "__").upper()


def named(key: str) -> str:
    """A key as messages name it, with its environment variable."""
    return f"{key} ({variable(key)})"


def find_root() -> Path:
    """The project's root: the folder whose `.dlt` holds the settings.

    `DLT_PROJECT_DIR` where set; else the nearest folder with `.dlt`, from the current one upwards; else the checkout
    that this package lies in; else the current folder. `~/.dlt` is where dlt keeps things of its own: it counts where
    it holds a section of ours.

    Raises:
        UsageError: `DLT_PROJECT_DIR` names no folder.
    """
    told = os.environ.get("DLT_PROJECT_DIR")
    if told:
        root = Path(told).absolute()
        if not root.is_dir():
            raise UsageError("DLT_PROJECT_DIR names no folder", "Set it to the folder that holds `.dlt`, or unset it.")
        return root
    here = Path.cwd()
    home = Path(os.path.expanduser("~"))  # noqa: PTH111 # Path.home() raises where there is none
    checkout = Path(__file__).absolute().parent.parent
    for folder in (here, *here.parents, checkout):
        if (folder / ".dlt").is_dir() and (folder != home or _has_ours(folder / ".dlt")):
            return folder
    return here


def _has_ours(folder: Path) -> bool:
    documents = [_read(folder / name) for name in FILES]
    sections = {path.rpartition(".")[0] for document in documents for path in _paths(document)}
    return not sections.isdisjoint(KEYS)


def prepare_dlt(root: Path, data_dir: Path) -> None:
    """Tell dlt where the project is, before it is imported; telemetry off, logging quiet, files for the user alone.

    Args:
        root: what `find_root` found.
        data_dir: a folder of the caller's for dlt's own state; dlt's default is shared between projects.
    """
    os.umask(0o077)
    os.environ["DLT_PROJECT_DIR"] = str(root)
    os.environ["DLT_DATA_DIR"] = str(data_dir)
    os.environ["RUNTIME__DLTHUB_TELEMETRY"] = "false"
    os.environ["RUNTIME__LOG_LEVEL"] = "CRITICAL"  # below it, dlt logs row values and answers
    if "dlt" in sys.modules:  # a notebook: dlt has read its settings already, from elsewhere
        from dlt.common.configuration.container import Container
        from dlt.common.configuration.specs.pluggable_run_context import PluggableRunContext

        Container()[PluggableRunContext].reload(str(root))


class Resolution:
    """The raw values of one section, through dlt's providers: environment, secrets file, config file.

    Args:
        section: a key of `KEYS`. Other sections are neither looked at nor checked.
        root: the project's root; found where not given.

    Raises:
        UsageError: a file that cannot be read or is no TOML; a key or a variable of this section that is no setting.
    """

    def __init__(self, section: str, root: Path | None = None) -> None:
        self._section = section
        self._folder = (root or find_root()) / ".dlt"
        self._documents = {name: _read(self._folder / name) for name in FILES}
        self._refuse_unknown()

    def value(self, name: str) -> object:
        """The value of a key of the section, as it is written there; None where it is nowhere set."""
        from dlt.common.configuration.exceptions import ConfigProviderException
        from dlt.common.configuration.providers import ConfigTomlProvider, EnvironProvider, SecretsTomlProvider
        from dlt.common.typing import TSecretStrValue

        key = f"{self._section}.{name}"
        path = self._section.split(".")
        secret = key in SECRET_KEYS
        hint: type[object] = TSecretStrValue if secret else str
        found, _ = EnvironProvider().get_value(name, hint, "", *path)
        if found is not None:
            # a mounted secret file: dlt returns it with its last newline and puts it without into the environment
            return os.environ.get(variable(key), found)
        try:
            found, _ = SecretsTomlProvider(str(self._folder)).get_value(name, hint, "", *path)
            if found is None:
                found, _ = ConfigTomlProvider(str(self._folder)).get_value(name, hint, "", *path)
                if found is not None and secret:
                    raise UsageError(
                        f"{named(key)} is a secret and stands in .dlt/config.toml",
                        "Move it to .dlt/secrets.toml, which git ignores; if it was ever committed, replace the key.",
                    )
        except ConfigProviderException:
            raise UsageError(f"a settings file in {self._folder} is no TOML that dlt can read") from None
        return found

    def missing(self, name: str, how: str) -> UsageError:
        """The error of a key that is nowhere set; it names what looks like a slip of the pen."""
        key = f"{self._section}.{name}"
        hint = f"Set {variable(key)}, or `{name}` under [{self._section}] in .dlt/{_file_of(key)}: {how}"
        written = [path for document in self._documents.values() for path in _paths(document)]
        slips = get_close_matches(variable(key), os.environ, n=1, cutoff=0.87)
        slips += get_close_matches(key, written, n=1, cutoff=0.87)
        known = {f"{section}.{known}" for section, names in KEYS.items() for known in names}
        slips = [slip for slip in slips if slip not in known and slip not in map(variable, known)]
        if slips:
            hint += f"\n  There is a `{slips[0]}`: is it meant?"
        return UsageError(f"{named(key)} is not set (settings are read from {self._folder})", hint)

    def _refuse_unknown(self) -> None:
        names = KEYS[self._section]
        for file, document in self._documents.items():
            table: object = document
            for part in self._section.split("."):
                table = table.get(part, {}) if isinstance(table, dict) else table
            if not isinstance(table, dict):
                raise UsageError(
                    f".dlt/{file}: `{self._section}` is no table", f"Write [{self._section}] on a line of its own."
                )
            for name in table:
                if name not in names:
                    raise _unknown(f"{self._section}.{name}", f".dlt/{file}", name, names)
        prefix = variable(self._section) + "__"
        variables = [prefix + name.upper() for name in names]
        for name in os.environ:
            if name.upper().startswith(prefix) and name not in variables:
                raise _unknown(name, "the environment", name.upper(), variables)


def permission_warnings(root: Path | None = None) -> list[str]:
    """What is wrong with who may read the settings; for `check` to show."""
    secrets = (root or find_root()) / ".dlt" / "secrets.toml"
    if os.name == "nt" or not secrets.is_file():
        return []
    mode = stat.S_IMODE(secrets.stat().st_mode)
    if not mode & 0o077:
        return []
    return [f"{secrets} can be read or changed by other users (mode {mode:04o}): chmod 600 {secrets}"]


def _file_of(key: str) -> str:
    return "secrets.toml" if key in SECRET_KEYS else "config.toml"


def _unknown(key: str, where: str, name: str, names: list[str] | tuple[str, ...]) -> UsageError:
    nearest = get_close_matches(name, names, n=1, cutoff=0.5)
    meant = f"`{nearest[0]}` is the nearest that there is. " if nearest else ""
    return UsageError(f"{where}: `{key}` is no setting", f"{meant}Known: {', '.join(names)}.")


def _read(path: Path) -> dict[str, object]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except FileNotFoundError:
        return {}
    except UnicodeDecodeError:
        raise UsageError(f"{path} is not UTF-8", "Save it as UTF-8.") from None
    except OSError as error:
        raise UsageError(f"{path} cannot be read: {error.strerror}") from None
    except tomllib.TOMLDecodeError as error:
        # the parser's words quote the file, which may hold a key: only the place is told
        line = re.search(r"at line (\d+)", str(error))
        where = f"line {line[1]}" if line else "its last line"
        raise UsageError(
            f"{path}, {where}: no valid TOML", "Texts stand in quotes, and a name stands once in its table."
        ) from None


def _paths(document: object, prefix: str = "") -> list[str]:
    if not isinstance(document, dict):
        return [prefix]
    return [path for name, value in document.items() for path in _paths(value, f"{prefix}.{name}" if prefix else name)]
