"""The command `report`: writes the HTML page and prints where it is."""

from __future__ import annotations

from pathlib import Path

from orderbridge.pipelines.cli.options import declared
from orderbridge.pipelines.cli.process import STOP, shown_texts, start
from orderbridge.pipelines.cli.terminal import print_result
from orderbridge.sources.settings import project_file
from orderbridge.sources.texts import Language
from orderbridge.sources.words import number


@declared("report")
def command(out: Path | None, lang: Language | None) -> None:
    """Write one HTML page about the published warehouse, without personal data.

    It shows coverage, findings with what to do about each, the comparison with the ERP, price lists, promotions and
    orders. The page loads nothing from other places. Only you can read a new file (mode 0600); a replaced one keeps its
    mode.
    """
    start()
    from orderbridge.pipelines.reporting.report import check_ending, report

    if out is not None:
        check_ending(out)
    out = out or project_file("report.html")
    data = report(out, shown_texts(lang).language)
    findings = sum(row["findings"] for row in data.rows["findings"])
    run_id = data.run["run_id"]
    record = {"file": out, "run_id": run_id, "findings": findings}
    print_result(
        "report",
        [f"wrote {out}: as of run {run_id}, {number(findings, 'finding')}"],
        record,
        STOP.style,
    )
