"""Tasks on sentences."""
