"""What the library uses of Triton's internals, with a public way beside it: starting a compiled kernel again."""
