"""The paper: its numbers, the names of its rows, which runs its tables need, and its claims."""
