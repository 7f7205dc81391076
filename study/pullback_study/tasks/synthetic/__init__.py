"""Synthetic clusters: a categorical latent variable whose true value is known."""
