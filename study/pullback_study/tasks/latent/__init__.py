"""Models with a latent structure, trained in batches: what a task of this kind has to say is a `Problem`."""
