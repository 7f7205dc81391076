"""Dependency trees beyond their recursions: their family, and certificates of projections."""
