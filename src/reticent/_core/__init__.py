"""What everything stands on: checks, errors, random generators, compiled kernels, and the names of saved kinds."""
