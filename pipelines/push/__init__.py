"""The push: sends the operations of a plan, each write exactly once (docs/exactly-once.md)."""
