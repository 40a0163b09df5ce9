"""Reconcile: the raw tables and the ERP files into the reconciled tables."""
