"""All that touches Triton's internals: starting a compiled kernel again. Behind a self-test that falls back to `kernel[grid]`."""
