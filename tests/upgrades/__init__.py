"""Upgrades: projects that each released version made with its own code, and what today's code makes of them."""
