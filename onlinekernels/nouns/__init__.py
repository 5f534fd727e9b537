"""What users name: kernels, losses, steps, budgets, structures of labels, scalers.  Plain objects."""
