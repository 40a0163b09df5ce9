"""Frames in, frames out: what the raw tables mean. No HTTP, no DuckDB, no dlt."""
