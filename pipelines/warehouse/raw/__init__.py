"""The raw tables: what a pull loaded, merged with what was known, and what its values show."""
