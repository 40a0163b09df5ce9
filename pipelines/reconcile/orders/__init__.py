"""The orders of a build and their lines: from the raw tables to the reconciled ones."""
