"""Pull: the lists of the platform into the raw tables, and the check of settings before it."""
