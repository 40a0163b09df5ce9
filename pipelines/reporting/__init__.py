"""Output for people: the report, the notebooks' plots, the status."""
