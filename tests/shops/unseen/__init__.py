"""Shops that were written from what their systems mean, before the program read one of them for the first time."""
