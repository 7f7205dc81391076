"""Synthetic clusters: the study of categorical latent variables (the paper's Table of results, its two figures)."""
