"""Copies of the published warehouse in another destination of dlt: which one, what changed, how it is replaced."""
