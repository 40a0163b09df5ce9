"""Pages of JSON to typed Arrow tables."""
