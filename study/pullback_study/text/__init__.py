"""Latent dependency trees on text: what the sentiment and the inference study share."""
