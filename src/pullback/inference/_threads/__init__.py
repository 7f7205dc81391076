"""The seam to PyTorch's OpenMP threads: a self-test on first use, and a pool of our own threads as the fallback."""
