"""The push: sends the operations of a plan, each write exactly once (docs/push.md)."""
