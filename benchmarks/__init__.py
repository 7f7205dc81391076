"""Benchmarks of `pullback` against its peers: `python -m benchmarks --help`."""
