"""The runs: pull, reconcile, plan and push, with the warehouse, the ledger, the reports and the commands."""

if not __name__.startswith("orderbridge."):
    raise ImportError(
        f"Import orderbridge.{__name__}, not {__name__}. After `git pull` in a checkout: make setup"
    )
