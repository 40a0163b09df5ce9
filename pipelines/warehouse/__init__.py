"""The DuckDB file: build and publish, lock, load, merge, ops tables, destination."""
