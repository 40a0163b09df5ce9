"""Cells of a file to values, values to bodies, bodies to decisions."""
