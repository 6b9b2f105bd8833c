"""The robustness testbed's engine: data, noise, separation, evaluation, store, metrics and results."""
