"""The views for BI tools, and the descriptions of all tables and columns."""
