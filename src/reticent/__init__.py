"""Online decisions that change rarely and reveal little."""
