"""Frames in, frames out: what the raw tables mean. No HTTP, no DuckDB, no dlt."""

if not __name__.startswith("orderbridge."):
    raise ImportError(
        f"Import orderbridge.{__name__}, not {__name__}. After `git pull` in a checkout: make setup"
    )
