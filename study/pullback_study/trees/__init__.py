"""Drawings and measures of latent trees."""
