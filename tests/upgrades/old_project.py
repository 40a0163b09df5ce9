"""A project as a released version makes it, with its own code in a process of its own.

In: the code of a version and a platform. Out: a folder with settings, a warehouse of two nights with the ERP's
comparison, and a ledger with plans whose operations are in every state.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from tests.upgrades.platform import LEGACY_KEY, V1_KEY, Platform
from tests.upgrades.shops import next_night

SETTINGS: Final = """\
[sources.legacy]
base_url = "{url}"
environment = "sandbox"
login_mode = "email"

[sources.public_v1]
base_url = "{url}"
"""
SECRETS: Final = """\
[sources.legacy]
api_key = "{legacy}"

[sources.public_v1]
api_key = "{v1}"
"""
PLANS: Final = {
    "plan-first": ("customers", "first.csv"),
    "plan-categories": ("subcategories", "categories.csv"),
    "plan-open": ("customers", "open.csv"),
    "plan-variants": ("variants", "variants.csv"),
}
"""The plans of a project, by folder: the kind and the file."""
NIGHTLY: Final = {
    "clientes.csv": ("customers", "Código;Nombre;Documento;Buzón;Contraseña"),
    "cuentas.csv": ("customers", "Account;Nombre;Correo;Contraseña"),
    "tarifas.csv": ("variants", "productId;variantId;Artículo;Tarifa"),
}
"""Files that are planned each night without a mapping, by name: the kind and the header, whose names have several
meanings."""
NIGHT: Final = ("run", "--erp-customers", "erp.csv")
_TIMEOUT_S: Final = 300
PUSH: Final = ("push", "--yes", "--settle", "0")
HAS_RESULT: Final = (0, 5, 6, 9)
"""Exit codes of a command that did its work."""


class Run(Protocol):
    """Runs a command in a project: its exit code, and what it printed."""

    def __call__(self, project: Path, *arguments: str) -> tuple[int, str]: ...


@dataclass(frozen=True)
class Code:
    """How the commands of a version are called.

    Attributes:
        command: the words before the arguments.
        python_path: the folder with the code of an old version; empty for an installed one.
    """

    command: tuple[str, ...]
    python_path: str = ""

    def start(self, project: Path, *arguments: str) -> subprocess.Popen[str]:
        """Starts a command in a project, with nothing of this process's environment except the path of programs."""
        home = project.parent / "home"
        home.mkdir(exist_ok=True)
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(home),
            "TMPDIR": tempfile.gettempdir(),
            "PYTHONUTF8": "1",
            **({"PYTHONPATH": self.python_path} if self.python_path else {}),
        }
        return subprocess.Popen(
            [*self.command, *arguments],
            cwd=project,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            umask=0o077,
        )

    def run(self, project: Path, *arguments: str) -> tuple[int, str]:
        """The exit code of a command, and what it printed."""
        process = self.start(project, *arguments)
        printed, _ = process.communicate(timeout=_TIMEOUT_S)
        return process.returncode, printed

    def do(self, project: Path, *arguments: str) -> str:
        """What a command printed that has to do its work. Raises RuntimeError where it did not."""
        code, printed = self.run(project, *arguments)
        if code not in HAS_RESULT:
            raise RuntimeError(f"{' '.join(arguments)} ended with {code}:\n{printed}")
        return printed


def make_project(project: Path, code: Code, platform: Platform) -> None:
    """Makes the project of a version in a new folder."""
    (project / ".dlt").mkdir(parents=True, mode=0o700)
    project.chmod(0o700)
    (project / ".dlt/config.toml").write_text(SETTINGS.format(url=platform.url), "utf-8")
    secrets = project / ".dlt/secrets.toml"
    secrets.touch(mode=0o600)
    secrets.write_text(SECRETS.format(legacy=LEGACY_KEY, v1=V1_KEY), "utf-8")
    _write_erp_file(project / "erp.csv", platform)
    code.do(project, *NIGHT)
    _accept_findings(project, code)
    _push_first_plans(project, code, platform)
    _push_nightly(project, code)
    platform.lists = next_night(platform.lists)
    code.do(project, *NIGHT)
    _push_open_plans(project, code, platform)
    code.do(project, *NIGHT)


def _write_erp_file(file: Path, platform: Platform) -> None:
    """The ERP's customers: most are the platform's, one differs, one is unknown."""
    rows = [
        f"{row.get('erpCode', '')},{row.get('firstName', '')},{row.get('email', '')}"
        for row in platform.lists["customers"][:20]
    ]
    rows[2] += ".other"
    file.write_text("\n".join(["erpCode,firstName,email", *rows, "X-1,Nadie,n@erp.example", ""]))


def _accept_findings(project: Path, code: Code) -> None:
    """Accepts a rule, where the version can."""
    _, commands = code.run(project, "--help")
    if "\n  accept " in commands:
        code.do(project, "accept", "customers.email_duplicate", "--why", "they share it")


def _customers_file(file: Path, codes: list[str]) -> None:
    rows = [f"{code},Cliente {code},{code.lower()}@new.example,pw-{code}" for code in codes]
    file.write_text("\n".join(["erpCode,firstName,email,password", *rows, ""]), "utf-8")


def _push_first_plans(project: Path, code: Code, platform: Platform) -> None:
    """A plan that ends, but for a conflict; and one of subcategories."""
    _customers_file(project / "first.csv", ["F-1", "F-twice", "F-given-up", "F-2"])
    platform.answers |= {"F-twice": "lost", "F-given-up": "vanished"}
    code.do(project, "plan", "customers", "first.csv", "--out", "plan-first")
    code.do(project, "push", "plan-first", "--yes")
    platform.answers.clear()
    (twice,) = [row for row in platform.lists["customers"] if row.get("erpCode") == "F-twice"]
    platform.add_customer({name: twice[name] for name in twice if name != "id"})
    code.do(project, "push", "plan-first", "--yes", "--settle", "0", "--abandon", "3")
    (project / "categories.csv").write_text("categoryId,name\n7,Quesos\n7,Panes\n", "utf-8")
    code.do(project, "plan", "subcategories", "categories.csv", "--out", "plan-categories")
    code.do(project, "push", "plan-categories", "--yes")


def _push_open_plans(project: Path, code: Code, platform: Platform) -> None:
    """Plans that were killed while they waited for a response."""
    codes = ["O-1", "O-refused", "O-lost", "O-gone", "O-2", "O-sent", "O-3", "O-4"]
    _customers_file(project / "open.csv", codes)
    platform.answers |= {
        "O-refused": "rejected",
        "O-lost": "lost",
        "O-gone": "vanished",
        "O-sent": "silent",
        "V-refused": "rejected",
        "V-lost": "lost",
        "109": "lost",
        "V-sent": "silent",
    }
    code.do(project, "plan", "customers", "open.csv", "--out", "plan-open")
    _push_and_kill(project, code, platform, "plan-open")
    _write_variants(project / "variants.csv")
    code.do(project, "plan", "variants", "variants.csv", "--out", "plan-variants")
    _push_and_kill(project, code, platform, "plan-variants", "--concurrency", "1")
    platform.answers.clear()


def _write_variants(file: Path) -> None:
    """Updates that can be repeated, and a stock that may add to what is there."""
    skus = ["V-1", "V-2", "V-refused", "V-lost", "V-3"]
    rows = [f"7,{number},{sku},{number}.5," for number, sku in enumerate(skus, 101)]
    rows += ["7,109,V-added,109.5,5", "7,110,V-sent,110.5,", "7,111,V-4,1.5,", "7,112,V-5,2.5,"]
    file.write_text("\n".join(["productId,variantId,sku,weight,stock", *rows, ""]), "utf-8")


def _push_nightly(project: Path, code: Code) -> None:
    """Plans and pushes the files of a night, those that the version can plan; the others are removed."""
    write_nightly(project, 1)
    for file, (kind, _) in NIGHTLY.items():
        plan = f"plan-1-{Path(file).stem}"
        ended, _ = code.run(project, "plan", kind, file, "--out", plan)
        if ended == 0:
            code.do(project, "push", plan, "--yes")
        else:
            (project / file).unlink()


def write_nightly(project: Path, night: int) -> dict[str, list[dict[str, object]]]:
    """Writes the files of a night.

    Returns:
        What their columns send, without passwords, by file: an operation each.
    """
    numbers = range(night * 10, night * 10 + 3)
    rows = {
        "clientes.csv": [f"N-{n};Ana {n};{n}5;buzon{n}@x.example;pw-{n}" for n in numbers],
        "cuentas.csv": [f"Casa Pérez {n};Ana {n};casa{n}@x.example;pw-{n}" for n in numbers],
        "tarifas.csv": [f"8;{n};Tornillo de {n};{n % 3 + 1}" for n in numbers],
    }
    for file, lines in rows.items():
        header = NIGHTLY[file][1]
        (project / file).write_text("\n".join([header, *lines, ""]), "utf-8")
    customers: list[dict[str, object]] = []
    accounts: list[dict[str, object]] = []
    codes: list[dict[str, object]] = []
    prices: list[dict[str, object]] = []
    for n in numbers:
        person = {"firstName": f"Ana {n}"}
        documents = [{"number": f"{n}5"}]
        mail = f"buzon{n}@x.example"
        customers.append({"erpCode": f"N-{n}", **person, "email": mail, "documents": documents})
        accounts.append({"erpCode": f"Casa Pérez {n}", **person, "email": f"casa{n}@x.example"})
        codes.append({"erpCode": f"Tornillo de {n}"})
        prices.append({"price": n % 3 + 1})
    return {"clientes.csv": customers, "cuentas.csv": accounts, "tarifas.csv": codes + prices}


def _push_and_kill(project: Path, code: Code, platform: Platform, plan: str, *options: str) -> None:
    """Pushes a plan and kills it while a write is in flight."""
    platform.silent.clear()
    process = code.start(project, "push", plan, "--yes", *options)
    while process.poll() is None and not platform.silent.wait(0.05):
        pass
    is_silent = platform.silent.is_set()
    process.kill()
    printed, _ = process.communicate(timeout=_TIMEOUT_S)
    if not is_silent:
        raise RuntimeError(f"push {plan} sent no write without a response:\n{printed}")
