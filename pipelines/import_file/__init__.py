"""The whole way of a file in one run: map, pull, plan, agree, push, pull, verify, one result (docs/import.md)."""
