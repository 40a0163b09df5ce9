"""The ledger of writes: what was sent, what became of it, and its copy in the warehouse."""
