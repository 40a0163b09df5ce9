"""The push: what a plan says, sent as often as it should be (docs/push.md)."""
