"""The experiments on learning through an argmax over structures, and the command `pullback`."""

__version__ = "1.0.0"
