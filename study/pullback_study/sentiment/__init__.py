"""Sentiment of sentences (SST), with a latent dependency tree."""
