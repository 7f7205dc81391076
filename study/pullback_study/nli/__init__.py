"""Natural language inference (SNLI), with a latent dependency tree on each side."""
