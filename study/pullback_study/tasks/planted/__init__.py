"""Planted structures: a hidden scorer, its best structure as gold, and a label that needs it."""
