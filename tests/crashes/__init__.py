"""Crashes by enumeration: a run is recorded at every write, sync, rename and commit, and resumed from each of them."""
