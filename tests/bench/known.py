"""What is known of the work beforehand, from the sandbox's own records; printed as JSON, in a process of its own."""

from __future__ import annotations

import json
import sys

from sandbox.config import SandboxConfig
from sandbox.records import generators
from sources.extract.result import WINDOW


def main(rows: int) -> None:
    """Counts children where the records are made, and reports how many pages a pull has in flight."""
    generate = generators(SandboxConfig(customers=rows, orders=rows))
    documents = sum(record.count(b'"isDefault":') for record in map(generate["customers"], range(rows)))
    lines = sum(record.count(b'"unitPrice":') for record in map(generate["orders"], range(rows)))
    counts = {"customers": rows, "customers__documents": documents, "orders": rows, "orders__lines": lines}
    print(json.dumps({"window": WINDOW, "counts": counts}))


if __name__ == "__main__":
    main(int(sys.argv[1]))
