"""Planted bugs: small patches of the product, each of which breaks one promise of the design and must fail a test."""
