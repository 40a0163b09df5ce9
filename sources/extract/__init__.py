"""Lists walked to their end: paginators, sweeps, spool, files."""
