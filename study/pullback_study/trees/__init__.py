"""What latent trees look like and what they know about syntax."""
