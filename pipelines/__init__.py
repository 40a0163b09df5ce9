"""The runs: pull, reconcile, plan and push, with the warehouse, the ledger, the reports and the commands."""
