"""Shops in the shape of public systems, each with its truth, one module a shop; `world` has what they share."""
