"""The recursion engine: rules and traced programs, and all operations that follow from them."""
