"""Results: one model of a table and of a figure, made from runs; the paper's numbers, names and claims."""
