"""Latent dependency trees on text: what the tasks on sentences share."""
