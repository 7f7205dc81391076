"""Recursions as rules, from which the reference and the compiled loops are generated. See README.md."""
