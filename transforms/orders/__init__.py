"""Orders, whose fields the interface does not show: which column holds what, and what the values mean."""
